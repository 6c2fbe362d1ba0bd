# SPDX-License-Identifier: MIT
"""cellblock --serve: GET /metrics, read by Prometheus's own parser."""
import json
import shutil
import subprocess
import time

import pytest

import hosttree
from client import LONG, TIMEOUT_MS, evaluation, request

parser = pytest.importorskip(
    "prometheus_client.parser", reason="there is no python3-prometheus-client")


def families(server):
    r = server("GET", "/metrics")
    assert r.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    return {f.name: f for f in
            parser.text_string_to_metric_families(r.body.decode())}


def value(found, name, **labels):
    for family in found.values():
        for s in family.samples:
            if s.name == name and s.labels == labels:
                return s.value
    raise AssertionError((name, labels, found))


def test_figures_are_what_happened(server):
    before = families(server)
    assert all(f.name.startswith(("cellblock_", "process_"))
               and f.documentation.endswith(".")
               and f.type in ("counter", "gauge", "histogram")
               for f in before.values()), before
    for code in "1", "2":
        server.run(code, timeout_ms=20000)
    server.run("while True: pass", timeout_ms=200)
    server("POST", "/eval", b"{")
    assert server.raw(b"nonsense\r\n").startswith(b"HTTP/1.1 400 ")
    now = families(server)
    assert set(now) == set(before)

    def more(name, **labels):
        return value(now, name, **labels) - value(before, name, **labels)

    assert more("cellblock_answers_total", status="2xx") == 4
    assert more("cellblock_answers_total", status="4xx") == 2
    assert more("cellblock_limits_total", limit="cell.timeout") == 1
    assert value(now, "cellblock_clients") == 1
    assert value(now, "cellblock_running") == 0


def test_the_histogram_adds_up(server):
    for _ in range(5):
        server.run("1")
    found = families(server)["cellblock_request_seconds"].samples
    buckets = [(float(s.labels["le"]), s.value) for s in found
               if s.name.endswith("_bucket")]
    assert buckets == sorted(buckets)
    assert [n for _, n in buckets] == sorted(n for _, n in buckets)
    assert buckets[-1] == (float("inf"), 5)
    total, = (s.value for s in found if s.name.endswith("_sum"))
    assert 0 < total < 300


def test_jails_are_counted(serve):
    server = serve(spare=2)
    hosttree.until(lambda: value(families(server), "cellblock_jails",
                                 state="spare") == 6, "six are spare")
    assert server("GET", "/health").json == {"status": "ok"}


# ---- by path ----

def ended(server, method, path):
    """How requests to a path ended, and how many."""
    return {s.labels["outcome"]: s.value
            for s in families(server)["cellblock_requests"].samples
            if (s.labels["method"], s.labels["path"]) == (method, path)
            and s.value}


def test_requests_are_counted_by_path_and_outcome(serve):
    server = serve("-s", "serve.concurrent=1", "-s", "serve.queue=0", *LONG,
                   spare=0)
    server.run("1", timeout_ms=20000)
    server.run("while True: pass", timeout_ms=200)
    server.run(1)
    with server.connect() as s:
        s.sendall(evaluation("import time; time.sleep(60)"))
        server.await_running()
        assert server.run("1").status == 503
    server.await_running(0)
    server("GET", "/v1/files/nothing")
    assert server("GET", "/nowhere").status == 404
    assert server("PUT", "/eval").status == 405
    assert server.raw(b"nonsense\r\n")
    assert ended(server, "POST", "/v1/execute") == {
        "ok": 1, "limit": 1, "refused": 1, "busy": 1}
    assert ended(server, "POST", "/eval") == {"gone": 1}
    assert ended(server, "GET", "/v1/files/{file_id}") == {"refused": 1}
    assert ended(server, "other", "other") == {"refused": 3}


def test_a_request_whose_jail_fails_is_counted_as_failed(serve):
    server = serve(*LONG, spare=0)
    with server.connect() as s:
        # One that had not begun would be replaced by another.
        s.sendall(evaluation("import ctypes, time\n"
                             "ctypes.CDLL(None).prctl(15, b'runs')\n"
                             "time.sleep(60)", "Connection: close"))
        guest, = hosttree.until(lambda: server.tree.look() and [
            g for g in server.tree.guests()
            if hosttree.status_of(g).get("Name") == "runs"], "it runs")
        init = int(hosttree.stat_of(guest)[1])
        server.tree.kill(int(hosttree.stat_of(init)[1]))
        while s.recv(4096):
            pass
    assert ended(server, "POST", "/eval") == {"failed": 1}


def test_no_client_makes_a_label(server):
    """Each would take memory here and there for ever."""
    for i in range(20):
        for what in (f"/v1/files/{i}", f"/v1/sessions/{i}/files/{i}/x",
                     f"/{i}", f"/metrics/{i}", f'/v1/files/"}}{i}'):
            server.raw(request("GET", what, b"", "Connection: close"))
        server.raw(request(f"M{i}", "/eval", b"", "Connection: close"))
    samples = families(server)["cellblock_requests"].samples
    assert {s.labels["path"] for s in samples} == {
        "other", "/v1/files/{file_id}", "/v1/sessions/{id}/files/{path}"}
    assert {s.labels["method"] for s in samples} == {"other", "GET"}


def test_a_path_has_its_times_and_sums(server):
    code = {"code": "sum(range(3 * 10**6))", "timeout_ms": TIMEOUT_MS}
    answers = [server("POST", "/v1/execute", code) for _ in range(3)]
    found = families(server)
    here = {"method": "POST", "path": "/v1/execute"}

    def of(name, **more):
        return value(found, "cellblock_" + name, **here, **more)

    assert of("http_seconds_count") == 3
    assert of("http_seconds_bucket", le="+Inf") == 3
    assert of("http_seconds_sum") > 0
    assert of("received_bytes_total") == 3 * len(json.dumps(code))
    assert of("sent_bytes_total") == sum(len(r.body) for r in answers)
    cpu = sum(r.json["cpu_ms"] for r in answers) / 1000
    assert of("jail_cpu_seconds_total") == pytest.approx(cpu) and cpu > 0


# ---- the process ----

def test_the_process_has_the_usual_figures(serve, cb):
    before = time.time()
    server = serve()
    found = families(server)
    assert before - 1 < value(found, "process_start_time_seconds") < \
        time.time() + 1
    assert value(found, "process_cpu_seconds_total") > 0
    assert (2 << 20) < value(found, "process_resident_memory_bytes") <= \
        value(found, "process_virtual_memory_bytes")
    version = cb.run("--version").out.decode().split()[1]
    assert value(found, "cellblock_build_info", version=version) == 1
    open_ = value(found, "process_open_fds")
    assert 0 < open_ < value(found, "process_max_fds")
    # A server at rest: each client more is a descriptor more.
    server.await_rest()
    open_ = value(families(server), "process_open_fds")
    clients = [server.connect() for _ in range(10)]
    hosttree.until(lambda: value(families(server), "cellblock_clients") == 11,
                   "they are connected")
    assert value(families(server), "process_open_fds") == open_ + 10
    for c in clients:
        c.close()


def test_promtool_has_no_complaint(server):
    if not shutil.which("promtool"):
        pytest.skip("there is no promtool (package prometheus)")
    server.run("1")
    server("GET", "/nowhere")
    r = subprocess.run(["promtool", "check", "metrics"], check=False,
                       input=server("GET", "/metrics").body,
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert (r.returncode, r.stdout) == (0, b"")
