# SPDX-License-Identifier: MIT
"""A cell may do anything to the line discipline of its tty. The keys that the
person types ahead come back to the prompt as they were typed, or are dropped,
which is said. No byte of the tty's ends the session, and the next cell finds
the tty as every cell finds it."""
import pytest

from hostile import is_whole, patient, start, value
from world import PATIENCE, WHOLE

SAID = "what was typed ahead is dropped"
KEYS = "xx\u0144x"
AT_LAST = "!"

TTY = """\
import fcntl, os, struct, sys, termios, time
def change(what):
    t = termios.tcgetattr(0)
    what(t)
    termios.tcsetattr(0, termios.TCSANOW, t)
def on(i, bits):
    change(lambda t: t.__setitem__(i, t[i] | bits))
def off(i, bits):
    change(lambda t: t.__setitem__(i, t[i] & ~bits))
def key(number, c=b'x'):
    change(lambda t: t[6].__setitem__(number, c))
def wait(row='go'):
    print(row, flush=True)
    time.sleep(PAUSE)
def stripped():
    off(3, termios.ICANON); on(0, termios.ISTRIP)
    print('go', flush=True); os.read(0, 1); time.sleep(PAUSE)
PAUSE = """ + str(PATIENCE)

TRICKS = {
    "nothing": "wait()",
    "end_of_file": "key(termios.VEOF); wait()",
    "end_of_line": "key(termios.VEOL); wait()",
    "second_end_of_line": "key(termios.VEOL2); wait()",
    "erase": "key(termios.VERASE); wait()",
    "kill": "key(termios.VKILL); wait()",
    "erase_word": "key(termios.VWERASE); wait()",
    "literal": "key(termios.VLNEXT); wait()",
    "reprint": "key(termios.VREPRINT); wait()",
    "suspend": "key(termios.VSUSP); wait()",
    "quit": "import signal; signal.signal(signal.SIGQUIT, signal.SIG_IGN);"
            " key(termios.VQUIT); wait()",
    "stop": "on(0, termios.IXON); key(termios.VSTOP); wait()",
    "no_lines": "off(3, termios.ICANON); wait()",
    "lines_later": "off(3, termios.ICANON); wait(); on(3, termios.ICANON)",
    "stripped": "stripped()",
    "marked": "on(0, termios.PARMRK); wait()",
    "lower_case": "on(0, 0o1000); wait()",
    "no_returns": "on(0, termios.IGNCR | termios.INLCR); wait()",
    "external": "on(3, 0o200000); wait()",
    "hung_up": "change(lambda t: t.__setitem__(4, 0)); wait()",
    "raw": "import tty; tty.setraw(0); wait()",
    "flushed": "wait(); termios.tcflush(0, termios.TCIFLUSH)",
}
CONTROLS = "nothing", "end_of_file", "no_lines", "raw"
SOME = list(TRICKS) if WHOLE else [*CONTROLS, *list(TRICKS)[2::4]]


def after_typed_ahead(s, row):
    """A key at the prompt comes behind all that was typed ahead: wait for both. A
    prompt alone may be one of those at which lines typed ahead are run."""
    s.wait(lambda: s.screen.here() > row
           and s.screen.cursor_row().startswith(">>>"), "the prompt")
    s.type(AT_LAST)
    s.wait(lambda: s.screen.cursor_row().startswith(">>>")
           and s.screen.cursor_row().endswith(AT_LAST), "a key")


@pytest.mark.sampled
@pytest.mark.limit(120)
def test_typed_ahead_keys_are_the_persons_whatever_a_cell_does(cb):
    """The cell may read the first of them, or spoil them all. The keys that come
    back are then the last of the person's own, or none."""
    s = start(cb, *patient("cell.timeout", 10))
    s.run(TTY)
    given = {}
    for trick in SOME:
        row = s.enter(TRICKS[trick])
        s.expect_since(row, "^go")
        s.type(KEYS)
        after_typed_ahead(s, row)
        given[trick] = s.screen.cursor_row()[4:].strip().removesuffix(AT_LAST)
        s.type("\x03")
        s.wait_prompt()
    for trick, keys in given.items():
        assert KEYS.endswith(keys), trick
    # The controls: no cell read these, and each tty can still tell.
    for trick in ("nothing", "no_lines", "raw"):
        assert given[trick] == KEYS, trick
    assert given["end_of_file"] == ""
    assert SAID in s.all_text()
    is_whole(s, 0)


@pytest.mark.sampled
@pytest.mark.limit(120)
def test_no_cell_makes_a_command_of_lines_typed_ahead(cb):
    """The cell may change its tty, and read any part of a line: the next prompt
    runs lines that the person typed, from their beginning, or none."""
    s = start(cb, *patient("cell.timeout", 10))
    s.run(TTY)
    s.run("import select")

    def type_ahead(cell):
        row = s.enter(f"ran = 0; {cell}")
        s.expect_since(row, "^go")
        s.type("nox:quit\rran = 1\rnox:quit\r")
        after_typed_ahead(s, row)
        s.type("\x03")
        s.wait_prompt()

    for trick in SOME:
        type_ahead(TRICKS[trick] + "; select.select([0], [], [], 0)[0]"
                                   " and os.read(0, 3)")
    is_whole(s, 0)
    # The control: whole lines run.
    type_ahead("wait()")
    assert value(s, "ran") == "1"


def test_a_key_made_the_end_of_file_does_not_end_the_session(cb):
    s = start(cb, *patient("cell.timeout", 10))
    s.run(TTY)
    row = s.enter("key(termios.VEOF); wait()")
    s.expect_since(row, "^go")
    s.type("x")
    s.expect_since(row, SAID)
    s.wait_prompt()
    row = s.enter("stripped()")
    s.expect_since(row, "^go")
    s.type("\u0144")                # 0xc5 0x84 becomes E and Ctrl-D
    s.expect_since(row, SAID)
    s.wait_prompt()
    # The control: the person's own Ctrl-D does.
    row = s.enter("wait()")
    s.expect_since(row, "^go")
    s.type("\x04")
    s.expect("never downloaded: kept.txt")
    s.wait_prompt()
    assert s.leave() == 0


def test_text_before_ctrl_d_that_a_cell_reads_does_not_leave_it_alone(cb):
    s = start(cb, *patient("cell.timeout", 10))
    s.run(TTY)
    row = s.enter("off(3, termios.ICANON); print('go', flush=True);"
                  " os.read(0, 2); time.sleep(0.3)")
    s.expect_since(row, "^go")
    s.type("12\x04")
    s.wait_prompt()
    assert value(s, "6 * 7") == "42"
    assert "never downloaded" not in s.all_text()


@pytest.mark.parametrize("line", [
    "abc:quit\r", "abc%reset\r", "abcquit\x01:\r", "\x1b[A\x1b[A\r"])
def test_the_rest_of_a_line_that_a_cell_began_to_read_is_no_command(cb, line):
    s = start(cb, *patient("cell.timeout", 10))
    s.run(TTY)
    row = s.enter("import tty; tty.setraw(0); print('go', flush=True);"
                  " os.read(0, 3); time.sleep(0.3)")
    s.expect_since(row, "^go")
    s.type(line)
    s.expect_since(row, SAID + ": the cell read the beginning of its line")
    s.wait_prompt()
    s.type("\r")
    is_whole(s, row)
    # The control: the rest of another line comes back.
    row = s.enter("tty.setraw(0); print('go', flush=True);"
                  " os.read(0, 3); time.sleep(0.3)")
    s.expect_since(row, "^go")
    s.type("abc6 * 7")
    s.wait(lambda: s.screen.cursor_row() == ">>> 6 * 7", "what was left")
    s.type("\r")
    s.expect_since(row, "^42$")
    s.wait_prompt()


SPOILS = {
    "raw": "import tty; tty.setraw(0)",
    "size": "fcntl.ioctl(0, termios.TIOCSWINSZ,"
            " struct.pack('4H', 3, 7, 0, 0))",
    "blocking": "os.set_blocking(0, False)",
    "output_off": "termios.tcflow(0, termios.TCOOFF)",
    "no_echo": "off(3, termios.ECHO); key(termios.VEOF)",
    "hung_up": "change(lambda t: t.__setitem__(4, 0))",
    "group": "signal.signal(signal.SIGTTOU, signal.SIG_IGN);"
             " p = subprocess.Popen(['sleep', '99'], preexec_fn=os.setpgrp);"
             " os.tcsetpgrp(0, p.pid)",
}


@pytest.mark.limit(120)
def test_the_next_cell_finds_the_tty_as_every_cell_does(cb):
    s = start(cb, *patient("cell.timeout", 10))
    s.run(TTY)
    s.run("import signal, subprocess; before = termios.tcgetattr(0)")
    for spoil in SPOILS.values():
        s.run(spoil)
        assert value(s, "termios.tcgetattr(0) == before") == "True", spoil
        assert value(s, "tuple(os.get_terminal_size())") == "(80, 24)", spoil
        row = s.enter("x = input('? ')")
        s.expect_since(row, r"^\?")
        s.type("seen")
        s.expect_since(row, "seen")
        s.type("\r")
        s.wait_prompt()
        assert value(s, "x") == "'seen'", spoil
        row = s.enter("print('go', flush=True); time.sleep(9)")
        s.expect_since(row, "^go")
        s.type("\x03")
        s.expect_since(row, "^KeyboardInterrupt")
        s.wait_prompt()
