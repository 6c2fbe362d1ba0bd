# SPDX-License-Identifier: MIT
"""cellblock --serve: sessions that outlive a request, and what describes all
of it."""
import json
import os
import pathlib
import re
import signal
import socket
import threading
import time

import pytest

import hosttree
from client import JSON, LONG, SLOW, read_all, request
from figures import pyplot
from world import PATIENCE, WHOLE

SESSIONS = "/v1/sessions"


class Session:
    def __init__(self, server):
        self.server = server
        r = server("POST", SESSIONS, b"", JSON)
        assert r.status == 201, r
        self.first = r.json
        self.path = f"{SESSIONS}/{self.first['id']}"

    def __call__(self, method, path="", body=None, headers=None):
        return self.server(method, self.path + path, body, headers)

    def cell(self, code, **more):
        return self("POST", "/cells", {"code": code, **more})

    def show(self, code, **more):
        r = self.cell(code, **more)
        assert r.status == 200, r
        return r.json["output"]

    def ask(self, code, events=True, s=None, version=b"1.1", **more):
        """A connection on which a cell is asked for."""
        body = json.dumps({"code": code, **more}).encode()
        accept = ["Accept: text/event-stream"] if events else []
        s = s or self.server.connect()
        s.sendall(request("POST", self.path + "/cells", body,
                          "Content-Type: application/json",
                          f"Content-Length: {len(body)}",
                          *accept).replace(b"HTTP/1.1", b"HTTP/" + version))
        return s

    def begin(self, code, events=False):
        """The same, once it runs."""
        s = self.ask(code, events)
        hosttree.until(lambda: self("GET").json["state"] == "running", "it runs")
        return s

    def is_idle(self):
        r = self("GET")
        return r.status == 200 and r.json["state"] == "idle"

    def wait_idle(self):
        hosttree.until(self.is_idle, "the session is idle", 20)


def unchunked(data):
    """The body of an answer in chunks, as far as it has come."""
    at = data.index(b"\r\n\r\n") + 4
    assert b"chunked" in data[:at], data[:at]
    pieces = []
    while (end := data.find(b"\r\n", at)) > 0:
        n = int(data[at:end], 16)
        pieces.append(data[end + 2:end + 2 + n])
        at = end + n + 4
    return b"".join(pieces)


def events(data):
    """[(name, data)...] of all whole events."""
    found = []
    for text in unchunked(data).decode("ascii").split("\n\n")[:-1]:
        if text == ":":
            continue
        m = re.fullmatch(r"event: (\w+)\ndata: ([^\n]*)", text)
        assert m, text
        found.append((m[1], json.loads(m[2])))
    return found


def read_events(s):
    data = bytearray()
    while b"0\r\n\r\n" not in data[-7:]:
        more = s.recv(65536)
        assert more, data[-2000:]
        data += more
    return events(bytes(data))


def shown(found):
    return "".join(d["text"] for name, d in found if name == "output")


def answer_of(s):
    """The answer on a connection, which stays open."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += s.recv(65536)
    head, _, body = data.partition(b"\r\n\r\n")
    n = int(re.search(rb"Content-Length: (\d+)", head)[1])
    while len(body) < n:
        body += s.recv(65536)
    return int(head.split()[1]), json.loads(body)


@pytest.fixture(name="server")
def _server(serve):
    return serve(*LONG)


@pytest.fixture(name="session")
def _session(server):
    return Session(server)


# A cell that ends when it is interrupted. Python sees an interrupt that comes
# just before a sleep only behind it, so none of them is long.
ENDLESS = "import time\nwhile True: time.sleep(.1)"


# ---- what it is for ----

def test_a_value_comes_in_all_its_forms_with_the_last_event(session):
    code = "class V:\n    def _repr_html_(self): return 1/0\nV()"
    with session.ask(code, mime=True) as s:
        name, done = read_events(s)[-1]
    assert name == "done" and set(done["bundle"]) == {"text/plain"}
    assert "ZeroDivisionError" in done["notices"][0]
    assert session.cell("1", mime=True).json["bundle"] == {"text/plain": "1"}
    assert "bundle" not in session.cell("1").json


@pytest.mark.parametrize("events", [False, True])
def test_a_proxy_holds_no_events_back(session, events):
    with session.ask("1", events) as s:
        head = s.recv(65536).partition(b"\r\n\r\n")[0]
    assert b"\r\nCache-Control: no-store" in head
    assert (b"\r\nX-Accel-Buffering: no" in head) is events


def test_a_session_keeps_its_state(session):
    assert re.fullmatch(r"[\w.-]+-[0-9a-f]{32}", session.first["id"])
    assert session.first["python"].startswith("3.")
    assert session.cell("x = 41").json["how"] == "ok"
    r = session.cell("x += 1\nx").json
    assert (r["cell"], r["output"], r["after"]) == (2, "42\n", "kept")
    assert session.show("input()", stdin="é\n").endswith("'é'\n")
    state = session("GET").json
    assert (state["cells"], state["state"]) == (3, "idle")
    assert state["id"] == session.first["id"]
    assert session("DELETE").status == 204
    assert session("GET").status == 404


def test_a_policy_for_commands_binds_sessions(serve, cb):
    cb.config("[policy]\ncommands = help undo files\n")
    session = Session(serve())
    session.cell("x = 1")
    session.cell("x = 2; open('f', 'w').close()")
    files = [{"path": "g", "content": ""}]
    for command, r in (
            ("reset", session("POST", "/reset")),
            ("download", session("GET", "/files/f")),
            ("upload", session("PUT", "/files/f", b"1")),
            ("upload", session("DELETE", "/files/f")),
            ("upload", session.cell("x = 3", files=files))):
        assert r.status == 403, (command, r)
        assert f"policy.commands leaves out {command}:" in r.json["detail"]
    # the control: the rest works, and nothing has happened
    assert session("POST", "/undo").json["back_to"] == 2
    assert [f["path"] for f in session("GET", "/files").json["files"]] == ["f"]
    assert session.show("x, open('f').read()") == "(1, '')\n"


def test_cells_are_undone_and_python_is_reset(serve):
    session = Session(serve("-s", "cell.undo=3"))
    for n in range(3):
        session.cell(f"x = {n}")
    assert session("POST", "/undo").json["back_to"] == 3
    assert session("POST", "/undo", {"undo": 1}).json["back_to"] == 2
    assert session.show("x") == "0\n"
    r = session("POST", "/undo", {"undo": 9})
    assert r.status == 409 and r.json["detail"]
    session.cell("open('kept', 'w').close()")
    assert session("POST", "/reset").json["reset"] is True
    assert "NameError" in session.show("x")
    assert session.show("import os; os.listdir()") == "['kept']\n"


def test_limits_strike_and_the_session_stays(serve):
    session = Session(serve("-s", "session.memory=64M"))
    session.cell("x = 6")
    r = session.cell("while True: pass", timeout_ms=2000).json
    assert r["how"] == "interrupted" and r["limit"]["key"] == "timeout_ms"
    r = session.cell("import os; os.kill(os.getpid(), 11)").json
    assert r["how"] == "crashed" and r["after"] == "rolled back"
    r = session.cell("bytearray(1 << 30)").json
    assert r["how"] in ("raised", "killed"), r
    assert session.show("x") == "6\n"
    assert session.server.figures()["cells_total"] == 5


def test_files_go_in_and_out(session):
    data = bytes(range(256)) * 100
    r = session("PUT", "/files/a/b%20%C3%A9", data)
    assert (r.status, r.json["path"], r.json["size"]) == (
        201, "a/b é", len(data))
    r = session("GET", "/files/a/b%20%C3%A9")
    assert r.status == 200 and r.body == data
    assert r.headers["Content-Length"] == str(len(data))
    assert session.show("len(open('a/b é', 'rb').read())") == "25600\n"
    session.cell("open('out', 'w').write('x')")
    assert session("GET", "/files/out").body == b"x"
    listing = session("GET", "/files").json
    assert listing["truncated"] is False
    names = {f["path"]: f["kind"] for f in listing["files"]}
    assert names == {"a": "directory", "a/b é": "file", "out": "file"}
    assert session("DELETE", "/files/a").status == 204
    assert session("DELETE", "/files/a").status == 404
    assert session("GET", "/files/a/b%20%C3%A9").status == 404
    assert session("PUT", "/files/empty", b"").status == 201
    assert session("GET", "/files/empty").body == b""
    assert session.cell("1", files=[{"path": "f", "content": "aGk="}]
                        ).status == 200
    assert session("GET", "/files/f").body == b"hi"


# ---- as it runs ----

def test_output_comes_while_the_cell_runs(session):
    with session.begin("import time; print('é😀'*3)\n" + ENDLESS, events=True) as s:
        data = b""
        while b"event: output" not in data:
            data += s.recv(65536)
        assert not session.is_idle(), "it still runs"
        assert shown(events(data)) == "é😀é😀é😀\n"
        assert session("POST", "/interrupt").status == 204
        while b"0\r\n\r\n" not in data[-7:]:
            data += s.recv(65536)
    found = events(data)
    assert found[-1][0] == "done" and found[-1][1]["how"] == "interrupted"
    assert "output" not in found[-1][1] and found[-1][1]["names"] == 1
    session.wait_idle()
    assert session.show("6 * 7") == "42\n"


def test_a_stream_has_no_chunks_for_http_1_0(session):
    with session.ask("print('x' * 100_000)", version=b"1.0") as s:
        head, _, body = read_all(s).partition(b"\r\n\r\n")
    assert b"Transfer-Encoding" not in head and b"Content-Length" not in head
    assert b"Connection: close" in head
    assert body.startswith(b"event: output\ndata: ") and \
        body.rpartition(b"event: ")[2].startswith(b"done\n")


def test_a_stream_is_what_the_answer_would_be(session):
    """Whole characters; a flood is cut alike; nothing in it is an event."""
    codes = [
        "1", "print('a\\r\\nb\\rc', end='')", "print('\\n\\n')",
        "print('data: x\\n\\nevent: done\\ndata: {}\\n\\n')",
        "import sys; sys.stdout.buffer.write(bytes(range(256)) * 3)",
        "print('😀' * 300000)", "for i in range(6000): print(f'{i:0300}')",
        "import os\nfor b in 'é😀'.encode() * 50:\n"
        "    _ = os.write(1, bytes([b]))",
        "1/0", "",
    ]
    for code in codes:
        whole = session.cell(code).json
        with session.ask(code) as s:
            found = read_events(s)
        assert shown(found) == re.sub(
            rf"<cell {whole['cell']}>", f"<cell {whole['cell'] + 1}>",
            whole["output"]), code
        name, done = found[-1]
        assert name == "done" and done["how"] == whole["how"], code
        assert [n for n, _ in found[:-1]] == ["output"] * (len(found) - 1)


@pytest.mark.sampled
def test_pictures_are_events(serve, cb):
    session = Session(serve("-t", "60s", "-s", "session.memory=1G",
                            "-s", "cell.cpu=60s"))
    code = "_ = plt.plot([1])\nplt.figure(); _ = plt.plot([2])"
    with session.ask(pyplot(cb) + code) as s:
        found = read_events(s)
    pictures = [d["png"] for name, d in found if name == "image"]
    assert len(pictures) == 2, found[-1]
    assert all(p.startswith("iVBORw0KGgo") for p in pictures)
    assert "images" not in found[-1][1]


@pytest.mark.sampled
def test_a_slow_reader_holds_nobody_up(serve):
    """The flood ends as it would otherwise, in bounded memory."""
    lines = 50000 if WHOLE else 20000   # of 1,000 bytes; 12,000,000 are kept
    session = Session(serve("-s", "cell.output=12M", "-t", "40s",
                            "-s", "cell.cpu=40s"))
    pid = session.server.process.pid
    session.show("1")
    before = hosttree.memory_of(pid)
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        s.settimeout(SLOW)
        s.connect(("127.0.0.1", session.server.port))
        session.ask(f"for i in range({lines}): print('x' * 999)", s=s)
        assert session.server.run("1").json["result"] == 1
        hosttree.until(
            lambda: session.server.figures()["cells_total"] == 2,
            "the cell is over although nobody reads", 40)
        assert hosttree.memory_of(pid) - before < 60 << 20
        assert session.cell("1").status == 409
        found = read_events(s)
    assert found[-1][0] == "done"
    assert "output" in shown(found)[-9000:], "it says that there was more"
    assert session.show("6 * 7") == "42\n"


# ---- one request at a time ----

def test_another_request_meanwhile_is_refused(session):
    with session.begin(ENDLESS) as s:
        for method, path, body in (
                ("POST", "/cells", {"code": "1"}), ("POST", "/undo", None),
                ("POST", "/reset", None), ("GET", "/files", None),
                ("GET", "/files/x", None), ("PUT", "/files/x", b"y"),
                ("DELETE", "/files/x", None)):
            r = session(method, path, body,
                        JSON if path == "/undo" else None)
            assert r.status == 409 and r.json["detail"], (path, r)
        assert session("POST", "/interrupt").status == 204
        status, r = answer_of(s)
        assert (status, r["how"], r["after"]) == (200, "interrupted", "kept")
    assert session.show("1") == "1\n"


def test_many_ask_at_once_and_one_is_served(session):
    got = []
    threads = [threading.Thread(target=lambda: got.append(session.cell(
        f"import time; time.sleep({PATIENCE})").status)) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(set(got)) == [200, 409] and len(got) == 8, got
    assert session("GET").json["cells"] == got.count(200)


def test_a_cell_that_ignores_interrupts_is_killed(serve):
    session = Session(serve("-s", "cell.grace=60s", *LONG))
    stubborn = ("while True:\n try:\n  print('on')\n  while True: pass\n"
                " except KeyboardInterrupt: x = 1")
    session.cell("y = 5")
    with session.ask(stubborn) as s:
        data = b""
        while b"event: output" not in data:     # it ignores them by now
            data += s.recv(65536)
        for _ in range(2):
            assert session("POST", "/interrupt").status == 204
        while b"0\r\n\r\n" not in data[-7:]:
            data += s.recv(65536)
    name, r = events(data)[-1]
    assert name == "done" and r["how"] == "killed", r
    assert "Ctrl" not in r["verdict"] and r["limit"] is None
    assert session.show("y") == "5\n"


@pytest.mark.parametrize("streams", [True, False])
def test_a_client_that_goes_interrupts_its_cell(session, streams):
    session.cell("x = 1")
    session.begin(ENDLESS, streams).close()
    session.wait_idle()
    assert session.show("x") == "1\n"
    assert session.server.figures()["clients_gone_total"] == 1


@pytest.mark.parametrize("streams", [True, False])
def test_a_session_is_deleted_while_a_cell_runs(session, streams):
    with session.begin("print(1)\n" + ENDLESS, streams) as s:
        assert session("DELETE").status == 204
        if streams:
            assert read_events(s)[-1][0] == "error"
        else:
            assert answer_of(s)[0] == 410
    assert session("GET").status == 404
    session.server.await_rest()


# ---- those that are made ahead ----

def maker_of(server):
    """The process that makes jails."""
    return int(hosttree.stat_of(warden_of(server))[1])


def test_a_session_need_not_be_made_first(serve):
    server, got = serve(), []
    server.await_rest()
    maker = maker_of(server)
    os.kill(maker, signal.SIGSTOP)
    try:
        first = Session(server)
        assert first.show("6 * 7") == "42\n"
        # There was one: the next has to be made.
        t = threading.Thread(target=lambda: got.append(Session(server)))
        t.start()
        hosttree.until(lambda: server.figures()["sessions"] == 2, "it was asked")
        assert not got
    finally:
        os.kill(maker, signal.SIGCONT)
    t.join()
    assert got[0].show("6 * 7") == "42\n"


def test_its_life_begins_when_somebody_has_it(serve):
    idle = int(2 * PATIENCE)
    server = serve("-s", f"session.idle={idle}s")
    server.await_rest()
    warden = warden_of(server)
    began = hosttree.stat_of(warden)
    time.sleep(idle + .5)
    assert hosttree.is_alive(warden, int(began[19])), "it is the same one"
    session = Session(server)
    assert session.show("6 * 7") == "42\n"
    hosttree.until(lambda: session("GET").status == 410, "nobody used it", 20)
    assert "idle" in session("GET").json["detail"]


# ---- how it ends ----

def test_a_session_that_is_over_says_why(serve):
    n = int(4 * PATIENCE)
    server = serve("-s", f"session.idle={n}s")
    left, idle = Session(server), Session(server)
    assert left.cell("exit(3)").json["exit_code"] == 3
    r = left.cell("1")
    assert r.status == 410 and "left it" in r.json["detail"], r
    hosttree.until(lambda: idle("GET").status == 410, "it was idle", 20)
    assert f"idle limit: {n} s" in idle("GET").json["detail"]
    assert server.figures()["sessions"] == 0
    assert idle("DELETE").status == 204 and idle("GET").status == 404
    other = Session(server)
    assert other.first["id"] not in (left.first["id"], idle.first["id"])


def test_a_lifetime_ends_a_session_and_its_cell(serve):
    n = int(5 * PATIENCE)
    session = Session(serve("-s", f"session.lifetime={n}s", *LONG))
    r = session.cell(ENDLESS).json
    assert r["limit"]["key"] == "session.lifetime" and r["after"] == "ended"
    r = session("GET")
    assert r.status == 410 and f"lifetime limit: {n} s" in r.json["detail"], r


def warden_of(server):
    """The process that owns the only session there is."""
    def look():
        for guest in server.tree.look() and server.tree.guests():
            stat = hosttree.stat_of(guest)      # None: it ended meanwhile
            stat = stat and hosttree.stat_of(int(stat[1]))
            if stat:
                return int(stat[1])
    return hosttree.until(look, "it is there")


def test_a_session_that_hangs_holds_nobody_up(serve):
    server = serve(spare=0)
    session = Session(server)
    warden = warden_of(server)
    other = Session(server)
    os.kill(warden, signal.SIGSTOP)
    try:
        with session.ask("1"):
            hosttree.until(lambda: not session.is_idle(), "it was asked")
            for _ in range(200):
                assert session("POST", "/interrupt").status == 204
            assert other.show("6 * 7") == "42\n"
            assert session("GET", "/files").status == 409
        assert session("DELETE").status == 204
        assert other.show("6 * 7") == "42\n"
    finally:
        os.kill(warden, signal.SIGCONT)
    hosttree.until(lambda: server.figures()['jails{state="ending"}'] == 0,
                   "it is gone")


def test_what_was_interrupted_before_it_began_says_so(serve):
    server = serve(spare=0)
    session, got = Session(server), []
    warden = warden_of(server)
    os.kill(warden, signal.SIGSTOP)
    try:
        t = threading.Thread(target=lambda: got.append(
            session("PUT", "/files/x", b"y")))
        t.start()
        hosttree.until(lambda: not session.is_idle(), "it was asked")
        session("POST", "/interrupt")
    finally:
        os.kill(warden, signal.SIGCONT)
    t.join()
    # It may have begun all the same.
    assert got[0].status == 201 or (
        got[0].status == 409 and "interrupted" in got[0].json["detail"]), got
    assert session("PUT", "/files/x", b"y").status == 201


@pytest.mark.sampled
@pytest.mark.limit(120)
def test_what_is_interrupted_while_files_are_put_does_not_run_on(serve):
    """They are put some at a time, and the cell begins behind the last."""
    server = serve("-s", "files.max_count=20000", "-s", "home.files=30000",
                   "-s", "cell.timeout=60s")
    session, files = Session(server), [{"path": f"f{i}"} for i in range(10000)]
    for turns in range(0, 280, 40 if WHOLE else 120):
        got = []
        t = threading.Thread(target=lambda g=got: g.append(session.cell(
            "import time\nwhile True: time.sleep(.1)", files=files)))
        t.start()
        hosttree.until(lambda: not session.is_idle(), "it was asked")
        # The server has a turn for each: before, while and after they are put.
        for _ in range(turns):
            assert not session.is_idle()
        assert session("POST", "/interrupt").status == 204
        t.join()
        r, = got
        assert r.status == 409 and "interrupted" in r.json["detail"] or (
            r.json["how"] in ("interrupted", "refused")), r
    assert session.show("6 * 7") == "42\n"


def test_a_session_that_lost_its_jail_says_so(serve):
    server = serve(*LONG, spare=0)
    session = Session(server)
    warden = warden_of(server)
    with session.begin(ENDLESS, True) as s:
        server.tree.kill(warden)
        assert read_events(s)[-1][0] == "error"
    r = session.cell("1")
    assert r.status == 410 and "over" in r.json["detail"], r
    assert Session(server).show("1") == "1\n"


def test_there_are_so_many_and_no_more(serve):
    server = serve("-s", "serve.sessions=2", "-s", "serve.name=lab-1.x")
    two = [Session(server) for _ in range(2)]
    assert all(s.first["id"].startswith("lab-1.x-") for s in two)
    r = server("POST", SESSIONS, b"", JSON)
    assert r.status == 503 and int(r.headers["Retry-After"]) > 0
    assert two[0]("DELETE").status == 204
    three = Session(server)
    # Of those that are over only so many are remembered.
    dead = []
    for _ in range(4):
        three.cell("exit()")
        dead.append(three)
        three = Session(server)
    assert [s("GET").status for s in dead] == [404, 404, 410, 410]


def test_one_client_has_so_many_and_no_more(serve):
    server = serve("-s", "serve.sessions_per_client=1",
                   "-s", "serve.sessions=4")
    mine = Session(server)
    r = server("POST", SESSIONS, {})
    assert r.status == 429 and int(r.headers["Retry-After"]) > 1790, r
    assert server.run("1").status == 200, "requests are counted apart"
    with socket.socket() as other:
        other.bind(("127.0.0.2", 0))
        other.settimeout(SLOW)
        other.connect(("127.0.0.1", server.port))
        other.sendall(request("POST", SESSIONS, b"", "Connection: close"))
        assert read_all(other).startswith(b"HTTP/1.1 201 ")
    assert mine("DELETE").status == 204
    Session(server)


def test_one_client_leaves_a_quarter_to_others(serve):
    server = serve("-s", "serve.sessions=4")
    for _ in range(3):
        Session(server)
    assert server("POST", SESSIONS, {}).status == 429
    r = server.curl("POST", SESSIONS, {}, "--interface", "127.0.0.2")
    assert r.status == 201, r
    r = server.curl("POST", SESSIONS, {}, "--interface", "127.0.0.2")
    assert r.status == 503, "there are too many of all"


def test_it_is_told_when_to_try_again(serve):
    """After as long as Retry-After says there is a place, and not before."""
    n = int(3 * PATIENCE)
    server = serve("-s", "serve.sessions=1", "-s", f"session.idle={n}s")
    session = Session(server)
    r = server.curl("POST", SESSIONS, {})
    told = int(r.headers["Retry-After"])
    assert r.status == 503 and 1 <= told <= n, r
    hosttree.until(lambda: session("GET").status == 410, "it is over", 20)
    assert Session(server)("DELETE").status == 204
    # Its life counts where that ends first.
    server = serve("-s", "serve.sessions=1", "-s", "session.lifetime=100s",
                   *LONG)
    busy = Session(server)
    with busy.begin(ENDLESS):
        r = server.curl("POST", SESSIONS, {})
        assert 80 < int(r.headers["Retry-After"]) <= 100, r


def test_a_client_lists_its_sessions(serve):
    server = serve()
    other = "--interface", "127.0.0.2"
    assert server.curl("GET", SESSIONS).json == {"sessions": []}
    mine = [Session(server) for _ in range(2)]
    theirs = server.curl("POST", SESSIONS, {}, *other).json["id"]
    mine[1].cell("x = 1")
    listed = server.curl("GET", SESSIONS).json["sessions"]
    assert [s["id"] for s in listed] == [s.first["id"] for s in mine]
    assert [s["cells"] for s in listed] == [0, 1]
    assert listed[0].keys() == mine[0]("GET").json.keys()
    listed = server.curl("GET", SESSIONS, None, *other).json["sessions"]
    assert [s["id"] for s in listed] == [theirs]
    # The sessions that were lost are found, and ended.
    for s in mine:
        assert server.curl("DELETE", s.path).status == 204
    Session(server).cell("exit()")
    assert server.curl("GET", SESSIONS).json == {"sessions": []}


def test_a_list_wants_the_token(serve, cb):
    token = cb.base / "token"
    token.write_text("secret\n")
    token.chmod(0o600)
    server = serve("-s", f"serve.token_file={token}")
    assert server.curl("GET", SESSIONS).status == 401
    r = server.curl("GET", SESSIONS, None, "-H", "Authorization: Bearer secret")
    assert r.status == 200 and r.json == {"sessions": []}


def test_bad_names_are_refused_at_the_start(cb):
    for name in "a/b", "ä", "a b", '"':
        r = cb.run("-s", f"serve.name={name}", "--serve", "127.0.0.1:0")
        assert r.code != 0 and "serve.name" in r.said, r


def test_sigterm_finishes_the_cell_that_runs(serve):
    server = serve(*LONG)
    busy, idle = Session(server), Session(server)
    with busy.begin(f"import time; time.sleep({2 * PATIENCE}); print(1)",
                    True) as s:
        with server.connect() as late:
            late.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n")
            server.process.send_signal(signal.SIGTERM)
            found = read_events(s)
    assert shown(found) == "1\n" and found[-1][1]["how"] == "ok"
    assert idle.first["id"] and server.process.wait(SLOW) == 0


# ---- those who mean no good ----

def test_ids_cannot_be_guessed(server):
    session = Session(server)
    name, _, secret = session.first["id"].rpartition("-")
    bodies = set()
    for bad in ("x", name, name + "-", name + "-" + "0" * 32,
                session.first["id"][:-1], session.first["id"] + "0",
                session.first["id"].upper() + "x", secret, "%2e%2e", "..",
                session.first["id"] + "%00"):
        for method, path in (("GET", ""), ("DELETE", ""), ("GET", "/files"),
                             ("POST", "/interrupt"), ("GET", "/files/x")):
            r = server(method, f"{SESSIONS}/{bad}{path}")
            assert r.status in (404, 400), (bad, method, path, r)
            if r.status == 404:
                bodies.add(r.body)
    assert bodies == {b'{"detail": "Session not found"}'}, bodies
    assert session.is_idle()


def test_bodies_out_of_order_are_refused(session):
    for body, words in (
            (b"", "an empty JSON body"), (b"{", "Could not parse"),
            (b"[]", ""), (b"{}", ""), (b'{"code": 1}', "is not of type"),
            (b'{"undo": 1}', "'code' is a required"),
            (b'{"code": "1", "code": "2"}', "duplicate"),
            (b'{"code": "1", "what": 2}', "what"),
            (b'{"code": "1", "timeout_ms": 99999999}', "exceeds"),
            (b'{"code": "1", "stdin": "\\u0003"}', "control"),
            (b"[" * 300, "nested"),
            (b'{"code": "1", "files": [{"path": "../x"}]}', "traverse")):
        r = session("POST", "/cells", body, JSON)
        assert r.status == 422 and words in r.json["detail"], (body, r)
    assert session("POST", "/cells", b"code=1",
                   {"Content-Type": "text/plain"}).json == {
                       "detail": "Content-Type must be application/json"}
    assert session("POST", "/undo", {"code": "1"}).status == 422
    assert session.server("POST", SESSIONS, b"x=1", {
        "Content-Type": "application/x-www-form-urlencoded"}).status == 422
    assert session.server("POST", SESSIONS, {"x": 1}).status == 422
    assert session.server("POST", SESSIONS, b"{}", {
        "Content-Type": "text/plain"}).status == 422
    # what is not there has no type
    got = session.server.raw(request("POST", SESSIONS, b"",
                                     "Connection: close"))
    assert got.startswith(b"HTTP/1.1 201 "), got
    assert session.server("PUT", SESSIONS).status == 405
    r = session.cell("1", files=[{"path": "a/"}, {"path": "a/b"}])
    assert r.status == 422 and "Failed to create" in r.json["detail"], r
    assert session("GET").json["cells"] == 0, "nothing ran"


def test_a_full_home_is_named(serve):
    session = Session(serve("-s", "home.size=1M"))
    assert session("PUT", "/files/a", b"x" * 700000).status == 201
    r = session("PUT", "/files/b", b"x" * 700000)
    assert (r.status, r.json["detail"]) == (
        422, "OSError: Failed to create file 'b': No space left on device.")


def test_files_lead_nowhere_else(session):
    r = session.cell(
                 "import os\nos.mkfifo('fifo'); os.mkdir('dir')\n"
                 "os.symlink('/etc/passwd', 'out'); os.symlink('/', 'root')\n"
                 "os.symlink('fifo', 'tofifo'); os.symlink('loop', 'loop')\n"
                 "open('huge', 'w').truncate(17 << 20)\n"
                 "open('in', 'w').write('x'); os.symlink('in', 'link')")
    assert r.json["how"] == "ok", r
    assert session("GET", "/files/link").body == b"x"
    for name in ("fifo", "tofifo", "dir", "out", "root/etc/passwd", "loop",
                 "huge", "no", "x" * 300, "a/" * 3000):
        r = session("GET", f"/files/{name}")
        assert r.status in (404, 422), (name, r)
        with session.ask("print(1)") as s:
            assert shown(read_events(s)) == "1\n", name
    for name in ("%2e%2e/x", "a/%2e%2e/%2e%2e/x", "..%2fx", "%2e%2e", "%2e",
                 "root/x", "out/x", "a%00b", "", "dir", "x" * 300,
                 "d/" * 3000 + "f"):
        for method in "PUT", "DELETE":
            if (method, name) == ("DELETE", "dir"):
                continue
            r = session(method, f"/files/{name}", b"evil")
            assert 400 <= r.status < 500, (method, name, r)
    assert session("PUT", "/files/out", b"mine").status == 201
    assert "root:" in pathlib.Path("/etc/passwd").read_text()
    assert session.show("open('out').read(), os.path.islink('out')") == \
        "('mine', False)\n"
    names = {f["path"] for f in session("GET", "/files").json["files"]}
    assert names == {"fifo", "tofifo", "dir", "root", "loop", "huge", "in",
                     "link", "out"}


def test_a_home_that_is_full_says_so(serve):
    session = Session(serve("-s", "home.size=1M", "-s", "files.max_file=2M"))
    r = session("PUT", "/files/big", b"x" * (2 << 20))
    assert r.status == 422 and r.json["detail"], r
    r = session("PUT", "/files/big", b"x" * (3 << 20))
    assert r.status == 422 and "files.max_file" in r.json["detail"], r
    assert session("PUT", "/files/ok", b"x" * 1000).status == 201
    assert [f["path"] for f in session("GET", "/files").json["files"]] == ["ok"]


@pytest.mark.sampled
def test_a_hostile_cell_costs_its_own_session(server):
    timeout_ms = 2000 if WHOLE else 700
    victim = Session(server)
    victim.cell("x = 42")
    hostile = [
        "import os; os.closerange(0, 100000)",
        "import os, signal\nwhile True: os.kill(-1, 9)",
        "import os\nos.write(1, b'\\x1b_' + b'0' * 32 + b'\\x1b\\\\' * 9)",
        "import os\nfor i in range(3, 2000):\n"
        "    try: os.write(i, b'DONE 1 ok 0 0 0 1')\n"
        "    except OSError: pass",
        "import os\nwhile True: os.write(1, b'\\xff\\x00' * 4096)",
        "while True: print(end='\\x1b]0;' * 999)",
        "import os\nwhile os.fork() >= 0: pass",
        "import threading, time\n[threading.Thread(target=time.sleep, "
        "args=(9,)).start() for _ in range(9)]",
        "import sys; sys.stdout.close()",
        "raise SystemExit('x' * 10000)",
    ]
    for code in hostile:
        session = Session(server)
        with session.ask(code, timeout_ms=timeout_ms) as s:
            found = read_events(s)
        assert found[-1][0] in ("done", "error"), code
        assert victim.show("x") == "42\n", code
        session("DELETE")
    assert victim("GET").status == 200


@pytest.mark.sampled
@pytest.mark.alone
def test_a_hundred_sessions_at_once(serve):
    server = serve("-s", "serve.sessions=100",
                   "-s", "serve.sessions_per_client=100",
                   "-s", "session.memory=32M",
                   "-s", "session.processes=8", "-s", "cell.checkpoint=never")
    sessions = [Session(server) for _ in range(100)]
    for i, s in enumerate(sessions):
        s.cell(f"x = {i}")
    assert server.figures()["sessions"] == 100
    assert [int(s.show("x")) for s in sessions[::7]] == list(range(0, 100, 7))
    assert server.run("1").json["result"] == 1
    assert server("POST", SESSIONS, b"", JSON).status == 503


def test_nothing_is_left_of_sessions(serve):
    server = serve("-s", "serve.sessions=4", *LONG)
    fds = pathlib.Path(f"/proc/{server.process.pid}/fd")

    def settled():
        hosttree.until(lambda: server.figures()['jails{state="taken"}'] == 0 and
                       server.figures()['jails{state="ending"}'] == 0 and
                       server.figures()['jails{state="spare"}'] == 3 and
                       server.figures()["clients"] == 1, "it is at rest")
        return len(list(fds.iterdir()))

    def live_and_die(i):
        session = Session(server)
        session.cell("x = 1")
        if i % 3 == 0:
            session.begin(ENDLESS, i % 2 == 0).close()
        elif i % 3 == 1:
            session("PUT", "/files/x", b"y" * 1000)
            session("GET", "/files/x")
        assert session("DELETE").status == 204

    for i in range(3):
        live_and_die(i)
    before = settled()
    for i in range(12):
        live_and_die(i)
    hosttree.until(lambda: settled() <= before, "as many descriptors", 20)
