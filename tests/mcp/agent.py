# SPDX-License-Identifier: MIT
"""A client of cellblock --mcp."""
import json
import os
import pathlib
import select
import subprocess

import hosttree
from world import PATIENCE

VERSIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
TOP = pathlib.Path(__file__).resolve().parent.parent.parent
TOOLS = {t["name"]: t for t in json.loads(subprocess.check_output(
    [TOP / "tools/fields", "tools", TOP / "repl/json/fields.txt",
     TOP / "repl/mcp/tools.txt"]))}
# A cell that has begun when it prints, and does not end.
WAIT = "import time\nprint('on', flush=True)\n" \
       "while True: time.sleep(.1)"


class Client:
    """Speaks lines of JSON, and trusts nothing that comes back: every line is a
    message of the protocol."""

    def __init__(self, cb, *args, version="2025-06-18", argv=None, env=None,
                 wrapper=()):
        self.cb, self.n, self.notes = cb, 0, []
        more = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE,
                "stderr": subprocess.PIPE}
        if argv:
            self.p = subprocess.Popen(argv, **more)
        else:
            # A second is short for Python's KeyboardInterrupt on a busy host.
            self.p = cb.popen("-s", "cell.grace=10s", *args, "--mcp", env=env,
                              wrapper=wrapper, **more)
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

    def ask_and_cancel(self, name):
        """Call a tool, and cancel that in the same write."""
        self.n += 1
        call = {"id": self.n, "method": "tools/call",
                "params": {"name": name, "arguments": {}}}
        note = {"method": "notifications/cancelled",
                "params": {"requestId": self.n}}
        self.raw("".join(json.dumps({"jsonrpc": "2.0", **m}) + "\n"
                         for m in (call, note)))

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
