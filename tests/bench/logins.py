#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Logins at once, each over ssh into a session of root's maker: the time until
each student, and the last one, has a prompt. The clients are on the same cores.
It measures, and tests nothing. `tests/bench/logins.py [ROUNDS [STUDENTS]]`; $BUILD
names the build directory."""
import os
import pathlib
import statistics
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from classroom import Lab  # noqa: E402
from sshhost import CHEAP  # noqa: E402
from terminals import at_once  # noqa: E402

STUDENTS = 30
KEYS = {"curve25519": CHEAP, "ssh's own keys": ()}


def turn(lab, kex):
    times, terminals = at_once(
        [lab.ssh.argv(p, "-tt", kex=kex) for p in lab.people], b">>> ",
        {**os.environ, "TERM": "xterm-256color"})
    for t in terminals:
        t.end()
    lab.end_sessions()
    return times


def row(what, *values):
    print(f"{what:32}" + "".join(f"{v:>12}" for v in values), flush=True)


def table(rounds, students=STUDENTS):
    lab = Lab(students)
    try:
        row(f"{students} logins at once", "first", "median", "last", "prompts")
        for what, kex in KEYS.items():
            for i in range(rounds):
                times = turn(lab, kex)
                row(f"  {what}, turn {i + 1}", *(f"{t * 1000:.0f} ms" for t in (
                    times[0], statistics.median(times), times[-1])),
                    len(times))
                time.sleep(2)
    finally:
        lab.close()


def main():
    if os.geteuid():
        print("(a laboratory: for root)")
        return
    table(int(sys.argv[1]) if len(sys.argv) > 1 else 5,
          int(sys.argv[2]) if len(sys.argv) > 2 else STUDENTS)


if __name__ == "__main__":
    main()
