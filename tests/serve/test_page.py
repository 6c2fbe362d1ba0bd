# SPDX-License-Identifier: MIT
"""GET /docs: a page that describes the paths, and sends requests from a
browser. No answer does anything in it."""
import base64
import hashlib
import json
import pathlib
import re

import pytest

import hosttree
from browser import CHROMIUM, SECONDS, Browser
from client import LONG

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
needs_browser = pytest.mark.skipif(
    not CHROMIUM, reason="chromium is not installed")
HOSTILE = ("<img src=x onerror='window.hit=1'><script>window.hit=1</script>"
           "</pre><svg onload='window.hit=1'>")
TOKEN = "swordfish-swordfish"


@pytest.fixture(name="browser")
def _browser(tmp_path):
    made = Browser(tmp_path)
    yield made
    made.end()


class Page:
    """The page of a server, in a browser."""

    def __init__(self, browser, server):
        self.js, self.browser = browser.js, browser
        browser.open(server.url + "/docs")

    def form(self, name):
        return f"document.querySelector('#{name} form').elements"

    def fill(self, name, **fields):
        for field, value in fields.items():
            part = "checked" if isinstance(value, bool) else "value"
            self.js(f"{self.form(name)}['{field}'].{part} = "
                    f"{json.dumps(value)}")

    def answer(self, name):
        return self.js(f"document.querySelector('#{name} .answer').textContent")

    def begin(self, name, **fields):
        self.fill(name, **fields)
        self.js(f"{self.form(name)}.send.click()")

    def until(self, name, test):
        hosttree.until(lambda: test(self.answer(name)),
                       lambda: f"{name}: {self.answer(name)!r}", SECONDS)
        return self.answer(name)

    def send(self, name, **fields):
        """The whole answer of an operation."""
        self.begin(name, **fields)
        hosttree.until(lambda: not self.js(f"{self.form(name)}.send.disabled"),
                       lambda: self.answer(name), SECONDS)
        return self.answer(name)


@pytest.fixture(name="server")
def _server(serve):
    return serve(*LONG)


@pytest.fixture(name="page")
def _page(browser, server):
    return Page(browser, server)


def code(text):
    return json.dumps({"code": text})


# ---- without a browser ----

def test_it_is_small_and_has_nothing_from_elsewhere(lasting):
    r = lasting("GET", "/docs")
    text = r.body.decode()
    assert r.status == 200
    assert r.headers["Content-Type"] == "text/html; charset=utf-8"
    assert len((TOP / "repl/serve/docs.html").read_bytes()) < 25_000
    assert not re.search(r"https?:|(src|href)=\"//|@import|url\(", text)
    assert not re.search(r"\son\w+=\"|\sstyle=\"", text)
    assert "<!-- " not in text


def test_its_policy_allows_just_its_own_script_and_style(lasting):
    r = lasting("GET", "/docs")
    policy = dict(part.split(" ", 1) for part in
                  r.headers["Content-Security-Policy"].split("; "))
    assert policy["default-src"] == policy["frame-ancestors"] == "'none'"
    assert policy["base-uri"] == policy["form-action"] == "'none'"
    assert policy["connect-src"] == "'self'"
    for tag in "script", "style":
        (text,) = re.findall(f"(?s)<{tag}>(.*?)</{tag}>", r.body.decode())
        digest = hashlib.sha256(text.encode()).digest()
        assert policy[f"{tag}-src"] == \
            f"'sha256-{base64.b64encode(digest).decode()}'"
    assert r.headers["X-Content-Type-Options"] == "nosniff"


def test_it_describes_every_operation_and_type(lasting):
    text = lasting("GET", "/docs").body.decode()
    document = lasting("GET", "/openapi.json").json
    for path, item in document["paths"].items():
        for method, operation in item.items():
            if method == "parameters":
                continue
            section = text.partition(
                f'<section id="{operation["operationId"]}" ')[2]
            section = section.partition("</section>")[0]
            assert f"<h3>{method.upper()} {path}</h3>" in section
            for status in operation["responses"]:
                assert f"<td>{status}<td>" in section, (path, method)
    for name, schema in document["components"]["schemas"].items():
        table = text.partition(f'<h3 id="{name}">')[2].partition("</table>")[0]
        for field in schema["properties"]:
            assert f"<code>{field}</code>" in table, (name, field)
    links = set(re.findall(r'href="#(\w+)"', text))
    assert links <= set(re.findall(r'id="(\w+)"', text)) and len(links) > 10


def test_the_page_is_public_and_what_it_asks_is_not(serve, cb):
    (cb.base / "token").write_text(TOKEN)
    (cb.base / "token").chmod(0o600)
    server = serve("-s", f"serve.token_file={cb.base}/token")
    assert server("GET", "/docs").status == 200
    assert server("HEAD", "/docs").status == 200
    assert server("POST", "/docs").status == 405
    assert server("GET", "/v1/files").status == 401
    assert TOKEN not in server("GET", "/docs").body.decode()


# ---- in a browser ----

@needs_browser
def test_it_runs_code_and_says_nothing_in_the_console(page, server):
    shown = page.send("eval", text=code("print('a\\nb')\n2 ** 60 + 1"))
    assert shown.startswith("200 OK") and "a\nb\n" in shown
    assert f'"result": {2 ** 60 + 1}' in shown
    assert "429" not in page.send("execute")
    document = server("GET", "/openapi.json").json
    operations = sum(len([m for m in item if m != "parameters"])
                     for item in document["paths"].values())
    assert page.js("document.forms.length") == operations + 1
    assert page.browser.console == []
    assert {a for a in page.browser.asked
            if not a.startswith((server.url, "data:"))} == set()


@needs_browser
def test_a_refusal_is_shown_as_it_is(page):
    shown = page.send("eval", text='{"code": 1}')
    assert shown.startswith("400 Bad Request") and "not of type" in shown
    shown = page.send("execute", text="{")
    assert shown.startswith("422 ")
    shown = page.send("download", in_file_id="none/../such?#")
    assert shown.startswith("404 ")


@needs_browser
def test_each_kind_of_request_can_be_sent(page, tmp_path):
    (tmp_path / "up.txt").write_bytes(b"from the host\n")
    page.browser.choose_file("#upload [name=file]", tmp_path / "up.txt")
    shown = page.send("upload")
    assert shown.startswith("201 ") and '"filename": "up.txt"' in shown
    # the id is filled in
    assert "from the host\n" in page.send("download")
    assert '"size_bytes": 14' in page.send("uploads")
    assert page.send("forget").startswith("204 ")
    assert page.send("download").startswith("404 ")
    assert page.send("beginSession").startswith("201 ")
    assert '"idle"' in page.send("session")
    shown = page.send("write", in_path="d/ü #?.txt", text="typed")
    assert shown.startswith("201 ")
    shown = page.send("runCell", text=code("print(open('d/ü #?.txt').read())"))
    assert "typed\n" in shown and '"how": "ok"' in shown
    page.browser.choose_file("#write [name=file]", tmp_path / "up.txt")
    assert '"size": 14' in page.send("write")
    shown = page.send("read", in_path="d/ü #?.txt")
    assert "from the host\n" in shown and "Save its 14 bytes" in shown
    assert '"path": "d"' in page.send("home")
    assert page.send("remove", in_path="d").startswith("204 ")
    page.send("runCell", text=code("x = 1"))
    assert '"back_to": 2' in page.send("undo")
    assert '"reset": true' in page.send("reset")
    assert page.send("endSession").startswith("204 ")
    assert page.send("health").startswith("200 ")
    assert "cellblock_answers_total" in page.send("metrics")
    assert "<!DOCTYPE html>" in page.send("docs")
    assert [c for c in page.browser.console if "404" not in c] == []


@needs_browser
def test_output_is_shown_while_the_cell_runs(page):
    page.send("beginSession")
    page.begin("runCell", events=True,
               text=code("print('first', flush=True)\nwhile True: pass"))
    page.until("runCell", lambda shown: "first\n" in shown)
    assert '"how"' not in page.answer("runCell")
    assert page.send("interrupt").startswith("204 ")
    shown = page.until("runCell", lambda shown: '"how"' in shown)
    assert '"interrupted"' in shown and "done" in shown
    assert page.browser.console == []


@needs_browser
def test_a_request_is_stopped(page, server):
    page.begin("eval", text=code("while True: pass"))
    server.await_running()
    page.js(f"{page.form('eval')}.stop.click()")
    page.until("eval", lambda shown: shown == "stopped")
    hosttree.until(lambda: server.figures()["running"] == 0, "it ends", 20)


@needs_browser
def test_a_hostile_answer_does_nothing(page):
    shown = page.send("eval", text=code(
        f"import sys\nprint({HOSTILE!r})\nprint({HOSTILE!r}, file=sys.stderr)\n"
        f"open('f', 'w').write('x')\n{HOSTILE!r}"))
    assert shown.count(HOSTILE) >= 3
    page.send("beginSession")
    for events in False, True:
        shown = page.send("runCell", events=events,
                          text=code(f"print({HOSTILE!r}, '\\n\\nevent: done"
                                    f"\\ndata: {{}}\\n\\n\\x1b[2J')"))
        assert HOSTILE in shown and '"how": "ok"' in shown
    page.send("write", in_path="x.html", text=HOSTILE)
    assert HOSTILE in page.send("read", in_path="x.html")
    page.send("write", in_path=HOSTILE.replace("/", "_"), text="")
    assert "onerror" in page.send("home")
    shown = page.send("download", in_file_id=HOSTILE.replace("/", "_"))
    assert "<svg onload" in shown
    assert page.js("window.hit") is None
    assert page.js("document.querySelectorAll("
                   "'.answer :not(p, pre, a)').length") == 0


# The policy forbids these, if ever the script of the page has a hole.
INJECTED = {
    "script": """new Promise(done => {
        const s = document.createElement("script"); s.onerror = done;
        try { s.textContent = "window.hit = 1" } catch (e) { }
        document.body.append(s); done() })""",
    "html": """(() => { try { document.body.innerHTML = "<b>x" }
        catch (e) { return "refused" } })()""",
    "fetch": """fetch("http://127.0.0.1:1/").then(r => "sent",
        e => "refused")""",
}


@needs_browser
def test_what_is_injected_does_not_run(page):
    page.js(INJECTED["script"])
    assert page.js("window.hit") is None
    assert page.js(INJECTED["html"]) == "refused"
    assert page.js(INJECTED["fetch"]) == "refused"
    assert any("Content Security Policy" in c or "Trusted" in c
               for c in page.browser.console), page.browser.console
    # the control: the page's own script runs
    assert page.send("health").startswith("200 ")


@needs_browser
def test_a_token_is_asked_for_and_stays_in_memory(browser, serve, cb):
    (cb.base / "token").write_text(TOKEN)
    (cb.base / "token").chmod(0o600)
    server = serve("-s", f"serve.token_file={cb.base}/token")
    page = Page(browser, server)
    assert page.send("eval").startswith("401 ")
    page.js(f"document.getElementById('token').value = '{TOKEN}'")
    assert page.send("eval").startswith("200 ")
    assert page.js("document.cookie + Object.keys(localStorage) + "
                   "Object.keys(sessionStorage) + location.href"
                   ) == server.url + "/docs"
    assert not [a for a in browser.asked if TOKEN in a]
    browser.open(server.url + "/docs")
    assert page.js("document.getElementById('token').value") == ""
    assert page.send("eval").startswith("401 ")


@needs_browser
def test_without_javascript_it_is_a_reference(browser, server):
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    page = Page(browser, server)
    shown = page.js("document.body.innerText")
    assert "POST /v1/sessions/{id}/cells" in shown and "timeout_ms" in shown
    assert "can send the requests" in shown and "Token" not in shown
    assert page.js("document.querySelectorAll('section form').length") == 0
    assert browser.console == []


@needs_browser
def test_no_page_frames_it(browser, serve):
    """Another page could have its reader click on what it does not show."""
    other, server = serve(), serve()
    browser.open(other.url + "/health")
    seen = browser.js(f"""new Promise(done => {{
        const f = document.createElement("iframe");
        f.src = "{server.url}/docs"; f.onload = () => done(1);
        document.body.append(f) }})""")
    # Another process of the browser says so, perhaps behind the answer.
    hosttree.until(lambda: browser.js("1") and any(
        "frame-ancestors" in c for c in browser.console),
        lambda: browser.console, SECONDS)
    assert seen
