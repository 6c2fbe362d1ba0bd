# SPDX-License-Identifier: MIT
"""cellblock --serve: events of a cell that are fetched again (Last-Event-ID)."""
import json
import re

import pytest

import client
import hosttree
from client import LONG, request
from figures import pyplot
from test_sessions import Session, unchunked
from world import PATIENCE

STREAM = "Accept: text/event-stream"
END = b"0\r\n\r\n"
TWICE = ("import time; open('n', 'a').write('x'); print('one', flush=True)\n"
         f"time.sleep({2 * PATIENCE}); print('two', open('n').read())")
LASTING = LONG


@pytest.fixture(name="session")
def _session(lasting):
    session = Session(lasting)
    yield session
    session("DELETE")


def ask(session, code):
    body = json.dumps({"code": code}).encode()
    s = session.server.connect()
    s.sendall(request("POST", session.path + "/cells", body,
                      "Content-Type: application/json", STREAM,
                      f"Idempotency-Key: {session.path}",
                      f"Content-Length: {len(body)}"))
    return s


def leave(session, code):
    """Ask for a cell, and go as soon as it runs."""
    with ask(session, code) as s:
        read_until(s, b"\r\n\r\n")


def resume(session, cell, last=None):
    s = session.server.connect()
    s.sendall(request("GET", f"{session.path}/cells/{cell}/events", b"",
                      *([f"Last-Event-ID: {last}"] if last else [])))
    return s


def read_until(s, text):
    data = b""
    while text not in data:
        more = s.recv(65536)
        assert more, data[-2000:]
        data += more
    return data


def events(data):
    """[(name, data, id)...]"""
    body = unchunked(data).decode()
    found = [(m[1], json.loads(m[2]), m[3]) for m in re.finditer(
        r"event: (\w+)\ndata: ([^\n]*)\nid: (\S+)\n\n", body)]
    assert len(found) == body.count("event: "), body
    return found


def read_all(s):
    return events(read_until(s, END))


def text_of(found):
    return "".join(d["text"] for name, d, _ in found if name == "output")


def wait_done(session):
    """Wait until the session is idle, and say which cell was its last."""
    session.wait_idle()
    return session("GET").json["cells"]


def test_a_cut_stream_goes_on_and_its_cell_runs_once(session):
    with ask(session, TWICE) as s:
        data = read_until(s, b'"one')
    place = re.search(rb"Content-Location: (\S+)\r\n", data)[1].decode()
    assert place == f"{session.path}/cells/1/events"
    first = events(data)
    resume(session, 1, first[-1][2]).close()  # it leaves twice
    with resume(session, 1, first[-1][2]) as s:
        assert session.cell("1").status == 409
        rest = read_all(s)
    assert text_of(first + rest) == "one\ntwo x\n"
    assert rest[-1][0] == "done" and rest[-1][1]["how"] == "ok", rest
    with resume(session, 1) as s:
        assert text_of(read_all(s)) == "one\ntwo x\n"
    for _, _, last in first:
        with resume(session, 1, last) as s:
            assert text_of(read_all(s)) == text_of(rest)
    with resume(session, 1, rest[-1][2]) as s:
        assert b" 204 " in read_until(s, b"\r\n\r\n")


def test_a_request_for_a_stream_that_is_repeated_leads_to_its_events(session):
    leave(session, TWICE)
    for _ in range(2):
        with ask(session, TWICE) as s:
            data = read_until(s, b"\r\n\r\n")
        assert b" 303 " in data and \
            f"Location: {session.path}/cells/1/events\r\n".encode() in data
        with resume(session, 1) as s:
            assert text_of(read_all(s)) == "one\ntwo x\n"


def test_whoever_resumes_takes_the_stream_over(session):
    with ask(session, TWICE) as s:
        read_until(s, b'"one')
        with resume(session, 1) as other:
            assert b"event: done" not in read_until(s, END)
            assert text_of(read_all(other)) == "one\ntwo x\n"


def test_a_client_that_stays_away_has_its_cell_interrupted(serve):
    session = Session(serve("-s", f"serve.away={int(3 * PATIENCE)}s",
                            "-t", "1h"))
    session.show("x = 1")
    with ask(session, "print(x)\nimport time; time.sleep(999)") as s:
        read_until(s, b'"1')
    hosttree.until(session.is_idle, "it is interrupted", 30)
    with resume(session, 2) as s:
        found = read_all(s)
    assert text_of(found).startswith("1\n"), found
    assert found[-1][1]["how"] == "interrupted"
    # So long, and no longer, the events are kept.
    last = {"Last-Event-ID": found[-1][2]}
    answers = set()

    def is_forgotten():
        answers.add(session("GET", "/cells/2/events", None, last).status)
        return 404 in answers
    hosttree.until(is_forgotten, "they are forgotten", 20)
    assert answers == {204, 404}
    assert session.show("x") == "1\n"


def test_a_stream_without_a_key_is_not_resumed(session):
    with session.begin("import time; time.sleep(9)", events=True) as s:
        assert b"Content-Location" not in read_until(s, b"\r\n\r\n")
    assert wait_done(session) == 1
    assert session("GET", "/cells/1/events").status == 404


def test_what_is_left_out_is_said_when_it_is_sent_again(serve):
    session = Session(serve("-s", "cell.output=4K", "-s", "cell.tail=1K"))
    with ask(session, "for i in range(9999): print(i)") as s:
        whole = read_all(s)
    assert len(text_of(whole)) < 6000 and "\n[" in text_of(whole)
    for _, _, last in whole[:-1]:
        with resume(session, 1, last) as s:
            rest = text_of(read_all(s))
        assert text_of(whole).endswith(rest)
    with resume(session, 1) as s:
        assert text_of(read_all(s)) == text_of(whole)


@pytest.mark.sampled
def test_pictures_are_sent_again(serve, cb):
    session = Session(serve("-t", "60s", "-s", "session.memory=1G",
                            "-s", "cell.cpu=60s"))
    code = "_ = plt.plot([1])\nplt.figure(); _ = plt.plot([2])"
    with ask(session, pyplot(cb) + code) as s:
        whole = read_all(s)
    assert [n for n, _, _ in whole].count("image") == 2, whole[-1]
    at = [n for n, _, _ in whole].index("image")
    with resume(session, 1, whole[at][2]) as s:
        assert read_all(s) == whole[at + 1:]


def test_other_events_are_not_found(session):
    with ask(session, "print('é')") as s:
        whole = read_all(s)
    for cell in (0, 2, "x", "99999999999999999999"):
        assert session("GET", f"/cells/{cell}/events").status == 404, cell
    for last in ("x", "1", "2-0-0-0", "1-99-0-0", "1--1-0-0", "1-0-0-0x",
                 "1-0-0", "9" * 200):
        with resume(session, 1, last) as s:
            assert b" 422 " in read_until(s, b"\r\n\r\n"), last
    with resume(session, 1, "1-1-0-0") as s:  # in the middle of a character
        assert read_all(s)[-1] == whole[-1]
    assert session.show("1") == "1\n"
    assert session("GET", "/cells/1/events").status == 404
    session("DELETE")
    assert session("GET", "/cells/1/events").status == 404


def test_many_leave_and_come_and_nothing_is_lost(session):
    code = "import time\nfor i in range(300): print(i); time.sleep(.005)"
    leave(session, code)
    got = []
    while not got or got[-1][0] != "done":
        with resume(session, 1, got[-1][2] if got else None) as s:
            data = read_until(s, b"\n\n\r\n")
        body = unchunked(data).decode()
        body = body[:body.rindex("\n\n") + 2] if "\n\n" in body else ""
        got += [(m[1], json.loads(m[2]), m[3]) for m in re.finditer(
            r"event: (\w+)\ndata: ([^\n]*)\nid: (\S+)\n\n", body)]
    assert text_of(got) == "".join(f"{i}\n" for i in range(300))


def head_of(session, cell, last=None):
    with session.server.connect() as s:
        s.sendall(request("HEAD", f"{session.path}/cells/{cell}/events", b"",
                          "Connection: close",
                          *([f"Last-Event-ID: {last}"] if last else [])))
        return client.read_all(s)


def test_to_ask_for_the_head_takes_no_stream(session):
    with ask(session, TWICE) as s:
        began = read_until(s, b'"one')
        first = events(began)[0][2]
        for last in None, first:
            head = head_of(session, 1, last)
            assert head.startswith(b"HTTP/1.1 200 "), head
            assert b"Content-Type: text/event-stream\r\n" in head
            assert head.endswith(b"\r\n\r\n")
        assert b" 422 " in head_of(session, 1, "1-x")
        assert b" 404 " in head_of(session, 2)
        found = events(began + read_until(s, END))  # nothing of it is lost
    assert text_of(found) == "one\ntwo x\n" and found[-1][0] == "done"
    # The events that are kept stay, too: a client can have them again.
    head_of(session, 1)
    with resume(session, 1) as s:
        assert text_of(read_all(s)) == "one\ntwo x\n"
    assert b" 204 " in head_of(session, 1, found[-1][2])
