# SPDX-License-Identifier: MIT
"""The driver without a jail around it: checkpoints."""
import os
import random

from driver import until

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
    guest.started("def stuck():\n  while True: pass\nstuck()")
    os.kill(guest.pid, 64)
    text = until(lambda: os.pread(guest.stack, 9999, 0), "the stack").decode()
    assert 'File "<cell 1>", line 3 in stuck' in text
    guest.interrupt()
    assert guest.done() == "interrupted"
