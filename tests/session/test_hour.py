# SPDX-License-Identifier: MIT
"""An ordinary hour of an IPython user, replayed here and in IPython."""
import os
import re
import shutil
import termios

import pytest

import hour
import term

KEYS = {
    "Enter": "\r", "Tab": "\t", "Backspace": "\x7f", "Up": "\x1b[A",
    "Down": "\x1b[B", "Right": "\x1b[C", "Left": "\x1b[D", "Home": "\x1b[H",
    "End": "\x1b[F", "Delete": "\x1b[3~", "F1": "\x1bOP", "F2": "\x1bOQ",
    "F3": "\x1bOR",
}
TOKEN = re.compile(r"\{(?:(see|out|paste):(.*?)\}(?=$|[^\]})])|([A-Z][\w.-]*)\})",
                   re.S)
# Debian's, unless another is named.
IPYTHON = shutil.which(os.environ.get("CELLBLOCK_TEST_IPYTHON",
                                      "/usr/bin/ipython3"))


class IPython(term.Session):
    """Its prompt has a number."""

    def reads_keys(self):
        """Whether its terminal library reads the terminal, which a prompt on
        the screen alone does not say: a key that comes before or after is the
        terminal's to echo and to translate."""
        return self.screen.bracketed_paste and \
            not termios.tcgetattr(self.slave)[3] & termios.ICANON

    def at_prompt(self):
        row = self.screen.cursor_row()
        return bool(re.fullmatch(r"In \[\d+\]:", row)) and \
            self.screen.cursor.x == len(row) + 1 and self.reads_keys()


def key(name):
    if name.startswith("Ctrl-"):
        return chr(ord(name[-1]) & 0x1f)
    if name.startswith("Alt-"):
        return "\x1b" + name[-1].lower()
    return KEYS[name]


def tokens(keys):
    """(kind, text) in turns: text, see, paste or key."""
    at = 0
    for m in TOKEN.finditer(keys):
        if m.start() > at:
            yield "text", keys[at:m.start()]
        yield (m[1], m[2]) if m[1] else ("key", m[3])
        at = m.end()
    if at < len(keys):
        yield "text", keys[at:]


class Replay:
    def __init__(self, session):
        self.s = session

    def echoed(self, text):
        """Wait until what was typed is on the screen: a person looks."""
        last = text.split("\n")[-1].strip()[-8:]
        self.s.wait(lambda: self.s._typed(0).endswith(last),
                    f"the echo of {last!r}")

    def before_cursor(self):
        """The line, without what is suggested behind the cursor."""
        screen = self.s.screen
        row = screen.rows(screen.here(), screen.here() + 1)[0]
        return row[:screen.cursor.x]

    def row(self):
        """That of the cursor, which is elsewhere while the line is drawn."""
        self.s.wait(lambda: self.s.screen.cursor.x, "the cursor in the line")
        return self.s.screen.here()

    def play(self, keys):
        """Type; return the absolute row below the line that ran."""
        s = self.s
        s.wait_prompt()
        row = s.screen.here()
        runs = False                # the rest is read by the cell
        for kind, text in tokens(keys):
            if kind == "text":
                s.type(text)
                self.echoed(text)
            elif kind == "paste":
                s.paste(text)
                s.wait(lambda: not s.at_prompt(), "the pasted text")
            elif kind == "see":
                s.wait(lambda: re.search(text, self.before_cursor()),
                       f"{text!r} before the cursor")
            elif kind == "out":
                s.expect_since(row, text)
            elif text == "Run":
                row, runs = self.row() + 1, True
                s.type("\r")
            else:
                enter = text == "Enter" and not runs
                if enter:
                    row = self.row() + 1
                s.type(key(text))
                if enter:
                    s.wait(lambda: s.screen.here() >= row, "the next line")
        return row

    def step(self, keys):
        s = self.s
        row = self.play(keys)
        s.wait(lambda: s.screen.here() >= row and s.at_prompt(), "a prompt")
        rows = s.screen.rows(row, s.screen.here())
        text = "\n".join(r.rstrip() for r in rows if r.strip())
        return re.sub(r"^Out\[\d+\]: ?\n?", "", text, flags=re.M)


def fits(text, wanted):
    if wanted.startswith("~"):
        return re.fullmatch(wanted[1:], text)
    if wanted.startswith("…"):
        return text.endswith(wanted[1:])
    return text == wanted


def replay(session, chapter):
    player = Replay(session)
    for keys, wanted in chapter:
        text = player.step(keys)
        assert fits(text, wanted), (keys, wanted, text, session.picture())


def given(cb):
    name, text = hour.FILE
    (cb.work / name).write_text(text)
    return str(cb.work / name)


@pytest.mark.parametrize("chapter", [*hour.BOTH, *hour.HERE])
def test_the_hour_here(cb, chapter):
    with cb.session(size=(40, 100)) as s:
        s.run(f":upload {given(cb)}")
        replay(s, {**hour.BOTH, **hour.HERE}[chapter])


@pytest.mark.sampled(8)
@pytest.mark.limit(180)
@pytest.mark.skipif(not IPYTHON, reason="no IPython here")
@pytest.mark.parametrize("chapter", hour.BOTH)
def test_the_hour_in_ipython(cb, chapter):
    given(cb)
    # Two things of it go by how fast the host is: a thread that saves the
    # history, which the next prompt reads, and an answer of the terminal about
    # the cursor, which is echoed when it comes too late.
    argv = [IPYTHON, "--no-banner", "--colors=NoColor", "--no-confirm-exit",
            "--HistoryManager.db_cache_size=1000"]
    env = {**cb.env, "IPYTHONDIR": str(cb.home / "ipython"),
           "PROMPT_TOOLKIT_NO_CPR": "1"}
    with IPython(argv, env, size=(40, 100), cwd=cb.work) as s:
        replay(s, hour.BOTH[chapter])
