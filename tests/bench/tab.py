# SPDX-License-Identifier: MIT
"""Tab behind a large frame, here and in IPython: from the key to the last of what
it writes of the list."""
import os
import subprocess
import time

import ipython
from world import PYTHON

SIZE = 40, 100
QUIET = 0.3             # nothing more comes after this
SLOW = 120
FRAME = ("import numpy, pandas; df = pandas.DataFrame("
         "numpy.random.rand(10**6, 60), columns=[f'c{n}' for n in range(60)])")
LISTED = "add_prefix"   # among the first, here and there


def is_possible():
    return ipython.PATH and not subprocess.run(
        [PYTHON, "-c", "import pandas"], capture_output=True,
        check=False).returncode


def settled(session):
    """Read until nothing more comes. Returns when the last of it came."""
    last = time.perf_counter()
    while session._pump(QUIET):
        last = time.perf_counter()
    return last


def tab(session, text):
    session.wait_prompt(SLOW)
    row = session.screen.here()
    session.type(text)
    session.wait(lambda: session._typed(0).endswith(text), text)
    settled(session)
    start = time.perf_counter()
    os.write(session.master, b"\t")
    session.expect_since(row, LISTED, SLOW)
    taken = settled(session) - start
    session.type("\x15")
    return taken


def turns(world, rounds):
    """{what stands before the cursor: [(our seconds, IPython's)...]}"""
    both = [world.session("-q", "-M", "3G", "-t", "60", size=SIZE),
            ipython.IPython(world, SIZE)]
    world.open.append(both[1])
    for s in both:
        s.wait_prompt(SLOW)
        s.type(FRAME + "\r")
        s.wait(lambda: not s.at_prompt(), "the cell")
        s.wait_prompt(SLOW)
    times = {text: [[tab(s, text) for s in both] for _ in range(rounds)]
             for text in ("df.", "df.c1.")}
    for s in both:
        s.close()
    return times
