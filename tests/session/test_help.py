# SPDX-License-Identifier: MIT
"""The pages of :help."""
import pathlib
import re
import shutil
import subprocess

import pytest

from world import PATIENCE

TOP = pathlib.Path(__file__).resolve().parent.parent.parent

def page(s, name):
    return s.run(f":help {name}")


def test_each_command_has_a_page_with_examples(cb):
    s = cb.session("-q", size=(80, 76))
    table = re.findall(r"^:(\w+)", s.run(":help"), re.M)
    assert len(table) > 15, table
    for name in table:
        out = page(s, name)
        assert re.match(rf":{name}\b", out), out
        examples = re.findall(rf"^ {{4}}>>> :{name}", out, re.M)
        assert len(examples) >= 1 and len(out.split("\n\n")) >= 3, out


def test_a_page_says_what_the_manual_says(cb):
    mandoc = shutil.which("mandoc")
    if not mandoc:
        pytest.skip("no mandoc")
    manual = subprocess.run(
        [mandoc, "-Tutf8", "-O", "width=200", TOP / "man/cellblock.1"],
        capture_output=True, check=True).stdout.decode()
    manual = re.sub(r".\x08", "", manual).split()
    manual = " ".join(w.strip("‘’'") for w in manual)
    s = cb.session("-q", size=(80, 200))
    for name in re.findall(r"^:(\w+)", s.run(":help"), re.M):
        for part in page(s, name).split("\n\n"):
            words = " ".join(w.strip("‘’'") for w in part.split())
            assert words.replace("'", "’") in manual.replace("'", "’"), words


@pytest.mark.parametrize("name, of", [
    ("%time", ":time"), ("%%timeit", ":timeit"), ("%who", ":who"),
    ("len?", ":doc"), (":undo", ":undo"), ("upl", ":upload"),
    ("!ls -l", "Some habits"), ("ls", "Some habits"), ("%cd", "Some habits"),
    ("%", "Some habits"), ("%pip", "¦ [packages come from the host")])
def test_help_finds_the_page_of_what_stands_for_a_command(cb, name, of):
    s = cb.session("-q", size=(60, 100))
    assert page(s, name).startswith(of)
    assert "there is no command :nope" in page(s, "nope")


def test_the_magics_there_are_are_told(cb):
    s = cb.session("-q", size=(60, 100))
    for asked in "%lsmagic", "%magic":
        assert s.run(asked).startswith("Some habits"), asked
    assert ":help % has" in " ".join(s.run(":help").split())


@pytest.mark.parametrize("columns, term", [(40, "xterm"), (40, "dumb"),
                                           (80, "dumb")])
def test_a_page_is_folded_at_words(cb, columns, term):
    s = cb.session("-q", "-s", "terminal.colour=never", size=(70, columns),
                   env={"TERM": term})
    rows = page(s, "upload").split("\n")
    assert "    >>> :upload grades.csv" in rows, rows
    wide = cb.session("-q", size=(70, 200))
    assert " ".join(rows).split() == page(wide, "upload").split()
    assert page(s, "download").count("\n") > 20


def test_a_long_page_is_shown_in_the_pager(cb):
    s = cb.session("-q", size=(12, 40))
    s.type(":help upload\r")
    s.wait(lambda: s.screen.alternate, "the pager")
    s.type("q")
    s.wait_prompt()


def test_the_list_of_commands_is_shown_in_the_pager_if_it_is_long(cb):
    s = cb.session("-q", size=(24, 80))
    s.type(":help\r")
    s.wait(lambda: s.screen.alternate, "the pager")
    s.expect("^:upload .*")
    s.type("q")
    s.wait_prompt()
    s = cb.session("-q", size=(50, 80))
    rows = s.run(":help").split("\n")
    assert rows[0].startswith(":upload") and not s.screen.alternate
    # Each command has one line.
    assert all(r.startswith(":") for r in rows[:20]), rows


@pytest.mark.parametrize("term", ["xterm", "dumb"])
def test_the_list_names_only_keys_that_work(cb, term):
    s = cb.session("-q", "-s", "terminal.colour=never", size=(60, 80),
                   env={"TERM": term})
    words = " ".join(s.run(":help").split())
    assert "Ctrl-C" in words
    for key in "Tab completes", "Up recalls", "F1", "Ctrl-X Ctrl-E":
        assert (key in words) == (term == "xterm"), words


def test_a_command_that_is_forbidden_has_no_page(cb):
    s = cb.session("-q", "-s", "policy.commands=help limits", size=(40, 80))
    assert page(s, "limits").startswith(":limits")
    assert "there is no command :upload" in page(s, "upload")


def test_the_last_error_is_explained(cb):
    s = cb.session("-q", "-s", f"cell.timeout={2 * PATIENCE:.0f}s",
                   size=(40, 60))
    assert "no cell has ended with an error" in s.run(":explain")
    s.run("total = 3")
    s.run("print(totl)")
    out = s.run(":explain")
    assert out.startswith("NameError in <cell 2>, line 1\n\n    print(totl)\n")
    assert "Did you mean total?" in out
    s.run("while True:\n    try: pass\n    except: pass")
    s.run("import os; os.kill(os.getpid(), 11)")
    assert s.run(":explain").startswith("Python itself crashed.")


def test_an_explanation_cannot_write_to_the_terminal(cb):
    s = cb.session("-q", size=(40, 80))
    s.run("raise LookupError('a\\x1b[31m\\nb' * 2)")
    assert "\\x1b[31m" in s.run(":explain")


def test_an_explanation_runs_nothing_of_the_error(cb):
    s = cb.session("-q", size=(40, 80))
    s.run("class Odd(LookupError):\n    def __str__(self):\n"
          "        told.append(1)\n        return 'odd'\n")
    s.run("told = []")
    s.run("raise Odd")
    before = s.run("len(told)")
    assert "odd" in s.run(":explain")
    assert s.run("len(told)") == before


@pytest.mark.parametrize("cell, said", [
    ("import os; os.rename('a.csv', 'b.csv')", "There is no file a.csv in"),
    ("""open("it's")""", "There is no file it's in"),
    ("import urllib.request as u; u.urlopen('http://127.0.0.1:9')", "no network"),
    ("import urllib.error as u; raise u.HTTPError('u', 404, 'Not Found', {}, None)",
     "HTTP Error 404: Not Found"),
])
def test_an_explanation_names_what_is_missing(cb, cell, said):
    s = cb.session("-q", "-t", "60s", size=(40, 100))
    s.run(cell)
    assert said in s.run(":explain")
