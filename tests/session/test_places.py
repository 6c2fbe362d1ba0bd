# SPDX-License-Identifier: MIT
"""Directories in which a session cannot have its socket, or ought not to: the
next place takes it, or the session does not outlive its terminal and says so."""
import ctypes
import os
import pathlib
import shutil
import signal
import socket
import stat
import threading

import pytest

import hosttree
import term
from lingering import SPOILT, drop, spoil
from world import CELLBLOCK, IS_ROOT

# Root's sessions and a person's have their sockets in different places.
pytestmark = pytest.mark.both

NOBODY = 65534
EXCHANGE = 2    # RENAME_EXCHANGE
# A file system in which directories can be made, and no sockets.
MOUNTS = {"no sockets": "mount -t bpf x {}",
          "no inodes": "mount -t tmpfs -o mode=700,nr_inodes=2 x {}",
          "no space": "mount -t tmpfs -o mode=700,size=4k,nr_inodes=1 x {}"}


def mounted(many, place, what, *args):
    """A session in a mount namespace where that is mounted on a place."""
    s = term.Session(
        ["unshare", "-m", "sh", "-c", 'eval "$0" && exec "$@"',
         MOUNTS[what].format(place), CELLBLOCK, *args],
        env=many.cb.env, cwd=many.cb.work)
    many.cb.open.append(s)
    return s.start()


@pytest.fixture(name="runtime")
def _runtime():
    """The name of root's runtime directory, which is removed again."""
    if not IS_ROOT:
        pytest.skip("making a runtime directory takes root")
    path = pathlib.Path("/run/user/0")
    if path.exists():
        pytest.skip("this host is root's own")
    path.parent.mkdir(exist_ok=True)
    yield path
    shutil.rmtree(path, ignore_errors=True)
    shutil.rmtree("/run/cellblock/s", ignore_errors=True)


# A person's is in maker/test_numbers.py.
@pytest.mark.root
@pytest.mark.parametrize("what", [*SPOILT, *MOUNTS])
def test_the_next_place_takes_the_socket(many, runtime, what):
    if what in MOUNTS:
        runtime.mkdir(mode=0o700)
        s = mounted(many, runtime, what)
    else:
        spoil(runtime, what, 0)
        s = many.start()
    s.run("x = 41")
    assert (many.places[0] / "1").is_socket()
    many.lose(s)
    t = many.start("--attach")
    assert t.run("x + 1") == "42"
    assert t.leave() == 0
    many.none()


@pytest.mark.root
def test_all_sessions_lie_in_the_directory_of_the_first(many, runtime):
    """Also when a better directory appears: the next first session takes it."""
    where = [many.places[0], runtime / "cellblock",
             pathlib.Path("/run/cellblock/s/0")]
    for place in where:
        if place.parent == runtime:
            runtime.mkdir(mode=0o700)
        elif place != where[0]:
            place.mkdir(parents=True, mode=0o700)
        s = many.start()
        s.run("x = 41")
        assert (place / "1").is_socket()
        if place == where[0]:
            runtime.mkdir(mode=0o700)
        elif place.parent == runtime:
            where[2].mkdir(parents=True, mode=0o700)
        t = many.start("--new")
        assert (place / "2").is_socket()
        assert [e["number"] for e in many.registry()] == ["1", "2"]
        assert t.leave() == 0
        many.lose(s)
        t = many.start("--attach", "1")
        assert t.run("x + 1") == "42"
        assert t.leave() == 0
        many.none()
        if place == where[0]:
            runtime.rmdir()
        elif place.parent == runtime:
            where[2].rmdir()


@pytest.mark.parametrize("how", ["detach", "drop"])
def test_a_session_whose_socket_is_gone_does_not_outlive_its_terminal(
        many, how):
    """The last logout removes a runtime directory."""
    s = many.start()
    s.run("x = 41")
    tree = many.cb.tree(s)
    shutil.rmtree(many.places[0])
    if how == "detach":
        s.type(":detach\r")
        s.expect("nobody could come back to this session: its socket was")
        assert s.run("x + 1") == "42"
        assert s.leave() == 0
    else:
        drop(s)
    tree.wait_gone()


@pytest.mark.root
@pytest.mark.parametrize("what", MOUNTS)
def test_a_session_without_a_place_works_and_says_why(
        many, what):
    if not IS_ROOT:
        pytest.skip("mounting takes root")
    state = many.cb.base / "state"
    state.mkdir(mode=0o700)
    many.cb.env["XDG_STATE_HOME"] = str(state)
    s = mounted(many, state, what)
    s.run("x = 41")
    s.type(":detach\r")
    s.expect("nobody could come back to this session: .")
    assert s.run("x + 1") == "42"
    tree = many.cb.tree(s)
    drop(s)
    tree.wait_gone()
    assert many.registry() == []


def exchange(a, b, until):
    """Swap two names, as fast as can be."""
    rename = ctypes.CDLL(None, use_errno=True).renameat2
    a, b = os.fsencode(a), os.fsencode(b)
    while not until.is_set():
        for _ in range(100):
            assert rename(-100, a, -100, b, EXCHANGE) == 0


@pytest.mark.parametrize("other", ["link", "open"])
def test_a_directory_that_is_exchanged_leads_nowhere(
        many, other):
    """While sessions begin, their directory is now and then a link to one that
    all may write to, or such a directory itself."""
    elsewhere = many.cb.base / "elsewhere"
    elsewhere.mkdir()
    elsewhere.chmod(0o777)
    place = many.places[0]
    place.mkdir(parents=True, mode=0o700)
    twin = place.with_name("twin")
    if other == "link":
        twin.symlink_to(elsewhere)
    else:
        elsewhere.rename(twin)
        elsewhere = twin
    until = threading.Event()
    racer = threading.Thread(target=exchange, args=(place, twin, until))
    racer.start()
    try:
        some = [many.start("--new", "-s", "session.per_user=20", start=False)
                for _ in range(6)]
        for s in some:
            s.start()
    finally:
        until.set()
        racer.join()
    if stat.S_IMODE(os.lstat(place).st_mode) != 0o700 or place.is_symlink():
        exchange_once(place, twin)
    assert list((twin if other == "open" else elsewhere).iterdir()) == []
    for s in some:
        assert s.run("40 + 2") == "42"
        assert s.leave() == 0
    many.none()


def exchange_once(a, b):
    spare = a.with_name("spare")
    a.rename(spare)
    b.rename(a)
    spare.rename(b)


@pytest.mark.root
def test_a_socket_that_somebody_has_planted_gets_no_terminal(
        many):
    """In a directory that was open for a while. A process that listens there is not
    the person's: it is not offered, and is not spoken to."""
    if not IS_ROOT:
        pytest.skip("being somebody else takes root")
    place = many.places[0]
    place.mkdir(parents=True, mode=0o700)
    here = os.open(place, os.O_RDONLY)
    heard, tell = os.pipe()
    place.chmod(0o777)
    pid = os.fork()
    if not pid:
        os.close(heard)
        listen_as_nobody(f"/proc/self/fd/{here}/1", tell)
    os.close(tell)
    assert os.read(heard, 1) == b"."
    place.chmod(0o700)
    os.chown(place / "1", 0, 0)
    try:
        for args in ("--attach", "1"), ("--end", "root/1"):
            assert many.cb.run(*args).code != 0
        s = many.start()                # nothing is offered
        assert s.run("40 + 2") == "42"
        hosttree.until(lambda: [e["id"] for e in many.registry()
                                if e["answers"]] == [2], "our own to answer")
        assert s.leave() == 0
        hosttree.until(
            lambda: not any(e["answers"] for e in many.registry()), "its end")
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    said = os.read(heard, 4096)
    assert said and said.strip(b"+") == b""
    os.close(here)
    os.close(heard)


def listen_as_nobody(path, tell):
    """A child: writes "+" for each connection, and the bytes that it gets."""
    try:
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as k:
            k.bind(path)
            k.listen()
            os.write(tell, b".")
            while True:
                with k.accept()[0] as peer:
                    os.write(tell, b"+")
                    try:
                        os.write(tell, peer.recv(4096))
                    except ConnectionError:
                        pass
    finally:
        os._exit(1)
