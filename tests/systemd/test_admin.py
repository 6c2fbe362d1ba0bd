# SPDX-License-Identifier: MIT
"""An administrator, and the session of somebody who came over ssh and got a
cgroup from their own systemd."""
import os

import pytest

import hosttree
import term
from lab import BINARY, run

pytestmark = pytest.mark.limit(240)


def test_an_administrator_lists_watches_says_something_and_ends(person):
    s = person.session(str(BINARY))
    s.start()
    assert s.run("x = 41") == ""
    entry = person.only(lambda e: not e["detached"], "the session")
    name = f"{entry['who']}/{entry['id']}"
    assert entry["from"] == "127.0.0.1"
    assert name in run(str(BINARY), "--sessions").stdout
    assert len(person.scopes()) == 1
    with term.Session([str(BINARY), "--watch", name],
                      env={**os.environ, "TERM": "xterm-256color"}) as w:
        w.expect(f"watching session {name}"[:60])
        s.expect(r"¦ \[root is watching")
        assert s.run("x + 1").startswith("42")
        w.expect(r"¦ >>> x \+ 1\n42")
        run(str(BINARY), "--message", name, "five minutes")
        for t in (s, w):
            t.expect(r"message from root: five minutes")
        row = s.enter("while True: pass")
        w.expect("¦ >>> while True: pass")
        run(str(BINARY), "--end", name, "-m", "good night")
        s.expect_since(row, "ended by root: good night")
        w.expect("ended by root: good night")
        w.expect(r"has ended\]")
        assert w.wait_exit() == 0
    s.wait_exit()
    assert not person.sessions()
    hosttree.until(lambda: not person.scopes(), "the end of the scope", 30)
