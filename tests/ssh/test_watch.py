# SPDX-License-Identifier: MIT
"""Root lists, watches and ends the sessions of people who came over ssh."""
import json
import os
import subprocess

import pytest

import hosttree
import term
from world import CELLBLOCK


def root_runs(*args):
    return subprocess.run([CELLBLOCK, *args], capture_output=True, text=True,
                          timeout=2 * term.DEADLINE, check=False)


def listed(lab):
    """The sessions of this account."""
    r = root_runs("--sessions", "--json")
    assert r.returncode == 0, r
    return [e for e in json.loads(r.stdout)
            if e["who"] == lab.user.pw_name and e["answers"]]


@pytest.mark.sampled(2)
def test_root_lists_watches_says_something_and_ends(lab):
    s = lab.session().start()
    entry, = hosttree.until(lambda: listed(lab), "the session to be listed")
    name = f"{entry['who']}/{entry['id']}"
    assert entry["from"] == "127.0.0.1" and not entry["detached"]
    assert name in root_runs("--sessions").stdout
    with term.Session([CELLBLOCK, "--watch", name],
                      env={**os.environ, "TERM": "xterm-256color"}) as w:
        w.expect(f"watching session {name}"[:60])
        s.expect(r"¦ \[root is watching")
        s.run("x = 41")
        assert s.run("x + 1") == "42"
        # Where limits are weak, the first cell is followed by a line on that.
        w.expect(r"¦ >>> x = 41\n(¦ \[here .*\n)?¦ >>> x \+ 1\n42")
        # The number alone is root's own session, and there may be none.
        r = root_runs("--end", str(entry["id"]))
        assert r.returncode == 1 and "cellblock --sessions" in r.stderr, r
        assert root_runs("--message", name, "five minutes").returncode == 0
        for t in (s, w):
            t.expect(r"message from root: five minutes")
        row = s.enter("while True: pass")
        w.expect("¦ >>> while True: pass")
        assert root_runs("--end", name, "-m", "good night").returncode == 0
        s.expect_since(row, "ended by root: good night")
        w.expect("ended by root: good night")
        w.expect(r"has ended\]")
        assert w.wait_exit() == 0
    s.wait_exit()


@pytest.mark.sampled(2)
def test_who_watches_stops_and_the_student_is_told(lab):
    s = lab.session().start()
    entry, = hosttree.until(lambda: listed(lab), "the session to be listed")
    with term.Session([CELLBLOCK, "--watch", f"{entry['who']}/{entry['id']}"],
                      env={**os.environ, "TERM": "xterm-256color"}) as w:
        row = s.enter("a = input('name? ')")
        s.expect_since(row, r"¦ \[root is watching|^name")
        s.expect(r"¦ \[root is watching")
        w.expect("^name")
        w.type("not for the student\rq")
        assert w.wait_exit() == 0
    s.expect(r"¦ \[root has stopped watching")
    s.type("ann\r")
    s.wait_prompt()
    assert s.run("a") == "'ann'"
