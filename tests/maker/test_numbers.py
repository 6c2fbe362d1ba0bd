# SPDX-License-Identifier: MIT
"""Numbers of sessions: of root beside those of others, and of one person whose
shells have different environments."""
import contextlib
import json
import os
import pathlib
import re
import subprocess

import hosttree
import pytest
import term
from lingering import SPOILT, spoil
from makerhost import start


class Root:
    """Root's shell in the mount namespace of the test."""

    def __init__(self, host):
        self.host = host
        home = host.dir / "root"
        home.mkdir()
        self.env = {"HOME": str(home), "PATH": "/usr/bin:/bin",
                    "LANG": "C.UTF-8", "TERM": "xterm-256color"}
        self.open = []

    def session(self, *args):
        s = term.Session([*self.host.inside(), str(self.host.binary), *args],
                         env=self.env, cwd="/")
        self.open.append(s)
        return s

    def ended(self, *args):
        """The status and the screen of what ends by itself."""
        s = self.session(*args)
        return s.wait_exit(), s.all_text()

    def registry(self):
        p = subprocess.run(
            [*self.host.inside(), str(self.host.binary), "--sessions",
             "--json"], env=self.env, cwd="/", capture_output=True, text=True,
            timeout=term.DEADLINE, check=True)
        # Others may have sessions, too: people, and the user of the run.
        ours = {"root", *(person.name for person in self.host.people)}
        return {(e["who"], e["number"]) for e in json.loads(p.stdout)
                if e["answers"] and e["who"] in ours}

    def lists(self, *wanted):
        """Wait until these are all: the list does not wait for a session that is
        slow to answer."""
        hosttree.until(lambda: self.registry() == set(wanted),
                       lambda: f"{wanted} in {self.registry()}")


@pytest.fixture(name="root")
def _root(host):
    r = Root(host)
    yield r
    for s in r.open:
        s.close()


def test_root_is_given_no_terminal_of_anothers_session(host, root):
    ann, _ = host.people
    s = ann.session("-s", "session.maker=off").start()
    s.run("x = 41")
    name = f"{ann.name}/1"
    root.lists((ann.name, "1"))
    code, said = root.ended("--attach", name)
    assert code == 1 and "a terminal goes to one's own sessions only" in said
    assert f"cellblock --watch shows {ann.name}'s" in said
    for option in "--attach", "--watch", "--end":
        code, said = root.ended(option, "1")
        assert code == 1 and "session 1 is not yours" in said, said
        # Somebody else's, too, may have that number here.
        assert re.search(r"that of (\S+) is \1/1; cellblock --sess", said), said
    code, said = root.ended("--attach")
    assert code == 1 and "there is no session to go back to" in said, said
    w = root.session("--watch", name)
    s.expect("root is watching")
    assert s.run("x + 1") == "42"
    w.expect("^42$")
    w.type("q")
    assert w.wait_exit() == 0
    s.leave()


def test_a_number_alone_is_roots_own_session(host, root):
    ann, _ = host.people
    s = ann.session("-s", "session.maker=off").start()
    s.run("x = 41")
    own = root.session().start()
    own.run("x = 6")
    root.lists((ann.name, "1"), ("root", "1"))
    t = root.session("--attach", "1")
    assert own.wait_exit() == 0
    assert t.start().run("x + 1") == "7"
    code, said = root.ended("--attach", f"{ann.name}/1")
    assert code == 1 and "own sessions only" in said
    code, said = root.ended("--end", "1")
    assert code == 0, said
    t.wait_exit()
    root.lists((ann.name, "1"))
    assert s.run("x + 1") == "42"
    s.leave()


def test_root_looks_after_sessions_while_a_file_has_an_error(host, root):
    ann, _ = host.people
    s = ann.session("-s", "session.maker=off").start()
    host.policy("[cell]\ntimeuot = 3s\n")
    assert ann.run("--sessions").code == 78
    code, said = root.ended("--sessions")
    assert code == 0 and f"{ann.name}/1" in said, said
    assert "timeuot" in said and "without a configuration" in said, said
    assert root.ended("--message", "everybody", "a moment")[0] == 0
    s.expect("message from root.*: a moment")
    assert root.ended("--end", f"{ann.name}/1")[0] == 0
    s.wait_exit()


@pytest.mark.parametrize("first", ["login", "su"])
def test_shells_with_and_without_a_runtime_directory_share_numbers(
        host, root, first):
    """A login has XDG_RUNTIME_DIR; su, sudo and cron may leave it out."""
    ann, _ = host.people
    runtime = f"/run/user/{ann.uid}"
    for path, uid in (("/run/user", 0), (runtime, ann.uid)):
        subprocess.run([*host.inside(), "install", "-d", "-o", str(uid),
                             "-m", "755" if uid == 0 else "700", path],
                            check=True)
    login = {"XDG_RUNTIME_DIR": runtime}
    envs = [{}, login] if first == "su" else [login, {}]
    plain, some = dict(ann.env), []
    for i, env in enumerate(envs):
        ann.env = {**plain, **env}
        s = ann.session("--new", "-s", "session.maker=off").start()
        s.run(f"x = {i + 1}")
        some.append(s)
    for env in envs:
        said = ann.run("--sessions", "--json", env=env).text
        assert [e["number"] for e in sorted(json.loads(said),
                                            key=lambda e: e["id"])] \
            == ["1", "2"], said
    root.lists((ann.name, "1"), (ann.name, "2"))
    for i, env in enumerate(reversed(envs)):
        ann.env = {**plain, **env}
        t = ann.session("--attach", str(i + 1))
        assert t.start().run("x") == str(i + 1)
        t.leave()
    for s in some:
        assert s.wait_exit() == 0
    ann.env = plain


@pytest.mark.parametrize("what", ["read-only", *SPOILT])
def test_a_runtime_directory_that_does_not_work_is_passed_over(host, what):
    ann, _ = host.people
    lib = pathlib.Path(spoil.__code__.co_filename).parent
    subprocess.run(
        [*host.inside(), "/usr/bin/python3", "-B", "-c", f"""
import pathlib, sys
sys.path.insert(0, {str(lib)!r})
from lingering import spoil
path = pathlib.Path("/run/user/{ann.uid}")
path.parent.mkdir(exist_ok=True)
spoil(path, {what!r}, {ann.uid})
"""], check=True)
    s = ann.session("-s", "session.maker=off").start()
    s.run("x = 41")
    assert (ann.home / ".local/state/cellblock/live/1").is_socket()
    s.type(":detach\r")
    assert s.wait_exit() == 0
    t = ann.session("--attach").start()
    assert t.run("x + 1") == "42"
    t.leave()


def test_anothers_runtime_directory_is_not_looked_at(host):
    """A directory under a person's uid is theirs, or is left alone."""
    ann, bob = host.people
    place = f"/run/user/{ann.uid}/cellblock"
    for path, uid in (("/run/user", 0), (os.path.dirname(place), bob.uid),
                      (place, bob.uid)):
        subprocess.run([*host.inside(), "install", "-d", "-o", str(uid),
                             "-m", "755", path], check=True)
    bob.asks(f"""
import os, socket
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.bind({place!r} + '/1')
""")
    s = ann.session("-s", "session.maker=off").start()
    assert s.run("6 * 7") == "42"
    said = ann.run("--sessions", "--json").text
    assert [e["number"] for e in json.loads(said)] == ["1"]
    hosttree.until(lambda: ann.run("--end", "1").code == 0, "its end")


@pytest.mark.parametrize("spare", [0, 1])
def test_a_warden_is_not_called_the_maker(host, spare):
    """In ps, where an administrator looks for what runs."""
    ann, _ = start(host, spare)
    s = ann.session().start()
    assert json.loads(ann.run("--sessions", "--json").text)[0]["pid"]

    def names():
        found = []
        for pid in hosttree.descendants(host.maker.pid):
            with contextlib.suppress(OSError):
                found.append(pathlib.Path(f"/proc/{pid}/cmdline").read_text())
        return [name.rstrip("\0") for name in found]
    # The first prompt may be there before the jail.
    s.run("1")
    assert "cellblock-warden" in names(), names()
    # The control: what waits for a request, a moment later, is still the maker.
    hosttree.until(lambda: any("--maker" in name for name in names()),
                   lambda: f"the next child of the maker: {names()}")
    s.leave()


def test_root_tells_and_ends_sessions_of_all_or_of_a_group(host, root):
    """Everybody's, or those of the members of a group."""
    ann, bob = host.people
    a = ann.session("-s", "session.maker=off").start()
    b = bob.session("-s", "session.maker=off").start()
    own = root.session().start()
    code, said = root.ended("--message", "everybody", "the room closes")
    assert code == 0 and "shown in " in said, said
    for s in a, b, own:
        s.expect("message from .*: the room closes")
    # A person's first group has its own name.
    code, said = root.ended("--message", f"@{ann.name}", "for one")
    assert code == 0 and "shown in 1 session" in said, said
    a.expect("message from root.*: for one")
    code, said = root.ended("--end", "@no-such-group")
    assert code == 2 and "there is no group no-such-group" in said
    code, said = root.ended("--end", f"@{bob.name}", "-m", "good night")
    assert code == 0 and f"ended session {bob.name}/1" in said.replace(
        "\n", ""), said
    b.wait_exit()
    assert "good night" in b.all_text() and "for one" not in b.all_text()
    root.lists((ann.name, "1"), ("root", "1"))
    # A person's everybody is the person: nobody else's are listed.
    assert ann.run("--end", "everybody").code == 0
    a.wait_exit()
    root.lists(("root", "1"))
    own.leave()
