# SPDX-License-Identifier: MIT
"""docs/GRADING.md: its examples work as shown, and it has every key."""
import re
import shlex
import subprocess

import pytest
from course import HONEST, Course
import world

TOP = world.TESTS.parent
PAGE = (TOP / "docs" / "GRADING.md").read_text()
BLOCKS = [re.sub(r"^ {4}", "", b, flags=re.M).strip() for b in
          re.findall(r"(?:^ {4}.*\n|^\n(?= {4}))+", PAGE, re.M)]


def one_of(begin):
    found, = [b for b in BLOCKS if b.startswith(begin)]
    return found


@pytest.fixture
def course(cb):
    made = Course(cb, one_of("[grade]"))
    made.subs.rename(cb.work / "submissions")
    made.subs = cb.work / "submissions"
    made.add("ada/1", "print(2)\n")
    made.add("ada/2")
    made.add("bob/1", "print(2)\n")
    (made.subs / "eve").mkdir()
    (cb.base / "bin").mkdir()
    (cb.base / "bin/cellblock").symlink_to(world.CELLBLOCK)
    cb.env["PATH"] = f"{cb.base}/bin:{cb.env['PATH']}"
    return made


def test_the_first_run_shows_what_the_page_shows(course):
    command, _, table = one_of("$ cellblock").partition("\n")
    for _ in range(2):
        r = course.world.run(*shlex.split(command)[2:])
        assert (r.code, r.text.strip(), r.said) == (0, table, ""), r
    assert len(course.lines()) == 3


def test_machines_share_the_work_as_the_page_says(course):
    (course.base / "results").mkdir()
    first = one_of("cellblock --grade plan.ini submissions --share 0/3")
    for k in range(3):
        r = course.world.run(*shlex.split(
            first.replace("0/3", f"{k}/3").replace("/0.", f"/{k}."))[1:])
        assert r.code == 0, r
    r = subprocess.run(["bash", "-ec", one_of("cat results")],
                       cwd=course.base, env=course.world.env, text=True,
                       capture_output=True, check=True)
    assert "4 of 4" in r.stdout and "hw.py is missing" in r.stdout, r
    assert (course.base / "results/junit.xml").exists()


def test_the_test_with_every_key_is_a_test(cb):
    course = Course(cb, "[grade]\nprogram = hw.py\n\n" +
                    one_of("[test a table]"), people="x y\n",
                    expected="1  2\n")
    (cb.work / "people.csv").write_text("a\n")
    (cb.work / "weights-2.csv").write_text("3\n")
    (cb.work / "expected-sums.csv").write_text("4\n")
    course.add("ada", "import os, sys\nassert sys.argv[1:] == "
               "['--by', 'last name'], sys.argv\n"
               "assert input() == 'a'\nprint(1, 2)\nos.mkdir('report')\n"
               "n = int(open('weights.csv').read())\n"
               "open('report/sums.csv', 'w').write(f'\\n{n + 1}')\n")
    course.add("bob", HONEST)
    found = course.graded()
    assert found["ada"]["points"] == 5, found
    assert found["bob"]["points"] == 0


def test_the_page_has_every_key_member_and_option(cb):
    source = (TOP / "repl/grade/exercise.c").read_text()
    keys = re.findall(r'^\t\{"(\w+)", OF_(?:ALL|TEST)', source, re.M)
    assert len(keys) == 13, keys
    results = (TOP / "repl/grade/results.c").read_text()
    members = set(re.findall(r'emit_\w+\(\w+, "(\w+)"', results))
    assert len(members) > 10, members
    options = ["-j N", "-o RESULTS", "--junit FILE", "--share K/N", "--json"]
    for word in (*keys, *members, *options):
        assert re.search(rf"`{word}[`:]", PAGE), word
    said = cb.run("-h").text
    assert all(o.split()[0] in said for o in options)


def test_the_number_of_cheats_is_the_one_that_is_said():
    text = (world.TESTS / "grade" / "test_cheats.py").read_text()
    table = text.partition("CHEATS = {")[2].partition("\n}")[0]
    cheats = re.findall(r'^    "[\w-]+": \(', table, re.M)
    assert f"Tests try {len(cheats)} ways to cheat" in PAGE, len(cheats)


def test_the_script_for_slurm_wants_its_words(cb):
    script = str(TOP / "etc" / "slurm" / "cellblock-grade")
    r = subprocess.run(["sh", script, "plan.ini"], capture_output=True,
                       text=True, check=False)
    assert r.returncode == 2 and "usage: sbatch" in r.stderr, r


def test_the_script_merges_without_an_array(course):
    """It also drops an incomplete line that a task left."""
    script = str(TOP / "etc" / "slurm" / "cellblock-grade")
    env = course.world.env
    for k in range(2):
        subprocess.run(
            ["sh", script, "plan.ini", "submissions", "results"], check=True,
            cwd=course.base, capture_output=True,
            env={**env, "SLURM_ARRAY_TASK_ID": str(k),
                 "SLURM_ARRAY_TASK_COUNT": "2"})
    with open(course.base / "results/0.jsonl", "a") as f:
        f.write('{"submission": "bob", "poi')
    r = subprocess.run(
        ["sh", script, "plan.ini", "submissions", "results"], check=True,
        cwd=course.base, capture_output=True, text=True, env=env)
    assert "4 of 4" in r.stdout and "1 of 4" in r.stdout, r
    assert len(course.lines(course.base / "results/all.jsonl")) == 3
