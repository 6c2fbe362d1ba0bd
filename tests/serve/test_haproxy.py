# SPDX-License-Identifier: MIT
"""etc/haproxy/haproxy.cfg: the real haproxy before servers, each in a network
namespace of its own. Clients speak TLS to haproxy in another."""
import json
import signal
import threading
import time

import pytest

from proxied import (CONCURRENT, Fake, HOSTS, Haproxy, Lab, Load, Rate, load,
                     load_during, needs, wait)
from world import PATIENCE, WHOLE

# More than one host takes, so that each host has its share at any time. How
# many clients there are and how often each asks is what a longer test has more
# of.
CLIENTS = 2 * CONCURRENT if WHOLE else CONCURRENT + 4
OFTEN = 4 if WHOLE else 1

pytestmark = needs("haproxy")

BUSY = (b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n"
        b"Connection: close\r\n\r\n")


@pytest.fixture(name="lab")
def _lab(cb, tmp_path):
    yield from started(Lab(cb, tmp_path, Haproxy(3), 3))


@pytest.fixture(name="two")
def _two(cb, tmp_path):
    yield from started(Lab(cb, tmp_path, Haproxy(2), 2))


@pytest.fixture(name="drained")
def _drained(cb, tmp_path):
    yield from started(Lab(cb, tmp_path, Haproxy(2), 2, "-s", "serve.drain=4s"))


def started(lab):
    try:
        lab.start()
        yield lab
    finally:
        lab.end()


def served(lab, what="request_seconds_count"):
    return {name: lab.figure(name, what) for name in lab.servers}


def serves_again(lab, name, back):
    """Wait until haproxy gives a host requests, which back() brings back."""
    said, before = lab.said(), served(lab).get(name, 0)
    back()
    lab.await_up(name, said)

    def answers():
        load(lab, len(HOSTS), 1, "pass")
        return served(lab)[name] > before or time.sleep(.2)

    wait(answers, f"{name} to serve")


@pytest.mark.sampled
@pytest.mark.limit(180)
def test_a_killed_host_loses_only_what_ran_on_it(lab):
    before = load(lab, CLIENTS if WHOLE else CONCURRENT, OFTEN)
    assert all(right for _, right, _ in before), before
    assert all(served(lab).values()), "each has its share"

    each = 12 if WHOLE else 2
    answers = load(lab, CLIENTS, each, event=lambda: lab.kill("lab2"))
    lost = [a for a in answers if not a[1]]
    assert len(answers) == CLIENTS * each
    assert len(lost) <= CONCURRENT, lost
    # haproxy closes a client's connection that it has answered on before.
    other = [a for a in lost if a[0] not in (0, 502, 503)]
    assert not other, other

    assert all(right for _, right, _ in load(lab, CONCURRENT, OFTEN)), \
        "two are left"
    serves_again(lab, "lab2", lambda: lab.serve("lab2"))


@pytest.mark.sampled
@pytest.mark.limit(180)
def test_a_host_that_drains_loses_nothing(lab):
    def drain():
        lab.servers["lab3"].send_signal(signal.SIGTERM)

    # Longer than it takes to find out that no further client is let in.
    answers = load(lab, CLIENTS, 3 if WHOLE else 2, "import time; time.sleep(4)", event=drain)
    assert all(right for _, right, _ in answers), [
        a for a in answers if not a[1]]
    lab.await_end("lab3")


@pytest.mark.sampled
@pytest.mark.limit(180)
def test_a_host_whose_network_is_gone_is_given_up(lab):
    def cut():
        lab.hub("ip", "link", "set", "lab1", "down")

    began = time.monotonic()
    answers = load(lab, CLIENTS, 2 * OFTEN, event=cut)
    lost = [a for a in answers if not a[1]]
    assert len(lost) <= CONCURRENT, lost
    assert time.monotonic() - began < 60 * PATIENCE
    serves_again(lab, "lab1",
                 lambda: lab.hub("ip", "link", "set", "lab1", "up"))


# ---- the other host is full ----

# A request of a client, and one that keeps a host busy.
SHORT = "import time; time.sleep(.3)"
LONG = "import time; time.sleep(2)"


def clients_of(lab, kind, over):
    if kind == "rate":
        return [Rate(lab, "r", SHORT, 20 / PATIENCE, over)]
    return [Load(lab, f"c{i}", SHORT, over=over, backs_off=kind == "patient")
            for i in range(12)]


# Their requests fit into the 16 kB that haproxy keeps to repeat one.
KINDS = "rate", "patient", "impatient"


def answers_while(lab, kind, event):
    """The answers to clients while `event` takes lab2 away, and lab1 has more than
    it can do."""
    over, done = threading.Event(), threading.Event()
    others = [Load(lab, f"o{i}", LONG, over=done, host="lab1")
              for i in range(CONCURRENT + 4)]

    def happen():
        event()
        wait(lambda: is_down(lab, "lab2"), "lab2 to be down")
        done.set()

    for c in others:
        c.start()
    try:
        return load_during(clients_of(lab, kind, over), over, happen)
    finally:
        done.set()
        for c in others:
            c.join()


def changes(lab):
    """What haproxy says of its servers."""
    return [line for line in lab.said().splitlines()
            if " is DOWN" in line or " is UP" in line]


def is_down(lab, name):
    """Whether haproxy has taken a host away, and not brought it back: on a busy
    host it may have done that before."""
    said = [line for line in changes(lab) if f"requests/{name} is " in line]
    return bool(said) and " is DOWN" in said[-1]


@pytest.mark.sampled(2)
@pytest.mark.limit(120)
@pytest.mark.parametrize("kind", KINDS)
def test_a_host_that_ends_loses_nothing_where_the_other_is_full(two, kind):
    answers = answers_while(
        two, kind, lambda: two.servers["lab2"].send_signal(signal.SIGTERM))
    lost = [a for a in answers if not a[1]]
    assert not lost, "\n".join(changes(two) + [f"{len(lost)} of "
                               f"{len(answers)}: {lost[:2]}"])


@pytest.mark.sampled(2)
@pytest.mark.limit(120)
@pytest.mark.parametrize("kind", KINDS)
def test_a_killed_host_loses_what_was_sent_to_it_where_the_other_is_full(
        two, kind):
    answers = answers_while(two, kind, lambda: two.kill("lab2"))
    lost = [a for a in answers if not a[1]]
    assert len(lost) <= CONCURRENT, (len(lost), len(answers), lost[:20])
    # haproxy ends a client's connection that it has answered on before.
    assert all(a[0] in (0, 502) for a in lost), lost[:20]


@pytest.mark.alone
@pytest.mark.sampled
@pytest.mark.limit(180)
def test_hosts_are_restarted_in_turn_and_nothing_is_lost(drained):
    over = threading.Event()

    def restart(name):
        said = drained.said()
        drained.stop(name)
        # /health has said so before it stopped to listen.
        assert f"requests/{name} is DOWN, reason: Layer7 wrong status" in \
            drained.said()[len(said):]
        said = drained.said()
        drained.serve(name)
        drained.await_up(name, said)

    def restart_all():
        for name in HOSTS[:2] if WHOLE else HOSTS[:1]:
            restart(name)

    crowd = clients_of(drained, "impatient", over) + \
        clients_of(drained, "rate", over)
    answers = load_during(crowd, over, restart_all)
    lost = [a for a in answers if not a[1]]
    assert not lost, (len(lost), len(answers), lost[:5])


# ---- what may have run ----

@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 2", BUSY], ids=[
    "nothing", "half a line", "503"])
def test_a_request_that_may_have_run_is_sent_once(two, answer):
    two.stop("lab2")
    wait(lambda: is_down(two, "lab2"), "lab2 to be down")
    said = two.said()
    with Fake(two, "lab2", answer) as fake:
        two.await_up("lab2", said)
        got = {}
        while len(fake.bodies) < 3:
            mark = f"request {len(got)}"
            got[mark] = two.ask("POST", "/eval", {"input": f"print({mark!r})"})
        sent = [json.loads(b)["input"] for b in fake.bodies]
    assert len(set(sent)) == len(sent), sent
    for mark, (status, _) in got.items():
        # A request that is answered with 503 has not run.
        ran = f"print({mark!r})" not in sent or answer == BUSY
        assert status == (200 if ran else 502), (mark, status)


# ---- where requests go ----

def refused(lab):
    return served(lab, 'answers_total{status="4xx"}')


def cell(lab, session, code):
    status, data = lab.ask("POST", f"/v1/sessions/{session}/cells",
                           {"code": code})
    return status, json.loads(data)


def test_a_session_stays_on_its_host(lab):
    sessions = []
    for i in range(6):
        status, made = lab.ask("POST", "/v1/sessions", {})
        assert status == 201, made
        sessions.append(json.loads(made)["id"])
        assert cell(lab, sessions[i], f"x = {i}")[0] == 200
    for i, session in enumerate(sessions):
        status, answer = cell(lab, session, "x * 2")
        assert (status, answer["output"]) == (200, f"{i * 2}\n")
    assert {s.rpartition("-")[0] for s in sessions} == set(HOSTS)

    lab.kill("lab1")
    before = refused(lab)
    for i, session in enumerate(sessions):
        status, answer = cell(lab, session, "x")
        if session.startswith("lab1-"):
            assert status == 503 and "cannot be reached" in answer["detail"]
        else:
            assert (status, answer["output"]) == (200, f"{i}\n")
    assert refused(lab) == before, "no other host is asked"


def test_a_client_finds_the_files_it_uploaded(lab):
    body = (b'--XX\r\nContent-Disposition: form-data; name="file"; '
            b'filename="a.txt"\r\n\r\nhello\r\n--XX--\r\n')
    status, made = lab.ask("POST", "/v1/files", body, {
        "Content-Type": "multipart/form-data; boundary=XX"})
    assert status == 201
    made = json.loads(made)["file_id"]
    for _ in range(6):
        status, data = lab.ask("POST", "/v1/execute", {
            "code": "print(open('a').read())",
            "timeout_ms": 60000, "files": [{"path": "a", "file_id": made}]})
        assert status == 200 and json.loads(data)["stdout"] == "hello\n", data


def test_figures_are_not_for_clients(lab):
    assert lab.ask("GET", "/health") == (200, b'{"status": "ok"}')
    for path in ("/metrics", "/%6detrics", "/metrics?x", "/v1/sessions",
                 "/v1/sess%69ons", "/v1/sessions?x"):
        assert lab.ask("GET", path)[0] == 404, path
