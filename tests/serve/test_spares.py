# SPDX-License-Identifier: MIT
"""Jails made ahead: what they share, and what becomes of those that die."""
import base64
import contextlib
import os
import signal
import threading
import time

import pytest

import hindered
import hosttree
from client import (JSON, LONG, SLOW, SPARES as KINDS, Server,
                    evaluation)
from world import PATIENCE, WHOLE

SLEEP = "import time; time.sleep(1000); print(1)"


def parts(server):
    """The processes of each jail: {init: (warden, [guests])}."""
    server.tree.look()
    found = {}
    for number, pid in server.tree.inside():    # each init before all guests
        stat = hosttree.stat_of(pid)
        if not stat:  # it has just ended
            continue
        parent = int(stat[1])
        if number == 1:
            found[pid] = (parent, [])
        elif parent in found:  # or its init has just ended
            found[parent][1].append(pid)
    return found


def victims(server, what):
    for init, (warden, guests) in parts(server).items():
        yield from {"warden": [warden], "init": [init],
                    "guest": guests}[what]


@pytest.mark.sampled
@pytest.mark.parametrize("what", ["warden", "init", "guest"])
def test_a_spare_that_died_costs_no_request(serve, what):
    spare = 2 if WHOLE else 1
    server = serve(spare=spare)
    server.await_rest(spare * KINDS)
    killed = list(victims(server, what))
    hosttree.send(killed)
    # One that wakes to its death with its cell in hand has begun it. A session
    # is frozen, and dies when it is continued.
    hosttree.until(lambda: not any(
        hosttree.thread_states(pid).strip("ZXD") for pid in killed), "all died")
    for _ in range(spare + 1):
        r = server.run("6 * 7").json
        assert r.get("result") == 42, r
        r = server("POST", "/eval", {"input": "print(1)"})
        assert r.json["stdout"] == "1\n"
    for _ in range(spare + 1):
        id = server("POST", "/v1/sessions", b"", JSON).json["id"]
        r = server("POST", f"/v1/sessions/{id}/cells", {"code": "6 * 7"})
        assert r.json["output"] == "42\n" or what == "guest", r
        assert server("DELETE", f"/v1/sessions/{id}").status == 204
    server.await_rest(spare * KINDS)


@pytest.mark.parametrize("what", ["warden", "init", "guest"])
def test_a_jail_that_dies_while_it_runs_is_answered(serve, what):
    server = serve(*LONG, spare=0)
    for path, body in (("/v1/execute", {"code": SLEEP, "timeout_ms": 600000}),
                       ("/eval", {"input": SLEEP})):
        got = []
        t = threading.Thread(target=lambda p=path, b=body: got.append(
            server("POST", p, b)))
        t.start()
        hosttree.until(lambda: list(victims(server, "guest")), "it runs")
        server.await_running()
        # One that had not begun to run is replaced by another.
        while t.is_alive():
            hosttree.send(victims(server, what))
            t.join(0.2)
        assert got[0].status in (200, 500, 503) and got[0].json, got
        server.await_rest(0)


def test_without_a_maker_each_request_is_answered(cb):
    server = Server(cb)
    server.await_rest()
    warden = next(victims(server, "warden"))
    maker = int(hosttree.stat_of(warden)[1])
    os.kill(maker, signal.SIGKILL)
    status = b"200"
    while status == b"200":     # at most those made before
        try:
            answer = server.raw(evaluation("print(1)", "Connection: close"))
        except OSError:
            break               # it is gone already, and says why
        status = answer[9:12]
        # 503: it is ending already
        assert status in (b"200", b"500", b"503"), answer
    server.process.wait(SLOW)
    assert server.end() != 0 and \
        b"the process that makes jails is gone" in server.process.stderr.read()


def test_a_stopped_jail_holds_nobody_up(serve):
    server = serve()
    server.await_rest()
    for guest in victims(server, "guest"):
        os.kill(guest, signal.SIGSTOP)
    got = []
    t = threading.Thread(target=lambda: got.append(server.run(
        "1", timeout_ms=int(2500 * PATIENCE))))
    t.start()
    server.await_running()
    assert server.run("6 * 7").json["result"] == 42
    t.join()
    assert got[0].json["timed_out"] is True, got
    server.await_rest()


@contextlib.contextmanager
def wardens_stopped(server):
    wardens = list(victims(server, "warden"))
    try:
        for pid in wardens:
            os.kill(pid, signal.SIGSTOP)
        hosttree.until(lambda: all(hosttree.stat_of(pid)[0] == b"T"
                                   for pid in wardens), "they are stopped")
        yield
    finally:
        for pid in wardens:
            os.kill(pid, signal.SIGCONT)


def test_a_stopped_warden_holds_nobody_up_for_long(serve):
    server = serve()
    server.await_rest()
    with wardens_stopped(server):
        # Its files find no way into the jail, so it takes another.
        r = server("POST", "/eval", {
            "input": "print(open('f').read())",
            "files": [{"path": "f", "content": "aGk="}]})
        assert r.json["stdout"] == "hi\n", r
        assert server("GET", "/health").status == 200


def test_a_request_does_not_wait_for_a_stopped_warden_for_ever(cb, serve):
    server = serve(env=hindered.fast(cb.base))
    server.await_rest()
    with wardens_stopped(server):
        got = []
        t = threading.Thread(target=lambda: got.append(
            server.run("1", timeout_ms=2000)))
        t.start()
        server.await_running()
        assert server.run("6 * 7").json["result"] == 42
        t.join(90)
        assert got[0].status == 500 and "does not answer" in got[0].json[
            "detail"], got
    server.await_rest()


@pytest.mark.sampled
def test_many_files_come_whole(serve):
    """They are put some at a time, and the program begins behind the last."""
    server = serve("-s", "serve.request=128M", "-s", "home.size=256M")
    data = base64.b64encode(b"x" * 700000).decode()
    n = 100 if WHOLE else 12
    files = [{"path": f"d{i % 7}/f{i}", "content": data} for i in range(n)]
    code = ("import os\nprint(sum(os.path.getsize(os.path.join(d, f))"
            " for d, _, fs in os.walk('.') for f in fs))")
    r = server("POST", "/eval", {"input": code, "files": files})
    assert r.json["stdout"] == f"{n * 700000}\n", r
    r = server("POST", "/eval", {
        "input": code, "files": [*files[:-1], {"path": "d1/f1/no",
                                               "content": ""}]})
    assert "d1/f1/no" in r.json["stdout"] and r.json["returncode"] is None, r
    id = server("POST", "/v1/sessions", b"", JSON).json["id"]
    r = server("POST", f"/v1/sessions/{id}/cells",
               {"code": code, "files": files})
    assert r.json["output"] == f"{n * 700000}\n", r


def test_requests_share_nothing(server):
    server.await_rest()
    code = ("import os, random, sys, ctypes\n"
            "seen = [hash('x'), id(object()), random.random(), "
            "os.urandom(4).hex()]\n"
            "left = [os.listdir(d) for d in ('/home', '/tmp', '/dev/shm')]\n"
            "for d in ('/home', '/tmp', '/dev/shm'):\n"
            "    open(d + '/left', 'w').close()\n"
            "seen, left, sorted(os.listdir('/proc/self/fd')), "
            "sys.gettrace(), [p for p in os.listdir('/proc') if p.isdigit()]")
    runs = [server.run(code).json["result"] for _ in range(6)]
    for i in range(4):
        assert len({r[0][i] for r in runs}) == len(runs), runs
    for _, left, fds, trace, pids in runs:
        assert left == [[], [], []] and trace is None
        assert fds == runs[0][2] and pids == runs[0][4] and len(pids) == 2


@pytest.mark.sampled
def test_jails_that_are_waited_for_are_like_those_made_ahead(serve):
    """The one has done what site does, the other does it for its cell."""
    ahead, waited = (serve(spare=n) for n in (2, 0))
    ahead.await_rest(6)
    codes = [
        "import sys\nsys.path, sorted(sys.modules), sys.argv",
        "sorted(__builtins__.__dict__)", "exit(3)", "1 / 0", "def f(:",
        "import site\nsite.ENABLE_USER_SITE",
        "x = 'a'.encode('punycode')\nx"]
    more = ["quit", "help", "credits", "nothing", "await 1",
            "eval('__import__')('json').dumps(1)"]
    for code in codes + more * WHOLE:
        a, b = (s.run(code).json for s in (ahead, waited))
        for r in a, b:
            for key in "duration_ms", "cpu_ms", "memory_peak_bytes":
                del r[key]
        assert a == b, code


def timed(server, code, **more):
    """An answer, and how long its client has waited for it in ms."""
    began = time.monotonic()
    r = server.run(code, **more).json
    return r, (time.monotonic() - began) * 1000


@pytest.mark.alone
def test_clocks_begin_with_the_request(server):
    """Not when the jail was made, nor when its Python was started."""
    server.await_rest()
    time.sleep(1)
    r, waited = timed(server, "import time; time.sleep(.3)")
    assert 300 <= r["duration_ms"] <= waited + 1, (r, waited)
    r, waited = timed(server, "while True: pass", timeout_ms=400)
    assert r["timed_out"] and 400 <= r["duration_ms"] <= waited + 1, (r, waited)
    server.await_rest()
    # Without a cgroup the kernel counts in ticks, and rounds four sums down.
    code = ("import time\nt = time.process_time()\n"
            "while time.process_time() < t + .3: pass")
    r, waited = timed(server, code)
    rounded = 4000 / hosttree.TICK
    assert 300 - rounded <= r["cpu_ms"] <= waited + rounded, (r, waited)


def test_a_lifetime_begins_with_the_request(serve):
    lifetime = int(3 * PATIENCE)
    server = serve("-s", f"session.lifetime={lifetime}s", *LONG)
    server.await_rest()
    time.sleep(lifetime)
    assert server.run("6 * 7").json["result"] == 42
    server.await_rest()
    r = server.run("import time; time.sleep(60)").json
    assert r["limit"]["key"] == "session.lifetime", r


def test_byte_by_byte_holds_nobody_up(serve):
    server = serve(spare=4)     # all four begin at once
    server.await_rest(4 * KINDS)
    code = "import os\nwhile True: os.write(1, b'x')"
    threads = [threading.Thread(target=server.run, args=(code,),
                                kwargs={"timeout_ms": int(2000 * PATIENCE)})
               for _ in range(4)]
    for t in threads:
        t.start()
    server.await_running(4)
    used = hosttree.ticks_of(server.process.pid)
    for _ in range(3):
        assert server.run("6 * 7").json["result"] == 42
    for t in threads:
        t.join()
    used = hosttree.ticks_of(server.process.pid) - used
    assert used < 1.5 * PATIENCE * hosttree.TICK, f"{used} ticks of the front end"
