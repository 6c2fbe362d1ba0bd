# SPDX-License-Identifier: MIT
"""The proxies of docs/PROXY.md, each with its own file in etc/, before one
server: TLS, streams, uploads, and what is sent once."""
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

import freeport
import hosttree
from client import LONG, SLOW, form_of, request
from proxied import ETC, PATH, change

NAME = "cellblock.example.org"


def nginx(base, port, path):
    snippet = change((ETC / "nginx/cellblock.conf").read_text(), {
        "/run/cellblock-serve.sock": path,
        "listen 443 ssl": f"listen 127.0.0.1:{port} ssl",
        "/etc/nginx/cellblock.pem": f"{base}/pem",
        "/etc/nginx/cellblock.key": f"{base}/key",
        "limit_conn cellblock 16": "limit_conn cellblock 2"})
    places = "".join(f"{what}_temp_path {base}/{what};" for what in (
        "client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    (base / "snippet").write_text(snippet)
    (base / "conf").write_text(
        f"daemon off; pid {base}/pid; error_log stderr; events {{}}\n"
        f"http {{ access_log off; {places} include {base}/snippet; }}\n")
    return ["nginx", "-e", "stderr", "-c", f"{base}/conf"], {}


def caddy(base, port, path):
    text = change((ETC / "caddy/Caddyfile").read_text(), {
        "unix//run/cellblock-serve.sock": f"unix/{path}",
        f"{NAME} {{": f"https://{NAME}:{port} {{",
        "/etc/caddy/cellblock.pem": f"{base}/pem",
        "/etc/caddy/cellblock.key": f"{base}/key"})
    (base / "Caddyfile").write_text(
        "{\n\tadmin off\n\tauto_https disable_redirects\n}\n" + text)
    return ["caddy", "run", "--adapter", "caddyfile", "--config",
            f"{base}/Caddyfile"], {"XDG_DATA_HOME": str(base),
                                   "XDG_CONFIG_HOME": str(base)}


def haproxy(base, port, path):
    text = change((ETC / "haproxy/haproxy.cfg").read_text(), {
        "/etc/haproxy/cellblock.pem": f"{base}/both",
        "log /dev/log local0": "log stderr format raw local0",
        "bind :443": f"bind 127.0.0.1:{port}"})
    text = re.sub(r"^\tserver lab[23] .*\n", "", text, flags=re.M)
    (base / "cfg").write_text(text.replace("10.8.0.1:8060", f"unix@{path}"))
    return ["haproxy", "-db", "-f", f"{base}/cfg"], {}


class Proxy:
    def __init__(self, cb, make, path):
        self.base = cb.base / "proxy"
        self.base.mkdir()
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
             "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
             f"/CN={NAME}", "-addext", f"subjectAltName=DNS:{NAME}", "-keyout",
             f"{self.base}/key", "-out", f"{self.base}/pem"],
            check=True, capture_output=True)
        (self.base / "both").write_text((self.base / "pem").read_text()
                                        + (self.base / "key").read_text())
        self.port = freeport.pick()
        words, env = make(self.base, self.port, path)
        self.trust = ssl.create_default_context(cafile=self.base / "pem")
        self.log = open(self.base / "log", "w")
        self.process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
            env={**cb.env, "PATH": PATH, **env})

    def await_up(self):
        def answers():
            assert self.process.poll() is None, (self.base / "log").read_text()
            with contextlib.suppress(OSError):
                return self("GET", "/health")[0] == 200
        hosttree.until(answers, "the proxy", 30)

    @contextlib.contextmanager
    def connection(self):
        """TLS to the proxy; the name in its certificate is checked."""
        c = http.client.HTTPSConnection(NAME, self.port, timeout=SLOW,
                                        context=self.trust)
        c.sock = self.trust.wrap_socket(
            socket.create_connection(("127.0.0.1", self.port), SLOW),
            server_hostname=NAME)
        with contextlib.closing(c):
            yield c

    def __call__(self, method, path, body=None, headers=(), chunked=False):
        headers = dict(headers)
        if isinstance(body, dict):
            body = json.dumps(body).encode()
            headers["Content-Type"] = "application/json"
        with self.connection() as c:
            c.request(method, path, iter([body]) if chunked else body, headers,
                      encode_chunked=chunked)
            r = c.getresponse()
            return r.status, r.read()

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(SLOW)
        self.log.close()


@pytest.fixture(name="kind", params=[nginx, caddy, haproxy],
                ids=lambda p: p.__name__)
def _kind(request):
    for tool in request.param.__name__, "openssl":
        if not shutil.which(tool, path=PATH):
            pytest.skip(f"{tool} is not installed")
    return request.param


@pytest.fixture(name="proxy")
def _proxy(kind, cb, serve):
    path = f"{cb.base}/s"
    server = serve("-s", "serve.upload=8M", *LONG, where=f"unix:{path}")
    proxy = Proxy(cb, kind, path)
    proxy.server = server
    try:
        proxy.await_up()
        yield proxy
    finally:
        proxy.end()


def test_requests_come_through_and_figures_do_not(proxy):
    assert proxy("POST", "/eval", {"input": "print(6 * 7)"}) == (
        200, b'{"stdout": "42\\n", "returncode": 0, "files": []}')
    for path in ("/metrics", "/%6detrics", "/metrics?x", "/v1/sessions",
                 "/v1/sess%69ons", "/v1/sessions?x"):
        assert proxy("GET", path)[0] == 404, path
        assert proxy("HEAD", path)[0] == 404, path


def test_events_come_when_they_happen(proxy):
    session = json.loads(proxy("POST", "/v1/sessions")[1])["id"]
    path = f"/v1/sessions/{session}"
    body = json.dumps({"code": "print('one')\nimport time; time.sleep(1000)"})
    with proxy.connection() as c:
        c.request("POST", f"{path}/cells", body, {
            "Content-Type": "application/json", "Accept": "text/event-stream"})
        r = c.getresponse()
        assert r.headers["Content-Type"] == "text/event-stream"
        seen = b""
        # The cell goes on, and nothing else comes of it.
        while b"one" not in seen:
            seen += r.read1() or pytest.fail(f"it ended: {seen}")
        assert b"event: done" not in seen
        assert proxy("POST", f"{path}/interrupt")[0] == 204
        assert b"event: done" in r.read()


def test_uploads_are_whole_and_the_server_bounds_them(proxy):
    data = bytes(range(256)) * (20 << 10)       # 5 MiB
    kind = {"Content-Type": "multipart/form-data; boundary=XX"}
    for chunked in False, True:
        status, made = proxy("POST", "/v1/files", form_of(data), kind, chunked)
        assert status == 201, made
        made = json.loads(made)
        assert made["size_bytes"] == len(data)
        assert proxy("GET", f"/v1/files/{made['file_id']}")[1] == data
    status, said = proxy("POST", "/v1/files", form_of(data * 2), kind)
    assert status == 413 and b"exceeds maximum of 8 MB" in said, (status, said)


def test_a_page_of_this_host_is_served_and_no_other(proxy):
    for origin, status in ((f"https://{NAME}:{proxy.port}", 200),
                           ("https://elsewhere.example.org", 403)):
        assert proxy("POST", "/eval", {"input": "print(1)"},
                     {"Origin": origin})[0] == status


@pytest.mark.parametrize("kind", [nginx], indirect=True)
def test_a_client_has_so_many_requests_at_a_time(proxy):
    sessions = [json.loads(proxy("POST", "/v1/sessions")[1])["id"]
                for _ in range(2)]
    got = []

    def ask(path):
        with contextlib.suppress(OSError, http.client.HTTPException):
            got.append(proxy("POST", f"{path}/cells",
                             {"code": "import time; time.sleep(1000)"})[0])

    paths = [f"/v1/sessions/{s}" for s in sessions]
    busy = [threading.Thread(target=ask, args=(path,)) for path in paths]
    for t in busy:
        t.start()
    # Asked of the server itself: what the proxy is asked counts.
    for path in paths:
        state = request("GET", path, b"", "Connection: close")
        hosttree.until(lambda s=state: b'"running"' in proxy.server.raw(s),
                       "the cell to run")
    assert proxy("GET", "/health")[0] == 429
    assert not got
    proxy.end()
    for t in busy:
        t.join()


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 2"],
                         ids=["nothing", "half a line"])
def test_a_request_that_may_have_run_is_sent_once(kind, cb, answer):
    """Also where a connection could be used again."""
    path, bodies = f"{cb.base}/s", []
    over = threading.Event()

    def serve(s):
        with s, s.makefile("rb") as f:
            while line := f.readline():
                n = 0
                while (field := f.readline().strip()):
                    if field.lower().startswith(b"content-length:"):
                        n = int(field.partition(b":")[2])
                body = f.read(n)
                if b" /health " in line:
                    s.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
                    continue
                bodies.append(body)
                s.sendall(answer)
                return

    def accept(listening):
        while not over.is_set():
            with contextlib.suppress(TimeoutError):
                s = listening.accept()[0]
                s.settimeout(SLOW)
                threading.Thread(target=serve, args=(s,)).start()

    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen()
        listening.settimeout(.1)
        t = threading.Thread(target=accept, args=(listening,))
        t.start()
        proxy = Proxy(cb, kind, path)
        try:
            proxy.await_up()
            for i in range(3):
                body = json.dumps({"input": str(i)}).encode()
                # A GET may be repeated; none is, not on a new connection.
                for method in "POST", "GET", "PUT":
                    assert proxy(method, "/eval", None if method == "GET"
                                 else body)[0] == 502
            assert len(bodies) == 9, bodies
        finally:
            proxy.end()
            over.set()
            t.join()
