# SPDX-License-Identifier: MIT
"""A program cannot tell that it runs in cells, that checkpoints are copied
from it, or that a cell died and was rolled back. Each row is a list of cells
and the output of the last one. Plain Python runs the same cells one after the
other, without those that die, and must show the same output."""
import json
import signal
import subprocess

import pytest

from hostile import patient, value
from world import PYTHON

DIES = "os._exit(1)"
ROLLBACK = "import os; " + DIES

# Runs cells in a row in the __main__ module, and shows what a prompt would
# show.
PLAIN = """\
def run(cells):
    import ast
    for cell in cells:
        print("cell")
        tree = ast.parse(cell)
        last = tree.body[-1:]
        if isinstance(last[0], ast.Expr):
            del tree.body[-1]
        else:
            last = []
        exec(compile(tree, "cell", "exec"), globals())
        exec(compile(ast.Interactive(last), "cell", "single"), globals())
import json, sys
run(json.loads(sys.argv.pop()))
"""


def plain(cells, where):
    """The output of plain Python for the last cell."""
    cells = [cell for cell in cells if not cell.endswith(DIES)]
    out = subprocess.run(
        [PYTHON, "-c", PLAIN, json.dumps(cells)], cwd=where, text=True,
        capture_output=True, check=True, timeout=60, env={"LANG": "C.UTF-8"},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)).stdout
    return out.split("cell\n")[-1].rstrip().split("\n")[-1]


ROWS = {
    "wait_sees_only_own_children": (
        ["import os", "p = os.fork()\nif not p: os._exit(7)",
         "os.waitstatus_to_exitcode(os.wait()[1])"], "7"),
    "no_child_to_wait_for": (
        ["import os", "try: os.wait()\nexcept ChildProcessError: x = 'none'",
         "x"], "'none'"),
    "sigchld_handler_sees_only_own_children": (
        ["import signal, os, time; n = []",
         "signal.signal(signal.SIGCHLD, lambda *a: n.append(os.wait()[0]))",
         "1", "2",
         "p = os.fork()\nif not p: os._exit(0)\nwhile not n: time.sleep(.01)",
         "3", "n == [p]"], "True"),
    "no_zombies": (
        ["import os", "1", "2",
         "try: z = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG)\n"
         "except ChildProcessError: z = 'none'", "z"], "'none'"),
    "popen_pipe_over_cells": (
        ["import subprocess as sp\np = sp.Popen(['cat'], stdin=-1, stdout=-1)",
         "p.stdin.write(b'one ') and p.stdin.flush()",
         "p.stdin.write(b'two')", "out = p.communicate()", "out"],
        "(b'one two', None)"),
    "pipe_reports_end_of_file": (
        ["import os; r, w = os.pipe()", "os.write(w, b'x')", "os.close(w)",
         "os.read(r, 9), os.read(r, 9)"], "(b'x', b'')"),
    "socketpair_reports_end_of_file": (
        ["import socket; a, b = socket.socketpair()", "1", "a.close()",
         "b.recv(9)"], "b''"),
    "flock_is_released": (
        ["import fcntl; f = open('l', 'w'); fcntl.flock(f, 2)", "1",
         "f.close()", "g = open('l', 'w'); fcntl.flock(g, 6)"], ""),
    "flock_is_held": (
        ["import fcntl, subprocess as sp, sys; f = open('l', 'w')\n"
         "def refused(how): return sp.run([sys.executable, '-c',"
         "'import fcntl, sys; fcntl.flock(open(\"l\"), %d)' % how],"
         " stderr=-3).returncode", "fcntl.flock(f, 2)",
         "a = refused(4 | 1)", "fcntl.flock(f, 1)",
         "a, refused(4 | 1), refused(4 | 2)"], "(1, 0, 1)"),
    "lockf_is_held_by_the_session": (
        ["import fcntl; f = open('l', 'w'); fcntl.lockf(f, 2)", "1",
         "import subprocess, sys\nsubprocess.run([sys.executable, '-c',"
         "'import fcntl; fcntl.lockf(open(\"l\", \"r+\"), 6)'],"
         " stderr=-3).returncode"], "1"),
    "buffered_file_is_written_once": (
        ["f = open('b', 'w'); f.write('a')", "f.write('b')", "f.write('c')",
         "f.close()", "open('b').read()"], "'abc'"),
    "half_read_file_goes_on": (
        ["open('h', 'w').write('0123456789'); f = open('h')", "f.read(3)",
         "import os; f.read(3); os._exit(1)", "f.read()"], "'3456789'"),
    "half_read_binary_file_goes_on": (
        ["open('h', 'wb').write(bytes(range(99))); f = open('h', 'rb', 0)",
         "f.read(3)", "import os; f.read(50); os._exit(1)", "f.read(1)"],
        "b'\\x03'"),
    "duplicates_share_their_offset": (
        ["import os; open('h', 'w').write('0123456789')\n"
         "f = os.open('h', 0); g = os.dup(f); h = os.open('h', 0)",
         "os.read(f, 2)", "os.read(g, 2)",
         "os.read(f, 2), os.read(h, 2), os.read(g, 2), os.read(h, 2)"],
        "(b'45', b'01', b'67', b'23')"),
    "append_after_a_rollback": (
        ["f = open('a', 'a'); f.write('1')", "f.flush()",
         "import os; os._exit(1)", "f.write('2'); f.close()",
         "open('a').read()"], "'12'"),
    "generator_goes_on": (
        ["g = (i * i for i in range(9)); next(g)", "next(g)",
         "import os; next(g); os._exit(1)", "next(g)"], "4"),
    "sqlite": (
        ["import sqlite3; d = sqlite3.connect('d'); d.execute('create table"
         " t(x)')", "d.execute('insert into t values (1)'); d.commit()",
         "1", "import os; os._exit(1)",
         "d.execute('insert into t values (2)'); d.commit()",
         "d.execute('select x from t').fetchall()"], "[(1,), (2,)]"),
    "sqlite_in_a_transaction": (
        ["import sqlite3; d = sqlite3.connect('d'); d.execute('create table"
         " t(x)')", "d.execute('insert into t values (1)')", "1",
         "d.rollback()", "d.execute('select x from t').fetchall()"], "[]"),
    "tempfile": (
        ["import tempfile; t = tempfile.NamedTemporaryFile()", "1",
         "t.write(b'x')", "t.seek(0)", "t.read()"], "b'x'"),
    "tempdir_is_not_removed_by_a_copy": (
        ["import tempfile, os; t = tempfile.TemporaryDirectory()", "1", "2",
         "3", "os.path.isdir(t.name)"], "True"),
    "weakref_finalize_runs_once": (
        ["import weakref\nclass A: pass\na = A(); n = []\n"
         "weakref.finalize(a, n.append, 1)", "1", "2", "del a", "n"], "[1]"),
    "thread_local_and_ident": (
        ["import threading; i = threading.get_ident(), threading.main_thread()"
         ".native_id", "1", "i == (threading.get_ident(),"
         " threading.main_thread().native_id)"], "True"),
    "pid_and_start_time": (
        ["import os, time; p = os.getpid(); c = time.process_time()", "1",
         "(os.getpid(), time.process_time() >= c) == (p, True)"], "True"),
    "random_goes_on": (
        ["import random; random.seed(1); a = [random.random() for i in"
         " range(4)]; random.seed(1)", "b = [random.random()]",
         "b.append(random.random())", "b.append(random.random())",
         "a[:3] == b"], "True"),
    "random_after_a_rollback": (
        ["import random; random.seed(1); a = [random.random() for i in"
         " range(4)]; random.seed(1)", "b = random.random()", ROLLBACK,
         "random.random() == a[1]"], "True"),
    "state_of_a_c_library_is_kept": (
        ["import ctypes; c = ctypes.CDLL(None); c.srand(1); a = [c.rand() for"
         " i in range(3)]; c.srand(1)", "b = [c.rand()]",
         "b.append(c.rand())", "b == a[:2]"], "True"),
    "timers_fire_in_the_cell": (
        ["import signal, time; n = []\n"
         "signal.signal(signal.SIGALRM, lambda *a: n.append(1))",
         "signal.alarm(1); time.sleep(1.3)", "n"], "[1]"),
    "umask_cwd_and_environment_stay": (
        ["import os; os.umask(0o77); os.mkdir('w'); os.chdir('w');"
         " os.environ['A'] = 'b'", ROLLBACK,
         "os.path.basename(os.getcwd()), os.environ['A'], oct(os.umask(0))"],
        "('w', 'b', '0o77')"),
    "asyncio_loop_over_cells": (
        ["import asyncio; loop = asyncio.new_event_loop()",
         "loop.run_until_complete(asyncio.sleep(0.01, 'a'))",
         "loop.run_until_complete(asyncio.sleep(0.01, 'b'))"], "'b'"),
    "executor_over_cells": (
        ["from concurrent.futures import ThreadPoolExecutor as E; e = E(3)",
         "f = e.submit(sum, range(9))", "f.result()"], "36"),
    "queue_and_thread_over_cells": (
        ["import queue, threading; q = queue.Queue(); r = queue.Queue()\n"
         "def work():\n    while True: r.put(q.get() * 2)",
         "threading.Thread(target=work, daemon=True).start()", "q.put(21)",
         "r.get()"], "42"),
    "signal_handler_stays": (
        ["import signal\ndef h(*a): pass\nsignal.signal(2, h)", "1",
         "signal.getsignal(2) is h"], "True"),
    "interrupt_handler_is_the_default": (
        ["import signal", "1",
         "signal.getsignal(2) is signal.default_int_handler"], "True"),
    "signal_mask_stays": (
        ["import signal; signal.pthread_sigmask(0, [10])", "1",
         "signal.pthread_sigmask(0, [])"], "{<Signals.SIGUSR1: 10>}"),
    "no_descriptor_is_added_or_lost": (
        ["import os\ndef fds(): return [n for n in range(400) if ok(n)]\n"
         "def ok(n):\n    try: os.fstat(n); return True\n"
         "    except OSError: return False", "a = fds()", "1", "2",
         "a == fds() == [0, 1, 2]"], "True"),
    "main_module_is_the_namespace": (
        ["import __main__; class_ = type('C', (), {})", "1",
         "__name__, __main__.__dict__ is globals(), class_.__module__"],
        "('__main__', True, '__main__')"),
    "pickle_of_a_class_of_a_cell": (
        ["import pickle\nclass P:\n    x = 5", "b = pickle.dumps(P())",
         "pickle.loads(b).x"], "5"),
    "popen_wait_over_cells": (
        ["import subprocess as sp; p = sp.Popen(['sh', '-c', 'exit 3'])", "1",
         "p.wait()"], "3"),
    "process_over_cells": (
        ["import multiprocessing as mp; c = mp.get_context('fork')",
         "q = c.SimpleQueue(); p = c.Process(target=q.put, args=(5,))",
         "p.start()", "q.get(), p.join(), p.exitcode"], "(5, None, 0)"),
    "shared_value_over_cells": (
        ["import multiprocessing as mp; v = mp.Value('i', 1)",
         "v.value += 1", "v.value"], "2"),
    "asyncio_subprocess": (
        ["import asyncio\nasync def go(n):\n"
         "    p = await asyncio.create_subprocess_shell('exit %d' % n)\n"
         "    return await p.wait()", "asyncio.run(go(1))",
         "asyncio.run(go(2))"], "2"),
    "asyncio_task_over_cells": (
        ["import asyncio; loop = asyncio.new_event_loop()",
         "t = loop.create_task(asyncio.sleep(0.05, 'done'))",
         "loop.run_until_complete(asyncio.sleep(0))",
         "loop.run_until_complete(t)"], "'done'"),
    "epoll_over_cells": (
        ["import select, os; r, w = os.pipe(); e = select.epoll()",
         "e.register(r)", "os.write(w, b'x')", "e.poll(0) == [(r, 1)]"],
        "True"),
    "timer_over_cells": (
        ["import threading, time; n = []",
         "threading.Timer(0.3, n.append, [1]).start()", "1",
         "time.sleep(0.8)", "n"], "[1]"),
    "thread_local_over_cells": (
        ["import threading; t = threading.local(); t.x = 5", "1", "t.x"],
        "5"),
    "context_variable": (
        ["import contextvars; v = contextvars.ContextVar('v'); t = v.set(3)",
         "1", "v.get()"], "3"),
    "decimal_context": (
        ["import decimal; decimal.getcontext().prec = 5", "1",
         "decimal.Decimal(1) / 3"], "Decimal('0.33333')"),
    "numpy_random_goes_on": (
        ["import numpy as np\nnp.random.seed(1); g = np.random.default_rng(2)"
         "\na = [np.random.rand() for i in range(3)]; np.random.seed(1)",
         "b = [np.random.rand()]", "b.append(np.random.rand())",
         "b == a[:2], round(float(g.random()), 6)"], "(True, 0.261612)"),
    "private_random_generator_goes_on": (
        ["import random; r = random.Random(3); s = random.Random(3)",
         "a = [r.random()]", "a.append(r.random())",
         "a == [s.random(), s.random()]"], "True"),
    "secrets_and_uuids_differ": (
        ["import secrets, uuid\n"
         "def new(): return secrets.token_hex(), uuid.uuid1(), uuid.uuid4()",
         "a = new()", "b = new()", "len({*a, *b, *new()})"], "9"),
    "hashes_and_identities_stay": (
        ["x = object(); h = hash('abc'), id(x), hash(x)", "1",
         "h == (hash('abc'), id(x), hash(x))"], "True"),
    "clocks_go_on": (
        ["import time\ndef now(): return (time.perf_counter_ns(),"
         " time.monotonic_ns(), time.time_ns())", "a = now()", "b = now()",
         "all(x < y for x, y in zip(a + b, b + now()))"], "True"),
    "temporary_file_goes_on": (
        ["import tempfile, os; t = tempfile.NamedTemporaryFile()",
         "t.write(b'one ')", "t.write(b'two')",
         "t.seek(0), t.read(), os.path.exists(t.name), t.close(),"
         " os.path.exists(t.name)"], "(0, b'one two', True, None, False)"),
    "atexit_functions_do_not_run_in_a_copy": (
        ["import atexit, os\n"
         "f = atexit.register(lambda: open('x', 'w').close())", "1", "2",
         "os.path.exists('x')"], "False"),
    "finalizers_do_not_run_in_a_copy": (
        ["import os, weakref\nclass A:\n"
         "    def __del__(s): open('y', 'w').close()\n"
         "a = A(); w = weakref.finalize(a, lambda: open('x', 'w').close())",
         "1", "2", "os.path.exists('x'), os.path.exists('y'), w.alive"],
        "(False, False, True)"),
    "a_suspended_generator_is_not_closed": (
        ["import os\ndef g():\n    try: yield 1\n"
         "    finally: open('x', 'w').close()\ni = g()", "next(i)", "1",
         "os.path.exists('x')"], "False"),
    "logging_to_a_file": (
        ["import logging\n"
         "logging.basicConfig(filename='log', format='%(message)s', level=20)",
         "logging.info('one')", "logging.info('two')",
         "logging.info('three'); open('log').read().split()"],
        "['one', 'two', 'three']"),
    "compressed_file_is_written_once": (
        ["import gzip; f = gzip.open('z', 'wb'); f.write(b'one ')",
         "f.write(b'two ')", "f.write(b'three'); f.close()",
         "gzip.open('z').read()"], "b'one two three'"),
    "shelve": (
        ["import shelve; d = shelve.open('s'); d['a'] = 1", "d['b'] = 2",
         "d.close(); d = shelve.open('s')", "sorted(d)"], "['a', 'b']"),
    "mapped_file": (
        ["import mmap; open('m', 'wb').write(bytes(9))\n"
         "f = open('m', 'r+b'); m = mmap.mmap(f.fileno(), 0)", "m[0] = 7",
         "m.flush()", "open('m', 'rb').read(1)"], "b'\\x07'"),
    "profile_over_cells": (
        ["import cProfile; p = cProfile.Profile(); p.enable()",
         "def mine(): return 5\nmine()", "mine(); p.disable()",
         "p.create_stats(); [v[0] for k, v in p.stats.items()"
         " if k[2] == 'mine']"], "[2]"),
    "trace_over_cells": (
        ["import sys; n = []\n"
         "sys.settrace(lambda f, e, a: n.append(f.f_code.co_name))",
         "def mine(): return 5\nmine()", "mine(); sys.settrace(None)",
         "n.count('mine')"], "2"),
    "traced_memory": (
        ["import tracemalloc; tracemalloc.start()", "x = bytearray(10 ** 6)",
         "tracemalloc.get_traced_memory()[0] > 10 ** 6"], "True"),
}

# Rows that give the same result when a cell dies before their last cell: their
# state is in the checkpoint.
ROLLED_BACK = """
    flock_is_released flock_is_held buffered_file_is_written_once
    half_read_file_goes_on duplicates_share_their_offset generator_goes_on
    sqlite tempfile tempdir_is_not_removed_by_a_copy weakref_finalize_runs_once
    random_goes_on state_of_a_c_library_is_kept signal_handler_stays
    interrupt_handler_is_the_default signal_mask_stays
    no_descriptor_is_added_or_lost main_module_is_the_namespace
    pickle_of_a_class_of_a_cell no_child_to_wait_for no_zombies
    shared_value_over_cells thread_local_over_cells context_variable
    decimal_context numpy_random_goes_on private_random_generator_goes_on
    secrets_and_uuids_differ hashes_and_identities_stay clocks_go_on
    temporary_file_goes_on atexit_functions_do_not_run_in_a_copy
    finalizers_do_not_run_in_a_copy mapped_file shelve
    a_suspended_generator_is_not_closed logging_to_a_file
    compressed_file_is_written_once profile_over_cells trace_over_cells
    traced_memory asyncio_subprocess
""".split()


def shows(cb, cells, where):
    """The output of a session for the last cell. Asserts that plain Python
    gives the same."""
    s = cb.session(*patient("cell.timeout", 8))
    for cell in cells[:-1]:
        s.run(cell, 30)
    shown = value(s, cells[-1], 30)
    assert shown == plain(cells, where), s.picture()
    return shown


def skip_without(cells):
    if "numpy" in cells[0] and subprocess.run(
            [PYTHON, "-c", "import numpy"], stderr=-3, check=False).returncode:
        pytest.skip("there is no numpy here")


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", ROWS)
def test_cells_behave_as_in_plain_python(cb, tmp_path, name):
    cells, last = ROWS[name]
    skip_without(cells)
    assert shows(cb, cells, tmp_path) == last


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", ROLLED_BACK)
def test_cells_behave_as_in_plain_python_after_a_rollback(cb, tmp_path, name):
    cells, last = ROWS[name]
    skip_without(cells)
    cells = [*cells[:-1], ROLLBACK, cells[-1]]
    assert shows(cb, cells, tmp_path) == last


def test_a_port_is_free_once_it_is_closed(cb):
    """No checkpoint keeps the sockets of the session open."""
    s = cb.session("--set", "jail.network=loopback")
    s.run("import socket\nl = socket.socket(); l.bind(('127.0.0.1', 8000));"
          " l.listen()")
    s.run("c = socket.create_connection(('127.0.0.1', 8000)); a, _ ="
          " l.accept()")
    s.run("c.send(b'x'); c.close()")
    assert value(s, "a.recv(9), a.recv(9)") == "(b'x', b'')"
    s.run("a.close(); l.close()")
    s.run("l = socket.socket()")
    s.run("l.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)")
    out = s.run("l.bind(('127.0.0.1', 8000)); l.listen(); 'bound'")
    assert out == "'bound'", out
    # The port is free after a rollback, too: the rollback closed the socket.
    s.run("import os; os._exit(1)", 25)
    assert value(s, "m = socket.socket(); m.setsockopt(socket.SOL_SOCKET,"
                    " socket.SO_REUSEADDR, 1);"
                    " m.bind(('127.0.0.1', 8000)) or 'bound'") == "'bound'"


@pytest.mark.limit(90)
def test_a_multiprocessing_pool_works_over_several_cells(cb):
    s = cb.session(*patient("cell.timeout", 15), "--set", "cell.cpu=15s",
                   "-M", "400M")
    s.run("import multiprocessing as mp")
    s.run("def square(x): return x * x\n")
    out = s.run("pool = mp.Pool(3)", 30)
    if "Error" in out:
        assert "ermission" in out or "not permitted" in out, out
        pytest.skip("no shared semaphores here: " + out.split("\n")[-1])
    assert value(s, "pool.map(square, range(5))", 30) == "[0, 1, 4, 9, 16]"
    s.run("1")
    assert value(s, "pool.map(square, range(3))", 30) == "[0, 1, 4]"
    s.run("pool.close(); pool.join()", 30)
    assert value(s, "'joined'") == "'joined'"


def test_pipes_and_sockets_lost_by_a_rollback_fail_without_hanging(cb):
    """After a rollback, pipes and sockets from before it are dead. Their use
    fails at once and does not hang."""
    s = cb.session(*patient("cell.timeout", 8))
    s.run("import os, socket, subprocess as sp\nr, w = os.pipe()\n"
          "a, b = socket.socketpair()\n"
          "p = sp.Popen(['cat'], stdin=-1, stdout=-1)")
    out = s.run("os._exit(1)", 25)
    assert "back to the state" in out, out
    for cell in ("os.write(w, b'x')", "a.send(b'x')", "os.read(r, 1)",
                 "p.stdin.write(b'x'); p.stdin.flush()", "p.wait()"):
        out = s.run(cell, 25)
        assert "time limit" not in out, (cell, out)
    assert value(s, "6 * 7") == "42"
