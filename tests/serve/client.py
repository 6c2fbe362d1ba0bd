# SPDX-License-Identifier: MIT
"""cellblock --serve, and clients of it."""
import contextlib
import json
import re
import shutil
import signal
import socket
import subprocess
import threading
import urllib.error
import urllib.request

import pytest

import hosttree
from world import PATIENCE

JSON = {"Content-Type": "application/json"}


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return f"{self.status} {self.body[:2000]!r}"


# Jails that lie ready in a server of the tests: one of each kind, because each
# costs CPU time. None: as many as a server has that is told nothing.
SPARE, SPARES = 1, 3
# How long a cell has between an interrupt and its end: on a busy host a second
# is short for Python to raise KeyboardInterrupt. Where the kill is what is
# tested, the test says how soon.
GRACE = ("-s", "cell.grace=10s")
# How long a client waits for what comes; and how long the code of a test may
# take, instead of the two seconds of /v1/execute.
SLOW = 50 * PATIENCE
TIMEOUT_MS = 20000
# For a server whose cells are to run until they are ended, or may be slow.
LONG = ("-s", "cell.timeout=10m")


class Server:
    """One that runs, and a client of urllib."""

    def __init__(self, cb, *args, where="127.0.0.1:0", env=None, spare=SPARE,
                 errors=None, **more):
        """Its standard error is a pipe, or appended to the file `errors`."""
        ahead = [] if spare is None else ["-s", f"serve.spare={spare}"]
        with (open(errors, "ab") if errors else
              contextlib.nullcontext(subprocess.PIPE)) as stderr:
            self.process = cb.popen(*ahead, *GRACE, *args, "--serve", where,
                                    stdin=subprocess.DEVNULL,
                                    stdout=subprocess.DEVNULL,
                                    stderr=stderr, env=env, **more)
        if errors:
            self.said = hosttree.until(
                lambda: errors.read_text().partition("\n")[0], "it serves")
        else:
            self.said = ""
            while "serving at " not in self.said and (
                    line := self.process.stderr.readline()):
                self.said += line.decode()
        found = re.search(r"serving at (?:\S+:(\d+)|unix:(\S+))",
                          self.said)
        assert found, (self.said, self.process.stderr.read())
        self.port = int(found[1] or 0)
        self.path = found[2]
        self.url = f"http://127.0.0.1:{self.port}"
        self.tree = cb.tree(self.process)

    def __call__(self, method, path, body=None, headers=None, timeout=SLOW):
        if body is not None and not isinstance(body, bytes):
            body, headers = json.dumps(body).encode(), headers or JSON
        request = urllib.request.Request(self.url + path, body, headers or {},
                                         method=method)
        try:
            with urllib.request.urlopen(request, timeout=timeout) as r:
                return Answer(r.status, r.headers, r.read())
        except urllib.error.HTTPError as e:
            with e:
                return Answer(e.code, e.headers, e.read())
        except urllib.error.URLError as e:
            assert self.process.poll() is None, (
                f"{e}: the server has ended with {self.process.returncode}: "
                f"{self.process.stderr and self.process.stderr.read()}")
            raise

    def run(self, code, **more):
        return self("POST", "/v1/execute", {
            "code": code, "timeout_ms": TIMEOUT_MS, **more})

    def children(self, name):
        """Processes of this name that the server itself has started."""
        stats = [(p, hosttree.stat_of(p))       # None: it has ended meanwhile
                 for p in hosttree.descendants(self.process.pid)]
        return [p for p, stat in stats
                if stat and int(stat[1]) == self.process.pid
                and hosttree.status_of(p).get("Name") == name]

    def curl(self, method, path, body=None, *more):
        """The same, by curl."""
        if not shutil.which("curl"):
            pytest.skip("curl is not installed")
        what = ["--data-binary", json.dumps(body), "-H",
                "Content-Type: application/json"] if body is not None else []
        head, _, text = subprocess.check_output(
            ["curl", "-sSi", "-m", str(SLOW), "-X", method, *what, *more,
             self.url + path]).partition(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        return Answer(int(first.split()[1]),
                      dict(line.split(": ", 1) for line in lines), text)

    def connect(self):
        if self.path:
            s = socket.socket(socket.AF_UNIX)
            s.settimeout(SLOW)
            s.connect(self.path)
            return s
        return socket.create_connection(("127.0.0.1", self.port), SLOW)

    def raw(self, data):
        """All that is answered to these bytes until the server closes."""
        with self.connect() as s:
            s.sendall(data)
            return read_all(s)

    def upload(self, data, name="f.txt", field="file"):
        return self("POST", "/v1/files", form_of(data, name, field),
                    {"Content-Type": "multipart/form-data; boundary=XX"})

    def figures(self):
        text = self("GET", "/metrics").body.decode()
        return {k: float(v) for k, v in re.findall(
            r"^cellblock_(\S+) ([\d.e+]+)$", text, re.M)}

    def await_running(self, n=1):
        hosttree.until(lambda: self.figures()["running"] == n, "they run")
        self.tree.look()

    def await_rest(self, spares=SPARES):
        def rests():
            now = self.figures()
            return (now['jails{state="spare"}'], now['jails{state="ending"}'],
                    now['jails{state="building"}'],
                    now['jails{state="taken"}'], now["clients"]) == (
                        spares, 0, 0, 0, 1)
        hosttree.until(rests, "it is at rest", 20)

    def run_in_jail_that_dies(self):
        """Run a program, and kill the warden of its jail. Returns the answer."""
        got = []
        # (by its name: the next jail may be there already)
        t = threading.Thread(target=lambda: got.append(self.run(
            "import ctypes, time; ctypes.CDLL(None).prctl(15, b'runs');"
            "time.sleep(50)", timeout_ms=60000)))
        t.start()
        guest, = hosttree.until(lambda: self.tree.look() and [
            g for g in self.tree.guests()
            if hosttree.status_of(g).get("Name") == "runs"], "it runs")
        init = int(hosttree.stat_of(guest)[1])
        self.tree.kill(int(hosttree.stat_of(init)[1]))
        t.join()
        assert got[0].status in (500, 503), got
        return got[0]

    def reload(self):
        """Have it read its files again. Returns what it says then."""
        self.process.send_signal(signal.SIGHUP)
        lines = []
        while not lines or "read again" not in lines[-1]:
            line = self.process.stderr.readline().decode()
            assert line, lines
            if "message" in (said := json.loads(line)):
                lines.append(said["message"] + "\n")
        return "".join(lines)

    def end(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(SLOW)
        self.tree.wait_gone()
        return code


class Tenant:
    """A client that has a token."""

    def __init__(self, server, token):
        self.server, self.token = server, token

    def __call__(self, method, path, body=None, headers=None):
        if body is not None and not isinstance(body, bytes):
            body, headers = json.dumps(body).encode(), headers or JSON
        return self.server(method, path, body, {
            **(headers or {}), "Authorization": f"Bearer {self.token}"})

    run, upload, figures = Server.run, Server.upload, Server.figures


def form_of(data, name="f.txt", field="file"):
    return (f'--XX\r\nContent-Disposition: form-data; name="{field}"; '
            f'filename="{name}"\r\nContent-Type: text/plain\r\n\r\n'
            ).encode() + data + b"\r\n--XX--\r\n"


def read_all(s):
    data = b""
    with contextlib.suppress(ConnectionResetError):
        while more := s.recv(65536):
            data += more
    return data


def request(method, path, body=b"", *headers):
    head = [f"{method} {path} HTTP/1.1", "Host: localhost", *headers]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


def evaluation(code, *headers):
    body = json.dumps({"input": code}).encode()
    return request("POST", "/eval", body, "Content-Type: application/json",
                   f"Content-Length: {len(body)}", *headers)


@contextlib.contextmanager
def small_disk(path, size):
    path.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", path],
                   check=True)
    try:
        yield path
    finally:
        # A server of a test that failed may still be there.
        subprocess.run(["umount", "-l", path], check=True)
