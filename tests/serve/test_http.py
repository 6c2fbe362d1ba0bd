# SPDX-License-Identifier: MIT
"""cellblock --serve: HTTP as nobody should send it."""
import contextlib
import json
import pathlib
import re
import select
import socket
import threading

import pytest

import hindered
import hosttree
from client import LONG, evaluation, read_all, request
from world import PATIENCE

TYPE = "Content-Type: application/json"
CHUNKED = "Transfer-Encoding: chunked"


def split(data):
    """The answers in these bytes: (status, body), of answers with a length."""
    answers = []
    while data:
        head, _, data = data.partition(b"\r\n\r\n")
        status = int(re.match(rb"HTTP/1\.1 (\d\d\d) ", head)[1])
        n = re.search(rb"\r\nContent-Length: (\d+)", head)
        n = int(n[1]) if n else 0
        answers.append((status, data[:n]))
        data = data[n:]
    return answers


# The request, the status, and whether it is known to be for FastAPI's clients.
WRONG = {
    "nothing but zeros": (b"\0" * 100, 400, False),
    "empty lines": (b"\r\n" * 1000, 400, False),
    "HTTP/0.9": (b"GET /health\r\n", 400, False),
    "HTTP/9.9": (b"GET / HTTP/9.9\r\n\r\n", 505, False),
    "HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0", 505, False),
    "TLS": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"U" * 510, 400,
            False),
    "a long path": (b"GET /" + b"a" * 100000, 414, False),
    "many fields": (request("GET", "/health", b"", *["X: y"] * 10000), 431,
                    True),
    "a long field": (request("GET", "/health", b"", "X: " + "y" * 100000), 431,
                     True),
    "no Host": (b"GET /health HTTP/1.1\r\n\r\n", 400, True),
    "two hosts": (request("GET", "/v1/files", b"", "Host: y"), 400, True),
    "a blank before the colon": (request("GET", "/v1/files", b"", "X : y"), 400,
                                 True),
    "a folded line": (request("POST", "/eval", b"", "X: y", " z"), 400, False),
    "a line without a colon": (request("POST", "/eval", b"", "X"), 400, False),
    "a zero in a field": (request("POST", "/eval", b"", "X: \0"), 400, False),
    "line feeds alone": (b"GET /health HTTP/1.1\nHost: x\n\n", 400, False),
    "two lengths": (request("POST", "/v1/execute", b"", "Content-Length: 1",
                            "Content-Length: 1"), 400, True),
    "a length of -1": (request("POST", "/eval", b"", "Content-Length: -1"), 400,
                       False),
    "a huge length": (request("POST", "/eval", b"", TYPE,
                              "Content-Length: 99999999999999999"), 413, False),
    "a length beyond all numbers": (
        request("POST", "/eval", b"", "Content-Length: " + "9" * 30), 413,
        False),
    "a length and chunks": (request("POST", "/eval", b"", CHUNKED,
                                    "Content-Length: 1"), 400, False),
    "another coding": (request("POST", "/eval", b"",
                               "Transfer-Encoding: gzip, chunked"), 501, False),
    "a chunk without a length": (request("POST", "/eval", b"zz\r\n", TYPE,
                                         CHUNKED), 400, False),
    "a chunk that is longer": (request("POST", "/v1/execute", b"1\r\nabc\r\n",
                                       TYPE, CHUNKED), 400, True),
    "two lengths of a chunk": (request("POST", "/v1/execute",
                                       b"1 2\r\n{\r\n0\r\n\r\n", TYPE,
                                       CHUNKED), 400, True),
    "a huge chunk": (request("POST", "/eval", b"f" * 30 + b"\r\n", TYPE,
                             CHUNKED), 413, False),
    "a long line of a chunk": (request("POST", "/eval", b"1;" + b"a" * 1000,
                                       TYPE, CHUNKED), 400, False),
    "long trailers": (request("POST", "/eval", b"0\r\n" + b"X: y\r\n" * 10000,
                              TYPE, CHUNKED), 431, False),
    "a host that is none": (b"GET /health HTTP/1.1\r\nHost: a b\r\n\r\n", 400,
                            True),
    "a user before the host": (request("GET", "http://u@localhost/health"), 400,
                               False),
    "a path without its host": (request("GET", "http:///health"), 400, False),
    "three words and one more": (b"GET /health HTTP/1.1 x\r\n\r\n", 400, False),
    "two blanks": (b"GET  /health HTTP/1.1\r\n\r\n", 400, False),
    "a tab for a blank": (b"GET\t/health HTTP/1.1\r\n\r\n", 400, False),
    "a blank before the first line": (b" GET /health HTTP/1.1\r\n\r\n", 400,
                                      False),
    "a carriage return alone": (request("GET", "/health", b"", "X: a\rb"), 400,
                                True),
    "bytes beyond ASCII in the path": ("GET /\xff HTTP/1.1\r\n".encode(), 400,
                                       False),
    "a long method": (b"G" * 30 + b" /health HTTP/1.1\r\n\r\n", 400, False),
    "a method with a colon": (b"GET: /health HTTP/1.1\r\n\r\n", 400, False),
    "a path that begins with none": (b"GET health HTTP/1.1\r\n\r\n", 400,
                                     False),
    "a fragment": (request("GET", "/health#x"), 400, False),
    "an authority alone": (request("CONNECT", "localhost:80"), 400, False),
    "a length in hexadecimal": (request("POST", "/eval", b"",
                                        "Content-Length: 0x10"), 400, False),
    "a list of one length": (request("POST", "/eval", b"",
                                     "Content-Length: 2, 2"), 400, False),
    "chunks of HTTP/1.0": (request("POST", "/eval", b"", CHUNKED).replace(
        b"HTTP/1.1", b"HTTP/1.0"), 400, False),
    "a chunk that ends with a line feed": (
        request("POST", "/eval", b"2\n{}\r\n0\r\n\r\n", TYPE, CHUNKED), 400,
        False),
    "a negative chunk": (request("POST", "/eval", b"-1\r\n", TYPE, CHUNKED), 400,
                         False),
    "a trailer that is none": (request("POST", "/eval", b"0\r\nX\r\n\r\n", TYPE,
                                       CHUNKED), 400, False),
    "an expectation": (request("POST", "/v1/execute", b"", "Expect: more"), 417,
                       True),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_no_request_is_answered_in_json(lasting, what):
    data, status, fastapi = WRONG[what]
    with lasting.connect() as s:
        with contextlib.suppress(OSError):
            s.sendall(data)
        (got, body), = split(read_all(s))
    assert got == status
    assert set(json.loads(body)) == (
        {"detail"} if fastapi else {"title", "description"})
    # a number that is too large is one
    assert status != 413 or not re.search(rb"no (number|length)", body), body
    assert lasting("GET", "/health").status == 200


def test_nobody_keeps_an_answer(lasting):
    """No answer may be told to another client, whatever its status."""
    for data in (request("GET", "/health", b"", "Connection: close"),
                 request("HEAD", "/no", b"", "Connection: close"),
                 evaluation("1", "Connection: close"), WRONG["TLS"][0]):
        head = lasting.raw(data).partition(b"\r\n\r\n")[0]
        assert b"\r\nCache-Control: no-store" in head, head
        assert b"X-Accel-Buffering" not in head


def test_nonsense_that_ends_is_answered(server):
    for start in b"GET", b"GET / HTTP/1.1\r\n", evaluation("1")[:-3]:
        with server.connect() as s:
            s.sendall(start)
            s.shutdown(socket.SHUT_WR)
            (got, body), = split(read_all(s))
        assert got == 400 and "ends before" in json.loads(body)["description"]


def test_wrong_follows_right_in_order(server):
    with server.connect() as s:
        s.sendall(evaluation("print('x' * 900000)") +
                  request("GET", "/health") + request("GET", "/", b"", "X"))
        got = split(read_all(s))
    assert [status for status, _ in got] == [200, 200, 400]


def test_what_a_client_still_sends_does_not_cost_it_the_answer(serve):
    server = serve("-s", "serve.request=100K")
    big = b'{"input": "' + b"x" * 9_000_000 + b'"}'
    for headers, body in (
            ([f"Content-Length: {len(big)}"], big),
            ([CHUNKED], b"%x\r\n" % len(big) + big + b"\r\n0\r\n\r\n")):
        with server.connect() as s:
            with contextlib.suppress(OSError):
                s.sendall(request("POST", "/eval", body, TYPE, *headers))
            (got, body), = split(read_all(s))
        assert got == 413, body
        assert "serve.request, 102400 bytes" in json.loads(body)["description"]


def test_a_client_may_ask_first(server):
    body = b'{"input": "print(1)"}'
    with server.connect() as s:
        s.sendall(request("POST", "/eval", b"", TYPE, "Expect: 100-continue",
                          f"Content-Length: {len(body)}", "Connection: close"))
        assert s.recv(100).startswith(b"HTTP/1.1 100 ")
        s.sendall(body)
        assert split(read_all(s))[0][0] == 200


def test_head_is_get_without_a_body(server):
    file = server.upload(b"hello").json["file_id"]
    with server.connect() as s:
        s.sendall(request("HEAD", f"/v1/files/{file}") + request("HEAD", "/no") +
                  request("HEAD", "/health", b"", "Connection: close"))
        heads = read_all(s).split(b"\r\n\r\n")
    assert [head[:13] for head in heads] == [
        b"HTTP/1.1 200 ", b"HTTP/1.1 404 ", b"HTTP/1.1 200 ", b""]
    assert b"\r\nContent-Length: 5\r\n" in heads[0] + b"\r\n"


@pytest.mark.parametrize("path,more,status", [
    ("/no", ["Content-Length: 1000000"], b"404"),
    ("/health", ["Content-Length: 1000000"], b"413"),
    ("/health", [CHUNKED], b"400"), ("/health", ["Host: x"], b"400")])
def test_no_answer_to_head_has_a_body(server, path, more, status):
    got = server.raw(request("HEAD", path, b"zz\r\n", *more))
    assert got.split()[1] == status and got.endswith(b"\r\n\r\n"), got


def test_a_client_of_http_1_0_is_answered(server):
    def old(*headers):
        return request("GET", "/health", b"", *headers).replace(
            b"HTTP/1.1", b"HTTP/1.0")

    with server.connect() as s:
        s.sendall(old("Connection: x, Keep-Alive") + old() + old())
        got = read_all(s)
    first, second = got.split(b"HTTP/1.1 200 ")[1:]
    assert b"\r\nconnection: keep-alive\r\n" in first.lower()
    assert b"\r\nconnection: close\r\n" in second.lower()


def test_the_last_request_of_a_connection_says_so(server):
    for headers in (["Connection: close"], ["Connection: a,CLOSE ,b"],
                    ["Connection: keep-alive", "Connection: close"]):
        got = server.raw(request("GET", "/health", b"", *headers) +
                         request("GET", "/health"))
        assert got.count(b"HTTP/1.1 200 ") == 1, headers
        assert b"\r\nconnection: close\r\n" in got.lower(), headers
    # control: a word that only contains it, and the end after that
    got = server.raw(request("GET", "/health", b"", "Connection: closed") +
                     request("GET", "/health", b"", "Connection: close"))
    assert got.count(b"HTTP/1.1 200 ") == 2


def test_a_path_is_unescaped(server):
    for path, status in (("/%68ealth", b"200"), ("/health?x=/y%00", b"200"),
                         ("/%2568ealth", b"404"), ("/health%", b"404"),
                         ("/health%6", b"404"), ("/health%00", b"400")):
        got = server.raw(request("GET", path, b"", "Connection: close"))
        assert got.split()[1] == status, path


@pytest.mark.limit(180)
def test_time_for_a_request_is_bounded(cb, serve):
    """However often a byte comes. Others are served meanwhile."""
    server = serve(env=hindered.fast(cb.base))
    with server.connect() as slow, server.connect() as idle:
        slow.sendall(b"GET /health HTTP/1.1\r\nX: ")
        end = threading.Event()

        def drip():
            with contextlib.suppress(OSError):
                while not end.wait(.5):
                    slow.sendall(b"x")

        t = threading.Thread(target=drip)
        t.start()
        assert server.run("1").status == 200
        (got, body), = split(read_all(slow))
        end.set()
        t.join()
        assert got == 408 and "too long" in json.loads(body)["detail"]
        idle.sendall(request("GET", "/health", b"", "Connection: close"))
        assert split(read_all(idle))[0][0] == 200, "who says nothing may stay"


def test_whoever_asks_for_nothing_makes_room(serve):
    server = serve("-s", "serve.clients=20", *LONG)
    with contextlib.ExitStack() as stack:
        running = stack.enter_context(server.connect())
        running.sendall(evaluation(
            f"import time; time.sleep({3 * PATIENCE}); print(1)",
            "Connection: close"))
        server.await_running()
        for _ in range(50):
            stack.enter_context(server.connect())
        assert server.run("1").status == 200
        assert b'"1\\n"' in read_all(running), "one that runs may stay"


def test_idle_and_slow_clients_cost_a_descriptor(cb, serve):
    # (a head has 20 seconds)
    server = serve(env=hindered.slow(cb.base))
    fds = pathlib.Path(f"/proc/{server.process.pid}/fd")
    server.run("1")
    server.await_rest()
    before = len(list(fds.iterdir()))
    with contextlib.ExitStack() as stack:
        slow = [stack.enter_context(server.connect()) for _ in range(1000)]
        for i, s in enumerate(slow):
            if i % 3 == 1:
                s.sendall(b"POST /eval HTTP/1.1\r\nHost: x\r\nX-")
            elif i % 3 == 2:
                s.sendall(evaluation("print(1)")[:-5])
        assert server.run("1").json["result"] == 1
        assert server.figures()["clients"] >= 1000
        # One each, also where a request has a body, and some for those that run.
        assert len(list(fds.iterdir())) - before < 1000 + 30
    hosttree.until(lambda: server.figures()["clients"] < 10, "they are gone")


def test_bodies_share_a_memory_also_with_many_short_ones(serve):
    """serve.request for each of eight, and not of as many as have begun one.
    Six of them are for one client."""
    server = serve("-s", "serve.request=1M")
    head = request("POST", "/eval", b"", TYPE, "Content-Length: 1000000")
    with contextlib.ExitStack() as stack:
        def begin(body):
            s = stack.enter_context(server.connect())
            with contextlib.suppress(OSError):
                s.sendall(head + body)
            return s

        for _ in range(300):
            begin(b"x")
        long = [begin(b"x" * 900_000) for _ in range(20)]
        hosttree.until(lambda: len(select.select(long, [], [], 0)[0]) >= 14,
                       "six of them are kept")
        assert server.run("1").status == 200
        assert len(select.select(long, [], [], 0)[0]) <= 15


def test_bodies_that_never_end_keep_nobody_out(cb, serve):
    """Neither from a place nor from the memory that bodies share."""
    # (a body has a minute)
    server = serve("-s", "serve.clients=20", "-s", "serve.request=100K",
                   env=hindered.slow(cb.base))
    with contextlib.ExitStack() as stack:
        stalled = [stack.enter_context(server.connect()) for _ in range(19)]
        for s in stalled:
            s.sendall(request("POST", "/eval", b"x" * 99_000, TYPE,
                              "Content-Length: 100000"))
        for i in range(5):
            r = server("POST", "/eval", {"input": f"print({i})" + " " * 60000})
            assert r.status == 200, r
        (got, body), = split(read_all(stalled[0]))
        assert got == 503 and "long requests" in json.loads(body)["description"]
        stack.enter_context(server.connect())
        stack.enter_context(server.connect())
        assert server("GET", "/health").status == 200


def test_a_body_that_nobody_wants_is_not_read_for_ever(serve):
    server = serve("-s", "serve.upload=1M")
    part = (b"--XX\r\nContent-Disposition: form-data; name=\"x\"\r\n\r\n" +
            b"x" * 4_000_000)
    for head, body in (
            (("GET", "/health"), b"x" * 4_000_000),
            (("POST", "/nowhere"), b"x" * 4_000_000),
            (("POST", "/v1/files"), part)):
        for how in "Content-Length: 999999999", CHUNKED:
            data = body if how != CHUNKED else \
                b"%x\r\n" % 999999999 + body
            with server.connect() as s:
                with contextlib.suppress(OSError):
                    s.sendall(request(
                        *head, data, how,
                        "Content-Type: multipart/form-data; boundary=XX"))
                (got, text), = split(read_all(s))
            assert got == (404 if head[1] == "/nowhere" else 413), (head, how)
            assert json.loads(text)
    assert server.upload(b"x" * 1_000_000).status == 201


def test_requests_of_one_connection_are_answered_in_order(server):
    many = b"".join(evaluation(f"print({i})") for i in range(5)) + \
        evaluation("print(5)", "Connection: close")
    with server.connect() as s:
        s.sendall(many)
        got = read_all(s)
    assert re.findall(rb'"stdout": "(\d)', got) == [b"%d" % i
                                                   for i in range(6)], got


def test_what_ends_where_is_beyond_doubt(server):
    hidden = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"
    bad = [
        ("Content-Length: 0", "Transfer-Encoding: chunked"),
        ("Content-Length: 5", "Content-Length: 0"),
        ("Content-Length: 0", "Content-Length: 0"),
        ("Content-Length: +0",), ("Content-Length: -1",),
        ("Content-Length: 0x10",), ("Content-Length: 1,1",),
        ("Content-Length: 99999999999999999999999",),
        ("Transfer-Encoding: xchunked",),
        ("Transfer-Encoding: chunked, identity",),
        ("Transfer-Encoding: chunked", "Transfer-Encoding: chunked"),
        ("Content-Length : 0",), ("Host: y",),
    ]
    for headers in bad:
        got = server.raw(request("POST", "/eval", b"0\r\n\r\n" + hidden,
                                 "Content-Type: application/json", *headers))
        assert not re.search(rb"HTTP/1.1 2\d\d", got), (headers, got)
        assert b"# HELP" not in got, (headers, got)
    assert server.run("1").status == 200


def test_nonsense_is_answered_or_dropped(server):
    for bad in (b"\0" * 100 + b"\r\n\r\n", b"\r\n" * 1000, b"GET\r\n\r\n",
                b"GET / HTTP/9.9\r\n\r\n", b"\x16\x03\x01\x02\0" * 20,
                b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\n\r\n",
                b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 10000 + b"\r\n",
                request("POST", "/eval", b"zz\r\n", "Connection: close",
                        "Transfer-Encoding: chunked"),
                request("POST", "/v1/files", b"--X\r\nnonsense",
                        "Content-Type: multipart/form-data; boundary=X",
                        "Content-Length: 13", "Connection: close"),
                request("GET", "/v1/files/../../etc/passwd", b"",
                        "Connection: close"),
                request("GET", "/v1/files/%2e%2e%2fx", b"",
                        "Connection: close")):
        with server.connect() as s:
            with contextlib.suppress(OSError):
                s.sendall(bad)
                s.shutdown(socket.SHUT_WR)
            got = read_all(s)
        assert not got or re.match(rb"HTTP/1\.[01] [45]\d\d ", got), (bad, got)
    assert server.run("1").status == 200
