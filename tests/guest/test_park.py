# SPDX-License-Identifier: MIT
"""The driver without a jail: checkpoints."""
import os
import random
import re
import signal
import socket

import pytest

from driver import plain_python, until

KERNEL = tuple(map(int, re.findall(r"\d+", os.uname().release)[:2]))


@pytest.fixture(params=["copied", "forked_twice"])
def guest(request, make):
    """A guest with and one without the library that copies the process."""
    return make(library=request.param == "copied")

def test_a_resumed_checkpoint_has_the_state_it_was_taken_in(guest):
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


def test_a_checkpoint_ends_when_its_socket_is_closed(guest):
    point = guest.park()
    point.sock.close()

    def gone():
        try:
            with open("/proc/%d/stat" % point.pid) as f:
                return f.read().split(") ")[1][0] == "Z"
        except (FileNotFoundError, ProcessLookupError):
            return True
    until(gone, "the checkpoint to end")


def sleeps(guest):
    with open("/proc/%d/stat" % guest.pid) as f:
        return f.read().rsplit(")", 1)[1].split()[0] == "S"


OWN = """\
import mmap, struct
PAGE = mmap.PAGESIZE
def own(address, pages):
    "how many pages of ours no other process has"
    with open('/proc/self/pagemap', 'rb', 0) as f:
        f.seek(address // PAGE * 8)
        entries = struct.unpack('%dQ' % pages, f.read(8 * pages))
    return sum(e >> 56 & 1 for e in entries)
def place(buffer):
    address = ctypes.addressof(ctypes.c_char.from_buffer(buffer))
    return -(-address // PAGE) * PAGE
import ctypes
few, many = bytearray(200 * PAGE), bytearray(4000 * PAGE)
"""


@pytest.mark.skipif(KERNEL < (5, 14),
                    reason="wants MADV_POPULATE_WRITE, of Linux 5.14")
def test_pages_that_a_cell_wrote_are_copied_before_the_next_cell(make):
    guest = make(library=True)
    guest.run(OWN)
    kept = [guest.park()]
    assert guest.out_of("own(place(many), 3999)") == "0\n", "control"
    guest.run("few[:] = bytes(len(few))")
    kept.append(guest.park())
    until(lambda: sleeps(guest), "the guest to wait for a cell")
    assert guest.out_of("own(place(few), 199)") == "199\n"
    guest.run("many[:] = bytes(len(many))")
    kept.append(guest.park())
    until(lambda: sleeps(guest), "the guest to wait for a cell")
    assert guest.out_of("own(place(few), 199), own(place(many), 3999)") \
        == "(0, 0)\n", "a large write was copied, too"


def test_a_cell_that_waits_does_not_wait_for_pages(make):
    guest = make(library=True)
    guest.run(OWN)
    kept = [guest.park()]
    guest.run("few[:] = bytes(len(few))")
    os.kill(guest.pid, signal.SIGSTOP)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    guest.send_park(theirs)
    cell = guest.send("own(place(few), 199)")
    os.kill(guest.pid, signal.SIGCONT)
    assert guest.say() == b"PARKED %d ok" % guest.parks
    guest.took(cell)
    assert (guest.done(), guest.screen()) == ("ok", "0\n")
    kept.append(ours)


# A cell that records the driver's steps at the next checkpoint.
ORDER = """\
import sys
driver = sys._getframe(1).f_globals
S, say, take, order = driver['S'], driver['say'], driver['S'].copy_pages, []
def told(text, *more):
    order.append(text.split()[0])
    say(text, *more)
def taken(ctl):
    order.append('pages')
    return take(ctl)
driver['say'], S.copy_pages = told, taken
"""


def test_the_warden_gets_its_answer_before_pages_are_copied(make):
    """The warden waits for the answer, but only the next cell needs the
    pages."""
    guest = make(library=True)
    kept = [guest.park()]
    guest.run(ORDER)
    kept.append(guest.park())
    assert guest.out_of("order") == "['DONE', 'PARKED', 'pages', 'TOOK']\n"


def test_random_goes_on_in_the_guest_and_in_the_checkpoint(guest):
    guest.run("import random; random.seed(5); random.random()")
    r = random.Random(5)
    expected = [r.random() for _ in range(3)]
    point = guest.park()
    assert guest.out_of("random.random()") == "%r\n" % expected[1]
    assert guest.out_of("random.random()") == "%r\n" % expected[2]
    point.resume()
    assert guest.out_of("random.random()") == "%r\n" % expected[1]


def test_a_program_sees_no_child_of_the_driver(guest):
    guest.run("import os, signal, subprocess\nnews = []\n"
              "signal.signal(signal.SIGCHLD, lambda *a: news.append(a[0]))")
    for _ in range(10):
        assert guest.park()
    assert guest.out_of("news") == "[]\n"
    assert guest.run("os.wait()") == "raised"
    assert "ChildProcessError" in guest.out
    guest.run("subprocess.run(['true'])")
    assert guest.out_of("len(news)") == "1\n"


# Ways for a program to notice a copy: (code before, expression after). The
# expression must show the same with and without copies in between.
TRACES = {
    "a_thread_in_wait": (
        "import os, threading, time\np = os.fork()\n"
        "if not p:\n  time.sleep(60); os._exit(0)\ngot = []\n"
        "def wait():\n  while True:\n    try: got.append(os.wait()[0] == p)\n"
        "    except ChildProcessError: break\n"
        "t = threading.Thread(target=wait); t.start()",
        "os.kill(p, 9), t.join(), got"),
    "fork_hooks": (
        "import os\nn = []\nos.register_at_fork(before=lambda: n.append(1),"
        " after_in_parent=lambda: n.append(2),"
        " after_in_child=lambda: n.append(3))", "n"),
    "fork_hooks_at_the_programs_own_fork": (
        "import os\nn = []\nos.register_at_fork(before=lambda: n.append(1),"
        " after_in_parent=lambda: n.append(2),"
        " after_in_child=lambda: os._exit(len(n)))",
        "os.waitstatus_to_exitcode(os.waitpid(os.fork(), 0)[1]), n"),
    "audit_events": (
        "import sys\nn = []\nsys.addaudithook(lambda e, a:"
        " n.append(e) if e.endswith('fork') else 0)", "n"),
    "sigchld": (
        "import signal\nn = []\n"
        "signal.signal(signal.SIGCHLD, lambda *a: n.append(1))", "n"),
    "sigchld_and_an_old_zombie": (
        "import os, signal, time\nn = []\n"
        "signal.signal(signal.SIGCHLD, lambda *a: n.append(1))\n"
        "p = os.fork()\nif not p: os._exit(0)\n"
        "while not n: time.sleep(0.01)", "n, os.wait()[0] == p"),
    "sigchld_and_a_thread": (
        "import signal, threading\nn = []\n"
        "signal.signal(signal.SIGCHLD, lambda *a: n.append(1))\n"
        "e = threading.Event(); t = threading.Thread(target=e.wait)\n"
        "t.start()", "n, e.set()"),
    "sigchld_handled_in_c": (
        "import ctypes, os\nlibc = ctypes.CDLL(None)\n"
        "kind = ctypes.CFUNCTYPE(None, ctypes.c_int)\nn = []\n"
        "h = kind(n.append)\nold = libc.signal(17, h)",
        "n, os.kill(os.getpid(), 17), n"),
    "sigchld_flags": (
        "import ctypes, signal\nsignal.signal(17, print)\n"
        "signal.siginterrupt(17, False)\nb = (ctypes.c_ulong * 20)()",
        "ctypes.CDLL(None).sigaction(17, None, b), b[17] & 0x10000000"),
    "sigwait": (
        "import signal, threading\nn = []\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, [10, 17])\n"
        "def wait(): n.append(signal.sigwait([17, 10]))\n"
        "t = threading.Thread(target=wait); t.start()",
        "signal.pthread_kill(t.ident, 10), t.join(), n"),
    "no_pending_sigchld": (
        "import os, signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, [17])",
        "signal.sigpending(), os.kill(os.getpid(), 17), signal.sigpending()"),
    "pending_sigchld_of_the_program": (
        "import os, signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, [17])\n"
        "os.kill(os.getpid(), 17)", "signal.sigpending()"),
    "signalfd": (
        "import ctypes, os, select, signal\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, [17])\n"
        "fd = ctypes.CDLL(None).signalfd(-1, (ctypes.c_ulong * 16)(1 << 16),"
        " 0)", "select.select([fd], [], [], 0)[0]"),
    "wakeup_fd": (
        "import select, signal, socket\na, b = socket.socketpair()\n"
        "b.setblocking(False)\nsignal.signal(17, print)\n"
        "signal.set_wakeup_fd(b.fileno())", "select.select([a], [], [], 0)[0]"),
    "cpu_time_of_children": (
        "import os, resource as r",
        "os.times()[2:4], tuple(r.getrusage(r.RUSAGE_CHILDREN))[:9]"),
    "interval_timers": (
        "import signal\nsignal.signal(14, print)\n"
        "signal.setitimer(signal.ITIMER_REAL, 1000, 7)",
        "signal.getitimer(signal.ITIMER_REAL)[1]"),
}


@pytest.mark.parametrize("name", TRACES)
def test_a_program_cannot_notice_that_it_was_copied(make, name):
    before, after = TRACES[name]
    plain = plain_python("%s\nprint((%s))" % (before, after))
    guest = make()
    assert guest.run(before) == "ok", guest.out
    for _ in range(3):
        assert guest.park(), guest.parked
        assert guest.run("0") == "ok"
    assert guest.run("print((%s))" % after) == "ok", guest.out
    assert guest.out == plain


@pytest.mark.parametrize("name", [
    "fork_hooks", "fork_hooks_at_the_programs_own_fork", "audit_events",
    "sigchld", "sigchld_handled_in_c", "sigchld_flags", "no_pending_sigchld",
    "cpu_time_of_children"])
def test_a_resumed_program_cannot_notice_that_it_is_a_copy(make, name):
    before, after = TRACES[name]
    plain = plain_python("%s\nprint((%s))" % (before, after))
    guest = make()
    assert guest.run(before) == "ok", guest.out
    for _ in range(3):
        guest.park().resume()
    assert guest.run("print((%s))" % after) == "ok", guest.out
    assert guest.out == plain


def test_getcpu_is_right_in_a_copy(guest):
    guest.run("import os, ctypes\ncpus = os.sched_getaffinity(0)\n"
              "def at(cpu):\n  os.sched_setaffinity(0, [cpu])\n"
              "  return ctypes.CDLL(None).sched_getcpu() == cpu")
    guest.park().resume()
    assert guest.out_of("all(at(cpu) for cpu in cpus)") == "True\n"


def test_a_pending_sigchld_of_the_users_child_is_kept(guest):
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


def test_a_writer_made_from_an_older_descriptor_is_flushed(guest, home):
    guest.run("import os, gc\nfd = os.open('log', os.O_RDWR | os.O_CREAT)")
    assert guest.park()
    guest.run("f = os.fdopen(fd, 'w'); n = f.write('one ')")
    point = guest.park()
    guest.run("n = f.write('two '); f.flush()")
    point.resume()
    guest.run("f.write('three'); f.close()")
    assert (home / "log").read_text() == "one three"


def test_a_half_read_file_keeps_its_offset(guest, home):
    (home / "in").write_text("".join("%05d\n" % i for i in range(20000)))
    guest.run("f = open('in')\nfirst = [next(f) for _ in range(3)]\n"
              "import os; g = os.open('in', os.O_RDONLY); os.read(g, 6)")
    point = guest.park()
    guest.run("rest = f.read(); os.lseek(g, 0, 2)")
    point.resume()
    assert guest.out_of("next(f), os.read(g, 6)") == \
        "('00003\\n', b'00001\\n')\n"


def test_a_half_written_file_keeps_its_offset(guest, home):
    guest.run("import os\nfd = os.open('o', os.O_WRONLY | os.O_CREAT)\n"
              "n = os.write(fd, b'abc')")
    point = guest.park()
    guest.run("n = os.write(fd, b'defg')")
    assert (home / "o").read_text() == "abcdefg", "control"
    point.resume()
    guest.run("n = os.write(fd, b'X')")
    assert (home / "o").read_text() == "abcXefg"


def test_the_checkpoint_holds_no_pipe_socket_lock_or_terminal(guest, home):
    guest.run("import subprocess, socket, fcntl, os, pty\n"
              "cat = subprocess.Popen(['cat'], stdin=subprocess.PIPE,"
              " stdout=subprocess.DEVNULL)\n"
              "s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen()\n"
              "addr = s.getsockname()\n"
              "lock = open('lock', 'w'); fcntl.flock(lock, fcntl.LOCK_EX)\n"
              "m, sl = pty.openpty()")
    assert guest.park()
    # If the checkpoint held cat's pipe open, cat would wait for ever.
    assert guest.out_of("cat.stdin.close(); cat.wait(10)") == "0\n"
    assert guest.out_of("s.close(); s = socket.socket(); s.bind(addr);"
                        "s.listen(); s.getsockname() == addr") == "True\n"
    assert guest.out_of("lock.close(); lock = open('lock', 'w');"
                        "fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)"
                        ) == ""
    # The terminal hangs up only if no process holds its other side.
    assert guest.run("os.close(m); os.write(sl, b'x')") == "raised"
    assert "OSError" in guest.out


def test_pipes_of_a_resumed_checkpoint_are_dead_and_do_not_hang(guest):
    guest.run("import os, asyncio\nr, w = os.pipe()")
    point = guest.park()
    point.resume()
    assert guest.out_of("os.read(r, 1)") == "b''\n"
    assert guest.run("os.write(w, b'x')") == "raised"
    assert guest.out_of("asyncio.run(asyncio.sleep(0, 'new loop'))") == \
        "'new loop'\n"


def test_the_interrupt_handler_is_restored_with_the_checkpoint(guest):
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


def test_a_refused_fork_is_reported_and_costs_nothing(guest):
    guest.run("x = 1\nimport posix\ncount = 0")
    assert guest.park()
    guest.run("import os, resource\nif not os.getuid(): os.setuid(54321)\n"
              "resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))")
    assert guest.park() is None
    assert guest.parked == b"PARKED 2 processes"
    assert guest.out_of("x") == "1\n"
    assert guest.run("__import__('os').wait()") == "raised"


def test_a_resumed_checkpoint_answers_and_can_be_parked_again(guest):
    guest.run("class C:\n  apple = 1\nc = C()")
    guest.park().resume()
    assert guest.complete("c.a") == (1, ["apple"])
    for _ in range(3):
        guest.park().resume()
    assert guest.out_of("c.apple") == "1\n"


def test_a_stuck_guest_writes_its_stack(guest):
    guest.started("def stuck():\n  while True: pass\nstuck()")

    def written():      # the first try may come before the call of stuck()
        os.kill(guest.pid, 64)
        return b'File "<cell 1>", line 3 in stuck\n' in \
            os.pread(guest.stack, 1 << 20, 0)
    until(written, "the stack")
    guest.interrupt()
    assert guest.done() == "interrupted"
