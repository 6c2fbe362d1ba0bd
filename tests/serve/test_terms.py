# SPDX-License-Identifier: MIT
"""cellblock --serve: limits and metadata of one session, and its extension."""
import pytest

import hosttree
from client import JSON, LONG
from test_sessions import ENDLESS, SESSIONS, Session
from world import PATIENCE


# A second of a session, in which its test has to do something.
SECOND_MS = int(1000 * PATIENCE)


def begin(server, **terms):
    r = server("POST", SESSIONS, terms)
    assert r.status == 201, r
    session = Session.__new__(Session)
    session.server, session.first = server, r.json
    session.path = f"{SESSIONS}/{r.json['id']}"
    return session


def ends_with(session, words):
    hosttree.until(lambda: session("GET").status == 410, "it ends", 20)
    assert words in session("GET").json["detail"], session("GET")


def test_the_state_has_limits_and_metadata(lasting):
    plain = begin(lasting)("GET").json
    assert plain["metadata"] == {}
    assert plain["limits"] == {"timeout_ms": 10000, "idle_ms": 1800000,
                               "lifetime_ms": 43200000,
                               "memory_bytes": 512 << 20}
    asked = begin(lasting, limits={"timeout_ms": 50, "idle_ms": 60000},
                  metadata={"user": "änn\x00\"", "n": ""})("GET").json
    assert asked["metadata"] == {"user": "änn\x00\"", "n": ""}
    assert asked["limits"] == {**plain["limits"], "timeout_ms": 50,
                               "idle_ms": 60000}


def test_its_timeout_is_that_of_its_cells(lasting):
    session = begin(lasting, limits={"timeout_ms": 1500})
    assert session.cell("1", timeout_ms=1501).status == 422
    assert session.cell("1", timeout_ms=1500).status == 200
    r = session.cell("while True: pass").json
    assert "1.5 s" in r["limit"]["text"] and r["after"] == "kept", r
    assert Session(lasting).cell("1", timeout_ms=9000).status == 200


def test_an_idle_session_ends_at_its_own_limit(lasting):
    session = begin(lasting, limits={"idle_ms": SECOND_MS})
    # A cell is no idleness.
    assert session.show(f"import time; time.sleep({1.5 * PATIENCE}); print(1)"
                        ) == "1\n"
    other = begin(lasting)
    ends_with(session, f"idle limit: {PATIENCE:g} s")
    assert session.cell("1").status == 410
    assert other.show("1") == "1\n"


@pytest.mark.parametrize("streams", [False, True])
def test_a_session_ends_at_its_own_lifetime(lasting, streams):
    session = begin(lasting, limits={"lifetime_ms": 2 * SECOND_MS})
    limit = f"lifetime limit: {2 * PATIENCE:g} s"
    s = session.begin("import time; time.sleep(9)", streams)
    with s:
        data = s.recv(65536)
        while streams and b"event: error" not in data:
            data += s.recv(65536)
        assert limit.encode() in data, data
    ends_with(session, limit)


def read_error(s):
    data = b""
    while b"event: error" not in data:
        more = s.recv(65536)
        assert more, data
        data += more
    return data


@pytest.mark.limit(90)
def test_an_end_in_a_stream_takes_no_session_along(serve):
    """Of sessions that are over the server keeps as many as may live: the
    oldest goes when one more ends. Where that one still tells its client so, it
    is not among those that are kept, and the oldest is its neighbour."""
    server = serve("-s", "serve.sessions=2", "-s",
                   "serve.sessions_per_client=2", *LONG)
    life, over = {"lifetime_ms": 6 * SECOND_MS}, []
    first = begin(server, limits=life)
    for _ in range(2):
        over.append(begin(server))
        over[-1].cell("exit()")
        ends_with(over[-1], "a cell left it")
        assert first("POST", "/extend", life).status == 200
    third = begin(server, limits={"lifetime_ms": 3 * SECOND_MS // 2})
    limit = f"lifetime limit: {1.5 * PATIENCE:g} s"
    with third.begin(ENDLESS, True) as s:
        assert limit.encode() in read_error(s)
    ends_with(third, "lifetime limit")
    last = begin(server)
    assert first("POST", "/extend", life).status == 200
    with first.begin(ENDLESS, True) as s:
        assert b"lifetime limit" in read_error(s)
    assert last.show("1") == "1\n"
    assert [one("GET").status for one in over] == [404, 410]


def test_a_session_is_extended_within_the_configured_lifetime(serve):
    server = serve("-s", "session.lifetime=1m", *LONG)
    session = begin(server, limits={"lifetime_ms": 2 * SECOND_MS})
    r = session("POST", "/extend", {"lifetime_ms": 30000})
    assert r.status == 200 and r.json["limits"]["lifetime_ms"] >= 30000, r
    # It is never shortened.
    same = session("POST", "/extend", {"lifetime_ms": 1})
    assert same.json["limits"] == r.json["limits"]
    r = session("POST", "/extend", {"lifetime_ms": 60001})
    assert r.status == 422 and b"session.lifetime" in r.body, r
    age = session("GET").json["age_ms"]
    time_left = max(0, 2 * SECOND_MS + 500 - age) / 1000
    assert session.show(f"import time; time.sleep({time_left})") == ""
    assert session("GET").json["state"] == "idle"
    session("DELETE")
    assert session("POST", "/extend", {"lifetime_ms": 1}).status == 404


@pytest.mark.parametrize("body, words", [
    ({"limits": {"timeout_ms": 10001}}, "cell.timeout"),
    ({"limits": {"idle_ms": 1800001}}, "session.idle"),
    ({"limits": {"lifetime_ms": 43200001}}, "session.lifetime"),
    ({"limits": {"lifetime_ms": 0}}, "minimum of 1"),
    ({"limits": {"lifetime_ms": 1.5}}, "not of type 'integer'"),
    ({"limits": {"lifetime_ms": True}}, "not of type 'integer'"),
    ({"limits": {"memory": "1G"}}, "memory: there is no such key"),
    ({"limits": []}, "not of type 'object'"),
    ({"metadata": "x"}, "not of type 'object'"),
    ({"metadata": {"a": 1}}, "string"),
    ({"metadata": {str(i): "" for i in range(17)}}, "more than 16"),
    ({"metadata": {"a": "é" * 700}}, "4096 bytes"),
    ({"x": 1}, "no such key"),
    ([], "an object"),
    (b"{}{}", "JSON"),
    (b"[" * 300, "an object"),
])
def test_terms_out_of_order_are_refused(lasting, body, words):
    r = lasting("POST", SESSIONS, body, JSON)
    assert r.status == 422 and words in r.json["detail"], r


@pytest.mark.parametrize("body", [
    b"", {}, {"lifetime_ms": 0}, {"lifetime_ms": "1"}, {"lifetime_ms": 10**18},
    {"lifetime_ms": 1, "x": 1}, [1]])
def test_extensions_out_of_order_are_refused(lasting, body):
    session = Session(lasting)
    assert session("POST", "/extend", body, JSON).status == 422
    session("DELETE")


def test_as_many_metadata_as_may_be(lasting):
    metadata = {str(i): "x" * 200 for i in range(16)}
    assert begin(lasting, metadata=metadata)("GET").json["metadata"] == metadata
