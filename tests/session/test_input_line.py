# SPDX-License-Identifier: MIT
"""The editor of a line that a cell reads with input()."""
import contextlib
import time

import pytest

from term import NotSeen
from world import PATIENCE

# Seconds after which something happens to a line that has been asked for, was
# seen to be edited, and was typed into by then. Meanwhile no limit strikes.
SOON = int(4 * PATIENCE)
LEFT, UP, DOWN = "\x1b[D", "\x1b[A", "\x1b[B"


def shows(session, text, cursor=None):
    """Wait until the cursor's row shows this, with the cursor there."""
    at = len(text) if cursor is None else cursor
    session.wait(lambda: session.screen.cursor_row() == text.rstrip()
                 and session.screen.cursor.x == at,
                 f"{text!r}, and the cursor in column {at}")


def is_edited(session, question):
    """Wait until the line is edited: a tty echoes the arrow key. Leaves an
    empty line."""
    at = len(question)
    for _ in range(9):
        shows(session, question)
        session.type("ww" + LEFT)
        with contextlib.suppress(NotSeen):
            session.wait(
                lambda: session.screen.cursor_row() == question + "ww"
                and session.screen.cursor.x == at + 1, "Left", 3)
            session.type("\x05\x15")
            return shows(session, question)
        session.type("\x05\x15")
    raise NotSeen("the line is not edited\n" + session.picture())


def rows_of(session, row):
    """The text of the cell and of the person, without lines of ours."""
    return [r for r in session.screen.rows(row, session.screen.here())
            if not r.startswith("¦")]


def ask(session, cell="x = input('? ')", question="? "):
    """Enter a cell, and wait until the line that it reads is edited. Returns
    the row of the question. (With its first cell a session may say something,
    above what is typed.)"""
    session.run("None")
    row = session.enter(cell)
    session.wait(lambda: session.screen.here() >= row, "the cell to begin")
    is_edited(session, question)
    return row


@pytest.mark.parametrize("keys, line", [
    ("abd" + LEFT + "c", "abcd"),
    ("bc\x01a\x05d", "abcd"),
    ("bc\x1b[Ha\x1b[Fd", "abcd"),
    ("one two\x17three", "one three"),
    ("one two" + LEFT * 3 + "\x0b\x01\x19", "twoone "),
    ("one two\x15\x19\x19", "one twoone two"),
    ("one two\x1bb\x1bbX", "Xone two"),
    ("one two\x1b[1;5D\x1b[3~", "one wo"),
    ("axb" + LEFT + "\x7f", "ab"),
    ("abc\x01\x04", "bc"),
    ("été" + LEFT * 2 + "\x7fT", "Tté"),
    ("    if x:\x01else:\x05)", "else:    if x:)"),
    ("    \x7f.", "   ."),
    ("ab\x1bOP\x1bOQ\x1bOR\x18\x05c", "abc"),
    ("a\tb", "a\tb"),
    (":quit", ":quit"), ("!ls", "!ls"), ("name?", "name?"), ("   ", "   "),
    ("(((", "((("), ("if x:", "if x:"), ("'''", "'''"),
])
def test_the_keys_of_the_prompt_edit_a_line_for_input(session, keys, line):
    ask(session)
    session.type(keys + "\r")
    session.wait_prompt()
    assert session.run("x") == repr(line)


def test_a_line_for_input_is_shown_once_behind_its_question(session):
    row = ask(session, r"x = input('\x1b[32mwho\x1b[0m? ')", "who? ")
    colour = lambda: session.screen.buffer[session.screen.cursor.y][0].fg
    session.type("bd" + LEFT + "c" + LEFT * 2 + "a")
    shows(session, "who? abcd", 6)
    assert colour() == "green"
    session.type("\r")
    session.wait_prompt()
    assert rows_of(session, row) == ["who? abcd"]


def test_lines_typed_ahead_arrive_also_after_a_line_for_input(session):
    ask(session, "got = [input('? ')]")
    session.type("0\r")
    session.wait_prompt()
    for line in [f"got.append({n})\r" for n in range(1, 20)] + ["len(got)\r"]:
        for key in line:
            session.type(key)
            time.sleep(0.001)
    session.expect("^20$")


def test_up_and_down_bring_lines_for_input_back(session):
    session.run("secret = 'a cell'")
    row = ask(session, "[input('? ') for _ in range(4)]")
    session.type("first\r")
    session.expect_since(row, r"^\? first\n\?$")
    is_edited(session, "? ")
    session.type("second\r")
    session.expect_since(row, r"^\? second\n\?$")
    is_edited(session, "? ")
    session.type("mine" + UP)
    shows(session, "? mine")            # no line begins so
    session.type("\x15" + UP)
    shows(session, "? second")
    session.type(UP)
    shows(session, "? first")
    session.type(UP)
    shows(session, "? first")           # no cell
    session.type(DOWN + "!\r")
    session.expect_since(row, r"^\? second!\n\?$")
    is_edited(session, "? ")
    session.type("\x12fir\r")
    session.wait_prompt()
    assert session.run("_") == "['first', 'second', 'second!', 'first']"
    session.type(UP * 2)                # no line is a cell
    shows(session, ">>> [input('? ') for _ in range(4)]")
    session.type("\x03")


def test_ctrl_l_keeps_question_and_line(session):
    session.run("print('BEFORE')")
    ask(session, "x = input('who? ')", "who? ")
    session.type("abc" + LEFT + "\x0c")
    session.wait(lambda: session.screen.cursor.y == 0, "an empty screen")
    shows(session, "who? abc", 7)
    session.type("X\r")
    session.wait_prompt()
    assert session.run("x") == "'abXc'"


def test_ctrl_c_at_a_line_for_input_is_a_keyboardinterrupt(session):
    row = ask(session)
    session.type("never" + LEFT)
    shows(session, "? never", 6)
    session.interrupt_input(row)
    session.wait_prompt()
    assert session.run("6 * 7") == "42"


def test_ctrl_d_on_an_empty_line_for_input_is_an_eoferror(session):
    row = ask(session)
    session.type("a\x04" + LEFT + "\x04\x04")
    session.expect_since(row, "^EOFError")
    session.wait_prompt()


@pytest.mark.parametrize("n", [3999, 4000, 4001, 4095, 8168, 30000])
def test_a_line_for_input_may_be_longer_than_a_tty_takes(session, n):
    ask(session)
    session.type("0123456789" * (n // 10) + "x" * (n % 10) + "\x01<\r")
    session.wait_prompt()
    # The last of the long line may be drawn still.
    assert session.run(f"x == '<' + '0123456789' * {n // 10}"
                       f" + 'x' * {n % 10}").split("\n")[-1] == "True"


def test_output_of_threads_appears_above_a_line_for_input(session):
    session.run("import threading, time; x = ''")
    session.run(f"def tick():\n    time.sleep({SOON})\n    while not x:\n"
                "        print('tick', flush=True); time.sleep(.4)")
    row = ask(session, "threading.Thread(target=tick).start(); x = input()", "")
    session.type("ad" + LEFT)
    shows(session, "ad", 1)
    at = session.screen.here()
    session.wait(lambda: session.screen.here() > at + 2, "output above")
    shows(session, "ad", 1)
    session.type("bc\r")
    session.wait_prompt()
    shown = rows_of(session, row)
    assert shown.count("abcd") == 1 and set(shown) == {"abcd", "tick"}, shown
    assert session.run("x") == "'abcd'"


def test_keys_typed_as_the_question_appears_are_edited(session):
    """The tty gets them first: nobody knows yet that the cell waits."""
    session.run("None")     # as in ask()
    row = session.enter("x = input('? ')")
    session.wait(lambda: session.screen.here() >= row
                 and session.screen.cursor_row() == "?", "the question")
    session.type("abé" + UP + LEFT)
    shows(session, "? abé", 4)
    session.type("c\r")
    session.wait_prompt()
    assert session.run("x") == "'abcé'"
    assert rows_of(session, row)[0] == "? abcé"


def test_keys_typed_before_the_question_stay_with_the_tty(session):
    """It has echoed them elsewhere. The control: the next line is edited."""
    session.run("import time")
    wait = min(2 * PATIENCE, 5)     # the cell has ten seconds
    row = session.enter(f"time.sleep({wait}); x = input('? '), input('! ')")
    session.wait(lambda: session.screen.here() >= row, "the cell to begin")
    session.type("early")
    session.expect_since(row, r"early\? $|early\?$")
    session.type("X\x7f!\r")
    session.expect_since(row, r"^!$")
    is_edited(session, "! ")
    session.type("late\r")
    session.wait_prompt()
    assert session.run("x") == "('early!', 'late')"


def test_the_keys_of_several_lines_arrive_once_and_in_order(session):
    row = session.enter("[input(f'{i}? ') for i in range(9)]")
    session.expect_since(row, r"^0\?$")
    is_edited(session, "0? ")
    keys = ["on" + LEFT + "_", "\x15b\x01a", "", "x\x7f" * 3, "é" * 9, "\t."]
    session.type("\r".join(keys) + "\rsev" + LEFT)
    session.expect_since(row, r"^6\? sev$")
    session.type("_\r" + "8\r9\r")
    session.wait_prompt()
    assert session.run("_") == repr(
        ["o_n", "ab", "", "", "é" * 9, "\t.", "se_v", "8", "9"])


@pytest.mark.parametrize("size", [(24, 30), (10, 120), (24, 16), (5, 80)])
def test_a_line_for_input_survives_a_new_size(session, size):
    ask(session, "x = input('who are you? ')", "who are you? ")
    session.type("0123456789" + LEFT * 3)
    shows(session, "who are you? 0123456789", 20)
    session.resize(*size)
    session.type("abc")
    session.wait(lambda: "0123456abc789" in "".join(
        session.screen.shown()).replace(" ", ""), "the line")
    session.resize(24, 80)
    session.type("X\r")
    session.wait_prompt()
    assert session.run("x") == "'0123456abcX789'"


def test_a_tty_goes_on_with_a_line_where_its_question_does_not_fit(session):
    ask(session, "x = input('who are you? ')", "who are you? ")
    session.type("0123456789" + LEFT * 3)
    shows(session, "who are you? 0123456789", 20)
    session.resize(24, 12)
    session.type("\x7fX")
    session.wait(lambda: "012345678X" in "".join(
        session.screen.shown()).replace(" ", ""), "the line")
    session.type("\r")
    session.wait_prompt()
    assert session.run("x") == "'012345678X'"


def test_a_line_for_input_goes_to_the_prompt_when_its_cell_dies(session):
    session.run("import threading, os; e = threading.Event()")
    row = ask(session, f"threading.Timer({SOON}, os.abort).start(); "
              "input('? ')")
    session.type("6 * 7" + LEFT)
    shows(session, "? 6 * 7", 6)
    session.expect_since(row, "crashed")
    shows(session, ">>> 6 * 7")
    session.type("\r")
    session.expect_since(row, "^42$")


def test_a_time_limit_ends_a_line_for_input(cb):
    limit = int(2 * PATIENCE)
    s = cb.session("-s", f"cell.timeout={limit}s", "-s", "cell.grace=20s")
    s.run("import threading")
    row = ask(s, f"t = threading.Timer({SOON}, exec, ['while True: pass']);"
              " t.daemon = True; t.start(); input('? ')")
    s.type("'kept'")
    shows(s, "? 'kept'")
    s.expect_since(row, f"time limit: {limit} s", 30)
    s.wait(lambda: s.screen.cursor_row() == ">>> 'kept'", "the line")
    s.type("\r")
    s.expect_since(row, "^'kept'$")


def test_a_program_that_wants_keys_in_the_middle_of_a_line_gets_them(session):
    session.run("import os, signal, tty, termios, time")
    session.run("def stop(*_): raise TimeoutError")
    session.run("old = signal.signal(signal.SIGALRM, stop)")
    row = ask(session, f"signal.alarm({SOON})\ntry: input('? ')\n"
              "except TimeoutError:\n    tty.setraw(0, termios.TCSANOW)\n"
              "    print('raw', end='\\r\\n'); time.sleep(.3)\n"
              "    k = os.read(0, 9)\n")
    session.type("abc")
    shows(session, "? abc")
    session.expect_since(row, "raw$")
    session.wait_prompt()
    assert session.run("k") == "b'abc'"


def test_a_password_after_a_line_for_input_is_not_shown(session):
    row = session.enter("from getpass import getpass; "
                        "x = input('user: '), getpass(), input('host: ')")
    session.expect_since(row, "^user:$")
    is_edited(session, "user: ")
    session.type("ada\r")
    session.expect_since(row, "^Password:$")
    session.type("s3cret" + "\x7f" * 2 + "\r")
    session.expect_since(row, "^host:$")
    is_edited(session, "host: ")
    session.type(UP)
    shows(session, "host: ada")
    session.type("\r")
    session.wait_prompt()
    assert "s3c" not in session.all_text()
    assert session.run("x == ('ada', 's3' 'cr', 'ada')") == "True"


@pytest.mark.parametrize("question", [
    r"\x1b[2Ka", r"\x1b[31m", r"\x1b[?25l? ", r"\x1b[?1049h? ", r"\x1b(0? ",
    r"\r? ", r"x\x1b[1D", r"\x1b[5;5H? ", r"\x0e", "a" * 2000])
def test_a_question_that_cannot_be_drawn_again_is_still_asked(
        session, question):
    """The tty edits the line."""
    row = session.enter(f"x = input('{question}')\nprint('th' + 'en')\n")
    session.wait(lambda: session.screen.here() >= row
                 or session.screen.alternate, "the cell to begin")
    session.type("abX\x7fc\r")
    session.wait(lambda: session.at_prompt(), "the prompt")
    assert session.run("x") == "'abc'"


WIDE = ["\u200d", "e\u0301", "\U0001f469", "한", "\u1160", "\U0001f1e9", "\ufe0f",
        "\t", "\u202e", "\x85", "\ua9f2"]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("text", WIDE)
@pytest.mark.parametrize("n", [5, 9, 10, 13, 19, 20, 21, 39, 41])
def test_no_question_makes_the_editor_touch_the_rows_above(cb, text, n):
    """Terminals disagree about the width of such characters. The person's typed
    text stands right above the question."""
    s = cb.session("-q", size=(24, 40))
    s.run(f"t = {text!a} * {n}")
    row = s.enter("x = input(t)")
    top = s.screen.rows(0, row)
    s.wait(lambda: s.screen.here() >= row, "the cell to begin")
    s.type("y" * 70 + "\x01" + "z" * 50 + "\x05" + "\x7f" * 60)
    s.type(UP + DOWN + "\x15" + "w" * 35 + "\x7f" * 9 + "\r")
    s.wait_prompt()
    assert s.screen.rows(0, row) == top
    assert s.run("x[-26:]") == repr("w" * 26)
