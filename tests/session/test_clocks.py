# SPDX-License-Identifier: MIT
"""Sessions whose clock jumps, that have been silent for long, or that rest."""
import re
import time

import pytest

import hindered
import hosttree
from world import PATIENCE

# Root's jails are stopped by the freezer, a person's by signals.
pytestmark = pytest.mark.both

DAY = 24 * 3600


@pytest.fixture(name="clocks")
def _clocks(cb):
    return hindered.Clocks(cb)


@pytest.mark.parametrize("day", [400 * DAY, -400 * DAY])
def test_no_limit_goes_by_the_time_of_day(clocks, many, day):
    """Of a session that is attached, runs a cell, and is detached."""
    s = many.start("-t", "40s", "-s", "session.idle=1h", "-s",
                   "session.lifetime=2h", "-s", "session.linger=1h")
    s.run("x = 41")
    row = s.enter("import time; t = time.time(); print('on'); "
                  "time.sleep(2); t = abs(time.time() - t)")
    s.expect_since(row, "^on")
    clocks.set(day)
    s.wait_prompt()
    assert s.run("x + 1") == "42"
    many.lose(s)
    clocks.set(-day)
    e = many.only()
    assert e["answers"] and e["detached"]
    assert 0 <= e["idle_ms"] < 60_000
    line = many.cb.run("--sessions").text.split("\n")[1]
    assert not re.search(r"\s-\d", line), line
    t = many.start("--attach")
    assert t.run("x + 1") == "42"
    assert t.leave() == 0


@pytest.mark.parametrize("day", [-400 * DAY, 400 * DAY])
def test_a_session_that_nobody_wants_ends_all_the_same(
        clocks, many, day):
    # Before it ends it is to be seen without its terminal.
    s = many.start("-s", f"session.linger={int(3 * PATIENCE)}s")
    s.run("x = 41")
    many.lose(s)
    clocks.set(day)
    many.none()


def test_a_session_that_is_silent_for_long_is_offered(
        clocks, many):
    """Its terminal may be a line that broke without a word."""
    s = many.start()
    s.run("x = 41")
    clocks.set(slept=8 * 60)
    other = many.start()              # a new one, and no question
    assert other.leave() == 0
    hosttree.until(lambda: len(many.registry()) == 1, "its end")
    clocks.set(slept=11 * 60)
    assert not many.only()["detached"]
    t = many.start(start=False)
    t.expect(r"is on another terminal, silent for 1\d min · Enter")
    t.type("\r")
    assert s.wait_exit() == 0 and "taken over" in s.all_text()
    assert t.run("x + 1") == "42"
    # A person who has just come back is not silent.
    assert many.only()["idle_ms"] < 60_000
    other = many.start()
    assert other.leave() == 0


def switches(pids):
    """How often they have been awake."""
    return {pid: [status[key] for key in status if key.endswith("switches")]
            for pid in pids for status in [hosttree.status_of(pid)]}


def rests(pids):
    before = switches(pids)
    time.sleep(4)
    return switches(pids) == before


def test_a_session_at_rest_is_not_woken(many):
    """On a terminal, and without one; where a freezer stops the jail, and where
    signals do."""
    s = many.start()
    s.run("x = 41")
    pids = {s.pid, *hosttree.descendants(s.pid)}
    assert len(pids) > 5
    hosttree.until(lambda: rests(pids), "the session to rest", 60)
    many.lose(s)
    pids.remove(s.pid)
    hosttree.until(lambda: rests(pids), "the session to rest", 60)
    t = many.start("--attach")
    assert t.run("x + 1") == "42"
