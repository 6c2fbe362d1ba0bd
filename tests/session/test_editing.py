# SPDX-License-Identifier: MIT
"""The editor as a person sees it on the screen. Its parts have unit tests."""
import re

import pytest

from world import PATIENCE


def test_bracketed_paste_runs_nothing_until_enter(session):
    session.paste("print('one')\nprint('two')\n")
    session.expect(r"print\('two'\)")
    text = session.all_text().splitlines()
    assert "one" not in text and "two" not in text
    session.type("\r")
    session.expect("^two$")
    session.wait_prompt()
    assert "one" in session.all_text().splitlines()


def test_an_unfinished_paste_runs_nothing(session):
    session.type("\x1b[200~print('one')\r")
    session.expect("more of the paste is awaited")
    session.type("print('two')\r")
    session.expect(r"print\('two'\)")
    session.type("\x03")
    session.wait(lambda: "is awaited" not in session.screen_text(),
                 "the end of the paste")
    assert "one" not in session.all_text().splitlines()
    session.type("\r")
    session.expect("^two$")
    session.wait_prompt()
    assert "one" in session.all_text().splitlines()


def test_an_unfinished_paste_ends_while_the_background_writes(cb):
    s = cb.session("--set", "cell.background=run", "--set", "cell.output=100")
    s.run("def behind():\n    while True: os.write(1, b'x'); time.sleep(0.3)\n"
          "import os, threading, time")
    s.run("threading.Thread(target=behind, daemon=True).start()")
    s.type("\x1b[200~print('one')")
    s.expect("more of the paste is awaited")
    s.type("\x03")
    s.expect(r">>> print\('one'\)")
    row = s.screen.here()
    s.type("\r")
    # The thread writes into the same row, and later output may move it away.
    s.expect_since(row, "^x*one")


def test_a_pasted_function_is_not_indented_again(session):
    session.run("def f(x):\n    if x:\n        return 1\n    return 2")
    assert session.run("f(1), f(0)") == "(1, 2)"


DOCTEST = """\
    >>> def area(r):
    ...     return 3 * r
    ...
    >>> area(2)
    6
    >>> print(area(3))
    9
"""
IPYTHON = """\
In [1]: def area(r):
   ...:     return 3 * r
   ...:

In [2]: area(2)
Out[2]: 6

In [3]: print(area(3))
9
"""
INDENTED = """\
    def area(r):
        return 3 * r

    print(area(3))
"""


@pytest.mark.parametrize("text", [DOCTEST, IPYTHON, INDENTED])
def test_a_paste_runs_as_what_it_means(session, text):
    session.paste(text)
    session.expect(r"^\[.* left out: Ctrl-_ brings (it|them) back\]$")
    assert ">>> def area(r):\n...     return 3 * r" in session.screen_text()
    session.type("\r")
    session.expect("^9$")
    session.wait_prompt()
    assert session.run("area(5)") == "15"
    assert "left out" not in session.screen_text()
    # the control: the paste itself comes back
    session.paste(text)
    session.expect("left out")
    session.type("\x1f")
    session.wait(lambda: ">>> " + text.splitlines()[0] in session.screen_text()
                 and "left out" not in session.screen_text(), "the paste")
    session.type("\x03")
    session.wait_prompt()


def test_a_prompt_within_a_string_is_text(session):
    session.type("s = '''\r")
    session.expect(r"^\.\.\. *$")
    session.paste(">>> 1\n1\n'''")
    session.expect(r"'''$")
    session.type("\r")
    session.wait_prompt()
    assert session.run("s") == r"'\n>>> 1\n1\n'"
    session.paste("t = '''\n>>> 2\n2\n'''\n")
    session.expect(r">>> 2")
    session.type("\r")
    session.wait_prompt()
    assert session.run("t") == r"'\n>>> 2\n2\n'"


def test_a_pasted_tab_completes_nothing(session):
    session.run("if True:\n\tpasted = 'yes'")
    assert session.run("pasted") == "'yes'"


@pytest.mark.parametrize("kind", ["xterm-256color", "dumb"])
def test_ctrl_c_at_the_prompt_drops_the_line(cb, kind):
    session = cb.session(env={"TERM": kind})
    session.type("print('never')")
    session.expect("never")
    session.type("\x03")
    session.wait_prompt()
    assert session.run("1 + 1") == "2"
    assert "never" not in [r.strip() for r in session.screen.rows()]


def test_ctrl_d_ends_the_session(session):
    assert session.leave() == 0


def test_ctrl_d_on_a_line_with_text_does_not_end_the_session(session):
    session.type("12")
    session.expect(">>> 12")
    session.type("\x04")
    session.type("3")
    session.expect(">>> 123")
    session.type("\x03")
    session.wait_prompt()


def test_wide_and_accented_characters_can_be_edited(session):
    session.type("s = 'äö漢字x'")
    session.expect("äö漢字x")
    session.type("\x1b[D\x1b[D\x7f\x7f")
    session.expect("äöx")
    session.type("é")
    session.expect("äöéx")
    session.type("\r")
    session.wait_prompt()
    assert session.run("s") == "'äöéx'"


def test_keys_move_within_the_line(session):
    session.type("23")
    session.expect(">>> 23")
    session.type("\x01")
    session.type("1")
    session.expect(">>> 123")
    session.type("\x05")
    session.type("4")
    session.expect(">>> 1234")
    session.type("\r")
    session.expect("^1234$")
    session.wait_prompt()


def test_up_recalls_all_lines_of_a_cell(session):
    session.run("def f():\n    return 5")
    session.type("\x1b[A")
    session.expect(r">>> def f\(\):\n\.\.\.     return 5")
    session.type("\x03")
    session.wait_prompt()


def test_undo_ends_at_the_text_that_the_read_began_with(session):
    session.run("x = 41")
    session.type(":edit\r")
    session.wait(lambda: session.screen.cursor_row() == ">>> x = 41",
                 "the cell to edit")
    session.type(" + 1" + 6 * "\x1f" + "0\r")
    session.wait_prompt()
    assert session.run("x") == "410"


def test_history_is_kept_for_the_next_session(cb):
    s = cb.session()
    s.run("'remember ' + 'me'")
    assert s.leave() == 0
    s = cb.session()
    s.type("\x1b[A")
    s.expect(r">>> 'remember ' \+ 'me'")
    s.type("\r")
    s.expect("^'remember me'$")
    s.wait_prompt()


@pytest.mark.parametrize("args", [
    ("terminal.history=no",), ("policy.commands=help quit undo",)])
def test_cells_of_earlier_sessions_are_not_shown_where_that_is_off(cb, args):
    s = cb.session()
    s.run("secret = 'of yesterday'")
    assert s.leave() == 0
    before = (cb.home / ".local/state/cellblock/history").read_text()
    more = [x for a in args for x in ("-s", a)]
    s = cb.session(*more)
    s.run("today = 1")
    s.type("sec")
    s.expect("^>>> sec$")
    s.type("\x03")
    s.wait_prompt()
    s.type("\x12of yest")
    s.expect("no match: of yest")
    s.type("\x03\x03")
    s.wait_prompt()
    s.type("\x1b[A\x1b[A\x1b[A + 41\r")     # there is one cell to go up to
    s.expect(r"^>>> today = 1 \+ 41$")
    s.wait_prompt()
    assert "yesterday" not in s.all_text()
    assert s.leave() == 0
    assert (cb.home / ".local/state/cellblock/history").read_text() == before
    # The control.
    s = cb.session()
    s.type("\x12secret")
    s.expect("of yesterday")


def test_history_counts_the_cells_that_are_not_shown(cb):
    state = cb.home / ".local" / "state" / "cellblock"
    state.mkdir(parents=True, mode=0o700)
    cells = "".join(f"x = {i}\n" for i in range(60))
    (state / "history").write_text(cells + "bad\\q\ncut \x1b[0m\n")
    (state / "history").chmod(0o600)
    s = cb.session(size=(80, 80))
    rows = s.run(":history").splitlines()
    assert rows == ["¦ [the last 50 of 60]", *(f"x = {i}" for i in range(10, 60)),
                    "¦ [2 lines of the history file could not be read]"]
    rows = s.run(":history 59").splitlines()
    assert rows[0] == "x = 59" and len(rows) == 2
    assert s.run(":history 61").startswith("¦ [nothing in the history matches]")


def test_a_history_that_cannot_be_kept_is_reported(cb):
    state = cb.home / ".local/state/cellblock"
    state.mkdir(parents=True)
    for parent in (state, *state.parents):
        if parent == cb.home:
            break
        parent.chmod(0o700)
    (state / "history").symlink_to("/etc/passwd")
    one = ("-s", "session.per_user=1")
    s = cb.session(*one)
    s.expect(r"history not kept: .*is a symbolic link")
    assert s.run("6 * 7") == "42"
    second = cb.session(*one, start=False)
    assert second.wait_exit() == 75
    assert "there is 1 session already" in second.all_text()


def test_ctrl_r_searches_history(session):
    session.run("needle = 'x'")
    session.run("other = 1")
    session.type("\x12")
    session.type("need")
    session.expect("needle = 'x'")
    session.type("\r")
    session.wait_prompt()


def test_enter_runs_what_the_search_found(session):
    session.run("needle = 20")
    session.run("for i in range(2):\n    needle += 1; print(needle)")
    session.type("\x12ange(")
    session.expect(r"search: ange\($")
    session.type("\r")
    session.expect(r">>> for i in range\(2\):\n.*needle\)\n23\n24$")
    session.wait_prompt()


def test_escape_goes_on_editing_what_the_search_found(session):
    session.run("abc = 6")
    session.type("\x12abc")
    session.expect(r">>> abc = 6\nsearch: abc")
    session.type("\x1b")
    session.wait(lambda: "search:" not in session.screen_text(), "no search")
    session.type("\x05 * 7\r")
    session.wait_prompt()
    assert session.run("abc") == "42"


def test_up_recalls_cells_that_begin_with_the_text(session):
    for cell in "aa = 1", "ab = 2", "b = 3", "ab = 2", "c = 4":
        session.run(cell)
    session.type("a\x1b[A")
    session.expect(r">>> ab = 2$")
    session.type("\x1b[A")
    session.expect(r">>> aa = 1$")
    session.type("\x1b[A")     # there is none before it
    session.type("\x1b[B")
    session.expect(r">>> ab = 2$")
    session.type("\x1b[B!")
    session.expect(r">>> a!$")
    session.type("\x03")
    session.wait_prompt()
    session.type("\x1b[A")
    session.expect(r">>> c = 4$")
    session.type("\x03")
    session.wait_prompt()


def test_up_keeps_to_the_column_of_the_cell_it_recalled(session):
    session.run("if 1:\n    x = 5\n    y = 6")
    session.type("\x1b[A")
    session.expect(r"y = 6$")
    session.type("\x1b[A")
    session.wait(lambda: "x = 5" in session.screen.cursor_row(), "one row up")
    session.type("7\x1b\r")      # at its end; Alt-Enter, inside the cell
    session.wait_prompt()
    assert session.run("x") == "57"


@pytest.mark.parametrize("opening, body, clause", [
    ("if 0:", "pass", "else:"), ("try:", "1 / 0", "except ValueError:"),
    ("try:", "1 / 0", "except ArithmeticError:"), ("try:", "pass", "finally:"),
    ("for i in '':", "pass", "else:"), ("while 0:", "pass", "else:")])
def test_a_clause_moves_back_as_it_is_typed(session, opening, body, clause):
    session.type(opening + "\r")
    session.wait(lambda: session.screen.cursor_row() == "...", "a line")
    session.type(body + "\r")
    session.wait(lambda: session.screen.cursor_row() == "...", "a line")
    session.type(clause)
    session.expect("^[.]{3} " + re.escape(clause) + "$")
    session.type("\rprint(6 * 7)\r\r")
    session.wait_prompt()
    assert ("ZeroDivisionError" if "Value" in clause else "\n42\n") in (
        session.screen_text())
    assert "SyntaxError" not in session.screen_text()


def test_a_line_inside_brackets_is_indented(session):
    session.type("x = [1,\r")
    session.wait(lambda: session.screen.cursor_row() == "...", "a line")
    session.type("2,\r")
    session.expect(r"^\.\.\.     2,$")
    session.type("]")
    session.expect(r"^\.\.\. \]")
    session.type("\r")
    session.wait_prompt()
    assert session.run("x") == "[1, 2]"


@pytest.mark.parametrize("cell", ["def f(:", "if x = 3:", "f(1,,", "(,"])
def test_what_can_never_be_valid_is_an_error_at_once(session, cell):
    session.type(cell + "\r")
    session.expect("^SyntaxError")
    session.wait_prompt()


def test_an_earlier_cell_is_suggested_and_taken(cb):
    s = cb.session()
    s.run("value = sum(range(4))\nvalue += 1")
    s.type("val")
    s.expect(r">>> value = sum\(range\(4\)\)$")
    s.type("\r")                       # only what was typed runs
    s.expect("NameError: name 'val'")
    s.wait_prompt()
    s.type("value = ")
    s.wait(lambda: s.screen.cursor_row() == ">>> value = sum(range(4))",
           "the suggestion")
    s.type("\x1b[C")
    s.wait(lambda: s.screen.cursor_row() == "... value += 1", "all of it")
    s.type("\r")
    s.wait_prompt()
    assert s.run("value") == "7"


@pytest.mark.parametrize("env, words", [
    ({"NO_COLOR": "1"}, ()), ({}, ("-s", "terminal.suggest=no"))])
def test_nothing_is_suggested_without_colours_or_by_configuration(
        cb, env, words):
    s = cb.session(*words, env=env)
    s.run("value = 5")
    s.type("val")
    s.expect(">>> val$")
    s.type("\x1b[C\x03")
    s.expect(r"^>>> val\^C")
    s.wait_prompt()


def test_enter_on_an_incomplete_cell_opens_an_indented_line(session):
    session.type("def f():")
    session.expect(r"def f\(\):")
    session.type("\r")
    session.expect(r"^\.\.\.")
    session.type("return 8")
    session.expect(r"^\.\.\.     return 8")
    session.type("\r")
    session.wait(lambda: session.screen.cursor_row() == "...", "a blank line")
    session.type("\r")
    session.wait_prompt()
    assert session.run("f()") == "8"


@pytest.mark.parametrize("kind", ["xterm-256color", "dumb"])
def test_time_accepts_a_cell_of_several_lines(cb, kind):
    s = cb.session(env={"TERM": kind})
    s.run("0")      # what the host lacks is said with the first cell
    row = s.screen.here()
    s.type(":time for i in range(3):")
    s.expect(r"range\(3\):$")
    s.type("\r")
    s.wait(lambda: s.screen.cursor_row() == "...", "a continuation line")
    s.type("    print(i)\r" if kind == "dumb" else "print(i)\r")
    s.wait(lambda: s.screen.here() == row + 2
           and s.screen.cursor_row() == "...", "another continuation line")
    s.type("\r")
    s.expect(r"^0\n1\n2\n(.*\n)*.*CPU ")
    s.wait_prompt()
    assert "usage: :time CELL" in s.run(":time")


def test_what_is_typed_is_coloured(cb):
    s = cb.session("--set", "terminal.suggest=no")

    def colours():
        row = s.screen.buffer[s.screen.cursor.y]
        return "".join(row[x].fg[0] for x in range(4, s.screen.cursor.x))

    for typed, wanted in [
            ("len(f'a{x}')", "mmmdgggdddgd"), ("match = 1", "ddddddddc"),
            ("match x:", "bbbbbddd"), ("x.len", "ddddd")]:
        s.type(typed)
        s.wait(lambda: s.screen.cursor_row() == ">>> " + typed, typed)
        s.wait(lambda: colours() == wanted, f"{wanted}, not {colours()}")
        s.type("\x03")
        s.wait_prompt()


# By then the cell that started the thread has ended; between two pieces the first
# of them is shown.
BEHIND, PIECE = PATIENCE, PATIENCE / 5


def test_a_background_line_that_comes_in_pieces_is_shown_as_one_line(cb):
    s = cb.session("--set", "cell.background=run")
    s.run("""\
def behind():
    time.sleep(%s)
    for piece in (b"o", b"ne\\n", b"\\n", b"two", b"\\n", b"three\\n"):
        time.sleep(%s)
        os.write(1, piece)
import os, threading, time""" % (BEHIND, PIECE))
    row = s.enter("threading.Thread(target=behind).start()")
    s.expect_since(row, "^three$")
    s.wait_prompt()
    assert s.screen.rows(row, s.screen.here()) == \
        ["¦ [background output follows]", "o", "ne", "", "two", "three"]


FOLLOWS = "¦ [background output follows]"


def behind(s, pieces):
    """Have a thread write these behind the end of a cell."""
    s.run("""\
def behind(*pieces):
    time.sleep(%s)
    for piece in pieces:
        time.sleep(%s)
        os.write(1, piece)
import os, threading, time""" % (BEHIND, PIECE))
    row = s.enter(f"threading.Thread(target=behind, args=[{pieces}]).start()")
    s.wait_prompt()
    return row


def test_only_output_that_is_seen_is_announced(cb):
    """Sequences that the filter drops fill a screenful, too, and are counted."""
    s = cb.session("--set", "cell.background=run", size=(5, 60))
    row = behind(s, r"b'\x1b]0;' + b't' * 40 + b'\7', b'\x1b[31m' * 7, b'\r',"
                    r" b'x'")
    s.expect_since(row, "^x$")
    s.wait_prompt()
    assert s.screen.rows(row, s.screen.here()) == [FOLLOWS, "x"]
    # The control, and the count.
    s.run("None")
    for piece in (r"b'\n'", "b' '", r"b'\a'", r"b'\xff'"):
        row = behind(s, piece)
        s.expect_since(row, "background output follows")
    assert "1 terminal sequence dropped: title" in s.all_text()


def test_the_end_of_a_line_that_was_shown_is_not_announced(cb):
    """The line fills the screenful."""
    s = cb.session("--set", "cell.background=run", size=(5, 60))
    row = behind(s, r"b'one', b'\n', b'two'")
    s.expect_since(row, "^two$")
    s.wait_prompt()
    assert s.screen.rows(row, s.screen.here()) == \
        [FOLLOWS, "one", FOLLOWS, "two"]


@pytest.mark.parametrize("key", ["\x03", "\r", "\x04"])
def test_output_below_a_line_that_the_person_left_is_announced_anew(cb, key):
    s = cb.session("--set", "cell.background=run")
    row = behind(s, r"*[b'late\n'] * 99")
    s.expect_since(row, "^late$")
    s.type(key)
    s.expect_since(row, "^>>>.*\n(¦.*\n|>>>\n)*late$")
    rows = s.screen.rows(row)
    left = [n for n, x in enumerate(rows) if x.startswith(">>>")][0]
    assert rows[rows.index("late", left) - 1] == FOLLOWS, s.picture()


def vi_line(session, keys, expected):
    """Check the text at the prompt after these keys; Escape is \\x1b."""
    session.type(keys)
    session.wait(lambda: session.screen.cursor_row().rstrip()
                 == (">>> " + expected).rstrip(), f"{keys!r}: {expected!r}")
    session.type("\x03")
    session.wait_prompt()


VI = {
    "one two\x1bhhx": "one wo",
    "one two\x1b0x": "ne two",
    "one two\x1b0dw": "two",
    "one two\x1bdb": "one o",
    "one two\x1b0cwfour": "four two",
    "one two\x1b0wcwthree\x1b": "one three",
    "f(a, b)\x1b0wlx": "f(, b)",
    "one two\x1b0ea!": "one! two",
    "one two\x1bA three\x1bI> ": "> one two three",
    "one two\x1b0wD": "one",
    "one two\x1b0wC2": "one 2",
    "one\x1bdd": "",
    "one\x1bccsix": "six",
    "one two\x1b0dwu": "one two",
    "one two\x1b0dw$p": "twoone ",
    "one\x1b0ix\x1b$ay": "xoney",
    "one\x1bqZ": "one",
    "ab\u00e4\x1bhx": "a\u00e4",
}


def test_vi_keys_edit_a_line(cb):
    s = cb.session("--set", "terminal.keys=vi", "--set", "terminal.suggest=no")
    for keys, expected in VI.items():
        vi_line(s, keys, expected)
    # The control: without them Escape and a letter are nothing.
    s = cb.session("--set", "terminal.suggest=no")
    vi_line(s, "one two\x1bhhx", "one twohx")


def test_vi_keys_stay_when_keys_typed_ahead_are_dropped(cb):
    s = cb.session("--set", "terminal.keys=vi", "--set", "terminal.suggest=no")
    # So many that the editor is at them still when Ctrl-C comes.
    s.type("import sys; sys.stdin.readable()\r(" + 1000 * "1,\r")
    s.wait(lambda: re.search(r"True|\.\.\. +1,", s.picture()), "the cell's end")
    s.type("\x03")
    s.wait_prompt()
    vi_line(s, "one two\x1b0dw", "two")


def test_vi_keys_go_through_cells_of_many_lines(cb):
    s = cb.session("--set", "terminal.keys=vi", "--set", "terminal.suggest=no")
    assert s.run("for i in range(2):\n    print(i)") == "0\n1"
    assert s.run("6 * 7") == "42"
    # Up to the cell of two lines, and down in it; Enter runs it from anywhere.
    s.type("\x1bk")
    s.expect(r">>> 6 \* 7$")
    s.type("k")
    s.expect(r">>> for i in range\(2\):\n\.\.\.     print\(i\)$")
    row = s.screen.here()
    s.type("k0wcwj\x1bj0wwwcwj\x1bk\r")
    s.expect_since(row, "^0\n1$")
    s.wait_prompt()
    # Every cell begins as text.
    assert s.run("j") == "1"
