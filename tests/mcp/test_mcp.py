# SPDX-License-Identifier: MIT
"""cellblock --mcp: a client of the Model Context Protocol, and its session."""
import base64
import json
import os
import pathlib
import re
import select
import shutil
import signal
import subprocess

import pytest

import hindered
import hosttree
from figures import pyplot
from world import CELLBLOCK, PATIENCE, World

HERE = pathlib.Path(__file__).resolve().parent
VERSIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
STATELESS = "2026-07-28"
TOP = HERE.parent.parent
TOOLS = {t["name"]: t for t in json.loads(subprocess.check_output(
    [TOP / "tools/fields", "tools", TOP / "repl/json/fields.txt",
     TOP / "repl/mcp/tools.txt"]))}


class Client:
    """Speaks lines of JSON, and trusts nothing that comes back: every line is a
    message of the protocol."""

    def __init__(self, cb, *args, version="2025-06-18", argv=None, env=None):
        self.cb, self.n, self.notes = cb, 0, []
        more = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE,
                "stderr": subprocess.PIPE}
        if argv:
            self.p = subprocess.Popen(argv, **more)
        else:
            # A second is short for Python's KeyboardInterrupt on a busy host.
            self.p = cb.popen("-s", "cell.grace=10s", *args, "--mcp", env=env,
                              **more)
        self.buffer = b""
        if version:
            r = self.call("initialize", protocolVersion=version,
                          capabilities={},
                          clientInfo={"name": "test", "version": "1"})
            assert r["result"]["protocolVersion"] == version, r
            self.note("notifications/initialized")

    def raw(self, text):
        self.p.stdin.write(text if isinstance(text, bytes) else text.encode())
        self.p.stdin.flush()

    def send(self, **message):
        self.raw(json.dumps({"jsonrpc": "2.0", **message}) + "\n")

    def note(self, method, **params):
        self.send(method=method, params=params)

    def ask(self, method, **params):
        self.n += 1
        self.send(id=self.n, method=method, params=params)
        return self.n

    def take(self, seconds=30):
        """The next message that is no progress."""
        while True:
            m = self.message(seconds)
            if isinstance(m, list) or "id" in m:
                return m
            self.notes.append(m["params"])

    def message(self, seconds=30):
        while b"\n" not in self.buffer:
            ready, _, _ = select.select(
                [self.p.stdout], [], [], seconds * PATIENCE)
            assert ready, "no message came"
            got = os.read(self.p.stdout.fileno(), 1 << 20)
            assert got, f"the end came: {self.p.stderr.read()}"
            self.buffer += got
        line, _, self.buffer = self.buffer.partition(b"\n")
        m = json.loads(line)
        for one in m if isinstance(m, list) else [m]:
            assert one["jsonrpc"] == "2.0", m
            assert ("id" in one) != ("method" in one), m
        return m

    def await_output(self, line):
        """Progress that comes before a cell has printed has no message."""
        while self.message()["params"].get("message") != line:
            pass

    def is_silent(self):
        "nothing comes before the answer to what is asked last"
        last = self.ask("ping")
        return self.take() == {"jsonrpc": "2.0", "id": last, "result": {}}

    def call(self, method, **params):
        n = self.ask(method, **params)
        m = self.take()
        assert m["id"] == n, m
        return m

    def ask_tool(self, name, token=None, /, **arguments):
        meta = {} if token is None else {"_meta": {"progressToken": token}}
        return self.ask("tools/call", name=name, arguments=arguments, **meta)

    def tool(self, name, /, **arguments):
        m = self.call("tools/call", name=name, arguments=arguments)
        assert "result" in m, m
        return checked(name, m["result"])

    def run(self, code, **more):
        return self.tool("run_cell", code=code, **more)

    def show(self, code, **more):
        return self.run(code, **more)["structuredContent"]["output"]

    def peak(self):
        return hosttree.memory_of(self.p.pid, "VmHWM")

    def cpu(self):
        "seconds of the server's"
        return hosttree.ticks_of(self.p.pid) / hosttree.TICK

    def close(self):
        self.p.stdin.close()
        return self.p.wait(30 * PATIENCE)


def checked(name, result):
    """A result of a tool is what the tool's schema says."""
    assert result["content"], result
    for block in result["content"]:
        assert block["type"] in ("text", "image", "resource"), block
        assert block["type"] != "text" or block["text"], block
    schema = TOOLS[name].get("outputSchema")
    given = result.get("structuredContent")
    if schema and not (result["isError"] and given is None):
        assert set(given) == set(schema["properties"]) == set(
            schema["required"]), given
        for key, rule in schema["properties"].items():
            kinds = {"string": str, "integer": int, "array": list,
                     "boolean": bool, "object": dict, "null": type(None)}
            types = rule["type"]
            types = types if isinstance(types, list) else [types]
            assert isinstance(given[key], tuple(kinds[t] for t in types)), key
            assert given[key] in rule.get("enum", [given[key]])
    return result


def text_of(result):
    return "".join(b["text"] for b in result["content"] if b["type"] == "text")


@pytest.fixture(name="mcp")
def _mcp(cb):
    return Client(cb)


@pytest.fixture(name="lasting", scope="module")
def _lasting(tmp_path_factory):
    """One for many messages that leave it as it is."""
    world = World(tmp_path_factory.mktemp("lasting"))
    client = Client(world)
    yield client
    assert client.close() == 0
    world.close()


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


# ---- tools ----

def test_the_tools_are_those_of_the_table(mcp):
    tools = mcp.call("tools/list")["result"]["tools"]
    assert tools == list(TOOLS.values())
    for t in tools:
        assert t["inputSchema"]["type"] == "object"
        assert t["inputSchema"]["additionalProperties"] is False
        assert {"readOnlyHint", "openWorldHint"} <= set(t["annotations"])
        assert t["annotations"]["readOnlyHint"] == (
            t["name"] in ("list_files", "read_file", "show_pictures"))


def test_a_session_keeps_its_variables(mcp):
    r = mcp.run("x = 20\nprint('p')\n2 * x + 2")
    assert text_of(r) == "p\n42\n" and r["isError"] is False
    s = r["structuredContent"]
    assert (s["cell"], s["how"], s["after"], s["names"]) == (
        1, "ok", "kept", 1)
    assert mcp.show("x + 1") == "21\n"
    assert text_of(mcp.run("y = 1")) == "[no output]"


def test_a_cell_that_fails_is_an_error_of_the_tool(cb):
    c = Client(cb, "-t", "1s", "-M", "128M")
    for code, how, after in (
            ("1/0", "raised", "kept"), ("1 +", "syntax", "kept"),
            ("while True: pass", "interrupted", "kept"),
            ("import os; os.abort()", "crashed", "rolled back"),
            ("x = bytearray(1 << 29)", None, None)):
        r = c.run(code)
        assert r["isError"] is True and text_of(r), r
        if how:
            s = r["structuredContent"]
            assert (s["how"], s["after"]) == (how, after), r
            assert s["verdict"] in text_of(r)
    r = c.run("while True: pass", timeout_ms=200)["structuredContent"]
    assert r["limit"] == {"key": "timeout_ms", "source": "request",
                          "text": "time limit: 200 ms"}
    assert c.show("6 * 7") == "42\n"


def test_exit_ends_a_cell_and_not_the_session(mcp):
    r = mcp.run("x = 1\nimport sys; sys.exit(3)")
    assert r["isError"] and r["structuredContent"]["exit_code"] == 3
    assert "exit status 3" in text_of(r)
    assert mcp.run("exit()")["isError"] is False
    assert mcp.show("x") == "1\n"


def test_standard_input_of_a_cell(mcp):
    r = mcp.run("[input(), input()]", stdin="a\nb\n")
    assert "['a', 'b']" in text_of(r)
    assert "EOFError" in text_of(mcp.run("input()"))


@pytest.mark.sampled
def test_figures_are_pictures(cb):
    c = Client(cb, "-t", "60s")
    r = c.run(pyplot(cb) + "_ = plt.plot([1, 2])")
    pictures = [b for b in r["content"] if b["type"] == "image"]
    assert [b["mimeType"] for b in pictures] == ["image/png"]
    assert base64.b64decode(pictures[0]["data"]).startswith(b"\x89PNG\r\n")
    assert "images" not in r["structuredContent"]
    assert r["structuredContent"]["pictures"] == 1
    assert c.tool("show_pictures") == {"content": pictures, "isError": False}
    c.tool("list_files")
    assert c.tool("show_pictures")["content"] == pictures
    r = c.run("plt.get_fignums()")
    assert r["structuredContent"]["pictures"] == 0
    assert text_of(c.tool("show_pictures")).startswith("[the last cell")
    assert [b["type"] for b in r["content"]] == ["text"]
    assert text_of(r) == "[]\n"


def test_pictures_that_are_too_many_are_left_out(mcp):
    big = ("import os, stat\nfor n in range(3, 1024):\n    try:\n"
           "        if not stat.S_ISFIFO(os.fstat(n).st_mode): continue\n"
           "    except OSError: continue\n"
           "    for i in range(5):\n        b = b'png 3000000\\n' + "
           "(b'\\x89PNG\\r\\n\\x1a\\n' if i else bytes(8)) + bytes(2999992)"
           "\n        while b: b = b[os.write(n, b):]\n")
    r = mcp.run(big)
    assert sum(b["type"] == "image" for b in r["content"]) == 2
    assert "pictures left out" in text_of(r) and text_of(r).endswith(": 3]")


def test_cells_can_be_undone(mcp):
    mcp.run("x = 1")
    mcp.run("x = 2")
    r = mcp.tool("undo")
    assert r["structuredContent"]["back_to"] == 2 and not r["isError"]
    assert mcp.show("x") == "1\n"
    r = mcp.tool("undo", cells=50)
    assert r["isError"] and "Nothing was undone" in text_of(r)


def test_undo_says_why_nothing_is_kept(cb):
    c = Client(cb, "-s", "cell.checkpoint=never")
    c.run("x = 1")
    r = c.tool("undo")
    assert r["isError"] and text_of(r).endswith(
        "nothing is kept to go back to: checkpoints are off"), r
    assert c.show("x") == "1\n"


def test_a_reset_keeps_the_files(mcp):
    mcp.run("x = 1\nopen('f', 'w').write('1')")
    assert mcp.tool("reset")["structuredContent"]["reset"] is True
    assert "NameError" in mcp.show("x")
    assert mcp.show("open('f').read()") == "'1'\n"


def test_a_session_that_is_over_can_be_replaced(cb):
    c = Client(cb, "-s", "session.lifetime=5s")
    first = c.run("x = 1\nopen('f', 'w').close()")
    assert not first["isError"]
    hosttree.until(lambda: c.run("x")["isError"], "the session's end", 30)
    for r in c.run("x"), c.tool("list_files"), c.tool("undo"):
        assert r["isError"] and "reset begins a new one" in text_of(r), r
    assert c.call("resources/list")["error"]["code"] == -32603
    r = c.tool("reset")
    assert not r["isError"], r
    assert "NameError" in c.show("x")
    assert c.tool("list_files")["structuredContent"]["files"] == []
    assert c.close() == 0


@pytest.mark.parametrize("name, arguments, words", [
    ("run_cell", {}, "wants the argument 'code'"),
    ("run_cell", {"code": 1}, "code is not of type 'string'"),
    ("run_cell", {"code": "1", "x": 1}, "no argument 'x'"),
    ("run_cell", {"code": "1", "session": True}, "no argument 'session'"),
    ("run_cell", {"code": "1", "timeout_ms": 0}, "less than"),
    ("run_cell", {"code": "1", "timeout_ms": 10 ** 9}, "exceeds maximum"),
    ("run_cell", {"code": "1", "timeout_ms": "1"}, "of type 'integer'"),
    ("run_cell", {"code": "1", "stdin": "\x03"}, "control characters"),
    ("run_cell", {"code": "1", "files": [{}]}, "required property"),
    ("run_cell", {"code": "1", "files": [{"path": "../x"}]}, "beyond root"),
    ("run_cell", {"code": "#" * 2000000}, "longer than cell.source"),
    ("undo", {"cells": 0}, "less than"), ("undo", {"cells": "1"}, "integer"),
    ("reset", {"x": 1}, "no argument"),
    ("list_files", {"pattern": "*a*b*c"}, "two stars"),
    ("list_files", {"pattern": "a\0b"}, "NUL"),
    ("read_file", {}, "wants the argument"),
    ("write_file", {"path": "x"}, "either text or content"),
    ("write_file", {"path": "x", "text": "", "content": ""}, "either"),
    ("write_file", {"path": "x", "content": "!"}, "no base64"),
    ("write_file", {"path": "", "text": "x"}, "IsADirectoryError"),
])
def test_wrong_arguments_are_told_to_who_can_mend_them(
        lasting, name, arguments, words):
    r = lasting.tool(name, **arguments)
    assert r["isError"] is True and words in text_of(r), r
    assert lasting.show("6 * 7") == "42\n"


def test_a_tool_that_is_not_there_is_an_error_of_the_protocol(mcp):
    for params in ({"name": "rm"}, {}, {"name": 1}, {"name": "reset\0x"},
                   {"name": "reset", "arguments": []}):
        assert mcp.call("tools/call", **params)["error"]["code"] == -32602
    assert not mcp.tool("reset")["isError"]


# ---- files ----

def test_files_go_in_and_come_out(mcp):
    assert not mcp.tool("write_file", path="d/e.txt", text="é\n")["isError"]
    assert mcp.show("open('d/e.txt').read()") == "'é\\n'\n"
    data = bytes(range(256))
    mcp.tool("write_file", path="/home/b", content=base64.b64encode(
        data).decode())
    png = b"\x89PNG\r\n\x1a\n123"
    mcp.run(f"open('p.png', 'wb').write({png!r})\nopen('e', 'w').close()")
    assert mcp.tool("read_file", path="d/e.txt")["content"] == [
        {"type": "text", "text": "é\n"}]
    r, = mcp.tool("read_file", path="b")["content"]
    assert base64.b64decode(r["resource"]["blob"]) == data
    r, = mcp.tool("read_file", path="/home/p.png")["content"]
    assert (r["type"], r["mimeType"]) == ("image", "image/png")
    assert base64.b64decode(r["data"]) == png
    r, = mcp.tool("read_file", path="e")["content"]
    assert r["resource"]["text"] == ""
    files = mcp.tool("list_files")["structuredContent"]["files"]
    assert [(f["path"], f["size"]) for f in files] == [
        ("b", 256), ("d/e.txt", 3), ("e", 0), ("p.png", 11)]
    files = mcp.tool("list_files", pattern="d/*")["structuredContent"]["files"]
    assert [f["path"] for f in files] == ["d/e.txt"]
    assert mcp.tool("write_file", path="b", text="new")["isError"] is False
    assert text_of(mcp.tool("read_file", path="b")) == "new"


def test_any_name_has_a_uri(mcp):
    names = [b"a b", b"new\nline", b"\xff\xfe", b"100%", "é".encode(), b"?#&",
             b"\x1b[31m", b"..x", b"cellblock:"]
    mcp.run(f"for n in {names!r}: open(n, 'wb').write(n)")
    found = mcp.call("resources/list")["result"]["resources"]
    assert len(found) == len(names)
    for f in found:
        assert re.fullmatch(r"cellblock:///[\w.~/%-]+", f["uri"], re.A), f
        r, = mcp.call("resources/read", uri=f["uri"])["result"]["contents"]
        data = r["text"].encode() if "text" in r else base64.b64decode(
            r["blob"])
        assert data in names and r["uri"] == f["uri"]
        names.remove(data)
        r = mcp.tool("read_file", path=f["uri"])
        assert not r["isError"]
    listed = text_of(mcp.tool("list_files"))
    assert listed.count("\n") == len(found) and "\x1b" not in listed


OUTSIDE = ["/etc/passwd", "../etc/passwd", "../../../../etc/passwd", "d/../..",
           "out", "outdir/passwd", "fifo", "d", "socket", "nowhere", "loop",
           "", ".", "..", "x" * 5000, "/proc/self/environ", "big",
           "wide",
           "cellblock:///../etc/passwd", "cellblock:////etc/passwd",
           "cellblock:///%2e%2e/etc/passwd", "cellblock:///%2Fetc/passwd",
           "cellblock:///fifo", "cellblock:///out", "cellblock:///%00",
           "cellblock:///%", "cellblock:///%4", "cellblock:///"]


def test_nothing_but_files_of_the_home_is_read(cb):
    c = Client(cb)
    c.run("import os, socket\nos.mkdir('d')\nopen('f', 'w').write('mine')\n"
          "os.symlink('/etc/passwd', 'out'); os.symlink('/etc', 'outdir')\n"
          "os.symlink('f', 'in'); os.symlink('loop', 'loop')\n"
          "os.symlink('gone', 'nowhere'); os.mkfifo('fifo')\n"
          "socket.socket(socket.AF_UNIX).bind('socket')\n"
          "open('big', 'w').truncate(7 << 20)\n"
          "open('wide', 'w').write('\\xe9' * (2 << 20))")
    for name in OUTSIDE:
        r = c.tool("read_file", path=name)
        assert r["isError"] and "root:" not in str(r), (name, r)
        uri = name if ":" in name else "cellblock:///" + name
        e = c.call("resources/read", uri=uri)["error"]
        assert e["code"] == -32002, (name, e)
    for uri in "file:///etc/passwd", "f", "cellblock://f", "http://x/":
        assert c.call("resources/read", uri=uri)["error"]["code"] == -32002
    assert c.call("resources/read")["error"]["code"] == -32602
    assert c.call("resources/read", uri=1)["error"]["code"] == -32602
    for name in "f", "in", "./f", "/home/f", "d/../f", "cellblock:///f":
        assert text_of(c.tool("read_file", path=name)) == "mine", name


def test_nothing_but_files_of_the_home_is_written(mcp, cb):
    mcp.run("import os\nos.mkdir('d')\nos.symlink('/tmp', 'outdir')\n"
            "os.mkfifo('fifo')\nopen('f', 'w').close()")
    for name in ("/etc/x", "../x", "outdir/x", "d", "f/x", "x" * 300,
                 "cellblock:///..%2fx", "/home/../x", "a\0b"):
        r = mcp.tool("write_file", path=name, text="x")
        assert r["isError"], (name, r)
    assert mcp.show("import glob; glob.glob('/tmp/x') + glob.glob('/etc/x')"
                    ) == "[]\n"
    mcp.tool("write_file", path="fifo", text="no FIFO any more")
    assert text_of(mcp.tool("read_file", path="fifo")) == "no FIFO any more"
    r = mcp.tool("write_file", path="full", text="x" * (17 << 20))
    assert r["isError"] and "files.max_file" in text_of(r)


def test_a_file_is_written_however_slowly_we_run(cb):
    c = Client(cb, env=hindered.slowly(cb))
    for text in "x", "y" * 100_000, "":
        r = c.tool("write_file", path="f", text=text)
        n = len(text)
        assert (r["isError"], text_of(r)) == (
            False, f"[{n} byte{'s' * (n != 1)} written]")
        assert c.show("len(open('f').read())") == f"{n}\n"
    assert c.close() == 0


def test_a_file_for_which_there_is_no_memory_is_not_written(cb):
    c = Client(cb, env=hindered.without_memory_for_files(cb, 1))
    r = c.tool("write_file", path="f", text="x")
    assert r["isError"] and "Cannot allocate memory" in text_of(r)
    assert c.show("import os; os.listdir()") == "[]\n"


def test_resources_come_in_pages(mcp):
    mcp.run("for i in range(1203): open('%04d' % i, 'w').close()")
    names, cursor, pages = [], None, 0
    while pages < 9:
        more = {"cursor": cursor} if cursor else {}
        r = mcp.call("resources/list", **more)["result"]
        names += [f["name"] for f in r["resources"]]
        cursor, pages = r.get("nextCursor"), pages + 1
        if not cursor:
            break
    assert pages == 3 and names == ["%04d" % i for i in range(1203)]
    for cursor in 1, [], "%", "%00":
        e = mcp.call("resources/list", cursor=cursor)["error"]
        assert e["code"] == -32602, e
    assert mcp.call("resources/list", cursor="zzz")["result"] == {
        "resources": []}
    template, = mcp.call("resources/templates/list")["result"][
        "resourceTemplates"]
    assert template["uriTemplate"] == "cellblock:///{+path}"


# ---- while a cell runs ----

WAIT = "import time\nprint('on', flush=True)\n" \
       "while True: time.sleep(.1)"


def test_progress_is_told_to_who_asks(mcp):
    code = "import time\nfor i in range(24):\n    print('at', i, flush=True)\n" \
           "    time.sleep(.1)"
    mcp.run(code)
    assert mcp.notes == []
    n = mcp.ask_tool("run_cell", "token-1", code=code)
    assert mcp.take()["id"] == n
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
    n = c.ask_tool("run_cell", 7, code="print('on', flush=True)\nx = 6\n"
                   "import time\nwhile True:\n    try: time.sleep(99)\n"
                   "    except BaseException: pass")
    c.await_output("on")
    c.note("notifications/cancelled", requestId=n)
    r = c.run("x")
    assert text_of(r).startswith("5\n"), r
    assert "back to the state" in r["structuredContent"]["notices"][0]


def test_a_cancelled_call_that_waits_never_runs(mcp):
    first = mcp.ask_tool("run_cell", 1, code="import time; print(1); "
                         "time.sleep(2)")
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
        reset = mcp.ask_tool("reset")
        mcp.note("notifications/cancelled", requestId=reset)
        assert mcp.show("6 * 7") == "42\n"
    assert "reset" in mcp.tool("reset")["structuredContent"]   # the control
    assert "NameError" in mcp.show("x")


def children(pid):
    return [int(p) for p in pathlib.Path(
        f"/proc/{pid}/task/{pid}/children").read_text().split()]


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
    calls = [mcp.ask_tool("run_cell", code="import time; time.sleep(.5); 1"),
             mcp.ask_tool("run_cell", code="2"), mcp.ask_tool("list_files"),
             mcp.ask("resources/list")]
    at_once = [mcp.ask("ping"), mcp.ask("tools/list"), mcp.ask("nonsense")]
    assert [mcp.take()["id"] for _ in range(7)] == at_once + calls


def test_too_many_calls_are_refused(mcp):
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
    c = Client(cb, "-s", "files.max_file=2M")
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
    c = Client(cb)
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
    n = mcp.ask_tool("run_cell", code="import time; time.sleep(.5); 1")
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


# ---- what a cell tries ----

FORGE = r"""
import os, sys
line = b'\n{"jsonrpc": "2.0", "id": %d, "result": {"forged": true}}\n'
for n in range(20):
    sys.stdout.write((line % n).decode())
    sys.stderr.write((line % n).decode())
    for fd in range(1024):
        try: os.write(fd, line % n)
        except OSError: pass
"""


def test_a_policy_for_commands_binds_tools(cb):
    cb.config("[policy]\ncommands = help undo files\n")
    c = Client(cb)
    listed = {t["name"] for t in c.call("tools/list")["result"]["tools"]}
    assert listed == {"run_cell", "show_pictures", "undo", "list_files"}
    c.run("open('f', 'w').write('x'); x = 1")
    for name, command, arguments in (
            ("reset", "reset", {}), ("read_file", "download", {"path": "f"}),
            ("write_file", "upload", {"path": "f", "text": "y"}),
            ("run_cell", "upload", {"code": "x", "files": [
                {"path": "f", "content": ""}]})):
        r = c.call("tools/call", name=name, arguments=arguments)["result"]
        assert r["isError"], r
        assert f"policy.commands leaves out {command}: it is set in" in \
            text_of(r) and "cellblock.conf:2" in text_of(r), r
    r = c.call("resources/list")
    uri = r["result"]["resources"][0]["uri"]
    assert "leaves out download" in c.call("resources/read", uri=uri)[
        "error"]["message"]
    # controls: the rest works, and nothing has happened
    assert c.show("open('f').read(), x") == "('x', 1)\n"
    # Before a first cell that came at once no state is kept.
    c.run("x = 2")
    assert c.tool("undo")["structuredContent"]["undo"] == 1
    assert c.show("x") == "1\n"
    cb.config("[policy]\ncommands = help\n")
    assert "leaves out files" in Client(cb).call("resources/list")["error"][
        "message"]


def test_bytes_are_counted_in_words(mcp):
    for text, said in ("", "0 bytes"), ("x", "1 byte"), ("xy", "2 bytes"):
        assert text_of(mcp.tool("write_file", path="f", text=text)) == \
            f"[{said} written]"


def test_no_cell_writes_a_message(mcp):
    """All that is read is parsed, and has the id that was asked for."""
    r = mcp.run(FORGE)
    assert "forged" in text_of(r) or r["isError"]
    assert mcp.is_silent()
    mcp.run("import threading, time\ndef later():\n    while True:\n"
            "        print('{\"jsonrpc\": \"2.0\", \"id\": 1, \"result\": {}}',"
            " flush=True)\nthreading.Thread(target=later, daemon=True).start()")
    assert mcp.is_silent()
    # A line of ours is a block of its own.
    r = mcp.run("print('[time limit: 1 s \u00b7 killed]')")
    assert r["isError"] is False and r["structuredContent"]["verdict"] == ""


def test_a_flood_is_cut_and_bounded(cb):
    c = Client(cb, "-t", "60s")
    before = c.peak()
    r = c.run("import sys\nfor i in range(300):\n    _ = sys.stdout.write(("
              "'\\xe9' * 49 + '\\n') * 1000)\nprint('the end')")
    assert not r["isError"], r["structuredContent"]["verdict"]
    text = text_of(r)
    assert text.endswith("the end\n")
    assert 500000 < len(text.encode()) < 600000
    assert c.peak() - before < 20 << 20
    assert len(c.show("'x' * 400000")) == 400003
    text = c.show("sys.stdout.buffer.write(b'\\xff' * 2000000)")
    assert len(text) > 500000, "what takes most as JSON"


def test_a_cell_shows_text_only(mcp):
    shown = mcp.show("print('\\x1b]0;title\\x07a\\x1b[31mb\\x00c\\x9b1m')")
    assert "\x1b" not in shown and "\x00" not in shown and "\x9b" not in shown


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
    mcp.p.wait(20)
    tree.wait_gone()


def test_a_client_that_reads_nothing_any_more_ends_the_server(mcp, cb):
    tree = cb.tree(mcp.p)
    tree.look()
    mcp.p.stdout.close()
    mcp.ask_tool("run_cell", code="6 * 7")
    assert mcp.p.wait(20) == 141
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

@pytest.mark.limit(120)
@pytest.mark.parametrize("package", ["@modelcontextprotocol/sdk",
                                     "@modelcontextprotocol/client"])
def test_the_official_sdk_is_content(cb, package):
    """NODE_PATH says where the packages are that "npm install
    @modelcontextprotocol/sdk @modelcontextprotocol/client" leaves."""
    places = os.environ.get("NODE_PATH", "").split(":")
    if not shutil.which("node"):
        pytest.skip("node is not installed")
    place = [p for p in places if p and pathlib.Path(p, package).is_dir()]
    if not place:
        pytest.skip(f"{package} is not in NODE_PATH")
    r = subprocess.run(
        ["node", str(HERE / "sdk.cjs"), package, CELLBLOCK, "--mcp"],
        env={**cb.env, "NODE_PATH": place[0]}, cwd=cb.work, timeout=100,
        capture_output=True, check=False)
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
