# SPDX-License-Identifier: MIT
"""A person at a terminal: types, reads the screen, waits for conditions.

Every wait is for a condition and has a deadline. A wait that fails shows the
screen.
"""
import contextlib
import fcntl
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import termios
import time

import pyte
from wcwidth import wcswidth

from screen import Terminal

PATIENCE = float(os.environ.get("CELLBLOCK_TEST_PATIENCE", "1"))
DEADLINE = 20 * PATIENCE
# Opens the terminal for a command. To do that between fork and exec would copy
# the whole of pytest for each.
SETSID = shutil.which("setsid")
# Shown once, with the first cell, on a host that lacks something.
HOST_NOTICE = re.compile(r"(^|\n)(¦ )?\[here\s[^]]*\]")


class NotSeen(AssertionError):
    pass


def wants_blank_line(cell):
    """Whether Enter at the end of this cell opens a line, because the cell
    ends in a block or in a statement that may go on. `while True: pass` runs
    at once."""
    last = cell.split("\n")[-1]
    return last.rstrip().endswith(":") or bool(re.match(
        r"[ \t]+\S|(if|try|elif|else|except|finally|case)\b.*:", last))


@contextlib.contextmanager
def _keys_interrupt():
    """A process that is started meanwhile does not ignore the signals of keys."""
    ignored = [s for s in (signal.SIGINT, signal.SIGQUIT)
               if signal.getsignal(s) == signal.SIG_IGN]
    for s in ignored:
        signal.signal(s, signal.SIG_DFL)
    try:
        yield
    finally:
        for s in ignored:
            signal.signal(s, signal.SIG_IGN)


def _end_of(deadline):
    """The moment at which a wait of `deadline` seconds, or None, is over; a busy
    host has more."""
    return time.monotonic() + (deadline * PATIENCE if deadline else DEADLINE)


def _end(line):
    return line.strip()[-20:].strip()


class Session:
    """A command on a new pty. A context manager; close() ends the command."""

    def __init__(self, argv, env, size=(24, 80), cwd=None, prompt=">>> ",
                 **popen):
        self.master, self.slave = pty.openpty()
        self.prompt = prompt
        self.raw = bytearray()      # every byte that came
        self.closed = False
        self.graphics = None        # graphics.py
        self.notices = {}           # {limit: number of notices waited for}
        self.screen = Terminal(size[1], size[0], self._answer)
        self.stream = pyte.ByteStream(self.screen)
        self._set_size(*size)
        self.before = termios.tcgetattr(self.slave)
        with _keys_interrupt():
            self.process = subprocess.Popen(
                [SETSID, "--ctty", *argv], env=env, cwd=cwd, stdin=self.slave,
                stdout=self.slave, stderr=self.slave, **popen)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    @property
    def pid(self):
        return self.process.pid

    # ---- the pty ----

    def _set_size(self, lines, columns):
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ,
                    struct.pack("HHHH", lines, columns, 0, 0))

    def _answer(self, text):
        if not self.closed:
            os.write(self.master, text.encode())

    def _pump(self, timeout):
        """Read what has arrived. True when there was something."""
        ready, _, _ = select.select([self.master], [], [], max(timeout, 0))
        if not ready:
            return False
        try:
            data = os.read(self.master, 65536)
        except OSError:             # the last slave was closed
            return False
        self.raw += data
        if self.graphics:
            self.graphics.take(data, self)
        else:
            self.stream.feed(data)
        return bool(data)

    def wait(self, condition, what, deadline=None):
        """Read until condition() is true; its value is returned."""
        end = _end_of(deadline)
        while True:
            value = condition()
            if value:
                return value
            left = end - time.monotonic()
            if left <= 0:
                raise NotSeen(f"waited for {what}\n{self.picture()}")
            if not self._pump(min(left, 0.1)) and self.process.poll() is not None:
                while self._pump(0):
                    pass
                value = condition()
                if value:
                    return value
                raise NotSeen(
                    f"waited for {what}, but the command ended with status "
                    f"{self.process.returncode}\n{self.picture()}")

    def picture(self):
        rows = self.screen.shown()
        edge = "+" + "-" * self.screen.columns
        return "\n".join(["the screen:", edge, *("|" + r for r in rows), edge])

    def screen_text(self):
        return "\n".join(self.screen.shown())

    def all_text(self):
        return "\n".join(self.screen.rows()).rstrip()

    # ---- typing ----

    def type(self, text):
        data = text.encode("utf-8", "surrogateescape") \
            if isinstance(text, str) else text
        while data:
            _, ready, _ = select.select([], [self.master], [], 0.1)
            if ready:
                data = data[os.write(self.master, data[:1024]):]
            self._pump(0)

    def paste(self, text):
        """Paste as a terminal does: in brackets if the program wants them."""
        text = text.replace("\n", "\r")
        if self.screen.bracketed_paste:
            text = "\x1b[200~" + text + "\x1b[201~"
        self.type(text)

    def resize(self, lines, columns):
        self.screen.resize(lines, columns)
        self._set_size(lines, columns)

    # ---- reading ----

    def expect(self, wanted, deadline=None):
        """Wait until the screen, joined by newlines, matches a pattern (or
        satisfies a function of the text). Returns the match."""
        if callable(wanted):
            return self.wait(lambda: wanted(self.screen_text()),
                             getattr(wanted, "__doc__", None) or wanted,
                             deadline)
        pattern = re.compile(wanted, re.M)
        return self.wait(lambda: pattern.search(self.screen_text()),
                         f"{wanted!r}", deadline)

    def expect_since(self, row, wanted, deadline=None):
        """Like expect(), in the rows from absolute number `row` on."""
        pattern = re.compile(wanted, re.M)
        return self.wait(
            lambda: pattern.search("\n".join(self.screen.rows(row))),
            f"{wanted!r} below row {row}", deadline)

    def at_prompt(self):
        return (not self.screen.alternate
                and self.screen.cursor_row() == self.prompt.rstrip()
                and self.screen.cursor.x == len(self.prompt))

    def wait_prompt(self, deadline=None):
        return self.wait(self.at_prompt, "an empty prompt", deadline)

    def start(self, deadline=None):
        self.wait_prompt(deadline)
        return self

    def wait_notice(self, limit):
        """Wait until the session announces `limit` ("idle" or "lifetime") once
        more. The notice comes 60 s before the limit strikes, so with a limit
        of 62 s this waits for 2 s."""
        text = f"s: {limit} limit"
        self.notices[limit] = self.notices.get(limit, 0) + 1
        self.wait(lambda: self.all_text().count(text) >= self.notices[limit],
                  f"notice {self.notices[limit]} of the {limit} limit")

    def forget_notices(self, limit):
        """wait_notice() is to wait for none of those that were shown already."""
        self.notices[limit] = self.all_text().count(f"s: {limit} limit")

    # ---- cells ----

    def enter(self, cell):
        """Put a cell into the editor and press Enter. Returns the absolute
        number of the row on which the output begins."""
        self.wait_prompt()
        first = self.screen.here()
        if "\n" in cell or len(cell) > 500:
            self.paste(cell)
        else:
            self.type(cell)
        above, last = ([""] + [_end(x) for x in cell.split("\n")])[-2:]
        if last:
            self.wait(lambda: self._typed(first).endswith(last)
                      or self._is_above_notice(first, last),
                      f"the echo of {last!r}")
        elif above and self.screen.bracketed_paste:
            self.wait(lambda: above in self._tail(first)
                      and self.screen.cursor_row() == "...",
                      f"an empty line below {above!r}")
        elif cell:
            self.wait(lambda: not self.at_prompt(), "an echo")
        if wants_blank_line(cell):
            row = self.screen.here()
            self.type("\r")
            self.wait(lambda: self.screen.here() > row
                      and self.screen.cursor_row() == "...",
                      "an empty continuation line")
        row = self.screen.here() + 1
        # A cell that fills its last row leaves the cursor on the next one.
        if self.screen.cursor.x == 0 and \
                len(self.screen.rows(row - 2, row - 1)[0]) == \
                self.screen.columns:
            row -= 1
        self.type("\r")
        return row

    def _tail(self, first):
        """The edited text so far, with wrapped lines joined."""
        start = max(first, self.screen.here() - 3)
        return "".join(r.ljust(self.screen.columns) for r in
                       self.screen.rows(start, self.screen.here() + 1))

    def _typed(self, first):
        """The same up to the cursor. While the text is drawn anew, or moved down
        by a notice, the cursor is elsewhere: at the start of a row that does
        not go on from a full one."""
        x, here = self.screen.cursor.x, self.screen.here()
        above = self.screen.rows(max(here - 1, 0), here)
        if not x and (not above or wcswidth(above[0]) < self.screen.columns):
            return ""
        return self._tail(first)[:x - self.screen.columns].rstrip()

    def _is_above_notice(self, first, last):
        """A plain prompt does not draw anew what was typed when a notice comes:
        the terminal still has it."""
        text = "\n".join(self.screen.rows(first, self.screen.here()))
        notice = HOST_NOTICE.search(text)
        return bool(notice) and not self.screen.bracketed_paste and \
            self.at_prompt() and text[:notice.start()].endswith(last)

    def run(self, cell, deadline=None):
        """Run a cell. Returns the text between it and the next prompt."""
        row = self.enter(cell)
        self.wait(lambda: self.screen.here() >= row and self.at_prompt(),
                  f"the prompt after {cell[-60:]!r}", deadline)
        text = "\n".join(self.screen.rows(row, self.screen.here()))
        above = "\n".join(self.screen.rows(max(row - 3, 0), row))
        return self._without_notice(above, text, cell)

    def _without_notice(self, above, text, cell):
        """The output without the host notice. If the jail was ready only after
        the cell was typed, the notice has appeared above the cell and moved it
        down."""
        notice = HOST_NOTICE.search(text)
        if notice and text[:notice.start()]:
            return text[:notice.start()] + text[notice.end():]
        if notice:
            text = text[notice.end():].removeprefix("\n")
        elif not HOST_NOTICE.search(above):
            return text
        if not text.startswith((self.prompt, "...")):
            return text
        end = text.find(cell.split("\n")[-1].strip()[-20:])
        newline = text.find("\n", max(end, 1))
        return text[newline + 1:] if newline >= 0 else ""

    def interrupt_input(self, row):
        """Type Ctrl-C until Python handles it. A signal just before read() is
        handled only after the read."""
        for _ in range(4):
            self.type("\x03")
            try:
                return self.expect_since(row, "^KeyboardInterrupt$", 4)
            except NotSeen:
                pass
        raise NotSeen(self.picture())

    def complete(self, line):
        """Press Tab until the row of the cursor is `line`. On a busy host Python,
        or its copy, may have too little time to answer at once."""
        for _ in range(9):
            self.type("\t")
            try:
                return self.wait(lambda: self.screen.cursor_row() == line,
                                 f"Tab to make it {line!r}", 3)
            except NotSeen:
                pass
        raise NotSeen(self.picture())

    # ---- the end ----

    def leave(self, deadline=None):
        """Ctrl-D at the prompt, and again where it asks. Returns the exit
        status."""
        self.wait_prompt()
        row = self.screen.here()
        self.type("\x04")
        self.wait(lambda: self.process.poll() is not None
                  or self.screen.here() > row and self.at_prompt(),
                  "the end, or a question", deadline)
        if self.process.poll() is None:
            self.type("\x04")
        return self.wait_exit(deadline)

    def wait_exit(self, deadline=None):
        end = _end_of(deadline)
        while self.process.poll() is None:
            if time.monotonic() > end:
                raise NotSeen(
                    f"waited for the command to end\n{self.picture()}")
            self._pump(0.05)
        while self._pump(0):
            pass
        return self.process.returncode

    def terminal_modes(self):
        return termios.tcgetattr(self.slave)

    def close(self):
        if self.closed:
            return
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.closed = True
        os.close(self.master)
        os.close(self.slave)
