# SPDX-License-Identifier: MIT
"""The driver, promise by promise, without a jail around it."""
import json
import os
import random
import re
import signal
import subprocess
import time

import pytest

from driver import JAIL, MARK, PYTHON, until

VERSION = tuple(map(int, subprocess.run(
    [PYTHON, "-c", "import sys; print(*sys.version_info[:2])"],
    capture_output=True, check=True).stdout.split()))


def plain_python(code, python=PYTHON, flags=("-s",), cwd=None, env=None):
    return subprocess.run(
        [python, *flags, "-c", code], capture_output=True, text=True,
        check=True, cwd=cwd, env=env or {"PATH": "/usr/bin:/bin"}).stdout


# ---- boot ----

def test_ready_names_the_process_and_the_version(guest):
    word, pid, version = guest.ready.split()
    assert (word, int(pid)) == (b"READY", guest.pid)
    assert re.fullmatch(rb"3\.\d+\.\d+", version)


def test_sys_path_is_that_of_plain_python(guest):
    code = "import sys, json; print(json.dumps(sys.path))"
    assert json.loads(guest.out_of(code)) == json.loads(plain_python(code))


def test_a_venv_is_one(make, tmp_path):
    venv = tmp_path / "venv"
    subprocess.run([PYTHON, "-m", "venv", "--without-pip", venv], check=True)
    code = ("import sys, json;"
            "print(json.dumps([sys.path, sys.prefix, sys.base_prefix]))")
    python = str(venv / "bin" / "python3")
    guest = make(python=python)
    assert json.loads(guest.out_of(code)) == json.loads(
        plain_python(code, python))


def test_pythonpath_is_honoured(make, tmp_path):
    (tmp_path / "extra").mkdir()
    (tmp_path / "extra" / "extra_mod.py").write_text("x = 42\n")
    guest = make(env={"PYTHONPATH": str(tmp_path / "extra")})
    assert guest.out_of("import extra_mod; extra_mod.x") == "42\n"


def test_pth_lines_that_import_run_before_the_first_import(make, tmp_path):
    venv = tmp_path / "venv"
    subprocess.run([PYTHON, "-m", "venv", "--without-pip", venv], check=True)
    site = next((venv / "lib").glob("python3*/site-packages"))
    (site / "a.pth").write_text(
        "import sys; sys.from_pth = sys._getframe(1).f_locals['sitedir']\n"
        "/nowhere\n" + str(tmp_path) + "\n")
    guest = make(python=str(venv / "bin" / "python3"))
    assert guest.out_of("1 + 1") == "2\n"
    assert guest.out_of("import sys; sys.from_pth") == repr(str(site)) + "\n"
    assert guest.out_of("%r in sys.path" % str(tmp_path)) == "True\n"


def test_the_builtins_of_site_are_there(guest):
    assert guest.out_of("print(exit, license)").startswith("Use exit()")
    assert guest.out_of("[n for n in 'quit exit help copyright credits license'"
                        ".split() if n not in dir(__builtins__)]") == "[]\n"


def test_the_namespace_is_that_of_a_prompt(guest):
    names = plain_python(
        "import subprocess, sys, pty, os\n"
        "r = subprocess.run([sys.executable, '-i', '-q', '-S', '-I'],"
        "input='print(dir())', capture_output=True, text=True)\n"
        "print(r.stdout)")
    assert eval(guest.out_of("dir()")) == eval(names)
    assert guest.out_of("import sys; sys.argv, sys.ps1, sys.path[0]") == \
        "([''], '>>> ', '')\n"


def test_a_session_holds_only_the_expected_descriptors(guest):
    fds = {}
    for fd in os.listdir("/proc/%d/fd" % guest.pid):
        with open("/proc/%d/fdinfo/%s" % (guest.pid, fd)) as f:
            fds[int(fd)] = int(re.search(r"flags:\s*(\d+)", f.read())[1], 8)
    assert sorted(fds)[:3] == [0, 1, 2] and len(fds) == 8
    assert all(fd >= 500 and flags & os.O_CLOEXEC
               for fd, flags in fds.items() if fd > 2)


# ---- cells ----

def test_a_last_expression_is_shown_and_kept(guest):
    assert guest.out_of("x = 20\nx + 1") == "21\n"
    assert guest.out_of("_ * 2") == "42\n"
    assert guest.out_of("1; 2") == "2\n"
    assert guest.out_of("None") == ""
    assert guest.out_of("for i in range(3): i") == ""
    assert guest.out_of("") == guest.out_of("# nothing") == ""


def test_done_counts_names_and_threads(guest):
    guest.run("a = 1\n_b = 2\n__c = 3\n_ = 4\nimport threading")
    assert (guest.names, guest.threads) == (3, 0)
    guest.run("e = threading.Event()\n"
              "t = threading.Thread(target=e.wait); t.start()")
    assert (guest.names, guest.threads) == (5, 1)
    guest.run("e.set(); t.join()")
    assert guest.threads == 0


def test_the_mark_follows_the_output(guest):
    guest.start("print('out', end='')\n'shown'")
    assert guest.done() == "ok"
    assert guest.marked == 1
    guest.drain()
    assert guest.seen == b"out'shown'\n\33_%s\33\\" % MARK.encode()


def test_the_mark_survives_a_full_nonblocking_tty(guest):
    assert guest.out_of(
        "import os\nos.set_blocking(0, False)\n"
        "try:\n  while True: os.write(1, b'x' * 1000)\n"
        "except BlockingIOError: pass").strip("x") == ""
    assert guest.marked == 1


def test_without_the_tty_there_is_no_mark_and_that_is_said(guest):
    guest.run("import os\nfor fd in range(500, 600):\n"
              "  try:\n    if os.isatty(fd) and os.ttyname(fd) == "
              "os.ttyname(0): os.close(fd)\n  except OSError: pass")
    assert guest.marked == 0
    assert guest.run("1") == "ok"


def test_a_long_cell_arrives_whole(guest):
    source = "x = [\n" + "".join("    %d,\n" % i for i in range(60000)) + "]"
    assert guest.run(source) == "ok"
    assert guest.out_of("len(x), x[-1]") == "(60000, 59999)\n"


def test_a_wrong_checksum_runs_nothing(guest):
    guest.ctl.send(b"CELL 1 6 12345 " + MARK.encode())
    os.write(guest.line, b"x = 99")
    assert guest.say() == b"BAD 1 crc"
    guest.cells = 1
    assert guest.run("x") == "raised"
    assert "NameError" in guest.out


def test_a_line_that_ends_is_an_error_and_not_a_hang(guest):
    guest.ctl.send(b"CELL 1 60 12345 " + MARK.encode())
    os.write(guest.line, b"x = 99")
    os.close(guest.line)
    assert guest.say() == b"BAD 1 short"
    guest.line = os.dup(guest.slave)


def test_future_imports_persist(guest):
    guest.run("from __future__ import annotations")
    assert guest.out_of("def f(a: nowhere): pass\nf.__annotations__") == \
        "{'a': 'nowhere'}\n"


def test_pickle_dataclasses_and_multiprocessing_find_main(guest):
    assert guest.out_of(
        "import pickle, dataclasses\n"
        "@dataclasses.dataclass\nclass P:\n  x: int\n"
        "pickle.loads(pickle.dumps(P(3)))") == "P(x=3)\n"
    assert guest.out_of(
        "import multiprocessing as mp\ndef f(x): return x * x\n"
        "with mp.get_context('fork').Pool(2) as p: r = p.map(f, range(4))\nr"
    ) == "[0, 1, 4, 9]\n"


def test_a_module_in_the_home_is_found_and_stands_in_for_none_of_ours(
        make, tmp_path):
    for name in "mine", "traceback", "linecache", "re", "keyword", "inspect":
        (tmp_path / (name + ".py")).write_text("here = 1\n")
    guest = make()
    assert guest.run("def f(): 1/0\nf()") == "raised"
    assert "    def f(): 1/0" in guest.out
    assert guest.out_of("import mine; mine.here") == "1\n"


# ---- errors ----

def test_a_traceback_shows_the_users_frames_and_source(guest):
    guest.run("def area(r):\n    import math\n    return math.pi * r**2")
    assert guest.run("area('x')") == "raised"
    lines = [line for line in guest.out.splitlines()
             if not set(line) <= set(" ~^")]
    assert lines[:-1] == [
        "Traceback (most recent call last):",
        '  File "<cell 2>", line 1, in <module>',
        "    area('x')",
        '  File "<cell 1>", line 3, in area',
        "    return math.pi * r**2"]
    assert lines[-1].startswith("TypeError: unsupported operand")


def test_chained_and_grouped_exceptions_are_shown_whole(guest):
    guest.run("try: 1/0\nexcept Exception as e: raise KeyError('k') from e")
    assert "direct cause" in guest.out and "ZeroDivisionError" in guest.out
    if VERSION >= (3, 11):
        guest.run("raise ExceptionGroup('g', [ValueError(1), TypeError(2)])")
        assert "ValueError: 1" in guest.out and "TypeError: 2" in guest.out
    assert "cellblock" not in guest.out and "<string>" not in guest.out


@pytest.mark.skipif(VERSION < (3, 10), reason="suggestions came with 3.10")
def test_what_was_meant_is_suggested(guest):
    guest.run("pritn(1)")
    assert guest.out.endswith("name 'pritn' is not defined. "
                              "Did you mean: 'print'?\n")


def test_an_exception_that_cannot_be_shown_is_named(guest):
    assert guest.run("class E(Exception):\n"
                     "  def __str__(self): raise ValueError\nraise E") == "raised"
    assert guest.out.splitlines()[-1].startswith("E: <")


def test_endless_recursion_is_shown_short(guest):
    assert guest.run("def f(): f()\nf()") == "raised"
    assert "RecursionError" in guest.out and len(guest.out) < 2000
    guest.run("import sys; sys.setrecursionlimit(60)")
    assert guest.run("f()") == "raised"
    assert "RecursionError" in guest.out
    assert guest.out_of("sys.getrecursionlimit()") == "60\n"


@pytest.mark.parametrize("source, said", [
    ("x = = 1", "SyntaxError: invalid syntax"),
    ("if True:\nx", "IndentationError: expected an indented block"),
    ("return 1", "SyntaxError: 'return' outside function"),
    ("x = '\0'", "SyntaxError: source code string cannot contain null bytes"),
    (b"x = '\xff'", "SyntaxError: (unicode error) 'utf-8' codec can't decode"),
])
def test_what_does_not_compile_runs_nothing(guest, source, said):
    assert guest.run(source) == "syntax"
    assert said in guest.out
    assert guest.out.startswith('  File "<cell 1>", line ')


def test_a_syntax_error_has_its_caret(guest):
    guest.run("x = = 1")
    assert guest.out.startswith(
        '  File "<cell 1>", line 1\n    x = = 1\n        ^\n')
    guest.run("x = 1\nreturn x")
    assert guest.out.startswith(
        '  File "<cell 2>", line 2\n    return x\n    ^')


def test_the_users_excepthook_is_used_and_may_fail(guest):
    guest.run("import sys\nsys.excepthook = lambda t, e, tb: print('mine', e)")
    assert guest.run("raise ValueError(7)") == "raised"
    assert guest.out == "mine 7\n"
    guest.run("def sys_hook(*a): raise TypeError('bad')\n"
              "sys.excepthook = sys_hook")
    guest.run("raise ValueError(7)")
    assert guest.out.startswith("Error in sys.excepthook:")
    assert "TypeError: bad\n\nOriginal exception was:\n" in guest.out
    assert guest.out.rstrip().endswith("ValueError: 7")


def test_post_mortem_finds_the_last_error(guest):
    guest.run("def f():\n  secret = 5\n  1/0\nf()")
    assert guest.out_of("import sys\nsys.last_traceback.tb_next.tb_frame"
                        ".f_locals['secret'], sys.last_type") == \
        "(5, <class 'ZeroDivisionError'>)\n"


def test_functions_and_old_cells_keep_their_source(guest):
    guest.run("def f():\n    'doc'\n    return 1")
    assert guest.out_of("import inspect; print(inspect.getsource(f))") == \
        "def f():\n    'doc'\n    return 1\n\n"
    guest.run("import linecache; linecache.clearcache()")
    guest.run("linecache.checkcache(); f(1)")
    assert "    linecache.checkcache(); f(1)" in guest.out


def test_the_oldest_sources_are_let_go(guest):
    guest.run("def f(): 1/0")
    for i in range(5):
        guest.run("'" + "x" * (900 << 10) + "'; 0")
    guest.run("f()")
    assert 'File "<cell 1>", line 1, in f\n' in guest.out
    assert "def f(): 1/0" not in guest.out


def test_an_error_reaches_the_person_whatever_stderr_is(guest):
    for spoiled in ("sys.stderr.close()", "sys.stderr = None",
                    "sys.stderr = 5", "del sys.stderr"):
        guest.run("import sys\n" + spoiled)
        assert guest.run("1/0") == "raised"
        assert "ZeroDivisionError" in guest.out, spoiled
    assert guest.marked == 1


def test_an_error_is_shown_without_the_modules_for_it(guest):
    guest.run("import sys, builtins\nsys.meta_path.clear(); sys.modules.clear()")
    assert guest.run("def f(): 1/0\nf()") == "raised"
    assert 'File "<cell 2>", line 1, in f' in guest.out
    assert guest.out.endswith("ZeroDivisionError: division by zero\n")


# ---- exits ----

@pytest.mark.parametrize("source, status, said", [
    ("exit()", 0, ""), ("raise SystemExit(3)", 3, ""), ("exit(-1)", 255, ""),
    ("import sys; sys.exit('bye')", 1, "bye\n"), ("quit(None)", 0, ""),
])
def test_exit_is_told_and_leaves_the_session_whole(guest, source, status, said):
    assert guest.run(source) == "exit"
    assert (guest.status, guest.out) == (status, said)
    assert guest.out_of("import sys; sys.stdin.closed, 1") == "(False, 1)\n"


def test_a_forked_child_that_comes_back_leaves_quietly(guest):
    assert guest.out_of(
        "import os\npid = os.fork()\n"
        "if pid == 0: print('child', flush=False)\n"
        "else: print('parent', os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))"
    ) == "child\nparent 0\n"
    assert guest.out_of(
        "pid = os.fork()\nif not pid: raise SystemExit(7)\n"
        "os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])") == "7\n"
    assert guest.out_of("os.getpid()") == "%d\n" % guest.pid


def test_a_broken_link_ends_the_guest(guest):
    guest.ctl.close()
    pid, status = os.waitpid(guest.pid, 0)
    guest.pids.remove(pid)
    guest.pid = None
    assert os.waitstatus_to_exitcode(status) == 70


# ---- interrupts ----

def started(guest, source):
    """Start a cell, and wait until it says that it has."""
    guest.screen()
    guest.start("print('go', flush=True)\n" + source)

    def going():
        guest.drain()
        return b"go" in guest.seen
    until(going, "the cell to print")


def test_an_interrupt_ends_the_cell_and_keeps_everything(guest):
    guest.run("x = 5")
    started(guest, "while True: pass")
    guest.interrupt()
    assert guest.done() == "interrupted"
    assert guest.screen().rstrip().endswith("KeyboardInterrupt")
    assert guest.out_of("x") == "5\n"


def test_an_interrupt_between_cells_goes_nowhere(guest):
    guest.run("x = 1")
    for _ in range(20):
        guest.interrupt()
    assert guest.out_of("import signal\nx") == "1\n"


def test_the_users_interrupt_handler_is_kept_and_used(guest):
    guest.run("import signal, time\n"
              "signal.signal(signal.SIGINT, lambda *a: hits.append(1))\n"
              "hits = []")
    started(guest, "end = time.time() + 20\n"
            "while not hits and time.time() < end: time.sleep(.01)")
    guest.interrupt()
    assert guest.done() == "ok"
    assert guest.out_of("hits") == "[1]\n"
    guest.run("signal.signal(signal.SIGINT, signal.default_int_handler)")
    started(guest, "while True: pass")
    guest.interrupt()
    assert guest.done() == "interrupted"


def test_what_shows_the_end_can_be_interrupted(guest):
    guest.run("import sys\ndef hook(*a):\n  print('hooked', flush=True)\n"
              "  while True: pass\nsys.excepthook = hook")
    guest.screen()
    guest.start("1/0")
    until(lambda: guest.drain() or b"hooked" in guest.seen, "the hook")
    guest.interrupt()
    assert guest.done() == "raised"
    guest.run("class Slow:\n  def write(self, s): return len(s)\n"
              "  def flush(self):\n    old.write('flushing')\n    old.flush()\n"
              "    while True: pass\n"
              "old = sys.stdout; sys.excepthook = sys.__excepthook__")
    guest.screen()
    guest.start("sys.stdout = Slow()")
    until(lambda: guest.drain() or b"flushing" in guest.seen, "the flush")
    guest.interrupt()
    assert guest.done() == "ok"


@pytest.mark.parametrize("source", [
    "pass", "1/0", "x = [i for i in range(2000)]", "print('text')", "1 +"])
def test_no_interrupt_escapes_its_cell(guest, source):
    """Interrupts at random moments: each cell is answered once, in order."""
    chance = random.Random(source)
    for _ in range(150):
        guest.start(source)
        for _ in range(chance.randrange(1, 5)):
            time.sleep(chance.random() / 2000)
            guest.interrupt()
        assert guest.done() in ("ok", "raised", "interrupted", "syntax")
        guest.screen()
    assert guest.out_of("6 * 7") == "42\n"
    assert guest.out_of("import signal\nsignal.getsignal(signal.SIGINT) is "
                        "signal.default_int_handler") == "True\n"
    assert guest.out_of("signal.pthread_sigmask(signal.SIG_BLOCK, [])") == \
        "set()\n"


def test_handlers_that_raise_between_cells_lose_no_message(guest):
    guest.run("import signal\ndef ring(*a): raise RuntimeError('ring')\n"
              "signal.signal(signal.SIGALRM, ring)")
    chance = random.Random(4)
    for _ in range(300):
        os.kill(guest.pid, signal.SIGALRM)
        if chance.random() < .5:
            time.sleep(chance.random() / 2000)
        assert guest.run("2 + 2") in ("ok", "raised", "syntax")
    assert guest.out_of("3 + 3").endswith("6\n")


# ---- hostile cells, the ordinary kind ----

@pytest.mark.parametrize("source", [
    "import builtins\nbuiltins.print = builtins.len = None",
    "import builtins\ndef no(*a, **k): raise ImportError\n"
    "builtins.__import__ = no",
    "import builtins\nfor n in list(vars(builtins)):\n"
    "  if n not in ('__build_class__',): delattr(builtins, n)",
    "import sys\nsys.modules.clear()",
    "import os, posix\nfor m in os, posix:\n"
    "  m.write = m.read = m.getpid = m.fork = m._exit = None",
    "import signal, _signal\nfor m in signal, _signal:\n"
    "  m.signal = m.getsignal = m.pthread_sigmask = None",
    "import gc, random, socket\ngc.get_objects = random.getstate = None\n"
    "random._inst = None\nsocket.socket.recvmsg = None",
    "import sys\nsys.stdout = sys.stderr = None",
    "import sys\nclass W:\n  def write(self, s): raise SystemExit\n"
    "  def flush(self): raise SystemExit(5)\n"
    "sys.stdout = sys.stderr = W()",
    "import sys\nsys.path = sys.argv = None",
    "import sys\ndef t(*a): raise ValueError('traced')\n"
    "sys.settrace(t); sys.setprofile(t)",
    "import sys\nsys.displayhook = 5; sys.excepthook = 5",
    "import gc\ngc.disable()\nfor k in list(globals()): del globals()[k]",
    "globals()[1] = 2; globals()[(3,)] = 4",
    "import sys\nsys.setrecursionlimit(40)",
    "import os\nos.closerange(3, 400); os.close(0); os.close(1); os.close(2)",
    "import warnings\nwarnings.simplefilter('error')",
    "import atexit, threading\nthreading.excepthook = None\n"
    "threading.Thread(target=lambda: 1/0).start()",
])
def test_the_driver_outlives(guest, source):
    guest.run("import os; hold = os.getpid")
    how = guest.run(source)
    assert how in ("ok", "raised", "exit"), guest.out
    guest.run("1/0")
    assert guest.run("x = 1") in ("ok", "raised")
    assert guest.park() is not None, guest.parked
    guest.ask("who")
    guest.complete("sys.")
    assert guest.marked == 1


def test_a_trace_function_sees_only_the_users_code(guest):
    guest.run("import sys\nseen = []\ndef t(f, e, a):\n"
              "  seen.append(f.f_code.co_filename); return t\n"
              "sys.settrace(t)")
    guest.run("def f(): return 1\nf()")
    out = guest.out_of("sys.settrace(None)\nsorted(set(seen))")
    assert "<string>" not in out and "<cell 2>" in out


# ---- parking ----

def test_a_checkpoint_is_the_state_it_was_taken_in(guest):
    guest.run("x = 1\ny = 2")
    point = guest.park()
    assert (point.names, point.threads) == (2, 0)
    guest.run("x = 99\nz = 1")
    assert point.resume() == 2
    assert guest.out_of("x") == "1\n"
    assert guest.run("z") == "raised"
    second = guest.park()
    guest.run("x = 7")
    second.resume()
    assert guest.out_of("x") == "1\n"


def test_the_live_guest_goes_on_as_the_same_process(guest):
    guest.run("import os, threading\npid = os.getpid()\n"
              "e = threading.Event()\nt = threading.Thread(target=e.wait)\n"
              "t.start()")
    point = guest.park()
    assert point.threads == 1
    assert guest.out_of("os.getpid() == pid, t.is_alive()") == "(True, True)\n"
    assert point.resume() == 5
    assert guest.out_of("t.is_alive(), threading.active_count()") == \
        "(False, 1)\n"
    assert guest.threads == 0
    guest.run("t = threading.Thread(target=threading.Event().wait,"
              " daemon=True); t.start()")
    assert guest.threads == 1


def test_a_checkpoint_goes_when_its_socket_does(guest):
    point = guest.park()
    point.sock.close()

    def gone():
        try:
            os.kill(point.pid, 0)
        except ProcessLookupError:
            return True
        with open("/proc/%d/stat" % point.pid) as f:
            return f.read().split(") ")[1][0] == "Z"
    until(gone, "the checkpoint to end")


def test_random_goes_on_in_both(guest):
    guest.run("import random; random.seed(5); random.random()")
    r = random.Random(5)
    expected = [r.random() for _ in range(3)]
    point = guest.park()
    assert guest.out_of("random.random()") == "%r\n" % expected[1]
    assert guest.out_of("random.random()") == "%r\n" % expected[2]
    point.resume()
    assert guest.out_of("random.random()") == "%r\n" % expected[1]


def test_no_child_of_ours_is_seen(guest):
    guest.run("import os, signal, subprocess\nnews = []\n"
              "signal.signal(signal.SIGCHLD, lambda *a: news.append(a[0]))")
    for _ in range(10):
        assert guest.park()
    assert guest.out_of("news") == "[]\n"
    assert guest.run("os.wait()") == "raised"
    assert "ChildProcessError" in guest.out
    guest.run("subprocess.run(['true'])")
    assert guest.out_of("len(news)") == "1\n"


def test_news_of_the_users_own_child_is_kept(guest):
    guest.run("import os, signal, time\nnews = []\n"
              "signal.signal(signal.SIGCHLD, lambda *a: news.append(a[0]))\n"
              "r, w = os.pipe()\npid = os.fork()\n"
              "if not pid:\n  os.close(w); os.read(r, 1); os._exit(0)\n"
              "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])\n"
              "os.close(w)\n"
              "os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)\n0")
    assert guest.park()
    guest.run("signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])")
    assert guest.out_of("len(news), os.wait()[0] == pid") == "(1, True)\n"


def test_ignored_children_leave_no_zombies(guest):
    guest.run("import signal, os\n"
              "signal.signal(signal.SIGCHLD, signal.SIG_IGN)")
    for _ in range(5):
        assert guest.park()
    assert guest.out_of("signal.getsignal(signal.SIGCHLD).name") == \
        "'SIG_IGN'\n"
    assert guest.run("os.waitpid(-1, os.WNOHANG)") == "raised"


def test_buffered_writes_are_written_once(guest, home):
    guest.run("f = open('log', 'w'); n = f.write('one ')")
    point = guest.park()
    guest.run("n = f.write('two '); f.flush()")
    point.resume()
    guest.run("f.write('three'); f.close()")
    assert (home / "log").read_text() == "one three"


def test_a_writer_wrapped_later_is_found(guest, home):
    guest.run("import os, gc\nfd = os.open('log', os.O_RDWR | os.O_CREAT)")
    assert guest.park()
    guest.run("f = os.fdopen(fd, 'w'); n = f.write('one ')")
    point = guest.park()
    guest.run("n = f.write('two '); f.flush()")
    point.resume()
    guest.run("f.write('three'); f.close()")
    assert (home / "log").read_text() == "one three"


def test_a_half_read_file_goes_on_where_it_was(guest, home):
    (home / "in").write_text("".join("%05d\n" % i for i in range(20000)))
    guest.run("f = open('in')\nfirst = [next(f) for _ in range(3)]\n"
              "import os; g = os.open('in', os.O_RDONLY); os.read(g, 6)")
    point = guest.park()
    guest.run("rest = f.read(); os.lseek(g, 0, 2)")
    point.resume()
    assert guest.out_of("next(f), os.read(g, 6)") == \
        "('00003\\n', b'00001\\n')\n"


def test_the_checkpoint_holds_nothing_that_others_feel(guest, home):
    guest.run("import subprocess, socket, fcntl, os, pty\n"
              "cat = subprocess.Popen(['cat'], stdin=subprocess.PIPE,"
              " stdout=subprocess.DEVNULL)\n"
              "s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen()\n"
              "addr = s.getsockname()\n"
              "lock = open('lock', 'w'); fcntl.flock(lock, fcntl.LOCK_EX)\n"
              "m, sl = pty.openpty()")
    assert guest.park()
    # If the checkpoint held its pipe, cat would wait for ever.
    assert guest.out_of("cat.stdin.close(); cat.wait(10)") == "0\n"
    assert guest.out_of("s.close(); s = socket.socket(); s.bind(addr);"
                        "s.listen(); s.getsockname() == addr") == "True\n"
    assert guest.out_of("lock.close(); lock = open('lock', 'w');"
                        "fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)"
                        ) == ""
    # A hung-up terminal: only when nobody holds its other side.
    assert guest.run("os.close(m); os.write(sl, b'x')") == "raised"
    assert "OSError" in guest.out


def test_pipes_of_a_resumed_session_are_dead_and_do_not_hang(guest):
    guest.run("import os, asyncio\nr, w = os.pipe()")
    point = guest.park()
    point.resume()
    assert guest.out_of("os.read(r, 1)") == "b''\n"
    assert guest.run("os.write(w, b'x')") == "raised"
    assert guest.out_of("asyncio.run(asyncio.sleep(0, 'new loop'))") == \
        "'new loop'\n"


def test_the_interrupt_handler_goes_with_the_checkpoint(guest):
    guest.run("import signal\nhits = []\n"
              "signal.signal(signal.SIGINT, lambda *a: hits.append(1))")
    point = guest.park()
    guest.run("signal.signal(signal.SIGINT, signal.SIG_DFL)")
    point.resume()
    guest.run("signal.raise_signal(signal.SIGINT)")
    assert guest.out_of("hits") == "[1]\n"


def test_parking_with_threads_shows_no_warning(guest):
    guest.run("import warnings, threading\nwarnings.simplefilter('error')\n"
              "before = list(warnings.filters)\n"
              "threading.Thread(target=threading.Event().wait,"
              " daemon=True).start()")
    assert guest.park()
    assert guest.out_of("warnings.filters == before") == "True\n"


def test_a_refused_fork_is_told_and_costs_nothing(guest):
    guest.run("x = 1\nimport posix\ncount = 0")
    assert guest.park()
    guest.run("import sys\ndef no(event, args):\n"
              "  if event == 'os.fork': raise BlockingIOError(11, 'no')\n"
              "sys.addaudithook(no)")
    assert guest.park() is None
    assert guest.parked == b"PARKED 2 processes"
    assert guest.out_of("x") == "1\n"
    assert guest.run("__import__('os').wait()") == "raised"


def test_a_checkpoint_answers_and_parks_as_the_first_did(guest):
    guest.run("class C:\n  apple = 1\nc = C()")
    guest.park().resume()
    assert guest.complete("c.a") == (1, ["apple"])
    for _ in range(3):
        guest.park().resume()
    assert guest.out_of("c.apple") == "1\n"


def test_a_stuck_guest_writes_its_stack(guest):
    started(guest, "def stuck():\n  while True: pass\nstuck()")
    os.kill(guest.pid, 64)
    text = until(lambda: os.pread(guest.stack, 9999, 0), "the stack").decode()
    assert 'File "<cell 1>", line 3 in stuck' in text
    guest.interrupt()
    assert guest.done() == "interrupted"


# ---- questions ----

def test_names_attributes_and_keywords_complete(guest):
    guest.run("import math\nvalue = 1\n_hidden = 2\nclass C:\n  ab = 1\n"
              "  def __init__(self): self.ac = 2\nc = C()")
    assert guest.complete("va") == (2, ["value", "vars"])
    assert guest.complete("x = [whi") == (3, ["while"])
    assert guest.complete("_hi") == (3, ["_hidden"])
    assert guest.complete("c.a") == (1, ["ab", "ac"])
    assert guest.complete("c.")[1][:2] == ["ab", "ac"]
    assert guest.complete("print(math.flo") == (3, ["floor"])
    assert guest.complete("nowhere.x") == (1, [])
    assert guest.complete("1.re")[1] == []
    assert guest.complete("# va") == (0, [])


def test_completion_counts_bytes(guest):
    guest.run("größe = 1")
    assert guest.complete("grö") == (4, ["größe"])


def test_completion_runs_no_property(guest):
    guest.run("ran = []\nclass C:\n  @property\n  def p(self):\n"
              "    ran.append(1); return self\n"
              "  def __getattr__(self, n):\n    ran.append(n); return 1\nc = C()")
    assert "p" in guest.complete("c.")[1]
    assert guest.complete("c.p.") == (0, [])
    assert guest.complete("c.q.") == (0, [])
    assert guest.out_of("ran") == "[]\n"


def test_modules_complete_without_being_imported(guest, home):
    (home / "mypack").mkdir()
    (home / "mypack" / "__init__.py").write_text("import nowhere\nabc = 1\n")
    (home / "mypack" / "sub.py").write_text("def deep(): pass\n")
    assert guest.complete("import mypa") == (4, ["mypack"])
    assert guest.complete("import os, mypa") == (4, ["mypack"])
    assert guest.complete("import mypack.s") == (1, ["sub"])
    assert guest.complete("from mypack import a") == (1, ["abc"])
    assert guest.complete("from mypack import abc, s") == (1, ["sub"])
    assert guest.complete("from mypack.sub import d") == (1, ["deep"])
    assert "json" in guest.complete("import jso")[1]
    assert "JSONDecoder" in guest.complete("from json import JSOND")[1]
    assert guest.complete("from json im") == (2, ["import"])
    assert guest.run("mypack") == "raised"


def test_keys_and_files_complete_in_strings(guest, home):
    (home / "grades.csv").write_text("")
    (home / "data").mkdir()
    (home / "data" / "deep.txt").write_text("")
    (home / "odd\nname").write_text("")
    guest.run("d = {'alpha': 1, 'al\"so': 2, 3: 4}")
    assert guest.complete("d['al") == (2, ['al"so', "alpha"])
    assert guest.complete('d["al') == (2, ['al\\"so', "alpha"])
    assert guest.complete("d[") == (0, ["'al\"so'", "'alpha'", "3"])
    assert guest.complete("open('gr") == (2, ["grades.csv"])
    assert guest.complete("open('data/") == (0, ["deep.txt"])
    assert guest.complete("open('da") == (2, ["data/"])
    assert guest.complete("open('odd") == (3, [])
    assert guest.complete("'''da\nda") == (0, [])
    assert guest.complete("f'{d.ke") == (2, ["keys"])
    guest.run("class T:\n  def _ipython_key_completions_(self):\n"
              "    return ['col']\nt = T()")
    assert guest.complete("t['c") == (1, ["col"])


def test_answers_are_bounded(guest):
    guest.run("big = {('k%04d' % i): 1 for i in range(3000)}\n"
              "class C:\n  'doc'\nC.__doc__ = 'x' * 10**6\n"
              "globals().update({'v%04d' % i: 'é' * 300 for i in range(2000)})")
    assert len(guest.complete("big['k")[1]) == 500
    for kind, text in ("doc", "C"), ("who", ""), ("source", "C"):
        assert len(guest.ask(kind, text).encode()) <= 60 * 1024
    assert "[cut: " in guest.ask("doc", "C")


def test_doc_shows_signature_and_text(guest):
    guest.run("def area(r: float, *, unit='m'):\n  'the area'\n\n"
              "class P:\n  'a point'\n  def __init__(self, x): self.x = x\n"
              "p = P(3)")
    assert guest.ask("doc", "area") == \
        "area(r: float, *, unit='m')\n\nthe area\n"
    assert guest.ask("doc", "P") == "class P(x)\n\na point\n"
    assert "a point" in guest.ask("doc", "p")
    assert guest.ask("doc", "nowhere").startswith("NameError")
    assert guest.ask("doc", "len").startswith("len(obj, /)")
    assert '"for" statement' in guest.ask("doc", "for")


def test_source_is_found_for_functions_and_classes_of_cells(guest):
    guest.run("class Old:\n  x = 1\n")
    guest.run("@len.__class__.__call__ if 0 else (lambda c: c)\n"
              "class Old:\n    class In:\n        y = 2\n\nz = 1")
    guest.run("def f(a):\n    return a")
    assert guest.ask("source", "f") == "def f(a):\n    return a\n"
    assert guest.ask("source", "Old").endswith("y = 2\n")
    assert guest.ask("source", "Old").startswith("@len")
    assert guest.ask("source", "Old.In").strip() == "class In:\n        y = 2"
    assert guest.ask("source", "len").startswith("no source of len")


def test_who_lists_names_types_sizes_and_values(guest):
    guest.run("n = 3\ns = 'a\\tb\\x1b[31m'\n_ = 1\n__x = 2\n"
              "class Bad:\n  def __repr__(self): raise ValueError\nb = Bad()\n"
              "l = list(range(1000))")
    rows = [line.split("\t") for line in guest.ask("who").splitlines()]
    assert [r[0] for r in rows] == ["n", "s", "Bad", "b", "l"]
    assert all(len(r) == 4 and len(r[3]) <= 60 for r in rows)
    assert rows[0][1:] == ["int", "28 B", "3"]
    assert "\33" not in rows[1][3]
    assert rows[4][2].endswith("KiB")


def test_latest_is_the_value_shown_last(guest):
    assert guest.ask("latest") == ""
    guest.run("[1, 2]")
    assert guest.ask("latest") == "[1, 2]"


def test_a_question_that_hangs_can_be_interrupted(guest):
    guest.run("class C:\n  def __dir__(self):\n"
              "    print('in dir', flush=True)\n    while True: pass\nc = C()")
    guest.screen()
    text = b"c.a"
    guest.ctl.send(b"ASK 1 complete %d\n" % len(text) + text)
    until(lambda: guest.drain() or b"in dir" in guest.seen, "__dir__")
    guest.interrupt()
    assert guest.say() == b"ANSWER 1 2\n0\n"
    assert guest.out_of("1 + 1") == "2\n"


# ---- one cell as a program ----

def program(*args, **how):
    return subprocess.run(
        [PYTHON, "-I", "-S", "-c", (JAIL / "guest.py").read_text(), "-e",
         *args], capture_output=True, text=True, timeout=60, **how)


def test_a_program_cell_shows_its_last_expression():
    r = program("x = 20\nx + 1")
    assert (r.stdout, r.stderr, r.returncode) == ("21\n", "", 0)
    r = program("import sys; sys.argv, __name__", "a", "-b")
    assert r.stdout == "(['-e', 'a', '-b'], '__main__')\n"


def test_a_program_cell_fails_as_a_program_does():
    r = program("def f(): 1/0\nf()")
    assert (r.stdout, r.returncode) == ("", 1)
    assert r.stderr.startswith('Traceback (most recent call last):\n'
                               '  File "<cell 1>", line 2, in <module>\n')
    assert r.stderr.endswith("ZeroDivisionError: division by zero\n")
    assert program("raise SystemExit(4)").returncode == 4
    r = program("raise SystemExit('why')")
    assert (r.returncode, r.stderr) == (1, "why\n")
    r = program("1 +")
    assert r.returncode == 1 and r.stderr.startswith('  File "<cell 1>"')
    r = program("raise KeyboardInterrupt")
    assert r.returncode == -signal.SIGINT
    assert r.stderr.rstrip().endswith("KeyboardInterrupt")


def test_a_program_cell_runs_exit_functions_and_reads_stdin():
    r = program("import atexit; atexit.register(print, 'last')\ninput()[::-1]",
                input="abc\n")
    assert r.stdout == "'cba'\nlast\n"
