# SPDX-License-Identifier: MIT
"""An interrupt, a time limit and an end mark affect one cell only."""
import random
import re

import pytest

import world
from hostile import is_whole, start, value

SEED = 20240229


def race(s, dice, rounds):
    """Enter and Ctrl-C race each other, and nobody looks at the screen."""
    for _ in range(rounds):
        s.type(dice.choice(["1+1", "y=[i for i in range(9999)]", "import os",
                            "while True: pass", "'a'*50"]))
        s.type("\r")
        s._pump(dice.random() * 0.03)
        for _ in range(dice.randrange(1, 4)):
            s.type("\x03")
            s._pump(dice.random() * 0.02)
    # Interrupt the cell that still runs, until the prompt appears: that behind all
    # that was typed.
    for _ in range(20):
        s.type("\x03!")
        try:
            s.wait(lambda: re.match(">>> !+$", s.screen.cursor_row()),
                   "a key at the prompt", 1)
            break
        except AssertionError:
            continue
    s.type("\x03")
    s.wait_prompt()


def strike_a_cell_that_sleeps(s, dice, i):
    row = s.enter("print('on'); "
                  "import time; [time.sleep(.1) for _ in range(200)]")
    s.expect_since(row, "^on")
    s._pump(dice.random() * 0.02)
    s.type("\x03" * dice.randrange(1, 3))
    s.expect_since(row, "KeyboardInterrupt")
    s.wait_prompt()
    # Typed at once: a late interrupt would strike here.
    assert value(s, f"{i} + sum(range(50000))") == str(i + 1249975000)


def strike_as_the_cell_ends(s, dice, i):
    row = s.enter(f"z = sum(range({dice.randrange(10**5)}))")
    s._pump(dice.random() * 0.02)
    s.type("\x03")
    s.wait(lambda: s.screen.here() >= row and s.at_prompt(), "a prompt")
    assert value(s, "7") == "7", f"round {i}"


@pytest.mark.sampled
@pytest.mark.limit(150)
def test_ctrl_c_at_any_moment_strikes_one_cell_and_costs_no_variable(cb):
    s = start(cb, "--set", "cell.timeout=20s")
    dice = random.Random(SEED)
    rounds = 40 if world.WHOLE else 12
    row = s.screen.here()
    race(s, dice, 4 * rounds)
    is_whole(s, row)
    for i in range(rounds):
        strike_a_cell_that_sleeps(s, dice, i)
        strike_as_the_cell_ends(s, dice, i)
    is_whole(s, row)
    assert "restarted" not in s.all_text()


def test_repeated_ctrl_c_ends_a_cell_that_swallows_the_interrupt(cb):
    s = start(cb, "--set", "cell.timeout=50s", "--set", "cell.cpu=50s")
    row = s.enter("print('on')\nwhile True:\n    try:\n        while True: pass"
                  "\n    except BaseException: pass")
    s.expect_since(row, "^on")
    for _ in range(8):
        s.type("\x03")
        try:
            s.wait_prompt(1)
            break
        except AssertionError:
            continue
    s.wait_prompt()
    is_whole(s, row)


def test_a_time_limit_never_reaches_the_next_cell(cb):
    s = start(cb, "--set", f"cell.timeout={500 * world.PATIENCE:.0f}ms",
              "--set", "cell.grace=20s")
    for i in range(8):
        out = s.run("import time; time.sleep(99)")
        assert "interrupted · variables kept" in out, out
        assert value(s, f"{i} + sum(range(50000))") == str(i + 1249975000)


def test_the_end_mark_of_an_earlier_cell_does_not_end_a_later_cell(cb):
    """A cell can find its own end mark in memory. The mark has no effect in
    the next cell."""
    s = start(cb)
    s.run("import gc\nmarks = [o for o in gc.get_objects()"
          " if type(o) is tuple and len(o) == 2 and type(o[1]) is str"
          " and len(o[1]) == 32]")
    out = s.run("for m in marks: print('\\x1b_' + m[1] + '\\x1b\\\\', end='')\n"
                "print('seen')")
    assert "seen" in out.split("\n"), out
    assert value(s, "6 * 7") == "42"


def test_a_cell_that_writes_its_own_end_mark_loses_only_its_own_output(cb):
    """A cell that writes its own end mark early only loses its own output:
    what it writes later is shown as background output. The next cell is
    unaffected."""
    s = start(cb)
    s.run("import gc\nfor o in gc.get_objects():\n"
          "    if type(o) is tuple and len(o) == 2 and type(o[1]) is str"
          " and len(o[1]) == 32:\n"
          "        print('\\x1b_' + o[1] + '\\x1b\\\\', flush=True)\n"
          "print('after')")
    assert value(s, "6 * 7") == "42"
    assert re.search("^after", s.all_text(), re.M)


def test_a_cell_that_claims_to_have_ended_can_be_interrupted(cb):
    s = start(cb, "--set", "cell.timeout=300s", "--set", "cell.cpu=300s")
    s.run("import gc, os")
    row = s.enter("print('on', flush=True)\nfor o in gc.get_objects():\n"
                  "    if type(o) is tuple and len(o) == 2"
                  " and type(o[1]) is str and len(o[1]) == 32:\n"
                  "        print('\\x1b_' + o[1] + '\\x1b\\\\', flush=True)\n"
                  "while not os.path.exists('stop'): pass")
    s.expect_since(row, "^on")
    s._pump(0.2)
    s.type("\x03")
    s.type("x")
    s.wait(lambda: s.screen.here() > row and ">>> x" in s.screen.cursor_row(),
           "the prompt with the typed key")
    s.type("\x03")
    assert value(s, "6 * 7") == "42"
