# SPDX-License-Identifier: MIT
"""cellblock --serve: the id of each request, and the log."""
import re

import pytest

from client import evaluation, request

UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"


def ids(answer):
    """What heads of answers have as the id."""
    return re.findall(r"^X-Request-Id: (.*)\r$", answer.decode("latin-1"),
                      re.M)


@pytest.mark.parametrize("what", [
    evaluation("1", "Connection: close"),
    request("GET", "/health", b"", "Connection: close"),
    request("HEAD", "/health", b"", "Connection: close"),
    request("GET", "/nowhere", b"", "Connection: close"),
    request("PUT", "/eval", b"", "Connection: close"),
    request("POST", "/v1/sessions", b"", "Connection: close"),
    b"GET /health HTTP/1.0\r\n\r\n",
    b"nonsense\r\n",
    b"GET /health HTTP/1.1\r\n\r\n",
    b"\x16\x03\x01",
    b"GET /" + b"x" * 9000,
    request("POST", "/eval", b"", "Content-Length: 99999999999"),
    request("POST", "/nowhere", b"zz\r\n", "Transfer-Encoding: chunked"),
    request("POST", "/eval", b"zz\r\n", "Transfer-Encoding: chunked",
            "Content-Type: application/json"),
], ids=lambda b: re.sub(r"[^ -~]+", " ", b.decode("latin-1"))[:40].strip())
def test_every_answer_has_the_id_of_its_request(lasting, what):
    made, = ids(lasting.raw(what))
    assert re.fullmatch(UUID, made)
    if b"HTTP/1.1\r\n" not in what or b"\r\n\r\n" not in what:
        return
    # The client's own comes back, also where what follows it is refused.
    named = what.replace(b"HTTP/1.1\r\n", b"HTTP/1.1\r\nX-Request-Id: a-1\r\n")
    assert ids(lasting.raw(named)) == ["a-1"]


@pytest.mark.parametrize("sent, kept", [
    ("0af7651916cd43dd8448eb211c80319c", True),
    ("Root=1-67891233-abcdef012345678912345678", True),
    ("a:b/c+d@e~f._-=", True),
    ("x" * 128, True),
    ("x" * 129, False),
    ("", False),
    ("a b", False),
    ("a\tb", False),
    ('a","status":200', False),
    ("é", False),
    ("a\x1b[31m", None),
    ("%0a", False),
])
def test_an_id_of_the_client_has_harmless_characters(lasting, sent, kept):
    head = request("GET", "/health", b"", "Connection: close")
    head = head.replace(b"\r\n\r\n", b"\r\nX-Request-Id: " + sent.encode()
                        + b"\r\n\r\n")
    answer = lasting.raw(head)
    got, = ids(answer)
    assert (got == sent) is bool(kept)
    assert kept or re.fullmatch(UUID, got)
    assert answer.startswith(b"HTTP/1.1 " +
                             (b"400 " if kept is None else b"200 "))


def test_a_request_with_two_ids_gets_another(lasting):
    got, = ids(lasting.raw(request(
        "GET", "/health", b"", "X-Request-Id: a", "X-Request-Id: b",
        "Connection: close")))
    assert re.fullmatch(UUID, got)


def test_requests_of_a_connection_have_an_id_each(lasting):
    got = ids(lasting.raw(
        request("GET", "/health", b"", "X-Request-Id: first") +
        request("GET", "/health") +
        request("GET", "/health", b"", "Connection: close")))
    assert got[0] == "first" and len(set(got)) == 3
