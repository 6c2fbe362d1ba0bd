# SPDX-License-Identifier: MIT
"""The clocks of a cell and of a session. The CPU clock counts all processes.
The wall clock pauses while the cell waits for the person. The limits of the
session are announced before they strike."""
import hosttree
import pytest

from hostile import is_whole, patient, start, value
from world import PATIENCE

# Root's jails are stopped by the freezer, a person's by signals.
pytestmark = pytest.mark.both

# The limit of cells that meet it, or pause it; other cells do little within it.
LIMIT = int(2 * PATIENCE)
SOON = "--set", f"cell.timeout={LIMIT}s"
MET = rf"time limit: {LIMIT} s"
# Announced a minute before it strikes, and that is later than LIMIT.
LATER = "--set", f"session.lifetime={62 + 2 * LIMIT}s"


def test_cpu_limit_counts_every_process(cb):
    s = start(cb, *patient("cell.timeout", 30), "--set", "cell.cpu=1s")
    row = s.screen.here()
    out = s.run("import os\nfor i in range(3): os.fork()\nwhile True: pass", 25)
    assert "CPU limit: 1 s" in out, out
    is_whole(s, row)


def test_cpu_limit_counts_threads_of_children(cb):
    s = start(cb, *patient("cell.timeout", 30), "--set", "cell.cpu=1s")
    row = s.screen.here()
    out = s.run("import subprocess, sys\nsubprocess.run([sys.executable, '-c',"
                "'''import threading\ndef f():\n    while True: pass\n"
                "threading.Thread(target=f).start(); f()'''])", 25)
    assert "CPU limit: 1 s" in out, out
    is_whole(s, row)


def test_cpu_limit_counts_what_pid_1_does_for_a_cell(cb):
    """It answers each call that locks a record."""
    s = start(cb, *patient("cell.timeout", 30), "--set", "cell.cpu=1s")
    work = ("import fcntl, time\nf = open('/home/f', 'w')\n"
            "end = time.process_time() + 0.75\n"
            "while time.process_time() < end: %s")
    row = s.screen.here()
    assert "limit" not in s.run(work % "fcntl.fcntl(f, fcntl.F_GETFD)", 25)
    assert "CPU limit: 1 s" in s.run(work % "fcntl.lockf(f, fcntl.LOCK_EX)", 25)
    is_whole(s, row)


def test_cpu_limit_counts_children_whose_deaths_are_ignored(cb):
    s = start(cb, "--set", "cell.timeout=60s", "--set", "cell.cpu=1s")
    row = s.screen.here()
    out = s.run("import os, signal, time\n"
                "signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
                "end = time.monotonic() + 50\n"
                "while time.monotonic() < end:\n"
                "    if not os.fork():\n"
                "        while time.process_time() < 0.3: pass\n"
                "        os._exit(0)\n"
                "    try: os.wait()\n"
                "    except ChildProcessError: pass", 55)
    assert "CPU limit: 1 s" in out, out
    is_whole(s, row)


def test_an_earlier_cells_cpu_is_not_counted_again(cb):
    s = start(cb, *patient("cell.timeout", 30), "--set", "cell.cpu=1s")
    burn = ("import time\nend = time.process_time() + 0.4\n"
            "while time.process_time() < end: pass")
    for _ in range(4):
        assert "limit" not in s.run(burn, 25)


WAITS = {
    "input": "x = input('? ')",
    "read": "import os; print('? ', end='', flush=True); x = os.read(0, 9)",
    "getpass": "import getpass; x = getpass.getpass('? ')",
    "a_loop_of_events":
        "import asyncio, sys; print('? ', end='', flush=True)\n"
        "async def wait():\n"
        "    line = asyncio.Event()\n"
        "    asyncio.get_running_loop().add_reader(0, line.set)\n"
        "    while not line.is_set():\n"
        "        try: await asyncio.wait_for(line.wait(), 0.3)\n"
        "        except asyncio.TimeoutError: pass\n"
        "    asyncio.get_running_loop().remove_reader(0)\n"
        "asyncio.run(wait()); x = sys.stdin.readline()",
    "select": "import select, sys; print('? ', end='', flush=True);"
              " select.select([0], [], []); x = sys.stdin.readline()",
    "select_with_a_timeout":
        "import select, sys; print('? ', end='', flush=True)\n"
        "while not select.select([0], [], [0], 0.3)[0]: pass\n"
        "x = sys.stdin.readline()",
    "child": "import subprocess; print('? ', end='', flush=True);"
             " x = subprocess.run(['head', '-n1'], stdout=-1).stdout",
    "poll_with_a_timeout":
        "import select, sys; print('? ', end='', flush=True)\n"
        "p = select.poll(); p.register(0, select.POLLIN)\n"
        "while not p.poll(300): pass\n"
        "x = sys.stdin.readline()",
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", WAITS)
def test_the_wall_clock_pauses_while_a_cell_waits_for_the_person(cb, name):
    s = start(cb, *SOON, *LATER)
    s.run("import getpass, os, select, subprocess, sys")
    if name == "a_loop_of_events":
        s.run("import inspect, enum, ssl")  # asyncio takes long to load
        s.run("import asyncio")
    row = s.enter(WAITS[name])
    s.expect_since(row, r"^\?")
    s.wait_notice("lifetime")
    s.type("late\r")
    s.wait_prompt()
    assert "late" in value(s, "x")


def test_the_wall_clock_pauses_while_a_full_screen_program_waits(cb):
    """It waits for a key with a timeout, and for the next one again."""
    s = start(cb, *SOON, *LATER)
    s.run("""\
import curses
def main(w):
    w.addstr('? '); curses.halfdelay(3)
    while True:
        try: return w.getkey()
        except curses.error: pass""")
    s.enter("curses.wrapper(main)")
    s.wait(lambda: s.screen.alternate, "the program's screen")
    s.expect(r"lifetime limit")
    assert s.screen.alternate
    s.type("k")
    s.wait_prompt()
    assert value(s, "_") == "'k'"


PRETENDS = {
    "another_thread_burns":
        "import threading\ndef f():\n    while True: pass\n"
        "threading.Thread(target=f, daemon=True).start()\ninput('? ')",
    "another_thread_sleeps_and_works":
        "import threading, time\ndef f():\n    while True:\n"
        "        time.sleep(0.002); sum(range(200000))\n"
        "threading.Thread(target=f, daemon=True).start()\ninput('? ')",
    "a_child_burns":
        "import os\nif not os.fork():\n    while True: pass\ninput('? ')",
    "reads_something_else":
        "import os\na, b = os.pipe(); print('? '); os.read(a, 1)",
    "reads_another_terminal":
        "import pty, os\na, b = pty.openpty(); print('? '); os.read(b, 1)",
    "works_between_short_waits":
        "import select; print('? ')\n"
        "while True: select.select([0], [], [], 0.002); sum(range(200000))",
    "waits_with_a_timeout_for_something_else":
        "import select, socket; a, b = socket.socketpair(); print('? ')\n"
        "while True: select.select([a], [], [0], 0.05)",
    "sleeps": "import time; print('? '); time.sleep(99)",
    "a_child_writes_text":
        "import os\nif not os.fork():\n    b = b'a' * 65536\n"
        "    while True: os.write(1, b)\ninput('? ')",
    "a_child_writes_what_is_dropped":
        "import os\nif not os.fork():\n    b = b'\\x1b' * 65536\n"
        "    while True: os.write(2, b)\ninput('? ')",
    "a_child_writes_and_waits_for_it_to_be_read":
        "import os, termios\nif not os.fork():\n    b = b'\\x1b]' * 2000\n"
        "    while True: os.write(1, b); termios.tcdrain(1)\ninput('? ')",
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", PRETENDS)
def test_the_wall_clock_runs_for_a_cell_that_only_pretends_to_wait(cb, name):
    s = start(cb, *SOON, "--set", "cell.cpu=60s")
    row = s.enter(PRETENDS[name])
    s.expect_since(row, MET, 20)
    s.wait_prompt()
    is_whole(s, row)


def test_the_wall_clock_runs_while_output_waits_to_be_read(cb):
    """The terminal takes nothing more, so all that a child does is to sleep.
    It has written, all the same: the cell does not wait for the person
    alone."""
    s = start(cb, *SOON, "--set", "cell.cpu=60s")
    tree = cb.tree(s)

    def yes():
        states = map(hosttree.status_of, tree.guests())
        return [p for p in states if p.get("Name") == "yes"
                and not p["State"].startswith("Z")]
    row = s.enter("import subprocess; p = subprocess.Popen('yes'); input('? ')")
    hosttree.until(yes, "the child")
    hosttree.until(lambda: not yes(), "the end of the child")
    s.expect_since(row, MET, 20)


def test_output_between_cells_is_read_slowly(cb):
    """With cell.background = run nothing bounds what a thread writes at the
    prompt but how often the front end looks. While a cell begins or ends all is
    read at once, so most tenths of a second count."""
    s = cb.session("--set", "cell.background=run", "--set",
                   f"session.idle={60 + 2 * PATIENCE:.0f}s")
    s.run("""\
import collections, os, threading, time
tenths = collections.Counter()
def flood():
    while True:
        tenths[int(time.monotonic() * 10)] += os.write(1, b'\\x1b' * 4096)""")
    s.run("threading.Thread(target=flood, daemon=True).start()")
    s.wait_notice("idle")           # two seconds at the prompt
    s.run("seen = sorted(tenths.values())")
    row = s.enter(r"print(f'\nwritten: {seen[len(seen) // 2]}.')")
    written = s.expect_since(row, r"written: (\d+)\.")
    assert 0 < int(written[1]) < (16 << 20) / 20


WAITING = pytest.mark.parametrize("cell", [
    "input('? ')",
    "import select\nwhile True: select.select([0], [], [], 0.05)"])


@WAITING
def test_the_wait_for_the_person_is_bounded_by_the_idle_limit(cb, cell):
    s = start(cb, *SOON, *patient("session.idle", 4))
    row = s.enter(cell)
    s.expect_since(row, MET, 20)


@WAITING
def test_the_wait_for_the_person_is_bounded_by_the_lifetime(cb, cell):
    s = cb.session(*SOON, *patient("session.lifetime", 5))
    s.enter(cell)
    s.wait_exit(20)
    assert f"lifetime limit: {int(5 * PATIENCE)} s" in s.all_text()


def test_a_cell_that_waits_with_timeouts_has_no_cpu_for_nothing(cb):
    s = start(cb, "--set", "cell.timeout=60s", "--set", "cell.cpu=1s")
    row = s.enter("import select\n"
                  "while True: select.select([0], [], [], 0.01);"
                  " sum(range(100000))")
    s.expect_since(row, r"CPU limit: 1 s", 60)


def test_a_short_idle_limit_is_announced_at_once(cb):
    limit = int(4 * PATIENCE)
    s = cb.session(*patient("session.idle", 4))
    said = s.expect(r"the session ends in (\d+) s: idle limit")
    assert 1 <= int(said[1]) <= limit
    s.wait_exit(15)
    assert f"idle limit: {limit} s" in s.all_text()


def test_the_lifetime_limit_is_announced_once_while_the_person_works(cb):
    s = cb.session(*patient("session.lifetime", 5))
    for i in range(5):
        s.run(str(i))
    s.wait_exit(20)
    text = s.all_text()
    assert text.count("lifetime limit") == 2, text  # before, and when it came
    assert f"lifetime limit: {int(5 * PATIENCE)} s" in text


def test_the_lifetime_limit_is_announced_during_a_cell(cb):
    s = cb.session("--set", f"session.lifetime={60 + 3 * PATIENCE:.0f}s", "--set",
                   "cell.timeout=100s", "--set", "session.idle=10m")
    row = s.enter("input('? ')")
    s.expect_since(row, r"the session ends in \d+ s: lifetime limit", 10)
    assert s.process.poll() is None


def test_typing_restarts_the_idle_clock(cb):
    """The session runs for longer than the idle limit, yet the idle limit is
    never announced."""
    s = cb.session("--set", f"session.idle={60 + 2 * PATIENCE:.0f}s",
                   "--set", f"session.lifetime={60 + 5 * PATIENCE:.0f}s")
    while "lifetime limit" not in s.all_text():
        assert value(s, "1 + 1") == "2"
        s._pump(0.5)
    assert "idle limit" not in s.all_text()
    s.wait_notice("idle")       # the control: now nobody types


def test_a_long_cell_does_not_end_the_session_by_its_idle_limit(cb):
    limit = int(3 * PATIENCE)
    s = cb.session(*patient("session.idle", 3), *patient("cell.timeout", 9))
    row = s.enter(f"import time; time.sleep({limit + .5})")
    said = s.expect_since(row, r"the session ends in (\d+) s: idle limit")
    assert limit - PATIENCE <= int(said[1]) <= limit, said
    # The notice is said at every prompt, too late for the answer here and there.
    s.expect_since(s.enter("6 * 7"), "^42")
