# SPDX-License-Identifier: MIT
"""Behaviour that depends on the terminal: its size, its abilities, its pages."""
import os
import re

from world import PATIENCE


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


def words_at(cb, columns):
    """The words of some commands' texts. The current usage, which changes from
    session to session, is left out."""
    s = cb.session(size=(160, columns))
    texts = [s.run(command) for command in (":help", ":limits", ":help limits")]
    assert s.leave() == 0
    volatile = re.compile(r"[\d.]+|([KMG]i)?B|m?s|min|h")
    return [[w for w in text.split() if not volatile.fullmatch(w)]
            for text in texts]


def test_no_word_is_broken_at_any_width(cb):
    at_ease = words_at(cb, 200)
    assert all(at_ease)
    for columns in 24, 40, 80:
        assert words_at(cb, columns) == at_ease, columns


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
    """A line that comes only with Python's start brings no second prompt."""
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
    s.expect("1 variable and 1 file never downloaded: kept")
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


def test_type_ahead_is_shown_at_a_dumb_prompt(cb):
    s = cb.session(env={"TERM": "dumb"})
    # Keys that come behind the end of the cell are echoed before the prompt.
    wait = min(2 * PATIENCE, 5)     # the cell has ten seconds
    row = s.enter(f"import time; print('go'); time.sleep({wait})")
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


def test_a_file_gets_lines_without_returns(cb):
    """A terminal types, and a file gets the output. A cell's own return stays."""
    open(os.path.join(cb.work, "out"), "w").close()
    s = cb.session(wrapper=("sh", "-c", 'exec "$0" "$@" > out'), start=False)
    s.type("import sys; w = sys.stdout.write; "
           "print(w('1\\na\\rb\\r\\nc\\r'), w('d\\r'), w('e')); 1/0\r")

    def written():
        with open(os.path.join(cb.work, "out"), "rb") as f:
            return f.read()

    s.wait(lambda: written().endswith(b"by zero\n"), "the output")
    assert written().startswith(b"1\na\rb\r\nc\rd\re9 2 1\nTraceback (most")
    assert written().count(b"\r") == 4
    s.type(":quit\r")
    assert s.wait_exit() == 0
