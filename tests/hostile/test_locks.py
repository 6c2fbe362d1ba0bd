# SPDX-License-Identifier: MIT
"""The kernel counts record locks for nobody: a session holds a bounded number,
however they are made and hidden."""
import pytest

from hostile import is_whole, start
from world import PATIENCE, WHOLE

# Root's jails are stopped by the freezer, a person's by signals.
pytestmark = pytest.mark.both

MOST = 32768
LONG = f"{60 * PATIENCE:.0f}s"

SETUP = """
import ctypes, errno, fcntl, os, struct, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
files = iter(range(100000))

def new():
    return os.open(f'/home/{os.getpid()}-{next(files)}',
                   os.O_RDWR | os.O_CREAT)

def fill(want, lock=fcntl.lockf):
    # Locks on every second byte, 2,000 in a file.
    got = 0
    try:
        while got < want:
            fd = new()
            for i in range(2000): lock(fd, fcntl.LOCK_EX, 1, 2 * i)
            got += 2000
    except OSError as e:
        print(errno.errorcode[e.errno], flush=True)
        got += i
    return got

def in_a_child(held, after=lambda: None):
    r, w = os.pipe()
    if os.fork() == 0:
        n = held()
        os.write(w, b'%d' % n)
        os.close(w)
        after()
        time.sleep(999)
    os.close(w)
    return int(os.read(r, 9) or 0)
"""

WAYS = {
    # The first thread of the process ends; its descriptors live on.
    "a_process_without_a_first_thread": """
r, w = os.pipe()
number = {'x86_64': 60, 'aarch64': 93}[os.uname().machine]
if os.fork() == 0:
    def work():
        time.sleep(0.2)
        os.write(w, b'%d' % fill(200000))
        time.sleep(999)
    threading.Thread(target=work).start()
    libc.syscall(number, 0)
os.close(w)
print(int(os.read(r, 9)))
""",
    "one_process": "print(fill(200000))",
    "many_processes":
        "print(sum(in_a_child(lambda: fill(20000)) for _ in range(10)))",
    # Each call of the last kind splits one lock into three. The kernel looks
    # through the locks of the file each time.
    "splitting": """
got = 0
try:
    while got < 200000:
        fd = new()
        fcntl.lockf(fd, fcntl.LOCK_EX, 1 << 30, 0)
        for i in range(1000):
            fcntl.lockf(fd, fcntl.LOCK_SH, 1, 2 * i); got += 2
except OSError as e: print(errno.errorcode[e.errno])
print(got)
""",
}


@pytest.mark.sampled(len(WAYS))
@pytest.mark.limit(450)
@pytest.mark.parametrize("way", WAYS)
def test_record_locks_are_bounded(cb, way):
    r = cb.run("-t", f"{400 * PATIENCE:.0f}s", "-s", "cell.cpu=60s", "-c",
               SETUP + WAYS[way], timeout=430)
    words = r.text.split()
    assert r.code == 0 and "ENOLCK" in words, r
    assert MOST / 2 <= int(words[-1]) <= MOST, r


@pytest.mark.sampled
def test_locks_that_are_given_back_do_not_count(cb):
    """As a database does: lock, unlock, and never hold many."""
    more = 50000 if WHOLE else MOST + 1000
    r = cb.run("-t", LONG, "-s", "cell.cpu=60s", "-c", SETUP + f"""
fd = new()
for i in range({more}):
    fcntl.lockf(fd, fcntl.LOCK_EX, 1, i)
    fcntl.lockf(fd, fcntl.LOCK_UN, 1, i)
fill(200000)
os.closerange(3, 1000)
fd = new()
while True:
    # Init does not count all the time.
    try: fcntl.lockf(fd, fcntl.LOCK_EX); break
    except OSError: time.sleep(0.01)
if os.fork() == 0:
    fd = os.open(f'/home/{{os.getppid()}}-{{next(files) - 1}}', os.O_RDWR)
    try: fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as e: os.write(1, errno.errorcode[e.errno].encode())
    os._exit(0)
os.wait()
""", timeout=90)
    assert r.code == 0 and r.text.split() == ["ENOLCK", "EAGAIN"], r


HIDDEN = {
    # A lock of a description may travel with it, where nobody counts it.
    "a_lock_of_a_description":
        "fcntl.fcntl(new(), 37, struct.pack('hhqqi4x', 1, 0, 0, 1, 0))",
    # A thread with descriptors of its own.
    "a_table_of_a_thread":
        "r = libc.close_range(900, 901, 2)\n"
        "if r: raise OSError(ctypes.get_errno(), '')",
    "a_thread_with_a_table":
        "r = libc.syscall({'x86_64': 56, 'aarch64': 220}[os.uname().machine],"
        " 0x10900, 0, 0, 0, 0)\n"
        "if r < 0: raise OSError(ctypes.get_errno(), '')",
    "a_process_with_the_table_of_another":
        "r = libc.syscall({'x86_64': 56, 'aarch64': 220}[os.uname().machine],"
        " 0x411, 0, 0, 0, 0)\n"
        "if r == 0: os._exit(0)\n"
        "if r < 0: raise OSError(ctypes.get_errno(), '')",
    "a_lock_on_a_device":
        "fcntl.lockf(os.open('/dev/null', os.O_RDWR), fcntl.LOCK_EX)",
    "a_lock_on_events":
        "fcntl.lockf(os.eventfd(0), fcntl.LOCK_EX)",
}


@pytest.mark.parametrize("way", HIDDEN)
def test_no_lock_hides(cb, way):
    r = cb.run("-c", SETUP + f"""
fcntl.lockf(new(), fcntl.LOCK_EX)                       # control
t = threading.Thread(target=print, args=('control',))
t.start()
t.join()
try:
    {HIDDEN[way].replace(chr(10), chr(10) + '    ')}
    print('made')
except OSError as e:
    print(errno.errorcode[e.errno])
""")
    assert r.code == 0 and r.text.split() in (
        ["control", "EINVAL"], ["control", "EPERM"]), r


def test_locks_of_whole_files_are_granted_to_files_alone(cb):
    """All event descriptors of a host share one inode, and device nodes may be
    the host's. ENOSYS is what libraries fall back on."""
    r = cb.run("-c", SETUP + """
import select, socket
for fd in (new(), os.open('/home', 0), os.open('/dev/shm/f', os.O_CREAT),
           os.open('/usr/bin/env', 0), os.open('/dev/null', 0),
           os.open('/dev/urandom', 0), os.open('/dev/ptmx', os.O_RDWR),
           os.open('/proc/self/ns/user', 0), select.epoll().fileno(),
           os.eventfd(0), os.pidfd_open(os.getpid()), os.pipe()[0],
           socket.socket().detach(), 99):
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        print('locked')
    except OSError as e:
        print(errno.errorcode[e.errno])
""")
    words = r.text.split()
    assert words[:4] == ["locked"] * 4, r
    assert set(words[4:]) <= {"ENOSYS", "EBADF"} and len(words) == 14, r


def test_locks_of_whole_files_do_between_processes_what_they_should(cb):
    r = cb.run("-c", SETUP + """
import signal
path = '/home/lock'
mine = open(path, 'w')
fcntl.flock(mine, fcntl.LOCK_SH)

def child(do):
    r, w = os.pipe()
    if os.fork() == 0:
        with open(path) as f:
            try: do(f); said = b'locked'
            except OSError as e: said = errno.errorcode[e.errno].encode()
            except KeyboardInterrupt: said = b'interrupted'
            os.write(w, said)
        os._exit(0)
    os.close(w)
    return r

def stop(*a):
    # Once: the next may come before the child has said what it has to say.
    signal.signal(signal.SIGALRM, signal.SIG_IGN)
    raise KeyboardInterrupt

def interrupt(f):
    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
    fcntl.flock(f, fcntl.LOCK_EX)

NOW, EX = fcntl.LOCK_NB, fcntl.LOCK_EX
print(os.read(child(lambda f: fcntl.flock(f, fcntl.LOCK_SH | NOW)), 99))
print(os.read(child(lambda f: fcntl.flock(f, EX | NOW)), 99))
print(os.read(child(interrupt), 99))
waits = child(lambda f: fcntl.flock(f, EX))
time.sleep(0.05)
fcntl.flock(mine, fcntl.LOCK_UN)
print(os.read(waits, 99))
print(os.read(child(lambda f: fcntl.flock(f, 16)), 99))
""")
    assert r.text.split() == ["b'locked'", "b'EAGAIN'", "b'interrupted'",
                              "b'locked'", "b'EINVAL'"], r


# A thread puts other things in the place of a file, all the time. It stops when
# they have a lock.
RACE = SETUP + """
import select
place = new()
good, wrong = os.dup(place), WRONG
won = over = False

def is_locked(fd):
    return 'lock:' in open(f'/proc/self/fdinfo/{fd}').read()

def swap():
    global won
    while not over and not won:
        os.dup2(wrong, place)
        won = is_locked(wrong)
        if not won: os.dup2(good, place)

def race(lock):
    global over
    lock()                                              # control
    t = threading.Thread(target=swap)
    t.start()
    for i in range(ROUNDS):
        try: lock()
        except OSError as e: pass
        if won: break
    over = True
    t.join()
    print('wrong' if won else 'right', flush=True)
"""

def racing(wrong):
    return RACE.replace("WRONG", WRONG[wrong]).replace(
        "ROUNDS", "10000" if WHOLE else "2000")


WRONG = {"an_event": "os.eventfd(0)", "an_epoll": "os.dup((events := select.epoll()).fileno())",
         "a_device": "os.open('/dev/null', os.O_RDWR)"}


@pytest.mark.sampled
@pytest.mark.parametrize("wrong", WRONG)
def test_a_thread_cannot_have_another_file_locked_as_a_whole(cb, wrong):
    r = cb.run("-t", LONG, "-s", "cell.cpu=60s", "-c",
               racing(wrong) + """
race(lambda: fcntl.flock(place, fcntl.LOCK_EX))
""", timeout=90)
    assert r.code == 0 and r.text.split() == ["right"], r


@pytest.mark.sampled
@pytest.mark.parametrize("wrong", WRONG)
def test_a_thread_that_has_a_part_of_another_file_locked_dies(cb, wrong):
    """It can have one such lock, but then no second call returns."""
    r = cb.run("-t", LONG, "-s", "cell.cpu=60s", "-c",
               racing(wrong) + """
pid = os.fork()
if pid == 0:
    race(lambda: fcntl.lockf(place, fcntl.LOCK_EX, 1))
    try: fcntl.lockf(good, fcntl.LOCK_EX, 1)
    except OSError: pass
    os._exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
""", timeout=90)
    assert r.code == 0 and r.text.split() in (
        ["right", "0"], ["-9"], ["wrong", "-9"]), r


UNREADABLE = """
hidden = '/home/hidden'
with open(hidden, 'wb') as f: f.write(open('/usr/bin/python3', 'rb').read())
os.chmod(hidden, 0o111)
AFTER = '''
import os, time
open('/home/hides', 'w').close()
while not os.path.exists('/home/go'): time.sleep(.01)
os.execv('/usr/bin/python3', ['python3', '-I', '-S', '-c',
         'import time; open("/home/shows", "w").close(); time.sleep(99)'])
'''

def until(path):
    while not os.path.exists(path) and not os.waitpid(pid, os.WNOHANG)[0]:
        time.sleep(.01)

def fill():
    "more threads lock a file than init remembers: it looks at each it knows"
    fd, held = new(), threading.Event()
    threading.Thread(target=held.wait).start()
    def lock():
        try: fcntl.lockf(fd, fcntl.LOCK_EX, 1, 5)
        except OSError: pass
    for i in range(300):
        t = threading.Thread(target=lock)
        t.start()
        t.join()
    held.set()

pid = os.fork()
if pid == 0:
    for fd in place, wrong: os.set_inheritable(fd, True)
    t = threading.Thread(
        target=race, args=(lambda: fcntl.lockf(place, fcntl.LOCK_EX, 1),))
    t.start()
    t.join()
    os.set_inheritable(place, True)
    if not won: os._exit(0)
    os.execv(hidden, ['python3', '-I', '-S', '-c', AFTER])
until('/home/hides')
if os.path.exists('/home/hides'):
    fill()
    open('/home/go', 'w').close()
    until('/home/shows')
    fill()
    end = time.monotonic() + 20     # a killed one may wait for a processor
    while not (ended := os.waitpid(pid, os.WNOHANG))[0] and \
            time.monotonic() < end:
        time.sleep(.01)
    print(ended[1])
    if not ended[0]: os.kill(pid, 9)
"""


@pytest.mark.sampled
def test_a_process_that_hid_with_such_a_lock_dies_when_it_can_be_seen(cb):
    """Init cannot look at a program that nobody may read. It goes on to
    remember that a thread of it has locked something."""
    r = cb.run("-t", f"{90 * PATIENCE:.0f}s", "-s", "cell.cpu=90s", "-c",
               racing("an_event") + "import time\n" + UNREADABLE, timeout=120)
    assert r.code == 0 and r.text.split() in (["right"], ["wrong", "9"]), r


CROWD = """
threading.stack_size(128 << 10)
fd = new()
def crowd(n):
    "threads that each lock a part, one after the other, and then stay"
    said, over, threads = [], threading.Event(), []
    def work(k):
        try: fcntl.lockf(fd, fcntl.LOCK_EX, 1, 2 * k); said.append('locked')
        except OSError as e: said.append(errno.errorcode[e.errno])
        over.wait()
    for k in range(n):
        threads.append(threading.Thread(target=work, args=(k,)))
        threads[k].start()
        while len(said) <= k: time.sleep(.001)
    over.set()
    for t in threads: t.join()
    print(said.count('locked'), said.count('ENOLCK'))
threading.Thread(target=(held := threading.Event()).wait).start()
crowd(300)
crowd(200)
held.set()
"""


def test_no_more_threads_lock_parts_than_init_can_look_at(cb):
    """Each may have one lock on what is no file until its next call: so many
    there can be. Those that have ended make room (the control)."""
    r = cb.run("-t", LONG, "-s", "session.processes=400", "-c", SETUP + CROWD,
               timeout=90)
    assert r.text.split() == ["256", "44", "200", "0"], r


def test_a_process_with_threads_locks_files_like_any_other(cb):
    r = cb.run("-t", LONG, "-c", SETUP + """
import signal, subprocess
held = threading.Event()
threading.Thread(target=held.wait).start()
NOW, EX, SH = fcntl.LOCK_NB, fcntl.LOCK_EX, fcntl.LOCK_SH

def attempt(*args):
    try: fcntl.flock(*args); print('locked')
    except OSError as e: print(errno.errorcode[e.errno])

mine, other = open('/home/lock', 'w'), open('/home/lock')
attempt(mine, SH)
attempt(other, SH | NOW)
attempt(other, EX | NOW)
attempt(other, 16)
# One that waits gets it when it is free; or is interrupted.
t = threading.Thread(target=attempt, args=(other, EX))
fcntl.flock(other, fcntl.LOCK_UN)
t.start()
time.sleep(0.2)
fcntl.flock(mine, fcntl.LOCK_UN)
t.join()
def stop(*a):
    # Once: the next may come before the timer has ended.
    signal.signal(signal.SIGALRM, signal.SIG_IGN)
    raise KeyboardInterrupt
signal.signal(signal.SIGALRM, stop)
signal.setitimer(signal.ITIMER_REAL, 0.2, 0.2)
try: attempt(mine, EX)
except KeyboardInterrupt: print('interrupted')
signal.setitimer(signal.ITIMER_REAL, 0)
# A call that was interrupted has no lock, also not later.
other.close()
attempt(open('/home/lock'), EX | NOW)
for i in range(300):
    with open(f'/home/{i % 7}', 'w') as f:
        fcntl.flock(f, EX)
        fcntl.lockf(f, EX)
ts = [threading.Thread(target=lambda: fcntl.lockf(mine, EX, 1, 5))
      for i in range(300)]
for t in ts: t.start(); t.join()
import sqlite3
db = sqlite3.connect('/home/db')
db.execute('create table t(x)')
for i in range(20):
    with db: db.execute('insert into t values (?)', (i,))
print(*db.execute('select count(*) from t').fetchone())
held.set()
""", timeout=90)
    assert r.text.split() == ["locked", "locked", "EAGAIN", "EINVAL", "locked",
                              "interrupted", "locked", "20"], r


# A child stops whatever init starts. Init has 255 places to look at, where a
# thread that has ended had locked a part of what is no file by now.
STOPS = SETUP + """
import signal
signal.signal(signal.SIGINT, signal.SIG_IGN)
threading.stack_size(128 << 10)
fd, good = new(), new()
threading.Thread(target=threading.Event().wait, daemon=True).start()
for k in range(255):
    t = threading.Thread(target=fcntl.lockf, args=(fd, fcntl.LOCK_EX, 1, 2 * k))
    t.start(); t.join()
os.dup2(os.eventfd(0), fd)
go = threading.Event()
def asks(k):
    go.wait()
    while True:
        try: fcntl.lockf(good, fcntl.LOCK_EX, 1, k)
        except OSError: pass
for k in range(4): threading.Thread(target=asks, args=(k,), daemon=True).start()
r, w = os.pipe()
if os.fork() == 0:
    last = os.fork()
    if last == 0: os._exit(0)
    os.waitpid(last, 0)
    os.write(w, b'x')
    while True:
        for pid in range(last + 1, last + 40):
            try: os.kill(pid, signal.SIGSTOP); last = pid
            except OSError: pass
os.read(r, 1)
go.set()
print('on', flush=True)
while True: time.sleep(9)
"""


TIMEOUT = int((8 if WHOLE else 4) * PATIENCE)


@pytest.mark.sampled
@pytest.mark.limit(90)
def test_init_does_not_wait_for_a_child_that_a_guest_stops(cb):
    s = start(cb, "--set", "session.processes=300", "--set", "cell.cpu=60s",
              "--set", f"cell.timeout={TIMEOUT}s")
    row = s.enter(STOPS)
    s.expect_since(row, "^on")
    s.expect_since(row, f"time limit: {TIMEOUT} s", 20)
    s.wait_prompt()
    is_whole(s, row)
