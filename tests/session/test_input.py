# SPDX-License-Identifier: MIT
"""Cells that read from the person and control the terminal."""
import random
import re
import termios
import time

import pytest

from world import PATIENCE, WHOLE

SEED = 20240229


def test_input_works(session):
    session.enter("name = input('who? ')")
    session.expect(r"^who\? ?$")
    session.type("Ada\r")
    session.wait_prompt()
    assert session.run("name") == "'Ada'"


def test_a_line_for_input_can_be_edited(session):
    row = session.enter("x = input('? ')")
    session.expect_since(row, r"^\?")
    session.type("abX")
    session.expect_since(row, "abX")
    session.type("\x7fc\r")
    session.wait_prompt()
    assert session.run("x") == "'abc'"


def test_keys_typed_right_after_a_cell_reach_its_input(session):
    session.type("x = input()")
    session.expect(r"input\(\)$")
    session.type("\r")
    session.type("early\r")
    session.wait_prompt()
    assert session.run("x") == "'early'"


def test_getpass_does_not_echo(session):
    row = session.enter("from getpass import getpass; p = getpass()")
    session.expect_since(row, "Password:")
    session.type("s3cret\r")
    session.wait_prompt()
    assert "s3cret" not in session.all_text()
    assert session.run("p == 's3' 'cret'") == "True"


def test_pdb_set_trace_works(session):
    session.run("def f(n):\n    m = n * 2\n    breakpoint()\n    return m")
    row = session.enter("f(21)")
    session.expect_since(row, r"\(Pdb\)")
    session.type("p m\r")
    session.expect_since(row, r"^42$")
    session.type("c\r")
    session.wait_prompt()
    assert session.run("_") == "42"


def test_pdb_shows_no_frame_of_the_driver(session):
    session.run("def f(n):\n    breakpoint()\n    return n")
    row = session.enter("f(21)")
    session.expect_since(row, r"\(Pdb\)")
    session.type("w\r")
    session.expect_since(row, r"\(Pdb\) w\n(.|\n)*\(Pdb\)$")
    shown = "\n".join(session.screen.rows(row))
    assert "<cell 2>(1)<module>()" in shown
    assert re.search(r"<cell 1>\([23]\)f\(\)", shown), shown
    assert "cellblock" not in shown and "<string>" not in shown, shown
    session.type("up\r")
    session.expect_since(row, r"\(Pdb\) up\n> <cell 2>\(1\)")
    session.type("up\r")
    session.expect_since(row, r"Oldest frame")
    session.type("down\rp n\r")
    session.expect_since(row, r"^21$")
    session.type("c\r")
    session.wait_prompt()
    assert session.run("_") == "21"


def step_out(session, step):
    """Step until the prompt: from 3.13 on pdb begins a line earlier."""
    def rests():
        return session.at_prompt() or session.screen.cursor_row() == "(Pdb)"
    session.wait(rests, "pdb")
    for _ in range(6):
        row = session.screen.here()
        session.type(step + "\r")
        session.wait(lambda: session.screen.here() > row and rests(), "a stop")
        if session.at_prompt():
            return
    session.wait_prompt()


def test_pdb_stops_in_no_frame_of_the_driver(session):
    """The last expression is shown by the driver, in the middle of the cell."""
    row = session.enter("import pdb; pdb.set_trace()")
    session.expect_since(row, r"<cell 1>\(1\)<module>\(\)(.|\n)*^\(Pdb\)$")
    assert "cellblock" not in "\n".join(session.screen.rows(row))
    step_out(session, "s")
    assert "cellblock" not in "\n".join(session.screen.rows(row))
    assert session.run("6 * 7") == "42"


def test_pdb_steps_out_of_the_cell_to_the_prompt(session):
    session.run("def f():\n    breakpoint()\n    return 1")
    row = session.enter("f()")
    step_out(session, "n")
    # By the end of f and that of the cell.
    session.expect_since(row, r"^> <cell 1>\(3\).*->1")
    session.expect_since(row, r"^> <cell 2>\(1\).*->None")
    assert "cellblock" not in "\n".join(session.screen.rows(row))
    assert session.run("6 * 7") == "42"


def test_help_pager_works(session):
    session.enter("help(str)")
    session.expect(r"Help on class str")
    session.type("q")
    session.wait_prompt()
    assert session.run("1 + 1") == "2"


def test_what_fits_on_the_screen_needs_no_key_of_a_pager(session):
    assert "Return the number of items" in session.run("help(len)")
    assert session.run("1 + 1") == "2"


def test_readline_draws_a_line_that_is_longer_than_the_terminal(session):
    session.run("import readline")
    row = session.enter("x = input('? ')")
    session.expect_since(row, r"^\?")
    session.type("a" * 200)
    session.wait(lambda: "".join(session.screen.rows(row)).count("a") == 200,
                 "the echo")
    session.type("\x01" "b" * 3 + "\x05" + "\x7f" * 150)
    session.wait(lambda: "".join(session.screen.rows(row)).count("a") == 50,
                 "a shorter line")
    assert session.screen.rows(row)[0] == "? bbb" + "a" * 50
    session.type("\r")
    session.wait_prompt()
    assert session.run("len(x)") == "53"


def test_end_of_file_at_input_is_an_eoferror(session):
    row = session.enter("input('? ')")
    session.expect_since(row, r"^\?")
    session.type("\x04")
    session.expect_since(row, "EOFError")
    session.wait_prompt()
    assert session.run("input") .startswith("<")


def test_curses_program_works_and_the_screen_is_restored(session):
    session.run("print('BEFORE')")
    session.run("import curses\n"
                "def main(w):\n"
                "    curses.curs_set(0)\n"
                "    w.addstr(3, 5, 'FULL SCREEN'); w.refresh()\n"
                "    return w.getkey()")
    session.enter("curses.wrapper(main)")
    session.expect("^     FULL SCREEN")
    assert session.screen.alternate
    session.type("k")
    session.wait_prompt()
    assert not session.screen.alternate
    assert not session.screen.cursor.hidden
    assert "BEFORE" in session.screen_text()
    assert "     FULL SCREEN" not in session.screen.rows()
    assert session.run("_") == "'k'"


def test_the_screen_is_restored_after_a_cell_that_changed_it(session):
    session.run("print('BEFORE')")
    out = session.enter(r"print('\x1b[?1049h\x1b[?25l\x1b[31mMESS', end='')")
    assert out
    session.wait_prompt()
    assert not session.screen.cursor.hidden
    assert "BEFORE" in session.screen_text()
    session.run("print('plain')")
    row = next(y for y in range(24)
               if session.screen._row(y) == "plain")
    assert session.screen.buffer[row][0].fg == "default"


def test_a_resize_at_the_prompt_reaches_python(session):
    assert session.run("import os; os.get_terminal_size().columns") == "80"
    session.resize(30, 100)
    session.wait_prompt()
    assert session.run("tuple(os.get_terminal_size())") == "(100, 30)"


def test_a_fresh_jail_has_the_size_of_the_window(cb):
    s = cb.session("--set", "cell.checkpoint=never")
    s.run("import os")
    s.resize(30, 100)
    assert "Python restarted" in s.run("os.kill(os.getpid(), 9)")
    assert "columns=100, lines=30" in s.run(
        "import os; os.get_terminal_size()")


def test_a_resize_during_a_cell_reaches_python(session):
    session.run("import os, signal, time; seen = []")
    session.run("def told(*_):\n"
                "    os.write(1, b'WINCH %d %d\\n' % os.get_terminal_size())\n"
                "    seen.append(1)")
    session.run("old = signal.signal(signal.SIGWINCH, told)")
    # A loop and not input(): a signal just before read() is handled only after
    # it.
    row = session.enter("print('ready')\nwhile not seen: time.sleep(0.01)")
    session.expect_since(row, "^ready")
    session.resize(20, 90)
    session.expect_since(row, "WINCH 90 20")
    session.wait_prompt()


KINDS = pytest.mark.parametrize("kind", ["xterm-256color", "dumb"])


# Seconds in which a test types ahead, of the ten that a cell has.
BUSY = min(2 * PATIENCE, 5)


def busy(session):
    """Enter a cell that takes a while, and reads nothing."""
    session.run("import time")
    row = session.enter(f"print('go'); time.sleep({BUSY}); print('went')")
    session.expect_since(row, "^go")
    return row


def below(session, row):
    """The rows below the cell's last line."""
    rows = session.screen.rows(row, session.screen.here())
    text = "\n".join(r.rstrip() for r in rows)
    return text[text.rindex("went\n>>> "):]


@KINDS
def test_lines_typed_ahead_run_one_after_the_other(cb, kind):
    s = cb.session(env={"TERM": kind})
    row = busy(s)
    s.type("a = 6\rb = a *\x7f* 7\r\rprint(a)\r:time b\rb +")
    s.wait(lambda: s.screen.cursor_row().rstrip() == ">>> b +", "the last")
    text = below(s, row)
    assert re.fullmatch(r"went\n>>> a = 6\n>>> b = a \* 7\n(>>>\n)?"
                        r">>> print\(a\)\n6\n>>> :time b\n42\n¦ \[.*\]",
                        text), text
    s.type(" 1\r")
    s.expect_since(row, "^43$")


@KINDS
@pytest.mark.parametrize("indents", [True, False])
def test_a_block_typed_ahead_runs_as_one_cell(cb, kind, indents):
    """With the blanks that a person types who does not see the editor's, or
    without them."""
    if kind == "dumb" and not indents:
        pytest.skip("nothing indents lines there")
    s = cb.session(env={"TERM": kind})
    row = busy(s)
    i = "    " if indents else ""
    s.type(f"for i in range(3):\r{i}if i:\r{i * 2}print(i)\r{i * 2}print(-i)"
           "\r\r:who\r")
    s.expect_since(row, "^i .*int")
    text = below(s, row)
    assert ("went\n>>> for i in range(3):\n...     if i:\n"
            "...         print(i)\n...         print(-i)\n...\n"
            "1\n-1\n2\n-2\n>>> :who\n") in text, text


@KINDS
def test_cells_read_the_lines_typed_ahead_that_they_ask_for(cb, kind):
    """One line at a time, echoed behind the question; the next is a cell."""
    s = cb.session(env={"TERM": kind})
    row = busy(s)
    s.type("x = input('? ')\rone\rprint(x)\r"
           "y = [input('a '), input('b ')]\rtwo\r:quit\rprint(y)\rx + '!'\r")
    s.expect_since(row, "^'one!'$")
    text = below(s, row)
    assert ("went\n>>> x = input('? ')\n? one\n>>> print(x)\none\n"
            ">>> y = [input('a '), input('b ')]\na two\nb :quit\n"
            ">>> print(y)\n['two', ':quit']\n>>> x + '!'\n'one!'") in text


@KINDS
def test_ctrl_c_drops_the_lines_that_wait(cb, kind):
    s = cb.session(env={"TERM": kind})
    row = busy(s)
    s.type("print('fir' + 'st'); [time.sleep(.1) for _ in range(600)]\r"
           "print('nev' + 'er')\r:quit\r")
    s.expect_since(row, "^first")
    s.type("\x03")
    s.expect_since(row, "^KeyboardInterrupt")
    s.wait_prompt()
    assert s.run("6 * 7") == "42"
    assert "never" not in s.all_text()


def test_ctrl_c_drops_the_commands_that_wait(cb):
    """Nothing but commands: no cell runs that could be interrupted."""
    s = cb.session()
    row = busy(s)
    # More than a terminal takes while nobody reads it: the lines wait.
    s.type(":limits\r" * 400 + "'e' 'nd'\r")
    s.expect_since(row, "^went\n>>> :limits")
    s.type("\x03")
    s.type("6 * 7\r")
    s.expect("^42$")
    assert "'end'" not in s.all_text()


def test_lines_typed_ahead_survive_a_cell_that_dies(session):
    session.run("import os")
    row = busy(session)
    session.type("os.abort()\rprint('af' + 'ter')\r")
    session.expect_since(row, "crashed")
    session.expect_since(row, "^after$")
    session.wait_prompt()


def test_a_key_typed_later_sends_the_lines_that_wait_before_it(session):
    """The cell reads only at the end, and is never seen to wait."""
    session.run("import select, sys, threading")
    row = busy(session)
    session.type("while not (b := select.select([0], [], [], 0)[0]): pass\r"
                 "x\ry\r")
    session.expect_since(row, "^>>> while")
    session.type("z")
    session.wait(lambda: session.screen.cursor_row() == ">>> z", "what is left")
    text = below(session, row)
    assert text.index("name 'x' is") < text.index("name 'y' is")
    session.type("\x03")
    session.wait_prompt()


def test_bytes_that_come_at_once_are_no_paste(session):
    """Only brackets make a paste: each line runs, and Enter inside is Enter."""
    row = session.screen.here()
    session.type("first = 'a line of many keys'\rprint(first[2:6])\r")
    session.expect_since(row, "^line$")
    session.wait_prompt()
    row = session.screen.here()
    session.type("\x1b[200~first = 1\rprint(first)\r\x1b[201~")
    session.expect_since(row, r"^\.\.\. print\(first\)$")
    assert session.screen.cursor_row().rstrip() == "..."
    session.type("\r")
    session.expect_since(row, "^1$")
    session.wait_prompt()


def typed_while_running(session, keys):
    row = session.enter("import time; print('go'); time.sleep(0.5)")
    session.expect_since(row, "^go")
    session.type(keys)


def test_ctrl_c_drops_the_keys_typed_before_it(session):
    row = session.enter("input('? ')")
    session.expect_since(row, r"^\?")
    session.type("never")
    session.expect_since(row, "never")
    session.interrupt_input(row)
    session.wait_prompt()
    assert session.run("6 * 7") == "42"


def test_keys_typed_after_ctrl_c_go_to_the_prompt(session):
    row = session.enter("import time\n"
                        "try: print('go'); [time.sleep(.1) for _ in range(90)]\n"
                        "except KeyboardInterrupt: print('caught');"
                        " time.sleep(0.5)")
    session.expect_since(row, "^go")
    session.type("never\x03")
    session.expect_since(row, r"\^C\n?caught$")
    session.type("xx\x7fy")
    session.expect_since(row, "^>>> xy$")
    session.type("\x03")
    session.wait_prompt()


@pytest.mark.sampled
@KINDS
def test_every_key_typed_around_the_end_of_a_cell_arrives_once(cb, kind):
    """A short cell, and then the digits of a number. The digits come before
    the cell runs, while it runs, and at every step of its end. No echo of them
    is taken for output."""
    s = cb.session(env={"TERM": kind})
    dice = random.Random(SEED)
    for _ in range(40 if WHOLE else 15):
        digits = str(dice.randrange(10**8, 10**9))
        row = s.screen.here()
        s.type("1\r")
        for digit in digits:
            time.sleep(dice.choice((0, dice.random() / 200)))
            s.type(digit)
        # The echo of a dumb terminal may stand before its prompt.
        s.wait(lambda: s.screen.here() > row
               and ">>> " in s.screen.cursor_row()
               and (kind == "dumb" or digits in s.screen.cursor_row())
               and digits[-1] in s.screen.cursor_row(), "prompt and text")
        s.type("\r")
        s.expect_since(row, f"{digits}$" if kind == "dumb" else f"^{digits}$")
        s.wait_prompt()
        assert s.run("_") == digits
    assert "background output" not in s.all_text()


def test_output_that_equals_the_keys_typed_ahead_is_no_echo(cb):
    """The control: a thread writes behind the end of its cell what the person
    types meanwhile."""
    s = cb.session("--set", "cell.background=run")
    s.run("import os, threading, time")
    s.run("def behind(): end.wait(); os.write(1, b'77\\n' * 9)\n")
    s.run("end = threading.Event(); threading.Thread(target=behind).start()")
    # The cell runs while the keys come, and has ended before the output.
    row = s.enter(f"threading.Timer({.5 + PATIENCE}, end.set).start(); "
                  "time.sleep(.5)")
    s.type("77")
    s.wait(lambda: s.screen.cursor_row() == ">>> 77", "the keys")
    s.expect_since(row, r"^¦ \[background output follows\](\n77){9}\n>>> 77$")
    s.type("\r")
    s.wait_prompt()
    assert s.run("_") == "77"


@pytest.mark.parametrize("n", [4095, 4096])
def test_a_line_typed_ahead_that_no_tty_keeps_was_too_much(cb, n):
    """The tty drops the end of it. The cell has changed nothing."""
    s = cb.session(size=(70, 80))
    busy(s)
    s.type(("0123456789" * n)[:n])
    said = "what was typed ahead is dropped: it was too much"
    s.wait(lambda: said in s.all_text() if n > 4095
           else ">>> 0123" in s.all_text(), "what becomes of it")
    s.type("\x03")
    s.wait_prompt()
    assert (said in s.all_text()) == (n > 4095)


def test_ctrl_d_typed_ahead_ends_the_session_at_the_next_prompt(session):
    typed_while_running(session, "\x04")
    assert session.wait_exit() == 0


@pytest.mark.parametrize("gap", [0, 0.0003, 0.0006, 0.001, 0.0015, 0.003])
def test_ctrl_d_twice_leaves_however_quickly(session, gap):
    """The second may come while the question is written."""
    session.run("x = 1")
    session.type("\x04")
    time.sleep(gap)
    session.type("\x04")
    assert session.wait_exit() == 0
    assert session.terminal_modes() == session.before


def test_ctrl_d_typed_with_a_cell_ends_the_session_after_it(session):
    session.type("6 * 7\r\x04")
    assert session.wait_exit() == 0
    assert "42" in session.all_text().splitlines()


def test_ctrl_d_typed_ahead_warns_of_files_as_at_the_prompt(session):
    session.run("open('notes.txt', 'w').close()")
    typed_while_running(session, "\x04")
    session.expect("never downloaded: notes.txt")
    session.wait_prompt()
    assert session.leave() == 0


def test_enter_typed_ahead_leaves_the_prompt_empty(session):
    typed_while_running(session, "\r\r")
    session.wait_prompt()
    session.type("42")
    session.expect(r"^>>> 42$")
    session.type("\x03")
    session.wait_prompt()
    typed_while_running(session, "\r\x04")
    assert session.wait_exit() == 0


def test_ctrl_d_typed_ahead_after_text_does_not_end_the_session(session):
    typed_while_running(session, "12\x04")
    session.expect(r"^>>> 12$")
    session.type("3")
    session.expect(r"^>>> 123$")
    session.type("\x03")
    session.wait_prompt()


def test_ctrl_space_typed_ahead_is_not_taken_for_ctrl_d(session):
    typed_while_running(session, "\x00")
    session.wait_prompt()
    assert session.run("6 * 7") == "42"


def test_ctrl_d_that_a_cell_has_read_does_not_end_the_session(session):
    row = session.enter("import sys; print('go'); s = sys.stdin.read()")
    session.expect_since(row, "^go")
    session.type("one\r\x04")
    session.wait_prompt()
    assert session.run("s") == "'one\\n'"


def test_a_program_in_raw_mode_gets_single_keys(session):
    session.run("import tty, termios, sys, os")
    row = session.enter(
        "old = termios.tcgetattr(0); tty.setraw(0); print('raw', end='\\r\\n');"
        " k = os.read(0, 1); termios.tcsetattr(0, termios.TCSANOW, old); k")
    session.expect_since(row, "^raw")
    session.type("\x03")
    session.expect_since(row, r"^b'\\x03'")
    session.wait_prompt()


def assert_same_modes(session, cell, deadline=None):
    before = session.terminal_modes()
    session.run(cell, deadline)
    assert session.terminal_modes() == before


def test_terminal_modes_are_the_same_at_every_prompt(session):
    for cell in ("1", "1/0", "print('\\x1b[?1h\\x1b=')",
                 "import tty; tty.setraw(0)",
                 "import os; os.system('stty raw -echo')"):
        assert_same_modes(session, cell)


def test_terminal_modes_are_restored_after_a_cell_dies_in_raw_mode(session):
    assert_same_modes(session, "import tty, os; tty.setraw(0); os.abort()", 30)
    assert_same_modes(
        session, "import tty, os; tty.setraw(0); os.kill(os.getpid(), 9)", 30)
    assert session.run("1 + 1") == "2"


def test_echo_is_on_after_a_cell_that_died_in_raw_mode(session):
    session.run("import tty, os; tty.setraw(0); os.abort()", 30)
    row = session.enter("x = input('? ')")
    session.expect_since(row, r"^\?")
    session.type("seen")
    session.expect_since(row, "seen")
    session.type("\r")
    session.wait_prompt()


def test_the_outer_terminal_modes_are_unchanged_after_the_session(cb):
    for cell in ("1", "import tty, os; tty.setraw(0); os.abort()"):
        s = cb.session()
        before = list(s.before)
        s.run(cell, 30)
        assert s.leave() == 0
        assert s.terminal_modes() == before


def test_the_outer_terminal_modes_are_unchanged_after_a_signal(cb):
    import signal
    for sig in (signal.SIGTERM, signal.SIGHUP):
        s = cb.session()
        row = s.enter("import tty, time; tty.setraw(0); print('on');"
                      " time.sleep(9)")
        s.expect_since(row, "on")
        s.process.send_signal(sig)
        s.wait_exit()
        assert s.terminal_modes() == s.before
        assert s.before[3] & termios.ECHO


# ---- the number in the prompt ----

def numbered(cb, text="In [{n}]: ", **more):
    return cb.session("-s", f'terminal.prompt="{text}"', start=False, **more)


def stands(s, prompt, typed=""):
    """Wait for the prompt, with the cursor behind what was typed at it."""
    s.wait(lambda: s.screen.cursor_row().rstrip() == (prompt + typed).rstrip()
           and s.screen.cursor.x == len(prompt + typed), f"{prompt}{typed}")


@pytest.mark.parametrize("term", ["xterm-256color", "dumb"])
def test_the_prompt_has_the_number_of_the_cell(cb, term):
    s = numbered(cb, env={"TERM": term})
    stands(s, "In [1]: ")
    s.type("x = 1\r")
    stands(s, "In [2]: ")
    s.type("if x:\r")
    s.expect(r"^\.\.\.")
    s.type("\x03")
    stands(s, "In [2]: ")    # no cell was run
    s.type("1/0\r")
    s.expect("File \"<cell 2>\"")
    stands(s, "In [3]: ")
    s.type(":limits\r")
    s.expect("^network ")
    stands(s, "In [3]: ")
    s.type(":undo\r")
    s.expect("back to the state|nothing is kept")
    stands(s, "In [3]: ")
    s.type(":reset\r")
    s.expect("fresh Python")
    stands(s, "In [3]: ")
    # Lines typed ahead have their own.
    s.type("import time; time.sleep(1)\r'a' * 3\r")
    s.expect(r"^In \[4\]: 'a' \* 3")
    s.expect("^'aaa'")
    stands(s, "In [5]: ")
    for n in range(5, 10):
        s.type("1\r")
        stands(s, f"In [{n + 1}]: ")
    s.type("import os; os._exit(3)\r")
    stands(s, "In [11]: ")
    s.type("Out[9]\r")
    stands(s, "In [12]: ")


def test_a_wider_number_moves_what_is_typed(cb):
    s = numbered(cb, size=(10, 20))
    stands(s, "In [1]: ")
    for n in range(1, 10):
        s.type("1\r")
        stands(s, f"In [{n + 1}]: ")
    s.type("'" + "x" * 15 + "'")     # 9 columns and 17
    s.expect("^In .10.: 'xxxxxxxxxx$")
    s.expect("^xxxxx'$")
    s.type("\x01")
    s.wait(lambda: s.screen.cursor.x == 9, "the first column of the cell")
    s.type("\x03")


def test_a_brace_in_the_prompt_is_written_twice(cb):
    s = numbered(cb, "{{{n}}} ")
    stands(s, "{1} ")
    s.type("1\r")
    stands(s, "{2} ")


@pytest.mark.parametrize("text", ["{x}> ", "{> ", "{n> ", "{}"])
def test_an_unknown_field_of_the_prompt_is_refused(cb, text):
    (cb.work / "c").write_text(f'[terminal]\n\nprompt = "{text}"\n')
    r = cb.run("--check-config", "c")
    assert r.code == 78, r
    assert f'c:3: terminal.prompt: expected {{n}}, the number of the cell, ' \
        f'{{left}}, the time left of an exam, or {{{{ for a brace, ' \
        f'not ""{text}""' in r.said, r
    (cb.work / "c").write_text('[terminal]\nprompt = "{n}> "\n')
    assert cb.run("--check-config", "c").code == 0
