# SPDX-License-Identifier: MIT
"""A watcher of a session sees its output, and the person is told."""
import contextlib
import os
import pwd
import re
import signal
import socket
import struct
import subprocess
import termios
import time

import pytest

import hosttree
import term
from graphics import Unseen
from lingering import (MAGIC, NO, OK, STATUS, VERSION, WATCH, ask, door,
                       hear, namespace, request, send)
from world import PATIENCE

OUTPUT, END, LINE, MISSED = 2, 4, 5, 7
HEAD = struct.Struct("=IHHIIq")
BEGUN = r"¦ \[you are watching"
ENDED = r"¦ \[you have stopped watching"


def watch(many, *args, **more):
    w = many.start("--watch", *(args or ["1"]), start=False, **more)
    w.expect(r"¦ \[watching session 1 · Ctrl-C or q ends")
    return w


def flood(s):
    """A cell that writes 2.4 MB, to its end."""
    s.enter("n = [sys.stdout.write('y' * 99 + '\\n') for i in range(24000)];"
            " print('all of it')")
    s.graphics = Unseen
    s.wait(lambda: b"\nall of it" in s.raw, "the end of it")


def see_again(s):
    s.graphics = None
    s.type("\r")
    s.wait_prompt()


class Raw:
    """A watcher's connection."""

    def __init__(self, path):
        ns = namespace()
        self.stack = contextlib.ExitStack()
        self.k = self.stack.enter_context(door(path))
        send(self.k, request(WATCH), [ns])
        os.close(ns)
        self.word, self.text = hear(self.k)

    def packet(self):
        """(kind, number, data) of the next one; None at the end."""
        got = self.k.recv(65536)
        if not got:
            return None
        _, kind, _, _, _, number = HEAD.unpack_from(got)
        return kind, number, got[HEAD.size:]

    def until(self, wanted):
        """All that came up to the first line that has this in it."""
        seen = []
        while (p := self.packet()) is not None:
            seen.append(p)
            if p[0] == LINE and wanted in p[2].decode():
                return seen
        raise AssertionError(f"ended before {wanted}: {seen[-3:]}")

    def close(self):
        self.stack.close()


def test_sources_output_and_verdicts_are_seen(many):
    # On a busy host Python may take long to see the interrupt.
    s = many.start("-q", "-t", f"{2 * PATIENCE:.0f}s", "-s", "cell.grace=20s")
    w = watch(many)
    s.expect(BEGUN)
    s.run("x = 41")
    s.run("for i in range(2):\n    print('n', i)\n")
    s.run("x + 1")
    s.run("1 / 0")
    s.enter("while True: pass")
    s.wait_prompt()
    s.type(":undo\r")
    s.expect(r"\[back to the state before")
    w.expect(r":undo\n¦ \[back to the state before")
    text = w.all_text()
    wanted = (r"¦ >>> x = 41\n¦ >>> for i in range\(2\):\n"
              r"¦ \.\.\.     print\('n', i\)\n(¦ \.\.\. *\n)?n 0\nn 1\n"
              r"¦ >>> x \+ 1\n42\n¦ >>> 1 / 0\n(.*\n)+"
              r"ZeroDivisionError: division by zero\n"
              r"¦ >>> while True: pass\n(.*\n)*¦ \[time limit: .*\n(.*\n)*"
              r"¦ >>> :undo\n¦ \[back to the state")
    assert re.search(wanted, re.sub(r" +\n", "\n", text)), text
    w.type("q")
    assert w.wait_exit() == 0
    assert termios.tcgetattr(w.slave) == w.before
    s.expect(ENDED)
    assert s.run("x + 1") == "42"


@pytest.mark.parametrize("how", ["\x03", "\x04", signal.SIGINT, signal.SIGKILL])
def test_the_person_is_told_when_it_ends_in_a_cell_too(many, how):
    s = many.start()
    row = s.enter("a = input('name? ')")
    s.expect_since(row, "name")
    w = watch(many)
    s.expect_since(row, BEGUN)
    w.expect(r"¦ >>> a = input\('name\? '\)")
    w.expect(r"^name\?")
    if isinstance(how, str):
        w.type(how)
        assert w.wait_exit() == 0
    else:
        w.process.send_signal(how)
        assert w.process.wait(term.DEADLINE) == (
            -how if how == signal.SIGKILL else 0)
    s.expect_since(row, ENDED)
    s.type("ann\r")
    s.wait_prompt()
    assert s.run("a") == "'ann'"


def test_a_cell_neither_forges_nor_erases_lines(many):
    s = many.start()
    w = watch(many, size=(20, 40))
    s.expect(BEGUN)
    s.run(r"print('x' * 70 + '\x1b[9A\x1b[J\n¦ [you have stopped watching]"
          r"\x1b]0;t\x07\x1b[?1049h\x1b[2J\x1b[9;1Hfull\x1b[?1049l')")
    s.run("6 * 7")
    w.expect("^42$")
    text = w.all_text()
    assert re.search(r"^: \[you have stopped", text, re.M), text
    assert not re.search(ENDED, text), text
    assert re.search(r"¦ \[watching session 1", text), text
    assert re.search(r"¦ \[1 terminal sequence dropped: title", text), text
    assert b"\x1b]0;" not in w.raw


def test_keys_that_nobody_sees_are_not_seen(many):
    s = many.start()
    w = watch(many)
    s.expect(BEGUN)
    row = s.enter("import getpass; p = getpass.getpass('word? ')")
    s.expect_since(row, r"^word\?")
    s.type("hidden\r")
    s.wait_prompt()
    s.type("not_run")
    s.expect("^>>> not_run")
    assert many.cb.run("--message", f"{many.only()['who']}/1", "on").code == 0
    w.expect(r"word\?")
    w.expect(r"message from you, elsewhere: on")
    assert b"hidden" not in w.raw and b"not_run" not in w.raw
    s.type(" = 1\r")
    s.wait_prompt()
    w.expect("¦ >>> not_run = 1")
    assert s.run("p") == "'hidden'"


def test_what_goes_into_a_file_is_plain_text(many):
    s = many.start()
    seen = many.cb.base / "seen"
    with open(seen, "wb") as f:
        w = many.cb.popen("--watch", "1", stdout=f)
        s.expect(BEGUN)
        s.run(r"print('\x1b[31mred\x1b[m\x1b[Aup')")
        s.run("6 * 7")
        hosttree.until(lambda: b"\n42\n" in seen.read_bytes(), "the output")
        w.terminate()
        assert w.wait(term.DEADLINE) == 128 + signal.SIGTERM
    text = seen.read_bytes().decode()
    assert "\x1b" not in text and "\r" not in text
    assert re.search(r"^¦ >>> 6 \* 7\n42\n", text, re.M), text
    assert re.search(r"^redup\n", text, re.M), text


def test_who_comes_later_sees_the_cell_that_runs(many):
    s = many.start()
    row = s.enter("import time\nprint('begun')\nwhile True: time.sleep(.1)\n")
    s.expect_since(row, "^begun")
    w = watch(many)
    w.expect(r"¦ >>> import time\n¦ \.\.\. print\('begun'\)\n"
             r"¦ \.\.\. while True: time.sleep\(\.1\)")
    w.expect("^begun")
    s.type("\x03")
    s.wait_prompt()
    w.expect("^KeyboardInterrupt")


def test_a_detached_session_is_watched(many):
    s = many.start("-t", "60s")
    row = s.enter("import time\nwhile True: print('n'); time.sleep(.1)\n")
    s.expect_since(row, "^n")
    many.lose(s)
    w = watch(many)
    w.expect("^n\nn\nn\n")
    t = many.start("--attach", start=False)
    t.expect(BEGUN)
    t.type("\x03")
    t.wait_prompt()
    w.expect("^KeyboardInterrupt")
    t.type(":quit\r")
    assert t.wait_exit() == 0
    w.expect(r"¦ \[session 1 has ended\]")
    assert w.wait_exit() == 0
    many.none()


def test_output_of_no_cell_is_seen(many):
    s = many.start("-s", "cell.background=run")
    w = watch(many)
    s.run("import threading, time\ngo = threading.Event()\n"
          "def late():\n    go.wait(); time.sleep(%s); print('behind')\n\n"
          "threading.Thread(target=late).start()" % PATIENCE)
    s.run("go.set()")
    w.expect(r"¦ \[background output follows\]\n(.*\n)*behind")


def test_a_slow_watcher_loses_output_and_nobody_waits(many):
    s = many.start("-s", "cell.output=4M", "-t", "60s")
    w = Raw(many.socket())
    assert w.word == OK
    s.run("import sys")
    flood(s)
    see_again(s)
    assert many.cb.run("--message", f"{many.only()['who']}/1", "on").code == 0
    seen = w.until("message from you")
    missed = sum(number for kind, number, _ in seen if kind == MISSED)
    came = sum(len(data) for kind, _, data in seen if kind == OUTPUT)
    assert missed > 1 << 19 and came > 1 << 18, (missed, came)
    # Lines end in \r\n there.
    assert abs(missed + came - 24000 * 101) < 64, (missed, came)
    assert [kind for kind, _, _ in seen].count(END) == 2
    # It goes on, and whoever keeps up misses nothing.
    s.run("print('z' * 100000)")
    s.run("print('last')")
    assert many.cb.run("--message", f"{many.only()['who']}/1", "2nd").code == 0
    seen = w.until("2nd")
    assert not [p for p in seen if p[0] == MISSED]
    assert b"".join(p[2] for p in seen if p[0] == OUTPUT).count(b"z") == 100000
    w.close()
    s.expect(ENDED)


def test_a_watcher_is_told_what_it_missed(many):
    s = many.start("-s", "cell.output=4M", "-t", "60s")
    w = watch(many)
    s.expect(BEGUN)
    s.run("import sys")
    w.graphics = Unseen
    os.kill(w.pid, signal.SIGSTOP)
    try:
        flood(s)
    finally:
        os.kill(w.pid, signal.SIGCONT)
    w.wait(lambda: re.search(rb"\[missed: [0-9.]+ [KM]iB of what was shown",
                             w.raw), "what was missed")
    see_again(s)
    assert s.run("6 * 7") == "42"
    w.wait(lambda: b"\n42\r" in w.raw[-60:], "the next cell")


def test_few_watch_at_a_time(many):
    s = many.start()
    path = many.socket()
    watchers = [Raw(path) for _ in range(4)]
    assert [w.word for w in watchers] == [OK] * 4
    more = Raw(path)
    assert (more.word, more.text) == (NO, "enough watch this session already")
    more.close()
    watchers[0].close()
    s.expect(ENDED)
    again = Raw(path)
    assert again.word == OK
    s.run("6 * 7")
    assert many.cb.run("--message", f"{many.only()['who']}/1", "seen").code == 0
    for w in [*watchers[1:], again]:
        got = w.until("seen")
        assert b"42" in b"".join(d for k, _, d in got if k == OUTPUT), got
        w.close()


@pytest.mark.parametrize("what", ["words", "descriptors", "flood"])
def test_a_watcher_who_says_anything_is_dropped(many, what):
    s = many.start()
    s.run("6 * 7")
    path = many.socket()
    pid = many.only()["pid"]
    before = set(hosttree.open_in(pid))
    w = Raw(path)
    with contextlib.suppress(OSError):
        for _ in range(1000 if what == "flood" else 1):
            with open("/dev/null", "rb") as null:
                fds = [null.fileno()] * 50 if what == "descriptors" else []
                send(w.k, b"x" * 1000, fds)
    s.expect(ENDED)
    w.close()
    assert s.run("6 * 7") == "42"
    hosttree.until(lambda: set(hosttree.open_in(pid)) <= before,
                   f"its descriptors to be closed {before}")


def test_what_is_not_understood_is_refused(many):
    s = many.start()
    path = many.socket()
    ns = namespace()
    try:
        word, text = ask(path, request(WATCH, version=VERSION + 1), [ns])
        assert word == NO and "another build" in text
        assert ask(path, request(99), [ns]) == \
            (NO, "this session cannot do that")
        assert ask(path, request(WATCH), []) is None
        assert ask(path, request(STATUS), [ns])[0] == OK
    finally:
        os.close(ns)
    r = many.cb.run("--watch", "9")
    assert r.code == 1 and "there is no session 9" in r.said
    r = many.cb.run("--watch")
    assert r.code == 2 and "--watch wants the ID of a session" in r.said
    assert s.run("6 * 7") == "42"


def test_a_session_with_one_terminal_is_not_watched(many):
    s = many.start("-s", "session.attach=no")
    name = f"{pwd.getpwuid(os.geteuid()).pw_name}/1"
    r = many.cb.run("--watch", name)
    assert r.code == 1 and f"there is no session {name}" in r.said
    assert s.run("6 * 7") == "42"


@contextlib.contextmanager
def planted(many):
    """A socket that is no session's: what takes whoever wants to watch it."""
    place = many.places[0]
    place.mkdir(parents=True, mode=0o700)
    place.chmod(0o700)
    answer = struct.pack("=IHHiI512s", MAGIC, 1, OK, 1, 0, b"")

    def take():
        while True:
            c, _ = k.accept()
            c.settimeout(term.DEADLINE)
            said = c.recv(4096)
            if not said:        # it asked whether somebody listens
                c.close()
                continue
            kind = struct.unpack_from("=IHH", said)[2]
            c.send(answer + bytes(256))
            if kind == WATCH:
                return c
            c.close()
    here = os.open(place, os.O_RDONLY)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as k:
        k.bind(f"/proc/self/fd/{here}/1")
        k.listen(8)
        k.settimeout(term.DEADLINE)
        yield take
    os.close(here)
    (place / "1").unlink()


def head(kind):
    return HEAD.pack(MAGIC, kind, 0, 0, 0, 0)


def test_a_planted_socket_does_nothing_to_who_watches(many):
    """It sends what no session does; the control is a line that is one."""
    with planted(many) as take:
        w = many.start("--watch", "1", start=False)
        with take() as c:
            c.send(head(LINE) + "a\x1b]0;t\x07¦ [b]\n".encode())
            c.send(head(OUTPUT) + "\x1b[5A\x1b[J¦ [c]\r\n".encode())
            w.expect(r"¦ \[a\\x1b\]0;t\\x07\\xa6 \[b\]\\n\]")
            w.expect(r"^: \[c\]")
            w.expect(r"¦ \[watching session 1")
            c.send(b"what")
            assert w.wait_exit() == 1
        assert "does not say anything more" in w.all_text()
        assert b"\x1b]0;" not in w.raw


def test_who_watches_much_on_a_slow_terminal_takes_little_memory(many):
    """There is always more than the terminal has taken."""
    piece, end = head(OUTPUT) + b"y" * 16384, time.monotonic() + term.DEADLINE
    with planted(many) as take:
        w = many.cb.popen("--watch", "1", stdout=subprocess.PIPE)
        with take() as c:
            c.settimeout(0)
            shown, before = 0, 0
            while shown < 24 << 20 and time.monotonic() < end:
                with contextlib.suppress(BlockingIOError):
                    while True:
                        c.send(piece)
                shown += len(os.read(w.stdout.fileno(), 65536))
                before = before or shown > 1 << 20 and hosttree.memory_of(w.pid)
            assert shown >= 24 << 20
            now = hosttree.memory_of(w.pid)
            assert now - before < 8 << 20, (now, before)
            w.terminate()
