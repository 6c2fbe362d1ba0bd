# SPDX-License-Identifier: MIT
"""Keys that leave the line for a moment: an editor in the jail, the help, the
history, a paste without marks. tests/unit/test_edit.c has the keys within it."""
import shutil

import pytest

EDIT, UNDO, REDO = "\x18\x05", "\x1f", "\x1be"
F1, F2, F3 = "\x1bOP", "\x1bOQ", "\x1bOR"


def line_is(s, line):
    s.wait(lambda: not s.screen.alternate and
           s.screen.cursor_row().rstrip() == line, f"the line {line!r}")


def drop(s):
    s.type("\x03")
    s.wait_prompt()


def edited(s, text, line, keys=EDIT):
    """Type a text, have the editor edit it; return the line."""
    s.wait_prompt()
    s.type(text)
    line_is(s, ">>> " + text)
    s.type(keys)
    line_is(s, line)


# ---- the editor ----

def test_an_editor_in_the_jail_changes_the_text(cb):
    s = cb.session(env={"EDITOR": "sed -i s/one/two/"})
    edited(s, "'one' + 'more'", ">>> 'two' + 'more'")
    s.type(UNDO)
    line_is(s, ">>> 'one' + 'more'")
    s.type(REDO)
    line_is(s, ">>> 'two' + 'more'")
    s.type("\r")
    s.expect("^'twomore'$")
    s.wait_prompt()
    # It was no cell: of those only one has run.
    assert s.run("sorted(k for k in globals() if k[0] != '_'), In[1:]") == \
        """([], ["'two' + 'more'", "sorted(k for k in globals() if k[0] != """ \
        """'_'), In[1:]"])"""


def test_the_editor_sees_the_files_of_the_jail_alone(cb):
    (cb.work / "secret").write_text("")
    look = "test -e {} && echo there >> $0 || echo none >> $0"
    s = cb.session(env={"EDITOR": f"sh -c '{look.format(cb.work / 'secret')}'"})
    edited(s, "x", "... none")
    drop(s)
    # The control: a file of the home. The variables of the session come first.
    s.run("import os; open('secret', 'w').close()")
    s.run(f"os.environ['VISUAL'] = {repr('sh -c ' + repr(look))}"
          ".format('/home/secret')")
    edited(s, "x", "... there")


@pytest.mark.parametrize("editor", ["vim", "nano"])
def test_an_editor_of_the_whole_screen_gives_the_screen_back(cb, editor):
    if not shutil.which(editor):
        pytest.skip(f"no {editor} here")
    s = cb.session(env={"EDITOR": {"vim": "vim -u NONE -c 2",
                                   "nano": "nano -I +2,99"}[editor]})
    s.run("print('before')")
    s.type("for i in 1,:\rprint(i)")
    line_is(s, "...     print(i)")
    s.type(EDIT)
    # vim may say first that it has no timers; Enter goes on.
    s.wait(lambda: s.screen.alternate, "its screen")
    s.expect(r"print\(i\)|Press ENTER")
    s.resize(12, 50)
    s.wait(lambda: "".join(s.screen.shown()[-1:]).startswith("^X Exit") or
           editor == "vim", "the new size")
    s.type({"vim": "\rA; print(-i)\x1bZZ", "nano": "; print(-i)\x0f\r\x18"}
           [editor])
    line_is(s, "...     print(i); print(-i)")
    assert s.screen_text().endswith(
        ">>> for i in 1,:\n...     print(i); print(-i)")
    assert "before" in s.all_text()
    s.type("\x1b\r")
    s.expect("^1\n-1$")
    s.wait_prompt()


def test_without_a_change_everything_stays(cb):
    s = cb.session(env={"EDITOR": "false"})
    s.run("x = 1")
    s.run("y = 2")
    s.type("one two\x1b[D\x1b[D")
    line_is(s, ">>> one two")
    s.type(EDIT)
    s.expect("^false: exit status 1: the text is as it was$")
    line_is(s, ">>> one two")
    s.type("-" + UNDO + UNDO)
    line_is(s, ">>> one")
    drop(s)
    assert s.run(":diff").split() == ["new", "y", "int", "2"]
    assert "before cell 2 (1 name): y = 2" in s.run(":undo")


def test_where_there_is_no_editor_a_line_says_so(cb):
    s = cb.session(env={"EDITOR": "no-such-editor"})
    s.run("import os; path = os.environ['PATH']; os.environ['PATH'] = '/none'")
    s.type("text" + EDIT)
    s.expect("^there is no editor in the jail: %env EDITOR=NAME names one$")
    line_is(s, ">>> text")
    drop(s)
    # The control: another editor takes the place of one that is not there.
    s.run("os.environ['PATH'] = '/home:' + path")
    s.run("open('editor', 'w').write('#!/bin/sh\\necho 6 \\\\* 7 > $1'); "
          "os.chmod('editor', 0o700)")
    edited(s, "text", ">>> 6 * 7")


# Ends of a paste, keys and controls; a program may leave anything.
HOSTILE = (b"x = 1\x1b[201~\r:quit\r\x03\x04\x00\x1b]0;title\x07\xc2\x9b2J\n"
           b"\xff\xc3\xa9\x1b[200~\n")


def test_what_an_editor_leaves_is_text_and_never_runs(cb):
    (cb.work / "bad").write_bytes(HOSTILE)
    s = cb.session("-u", str(cb.work / "bad"), env={"EDITOR": "cp bad"})
    s.type("1" + EDIT)
    s.expect(r"^\.\.\. .*\[200~$")
    assert (">>> x = 1\n... :quit\n... ]0;title\ufffd2J\n"
            "... \ufffdé[200~") in s.screen_text()
    assert b"\x1b]0" not in s.raw
    drop(s)
    assert s.run("6 * 7") == "42"


def test_a_text_that_is_too_long_is_left_out(cb):
    s = cb.session("-s", "cell.source=1k")
    s.run("import os; open('long', 'w').write('x' * 100_000)")
    s.run("os.environ['EDITOR'] = 'cp long'")
    s.type("1" + EDIT)
    s.expect(r"the text is as it was: a cell has at most 1024 bytes")
    line_is(s, ">>> 1")
    drop(s)
    s.run("_ = open('long', 'w').write('x' * 1024)")
    s.type("1" + EDIT)
    s.wait(lambda: "x" * 1024 in s.screen_text().replace("\n", ""), "all of it")
    drop(s)
    assert "pictures" not in s.all_text()


def test_an_editor_that_hangs_is_ended_and_the_text_stays(cb):
    s = cb.session("-t", "1s", env={"EDITOR": "sh -c 'while :; do :; done'"})
    s.type("kept" + EDIT)
    s.expect("time limit: 1 s")
    line_is(s, ">>> kept")


def test_ctrl_c_ends_an_editor_that_takes_no_keys(cb):
    s = cb.session(env={"EDITOR": "sh -c 'echo begun; sleep 1000'"})
    s.type("kept" + EDIT)
    s.expect("^begun$")
    s.type("\x03")
    line_is(s, ">>> kept")
    assert "Traceback" not in s.all_text()


# ---- F1, F2 ----

def test_f1_shows_the_help_and_keeps_the_text(cb):
    s = cb.session(size=(12, 80))
    s.type("one two\x1b[D\x1b[D\x1b[D")
    line_is(s, ">>> one two")
    s.type(F1)
    s.wait(lambda: s.screen.alternate, "the pager")
    s.expect("^:upload ")
    s.resize(10, 60)
    s.expect(r"^-- \d+%")
    s.type("q")
    line_is(s, ">>> one two")
    s.type("-")
    line_is(s, ">>> one -two")
    s.type(UNDO + UNDO)
    line_is(s, ">>> one")


def test_f2_shows_the_history_from_its_end(cb):
    s = cb.session(size=(10, 80))
    s.run("def f():\n    return 1")
    for i in range(12):
        s.run(f"x = {i}")
    s.type("text" + F2)
    s.wait(lambda: s.screen.alternate, "the pager")
    s.expect(r"^x = 11\n-- end")
    s.type("g")
    s.expect(r"^def f\(\):\n    return 1\nx = 0$")
    assert ">>>" not in s.screen_text()
    s.type("q")
    line_is(s, ">>> text")
    drop(s)
    # :history says the same, and finds a part.
    assert s.run(":history -a x = 1").split("\n") == \
        ["x = 1", "x = 10", "x = 11"]


def test_f1_shows_no_command_that_is_not_allowed(cb):
    s = cb.session("-s", "policy.commands=history", size=(40, 80))
    s.type("text" + F1)
    s.expect("there is no command :help")
    line_is(s, ">>> text")
    s.type(F2)
    s.expect("nothing in the history matches")
    line_is(s, ">>> text")


# ---- F3 ----

BLOCK = "def f(n):\n    if n:\n        return {\n            1: n}\n\n    return 0\n"


def unmarked(s, text):
    """Paste as a terminal does that marks nothing."""
    s.type(text.replace("\n", "\r"))


def test_f3_takes_a_paste_that_the_terminal_does_not_mark(cb):
    s = cb.session()
    s.type(F3)
    s.wait(lambda: s.screen.cursor_row() == "(paste)", "the mode")
    unmarked(s, BLOCK)
    s.wait(lambda: s.screen_text().count("(paste)") == 7, "the text")
    assert "(paste)         return {\n(paste)             1: n}" in \
        s.screen_text()
    s.type(F3)
    s.wait(lambda: ">>> def f" in s.screen_text() and
           "(paste)" not in s.screen_text(), "the marks to go")
    s.type("\r")
    s.wait_prompt()
    assert s.run("f(5), f(0)") == "({1: 5}, 0)"
    # The control: keys that are typed are indented.
    unmarked(s, BLOCK)
    s.expect("IndentationError|SyntaxError|            return")
    assert "(paste)" not in s.screen_text()[-200:]


def test_a_doctest_between_two_f3_runs_as_what_it_means(cb):
    s = cb.session()
    s.type(F3)
    unmarked(s, ">>> def area(r):\n...     return 3 * r\n...\n>>> area(2)\n6\n")
    s.wait(lambda: s.screen_text().count("(paste)") == 6, "the text")
    s.type(F3)
    s.expect("prompts and output are left out")
    s.type("\r")
    s.expect("^6$")
    s.wait_prompt()


def test_a_tab_in_paste_mode_is_a_tab_and_ctrl_c_ends_the_mode(cb):
    s = cb.session()
    s.type(F3 + "if 1:\r\tx = 7")
    s.expect(r"^\(paste\)  +x = 7")
    s.type("\x03")
    s.wait_prompt()
    s.type(F3 + "if 1:\r\tx = 8" + F3)
    s.expect(r"^>>> if 1:\n\.\.\.  +x = 8$")
    s.type("\x1b\r")
    s.wait_prompt()
    assert s.run("x, In[-2]") == r"(8, 'if 1:\n\tx = 8')"


def test_paste_mode_outlasts_the_help(cb):
    s = cb.session(size=(12, 80))
    s.type(F3 + "if 1:\r")
    s.wait(lambda: s.screen.cursor_row() == "(paste)", "a line")
    s.type(F1)
    s.wait(lambda: s.screen.alternate, "the pager")
    s.type("q")
    s.wait(lambda: not s.screen.alternate and
           s.screen.cursor_row() == "(paste)", "the mode")
    s.type("  x" + F3)
    s.expect(r"^>>> if 1:\n\.\.\.   x$")


# ---- vi, and a terminal without an addressable cursor ----

def test_vi_has_these_keys_too(cb):
    s = cb.session("-s", "terminal.keys=vi", "-s", "terminal.suggest=no",
                   env={"EDITOR": "sed -i s/one/two/"})
    edited(s, "one", ">>> two", "\x1bv")
    s.type(UNDO)
    line_is(s, ">>> one")
    drop(s)
    # F3 in the command mode: pasted text is no command.
    s.type("\x1b" + F3 + "dd = 1")
    s.expect(r"^\(paste\) dd = 1")
    s.type(F3)
    line_is(s, ">>> dd = 1")


def test_a_dumb_terminal_takes_these_keys_for_no_text(cb):
    s = cb.session(env={"TERM": "dumb", "EDITOR": "sed -i s/./9/"})
    for keys in (EDIT, F1, F2, F3, "\x1bu\x1by\x1b.\x1be"):
        s.type(keys)
    s.type("\x15" + "6 * 7\r")       # the terminal's own Ctrl-U
    s.expect("^42$")
    s.wait_prompt()
    assert s.run("'ok'") == "'ok'"
    # A sequence that the line keeps: an error at most, and the session goes on.
    s.type(F1 + "\r")
    s.expect("NameError|SyntaxError")
    s.wait_prompt()
    assert s.leave() == 0
