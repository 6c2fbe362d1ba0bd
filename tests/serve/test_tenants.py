# SPDX-License-Identifier: MIT
"""cellblock --serve: tenants, each with tokens, files, sessions and limits of
its own."""
import contextlib
import json
import os
import re
import select

import pytest

import hosttree
from client import JSON, LONG, Tenant, read_all, request
from test_sessions import SESSIONS, Session

TWO = "# who may ask\n\nann: apple\nbob: banana\n\nann:\tavocado\r\n"
METRICS = "metrics: mango\n"


@pytest.fixture(name="two")
def _two(serve, tokens):
    server = serve(*tokens.write(TWO + METRICS).args)
    return Tenant(server, "apple"), Tenant(server, "banana")


# ---- what is another tenant's is not there ----

def test_a_tenant_cannot_see_fetch_use_or_delete_files_of_another(two):
    ann, bob = two
    told = ann.upload(b"secret", "plan.txt").json["file_id"]
    made = ann.run("open('made', 'w').write('x')").json["files"][0]["file_id"]
    own = bob.upload(b"bob's").json["file_id"]
    for secret in told, made:
        for method in "GET", "DELETE", "HEAD":
            assert bob(method, f"/v1/files/{secret}").status == 404
        r = bob.run("print(open('f').read())",
                    files=[{"path": "f", "file_id": secret}])
        assert r.status == 404 and secret in r.json["detail"], r
        unknown = bob("GET", "/v1/files/" + "0" * 36).body
        assert bob("GET", f"/v1/files/{secret}").body.replace(
            secret.encode(), b"0" * 36) == unknown
    assert [f["file_id"] for f in bob("GET", "/v1/files").json["files"]] == \
        [own]
    # the controls: its owner, with either of its tokens
    for owner in ann, Tenant(ann.server, "avocado"):
        assert owner("GET", f"/v1/files/{told}").body == b"secret"
        assert {f["file_id"] for f in owner("GET", "/v1/files").json[
            "files"]} == {told, made}
        r = owner.run("print(open('f').read())",
                      files=[{"path": "f", "file_id": told}])
        assert r.json["stdout"] == "secret\n", r
    assert ann("DELETE", f"/v1/files/{told}").status == 204
    assert ann("GET", f"/v1/files/{told}").status == 404


REQUESTS = [("GET", "", None), ("DELETE", "", None),
            ("POST", "/cells", {"code": "x = 2"}), ("POST", "/interrupt", None),
            ("POST", "/undo", None), ("POST", "/reset", None),
            ("GET", "/files", None), ("GET", "/files/f", None),
            ("PUT", "/files/f", b"bob"), ("DELETE", "/files/f", None)]


def test_a_tenant_cannot_reach_a_session_of_another(two):
    ann, bob = two
    session = Session(ann)
    session.show("x = 1")
    assert session("PUT", "/files/f", b"ann").status == 201
    for method, path, body in REQUESTS:
        r = bob(method, session.path + path, body)
        assert (r.status, r.body) == \
            (404, b'{"detail": "Session not found"}'), (method, path, r)
    # the controls: its owner, with either token; and bob has his own
    session.server = Tenant(ann.server, "avocado")
    assert session.show("print(x, open('f').read())") == "1 ann\n"
    assert Session(bob).show("1") == "1\n"
    assert session("DELETE").status == 204


def test_a_token_is_of_one_tenant_and_whole(two):
    ann, _ = two
    for word in ("", "appl", "appleapple", "apple ", " apple", "Apple",
                 "ann: apple", "ann", "applebanana", "apple\tbanana", "#"):
        r = ann.server("GET", "/v1/files", None,
                       {"Authorization": f"Bearer {word}"})
        if word.strip() != "apple":        # the blanks are not of the value
            assert r.status == 401, (word, r)
    assert ann.server("GET", "/v1/files", None,
                      {"AUTHORIZATION": "bearer apple"}).status == 200


# ---- limits and figures ----

def test_limits_of_a_client_are_of_a_tenant(serve, tokens):
    """Both come from one address, as behind a proxy."""
    server = serve("-s", "serve.per_client=1",
                   "-s", "serve.sessions_per_client=1", "-s", "serve.files=4",
                   *tokens.write(TWO).args)
    ann, bob = Tenant(server, "apple"), Tenant(server, "banana")
    other = Tenant(server, "avocado")
    assert Session(ann)
    assert other("POST", SESSIONS, b"", JSON).status == 429
    assert Session(bob)
    assert [ann.upload(b"x").status for _ in range(3)] == [201] * 3
    assert other.upload(b"x").status == 507
    assert bob.upload(b"x").status == 201


def test_figures_are_of_tenants_and_for_one_token_alone(two):
    ann, bob = two
    reader = Tenant(ann.server, "mango")
    ann.run("1")
    Session(ann).show("1")
    assert bob("GET", "/v1/files/nothing").status == 404
    for tenant in ann, bob:
        r = tenant("GET", "/metrics")
        assert r.status == 403 and "metrics" in r.json["description"], r
    for path in "/v1/files", "/v1/sessions/x":
        assert reader("GET", path).status == 403
    assert reader.run("1").status == 403
    text = reader("GET", "/metrics").body.decode()
    found = {k: int(v) for k, v in re.findall(
        r"^cellblock_tenant_(\S+) (\d+)$", text, re.M)}
    assert found['runs_total{tenant="ann"}'] == 1
    assert found['runs_total{tenant="bob"}'] == 0
    assert found['sessions_total{tenant="ann"}'] == 1
    assert found['cells_total{tenant="ann"}'] == 1
    assert found['answers_total{tenant="ann",status="2xx"}'] == 3
    assert found['answers_total{tenant="bob",status="4xx"}'] == 2
    assert reader.figures()['cells_total'] == 1        # of all
    for name in re.findall(r"^# TYPE (\S+)", text, re.M):
        assert text.count(f"# TYPE {name} ") == 1


def test_one_word_without_a_name_is_all_clients(serve, tokens):
    for word in "sesame", "a:b", "#1", "open sesame":
        server = serve(*tokens.write(f"{word}\n\n").args)
        one = Tenant(server, word)
        assert one.server("GET", "/v1/files").status == 401
        told = one.upload(b"x")
        assert told.status == 201, (word, told)
        assert one("GET", "/metrics").status == 200
        assert b"tenant" not in one("GET", "/metrics").body


# ---- files that are no such file ----

HOSTILE = {
    "empty": (b"", "holds no word"),
    "blanks": (b" \n\t\r\n", "holds no word"),
    "comments": (b"# a\n# b\n", "holds no token"),
    "a comment": (b"# the tokens come here\n", "holds no token"),
    "an empty comment": (b"#\n", "holds no token"),
    "huge": (b"ann: apple\n" * 10000, "larger than 65536 bytes"),
    "NUL": (b"ann: apple\nbob: ba\0nana\n", "NUL"),
    "a NUL at the end": (b"sesame\0", "NUL"),
    "bad UTF-8 in a name": (b"ann: apple\nb\xff\xfe: banana\n", "line 2"),
    "bad UTF-8 in a token": (b"ann: apple\nbob: \xff\xfe\n", "line 2"),
    "an escape": (b"ann: apple\n\x1b[31mbob: banana\n", "line 2"),
    "no name": (b"ann: apple\n: banana\n", "line 2"),
    "no token": (b"ann: apple\nbob:\n", "line 2"),
    "no colon": (b"ann: apple\nbanana\n", "line 2: expected NAME: TOKEN"),
    "two words": (b"ann: apple pie\nbob: banana", "line 1"),
    "a long name": (b"a" * 65 + b": apple\n", "line 1"),
    "a long token": (b"ann: " + b"a" * 4096, "line 1"),
    "a long word": (b"a" * 4096, "longer than 4095"),
    "three of a name": (b"ann: 1\nann: 2\nann: 3\n", "'ann' has 2 tokens"),
    "one of two": (b"ann: apple\nbob: apple\n", "the token of 'ann'"),
    "one twice": (b"ann: apple\nann: apple\n", "the token of 'ann'"),
    "too many": (b"".join(b"n%d: %d\n" % (i, i) for i in range(2001)),
                 "more than 2000"),
}


def refused(cb, tokens, said):
    r = cb.run(*tokens.args, "--serve", "127.0.0.1:0")
    assert r.code == 78 and "serve.token_file" in r.said and said in r.said, r
    assert "serving" not in r.said
    assert not {"apple", "banana"} & set(re.split(r"\W+", r.said)), r
    assert "\x1b" not in r.said and b"\xff" not in r.err


@pytest.mark.parametrize("what", HOSTILE)
def test_a_file_that_is_not_in_order_starts_nothing(cb, tokens, what):
    data, said = HOSTILE[what]
    refused(cb, tokens.write(data), said)


def test_only_a_file_that_is_a_secret_is_read(cb, tokens, serve):
    tokens.write(TWO).path.chmod(0o644)
    refused(cb, tokens, "is not a secret")
    tokens.path.chmod(0o620)
    refused(cb, tokens, "is not a secret")
    tokens.path.unlink()
    os.mkfifo(tokens.path, 0o600)               # nobody ever writes to it
    refused(cb, tokens, "not a regular file")
    tokens.path.unlink()
    tokens.path.mkdir(0o700)
    refused(cb, tokens, "not a regular file")
    tokens.path.rmdir()
    tokens.path.symlink_to("/etc/passwd")
    refused(cb, tokens, "is not a secret")
    tokens.path.unlink()
    tokens.path.symlink_to("nothing")
    refused(cb, tokens, "No such file")
    # its size is not what comes: as of a file that is written meanwhile
    tokens.path.unlink()
    tokens.path.symlink_to("/proc/self/environ")
    refused(cb, tokens, "changed while we read it")
    # the control: a link to a secret, as Kubernetes makes it
    tokens.path.unlink()
    (tokens.path.parent / "real").touch(0o600)
    (tokens.path.parent / "real").write_text(TWO)
    tokens.path.symlink_to("real")
    server = serve(*tokens.args)
    assert Tenant(server, "apple")("GET", "/v1/files").status == 200


def test_the_same_key_of_two_tenants_is_of_two_requests(two):
    ann, bob = two
    body = {"input": "import secrets; print(secrets.token_hex(8))"}
    mine, his, again = (t("POST", "/eval", body,
                          {**JSON, "Idempotency-Key": "k"})
                        for t in (ann, bob, Tenant(ann.server, "avocado")))
    assert mine.status == his.status == 200
    assert mine.body != his.body and again.body == mine.body
    assert bob("POST", "/eval", {"input": "1"},
               {**JSON, "Idempotency-Key": "k"}).status == 422


def test_events_are_not_another_tenants(two):
    ann, bob = two
    session = Session(ann)
    r = session("POST", "/cells", {"code": "print(1)"}, {
        **JSON, "Idempotency-Key": "e", "Accept": "text/event-stream"})
    assert r.status == 200, r
    events = session.path + "/cells/1/events"
    assert bob("GET", events).status == 404
    assert bob("POST", session.path + "/extend",
               {"lifetime_ms": 1}).status == 404
    assert ann("GET", events).body == r.body


def test_long_requests_of_one_leave_room_for_another(serve, tokens):
    """Whether they run, or never end: a quarter of the memory is the others'."""
    server = serve(*tokens.write(TWO).args, "-s", "serve.request=1M", *LONG)

    def body_of(code, size):
        return json.dumps({"input": code, "pad": "x" * size}).encode()

    def head(token, body):
        return request("POST", "/eval", b"", "Content-Type: application/json",
                       f"Authorization: Bearer {token}",
                       f"Content-Length: {len(body)}")

    with contextlib.ExitStack() as stack:
        def send(data):
            s = stack.enter_context(server.connect())
            with contextlib.suppress(OSError):
                s.sendall(data)
            return s

        def refused(n, of):
            hosttree.until(lambda: len(select.select(of, [], [], 0)[0]) == n,
                           f"{n} are refused")

        slow = body_of("print(6 * 7)", 500_000)
        his = send(head("banana", slow) + slow[:400_000])
        runs = body_of("import signal; signal.pause()", 900_000)
        running = [send(head("apple", runs) + runs) for _ in range(10)]
        refused(4, running)
        endless = [send(head("apple", runs) + runs[:800_000])
                   for _ in range(10)]
        refused(9, endless)             # as much is left of its share
        his.sendall(slow[400_000:])
        hosttree.until(lambda: select.select([his], [], [], 0)[0], "it ran")
        assert b"200 OK" in (got := his.recv(65536)) and b"42" in got, got
        assert b"too many long requests" in read_all(endless[0])
