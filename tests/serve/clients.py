# SPDX-License-Identifier: MIT
"""Clients that people have, asked in one way: fetch(), requests, httpx, curl.

Each has `__call__()`, which returns an Answer, or None where the client gave
up, and `stream()`, which yields what comes when it comes."""
import base64
import json
import pathlib
import shutil
import subprocess
import tempfile

import pytest

import npm
from client import SLOW, Answer

HERE = pathlib.Path(__file__).resolve().parent


class Library:
    """requests, or httpx."""

    def __init__(self, url, name):
        self.url, self.name = url, name
        self.module = pytest.importorskip(name)
        # Not through a proxy that the environment names.
        if name == "httpx":
            self.session = self.module.Client(trust_env=False)
        else:
            self.session = self.module.Session()
            self.session.trust_env = False

    def __call__(self, method, path, body=None, headers=None, pieces=None,
                 form=None, give_up=SLOW):
        data = iter(pieces) if pieces else body
        more = {"files": {"file": form}} if form else \
            {"content" if self.name == "httpx" else "data": data}
        try:
            r = self.session.request(method, self.url + path, headers=headers,
                                     timeout=give_up, **more)
        except self.module.ReadTimeout:
            return None
        return Answer(r.status_code, r.headers, r.content)

    def stream(self, path, body, headers):
        if self.name == "httpx":
            with self.session.stream("POST", self.url + path, content=body,
                                     headers=headers, timeout=SLOW) as r:
                yield from r.iter_bytes()
        else:
            with self.session.post(self.url + path, body, headers=headers,
                                   timeout=SLOW, stream=True) as r:
                yield from r.iter_content(None)

    def close(self):
        self.session.close()


class Fetch:
    def __init__(self, url):
        self.url = url
        npm.need_node()
        if subprocess.run(["node", "-e", "fetch; FormData"], check=False,
                          stderr=subprocess.DEVNULL).returncode:
            pytest.skip("this Node has no fetch")
        self.nodes = []

    def start(self):
        self.nodes.append(subprocess.Popen(
            ["node", HERE / "fetch.cjs"], text=True, bufsize=1,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE))
        return self.nodes[-1]

    def send(self, node, method, path, **more):
        node.stdin.write(json.dumps({
            "method": method, "url": self.url + path, **{
                k: v for k, v in more.items() if v is not None}}) + "\n")

    def __call__(self, method, path, body=None, headers=None, pieces=None,
                 form=None, give_up=None):
        node = self.nodes[0] if self.nodes else self.start()
        self.send(node, method, path, headers=headers, give_up=give_up,
                  body=encoded(body), pieces=pieces and [*map(encoded, pieces)],
                  name=form and form[0], form=form and encoded(form[1]))
        r = json.loads(node.stdout.readline())
        if "error" in r:
            assert r["error"] == "TimeoutError", r
            return None
        return Answer(r["status"], r["headers"], base64.b64decode(r["body"]))

    def stream(self, path, body, headers):
        node = self.start()
        self.send(node, "POST", path, headers=headers, body=encoded(body),
                  stream=True)
        while (r := json.loads(node.stdout.readline())):
            yield base64.b64decode(r["piece"])

    def close(self):
        for node in self.nodes:
            node.stdin.close()
            assert node.wait(SLOW) == 0
            node.stdout.close()


def encoded(data):
    return None if data is None else base64.b64encode(data).decode()


class Curl:
    def __init__(self, url):
        self.url = url
        if not shutil.which("curl"):
            pytest.skip("curl is not installed")

    def words(self, method, path, headers):
        return ["curl", "-sS", "--noproxy", "*",
                *(["-I"] if method == "HEAD" else ["-X", method]),
                *(w for k, v in (headers or {}).items()
                  for w in ("-H", f"{k}: {v}")), self.url + path]

    def __call__(self, method, path, body=None, headers=None, pieces=None,
                 form=None, give_up=SLOW):
        words = [*self.words(method, path, headers), "-m", str(give_up)]
        if method != "HEAD":
            words.append("-i")
        with tempfile.NamedTemporaryFile() as f:
            if form:
                f.write(form[1])
                f.flush()
                words += ["-F", f"file=@{f.name};filename={form[0]}"]
            elif pieces:
                words += ["-T", "-"]
            elif body is not None:
                words += ["--data-binary", "@-"]
            r = subprocess.run(words, input=b"".join(pieces or [body or b""]),
                               capture_output=True, check=False)
        if r.returncode == 28:
            return None
        assert r.returncode == 0, r
        head, _, text = r.stdout.partition(b"\r\n\r\n")
        while head.startswith(b"HTTP/1.1 100"):
            head, _, text = text.partition(b"\r\n\r\n")
        first, *lines = head.decode().strip().split("\r\n")
        return Answer(int(first.split()[1]),
                      dict(line.split(": ", 1) for line in lines), text)

    def stream(self, path, body, headers):
        with subprocess.Popen(
                [*self.words("POST", path, headers), "-N", "--data-binary",
                 body], stdout=subprocess.PIPE) as p:
            while (piece := p.stdout.read1()):
                yield piece

    def close(self):
        pass


CLIENTS = {"fetch": Fetch, "curl": Curl,
           "requests": lambda url: Library(url, "requests"),
           "httpx": lambda url: Library(url, "httpx")}
