# SPDX-License-Identifier: MIT
"""cellblock --serve: its sockets, and its messages to a service manager."""
import contextlib
import os
import re
import shutil
import signal
import socket
import stat
import struct
import subprocess

import pytest

import deadserver
import hindered
import hosttree
from client import SLOW, Server, evaluation, read_all, request
from world import CELLBLOCK, IS_ROOT, PYTHON, TESTS

HEALTH = request("GET", "/health", b"", "Connection: close")


# A kernel before 6.16 has no SO_PASSRIGHTS, which refuses descriptors when they
# are sent.
OLD = (PYTHON, "-B", str(TESTS / "fallback" / "without.py"), "ENOPROTOOPT",
       "setsockopt=83", "--")


def stuck(listener):
    """A socket whose closing takes an hour: data that nobody takes."""
    s = socket.create_connection(listener.getsockname())
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                 struct.pack("ii", 1, 3600))
    s.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while True:
            s.send(b"x" * 65536)
    s.setblocking(True)
    return s


@pytest.mark.parametrize("kernel", [(), OLD], ids=["new", "old"])
def test_descriptors_that_clients_send_hold_nobody_up(serve, cb, kernel):
    """Each is one whose last copy is on its way to the server. That reads it
    with a request or behind one, gives up a slow head, or makes room."""
    server = serve("-s", "serve.clients=12", where=f"unix:{cb.base}/s",
                   wrapper=kernel)
    whole = request("GET", "/health")
    refused = []

    def send(first, data, flags=0):
        """Returns what is answered, as far as it has come."""
        s = stack.enter_context(server.connect())
        s.sendall(first)
        one = stuck(listener)
        peers.append(stack.enter_context(listener.accept()[0]))
        try:
            socket.send_fds(s, [data], [one.fileno()], flags)
        except PermissionError:
            refused.append(data)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                           struct.pack("ii", 1, 0))
        one.close()             # at once: it is not the last, or lingers not
        return s

    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        peers = []
        send(b"", whole)
        send(whole, whole)
        send(whole[:9], b"x")
        send(whole[:9] + b"\0", b"x" * 99)
        send(b"", b"x", socket.MSG_OOB)
        send(b"x" * 150_000, b"x").close()
        for _ in range(20):
            s = stack.enter_context(server.connect())
            s.sendall(whole)
            assert b"200 OK" in s.recv(999)
    assert len(refused) == (0 if kernel else 6)


# ---- addresses ----

def test_port_0_is_any_and_is_said(serve):
    assert serve(where="127.0.0.1:0").port > 0


def test_ipv6(serve):
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("there is no IPv6")
    server = serve(where="[::1]:0")
    with socket.create_connection(("::1", server.port), SLOW) as s:
        s.sendall(HEALTH)
        assert read_all(s).startswith(b"HTTP/1.1 200 ")


def test_a_busy_port_says_what_to_do(cb):
    with socket.create_server(("127.0.0.1", 0)) as s:
        r = cb.run("--serve", "127.0.0.1:%d" % s.getsockname()[1])
    assert r.code != 0 and "in use" in r.said and "ss -ltnp" in r.said, r


def test_an_address_of_another_host(cb):
    r = cb.run("--serve", "192.0.2.1:8060")
    assert r.code != 0 and "no such address" in r.said, r


def test_whoever_serves_all_is_told(serve):
    said = serve(where="0.0.0.0:0").said
    assert "everybody" in said and "serve.token_file" in said
    assert "everybody" not in serve().said


def test_a_socket_is_for_owner_and_group(serve, cb):
    path = cb.base / "s"
    old = os.umask(0)
    try:
        server = serve(where=f"unix:{path}")
    finally:
        os.umask(old)
    assert stat.S_IMODE(path.stat().st_mode) == 0o660
    assert server.raw(HEALTH).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_socket_goes_with_its_server(serve, cb, how):
    path = cb.base / "s"
    server = Server(cb, where=f"unix:{path}")
    assert stat.S_ISSOCK(path.lstat().st_mode)
    server.process.send_signal(how)
    server.process.wait(SLOW)
    server.tree.wait_gone()
    hosttree.until(lambda: not path.exists(), "the socket to go")
    # Its place is taken, and not left, by whatever else comes there.
    server = Server(cb, where=f"unix:{path}")
    path.unlink()
    path.write_text("mine")
    assert server.end() == 0 and path.read_text() == "mine"


def left_behind(path):
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(str(path))
        s.listen()


def test_a_socket_that_was_left_behind_is_taken_over(serve, cb):
    path = cb.base / "s"
    left_behind(path)
    assert serve(where=f"unix:{path}").raw(HEALTH).startswith(
        b"HTTP/1.1 200 ")


def test_the_last_child_of_a_dead_server_is_waited_for(serve, cb):
    with deadserver.at(cb.base / "s", "SOCK_STREAM", 1):
        assert serve(where=f"unix:{cb.base}/s").raw(HEALTH).startswith(
            b"HTTP/1.1 200 ")


def test_the_socket_of_a_server_that_goes_on_in_a_child_stays(cb):
    """As that of ssh-agent."""
    path = cb.base / "s"
    cb.env.update(hindered.fast(cb.base))
    with deadserver.at(path, "SOCK_STREAM", 600):
        r = cb.run("--serve", f"unix:{path}", timeout=60)
        assert r.code == 1 and "another server answers there" in r.said, r
        assert "waiting for the end of its children" in r.said, r
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(str(path))


def test_another_servers_socket_stays(serve, cb):
    path = cb.base / "s"
    server = serve(where=f"unix:{path}")
    r = cb.run("--serve", f"unix:{path}")
    assert r.code != 0 and "another server answers there" in r.said, r
    assert server.raw(HEALTH).startswith(b"HTTP/1.1 200 ")
    # One that came to its path later stays when the first ends.
    path.unlink()
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(str(path))
        s.listen()
        assert server.end() == 0
        assert path.exists()


@pytest.mark.root
@pytest.mark.skipif(not IS_ROOT, reason="needs two users")
def test_a_socket_of_another_user_stays(cb):
    path = cb.base / "s"
    left_behind(path)
    os.chown(path, 1, 1)
    r = cb.run("--serve", f"unix:{path}")
    assert r.code != 0 and "another user's" in r.said, r
    assert path.exists()


def test_what_is_no_socket_stays(cb):
    file = cb.base / "f"
    file.write_text("mine")
    link = cb.base / "l"
    link.symlink_to(file)
    for path in file, link, cb.base:
        r = cb.run("--serve", f"unix:{path}")
        assert r.code != 0 and "no socket, and stays" in r.said, r
    assert file.read_text() == "mine"
    for path in cb.base / ("x" * 200), cb.base / "no/such":
        r = cb.run("--serve", f"unix:{path}")
        assert r.code != 0 and "listen at" in r.said, r


# ---- sockets that are passed ----

def passed(sockets, *args, pid="$$"):
    """What runs cellblock with these sockets as descriptors 3 and on."""
    moves = " ".join(f"{3 + i}<&{s.fileno()}" for i, s in enumerate(sockets))
    line = (f"export LISTEN_PID={pid} LISTEN_FDS={len(sockets)}; "
            f"exec {CELLBLOCK} {' '.join(args)} {moves}")
    return ["bash", "-c", line]


def start(cb, sockets, *args, **more):
    p = subprocess.Popen(
        passed(sockets, *args), stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        pass_fds=[s.fileno() for s in sockets], env=cb.env, **more)
    return p, p.stderr.readline().decode()


def end(p):
    p.send_signal(signal.SIGTERM)
    assert p.wait(SLOW) == 0, p.stderr.read()
    p.stderr.close()


@pytest.fixture(name="listeners")
def _listeners(tmp_path):
    """One of each kind, with descriptors that collide with nothing below 20."""
    with contextlib.ExitStack() as stack:
        made = []
        for make in (lambda: socket.create_server(("127.0.0.1", 0)),
                     lambda: socket.socket(socket.AF_UNIX)):
            with make() as s:
                if s.family == socket.AF_UNIX:
                    s.bind(str(tmp_path / "s"))
                    s.listen()
                s = stack.enter_context(socket.socket(fileno=os.dup2(
                    s.fileno(), 20 + len(made))))
                made.append(s)
        yield made


def test_sockets_are_taken_over(cb, listeners):
    p, said = start(cb, listeners, "--serve")
    tcp, unix = listeners
    port = tcp.getsockname()[1]
    assert f"127.0.0.1:{port} and unix:{unix.getsockname()}" in said, said
    for s in listeners:
        with socket.socket(s.family) as c:
            c.settimeout(SLOW)
            c.connect(s.getsockname())
            c.sendall(evaluation("print(6 * 7)", "Connection: close"))
            assert b'"42\\n"' in read_all(c)
    end(p)
    # It was ours all the time: the next server goes on with it.
    p, said = start(cb, listeners, "--serve")
    assert f":{port} " in said
    end(p)


def test_sockets_of_another_process_are_not_taken(cb, listeners):
    r = subprocess.run(
        passed(listeners, "--serve", "nowhere", pid="1"), env=cb.env,
        pass_fds=[s.fileno() for s in listeners], capture_output=True,
        text=True, check=False)
    assert "wants ADDRESS:PORT" in r.stderr
    r = subprocess.run(
        passed(listeners, "--serve", "127.0.0.1:0"), env=cb.env,
        pass_fds=[s.fileno() for s in listeners], capture_output=True,
        text=True, check=False)
    assert r.returncode != 0 and "service manager" in r.stderr


def test_what_does_not_listen_is_refused(cb):
    with socket.socket() as s, socket.socket(type=socket.SOCK_DGRAM) as d, \
            open("/dev/null", encoding="ascii") as f:
        for what in s, d, f:
            with open(os.dup2(what.fileno(), 20), "rb", 0) as moved:
                r = subprocess.run(
                    passed([moved], "--serve"), env=cb.env, pass_fds=[20],
                    capture_output=True, text=True, check=False)
            assert r.returncode != 0, r
            assert "descriptor 3 does not listen" in r.stderr, r


def test_systemd_can_start_it(cb):
    activate = shutil.which("systemd-socket-activate")
    if not activate:
        pytest.skip("there is no systemd-socket-activate")
    path = cb.base / "activated"
    p = subprocess.Popen(
        [activate, "-l", str(path), *[f"-E{k}" for k in cb.env],
         CELLBLOCK, "--serve"],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, env=cb.env)
    try:
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(SLOW)
            hosttree.until(lambda: s.connect_ex(str(path)) == 0, "it listens")
            s.sendall(evaluation("print(6 * 7)", "Connection: close"))
            assert b'"42\\n"' in read_all(s)
    finally:
        p.send_signal(signal.SIGTERM)
        p.wait(SLOW)
        p.stderr.close()


# ---- news ----

@pytest.mark.parametrize("kind", ["path", "abstract"])
def test_a_service_manager_is_told(cb, kind):
    name = str(cb.base / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        s.settimeout(SLOW)
        s.bind(name if kind == "path" else "\0" + name)
        server = Server(cb, env={
            "NOTIFY_SOCKET": name if kind == "path" else "@" + name})
        assert s.recv(100) == b"READY=1"
        assert server("GET", "/health").status == 200
        server.process.send_signal(signal.SIGTERM)
        assert s.recv(100) == b"STOPPING=1"
        assert server.process.wait(SLOW) == 0


def test_news_that_nobody_can_be_told(cb):
    for name in "relative", "/no/such/socket", "@" + "x" * 200:
        r = cb.run("--serve", "127.0.0.1:0", env={"NOTIFY_SOCKET": name})
        assert r.code != 0 and "NOTIFY_SOCKET" in r.said, r
