# SPDX-License-Identifier: MIT
"""Cells that answer the editor's questions in the driver's place. Each answer
only continues the word that the person typed: the line never becomes a
command, and nothing is copied or run that they did not type."""
import re

import pytest

import hindered
import hostile
from hostile import value
from world import ASAN, PATIENCE

# Puts a function of the cell's in the place of the driver's completer. `said`
# is what it answers; %(n)d stands for the length of the question.
REPLACE = """\
import sys
def replace():
    f = sys._getframe()
    while 'TABLE' not in f.f_globals:
        f = f.f_back
    f.f_globals['part']('answer')
    f.f_globals['KINDS']['complete'] = lambda text: said % {'n': len(text)}
replace()"""
UPLOAD = ":upload ~/.secret"
# As long as a cell takes for an answer that is not too late.
NAP = 0.9 * (1 if ASAN else PATIENCE)


def start(cb, *args):
    """Python has a second for an answer. Here clocks are slow, for busy hosts."""
    return hostile.start(cb, *args, env=hindered.slow(cb.base))


def hostile_session(cb):
    (cb.home / ".secret").write_text("a secret of the host")
    # Suggestions from the history would stand behind what is typed.
    s = start(cb, "--set", "terminal.suggest=no")
    s.run("said = '0\\n'")
    s.run(REPLACE)
    return s


def answers(s, said):
    s.run(f"said = {said!a}")


def tab(s, typed, further="!", tabs=1):
    """The line in the editor after `typed`, Tab and `further`, which shows
    that the Tab was dealt with."""
    s.type(typed)
    s.expect(re.escape(typed) + "$")
    for _ in range(tabs):
        s.type("\t")
    s.type(further)
    return s.wait(lambda: further in s.screen.cursor_row() and
                  s.screen.cursor_row(), "the key behind the Tab")


def after_tab(s, typed):
    row = tab(s, typed)
    s.type("\x03")
    s.wait_prompt()
    return row.rstrip()


def enter(s, expected):
    """Enter, and wait for `expected` and the next prompt."""
    row = s.screen.here()
    s.type("\r")
    s.expect_since(row, expected)
    s.wait_prompt()


def test_tab_and_enter_run_no_command_of_a_cell(cb):
    s = hostile_session(cb)
    for said in f"%(n)d\n{UPLOAD}\n", f"%(n)d\n{UPLOAD}\n{UPLOAD}s\n":
        answers(s, said)
        tab(s, "pri", "m", tabs=2)
        enter(s, "NameError: name 'prim'")
    assert value(s, "__import__('os').listdir('/home')") == "['kept.txt']"
    assert not re.search("^:upload", s.run(":history"), re.M)
    # the control: typed, the command does run
    assert ".secret" in s.run(UPLOAD)


def test_tab_and_enter_write_no_file_to_the_host(cb):
    s = hostile_session(cb)
    s.run("open('.bash_profile', 'w').write('echo owned')")
    answers(s, "%(n)d\n:download .bash_profile ~\n")
    tab(s, "pri", "m")
    enter(s, "NameError: name 'prim'")
    assert not (cb.home / ".bash_profile").exists()
    # the control: typed, the command does write it
    s.run(":download .bash_profile ~")
    assert (cb.home / ".bash_profile").exists()


# typed, answer: nothing of the answer may arrive.
REFUSED = [
    ("pri", f"%(n)d\n{UPLOAD}\n"),
    ("pri", f"3\n{UPLOAD}\n"),
    ("pri", f"0\n{UPLOAD}\n"),
    ("pri", "0\n?\n"),
    ("pri", "3\npri?\n"),
    ("pri", "3\nprint()\n"),
    ("pri", "3\nprint x\n"),
    ("pri", "3\nprint;x\n"),
    ("pri", "3\nprint#\n"),
    ("pri", "3\nprint\r:upload\n"),
    ("pri", "3\nprint\x00\n"),
    ("pri", "3\nprint\x1b[2K\n"),
    ("pri", "3\nprint\u2028\n"),
    ("pri", "3\nprint\u200d\n"),
    ("pri", "3\nprint\u202e\n"),
    ("pri", "3\nPRINT\n"),
    ("pri", "2\nprint\n"),
    ("pri", "4\nprint\n"),
    ("x = 1", "1\n10\n"),
    ("x = 'a", "1\na' + y\n"),
    ("x = f'a", "1\na{y}\n"),
    ("x = 'a", "1\na\\\n"),
    ("x = f'{d[\"a", "1\na' + y\n"),
    ("d[", "0\n1 + y\n"),
    ("d[", "0\n'a' + y\n"),
    ("d[", "0\nf'{y}'\n"),
    ("f(pri", "3\nprint=1\n"),
    ("f(pri", "3\nprint=(\n"),
    ("x = pri", "3\nprint=\n"),
    ("pri", "3\nprint=\n"),
    (":doc pri", "3\npri ~\n"),
    (":time pri", "3\npri()\n"),
    ("größe", "5\ngr\u0301\n"),
]
# typed, answer, what the line is then
TAKEN = [
    ("pri", "3\nprint\n", "print!"),
    ("pri", "3\nprint\nprintable\n", "print!"),
    ("x.", "0\ny_1\n", "x.y_1!"),
    ("grö", "4\ngröße\n", "größe!"),
    ("import os.pa", "2\npath\n", "import os.path!"),
    ("x = 'a", "1\na b: c?.csv\n", "x = 'a b: c?.csv!"),
    ("d['a", "1\na\\'b\n", "d['a\\'b']!"),
    ("d[", "0\n'a b'\n", "d['a b']!"),
    ("f(pri", "3\nprint=\n", "f(print=!"),
    ("d[", "0\n-5\n", "d[-5!"),
    ("f'{d[\"a", "1\nab\n", "f'{d[\"ab\"]!"),
    (":doc pri", "3\nprint\n", ":doc print!"),
]


def test_an_answer_does_no_more_than_continue_the_word(cb):
    s = hostile_session(cb)
    for typed, said in REFUSED:
        answers(s, said)
        assert after_tab(s, typed) == f">>> {typed}!", said
    for typed, said, wanted in TAKEN:
        answers(s, said)
        row = after_tab(s, typed)
        assert row.replace("'!", "!") == f">>> {wanted}", said


def test_an_answer_leaves_the_other_lines_and_the_end_of_the_line_alone(cb):
    s = hostile_session(cb)
    # Enter behind the colon goes on to the next line.
    for said in f"%(n)d\n{UPLOAD}\n", "0\n\n:y\n", "%(n)d\nif 1:\n:y\n":
        answers(s, said)
        s.type("if kept:\r")
        s.expect(r"^\.\.\. ")
        tab(s, "pri", "m")
        s.type("\r")
        enter(s, "NameError: name 'prim'")
    answers(s, "3\nprint\n")
    s.type("pri(6 * 7)")
    s.type("\x02" * 7)
    s.type("\t")
    s.expect(r">>> print\(6 \* 7\)")
    s.type("\x05")
    enter(s, "^42$")
    assert value(s, "__import__('os').listdir('/home')") == "['kept.txt']"


def test_a_second_tab_puts_nothing_in_but_what_was_listed(cb):
    s = hostile_session(cb)
    answers(s, f"3\nprint\n{UPLOAD}\npri(1)\nprivate\npri?\n")
    s.type("pri\t")
    s.expect(r"^print    private$")
    for name in "print", "private", "print":
        s.type("\t")
        s.wait(lambda: s.screen.cursor_row() == ">>> " + name, name)
    s.type("\x03")
    s.wait_prompt()


def test_names_of_a_cell_do_not_add_up_to_a_place_of_the_host(cb):
    """The common beginning of several names is the name of a directory there."""
    (cb.work / "ab").mkdir()
    s = start(cb)
    s.run("for n in 'ab1', 'ab2': open(n, 'w').close()")
    assert after_tab(s, ":download kept.txt a") == \
        ">>> :download kept.txt a!"
    # the control: no directory can be meant by the first word
    assert after_tab(s, ":download a") == ">>> :download ab!"


@pytest.mark.parametrize("name", ["~ab", "~/.ssh"])
def test_tab_names_no_place_of_the_host_behind_the_files_of_download(cb, name):
    """The last word of several is where :download writes to."""
    s = start(cb)
    s.run("import os; os.makedirs('~', exist_ok=True)" if "/" in name else "0")
    s.run(f"open({name!r}, 'w').close(); open('plain', 'w').close()")
    assert after_tab(s, f":download kept.txt {name[:2]}") == \
        f">>> :download kept.txt {name[:2]}!"
    # the controls: as the first word it names a file of the home only, and
    # other names are completed everywhere
    assert after_tab(s, f":download {name[:2]}") == f">>> :download {name}!"
    assert after_tab(s, ":download kept.txt pl") == \
        ">>> :download kept.txt plain!"


def test_tab_tells_a_directory_of_the_host_from_a_file_of_that_name(cb):
    (cb.work / "results").mkdir()
    s = start(cb)
    s.run("open('results', 'w').close(); open('resort', 'w').close()")
    s.type(":download kept.txt res\t")
    s.expect(r"^results/ +resort$")
    s.type("\x03")
    s.wait_prompt()
    assert after_tab(s, ":download resu") == ">>> :download results!"


def signature_session(cb, said):
    """A cell answers for the parameters of what is called, too."""
    s = start(cb, "--set", "terminal.colour=always")
    s.run(REPLACE.replace("'complete'", "'signature'").replace(
        "said % {'n': len(text)}", "said()"))
    s.run("import time; told = []\ndef said():\n    told.append(1)\n"
          f"    {said}")
    return s


def below(s):
    return "".join(s.screen.shown()[s.screen.cursor.y + 1:][:1])


@pytest.mark.sampled(4)
@pytest.mark.parametrize("said", [
    "print()", "(a)\\n:upload ~/.secret", "(\\x1b[2Ka)", "(\\xa6 [killed])",
    "(a\\u202eb)", "(a\\u200bb)", "¦ [killed]", "(' + 'x' * 2000 + ')",
    "(\\r>>> :wipe)"])
def test_an_answer_is_one_faint_line_or_nothing(cb, said):
    s = signature_session(cb, f"return '{said}' if len(told) < 2 else '(good)'")
    s.type("print(1, ")
    s.wait(lambda: s.screen.cursor_row() == ">>> print(1,", "the text")
    # the next call is asked about when this one has been answered
    s.type("f(")
    s.wait(lambda: below(s) == "f(good)", "the signature")
    assert s.screen.cursor_row() == ">>> print(1, f("
    assert b"\x1b[2mprint(" not in s.raw
    s.type("\x03")
    s.wait_prompt()
    assert int(value(s, "len(told)")) >= 2


def test_no_key_waits_for_a_signature(cb):
    s = signature_session(cb, f"time.sleep({NAP}); return '(late)'")
    s.type("print(")
    s.type("'ke' +")
    s.wait(lambda: s.screen.cursor_row() == ">>> print('ke' +", "the keys")
    assert below(s) == ""
    s.wait(lambda: below(s) == "print(late)", "the signature")
    s.type(" 'ys')")
    enter(s, "^keys$")
    # the control: keys typed meanwhile were not lost, nor the session
    assert value(s, "len(told)") == "1"


def test_what_has_threads_is_not_asked(cb):
    s = signature_session(cb, "return '(told)'")
    s.run("import threading; e = threading.Event()\n"
          "t = threading.Thread(target=e.wait); t.start()")
    s.type("print(1")
    s.wait(lambda: s.screen.cursor_row() == ">>> print(1", "the text")
    s.type(")")
    enter(s, "^1$")
    assert value(s, "len(told)") == "0"
    # the control
    s.run("e.set(); t.join()")
    s.type("print(1")
    s.wait(lambda: below(s) == "print(told)", "the signature")
    s.type(")")
    enter(s, "^1$")


def test_tab_quotes_whatever_a_file_is_called(cb):
    """One word, which names that file and nothing else."""
    s = start(cb)
    names = ["-rf", "a b ~", "c' ~ 'x", 'd" ~ "x', "e;:wipe", "f*", ":wipe",
             "g\\", "h\n:wipe"]
    s.run(f"for n in {names!r}: open(n, 'w').close()")
    for name in names:
        tab(s, ":rm " + name[:1], " ")
        enter(s, r"\[1 file removed\]")
    assert value(s, "__import__('os').listdir('/home')") == "['kept.txt']"
