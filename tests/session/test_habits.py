# SPDX-License-Identifier: MIT
"""Lines that people type out of habit from other prompts."""
import re

import pytest

import hindered


@pytest.fixture(autouse=True)
def _slow(cb):
    """Python has ten seconds for what is asked of it, in the place of one, which
    a busy host may take to import what it needs for that."""
    cb.env.update(hindered.slow(cb.base))


def test_percent_time_is_the_command(session):
    assert re.search(r"\[.* · CPU ", session.run("%time sum(range(10))"))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("cell", [
    ":timeit sum(x)", "%timeit sum(x)", "%timeit -n 10 -r 4 sum(x)"])
def test_timeit_measures_with_the_names_of_the_session(cb, cell):
    # Three seconds of computing, which a busy host makes ten.
    session = cb.session("-t", "60s")
    session.run("x = range(100)")
    out = session.run(cell, 60)
    found = re.fullmatch(r"([\d.]+) (ns|µs|ms) ± [\d.]+ \2 a loop "
                         r"\((\d) runs of (\d+)\)", out)
    assert found and float(found[1]) > 0, out
    if "-n" in cell:
        assert found[3] == "4" and found[4] == "10"
    assert session.run("'timer' in globals(), 'it' in globals()") == (
        "(False, False)")


def test_an_error_in_what_is_measured_is_shown(session):
    assert "NameError: name 'nothing'" in session.run("%timeit nothing")
    assert "usage: :timeit CELL" in session.run("%timeit")


@pytest.mark.parametrize("line", ["%%bash", " %%bash"])
def test_a_cell_below_a_percent_line_is_taken_whole(session, line):
    session.type(line + "\r")
    session.wait(lambda: session.screen.cursor_row() == "...", "a line")
    session.type("for i in 1 2; do echo line$i; done\r")
    session.wait(lambda: session.screen.cursor_row() == "...", "a line")
    session.type("\r")
    session.expect("^line1\nline2$")
    session.wait_prompt()


def test_the_jails_shell_runs_a_command(session):
    assert session.run("!echo \"it's $((6 * 7))\" \\\\ ü") == (
        "it's 42 \\ ü")
    assert session.run("!exit 3") == "exit status 3"
    assert session.run("!kill -9 $$") == "signal 9"
    assert session.run("!cat /etc/hostname; hostname") != ""
    assert "'cellblock'" in session.run("!hostname | sed s/.*/\"'&'\"/")


def test_a_shell_command_is_interrupted(session):
    session.enter("!echo go; sleep 100")
    session.expect("^go$")
    session.type("\x03")
    session.wait_prompt()
    assert session.run("6 * 7") == "42"


def test_words_of_a_shell_work_unless_python_has_the_name(session):
    session.run("mkdir data")
    assert session.run("cd data") == "/home/data"
    session.run("open('a.txt', 'w').close()")
    assert session.run("ls") == "a.txt"
    assert "a.txt" in session.run("ls -l")
    assert session.run("pwd") == "/home/data"
    assert session.run("cd") == "/home"
    session.run("ls = [1, 2]")
    session.run("l = 1")
    assert session.run("ls") == "[1, 2]"
    assert "TypeError" in session.run("ls -l")
    assert session.run("cat = 'miau'") == ""
    assert session.run("cat") == "'miau'"


def test_percent_run_brings_the_names_of_a_file(session):
    session.run("open('p.py', 'w').write('a = __name__\\nprint(5)\\n');")
    assert session.run("%run p.py").splitlines()[-1] == "5"
    assert session.run("a, __name__") == "('__main__', '__main__')"


def test_a_traceback_of_percent_run_begins_in_the_file(session):
    session.run("open('p.py', 'w').write('def f(): 1/0\\nf()\\n');")
    assert re.findall(r'File "(.*)", line (\d)', session.run("%run p.py")
                      ) == [("p.py", "2"), ("p.py", "1")]
    assert session.run("%run none.py").startswith("FileNotFoundError")
    assert "<string>" in session.run("exec('1/0')")


@pytest.mark.parametrize("line, said", [
    ("%pip install requests", "python.packages"),
    ("pip install requests", "python.packages"),
    ("!pip install requests", "python.packages"),
    ("!pip3  install requests", "python.packages"),
    ("%matplotlib inline", "not needed"),
    ("%nonsense  1", "[there is no %nonsense here · :help"),
])
def test_other_habits_are_answered_in_a_line(session, line, said):
    out = session.run(line)
    assert said in out.replace("\n\N{BROKEN BAR} ", "") and "Traceback" not in out
    assert out.startswith("¦ ")


def test_python_that_looks_like_a_habit_is_python(session):
    session.run("x = 17")
    assert session.run("x\\\n%5") == "2"
    assert session.run("f'{7!r}'") == "'7'"


# ---- the person's own text ----

def in_editor(session, command, text):
    """The command puts this text into the editor; the line is then cleared."""
    row = session.screen.here()
    session.type(command + "\r")
    session.wait(lambda: session.screen.here() > row and
                 session.screen.cursor_row() == ">>> " + text, f"{text!r}")
    session.type("\x03")
    session.wait_prompt()


@pytest.mark.parametrize("line", [
    "!echo one", "%run p.py", "ls -l", "%timeit 1", "names = !echo one"])
def test_edit_brings_back_what_was_typed(cb, line):
    session = cb.session("-t", "60s")       # %timeit computes for seconds
    session.run("open('p.py', 'w').close()")
    session.run(line)
    in_editor(session, ":edit", line)
    assert session.run("_i, In[2]") == f"({line!r}, {line!r})"


def test_a_saved_script_runs_where_there_are_no_habits(cb, session):
    for cell in ("names = !echo one; echo two", "ls -l", "!echo {names[0]}",
                 "%run none.py", "print(len(names), '%d' % 3)",
                 "for n in names:\n    !echo {n}"):
        session.run(cell)
    session.run(":save s.py")
    script = (cb.work / "s.py").read_text()
    assert "# ls -l\n" in script and "%run" not in script
    assert "habit" not in script
    done = cb.run("s.py")
    assert sorted(done.text.split("\n")) == [
        "", "2 3", "one", "two", "{names[0]}"]


def test_a_traceback_shows_the_line_that_was_typed(session):
    out = session.run("%cd nowhere")
    assert out.splitlines()[1:3] == [
        '  File "<cell 1>", line 1, in <module>', "    %cd nowhere"]


# ---- the shell and Python ----

def test_a_command_gives_a_list_of_lines(session):
    session.run("x = !echo one; echo two")
    assert session.run("x, x.s, x.n, x.l, len(x)") == (
        "(['one', 'two'], 'one two', 'one\\ntwo', ['one', 'two'], 2)")
    session.run("a, b = !echo 1; echo 2")
    assert session.run("a + b") == "'12'"
    assert session.run("y = !false") == ""
    assert session.run("y, _exit_code") == "([], 1)"
    session.run("import pickle")
    assert session.run("pickle.loads(pickle.dumps(x))") == "['one', 'two']"


@pytest.mark.parametrize("line, said", [
    ("!echo {x + 1} $x {s!r} {x:03d}", "6 5 it 005"),
    ("!echo {nosuch} $nosuch. {a,b} {}", "{nosuch} . {a,b} {}"),
    ("!echo $o.real $s.txt", "5 it.txt"),
    ("!echo '$x' $$x {{x}}", "$x {x}"),
    ("!echo a b | awk '{print $2}'", "b"),
    ("!HOME=5; echo $HOME", "5"),
    ("!echo {d['k'][\"n\"]}", "7"),
    ("!exit {x}", "exit status 5"),
    ("%cd {s}", "/home/it"),
])
def test_a_line_of_the_shell_takes_values_of_python(session, line, said):
    session.run("x, s, o = 5, 'it', 5; d = {'k': {'n': 7}}")
    session.run("import os; os.mkdir('it')")
    assert session.run(line) == said


def test_local_names_are_seen_in_a_function(session):
    session.run("def f(n):\n    out = !echo {n}\n    return out")
    assert session.run("f(8)") == "['8']"


def test_habits_stand_among_python(session):
    session.paste("x = 2\n%matplotlib inline\n!echo $x\n%time x + 1")
    session.wait(lambda: "%time" in session.screen.cursor_row(), "the cell")
    session.type("\r")
    session.expect(r"^2\n[\d.]+ .?s · CPU .*\n3$")
    session.wait_prompt()


def test_an_error_of_python_stays_pythons(session):
    session.paste("x = '''\n!ls\n''' +")
    session.wait(lambda: "+" in session.screen.cursor_row(), "the cell")
    session.type("\r")
    session.expect(r"^(!ls\n| +)''' \+\n +\^\nSyntaxError: invalid syntax")
    session.wait_prompt()


@pytest.mark.parametrize("line", ["%run p.py", "run p"])
def test_a_file_that_fails_leaves_its_names(session, line):
    session.run("open('p.py', 'w').write('a = 5\\n1/0\\n');")
    assert "ZeroDivisionError" in session.run(line)
    assert session.run("a") == "5"


# ---- other habits ----

def test_the_last_error_is_debugged_at_once(session):
    assert "no cell has ended" in session.run("%debug")
    session.run("def f(n):\n    return 1 / n")
    session.run("f(0)")
    session.type("%debug\r")
    session.expect(r"-> return 1 / n\n\(Pdb\)")
    session.type("p 'n is', n\r")
    session.expect(r"^\('n is', 0\)")
    session.type("q\r")
    session.wait_prompt()
    assert session.run("%tb").splitlines()[-1] == (
        "ZeroDivisionError: division by zero")


def test_names_are_searched_with_a_pattern(session):
    session.run("my_print = 1")
    assert session.run("*PRINT*?").splitlines() == ["my_print", "print"]
    session.run("import os")
    assert session.run("os.*cwd?").splitlines() == ["os.getcwd"]
    assert "nothing is known" in session.run("*nowhere*?")


@pytest.mark.parametrize("line", ["%who int", "who int", ":who int float"])
def test_who_shows_the_variables_of_a_type(session, line):
    session.run("a, b = 1, 'x'")
    assert [r.split()[0] for r in session.run(line).splitlines()] == ["a"]
    assert "no variable is of that type" in session.run("%who bytes")


def test_history_has_numbers_and_patterns(session):
    for cell in "first = 1", "second = 2":
        session.run(cell)
    assert session.run("%hist -n").splitlines() == [
        "   1: first = 1", "   2: second = 2"]
    assert session.run("%history -g f*1") == "first = 1"
    assert session.run("history -n sec") == "   2: second = 2"


@pytest.mark.parametrize("line, said", [
    ("%reset -f", r"(?s)¦ \[a fresh Python .*"),
    ("%reset -x", r"(?s).*usage: :reset \[-f\].*"),
    ("%cat a.txt", "text"),
    ("%less a.txt", "text"),
    ("cp a.txt b.txt", ""),
    ("rm a.txt", ""),
    ("%pinfo len", r"(?s)len\(obj, /\).*"),
    ("%psource f", r"def f\(\): return 5"),
    ("env HOME", "'/home'"),
    ("%env A=5", "env: A=5"),
    ("timeit 1 + 1", r"[\d.]+ (ns|µs) ± .*"),
    ("time 20 + 1", r"21\n¦ \[.* · CPU .*"),
    ("whos", r"(?s)json +module .*\nf +function .*"),
    ("%store  ", r"(?s)¦ \[:detach keeps the session .*"),
    ("%timeit?", r"(?s):timeit cell\n.*"),
    ("%nosuch?", r"(?s).*there is no .*"),
    ("%nosuch  ", r"¦ \[there is no %nosuch here · :help % says which there are\]"),
])
def test_other_habits_do_what_they_say(cb, line, said):
    session = cb.session("-t", "60s")       # timeit computes for seconds
    session.run("import json, inspect; print('text', file=open('a.txt', 'w'))")
    session.run("def f(): return 5")
    out = session.run(line, 60)
    assert re.fullmatch(said, out), out


def test_clear_clears_the_screen(session):
    session.run("print('seen')")
    assert "seen" in session.screen_text()
    session.type("clear\r")
    session.wait(lambda: "seen" not in session.screen_text(), "a clear screen")
    session.wait_prompt()


@pytest.mark.parametrize("line", [
    "time in [5]", "rm = 1", "who, run = 1, 2", "env is None", "cp or 3"])
def test_a_bare_word_in_python_is_python(session, line):
    out = session.run(line)
    assert not out or "NameError" in out


def test_a_name_of_the_person_is_no_habit(session):
    session.run("import time; who = run = 7")
    assert session.run("who") == "7"
    assert "module 'time'" in session.run("time")
    assert "SyntaxError" in session.run("run p.py")


# ---- what stands below a line of %% ----

def whole(session, cell):
    """Paste a cell, and run it from where the cursor is. Returns what it shows."""
    session.wait_prompt()
    session.paste(cell)
    session.wait(lambda: session.screen.cursor_row() ==
                 "... " + cell.split("\n")[-1], "the cell")
    row = session.screen.here() + 1
    session.type("\x1b\r")
    session.wait(lambda: session.screen.here() >= row and session.at_prompt(),
                 "the prompt")
    return "\n".join(session.screen.rows(row, session.screen.here()))


def test_a_script_below_a_percent_line_is_as_it_was_typed(session):
    session.run("x = 5")
    assert whole(session, "%%bash\nfor x in a b; do echo $x {x} {{; done") == (
        "a {x} {{\nb {x} {{")
    whole(session, "%%writefile 'f{x}.py'\nprint(f'{x}', {x})")
    assert session.run("open('f5.py').read()") == (
        "\"print(f'{x}', {x})\\n\"")
    # the control: a command goes on behind a backslash
    assert whole(session, "!echo {x} \\\n $x") == "5 5"


def test_percent_percent_bash_is_bash(session):
    assert session.run("!echo $BASH_VERSION") == ""
    assert whole(session, "%%bash\necho {1..3} $((2 ** 3))") == "1 2 3 8"


def test_what_stands_beside_timeit_runs_before_it(session):
    session.run("ran = []")
    out = whole(session, "%%timeit -n 3 -r 2 ran.append(0)\nran.append(1)")
    assert re.fullmatch(r".* a loop \(2 runs of 3\)", out), out
    assert session.run("ran") == "[0, 1, 1, 1, 0, 1, 1, 1]"
    out = whole(session, "%%timeit -n 3 -r 2\nran.append(1)")
    assert re.fullmatch(r".* a loop \(2 runs of 3\)", out), out


# ---- more of them ----

def test_display_shows_values_and_leaves_the_last_one(session):
    session.run("7")
    assert session.run("for x in 1, 'a', [2]: display(x)") == "1\n'a'\n[2]"
    assert session.run("_") == "7"
    assert session.run("display(8, 9)") == "8\n9"
    assert session.run("_") == "7"
    session.run("display = 3")
    assert session.run("display") == "3"


def test_prun_says_where_time_goes(session):
    session.run("def f(n): return sorted(range(n))")
    out = session.run("%prun x = f(5)")
    assert "function calls" in out and re.search(r"1\(f\)", out), out
    assert session.run("x") == "[0, 1, 2, 3, 4]"
    assert "ZeroDivisionError" in session.run("%prun 1/0")


def test_a_directory_that_is_gone_is_left(session):
    session.run("mkdir d")
    assert session.run("cd d") == "/home/d"
    session.run("import os; os.rmdir('/home/d')")
    assert session.run("cd /home") == "/home"


def test_nothing_is_debugged_where_no_line_ran(session):
    session.run("1 +* 2")
    assert "no line ran" in session.run("%debug")
    session.run("import sys; sys.last_value = ValueError('by hand')")
    assert session.run("%tb") == "ValueError: by hand"


def test_run_takes_no_option_for_a_file(session):
    session.run("open('p.py', 'w').write('globals()[1] = 5; a = 3\\n');")
    assert "%run [-i] FILE" in session.run("%run -t p.py")
    assert session.run("%run p.py") == ""
    assert session.run("a") == "3"


@pytest.mark.parametrize("line, said", [
    ("%hist -n 2-3", "   2: b = 2\n   3: c = 3"), ("%hist -n 2", "   2: b = 2"),
    ("%hist -n 7-9", "¦ [nothing in the history matches]"),
    ("%hist -n c", "   3: c = 3")])
def test_cells_are_listed_by_their_numbers(session, line, said):
    for cell in "a = 1", "b = 2", "c = 3":
        session.run(cell)
    assert session.run(line) == said


def test_a_cell_is_recalled_by_its_number(session):
    session.run("6 * 7")
    session.run("x = 1")
    session.type("%recall 1\r")
    session.wait(lambda: session.screen.cursor_row() == ">>> 6 * 7", "the cell")
    session.type("\r")
    session.expect("^42$")
    session.wait_prompt()
