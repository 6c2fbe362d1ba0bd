# SPDX-License-Identifier: MIT
"""Chromium without a window, driven over its pipe (--remote-debugging-pipe)."""
import contextlib
import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import time

import hosttree
from world import PATIENCE

CHROMIUM = shutil.which("chromium")
SECONDS = 50 * PATIENCE


class Browser:
    """One that shows one page; `console` has what the page complained of, and
    `asked` the addresses of its requests."""

    def __init__(self, base):
        theirs_in, self.to = os.pipe()
        self.from_, theirs_out = os.pipe()
        high = [fcntl.fcntl(fd, fcntl.F_DUPFD, 10)
                for fd in (theirs_in, theirs_out)]

        def set_pipes():
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        # Its own sandbox would need what the host of the tests may not have;
        # all that it shows comes from our server.
        self.process = subprocess.Popen(
            [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu",
             "--disable-dev-shm-usage", "--disable-breakpad",
             "--disable-background-networking", "--disable-component-update",
             "--disable-extensions", "--no-first-run", "--password-store=basic",
             f"--user-data-dir={base}", "--remote-debugging-pipe",
             "about:blank"],
            env={**os.environ, "HOME": str(base), "XDG_CONFIG_HOME": str(base),
                 "XDG_CACHE_HOME": str(base), "XDG_RUNTIME_DIR": str(base)},
            preexec_fn=set_pipes, pass_fds=(3, 4), start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        self.tree = hosttree.Tree(self.process.pid)
        for fd in (theirs_in, theirs_out, *high):
            os.close(fd)
        self.n, self.rest, self.session = 0, b"", None
        self.console, self.asked, self.loaded = [], [], set()
        target = self.call("Target.createTarget", url="about:blank")
        self.session = self.call("Target.attachToTarget", flatten=True,
                                 targetId=target["targetId"])["sessionId"]
        for domain in "Page", "Runtime", "Log", "Network", "DOM":
            self.call(domain + ".enable")
        self.call("Page.setLifecycleEventsEnabled", enabled=True)

    def receive(self):
        end = time.monotonic() + SECONDS
        while b"\0" not in self.rest:
            ready = select.select([self.from_], [], [],
                                  max(0, end - time.monotonic()))[0]
            assert ready, "the browser says nothing"
            more = os.read(self.from_, 1 << 20)
            assert more, "the browser is gone"
            self.rest += more
        message, _, self.rest = self.rest.partition(b"\0")
        return json.loads(message)

    def note(self, message):
        method, said = message.get("method"), message.get("params", {})
        if method == "Log.entryAdded":
            self.console.append(said["entry"]["text"])
        elif method == "Runtime.consoleAPICalled":
            self.console.append(str(said["args"]))
        elif method == "Runtime.exceptionThrown":
            self.console.append(str(said["exceptionDetails"]))
        elif method == "Network.requestWillBeSent":
            self.asked.append(said["request"]["url"])
        elif method == "Page.lifecycleEvent" and said["name"] == "load":
            self.loaded.add(said["loaderId"])

    def call(self, method, **params):
        self.n += 1
        message = {"id": self.n, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while (got := self.receive()).get("id") != self.n:
            self.note(got)
        assert "error" not in got, got
        return got["result"]

    def open(self, url):
        said = self.call("Page.navigate", url=url)
        # Not the empty page, which may be loaded behind this request.
        while not said.get("errorText") and said["loaderId"] not in self.loaded:
            self.note(self.receive())
        return said.get("errorText")

    def js(self, code):
        """The value of an expression in the page; of what it promises."""
        got = self.call("Runtime.evaluate", expression=code,
                        awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in got, got
        return got["result"].get("value")

    def choose_file(self, selector, path):
        found = self.call("Runtime.evaluate",
                          expression=f"document.querySelector('{selector}')")
        self.call("DOM.setFileInputFiles", files=[str(path)],
                  objectId=found["result"]["objectId"])

    def end(self):
        self.tree.look()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(SECONDS)
        self.tree.wait_gone()
        os.close(self.to)
        os.close(self.from_)
