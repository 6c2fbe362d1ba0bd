# SPDX-License-Identifier: MIT
"""The runner: what runs, as whom, beside what, and the sums.

pytest-xdist keeps the queue of the tests that start the product: one run of
pytest for each person, each with workers that take the next test when they are
free. There are more workers than processors, because most tests wait for a
clock and not for a CPU. Beside them run the unit tests, the fuzzers' corpora
and the scripts. Tests that need the host to themselves come last.
"""
import json
import os
import pathlib
import re
import select as polling
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

from pace import ALONE_PATIENCE, CORES  # before those that read what it sets

import leaks
import ownhost
from hosttree import PATIENCE
from people import Person, make_person
from tally import Tally

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("BUILD", "build"))
# On a busy machine a suite may take long, but it may not be silent for long:
# each test has a deadline of its own (conftest.py).
SUITE_SECONDS = 3600 * PATIENCE
SILENT_SECONDS = 300 * PATIENCE
# Fuzzers are for the sanitizers, too, and compute while those tests wait.
FUZZ_SECONDS = "5"
SANITIZED = "ASAN_OPTIONS" in os.environ

# How each suite runs.
SUITES = dict.fromkeys(
    "guest session program json serve mcp escape hostile inject fallback "
    "limits ssh maker systemd package grade".split(), "pytest")
SUITES |= {"layers": "script", "docs": "script", "unit": "unit",
           "fuzz": "fuzz"}


class Interrupted(Exception):
    pass


def _stop(signum, frame):
    raise Interrupted(signal.Signals(signum).name)


class Options:
    """The options and the tests of the command line."""

    def __init__(self, argv):
        self.who, self.part, self.slowest, self.workers = None, None, 0, None
        self.after = []
        self.picked = {}            # suite: the tests of it, [] for all
        for word in argv:
            self._take(word)
        self.part = self.part or ("all" if self.picked else "once")
        self.picked = self.picked or {s: [] for s in SUITES}

    def _take(self, word):
        workers = re.fullmatch(r"--workers=(\d+)", word)
        if word in ("--root", "--user"):
            self.who = word[2:]
        elif word in ("--once", "--rest", "--all"):
            self.part = word[2:]
        elif word == "--slowest":
            self.slowest = 10
        elif workers:
            self.workers = int(workers[1])
        elif word.startswith("--after="):
            self.after.append(pathlib.Path(word.partition("=")[2]))
        elif word in ("-h", "--help"):
            print(sys.modules["__main__"].__doc__.strip())
            sys.exit(0)
        else:
            self._pick(word.removeprefix("tests/"))

    def _pick(self, word):
        suite = word.split("/")[0]
        if suite not in SUITES:
            sys.exit(f"tests/run: no suite or option '{suite}'; the suites "
                     f"are: {' '.join(SUITES)}")
        tests = self.picked.setdefault(suite, [])
        if "/" in word:
            if SUITES[suite] == "pytest" and not (
                    TOP / "tests" / word.partition("::")[0]).exists():
                sys.exit(f"tests/run: there is no tests/{word}")
            tests.append("tests/" + word)

    def tests(self):
        """The tests that pytest is to collect."""
        found = []
        for suite, tests in self.picked.items():
            if SUITES[suite] == "pytest":
                found += tests or [f"tests/{suite}"]
        return found


class Run:
    """The commands that run, and the results of all."""

    def __init__(self, options, tally):
        self.options, self.tally = options, tally
        self.lock = threading.Lock()
        self.alive = {}             # pid: the process of a command
        self.stopping = False

    def start(self, argv, person, env, **how):
        with self.lock:
            if self.stopping:
                raise Interrupted("the run is ending")
            p = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, cwd=person.top,
                env={**person.env, **env}, process_group=0,
                **person.identity, **how)
            self.alive[p.pid] = p
            return p

    def command(self, argv, person, env=None, seconds=SUITE_SECONDS,
                events=None):
        """Run a command in its own process group. Returns (exit status,
        output). The status is None if the command took too long or hung. With
        `events`, a function, a pipe in CELLBLOCK_TEST_EVENTS brings it lines
        of JSON."""
        env = dict(env or {})
        heard, told = -1, -1
        if events:
            heard, told = os.pipe()
            env["CELLBLOCK_TEST_EVENTS"] = str(told)
        try:
            p = self.start(argv, person, env,
                           pass_fds=(told,) if events else ())
        finally:
            if events:
                os.close(told)
        try:
            return _follow(p, seconds, heard, events)
        finally:
            if events:
                os.close(heard)
            with self.lock:
                self.alive.pop(p.pid)

    def stop(self):
        """Kill every running command, and start no more."""
        with self.lock:
            self.stopping = True
            for pid in self.alive:
                os.killpg(pid, signal.SIGKILL)

    def _work(self, job):
        try:
            job()
        except Interrupted:
            return
        except Exception as e:  # a broken runner must not look green
            self.tally.fail(str(job), f"the runner failed: {e!r}")

    def together(self, jobs):
        """Run jobs at the same time, and wait for all of them."""
        threads = [threading.Thread(target=self._work, args=(job,),
                                    daemon=True) for job in jobs]
        for t in threads:
            t.start()
        for t in threads:
            while t.is_alive():
                t.join(0.5)
                self.tally.show_progress()
                with self.lock:
                    leaks.reap_orphans(self.alive)


def _follow(p, seconds, heard, events):
    now = time.monotonic()
    end, last = now + seconds, now
    kept, line = bytearray(), b""
    streams = [p.stdout.fileno(), *([heard] if events else [])]
    while streams:
        ready, _, _ = polling.select(streams, [], [], 1)
        now = time.monotonic()
        for fd in ready:
            data = os.read(fd, 65536)
            last = now
            if not data:
                streams.remove(fd)
            elif fd == heard:
                *lines, line = (line + data).split(b"\n")
                for one in lines:
                    events(json.loads(one))
            else:
                kept += data
        if not ready and p.poll() is not None:
            break                   # somebody else holds the pipes
        if now > min(end, last + SILENT_SECONDS):
            os.killpg(p.pid, signal.SIGKILL)
            p.wait()
            return None, bytes(kept)
    return p.wait(), bytes(kept)


# ---- the kinds of suites ----

class Script:
    """A program that prints `ok NAME`, `FAIL NAME: why` or `SKIP NAME: why`
    for each of its tests."""

    def __init__(self, run, person, suite, argv):
        self.run, self.person, self.suite = run, person, suite
        self.argv = argv

    def __str__(self):
        return self.suite

    def __call__(self):
        tally, again = self.run.tally, " ".join(self.argv)
        tally.begin(self.suite)
        status, out = self.run.command(self.argv, self.person)
        tally.end(self.suite)
        text = out.decode("utf-8", "replace")
        lines = re.findall(r"^(ok|FAIL|SKIP) +([^\s:]+)(?:: )?(.*)$", text,
                           re.M)
        tally.expect(len(lines))
        for word, name, why in lines:
            if word == "ok":
                tally.add(1)
            elif word == "SKIP":
                tally.skip(name, why or "no reason was given")
            else:
                tally.fail(name, why, again, text[-4000:])
        if status is None:
            tally.fail(self.suite, "took too long", again, text[-4000:])
        elif not lines:
            tally.fail(self.suite, f"printed no result, status {status}",
                       again, text[-4000:])
        elif status not in (0, 77) and "FAIL" not in {w for w, _, _ in lines}:
            tally.fail(self.suite, f"ended with status {status}", again)


class Unit:
    """The programs of the unit tests, one after the other."""

    def __init__(self, run, person):
        self.run, self.person = run, person

    def __str__(self):
        return "unit"

    def __call__(self):
        programs = sorted(
            p for p in (TOP / BUILD / "tests/unit").glob("test_*")
            if p.suffix == "" and os.access(p, os.X_OK))
        wanted = [pathlib.Path(t).stem for t in
                  self.run.options.picked["unit"]]
        programs = [p for p in programs if not wanted or p.name in wanted]
        if not programs:
            self.run.tally.fail("unit", f"no test in {BUILD}/tests/unit",
                                "make unit")
        for program in programs:
            self._one(program)

    def _one(self, program):
        tally, name = self.run.tally, f"unit/{program.name}"
        again = os.path.relpath(program, TOP)
        tally.begin(name)
        status, out = self.run.command(
            [str(program)], self.person, {"CMOCKA_MESSAGE_OUTPUT": "TAP"},
            120 * PATIENCE)
        tally.end(name)
        text = out.decode("utf-8", "replace")
        ok = re.findall(r"^ok \d+ - \S+", text, re.M)
        bad = re.findall(r"^not ok \d+ - (\S+)", text, re.M)
        # cmocka prints the reason first, and then "not ok" even for a skip.
        skipped = re.findall(r"^(?:SKIP: (.*)\n)?(?:not )?ok \d+ # SKIP (\S+)",
                             text, re.M)
        tally.expect(len(ok) + len(bad) + len(skipped))
        tally.add(len(ok))
        for why, test in skipped:
            tally.skip(f"{name}: {test}", why or "no reason was given")
        for test in bad:
            tally.fail(f"{name}: {test}", "", again, text[-4000:])
        if not ok and not bad and not skipped:
            tally.fail(name, "ran no test", again, text[-4000:])
        elif status != 0 and not bad:
            tally.fail(name, f"ended with status {status}", again,
                       text[-4000:])


class Pytest:
    """The tests of one person that may run beside others, or those that may
    not."""

    def __init__(self, run, person, people, workers, alone=False):
        self.run, self.person, self.people = run, person, people
        self.workers, self.alone = workers, alone
        self.tests = 0

    def __str__(self):
        return f"pytest as {self.person.who}" + (
            ", alone" if self.alone else "")

    def __call__(self):
        n = self.person.who + ("-alone" if self.alone else "")
        base = self.person.directory / f"tmp-{n}"
        worker = (f"{self.workers}*popen//python=/usr/bin/python3 "
                  f"{self.person.top}/tests/lib/ownhost.py /usr/bin/python3")
        pytest = ["/usr/bin/python3", "-m", "pytest", "-q",
                  "-c", "tests/pytest.ini", "--rootdir", str(self.person.top),
                  *self.run.options.tests()]
        argv = [*pytest, "-p", "xdist", "--tb=short", "--no-header",
                f"--basetemp={base}", "--dist=loadgroup", f"--tx={worker}"]
        env = {"CELLBLOCK_TEST_PEOPLE": " ".join(self.people),
               "CELLBLOCK_TEST_PART": self.run.options.part}
        for earlier in self.run.options.after[:1]:
            if earlier.exists():
                env["CELLBLOCK_TEST_SECONDS"] = shutil.copy(
                    earlier, self.person.directory / "seconds")
        if self.alone:
            env["CELLBLOCK_TEST_ALONE"] = "1"
            env["CELLBLOCK_TEST_PATIENCE"] = ALONE_PATIENCE
        else:
            # So that it is compiled once, and not by each worker.
            self.run.command([*pytest, "--collect-only"], self.person, env)
        status, out = self.run.command(argv, self.person, env,
                                       events=self._hear)
        text = out.decode("utf-8", "replace")[-4000:]
        again = f"tests/run --{self.person.who}"
        if status is None:
            self.run.tally.fail(str(self), "took too long or hung", again,
                                text)
        elif status not in (0, 1, 5) or not self.tests and status != 5:
            self.run.tally.fail(str(self), f"ended with status {status}",
                                again, text)

    def _hear(self, event):
        tally = self.run.tally
        name = event.get("begin") or event.get("end") or event.get("test")
        title = f"{name} ({self.person.who})"
        if "expect" in event:
            tally.expect(event["expect"])
        elif "begin" in event:
            tally.begin(title)
        elif "end" in event:
            tally.end(title, event["seconds"], event["cpu"])
        else:
            self.tests += 1
            if event["result"] == "passed":
                tally.add(1)
            elif event["result"] == "skipped":
                tally.skip(title, event["why"])
            else:
                tally.fail(title, "", f"tests/run --{self.person.who} "
                           f"'{name}'", event["why"])


def choose_people(who, directory, tally):
    """The people that the suites run as: a user, and root."""
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
    return [other] if who == "user" else [other, me]


def workers_of(who, people, part):
    """As many that both people end together: the user has most of what is tested
    once, and root the packages and images of the rest."""
    if people == 1:
        return 3 * CORES + 1
    if part == "rest":
        return 2 * CORES + 1 if who == "user" else 4 * CORES
    return 4 * CORES if who == "user" else CORES + 2


def jobs_of(run, people):
    """The jobs that run together, and those that run alone afterwards."""
    caller = people[-1]
    picked, once = run.options.picked, run.options.part != "rest"
    jobs = [Script(run, caller, s, [f"tests/{s}"])
            for s in ("layers", "docs") if s in picked and once]
    if "unit" in picked and once:
        jobs.append(Unit(run, caller))
    if "fuzz" in picked and once:
        jobs.append(Script(run, caller, "fuzz", [
            "tests/fuzz/run", FUZZ_SECONDS if SANITIZED else "replay"]))
    alone = []
    if run.options.tests():
        names = [p.who for p in people]
        for person in people:
            workers = run.options.workers or workers_of(
                person.who, len(people), run.options.part)
            jobs.append(Pytest(run, person, names, workers))
            alone.append(Pytest(run, person, names, 1, alone=True))
    return jobs, alone


def own_host(tally):
    """Hide what this host has of the product."""
    if os.geteuid() != 0 or "CELLBLOCK_TEST_MAY_INSTALL" in os.environ:
        return
    why = ownhost.refusal()
    if why:
        tally.skip("a host of their own for the tests", why)
    else:
        ownhost.enter(TOP, (TOP / BUILD).resolve())


def main(argv):
    options, tally = Options(argv), Tally()
    own_host(tally)
    for s in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(s, _stop)
    ownhost.adopt_orphans()
    before = leaks.Snapshot()
    people = []
    directory = pathlib.Path(tempfile.mkdtemp(prefix="cbtest-"))
    directory.chmod(0o755)
    run = Run(options, tally)
    try:
        people += choose_people(options.who, directory, tally)
        jobs, alone = jobs_of(run, people)
        run.together(jobs)
        for job in alone:
            run.together([job])
        if tally.passed + len(tally.failed):
            leaks.check(before, people, tally)
        for person in people:
            person.keep_reports(TOP / BUILD)
    except Interrupted as e:
        tally.fail("the run", f"was ended by {e}")
    finally:
        for s in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(s, signal.SIG_IGN)
        run.stop()
        leaks.end_descendants()
        for person in people:
            person.remove()
        leaks.remove_tree(directory)
    return tally.finish(options.slowest,
                        TOP / BUILD / f"tests-{options.part}.json",
                        options.after)
