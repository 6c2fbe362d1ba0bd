# SPDX-License-Identifier: MIT
"""etc/haproxy/haproxy.cfg: the real haproxy before three servers, each in a
network namespace of its own. Clients speak TLS to haproxy in a fourth."""
import contextlib
import ctypes
import http.client
import json
import re
import shutil
import signal
import ssl
import subprocess
import threading
import time

import pytest

import hosttree
from world import CELLBLOCK, IS_ROOT, TESTS, WHOLE

CONFIG = TESTS.parent / "etc/haproxy/haproxy.cfg"
HOSTS = "lab1", "lab2", "lab3"
CONCURRENT = 8  # of a host, in the configuration as in serve.concurrent
CLONE_NEWNET = 0x40000000
# More than one host takes, so that each host has its share at any time. How
# many clients there are and how often each asks is what a longer test has more
# of.
CLIENTS = 2 * CONCURRENT if WHOLE else CONCURRENT + 4
OFTEN = 4 if WHOLE else 1

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(not IS_ROOT, reason="network namespaces need root"),
    *(pytest.mark.skipif(not shutil.which(tool, path="/usr/sbin:/usr/bin:/sbin"),
                         reason=f"{tool} is not installed")
      for tool in ("haproxy", "ip", "openssl")),
]


def wait(test, what):
    hosttree.until(test, lambda: what, 30)


def sh(*words):
    subprocess.run(words, check=True, capture_output=True, timeout=30)


class Net:
    """A network namespace, kept by a process."""

    def __init__(self):
        self.keeper = subprocess.Popen(
            ["unshare", "--net", "sh", "-c", "echo; exec cat"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.keeper.stdout.readline()
        self.pid = str(self.keeper.pid)
        self("ip", "link", "set", "lo", "up")

    def wrap(self, *words):
        return ["nsenter", "--net", "-t", self.pid, "--", *words]

    def __call__(self, *words):
        sh(*self.wrap(*words))

    def enter(self):
        """Move this thread, and the sockets that it makes."""
        with open(f"/proc/{self.pid}/ns/net") as f:
            assert ctypes.CDLL(None, use_errno=True).setns(
                f.fileno(), CLONE_NEWNET) == 0, ctypes.get_errno()

    def end(self):
        self.keeper.stdin.close()
        self.keeper.stdout.close()
        self.keeper.wait(30)


class Lab:
    """Three servers, and haproxy."""

    def __init__(self, cb, base):
        self.cb, self.base = cb, base
        self.hub = Net()
        self.nets, self.servers, self.trees = {}, {}, {}
        self.proxy = None

    def start(self):
        self.hub("ip", "link", "add", "br0", "type", "bridge")
        self.hub("ip", "addr", "add", "10.8.0.254/24", "dev", "br0")
        self.hub("ip", "link", "set", "br0", "up")
        for i, name in enumerate(HOSTS, 1):
            net = self.nets[name] = Net()
            self.hub("ip", "link", "add", name, "type", "veth", "peer",
                     "name", "eth0", "netns", net.pid)
            self.hub("ip", "link", "set", name, "master", "br0", "up")
            net("ip", "addr", "add", f"10.8.0.{i}/24", "dev", "eth0")
            net("ip", "link", "set", "eth0", "up")
            self.serve(name)
        self.start_proxy()

    def serve(self, name):
        host = HOSTS.index(name) + 1
        p = subprocess.Popen(self.nets[name].wrap(
            CELLBLOCK, "--set", f"serve.name={name}",
            "--set", "serve.spare=0", "--set", "cell.timeout=60s",
            "--set", f"serve.concurrent={CONCURRENT}",
            "--serve", f"10.8.0.{host}:8060"),
            env=self.cb.env, cwd=self.cb.work, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.servers[name] = p
        assert b"serving at" in p.stderr.readline()
        self.trees[name] = self.cb.tree(p)

    def kill(self, name):
        p = self.servers.pop(name)
        p.send_signal(signal.SIGKILL)
        p.wait(30)
        p.stderr.close()
        self.trees.pop(name).wait_gone()

    def start_proxy(self):
        pem = self.base / "lab.pem"
        sh("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
           "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
           "/CN=lab", "-keyout", f"{pem}.key", "-out", pem)
        pem.write_text(pem.read_text() + open(f"{pem}.key").read())
        text = CONFIG.read_text()
        for old, new in (("/etc/haproxy/cellblock.pem", str(pem)),
                         ("log /dev/log local0", "log stdout format raw local0"),
                         ("bind :443", "bind 127.0.0.1:8443")):
            assert text.count(old) == 1
            text = text.replace(old, new)
        config = self.base / "haproxy.cfg"
        config.write_text(text)
        self.log = open(self.base / "haproxy.log", "w+")
        self.proxy = subprocess.Popen(
            self.hub.wrap("haproxy", "-db", "-f", str(config)),
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        wait(lambda: self.ask("GET", "/health")[0] == 200, "haproxy")

    # ---- clients: call these in a thread of the hub ----

    def connect(self):
        trust = ssl.create_default_context(cafile=self.base / "lab.pem")
        trust.check_hostname = False
        return http.client.HTTPSConnection("127.0.0.1", 8443, timeout=60,
                                           context=trust)

    def ask(self, method, path, body=None, headers=()):
        headers = dict(headers)
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            headers["Content-Type"] = "application/json"
        answer = []

        def run():
            self.hub.enter()
            with contextlib.suppress(ConnectionRefusedError), \
                    contextlib.closing(self.connect()) as c:
                c.request(method, path, body, headers)
                r = c.getresponse()
                answer.append((r.status, r.read()))

        t = threading.Thread(target=run)
        t.start()
        t.join()
        return answer[0] if answer else (0, b"")

    def figure(self, name, what):
        """A sum of a host's figures, asked of the host itself."""
        host = f"10.8.0.{HOSTS.index(name) + 1}"
        text = subprocess.run(
            self.hub.wrap("curl", "-s", "--noproxy", "*", "-m", "20",
                          f"http://{host}:8060/metrics"),
            capture_output=True, text=True, timeout=30).stdout
        return sum(int(n) for n in re.findall(
            rf"^cellblock_{what} (\d+)", text, re.M))

    def said(self):
        return (self.base / "haproxy.log").read_text()

    def end(self):
        if self.proxy:
            self.proxy.send_signal(signal.SIGTERM)
            self.proxy.wait(30)
            self.log.close()
        for p in self.servers.values():
            p.send_signal(signal.SIGTERM)
        for name, p in self.servers.items():
            p.wait(60)
            p.stderr.close()
            self.trees[name].wait_gone()
        for net in (*self.nets.values(), self.hub):
            net.end()


class Load(threading.Thread):
    """A client that asks `n` times, on connections of its own."""

    def __init__(self, lab, who, n, code):
        super().__init__()
        self.lab, self.who, self.n, self.code = lab, who, n, code
        self.answers = []

    def run(self):
        self.lab.hub.enter()
        c = self.lab.connect()
        for i in range(self.n):
            mark = f"{self.who}-{i}"
            body = json.dumps({"input": f"{self.code}; print({mark!r})"})
            try:
                c.request("POST", "/eval", body,
                          {"Content-Type": "application/json"})
                r = c.getresponse()
                status, data = r.status, r.read()
            except (OSError, http.client.HTTPException) as e:
                c.close()
                status, data = 0, repr(e).encode()
            right = status == 200 and json.loads(data)["stdout"] == mark + "\n"
            self.answers.append((status, right, data))
        c.close()


def load(lab, clients, each, code="import time; time.sleep(.2)", event=None):
    """What was answered, with `event` in the middle."""
    crowd = [Load(lab, f"c{i}", each, code) for i in range(clients)]
    for c in crowd:
        c.start()
    if event:
        wait(lambda: sum(len(c.answers) for c in crowd) >= clients, "load")
        event()
    for c in crowd:
        c.join()
    return [a for c in crowd for a in c.answers]


@pytest.fixture(name="lab")
def _lab(cb, tmp_path):
    lab = Lab(cb, tmp_path)
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
    wait(lambda: f"/{name} is UP" in lab.said()[len(said):], f"{name} to be up")

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
    p = lab.servers.pop("lab3")
    assert p.wait(60) == 0
    p.stderr.close()
    lab.trees.pop("lab3").wait_gone()


@pytest.mark.sampled
@pytest.mark.limit(180)
def test_a_host_whose_network_is_gone_is_given_up(lab):
    def cut():
        lab.hub("ip", "link", "set", "lab1", "down")

    began = time.monotonic()
    answers = load(lab, CLIENTS, 2 * OFTEN, event=cut)
    lost = [a for a in answers if not a[1]]
    assert len(lost) <= CONCURRENT, lost
    assert time.monotonic() - began < 60
    serves_again(lab, "lab1",
                 lambda: lab.hub("ip", "link", "set", "lab1", "up"))


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
            "files": [{"path": "a", "file_id": made}]})
        assert status == 200 and json.loads(data)["stdout"] == "hello\n", data


def test_figures_are_not_for_clients(lab):
    assert lab.ask("GET", "/health") == (200, b'{"status": "ok"}')
    assert lab.ask("GET", "/metrics")[0] == 404
