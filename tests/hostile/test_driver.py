# SPDX-License-Identifier: MIT
"""Cells that break the driver in their own process: its link to the warden,
the modules that it uses, the hooks that it sets. The session recovers, or
restarts Python and says so."""
import pytest

from hostile import FIND, is_whole, start, value

# Cells that attack the descriptors of the driver, above all the control
# socket.
LINK = {
    "forged_done": "control().send(b'DONE 3 ok 0 0 0 1')",
    "forged_done_then_works_on":
        "control().send(b'DONE 3 ok 0 0 0 1')\nwhile True: pass",
    "forged_done_of_the_next_cell": "control().send(b'DONE 4 ok 0 0 0 1')",
    "forged_ready": "control().send(b'READY 2 3.11.2')",
    "forged_parked":
        "c = control()\nfor i in range(3): c.send(b'PARKED %d ok' % (3 + i))",
    "forged_asleep": "control().send(b'ASLEEP 2 0 0')",
    "forged_bad": "control().send(b'BAD 3 whatever')",
    "forged_answer": "control().send(b'ANSWER 1 3\\nabc')",
    "garbage": "control().send(os.urandom(200))",
    "empty": "control().send(b'')",
    "nul": "control().send(b'DONE 3 ok 0 0 0 1\\0')",
    "numbers_too_long": "control().send(b'DONE ' + b'9' * 4000)",
    "negative": "control().send(b'DONE -3 ok -1 -1 -1 -1')",
    "truncated": "control().send(b'DONE 3 o')",
    "oversize": "control().send(b'A' * 70000)",
    "huge": "c = control()\n"
            "c.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)\n"
            "c.send(b'A' * 150000)",
    "descriptors":
        "import array\nc = control()\nfor n in 1, 4, 30, 250:\n"
        "    c.sendmsg([b'DONE 3 ok 0 0 0 1'], [(socket.SOL_SOCKET,"
        " socket.SCM_RIGHTS, array.array('i', [0] * n))])",
    "descriptors_and_then_no_answer":
        "import array\ncontrol().sendmsg([b'TOOK 3'], [(socket.SOL_SOCKET,"
        " socket.SCM_RIGHTS, array.array('i', [0]))])\nwhile True: pass",
    "flood": "c = control()\nwhile True: c.send(b'TOOK 3')",
    "flood_without_waiting":
        "c = control(); c.setblocking(False)\nwhile True:\n"
        "    try: c.send(b'x' * 1000)\n    except BlockingIOError: pass",
    "flood_from_children":
        "c = control()\nfor i in range(8):\n    if not os.fork():\n"
        "        while True: c.send(b'TOOK 3')\nwhile True: pass",
    "stolen_messages":
        "import threading\nc = control()\n"
        "def steal():\n    while True: c.recv(65536)\n"
        "threading.Thread(target=steal, daemon=True).start()",
    "stolen_source":
        "import threading, tty\ndef steal(n):\n    while True: os.read(n, 99)\n"
        "for n in range(500, 600):\n    try: line = os.isatty(n)\n"
        "    except OSError: line = False\n"
        "    if line: threading.Thread(target=steal, args=(n,), daemon=True)"
        ".start()",
    "forged_source":
        "for n in range(500, 600):\n    try:\n"
        "        if os.isatty(n): os.write(n, b'x' * 3000)\n"
        "    except OSError: pass",
    "source_line_in_cooked_mode":
        "import termios\nfor n in range(500, 600):\n    try:\n"
        "        t = termios.tcgetattr(n); t[0] |= 0o777; t[3] = 0o7777\n"
        "        termios.tcsetattr(n, 0, t)\n"
        "    except (OSError, termios.error): pass",
    "shut_down": "control().shutdown(socket.SHUT_RDWR)",
    "shut_down_for_reading": "control().shutdown(socket.SHUT_RD)",
    "shut_down_for_writing": "control().shutdown(socket.SHUT_WR)",
    "closed": "os.close(sockets()[-1])",
    "closed_and_replaced":
        "n = sockets()[-1]; a, b = socket.socketpair()\nos.dup2(a.fileno(), n)",
    "non_blocking": "control().setblocking(False)",
    "small_buffers":
        "c = control()\nfor o in socket.SO_SNDBUF, socket.SO_RCVBUF:\n"
        "    c.setsockopt(socket.SOL_SOCKET, o, 1)",
    "every_high_descriptor_closed": "os.closerange(500, 1024)",
    "every_descriptor_replaced":
        "null = os.open('/dev/null', os.O_RDWR)\n"
        "for n in range(500, 600):\n    os.dup2(null, n)",
    "every_descriptor_full":
        "pipe = os.pipe()\nos.set_blocking(pipe[1], False)\n"
        "try:\n    while True: os.write(pipe[1], bytes(65536))\n"
        "except OSError: pass\nos.set_blocking(pipe[1], True)\n"
        "for n in range(500, 530): os.dup2(pipe[1], n)",
    # Neither is the one for pictures, which the driver would close.
    "no_descriptor_left":
        "os.closerange(600, 700)\nfds = []\ntry:\n    while True: fds.append(os.dup(0))\n"
        "except OSError: pass",
    "forged_mark":
        "os.write(1, b'\\x1b_' + b'0' * 32 + b'\\x1b\\\\')\nprint('more')",
    "half_a_mark": "os.write(1, b'\\x1b_' + b'0' * 20)",
    "a_mark_without_an_end": "os.write(1, b'\\x1b_' + b'x' * 200000)",
}


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", LINK)
def test_an_attack_on_the_link_costs_no_session(cb, name):
    s = start(cb)
    row = s.screen.here()
    s.run(FIND + "\n" + LINK[name], 25)
    if name.startswith("stolen"):
        # The thread that reads the link may win the race only in a later cell.
        # The undo removes it: no thread survives a rollback.
        s.run("1", 25)
        s.run(":undo", 25)
    if name == "no_descriptor_left":
        assert value(s, "len(fds) > 100") == "True"
        s.run("for fd in fds: os.close(fd)\n")
    is_whole(s, row)


def test_a_link_that_a_cell_made_non_blocking_blocks_again(cb):
    s = start(cb)
    s.run(FIND + "\n" + LINK["non_blocking"], 25)
    s.run("mine = 1")
    assert value(s, "mine") == "1"
    assert "killed" not in s.all_text() and "died" not in s.all_text()


PATCHES = {
    "builtins_deleted": "import builtins\nfor n in list(vars(builtins)):\n"
                "    if n not in ('vars', 'list'): delattr(builtins, n)",
    "builtins_replaced": "import builtins\n"
                         "for n in 'compile', 'exec', 'len', 'print', 'repr',"
                         " 'str', 'type', 'isinstance', 'getattr', 'sum':\n"
                         "    setattr(builtins, n, 1)",
    "import_fails": "import builtins\ndef no(*a, **k): raise MemoryError\n"
                    "builtins.__import__ = no",
    "import_hangs": "import builtins\ndef no(*a, **k):\n    while True: pass\n"
                    "builtins.__import__ = no",
    "import_hook_hangs":
        "import sys\nclass F:\n    def find_spec(*a):\n"
        "        while True: pass\n"
        "sys.meta_path.insert(0, F()); sys.path_importer_cache.clear()",
    "sys_modules_cleared": "import sys; sys.modules.clear()",
    "sys_modules_poisoned":
        "import sys\nfor n in list(sys.modules):\n"
        "    if n not in ('sys', 'builtins'): sys.modules[n] = None",
    "sys_path_broken":
        "import sys; sys.path[:] = [None, 1, '/home']; sys.path = 3",
    "sys_streams_replaced": "import sys\nsys.stdout = sys.stderr = sys.stdin ="
                   " sys.__stdout__ = sys.__stderr__ = None",
    "sys_streams_that_raise":
        "import sys\nclass W:\n    def __getattr__(s, n): raise RuntimeError\n"
        "sys.stdout = sys.stderr = W()",
    "sys_streams_that_hang":
        "import sys\nclass W:\n    def write(s, t): pass\n"
        "    def flush(s):\n        while True: pass\n"
        "sys.stdout = sys.stderr = W()",
    "sys_emptied": "import sys\nfor n in list(vars(sys)):\n"
                   "    if n != 'modules': delattr(sys, n)",
    "displayhook_hangs":
        "import sys\ndef h(v):\n    while True: pass\nsys.displayhook = h\n1",
    "displayhook_exits": "import sys, os\nsys.displayhook = os._exit\n3",
    "excepthook_hangs":
        "import sys\ndef h(*a):\n    while True: pass\nsys.excepthook = h\n"
        "1 / 0",
    "excepthook_raises":
        "import sys\ndef h(*a): raise SystemExit(5)\nsys.excepthook = h\n"
        "1 / 0",
    "unraisablehook_hangs":
        "import sys\ndef h(*a):\n    while True: pass\n"
        "sys.unraisablehook = h\nclass A:\n    def __del__(s): 1 / 0\nA()",
    "settrace_that_raises": "import sys; sys.settrace(lambda *a: 1 / 0)",
    "settrace_that_hangs":
        "import sys\ndef t(*a):\n    while True: pass\nsys.settrace(t)",
    "setprofile_that_interrupts":
        "import sys\ndef p(*a): raise KeyboardInterrupt\n"
        "sys.setprofile(p)",
    "threading_settrace_that_raises":
        "import threading\ndef t(*a): 1 / 0\nthreading.settrace(t)\n"
        "threading.Thread(target=print).start()",
    "audit_hook_raises":
        "import sys\ndef h(e, a):\n    if e != 'sys.unraisablehook':"
        " raise RuntimeError(e)\nsys.addaudithook(h)",
    "audit_hook_hangs_on_fork":
        "import sys\ndef h(e, a):\n    while e == 'os.fork': pass\n"
        "sys.addaudithook(h)",
    "recursion_limit": "import sys; sys.setrecursionlimit(60)",
    "switch_interval": "import sys; sys.setswitchinterval(1e9)",
    "os_emptied": "import os\nfor n in list(vars(os)):\n"
          "    if n[:2] != '__': setattr(os, n, None)",
    "posix_emptied": "import posix\nfor n in list(vars(posix)):\n"
             "    if n[:2] != '__': setattr(posix, n, None)",
    "signal_emptied": "import signal, _signal\nfor m in signal, _signal:\n"
              "    for n in list(vars(m)):\n"
              "        if n[:2] != '__': setattr(m, n, None)",
    "signal_handlers_that_raise":
        "import signal\ndef h(*a): raise BaseException('no')\n"
        "for n in range(1, 65):\n    try: signal.signal(n, h)\n"
        "    except (OSError, ValueError): pass",
    "signals_ignored":
        "import signal\nfor n in range(1, 65):\n"
        "    try: signal.signal(n, signal.SIG_IGN)\n"
        "    except (OSError, ValueError): pass",
    "signals_blocked":
        "import signal; signal.pthread_sigmask(0, range(1, 65))",
    "alarms": "import signal\ndef h(*a): raise KeyboardInterrupt\n"
              "signal.signal(signal.SIGALRM, h)\n"
              "signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)",
    "alarms_that_kill": "import signal\n"
                        "signal.setitimer(signal.ITIMER_REAL, 0.05, 0.001)",
    "gc_callback_hangs":
        "import gc\ndef c(*a):\n    while True: pass\n"
        "gc.callbacks.append(c); gc.set_threshold(1)",
    "gc_callback_raises":
        "import gc\ndef c(*a): raise SystemExit\n"
        "gc.callbacks.append(c); gc.set_threshold(1)",
    "gc_off": "import gc; gc.disable(); gc.get_objects = None",
    "socket_replaced":
        "import socket, _socket\nsocket.socket = _socket.socket = None",
    "random_replaced": "import random\nrandom._inst = random.seed = None",
    "random_state_raises":
        "import random\ndef g(*a): raise SystemExit\n"
        "random._inst = type('R', (), {'getstate': g})()",
    "threading_emptied": "import threading\nfor n in list(vars(threading)):\n"
                 "    if n[:2] != '__': setattr(threading, n, None)",
    "atexit_that_hangs": "import atexit\ndef h():\n    while True: pass\n"
              "atexit.register(h)",
    "linecache_broken": "import linecache; linecache.cache = None\n1 / 0",
    "traceback_broken": "import traceback\n"
                 "traceback.format_exception = traceback.TracebackException"
                 " = None\n1 / 0",
    "at_fork_raises":
        "import os\ndef h(): raise SystemExit\n"
        "os.register_at_fork(before=h, after_in_parent=h, after_in_child=h)",
    "at_fork_hangs_before":
        "import os\ndef h():\n    while True: pass\n"
        "os.register_at_fork(before=h)",
    "at_fork_hangs_in_parent":
        "import os\ndef h():\n    while True: pass\n"
        "os.register_at_fork(after_in_parent=h)",
    "at_fork_hangs_in_child":
        "import os\ndef h():\n    while True: pass\n"
        "os.register_at_fork(after_in_child=h)",
    "at_fork_hangs_the_second_time":
        "import os\nn = 0\ndef h():\n    global n\n    n += 1\n"
        "    while n > 1: pass\nos.register_at_fork(before=h)",
    "at_fork_exits":
        "import os\nos.register_at_fork(after_in_child=lambda: os._exit(0))",
    "at_fork_kills_the_checkpoint":
        "import os\nn = 0\ndef h():\n    global n\n    n += 1\n"
        "    if n == 2: os.kill(os.getpid(), 9)\n"
        "os.register_at_fork(after_in_child=h)",
    "at_fork_forks":
        "import os\ndef h():\n    try: os.fork()\n    except OSError: pass\n"
        "os.register_at_fork(after_in_parent=h)",
    "frames_of_the_driver":
        "import sys\nf = sys._getframe()\nwhile f:\n    try:\n"
        "        f.f_globals.clear()\n    except Exception: pass\n"
        "    f = f.f_back",
    "globals_of_the_driver":
        "import sys\nf = sys._getframe()\nwhile f:\n"
        "    for n in list(f.f_globals):\n"
        "        if n[:2] != '__' and n != 'f': f.f_globals[n] = None\n"
        "    f = f.f_back",
    "driver_state_cleared_through_gc":
        "import gc\nfor o in gc.get_objects():\n"
        "    if type(o) is dict and 'CELLS_KEPT' in o and o is not globals():\n"
        "        o.clear()",
    "interrupt_set_from_c":
        "import ctypes\nctypes.pythonapi.PyErr_SetInterrupt()",
}


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", PATCHES)
def test_a_patched_driver_is_replaced_by_reset(cb, name):
    """The patch may break later cells. After :reset the session works
    again."""
    s = start(cb)
    s.run(PATCHES[name], 25)
    s.run("1", 25)
    s.run(":reset", 25)
    assert value(s, "6 * 7") == "42"
    assert value(s, "open('kept.txt').read()") == "'in the home'"


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", PATCHES)
def test_a_patched_driver_is_restored_by_undo(cb, name):
    s = start(cb)
    row = s.screen.here()
    s.run(PATCHES[name], 25)
    s.run(":undo", 25)
    is_whole(s, row)
