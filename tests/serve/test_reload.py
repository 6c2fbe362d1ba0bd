# SPDX-License-Identifier: MIT
"""cellblock --serve reads its configuration and its tokens again at SIGHUP, and
loses nothing."""
import os
import pty
import signal
import socket
import subprocess
import threading

import pytest

import hosttree
from client import JSON, SLOW, Tenant
from test_sessions import ENDLESS, SESSIONS, Session
from world import CELLBLOCK, PATIENCE

TWO = "ann: apple\nbob: banana\n"
METRICS = "metrics: mango\n"


def statuses(server, *words):
    return [Tenant(server, w)("GET", "/v1/files").status for w in words]


class Asked(threading.Thread):
    """A request that waits for its answer."""

    def __init__(self, ask, *args, **more):
        super().__init__()
        self.ask = lambda: ask(*args, **more)
        self.answer = None
        self.start()

    def run(self):
        self.answer = self.ask()

    def result(self):
        self.join()
        return self.answer


def long_cell(session):
    """One that runs until it is interrupted."""
    cell = Asked(session.cell, ENDLESS, timeout_ms=60000)
    hosttree.until(lambda: session("GET").json["state"] == "running", "it runs")
    return cell


# ---- tokens ----

def test_a_tenant_changes_its_token_and_loses_nothing(serve, tokens):
    server = serve("-s", "cell.timeout=60s",
                   *tokens.write(TWO + METRICS).args)
    ann = Tenant(server, "apple")
    session = Session(ann)
    session.show("x = 1")
    told = ann.upload(b"mine").json["file_id"]
    cell = long_cell(session)
    job = Asked(ann.run, f"import time\ntime.sleep({2 * PATIENCE})\nprint(7)",
                timeout_ms=60000)
    figures = Tenant(server, "mango").figures
    hosttree.until(lambda: figures()['jails{state="taken"}'] == 2, "both run")
    tokens.write(TWO + "ann: avocado\n")        # the new one, beside the old
    server.reload()
    assert statuses(server, "apple", "avocado", "banana") == [200] * 3
    tokens.write("ann: avocado\nbob: banana\ncid: cherry\n")
    server.reload()
    assert statuses(server, "apple", "avocado", "banana", "cherry") == [
        401, 200, 200, 200]
    assert job.result().json["stdout"] == "7\n"
    session.server = ann = Tenant(server, "avocado")
    assert session("POST", "/interrupt").status == 204
    assert cell.result().json["how"] == "interrupted", cell.answer
    assert session.show("x") == "1\n"
    assert ann("GET", f"/v1/files/{told}").body == b"mine"


def test_a_tenant_that_is_gone_leaves_nothing(serve, tokens):
    server = serve("-s", "cell.timeout=60s",
                   *tokens.write(TWO + METRICS).args)
    ann, bob = Tenant(server, "apple"), Tenant(server, "banana")
    gone, kept, idle = Session(ann), Session(bob), Session(ann)
    told = ann.upload(b"mine").json["file_id"]
    stays = bob.upload(b"bob's").json["file_id"]
    cell = long_cell(gone)
    job = Asked(ann.run, f"import time\ntime.sleep({2 * PATIENCE})\n"
                "open('f', 'w').write('7')", timeout_ms=60000)
    figures = Tenant(server, "mango").figures
    hosttree.until(lambda: figures()['jails{state="taken"}'] == 4,
                   "three sessions and the job")
    tokens.write("bob: banana\n" + METRICS)
    server.reload()
    assert statuses(server, "apple", "banana") == [401, 200]
    r = cell.result()
    assert r.status == 410 and "tenant is gone" in r.json["detail"], r
    # The job that ran is answered. Its file belongs to no tenant.
    made = job.result().json["files"][0]["file_id"]
    # The name comes again, and is another tenant.
    tokens.write(TWO + METRICS)
    server.reload()
    for session in gone, idle:
        assert session("GET").status == 404
    for secret in told, made:
        assert ann("GET", f"/v1/files/{secret}").status == 404
    assert ann("GET", "/v1/files").json == {"files": []}
    # the controls: what is bob's
    assert kept.show("1") == "1\n"
    assert bob("GET", f"/v1/files/{stays}").body == b"bob's"
    hosttree.until(lambda: figures()['jails{state="taken"}'] == 1,
                   "the jails of the sessions end")
    assert figures()["sessions"] == 1


def test_a_slot_of_a_tenant_that_is_gone_is_free(serve, tokens):
    server = serve("-s", "serve.sessions=1", "-s", "serve.files=1",
                   *tokens.write(TWO).args)
    ann, bob = Tenant(server, "apple"), Tenant(server, "banana")
    assert Session(ann) and ann.upload(b"x").status == 201
    assert bob("POST", SESSIONS, b"", JSON).status == 503
    assert bob.upload(b"x").status == 507
    tokens.write("bob: banana\n")
    server.reload()
    hosttree.until(lambda: bob.upload(b"x").status == 201, "there is room")
    assert Session(bob).show("1") == "1\n"


def test_one_word_becomes_names(serve, tokens):
    server = serve(*tokens.write("sesame\n").args)
    one = Tenant(server, "sesame")
    session = Session(one)
    told = one.upload(b"x").json["file_id"]
    tokens.write("ann: sesame\n")
    server.reload()
    assert one("GET", f"/v1/files/{told}").status == 404
    assert session("GET").status == 404
    assert one.upload(b"x").status == 201
    tokens.write("sesame\n")
    server.reload()
    assert one("GET", "/v1/files").json == {"files": []}
    assert one.upload(b"x").status == 201


MISTAKES = {
    "no name": b"ann: apple\nbanana\n",
    "NUL": b"ann: apple\nbob: \0\n",
    "three": b"ann: 1\nann: 2\nann: 3\n",
    "huge": b"# \n" * 30000,
    "empty": b"",
}


@pytest.mark.parametrize("what", MISTAKES)
def test_a_mistake_in_the_tokens_changes_nothing(serve, tokens, what):
    server = serve(*tokens.write(TWO).args)
    tokens.write(MISTAKES[what])
    said = server.reload()
    assert "nothing changes" in said and "serve.token_file" in said, said
    assert statuses(server, "apple", "banana", "1") == [200, 200, 401]
    tokens.write("ann: avocado\n")              # the control
    assert "nothing changes" not in server.reload()
    assert statuses(server, "apple", "avocado") == [401, 200]


def test_what_is_no_secret_file_changes_nothing(serve, tokens):
    server = serve(*tokens.write(TWO).args)

    def stays(said):
        assert said in server.reload()
        assert statuses(server, "apple", "avocado") == [200, 401]

    tokens.write("ann: avocado\n").path.chmod(0o644)
    stays("is not a secret")
    tokens.path.unlink()
    stays("No such file")
    os.mkfifo(tokens.path, 0o600)
    stays("not a regular file")
    tokens.write("ann: avocado\n")              # the control
    server.reload()
    assert statuses(server, "apple", "avocado") == [401, 200]


def test_whether_a_token_is_asked_for_is_decided_at_the_start(
        serve, tokens, cb):
    conf = cb.config("")
    server = serve("-f", str(conf))
    tokens.write(TWO)
    conf.write_text(f"[serve]\ntoken_file = {tokens.path}\n")
    assert "serve.token_file" in server.reload()
    assert server("GET", "/v1/files").status == 200
    asks = serve("-f", str(conf))
    conf.write_text("")
    assert "serve.token_file" in asks.reload()
    assert asks("GET", "/v1/files").status == 401
    assert statuses(asks, "apple") == [200]
    other = tokens.path.with_name("other")      # the control: another file
    other.touch(0o600)
    other.write_text("ann: avocado\n")
    conf.write_text(f"[serve]\ntoken_file = {other}\n")
    assert "token_file" not in asks.reload()
    assert statuses(asks, "apple", "avocado") == [401, 200]


# ---- the configuration ----

def test_limits_change_and_what_cannot_is_named(serve, cb):
    conf = cb.config("[serve]\nqueue = 10\n")
    server = serve("-f", str(conf))
    assert server.reload().count("\n") == 1     # nothing is to be said
    first = Session(server)
    conf.write_text("[serve]\nsessions_per_client = 1\nfiles = 9\nconcurrent = 9\n"
                    "queue = 11\n[cell]\ntimeout = 7s\n"
                    "[python]\nenv.A = b\n")
    said = server.reload()
    for name in ("serve.files", "serve.concurrent", "serve.queue",
                 "cell.timeout", "python.env"):
        assert name in said, said
    assert "per_client" not in said and f"{conf}:3" in said, said
    assert server("POST", SESSIONS, b"", JSON).status == 429
    assert first.show("1") == "1\n"
    conf.write_text("[serve]\nqueue = 10\n")
    assert server.reload().count("\n") == 1
    assert Session(server).show("1") == "1\n"


def test_a_mistake_in_the_configuration_changes_nothing(serve, cb, tokens):
    conf = cb.config("")
    server = serve("-f", str(conf), *tokens.write(TWO).args)
    tokens.write("ann: avocado\n")
    conf.write_text("[serve]\nper_client = 1\nqueue = many\n[nosuch]\n")
    said = server.reload()
    assert f"{conf}:3" in said and "nosuch" in said and \
        "nothing changes" in said, said
    ann = Tenant(server, "apple")
    assert Session(ann) and Session(ann)
    conf.unlink()
    assert "nothing changes" in server.reload()
    conf.write_text("")                         # the control
    server.reload()
    assert statuses(server, "apple", "avocado") == [401, 200]


def test_fewer_run_at_a_time_while_more_run(serve, cb):
    conf = cb.config("[serve]\nconcurrent = 4\n")
    server = serve("-f", str(conf))
    jobs = [Asked(server.run, f"import time\ntime.sleep({3 * PATIENCE})\n"
                  "print(7)", timeout_ms=60000) for _ in range(4)]
    server.await_running(4)
    conf.write_text("[serve]\nconcurrent = 1\nspare = 0\nsessions = 0\n"
                    "keep = 1s\nstorage = 0\n")
    assert server.reload().count("\n") == 1
    assert [j.result().json["stdout"] for j in jobs] == ["7\n"] * 4
    assert server.run("print(8)").json["stdout"] == "8\n"
    assert server("POST", SESSIONS, b"", JSON).status == 503
    assert server.upload(b"x").status == 507


# ---- signals, and processes that end ----

def test_many_signals_lose_no_request(serve, tokens):
    """While the tokens change, between lists that both have one of them."""
    server = serve(*tokens.write(TWO).args)
    bob = Tenant(server, "banana")
    session = Session(bob)
    session.show("n = 0")
    jobs = [Asked(bob.run, f"print({n})", timeout_ms=30000) for n in range(8)]
    for n in range(60):
        tokens.write(TWO if n % 2 else "bob: banana\n" + "# \n" * n)
        for _ in range(n % 5 + 1):
            server.process.send_signal(signal.SIGHUP)
        assert statuses(server, "banana") == [200]
        if n % 10 == 0:
            assert session.cell("n += 1").status == 200
    assert sorted(j.result().json["stdout"] for j in jobs) == [
        f"{n}\n" for n in range(8)]
    assert session.show("n") == "6\n"
    tokens.write("bob: banana\n")
    hosttree.until(lambda: "nothing changes" not in server.reload() and
                   statuses(server, "apple", "banana") == [401, 200],
                   "the last list counts")


def test_without_who_reads_files_it_serves_on(serve, tokens):
    server = serve(*tokens.write(TWO).args)
    reader, = hosttree.until(lambda: server.children("cellblock-conf"),
                             "the process that reads files")
    server.tree.kill(reader)
    tokens.write("ann: avocado\n")
    for _ in range(2):
        assert "is gone" in server.reload()
        assert statuses(server, "apple", "avocado") == [200, 401]
    assert Tenant(server, "apple").run("1").status == 200


def test_a_service_manager_is_told(serve, cb):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        s.bind(str(cb.base / "notify"))
        s.settimeout(SLOW)
        server = serve(env={"NOTIFY_SOCKET": str(cb.base / "notify")})
        assert s.recv(100) == b"READY=1"
        server.reload()
        said = s.recv(100).split(b"\n")
        assert said[0] == b"RELOADING=1"
        assert said[1].startswith(b"MONOTONIC_USEC=")
        assert s.recv(100) == b"READY=1"


def test_a_server_ends_with_its_terminal(cb):
    """There SIGHUP means that the terminal is gone; before, it does not."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [CELLBLOCK, "--serve", "127.0.0.1:0"], stdin=slave, stdout=slave,
        stderr=slave, env=cb.env, cwd=cb.work, start_new_session=True)
    os.close(slave)
    tree = cb.tree(process)
    said = b""
    while b"serving at" not in said:
        said += os.read(master, 1000)
    process.send_signal(signal.SIGHUP)
    while b"read again" not in said:
        said += os.read(master, 1000)
    assert process.poll() is None
    os.close(master)
    process.send_signal(signal.SIGHUP)          # as the shell does
    assert process.wait(SLOW) == 0
    tree.wait_gone()
