# SPDX-License-Identifier: MIT
"""A plan: each error is said with its line, and a plan loosens nothing."""
import os

import pytest
from course import HONEST, PLAN, Course, whys
import world


@pytest.fixture
def course(cb):
    made = Course(cb)
    made.add("ada")
    return made


# The seconds of a limit that an honest program does not reach.
SHORT = int(3 * world.PATIENCE)

GRADE = "[grade]\nprogram = hw.py\n"
TEST = GRADE + "[test x]\n"

# A plan, the line of its error (0: of all of it), and words of it.
WRONG = [
    ("", 0, "program = FILE"),
    ("[test x]\noutput = 1\n", 0, "program = FILE"),
    (GRADE, 0, "[test NAME]"),
    (TEST, 0, "with a key"),
    ("[grade]\nprogram =\n[test x]\n", 2, "name of a file in the home"),
    ("[grade]\nprogram = ../hw.py\n", 2, "name of a file in the home"),
    ("[grade]\nprogram = /hw.py\n", 2, "name of a file in the home"),
    ("[grade]\nprogram = -c\n", 2, "without '-'"),
    (GRADE + "files = a, ../b\n[test x]\n", 3, "'../b'"),
    (GRADE + "program = b.py\n", 3, "only once; line 2"),
    (GRADE + "nosuch = 1\n", 3, "no key nosuch in [grade]"),
    (GRADE + "points = 1\n", 3, "no key points in [grade]"),
    (TEST + "program = a\n", 4, "no key program in [test x]"),
    (TEST + "points = many\n", 4, "a number from 0"),
    (TEST + "points = -1\n", 4, "a number from 0"),
    (TEST + "points = 99999999999999999999\n", 4, "a number from 0"),
    (TEST + "points = 1\npoints = 2\n", 5, "only once; line 4"),
    (TEST + "[test y]\n[test x]\npoints = 1\n[test x]\npoints = 1\n", 8,
     "only once; line 6"),
    (TEST + "exit = 256\n", 4, "a number from 0 to 255"),
    (TEST + "compare = fuzzy\n", 4, "lines, exact or words"),
    (TEST + "stdin = nosuch.txt\n", 4, "nosuch.txt: No such file"),
    (TEST + "stdout = .\n", 4, "expected a regular file"),
    (TEST + "stdout = fifo\n", 4, "expected a regular file"),
    (TEST + "stdout = /dev/zero\n", 4, "expected a regular file"),
    (TEST + "stdout = huge\n", 4, "at most 64 MiB"),
    (TEST + "output = 1\nstdout = a.txt\n", 5, "a text for that already"),
    (TEST + "stdin = a.txt\ninput = 1\n", 5, "a file for that already"),
    (TEST + "give = a.txt:\n", 4, "both sides"),
    (TEST + "give = a.txt:../up\n", 4, "'../up'"),
    (TEST + "give = a.txt:/etc/passwd\n", 4, "'/etc/passwd'"),
    (TEST + "makes = a.txt\n", 4, "NAME:EXPECTED"),
    (TEST + "makes = /etc/passwd:a.txt\n", 4, "'/etc/passwd'"),
    (TEST + "makes = out:nosuch\n", 4, "nosuch: No such file"),
    (TEST + "args = 'open\n", 4, ""),
    (TEST + f"[test {'y' * 41}]\npoints = 1\n", 5, "at most 40 bytes"),
    (TEST + f"[test {'y' * 300}]\npoints = 1\n", 4, ""),
    ("[test ]\noutput = 1\n", 1, ""),
    ("[testx]\noutput = 1\n", 1, "no section [testx]"),
    ("output = 1\n", 1, "[section]"),
    (TEST + "just words\n", 4, ""),
    (TEST + "a\0b = 1\n", 4, "NUL"),
    (TEST + "exit = 0\n[cell]\ntimeout = soon\n", 6, "timeout"),
    (TEST + "exit = 0\n[cell]\nnosuch = 1\n", 6, "nosuch"),
    (TEST + "exit = 0\n[cell]\ntimeout = 1s\ntimeout = 2s\n", 7, "only once"),
    (TEST + "stdout = a.txt\n[cell]\noutput = 1\n", 4, "cell.output allows"),
]


@pytest.mark.parametrize("text, line, words", WRONG)
def test_each_error_names_its_line(course, text, line, words):
    os.mkfifo(course.base / "fifo")
    (course.base / "a.txt").write_text("hello\n")
    with open(course.base / "huge", "wb") as f:
        f.truncate((64 << 20) + 1)
    course.plan(text)
    r = course.grade("-o", "results.jsonl")
    assert r.code == 2 and not r.out, r
    place = f"plan.ini:{line}: " if line else "plan.ini: "
    assert f"cellblock: {place}" in r.said, r
    assert words in r.said, r
    assert not course.results.exists()


def test_all_errors_are_said_at_once(course):
    course.plan("[grade]\nnosuch = 1\n[test x]\npoints = no\nexit = no\n")
    r = course.grade()
    assert [f":{n}:" in r.said for n in (2, 4, 5)] == [True] * 3, r


def test_a_plan_that_cannot_be_read(course):
    for argv, words in ((["--grade", "nosuch.ini", "subs"], "nosuch.ini"),
                        (["--grade", "no/plan.ini", "subs"], "no/plan.ini"),
                        (["--grade", "subs", "subs"], "subs")):
        r = course.world.run(*argv)
        assert r.code == 2 and words in r.said, r


@pytest.mark.parametrize("argv, words", [
    ([], "PLAN and DIR"),
    (["plan.ini"], "PLAN and DIR"),
    (["plan.ini", "subs", "more"], "no more"),
    (["plan.ini", "subs", "-j"], "-j wants a value"),
    (["plan.ini", "subs", "-j", "0"], "-j wants a number"),
    (["plan.ini", "subs", "-j", "65"], "-j wants a number"),
    (["plan.ini", "subs", "--share", "1"], "K/N"),
    (["plan.ini", "subs", "--share", "1/0"], "K/N"),
    (["plan.ini", "subs", "--share", "-1/2"], "K/N"),
    (["plan.ini", "subs", "--nosuch", "1"], "no option --nosuch"),
])
def test_a_wrong_command_line_is_said(course, argv, words):
    r = course.world.run("--grade", *argv)
    assert r.code == 2 and words in r.said, r


def test_a_directory_without_submissions(course):
    (course.base / "empty").mkdir()
    for name, words in (("empty", "empty"), ("nosuch", "No such file"),
                        ("plan.ini", "Not a directory")):
        r = course.world.run("--grade", "plan.ini", name)
        assert r.code == 1 and words in r.said, r


def test_files_are_found_beside_the_plan(course):
    """Wherever the run begins."""
    there = course.base / "there"
    there.mkdir()
    (there / "plan.ini").write_text(TEST + "stdin = a.txt\nstdout = b.txt\n")
    (there / "a.txt").write_text("2\n")
    (there / "b.txt").write_text("4\n")
    r = course.world.run("--grade", "there/plan.ini", "subs")
    assert r.code == 0 and "1 of 1" in r.text, r


def test_limits_of_the_plan_hold(course):
    course.plan(PLAN + f"[cell]\ntimeout = {SHORT}s\n"
                "[session]\nprocesses = 8\n")
    course.add("slow", "while True:\n    pass\n")
    found = course.graded()
    assert found["ada"]["points"] == 4
    assert f"{SHORT} s" in whys(found["slow"]), found
    assert found["slow"]["tests"][0]["limit"], found


def test_an_option_is_stronger_than_the_plan(course):
    course.plan(PLAN + "[cell]\ntimeout = 60s\n")
    course.add("slow", "while True:\n    pass\n")
    found = course.graded(options=["-s", "cell.timeout=1s"])
    assert "1 s" in whys(found["slow"]), found


@pytest.mark.root
@pytest.mark.skipif(not world.IS_ROOT, reason="only root writes /etc")
def test_a_locked_policy_is_only_tightened(course):
    etc = world.pathlib.Path("/etc/cellblock")
    etc.mkdir(exist_ok=True)
    conf = etc / "cellblock.conf"
    conf.write_text(f"[cell]\ntimeout = {2 * SHORT}s\n"
                    "[policy]\nlocked = yes\n")
    course.world.config("")
    try:
        course.plan(PLAN + "[cell]\ntimeout = 10m\n")
        r = course.grade()
        assert r.code == 2 and "plan.ini:14: cell.timeout" in r.said, r
        course.plan(PLAN + f"[cell]\ntimeout = {SHORT}s\n")
        course.add("slow", "import time\ntime.sleep(99)\n")
        found = course.graded()
        assert found["ada"]["points"] == 4
        assert f"{SHORT} s" in whys(found["slow"])
    finally:
        conf.unlink()


def test_the_plan_is_read_before_anything_is_begun(course):
    """And the sources of submissions are never imported by the grader."""
    (course.subs / "json.py").write_text("raise SystemExit('imported')\n")
    course.add("bob", HONEST, **{"random.py": "raise SystemExit(1)\n"})
    found = course.graded()
    assert found["bob"]["points"] == 4
