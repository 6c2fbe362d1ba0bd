# SPDX-License-Identifier: MIT
"""No guest can make the warden itself wait, whatever the guest does to its end
of a link. The cell still ends at its time limit, the keys still work, and
nothing is left when the front end is killed."""
import contextlib
import ctypes
import os
import re
import signal
import time

import pytest

import hosttree
import world
from hostile import (FIND, HANG, is_whole, patient, said_since, start, value,
                     wait_stopped)
from inflight import wait_landed

# Root may look into and signal what a person may not.
pytestmark = pytest.mark.both

GRACE = 0.3         # hostile.start()
# Sooner than what lets go by itself, and later than what a busy host takes.
SOON = GRACE + 4


def assert_a_killed_front_end_leaves_nothing(cb, s):
    tree = cb.tree(s)
    s.process.kill()
    s.process.wait()
    tree.wait_gone(SOON)


# ---- links that the guest does not read, terminals that block, slow closes

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


def test_a_guest_that_answers_and_never_reads_does_not_block_the_warden(cb):
    """Messages from the warden pile up. When the queue is full, the warden
    treats the link as broken."""
    s = start(cb, *patient("cell.timeout", 3))
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
    assert_a_killed_front_end_leaves_nothing(cb, s)


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


@pytest.mark.sampled
def test_a_terminal_set_to_blocking_reads_does_not_block_the_warden(cb):
    """Children set the terminal to blocking reads of 255 keys, again and
    again, while the warden takes back the keys that were typed ahead."""
    s = start(cb, "--set", "cell.checkpoint=never", "--set", "cell.cpu=60s")
    s.run(SPINS)
    for _ in range(25 if world.WHOLE else 10):
        row = s.enter("time.sleep(0.1)")
        s.type("abc")
        s.wait(lambda: s.screen.here() >= row
               and s.screen.cursor_row().startswith(">>>"), "a prompt", 20)
        s.wait(lambda: "abc" in s.screen.cursor_row(), "the keys", 20)
        s.type("\x15")
        s.wait_prompt()
    assert value(s, "kept") == "{'cell': 1}"
    assert_a_killed_front_end_leaves_nothing(cb, s)


KCMP = {"x86_64": 312, "aarch64": 272}[os.uname().machine]


def kcmp_file(a, fd_a, b, fd_b):
    return ctypes.CDLL(None).syscall(KCMP, a, b, 0, fd_a, fd_b)


def end_of(p, n):
    "what a descriptor is open on; None when it has just been closed"
    try:
        return os.readlink(f"/proc/{p}/fd/{n}")
    except FileNotFoundError:
        return None


@pytest.mark.root
def test_the_guest_shares_no_open_file_with_the_warden(cb):
    """O_NONBLOCK belongs to the open file. A guest that shared an open file
    with the warden could make the warden block."""
    if not world.IS_ROOT:
        pytest.skip("looking into the warden needs root")
    s = start(cb)
    tree = cb.tree(s)
    ends = {}

    def look(p):
        ends[p] = {int(n): end for n in os.listdir(f"/proc/{p}/fd")
                   if (end := end_of(p, n))}

    hosttree.check_each([tree.warden, *tree.guests()], look)
    ttys = [n for n, to in ends[tree.warden].items() if "pts/" in to]
    guest = tree.guests()[0]
    assert ttys and any("pts/" in to for to in ends[guest].values())
    assert kcmp_file(guest, 0, guest, 1) == 0       # the control
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
def test_a_descriptor_with_a_slow_close_does_not_block_the_warden(cb, then):
    s = start(cb, "--set", "jail.network=loopback")
    row = s.screen.here()
    began = time.monotonic()
    out = s.run(LINGERS % then, 1.5 + SOON + 2)
    assert time.monotonic() - began < (1.5 + SOON + 2) * world.PATIENCE
    assert "refused" in out
    is_whole(s, row)
    assert_a_killed_front_end_leaves_nothing(cb, s)


# ---- a guest that runs between cells is ended

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


@pytest.mark.sampled(2)
@pytest.mark.parametrize("then", ["wait", "cell", "kill", "reset"])
def test_a_guest_that_burns_at_every_checkpoint_is_bounded(cb, then):
    """The guest burns CPU whenever the warden asks for a checkpoint, and so
    does its replacement. After the second time the warden does not ask
    again."""
    s = start(cb, "--set", "session.idle=63s")
    row = s.enter(BREAKS_AGAIN)
    s.expect_since(row, "Python spoke out of turn and was killed", 10)
    tree = cb.tree(s)
    if then == "kill":
        assert_a_killed_front_end_leaves_nothing(cb, s)
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


BURNING_CHILD = """\
import os, time
child = os.fork()
if child == 0:
    while True: sum(range(1000))
"""


def ticks_used(tree, seconds):
    """The CPU ticks that the jail uses within the given seconds."""
    before = tree.cpu_ticks()
    time.sleep(seconds)
    return tree.cpu_ticks() - before


def outside(tree, inside):
    """The pid on the host of the process with the pid `inside` in the jail."""
    for pid in tree.guests():
        try:
            with open(f"/proc/{pid}/status") as f:
                status = f.read()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(re.search(r"^NSpid:.*\t(\d+)$", status, re.M)[1]) == inside:
            return pid
    raise AssertionError("the child is gone")


def child_of(s, tree):
    """The pid on the host of the child that BURNING_CHILD has made."""
    inside = int(value(s, "child"))
    wait_stopped(tree)
    return outside(tree, inside)


def test_a_process_continued_from_outside_is_stopped_again(cb):
    s = start(cb, "--set", "cell.checkpoint=never")
    s.run(BURNING_CHILD)
    tree = cb.tree(s)
    os.kill(child_of(s, tree), signal.SIGCONT)
    hosttree.until(lambda: s._pump(0.1) or ticks_used(tree, 1) == 0,
                   "the jail to use no CPU")
    assert value(s, "os.waitpid(child, os.WNOHANG)") == "(0, 0)"
    assert value(s, "kept") == "{'cell': 1}"


def test_a_process_that_does_not_stay_stopped_is_killed(cb):
    s = start(cb)
    s.run("1")
    s.run(BURNING_CHILD)
    tree = cb.tree(s)
    burner = child_of(s, tree)
    if hosttree.stat_of(burner)[0] != b"T":
        pytest.skip("the freezer holds the process in spite of SIGCONT")
    row = s.screen.here()
    started = int(hosttree.stat_of(burner)[19])

    def is_killed():
        with contextlib.suppress(ProcessLookupError):
            os.kill(burner, signal.SIGCONT)
        s._pump(0.2)
        return not hosttree.is_alive(burner, started)

    hosttree.until(is_killed, "the process that is continued to be killed", 20)
    s.expect_since(row, "ran on between cells and was killed")
    is_whole(s, row)


# Children of init that have each used most of one CPU tick. The kernel rounds
# that down to none while the child lives. After its death the sum over the
# children of init, which is rounded later, is one tick higher.
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


def test_a_death_between_cells_is_not_taken_for_cpu_use(cb):
    s = start(cb, "--set", "session.idle=61300ms")
    row = s.screen.here()
    s.run(ROUNDED)
    tree = cb.tree(s)
    wait_stopped(tree)
    numbers = eval(value(s, "children"))
    wait_stopped(tree)
    children = [outside(tree, number) for number in numbers]
    if hosttree.stat_of(children[0])[0] != b"T":
        pytest.skip("the freezer holds the jail: the warden counts no ticks")
    for pid in children:
        os.kill(pid, signal.SIGKILL)
        s.type("\r")            # a key: the idle clock starts again
        s.wait_notice("idle")   # by then the warden has looked
        assert "ran on" not in said_since(s, row)
    is_whole(s, row)


# ---- nothing is lost when a checkpoint is refused or hangs

def test_a_refused_undo_changes_nothing(cb):
    """There is no checkpoint to go back to, and none can be taken."""
    s = start(cb, "--set", "cell.timeout=20s")
    s.run(HANG % "hang, None, None", 30)
    assert value(s, "mine") == "'too'"
    for _ in range(14):
        out = s.run(":undo")
        if "nothing is kept" not in out:
            assert "back to the state" in out, out
    assert value(s, "kept") == "{'cell': 1}"


def test_a_checkpoint_that_hangs_costs_the_user_no_child(cb):
    s = start(cb, "--set", "cell.timeout=20s")
    s.run("import subprocess; p = subprocess.Popen(['sleep', '1000'])")
    s.run(HANG % "hang, None, None", 30)
    assert value(s, "p.poll() is None", 30) == "True"
    assert value(s, "mine") == "'too'"


# ---- a program

@pytest.mark.limit(90)
def test_the_time_limit_pauses_while_a_program_waits_for_the_person(cb):
    """The lifetime limit ends the program, not the shorter time limit."""
    (cb.work / "p.py").write_text("print('got', input('? '))\n")
    limit = int(12 * world.PATIENCE)
    s = cb.session("-t", f"{limit // 2}s", "--set",
                   f"session.lifetime={limit}s", "p.py", start=False)
    s.expect(r"\?")
    assert s.wait_exit(20) == 137
    assert f"lifetime limit: {limit} s" in s.all_text()
    s = cb.session("-t", f"{limit}s", "p.py", start=False)
    s.expect(r"\?")
    s.type("late\r")
    assert s.wait_exit(5) == 0
    assert "got late" in s.all_text()


# ---- the front end watches the warden

def test_a_warden_that_hangs_is_ended_by_its_alarm(cb):
    """The test sends the alarm itself. The alarm ends the warden and with it
    the jail, and the front end says so."""
    s = start(cb)
    tree = cb.tree(s)
    os.kill(tree.warden, signal.SIGALRM)
    assert s.wait_exit() == 125
    assert "the session hung, and was ended" in s.all_text()
    tree.wait_gone(SOON)


@pytest.mark.limit(90)
def test_the_front_end_does_not_wait_for_ever_for_the_warden(cb):
    """A stopped warden does not die of its alarm. The front end kills it where
    it may. A front end that root started may not, and names the process."""
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


# ---- descriptors in flight, which the kernel limits for each user

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


@pytest.mark.alone
def test_descriptors_in_flight_do_not_block_the_session(cb):
    wait_landed()
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


@pytest.mark.alone
def test_descriptors_in_flight_cost_no_session_under_a_low_hard_limit(cb):
    wait_landed()
    s = start(cb, wrapper=with_descriptors("-n"))
    s.run(FLIES)
    row = s.screen.here()
    assert "fly: Too many references" in s.run("fly()", 25)
    # No descriptor is left for the checkpoint.
    s.wait(lambda: "stopped answering" in said_since(s, row),
           "the failed checkpoint to be reported")
    s.wait_prompt()
    s.enter("fly(); time.sleep(0.7)")
    s.type("abc")
    s.wait(lambda: s.screen.cursor_row() == ">>> abc", "the keys")
    s.type("\x15")
    s.wait_prompt()
    assert "killed · back to the state before" in s.run(STUCK, SOON + 5)
    is_whole(s, row)
