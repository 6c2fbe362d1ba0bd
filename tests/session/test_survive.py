# SPDX-License-Identifier: MIT
"""A bad cell costs nothing but that cell: variables and home survive."""
import re

import pytest

from world import PATIENCE

# Root's jails are stopped by the freezer, a person's by signals.
pytestmark = pytest.mark.both


def session_to_lose(cb, timeout, *args):
    s = cb.session("-t", timeout, *args, "--set", "cell.grace=300ms",
                   "--set", "session.processes=40", "-M", "256M")
    s.run("kept = [1, 2, 3]")
    s.run("open('kept.txt', 'w').write('in the home')")
    return s


@pytest.fixture
def kept(cb):
    """A session with a variable and a file in the home."""
    return session_to_lose(cb, f"{30 * PATIENCE:.0f}s")


# For cells that only a limit ends.
SECONDS = int(max(1, PATIENCE))


@pytest.fixture
def hurried(cb):
    """The same, with a limit that strikes soon."""
    return session_to_lose(cb, f"{SECONDS}s")


# On a busy host a cell may leave the session too little time for this.
NO_CHECKPOINT = r"(?m)^¦ \[no checkpoint could be taken[^\]]*\](\n|\Z)"


def shown(s, cell, deadline=None):
    return re.sub(NO_CHECKPOINT, "", s.run(cell, deadline)).rstrip("\n")


def assert_nothing_is_lost(s):
    assert shown(s, "kept") == "[1, 2, 3]"
    assert shown(s, "open('kept.txt').read()") == "'in the home'"
    assert shown(s, "6 * 7") == "42"


SWALLOW = ("import time\nwhile True:\n    try: time.sleep(99)\n"
           "    except BaseException: pass")

# name: (cell, a pattern in the message of the session). `make test` has every
# other one.
BAD_CELLS = {
    "timeout": (SWALLOW,
                f"time limit: {SECONDS} s · killed · back to the state"),
    "blocked_signals": (
        "import signal; signal.pthread_sigmask(signal.SIG_BLOCK,"
        " range(1, 65))\nwhile True: pass", f"time limit: {SECONDS} s"),
    "segfault": ("import ctypes; ctypes.string_at(0)",
                 r"crashed: Segmentation fault · back to the state"),
    "abort": ("import os; os.abort()", r"crashed: Aborted · back to"),
    "os_exit": ("import os; os._exit(3)",
                r"Python exited with status 3 · back to the state"),
    "exit_of_c": ("import ctypes; ctypes.CDLL(None).exit(3)",
                  r"Python exited with status 3 · back to the state"),
    "sigkill_of_itself": ("import os; os.kill(os.getpid(), 9)",
                          r"crashed: Killed · back to the state"),
    "sigkill_of_the_process_group": (
        "import os; os.kill(0, 9)", r"back to the state"),
    "sigterm_of_itself": ("import os; os.kill(os.getpid(), 15)",
                          r"crashed: Terminated · back to the state"),
    "all_descriptors_closed": ("import os; os.closerange(0, 1000)", r""),
    "all_descriptors_but_the_first_three_closed": (
        "import os; os.closerange(3, 1000)", r""),
    "stack_overflow": (
        "import sys; sys.setrecursionlimit(10**8)\n"
        "class A:\n    def __repr__(self): return repr(self)\nrepr(A())",
        r"crashed: Segmentation fault|RecursionError|memory limit"),
    "c_code_that_never_returns": ("10 ** 10 ** 8 % 7",
                                 f"time limit: {SECONDS} s"),
    "stopped_itself": ("import os, signal; os.kill(os.getpid(),"
                       " signal.SIGSTOP)", f"time limit: {SECONDS} s"),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", BAD_CELLS)
def test_variables_survive_a_bad_cell(request, name):
    cell, said = BAD_CELLS[name]
    s = request.getfixturevalue("hurried" if "time limit" in said else "kept")
    out = s.run(cell, 40)
    assert re.search(said, out), out
    assert_nothing_is_lost(s)


# Without a jail, guest/test_mend.py has many more of these.
@pytest.mark.sampled(3)
@pytest.mark.parametrize("cell, what", [
    ("import sys; sys.stdout.close()", "sys.stdout"),
    ("import sys; sys.displayhook = None", "sys.displayhook"),
    ("import sys; sys.excepthook = None", "sys.excepthook"),
    ("import sys; sys.modules.clear()", r"\d+ names of sys.modules"),
    ("import builtins; builtins.compile = None", "builtins.compile"),
    ("import builtins; del builtins.print", "builtins.print"),
    ("import os; os.close(1)", "descriptor 1"),
    ("import os; n = os.open('o', 66); [os.dup2(n, i) for i in (0, 1, 2)];",
     "descriptor 0, descriptor 1, descriptor 2"),
], ids=lambda x: x.split(";")[-1].strip()[:30])
def test_a_cell_that_breaks_the_prompt_mutes_no_later_one(kept, cell, what):
    out = kept.run(cell)
    assert re.fullmatch("cellblock: put back what this cell broke: " + what,
                        out.replace("\n", "")), out
    assert_nothing_is_lost(kept)
    assert kept.run("print('hello')") == "hello"
    kept.enter("input('name? ')")
    kept.expect(r"^name\?$")
    kept.type("ann\r")
    kept.expect("^'ann'$")
    assert "ZeroDivisionError" in kept.run("1/0")


def test_a_stream_that_a_cell_puts_in_place_stays(kept):
    assert kept.run("import sys, io; sys.stdout = io.StringIO()") == ""
    assert kept.run("print('kept for later')") == ""
    assert kept.run("sys.stderr.write(sys.stdout.getvalue());") == \
        "kept for later"


def test_variables_survive_the_memory_limit(cb):
    kept = session_to_lose(cb, "40s")
    out = kept.run("x = []\nwhile True: x.append(bytearray(1 << 20))", 40)
    assert "memory limit: 256 MiB" in out or "MemoryError" in out, out
    if "MemoryError" in out:
        kept.run("x = None")
    assert_nothing_is_lost(kept)


@pytest.mark.alone
def test_variables_survive_the_memory_limit_on_a_busy_host(cb):
    """Growth that is seen between two looks is no copying. Without a cgroup the
    cell meets MemoryError and keeps what it has; there is room beside that for
    its checkpoints."""
    sessions = [session_to_lose(cb, "40s") for _ in range(4)]
    for s in sessions:
        s.enter("x = []\nwhile True: x.append(bytearray(1 << 20))")
    for s in sessions:
        said = s.wait(lambda s=s: re.search("memory limit: 256 MiB|MemoryError",
                                            s.all_text()), "its end", 40)
        s.wait_prompt()
        if said[0] == "MemoryError":
            assert int(s.run("len(x)")) > 200
            s.run("x = None")
        assert_nothing_is_lost(s)


def test_variables_survive_a_fork_bomb(cb):
    kept = session_to_lose(cb, f"{SECONDS}s", "-s", "cell.cpu=600ms")
    out = kept.run("import os\nwhile True:\n    try: os.fork()\n"
                   "    except OSError: pass", 50)
    assert "limit" in out, out
    # Processes left of the bomb may still print.
    assert "[1, 2, 3]" in kept.run("kept", 40).splitlines()
    kept.run(":reset", 40)
    assert shown(kept, "open('kept.txt').read()") == "'in the home'"


def test_variables_survive_a_fork_bomb_that_detaches(kept):
    out = kept.run("import os\nfor i in range(100):\n    try:\n"
                   "        if not os.fork():\n            os.setsid()\n"
                   "            while True: pass\n"
                   "    except OSError: break", 50)
    assert out, "the session says nothing"
    # The notice that no checkpoint could be taken appears above the answer.
    assert "[1, 2, 3]" in kept.run("kept").splitlines()
    kept.run(":reset", 40)
    assert shown(kept, "open('kept.txt').read()") == "'in the home'"


def test_kill_of_every_process_is_refused_or_survived(kept):
    kept.run("import os; os.kill(-1, 9)", 40)
    assert shown(kept, "6 * 7") == "42"
    assert shown(kept, "open('kept.txt').read()") == "'in the home'"


def test_variables_survive_two_bad_cells_in_a_row(kept):
    kept.run("import os; os._exit(1)", 40)
    kept.run("import os; os.abort()", 40)
    assert_nothing_is_lost(kept)


def test_variables_made_after_a_rollback_survive_the_next_rollback(kept):
    kept.run("import os; os._exit(1)", 40)
    kept.run("later = 'too'")
    kept.run("import os; os._exit(1)", 40)
    assert kept.run("later") == "'too'"
    assert_nothing_is_lost(kept)


def test_a_killed_cell_changes_no_variable(kept):
    kept.run("import os; kept.append(4); other = 1; os._exit(1)", 40)
    assert kept.run("kept") == "[1, 2, 3]"
    assert "NameError" in kept.run("other")


# guest/test_interrupts.py has these without a jail.
@pytest.mark.sampled(4)
@pytest.mark.parametrize("breakage", [
    "import builtins; builtins.compile = builtins.exec = None",
    "import builtins; builtins.__import__ = None",
    "import sys; sys.modules.clear()",
    "import sys; sys.stdout = sys.stderr = None",
    "import sys; sys.settrace(lambda *a: 1/0)",
    "import sys; sys.excepthook = None; sys.displayhook = None",
    "import gc; [o for o in gc.get_objects()]; gc.disable()",
    "import random; random.getstate = None; random.seed(1)",
    "import signal; signal.signal = None",
    "import threading; threading.Thread = threading.Lock = None",
    "import os; os.fork = os.waitpid = os.write = os.read = None",
    "import atexit; atexit.register(lambda: 1/0)",
    "import socket; socket.socket = None; import io; io.open = None",
], ids=lambda b: b.split(";")[-1].strip()[:30])
def test_monkey_patching_does_not_cost_the_session(kept, breakage):
    kept.run(breakage, 40)
    kept.run("1", 40)
    kept.run("import os; os._exit(1)", 40)
    kept.wait_prompt()
    kept.run(":reset", 40)
    assert kept.run("6 * 7") == "42"


def framed(out):
    """The text of a frame line, which may be wrapped."""
    return re.sub(r"\n¦ +", " ", out)


FILES = " · files in the home are as they are · "


def test_undo_says_what_it_takes_back_and_what_is_next(session):
    for n in range(4):
        session.run(f"x = {n}")
    assert framed(session.run(":undo")) == (
        "¦ [back to the state before cell 4 (1 name): x = 3" + FILES
        + ":undo again: cell 3]")
    assert session.run("x") == "2"
    # A first cell that is typed early enough has no state before it.
    assert re.fullmatch(re.escape(
        "¦ [back to the state before cell 2 (1 name): x = 1" + FILES)
        + "(nothing older is kept|:undo again: cell 1)]",
        framed(session.run(":undo 2")))
    assert session.run("x") == "0"


# Cells that look, and cells that change something without a name for it:
# guest/test_changed.py has many more.
@pytest.mark.sampled(3)
@pytest.mark.parametrize("look, change", [
    ("x", "x.append(1)"), ("len(x), x[0]", "x[0] = 5"),
    ("x.count(2)", "x.clear()"), ("a.get()", "a.n += 1"),
    ("1/0", "del x"), ("no such thing", "import sys as y"),
], ids=lambda c: c)
def test_a_cell_that_changed_no_variable_is_passed_over(session, look, change):
    session.run("x = [1, 2, 3]\nclass A:\n    n = 4\n"
                "    def get(self): return self.n\na = A()")
    session.run("mark = 1")
    session.run(look)
    session.run(look)
    assert re.search(r"before cell 2 \(\d names\): mark = 1 ·",
                     framed(session.run(":undo")))
    session.run("mark = 2")
    session.run(look)
    session.run(change)
    session.run(look)
    assert re.search(r"before cell 7 \(4 names\): " + re.escape(change),
                     framed(session.run(":undo")))
    assert session.run("mark, len(x), a.n") == "(2, 3, 4)"


def test_an_iterator_that_goes_on_is_a_change(session):
    session.run("x = iter('abc')")
    session.run("next(x)")
    session.run("next(x)")
    session.run(":undo")
    assert session.run("next(x)") == "'b'"


def test_undo_goes_back_several_cells(cb):
    s = cb.session("--set", "cell.undo=3")
    for n in range(4):
        s.run(f"x = {n}")
    s.run(":undo 3")
    assert s.run("x") == "0"


def test_undo_beyond_the_oldest_checkpoint_is_refused(session):
    session.run("x = 1")
    session.run("x = 2")
    session.run("x = 3")
    session.run(":undo")
    out = session.run(":undo 9")
    assert re.search("only [12] cells? (is|are) kept", out), out
    assert session.run("x") == "2"


def test_older_states_go_when_they_hold_much_memory(cb):
    """Each cell replaces 30 MiB, which the copy before it holds on to."""
    # Also where copying memory takes long.
    s = cb.session("-M", "256M", "-t", "60s", "--set",
                   "cell.checkpoint=always")
    for n in range(5):
        s.run(f"x = bytearray(b'{n}') * (30 << 20)")
    assert s.run("x[0]") == str(ord("4"))
    out = s.run(":undo 5", 40)
    assert re.search("only [1-3] cells? (is|are) kept", out), out
    assert s.run("x[0]") == str(ord("4")), "nothing was undone"
    s.run(":undo", 40)
    assert s.run("x[0]") == str(ord("3"))


def test_states_that_share_their_memory_stay(cb):
    s = cb.session("-t", "60s")
    for n in range(6):
        s.run(f"x = {n}")
    s.run(":undo 5")
    assert s.run("x") == "0"


def test_a_reset_can_be_undone(session):
    session.run("x = [1]; import threading")
    session.run("y = 2")
    assert framed(session.run(":reset", 40)) == (
        "¦ [a fresh Python · files in the home are as they are · "
        ":undo brings the variables back]")
    assert "NameError" in session.run("x")
    session.run("z = 3")
    assert ":undo again: :reset]" in framed(session.run(":undo"))
    assert framed(session.run(":undo")).startswith(
        "¦ [back to the state before :reset (3 names) ·")
    assert session.run("x, y") == "([1], 2)"
    assert "before cell 2 (2 names): y = 2" in framed(session.run(":undo"))
    assert session.run("x.append(2); x") == "[1, 2]"


def test_a_reset_of_much_memory_gives_it_back(cb):
    """Variables that would hold a quarter of the limit are not kept for :undo."""
    s = cb.session("-M", "256M", "-t", "60s")
    s.run("x = bytearray(b'x') * (90 << 20)")
    out = framed(s.run(":reset", 40))
    assert out.endswith("files in the home are as they are]"), out
    assert "NameError" in s.run("x")
    assert "nothing is kept" in s.run(":undo")


def test_a_reset_ends_what_the_session_left_running(session):
    session.run("import subprocess; p = subprocess.Popen(['sleep', '99'])")
    session.run(":reset", 40)
    session.run("import os\ndef name(p):\n"
                "    try: return open(f'/proc/{p}/comm').read()\n"
                "    except OSError: return ''")    # it has ended meanwhile
    assert session.run("[p for p in os.listdir('/proc') if p.isdigit() and"
                       " 'sleep' in name(p)]") == "[]"
    session.run(":undo", 40)
    session.run(":undo", 40)
    assert session.run("p.poll() is not None or p.wait(9)").strip()


def test_reset_forgets_variables_and_keeps_the_home(session):
    session.run("x = 1; open('f', 'w').write('kept')")
    session.run(":reset", 40)
    assert "NameError" in session.run("x")
    assert session.run("open('f').read()") == "'kept'"


def test_wipe_empties_the_home(session):
    session.run("open('f', 'w').write('x')")
    session.type(":wipe")
    session.expect(":wipe")
    session.type("\r")
    if not session.wait(lambda: session.at_prompt() or
                        re.search(r"\(y|\[y", session.screen_text()),
                        "a prompt or a question"):
        raise AssertionError
    if not session.at_prompt():
        session.type("y")
        session.type("\r")
    session.wait_prompt()
    assert session.run("import os; os.listdir('/home')") == "[]"


def test_the_random_state_advances_as_in_plain_python(session):
    import random
    session.run("import random; random.seed(42)")
    r = random.Random(42)
    for _ in range(3):
        assert session.run("random.random()") == repr(r.random())


def test_the_random_state_is_rolled_back_with_the_variables(session):
    import random
    session.run("import random; random.seed(42)")
    session.run("import os; random.random(); os._exit(1)", 40)
    assert session.run("random.random()") == repr(random.Random(42).random())


def test_the_process_stays_the_same_from_cell_to_cell(session):
    pid = session.run("import os; os.getpid()")
    assert session.run("os.getpid()") == pid
    assert session.run("os.getpid()") == pid


def test_a_thread_goes_on_in_the_next_cell(session):
    session.run("import threading, time; n = 0; go = threading.Event()")
    session.run("def work():\n    global n\n    go.wait()\n    n = 99")
    out = session.run("t = threading.Thread(target=work); t.start()")
    assert out == "¦ [1 thread is stopped until the next cell]"
    # It is told once, and where none is left not at all.
    assert session.run("n") == "0"
    assert session.run("go.set(); t.join()") == ""
    assert session.run("n") == "99"
    out = session.run("go.clear()\nfor _ in 'ab': "
                      "threading.Thread(target=work, daemon=True).start()")
    assert "[2 threads are stopped until the next cell]" in out


def test_nothing_is_said_of_threads_that_run_on(cb):
    s = cb.session("-q", "-s", "cell.background=run")
    out = s.run("import threading\nthreading.Thread("
                "target=threading.Event().wait, daemon=True).start()")
    assert "thread is" not in out, out


def test_a_thread_lost_by_a_rollback_is_reported(session):
    session.run("import threading, os, time")
    session.run("threading.Thread(target=time.sleep, args=(99,),"
                " daemon=True).start()")
    out = session.run("os._exit(1)", 40)
    assert re.search(r"· 1\s(¦\s+)?thread is gone", out), out


def test_a_later_cell_can_wait_for_a_child(session):
    session.run("import subprocess; p = subprocess.Popen(['sh', '-c',"
                " 'exit 5'])")
    assert session.run("p.wait()") == "5"


def test_os_wait_sees_no_child_of_the_session(session):
    session.run("1")
    assert "ChildProcessError" in session.run("import os; os.wait()")


def test_an_open_file_keeps_its_offset_over_a_rollback(session):
    session.run("open('f', 'w').write('abcdef'); f = open('f')")
    session.run("f.read(2)")
    session.run("import os; f.read(2); os._exit(1)", 40)
    assert session.run("f.read()") == "'cdef'"


RSS_MIB = ("import resource; int(open('/proc/self/statm').read().split()[1])"
           " * resource.getpagesize() >> 20")


def test_freed_memory_is_returned_to_the_kernel_as_in_plain_python(session):
    session.run("1/0")      # this loads all parts of the driver
    if "Error" in (said := session.run(RSS_MIB)):
        pytest.skip("the jail has no /proc")
    before = int(said)
    session.run("held = [bytearray(1 << 20) for _ in range(60)]")
    assert int(session.run(RSS_MIB)) >= before + 60
    # Memory in use above a freed block would keep the heap from shrinking.
    session.run("above = [bytes(1000) for _ in range(5000)]; del held")
    assert int(session.run(RSS_MIB)) < before + 30


def test_await_goes_on_after_a_kill_and_after_an_interrupt(cb):
    s = cb.session("-t", f"{5 * SECONDS}s", "-s", "cell.grace=300ms")
    s.run("import asyncio, os\nasync def f(x):\n"
          "    await asyncio.sleep(.01); return x + 1")
    assert s.run("await f(1)") == "2"
    assert "back to the state before" in s.run("os.kill(os.getpid(), 9)", 20)
    assert s.run("await f(2)") == "3"
    s.run("async def h():\n"
          "    print('go'); await asyncio.sleep(50)")
    s.enter("await h()")
    s.expect("^go$")
    s.type("\x03")
    s.wait_prompt()
    assert re.search(r'Traceback .*\n  File "<cell \d+>", line 1, in <module>\n'
                     r"(.*\n)*KeyboardInterrupt\n", s.all_text())
    assert s.run("await f(3)") == "4"
    # An interrupt while the cell's own code runs, and not the loop.
    s.run("async def g():\n"
          "    os.kill(os.getpid(), 2); await asyncio.sleep(50)")
    out = s.run("await g()", 20)
    assert "KeyboardInterrupt" in out and "time limit" not in out, out
    assert "time limit" in s.run("await asyncio.sleep(50)", 20)
    assert s.run("await f(4)") == "5"


def test_diff_says_what_the_last_cell_changed(session):
    assert "no cell has run yet" in session.run(":diff")
    session.run("a = [1]; b = 'x'")
    session.run("a.append(2); open('f.txt', 'w').write('12');")
    assert [r.split() for r in session.run(":diff").splitlines()] == [
        ["changed", "a", "list", "[1,", "2]"],
        ["new", "file", "f.txt", "2", "B"]]
    session.run("b")
    assert "cell 3 changed no variable and no file" in session.run(":diff")
    session.run("c = 1; import os; os._exit(1)")
    out = session.run(":diff")
    assert "the last cell was taken back: this is cell 3" in out
    assert "c" not in out.split()
