# SPDX-License-Identifier: MIT
"""A proxy before several servers, each in a network namespace of its own, and
clients of it, which speak TLS."""
import contextlib
import http.client
import json
import re
import shutil
import signal
import socket
import ssl
import subprocess
import threading

import pytest

from netns import Net, PATH, change, sh, wait
from world import CELLBLOCK, IS_ROOT, PATIENCE, TESTS

ETC = TESTS.parent / "etc"
HOSTS = "lab1", "lab2", "lab3"
SLOW = 60 * PATIENCE
CONCURRENT = 8  # of a host, in the configuration as in serve.concurrent


def needs(*tools):
    """The marks of a module that needs these programs, and root."""
    return [
        pytest.mark.root,
        pytest.mark.skipif(not IS_ROOT, reason="network namespaces need root"),
        *(pytest.mark.skipif(not shutil.which(tool, path=PATH),
                             reason=f"{tool} is not installed")
          for tool in (*tools, "ip", "openssl")),
    ]


# A host that is slow to answer is none that is gone: that refuses connections, or
# answers to none. And a host of the tests has as many requests as a real one.
SLOWLY = {"timeout connect 2s": "timeout connect 2s\n\ttimeout check 20s",
          "timeout queue 30s": f"timeout queue {30 * PATIENCE:.0f}s"}


class Haproxy:
    """etc/haproxy/haproxy.cfg, for the first hosts of its three."""

    def __init__(self, hosts, more=()):
        self.hosts, self.more = hosts, dict(more)

    def write(self, base, pem):
        text = change((ETC / "haproxy/haproxy.cfg").read_text(), {
            "/etc/haproxy/cellblock.pem": str(pem),
            "log /dev/log local0": "log stdout format raw local0",
            "bind :443": "bind 127.0.0.1:8443", **SLOWLY, **self.more})
        for name in HOSTS[self.hosts:]:
            text, n = re.subn(rf"^\tserver {name} .*\n", "", text, flags=re.M)
            assert n == 2
        config = base / "haproxy.cfg"
        config.write_text(text)
        return ["haproxy", "-db", "-f", str(config)]


class Lab:
    """Servers, and a proxy before them."""

    def __init__(self, cb, base, proxy, hosts, *args):
        self.cb, self.base, self.args = cb, base, args
        self.names = HOSTS[:hosts]
        self.hub = Net()
        self.nets, self.servers, self.trees = {}, {}, {}
        self.kind, self.proxy = proxy, None

    def start(self):
        self.hub("ip", "link", "add", "br0", "type", "bridge")
        self.hub("ip", "addr", "add", "10.8.0.254/24", "dev", "br0")
        self.hub("ip", "link", "set", "br0", "up")
        for i, name in enumerate(self.names, 1):
            net = self.nets[name] = Net()
            self.hub("ip", "link", "add", name, "type", "veth", "peer",
                     "name", "eth0", "netns", net.pid)
            self.hub("ip", "link", "set", name, "master", "br0", "up")
            net("ip", "addr", "add", f"10.8.0.{i}/24", "dev", "eth0")
            net("ip", "link", "set", "eth0", "up")
            self.serve(name)
        self.start_proxy()

    def serve(self, name):
        p = subprocess.Popen(self.nets[name].wrap(
            CELLBLOCK, "--set", f"serve.name={name}",
            "--set", "serve.spare=0", "--set", "cell.timeout=60s",
            "--set", f"serve.concurrent={CONCURRENT}", *self.args,
            "--serve", f"{address(name)}:8060"),
            env=self.cb.env, cwd=self.cb.work, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.servers[name] = p
        assert b"serving at" in p.stderr.readline()
        self.trees[name] = self.cb.tree(p)

    def kill(self, name):
        p = self.servers.pop(name)
        p.send_signal(signal.SIGKILL)
        p.wait(SLOW)
        p.stderr.close()
        self.trees.pop(name).wait_gone()

    def stop(self, name):
        """Have a server end, and wait until it has."""
        self.servers[name].send_signal(signal.SIGTERM)
        self.await_end(name)

    def await_end(self, name):
        """Wait until a server has ended that was told to: a second signal would
        end what it still does."""
        p = self.servers.pop(name)
        assert p.wait(SLOW) == 0, p.stderr.read()
        p.stderr.close()
        self.trees.pop(name).wait_gone()

    def start_proxy(self):
        pem = self.base / "lab.pem"
        sh("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
           "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
           "/CN=lab", "-keyout", f"{pem}.key", "-out", pem)
        pem.write_text(pem.read_text() + open(f"{pem}.key").read())
        words = self.kind.write(self.base, pem)
        self.log = open(self.base / "proxy.log", "w+")
        self.proxy = subprocess.Popen(
            self.hub.wrap(*words), stdin=subprocess.DEVNULL, stdout=self.log,
            stderr=self.log)
        wait(lambda: self.ask("GET", "/health")[0] == 200, "the proxy")

    # ---- clients: call these in a thread of the hub ----

    def connect(self):
        trust = ssl.create_default_context(cafile=self.base / "lab.pem")
        trust.check_hostname = False
        return http.client.HTTPSConnection("127.0.0.1", 8443, timeout=SLOW,
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
        text = subprocess.run(
            self.hub.wrap("curl", "-s", "--noproxy", "*", "-m", str(SLOW),
                          f"http://{address(name)}:8060/metrics"),
            capture_output=True, text=True, timeout=SLOW).stdout
        return sum(int(n) for n in re.findall(
            rf"^cellblock_{what} (\d+)", text, re.M))

    def said(self):
        return (self.base / "proxy.log").read_text()

    def await_up(self, name, said):
        wait(lambda: f"/{name} is UP" in self.said()[len(said):],
             f"{name} to be up")

    def end(self):
        if self.proxy:
            self.proxy.send_signal(signal.SIGTERM)
            self.proxy.wait(SLOW)
            self.log.close()
        for p in self.servers.values():
            p.send_signal(signal.SIGTERM)
            # The second ends a server that waits for serve.drain.
            p.send_signal(signal.SIGTERM)
        for name, p in self.servers.items():
            p.wait(SLOW)
            p.stderr.close()
            self.trees[name].wait_gone()
        for net in (*self.nets.values(), self.hub):
            net.end()


def address(name):
    return f"10.8.0.{HOSTS.index(name) + 1}"


class Load(threading.Thread):
    """A client that asks `n` times, or until `over` is set, on connections of
    its own, the proxy or a host itself. It asks again at once, or backs off
    after a 503 as it is told to."""

    def __init__(self, lab, who, code, n=None, over=None, backs_off=False,
                 host=None):
        super().__init__()
        self.lab, self.who, self.code, self.n = lab, who, code, n
        self.host = host
        self.over = over or threading.Event()
        self.backs_off = backs_off
        self.answers = []

    def run(self):
        self.lab.hub.enter()
        c = http.client.HTTPConnection(
            address(self.host), 8060, timeout=SLOW) \
            if self.host else self.lab.connect()
        i = 0
        while (self.n is None or i < self.n) and not self.over.is_set():
            self.ask(c, f"{self.who}-{i}")
            i += 1
        c.close()

    def ask(self, c, mark):
        body = json.dumps(
            {"input": f"{self.code}; print({mark!r})"})
        wanted = 0
        try:
            c.request("POST", "/eval", body,
                      {"Content-Type": "application/json"})
            r = c.getresponse()
            status, data = r.status, r.read()
            wanted = float(r.headers["Retry-After"] or 1)
        except (OSError, http.client.HTTPException) as e:
            c.close()
            status, data = 0, repr(e).encode()
        right = status == 200 and json.loads(data)["stdout"] == mark + "\n"
        self.answers.append((status, right, data))
        if status == 503 and self.backs_off:
            self.over.wait(wanted)


class Rate(threading.Thread):
    """Clients of one request each, so many a second, until `over` is set."""

    def __init__(self, lab, who, code, a_second, over):
        super().__init__()
        self.crowd, self.over, self.a_second = [], over, a_second
        self.make = lambda i: Load(lab, f"{who}{i}", code, 1)

    def run(self):
        while not self.over.wait(1 / self.a_second):
            self.crowd.append(self.make(len(self.crowd)))
            self.crowd[-1].start()
        for c in self.crowd:
            c.join()

    @property
    def answers(self):
        return [a for c in list(self.crowd) for a in c.answers]


def answers_of(crowd):
    return [a for c in crowd for a in c.answers]


def load(lab, clients, each, code="import time; time.sleep(.2)", event=None):
    """The answers, with `event` in the middle."""
    crowd = [Load(lab, f"c{i}", code, each) for i in range(clients)]
    for c in crowd:
        c.start()
    if event:
        wait(lambda: len(answers_of(crowd)) >= clients, "load")
        event()
    for c in crowd:
        c.join()
    return answers_of(crowd)


def load_during(crowd, over, event):
    """The answers while `event` happened, and some time around it."""
    def more(n):
        before = len(answers_of(crowd))
        wait(lambda: len(answers_of(crowd)) >= before + n, "load")

    for c in crowd:
        c.start()
    try:
        more(4 * CONCURRENT)
        event()
        more(4 * CONCURRENT)
    finally:
        over.set()
        for c in crowd:
            c.join()
    return answers_of(crowd)


class Fake(threading.Thread):
    """A host that takes requests, and ends the connection of each with these
    bytes, or answers them with it. It is well, as far as /health says."""

    def __init__(self, lab, name, answer):
        super().__init__()
        self.lab, self.name_of_host, self.answer = lab, name, answer
        self.bodies, self.over = [], threading.Event()
        self.ready = threading.Event()

    def run(self):
        self.lab.nets[self.name_of_host].enter()
        with socket.create_server((address(self.name_of_host), 8060)) as s:
            s.settimeout(.1)
            self.ready.set()
            while not self.over.is_set():
                # (haproxy may have given up a check that took long)
                with contextlib.suppress(TimeoutError, ConnectionError):
                    self.serve(s.accept()[0])

    def serve(self, c):
        with c, c.makefile("rb") as f:
            c.settimeout(SLOW)
            line, n = f.readline(), 0
            while (field := f.readline().strip()):
                if field.lower().startswith(b"content-length:"):
                    n = int(field.partition(b":")[2])
            if b" /health " in line:
                c.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n"
                          b"Connection: close\r\n\r\n")
            elif line:
                self.bodies.append(f.read(n))
                c.sendall(self.answer)

    def __enter__(self):
        self.start()
        self.ready.wait(SLOW)
        return self

    def __exit__(self, *_):
        self.over.set()
        self.join()
