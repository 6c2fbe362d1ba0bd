#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Measure the cost of checkpoints, and print a table. It measures, and
tests nothing. `tests/bench/checkpoints.py [ROUNDS]`; $BUILD names the build directory.

Each time is measured at the terminal, from Enter to the bytes of the
answer."""
import pathlib
import shutil
import statistics
import sys
import tempfile
import time

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "lib"))

from hosttree import until  # noqa: E402
from world import World  # noqa: E402

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 15
LARGE = ("-M", "2G", "--set", "cell.timeout=60s", "--set", "cell.cpu=60s")
BIG = "big = bytearray(b'x') * (500 << 20)"
# The floats and their list take about 350 MB.
SMALL_OBJECTS = "many = [float(i) for i in range(11_000_000)]"
READ = "sum(many)"


def ms(seconds):
    return f"{seconds * 1000:.2f} ms"


def row(what, values):
    values = sorted(values)
    print(f"{what:52}{ms(statistics.median(values)):>12}"
          f"{ms(values[0]):>12}{ms(values[-1]):>12}", flush=True)


def timed(s, cell, wanted):
    """The seconds from Enter to `wanted`, and from Enter to the next
    prompt."""
    s.wait_prompt()
    s.type(cell)
    s.expect(lambda text: text.rstrip().endswith(cell))
    at = len(s.raw)
    start = time.perf_counter()
    s.type("\r")
    while wanted not in s.raw[at:]:
        s._pump(5)
    answer = time.perf_counter() - start
    while b">>> " not in s.raw[at:]:
        s._pump(5)
    return answer, time.perf_counter() - start


def product(i):
    return f"1000003*{i + 7}", str(1000003 * (i + 7)).encode()


def cells(s, what, tree, n=ROUNDS):
    """Cells of a person who reads before typing, so that the checkpoint is
    taken by then; and cells typed at once."""
    times = []
    for i in range(n):
        until(tree.nothing_runs, "the jail to be stopped")
        times.append(timed(s, *product(i)))
    row(f"{what}: Enter -> answer", [a for a, _ in times])
    row(f"{what}: Enter -> next prompt", [p for _, p in times])
    times = [timed(s, *product(i)) for i in range(n)]
    row(f"{what}: the same, typed at once", [p for _, p in times])


def rollbacks(s, what, n=5):
    """The time from the Enter of a cell that dies to the next prompt."""
    times = []
    s.run("import os")
    for i in range(n):
        s.wait_prompt()
        s.type("os._exit(1)")
        s.expect(lambda text: text.rstrip().endswith("os._exit(1)"))
        at = len(s.raw)
        start = time.perf_counter()
        s.type("\r")
        while b"back to the state" not in s.raw[at:]:
            s._pump(5)
        while b">>> " not in s.raw[at:]:
            s._pump(5)
        times.append(time.perf_counter() - start)
    row(f"{what}: crash -> usable prompt", times)


def reading(world, checkpoint):
    s = world.session("-q", *LARGE, "--set", f"cell.checkpoint={checkpoint}")
    s.run(SMALL_OBJECTS, 60)
    start = time.perf_counter()
    for _ in range(10):
        s.run(READ, 60)
    seen = time.perf_counter() - start
    s.close()
    return seen


def main():
    world = World(tempfile.mkdtemp(prefix="cbbench-"))
    try:
        print(f"{'':52}{'median':>12}{'best':>12}{'worst':>12}")
        s = world.session("-q")
        s.run("x = 1")
        cells(s, "small session", world.tree(s))
        rollbacks(s, "small session")
        s.close()
        s = world.session("-q", *LARGE)
        s.run(BIG, 60)
        cells(s, "session of 500 MB", world.tree(s))
        rollbacks(s, "session of 500 MB")
        s.close()
        with_them = reading(world, "auto")
        without = reading(world, "never")
        row("ten cells that read 350 MB, auto", [with_them])
        row("the same without checkpoints", [without])
        print(f"{'':52}{with_them / without:>11.2f}x")
    finally:
        world.close()
        shutil.rmtree(world.base, ignore_errors=True)


if __name__ == "__main__":
    main()
