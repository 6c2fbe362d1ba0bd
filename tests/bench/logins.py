#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Logins at once, each over ssh into a session of root's maker: the time until
each student, and the last one, has a prompt. The clients are on the same cores.
Nothing here passes or fails. `tests/bench/logins.py [ROUNDS [STUDENTS]]`; $BUILD
names the build directory."""
import os
import pathlib
import pty
import select
import statistics
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from classroom import Lab  # noqa: E402
from sshhost import CHEAP  # noqa: E402
import term  # noqa: E402

STUDENTS = 30
PATIENCE = 60
KEYS = {"curve25519": CHEAP, "ssh's own keys": ()}


def at_once(argvs, mark):
    """Start commands, each on a terminal: the seconds until each has written
    `mark`, in order. They are still there."""
    env = {**os.environ, "TERM": "xterm-256color"}
    seen, begun, processes = {}, time.perf_counter(), []
    for argv in argvs:
        master, slave = pty.openpty()
        processes.append(subprocess.Popen(
            [term.SETSID, "--ctty", *argv], stdin=slave, stdout=slave,
            stderr=slave, env=env))
        os.close(slave)
        seen[master] = b""
    terminals, times = list(seen), []
    while seen and time.perf_counter() - begun < PATIENCE:
        for fd in select.select(list(seen), [], [], 1)[0]:
            try:
                data = os.read(fd, 65536)
            except OSError:     # it has ended
                data = b""
            seen[fd] += data
            if mark in seen[fd]:
                times.append(time.perf_counter() - begun)
            elif data:
                continue
            del seen[fd]
    return times, terminals, processes


def turn(lab, kex):
    times, terminals, processes = at_once(
        [lab.ssh.argv(p, "-tt", kex=kex) for p in lab.people], b">>> ")
    for p in processes:
        p.terminate()
        p.wait()
    for fd in terminals:
        os.close(fd)
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
