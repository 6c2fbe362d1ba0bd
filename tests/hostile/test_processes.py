# SPDX-License-Identifier: MIT
"""Processes that resist being stopped or killed, and processes that hide. The
time limit of the cell ends them, and the session survives them."""
import subprocess
import sys

import pytest

import hosttree
from hostile import (END_FIRST_THREAD, HANG, patient, recovers, said_since,
                     start, uses_no_cpu, value, wait_stopped)

# Root's jails are stopped by the freezer, a person's by signals.
pytestmark = pytest.mark.both

DETACH = "import os, time, signal\n"
CELLS = {
    "ignores_every_signal":
        "for n in range(1, 65):\n    try: signal.signal(n, signal.SIG_IGN)\n"
        "    except (OSError, ValueError): pass\nwhile True: pass",
    "blocks_every_signal":
        "signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\n"
        "while True: pass",
    "handlers_that_loop":
        "def h(*a):\n    while True:\n        try: time.sleep(9)\n"
        "        except BaseException: pass\nsignal.signal(2, h)\n"
        "os.kill(os.getpid(), 2)",
    "stops_itself": "os.kill(os.getpid(), signal.SIGSTOP)",
    "stops_its_process_group": "os.kill(0, signal.SIGSTOP)",
    "kills_its_process_group": "os.kill(0, 9)",
    "hangs_up_its_process_group": "os.kill(0, signal.SIGHUP)",
    "child_in_a_session_of_its_own": "os.fork() and os.wait()\n"
                   "os.setsid() if os.getpid() != os.getpgrp() else 0\n"
                   "while True: pass",
    "leaves_its_process_group": "os.setpgid(0, 0)\nwhile True: pass",
    "child_takes_the_terminal":
        "p = os.fork()\nif not p:\n    os.setpgid(0, 0)\n"
        "    signal.signal(signal.SIGTTOU, signal.SIG_IGN)\n"
        "    os.tcsetpgrp(0, os.getpid())\n    time.sleep(99)\n"
        "while True: pass",
    "child_takes_the_terminal_and_dies":
        "p = os.fork()\nif not p:\n    os.setpgid(0, 0)\n"
        "    signal.signal(signal.SIGTTOU, signal.SIG_IGN)\n"
        "    os.tcsetpgrp(0, os.getpid())\n    os._exit(0)\nos.wait()",
    "daemons": "for i in range(10):\n    if not os.fork():\n"
               "        os.setsid()\n        if os.fork(): os._exit(0)\n"
               "        while True: pass\n    os.wait()",
    "daemons_that_ignore":
        "for i in range(5):\n    if not os.fork():\n        os.setsid()\n"
        "        for n in range(1, 65):\n"
        "            try: signal.signal(n, signal.SIG_IGN)\n"
        "            except (OSError, ValueError): pass\n"
        "        while True: pass",
    "children_continue_each_other":
        "kids = []\nfor i in range(6):\n    p = os.fork()\n"
        "    if not p:\n        me = os.getpid()\n"
        "        while True:\n            for q in range(me - 7, me + 7):\n"
        "                if q > 2 and q != me:\n"
        "                    try: os.kill(q, signal.SIGCONT)\n"
        "                    except OSError: pass\n",
    "children_stop_everyone":
        "for i in range(6):\n    p = os.fork()\n"
        "    if not p:\n        me = os.getpid()\n"
        "        while True:\n            for q in range(2, me + 7):\n"
        "                if q != me:\n"
        "                    try: os.kill(q, signal.SIGSTOP)\n"
        "                    except OSError: pass\nwhile True: pass",
    "children_continue_each_other_from_threads":
        "import threading\nr, w = os.pipe()\nkids = []\n"
        "def cont(all):\n    while True:\n        for q in all:\n"
        "            try: os.kill(q, signal.SIGCONT)\n"
        "            except OSError: pass\n"
        "for i in range(3):\n    kids.append(os.fork())\n"
        "    if not kids[-1]:\n"
        "        all = [int(q) for q in os.read(r, 99).split()]\n"
        "        for j in range(3):\n"
        "            threading.Thread(target=cont, args=(all,)).start()\n"
        "        while True: time.sleep(99)\n"
        "for i in range(3):\n"
        "    os.write(w, b'%6d %6d %6d '.ljust(99) % tuple(kids))\n"
        "time.sleep(0.3)",
    "without_its_first_thread":
        END_FIRST_THREAD + "def spin():\n    while True: pass\n"
        "threading.Thread(target=spin).start(); end_first_thread()",
    "children_without_their_first_thread":
        END_FIRST_THREAD + "def spin():\n    while True: pass\n"
        "for i in range(3):\n    if not os.fork():\n"
        "        threading.Thread(target=spin).start(); end_first_thread()",
    "children_without_first_threads_continue_each_other":
        END_FIRST_THREAD +
        "r, w = os.pipe()\nkids = []\n"
        "def cont():\n    all = [int(q) for q in os.read(r, 99).split()]\n"
        "    while True:\n        for q in all:\n"
        "            try: os.kill(q, signal.SIGCONT)\n"
        "            except OSError: pass\n"
        "for i in range(3):\n    kids.append(os.fork())\n"
        "    if not kids[-1]:\n"
        "        threading.Thread(target=cont).start(); end_first_thread()\n"
        "for i in range(3):\n"
        "    os.write(w, b'%6d %6d %6d '.ljust(99) % tuple(kids))\n"
        "time.sleep(0.3)",
    "pids_used_up_quickly":
        "end = time.time() + 1\nwhile time.time() < end:\n"
        "    p = os.fork()\n    if not p: os._exit(0)\n    os.waitpid(p, 0)",
    "fork_and_forget":
        "signal.signal(signal.SIGCHLD, signal.SIG_IGN)\nwhile True:\n"
        "    try:\n        if not os.fork(): os._exit(0)\n"
        "    except OSError: pass",
    "orphan_storm":
        "while True:\n    try:\n        if not os.fork():\n"
        "            if os.fork(): os._exit(0)\n            os._exit(0)\n"
        "        os.wait()\n    except OSError: pass",
    "fork_bomb": "while True:\n    try: os.fork()\n    except OSError: pass",
    "fork_bomb_with_a_session_for_each":
        "while True:\n    try:\n        os.fork(); os.setsid()\n"
        "    except OSError: pass",
    "vfork_that_hangs":
        "import subprocess\nsubprocess.Popen(['sh', '-c',"
        " 'while :; do :; done'])\nwhile True: pass",
    "asks_to_be_traced_and_stops_itself":
        "import ctypes\nctypes.CDLL(None).ptrace(0, 0, 0, 0)\n"
        "os.kill(os.getpid(), signal.SIGSTOP)",
    "thread_storm":
        "import threading\nwhile True:\n    try:\n"
        "        threading.Thread(target=time.sleep, args=(99,),"
        " daemon=True).start()\n    except RuntimeError: pass",
    "hangs_in_c": "10 ** 10 ** 8 % 7",
    "hangs_in_c_without_the_gil":
        "import ctypes; ctypes.CDLL(None).sleep(99); ctypes.CDLL(None).pause()"
        "\nwhile True: ctypes.CDLL(None).pause()",
    "hangs_in_del": "class A:\n    def __del__(s):\n        while True:\n"
              "            try: time.sleep(9)\n"
              "            except BaseException: pass\na = A()\ndel a",
    "hangs_in_repr": "class A:\n    def __repr__(s):\n        while True:\n"
               "            try: time.sleep(9)\n"
               "            except BaseException: pass\nA()",
    "hangs_in_str_of_an_exception":
        "class A(Exception):\n    def __str__(s):\n        while True:\n"
        "            try: time.sleep(9)\n"
        "            except BaseException: pass\nraise A",
    "hangs_in_a_signal_handler":
        "def h(*a):\n    while True: pass\n"
        "signal.signal(signal.SIGALRM, h); signal.setitimer(0, 0.01)\n"
        "while True: pass",
    "deadlocks_and_swallows_the_interrupt":
        "import threading\nwhile True:\n    try: threading.Lock().acquire()"
        " and threading.Event().wait()\n    except BaseException: pass",
    "atexit_function_that_hangs":
        "import atexit\ndef h():\n    while True: pass\n"
        "atexit.register(h); os.kill(os.getpid(), 15)",
    "calls_abort": "os.abort()",
    "stack_overflow_in_c":
        "import sys; sys.setrecursionlimit(10**8)\n"
        "class A:\n    def __getattr__(s, n): return getattr(s, n)\nA().x",
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", CELLS)
def test_a_process_that_resists_costs_no_session(cb, name):
    s = start(cb)
    recovers(s, DETACH + CELLS[name], deadline=30)


WITHOUT_FIRST = ["without_its_first_thread",
                 "children_without_their_first_thread",
                 "children_without_first_threads_continue_each_other"]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ["daemons", "daemons_that_ignore",
                                  "children_continue_each_other",
                                  "children_continue_each_other_from_threads",
                                  "child_takes_the_terminal", "thread_storm",
                                  *WITHOUT_FIRST])
def test_no_process_of_the_jail_runs_at_the_prompt(cb, name):
    s = start(cb, "--set", "session.idle=61s")
    s.run(DETACH + CELLS[name], 30)
    t = cb.tree(s)
    uses_no_cpu(s, t)


@pytest.mark.parametrize("name", WITHOUT_FIRST)
def test_a_killed_process_without_its_first_thread_is_gone(cb, name):
    s = start(cb)
    s.run(DETACH + CELLS[name], 30)
    s.run("import os; os._exit(1)", 25)
    assert value(s, "kept") == "{'cell': 1}"
    t = cb.tree(s)
    left = [p for p in t.guests() if "Z" in hosttree.thread_states(p)
                and hosttree.is_alive(p, t.seen[p])]
    assert not left, hosttree.describe(left)


def leave_no_descriptor(pid):
    """Set the limit as the user of the process: even root may lack the
    capability."""
    ids = [int(hosttree.status_of(pid)[k].split()[0]) for k in ("Uid", "Gid")]
    code = ("import os, resource, sys\npid, uid, gid = map(int, sys.argv[1:])\n"
            "if os.getuid() == 0:\n    os.setgroups([])\n"
            "    os.setresgid(gid, gid, gid); os.setresuid(uid, uid, uid)\n"
            "resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, 3))")
    subprocess.run([sys.executable, "-c", code, str(pid), *map(str, ids)],
                   check=True)


def test_python_is_restarted_when_init_cannot_read_proc(cb):
    """Without a free descriptor init cannot read /proc. So init may assume
    neither that all processes are stopped nor that all are dead. Python is
    restarted."""
    s = start(cb)
    t = cb.tree(s)
    old = {p: t.seen[p] for p in t.guests() if p in t.seen}
    row = s.screen.here()
    leave_no_descriptor(t.init)
    s.run("import os; os._exit(1)", 25)
    assert "Python restarted, variables lost" in said_since(s, row), \
        s.picture()
    hosttree.until(lambda: not [p for p in old
                                if hosttree.is_alive(p, old[p])],
                   "the old jail to be gone")
    assert value(s, "6 * 7") == "42"
    assert value(s, "open('kept.txt').read()") == "'in the home'"


@pytest.mark.parametrize("name", ["daemons", "daemons_that_ignore",
                                  "children_continue_each_other", "fork_bomb",
                                  "thread_storm", "stops_itself"])
def test_a_killed_front_end_leaves_no_process(cb, name):
    s = start(cb)
    s.enter(DETACH + CELLS[name])
    t = cb.tree(s)
    hosttree.until(lambda: t.look() and t.init, "the jail")
    s.process.kill()
    s.wait_exit()
    t.wait_gone()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name, undo", [
    ("daemons", 0), ("daemons", 2),
    ("children_continue_each_other", 2), ("children_continue_each_other", 0),
    ("fork_bomb", 0), ("fork_bomb", 2),
    ("ignores_every_signal", 2), ("ignores_every_signal", 0)])
def test_reset_leaves_no_process(cb, name, undo):
    """But the copies for :undo, where there are any."""
    s = start(cb, "--set", f"cell.undo={undo}")
    s.run(DETACH + CELLS[name], 30)
    t = cb.tree(s)
    old = dict(t.seen)
    gone = [p for p in t.guests() if p in old]
    s.run(":reset", 25)
    hosttree.until(lambda: len([p for p in gone if hosttree.is_alive(
        p, old[p])]) <= undo, "the old jail to be gone")
    assert value(s, "6 * 7") == "42"


def test_ctrl_c_reaches_the_cell_after_a_rollback(cb):
    s = start(cb, "--set", "cell.timeout=20s")
    s.run("import os; os._exit(1)")
    row = s.enter("print('on')\nwhile True: pass")
    s.expect_since(row, "^on")
    s.type("\x03")
    s.expect_since(row, "KeyboardInterrupt")
    s.wait_prompt()


def test_ctrl_c_reaches_the_cell_after_a_child_took_the_terminal(cb):
    s = start(cb, "--set", "cell.timeout=20s")
    s.run(DETACH + CELLS["child_takes_the_terminal_and_dies"], 25)
    row = s.enter("print('on')\nwhile True: pass")
    s.expect_since(row, "^on")
    s.type("\x03")
    s.expect_since(row, "KeyboardInterrupt")
    s.wait_prompt()
    row = s.enter("input('? ')")
    s.expect_since(row, r"^\?")
    s.type("read\r")
    s.expect_since(row, "^'read'")


def test_a_time_limit_after_a_rollback_interrupts_and_does_not_kill(cb):
    s = start(cb, *patient("cell.timeout", 2), "--set", "cell.grace=20s")
    s.run("import os; os._exit(1)")
    out = s.run("while True: pass", 40)
    assert "interrupted · variables kept" in out, out


def test_a_killed_checkpoint_is_reported_at_once_and_at_the_rollback(cb):
    s = start(cb, *patient("cell.timeout", 4))
    out = s.run("import os\nme = os.getpid()\nfor p in range(2, 400):\n"
                "    if p != me:\n        try: os.kill(p, 9)\n"
                "        except OSError: pass\n"
                "import time; time.sleep(0.5); os._exit(1)")
    out = out.replace("\n¦ ", "")
    assert "the checkpoint was killed from within" in out, out
    assert "variables lost: the cell killed its own checkpoint" in out, out
    assert s.run("open('kept.txt').read()") == "'in the home'"


def test_undo_of_sixteen_cells_works(cb):
    """The checkpoints do not count against the process limit of the cells."""
    s = cb.session("--set", "cell.undo=16", "-M", "1G",
                   "--set", "session.processes=8")
    s.run("import subprocess")
    for n in range(20):
        out = s.run(f"x = {n}; subprocess.run(['true']).returncode")
        assert out == "0", out
    s.run(":undo 16")
    assert s.run("x") == "3"
    s.run("import os; os._exit(1)")
    assert s.run("x") == "3"


def test_an_older_checkpoint_takes_over_for_a_dead_one(cb):
    s = start(cb, "--set", "cell.undo=3", "--set", "cell.timeout=8s")
    s.run("x = 1")
    out = s.run("import os, signal\nme = os.getpid()\nlast = 0\n"
                "for p in range(2, 400):\n"
                "    try: os.kill(p, 0); last = p if p != me else last\n"
                "    except OSError: pass\n"
                "os.kill(last, 9)\nos._exit(1)", 25)
    assert "back to the state before cell 3" in out.replace("\n", ""), out
    assert s.run("kept") == "{'cell': 1}"


def test_processes_left_behind_are_reported_after_their_own_cell_only(cb):
    s = start(cb)
    out = s.run("import subprocess; p = subprocess.Popen(['sleep', '99'])")
    assert "1 process left behind" in out, out
    assert s.run("1") == "1"
    out = s.run("q = subprocess.Popen(['sleep', '99'])")
    assert "1 process left behind" in out, out


def test_background_kill_ends_leftover_processes(cb):
    s = start(cb, "--set", "cell.background=kill")
    out = s.run("import subprocess; p = subprocess.Popen(['sleep', '99'])")
    assert "leftover process was ended" in out, out
    assert s.run("p.wait()") == "-9"


def test_background_run_lets_leftover_processes_run(cb):
    s = start(cb, "--set", "cell.background=run")
    s.run("import subprocess; p = subprocess.Popen("
          "['sh', '-c', 'sleep 0.5; echo x > half; mv half done'])")
    # :files runs no cell, so only the background process runs meanwhile.
    hosttree.until(lambda: "done" in s.run(":files"), "the file to exist")
    assert s.run("open('done').read()") == r"'x\n'"


def test_checkpoint_never_is_announced_and_named_after_a_crash(cb):
    s = start(cb, "--set", "cell.checkpoint=never")
    assert "checkpoints are off · a crash would lose" in s.all_text()
    out = s.run("import os; os._exit(1)").replace("\n¦ ", "")
    assert "variables lost: checkpoints are off" in out, out
    assert s.run("open('kept.txt').read()") == "'in the home'"


# Where a handler of libc's fork() hangs.
HUNG_FORKS = {
    "before_the_fork": "hang, None, None",
    "in_the_parent": "None, hang, None",
    "in_the_copy": "None, None, hang",
}


@pytest.mark.parametrize("name", HUNG_FORKS)
def test_a_fork_handler_that_hangs_costs_no_variable(cb, name):
    """A real library can do this, if its fork handlers deadlock with
    threads."""
    s = start(cb, "--set", "cell.timeout=20s")
    if s.run("import os; os.path.exists('/proc/self')") != "True":
        pytest.skip("without /proc init cannot find the copy that hangs")
    out = s.run(HANG % HUNG_FORKS[name], 25)
    assert "limit" not in out, out
    assert value(s, "mine") == "'too'"
    assert "no checkpoint could be taken" in s.all_text().replace("\n", "")
    t = cb.tree(s)
    wait_stopped(t)
    assert value(s, "kept") == "{'cell': 1}"
    out = s.run("os._exit(1)", 25).replace("\n", "")
    assert "back to the state before cell 4" in out, out
    assert value(s, "kept") == "{'cell': 1}"
