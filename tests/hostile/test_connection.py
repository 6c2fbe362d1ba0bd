# SPDX-License-Identifier: MIT
"""The connection may end at any byte, and any process of the session may be
killed. In every case nothing of the session is left on the host."""
import os
import random
import signal

import pytest

import hosttree
from hostile import SWALLOW, start, value, wait_stopped
from world import WHOLE

# Root may look into and signal what a person may not.
pytestmark = pytest.mark.both

BUSY = ("import os, signal, subprocess\n"
        "for n in range(4):\n"
        "    if not os.fork():\n"
        "        os.setsid()\n"
        "        for i in range(1, 65):\n"
        "            try: signal.signal(i, signal.SIG_IGN)\n"
        "            except (OSError, ValueError): pass\n"
        "        while True: pass\n"
        "print('on')\n" + SWALLOW)


def busy(cb):
    s = start(cb, "--set", "cell.timeout=40s", "--set", "cell.cpu=40s")
    row = s.enter(BUSY)
    s.expect_since(row, "^on")
    s.tree = cb.tree(s)
    assert s.tree.warden and len(s.tree.guests()) >= 5
    return s


def hang_up(s):
    os.close(s.master)
    os.close(s.slave)
    s.closed = True
    hosttree.until(lambda: s.process.poll() is not None,
                   "the session to end", 20)


VICTIMS = {
    "front_end": lambda s: s.pid,
    "warden": lambda s: s.tree.warden,
    "init": lambda s: s.tree.init,
    "janitor": lambda s: janitor(s),
    "guest": lambda s: s.tree.guests()[0],
    "checkpoint": lambda s: s.tree.guests()[1],
}


def janitor(s):
    for pid in s.tree.look():
        if hosttree.status_of(pid).get("Name", "").startswith(
                "cellblock-janit"):
            return pid
    pytest.skip("there is no janitor without a cgroup")


def kill(s, name):
    """The pid behind a name can change at any moment: each cell makes a new
    checkpoint. So a pid that is gone is looked up again."""
    def is_sent():
        try:
            os.kill(VICTIMS[name](s), signal.SIGKILL)
            return True
        except (ProcessLookupError, IndexError):
            return False
        except PermissionError:
            pytest.skip(f"no ordinary user may signal the {name}")
    s.wait(is_sent, f"the {name}")


MOMENTS = "in a cell", "at the prompt"


# Each victim once, and each moment with every second one.
@pytest.mark.sampled(2)
@pytest.mark.parametrize("when, name", [
    (when, name) for i, name in enumerate(VICTIMS)
    for when in (MOMENTS[i % 2], MOMENTS[1 - i % 2])])
def test_sigkill_of_any_process_leaves_nothing(cb, name, when):
    if when == "in a cell":
        s = busy(cb)
    else:
        s = start(cb)
        s.run("import subprocess; p = subprocess.Popen(['sleep', '99'])")
        s.tree = cb.tree(s)
    kill(s, name)
    if name in ("warden", "front_end"):
        s.wait_exit(20)
    elif s.process.poll() is None and name in (
            "init", "guest", "checkpoint", "janitor"):
        if when == "in a cell" and name in ("checkpoint", "janitor"):
            s.process.kill()
        else:
            s.wait(lambda: s.at_prompt() or s.process.poll() is not None,
                   "a prompt or the end", 30)
    if s.process.poll() is None and s.at_prompt():
        s.run("1", 30)
        s.tree.look()
    hang_up(s)
    if name == "janitor":
        hosttree.until(lambda: not s.tree.alive(),
                       "every process of the session to end", 20)
        assert cb.run("-c", "pass").code == 0
    s.tree.wait_gone(20)


def janitors():
    """Those that live, of this test's sessions."""
    all_of_them = map(hosttree.status_of, hosttree.mine())
    return [st for st in all_of_them if st.get("Name") == "cellblock-janit"
            and st.get("State", "Z")[0] != "Z"]


@pytest.mark.parametrize("also", [None, "warden"])
def test_the_next_janitor_cleans_up_after_a_killed_janitor(cb, also):
    """Until the killed session ends, a new janitor removes nothing of it, and
    nothing of another running session."""
    # On a busy machine a session with checkpoints may restart Python.
    s, beside = (cb.session("--set", "cell.checkpoint=never") for _ in "12")
    for one in (s, beside):
        one.run("kept = 6 * 7")
    s.tree = cb.tree(s)
    kill(s, "janitor")
    assert cb.run("-c", "pass").code == 0
    # That program is over before its janitor is, which could clean up later.
    hosttree.until(lambda: len(janitors()) == 1, "one janitor, of `beside`")
    assert "42" in s.run("kept")
    if also:
        kill(s, also)
        s.wait_exit()
    else:
        s.leave()
    assert any(map(os.path.exists, s.tree.cgroups)), \
        "no cgroup is left for the next janitor to remove"
    assert cb.run("-c", "pass").code == 0
    s.tree.wait_gone()
    assert "42" in beside.run("kept")


# A /run of its own, as a container or a systemd service may have it.
OWN_RUN = ("unshare", "--mount", "sh", "-c",
           'mount -t tmpfs t /run && exec "$@"', "sh")


@pytest.mark.root
def test_a_janitor_with_another_run_directory_spares_our_sessions(cb):
    """That janitor sees other lock files. To it every id of ours looks
    free."""
    if os.geteuid():
        pytest.skip("an ordinary user's sessions claim no ids")
    s, other = cb.session(), cb.session(wrapper=OWN_RUN)
    assert value(s, "7") == value(other, "7") == "7"
    for one, left in ((other, s), (s, cb.session(wrapper=OWN_RUN))):
        left.run("7")
        tree = cb.tree(one)
        one.leave()
        tree.wait_gone()        # the janitor is the last process to end
        assert value(left, "_") == "7"


@pytest.mark.sampled(3)
@pytest.mark.parametrize("sig", ["SIGHUP", "SIGTERM", "SIGINT", "SIGQUIT",
                                 "SIGKILL", "SIGABRT", "SIGSEGV"])
def test_a_signal_to_the_front_end_leaves_nothing(cb, sig):
    s = busy(cb)
    s.process.send_signal(getattr(signal, sig))
    if sig in ("SIGINT", "SIGQUIT"):
        s._pump(0.2)
        s.process.kill()
    s.wait_exit()
    s.tree.wait_gone(20)


@pytest.mark.sampled
def test_a_terminal_that_closes_at_any_byte_leaves_nothing(cb):
    """The terminal closes in the middle of the banner, of an edited line, or
    of the output of a cell."""
    dice = random.Random(7)
    script = ("x = 1\rprint('abc' * 1000)\r:limits\rimport time\r"
              "while True: pass\r")
    for _ in range(12 if WHOLE else 5):
        s = cb.session(start=False)
        n = dice.randrange(len(script))
        data = script[:n].encode()
        while data:
            data = data[os.write(s.master, data[:7]):]
            s._pump(dice.random() * 0.02)
        tree = cb.tree(s)
        os.close(s.master)
        os.close(s.slave)
        s.closed = True
        hosttree.until(lambda: s.process.poll() is not None,
                       "the session to end", 20)
        tree.wait_gone(20)


def test_a_terminal_that_nobody_reads_does_not_hold_up_the_clock(cb):
    """The test does not read from the terminal. The time limit of the cell strikes
    all the same, and the session works once the terminal is read again."""
    s = start(cb)
    s.enter("while True: print('x' * 1000)")
    t = cb.tree(s)
    hosttree.until(lambda: not t.look() or t.cpu_ticks() > 0, "the cell")
    wait_stopped(t)
    s.wait_prompt(30)
    assert value(s, "kept").endswith("{'cell': 1}")
