# SPDX-License-Identifier: MIT
"""cellblock --sessions and --end: the sessions of a server."""
import contextlib
import json
import os
import pathlib
import pwd
import shutil
import signal
import socket
import subprocess

import pytest

import hosttree
from client import JSON, LONG
from test_sessions import warden_of
from world import IS_ROOT, TESTS

SESSIONS = "/v1/sessions"
ETC = TESTS.parent / "etc"


def begin(server, *more):
    r = server.curl("POST", SESSIONS, {}, *more)
    assert r.status == 201, r
    return r.json["id"]


def cell(server, session, code):
    return server.curl("POST", f"{SESSIONS}/{session}/cells", {"code": code})


def state_of(server, session):
    return server.curl("GET", f"{SESSIONS}/{session}")


def look(cb):
    r = cb.run("--sessions", "--json")
    assert r.code == 0, r
    return {s["number"]: s for s in json.loads(r.text)}


def listed(cb):
    """The list, once all in it answer: on a busy host it does not wait for
    that."""
    found = {}

    def answers():
        found.clear()
        found.update(look(cb))
        return all(s["answers"] for s in found.values())
    hosttree.until(answers, lambda: found)
    return found


def directory(cb):
    return cb.home / ".local/state/cellblock/live"


@contextlib.contextmanager
def place(cb, number):
    """A short path of a socket there."""
    fd = os.open(directory(cb), os.O_RDONLY)
    try:
        yield f"/proc/self/fd/{fd}/{number}"
    finally:
        os.close(fd)


def test_sessions_of_a_server_are_listed(serve, cb):
    server = serve()
    assert listed(cb) == {}
    first, second = begin(server), begin(server, "--interface", "127.0.0.2")
    assert cell(server, second, "x = 1").status == 200
    found = listed(cb)
    assert list(found) == ["s1.1", "s1.2"]
    assert [s["from"] for s in found.values()] == ["127.0.0.1", "127.0.0.2"]
    assert {s["server"] for s in found.values()} == \
        {f"127.0.0.1:{server.port}"}
    assert [s["cell"] for s in found.values()] == [0, 1]
    assert {s["pid"] for s in found.values()} == {server.process.pid}
    lines = cb.run("--sessions").text.splitlines()
    assert f"127.0.0.2 at 127.0.0.1:{server.port}" in lines[2], lines
    # The id, which is a secret, is not among what is told.
    assert first not in str(found) and first not in str(lines)
    another = serve()
    begin(another)
    assert list(listed(cb)) == ["s1.1", "s1.2", "s2.1"]


def test_a_session_is_ended_and_its_client_is_told(serve, cb):
    server = serve()
    ids = [begin(server) for _ in range(3)]
    r = cb.run("--end", "s1.2", "-m", "the host is\nupdated")
    assert r.code == 0 and r.text.startswith("ended session s1.2 of "), r
    r = state_of(server, ids[1])
    assert r.status == 410 and r.json["detail"] == \
        "The session is over: the operator ended it: the host is\nupdated"
    assert cell(server, ids[1], "1").status == 410
    assert list(listed(cb)) == ["s1.1", "s1.3"]
    # controls: the others work; no number comes twice; an ended session stays so
    assert cell(server, ids[0], "6 * 7").json["output"] == "42\n"
    begin(server)
    assert list(listed(cb)) == ["s1.1", "s1.3", "s1.4"]
    for name in "s1.2", "s1.9", "s2.1", "s1", "1001":
        r = cb.run("--end", name)
        assert r.code == 1 and f"no session {name}" in r.said, r
    r = cb.run("--end", "all")
    assert r.code == 0 and len(r.text.splitlines()) == 3, r
    assert listed(cb) == {} and server.figures()["sessions"] == 0
    server.await_rest()
    assert cell(server, begin(server), "1").status == 200


def test_a_cell_that_runs_is_ended_with_its_session(serve, cb):
    server = serve(*LONG)
    session = begin(server)
    for stream in [], ["-H", "Accept: text/event-stream"]:
        with subprocess.Popen(
                ["curl", "-sS", *stream, "-H", "Content-Type: application/json",
                 "-d", json.dumps({"code": "import time; time.sleep(99)"}),
                 f"{server.url}{SESSIONS}/{session}/cells"],
                stdout=subprocess.PIPE) as p:
            name, = hosttree.until(
                lambda: [n for n, s in listed(cb).items() if s["running"]],
                "it runs")
            assert cb.run("--end", name).code == 0
            said = p.stdout.read().decode()
        assert "the operator ended it" in said, said
        assert ("event: error" in said) == bool(stream)
        session = begin(server)
    assert state_of(server, session).status == 200


def test_they_are_no_sessions_of_a_prompt(serve, cb):
    server = serve("-s", "serve.sessions=8")
    session = begin(server)
    for args in (["--watch", "s1.1"], ["--message", "s1.1", "hello"]):
        r = cb.run(*args)
        assert r.code == 1 and "has no terminal" in r.said, r
    for _ in range(4):          # as many as session.per_user
        begin(server)
    # No question comes, and the person's first session is number 1.
    s = cb.session("-s", "session.linger=10m")
    assert "1" in listed(cb) and len(listed(cb)) == 6
    s.run("6 * 7")
    assert cb.run("--end", "1").code == 0
    assert state_of(server, session).status == 200


def test_what_asks_badly_holds_nobody_up(serve, cb):
    server = serve()
    begin(server)
    kept = []
    for data in (b"", b"x", b"\0" * 700, os.urandom(5000)) * 5:
        s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with place(cb, 1001) as path:
            s.connect(path)
        if data:
            s.send(data)
        kept.append(s)
    assert server("GET", "/health").status == 200
    hosttree.until(lambda: list(look(cb)) == ["s1.1"], "it answers", 20)
    for s in kept:
        s.close()


def test_what_answers_badly_is_said(serve, cb):
    serve()                     # makes the directory
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
        with place(cb, 1002) as path:
            s.bind(path)
        s.listen()
        found = look(cb)        # nobody accepts
        assert found["s2"]["answers"] is False
        assert "does not answer" in cb.run("--sessions").text
    # Without a listener, the socket is removed.
    assert listed(cb) == {} and not (directory(cb) / "1002").exists()


def test_a_server_that_is_gone_leaves_no_entry(serve, cb):
    server = serve()
    begin(server)
    assert list(listed(cb)) == ["s1.1"]
    assert server.end() == 0
    assert listed(cb) == {}
    assert [p.name for p in directory(cb).iterdir()] == []
    again = serve()
    again("POST", SESSIONS, b"", JSON)
    assert list(listed(cb)) == ["s1.1"]


def test_without_a_place_for_the_socket_it_serves(serve, cb):
    (cb.home / ".local").write_text("no directory")
    server = serve()
    assert cell(server, begin(server), "6 * 7").json["output"] == "42\n"
    assert cb.run("--sessions", "--json").text.strip() == "[]"


def test_no_socket_where_sessions_have_none(serve, cb):
    server = serve("-s", "session.attach=no")
    assert cell(server, begin(server), "6 * 7").json["output"] == "42\n"
    assert listed(cb) == {} and not directory(cb).exists()


def test_what_sessions_use_is_listed(serve, cb):
    server = serve("-s", "cell.timeout=60s")
    large, small = begin(server), begin(server)
    busy = "import time; s = time.process_time()\n" \
           "while time.process_time() < s + 0.4: pass"
    assert cell(server, large, "x = b'1' * (100 << 20)").status == 200
    assert cell(server, small, "open('f', 'w').write('x' * 5000)\n"
                + busy).status == 200

    def used():
        """The list shows the use of both; on a busy host some time after it."""
        first, second = found = list(listed(cb).values())
        return first["memory_bytes"] > 100 << 20 and \
            second["memory_bytes"] > 1 << 20 and second["home_files"] and found

    first, second = hosttree.until(used, lambda: listed(cb))
    assert first["memory_bytes"] < 300 << 20, first
    assert second["memory_bytes"] < 100 << 20, second
    assert second["cpu_ms"] >= 400 and first["home_files"] == 0, (first, second)
    assert second["home_files"] == 1 and second["home_bytes"] >= 5000, second
    line = cb.run("--sessions").text.splitlines()[2]
    assert " MiB" in line and "1 file" in line, line
    # To be looked at is no request of the client.
    assert state_of(server, large).json["idle_ms"] > 0
    # While a cell runs it is told, too.
    with subprocess.Popen(
            ["curl", "-sS", "-H", "Content-Type: application/json",
             "-d", json.dumps({"code": "y = b'1' * (60 << 20)\n" + busy +
                               "\nimport time; time.sleep(99)"}),
             f"{server.url}{SESSIONS}/{small}/cells"],
            stdout=subprocess.DEVNULL):
        def now():
            s = listed(cb)["s1.2"]
            return s["running"] and s["cpu_ms"] >= 800 and \
                s["memory_bytes"] > 60 << 20
        hosttree.until(now, "it uses more", 30)
        assert cb.run("--end", "s1.2").code == 0


def test_a_session_that_hangs_is_listed(serve, cb):
    server = serve(spare=0)
    begin(server)
    warden = warden_of(server)
    hosttree.until(lambda: listed(cb)["s1.1"]["memory_bytes"] > 0,
                   "it is weighed")
    os.kill(warden, signal.SIGSTOP)
    try:
        assert listed(cb)["s1.1"]["memory_bytes"] > 0   # as it was before
        assert server("GET", "/health").status == 200
    finally:
        os.kill(warden, signal.SIGCONT)


@pytest.fixture(name="unit_user")
def _unit_user(cb):
    """The user of etc/systemd, with a home that only it may use."""
    sysusers = shutil.which("systemd-sysusers")
    if not sysusers:
        pytest.skip("there is no systemd-sysusers")
    home, rules = cb.base / "serve-home", cb.base / "sysusers.conf"
    text = (ETC / "sysusers.d/cellblock.conf").read_text()
    assert "/var/lib/cellblock-serve\n" in text
    rules.write_text(text.replace("/var/lib/cellblock-serve", str(home)))
    before = {p: p.read_bytes() for p in map(pathlib.Path, (
        "/etc/passwd", "/etc/group", "/etc/shadow", "/etc/gshadow"))
        if p.exists()}
    subprocess.run([sysusers, str(rules)], check=True)
    cb.let_in(cb.base)
    home.mkdir(mode=0o700)
    who = pwd.getpwnam("cellblock-serve")
    os.chown(home, who.pw_uid, who.pw_gid)
    yield who
    for path, data in before.items():
        path.write_bytes(data)


@pytest.mark.root
@pytest.mark.skipif(not IS_ROOT, reason="only root sees the sessions of others")
def test_root_sees_and_ends_the_sessions_of_the_units_server(
        serve, cb, unit_user):
    """As etc/systemd starts it: that user, its home, no group, a umask."""
    server = serve(user=unit_user.pw_uid, group=unit_user.pw_gid,
                   extra_groups=[], umask=0o077,
                   env={"HOME": unit_user.pw_dir})
    session = begin(server)
    name = "cellblock-serve/s1.1"

    def is_weighed():
        # Other people may have sessions.
        found, = [s for s in json.loads(cb.run("--sessions", "--json").text)
                  if s["who"] == "cellblock-serve"]
        assert found["number"] == "s1.1" or not found["answers"], found
        return found["answers"] and found["memory_bytes"] > 0

    hosttree.until(is_weighed, "it is weighed")
    assert "read again" in server.reload()
    assert name in cb.run("--sessions").text
    r = cb.run("--end", name, "-m", "the host is updated")
    assert r.code == 0, r
    r = state_of(server, session)
    assert r.status == 410 and "the host is updated" in r.json["detail"], r
