# SPDX-License-Identifier: MIT
"""Files are exchanged for links while they are copied: on the host by the
person of a locked session, and in the home by a background process."""
import os
import subprocess
import sys

import pytest

from world import WHOLE

# Root's jails have a host id of their own, a person's have the person's.
pytestmark = [pytest.mark.both, pytest.mark.sampled]

# How often a copy is tried; `make test` shows that none goes wrong at once.
COPIES = 40 if WHOLE else 12
# Exchanges two names again and again, until it is killed. The system call 316
# or 276 is renameat2(AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE).
EXCHANGE = """\
import ctypes, os, sys
def exchange(a, b, times=-1):
    call = ctypes.CDLL(None, use_errno=True).syscall
    n = {'x86_64': 316, 'aarch64': 276}[os.uname().machine]
    a, b = a.encode(), b.encode()
    while times:
        if call(n, -100, a, -100, b, 2) != 0:
            raise OSError(ctypes.get_errno(), 'exchange')
        times -= 1
"""


@pytest.fixture
def exchanging(cb):
    """Start exchanging two paths of the host."""
    started = []

    def start(a, b):
        p = subprocess.Popen(
            [sys.executable, "-c",
             EXCHANGE + "print('on', flush=True)\nexchange(*sys.argv[1:])",
             str(a), str(b)], stdout=subprocess.PIPE)
        started.append(p)
        assert p.stdout.readline() == b"on\n"

    yield start
    on = [p.poll() is None for p in started]
    for p in started:
        p.kill()
        p.wait()
        p.stdout.close()
    assert all(on), "the exchanges ended before the test"


@pytest.fixture
def locked(cb):
    """A locked session that may only use up/ and down/, beside a directory
    outside/."""
    for name in ("up", "down", "outside"):
        cb.base.joinpath(name).mkdir()
    cb.base.joinpath("outside", "f").write_text("secret")
    path = cb.config(f"[files]\nupload_from = {cb.base}/up\n"
                     f"download_to = {cb.base}/down\n"
                     "[policy]\nlocked = yes\n")
    return cb.session("-q", "-f", str(path), size=(24, 120))


def contents(s, pattern):
    return s.run(f"import glob; sorted({{open(p).read() for p in"
                 f" glob.glob('{pattern}')}})")


@pytest.mark.parametrize("what", ["file", "directory"])
def test_an_upload_never_reads_outside_its_directory(
        cb, locked, exchanging, what):
    up, outside = cb.base / "up", cb.base / "outside"
    source = up / "f" if what == "file" else up / "d" / "f"
    source.parent.mkdir(exist_ok=True)
    source.write_text("mine")
    link = up / "l"
    link.symlink_to(outside / "f" if what == "file" else outside)
    exchanging(source if what == "file" else up / "d", link)
    for n in range(COPIES):
        locked.run(f":upload {source} /home/n{n}")
    assert contents(locked, "/home/n*") in ("['mine']", "[]")
    (up / "c").write_text("control")
    locked.run(f":upload {up}/c /home/c")
    assert contents(locked, "/home/c") == "['control']"
    assert "secret" not in locked.all_text()


def test_a_tree_is_never_read_outside_its_directory(cb, locked, exchanging):
    tree = cb.base / "up" / "t"
    (tree / "d").mkdir(parents=True)
    (tree / "d" / "f").write_text("mine")
    (tree / "l").symlink_to(cb.base / "outside")
    locked.run(f":upload {tree} /home/control")
    exchanging(tree / "d", tree / "l")
    for n in range(COPIES):
        locked.run(f":upload {tree} /home/n{n}")
    assert contents(locked, "/home/*/*/f") == "['mine']"
    assert contents(locked, "/home/control/d/f") == "['mine']"
    assert "secret" not in locked.all_text()


def test_a_file_that_is_not_exchanged_is_uploaded(cb, locked):
    """The control: a file is uploaded, and a link out of up/ is not."""
    cb.base.joinpath("up", "f").write_text("mine")
    cb.base.joinpath("up", "l").symlink_to(cb.base / "outside" / "f")
    locked.run(f":upload {cb.base}/up/f /home/n1")
    locked.run(f":upload {cb.base}/up/l /home/n2")
    locked.run(f":upload {cb.base}/up/../outside/f /home/n3")
    assert contents(locked, "/home/n*") == "['mine']"


def test_a_download_never_writes_outside_its_directory(cb, locked, exchanging):
    down, outside = cb.base / "down", cb.base / "outside"
    (down / "d").mkdir()
    locked.run(f"for n in range({COPIES + 1}): open(f'n{{n}}', 'w').write('x')")
    locked.run(f":download n{COPIES} {down}/d/")    # the control
    assert (down / "d" / f"n{COPIES}").read_text() == "x"
    (down / "l").symlink_to(outside)
    exchanging(down / "d", down / "l")
    for n in range(COPIES):
        locked.run(f":download n{n} {down}/d/")
    assert os.listdir(outside) == ["f"]
    assert outside.joinpath("f").read_text() == "secret"


@pytest.fixture
def racing(cb):
    """A session whose home changes between cells: f and d alternate with links
    out of the home."""
    outside = cb.base / "outside"
    outside.mkdir()
    (outside / "f").write_text("secret")
    s = cb.session("-q", "--set", "cell.background=run", size=(24, 120))
    s.run(EXCHANGE)
    s.run("open('f', 'w').write('mine'); os.mkdir('d');"
          " open('d/f', 'w').write('mine'); None")
    s.run(f"os.symlink('{outside}/f', 'l'); os.symlink('{outside}', 'm')")
    s.run("if not (pid := os.fork()):\n"
          "    while True: exchange('f', 'l', 1); exchange('d', 'm', 1)\n")
    yield s
    assert s.run("os.waitpid(pid, os.WNOHANG)") == "(0, 0)"


def test_a_download_never_reads_outside_the_home(cb, racing):
    for n in range(COPIES):
        cb.work.joinpath(f"n{n}").mkdir()
        racing.run(f":download {'f' if n % 2 else 'd/f'} n{n}/")
    got = list(cb.work.glob("n*/f"))
    assert {p.read_text() for p in got} == {"mine"}
    assert not any(p.is_symlink() for p in got)


def test_a_tree_is_never_read_outside_the_home(cb, racing):
    racing.run("os.mkdir('/home/t'); os.mkdir('/home/t/d');"
               " open('/home/t/d/f', 'w').write('mine');"
               f" os.symlink('{cb.base}/outside', '/home/t/m')")
    racing.run("if not (two := os.fork()):\n"
               "    while True: exchange('/home/t/d', '/home/t/m', 1)\n")
    for n in range(COPIES):
        cb.work.joinpath(f"n{n}").mkdir()
        racing.run(f":download t n{n}/")
    got = [p for p in cb.work.rglob("*") if not p.is_dir() or p.is_symlink()]
    assert {p.read_text() for p in got} == {"mine"}
    assert not any(p.is_symlink() for p in got)


def test_an_upload_never_writes_outside_the_home(cb, racing):
    cb.work.joinpath("new").write_text("theirs")
    for n in range(COPIES):
        racing.run(f":upload new /home/d/n{n}")
    racing.run(":upload new /home/control")
    assert contents(racing, "/home/control") == "['theirs']"
    assert os.listdir(cb.base / "outside") == ["f"]


def test_rm_never_removes_a_file_outside_the_home(cb, racing):
    """:rm of a path whose directory alternates with a link out of the home."""
    outside = cb.base / "outside"
    racing.run("open('/home/n0', 'w').close()")
    for n in range(COPIES):
        (outside / f"n{n}").write_text("")
        racing.run(f":rm d/n{n}")
    assert len(os.listdir(outside)) == COPIES + 1
    assert "removed" in racing.run(":rm n0")        # the control
