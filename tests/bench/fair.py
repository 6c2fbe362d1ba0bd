#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The time from Enter to the answer of `1+1` for a quiet student, beside others
who take all they can get, each over ssh in a session of root's maker. Nothing
here passes or fails. `tests/bench/fair.py [SECONDS [KIND]...]`: so long for each
row; $BUILD names the build directory."""
import os
import pathlib
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from classroom import Hostile, Lab  # noqa: E402

LOOP = "while True: pass"
FORKS = (r"exec('import os\nwhile True:\n  try: os.fork()\n"
         r"  except OSError: pass')")
FLOOD = "while True: print('y' * 4000)"
MEMORY = r"exec('held = []\nwhile True: held.append(bytearray(1 << 20))')"
KINDS = {"loops": [LOOP], "fork bombs": [FORKS], "floods": [FLOOD],
         "memory hogs": [MEMORY], "all four": [LOOP, FORKS, FLOOD, MEMORY]}
MANY = 5, 15
# Between two cells: as somebody who reads and types.
GAP = 0.3


def answers(session, seconds):
    """Seconds from Enter to the answer, one by one."""
    times, end, i = [], time.monotonic() + seconds, 0
    while time.monotonic() < end:
        i += 1
        session.wait_prompt()
        time.sleep(GAP)
        session.type(f"{i}+1000000")
        session.expect(rf"{i}\+1000000$")
        at, want = len(session.raw), str(i + 1000000).encode()
        start = time.perf_counter()
        session.type("\r")
        while want not in session.raw[at:]:
            session._pump(5)
            if time.perf_counter() - start > 60:
                break
        times.append(time.perf_counter() - start)
    return sorted(times)


def row(what, *values):
    print(f"{what:32}" + "".join(f"{v:>12}" for v in values), flush=True)


def show(what, times):
    row(what, *(f"{times[int((len(times) - 1) * q)] * 1000:.0f} ms"
                for q in (.5, .95, 1)), len(times))


def table(seconds, kinds):
    lab = Lab(1 + MANY[-1])
    quiet, *others = lab.people
    try:
        row("a quiet student's 1+1, beside", "p50", "p95", "worst", "cells")
        s = lab.login(quiet).start()
        answers(s, 2)
        show("nobody", answers(s, seconds))
        for kind in kinds:
            for n in MANY:
                hostile = Hostile(lab, others[:n], KINDS[kind])
                time.sleep(1)
                show(f"{n} who run {kind}", answers(s, seconds))
                hostile.close()
    finally:
        lab.close()


def main():
    if os.geteuid():
        print("(a laboratory: for root)")
        return
    table(float(sys.argv[1]) if len(sys.argv) > 1 else 20,
          sys.argv[2:] or KINDS)


if __name__ == "__main__":
    main()
