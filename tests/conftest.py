# SPDX-License-Identifier: MIT
"""Shared by every pytest suite: who runs which test, a deadline for each, a
private world, and a report of each test to the runner."""
import collections
import gc
import json
import os
import pathlib
import signal
import sys
import zlib

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "lib"),
                *(str(p) for p in sorted(HERE.iterdir()) if p.is_dir())]

import leaks  # noqa: E402
import lingering  # noqa: E402
import world as world_module  # noqa: E402

# Set by the runner; without it every test runs, as whoever runs pytest.
PART = os.environ.get("CELLBLOCK_TEST_PART", "")
ALONE = "CELLBLOCK_TEST_ALONE" in os.environ
ME = "root" if world_module.IS_ROOT else "user"
# Suites of what only root can do.
ROOTS = ("maker", "ssh", "systemd")
PEOPLE = os.environ.get("CELLBLOCK_TEST_PEOPLE", ME).split()
SECONDS = os.environ.get("CELLBLOCK_TEST_SECONDS")


# ---- which tests run here ----

def people_of(item):
    """As whom a test runs: in `make test` as the first."""
    if item.path.parent.name in ROOTS or item.get_closest_marker("root"):
        people = ["root"]
    elif item.get_closest_marker("both"):
        people = ["user", "root"]
    else:
        people = ["user"]
    return [p for p in people if p in PEOPLE] or PEOPLE[:1]


def pytest_ignore_collect(collection_path):
    """Leave out what only somebody else's run, or another part of the run, has
    tests of: each worker collects."""
    if not PART or not collection_path.name.startswith("test_"):
        return None
    text = collection_path.read_text()
    roots = collection_path.parent.name in ROOTS
    if ME == "user" and "root" in PEOPLE:
        others = roots
    else:
        others = PART == "once" and "user" in PEOPLE and ME == "root" and \
            not roots and "mark.root" not in text
    return others or (ALONE and "mark.alone" not in text) or None


def is_picked(item):
    people = people_of(item)
    if ME not in people:
        return False
    first = ME == people[0]
    again = not first or item.get_closest_marker("sampled")
    return {"once": first, "rest": again}.get(PART, True)


def is_alone(item):
    mark = item.get_closest_marker("alone")
    return bool(mark) and (world_module.WHOLE or "whole" not in mark.args)


def shares(item):
    """The wide fixture that a test shares with others, or None."""
    for name, found in sorted(item._fixtureinfo.name2fixturedefs.items()):
        if found[-1].scope in ("module", "package", "session") and \
                found[-1].baseid:
            mark = item.callspec.params.get(name, "") \
                if hasattr(item, "callspec") else ""
            return f"{found[-1].baseid}:{name}{mark}"
    return None


def limit_of(item):
    mark = item.get_closest_marker("limit")
    return mark.args[0] if mark else 60


def known_seconds():
    """{test without its shape: how long it took in an earlier run}."""
    found = {}
    if SECONDS:
        with open(SECONDS, encoding="utf-8") as f:
            for seconds, _, title in json.load(f)["seconds"]:
                test = title.partition("[")[0].partition(" ")[0]
                found[test] = max(seconds, found.get(test, 0))
    return found


def sample(items):
    """Of the shapes of a test that is marked sampled(n), the first and each
    n-th after it."""
    seen, kept = collections.Counter(), []
    for item in items:
        mark = item.get_closest_marker("sampled")
        shape = item.nodeid.partition("[")[0]
        if not mark or not mark.args or seen[shape] % mark.args[0] == 0:
            kept.append(item)
        seen[shape] += 1
    return kept


# Seconds; most tests take less.
LONG = 4


def in_order(items):
    """The tests that took long, or may take more than a minute, lie among the
    first two thirds, the longest first. They mostly wait, while the others mostly
    compute: those come by file, in an order that mixes the suites."""
    def spread(some, part):
        return [(n * part / len(some), i) for n, i in enumerate(some)]

    # A test takes a small part of what its limit allows beyond the usual minute.
    known = known_seconds()
    seconds = {i: max(known.get(name_of(i.nodeid).partition("[")[0], 0),
                      (limit_of(i) - 60) / 5) for i in items}
    slow = sorted((i for i in items if seconds[i] > LONG), key=seconds.get,
                  reverse=True)
    rest = sorted((i for i in items if seconds[i] <= LONG), key=lambda i:
                  zlib.crc32(i.nodeid.partition("::")[0].encode()))
    placed = spread(slow, 2 / 3) + spread(rest, 1)
    return [i for _, i in sorted(placed, key=lambda pair: pair[0])]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Pick the tests of this person and part. Those that share a fixture run in
    one worker."""
    if PART:
        picked = [i for i in items if is_picked(i)]
        picked = sample(picked) if PART == "once" else picked
        picked = [i for i in picked if is_alone(i) == ALONE]
        kept = set(picked)
        config.hook.pytest_deselected(
            items=[i for i in items if i not in kept])
        items[:] = in_order(picked)
    for item in items:
        group = shares(item)
        if group:
            item.add_marker(pytest.mark.xdist_group(group))
    gc.freeze()             # the thousands of tests outlive every collection


# ---- a deadline ----

class TooLong(Exception):
    """A test did not end before its deadline."""


def _ring(signum, frame):
    raise TooLong("the test did not end within its time")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item, nextitem):
    item.began = leaks.ticks()
    item.user_properties.append(("cpu", -leaks.cpu_seconds()))
    old = signal.signal(signal.SIGALRM, _ring)
    signal.setitimer(signal.ITIMER_REAL,
                     limit_of(item) * world_module.PATIENCE)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, old)


# ---- what a test leaves ----

@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_teardown(item, nextitem):
    """All processes of a test end with it: those that one that failed has left
    are killed, so that they disturb no other."""
    yield
    if getattr(item, "failed", False) and not shares(item):
        leaks.end_descendants(item.began)
    item.user_properties.append(("cpu", leaks.cpu_seconds()))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    if report.failed:
        item.failed = True
        report.sections.append(("processes of the test",
                                leaks.list_processes(item.began)))


# ---- the report to the runner ----

class Reporter:
    """Writes a line of JSON for what happens to each test. With workers only
    pytest's first process has one."""

    def __init__(self, fd):
        self.out = os.fdopen(fd, "w", buffering=1)
        self.told, self.seconds, self.cpu = {}, {}, {}
        self.counted = False

    def say(self, **what):
        self.out.write(json.dumps(what) + "\n")

    def finish(self, report, result, why=""):
        """The first failure of a test, or else its skip, is its result."""
        if self.told.get(report.nodeid) != "failed":
            self.told[report.nodeid] = result
            if result == "failed":
                self.say(test=name_of(report.nodeid), result=result, why=why)

    def pytest_xdist_node_collection_finished(self, node, ids):
        self._count(len(ids))

    def pytest_collection_finish(self, session):
        if session.items:
            self._count(len(session.items))

    def _count(self, n):
        if not self.counted:
            self.counted = True
            self.say(expect=n)

    def pytest_collectreport(self, report):
        if report.failed:
            self.finish(report, "failed", report.longreprtext)
        elif report.skipped:
            self.say(test=name_of(report.nodeid), result="skipped",
                     why=_reason(report))

    def pytest_runtest_logstart(self, nodeid):
        self.say(begin=name_of(nodeid))

    def pytest_runtest_logreport(self, report):
        seconds = self.seconds.get(report.nodeid, 0) + report.duration
        self.seconds[report.nodeid] = seconds
        self.cpu[report.nodeid] = sum(n for _, n in report.user_properties)
        if report.failed:
            sections = [f"--- {title}\n{text}"
                        for title, text in report.sections]
            self.finish(report, "failed",
                        "\n".join([report.longreprtext, *sections]))
        elif report.skipped:
            self.finish(report, _reason(report))
        elif report.when == "call":
            self.finish(report, "passed")

    def pytest_runtest_logfinish(self, nodeid):
        result = self.told.get(nodeid, "failed")
        self.say(end=name_of(nodeid), seconds=self.seconds.get(nodeid, 0),
                 cpu=self.cpu.get(nodeid, 0))
        if result == "passed":
            self.say(test=name_of(nodeid), result="passed")
        elif result != "failed":
            self.say(test=name_of(nodeid), result="skipped", why=result)


def name_of(nodeid):
    """As tests/run takes it: without the folder, and the name of the group that
    xdist puts at the end."""
    return nodeid.removeprefix("tests/").partition("@tests/")[0]


def _reason(report):
    if isinstance(report.longrepr, tuple):
        return report.longrepr[2].removeprefix("Skipped: ")
    return str(report.longrepr)


def pytest_configure(config):
    fd = os.environ.get("CELLBLOCK_TEST_EVENTS")
    if fd and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Reporter(int(fd)), "cellblock-reporter")


# ---- fixtures ----

@pytest.fixture
def cb(tmp_path):
    """A private world: home, working directory, environment."""
    w = world_module.World(tmp_path)
    yield w
    w.close()


@pytest.fixture
def session(cb):
    """A session at its first prompt."""
    return cb.session()


@pytest.fixture
def many(cb):
    """Sessions that outlive their terminal, and end with the test."""
    if not world_module.IS_ROOT and os.path.exists(f"/run/user/{os.getuid()}"):
        pytest.skip("sessions of whoever runs the tests would be seen")
    sessions = lingering.Lingering(cb)
    yield sessions
    sessions.close()
