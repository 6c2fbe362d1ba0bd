# SPDX-License-Identifier: MIT
"""cellblock --serve: clients of two services, and those who mean no good."""
import base64
import contextlib
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time

import pytest

import hindered
import hosttree
from client import (JSON, LONG, SLOW, Server, evaluation, form_of, read_all,
                    request)
from world import IS_ROOT, PATIENCE, WHOLE

# ---- as snekbox answers ----

def test_eval_answers_as_snekbox(server):
    r = server("POST", "/eval", {"input": "print(6 * 7)"})
    assert (r.status, r.json) == (
        200, {"stdout": "42\n", "returncode": 0, "files": []})
    assert r.headers["Content-Type"] == "application/json"
    r = server("POST", "/eval", {
        "args": ["main.py"], "files": [
            {"path": "main.py", "content": base64.b64encode(
                b"open('out', 'w').write('x'); exit(3)").decode()}]})
    assert r.json["returncode"] == 3
    assert [f["path"] for f in r.json["files"]] == ["out"]


def test_eval_refuses_as_snekbox(server):
    r = server("POST", "/eval", {"stuff": "foo"})
    assert (r.status, r.json) == (400, {
        "title": "Request data failed validation",
        "description":
            "{'stuff': 'foo'} is not valid under any of the given schemas"})
    r = server("POST", "/eval", b"<x/>", {"Content-Type": "application/xml"})
    assert (r.status, r.json) == (415, {
        "title": "415 Unsupported Media Type",
        "description": "application/xml is an unsupported media type."})
    for bad in b"", b"{", b"[" * 1000, b'{"input": "1", "input": "2"}':
        r = server("POST", "/eval", bad, JSON)
        assert r.status == 400 and set(r.json) == {"title", "description"}, r
    r = server("POST", "/eval", {"session": True})
    assert r.status == 400 and "--eval" in r.json["description"], r


def test_eval_has_one_method(server):
    for method in "GET", "PUT", "DELETE", "PATCH":
        r = server(method, "/eval")
        assert (r.status, r.headers["Allow"]) == (405, "POST, OPTIONS"), r
    r = server("OPTIONS", "/eval")
    assert (r.status, r.headers["Allow"], r.body) == (200, "POST", b"")
    r = server("GET", "/nothing")
    assert (r.status, r.json) == (404, {"title": "404 Not Found"})


# ---- as Onyx's code interpreter answers ----

def test_execute_answers_with_both_streams(server):
    r = server.run("import sys\nprint('a')\nprint('b', file=sys.stderr)\n6 * 7")
    a = r.json
    assert r.status == 200
    assert (a["stdout"], a["stderr"], a["exit_code"], a["timed_out"]) == (
        "a\n42\n", "b\n", 0, False)
    assert isinstance(a["duration_ms"], int) and a["files"] == []
    assert server.run("6", last_line_interactive=False).json["stdout"] == ""
    assert server.run("print(input())", stdin="x\n").json["stdout"] == "x\n"
    a = server.run("while True: pass", timeout_ms=200).json
    assert a["timed_out"] and a["exit_code"] is None


def test_execute_may_take_what_clients_of_onyx_ask_for(cb, serve):
    """Unless somebody has said how long a cell may take."""
    server = serve(env=hindered.fast(cb.base))
    r = server.run(f"import time; time.sleep({10.5 / hindered.SPEED}); "
                   "print(1)", timeout_ms=30000)
    assert r.json["stdout"] == "1\n" and not r.json["timed_out"], r
    r = server.run("import time; time.sleep(30)", timeout_ms=10500)
    assert r.json["timed_out"] and r.json["limit"]["key"] == "timeout_ms", r
    r = server("POST", "/eval", {"input": "import time; time.sleep(30)"})
    assert r.json["returncode"] == 137, r
    server = serve("-s", "cell.timeout=30s")
    r = server.run("1", timeout_ms=30001)
    assert (r.status, r.json["detail"]) == (
        422, "timeout_ms exceeds maximum of 30000 ms")
    assert server.run("6 * 7", timeout_ms=30000).json["result"] == 42


def test_files_come_and_go(server):
    r = server.upload(b"hello\0" * 10000, "a b.txt")
    assert r.status == 201, r
    up = r.json
    assert up["filename"] == "a b.txt" and up["size_bytes"] == 60000
    listed = server("GET", "/v1/files").json["files"]
    assert listed[0]["file_id"] == up["file_id"]
    assert abs(listed[0]["upload_time"] - time.time()) < 100
    r = server("GET", f"/v1/files/{up['file_id']}")
    assert r.body == b"hello\0" * 10000
    assert r.headers["Content-Disposition"] == \
        'attachment; filename="a b.txt"'
    assert r.headers["X-Content-Type-Options"] == "nosniff"
    assert r.headers["Content-Type"] == "application/octet-stream"
    a = server.run("d = open('d/x', 'rb').read()\n"
                   "open('new', 'wb').write(d[:6])\nlen(d)",
                   files=[{"path": "d/x", "file_id": up["file_id"]}]).json
    assert a["result"] == 60000, a
    assert [(f["path"], f["kind"]) for f in a["files"]] == [("new", "file")]
    made = a["files"][0]["file_id"]
    assert server("GET", f"/v1/files/{made}").body == b"hello\0"
    for known in made, up["file_id"]:
        assert server("DELETE", f"/v1/files/{known}").status == 204
        for method in "GET", "DELETE":
            r = server(method, f"/v1/files/{known}")
            assert (r.status, r.json["detail"]) == (
                404, f"File with ID '{known}' not found")
    assert server("GET", "/v1/files").json == {"files": []}


ANY_NAME = """
import os
os.makedirs(".d/_e")
for name in "_a", ".b", "c", "__init__.py", ".d/_e/.f":
    open(name, "w").write("x")
"""


def test_files_have_any_name(serve):
    """Onyx tells of all files; files.pattern is snekbox's until it is set."""
    server = serve()
    a = server.run(ANY_NAME).json
    assert sorted(f["path"] for f in a["files"]) == [
        ".b", ".d/_e/.f", "__init__.py", "_a", "c"]
    a = server("POST", "/eval", {"input": ANY_NAME}).json
    assert [f["path"] for f in a["files"]] == ["c"]
    a = serve("-s", "files.pattern=_*").run(ANY_NAME).json
    assert sorted(f["path"] for f in a["files"]) == ["__init__.py", "_a"]


def test_code_runs_in_a_workspace_and_is_a_file_of_it(server):
    up = server.upload(b"data").json["file_id"]
    a = server.run("import os\nopen('/workspace/f', 'w').write('x')\n"
                   "os.mkdir('d'); os.rename('f', '/workspace/d/f')\n"
                   "import subprocess\n"
                   "[os.getcwd(), os.path.samefile('/home', '.'),"
                   " subprocess.getoutput('pwd')]").json
    assert a["result"] == ["/workspace", True, "/workspace"], a
    assert [f["path"] for f in a["files"]] == ["d/f"]
    code = ("from pathlib import Path\nhere = Path(__file__).parent\n"
            "(here / 'new').write_text('x')\n"
            "[(here / 'in').read_text(), Path(__file__).name,"
            " open(__file__).read()]")
    a = server.run(code, files=[{"path": "in", "file_id": up}]).json
    assert a["result"] == ["data", "__main__.py", code], a
    assert [f["path"] for f in a["files"]] == ["new"]
    # A pool that spawns imports the file; and what else looks for it finds none.
    a = server.run("import multiprocessing as m\ndef f(x): return x + 1\n"
                   "__name__ == '__main__' and __file__ and "
                   "m.get_context('spawn').Pool(1).map(f, [1])",
                   timeout_ms=50000).json
    assert a["result"] == [2], a
    a = server.run("import os\n'__fi' + 'le__' in globals(), os.listdir()").json
    assert a["result"] == [False, []], a
    # As many files as there may be, and it beside them.
    files = [{"path": f"f{i}", "file_id": up} for i in range(100)]
    assert server.run("__file__", files=files).json["result"] == \
        "/workspace/__main__.py"


def test_other_forms_have_their_home_as_it_is(server):
    a = server("POST", "/eval", {"code": "import os; os.getcwd()"}).json
    assert a["result"] == "/home", a
    a = server("POST", "/eval", {"input": "import os; print(os.getcwd())"}).json
    assert a["stdout"] == "/home\n", a


def test_a_value_comes_in_all_its_forms(server):
    code = "class V:\n    def _repr_html_(self): return x\nV()"
    a = server.run(code, mime=True, variables={"x": "<b>"}).json
    assert a["bundle"]["text/html"] == "<b>" and a["notices"] == []
    r = server.run("1", mime="yes")
    assert [d["loc"] for d in r.json["detail"]] == [["body", "mime"]]
    assert "bundle" not in server.run(code, variables={"x": "<b>"}).json


def test_execute_refuses_as_fastapi(server):
    r = server("POST", "/v1/execute", {"timeout_ms": "5", "files": [{}, 1]})
    assert r.status == 422
    assert [(d["type"], d["loc"]) for d in r.json["detail"]] == [
        ("missing", ["body", "code"]), ("int_type", ["body", "timeout_ms"]),
        ("missing", ["body", "files", 0, "path"]),
        ("missing", ["body", "files", 0, "file_id"]),
        ("model_attributes_type", ["body", "files", 1])]
    for bad in b"", b"{", b"5", b"[" * 1000 + b"]" * 1000:
        r = server("POST", "/v1/execute", bad, JSON)
        assert r.status == 422 and r.json["detail"], r
    r = server("POST", "/v1/execute", b"{}", {"Content-Type": "text/plain"})
    assert r.status == 422
    assert [(d["type"], d["loc"]) for d in r.json["detail"]] == [
        ("model_attributes_type", ["body"])]
    r = server.run("1", variables=[1])
    assert [d["loc"] for d in r.json["detail"]] == [["body", "variables"]]
    assert server.run("x", variables={"x": [1]}).json["result"] == [1]
    for path, words in (("/x", "File paths must be relative."),
                        ("a/../b", "File paths must not contain '..'."),
                        ("", "File path must not be empty.")):
        r = server.run("1", files=[{"path": path, "file_id": "x"}])
        assert (r.status, r.json) == (422, {"detail": words})
    r = server.run("1", files=[{"path": "p", "file_id": "nope"}])
    assert (r.status, r.json["detail"]) == (
        404, "File with ID 'nope' not found for path 'p'.")
    r = server.run("1", timeout_ms=60001)
    assert (r.status, r.json["detail"]) == (
        422, "timeout_ms exceeds maximum of 60000 ms")
    r = server("GET", "/v1/execute")
    assert (r.status, r.json) == (405, {"detail": "Method Not Allowed"})
    assert server("GET", "/v1/x").json == {"detail": "Not Found"}
    assert server.upload(b"x", field="other").status == 422


def test_uploads_are_bounded(serve):
    server = serve("-s", "serve.upload=1M", "-s", "serve.storage=3M",
                   "-s", "serve.files=4")
    r = server.upload(b"x" * (1 << 20) + b"y")
    assert (r.status, r.json["detail"]) == (
        413, "File size exceeds maximum of 1 MB")
    ids = [server.upload(b"x" * (1 << 20)).json["file_id"] for _ in range(2)]
    assert server.upload(b"x" * (1 << 20)).status == 507
    assert server("DELETE", f"/v1/files/{ids[0]}").status == 204
    assert [server.upload(b"x").status for _ in range(3)] == [201] * 2 + [507]
    # The rest is for others: a client has three quarters at most.
    with socket.socket() as other:
        other.bind(("127.0.0.2", 0))
        other.settimeout(SLOW)
        other.connect(("127.0.0.1", server.port))
        body = form_of(b"x")
        other.sendall(request(
            "POST", "/v1/files", body, f"Content-Length: {len(body)}",
            "Content-Type: multipart/form-data; boundary=XX",
            "Connection: close"))
        assert read_all(other).startswith(b"HTTP/1.1 201 ")


def test_a_staged_file_comes_back_where_its_bytes_differ(server):
    """From those that were there last, whenever it was written."""
    ids = [server.upload(b, "f").json["file_id"] for b in (b"a", b"b")]

    def left(code, *files):
        files = [{"path": "f", "file_id": i} for i in files]
        return [f["path"] for f in server.run(code, files=files).json["files"]]

    for text, files, wanted in (("a", ids[:1], []), ("b", ids[:1], ["f"]),
                                ("ab", ids[:1], ["f"]), ("b", ids, []),
                                ("a", ids, ["f"])):
        code = f"n = open('f', 'w').write({text!r})"
        assert left(code, *files) == wanted, (text, files)
    for path in "__main__.py", "./__main__.py":
        r = server.run("1", files=[{"path": path, "file_id": ids[0]}])
        assert (r.status, r.json["detail"]) == (
            422, "File path '__main__.py' is reserved for the execution "
                 "entrypoint."), path
    r = server.run("1", files=[{"path": "d/__main__.py", "file_id": ids[0]}])
    assert r.status == 200, "a control"


def test_files_of_an_answer_that_has_none_are_not_kept(server):
    code = "for i in range(5): open(f'f{i}', 'w').write('x')"
    first = server.run(code).json
    assert len(first["files"]) == 5 and first["files_error"] is None
    r = server.run(code + "\nopen(b'\\xff', 'w').write('x')").json
    assert r["files"] == [] and "invalid bytes" in r["files_error"]
    # control: those that were told are there, and no others
    kept = server("GET", "/v1/files").json["files"]
    assert {f["file_id"] for f in kept} == {
        f["file_id"] for f in first["files"]}


def test_files_for_which_there_is_no_memory(serve, cb):
    server = serve(env=hindered.without_memory_for_files(cb, 3))
    ids = [server.upload(b"x", f"f{i}").json["file_id"] for i in range(3)]
    files = [{"path": f"f{i}", "file_id": n} for i, n in enumerate(ids)]
    r = server.run("1", files=files)
    assert r.status == 503 and "Cannot allocate memory" in r.json["detail"], r
    r = server.run("1", files=files[:2])
    assert (r.status, r.json["exit_code"]) == (200, 0), r


def test_files_are_forgotten(serve):
    server = serve("-s", "serve.keep=1s")
    assert server.upload(b"x").status == 201
    hosttree.until(lambda: not server("GET", "/v1/files").json["files"],
                   "the file is forgotten")


# ---- who may, and how many ----

def test_health_and_metrics(serve):
    server = serve(spare=None)
    assert server("GET", "/health").json == {"status": "ok"}
    server.run("1")
    now = server.figures()
    assert now["request_seconds_count"] == 1
    assert now['answers_total{status="2xx"}'] >= 2
    hosttree.until(lambda: server.figures()['jails{state="spare"}'] == 12,
                   "the spares are built", 30)


def test_a_token_is_asked_for(serve, cb):
    word = cb.base / "token"
    word.write_text("sesame\n")
    r = cb.run("-s", f"serve.token_file={word}", "--serve", "127.0.0.1:0")
    assert r.code != 0 and "is not a secret" in r.said, r
    word.chmod(0o600)
    server = serve("-s", f"serve.token_file={word}")
    assert server("GET", "/health").status == 200
    for headers in {}, {"Authorization": "Bearer sesam"}, \
            {"Authorization": "Bearer sesamesesame"}:
        r = server("POST", "/eval", b'{"input": "1"}', {**JSON, **headers})
        assert r.status == 401 and r.headers["WWW-Authenticate"] == "Bearer"
        assert "Bearer and a token" in r.json["description"], r
    r = server("POST", "/eval", b'{"input": "1"}',
               {**JSON, "Authorization": "Bearer sesame"})
    assert r.status == 200
    r = cb.run("-s", "serve.token_file=/dev/null", "--serve", "127.0.0.1:0")
    assert r.code != 0 and "serve.token_file" in r.said, r


@pytest.mark.parametrize("origin", ["https://evil.example", "null",
                                    "http://x.evil.example", "http://"])
def test_pages_of_others_start_nothing(lasting, origin):
    def ask(path, origin):
        body = b'{"input": "print(1)"}'
        return lasting.raw(request(
            "POST", path, body, f"Content-Length: {len(body)}",
            "Connection: close", f"Origin: {origin}"))

    for path in ("/eval", "/v1/files", "/v1/sessions"):
        assert ask(path, origin).startswith(b"HTTP/1.1 403 ")
    # control: its own page, whose host the request names
    assert ask("/eval", "http://localhost").startswith(b"HTTP/1.1 200 ")


def test_pages_of_others_with_the_same_name_start_nothing(serve, cb):
    """Of a server with TLS, and of a program that is made of pages."""
    server, word = serve(), cb.base / "token"
    for scheme in ("https", "tauri", "x http", ""):
        assert named(server, "localhost", scheme) == b"403", scheme
    assert named(server, "localhost", "HTTP") == b"200"     # the control
    word.write_text("sesame\n")
    word.chmod(0o600)
    proxied = serve("-s", f"serve.token_file={word}")
    token = "Authorization: Bearer sesame"
    assert named(proxied, "x.example", "https", token) == b"200"
    assert named(proxied, "x.example", "tauri", token) == b"403"


@pytest.mark.parametrize("line, host, status", [
    ("POST http://evil.example/eval HTTP/1.1", "Host: localhost", b"400"),
    ("POST http://localhost/eval HTTP/1.1", "Host: evil.example", b"400"),
    ("POST http://evil.example/eval HTTP/1.0", "X: y", b"400"),
    ("POST http://LocalHost/eval HTTP/1.1", "Host: localhost", b"200")])
def test_a_path_is_of_the_host_that_is_named(lasting, line, host, status):
    """A proxy might go by the one, and we by the other."""
    body = b'{"input": "1"}'
    head = (line, host, "Content-Type: application/json", "Connection: close",
            f"Content-Length: {len(body)}", "", "")
    assert lasting.raw("\r\n".join(head).encode() + body).split()[1] == status


def named(server, host, scheme="http", *headers):
    """How a request to this Host is answered: as by a page that is of it."""
    body = b'{"input": "print(1)"}'
    head = ("POST /eval HTTP/1.1", f"Host: {host}", f"Origin: {scheme}://{host}",
            "Content-Type: application/json", "Connection: close",
            f"Content-Length: {len(body)}", *headers, "", "")
    return server.raw("\r\n".join(head).encode() + body).split()[1]


FOREIGN = ["evil.example", "evil.example:8060", "localhost.evil.example",
           "127.0.0.1.evil.example:1", "[::2]", "10.0.0.1", "[::1].evil", "[",
           "[::1", "127.1", ":", "x" * 300]


def test_names_of_others_start_nothing(serve, cb):
    """Names that were made names of this host (DNS rebinding) are no exception."""
    server = serve()
    for host in FOREIGN:
        assert named(server, host) == b"403", host
    # controls: its own names; a token; a socket that no browser reaches
    for host in ("localhost", f"LocalHost:{server.port}", "127.0.0.1:9",
                 "127.8.8.8", "[::1]", "[::1]:80"):
        assert named(server, host) == b"200", host
    word = cb.base / "token"
    word.write_text("sesame\n")
    word.chmod(0o600)
    server = serve("-s", f"serve.token_file={word}")
    assert named(server, "x.example") == b"401"
    assert named(server, "x.example", "http",
                 "Authorization: Bearer sesame") == b"200"
    server = serve(where=f"unix:{cb.base}/names.sock")
    assert named(server, "x.example") == b"200"


def test_many_at_a_time_and_no_more(serve):
    server = serve("-s", "serve.concurrent=2", "-s", "serve.queue=1", *LONG)
    got = []

    def ask():
        got.append(server("POST", "/eval", {
            "input": "import time; time.sleep(3); print(1)"}))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    done = [r for r in got if r.status == 200]
    busy = [r for r in got if r.status == 503]
    assert len(done) >= 3 and len(done) + len(busy) == 8 and busy, got
    assert all(r.json["stdout"] == "1\n" for r in done)
    assert all(int(r.headers["Retry-After"]) > 0 and r.json["title"]
               for r in busy)
    assert server.run("1").status == 200


def test_one_client_gets_so_much_and_no_more(serve, cb):
    """A client at another address does not count with it."""
    server = serve("-s", "serve.per_client=2", *LONG)
    slow = f"import time; time.sleep({3 * PATIENCE}); print(1)"
    with contextlib.ExitStack() as stack:
        mine = [stack.enter_context(server.connect()) for _ in range(4)]
        for s in mine:
            s.sendall(evaluation(slow, "Connection: close"))
        heads = sorted(read_all(s).partition(b"\r\n\r\n") for s in mine)
    assert [h[:13] for h, _, _ in heads] == [
        b"HTTP/1.1 200 "] * 2 + [b"HTTP/1.1 429 "] * 2, heads
    for head, _, body in heads[2:]:
        assert b"\r\nRetry-After: 1\r\n" in head and b'"title"' in body
    endless = "import time; time.sleep(1000)"
    with server.connect() as s, socket.socket() as other:
        s.sendall(evaluation(endless))
        with server.connect() as s2:
            s2.sendall(evaluation(endless))
            server.await_running(2)
            assert server.run("1").status == 429
            assert server("GET", "/health").status == 200
            other.bind(("127.0.0.2", 0))
            other.settimeout(SLOW)
            other.connect(("127.0.0.1", server.port))
            other.sendall(evaluation("print(1)", "Connection: close"))
            assert read_all(other).startswith(b"HTTP/1.1 200 ")


@pytest.mark.root
def test_all_ids_that_a_user_has_are_one_client(serve, cb, tmp_path):
    """subuid(5). This run has mounts of its own."""
    if not IS_ROOT:
        pytest.skip("mounting needs root")
    if not os.path.exists("/etc/subuid"):
        pytest.skip("no /etc/subuid on this host")
    ranges = tmp_path / "subuid"
    ranges.write_text("somebody:1000005000:100\nanother:1000005100:100\n")
    place = pathlib.Path(tempfile.mkdtemp(prefix="cbtest-"))
    place.chmod(0o755)
    subprocess.run(["mount", "--bind", ranges, "/etc/subuid"], check=True)
    try:
        server = serve("-s", "serve.per_client=1", *LONG,
                       where=f"unix:{place}/s")
    finally:
        subprocess.run(["umount", "/etc/subuid"], check=True)
    os.chmod(server.path, 0o666)

    def connect(uid):
        os.seteuid(uid)
        try:
            return server.connect()
        finally:
            os.seteuid(0)

    with connect(1000005000) as slow:
        slow.sendall(evaluation("import time; time.sleep(1000)"))
        for uid, status in ((1000005000, b"429"), (1000005099, b"429"),
                            (1000005100, b"200")):
            def ask(uid=uid):
                with connect(uid) as s:
                    s.sendall(evaluation("1", "Connection: close"))
                    return read_all(s)[9:12]
            hosttree.until(lambda: ask() == status, f"{status} for {uid}", 8)
    assert server.end() == 0
    shutil.rmtree(place)


def test_a_request_is_bounded(serve):
    server = serve("-s", "serve.request=100K")
    r = server("POST", "/eval", {"input": "1", "x": "y" * 90000})
    assert r.status == 200
    big = b'{"input": "' + b"x" * 200000 + b'"}'
    got = server.raw(request(
        "POST", "/eval", b"", "Content-Type: application/json",
        f"Content-Length: {len(big)}"))
    assert got.startswith(b"HTTP/1.1 413 "), got
    chunked = b"".join(b"%x\r\n%s\r\n" % (len(c), c) for c in
                       (big[:60000], big[60000:120000], big[120000:])) + \
        b"0\r\n\r\n"
    got = server.raw(request(
        "POST", "/eval", chunked, "Content-Type: application/json",
        "Transfer-Encoding: chunked", "Connection: close"))
    assert got.startswith(b"HTTP/1.1 413 "), got


def test_keys_are_bounded(server):
    def ask(n):
        keys = ", ".join(f'"k{i}": 0' for i in range(n))
        return server("POST", "/eval", ('{"code": "len(v)", "variables": '
                                        '{"v": {%s}}}' % keys).encode(), JSON)

    r = ask(250_000)
    assert (r.status, r.json["title"]) == (400, "Request is too large")
    assert ask(1000).json["result"] == 1000


def test_a_socket_in_the_file_system(serve, cb):
    path = cb.base / "s"
    for _ in range(2):  # the second takes over what the first left
        server = serve(where=f"unix:{path}")
        got = server.raw(evaluation("print(1)", "Connection: close"))
        assert got.startswith(b"HTTP/1.1 200 ") and b'"1\\n"' in got
        assert server.end() == 0
    server = serve(where=f"unix:{path}")
    r = cb.run("--serve", f"unix:{path}")
    assert r.code != 0 and str(path) in r.said, "it is in use"
    for bad in "x", "localhost:80", "1.2.3.4", "unix:", "::1:80", ":80":
        r = cb.run("--serve", bad)
        assert r.code != 0 and r.said, r


# ---- clients that go, are slow, or lie ----

def test_a_client_that_goes_takes_its_jail_along(serve):
    server = serve(*LONG, spare=0)
    code = "import time; time.sleep(1000)"
    with server.connect() as s:
        s.sendall(evaluation(code))
        server.await_running()
    hosttree.until(lambda: server.tree.look() and not server.tree.guests(),
                   "it is gone", 5)
    assert server.figures()["clients_gone_total"] == 1
    assert server.run("1").status == 200


def test_an_answer_that_nobody_reads_costs_nobody_else(server):
    code = "print('x' * 900000)"
    with contextlib.ExitStack() as stack:
        for _ in range(20):
            s = stack.enter_context(server.connect())
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            s.sendall(evaluation(code))
        assert server.run("1").json["result"] == 1


@pytest.mark.sampled
def test_answers_that_nobody_reads_share_a_bounded_memory(serve):
    # as much as two of the longest: 32 MB
    server = serve("-s", "home.size=4M", "-s", "files.max_file=4M",
                   "-s", "serve.concurrent=2")
    whole = 5 * 10**6
    code = "open('f', 'w').truncate(4000000)"

    def ask(stack, room):
        s = stack.enter_context(server.connect())
        if room:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
        s.sendall(evaluation(code, "Connection: close"))
        return s

    with contextlib.ExitStack() as stack:
        for _ in range(20):
            ask(stack, 4096)
        last = ask(stack, None)
        hosttree.until(lambda: server.figures()["running"] == 0 and
                       server.figures()["waiting"] == 0,
                       "all have run", 50)
        # with the one that asks for the figures
        hosttree.until(lambda: server.figures()["clients"] < 15, "some went")
        assert len(read_all(last)) > whole
    # control: who reads gets everything, however many do at a time
    many, got = 20 if WHOLE else 10, []
    threads = [threading.Thread(target=lambda: got.append(
        len(server("POST", "/eval", {"input": code}).body)))
        for _ in range(many)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(got) == many and min(got) > whole


def test_an_answer_is_made_while_others_are_served(serve):
    server = serve("-s", "home.size=64M", "-s", "files.timeout=60s", *LONG)
    code = ("import os\n"
            "for i in range(90): open(f'{i:02}', 'w').write(f'{i}' * 50000)\n"
            "for i in range(3000): os.symlink('nowhere', f'x{i}')")
    left = server.connect()
    left.sendall(evaluation(code))
    got = []
    t = threading.Thread(target=lambda: got.append(server(
        "POST", "/eval", {"input": code})))
    t.start()
    while t.is_alive():
        t.join(.02)
        assert server("GET", "/health").status == 200
        if server.figures()["running"] < 2:
            left.close()
    t.join()
    left.close()
    files = got[0].json["files"]
    assert [f["path"] for f in files] == [f"{i:02}" for i in range(90)]
    assert all(base64.b64decode(f["content"]) == f["path"].lstrip("0").encode()
               * 50000 for f in files[1:])
    hosttree.until(lambda: server.figures()["running"] == 0, "both are done")


# ---- the end ----

def test_sigterm_answers_those_that_wait(serve):
    server = serve(*LONG)
    got = []
    t = threading.Thread(target=lambda: got.append(server("POST", "/eval", {
        "input": f"import time; time.sleep({2 * PATIENCE}); print(1)"})))
    t.start()
    server.await_running()
    server.process.send_signal(signal.SIGTERM)
    t.join()
    assert got[0].json["stdout"] == "1\n"
    assert got[0].headers["Connection"] == "close"
    assert server.process.wait(SLOW) == 0
    with pytest.raises(OSError):
        server.connect()


def refuses(server):
    """Whether it listens no more."""
    try:
        server.connect().close()
    except OSError:
        return True
    return False


def test_whoever_came_before_sigterm_is_answered(cb, serve):
    """It has a second to ask. Here clocks are slow, for busy hosts."""
    server = serve(env=hindered.slow(cb.base))
    with server.connect() as silent, server.connect() as slow:
        slow.sendall(b"GET /hea")
        hosttree.until(lambda: server.figures()["clients"] == 3, "they came")
        server.process.send_signal(signal.SIGTERM)
        hosttree.until(lambda: refuses(server), "the end of the listening")
        silent.sendall(evaluation("print(1)"))
        assert b'"1\\n"' in read_all(silent)
        slow.sendall(b"lth HTTP/1.1\r\nHost: x\r\n\r\n")
        assert read_all(slow).startswith(b"HTTP/1.1 503 ")
    assert server.process.wait(SLOW) == 0


def test_it_serves_on_while_health_says_that_it_ends(serve):
    server = serve("-s", "serve.drain=1h")
    assert server("GET", "/health").status == 200
    with server.connect() as old:
        server.process.send_signal(signal.SIGTERM)
        hosttree.until(lambda: server("GET", "/health").status == 503,
                       "/health to say so")
        # On new connections, and on one from before, which ends behind it.
        assert server.run("6 * 7").json["result"] == 42
        session = server("POST", "/v1/sessions").json["id"]
        ran = server("POST", f"/v1/sessions/{session}/cells", {"code": "1"})
        assert ran.json["output"] == "1\n"
        old.sendall(evaluation("print(1)"))
        answer = read_all(old)
        assert b"\r\nConnection: close\r\n" in answer and b'"1\\n"' in answer
    # The second signal ends what runs, too.
    with server.connect() as s:
        s.sendall(evaluation("import time; time.sleep(1000)"))
        server.await_running()
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(SLOW) == 0
        assert read_all(s) == b""


def test_it_ends_by_itself_after_serve_drain(serve):
    server = serve("-s", "serve.drain=1s", *LONG)
    with server.connect() as s:
        s.sendall(evaluation(
            f"import time; time.sleep({4 * PATIENCE}); print(1)"))
        server.await_running()
        server.process.send_signal(signal.SIGTERM)
        # Longer than it listens: it answers requests that run, as without a drain.
        assert b'"1\\n"' in read_all(s)
    assert server.process.wait(SLOW) == 0


@pytest.mark.parametrize("times", [2, 0])
def test_no_jail_outlives_it(cb, times):
    server = Server(cb, *LONG)
    with server.connect() as s:
        s.sendall(evaluation("import time; time.sleep(1000)"))
        server.await_running()
        if times == 0:
            server.process.kill()
        for _ in range(times):
            server.process.send_signal(signal.SIGTERM)
            hosttree.until(lambda: refuses(server), "the first to be taken")
        server.process.wait(SLOW)
    server.tree.wait_gone()


def test_it_survives_the_death_of_a_jail(serve):
    server = serve(spare=0)
    assert "jail failed" in server.run_in_jail_that_dies().json["detail"]
    hosttree.until(lambda: server.run("1").status == 200, "a new jail is there")


def test_without_who_makes_jails_it_ends(cb):
    server = Server(cb)
    assert server("POST", "/eval", {"input": "print(1)"}).status == 200
    server.tree.look()
    maker, = hosttree.until(lambda: server.children("cellblock-suppl"),
                            "the supplier")
    server.tree.kill(maker)
    assert server.process.wait(SLOW) == 1
    assert b"makes jails is gone" in server.process.stderr.read()
    server.tree.wait_gone()


@pytest.mark.sampled
def test_nothing_grows(serve):
    spare = 2
    server = serve(spare=spare)
    fds = pathlib.Path(f"/proc/{server.process.pid}/fd")

    def look():
        """Descriptors but those of clients, which close a moment after their
        answer; processes, and the cgroups that they are in."""
        server.await_rest(3 * spare)
        for _ in range(3):
            assert server("GET", "/nothing").status == 404
        links = []
        for fd in fds.iterdir():
            with contextlib.suppress(OSError):
                links.append(str(fd.readlink()))
        kinds = [re.sub(r"\d+", "N", link) for link in links]
        # A jail that waits may have its helper or not yet.
        live = [pid for pid in server.tree.look() if hosttree.status_of(
            pid).get("Name") != "cellblock-help"]
        return ((sorted(k for k in kinds if k != "socket:[N]"),
                 kinds.count("socket:[N]") < 12), len(live),
                len(set().union(*map(hosttree.cgroups_of, live))))

    def held():
        before, now = None, look()
        while now != before:  # a janitor may be on its way out, or a
            time.sleep(1)     # jail that waits have a process to come
            before, now = now, look()
        return now

    server.run("1")
    before = held()
    for i in range(20 if WHOLE else 8):
        assert server("POST", "/eval", {"input": f"print({i})"}).status == 200
        assert server.run(f"{i}").json["result"] == i

    def is_gone():
        """The copy of a session that waits may have come since."""
        files, live, cgroups = held()
        return files == before[0] and live <= before[1] + spare and \
            cgroups <= before[2]
    hosttree.until(is_gone, "all that was made to be gone", 30)


def test_the_reader_of_http_can_do_nothing(server):
    server.run("1")
    hosttree.assert_powerless(server.process.pid)
    assert hosttree.status_of(server.process.pid)["Threads"] == "1"


def test_spares_are_in_cgroups_as_a_session_is(cb, serve):
    """Also where a cgroup was delegated to the user."""
    session = cb.session("-q")
    wanted = len(hosttree.cgroups_of(cb.tree(session).init))
    session.close()
    server = serve(spare=2)
    server.await_rest(6)        # an init enters its cgroups after its start

    def inits():
        found = [pid for number, pid in server.tree.inside() if number == 1]
        return found if len(found) == 6 else None
    spares = hosttree.until(inits, "six spares", 30)
    assert [len(hosttree.cgroups_of(pid)) for pid in spares] == [wanted] * 6
