# SPDX-License-Identifier: MIT
"""The editor as a person sees it on the screen. Its parts have unit tests."""
import re
import signal

import pytest


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
    s.run("def behind():\n    while True: os.write(1, b'x'); time.sleep(0.05)\n"
          "import os, threading, time")
    s.run("threading.Thread(target=behind, daemon=True).start()")
    s.type("\x1b[200~print('one')")
    s.expect("more of the paste is awaited")
    s.type("\x03")
    s.expect(r">>> print\('one'\)")
    row = s.screen.here()
    s.type("\r")
    s.expect_since(row, "^one$")    # what comes behind it may move it away


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


def test_ctrl_c_at_the_prompt_clears_the_line(session):
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


def test_tab_completes_a_name(session):
    session.run("quite_a_long_name = 11")
    session.type("quite_a\t")
    session.expect(r">>> quite_a_long_name")
    session.type("\r")
    session.expect("^11$")
    session.wait_prompt()


def test_tab_lists_the_candidates_when_there_are_several(session):
    session.run("import string")
    session.type("string.ascii\t")
    session.expect(r">>> string\.ascii_$")
    session.type("\t")
    session.expect(r"^ascii_letters  .*\n(.*\n)*>>> string\.ascii_$")
    session.type("\x03")
    session.wait_prompt()


def shows(session, text):
    """The cursor's row becomes `text`, behind the prompt."""
    session.wait(lambda: session.screen.cursor_row() == ">>> " + text,
                 f"the row to be {text!r}")


def test_tab_walks_the_candidates_that_are_listed(cb):
    session = cb.session("--set", "terminal.suggest=no")
    session.run("walk_a, walk_b, walk_c = 1, 2, 3")
    session.type("walk")
    shows(session, "walk")
    session.type("\t")
    shows(session, "walk_")
    session.type("\t")
    session.expect(r"^walk_a  walk_b  walk_c$")
    for key, name in [("\t", "a"), ("\t", "b"), ("\t", "c"), ("\t", "a"),
                      ("\x1b[Z", "c"), ("\x1b[Z", "b")]:
        session.type(key)
        shows(session, "walk_" + name)
    assert len(re.findall("^walk_a  ", session.all_text(), re.M)) == 1
    # any other key keeps the choice, and the next Tab asks anew
    session.type("\x1b[D")
    session.type("\x1b[C")
    session.type("+walk_c")
    shows(session, "walk_b+walk_c")
    session.type("\r")
    session.expect("^5$")
    session.wait_prompt()
    session.type("walk_\t")
    session.expect(r"^walk_a  walk_b  walk_c$(\n.*)*^walk_a  walk_b  walk_c$")
    session.type("\x1b[Z")
    shows(session, "walk_c")
    session.type("\x03")
    session.wait_prompt()


def test_tab_completes_the_name_of_an_argument(session):
    session.run("def f(speed, colour=1, *, shape=None): return speed, shape")
    completes(session, "f(spee", "f(speed=")
    completes(session, "f(1, sha", "f(1, shape=")
    completes(session, "f(1, shape=colo", "f(1, shape=colo")
    session.type("f(1, sha\t")
    shows(session, "f(1, shape=")
    session.type("5)\r")
    session.expect(r"^\(1, 5\)$")
    session.wait_prompt()


def test_tab_completes_behind_literals_and_subscripts(session):
    session.run("z = [1j, {'kappa': 'x'}]")
    completes(session, "'x'.upp", "'x'.upper")
    completes(session, "z[0].rea", "z[0].real")
    completes(session, "z[1]['ka", "z[1]['kappa']")
    completes(session, "print(z[1]['kappa'].upp", "print(z[1]['kappa'].upper")


def test_tab_completes_numbers_of_cells(session):
    session.run("first = 1")
    session.run("print('second')")
    completes(session, ":edit 1", ":edit 1")
    session.type(":edit \t")
    session.expect(r"^1  2$")
    session.type("\t")
    shows(session, ":edit 1")
    session.type("\r")
    shows(session, "first = 1")
    session.type("\x03")
    session.wait_prompt()


def test_tab_completes_the_target_of_a_download(cb):
    for name in "results-here", "resort":
        (cb.work / name).mkdir()
    (cb.work / "results.txt").touch()
    s = cb.session()
    s.run("f = open('a.csv', 'w'); f.close()")
    completes(s, ":download a.csv resu", ":download a.csv results-here/")
    s.type(":download a.csv res\t")
    s.expect(r"^resort/ +results-here/$")
    s.type("\t\t")
    shows(s, ":download a.csv results-here/")
    s.type("\r")
    s.wait_prompt()
    assert (cb.work / "results-here" / "a.csv").exists()


SIGNATURE = "area(radius, *, unit='m')"


def below(session):
    """The row below the cursor's."""
    return "".join(session.screen.shown()[session.screen.cursor.y + 1:][:1])


def shows_below(session, text):
    session.wait(lambda: below(session) == text, f"{text!r} below the cell")


@pytest.fixture
def area(cb):
    s = cb.session("--set", "terminal.colour=always")
    s.run("def area(radius, *, unit='m'): return radius * 2")
    return s


def test_the_signature_is_shown_inside_a_call(area):
    for typed, wanted in [("area", ""), ("(", SIGNATURE), ("[1, (2", SIGNATURE),
                          (")], sum(", "sum(iterable, /, start=0)"),
                          ("3)", SIGNATURE), (")", "")]:
        area.type(typed)
        shows_below(area, wanted)
    area.type("\x1b[D")
    shows_below(area, SIGNATURE)
    area.type("\x03")
    area.wait_prompt()
    assert "unit='m')" not in area.screen_text().split("^C")[1]
    area.type("area(1")
    shows_below(area, SIGNATURE)
    area.type(" + 1)\r")
    area.expect("^4$")
    area.wait_prompt()
    assert not re.search("^area.radius", area.all_text(), re.M)


def test_the_signature_moves_no_prompt(area):
    """Not even where the cell ends at the bottom of the screen."""
    area.run("for i in range(40): print(i)")
    area.type("1 + ")
    area.wait(lambda: area.screen.cursor_row() == ">>> 1 +", "the text")
    y = area.screen.cursor.y
    area.type("area(")
    shows_below(area, SIGNATURE)
    assert area.screen.cursor.y == y
    area.type("3)")
    shows_below(area, "")
    assert area.screen.cursor.y == y
    area.type("\r")
    area.expect("^7$")
    area.wait_prompt()
    # the next prompt follows the value, without a row between
    assert area.screen.shown()[area.screen.cursor.y - 1] == "7"


def test_no_signature_is_shown_of_a_definition_or_a_command(area):
    for typed in "def area (", ":help area(", "x.area(", "nothing(":
        area.type(typed)
        area.wait(lambda: area.screen.cursor_row().endswith(typed), typed)
        # the control: that of a call which is typed next is shown
        area.type("\x03")
        area.wait_prompt()
        area.type("area(")
        shows_below(area, SIGNATURE)
        area.type("\x03")
        area.wait_prompt()
    assert len(re.findall(r"\x1b\[2marea\(radius", area.raw.decode())) == 4


@pytest.mark.parametrize("option, variable", [
    (("--set", "terminal.suggest=no"), {}), ((), {"NO_COLOR": "1"}),
    ((), {"TERM": "dumb"})])
def test_no_signature_is_shown_where_none_is_wanted(cb, option, variable):
    s = cb.session(*option, env=variable)
    s.run("asked = []")
    s.run("def area(radius, *, unit='m'): return radius * 2")
    s.type("area(1")
    s.wait(lambda: s.screen.cursor_row().endswith("area(1"), "the text")
    s.type(")\r")
    s.expect("^2$")
    s.wait_prompt()
    assert "area(radius, *" not in s.all_text().replace("def area(radius, *", "")
    assert b"\x1b[2marea" not in s.raw


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


def test_tab_completes_an_attribute_and_an_import(session):
    session.run("import string")
    session.type("string.ascii_low\t")
    session.expect("string.ascii_lowercase")
    session.type("\x03")
    session.wait_prompt()
    session.type("import statis\t")
    session.expect("import statistics")
    session.type("\x03")
    session.wait_prompt()


def completes(session, typed, wanted):
    """Tab at the end of `typed` makes it `wanted`."""
    session.type(typed + "\t")
    session.wait(lambda: session.screen.cursor_row() == ">>> " + wanted,
                 f"{typed!r} to become {wanted!r}")
    session.type("\x03")
    session.wait_prompt()


def test_tab_completes_a_home_file_and_closes_the_string(session):
    session.run("f = open('grades-2024.csv', 'w'); f.close()")
    session.run("import os; os.mkdir('results')")
    completes(session, "open('grad", "open('grades-2024.csv'")
    completes(session, 'open("/home/grad', 'open("/home/grades-2024.csv"')
    completes(session, "open('resu", "open('results/")


def test_tab_completes_a_key_and_closes_the_bracket(session):
    session.run("d = {'alpha': 1, 'beta/': 2}; n = {1234: 1}")
    completes(session, "d['al", "d['alpha']")
    completes(session, 'd["al', 'd["alpha"]')
    completes(session, "d['be", "d['beta/']")
    completes(session, "n[12", "n[1234]")
    completes(session, "f'{d[\"al", "f'{d[\"alpha\"]")


def test_tab_does_not_close_a_string_that_is_closed_already(session):
    session.run("d = {'alpha': 1}")
    session.type("d['al']\x02\x02\t")
    session.expect(r"^>>> d\['alpha'\]$")
    session.type(" ")
    session.expect(r"^>>> d\['alpha '\]$")
    session.type("\x03")
    session.wait_prompt()


def test_tab_closes_no_string_while_there_are_several_candidates(session):
    session.run("d = {'alpha': 1, 'alpine': 2}")
    completes(session, "d['a", "d['alp")


def test_tab_at_the_start_of_a_line_indents(session):
    session.type("\tx")
    session.expect(r"^>>>     x")
    session.type("\x03")
    session.wait_prompt()


@pytest.mark.parametrize("doc, source", [("area?", "area??"),
                                         ("?area", "??area")])
def test_one_question_mark_shows_the_doc_and_two_the_source(
        session, doc, source):
    session.run("def area(r):\n    'the area of a circle'")
    out = session.run(doc)
    assert "area(r)" in out and "the area of a circle" in out
    assert out.splitlines() != session.run(source).splitlines()
    assert "def area(r):" in session.run(source)


def test_a_narrow_terminal_works(cb):
    s = cb.session(size=(6, 20))
    assert s.run("'x' * 3") == "'xxx'"
    s.type("abcdefghijklmnopqrstuvwxyz0123456789")
    s.expect("456789")
    s.type("\x03")
    s.wait_prompt()
    assert s.run("1 + 1") == "2"


def test_text_that_fills_its_row_leaves_no_empty_row(cb):
    s = cb.session(size=(10, 30))
    s.type("print('" + "x" * 17 + "')\r")
    s.expect(r"^>>> print\('x{17}'\)\nx{17}$")
    s.wait_prompt()
    s.type("'" + "y" * 24)
    s.expect("y{24}'?")
    s.type("'\x03")
    s.expect(r">>> 'y{24}'\n\^C\n>>>$")


def words_at(cb, columns, command):
    s = cb.session(size=(80, columns))
    text = s.run(command)
    assert s.leave() == 0
    return text.split()


@pytest.mark.parametrize("command", [":help", ":limits", ":help limits"])
@pytest.mark.parametrize("columns", [24, 40, 80])
def test_no_word_is_broken_at_any_width(cb, command, columns):
    at_ease, narrow = (words_at(cb, c, command) for c in (200, columns))
    # The current usage changes between the two runs.
    volatile = re.compile(r"[\d.]+|([KMG]i)?B|m?s|min|h")
    assert [w for w in narrow if not volatile.fullmatch(w)] == \
        [w for w in at_ease if not volatile.fullmatch(w)]


def test_banner_breaks_between_words(cb):
    s = cb.session(size=(40, 24))
    words = s.all_text().split()
    assert {"cellblock", "network,", "processes", "memory", ":help"} <= \
        set(words), words


def test_a_wide_terminal_works(cb):
    s = cb.session(size=(24, 200))
    assert s.run("'y' * 150") == "'" + "y" * 150 + "'"


def test_a_dumb_terminal_gets_no_escape_sequence(cb):
    s = cb.session(env={"TERM": "dumb"})
    assert s.run("6 * 7") == "42"
    assert b"\x1b" not in s.raw
    assert s.leave() == 0


def test_a_dumb_terminal_gets_one_first_prompt(cb):
    """Even where there is something to say that only Python's start brings."""
    s = cb.session(env={"TERM": "dumb"})
    assert s.run("6 * 7") == "42"
    prompts = [r.rstrip() for r in s.screen.rows() if r.startswith(">>>")]
    assert prompts == [">>> 6 * 7", ">>>"]


def test_a_dumb_terminal_gets_each_message_on_its_own_line(cb):
    s = cb.session("--set", "cell.source=40", env={"TERM": "dumb"},
                   size=(10, 80))
    s.run("for i in range(20): print(i)")
    assert s.run(":out").split() == [str(i) for i in range(20)]
    assert s.run("'" + "x" * 60 + "'") == \
        "¦ [a cell has at most 40 bytes: not run]"
    s.run("open('kept', 'w').close()")
    s.type("\x04")
    s.expect("^¦ .home: 1 file was never downloaded: kept")
    s.wait_prompt()
    assert b"\x1b" not in s.raw
    assert s.leave() == 0


def test_a_dumb_terminal_gets_a_new_prompt_after_background_output(cb):
    s = cb.session("--set", "cell.background=run", env={"TERM": "dumb"})
    s.run("import threading")
    s.run("t = threading.Timer(1, print, ['behind']); t.start()")
    s.expect("^behind$")
    s.wait_prompt()
    assert s.run("6 * 7") == "42"


def test_a_background_line_that_comes_in_pieces_is_shown_as_one_line(cb):
    s = cb.session("--set", "cell.background=run")
    s.run("""\
def behind():
    for piece in (b"o", b"ne\\n", b"\\n", b"two", b"\\n", b"three\\n"):
        time.sleep(0.2)
        os.write(1, piece)
import os, threading, time""")
    row = s.enter("threading.Thread(target=behind).start()")
    s.expect_since(row, "^three$")
    s.wait_prompt()
    assert s.screen.rows(row, s.screen.here()) == \
        ["¦ [background output follows]", "o", "ne", "", "two", "three"]


def test_ctrl_c_at_a_dumb_prompt_drops_the_line(cb):
    s = cb.session(env={"TERM": "dumb"})
    s.type("print('never')")
    s.expect("never")
    s.type("\x03")
    s.wait_prompt()
    assert s.run("6 * 7") == "42"
    assert "never" not in [r.strip() for r in s.screen.rows()]


def test_type_ahead_is_shown_at_a_dumb_prompt(cb):
    s = cb.session(env={"TERM": "dumb"})
    row = s.enter("import time; print('go'); time.sleep(0.5)")
    s.expect_since(row, "^go")
    s.type("x = 1\rx = 2")
    s.expect(r"^>>> x = 1\n>>> x = 2$")
    s.type(" + 1\r")
    s.wait_prompt()
    assert s.run("x") == "3"


def test_a_resize_redraws_the_cell_at_once(session):
    session.type("x = '" + "0123456789" * 6 + "'")
    session.expect("789'")
    session.resize(24, 40)
    session.expect(r"^>>> x = '0123456789012345678901234567890$"
                   r"\n^12345678901234567890123456789'$")


def test_a_page_is_as_long_as_the_resized_terminal(cb):
    s = cb.session(size=(24, 80))
    s.run("for i in range(30): print(i)")
    s.resize(10, 80)
    s.type(":out\r")
    s.expect(r"^-- more: Space, Enter, q --$")
    assert s.screen.shown() == [*map(str, range(9)),
                                "-- more: Space, Enter, q --"]
    s.type("q")
    s.wait_prompt()


def test_each_key_scrolls_the_pager_once(cb):
    s = cb.session(size=(10, 80))
    s.run("for i in range(60): print(i)")
    s.type(":out\r")
    last = 8
    for key, rows in (("\x1b[B", 1), ("\x1bOB", 1), ("\r", 1), ("j", 1),
                      ("\x1b[D", 0), ("x", 0), ("é", 0), ("\x1b[6~", 9),
                      (" ", 9)):
        s.expect(rf"^{last}\n-- more: Space, Enter, q --$")
        s.type(key)
        last += rows
    s.expect(rf"^{last}\n-- more: Space, Enter, q --$")
    s.type("G")
    s.wait_prompt()
    assert s.screen.shown()[-2:] == ["59", ">>>"]


def test_an_interrupt_closes_one_page_and_not_the_next(cb):
    s = cb.session(size=(10, 80))
    s.run("for i in range(30): print(i)")
    for _ in range(2):
        s.type(":out\r")
        s.expect(r"^8\n-- more: Space, Enter, q --$")
        s.process.send_signal(signal.SIGINT)
        s.wait_prompt()
        s.type("\x0c")
        s.wait_prompt()


def test_a_signal_at_the_pager_ends_the_session_with_its_status(cb):
    s = cb.session(size=(10, 80))
    s.run("for i in range(30): print(i)")
    s.type(":out\r")
    s.expect(r"^8\n-- more: Space, Enter, q --$")
    s.process.send_signal(signal.SIGTERM)
    assert s.wait_exit() == 128 + signal.SIGTERM


def test_text_that_is_shown_again_has_expanded_tabs_and_no_colours(session):
    session.run(r"print('a\tb\n12345678\tc\n漢\té'); "
                r"print('\x1b[1;31mred\x1b[m \x1b]0;x\x07')")
    table = ["a       b", "12345678        c", "漢      é"]
    assert session.run(":out").splitlines() == \
        [*table, r"red \x1b]0;x\x07"]
    session.run(r"open('t.tsv', 'w').write('a\tb\n12345678\tc\n漢\té')")
    assert session.run(":show t.tsv").splitlines() == table
    session.run("def f():\n\treturn 1")
    assert session.run("f??").splitlines() == \
        ["def f():", "        return 1"]


def test_an_unknown_terminal_works(cb):
    s = cb.session(env={"TERM": "no-such-terminal"})
    assert s.run("6 * 7") == "42"


def test_an_empty_term_variable_works(cb):
    s = cb.session(env={"TERM": ""})
    assert s.run("6 * 7") == "42"


def vi_line(session, keys, expected):
    """What stands at the prompt after these keys; Escape is \\x1b."""
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
