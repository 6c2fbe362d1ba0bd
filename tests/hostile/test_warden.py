# SPDX-License-Identifier: MIT
"""Nobody makes the warden itself wait: whatever a guest does to its own end of
a link, the cell ends at its clock, the keys go on working, and nothing is left
when the front end is killed."""
import contextlib
import ctypes
import os
import re
import signal
import time

import pytest

import hosttree
import world
from hostile import (FIND, HANG, is_whole, said_since, start, value,
                     wait_stopped)

GRACE = 0.3         # hostile.start()
SOON = GRACE + 2


def killed_front_end_leaves_nothing(cb, s):
    tree = cb.tree(s)
    s.process.kill()
    s.process.wait()
    tree.wait_gone(SOON)


# ---- links that are not read, terminals that block, descriptors that linger

NEVER_READS = """\
line = [n for n in range(500, 600) if os.isatty(n)
        and os.fstat(n).st_rdev != os.fstat(0).st_rdev][0]
c, no = control(), %d
def done():
    global no
    c.send(b'DONE %%d ok 0 0 0 0' %% no)
    c.send(b'PARKED %%d fork' %% (no + 1))
    no += 1
done()
while True:
    os.read(line, 65536)
    c.send(b'TOOK %%d' %% no)
    done()"""


def test_a_guest_that_answers_and_never_reads(cb):
    """What the warden sends it piles up; when the queue is full, the link is
    taken for broken."""
    s = start(cb, "--set", "cell.timeout=3s")
    s.run(FIND)
    row = s.screen.here()
    s.run(NEVER_READS % 4)
    for _ in range(400):
        s.run("1", SOON + 1)
        if "· back to the state before cell 4" in said_since(s, row):
            break
    else:
        pytest.fail("the queue never filled\n" + s.picture())
    is_whole(s, row)
    killed_front_end_leaves_nothing(cb, s)


SPINS = """\
import os, fcntl, termios, time, signal
def spin():
    a = termios.tcgetattr(0)
    a[0] = a[1] = a[3] = 0
    a[6][termios.VMIN], a[6][termios.VTIME] = 255, 0
    f, t, F = fcntl.fcntl, termios.tcsetattr, fcntl.F_SETFL
    while True:
        t(0, 0, a)
        for _ in range(4):
            f(0, F, 2); f(0, F, 2); f(0, F, 2); f(0, F, 2); f(0, F, 2)
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
for _ in range(2):
    if os.fork() == 0:
        spin()
"""


def test_a_terminal_made_to_block(cb):
    """Children set it back to blocking, and to wait for 255 keys, as fast as
    they can, while the warden takes back what was typed ahead."""
    s = start(cb, "--set", "cell.checkpoint=never", "--set", "cell.cpu=60s")
    s.run(SPINS)
    for _ in range(25):
        row = s.enter("time.sleep(0.1)")
        s.type("abc")
        s.wait(lambda: s.screen.here() >= row
               and s.screen.cursor_row().startswith(">>>"), "a prompt", 20)
        s.wait(lambda: "abc" in s.screen.cursor_row(), "the keys", 20)
        s.type("\x15")
        s.wait_prompt()
    assert value(s, "kept") == "{'cell': 1}"
    killed_front_end_leaves_nothing(cb, s)


KCMP = {"x86_64": 312, "aarch64": 272}[os.uname().machine]


def kcmp_file(a, fd_a, b, fd_b):
    return ctypes.CDLL(None).syscall(KCMP, a, b, 0, fd_a, fd_b)


def test_the_guest_holds_no_open_file_of_the_wardens(cb):
    """Its modes would be the warden's: O_NONBLOCK belongs to who holds it."""
    if not world.IS_ROOT:
        pytest.skip("looking into the warden needs root")
    s = start(cb)
    tree = cb.tree(s)
    ends = {p: {int(n): os.readlink(f"/proc/{p}/fd/{n}")
                for n in os.listdir(f"/proc/{p}/fd")}
            for p in (tree.warden, *tree.guests())}
    ttys = [n for n, to in ends[tree.warden].items() if "pts/" in to]
    guest = tree.guests()[0]
    assert ttys and any("pts/" in to for to in ends[guest].values())
    assert kcmp_file(guest, 0, guest, 1) == 0       # the control: it is one
    for p, held in ends.items():
        for n, to in held.items():
            if p != tree.warden and "pts/" in to:
                assert all(kcmp_file(tree.warden, t, p, n) for t in ttys)


LINGERS = FIND + """
import array, errno, struct, time
l = socket.create_server(('127.0.0.1', 7000))
a = socket.create_connection(('127.0.0.1', 7000))
b = l.accept()[0]
if os.fork() == 0:
    a.close(); time.sleep(10000)
l.close()
try:
    linger = struct.pack('ii', 1, 30000)
    a.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    print('lingers')
except PermissionError:
    print('refused')
a.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
a.setblocking(False)
try:
    while True: a.send(bytes(65536))
except BlockingIOError: pass
try:
    control().sendmsg([b'DONE 3 ok 0 0 0 0'], [(socket.SOL_SOCKET,
                      socket.SCM_RIGHTS, array.array('i', [a.fileno()]))])
    print('taken')
except PermissionError:
    print('not taken')
os.dup2(0, a.fileno())
%s"""


@pytest.mark.parametrize("then", ["", "while True: time.sleep(1)"])
def test_a_descriptor_whose_close_blocks(cb, then):
    s = start(cb, "--set", "jail.network=loopback")
    row = s.screen.here()
    began = time.monotonic()
    out = s.run(LINGERS % then, 1.5 + SOON + 2)
    assert time.monotonic() - began < (1.5 + SOON + 2) * world.PATIENCE
    assert "refused" in out
    is_whole(s, row)
    killed_front_end_leaves_nothing(cb, s)


# ---- nothing runs without a clock

BREAKS_AGAIN = FIND + """
import array, time
def serve(c):
    while True:
        data, rights, _, _ = c.recvmsg(65536, 256)
        if not data: os._exit(0)
        word = data.split()
        if word[0] != b'PARK': continue
        fd = array.array('i', rights[0][2])[0]
        told, tell = os.pipe()
        child = os.fork()
        if child == 0:
            if os.fork(): os._exit(0)
            os.read(told, 1)
            n = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET, 0, fd)
            n.send(b'ASLEEP %d 0 0' % os.getpid())
            n.recv(64)
            n.send(b'AWAKE %d 0' % os.getpid())
            c = n
            continue
        os.close(fd); os.waitpid(child, 0)
        end = time.time() + 0.7
        while time.time() < end: pass
        c.send(b'PARKED ' + word[1] + b' ok')
        c.send(b'PARKED ' + word[1] + b' ok')       # one too many
        os.write(tell, b'.')
c = control()
c.send(b'DONE 3 ok 0 0 0 0')
serve(c)"""


@pytest.mark.parametrize("then", ["wait", "cell", "reset", "kill"])
def test_a_guest_whose_copy_is_as_broken_as_itself(cb, then):
    """It burns whenever a checkpoint is asked for, and so does what replaces
    it: after the second time it is not asked again."""
    s = start(cb, "--set", "session.idle=63s")
    row = s.enter(BREAKS_AGAIN)
    s.expect_since(row, "Python spoke out of turn and was killed", 10)
    tree = cb.tree(s)
    if then == "kill":
        killed_front_end_leaves_nothing(cb, s)
        return
    wait_stopped(tree)
    before = tree.cpu_ticks()
    if then == "wait":
        s.wait_notice("idle")
        assert tree.cpu_ticks() - before < 30
    if then == "reset":
        s.run(":reset", SOON + 2)
        assert "NameError" in s.run("kept")
    else:
        is_whole(s, row)


RESUMED = """\
import os, time
child = os.fork()
if child == 0:
    while True: sum(range(1000))
"""


def ran(tree, seconds):
    """CPU ticks that the jail used in so many seconds."""
    before = tree.cpu_ticks()
    time.sleep(seconds)
    return tree.cpu_ticks() - before


def outside(tree, inside):
    """The pid out here of a process of the jail."""
    for pid in tree.guests():
        with open(f"/proc/{pid}/status") as f:
            status = f.read()
        if int(re.search(r"^NSpid:.*\t(\d+)$", status, re.M)[1]) == inside:
            return pid
    raise AssertionError("the child is gone")


def child_of(s, tree):
    """RESUMED's child, out here."""
    inside = int(value(s, "child"))
    wait_stopped(tree)
    return outside(tree, inside)


def test_what_is_continued_from_outside_is_stopped_again(cb):
    s = start(cb, "--set", "cell.checkpoint=never")
    s.run(RESUMED)
    tree = cb.tree(s)
    os.kill(child_of(s, tree), signal.SIGCONT)
    hosttree.until(lambda: s._pump(0.1) or ran(tree, 1) == 0,
                   "the jail to be at rest")
    assert value(s, "os.waitpid(child, os.WNOHANG)") == "(0, 0)"
    assert value(s, "kept") == "{'cell': 1}"


def test_what_does_not_stay_stopped_is_killed(cb):
    s = start(cb)
    s.run("1")
    s.run(RESUMED)
    tree = cb.tree(s)
    burner = child_of(s, tree)
    if hosttree.stat_of(burner)[0] != b"T":
        pytest.skip("the freezer holds it, whatever it is sent")
    row = s.screen.here()
    started = int(hosttree.stat_of(burner)[19])

    def is_killed():
        with contextlib.suppress(ProcessLookupError):
            os.kill(burner, signal.SIGCONT)
        s._pump(0.2)
        return not hosttree.is_alive(burner, started)

    hosttree.until(is_killed, "what does not rest to be killed", 20)
    s.expect_since(row, "ran on between cells and was killed")
    is_whole(s, row)


# Of children that are init's: each has used most of a tick of the CPU, so it
# has used none, and after its death init's children have used one more.
ROUNDED = """\
import os, signal, time
def child():
    while time.process_time() < 0.009: pass
    os.write(w, b'%d ' % os.getpid())
    while True: signal.pause()
def start():
    if not os.fork():
        if not os.fork(): child()
        os._exit(0)
    os.wait()
    return int(os.read(r, 100))
r, w = os.pipe()
children = [start() for _ in range(5)]
"""


def test_a_death_is_not_taken_for_running_on(cb):
    s = start(cb, "--set", "session.idle=61300ms")
    row = s.screen.here()
    s.run(ROUNDED)
    tree = cb.tree(s)
    wait_stopped(tree)
    children = [outside(tree, number) for number in eval(value(s, "children"))]
    wait_stopped(tree)
    if hosttree.stat_of(children[0])[0] != b"T":
        pytest.skip("the freezer holds it: nobody looks")
    for pid in children:
        os.kill(pid, signal.SIGKILL)
        s.type("\r")            # somebody is there: the idle clock starts again
        s.wait_notice("idle")   # by then the warden has looked
        assert "ran on" not in said_since(s, row)
    is_whole(s, row)


# ---- what is kept when something is refused, or hangs

def test_a_refused_undo_changes_nothing(cb):
    """Not even where there is no checkpoint, and none can be taken."""
    s = start(cb, "--set", "cell.timeout=20s")
    s.run(HANG % "hang, None, None", 30)
    assert value(s, "mine") == "'too'"
    for _ in range(14):
        out = s.run(":undo")
        if "nothing is kept" not in out:
            assert "back to the state" in out, out
    assert value(s, "kept") == "{'cell': 1}"


def test_a_copy_that_hangs_costs_no_child_of_the_users(cb):
    s = start(cb, "--set", "cell.timeout=20s")
    s.run("import subprocess; p = subprocess.Popen(['sleep', '1000'])")
    s.run(HANG % "hang, None, None", 30)
    assert value(s, "p.poll() is None", 30) == "True"
    assert value(s, "mine") == "'too'"


# ---- a program

def test_a_program_that_waits_for_the_person_is_waited_for(cb):
    """Its time limit is long over when its lifetime ends it."""
    (cb.work / "p.py").write_text("print('got', input('? '))\n")
    s = cb.session("-t", "1s", "--set", "session.lifetime=3s", "p.py",
                   start=False)
    s.expect(r"\?")
    assert s.wait_exit(20) == 137
    assert "lifetime limit: 3 s" in s.all_text()
    s = cb.session("-t", "9s", "p.py", start=False)
    s.expect(r"\?")
    s.type("late\r")
    assert s.wait_exit(5) == 0
    assert "got late" in s.all_text()


# ---- the front end's own clock

def test_a_warden_that_hung_is_ended_by_its_alarm(cb):
    """As the alarm ends it, and all the jail with it; the front end says so."""
    s = start(cb)
    tree = cb.tree(s)
    os.kill(tree.warden, signal.SIGALRM)
    assert s.wait_exit() == 125
    assert "the session hung, and was ended" in s.all_text()
    tree.wait_gone(SOON)


@pytest.mark.limit(90)
def test_a_warden_that_does_not_end_is_not_waited_for_for_ever(cb):
    """Stopped, it does not even die of its alarm. Who may kill it does so; who
    may not, as the front end that root started, says what may be left."""
    s = cb.session()
    tree = cb.tree(s)
    warden = tree.warden
    os.kill(warden, signal.SIGSTOP)
    s.type("\x04")
    if world.IS_ROOT:
        s.wait_exit(40)
        assert f"the session does not end: process {warden}" in \
            s.all_text().replace("\n", "")
        os.kill(warden, signal.SIGCONT)
    else:
        s.wait_exit(8)
        assert "does not end" not in s.all_text()
    tree.wait_gone(SOON)


# ---- descriptors on their way, of which each user may have so many

FLIES = """
import array, os, signal, socket, time
held, null = [], os.open('/dev/null', os.O_RDONLY)
def fly():
    n = 0
    while True:
        a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        a.setblocking(False)
        held.append((a, b))
        try:
            while True:
                a.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS,
                                    array.array('i', [null] * 250))])
                n += 250
        except BlockingIOError: pass
        except OSError as e: return print(n, 'fly:', e.strerror)"""
STUCK = """signal.signal(signal.SIGINT, signal.SIG_IGN)
fly()
while True: pass"""


def with_descriptors(limit):
    return ("sh", "-c", f'ulimit {limit} 1024; exec "$@"', "sh")


def test_descriptors_on_their_way_keep_out_no_others(cb):
    s = start(cb, wrapper=with_descriptors("-Sn"))
    s.run(FLIES)
    row = s.screen.here()
    assert "fly: Too many references" in s.run("fly()")
    s.run("mine = 5")
    assert "Python stopped answering" not in said_since(s, row)
    assert value(s, "mine") == "5"
    s.enter("time.sleep(0.7)")
    s.type("abc")
    s.wait(lambda: s.screen.cursor_row() == ">>> abc", "the keys")
    s.type("\x15")
    assert "killed · back to the state before" in s.run(STUCK, SOON + 5)
    is_whole(s, row)


def test_where_the_limit_cannot_be_raised_they_cost_no_session(cb):
    s = start(cb, wrapper=with_descriptors("-n"))
    s.run(FLIES)
    row = s.screen.here()
    assert "fly: Too many references" in s.run("fly()", 25)
    # None is left for the checkpoint.
    s.wait(lambda: "stopped answering" in said_since(s, row), "the news")
    s.wait_prompt()
    s.enter("fly(); time.sleep(0.7)")
    s.type("abc")
    s.wait(lambda: "typed ahead is lost" in said_since(s, row), "the news")
    s.wait_prompt()
    assert "killed · back to the state before" in s.run(STUCK, SOON + 5)
    is_whole(s, row)
