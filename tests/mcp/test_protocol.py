# SPDX-License-Identifier: MIT
"""cellblock --mcp: versions, messages, calls at a time, and the end."""
import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess

import pytest

import hosttree
import inflight
import npm
from agent import Client, TOOLS, VERSIONS, WAIT, text_of
from world import CELLBLOCK, IS_ROOT, PATIENCE

HERE = pathlib.Path(__file__).resolve().parent
STATELESS = "2026-07-28"


# ---- who speaks which version ----

@pytest.mark.parametrize("version", VERSIONS)
def test_each_version_is_spoken(cb, version):
    c = Client(cb, version=version)
    assert c.call("ping")["result"] == {}
    assert c.show("6 * 7") == "42\n"
    assert c.close() == 0


@pytest.mark.parametrize("version", ["1999-01-01", "2026-07-28", ""])
def test_another_version_is_answered_with_the_newest(cb, version):
    c = Client(cb, version=None)
    r = c.call("initialize", protocolVersion=version, capabilities={},
               clientInfo={"name": "t", "version": "1"})["result"]
    assert r["protocolVersion"] == VERSIONS[-1]
    assert r["capabilities"] == {"tools": {}, "resources": {}}
    assert r["serverInfo"]["name"] == "cellblock"
    assert "10 s" in r["instructions"] and "512 MiB" in r["instructions"]
    assert c.call("initialize")["error"]["code"] == -32602
    assert c.call("initialize", protocolVersion=1)["error"]["code"] == -32602


def test_a_version_without_handshake_comes_with_each_request(cb):
    c = Client(cb, version=None)
    meta = {"io.modelcontextprotocol/protocolVersion": STATELESS,
            "io.modelcontextprotocol/clientCapabilities": {}}
    found = c.call("server/discover", _meta=meta)["result"]
    assert found["supportedVersions"] == [STATELESS] + VERSIONS[::-1]
    tools = c.call("tools/list", _meta=meta)["result"]
    files = c.call("resources/list", _meta=meta)["result"]
    ran = c.call("tools/call", name="run_cell", arguments={"code": "6 * 7"},
                 _meta=meta)["result"]
    for r in found, tools, files, ran:
        assert r["resultType"] == "complete", r
        server = r["_meta"]["io.modelcontextprotocol/serverInfo"]
        assert server["name"] == "cellblock"
    for r in found, tools, files:
        assert r["ttlMs"] >= 0 and r["cacheScope"] in ("public", "private")
    assert text_of(ran) == "42\n"
    meta["io.modelcontextprotocol/protocolVersion"] = "1900-01-01"
    e = c.call("tools/list", _meta=meta)["error"]
    assert e["code"] == -32022 and e["data"] == {
        "supported": found["supportedVersions"], "requested": "1900-01-01"}
    meta["io.modelcontextprotocol/protocolVersion"] = 5
    assert c.call("ping", _meta=meta)["error"]["code"] == -32022
    assert "resultType" not in c.call("tools/list")["result"]


# ---- while a cell runs ----

def test_progress_is_told_to_who_asks(mcp):
    code = "import time\nfor i in range(24):\n    print('at', i, flush=True)\n" \
           "    time.sleep(.1)"
    mcp.run(code)
    assert mcp.notes == []
    n = mcp.ask_tool("run_cell", "token-1", code=code)
    assert mcp.take()["id"] == n
    while mcp.notes and "message" not in mcp.notes[0]:  # nothing printed yet
        del mcp.notes[0]
    assert len(mcp.notes) >= 2
    steps = [p["progress"] for p in mcp.notes]
    assert steps == sorted(set(steps))
    for p in mcp.notes:
        assert p["progressToken"] == "token-1" and p["total"] == 10
        assert re.fullmatch(r"at \d+", p["message"])
    before = mcp.cpu()
    for token in [1], {}, True, 1.5, None:
        n = mcp.ask_tool("run_cell", token, code="time.sleep(2)")
        if token is None:
            mcp.note("notifications/cancelled", requestId=n)
        else:
            assert mcp.take()["id"] == n
    assert mcp.is_silent()
    assert mcp.cpu() - before < 0.5


def test_a_cancelled_call_interrupts_its_cell(mcp):
    mcp.run("x = 5")
    n = mcp.ask_tool("run_cell", 7, code=WAIT)
    mcp.await_output("on")
    mcp.note("notifications/cancelled", requestId=n, reason="enough")
    r = mcp.run("x")
    assert text_of(r).startswith("5\n")
    assert any("cell 2 was cancelled" in s
               for s in r["structuredContent"]["notices"]), r
    assert mcp.show("x") == "5\n"


def test_a_cell_that_will_not_end_is_killed_when_cancelled(cb):
    c = Client(cb, "-t", "50s", "-s", "cell.grace=300ms")
    c.run("x = 5")
    n = c.ask_tool("run_cell", 7, code="import time\nx = 6\nwhile True:\n"
                   "    try: print('on', flush=True); time.sleep(99)\n"
                   "    except BaseException: pass")
    c.await_output("on")
    c.note("notifications/cancelled", requestId=n)
    r = c.run("x")
    assert text_of(r).startswith("5\n"), r
    assert "back to the state" in r["structuredContent"]["notices"][0]


def test_a_cancelled_call_that_waits_never_runs(mcp):
    first = mcp.ask_tool("run_cell", 1, code="import time; print(1); "
                         f"time.sleep({1.5 * PATIENCE})")
    second = mcp.ask_tool("run_cell", code="x = 1")
    third = mcp.ask_tool("run_cell", code="'x' in globals()")
    mcp.note("notifications/cancelled", requestId=second)
    mcp.note("notifications/cancelled", requestId=999)
    mcp.note("notifications/cancelled")
    mcp.note("notifications/cancelled", requestId=[])
    answers = [mcp.take(), mcp.take()]
    assert [a["id"] for a in answers] == [first, third]
    assert text_of(answers[1]["result"]) == "False\n"
    mcp.note("notifications/cancelled", requestId=first)
    assert mcp.is_silent()


def test_a_reset_that_is_cancelled_before_it_begins_costs_no_session(mcp):
    """It waits for the checkpoint of the cell before."""
    for i in range(5):
        mcp.run("import os, time\nos.register_at_fork(before=lambda: "
                f"time.sleep(.05))\nx = {i}")
        mcp.ask_and_cancel("reset")
        assert mcp.show("6 * 7") == "42\n"
    assert "reset" in mcp.tool("reset")["structuredContent"]   # the control
    assert "NameError" in mcp.show("x")


def children(pid):
    with contextlib.suppress(OSError):      # it has ended
        return [int(p) for p in pathlib.Path(
            f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


def test_a_ping_waits_for_no_session_that_is_made(mcp):
    mcp.run("x = 1")
    maker, = children(mcp.p.pid)
    warden = next(w for w in children(maker) if children(w))
    os.kill(warden, signal.SIGKILL)
    assert "The session is over" in text_of(mcp.run("x"))
    os.kill(maker, signal.SIGSTOP)
    try:
        reset = mcp.ask_tool("reset")
        # the first ping may have been read together with the call
        assert mcp.is_silent() and mcp.is_silent()
    finally:
        os.kill(maker, signal.SIGCONT)
    assert mcp.take()["id"] == reset
    assert "NameError" in mcp.show("x")


@pytest.mark.parametrize("name, more", [
    ("list_files", {}), ("read_file", {"path": "f"}),
    ("write_file", {"path": "g", "text": "mine"})])
def test_a_ping_waits_for_no_file(mcp, name, more):
    mcp.run("open('f', 'w').write('mine')")
    maker, = children(mcp.p.pid)
    warden = next(w for w in children(maker) if children(w))
    os.kill(warden, signal.SIGSTOP)
    try:
        call = mcp.ask_tool(name, **more)
        assert mcp.is_silent() and mcp.is_silent()
    finally:
        os.kill(warden, signal.SIGCONT)
    answer = mcp.take()
    assert answer["id"] == call and not answer["result"]["isError"], answer


def test_calls_wait_in_order_and_all_else_does_not(mcp):
    calls = [mcp.ask_tool("run_cell", code="import time; "
                          f"time.sleep({PATIENCE}); 1"),
             mcp.ask_tool("run_cell", code="2"), mcp.ask_tool("list_files"),
             mcp.ask("resources/list")]
    at_once = [mcp.ask("ping"), mcp.ask("tools/list"), mcp.ask("nonsense")]
    assert [mcp.take()["id"] for _ in range(7)] == at_once + calls


def test_too_many_calls_are_refused(cb):
    mcp = Client(cb, "-t", "5m")
    first = mcp.ask_tool("run_cell", code=WAIT)
    calls = [mcp.ask_tool("run_cell", code="1") for _ in range(70)]
    refused = [mcp.take() for _ in range(7)]
    assert [r["id"] for r in refused] == calls[63:]
    assert all(r["error"]["code"] == -32603 for r in refused)
    big = mcp.ask_tool("run_cell", code="#" * 1000)
    assert mcp.take()["id"] == big
    mcp.note("notifications/cancelled", requestId=first)
    assert [mcp.take()["id"] for _ in range(63)] == calls[:63]


def test_calls_that_wait_hold_a_bounded_memory(cb):
    c = Client(cb, "-t", "5m", "-s", "files.max_file=2M")
    c.ask_tool("run_cell", code=WAIT)
    before = c.peak()
    calls = [c.ask_tool("run_cell", code="#" * 1000000) for _ in range(30)]
    c.ask("ping")
    refused = []
    while (r := c.take()).get("result") != {}:
        refused.append(r["id"])
    assert calls[-1] in refused and calls[0] not in refused
    assert c.peak() - before < 64 << 20
    # A value takes more than its bytes.
    c = Client(cb, "-t", "5m")
    c.ask_tool("run_cell", code=WAIT)
    before = c.peak()
    calls = [c.ask("tools/call", x=[0] * 400000) for _ in range(10)]
    last = c.ask("ping")
    refused = []
    while (r := c.take())["id"] != last:
        refused.append(r["id"])
    assert calls[-1] in refused and calls[0] not in refused
    assert c.peak() - before < 400 << 20


def test_answers_that_wait_for_their_batch_hold_a_bounded_memory(cb):
    c = Client(cb, "-M", "1G", version="2025-03-26")
    c.run("open('f', 'wb').write(b'x' * (3 << 20))")
    before = c.peak()
    read = {"jsonrpc": "2.0", "method": "tools/call", "params": {
        "name": "read_file", "arguments": {"path": "f"}}}
    c.raw(json.dumps([{**read, "id": i} for i in range(20)]) + "\n")
    answers = c.take()
    assert [a["id"] for a in answers] == list(range(20))
    assert ["result" in a for a in answers] == [True] * 2 + [False] * 18
    assert "8 MiB" in answers[2]["error"]["message"]
    assert c.peak() - before < 64 << 20
    again = c.tool("read_file", path="f")   # the control: alone it is read
    assert len(text_of(again)) == 3 << 20


# ---- what is not in order ----

BAD = [
    ("{", -32700, None), ("nonsense", -32700, None), ('{"a": 1, "a": 2}',
                                                      -32700, None),
    ('"\ud800"', -32700, None), ('{"jsonrpc": "2.0", "id": 1', -32700, None),
    ('{"jsonrpc": "2.0", "id": 99999999999999999999, "method": "ping"}',
     -32700, None),
    ("1", -32600, None), ("null", -32600, None), ("{}", -32600, None),
    ('{"jsonrpc": "1.0", "id": 5, "method": "ping"}', -32600, 5),
    ('{"id": 5, "method": "ping"}', -32600, 5),
    ('{"jsonrpc": "2.0", "id": null, "method": "ping"}', -32600, None),
    ('{"jsonrpc": "2.0", "id": 1.5, "method": "ping"}', -32600, None),
    ('{"jsonrpc": "2.0", "id": {}, "method": "ping"}', -32600, None),
    ('{"jsonrpc": "2.0", "id": 5, "method": 5}', -32600, 5),
    ('{"jsonrpc": "2.0", "id": 5}', -32600, 5),
    ('{"jsonrpc": "2.0", "id": 5, "method": "ping\\u0000"}', -32600, 5),
    ('{"jsonrpc": "2.0", "id": 5, "method": "ping", "params": []}', -32602, 5),
    ('{"jsonrpc": "2.0", "id": "é\\n", "method": "no/such"}', -32601, "é\n"),
    ('{"jsonrpc": "2.0", "id": 5, "method": "prompts/list"}', -32601, 5),
    ('{"jsonrpc": "2.0", "id": 5, "method": "logging/setLevel"}', -32601, 5),
    ("[]", -32600, None),
    ('[{"jsonrpc": "2.0", "id": 5, "method": "ping"}]', -32600, None),
    ("[" * 300, -32600, None),
    ("[" + "0," * 1100000 + "0]", -32600, None),
]


@pytest.mark.parametrize("line, code, of", BAD, ids=range(len(BAD)))
def test_a_message_that_is_not_in_order_is_refused(lasting, line, code, of):
    lasting.raw(line.encode("utf-8", "surrogatepass") + b"\n")
    m = lasting.take()
    assert (m["error"]["code"], m["id"]) == (code, of), m
    assert lasting.is_silent()
    assert lasting.show("6 * 7") == "42\n"


def test_what_needs_no_answer_gets_none(mcp):
    for line in ("", "  ", "\r", '{"jsonrpc": "2.0", "method": "no/such"}',
                 '{"jsonrpc": "2.0", "method": "tools/call", "params": '
                 '{"name": "run_cell", "arguments": {"code": "x = 1"}}}',
                 '{"jsonrpc": "2.0", "id": 1, "result": {}}',
                 '{"jsonrpc": "2.0", "id": 1, "error": {}}'):
        mcp.raw(line + "\r\n")
    assert mcp.is_silent()
    assert mcp.show("'x' in globals()") == "False\n"


def test_a_long_message_is_passed_over(cb):
    c = Client(cb, "-s", "files.max_file=1M", "-s", "cell.source=100K")
    c.ask("ping", x="y" * (20 << 20))
    m = c.take()
    assert (m["error"]["code"], m["id"]) == (-32600, None)
    assert c.show("6 * 7") == "42\n"
    assert c.peak() < 64 << 20


def test_an_id_that_is_in_use_is_refused(mcp):
    n = mcp.ask_tool("run_cell",
                     code=f"import time; time.sleep({PATIENCE}); 1")
    mcp.send(id=n, method="ping")
    m = mcp.take()
    assert (m["error"]["code"], m["id"]) == (-32600, None)
    assert text_of(mcp.take()["result"]) == "1\n"
    mcp.send(id=n, method="ping")
    assert mcp.take() == {"jsonrpc": "2.0", "id": n, "result": {}}


def test_batches_are_answered_where_the_version_has_them(cb):
    c = Client(cb, version="2025-03-26")
    run = {"jsonrpc": "2.0", "id": "r", "method": "tools/call", "params": {
        "name": "run_cell", "arguments": {"code": "6 * 7"}}}
    note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    ping = {"jsonrpc": "2.0", "id": "p", "method": "ping"}
    first = {"jsonrpc": "2.0", "id": "i", "method": "initialize", "params": {
        "protocolVersion": "2025-06-18"}}
    c.raw(json.dumps([run, note, ping, 5, first]) + "\n")
    answers = {a["id"]: a for a in c.take()}
    assert set(answers) == {"r", "p", None, "i"}
    assert text_of(answers["r"]["result"]) == "42\n"
    assert answers[None]["error"]["code"] == -32600
    assert answers["i"]["error"]["code"] == -32601
    c.raw(json.dumps([note, note]) + "\n")
    assert c.is_silent()
    slow = {**run, "params": {"name": "run_cell", "arguments": {
        "code": WAIT}}}
    c.raw(json.dumps([slow]) + "\n")
    c.note("notifications/cancelled", requestId="r")
    assert c.show("'x'") == "'x'\n"
    c.raw(json.dumps([ping] * 65) + "\n")
    assert c.take()["error"]["code"] == -32600


# ---- the end ----

def test_a_client_that_leaves_takes_the_jail_along(mcp, cb):
    mcp.ask_tool("run_cell", 1, code=WAIT)
    mcp.await_output("on")
    tree = cb.tree(mcp.p)
    tree.look()
    assert tree.guests()
    assert mcp.close() == 0
    tree.wait_gone()


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_no_jail_outlives_the_server(mcp, cb, how):
    mcp.ask_tool("run_cell", 1, code=WAIT)
    mcp.await_output("on")
    tree = cb.tree(mcp.p)
    tree.look()
    mcp.p.send_signal(how)
    mcp.p.wait(20 * PATIENCE)
    tree.wait_gone()


def test_a_client_that_reads_nothing_any_more_ends_the_server(mcp, cb):
    tree = cb.tree(mcp.p)
    tree.look()
    mcp.p.stdout.close()
    mcp.ask_tool("run_cell", code="6 * 7")
    assert mcp.p.wait(20 * PATIENCE) == 141
    tree.wait_gone()


def test_the_end_in_the_middle_of_a_line(mcp):
    mcp.raw('{"jsonrpc": "2.0", "id": 1, "method": "pi')
    assert mcp.close() == 0
    assert json.loads(mcp.p.stdout.read())["error"]["code"] == -32700


def test_a_jail_that_cannot_be_built_is_told(cb):
    c = Client(cb, "-s", "jail.expose=/no/such/place")
    for r in c.run("1"), c.tool("list_files"), c.tool("reset"):
        assert r["isError"], r
    assert "/no/such/place" in text_of(c.run("1"))
    assert c.close() in (78, 125)
    assert b"/no/such/place" in c.p.stderr.read()


@pytest.mark.alone      # others of this user may have more in flight
def test_descriptors_in_flight_are_named_and_a_reset_helps(cb):
    """A cell elsewhere may hold more of them than this program may send."""
    if IS_ROOT:
        pytest.skip("root may send any number")
    inflight.wait_landed()
    with inflight.held():
        c = Client(cb, wrapper=("sh", "-c", 'ulimit -n 200; exec "$@"', "sh"))
        r = c.run("1")
        assert r["isError"] and "Too many references" in text_of(r), r
        assert "reset begins" in text_of(r), r
    hosttree.until(lambda: not c.tool("reset")["isError"], "a session")
    assert c.show("6 * 7") == "42\n"
    assert c.close() == 125


@pytest.mark.alone
def test_descriptors_in_flight_below_the_hard_limit_cost_no_session(cb):
    """As many as cells of the same person may have elsewhere."""
    if IS_ROOT:
        pytest.skip("root may send any number")
    inflight.wait_landed()
    c = Client(cb, wrapper=("sh", "-c", 'ulimit -Sn 1024; exec "$@"', "sh"))
    c.run("x = 41")
    with inflight.held(inflight.CELLS):
        assert c.show("x + 1") == "42\n"
    assert c.close() == 0


def test_a_session_that_is_killed_is_told(mcp, cb):
    mcp.run("x = 1")
    tree = cb.tree(mcp.p)
    tree.kill(tree.warden)
    r = mcp.run("x")
    assert r["isError"] and "reset begins a new one" in text_of(r)
    assert not mcp.tool("reset")["isError"]
    assert mcp.show("6 * 7") == "42\n"
    assert mcp.close() == 125


def test_the_server_can_do_nothing(mcp):
    mcp.run("1")
    hosttree.assert_powerless(mcp.p.pid)


def test_options_that_make_no_sense_are_refused(cb):
    for args in (["-u", "x", "--mcp"], ["-d", "x", "--mcp"], ["--mcp", "x"],
                 ["--mcp", "--eval"]):
        r = cb.run(*args)
        assert r.code == 2 and r.out == b"" and r.said, r


def test_it_is_a_session_to_the_administrator(cb):
    """It is counted, and written down where that is asked for."""
    log = cb.base / "log"
    log.mkdir()
    one = ("-s", "session.per_user=1", "-s", f"log.transcript={log}")
    c = Client(cb, *one)
    c.run("print('a' + 'b')\n1/0")
    r = cb.run(*one, "--mcp")
    assert r.code == 75 and "per_user" in r.said, r
    assert c.close() == 0
    text, = [p.read_text() for p in log.iterdir() if p.stat().st_size]
    assert "print('a' + 'b')" in text and "ab\n" in text.replace("\r", "")


# ---- the official SDK ----

@pytest.mark.sampled
@pytest.mark.limit(500)
@pytest.mark.parametrize("package", ["@modelcontextprotocol/sdk",
                                     "@modelcontextprotocol/client"])
def test_the_official_sdk_is_content(cb, package):
    npm.need_node(package)
    place = npm.install(cb.base, package)
    r = subprocess.run(
        ["node", str(HERE / "sdk.cjs"), package, CELLBLOCK, "--mcp"],
        env={**cb.env, "NODE_PATH": str(place)}, cwd=cb.work,
        timeout=100 * PATIENCE, capture_output=True, check=False)
    assert r.returncode == 0, r.stderr.decode()
    seen = json.loads(r.stdout)
    assert seen["errors"] == []
    assert seen["tools"] == list(TOOLS)
    assert seen["server"]["name"] == "cellblock" and seen["instructions"]
    assert text_of(seen["ran"]) == "hello\n42\n"
    assert seen["raised"]["isError"] is True
    assert "ZeroDivisionError" in text_of(seen["raised"])
    assert seen["progress"] >= 2
    assert text_of(seen["read"]) == "hé"
    path = seen["files"]["structuredContent"]["files"][0]["path"]
    assert path == "d/a b\n.txt"
    assert seen["undone"]["structuredContent"]["back_to"] == 3
    assert seen["reset"]["structuredContent"]["reset"] is True
    assert [f["uri"] for f in seen["resources"]] == [
        "cellblock:///d/a%20b%0A.txt"]
    assert seen["contents"]["contents"][0]["text"] == "hé"
    assert "enough" in seen["cancelled"] or "Abort" in seen["cancelled"]
    assert text_of(seen["after"]).startswith("42\n")
    assert seen["unknown"] == -32602
