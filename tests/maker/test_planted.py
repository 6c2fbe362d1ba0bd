# SPDX-License-Identifier: MIT
"""Root lists, tells, watches and ends sessions, and a student's own program
listens where sessions do: it hands over what takes long to close."""
import json
import os
import subprocess

import pytest

import hosttree
from test_attacks import KERNELS, STUCK
from test_exam_end import PLANTED as SILENT
from world import PATIENCE

# They mostly wait, and so they begin early.
pytestmark = pytest.mark.limit(90)

# Root's command comes behind it on one processor: all is sent before it is
# read. The planted one goes before all others: a command that goes behind them
# would have nothing of a busy processor.
ONE = str(min(os.sched_getaffinity(0)))
BEHIND = ["taskset", "-c", ONE]
FIRST = -20
PLANTED = STUCK + f"os.sched_setaffinity(0, {{{ONE}}})" + r"""
import array, glob, selectors
place, = glob.glob(os.path.expanduser('~/.local/state/cellblock/live'))
wait, kept = selectors.DefaultSelector(), []
for i in map(int, sys.argv[1:]):
    k = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    k.bind(f'{place}/{i}')
    k.listen(9)
    wait.register(k, selectors.EVENT_READ)
print('ready', flush=True)
head = struct.pack('=IHHiI512s', 0x6b626c63, 1, 1, 1, 0, b'')
status = struct.pack('=iIIIqqqqqqqq64s64s32s', os.getpid(), 0, 0, 0, 1, 0, 0,
                     -1, 0, 0, 0, 0, b'', b'', b'0.1')
while True:
    for key, _ in wait.select():
        c, _ = key.fileobj.accept()
        kept.append(c)
        c.recv(4096)
        # An answer, and at once what follows it.
        for t in [stuck() for _ in range(2)]:
            try:
                c.sendmsg([head + status], [(socket.SOL_SOCKET,
                          socket.SCM_RIGHTS, array.array('i', [t.fileno()]))])
                t.close()       # the last copy is on its way
            except OSError:     # the kernel refuses to send it, or root is gone
                kept.append(t)
                try:
                    c.send(head + status)
                except OSError:
                    pass
"""


def test_who_says_nothing_delays_nobody_who_is_told_or_ended(host):
    """As many sockets as a directory may have, of each person but one."""
    host.policy("")
    host.start()
    ann, bob = host.people
    sessions = [p.session().start() for p in (ann, bob)]
    silent = [p.python(SILENT, "1", "900") for p in (ann, bob)]
    for p in silent:
        assert p.stdout.readline() == "ready\n", p.stderr.read()
    try:
        for args in (("--message", "everybody", "soon is lunch"),
                     ("--end", "everybody")):
            r = subprocess.run(
                [*host.inside(), str(host.binary), *args], check=False,
                capture_output=True, text=True, timeout=30 * PATIENCE,
                stdin=subprocess.DEVNULL, env={"PATH": "/usr/bin"})
            assert "others of " in r.stderr and r.returncode == 1
            for s in sessions:
                s.expect("soon is lunch")
    finally:
        for p in silent:
            p.kill()
            p.communicate()
    for s in sessions:
        s.wait_exit()


def test_nobody_fills_the_host_s_run(host):
    """Where there are several hosts the sockets of a person lie in /run."""
    hosts = host.dir / "hosts"
    hosts.mkdir(mode=0o700)
    host.policy(f"[maker]\nhosts = {hosts}\n")
    host.start()
    ann, bob = host.people
    for _ in range(2):
        s, t = ann.session().start(), bob.session().start()
        said = ann.asks(r"""
import os
place = f'/run/cellblock/s/{os.getuid()}'
print(sorted(os.listdir(place)))
n = size = 0
try:
    with open(place + '/large', 'wb', 0) as f:
        while size < 1 << 24:
            size += f.write(bytes(1 << 16))
except OSError:
    pass
os.unlink(place + '/large')
try:
    while n < 9999:
        os.symlink('x' * 4000, f'{place}/x{n}')
        n += 1
except OSError:
    pass
for i in range(n):
    os.unlink(f'{place}/x{i}')
print(size < 1 << 20, n < 3000)
""")
        assert said.splitlines()[0] == "['1']", said
        assert said.splitlines()[1] == "True True", said
        assert "running" in ann.run("--sessions", "--json").text
        for each in s, t:
            assert each.leave() == 0
    with open(f"/proc/{host.holder.pid}/mounts") as f:
        assert f.read().count(" /run/cellblock/s/") <= 3


@KERNELS
def test_what_it_hands_over_keeps_root_from_nothing(host, kernel):
    host.policy("")
    host.start()
    ann, bob = host.people
    s, other = ann.session().start(), bob.session().start()
    p = ann.python(PLANTED, "9", "1001", "1002")
    assert p.stdout.readline() == "ready\n", p.stderr.read()
    os.setpriority(os.PRIO_PROCESS, p.pid, FIRST)
    try:
        root_does_all(host, kernel, s, other)
        assert s.run("6 * 7") == "42" and p.poll() is None
    finally:
        p.kill()
        p.communicate()
    hosttree.until(lambda: not any(map(lists, hosttree.mine())),
                   "the end of who lists")


def lists(pid):
    """Whether it is the child that asks a server for its list."""
    status = hosttree.status_of(pid)
    return status.get("Name") == "cellblock-list" and \
        status.get("State", "Z")[0] != "Z"


def root_does_all(host, kernel, s, other):
    ann, bob = host.people

    def root(*args, before=()):
        p = subprocess.run(
            [*host.inside(), *BEHIND, *before, *kernel,
             str(host.binary), *args],
            capture_output=True, text=True, check=False, timeout=30 * PATIENCE,
            stdin=subprocess.DEVNULL, env={"PATH": "/usr/bin"})
        return p.returncode, p.stdout + p.stderr

    def are_listed():
        """The list does not wait for a session that is slow to answer."""
        code, said = root("--sessions", "--json")
        assert code == 0, said
        answers = {(e["who"], e["number"]) for e in json.loads(said)
                   if e["answers"]}
        assert (ann.name, "s1") not in answers
        return {(ann.name, "1"), (bob.name, "1")} <= answers

    hosttree.until(are_listed, "both sessions in the list")
    code, said = root("--message", "everybody", "soon is lunch")
    for each in s, other:
        each.expect("soon is lunch")
    # It may show nothing for as long as it likes, and root ends that.
    root("--watch", f"{ann.name}/9", before=["timeout", "9"])
    subprocess.run([*host.inside(), "mkdir", "/run/saved"], check=True)
    code, said = root("--end", f"{ann.name}/9", "--save", "/run/saved")
    assert code == 1 and "there is no whole copy of its home" in said, said
    root("--end", f"{ann.name}/9")
    assert root("--end", f"{bob.name}/1")[0] == 0
    other.wait_exit()
