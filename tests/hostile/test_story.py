# SPDX-License-Identifier: MIT
"""One session runs every kind of bad cell, one after the other. A dictionary
from cell 1 survives them all."""
import random

import pytest

from hostile import SWALLOW, uses_no_cpu, value
from world import PATIENCE, WHOLE

KEPT = "{'made': 'in cell 1', 'list': [1, 2, 3]}"


def fill_memory(s):
    out = s.run("pieces = []\nwhile True: pieces.append(bytearray(4 << 20))",
                40)
    assert "memory limit: 192 MiB" in out or "MemoryError" in out, out
    if "MemoryError" in out:
        s.run("del pieces")


STORY = {
    "an endless loop that swallows every exception":
        lambda s: s.run(SWALLOW, 60),
    "a null pointer":
        lambda s: s.run("import ctypes; ctypes.string_at(0)", 20),
    "all memory used": fill_memory,
    "a fork bomb":
        lambda s: s.run("import os\nwhile True:\n    try: os.fork()\n"
                        "    except OSError: pass", 60),
    "a kill of the process group":
        lambda s: s.run("import os; os.kill(0, 9)", 20),
    "every descriptor closed":
        lambda s: s.run("import os; os.closerange(0, 65536)", 20),
    "stdout closed":
        # As in plain Python, nothing is shown until stdout is opened again.
        lambda s: (s.run("import sys; sys.stdout.close()", 20),
                   s.run("sys.stdout = open(1, 'w', closefd=False)")),
    "a thread that never ends":
        lambda s: s.run("import threading\ndef spin():\n    while True: pass\n"
                        "threading.Thread(target=spin, daemon=True).start()",
                        20),
    "undo": lambda s: s.run(":undo", 20),
}


# The limit that ends a cell that burns: the time limit, or earlier the CPU limit,
# in which the memory can be filled.
CPU = f"{16 if WHOLE else max(1, PATIENCE):.0f}s"


@pytest.mark.sampled
@pytest.mark.limit(240)
def test_a_dictionary_of_cell_1_outlives_every_bad_cell(cb):
    s = cb.session("--set", "cell.timeout=16s", "--set", f"cell.cpu={CPU}",
                   "--set", "cell.grace=300ms", "--set",
                   "session.processes=40", "-M", "192M", size=(40, 100))
    s.run("kept = " + KEPT)
    for what, do in STORY.items():
        do(s)
        # A process that an earlier cell left behind may print, too.
        assert KEPT in s.run("kept", 30).split("\n"), f"after {what}"


def test_random_numbers_are_those_of_plain_python(cb):
    s = cb.session()
    s.run("import random; random.seed(1)")
    assert s.run("random.random()") == repr(random.Random(1).random())


def test_a_busy_thread_uses_no_cpu_while_the_prompt_waits(cb):
    s = cb.session("--set", "session.idle=61s")
    s.run("import threading, time; n = 0\ndef spin():\n    global n\n"
          "    while True: n += 1\n"
          "threading.Thread(target=spin, daemon=True).start()")
    uses_no_cpu(s, cb.tree(s))
    # The control: the thread exists and runs again during the next cell.
    s.run("m = n\nwhile n == m: time.sleep(0.1)\n")
    assert value(s, "n > m") == "True"
