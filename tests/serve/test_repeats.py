# SPDX-License-Identifier: MIT
"""cellblock --serve: requests that a client may send again (Idempotency-Key)."""
import json
import threading

import pytest

import hosttree
from client import JSON, LONG, form_of, request
from test_sessions import SESSIONS, Session
from world import PATIENCE

COUNT = "open('n', 'a').write('x'); print(open('n').read())"
# A token is another for each run.
TOKEN = "import secrets; print(secrets.token_hex(8))"
# Something runs for long enough to be seen, and asked for once more.
SLEEP = f"import time; time.sleep({2 * PATIENCE}); "
LASTING = LONG


def keyed(key, **more):
    return {**JSON, "Idempotency-Key": key, **more}


def ask(server, path, body, key):
    """A connection on which a request with this key is on its way."""
    body = json.dumps(body).encode()
    s = server.connect()
    s.sendall(request("POST", path, body, "Content-Type: application/json",
                      f"Idempotency-Key: {key}",
                      f"Content-Length: {len(body)}"))
    return s


def until_answered(server, path, body, key):
    """The answer to the first request with this key, which may still run."""
    answers = []

    def is_answered():
        answers.append(server("POST", path, body, keyed(key)))
        return answers[-1].status != 409
    hosttree.until(is_answered, "it is answered", 30)
    return answers[-1]


@pytest.mark.parametrize("path, body", [
    ("/eval", {"input": TOKEN}),
    ("/eval", {"code": TOKEN}),
    ("/v1/execute", {"code": TOKEN}),
    (SESSIONS, {}),
])
def test_a_repeated_request_gets_the_first_answer(lasting, path, body):
    first, again = (lasting("POST", path, body, keyed(path + str(body)))
                    for _ in range(2))
    assert first.status in (200, 201), first
    assert (again.status, again.body) == (first.status, first.body)
    assert again.headers["Content-Type"] == first.headers["Content-Type"]

    fresh = lasting("POST", path, body, JSON)
    assert fresh.status == first.status and fresh.body != first.body


def test_a_cell_that_is_sent_again_runs_once(lasting):
    session = Session(lasting)
    answers = [session("POST", "/cells", {"code": COUNT}, keyed("a"))
               for _ in range(3)]
    assert len({a.body for a in answers}) == 1, answers
    assert answers[0].json["output"] == "x\n"
    assert session.show(COUNT) == "xx\n"


def test_an_upload_that_is_sent_again_is_kept_once(lasting):
    def upload(data, boundary=b"XX"):
        return lasting(
            "POST", "/v1/files", form_of(data).replace(b"XX", boundary),
            keyed("upload", **{"Content-Type": "multipart/form-data; "
                               f"boundary={boundary.decode()}"}))
    before = lasting("GET", "/v1/files").json["files"]
    first, again = upload(b"abc"), upload(b"abc", b"other")
    assert first.status == 201 and again.body == first.body
    assert len(lasting("GET", "/v1/files").json["files"]) == len(before) + 1
    assert upload(b"abd").status == 422


def test_a_key_is_of_one_request(lasting):
    assert lasting("POST", "/eval", {"input": "1"}, keyed("one")).status == 200
    for path, body in [("/eval", {"input": "2"}), ("/eval", {"input": "1 "}),
                       ("/v1/execute", {"code": "1"})]:
        r = lasting("POST", path, body, keyed("one"))
        assert r.status == 422 and b"Idempotency-Key" in r.body, r
    assert lasting("POST", "/eval", {"input": "1"}, keyed("one")).status == 200


def test_while_the_first_runs_a_repeated_one_is_told_to_wait(lasting):
    body = {"input": SLEEP + "print('ran')"}
    with ask(lasting, "/eval", body, "slow") as s:
        lasting.await_running()
        r = lasting("POST", "/eval", body, keyed("slow"))
        assert r.status == 409 and r.headers["Retry-After"], r
        assert b"200 OK" in s.recv(65536)
    assert until_answered(lasting, "/eval", body, "slow").status == 200


def test_a_client_that_went_gets_its_answer_when_it_comes_again(serve):
    server = serve("-s", "serve.concurrent=1")
    body = {"code": SLEEP + TOKEN, "timeout_ms": 60000}
    with ask(server, "/v1/execute", body, "gone"):
        server.await_running()
    r = until_answered(server, "/v1/execute", body, "gone")
    assert r.status == 200 and len(r.json["stdout"]) == 17, r
    assert server.figures()["running"] == 0


def test_a_cell_goes_on_without_its_client_and_runs_once(lasting):
    session = Session(lasting)
    body = {"code": SLEEP + COUNT}
    with ask(lasting, session.path + "/cells", body, "cell"):
        hosttree.until(lambda: session("GET").json["state"] == "running", "run")
    r = until_answered(lasting, session.path + "/cells", body, "cell")
    assert r.json["output"] == "x\n" and r.json["how"] == "ok", r


def test_a_session_whose_client_went_is_there_when_it_comes_again(serve):
    server = serve("-s", "serve.spare=0")
    with ask(server, SESSIONS, {}, "begin"):
        hosttree.until(lambda: server.figures()["sessions"] == 1, "it begins")
    first, again = (until_answered(server, SESSIONS, {}, "begin")
                    for _ in range(2))
    assert first.status == 201 and first.body == again.body
    assert server("GET", f"{SESSIONS}/{first.json['id']}").status == 200
    assert server.figures()["sessions"] == 1


def test_a_client_that_stays_away_ends_its_request(serve):
    server = serve("-s", "serve.away=1s", "-t", "1h")
    body = {"code": "while True: pass"}
    with ask(server, "/v1/execute", body, "away"):
        server.await_running()
    r = until_answered(server, "/v1/execute", body, "away")
    assert r.status == 500 and "serve.away" in r.json["detail"], r
    server.await_rest()


def test_a_request_that_did_not_run_may_be_sent_again(serve):
    server = serve("-s", "serve.concurrent=1", "-s", "serve.queue=0", *LONG)
    busy = {"input": "while True: pass"}
    with server.connect() as s:
        data = json.dumps(busy).encode()
        s.sendall(request("POST", "/eval", data,
                          f"Content-Length: {len(data)}"))
        server.await_running()
        r = server("POST", "/eval", {"input": "print(1)"}, keyed("k"))
        assert r.status == 503, r
    hosttree.until(lambda: server.figures()["running"] == 0, "it ends")
    r = server("POST", "/eval", {"input": "print(1)"}, keyed("k"))
    assert r.json["stdout"] == "1\n", r
    assert server("POST", "/eval", {"wrong": 1}, keyed("w")).status == 400
    assert server("POST", "/eval", {"input": ""}, keyed("w")).status == 200


def test_the_oldest_answers_go_first(serve):
    server = serve("-s", "serve.answers=4")
    bodies = [{"input": f"{i}; {TOKEN}"} for i in range(5)]

    def run(i):
        return server("POST", "/eval", bodies[i], keyed(str(i))).body
    first = [run(i) for i in range(5)]
    # A client has three of the four.
    assert [run(i) for i in (4, 3, 2)] == [first[i] for i in (4, 3, 2)]
    assert run(1) != first[1]


def test_answers_are_bounded_in_bytes_and_time(serve):
    server = serve("-s", "serve.answers_size=8K")
    long = {"input": "print('x' * 7000)"}
    assert server("POST", "/eval", long, keyed("long")).status == 200
    r = server("POST", "/eval", long, keyed("long"))
    assert r.status == 507 and b"serve.answers_size" in r.body, r
    server = serve("-s", "serve.answers_keep=1s")
    short = {"input": TOKEN}
    first = server("POST", "/eval", short, keyed("t")).body
    hosttree.until(lambda: server("POST", "/eval", short,
                                  keyed("t")).body != first,
                   "the answer is forgotten", 20)


def test_keys_are_checked(lasting):
    body = {"input": "print(1)"}
    for key in ("", "k" * 256):
        assert lasting("POST", "/eval", body, keyed(key)).status == 422
    assert lasting("POST", "/eval", body, keyed("k" * 255)).status == 200
    twice = request("POST", "/eval", b"{}", "Content-Length: 2",
                    "Idempotency-Key: a", "Idempotency-Key: b")
    assert b"400 Bad" in lasting.raw(twice)


def test_many_at_once_with_one_key_run_once(lasting):
    session = Session(lasting)
    answers = []

    def run():
        r = session("POST", "/cells", {"code": COUNT}, keyed("many"))
        answers.append(r)
    threads = [threading.Thread(target=run) for _ in range(20)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert {a.status for a in answers} <= {200, 409}, answers
    assert {a.json["output"] for a in answers if a.status == 200} == {"x\n"}
    assert session.show(COUNT) == "xx\n"


def kept(server):
    now = server.figures()
    return now["kept_answers"], now["kept_answers_bytes"]


def test_figures_tell_how_much_is_kept(serve):
    server = serve("-s", "serve.answers=4")
    assert server("POST", "/eval", {"input": TOKEN}, JSON).status == 200
    assert kept(server) == (0, 0)       # it has no key
    sizes = [len(server("POST", "/eval", {"input": f"{i}; {TOKEN}"},
                        keyed(str(i))).body) for i in range(5)]
    assert kept(server) == (3, sum(sizes[2:]))  # one client's share of four


def test_figures_tell_what_is_forgotten(serve):
    server = serve("-s", "serve.answers_keep=1s")
    server("POST", "/eval", {"input": TOKEN}, keyed("t"))
    hosttree.until(lambda: kept(server) == (0, 0), "it is forgotten", 20)
