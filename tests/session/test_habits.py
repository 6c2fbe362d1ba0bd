# SPDX-License-Identifier: MIT
"""What people type out of habit from other prompts."""
import re

import pytest


def test_percent_time_is_the_command(session):
    assert re.search(r"\[.* · CPU ", session.run("%time sum(range(10))"))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("cell", [
    ":timeit sum(x)", "%timeit sum(x)", "%timeit -n 10 -r 4 sum(x)"])
def test_timeit_measures_with_the_names_of_the_session(session, cell):
    session.run("x = range(100)")
    out = session.run(cell, 25)
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


def test_a_cell_below_a_percent_line_is_taken_whole(session):
    session.type("%%bash\r")
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
    assert session.run("x = 17\nx\\\n%5") == "2"
    assert session.run("f'{7!r}'") == "'7'"
