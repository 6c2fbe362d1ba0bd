# SPDX-License-Identifier: MIT
"""The results of a run: the sums, what failed, and how far it is."""
import json
import os
import sys
import threading
import time

SAY_SECONDS = 15        # without a terminal: a line about the progress


class Tally:
    """Safe for threads. Prints each failure when it happens."""

    def __init__(self):
        self.lock = threading.Lock()
        self.passed = 0
        self.failed = []            # (name, why, the command to run it again)
        self.skipped = []           # (name, reason)
        self.expected = 0
        self.running = {}           # name: when it began
        self.seconds = []           # (seconds, those of the CPU, name)
        self.started = self.said = time.monotonic()
        self.line = ""              # on the terminal

    def expect(self, n):
        with self.lock:
            self.expected += n

    def begin(self, name):
        with self.lock:
            self.running[name] = time.monotonic()

    def end(self, name, seconds=0, cpu=0):
        with self.lock:
            began = self.running.pop(name, None)
            if began or seconds:
                self.seconds.append(
                    (seconds or time.monotonic() - began, cpu, name))

    def add(self, n):
        with self.lock:
            self.passed += n

    def skip(self, name, reason):
        with self.lock:
            self.skipped.append((name, reason))

    def fail(self, name, why="", again="", text=""):
        with self.lock:
            self.failed.append((name, why, again))
            self._clear()
            print(f"FAILED: {name}" + (f": {why}" if why else ""))
            if text:
                print(text.rstrip())
            if again:
                print(f"    again: {again}", flush=True)

    # ---- progress ----

    def _clear(self):
        if self.line:
            print("\r\x1b[K", end="")
            self.line = ""

    def _progress(self):
        done = self.passed + len(self.failed) + len(self.skipped)
        now = time.monotonic()
        oldest = sorted(self.running.items(), key=lambda item: item[1])
        names = [f"{name} ({now - began:.0f} s)" for name, began in oldest[:3]]
        return (f"{now - self.started:4.0f} s: {done} of {self.expected}"
                + (f", {len(self.failed)} failed" if self.failed else "")
                + (f"; {len(oldest)} run: {', '.join(names)}" if names else ""))

    def show_progress(self):
        """Called several times a second."""
        with self.lock:
            if sys.stdout.isatty():
                columns = os.get_terminal_size(sys.stdout.fileno()).columns
                self._clear()
                self.line = self._progress()[:columns - 1]
                print(self.line, end="", flush=True)
            elif time.monotonic() - self.said >= SAY_SECONDS:
                self.said = time.monotonic()
                print(self._progress(), flush=True)

    # ---- the end ----

    def _by_reason(self):
        found = {}
        for name, reason in self.skipped:
            found.setdefault(reason, []).append(name)
        return found

    def finish(self, slowest, keep, after=()):
        """Print the result, and keep the sums in a file; the last line adds
        those of earlier runs. Returns the exit status."""
        if not self.passed + len(self.failed):
            self.fail("the run", "no test ran")
        self._clear()
        print(f"\n=== {time.monotonic() - self.started:.0f} s")
        for seconds, cpu, name in sorted(self.seconds, reverse=True)[:slowest]:
            print(f"{seconds:6.1f} s, {cpu:5.1f} s of CPU  {name}")
        for reason, names in self._by_reason().items():
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            print(f"skipped: {names[0]}{more}: {reason}")
        for name, why, again in self.failed:
            print(f"FAILED: {name}" + (f": {why}" if why else ""))
            if again:
                print(f"    again: {again}")
        sums = self.passed, len(self.failed), len(self.skipped)
        keep.write_text(json.dumps({
            "sums": sums, "seconds": sorted(self.seconds, reverse=True)}))
        earlier = [json.loads(f.read_text())["sums"] for f in after
                   if f.exists()]
        if earlier:
            print("{} passed, {} failed, {} skipped here; with those of "
                  "earlier runs:".format(*sums))
            sums = map(sum, zip(sums, *earlier))
        print("{} passed, {} failed, {} skipped".format(*sums), flush=True)
        return 1 if self.failed else 0
