# SPDX-License-Identifier: MIT
"""cellblock --serve, asked by the clients that people have. Clients of npm are
installed where there is a network."""
import contextlib
import json
import os
import shutil
import socket
import subprocess
import threading

import pytest

import hosttree
import npm
from client import JSON, SLOW
from clients import CLIENTS
from world import CELLBLOCK

PAGE = {"Accept": "text/event-stream"}


@pytest.fixture(name="server")
def _server(serve):
    """One whose cells have time."""
    return serve("-s", "cell.timeout=60s")


@pytest.fixture(name="client", params=CLIENTS)
def _client(request, server):
    client = CLIENTS[request.param](server.url)
    yield client
    client.close()


def body_of(value):
    return json.dumps(value).encode()


# ---- what any client does ----

ASKED = [
    ("GET", "/health", None, None, 200, {"status": "ok"}),
    ("POST", "/eval", {"input": "print('é☃😀')"}, JSON, 200,
     {"stdout": "é☃😀\n", "returncode": 0, "files": []}),
    ("POST", "/eval", {"args": 400}, JSON, 400,
     {"title": "Request data failed validation",
      "description": "400 is not of type 'array'"}),
    ("POST", "/eval", {}, {"Content-Type": "application/xml"}, 415,
     {"title": "415 Unsupported Media Type",
      "description": "application/xml is an unsupported media type."}),
    ("GET", "/eval", None, None, 405, {"title": "405 Method Not Allowed"}),
    ("OPTIONS", "/eval", None, None, 200, None),
    ("HEAD", "/health", None, None, 200, None),
    ("POST", "/v1/execute", {"code": 5}, JSON, 422, {"detail": [
        {"type": "string_type", "loc": ["body", "code"], "input": 5,
         "msg": "Input should be a valid string"}]}),
    ("GET", "/v1/files/none", None, None, 404,
     {"detail": "File with ID 'none' not found"}),
    ("DELETE", "/v1/files/none", None, None, 404,
     {"detail": "File with ID 'none' not found"}),
    ("GET", "/v1/files", None, None, 200, {"files": []}),
]


def test_answers_of_every_kind_are_read(client):
    """Twice, on whatever connections the client keeps."""
    for method, path, body, headers, status, wanted in ASKED * 2:
        r = client(method, path, body if body is None else body_of(body),
                   headers)
        got = json.loads(r.body) if r.body else None
        assert (r.status, got) == (status, wanted), (method, path, r)


def test_a_body_may_come_in_pieces(client):
    text = body_of({"input": "print(len('" + "x" * 100_000 + "'))"})
    pieces = [text[i:i + 9999] for i in range(0, len(text), 9999)]
    r = client("POST", "/eval", pieces=pieces, headers=JSON)
    assert r.status == 200 and r.json["stdout"] == "100000\n", r


def test_a_long_file_goes_in_and_comes_out(client):
    data = os.urandom(3 << 20)
    r = client("POST", "/v1/files", form=("é.bin", data))
    assert r.status == 201, r
    assert (r.json["filename"], r.json["size_bytes"]) == ("é.bin", len(data))
    r = client("POST", "/v1/execute", body_of({
        "code": "d = open('in', 'rb').read()\n"
                "n = open('out', 'wb').write(d[::-1])",
        "timeout_ms": 20000,
        "files": [{"path": "in", "file_id": r.json["file_id"]}]}), JSON)
    (made,) = r.json["files"]
    r = client("GET", f"/v1/files/{made['file_id']}")
    assert r.body == data[::-1]
    assert client("DELETE", f"/v1/files/{made['file_id']}").status == 204


def test_output_comes_while_the_cell_runs(client):
    """The cell ends when its first line was seen, and not before."""
    r = client("POST", "/v1/sessions", b"{}", JSON)
    assert r.status == 201, r
    path = f"/v1/sessions/{r.json['id']}"
    seen = b""
    for piece in client.stream(path + "/cells", body_of({
            "code": "print('first')\nwhile True: pass"}),
            {**JSON, **PAGE}):
        if b"first" in piece and b"first" not in seen:
            r = client("POST", path + "/interrupt")
            assert r.status in (200, 202, 204), r
        seen += piece
    assert b"event: done" in seen and b'"interrupted"' in seen, seen
    assert client("DELETE", path).status == 204


def test_a_client_that_gives_up_leaves_nothing(client, server):
    r = client("POST", "/v1/execute", body_of({
        "code": "while True: pass", "timeout_ms": 50000}), JSON, give_up=1)
    assert r is None
    hosttree.until(lambda: server.figures()["running"] == 0, "it ends", 20)
    assert client("POST", "/eval", body_of({"input": "print(1)"}),
                  JSON).status == 200


def test_a_request_that_is_sent_again_runs_once(client):
    body = body_of({"input": "import secrets; print(secrets.token_hex())"})
    headers = {**JSON, "Idempotency-Key": "k"}
    first, again = (client("POST", "/eval", body, headers) for _ in "ab")
    assert first.status == 200 and first.body == again.body
    other = client("POST", "/eval", body, JSON)
    assert other.body != first.body, "a control"


# ---- many at once ----

def by_wrk(url, *words, script=None, tmp_path=None):
    if not shutil.which("wrk"):
        pytest.skip("wrk is not installed")
    if script:
        (tmp_path / "ask.lua").write_text(script)
        words += ("-s", tmp_path / "ask.lua")
    r = subprocess.run(
        ["wrk", "-t1", *words, "--timeout", f"{SLOW:.0f}s", url],
        capture_output=True, text=True, check=True, timeout=2 * SLOW)
    assert " requests in " in r.stdout, r
    return r.stdout


def test_wrk_is_answered_on_400_connections(server):
    said = by_wrk(server.url + "/health", "-c400", "-d2s")
    assert "Non-2xx" not in said and "Socket errors" not in said, said


def test_wrk_runs_code(server, tmp_path):
    def runs():
        said = by_wrk(
            server.url + "/v1/execute", "-c2", "-d2s", tmp_path=tmp_path,
            script='wrk.method = "POST"\nwrk.body = \'{"code": "6 * 7"}\''
                   '\nwrk.headers["Content-Type"] = "application/json"\n')
        assert "Non-2xx" not in said and "Socket errors" not in said, said
        return server.figures()["request_seconds_count"] > 2

    hosttree.until(runs, "more code to run than wrk has connections", 20)
    hosttree.until(lambda: server.figures()["running"] == 0, "all ended", 20)


# ---- what npm has ----

NPM = ["@modelcontextprotocol/inspector", "@redocly/cli", "eventsource",
       "openapi-typescript", "typescript"]


@pytest.fixture(name="modules", scope="module")
def _modules(tmp_path_factory):
    npm.need_node(*NPM)
    return npm.install(tmp_path_factory.mktemp("npm"), *NPM)


def npm_test(test):
    return pytest.mark.sampled(pytest.mark.limit(500)(test))


def node(modules, *words, **more):
    return subprocess.run(
        words, env={**os.environ, "NODE_PATH": str(modules),
                    "HOME": str(modules.parent)},
        capture_output=True, text=True, check=False, timeout=2 * SLOW, **more)


# tsc has to refuse what is wrong, too.
TYPED = """
import type { components, paths } from "./api";
type Of<P extends keyof paths> = paths[P] extends
  { post: { requestBody?: { content: { "application/json": infer T } } } }
  ? T : never;
type Execute = paths["/v1/execute"]["post"]["responses"];
type Answer = Execute[200]["content"]["application/json"];
export const ask: Of<"/v1/execute"> = { code: "x", variables: { x: [1] } };
export const code = (a: Answer): number | null => a.exit_code;
// @ts-expect-error: it is a number
export const wrong: Of<"/v1/execute"> = { code: "1", timeout_ms: "2" };
// @ts-expect-error: there is no such path
export type None = paths["/v1/nothing"];
export type Stored = components["schemas"]["Stored"];
"""


@npm_test
def test_types_are_made_of_the_description(modules, server, tmp_path):
    (tmp_path / "openapi.json").write_bytes(
        server("GET", "/openapi.json").body)
    r = node(modules, modules / ".bin/openapi-typescript", "openapi.json",
             "--default-non-nullable=false", "-o", "api.ts", cwd=tmp_path)
    assert r.returncode == 0, r
    (tmp_path / "use.ts").write_text(TYPED)
    r = node(modules, modules / ".bin/tsc", "--noEmit", "--strict", "use.ts",
             cwd=tmp_path)
    assert r.returncode == 0, r.stdout


# Remarks that redocly may make: the public paths answer nothing but 200,
# and of two keys of snekbox's form one is wanted, wherever they are defined.
MAY_SAY = {"operation-4xx-response", "no-required-schema-properties-undefined"}


@npm_test
def test_redocly_has_no_complaint(modules, server, tmp_path):
    document = server("GET", "/openapi.json").json

    def lint():
        (tmp_path / "openapi.json").write_text(json.dumps(document))
        r = node(modules, modules / ".bin/redocly", "lint", "--format=json",
                 "openapi.json", cwd=tmp_path)
        return r.returncode, {p["ruleId"] for p in
                              json.loads(r.stdout)["problems"]}

    status, said = lint()
    assert status == 0 and said <= MAY_SAY
    del document["info"]["title"]
    assert lint()[0] != 0, "a control"


@npm_test
def test_the_inspector_calls_tools(modules, cb):
    def ask(*words):
        r = subprocess.run(
            [modules / ".bin/mcp-inspector", "--cli", CELLBLOCK, "--mcp",
             "--method", *words], env=cb.env, cwd=cb.work,
            capture_output=True, text=True, check=False, timeout=2 * SLOW)
        assert r.returncode == 0, r
        return json.loads(r.stdout)

    tools = {t["name"] for t in ask("tools/list")["tools"]}
    assert {"run_cell", "read_file", "write_file"} <= tools
    r = ask("tools/call", "--tool-name", "run_cell", "--tool-arg",
            "code=print('é'); 6 * 7")
    assert r["content"][0]["text"].startswith("é\n42\n"), r
    assert ask("resources/list") == {"resources": []}


EVENTS = """
const { EventSource } = require("eventsource");
const source = new EventSource(process.argv[1]);
for (const name of ["output", "done"])
  source.addEventListener(name, (e) => {
    console.log(JSON.stringify({ name, id: e.lastEventId,
                                 ...JSON.parse(e.data) }));
    if (name == "done") source.close();
  });
source.onopen = () => console.log(JSON.stringify({ name: "open" }));
"""


@contextlib.contextmanager
def relay(port, cut):
    """Passes connections on to a port, but of what the first gets only that
    up to the third time that these words come. Yields a port."""
    def pass_on(source, to, cut=None):
        seen, passed = b"", 0
        with contextlib.suppress(OSError):
            while passed == len(seen) and (data := source.recv(65536)):
                seen += data
                end = len(cut.join(seen.split(cut)[:3])) if cut else len(seen)
                to.sendall(seen[passed:end])
                passed = end
        for s in source, to:
            with contextlib.suppress(OSError):
                s.shutdown(socket.SHUT_RDWR)

    def serve():
        first = cut
        with contextlib.suppress(OSError):
            while True:
                client, _ = listener.accept()
                host = socket.create_connection(("127.0.0.1", port), SLOW)
                for words in (client, host), (host, client, first):
                    threads.append(threading.Thread(target=pass_on, args=words))
                    threads[-1].start()
                sockets.extend((client, host))
                first = None

    threads, sockets = [], []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threads.append(threading.Thread(target=serve))
        threads[-1].start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
    threads[0].join()
    for s in sockets:
        with contextlib.suppress(OSError):
            s.shutdown(socket.SHUT_RDWR)
    for t in threads:
        t.join()
    for s in sockets:
        s.close()


@npm_test
def test_eventsource_takes_a_cut_stream_up_again(modules, server):
    """It asks again by itself, with Last-Event-ID."""
    session = server("POST", "/v1/sessions", {}).json["id"]
    path = f"/v1/sessions/{session}/cells"
    r = server("POST", path, {"code": "for i in range(500): print(i, 'x' * 99)"},
               {**JSON, **PAGE, "Idempotency-Key": "k"})
    assert r.status == 200, r
    with relay(server.port, b"\nid: ") as port:
        r = node(modules, "node", "-e", EVENTS,
                 f"http://127.0.0.1:{port}{path}/1/events")
    assert r.returncode == 0, r
    said = [json.loads(line) for line in r.stdout.splitlines()]
    assert [e["name"] for e in said].count("open") > 1, "it was cut"
    ids = [e["id"] for e in said if "id" in e]
    assert len(ids) == len(set(ids)), "no event twice"
    text = "".join(e["text"] for e in said if e["name"] == "output")
    assert text == "".join(f"{i} {'x' * 99}\n" for i in range(500))
    assert said[-1]["name"] == "done" and said[-1]["how"] == "ok"
