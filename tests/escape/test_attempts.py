# SPDX-License-Identifier: MIT
"""Every attempt in the tables is refused, and every control succeeds. All
attempts run in one jail, each in a process of its own: once as a program with
pipes, and once as a cell of a session with a terminal."""
import json
import os
import pathlib
import socket
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from attempts import ROWS  # noqa: E402
from numbers_of_calls import NUMBERS  # noqa: E402
from world import PATIENCE, WHOLE, World  # noqa: E402

# Root's jails have a host id of their own, a person's have the person's.
pytestmark = pytest.mark.both

# `make test` tries all in a program, and in a session what asks the terminal
# and a sample of the rest.
MODES = ("program", pytest.param("session", marks=pytest.mark.sampled))
SAMPLE = 1 if WHOLE else 4
LIMITS = ("-t", f"{200 * PATIENCE:.0f}s", "--set", "cell.cpu=200s", "--set", "cell.undo=0")


class Host:
    """Things on the host that the jail must not reach."""

    def __init__(self, base):
        self.secret = base / "secret.txt"
        self.secret.write_text("the host's secret")
        self.tcp = socket.create_server(("127.0.0.1", 0))
        self.unix = socket.socket(socket.AF_UNIX)
        self.unix.bind(f"\0cellblock-test-{os.getpid()}")
        self.unix.listen()

    def given(self):
        return {"SECRET": str(self.secret),
                "HOSTNAME": os.uname().nodename,
                "HOST_PORT": self.tcp.getsockname()[1],
                "HOST_ABSTRACT": f"cellblock-test-{os.getpid()}"}

    def close(self):
        self.tcp.close()
        self.unix.close()


def controls(mode):
    """Each control once: {code: name}."""
    found = {}
    for row in rows_of(mode):
        found.setdefault(row.control, f"control {len(found)}")
    return found


def is_absent(seen):
    return seen.startswith("ABSENT:")


def rows_of(mode):
    every = SAMPLE if mode == "session" else 1
    return [r for n, r in enumerate(ROWS) if r.where == mode or
            r.where == "both" and (r.group == "terminal requests" or
                                   n % every == 0)]


def run_program(cb):
    r = cb.run(*LIMITS, "-u", "inside.py", "-u", "rows.json", "-d",
               "results.json", "-c", "import sys; sys.path.insert(0, '/home');"
               " import inside; inside.main('rows.json', 'results.json')",
               timeout=250)
    assert r.code == 0, r


def run_session(cb):
    s = cb.session(*LIMITS, size=(24, 160))
    s.run(":upload inside.py rows.json")
    s.run("import sys; sys.path.insert(0, '/home'); import inside")
    out = s.run("inside.main('rows.json', 'results.json')", 250)
    said = s.run(":download results.json")
    assert (cb.work / "results.json").exists(), out + said
    assert s.run("6 * 7").startswith("42")


def batch(mode, base):
    """Run every row and control of a mode. Returns {name: result}."""
    base.mkdir()
    cb = World(base)
    host = Host(base)
    try:
        (cb.work / "inside.py").write_bytes((HERE / "inside.py").read_bytes())
        rows = [[code, code] for code in controls(mode)] \
            + [[r.name, r.code] for r in rows_of(mode)]
        (cb.work / "rows.json").write_text(json.dumps(
            {"numbers": NUMBERS, "given": host.given(),
             "seconds": 10 * PATIENCE, "rows": rows}))
        {"program": run_program, "session": run_session}[mode](cb)
        return json.loads((cb.work / "results.json").read_text())
    finally:
        cb.close()
        host.close()


class Batches:
    """Runs each mode once, when it is first asked for."""

    def __init__(self, base):
        self.base, self.seen = base, {}

    def results(self, mode):
        if mode not in self.seen:
            try:
                self.seen[mode] = batch(mode, self.base / mode)
            except Exception as e:  # reported by the batch's own test
                self.seen[mode] = e
        return self.seen[mode]

    def report(self):
        """A report with one line for each attempt: expected and seen."""
        lines = []
        for mode, results in self.seen.items():
            if isinstance(results, Exception):
                lines.append(f"{mode}: did not run: {results}")
                continue
            for row in rows_of(mode):
                seen = results.get(row.name, "nothing")
                verdict = "refused" if row.refused(seen) else \
                    "absent" if is_absent(seen) else "ESCAPED"
                lines.append(f"{verdict}  {mode:8}{row.group} / {row.name}: "
                             f"expected {row.expected}, seen {seen!r:.120}")
        return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def batches(tmp_path_factory):
    b = Batches(tmp_path_factory.mktemp("attempts"))
    yield b
    place = os.environ.get("CELLBLOCK_REPORTS")
    if place:
        who = "root" if os.geteuid() == 0 else "user"
        pathlib.Path(place, f"escape-report-{who}.txt").write_text(b.report())


GROUPS = [pytest.param(mode, group, marks=[pytest.mark.sampled] *
                       (mode == "session"))
          for mode in ("program", "session")
          for group in dict.fromkeys(r.group for r in rows_of(mode))]


@pytest.mark.limit(260)
@pytest.mark.parametrize("mode", MODES)
def test_the_batch_of_attempts_runs(batches, mode):
    results = batches.results(mode)
    if isinstance(results, Exception):
        raise results


def results_of(batches, mode):
    results = batches.results(mode)
    if isinstance(results, Exception):
        pytest.skip(f"the attempts of the {mode} did not run")
    return results


@pytest.mark.parametrize("mode, group", GROUPS)
def test_the_attempts_are_refused(batches, mode, group):
    """Whole groups: a test for each of the rows takes longer than the rows."""
    results, bad = results_of(batches, mode), []
    for row in rows_of(mode):
        if row.group != group:
            continue
        control = results.get(row.control, "nothing")
        seen = results.get(row.name, "nothing")
        if not control.startswith("OK:"):
            bad.append(f"{row.name}: its control failed: {row.control!r}: "
                       f"{control}")
        elif not is_absent(seen) and not row.refused(seen):
            bad.append(f"{row.name}: {row.code}\n"
                       f"expected REFUSED:{row.expected}\nseen {seen}")
    assert not bad, "\n".join([f"{len(bad)} attempts:", *bad])


@pytest.mark.parametrize("mode", MODES)
def test_nothing_is_absent_that_is_attempted(batches, mode):
    results = results_of(batches, mode)
    absent = {row.name: seen.partition(":")[2] for row in rows_of(mode)
              if is_absent(seen := results.get(row.name, ""))}
    if absent:
        pytest.skip(f"{len(absent)} attempts at what the jail does not have: "
                    + ", ".join(sorted(set(absent.values()))))
