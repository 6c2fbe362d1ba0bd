# SPDX-License-Identifier: MIT
"""GET /openapi.json is in order, has every path that is served and no other,
and describes what is really answered."""
import json
import pathlib
import re

import pytest

from client import JSON

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
FORM = (b'--XX\r\nContent-Disposition: form-data; name="file"; '
        b'filename="f"\r\n\r\nhi\r\n--XX--\r\n')
MULTIPART = {"Content-Type": "multipart/form-data; boundary=XX"}


@pytest.fixture(name="document")
def _document(server):
    r = server("GET", "/openapi.json")
    assert r.status == 200 and r.headers["Content-Type"] == "application/json"
    return r.json


def resolved(document, v):
    """A value, or what it refers to."""
    while isinstance(v, dict) and "$ref" in v:
        assert v["$ref"].startswith("#/"), v
        at = document
        for name in v["$ref"][2:].split("/"):
            at = at[name]
        v = at
    return v


def operations(document):
    return {(method.upper(), path): o
            for path, item in document["paths"].items()
            for method, o in item.items() if method != "parameters"}


def test_the_document_is_in_order(document, cb):
    try:
        from openapi_spec_validator import validate_spec
        validate_spec(document)
    except ImportError:
        pass
    assert document["openapi"].startswith("3.1.")
    assert document["info"]["version"] in \
        cb.run("--version").out.decode().split()
    names = [o["operationId"] for o in operations(document).values()]
    assert len(names) == len(set(names)) > 15
    for ref in re.findall(r'"\$ref": "([^"]+)"', json.dumps(document)):
        assert resolved(document, {"$ref": ref})
    for path, item in document["paths"].items():
        given = {p["name"] for p in item.get("parameters", [])}
        assert set(re.findall(r"{(\w+)}", path)) == given, path
    jsonschema = pytest.importorskip("jsonschema")
    for schema in document["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)


def test_it_has_every_path_and_no_other(document):
    source = "".join((TOP / "repl/serve" / name).read_text()
                     for name in ("route.h", "route.c"))
    macros = dict(re.findall(r'#define (\w+) "([^"]*)"', source))
    table = source.partition("} places[] = {")[2].partition("\n};")[0]
    served = set()
    for path, method in re.findall(r'\{([^,]+), "([A-Z]+)"', table):
        words = re.findall(r'"([^"]*)"|(\w+)', path)
        served.add((method, "".join(a or macros[b] for a, b in words)))
    assert len(served) > 15
    assert set(operations(document)) == served


def test_it_has_the_statuses_of_an_idempotency_key(document):
    """docs/JSON.md has them under "with an Idempotency-Key"."""
    for (method, path), operation in operations(document).items():
        keyed = any(p["name"] == "Idempotency-Key"
                    for p in operation.get("parameters", ()))
        assert keyed == (method == "POST"), path
        assert not keyed or {"409", "422", "507"} <= set(
            operation["responses"]), path


def test_its_examples_are_answered_well(server, document):
    jsonschema = pytest.importorskip("jsonschema")
    session = server("POST", "/v1/sessions", {}).json["id"]
    tried = 0
    for (method, path), operation in operations(document).items():
        content = operation.get("requestBody", {}).get("content", {})
        media = content.get("application/json", {})
        for name, example in media.get("examples", {}).items():
            schema = {**media["schema"], "components": document["components"]}
            jsonschema.validate(example["value"], schema,
                                jsonschema.Draft202012Validator)
            r = server(method, path.replace("{id}", session), example["value"])
            assert r.status in (200, 201), (path, name, r)
            tried += 1
        assert not media or "examples" in media, path
    assert tried > 5


def test_it_describes_what_is_answered(server, document):
    """Every operation, asked well and badly: the status is one of those that it
    has, and the body is of its schema."""
    jsonschema = pytest.importorskip("jsonschema")
    todo, seen = operations(document), set()

    def check(method, path, real=None, body=None, headers=None, status=None):
        r = server(method, real or path, body, headers)
        assert status in (None, r.status), r
        declared = resolved(document,
                            todo[method, path]["responses"][str(r.status)])
        content = declared.get("content")
        assert bool(content) == bool(r.body), r
        assert r.headers["X-Request-Id"], r
        seen.add((method, path))
        kind = (r.headers["Content-Type"] or "").partition(";")[0]
        assert not content or kind in content, (kind, content)
        if kind == "application/json" and path != "/openapi.json":
            schema = {**content[kind]["schema"],
                      "components": document["components"]}
            jsonschema.validate(r.json, schema,
                                jsonschema.Draft202012Validator)
        return r

    check("GET", "/health", status=200)
    check("GET", "/metrics", status=200)
    check("GET", "/openapi.json", status=200)
    check("GET", "/docs", status=200)
    for body in ({"input": "print(1)"}, {"input": "1", "files": [
            {"path": "x", "content": "aGk="}]}, {"args": ["-c", "1"]},
            {"code": "{'a': 1}", "variables": {"x": 1}, "mime": True},
            {"code": "open('f', 'w').write('x')"},
            {"code": "while True: pass", "timeout_ms": 100}):
        check("POST", "/eval", body=body, status=200)
    check("POST", "/eval", body={"args": 1}, status=400)
    check("POST", "/eval", body=b"x", headers={"Content-Type": "text/plain"},
          status=415)
    check("POST", "/v1/execute", body={"code": "open('f', 'w').write('x')"},
          status=200)
    check("POST", "/v1/execute", body={}, status=422)
    check("POST", "/v1/execute", body={"code": "1", "files": [
        {"path": "x", "file_id": "no"}]}, status=404)
    stored = check("POST", "/v1/files", body=FORM, headers=MULTIPART,
                   status=201).json["file_id"]
    check("POST", "/v1/files", body=FORM.replace(b'"file"', b'"x"'),
          headers=MULTIPART, status=422)
    check("GET", "/v1/files", status=200)
    one = "/v1/files/{file_id}"
    for method, status in (("GET", 200), ("DELETE", 204), ("GET", 404),
                           ("DELETE", 404)):
        check(method, one, f"/v1/files/{stored}", status=status)
    check("POST", "/v1/sessions", body={"x": 1}, status=422)
    new = check("POST", "/v1/sessions", body=b"", headers=JSON, status=201)
    at, real = "/v1/sessions/{id}", f"/v1/sessions/{new.json['id']}"
    check("GET", at, real, status=200)
    check("POST", at + "/extend", real + "/extend", {"lifetime_ms": 1000},
          status=200)
    check("POST", at + "/extend", real + "/extend", {}, status=422)
    check("GET", "/v1/sessions", status=200)
    for body, status in (({"code": "1", "files": [
            {"path": "d/x", "content": ""}], "mime": True}, 200), ({"code": "1/0"}, 200),
            ({"code": "while True: pass", "timeout_ms": 100}, 200),
            ({"code": "import os; os._exit(3)"}, 200), ({}, 422)):
        check("POST", at + "/cells", real + "/cells", body, status=status)
    check("POST", at + "/cells", real + "/cells", b'{"code": "x = 1"}',
          {**JSON, "Accept": "text/event-stream"}, status=200)
    for _ in range(2):  # urllib goes where 303 says
        r = check("POST", at + "/cells", real + "/cells", b'{"code": "x = 1"}',
                  {**JSON, "Accept": "text/event-stream",
                   "Idempotency-Key": "k"}, status=200)
    events, where = at + "/cells/{cell}/events", real + "/cells/{}/events"
    last = re.search(rb"\nid: (\S+)\n\n$", r.body)[1].decode()
    no = last.partition("-")[0]
    check("GET", events, where.format(no), status=200)
    check("GET", events, where.format(no), None, {"Last-Event-ID": last},
          status=204)
    check("GET", events, where.format(no), None, {"Last-Event-ID": "x"},
          status=422)
    check("GET", events, where.format(99), status=404)
    check("POST", at + "/undo", real + "/undo", {"undo": 1}, status=200)
    check("POST", at + "/undo", real + "/undo", {"undo": 99}, status=409)
    check("POST", at + "/interrupt", real + "/interrupt", status=204)
    check("POST", at + "/reset", real + "/reset", status=200)
    check("GET", at + "/files", real + "/files", status=200)
    file = at + "/files/{path}"
    check("PUT", file, real + "/files/a/b", b"hi", status=201)
    check("GET", file, real + "/files/a/b", status=200)
    check("PUT", file, real + "/files/a", b"hi", status=422)
    check("DELETE", file, real + "/files/a/b", status=204)
    for method in "GET", "DELETE":
        check(method, file, real + "/files/a/b", status=404)
    check("POST", at + "/cells", real + "/cells", {"code": "exit()"},
          status=200)
    for method, path, _ in sorted((m, p, 0) for m, p in todo
                                  if p.startswith(at)):
        if (method, path) != ("DELETE", at):
            check(method, path, real + path[len(at):].replace(
                "{path}", "x"), b"{}" if method == "POST" else None,
                JSON if method == "POST" else None, status=410)
    check("DELETE", at, real, status=204)
    check("DELETE", at, real, status=404)
    assert seen == set(todo)
