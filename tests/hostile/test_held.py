# SPDX-License-Identifier: MIT
"""Locks that a guest holds while the warden works: nobody waits for them. The
cell still ends at its time limit, and looking at the jail costs little."""
import os
import time

import pytest

import hosttree
import world
from hostile import is_whole, patient, start

# Root's jails are stopped by the freezer, a person's by signals.
pytestmark = pytest.mark.both

# Threads that change the protection of many large mappings without end, so that
# whoever reads or extends the memory map of the process waits for long.
STORM = """\
import ctypes, os, threading, time
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
SIZE = 32 << 20
def address(a): return ctypes.c_void_p(a)
def size(n): return ctypes.c_size_t(n)
def mapping(flags, fd=-1):
    return libc.mmap(None, size(SIZE), 3, flags, fd, ctypes.c_long(0))
fd = os.open('/dev/shm/f', os.O_RDWR | os.O_CREAT)
os.ftruncate(fd, SIZE)
maps = [mapping(0x8001, fd) for _ in range(160)]    # shared, populated
def storm(k):
    while True:
        for a in maps[k:]:
            libc.mprotect(address(a), size(SIZE), 1)
            libc.mprotect(address(a), size(SIZE), 3)
def missing(k):
    '''An address whose page must be found anew.'''
    libc.madvise(address(maps[k]), size(SIZE), 4)
    return address(maps[k] + 4096 * k)
def start(f, n):
    for k in range(n):
        threading.Thread(target=f, args=(k,), daemon=True).start()
threading.stack_size(256 << 10)
start(storm, 20)
"""

HOLDS = {
    # The warden counts the pages that the cell has copied.
    "the_memory_map": """\
a = mapping(0x22)
def copies(k):
    while True:
        libc.memset(address(a), 1, size(SIZE))
        libc.madvise(address(a), size(SIZE), 4)
start(copies, 1)
time.sleep(1000)""",
    # A listing that waits, and somebody who waits for the listing.
    "the_directory_of_processes": """\
def lists(k):
    d = os.open('/proc', os.O_RDONLY)
    while True:
        os.lseek(d, 0, 0)
        libc.syscall({'x86_64': 217, 'aarch64': 61}[os.uname().machine], d,
                     missing(k), 4096)
def makes(k):
    while True: libc.mkdir(b'/proc/x', 0o700)
start(lists, 6)
start(makes, 3)
time.sleep(1000)""",
    # Children that share the memory map until they have begun their programs.
    "the_start_of_a_program": """\
import subprocess
def runs(k):
    while True: subprocess.run(['/bin/true'])
start(runs, 8)
time.sleep(1000)""",
    # The person changes the size of the window meanwhile.
    "the_size_of_the_window": """\
def asks(k):
    while True: libc.ioctl(0, 0x5413, missing(k))
start(asks, 12)
time.sleep(1000)""",
    # Reads, and somebody who waits to change how the terminal reads. The person
    # types meanwhile.
    "the_terminal": """\
import termios, tty
tty.setraw(0)
modes = termios.tcgetattr(0)
def reads(k):
    while True: libc.read(0, missing(k), size(4096))
def sets(k):
    while True: termios.tcsetattr(0, termios.TCSANOW, modes)
start(reads, 12)
start(sets, 2)
time.sleep(1000)""",
}


# As long as the person types and changes the size of the window. A wait for a
# lock of the storm shows within a second.
TYPING = 2 if world.WHOLE else 1


def waits_often(s, pid, keys):
    """Whether a process is mostly in a wait that no signal ends at once, while
    the person types and changes the size of the window."""
    seen, end = [], time.monotonic() + TYPING
    while time.monotonic() < end:
        if len(seen) % 20 == 0:
            s.resize(24 + len(seen) // 20 % 2, 80)
            s.type(keys)
        s._pump(0.01)
        seen.append(hosttree.stat_of(pid)[0] == b"D")
    return sum(seen) > len(seen) / 4


@pytest.mark.alone
@pytest.mark.sampled(len(HOLDS))
@pytest.mark.parametrize("name", HOLDS)
@pytest.mark.limit(90)
def test_the_warden_waits_for_no_lock_of_a_cell(cb, name):
    if name == "the_directory_of_processes" and not os.path.exists("/proc/1"):
        pytest.skip("the jail has no /proc")
    s = start(cb, *patient("cell.timeout", 2 + TYPING), "--set", "cell.cpu=60s",
              "-M", "512M")
    tree = cb.tree(s)
    row = s.enter(STORM + HOLDS[name])
    # The control: the guest has its threads.
    hosttree.until(lambda: max(map(threads, tree.guests())) > 20,
                   "the threads", 10)
    keys = "x" * 150 if name == "the_terminal" else ""
    assert not waits_often(s, tree.warden, keys)
    s.wait(lambda: s.screen.here() > row
           and s.screen.cursor_row().startswith(">>>"), "a prompt", 25)
    s.type("\x15")
    s.wait_prompt()
    is_whole(s, row)


def threads(pid):
    try:
        return len(os.listdir(f"/proc/{pid}/task"))
    except FileNotFoundError:
        return 0


@pytest.mark.root
def test_the_warden_looks_through_a_proc_of_its_own(cb):
    if not world.IS_ROOT:
        pytest.skip("looking into the warden needs root")
    s = start(cb)
    tree = cb.tree(s)
    shown = f"/proc/{tree.guests()[0]}/root/proc"
    if not os.path.lexists(f"{shown}/self"):
        pytest.skip("the jail has no /proc")
    held = [f"/proc/{tree.warden}/fd/{n}"
            for n in os.listdir(f"/proc/{tree.warden}/fd")]
    procs = [d for d in held if os.path.lexists(f"{d}/self")]
    assert procs and not any(os.path.samefile(shown, d) for d in procs)


# ---- looking costs little

CHILDREN = {
    "private": "b = bytearray(b'x') * (100 << 20)\n",
    "shared": "import mmap\nf = open('/dev/shm/f', 'w+b'); f.truncate(64 << 20)"
              "\nb = [mmap.mmap(f.fileno(), 64 << 20) for _ in range(60)]\n"
              "for m in b:\n    for i in range(0, 64 << 20, 4096): m[i]\n",
}


def cpu_of(tree):
    """CPU ticks of the warden and of its children outside the jail."""
    ours = {tree.warden, tree.init, *hosttree.descendants(tree.warden)}
    return sum(map(hosttree.ticks_of, ours - set(tree.guests())))


@pytest.mark.parametrize("kind", CHILDREN)
def test_children_that_sleep_cost_the_warden_little(cb, kind):
    s = cb.session(*patient("cell.timeout", 30), "-M", "512M")
    tree = cb.tree(s)
    row = s.enter("import os, time\n" + CHILDREN[kind] +
                  "for i in range(20):\n"
                  "    if os.fork() == 0: time.sleep(1000)\n"
                  "print('all', 'asleep')\n"
                  "time.sleep(1000)")
    s.expect_since(row, "all asleep", 20)
    before = cpu_of(tree)
    time.sleep(4)
    used = cpu_of(tree) - before
    assert used < 4 * os.sysconf("SC_CLK_TCK") / 4, f"{used} ticks in 4 s"
    s.type("\x03")
    s.wait_prompt(10)
