# SPDX-License-Identifier: MIT
"""cellblock --serve where there are few descriptors, and no jail can be made."""
import concurrent.futures
import json
import os
import pathlib
import re
import resource
import subprocess

import pytest

import hindered
import hosttree
import inflight
from client import JSON, LONG, SLOW, request

SLEEP = "import time; time.sleep(2)\n"
HEALTH = request("GET", "/health")
SMALL = ("-s", "serve.sessions=2", "-s", "serve.concurrent=2")


def limited(n):
    return {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_NOFILE,
                                                     (n, n))}


def starts(cb, n, *args):
    """The message of a server that has so many descriptors, and its exit status."""
    with cb.popen(*args, "--serve", "127.0.0.1:0", stdin=subprocess.DEVNULL,
                  stderr=subprocess.PIPE, **limited(n)) as p:
        said = p.stderr.readline().decode()
        if "serving at" in said:
            said += p.stderr.readline().decode()
            p.terminate()
        return said + p.stderr.read().decode(), p.wait(SLOW)


def test_few_descriptors_are_said(cb):
    said, code = starts(cb, 900)
    few = re.search(r"to (\d+) clients at a time instead of serve\.clients",
                    said)
    assert few and code == 0, said
    said, code = starts(cb, 1200)
    more = re.search(r"to (\d+) clients", said)
    assert int(more[1]) - int(few[1]) == 300, "one for each client"
    said, code = starts(cb, 900, "-s", "serve.files=100000")
    assert f"to {few[1]} clients" in said, "none for a file"
    # Each session takes some, too.
    said, code = starts(cb, 900, "-s", "serve.sessions=100")
    needs = re.search(r"900 descriptors are too few: (\d+), and one", said)
    assert needs and code != 0, said
    # control: what it needs is enough
    said, code = starts(cb, int(needs[1]) + 1, "-s", "serve.sessions=100")
    assert "to 1 clients at a time" in said and code == 0, said


@pytest.mark.alone      # others of this user may have more in flight
def test_as_many_are_served_as_are_promised(serve):
    """All clients stay, and every session and request is served among them."""
    needs = 32 + 8 + 2 * 10 + 2 * 8     # serve.c: share_descriptors()
    server = serve(*SMALL, *LONG, **limited(needs + 12))
    assert "to 12 clients" in server.process.stderr.readline().decode()
    sessions = [server("POST", "/v1/sessions", b"", JSON).json["id"]
                for _ in range(2)]
    asked = [(f"/v1/sessions/{i}/cells", {"code": SLEEP + "6 * 7"})
             for i in sessions]
    asked += [("/v1/execute", {"code": SLEEP + "6 * 7", "timeout_ms": 60000}),
              ("/eval", {"input": SLEEP + "print(42)"})] * 2
    kept = [server.connect() for _ in range(6)]
    try:
        with concurrent.futures.ThreadPoolExecutor(len(asked)) as pool:
            got = list(pool.map(lambda a: server.curl("POST", *a), asked))
        assert [r.status for r in got] == [200] * 6, got
        assert all("42" in (r.json.get("stdout") or r.json["output"])
                   for r in got), got
        for s in kept:
            s.sendall(HEALTH)
            assert s.recv(1000).startswith(b"HTTP/1.1 200 "), "it stayed"
    finally:
        for s in kept:
            s.close()


def test_a_quiet_server_says_it_in_the_log(cb):
    with cb.popen("--quiet", "--serve", "127.0.0.1:0",
                  stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                  **limited(900)) as p:
        line = json.loads(p.stderr.readline())
        assert line["level"] == "warning" or line["level"] == "error", line
        assert "clients at a time instead of serve.clients" in str(line)
        p.terminate()
        assert p.wait(SLOW) == 0


# ---- at run time ----

def ask_all(server):
    return [server.curl("POST", "/eval", {"input": "print(6 * 7)"}),
            server.curl("POST", "/eval", {"code": "6 * 7"}),
            server.curl("POST", "/v1/execute", {"code": "6 * 7"}),
            server.curl("POST", "/v1/sessions", {})]


def check_served(server):
    got = ask_all(server)
    assert [r.status for r in got] == [200, 200, 200, 201], got
    assert got[0].json["returncode"] == 0 and "42" in got[0].json["stdout"]
    server.curl("DELETE", f"/v1/sessions/{got[3].json['id']}")


def check_refused(got):
    assert [r.status for r in got] == [503] * len(got), got
    assert all(int(r.headers["Retry-After"]) >= 1 for r in got)
    assert all("stdout" not in r.json for r in got)
    assert {r.json["title"] for r in got[:2]} == {"The jail failed"}
    assert all("The jail failed: " in r.json["detail"] for r in got[2:])


def open_files(pid):
    """How many there are, but for those that listen, which are last."""
    return len([n for n in os.listdir(f"/proc/{pid}/fd") if int(n) < 200])


@pytest.mark.parametrize("more", [3, 5, 7])
def test_exhaustion_is_503(serve, cb, more):
    """Also where descriptors end in the middle of a request."""
    log = cb.base / "log"
    server = serve(*SMALL, spare=0, errors=log)
    check_served(server)
    server.await_rest(0)
    pid = server.process.pid
    limits = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE,
                     (open_files(pid) + more, limits[1]))
    try:
        got = ask_all(server)
        check_refused(got[:3])
        # A new session takes fewer.
        assert got[3].status in (201, 503), got[3]
        if got[3].status == 503:
            check_refused(got)
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)
    assert "Too many open files" in log.read_text()
    check_served(server)


@pytest.mark.alone
def test_descriptors_in_flight_end_no_server(serve):
    """A cell may hold more of them than the server may send."""
    inflight.wait_landed()
    server = serve(*SMALL, spare=0, **limited(200))
    check_served(server)
    server.await_rest(0)
    with inflight.held():
        got = ask_all(server)
    check_refused(got)
    assert "Too many references" in got[0].json["description"], got[0]
    hosttree.until(lambda: server.run("1").status == 200, "jails can be made")
    check_served(server)


def test_a_jail_that_cannot_be_made_is_503(serve, cb):
    env, file = hindered.without_processes(cb.base)
    log = cb.base / "log"
    server = serve(env=env, spare=0, errors=log)
    check_served(server)
    server.await_rest(0)
    file.write_text("")
    check_refused(ask_all(server))
    # A line is written behind its answer.
    hosttree.until(lambda: log.read_text().count("\n") == 5, "the last line")
    said = [json.loads(line) for line in log.read_text().splitlines()[1:]]
    assert [s["status"] for s in said] == [503] * 4, said
    assert all(s["outcome"] == "failed" and s["error"] for s in said), said
    file.unlink()
    hosttree.until(lambda: server.run("1").status == 200, "jails can be made")
    check_served(server)


def test_many_at_once_are_served_or_refused(serve):
    """No answer is half of one while descriptors come and go."""
    server = serve("-s", "serve.concurrent=4", *LONG, spare=0)
    pid = server.process.pid
    server.await_rest(0)
    limits = resource.prlimit(pid, resource.RLIMIT_NOFILE)

    def ask(i):
        if i % 4 == 0:
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (
                open_files(pid) + 2 + i % 17, limits[1]))
        try:
            r = server.curl("POST", "/eval", {"input": "print(6 * 7)"})
        except subprocess.CalledProcessError:
            return "no place"           # the connection was not accepted
        return r.status, r.json.get("returncode")

    try:
        with concurrent.futures.ThreadPoolExecutor(6) as pool:
            got = set(pool.map(ask, range(48)))
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)
    assert got <= {(200, 0), (503, None), (500, None), "no place"}, got
    check_served(server)
    assert pathlib.Path(f"/proc/{pid}/fd").exists()
