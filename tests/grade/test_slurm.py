# SPDX-License-Identifier: MIT
"""Grading as a job array of a real Slurm, of which a node is killed."""
import json
import tempfile

import pytest
from course import Course, by_name, whys
from hosttree import until
import slurm
import test_cheats
import world

pytestmark = [
    pytest.mark.root, pytest.mark.sampled, pytest.mark.limit(400),
    pytest.mark.skipif(not world.WHOLE, reason="minutes of Slurm: make test-all"),
    pytest.mark.skipif(bool(slurm.missing()) or not world.IS_ROOT,
                       reason=slurm.missing() or "root starts the daemons")]

SCRIPT = world.TESTS.parent / "etc" / "slurm" / "cellblock-grade"
PLAN = """\
[grade]
program = hw.py
[cell]
timeout = 60s
[test one]
input = 1
output = 2
[test two]
input = 2
output = 4
"""
GOOD = "import time\ntime.sleep(0.2)\nprint(int(input()) * 2)\n"
HALF = "import time\ntime.sleep(0.2)\nprint(2)\n"
# Looks for other submissions, and for what Slurm tells its jobs.
PEEK = """\
import os
found = [n for n in os.environ
         if n.startswith(("SLURM", "MUNGE", "CELLBLOCK"))]
for base in "/home", "/tmp", "/run", "/srv", "/var", "/mnt":
    for folder, dirs, names in os.walk(base):
        found += [folder + "/" + n for n in dirs + names
                  if n.startswith(("s0", "munge", "slurm", "subs"))]
for pid in [p for p in os.listdir("/proc") if p.isdigit()]:
    try:
        line = open(f"/proc/{pid}/cmdline", "rb").read()
        if b"slurm" in line or b"grade" in line:
            found.append(line)
    except OSError:
        pass
print("saw", found)
"""
TASKS = 6
STUDENTS = 60


@pytest.fixture
def cluster():
    """In a directory with a short name: slurmstepd makes sockets below it."""
    for tries in range(5):
        with tempfile.TemporaryDirectory(prefix="cb", dir="/tmp") as base:
            made = slurm.Cluster(base)
            try:
                if made.start():
                    yield made
                    return
                assert tries < 4, made.logs()
            finally:
                made.close()


def submit(cluster, course, *options):
    out = cluster.ask(
        "sbatch", "--parsable", f"--chdir={course.base}",
        f"--export=ALL,CELLBLOCK={world.CELLBLOCK},HOME={course.world.home}",
        f"--output={course.base}/out-%a", *options, SCRIPT,
        "plan.ini", "subs", "results")
    return out.strip()


def lines_of(course):
    """All whole lines of the tasks' results."""
    return [json.loads(line)
            for path in sorted((course.base / "results").glob("[0-9]*.jsonl"))
            for line in path.read_text().split("\n")[:-1]]


def test_a_node_is_killed_and_nothing_is_lost_or_graded_twice(cb, cluster):
    course = Course(cb, PLAN)
    for i in range(STUDENTS):
        course.add(f"s{i:03}", HALF if i % 7 == 3 else GOOD)
    job = submit(cluster, course, f"--array=0-{TASKS - 1}")

    def in_the_middle():
        """A task on node2 that has some of its results."""
        for name, state, node in cluster.queue():
            path = course.base / f"results/{name.partition('_')[2]}.jsonl"
            if state == "RUNNING" and node == "node2" and path.exists() and \
                    2 <= path.read_text().count("\n") <= 7:
                return name
        return None
    task = until(in_the_middle, cluster.logs, 120)
    killed = cluster.kill_node("node2")
    assert any(b"slurmstepd" in c for _, c in killed), killed
    assert any(b"--grade" in c for _, c in killed), killed
    before = lines_of(course)
    mine = course.base / f"results/{task.partition('_')[2]}.jsonl"
    cut_at = mine.read_text()
    assert cut_at.count("\n") < STUDENTS // TASKS, "it was over already"
    cluster.ask("scontrol", "update", "nodename=node2", "state=down",
                "reason=killed")
    until(lambda: any(n == task and s == "PENDING"
                      for n, s, _ in cluster.queue()) or
          mine.read_text() != cut_at, cluster.logs, 60)
    # Slurm holds a task back for a while that it has queued again.
    cluster.ask("scontrol", "update", f"jobid={task}", "starttime=now",
                check=False)
    cluster.wait_empty()

    lines = lines_of(course)
    names = [one["submission"] for one in lines]
    assert sorted(names) == [f"s{i:03}" for i in range(STUDENTS)], names
    assert all(one in lines for one in before)
    assert mine.read_text().startswith(cut_at[:cut_at.rfind("\n") + 1])
    check_verdicts({one["submission"]: one for one in lines})

    # The merging run: all of them, and none is graded again.
    submit(cluster, course, f"--dependency=afterany:{job}",
           f"--output={course.base}/merged")
    cluster.wait_empty()
    merged = (course.base / "results/all.jsonl").read_text()
    assert sorted(map(json.dumps, by_name(merged).values())) == \
        sorted(map(json.dumps, lines))
    table = (course.base / "merged").read_text()
    assert table.count("2 of 2") + table.count("1 of 2") == STUDENTS, table
    assert (course.base / "results/junit.xml").exists()


def check_verdicts(found):
    for i in range(STUDENTS):
        one = found[f"s{i:03}"]
        assert one["points"] == (1 if i % 7 == 3 else 2), one


def test_a_submission_sees_no_other_and_nothing_of_slurm(cb, cluster):
    course = Course(cb, PLAN)
    for i in range(6):
        course.add(f"s{i:03}", PEEK if i % 2 else GOOD)
    submit(cluster, course, "--array=1-3")
    cluster.wait_empty()
    found = {one["submission"]: one for one in lines_of(course)}
    assert len(found) == 6, cluster.logs()
    for i in range(6):
        one = found[f"s{i:03}"]
        if i % 2:
            assert one["points"] == 0 and "not 'saw []'" in whys(one), one
        else:
            assert one["points"] == 2, one


def test_no_cheat_has_points_under_slurm(cb, cluster):
    course = Course(cb, test_cheats.PLAN, want="20\n", want2="30\n")
    for name, (source, _) in test_cheats.CHEATS.items():
        course.add(name, source)
    for i in range(3):
        course.add(f"honest{i}", test_cheats.HONEST)
    submit(cluster, course, "--array=0-2")
    cluster.wait_empty(300)
    found = {one["submission"]: one for one in lines_of(course)}
    assert len(found) == len(test_cheats.CHEATS) + 3, cluster.logs()
    for name, one in found.items():
        wanted = 2 if name.startswith("honest") else \
            1 if name == "knows-one-test" else 0
        assert one["points"] == wanted, one
