# SPDX-License-Identifier: MIT
"""Root ends sessions, and has a copy of their homes before."""
import re
import stat
import subprocess

import pytest

import hosttree
from world import PATIENCE

MIB = 1 << 20


@pytest.fixture(name="root")
def _root(host):
    host.policy("[policy]\nlocked = yes\n[home]\nsize = 8M\n"
                "[files]\nmax_file = 1K\nmax_count = 1\n")
    host.start()
    root = host.root()
    root.dir = host.dir / "homes"
    root.dir.mkdir(mode=0o700)
    yield root
    root.close()


def end(root, who, *args):
    p = subprocess.run(
        [*root.host.inside(), str(root.host.binary), "--end", who, *args,
         "--save", str(root.dir)], capture_output=True, text=True,
        check=False, timeout=150 * PATIENCE, env={"PATH": "/usr/bin"})
    return p.returncode, p.stdout + p.stderr


def copies(root):
    return sorted(root.dir.iterdir())


def is_there(person):
    return person.run("--sessions", "--json").text.strip() not in ("", "[]")


def test_the_home_is_root_s_before_the_session_ends(root, host):
    ann, bob = host.people
    theirs = bob.session().start()
    s = ann.session().start()
    s.run("import os; os.makedirs('a/b')")
    s.run("open('a/b/x.py', 'w').write('x = 1\\n' * 1000)")
    s.run("open('.hidden', 'w').write('h'); os.chmod('.hidden', 0o640)")
    code, said = end(root, f"{ann.name}/1", "-m", "until tomorrow")
    assert code == 0 and "until tomorrow" in s.all_text() or s.wait_exit(), said
    copy, = copies(root)
    assert copy.name.startswith(f"{ann.name}-1-2") and str(copy) in said
    assert stat.S_IMODE(copy.stat().st_mode) == 0o700
    assert (copy / "a/b/x.py").read_text() == "x = 1\n" * 1000
    assert stat.S_IMODE((copy / ".hidden").stat().st_mode) == 0o640
    for p in [copy, *copy.rglob("*")]:
        assert p.lstat().st_uid == 0 and not p.is_symlink()
    hosttree.until(lambda: not is_there(ann), "its end")
    # Everybody's, also an empty home, while a cell runs.
    theirs.type("while True: pass\r")
    code, said = end(root, "everybody")
    assert code == 0 and len(copies(root)) == 2, said
    hosttree.until(lambda: not is_there(bob), "its end")


def test_a_place_that_is_none_is_said_once_and_ends_nothing(root, host):
    ann, bob = host.people
    sessions = [p.session().start() for p in (ann, bob)]
    link = host.dir / "link"
    link.symlink_to(root.dir)
    right = root.dir
    for place, mode, said in ((host.dir / "missing", None, "No such file"),
                              (right, 0o777, "can be changed by others"),
                              (ann.home, None, "belongs to uid")):
        if mode:
            place.chmod(mode)
        root.dir = place
        code, text = end(root, "everybody")
        assert code == 1 and said in text and len(text.splitlines()) == 1, text
    assert list(right.iterdir()) == [] and is_there(ann) and is_there(bob)
    # The control; and who has none.
    right.chmod(0o700)
    root.dir = link
    for person in ann, bob:
        assert end(root, f"{person.name}/1")[0] == 0
    assert len(list(right.iterdir())) == 2
    for s in sessions:
        s.wait_exit()
    for args in ("--message", "all", "x"), ("--end", "all"):
        assert "'everybody' all people's" in root.run(*args).text, args


def test_no_link_of_a_student_leads_root_anywhere(root, host):
    ann, _ = host.people
    secret = host.dir / "secret"
    secret.write_text("root's own")
    secret.chmod(0o600)
    s = ann.session().start()
    s.run("import os; open('good', 'w').write('1')")
    s.run(f"os.symlink('{secret}', 'link'); os.symlink('/', 'all')")
    s.run("os.symlink('good', 'own'); os.mkfifo('fifo'); os.mkdir('..x')")
    s.run("open('-rf', 'w').close(); open('a\\nb\\x1b[2J', 'w').close()")
    code, said = end(root, f"{ann.name}/1")
    copy, = copies(root)
    assert code == 0 and "\x1b" not in said, said
    assert re.search(rf"left out of the home of session {ann.name}/1: "
                     "fifo is a device, a FIFO or a socket", said), said
    assert (copy / "good").read_text() == "1"
    for p in copy.rglob("*"):
        mode = p.lstat().st_mode
        assert stat.S_ISREG(mode) or stat.S_ISDIR(mode), p
        assert stat.S_ISDIR(mode) or "root's own" not in p.read_text()


def test_a_copy_that_is_not_whole_ends_nothing(root, host):
    """Sparse files are as large as they say, and a disk may be full."""
    ann, _ = host.people
    s = ann.session().start()
    s.run("open('data', 'w').write('d' * 100_000)")
    s.run("for i in range(3): open(f'large{i}', 'w').truncate(7 << 20)\n")
    code, said = end(root, f"{ann.name}/1")
    assert code == 1 and "has not been ended" in said, said
    assert "more bytes than the home may" in said, said
    assert is_there(ann) and s.run("6 * 7") == "42"
    copy, = copies(root)
    assert sum(p.stat().st_blocks for p in copy.rglob("*")) * 512 < 16 * MIB
    s.run("import os; [os.unlink(f'large{i}') for i in range(3)]")
    subprocess.run([*host.inside(), "mount", "-t", "tmpfs", "-o",
                    "size=16k,mode=700", "tmpfs", root.dir], check=True)
    try:
        code, said = end(root, f"{ann.name}/1")
        assert code == 1 and "No space left on device" in said, said
        assert is_there(ann)
    finally:
        subprocess.run([*host.inside(), "umount", root.dir], check=True)
    code, said = end(root, f"{ann.name}/1")
    assert code == 0, said
    hosttree.until(lambda: not is_there(ann), "its end")


def test_only_root_saves_homes(root, host):
    ann, _ = host.people
    s = ann.session().start()
    place = ann.home / "homes"
    r = ann.run("--end", "1", "--save", str(place))
    assert r.code == 2 and "for root alone" in r.said, r
    assert s.run("6 * 7") == "42"
    for args in (("--end", "1", "--save"), ("--end", "--save", "x"),
                 ("--end", "1", "--save", "x", "2")):
        assert ann.run(*args).code == 2, args
    code, said = end(root, f"{ann.name}/1")
    assert code == 0, said


@pytest.mark.parametrize("what", ["packets", "linger"])
def test_a_planted_session_hands_over_nothing_else(root, host, what):
    """A student's own program listens where sessions do. To close a descriptor
    that it hands over may take as long as it likes."""
    ann, _ = host.people
    s = ann.session().start()   # it chooses the directory
    p = ann.python(PLANTED, str(9), what)
    assert p.stdout.readline() == "ready\n"
    code, said = end(root, f"{ann.name}/9")
    assert code == 1, said
    for copy in copies(root):
        assert list(copy.rglob("*")) == [], said
    p.kill()
    p.communicate()
    assert end(root, f"{ann.name}/1")[0] == 0
    assert s.wait_exit() is not None


PLANTED = r"""
import array, glob, os, socket, struct, sys
place, = glob.glob(f'/run/cellblock/s/{os.getuid()}') or glob.glob(
    os.path.expanduser('~/.local/state/cellblock/live'))
k = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
k.bind(place + '/' + sys.argv[1])
k.listen(9)
print('ready', flush=True)
kept = []

def lingering():
    # Bytes that nobody reads, for ten minutes.
    heard = socket.create_server(('127.0.0.1', 0))
    t = socket.create_connection(heard.getsockname())
    kept.append(heard.accept())
    t.setblocking(False)
    try:
        while True:
            t.send(b'x' * 65536)
    except BlockingIOError:
        pass
    t.setblocking(True)
    t.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                 struct.pack('ii', 1, 600))
    return t

while True:
    c, _ = k.accept()
    m = c.recv(4096)
    kind, = struct.unpack_from('=H', m, 6)
    head = struct.pack('=IHHiI512s', 0x6b626c63, 1, 1, 0, 0, b'')
    a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if sys.argv[2] == 'linger' and kind == 65:
        kept.append(b)
        b = lingering()
    status = struct.pack('=iIIIqqqqqqqq64s64s32s', os.getpid(), 0, 0, 0, 1, 0,
                         0, -1, 0, 0, 0, 0, b'', b'', b'0.1')
    c.sendmsg([head + status], [(socket.SOL_SOCKET, socket.SCM_RIGHTS,
              array.array('i', [b.fileno()]))] if kind == 65 else [])
    b.close()
    if kind == 65:
        a.send(b'x' * 3000)
    kept += [c, a]
"""
