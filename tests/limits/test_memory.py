# SPDX-License-Identifier: MIT
"""session.memory, by real attempts to exceed it.

Each attempt takes memory of one kind, step by step, and prints how much it
has. With a cgroup it never gets more than the limit. Without a cgroup the
warden only watches the memory, which is weak: the attempt is stopped later, or
this kind of memory is refused. Each attempt has a control that takes less
memory and gets it.
"""
import json
import os
import pathlib
import re
import signal
import subprocess

import pytest

import hosttree
from world import PATIENCE, WHOLE

# The enforcement of a limit depends on the user: root's sessions have a cgroup.
pytestmark = pytest.mark.both

MIB = 1 << 20
LIMIT = 160 * MIB
STEP = 4 * MIB
# Without a cgroup a jail may exceed the limit by this much before the warden
# sees it.
WATCH_SLACK = 160 * MIB

SETUP = """
import array, ctypes, mmap, os, socket, sys, threading
STEP, WANT = 4 << 20, {want}
held, got = [], 0
block = b'x' * STEP
libc = ctypes.CDLL(None, use_errno=True)

def say():
    sys.stdout.write('%d\\n' % got); sys.stdout.flush()

def fill(fd):
    n = 0
    while n < STEP: n += os.write(fd, block[n:])

def mapping(flags):
    m = mmap.mmap(-1, STEP, flags=flags | mmap.MAP_ANONYMOUS)
    m[:] = block
    held.append(m)

def left_of_map():
    # The pages stay, and no process maps them.
    libc.mmap.restype = ctypes.c_void_p
    size = ctypes.c_size_t
    a = libc.mmap(None, size(STEP), 3, 0x21, -1, ctypes.c_long(0))
    if a == 2**64 - 1: raise OSError(ctypes.get_errno(), 'mmap')
    ctypes.memset(a, 1, STEP)
    libc.munmap(ctypes.c_void_p(a + 65536), size(STEP - 65536))

def chained():
    # Each holder hands the memory on to a child and is gone.
    def work():
        mapping(mmap.MAP_SHARED)
        for _ in range({chain}):
            if os.fork(): os._exit(0)
        return STEP
    return forked(work)

def pipe():
    import fcntl
    r, w = os.pipe()
    os.set_blocking(w, False)
    try: fcntl.fcntl(w, 1031, 1 << 20)
    except OSError: pass
    held.append((r, w))
    n = 0
    try:
        while True: n += os.write(w, block[:65536])
    except BlockingIOError: return n

def sock():
    a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    a.setblocking(False)
    try: a.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
    except OSError: pass
    held.append((a, b))
    n = 0
    try:
        while True: n += a.send(block[:65536])
    except BlockingIOError: return n

def sysv():
    libc.shmget.restype, libc.shmat.restype = ctypes.c_int, ctypes.c_void_p
    i = libc.shmget(0, STEP, 0o1600)
    if i < 0: raise OSError(ctypes.get_errno(), 'shmget')
    p = libc.shmat(i, None, 0)
    if p in (None, ctypes.c_void_p(-1).value): raise OSError('shmat')
    ctypes.memset(p, 1, STEP)

def zeros():
    m = mmap.mmap(os.open('/dev/zero', os.O_RDWR), STEP, mmap.MAP_SHARED)
    m[:] = block
    m.madvise(mmap.MADV_DONTNEED)
    held.append(m)

def semaphores():
    if libc.semget(0, 32000, 0o600) < 0:
        e = ctypes.get_errno()
        raise OSError(e, os.strerror(e))
    return 32000 * 64

def tables():
    # Page tables of mappings of the one zero page. A table is one page of
    # 8-byte entries.
    page = mmap.PAGESIZE
    span = page // 8 * page
    size = STEP // page * span
    m = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000,
                  mmap.PROT_READ)
    m.madvise(15) # no huge pages
    held.append(m)
    for at in range(0, size, span): m[at]

def paged_out():
    # Into swap, if there is any.
    m = mmap.mmap(-1, STEP, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    m[:] = block
    try:
        m.madvise(21)
    except OSError:
        pass                        # a guest may not say when
    held.append(m)

def child(first=True):
    r, w = os.pipe()
    def hold():
        held.append(bytearray(block + block))
        os.write(w, b'x')
        threading.Event().wait()
    if os.fork() == 0:
        if first: hold()
        threading.Thread(target=hold).start()
        # Only the first thread ends.
        libc.syscall({{'x86_64': 60, 'aarch64': 93}}[os.uname().machine], 0)
    os.close(w)
    # The kernel may have killed an older one to make room.
    if not os.read(r, 1) or os.waitpid(-1, os.WNOHANG)[0]:
        raise MemoryError('a child was killed')
    return STEP * 2

def unaccepted():
    # Data for a listener, from sockets that are closed.
    if not held:
        held.append(socket.socket(socket.AF_UNIX))
        held[0].bind(chr(0) + 'l')
        held[0].listen(4096)
    n = 0
    while n < STEP:
        c = socket.socket(socket.AF_UNIX)
        c.setblocking(False)
        c.connect(chr(0) + 'l')
        try:
            while True: n += c.send(block[:65536])
        except BlockingIOError: c.close()
    return n

def forked(work):
    r, w = os.pipe()
    if os.fork() == 0:
        n = work()
        os.write(w, b'%d' % n)
        os.close(w)
        threading.Event().wait()
    os.close(w)
    n = int(os.read(r, 20) or 0)
    os.close(r)
    if not n: raise MemoryError('a child was killed')
    return n

def watches():
    import select
    events = [os.eventfd(0) for _ in range(480)]
    n = 0
    while n < 480 * 480:
        held.append(select.epoll())
        for e in events: held[-1].register(e, 1)
        n += len(events)
    return n * 200

def watches_of_numbers(after=lambda events, polls: None):
    # An epoll watches one file once for each number that it has had.
    import select
    events = [os.eventfd(0) for _ in range(25)]
    polls = [select.epoll() for _ in range(25)]
    for number in range(100, 500):
        for e in events:
            os.dup2(e, number)
            for p in polls: p.register(number, 1)
            os.close(number)
    held.append((events, polls, after(events, polls)))
    return 400 * 25 * 25 * 200

def send_away(events, polls):
    a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    for fds in events, [p.fileno() for p in polls]:
        socket.send_fds(a, [b'x'], fds)
    for e in events: os.close(e)
    for p in polls: p.close()
    return a, b

def printed(path, size):
    # The file keeps the buffer into which the kernel has printed.
    for _ in range(max(STEP // size, 1)):
        fd = os.open(path, os.O_RDONLY)
        os.read(fd, 1)
        held.append(fd)
    return max(STEP, size)

def watches_printed(numbers=40, size=2 << 20):
    import select
    if not held:
        poll = select.epoll()
        for e in [os.eventfd(0) for _ in range(450)]:
            for number in range(1020 - numbers, 1020):
                os.dup2(e, number)
                poll.register(number, 1)
        os.closerange(1020 - numbers, 1020)
        held.append(poll)
    return printed('/proc/self/fdinfo/%d' % held[0].fileno(), size)

def name_printed():
    # Each line end in a name is printed as four bytes.
    if not held:
        os.chdir('/tmp')
        for _ in range(1100):
            os.mkdir(chr(10) * 255)
            os.chdir(chr(10) * 255)
        fd = os.open('f', os.O_RDWR | os.O_CREAT)
        libc.mmap.restype = ctypes.c_void_p
        a = libc.mmap(ctypes.c_void_p(1 << 20), ctypes.c_size_t(4096), 1, 1, fd,
                      ctypes.c_long(0))
        assert a == 1 << 20
        held.append(a)
    return printed('/proc/self/maps', 2 << 20)

def mappings():
    # Every second page has another protection.
    libc.mmap.restype = ctypes.c_void_p
    page = mmap.PAGESIZE
    a = libc.mmap(None, ctypes.c_size_t(60000 * page), 1, 0x4022, -1,
                  ctypes.c_long(0))
    for i in range(0, 60000, 2):
        if libc.mprotect(ctypes.c_void_p(a + i * page), ctypes.c_size_t(page), 0):
            raise MemoryError
    return 60000 * 200

def many_pipes():
    n = 0
    try:
        while True:
            r, w = os.pipe()
            os.set_blocking(w, False)
            try:
                while True: n += os.write(w, block[:65536])
            except BlockingIOError: os.close(w)
    except OSError: return n

def record_locks():
    import fcntl
    fd = os.open('/home/l%d' % got, os.O_RDWR | os.O_CREAT)
    for i in range(1000): fcntl.lockf(fd, fcntl.LOCK_EX, 1, 2 * i)
    return 200 * 1000

def access_list():
    import struct
    def entry(tag): return struct.pack('<HHI', tag, 7, -1 % 2 ** 32)
    user = struct.pack('<HHI', 2, 7, 1000)
    name = '/home/d%d' % got
    os.mkdir(name)
    os.setxattr(name, 'system.posix_acl_access', struct.pack('<I', 2)
        + entry(1) + user * 8000 + entry(4) + entry(16) + entry(32))
    return 64000

def spliced():
    f = os.open('/tmp/spliced', os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    r, w = os.pipe()
    held.append(r)
    for i in range(16):
        os.pwrite(f, block[:4096], i * 4096)
        if libc.splice(f, ctypes.byref(ctypes.c_long(i * 4096)), w, None, 1, 0) < 0:
            raise OSError(ctypes.get_errno(), 'splice')
    os.close(w)
    return 65536

try:
    while got < WANT:
        n = STEP
{step}
        got += n or STEP
        say()
except (MemoryError, OSError) as e:
    print('refused', type(e).__name__, e)
print('done')
"""

KINDS = {
    "heap": "held.append(bytearray(block))",
    "private map": "mapping(mmap.MAP_PRIVATE)",
    "shared map": "mapping(mmap.MAP_SHARED)",
    "shared map, of which a page is left": "left_of_map()",
    "shared map of a chain of children": "n = chained()",
    "memfd": "fd = os.memfd_create('m'); fill(fd); held.append(fd)",
    "system v": "sysv()",
    "pipes": "n = pipe()",
    "sockets": "n = sock()",
    "tmp": "fill(os.open('/tmp/f%d' % got, os.O_CREAT | os.O_WRONLY))",
    "shm": "fill(os.open('/dev/shm/f%d' % got, os.O_CREAT | os.O_WRONLY))",
    # The home must be smaller than the memory, so the rest is heap.
    "home": "fill(os.open('/home/f%d' % got, os.O_CREAT | os.O_WRONLY)) "
            "if got < 96 << 20 else held.append(bytearray(block))",
    "paged out": "paged_out()",
    "children": "n = child()",
    "children without a first thread": "n = child(False)",
    "shared zeros": "zeros()",
    "page tables": "tables()",
    "unaccepted data": "n = unaccepted()",
    "watches of children": "n = forked(watches)",
    "watches of many numbers": "n = forked(watches_of_numbers)",
    "watches in flight":
        "n = forked(lambda: watches_of_numbers(send_away))",
    "printed watches": "n = watches_printed()",
    "watches printed into large buffers": "n = watches_printed(170, 8 << 20)",
    "printed name": "n = name_printed()",
    "mappings": "n = forked(mappings)",
    "pipes of children": "n = forked(many_pipes)",
    "all at once": "held.append(bytearray(block)); "
                   "fill(os.open('/tmp/f%d' % got, os.O_CREAT | os.O_WRONLY));"
                   " n = 2 * STEP",
}
# Memory that the host's kernel takes meanwhile counts as the jail's.
ALONE = {"printed watches", "watches printed into large buffers",
         "printed name", "watches in flight"}
# No cgroup counts these kinds.
NEVER_COUNTED = {
    "semaphores": "n = semaphores()",
    "record locks": "n = record_locks()",
    "access lists": "n = access_list()",
    "spliced pages": "n = spliced()",
}
# These kinds are refused altogether where no cgroup counts them.
UNCOUNTED = {"memfd", "system v", "shared zeros"}


def kinds(names):
    return [pytest.param(k, marks=pytest.mark.alone if k in ALONE else ())
            for k in names]


def attempt(cb, kind, want):
    code = SETUP.format(want=want, chain=100 if WHOLE else 25,
                        step="        " + (KINDS | NEVER_COUNTED)[kind])
    r = cb.run("-M", str(LIMIT), "-s", "home.size=128M", "-s",
               "session.processes=100", "-t", f"{60 * PATIENCE:.0f}s", "-c",
               code, timeout=90)
    numbers = [int(n) for n in re.findall(rb"^(\d+)$", r.out, re.M)]
    return r, max(numbers, default=0)


def strong(cb):
    rows = json.loads(cb.run("--check", "--json").text)["checks"]
    return {row["what"]: row["strength"] for row in rows}["memory"] == "strong"


@pytest.mark.sampled(6)
@pytest.mark.limit(100)
@pytest.mark.parametrize("kind", kinds(KINDS))
def test_memory_of_each_kind_is_bounded(cb, kind):
    r, got = attempt(cb, kind, 8 * LIMIT)
    most = LIMIT if strong(cb) else LIMIT + WATCH_SLACK
    assert got <= most, f"{got // MIB} MiB: {r!r}"
    if r.code:
        assert r.code == 137 and "memory limit: 160 MiB" in r.said, r
    else:
        assert "refused" in r.text, r


@pytest.mark.sampled(4)
@pytest.mark.limit(100)
@pytest.mark.parametrize("kind", kinds(sorted(KINDS)))
def test_less_memory_than_the_limit_is_granted(cb, kind):
    small = ("pipes", "sockets", "mappings")
    # A user with many pipes has them of two pages each.
    want = LIMIT // 5 if kind not in small else 3 * MIB
    if kind in UNCOUNTED and not strong(cb):
        r, got = attempt(cb, kind, want)
        refused = "refused OSError" if kind == "shared zeros" \
            else "refused PermissionError"
        assert got == 0 and refused in r.text, r
        return
    r, got = attempt(cb, kind, want)
    assert r.code == 0 and got >= want and "refused" not in r.text, r


@pytest.mark.parametrize("kind", NEVER_COUNTED)
def test_what_nothing_counts_is_refused_early(cb, kind):
    r, got = attempt(cb, kind, 2 * LIMIT)
    assert r.code == 0 and "refused OSError" in r.text, r
    assert got <= LIMIT // 16, r
    # control: the same file system takes files
    assert attempt(cb, "tmp", STEP)[1] == STEP


# Every process is forked by the one before it, and all of them live.
FORKS = """
import ctypes, mmap, os, time
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
page, maps, depth = mmap.PAGESIZE, {maps}, {depth}
a = libc.mmap(None, ctypes.c_size_t(2 * maps * page), 3, 0x22, -1,
              ctypes.c_long(0))
for i in range(maps):
    ctypes.memset(a + 2 * i * page, 1, 1)
    libc.mprotect(ctypes.c_void_p(a + (2 * i + 1) * page),
                  ctypes.c_size_t(page), 0)
for n in range(depth):
    pid = os.fork()
    if pid:
        os._exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
time.sleep({nap})
print(n)
"""
# A busy host forks so many processes in more than a minute.
FORKING = ("-s", "session.processes=250", "-t", f"{90 * PATIENCE:.0f}s",
           "-s", "cell.cpu=40s")


# For each mapping the kernel keeps something for each ancestor: it grows with the
# square of the depth.
SMALL = 220, 85, "110M"
MAPS, DEPTH, ROOM = (220, 200, "400M") if WHOLE else SMALL


@pytest.mark.sampled
@pytest.mark.parametrize("maps, code", [(MAPS, 137), (2, 0)])
@pytest.mark.limit(240)
def test_what_mappings_take_that_were_forked_often_is_counted(cb, maps, code):
    r = cb.run("-M", ROOM, *FORKING, "-c",
               FORKS.format(maps=maps, depth=DEPTH, nap=2 * PATIENCE),
               timeout=120)
    assert r.code == code, r
    # A limit on time would give the same status.
    assert "memory limit" in r.said if code \
        else r.text.split() == [str(DEPTH - 1)], r


def stop_standin(pid):
    """Stop the process that weighs the jail of this cellblock. The kernel's
    state T is what the warden sees when it does not answer."""
    for p in hosttree.descendants(pid):
        if hosttree.status_of(p).get("Name") == "cellblock-help":
            os.kill(p, signal.SIGSTOP)
            return True
    return False


@pytest.mark.limit(90)
@pytest.mark.parametrize("maps, code", [(SMALL[0], 137), (2, 0)])
def test_a_jail_that_nobody_weighed_in_time_is_stopped_and_weighed(
        cb, maps, code):
    """Its processes together pass the limit if what they share counts for
    each. The one that shares is not killed for an answer that came late."""
    if strong(cb):
        pytest.skip("a cgroup counts memory")
    source = FORKS.replace("time.sleep", "print('up', flush=True)\ntime.sleep")
    # The helper is stopped while all of them sleep.
    _, depth, room = SMALL
    p = cb.popen("-M", room, *FORKING, "-c",
                 source.format(maps=maps, depth=depth, nap=4 * PATIENCE),
                 stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if not code:
        assert p.stdout.readline() == b"up\n"
    hosttree.until(lambda: stop_standin(p.pid), "a helper", 20)
    out, err = p.communicate(timeout=60 * PATIENCE)
    assert p.returncode == code, (out, err)
    assert b"memory limit" in err if code \
        else out.split() == [b"%d" % (depth - 1)], out


# Sends from socket to socket without ever reading.
SENT = """
import socket, struct
held, got, address = [], 0, ('127.0.0.1', 0)

def tcp():
    with socket.create_server(address) as l:
        a = socket.create_connection(l.getsockname())
        held.append((a, l.accept()[0]))
    a.setblocking(False)
    n = 0
    try:
        while True: n += a.send(bytes(1 << 20))
    except OSError: return n

def udp():
    s = socket.socket(type=socket.SOCK_DGRAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
    s.bind(address)
    s.setblocking(False)
    held.append(s)
    try:
        for _ in range(300): s.sendto(bytes(32000), s.getsockname())
    except OSError: pass
    return struct.unpack('9I', s.getsockopt(socket.SOL_SOCKET, 55, 36))[0]

try:
    while got < {want}: got += {kind}()
except OSError: pass
print(got)
"""


@pytest.mark.parametrize("kind", ["tcp", "udp"])
def test_unread_data_in_sockets_is_bounded(cb, kind):
    if not strong(cb):
        pytest.skip("no cgroup counts socket buffers")
    counted = pathlib.Path("/sys/fs/cgroup/memory"
                           "/memory.kmem.tcp.usage_in_bytes")
    if counted.parent.is_dir() and not counted.exists():
        pytest.skip("this kernel does not count socket buffers")
    r = cb.run("-M", str(LIMIT), "-t", "50s", "-s", "jail.network=loopback",
               "-c", SENT.format(want=2 * LIMIT, kind=kind), timeout=55)
    assert r.code == 0, r
    assert 2 * MIB <= int(r.text) <= LIMIT, r


SHARED = """
import mmap, multiprocessing, os
m = mmap.mmap(-1, 1 << 20)
if os.fork() == 0:
    m[:5] = b'child'
    os._exit(0)
os.wait()
def f(queue): queue.put(len(mmap.mmap(-1, 1 << 20)))
queue = multiprocessing.get_context('fork').SimpleQueue()
p = multiprocessing.get_context('fork').Process(target=f, args=(queue,))
p.start(); p.join()
print(m[:5], queue.get())
for _ in range(100):
    mmap.mmap(-1, 8 << 20).write(bytes(8 << 20))
try:
    held = []
    for _ in range(9): held.append(mmap.mmap(-1, 1 << 30))
    print('granted')
except OSError as e: print(e.errno)
"""


def test_anonymous_shared_memory_is_shared_and_given_back(cb):
    """And a mapping that alone is larger than the limit is refused, where no
    cgroup could stop it later."""
    r = cb.run("-M", str(LIMIT), "-t", f"{20 * PATIENCE:.0f}s", "-c", SHARED)
    assert r.text.split("\n")[0] == "b'child' 1048576", r
    assert r.text.split("\n")[1] == ("granted" if strong(cb) else "12"), r


# A byte of each huge page stays mapped, and the rest of the page stays in memory
# in no process's count.
HUGE = """
import ctypes, errno, mmap, subprocess, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
SIZE, P, N = 2 << 20, ctypes.c_void_p, ctypes.c_size_t

def did(r): return errno.errorcode[ctypes.get_errno()] if r < 0 else r

def anonymous():
    return sum(int(l.split()[1]) for l in open('/proc/self/smaps_rollup')
               if l.startswith('Anonymous:'))

a = libc.mmap(None, N(8 * SIZE), 3, 0x22, -1, ctypes.c_long(0))
a = (a + SIZE - 1) // SIZE * SIZE
print(did(libc.madvise(P(a), N(4 * SIZE), 14)),     # MADV_HUGEPAGE
      did(libc.prctl(41, 0, 0, 0, 0)),              # PR_SET_THP_DISABLE
      did(libc.prctl(42, 0, 0, 0, 0)),              # PR_GET_THP_DISABLE
      subprocess.check_output([sys.executable, '-c', 'import ctypes;'
          'print(ctypes.CDLL(None).prctl(42, 0, 0, 0, 0))'], text=True).strip())
before = anonymous()
for i in range(4): ctypes.memset(a + i * SIZE, 1, 1)
print(anonymous() - before)
"""


def test_huge_pages_are_off_where_no_cgroup_counts_memory(cb):
    huge = pathlib.Path("/sys/kernel/mm/transparent_hugepage/enabled")
    if not huge.exists() or "[never]" in huge.read_text():
        pytest.skip("this host has no huge pages")
    r = cb.run("-M", str(LIMIT), "-c", HUGE)
    assert r.code == 0, r
    said, grown = r.text.splitlines()
    if strong(cb):
        assert said == "0 0 0 0" and int(grown) >= 2048, r
    else:
        assert said == "EINVAL EPERM 1 1" and int(grown) < 1024, r
