# SPDX-License-Identifier: MIT
"""Sessions of a person who has nothing but ssh: another login goes back to
them, lists and ends them, also while a dead line still holds them."""
import contextlib
import json
import os
import pathlib
import re
import signal
import socket
import subprocess

import pytest

import hosttree
import term


def silence(s):
    """As a lid that closes: the line is there, and nothing comes."""
    s.process.send_signal(signal.SIGSTOP)


def test_a_session_on_a_silent_line_is_taken_over(lab):
    s = lab.session().start()
    s.run("x = 41")
    silence(s)
    t = lab.session()
    t.expect(r"your\s+session\s+from\s+\S+\s+is\s+on\s+another\s+terminal,\s+"
             r"silent\s+for\s+\d+\s+s\s+·\s+a\s+takes\s+it\s+over,\s+"
             r"Enter\s+for\s+a\s+new\s+one")
    t.type("a")
    assert t.start().run("x + 1") == "42"
    s.process.send_signal(signal.SIGCONT)
    assert s.wait_exit() == 0 and "taken over" in s.all_text()


def test_of_several_a_number_takes_one_and_enter_begins_another(lab):
    first = lab.session().start()
    first.run("x = 1")
    second = lab.another()
    assert "NameError" in second.run("x")
    second.run("x = 2")
    silence(first)
    t = lab.session()
    t.expect(r"\[session 2 from \S+ is on another terminal, silent for \d+ s")
    t.expect(r"its number and Enter takes it over, Enter\s+alone for a new one")
    t.type("1\r")
    assert t.start().run("x") == "1"
    assert second.run("x") == "2"


@pytest.mark.sampled(2)
def test_at_the_limit_a_login_ends_one_whose_line_is_silent(locked_lab):
    """Of session.per_user = 2."""
    first = locked_lab.session().start()
    second = locked_lab.another()
    silence(first)
    silence(second)
    t = locked_lab.session()
    t.expect("these are all that you may have")
    t.type("e 1\r")
    t.expect(r"ended session 1 of \S+ · 0 cells")
    assert t.start().run("6 * 7") == "42"


@pytest.mark.sampled(2)
def test_where_only_text_arrives_sessions_are_listed_and_ended(locked_lab):
    first = locked_lab.session().start()
    second = locked_lab.another()
    second.run("x = 41")
    r = locked_lab.run("1 + 1")
    assert r.returncode == 75 and b"ssh HOST end ID" in r.stderr, r
    wanted = [[n, locked_lab.user.pw_name, "127.0.0.1"] for n in "12"]

    def listed():
        """The list does not wait for a session that is slow to answer."""
        r = locked_lab.run("sessions")
        rows = r.stdout.decode().splitlines()
        assert r.returncode == 0 and rows[0].startswith("ID"), r
        assert len(rows) == 3, rows
        return [row.split()[:3] for row in rows[1:]] == wanted

    hosttree.until(listed, "both sessions in the list")
    r = locked_lab.run("end", "7")
    assert r.returncode == 1 and b"there is no session 7" in r.stderr, r
    assert b"ssh HOST sessions lists them" in r.stderr, r
    r = locked_lab.run("end 1")
    assert (r.returncode, r.stdout.split()[:3]) == \
        (0, [b"ended", b"session", b"1"]), r
    first.wait_exit()
    r = locked_lab.run("attach")
    assert r.returncode == 2 and b"ssh -t HOST attach" in r.stderr, r
    t = locked_lab.session("attach 2")
    assert t.start().run("x + 1") == "42"
    assert second.wait_exit() == 0
    # The session that is left says how to come back.
    t.type(":detach\r")
    t.expect(r"come back with:\s+ssh -t HOST attach 2\]")
    assert t.wait_exit() == 0
    r = locked_lab.run("end all")
    assert r.stdout.startswith(b"ended session 2 "), r
    hosttree.until(lambda: locked_lab.run("1 + 1").stdout == b"2\n", "a place")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("command", [
    "sessions = 1; sessions", "end", "end -1", "end 1 -m x", "attach root/1",
    "sessions; id"])
def test_other_words_are_cells(lab, command):
    s = lab.session().start()
    r = lab.run(command)
    assert r.returncode == (0 if "=" in command else 1), r
    assert r.stdout == (b"1\n" if "=" in command else b""), r
    assert s.run("6 * 7") == "42"


def test_a_login_chooses_among_the_pythons_of_the_administrator(locked_lab):
    other = os.path.realpath("/usr/bin/python3")
    name = os.path.basename(other)
    where = "import sys; print(sys.executable)\n"
    assert locked_lab.run(where).stdout == b"/usr/bin/python3\n"
    for word in name, name.replace("python", "python "):
        r = locked_lab.run(word, stdin=where.encode())
        assert r.stdout.decode() == f"{other}\n", r
    for word in "python", "python3":
        r = locked_lab.run(word, stdin=where.encode())
        assert r.stdout == b"/usr/bin/python3\n", r
    s = locked_lab.session(name).start()
    assert s.run("import sys; sys.executable") == f"'{other}'"
    for word in "python3.1", "python 4.0", "python3.1t":
        r = locked_lab.run(word, stdin=where.encode())
        assert r.returncode == 2 and r.stdout == b"", r
        assert b"is not one of python.executable" in r.stderr, r
        assert other.encode() in r.stderr, r
    # A path, or an option, is none of these words.
    for word in other, f"python {other}", "python -c 1", "python3.11 -c 1":
        r = locked_lab.run(word, stdin=where.encode())
        assert r.returncode == 1 and r.stdout == b"", r


CLASS = 60      # by default sshd drops some of more than 10


def test_a_class_that_logs_in_at_once_is_let_in(etc_server):
    with contextlib.ExitStack() as stack:
        lines = [stack.enter_context(socket.create_connection(
            ("127.0.0.1", etc_server.port), timeout=term.DEADLINE))
            for _ in range(CLASS)]
        # No client says who it is, so that all count to the end.
        assert [line.recv(4) for line in lines] == [b"SSH-"] * CLASS


def test_a_connection_that_asks_for_nothing_ends(etc_lab):
    r = etc_lab.run(options=("-N",))
    assert r.returncode == 255, r


@pytest.mark.parametrize("shut", [False, True])
def test_check_says_for_whom_sshd_forwards(server, shut):
    """An account whose shell is the program, with and without what etc has."""
    path = pathlib.Path("/etc/ssh/sshd_config")
    before = path.read_bytes() if path.exists() else None
    name = server.users["shell"].pw_name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"HostKey {server.dir}/host\n" +
                    f"Match User {name}\nDisableForwarding yes\n" * shut)
    try:
        p, text = [subprocess.run(
            [server.binary, "--check", *option], capture_output=True, text=True,
            timeout=term.DEADLINE, check=False).stdout
            for option in (["--json"], [])]
    finally:
        path.unlink()
        if before is not None:
            path.write_bytes(before)
    said = json.loads(p)["forwards"]
    if shut:
        assert said is None and "Not shut" not in text
    else:
        assert f"sshd forwards ports for {name}" in said
        assert "Not shut: sshd forwards" in re.sub(r"\s+", " ", text)
