# SPDX-License-Identifier: MIT
"""Results are kept whatever ends a run, and a later run goes on from them."""
import json
import os
import signal
import subprocess
import time

import pytest
from course import HONEST, Course, by_name
from hosttree import Tree, stat_of, until
from slurm import command_of
import world

pytestmark = pytest.mark.both       # the jails of root are others


@pytest.fixture
def course(cb):
    return Course(cb)


def fill(course, n, source=HONEST):
    for i in range(n):
        course.add(f"s{i:02}", source)


def without(kind, call):
    return (world.PYTHON, "-B", str(world.TESTS / "fallback" / "without.py"),
            kind, call, "--")


def begin(course, *args, **more):
    """A run that goes on in the background."""
    return course.world.popen(
        *course.argv("-o", "results.jsonl", "-j", "1", *args),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, **more)


def await_lines(course, n, process):
    """Wait until the run has written n results."""
    end = time.monotonic() + 60 * world.PATIENCE
    while not course.results.exists() or len(course.lines()) < n:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end, "no results"
        time.sleep(0.01)


def check_all(course, n):
    """Each of n submissions has one line, and the right verdict."""
    found = by_name(course.results.read_text())
    assert len(found) == n, sorted(found)
    assert all(f["points"] == 4 for f in found.values()), found


def test_nothing_is_graded_twice(course):
    fill(course, 3)
    assert course.grade("-o", "results.jsonl").code == 0
    before = course.results.read_bytes()
    r = course.grade("-o", "results.jsonl")
    assert r.code == 0 and r.text.count("4 of 4") == 3, r
    assert course.results.read_bytes() == before


def test_what_has_changed_is_graded_again(course):
    fill(course, 2)
    course.add("ver/1")
    course.grade("-o", "results.jsonl")
    course.add("s00", "print(2)\n")
    course.add("ver/2")
    course.grade("-o", "results.jsonl")
    names = [one["submission"] for one in course.lines()]
    assert sorted(names[3:]) == ["s00", "ver"], names
    found = {one["submission"]: one for one in course.lines()}
    assert found["s00"]["points"] == 1 and found["ver"]["version"] == 2
    # A file that the plan names.
    course.plan("[grade]\nprogram = hw.py\n[test x]\nstdin = in.txt\n"
                "output = 2\n", **{"in": "1\n"})
    course.grade("-o", "results.jsonl")
    assert len(course.lines()) == 8
    (course.base / "in.txt").write_text("2\n")
    r = course.grade("-o", "results.jsonl")
    assert len(course.lines()) == 11 and "expected '2', not '4'" in r.text, r


def test_an_interrupt_keeps_what_is_done(course):
    fill(course, 12, "import time\ntime.sleep(0.2)\n" + HONEST)
    p = begin(course)
    await_lines(course, 2, p)
    p.send_signal(signal.SIGINT)
    out, err = p.communicate(timeout=60 * world.PATIENCE)
    assert p.returncode == 130, (out, err)
    done = course.lines()
    assert 2 <= len(done) < 12
    assert b"4 of 4" in out and b"not graded" in out, out
    assert course.grade("-o", "results.jsonl").code == 0
    assert course.lines()[:len(done)] == done
    check_all(course, 12)


def test_an_interrupted_table_has_the_earlier_results(course):
    """Of submissions that the run has not reached, unless they have changed."""
    fill(course, 6)
    assert course.grade("-o", "results.jsonl").code == 0
    course.add("s01", "import time\ntime.sleep(30)\n" + HONEST)
    course.add("s04", "print(3)\n")
    course.add("s06", HONEST)
    p = begin(course)
    tree = Tree(p.pid)
    until(lambda: any(command_of(pid).endswith(b"hw.py\0")
                      for _, pid in tree.inside()), "the program")
    p.send_signal(signal.SIGINT)
    out, err = p.communicate(timeout=60 * world.PATIENCE)
    assert p.returncode == 130 and len(course.lines()) == 6, (out, err)
    rows = {row.split()[0]: row for row in out.decode().splitlines() if row}
    for name in "s00", "s02", "s03", "s05":
        assert "4 of 4" in rows[name] and "not graded" not in rows[name], rows
    for name in "s01", "s04", "s06":
        assert "not graded" in rows[name] and " of " not in rows[name], rows


def test_a_run_that_is_killed_loses_and_repeats_nothing(course):
    fill(course, 10, "import time\ntime.sleep(0.1)\n" + HONEST)
    for wanted in (1, 3, 6):
        p = begin(course)
        await_lines(course, wanted, p)
        tree = Tree(p.pid)
        p.kill()
        p.communicate()
        tree.wait_gone()
    done = course.lines()
    assert course.grade("-o", "results.jsonl").code == 0
    assert course.lines()[:len(done)] == done
    check_all(course, 10)


def test_a_torn_last_line_is_graded_again(course):
    fill(course, 3)
    course.grade("-o", "results.jsonl")
    whole = course.results.read_bytes()
    last = whole.splitlines(keepends=True)[-1]
    for n in (1, 10, 30, len(last) - 1):
        course.results.write_bytes(whole[:len(whole) - len(last)] + last[:n])
        r = course.grade("-o", "results.jsonl")
        assert r.code == 0, r
        check_all(course, 3)


OTHERS = [b"# notes\n", b'{"cells": []}', b'{"cells": []}\n', b"\x7fELF\0\0",
          b'{"submission": "x"}\n', b"\n", b"[]\n", b'{"s', b'\xff\xfe{\0',
          b'{"submission": "a", "digest": 3, "tests": []}\n', b"nothing"]


@pytest.mark.parametrize("content", OTHERS)
def test_another_file_is_refused_and_stays(course, content):
    fill(course, 1)
    course.results.write_bytes(content)
    r = course.grade("-o", "results.jsonl")
    if content == b'{"s':           # the beginning of a result
        assert r.code == 0
        return
    assert r.code == 1 and "no file of results" in r.said, r
    assert "line 1" in r.said and not r.out, r
    assert course.results.read_bytes() == content


def test_a_line_in_the_middle_that_is_none_is_named(course):
    fill(course, 2)
    course.grade("-o", "results.jsonl")
    text = course.results.read_bytes()
    first, second = text.splitlines(keepends=True)
    course.results.write_bytes(first + b"{}\n" + second)
    r = course.grade("-o", "results.jsonl")
    assert r.code == 1 and "line 2 is no result" in r.said, r


def test_results_are_a_file_elsewhere(course):
    fill(course, 1)
    os.mkfifo(course.base / "fifo")
    for path, words in ((".", "Is a directory"), ("/dev/null", "no regular"),
                        ("fifo", "no regular"), ("no/such", "No such file"),
                        ("subs/r.jsonl", "among the submissions"),
                        ("subs/s00/r", "among the submissions")):
        r = course.grade("-o", path)
        assert r.code == 1 and words in r.said, r
    r = course.grade("-o", "r", "--junit", "r")
    assert r.code == 1 and "same file" in r.said, r
    r = course.grade("--junit", "subs/j.xml")
    assert r.code == 1 and "among the submissions" in r.said, r
    assert [p.name for p in course.subs.rglob("*")] == ["s00", "hw.py"]


def test_two_runs_do_not_write_one_file(course):
    fill(course, 6, "import time\ntime.sleep(0.5)\n" + HONEST)
    p = begin(course)
    await_lines(course, 1, p)
    r = course.grade("-o", "results.jsonl")
    assert r.code == 1 and "another run writes to" in r.said, r
    p.communicate(timeout=60 * world.PATIENCE)
    assert p.returncode == 0
    check_all(course, 6)


@pytest.mark.root
@pytest.mark.skipif(not world.IS_ROOT, reason="only root mounts")
def test_a_full_disk_is_an_error_and_no_loss(course):
    fill(course, 20)
    disk = course.base / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k,nr_inodes=8",
                    "tmpfs", disk], check=True)
    try:
        r = course.grade("-o", "disk/results.jsonl")
        assert r.code == 1, r
        assert "write a result: No space left on device" in r.said, r
        assert "not graded" in r.text and "4 of 4" in r.text, r
        kept = (disk / "results.jsonl").read_text()
        assert kept.endswith("}\n") and json.loads(kept.splitlines()[-1])
        subprocess.run(["mount", "-o", "remount,size=1m", disk], check=True)
        assert course.grade("-o", "disk/results.jsonl").code == 0
        found = by_name((disk / "results.jsonl").read_text())
        assert len(found) == 20
        assert all(f["points"] == 4 for f in found.values())
    finally:
        subprocess.run(["umount", disk], check=True)


def test_a_report_that_cannot_be_written_is_an_error(course):
    fill(course, 1)
    for args in ((), ("--json",)):
        r = course.grade(*args, wrapper=("sh", "-c", 'exec "$@" >/dev/full',
                                         "sh"))
        assert r.code == 1 and "standard output" in r.said, r
    r = course.grade("--junit", "/dev/full")
    assert r.code == 1 and "/dev/full" in r.said, r


@pytest.mark.parametrize("lacks, options, words", [
    (("ENOSYS", "landlock_create_ruleset"),
     ["-s", "jail.require=landlock"], "landlock"),
    (("EPERM", "pivot_root"), [], "build the jail")])
def test_where_there_is_no_jail_there_is_no_result(
        course, lacks, options, words):
    fill(course, 3)
    r = course.grade("-o", "results.jsonl", "--json", options=options,
                     wrapper=without(*lacks))
    assert r.code == 125 and words in r.said and not r.out, r
    assert len(r.said.splitlines()) <= 3, r
    assert not course.lines()


def test_a_jail_that_breaks_costs_no_other_its_result(course):
    """The next run grades its own submission."""
    fill(course, 4)
    course.add("s01", "import time\ntime.sleep(5)\n" + HONEST)
    p = begin(course, "-j", "1")
    await_lines(course, 1, p)
    tree = Tree(p.pid)

    def warden():
        """Of the jail whose program is asleep."""
        for _, pid in tree.inside():
            if command_of(pid).endswith(b"hw.py\0"):
                return int(stat_of(int(stat_of(pid)[1]))[1])
        return None
    os.kill(until(warden, "the program"), signal.SIGKILL)
    out, err = p.communicate(timeout=60 * world.PATIENCE)
    assert p.returncode == 125 and b"s01: " in err, (out, err)
    assert [o["submission"] for o in course.lines()] == ["s00", "s02", "s03"]
    assert b"not graded" in out, out
    assert course.grade("-o", "results.jsonl").code == 0
    check_all(course, 4)


def test_the_rows_of_merged_files_are_all(course):
    fill(course, 7)
    for k in range(3):
        assert course.grade("-o", f"r{k}", "--share", f"{k}/3").code == 0
    course.results.write_bytes(b"".join(
        (course.base / f"r{k}").read_bytes() for k in range(3)))
    before = course.results.read_bytes()
    r = course.grade("-o", "results.jsonl")
    assert r.code == 0 and r.text.count("4 of 4") == 7, r
    assert course.results.read_bytes() == before
    check_all(course, 7)
