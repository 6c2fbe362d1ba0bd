# SPDX-License-Identifier: MIT
"""cellblock --serve: GET /metrics, read by Prometheus's own parser."""
import pytest

import hosttree

parser = pytest.importorskip(
    "prometheus_client.parser", reason="there is no python3-prometheus-client")


def families(server):
    r = server("GET", "/metrics")
    assert r.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    return {f.name: f for f in
            parser.text_string_to_metric_families(r.body.decode())}


def value(found, name, **labels):
    for s in found[name.removesuffix("_total")].samples:
        if s.name == name and s.labels == labels:
            return s.value
    raise AssertionError((name, labels, found))


def test_figures_are_what_happened(server):
    before = families(server)
    assert all(f.name.startswith("cellblock_") and f.documentation.endswith(".")
               and f.type in ("counter", "gauge", "histogram")
               for f in before.values()), before
    for code in "1", "2", "while True: pass":
        server.run(code, timeout_ms=200)
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
