# SPDX-License-Identifier: MIT
"""A person whose front end hands over files of a file system of their own, which
never lets go of whoever closes one."""
import os
import pathlib
import shutil
import stat

import pytest

import hosttree
from makerhost import of_jails
from world import TESTS

pytestmark = pytest.mark.skipif(
    not pathlib.Path("/dev/fuse").exists() or not shutil.which("unshare"),
    reason="this host has no FUSE")

# The root of the file system is the file. It is opened, and no close of it is
# answered, until who serves it ends.
FUSE = r"""
import ctypes, os, signal, struct
def serve(dev):
    signal.alarm(100)
    while True:
        data = os.read(dev, 1 << 18)
        n, op, unique, node = struct.unpack_from('=IIQQ', data)
        if op == 26:    # INIT
            body = struct.pack('=IIIIHHIIHHI7I', 7, 31, 65536, 0, 16, 12,
                               65536, 1, 1, 0, 0, *[0] * 7)
        elif op == 14:  # OPEN
            body = struct.pack('=QII', 1, 1, 0)
        elif op == 3:   # GETATTR
            body = struct.pack('=QII', 60, 0, 0) + struct.pack(
                '=QQQQQQIIIIIIIIII', 1, 1, 1, 0, 0, 0, 0, 0, 0, 0o100600,
                1, 0, 0, 0, 512, 0)
        else:
            continue
        os.write(dev, struct.pack('=IiQ', 16 + len(body), 0, unique) + body)
def mount(place):
    open(place, 'w').close()
    dev = os.open(place + '.device', os.O_RDWR)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b'x', place.encode(), b'fuse', 0,
                  b'fd=%d,rootmode=100000,user_id=0,group_id=0' % dev):
        print('no FUSE:', os.strerror(ctypes.get_errno()), flush=True)
        os._exit(0)
    pid = os.fork()
    if not pid:
        for fd in 0, 1, 2:
            os.close(fd)
        serve(dev)
    os.close(dev)
    return pid
"""
ASKS = FUSE + r"""
import fcntl, socket, sys, time
import front
served = mount(sys.argv[1] + '/file')
file = os.open(sys.argv[1] + '/file', os.O_RDONLY)
f = front.Front(cell_wall_ms=300000, cell_cpu_ms=300000)
f.sock.settimeout(60)   # what serves the file would keep us at our end
if sys.argv[2] == 'aside':
    f.send('FRONT_SIDE', a=1, b=1)
    while f._type(f._receive()) != front.EVENTS['JAIL_SIDE']:
        pass
    to = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET,
                       fileno=f.kept[-1])
source = os.memfd_create('cell', os.MFD_ALLOW_SEALING)
os.write(source, b'while True: pass')
fcntl.fcntl(source, fcntl.F_ADD_SEALS, 0xf)
f.seq += 1
socket.send_fds(f.sock, [bytes(front.Request(
    type=front.REQUESTS['FRONT_RUN'], seq=f.seq, a=1, b=2))], [source])
while f._type(f._receive()) != front.EVENTS['JAIL_TOOK']:
    pass
fds = [file] * (3 if sys.argv[2] == 'some' else 1)
socket.send_fds(to if sys.argv[2] == 'aside' else f.sock, [bytes(
    front.Request(type=front.REQUESTS['FRONT_TOUCH'], seq=99))], fds)
if sys.argv[2] == 'aside':
    f.sock.close()
print('sent', flush=True)
sys.stdin.read()
os.kill(served, signal.SIGKILL)
os._exit(0)
"""


def jail():
    """What is in one. Wardens hang in their own exits."""
    return [(pid, name, state[0]) for pid in of_jails() for name, state in
            [(hosttree.status_of(pid).get("Name"),
              hosttree.status_of(pid).get("State", "Z"))]
            if state[0] != "Z" and name in ("cellblock-init", "python3")]


@pytest.mark.parametrize("what", ["one", "some", "aside"])
def test_a_warden_that_is_handed_one_ends_its_jail(host, what):
    """Nothing of the session's runs without its clocks; and nobody else waits for
    what hangs."""
    host.policy("[cell]\ntimeout = 5m\ncpu = 5m\n")
    host.start()
    ann, bob = host.people
    argv, place = ann.argv, ann.home / "fuse"
    place.mkdir()
    os.chown(place, ann.uid, ann.uid)
    # Not every host lets people open its own.
    device = place / "file.device"
    os.mknod(device, 0o600 | stat.S_IFCHR, os.stat("/dev/fuse").st_rdev)
    os.chmod(device, 0o666)
    ann.argv = lambda *c: argv("unshare", "-Urm", *c)
    p = ann.python(ASKS, str(place), what)
    ann.argv = argv
    said = p.stdout.readline()
    try:
        if said.startswith("no FUSE"):
            pytest.skip(said)
        assert said == "sent\n", p.stderr.read()
        hosttree.until(lambda: not jail(), lambda: f"the end of {jail()}")
        s = bob.session().start()
        assert s.run("6 * 7") == "42"
        assert s.leave() == 0
    finally:
        p.communicate(timeout=60)
    hosttree.until(lambda: not of_jails(), "the end of the warden")
