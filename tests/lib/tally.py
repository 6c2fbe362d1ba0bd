# SPDX-License-Identifier: MIT
"""The sums of a run."""
import json


class Tally:
    def __init__(self):
        self.passed = 0
        self.failed = []            # (name, why, the command to run it again)
        self.skipped = []           # (name, reason)
        self.forgiven = []          # failed, then passed (--forgive)

    def add(self, n):
        self.passed += n

    def fail(self, name, why="", again=""):
        self.failed.append((name, why, again))

    def skip(self, name, reason):
        self.skipped.append((name, reason))

    def _by_reason(self):
        found = {}
        for name, reason in self.skipped:
            found.setdefault(reason, []).append(name)
        return found

    def finish(self, seconds):
        """Print the result. Returns the exit status."""
        ran = self.passed + len(self.failed)
        if not ran:
            self.fail("the run", "no test ran")
        print(f"\n=== {seconds:.0f} s")
        for reason, names in self._by_reason().items():
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            print(f"skipped: {names[0]}{more}: {reason}")
        for name in self.forgiven:
            print(f"FORGIVEN: {name}: failed, and passed when run again")
        for name, why, again in self.failed:
            print(f"FAILED: {name}" + (f": {why}" if why else ""))
            if again:
                print(f"    again: {again}")
        print(f"{self.passed} passed, {len(self.failed)} failed, "
              f"{len(self.skipped)} skipped", flush=True)
        return 0 if ran and not self.failed else 1


def failures(path):
    """The names of the failed tests, [] when the report is missing or cut."""
    try:
        return [name for name, _ in json.loads(path.read_text())["failed"]]
    except (OSError, ValueError):
        return []


def forgive(tally, path, second):
    """Forgive each failure of the first report that passed in the second."""
    try:
        again = json.loads(second.read_text())
    except (OSError, ValueError):
        return
    report = json.loads(path.read_text())
    still = {name for name, _ in again["failed"]}
    tally.forgiven += [name for name, _ in report["failed"]
                       if name not in still]
    report["failed"] = again["failed"]
    report["passed"] += again["passed"]
    path.write_text(json.dumps(report))


def read_report(tally, path, suite, status, again):
    """Add the report of conftest.py. A missing or empty one is a failure."""
    try:
        report = json.loads(path.read_text())
    except (OSError, ValueError):
        tally.fail(suite, "took too long or hung" if status is None
                   else f"crashed with status {status}", again)
        return
    tally.add(report["passed"])
    for name, command in report["failed"]:
        tally.fail(f"{suite}: {name}", "", command)
    for name, reason in report["skipped"]:
        tally.skip(f"{suite}: {name}", reason)
    if not (report["passed"] or report["failed"] or report["skipped"]):
        tally.fail(suite, "ran no test", again)
    elif status != 0 and not report["failed"]:
        tally.fail(suite, f"ended with status {status}", again)
