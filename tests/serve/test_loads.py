# SPDX-License-Identifier: MIT
"""cellblock --serve under ten kinds of load: others are answered meanwhile, it
says nothing that it does not mean, and nothing is left."""
import contextlib
import json
import os
import re
import socket
import struct

import pytest

import hindered
import hosttree
from client import SLOW, evaluation, form_of, read_all, request

MANY = 400
TYPE = "Content-Type: application/json"
LONG = os.urandom(1 << 20) * 8
SHOWN = b'{"stdout": "x\\n", "returncode": 0, "files": []}'
MULTIPART = "Content-Type: multipart/form-data; boundary=XX"


class Crowd:
    """Clients at an address of their own, so that they use up nobody's share."""

    def __init__(self, server, stack):
        self.server, self.stack = server, stack

    def come(self, n, first=b""):
        return [self.one(first) for _ in range(n)]

    def one(self, first=b""):
        s = self.stack.enter_context(socket.socket())
        s.bind(("127.0.0.3", 0))
        s.settimeout(SLOW)
        s.connect(("127.0.0.1", self.server.port))
        self.send(s, first)
        return s

    @staticmethod
    def send(s, data):
        with contextlib.suppress(OSError):      # it may have been answered
            s.sendall(data)

    def upload(self):
        return self.server.upload(LONG).json["file_id"]


def statuses(data):
    return [int(n) for n in re.findall(rb"HTTP/1\.1 (\d\d\d) ", data)]


def run_slowly(n):
    return evaluation(f"import time; time.sleep({n})")


# ---- kinds of load: what begins it, and what finishes it ----

def silent(crowd):
    crowd.come(MANY)
    yield


def slow_heads(crowd):
    all_ = crowd.come(MANY, b"GET /health HTTP/1.1\r\nHost: x\r\nX: ")
    for _ in range(3):
        yield
        for s in all_:
            s.sendall(b"y")
    for s in all_:
        s.sendall(b"\r\nConnection: close\r\n\r\n")
    assert all(statuses(read_all(s)) == [200] for s in all_)


def slow_bodies(crowd):
    whole = evaluation("print('x')", "Connection: close")
    all_ = crowd.come(MANY, whole[:-9])
    for i in range(-9, -1):
        yield
        for s in all_:
            s.sendall(whole[i:i + 1])
    # Most of these go: they are more than may run and wait.
    for s in all_[8:]:
        s.close()
    yield
    for s in all_[:8]:
        s.sendall(whole[-1:])
    for s in all_[:8]:
        got = read_all(s)
        assert statuses(got) == [200] and got.endswith(SHOWN), got


def slow_readers(crowd):
    file = crowd.upload()
    ask = request("GET", f"/v1/files/{file}", b"", "Connection: close")
    all_ = crowd.come(40, ask)
    yield
    for s in all_:
        s.recv(100)
    yield
    for s in all_[:30]:
        s.close()
    for s in all_[30:]:
        assert read_all(s).endswith(LONG[-100_000:])
    crowd.server("DELETE", f"/v1/files/{file}")


def half_closed(crowd):
    """Whoever says no more is answered what needs no time, and is gone for what
    does: nothing tells the two kinds of clients apart."""
    run = crowd.come(8, run_slowly(30))
    ask = crowd.come(MANY, request("GET", "/health"))
    for s in run + ask:
        s.shutdown(socket.SHUT_WR)
    yield
    assert all(statuses(read_all(s)) == [200] for s in ask)
    assert all(read_all(s) == b"" for s in run)


def pipelines(crowd):
    one = request("GET", "/health") * 49 + evaluation("print('x')")
    all_ = crowd.come(4, one * 4 + request("GET", "/health", b"",
                                           "Connection: close"))
    yield
    for s in all_:
        got = read_all(s)
        assert statuses(got) == [200] * 201 and got.count(SHOWN) == 4


def long_heads(crowd):
    all_ = [crowd.one(head) for _ in range(50) for head in (
        b"GET /" + b"a" * 100_000,
        request("GET", "/health", b"", "X: " + "y" * 100_000),
        request("GET", "/health", b"", *["X: y"] * 10_000),
        request("POST", "/eval", b"0\r\n" + b"X: y\r\n" * 10_000, TYPE,
                "Transfer-Encoding: chunked"))]
    yield
    assert {n for s in all_ for n in statuses(read_all(s))} == {414, 431}


def small_chunks(crowd):
    body = json.dumps({"input": "print('x')" + " " * 20_000}).encode()
    data = b"".join(b"1\r\n%c\r\n" % c for c in body) + b"0\r\n\r\n"
    all_ = crowd.come(8, request("POST", "/eval", data, TYPE,
                                 "Transfer-Encoding: chunked",
                                 "Connection: close"))
    yield
    for s in all_:
        got = read_all(s)
        assert statuses(got) == [200] and got.endswith(SHOWN), got


def resets(crowd):
    file = crowd.upload()
    whole = evaluation("print('x')")
    for first in (b"", b"GET /hea", whole[:-5], whole, run_slowly(30),
                  whole * 20, request("GET", f"/v1/files/{file}"),
                  b"POST /v1/files HTTP/1.1\r\nHost: x\r\n"):
        for s in crowd.come(20, first):
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                         struct.pack("ii", 1, 0))
            s.close()
        yield
    crowd.server("DELETE", f"/v1/files/{file}")


def cut_uploads(crowd):
    body = form_of(LONG)
    head = request("POST", "/v1/files", b"", MULTIPART,
                   f"Content-Length: {len(body)}")
    for _ in range(3):
        for s in crowd.come(8, head + body[:len(body) // 2]):
            s.close()
        yield
    assert crowd.server("GET", "/v1/files").json == {"files": []}


def passers_by(crowd):
    for _ in range(5):
        for _ in range(MANY):
            crowd.one(request("GET", "/health")).close()
        yield


LOADS = [silent, slow_heads, slow_bodies, slow_readers, half_closed, pipelines,
         long_heads, small_chunks, resets, cut_uploads, passers_by]


@pytest.mark.limit(180)
@pytest.mark.parametrize("load", LOADS, ids=lambda f: f.__name__)
def test_others_are_served_and_nothing_is_left(cb, serve, load):
    # (a head has 20 seconds, between whose bytes others run code)
    server = serve("-s", "serve.per_client=8", env=hindered.slow(cb.base))

    def failed():
        return server.figures()['answers_total{status="5xx"}']

    def descriptors():
        return len(os.listdir(f"/proc/{server.process.pid}/fd"))

    assert server.run("6 * 7").json["result"] == 42
    server.await_rest()
    before = descriptors()
    with contextlib.ExitStack() as stack:
        for _ in load(Crowd(server, stack)):
            assert server("GET", "/health").status == 200
            r = server.run("6 * 7")
            assert r.status == 200 and r.json["result"] == 42, r
    server.await_rest()
    hosttree.until(lambda: descriptors() <= before, "descriptors are closed")
    assert server.figures()["running"] == 0 and failed() == 0
    assert server("GET", "/v1/files").json == {"files": []}
