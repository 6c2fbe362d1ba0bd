# SPDX-License-Identifier: MIT
"""The driver without a jail: interrupts, and cells that break it."""
import os
import random
import signal
import time

import pytest

from driver import until
from world import WHOLE

# ---- interrupts ----

def test_an_interrupt_ends_the_cell_and_keeps_the_variables(guest):
    guest.run("x = 5")
    guest.started("while True: pass")
    guest.interrupt()
    assert guest.done() == "interrupted"
    assert guest.screen().rstrip().endswith("KeyboardInterrupt")
    assert guest.out_of("x") == "5\n"


def test_an_interrupt_between_cells_has_no_effect(guest):
    guest.run("x = 1")
    for _ in range(20):
        guest.interrupt()
    assert guest.out_of("import signal\nx") == "1\n"


def test_the_users_interrupt_handler_is_kept_and_used(guest):
    guest.run("import signal, time\n"
              "signal.signal(signal.SIGINT, lambda *a: hits.append(1))\n"
              "hits = []")
    guest.started("end = time.time() + 20\n"
            "while not hits and time.time() < end: time.sleep(.01)")
    guest.interrupt()
    assert guest.done() == "ok"
    assert guest.out_of("hits") == "[1]\n"
    guest.run("signal.signal(signal.SIGINT, signal.default_int_handler)")
    guest.started("while True: pass")
    guest.interrupt()
    assert guest.done() == "interrupted"


def test_pdb_leaves_no_interrupt_handler_for_later_cells(guest):
    guest.out_of("import io, pdb, signal\n"
                 "debugger = pdb.Pdb(None, io.StringIO('c\\n'), io.StringIO())\n"
                 "debugger.set_trace()\n"
                 "a = signal.getsignal(signal.SIGINT)")
    assert guest.out_of("a.__name__") == "'sigint_handler'\n"
    guest.started("while True: pass")
    guest.interrupt()
    assert guest.done() == "interrupted"


def test_an_excepthook_or_flush_that_hangs_can_be_interrupted(guest):
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


@pytest.mark.sampled
@pytest.mark.parametrize("source", [
    "pass", "1/0", "x = [i for i in range(2000)]", "print('text')", "1 +"])
def test_no_interrupt_escapes_its_cell(guest, source):
    """Interrupts come at random moments. Each cell is answered once, in
    order."""
    chance = random.Random(source)
    for _ in range(150 if WHOLE else 40):
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


@pytest.mark.sampled
def test_handlers_that_raise_between_cells_lose_no_message(guest):
    guest.run("import signal\ndef ring(*a): raise RuntimeError('ring')\n"
              "signal.signal(signal.SIGALRM, ring)")
    chance = random.Random(4)
    for _ in range(300 if WHOLE else 80):
        os.kill(guest.pid, signal.SIGALRM)
        if chance.random() < .5:
            time.sleep(chance.random() / 2000)
        assert guest.run("2 + 2") in ("ok", "raised", "syntax")
    assert guest.out_of("3 + 3").endswith("6\n")


# ---- cells that break modules, streams or hooks ----

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
def test_the_driver_survives_a_cell_that_breaks_python(guest, source):
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
