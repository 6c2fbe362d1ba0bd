# SPDX-License-Identifier: MIT
"""The runner: which suites run, as which users, and the sums.

A job is one suite run as one person. The jobs of one person run one after the
other. The two people's jobs run at the same time, because most tests wait for a
clock and not for a CPU. The output of a job is shown when the job ends.
"""
import os
import pathlib
import re
import select as polling
import signal
import subprocess
import sys
import tempfile
import threading
import time

import leaks
from hosttree import PATIENCE
from people import Person, make_person, remove_accounts_below
from tally import Tally, failures, forgive, read_report

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("BUILD", "build"))
# On a busy machine a suite may take long, but it may not be silent for long:
# each test has a deadline of its own (conftest.py).
SUITE_SECONDS = 1800 * PATIENCE
SILENT_SECONDS = 300 * PATIENCE

# name: (how it is run, whether it runs once for each person)
SUITES = {
    "layers": ("script", False),
    "docs": ("script", False),
    "unit": ("unit", False),
    "guest": ("pytest", False),
    "session": ("pytest", True),
    "program": ("pytest", True),
    "json": ("pytest", True),
    "serve": ("pytest", True),
    "mcp": ("pytest", True),
    "escape": ("pytest", True),
    "hostile": ("pytest", True),
    "inject": ("pytest", True),
    "fallback": ("pytest", True),
    "limits": ("pytest", True),
    "ssh": ("pytest", False),
    "maker": ("pytest", False),
    "systemd": ("pytest", False),
    "fuzz": ("fuzz", False),
}


class Interrupted(Exception):
    pass


def _stop(signum, frame):
    raise Interrupted(signal.Signals(signum).name)


class Job:
    """One suite as one person, with the output it has made so far."""

    def __init__(self, run, suite, person, select):
        self.run, self.suite, self.person = run, suite, person
        self.select = select
        self.tally = run.tally
        self.shown = bytearray()

    def title(self):
        each = SUITES[self.suite][1]
        return (self.suite + (f", as {self.person.who}" if each else "")
                + (", with a cgroup" if each and self.person.cgroup else ""))

    def lane(self):
        return "nobody" if self.suite in ("layers", "docs", "fuzz") \
            else self.person.who

    def go(self):
        started = time.monotonic()
        print(f"... {self.title()}", flush=True)
        getattr(self, SUITES[self.suite][0])(self.suite, self.person,
                                             self.select)
        seconds = time.monotonic() - started
        self.run.show(f"\n=== {self.title()} ({seconds:.0f} s)\n",
                      self.shown)

    # ---- one command ----

    def command(self, argv, person, env=None, seconds=SUITE_SECONDS):
        """Run a command in its own process group. Returns (exit status,
        output). The status is None if the command took too long or hung."""
        p = self.run.start(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, cwd=person.top,
            env={**person.env, **(env or {})}, process_group=0,
            **person.identity)
        try:
            return self._follow(p, seconds)
        finally:
            self.run.ended(p)

    def _follow(self, p, seconds):
        heard = time.monotonic()
        end = heard + seconds
        kept = bytearray()
        os.set_blocking(p.stdout.fileno(), False)
        while True:
            data = _read_for(p.stdout, min(1, max(0, end - time.monotonic())))
            now = time.monotonic()
            if data:
                heard = now
                kept += data
                self.shown += data
            elif data == b"" or p.poll() is not None:
                return p.wait(), bytes(kept)
            if now > min(end, heard + SILENT_SECONDS):
                os.killpg(p.pid, signal.SIGKILL)
                p.wait()
                return None, bytes(kept)

    # ---- the kinds of suites ----

    def script(self, suite, person, select):
        status, out = self.command([f"tests/{suite}"], person)
        self._by_lines(suite, status, out, f"tests/run {suite}")

    def fuzz(self, suite, person, select):
        if not (TOP / "tests/fuzz/run").exists():
            self.tally.fail(suite, "tests/fuzz/run does not exist")
            return
        status, out = self.command(["tests/fuzz/run", "--short"], person)
        self._by_lines(suite, status, out, "tests/fuzz/run --short")

    def _by_lines(self, suite, status, out, again):
        """Count the lines of a script: `ok NAME`, `FAIL NAME: why` or
        `SKIP NAME: why` for each of its tests."""
        lines = re.findall(r"^(ok|FAIL|SKIP) +([^\s:]+)(?:: )?(.*)$",
                           out.decode("utf-8", "replace"), re.M)
        for word, name, why in lines:
            if word == "ok":
                self.tally.add(1)
            elif word == "SKIP":
                self.tally.skip(name, why or "no reason was given")
            else:
                self.tally.fail(name, why, again)
        if status is None:
            self.tally.fail(suite, "took too long", again)
        elif not lines:
            self.tally.fail(suite, f"printed no result, status {status}", again)
        elif status not in (0, 77) and "FAIL" not in {w for w, _, _ in lines}:
            self.tally.fail(suite, f"ended with status {status}", again)

    def unit(self, suite, person, select):
        programs = sorted(
            p for p in (TOP / BUILD / "tests/unit").glob("test_*")
            if p.suffix == "" and os.access(p, os.X_OK))
        if not programs:
            self.tally.fail(suite, f"no test in {BUILD}/tests/unit",
                            "make unit")
        for program in programs:
            self._cmocka(program, person)

    def _cmocka(self, program, person):
        name = f"unit/{program.name}"
        again = os.path.relpath(program, TOP)
        status, out = self.command(
            [str(program)], person, {"CMOCKA_MESSAGE_OUTPUT": "TAP"},
            120 * PATIENCE)
        text = out.decode("utf-8", "replace")
        ok = re.findall(r"^ok \d+ - \S+", text, re.M)
        bad = re.findall(r"^not ok \d+ - (\S+)", text, re.M)
        # cmocka prints the reason first, and then "not ok" even for a skip.
        skipped = re.findall(r"^(?:SKIP: (.*)\n)?(?:not )?ok \d+ # SKIP (\S+)",
                             text, re.M)
        self.tally.add(len(ok))
        for why, test in skipped:
            self.tally.skip(f"{name}: {test}", why or "no reason was given")
        for test in bad:
            self.tally.fail(f"{name}: {test}", "", again)
        if not ok and not bad and not skipped:
            self.tally.fail(name, "ran no test", again)
        elif status != 0 and not bad:
            self.tally.fail(name, f"ended with status {status}", again)

    def pytest(self, suite, person, select):
        if not (TOP / "tests" / suite).is_dir():
            self.tally.fail(suite, f"tests/{suite} does not exist")
            return
        status, report = self._pytest_once(
            suite, person, select or [f"tests/{suite}"])
        failed = failures(report)
        if self.run.may_forgive(len(failed)):
            status, second = self._pytest_once(suite, person, failed)
            forgive(self.tally, report, second)
        read_report(self.tally, report, f"{suite} ({person.who})", status,
                    f"tests/run --{person.who} {suite}")

    def _pytest_once(self, suite, person, names):
        n = self.run.number()
        report = person.directory / f"report-{n}-{suite}"
        base = person.directory / f"tmp-{n}-{suite}"
        argv = ["/usr/bin/python3", "-B", "-m", "pytest", "-q",
                "-c", "tests/pytest.ini", "--rootdir", str(person.top),
                "--tb=short", "--no-header", f"--basetemp={base}", *names]
        status, _ = self.command(
            argv, person, {"CELLBLOCK_TEST_REPORT": str(report)})
        return status, report


class Run:
    """Runs all jobs, two at a time, and adds up their results."""

    def __init__(self, directory, forgiven):
        self.directory = directory
        self.tally = Tally()
        self.lock = threading.Lock()
        self.alive = {}             # pid: the process of a command
        self.left = forgiven        # tests that may still be forgiven
        self.reports = 0
        self.stopping = False

    def show(self, title, output):
        with self.lock:
            sys.stdout.flush()
            sys.stdout.buffer.write(title.encode() + bytes(output))
            sys.stdout.flush()

    def number(self):
        with self.lock:
            self.reports += 1
            return self.reports

    def may_forgive(self, n):
        """Whether `n` failed tests may be tried again."""
        with self.lock:
            if not 0 < n <= self.left:
                return False
            self.left -= n
            return True

    def start(self, argv, **how):
        with self.lock:
            if self.stopping:
                raise Interrupted("the run is ending")
            p = subprocess.Popen(argv, **how)
            self.alive[p.pid] = p
            return p

    def ended(self, p):
        with self.lock:
            self.alive.pop(p.pid)

    def stop(self):
        """Kill every running command, and start no more."""
        with self.lock:
            self.stopping = True
            for pid in self.alive:
                os.killpg(pid, signal.SIGKILL)

    def _work(self, jobs):
        for job in jobs:
            try:
                job.go()
            except Interrupted:
                return
            except Exception as e:  # a broken runner must not look green
                self.tally.fail(job.title(), f"the runner failed: {e!r}")

    def all(self, jobs):
        """Run the jobs in lanes: one for each person, and one for the suites
        that start no session."""
        lanes = {}
        for job in jobs:
            lanes.setdefault(job.lane(), []).append(job)
        workers = [threading.Thread(target=self._work, args=(lane,),
                                    daemon=True) for lane in lanes.values()]
        for w in workers:
            w.start()
        try:
            for w in workers:
                while w.is_alive():
                    w.join(0.5)
                    with self.lock:
                        leaks.reap_orphans(self.alive)
        finally:
            self.stop()
            for w in workers:
                w.join()


def _read_for(stream, seconds):
    """Bytes, b"" at end of file, None when nothing came in time."""
    ready, _, _ = polling.select([stream], [], [], seconds)
    if not ready:
        return None
    return os.read(stream.fileno(), 65536)


def parse(argv):
    """Returns (person, number of tests that may be forgiven, tests). The tests
    are {suite: the tests picked from it, [] for all}."""
    who, forgiven, picked = None, 0, {}
    for word in argv:
        if word in ("--root", "--user"):
            who = word[2:]
        elif re.fullmatch(r"--forgive=\d+", word):
            forgiven = int(word.partition("=")[2])
        elif word in ("-h", "--help"):
            print(sys.modules["__main__"].__doc__.strip())
            sys.exit(0)
        else:
            word = word.removeprefix("tests/")
            suite = word.split("/")[0]
            if suite not in SUITES:
                sys.exit(f"tests/run: no suite '{suite}'; there are: "
                         + " ".join(SUITES))
            select = picked.setdefault(suite, [])
            if "/" in word:
                select.append("tests/" + word)
    return who, forgiven, picked or {s: [] for s in SUITES}


def choose_people(who, directory, tally):
    """The people that the suites run as, the caller first."""
    me = Person.caller(directory, BUILD)
    if not me.is_root:
        tally.skip("everything, as root", "the run was not started by root")
        return [me]
    if who == "root":
        return [me]
    other, why = make_person(directory, BUILD)
    if not other:
        tally.skip("everything, as an unprivileged user", why)
        return [me]
    return [other] if who == "user" else [me, other]


def main(argv):
    who, forgiven, picked = parse(argv)
    for s in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(s, _stop)
    leaks.adopt_orphans()
    before = leaks.Snapshot()
    started = time.monotonic()
    people = []
    directory = pathlib.Path(tempfile.mkdtemp(prefix="cbtest-"))
    directory.chmod(0o755)
    run = Run(directory, forgiven)
    try:
        people += choose_people(who, directory, run.tally)
        run.all(Job(run, suite, person, select)
                for suite, select in picked.items()
                for person in (people if SUITES[suite][1] else people[:1]))
        print("\n=== left behind", flush=True)
        leaks.check(before, people, run.tally)
        for person in people:
            person.keep_reports(TOP / BUILD)
    except Interrupted as e:
        run.tally.fail("the run", f"was ended by {e}")
    finally:
        for s in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(s, signal.SIG_IGN)
        leaks.end_descendants()
        for person in people:
            person.remove()
        remove_accounts_below(directory)
        leaks.remove_tree(directory)
    return run.tally.finish(time.monotonic() - started)
