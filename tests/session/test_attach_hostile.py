# SPDX-License-Identifier: MIT
"""A session's socket, and processes that stall, lie, flood or are not the person's."""
import contextlib
import fcntl
import os
import re
import select
import signal
import socket
import stat
import struct
import subprocess
import termios
import threading
import time

import pytest

import hindered
import hosttree
import term
from lingering import (ATTACH, COUNT, END, MAGIC, NO, OK, STATUS, VERSION,
                       ask, door, drop, namespace, request, send)
from world import CELLBLOCK, IS_ROOT

# Root's sessions and a person's have their sockets in different places.
pytestmark = pytest.mark.both


@pytest.fixture(name="ns")
def own_namespace():
    fd = namespace()
    yield fd
    os.close(fd)


def test_only_who_has_our_namespace_is_heard(many, ns):
    many.start()
    path = many.socket()
    assert ask(path, request(STATUS), [ns])[0] == OK
    assert ask(path, request(STATUS), []) is None
    with open("/dev/null", "rb") as null:
        assert ask(path, request(STATUS), [null.fileno()]) is None
    other = os.open("/proc/self/ns/net", os.O_RDONLY)
    assert ask(path, request(STATUS), [other]) is None
    os.close(other)


def test_a_malformed_request_is_dropped(many, ns):
    s = many.start()
    path = many.socket()
    for data in (b"", b"x", request(STATUS)[:100], request(STATUS, magic=1),
                 request(STATUS) * 5):
        if data:
            assert ask(path, data, [ns]) is None, data[:20]
    assert ask(path, request(99), [ns])[0] in (OK, NO)
    assert ask(path, request(STATUS), [ns] * 20) is None
    assert ask(path, request(STATUS), [ns])[0] == OK
    assert s.run("1 + 1") == "2"


def test_what_is_no_terminal_is_refused(many, ns):
    s = many.start()
    path = many.socket()
    with open("/dev/null", "r+b") as null:
        no = null.fileno()
        assert ask(path, request(ATTACH), [ns, no, no, no]) == \
            (NO, "standard input, output and errors must be a terminal")
    assert ask(path, request(ATTACH), [ns]) == \
        (NO, "standard input, output and errors must be a terminal")
    assert s.run("1 + 1") == "2"


def test_another_build_is_told_so_and_can_still_end_it(many, ns):
    s = many.start()
    path = many.socket()
    word, text = ask(path, request(ATTACH, version=VERSION + 1), [ns])
    assert word == NO and "another build" in text
    assert ask(path, request(STATUS, version=9, rest=0), [ns])[0] == OK
    assert ask(path, request(END, version=9, rest=500), [ns])[0] == OK
    s.wait_exit()


def test_who_stalls_or_floods_does_not_keep_others_out(many, ns):
    s = many.start("-t", "60s")
    path = many.socket()
    with contextlib.ExitStack() as stack:
        for _ in range(100):
            stack.enter_context(door(path))
            assert ask(path, request(STATUS), [ns])[0] == OK
    assert s.run("1 + 1") == "2"
    row = s.enter(COUNT)
    s.expect_since(row, "^n 1$")
    for _ in range(100):
        assert ask(path, request(STATUS), [ns])[0] == OK
    s.expect_since(row, "^n 39$")


@pytest.mark.root
def test_a_neighbour_is_not_heard(many, ns):
    if not IS_ROOT:
        pytest.skip("being somebody else takes root")
    many.start()
    path = many.socket()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    # Even where the way to it is open.
    here = os.open(path, os.O_PATH)
    path.chmod(0o666)
    pid = os.fork()
    if not pid:
        code = 1
        try:
            os.setgid(65534)
            os.setuid(65534)
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as k:
                k.settimeout(term.DEADLINE)
                k.connect(f"/proc/self/fd/{here}")
                try:
                    send(k, request(STATUS), [ns])
                    code = 0 if not k.recv(4096) else 2
                except ConnectionError:
                    code = 0
        finally:
            os._exit(code)
    os.close(here)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert ask(path, request(STATUS), [ns])[0] == OK


@pytest.mark.parametrize("what", ["link", "open", "file", "full"])
def test_a_bad_directory_means_no_lingering(many, what):
    place = many.places[0]
    place.parent.mkdir(parents=True)
    elsewhere = many.cb.base / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    if what == "link":
        place.symlink_to(elsewhere)
    elif what == "file":
        place.write_text("")
    else:
        place.mkdir()
        place.chmod(0o777 if what == "open" else 0o700)
    if what == "full":
        for i in range(1, 1001):
            (place / str(i)).write_text("")
    s = many.start()
    assert s.run("1 + 1") == "2"
    s.type(":detach\r")
    s.expect("nobody could come back to this session")
    assert list(elsewhere.iterdir()) == []
    tree = many.cb.tree(s)
    drop(s)
    tree.wait_gone()
    if what == "full":
        assert len(list(place.iterdir())) == 1000
        for f in place.iterdir():
            f.unlink()


def test_a_dead_socket_is_swept_and_only_that(many):
    place = many.places[0]
    place.mkdir(parents=True, mode=0o700)
    place.chmod(0o700)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as k:
        here = os.open(place, os.O_RDONLY)
        k.bind(f"/proc/self/fd/{here}/1")
        os.close(here)
    (place / "2").write_text("not a socket")
    (place / "x").write_text("")
    (place / "3").symlink_to("/nowhere")
    s = many.start()
    assert (place / "1").is_socket()
    assert (place / "2").read_text() == "not a socket"
    assert s.run("1 + 1") == "2"
    assert many.only()["id"] == 1
    s.process.kill()
    os.kill(many.registry()[0]["pid"], signal.SIGKILL)
    hosttree.until(lambda: [e for e in many.registry() if e["id"] == 1] == [],
                   "the socket to be swept")
    assert sorted(p.name for p in place.iterdir()) == ["2", "3", "x"]
    for p in place.iterdir():
        p.unlink()


def test_a_session_that_does_not_answer_is_listed(many):
    s = many.start()
    e = many.only()
    os.kill(e["pid"], signal.SIGSTOP)
    try:
        silent, = many.registry()
        assert not silent["answers"] and silent["pid"] == e["pid"], silent
        assert abs(silent["since"] - e["since"]) < 60, (silent, e)
        line = many.cb.run("--sessions").text.split("\n")[1]
        assert f"pid {e['pid']} does not answer" in line, line
        assert re.search(r" \d\d:\d\d ", line), line
    finally:
        os.kill(e["pid"], signal.SIGCONT)
    assert many.until(lambda e: e["answers"], "an answer")["id"] == e["id"]
    assert s.run("1 + 1") == "2"


def answer_as_of(listener, build, ends):
    """Answer as a session of that build does, which knows less of itself."""
    listener.settimeout(0.05)
    while not ends.is_set():
        try:
            k, _ = listener.accept()
        except TimeoutError:
            continue
        with k:
            _, fds, *_ = socket.recv_fds(k, 4096, 8)
            for fd in fds:
                os.close(fd)
            status = struct.pack("=iIIIqqqqqqqq64s64s32s", os.getpid(), 3, 0, 0,
                                 int(time.time()), 5000, 5000, -1, 0, 0, 0, 0,
                                 b"me", b"pts/1", build)
            # On a busy host the list does not wait for this.
            with contextlib.suppress(ConnectionError):
                k.send(struct.pack("=IHHiI512s", MAGIC, VERSION, OK, 0, 0, b"")
                       + status)


@pytest.mark.parametrize("build, shown", [(b"0.0.9", "(cellblock 0.0.9)"),
                                          (b"", "(another build)")])
def test_a_session_of_another_build_is_said_to_be_one(many, build, shown):
    many.start().run("1")
    assert "build" not in many.cb.run("--sessions").text
    path = many.socket().parent / "7"
    ends = threading.Event()

    def listed():
        text = many.cb.run("--sessions").text
        return shown in text and text
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as k:
        here = os.open(path.parent, os.O_RDONLY)
        k.bind(f"/proc/self/fd/{here}/7")
        os.close(here)
        k.listen(8)
        other = threading.Thread(target=answer_as_of, args=(k, build, ends))
        other.start()
        try:
            text = hosttree.until(listed, "the other session to be heard")
        finally:
            ends.set()
            other.join()
            path.unlink()
    line, = [row for row in text.split("\n") if shown in row]
    assert line.startswith("7 ") and text.count("build") + \
        text.count("0.0.9") == 1, text


@contextlib.contextmanager
def stuck():
    """A terminal to which a program writes, and that nobody shows."""
    master, slave = os.openpty()
    with subprocess.Popen(["cat", "/dev/zero"], stdout=slave) as writer:
        try:
            hosttree.until(
                lambda: hosttree.status_of(writer.pid)["State"][0] == "S" and
                not select.select([], [slave], [], 0)[1], "it to be full")
            yield slave
        finally:
            writer.kill()
            os.close(slave)
            os.close(master)


def test_a_terminal_that_takes_no_output_is_not_handed_over(many):
    """Writing to it would keep the session from everybody."""
    s = many.start()
    s.run("x = 41")
    with stuck() as slave:
        r = subprocess.run([CELLBLOCK, "--attach"], env=many.cb.env,
                           stdin=slave, stdout=slave, stderr=subprocess.PIPE,
                           timeout=term.DEADLINE, check=False)
    assert r.returncode == 1
    assert b"this terminal takes no output" in r.stderr
    assert not many.only()["detached"]
    assert s.run("x + 1") == "42"


@contextlib.contextmanager
def planted(place, ids):
    """Sockets of nobody's that never answer."""
    place.mkdir(parents=True, exist_ok=True, mode=0o700)
    place.chmod(0o700)
    here = os.open(place, os.O_RDONLY)
    with contextlib.ExitStack() as stack:
        for i in ids:
            k = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            stack.enter_context(k).bind(f"/proc/self/fd/{here}/{i}")
            k.listen(8)
        try:
            yield
        finally:
            os.close(here)
            for i in ids:
                (place / str(i)).unlink()


def test_many_sessions_that_say_nothing_do_not_hold_up_the_list(many):
    """A control is beside them: a session that answers is asked first."""
    many.start()
    assert many.only()["answers"]
    with planted(many.places[0], range(2, 60)):
        def listed():       # the run has a deadline of its own
            rows = many.registry()
            assert len(rows) == 59 and not any(e["answers"] for e in rows[1:])
            return rows[0]["answers"]
        hosttree.until(listed, "the session to be heard beside them")


@pytest.mark.parametrize("session", [True, False])
def test_who_holds_the_lock_does_not_hold_up_the_list(many, session):
    """As many sockets without a listener as there may be, which cannot be swept:
    their person has the lock of the directory."""
    place = many.places[0]
    if session:
        many.start()
        assert many.only()["answers"]
    place.mkdir(parents=True, exist_ok=True, mode=0o700)
    lock = os.open(place, os.O_RDONLY)
    for i in range(2, 902):
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as k:
            k.bind(f"/proc/self/fd/{lock}/{i}")
    fcntl.flock(lock, fcntl.LOCK_EX)
    hosttree.until(             # the run has a deadline of its own
        lambda: [e["answers"] for e in many.registry() if e["id"] == 1] ==
        [True] * session, "the list, with the session that answers")
    os.close(lock)
    # The control: without the lock they are swept.
    hosttree.until(lambda: len(many.registry()) == session, "the sweep")
    assert len(list(place.iterdir())) == session


def test_a_link_leads_to_nobody_elses_session(many):
    """Every socket in the list lies in the directory itself."""
    s = many.start()
    path = many.socket()
    (path.parent / "2").symlink_to(path)
    assert many.only()["id"] == 1
    r = many.cb.run("--end", f"{many.only()['who']}/2")
    assert r.code != 0 and "there is no session" in repr(r)
    (path.parent / "2").unlink()
    assert s.run("1 + 1") == "2"


def test_a_terminal_is_not_left_with_a_session_that_says_nothing(many):
    """A session does not take the terminal of a person who gave up waiting."""
    s = many.start()
    e = many.only()
    os.kill(e["pid"], signal.SIGSTOP)
    try:
        many.cb.env.update(hindered.fast(many.cb.base))
        other = many.start("--attach", f"{e['who']}/1", start=False)
        other.expect("the session is busy")
        other.expect("the session did not answer", 40)
        assert other.process.wait(term.DEADLINE) == 1
    finally:
        os.kill(e["pid"], signal.SIGCONT)
    assert many.until(lambda e: e["answers"], "an answer")["id"] == 1
    assert not many.only()["detached"]
    assert s.run("1 + 1") == "2"
    assert termios.tcgetattr(other.slave) == other.before


def test_a_person_need_not_wait_for_a_session_that_says_nothing(many):
    s = many.start()
    e = many.only()
    os.kill(e["pid"], signal.SIGSTOP)
    try:
        other = many.start("--attach", f"{e['who']}/1", start=False)
        other.expect("has not answered yet; Ctrl-C gives up")
        other.type("\x03")
        other.expect("interrupted: the session goes on without you")
        assert other.process.wait(term.DEADLINE) == 1
    finally:
        os.kill(e["pid"], signal.SIGCONT)
    assert s.run("1 + 1") == "2"    # and was not interrupted
    assert "KeyboardInterrupt" not in s.all_text()


def test_a_line_for_input_goes_on_at_another_terminal(many):
    s = many.start()
    s.run("import threading, time; y = 0")
    row = s.enter("x = input('? ')")
    s.expect_since(row, r"^\?$")
    s.type("abd\x1b[D")
    s.wait(lambda: s.screen.cursor_row() == "? abd"
           and s.screen.cursor.x == 4, "the line")
    many.lose(s)
    t = many.start("--attach", start=False)
    t.wait(lambda: t.screen.cursor_row().endswith("abd"), "the line")
    t.type("\x1b[D" * 9 + "_\x05c\r")
    t.wait_prompt()
    assert t.run("x") == "'_abdc'"
    assert t.leave() == 0
