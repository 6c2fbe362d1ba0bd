# SPDX-License-Identifier: MIT
"""cellblock --serve: the id of each request, and the log."""
import contextlib
import fcntl
import json
import os
import re
import resource
import select
import signal
import socket
import struct
import threading

import pytest

import hosttree
from client import (JSON, LONG, SLOW, TIMEOUT_MS, Server, Tenant, evaluation,
                    read_all, request, small_disk)
from world import IS_ROOT

UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"


def ids(answer):
    """The ids in the heads of answers."""
    return re.findall(r"^X-Request-Id: (.*)\r$", answer.decode("latin-1"),
                      re.M)


@pytest.mark.parametrize("what", [
    evaluation("1", "Connection: close"),
    request("GET", "/health", b"", "Connection: close"),
    request("HEAD", "/health", b"", "Connection: close"),
    request("GET", "/nowhere", b"", "Connection: close"),
    request("PUT", "/eval", b"", "Connection: close"),
    request("POST", "/v1/sessions", b"", "Connection: close"),
    b"GET /health HTTP/1.0\r\n\r\n",
    b"nonsense\r\n",
    b"GET /health HTTP/1.1\r\n\r\n",
    b"\x16\x03\x01",
    b"GET /" + b"x" * 9000,
    request("POST", "/eval", b"", "Content-Length: 99999999999"),
    request("POST", "/nowhere", b"zz\r\n", "Transfer-Encoding: chunked"),
    request("POST", "/eval", b"zz\r\n", "Transfer-Encoding: chunked",
            "Content-Type: application/json"),
], ids=lambda b: re.sub(r"[^ -~]+", " ", b.decode("latin-1"))[:40].strip())
def test_every_answer_has_the_id_of_its_request(lasting, what):
    made, = ids(lasting.raw(what))
    assert re.fullmatch(UUID, made)
    if b"HTTP/1.1\r\n" not in what or b"\r\n\r\n" not in what:
        return
    # The client's own comes back, also where what follows it is refused.
    named = what.replace(b"HTTP/1.1\r\n", b"HTTP/1.1\r\nX-Request-Id: a-1\r\n")
    assert ids(lasting.raw(named)) == ["a-1"]


@pytest.mark.parametrize("sent, kept", [
    ("0af7651916cd43dd8448eb211c80319c", True),
    ("Root=1-67891233-abcdef012345678912345678", True),
    ("a:b/c+d@e~f._-=", True),
    ("x" * 128, True),
    ("x" * 129, False),
    ("", False),
    ("a b", False),
    ("a\tb", False),
    ('a","status":200', False),
    ("é", False),
    ("a\x1b[31m", None),
    ("%0a", False),
])
def test_an_id_of_the_client_has_harmless_characters(lasting, sent, kept):
    head = request("GET", "/health", b"", "Connection: close")
    head = head.replace(b"\r\n\r\n", b"\r\nX-Request-Id: " + sent.encode()
                        + b"\r\n\r\n")
    answer = lasting.raw(head)
    got, = ids(answer)
    assert (got == sent) is bool(kept)
    assert kept or re.fullmatch(UUID, got)
    assert answer.startswith(b"HTTP/1.1 " +
                             (b"400 " if kept is None else b"200 "))


def test_a_request_with_two_ids_gets_another(lasting):
    got, = ids(lasting.raw(request(
        "GET", "/health", b"", "X-Request-Id: a", "X-Request-Id: b",
        "Connection: close")))
    assert re.fullmatch(UUID, got)


def test_requests_of_a_connection_have_an_id_each(lasting):
    got = ids(lasting.raw(
        request("GET", "/health", b"", "X-Request-Id: first") +
        request("GET", "/health") +
        request("GET", "/health", b"", "Connection: close")))
    assert got[0] == "first" and len(set(got)) == 3


# ---- what is logged ----

ALL = ("-s", "serve.log=requests")
BODIES = ("-s", "serve.log=bodies")


def entries(text):
    """The lines of a log, each of which is a whole one."""
    if isinstance(text, bytes):
        text = text.decode("ascii")
    assert not text or text.endswith("\n")
    return [json.loads(line) for line in text.splitlines()
            if not line.startswith("cellblock: serving at ")]


def logged(server):
    """The requests that a server has logged, which ends."""
    assert server.end() == 0
    return [e for e in entries(server.process.stderr.read()) if "id" in e]


def test_a_line_says_what_became_of_a_request(serve):
    server = serve(*ALL)
    named = {**JSON, "X-Request-Id": "mine"}
    body = json.dumps({"code": "sum(range(3 * 10**6))",
                       "timeout_ms": TIMEOUT_MS}).encode()
    answer = server("POST", "/v1/execute", body, named)
    server.run("while True: pass", timeout_ms=200)
    stored = server.upload(b"hi").json["file_id"]
    server("GET", f"/v1/files/{stored}?q=1")
    server("GET", "/v1/files/nothing")
    server("GET", "/no/such/path")
    server.raw(b"nonsense\r\n")
    new = server("POST", "/v1/sessions").json["id"]
    cell = server("POST", f"/v1/sessions/{new}/cells", {"code": "1"}).json
    got = logged(server)
    assert [(e["method"], e["path"], e["status"], e["outcome"], e["limit"])
            for e in got] == [
        ("POST", "/v1/execute", 200, "ok", None),
        ("POST", "/v1/execute", 200, "limit", "cell.timeout"),
        ("POST", "/v1/files", 201, "ok", None),
        ("GET", "/v1/files/{file_id}", 200, "ok", None),
        ("GET", "/v1/files/{file_id}", 404, "refused", None),
        ("GET", None, 404, "refused", None),
        (None, None, 400, "refused", None),
        ("POST", "/v1/sessions", 201, "ok", None),
        ("POST", "/v1/sessions/{id}/cells", 200, "ok", None)]
    first = got[0]
    assert first["id"] == "mine" and first["client"] == "127.0.0.1"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", first["time"])
    assert first["bytes_in"] == len(body)
    assert first["bytes_out"] == len(answer.body)
    assert first["cpu_ms"] == answer.json["cpu_ms"] > 0
    assert got[1]["duration_ms"] >= 200
    assert got[2]["cpu_ms"] is None
    assert got[8]["cpu_ms"] == max(0, cell["cpu_ms"])
    assert all(e["level"] == "info" and "body" not in e for e in got)
    # A reader of the log who knew an id could use the session or the file.
    assert new not in str(got) and stored not in str(got)


def test_a_client_that_goes_away_is_logged(serve):
    server = serve(*ALL, *LONG)
    with server.connect() as s:
        s.sendall(evaluation("import time; time.sleep(60)"))
        server.await_running()
    server.await_running(0)
    gone, = [e for e in logged(server) if e["path"] == "/eval"]
    assert (gone["status"], gone["outcome"]) == (None, "gone")


@pytest.mark.parametrize("level, wanted", [
    ("off", []), (None, [503]), ("requests", [503, 422, 200, 200]),
    ("bodies", [503, 422, 200, 200])])
def test_a_level_says_which_requests_are_logged(serve, level, wanted):
    server = serve("-s", "serve.concurrent=1", "-s", "serve.queue=0", *LONG,
                   *(("-s", f"serve.log={level}") if level else ()))
    with server.connect() as s:
        s.sendall(evaluation("import time; time.sleep(60)"))
        hosttree.until(lambda: server.run("1").status == 503, "it is full")
        server.run(1)
    hosttree.until(lambda: server.run("2").status == 200, "it has room")
    server("GET", "/health")
    assert server.end() == 0
    got = entries(server.process.stderr.read())
    statuses = [e["status"] for e in got if "status" in e
                and e["path"] in ("/v1/execute", "/health")]
    if level in ("requests", "bodies"):
        for n in 503, 422, 200:
            assert n in statuses
    else:
        assert set(statuses) == set(wanted)
    assert {(e["status"], e["level"]) for e in got if "status" in e} <= {
        (503, "warning"), (422, "info"), (200, "info"), (None, "info")}
    assert got[-1]["message"].startswith("ending")
    codes = [json.loads(e["body"])["code"] for e in got if "body" in e
             and e["path"] == "/v1/execute"]
    assert ("2" in codes) is (level == "bodies")


def test_a_jail_that_fails_is_logged_with_the_id_of_its_request(serve):
    server = serve(spare=0)
    answer = server.run_in_jail_that_dies()
    failed, = logged(server)
    assert failed["id"] == answer.headers["X-Request-Id"]
    # 503: Python was up, and had no code yet
    assert (failed["status"], failed["outcome"]) in (
        (500, "failed"), (503, "failed"))
    assert failed["level"] == "error"
    assert failed["error"] in answer.json["detail"]


def test_the_level_changes_at_sighup(serve, tmp_path):
    conf = tmp_path / "conf"
    conf.write_text("[serve]\nlog = off\n")
    server = serve("-f", conf)
    for level in "off", "errors", "requests":
        conf.write_text(f"[serve]\nlog = {level}\n")
        server.reload()
        server("GET", "/health", headers={"X-Request-Id": level})
    assert [e["id"] for e in logged(server)] == ["requests"]


def test_a_tenant_is_named(serve, tokens):
    server = serve(*ALL, *tokens.write("ann: apple\n").args)
    assert Tenant(server, "apple")("GET", "/v1/files").status == 200
    assert Tenant(server, "banana")("GET", "/v1/files").status == 401
    assert [(e["tenant"], e["status"]) for e in logged(server)] == [
        ("ann", 200), (None, 401)]


def test_a_body_is_cut_behind_a_whole_character(serve):
    server = serve(*BODIES)
    code = "# " + "é" * 5000
    server("POST", "/v1/execute", json.dumps(
        {"code": code}, ensure_ascii=False).encode(), JSON)
    server.run("1")
    long, short = logged(server)
    assert code.startswith(long["body"].removeprefix('{"code": "'))
    assert 4090 < len(long["body"].encode()) <= 4096 < long["bytes_in"]
    assert json.loads(short["body"])["code"] == "1"


# ---- hostile clients ----

HOSTILE = b'x\n{"status": 200}\r\n\x1b[2J\x9b\xff\0"\nPRIORITY=0\n'


def hostile_requests():
    """Bytes, and whether they are a request."""
    quoted = "".join(f"%{c:02x}" for c in HOSTILE if c)
    yield request("GET", "/" + quoted)
    yield request("GET", "/v1/files/" + quoted)
    yield request("GET", "/v1/sessions/x/files/" + quoted)
    yield request("A%0A{}'#", "/health")
    yield request("GET", "/health", b"", 'X-Request-Id: a","status":1')
    yield b"GET / HTTP/1.1\r\nHost: x\r\nX-Request-Id: a\n{}\r\n\r\n"
    yield HOSTILE
    yield request("GET", "/" + HOSTILE.decode("latin-1"))
    yield request("POST", "/v1/execute", HOSTILE,
                  "Content-Type: application/json",
                  f"Content-Length: {len(HOSTILE)}")
    yield request("POST", "/v1/undo\0", HOSTILE)


def test_no_client_forges_a_line(serve):
    server = serve(*BODIES)
    sent = list(hostile_requests())
    for bytes_ in sent:
        server.raw(bytes_.replace(b"Host:", b"Connection: close\r\nHost:"))
    server("GET", "/health", headers={"X-Request-Id": "last"})
    assert server.end() == 0
    text = server.process.stderr.read()
    assert set(text) <= {0x0a, *range(0x20, 0x7f)}
    got = [e for e in entries(text) if "id" in e]
    assert len(got) == len(sent) + 1
    assert got[-1]["id"] == "last" and got[-1]["outcome"] == "ok"
    assert all(re.fullmatch(UUID, e["id"]) for e in got[:-1])
    assert {e["path"] for e in got} == {
        None, "/v1/files/{file_id}", "/v1/sessions/{id}/files/{path}",
        "/v1/execute", "/health"}


# ---- a log that takes nothing ----

# So many lines of 4 KiB fill a pipe and what the server keeps.
FLOOD = 200


def flood(server, n=FLOOD):
    body = json.dumps({"no": "x" * 4096}).encode()
    with server.connect() as s, s.makefile("rb") as answers:
        for _ in range(n):
            s.sendall(request("POST", "/v1/execute", body,
                              "Content-Type: application/json",
                              f"Content-Length: {len(body)}"))
            assert answers.readline().startswith(b"HTTP/1.1 422 ")
            while line := answers.readline().strip():
                if line.startswith(b"Content-Length: "):
                    length = int(line.split()[1])
            answers.read(length)


def lost(server):
    return server.figures()["log_lost_total"]


def counted(got):
    """How many lines there are of a flood, and how many are said to be lost."""
    said = [re.match(r"(\d+) lines of the log are lost$", e.get("message", ""))
            for e in got]
    return (sum(e.get("path") == "/v1/execute" for e in got),
            sum(int(m[1]) for m in said if m))


def test_a_reader_that_stops_holds_nobody(serve):
    server = serve(*BODIES)
    stderr = server.process.stderr
    flood(server)
    assert lost(server) > 0
    # It reads again: nothing that waited is torn.
    kept = []
    t = threading.Thread(target=lambda: kept.extend(stderr))
    t.start()

    def is_read_again():
        server("GET", "/health", headers={"X-Request-Id": "again"})
        return any(b'"again"' in line for line in kept)

    missing = lost(server)
    hosttree.until(is_read_again, "the log takes lines again")
    assert server.end() == 0
    t.join()
    lines, said = counted(entries(b"".join(kept)))
    assert said >= missing and lines > 0


def test_a_reader_that_goes_away_takes_nothing_along(serve):
    server = serve(*ALL)
    server.process.stderr.close()
    server.process.stderr = None
    for _ in range(3):
        assert server.run("1").status == 200
    hosttree.until(lambda: lost(server) >= 3, "lines are lost")


def test_a_full_disk_loses_lines_and_nothing_else(serve, tmp_path):
    log = tmp_path / "log"
    server = serve(*BODIES, errors=log)
    flood(server, 3)
    # A line is written behind its answer.
    hosttree.until(lambda: log.read_text().count("/v1/execute") == 3,
                   "the lines are there")
    before = log.stat().st_size
    pid = server.process.pid
    # The next line is written in part.
    soft, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (before + 100, hard))
    flood(server, 3)
    hosttree.until(lambda: lost(server) >= 3, "lines are lost")
    assert log.stat().st_size == before + 100
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (soft, hard))
    flood(server, 1)
    assert server.end() == 0
    lines = log.read_text().splitlines(True)
    torn = [x for x in lines if x.startswith("{") and not x.endswith("}\n")]
    assert len(torn) == 1 and len(torn[0]) == 101
    got = entries("".join(x for x in lines if x not in torn))
    assert counted(got)[0] == 4 and counted(got)[1] >= 3


@pytest.mark.root
@pytest.mark.skipif(not IS_ROOT, reason="mounting needs root")
def test_a_disk_that_is_full_of_logs_and_files_holds_nobody(serve, cb):
    """One for both: code runs, uploads are refused, and the rest is as before
    when there is room again."""
    with small_disk(cb.base / "disk", "3m") as disk:
        log = disk / "log"
        server = serve(*BODIES, "-s", f"serve.directory={disk}", errors=log)
        assert server.upload(b"x" * 1000).status == 201
        with open(disk / "full", "wb", 0) as f:
            with pytest.raises(OSError, match="No space"):
                while True:
                    f.write(bytes(4096))
        flood(server, 20)
        hosttree.until(lambda: lost(server) > 0, "lines are lost")
        assert server.run("6 * 7").json["result"] == 42
        r = server.upload(bytes(1 << 20))
        assert (r.status, r.json["detail"]) == (
            507, "There is no room for more files")
        r = server.run("open('f', 'wb').write(bytes(1 << 20))").json
        assert r["files"] == [] and "no room" in r["files_error"], r
        (kept,) = server("GET", "/v1/files").json["files"]
        assert server("GET", f"/v1/files/{kept['file_id']}").body == \
            b"x" * 1000
        (disk / "full").unlink()
        assert server.upload(bytes(1 << 20)).status == 201
        hosttree.until(lambda: server("GET", "/health", headers={
            "X-Request-Id": "again"}) and '"again"' in log.read_text(),
            "the log takes lines again")
        assert server.end() == 0
        assert counted(entries("".join(
            x for x in log.read_text().splitlines(True)
            if x.endswith("}\n"))))[1] > 0, "it says how many are lost"


def test_a_log_that_blocks_keeps_it_from_nothing(serve, tokens):
    """The server reads its files again, and ends."""
    two = "metrics: pear\nann: "
    server = serve(*BODIES, *tokens.write(two + "apple").args)
    ann, meter = Tenant(server, "apple"), Tenant(server, "pear")
    while not lost(meter):
        assert ann("POST", "/v1/execute", {"no": "x" * 4096}).status == 422
    tokens.write(two + "banana")
    server.process.send_signal(signal.SIGHUP)
    hosttree.until(lambda: Tenant(server, "banana")(
        "GET", "/v1/files").status == 200, "it reads the tokens")
    assert lost(meter) > 0
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(SLOW) == 0


@contextlib.contextmanager
def quiet(cb, stderr, env=None):
    """A server that says nothing of its own."""
    place = cb.base / "socket"
    p = cb.popen("-q", *BODIES, "--serve", f"unix:{place}", stderr=stderr,
                 env=env)

    def ask(bytes_):
        with socket.socket(socket.AF_UNIX) as s:
            hosttree.until(lambda: s.connect_ex(str(place)) == 0, "it listens")
            s.sendall(bytes_)
            return read_all(s)

    yield ask
    p.terminate()
    assert p.wait(SLOW) == 0


def test_standard_error_blocks_for_others_as_before(cb):
    """They share the open file, and may write to it when it is full."""
    r, w = os.pipe()
    with open(r, "rb"), open(w, "wb"), quiet(cb, w) as ask:
        fcntl.fcntl(w, fcntl.F_SETPIPE_SZ, 4096)
        while select.select([], [w], [], 0)[1]:
            ask(request("GET", "/health", b"", "Connection: close"))
        assert os.get_blocking(w)


# ---- the journal ----

SOCKET = "/run/systemd/journal/socket"


@pytest.fixture(name="journal")
def _journal():
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        try:
            os.makedirs(os.path.dirname(SOCKET), exist_ok=True)
            s.bind(SOCKET)
        except OSError as e:
            pytest.skip(f"no journal of the test's own: {e}")
        s.settimeout(SLOW)
        yield s
    os.unlink(SOCKET)


def fields(datagram):
    """As the native protocol of the journal has them."""
    found = []
    while datagram:
        head, _, datagram = datagram.partition(b"\n")
        name, equals, value = head.partition(b"=")
        if not equals:
            n, = struct.unpack("<Q", datagram[:8])
            value, datagram = datagram[8:8 + n], datagram[8 + n:]
            assert datagram[:1] == b"\n"
            datagram = datagram[1:]
        found.append((name.decode(), value))
    assert len(dict(found)) == len(found), found
    return dict(found)


@pytest.mark.root
def test_the_journal_has_a_field_for_each_of_a_line(serve, journal):
    server = serve(*BODIES, "-s", "serve.log_to=journal")
    server("POST", "/v1/execute", HOSTILE, {**JSON, "X-Request-Id": "a"})
    got = fields(journal.recv(1 << 20))
    assert got.pop("CELLBLOCK_BODY") == HOSTILE
    assert int(got.pop("CELLBLOCK_DURATION_MS")) >= 0
    assert int(got.pop("CELLBLOCK_BYTES_OUT")) > 0
    assert got == {
        "SYSLOG_IDENTIFIER": b"cellblock", "PRIORITY": b"6",
        "MESSAGE": b"POST /v1/execute: refused",
        "CELLBLOCK_ID": b"a", "CELLBLOCK_CLIENT": b"127.0.0.1",
        "CELLBLOCK_METHOD": b"POST", "CELLBLOCK_PATH": b"/v1/execute",
        "CELLBLOCK_STATUS": b"422", "CELLBLOCK_OUTCOME": b"refused",
        "CELLBLOCK_BYTES_IN": str(len(HOSTILE)).encode()}
    assert server.end() == 0
    assert server.process.stderr.read() == b""


@pytest.mark.root
@pytest.mark.parametrize("ours", [True, False])
def test_the_journal_is_used_where_it_has_standard_error(cb, journal, ours):
    """A variable that is left over from another unit says nothing."""
    r, w = os.pipe()
    st = os.fstat(w)
    env = {"JOURNAL_STREAM": f"{st.st_dev}:{st.st_ino + (not ours)}"}
    with open(r, "rb") as stderr:
        with open(w, "wb"), quiet(cb, w, env) as ask:
            ask(request("GET", "/health", b"", "Connection: close"))
        said = entries(stderr.read())
    if ours:
        assert fields(journal.recv(1 << 20))["CELLBLOCK_CLIENT"] == b"uid:0"
        assert not said
    else:
        assert said[0]["client"] == "uid:0"
        journal.setblocking(False)
        with pytest.raises(BlockingIOError):
            journal.recv(1)


@pytest.mark.root
def test_a_journal_that_reads_nothing_holds_nobody(serve, journal):
    server = serve(*BODIES, "-s", "serve.log_to=journal")
    flood(server)
    missing = lost(server)
    assert missing > 0
    got = []
    while not any(b"lines of the log are lost" in d for d in got):
        got.append(journal.recv(1 << 20))
        if len(got) % 20 == 0:
            flood(server, 1)
    assert all(fields(d)["SYSLOG_IDENTIFIER"] == b"cellblock" for d in got)


@pytest.mark.root
def test_without_a_journal_none_is_promised(cb):
    r = cb.run("-s", "serve.log_to=journal", "--serve", "127.0.0.1:0")
    assert r.code == 78 and "serve.log_to: connect to the journal" in r.said
    assert Server(cb, *ALL).end() == 0
