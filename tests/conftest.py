# SPDX-License-Identifier: MIT
"""Shared by every pytest suite: a deadline for each test, a private world, a
report for the runner, and the command that runs a failed test again."""
import json
import os
import pathlib
import signal
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "lib"))
sys.dont_write_bytecode = True

import lingering  # noqa: E402
import world as world_module  # noqa: E402

SECONDS = 60 * world_module.PATIENCE


class TooLong(Exception):
    """A test did not end before its deadline."""


def _ring(signum, frame):
    raise TooLong("the test did not end within its time")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item, nextitem):
    mark = item.get_closest_marker("limit")
    seconds = mark.args[0] * world_module.PATIENCE if mark else SECONDS
    old = signal.signal(signal.SIGALRM, _ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, old)


def rerun(nodeid):
    who = os.environ.get("CELLBLOCK_TEST_WHO", "")
    path, _, rest = nodeid.partition("::")
    path = path.removeprefix("tests/")
    name = f"{path}::{rest}" if rest else path
    return f"tests/run {who + ' ' if who else ''}'{name}'"


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    if report.failed:
        report.sections.append(("again", rerun(item.nodeid)))


class Counts:
    """Counts each test once over all its phases."""

    def __init__(self):
        self.passed, self.failed, self.skipped = [], [], []

    def pytest_collectreport(self, report):
        if report.failed:
            self.failed.append([report.nodeid, rerun(report.nodeid)])
        elif report.skipped:
            self.skipped.append([report.nodeid, _reason(report)])

    def pytest_runtest_logreport(self, report):
        if report.failed:
            if report.when == "teardown" and report.nodeid in self.passed:
                self.passed.remove(report.nodeid)
            self.failed.append([report.nodeid, rerun(report.nodeid)])
        elif report.skipped:
            self.skipped.append([report.nodeid, _reason(report)])
        elif report.when == "call":
            self.passed.append(report.nodeid)

    def pytest_sessionfinish(self, session, exitstatus):
        path = os.environ.get("CELLBLOCK_TEST_REPORT")
        if path:
            with open(path, "w") as f:
                json.dump({"passed": len(self.passed), "failed": self.failed,
                           "skipped": self.skipped}, f)


def _reason(report):
    if isinstance(report.longrepr, tuple):
        return report.longrepr[2].removeprefix("Skipped: ")
    return str(report.longrepr)


def pytest_configure(config):
    config.pluginmanager.register(Counts(), "cellblock-counts")


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
    sessions = lingering.Lingering(cb)
    yield sessions
    sessions.close()
