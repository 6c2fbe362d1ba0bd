#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Grade 200 submissions that use 50 ms of a processor each, in turns with bare
Python, as many at a time as there are cores. It measures, and tests nothing.
`tests/bench/graded.py [ROUNDS [SUBMISSIONS]]`; $BUILD names the build
directory."""
import concurrent.futures
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "lib"))

from world import CELLBLOCK, PYTHON, World  # noqa: E402

CORES = len(os.sched_getaffinity(0))
BUSY = ("import time\nend = time.process_time() + 0.05\n"
        "while time.process_time() < end:\n    pass\nprint(1)\n")
PLAN = "[grade]\nprogram = hw.py\n[test one]\noutput = 1\n"


def timed(run):
    """The seconds that a run takes, and the CPU seconds of all its
    processes."""
    before, start = os.times(), time.perf_counter()
    run()
    took, after = time.perf_counter() - start, os.times()
    return took, (after.children_user + after.children_system -
                  before.children_user - before.children_system)


def measure(rounds, count):
    """[(seconds, CPU seconds of bare Python, the same of ours)...]"""
    world = World(tempfile.mkdtemp(prefix="cbbench-"))
    subs = world.work / "subs"
    subs.mkdir()
    for i in range(count):
        (subs / f"s{i}.py").write_text(BUSY)
    (world.work / "plan.ini").write_text(PLAN)
    files = sorted(subs.iterdir())

    def bare():
        with concurrent.futures.ThreadPoolExecutor(CORES) as pool:
            list(pool.map(lambda f: subprocess.run(
                [PYTHON, f], check=True, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE), files))

    def ours():
        subprocess.run([CELLBLOCK, "--grade", "plan.ini", "subs", "-j",
                        str(CORES)], cwd=world.work, env=world.env,
                       check=True, stdout=subprocess.DEVNULL)
    try:
        return [(*timed(bare), *timed(ours)) for _ in range(rounds)]
    finally:
        world.close()
        shutil.rmtree(world.base, ignore_errors=True)


def rows(rounds, count=200):
    """The rows to print: pairs of a name and values."""
    turns = measure(rounds, count)
    yield (f"{count} submissions of 50 ms, Python alone",
           f"{statistics.median(t[0] for t in turns):.2f} s")
    yield (f"{count} submissions of 50 ms, --grade -j {CORES}",
           f"{statistics.median(t[2] for t in turns):.2f} s",
           f"{statistics.median(t[2] / t[0] for t in turns):.2f}")
    yield ("  CPU time of all processes, of Python's",
           f"{statistics.median(t[3] / t[1] for t in turns):.2f}")


if __name__ == "__main__":
    for what, *values in rows(*(int(w) for w in sys.argv[1:] or ["3"])):
        print(f"{what:44}" + "".join(f"{v:>14}" for v in values), flush=True)
