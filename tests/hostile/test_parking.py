# SPDX-License-Identifier: MIT
"""Cells that hang while their checkpoint is made. Parking belongs to the cell
that caused it: it ends by itself, Ctrl-C is answered meanwhile, and neither it
nor the keys pressed during it strike a later cell."""
import pytest

from hostile import is_whole, said_since, start, value

# Root's jails are stopped by the freezer, a person's by signals.
pytestmark = pytest.mark.both

# The driver's own functions, and one in the place of its park().
DRIVER = """\
import ctypes, os, signal, sys, time
frame = sys._getframe()
while 'PARTS' not in frame.f_globals: frame = frame.f_back
driver = frame.f_globals
libc = ctypes.CDLL(None)
def park_by(f):
    driver['part']('park'); driver['park'] = f
"""
# A process that waits in the kernel for the exec of its child, in vain.
WAITER = """\
waiter = os.fork()
if not waiter:
    stack = ctypes.create_string_buffer(1 << 20)
    child = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(
        lambda _: libc.pause())
    libc.clone(child, ctypes.c_void_p(ctypes.addressof(stack) + (1 << 20) - 64),
               0x4000 | 0x100 | 17, None)
    os._exit(0)
try:
    while ') D ' not in open('/proc/%d/stat' % waiter).read(): pass
except OSError: pass  # some jails have no /proc
"""
SPIN = "def spin(*a):\n    while True: pass\n"
HANG = {
    "sleeps": "park_by(lambda *a: time.sleep(999))",
    "spins": SPIN + "park_by(spin)",
    "stops_itself": "park_by(lambda *a: os.kill(os.getpid(), 19))",
    "waits_in_the_kernel": "park_by(lambda *a: libc.vfork() or libc.pause())",
    "sleeps_beside_a_waiter": "park_by(lambda *a: time.sleep(999))\n" + WAITER,
    "spins_beside_a_waiter": SPIN + "park_by(spin)\n" + WAITER,
    "storms": SPIN + "park_by(spin)\nfor i in range(20):\n"
              "    if not os.fork(): spin()",
    "copies_without_a_copy":
        "park_by(lambda no, s: driver['say']('PARKED %s ok' % no))",
    "hangs_in_a_destructor":
        SPIN + "class D: __del__ = spin\ndriver['S'].held = D()\n"
        "def drop(*a): del driver['S'].held\npark_by(drop)",
    "hangs_in_fork": "libc.__register_atfork(ctypes.cast(libc.pause,"
                     " ctypes.c_void_p), None, None, None)",
    "hangs_in_the_copy": "libc.__register_atfork(None, None, ctypes.cast("
                         "libc.pause, ctypes.c_void_p), None)",
}
# The checkpoint stops whatever is started after it.
STOPS = """\
driver['part']('park')
me, recv = os.getpid(), driver['recv']
def stops(*n):
    if os.getpid() == me: return recv(*n)
    last = os.getpid()
    while True:
        for pid in range(last + 1, last + 60):
            try: os.kill(pid, signal.SIGSTOP); last = pid
            except OSError: pass
driver['recv'] = stops
driver['S'].copy = driver['twice']"""
# These end at once.
BREAK = {
    "raises": "park_by(lambda *a: 1 / 0)",
    "exits": "park_by(lambda *a: os._exit(3))",
    "sends_garbage": "park_by(lambda *a: driver['send'](b'gibberish'))",
    "answers_another": "park_by(lambda *a: driver['send'](b'PARKED 99 ok'))",
    "floods": "def flood(*a):\n    while True: driver['send'](b'PARKED 9 ok')\n"
              "park_by(flood)",
}


def hang(cb, name, *args):
    """A session whose last cell hangs while it is parked."""
    s = start(cb, "--set", "cell.timeout=60s", "--set", "cell.cpu=60s", *args)
    s.run(DRIVER)
    s.run({**HANG, **BREAK, "stops_what_starts": STOPS}[name])
    return s


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", {**HANG, **BREAK})
def test_the_next_cell_does_not_wait_for_a_parking_that_hangs(cb, name):
    s = hang(cb, name)
    row = s.screen.here()
    assert value(s, "6 * 7", 15) == "42"
    is_whole(s, row)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", HANG)
def test_ctrl_c_gives_up_a_cell_that_waits_and_no_other(cb, name):
    s = hang(cb, name)
    row = s.screen.here()
    s.type("'ran' * 2\r")
    s.wait(lambda: s.screen.here() > row, "the cell to be sent")
    for _ in range(5):
        s.type("\x03")
    # Where parking was over already, the cell was quicker than the keys.
    s.expect_since(row, r"\^C|^'ranran'", 10)
    s.wait_prompt(10)
    s.type("stale")
    s.type("\x03")
    assert value(s, "6 * 7", 15) == "42"
    assert "Ctrl-C three times" not in s.all_text()
    is_whole(s, row)


def test_ctrl_c_is_answered_while_a_checkpoint_does_not_wake(cb):
    s = start(cb)
    # The first thing that a checkpoint does when it wakes.
    s.run(DRIVER + "driver['part']('park')\nme, count = os.getpid(),"
          " driver['_count']\ndef wake_never():\n"
          "    while os.getpid() != me: time.sleep(9)\n"
          "    return count()\ndriver['_count'] = wake_never")
    s.run("import termios")
    row = s.enter("t = termios.tcgetattr(0); t[3] &= ~termios.ECHO;"
                  " termios.tcsetattr(0, 0, t); signal.signal(2, 1);"
                  " print('on', flush=True); os.kill(os.getpid(), 11)")
    s.expect_since(row, "^on")

    def is_answered():
        s.type("\x03")             # the first may come before the crash
        return "^C" in said_since(s, row)
    s.wait(is_answered, "an answer to Ctrl-C")
    s.expect_since(row, r"^(¦ )?\[crashed")
    s.wait_prompt()
    said = said_since(s, row)
    assert "did not answer" in said
    assert said.index("^C") < said.index("[crashed"), s.picture()
    assert value(s, "6 * 7") == "42"


@pytest.mark.sampled(4)
@pytest.mark.parametrize("line", [":undo", ":reset", ":files", ":who"])
@pytest.mark.parametrize("name", ["sleeps", "spins_beside_a_waiter",
                                  "stops_what_starts"])
def test_a_command_does_not_wait_for_a_parking_that_hangs(cb, name, line):
    s = hang(cb, name)
    s.run(line, 15)
    assert value(s, "6 * 7", 15) == "42"
    # The checkpoint that :undo would go back to may still stop new processes.
    assert value(s, "open('kept.txt').read()", 25) == "'in the home'"


def test_ctrl_c_gives_up_a_command_that_waits(cb):
    s = hang(cb, "sleeps_beside_a_waiter")
    row = s.enter(":files")
    s.type("\x03")
    # Of what no terminal has read yet the kernel drops, at Ctrl-C, the newline.
    s.expect_since(row - 1, r"interrupted|kept\.txt", 10)
    s.wait_prompt(10)
    assert value(s, "6 * 7", 15) == "42"


def test_ctrl_c_gives_up_a_completion_that_waits(cb):
    s = hang(cb, "sleeps_beside_a_waiter")
    row = s.screen.here()
    s.type("kep\t")
    s.wait(lambda: ">>> kep" in s.screen.cursor_row(), "the word")
    s.type("\x03")
    s.wait(lambda: s.screen.here() > row and s.at_prompt(), "a prompt", 10)
    assert value(s, "6 * 7", 15) == "42"


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["sleeps_beside_a_waiter", "spins"])
def test_leaving_does_not_wait_for_a_parking_that_hangs(cb, name):
    s = hang(cb, name)
    row = s.screen.here()
    s.type("\x04")
    s.expect_since(row, "never downloaded", 15)
    s.wait_prompt()
    assert s.leave(15) == 0


def test_ctrl_c_together_with_enter_is_not_lost(cb):
    s = start(cb, "--set", "cell.timeout=60s")
    s.run("import time")
    for _ in range(20):
        row = s.screen.here()
        # Not one long sleep: Python's own race is in test_program.py.
        s.type("while True: time.sleep(.1)")
        s.wait(lambda: "sleep(.1)" in s.screen.cursor_row(), "the cell")
        s.type("\r\x03")
        s.wait(lambda: s.screen.here() > row and s.at_prompt(), "a prompt")
    assert value(s, "kept") == "{'cell': 1}"
