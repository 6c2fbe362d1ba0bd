# SPDX-License-Identifier: MIT
"""The effect of a logout on a session that goes on without its terminal, and the
line that says so before."""
import json
import os
import pathlib
import signal

import pytest

import hosttree
from lab import BINARY, run, show

pytestmark = pytest.mark.limit(240)
KILLS = "logging out ends it: KillUserProcesses is on"
LAST = "your last logout ends it · loginctl enable-linger keeps it"


def tell_logind(*lines):
    """Give the login manager other settings; it knows its logins all the same."""
    to = pathlib.Path("/etc/systemd/logind.conf.d/test.conf")
    to.parent.mkdir(exist_ok=True)
    to.write_text("\n".join(("[Login]", *lines, "")))
    run("systemctl", "restart", "systemd-logind")
    return to


@pytest.fixture
def kills(person):
    """Processes of a login are killed at its end."""
    to = tell_logind("KillUserProcesses=yes")
    yield
    to.unlink()
    run("systemctl", "restart", "systemd-logind")


def begin(shell, *words):
    shell.type(" ".join((str(BINARY), "--new", *words)) + "\r")
    shell.prompt = ">>> "
    shell.start()
    assert shell.run("x = 41") == ""


def detach(shell):
    """The lines about it."""
    row = shell.screen.here()
    shell.type(":detach\r")
    shell.expect_since(row, r"goes on for")
    shell.prompt = "shell> "
    shell.wait_prompt()
    text = " ".join("\n".join(shell.screen.rows(row)).split())
    return text.partition("goes on for")[2]


def attach(shell, *words):
    shell.type(" ".join((str(BINARY), "--attach", *words)) + "\r")
    shell.prompt = ">>> "
    shell.start()


def is_in_manager(person):
    pid = person.only(lambda e: True, "the session")["pid"]
    return f"/user@{person.uid}.service/" in \
        pathlib.Path(f"/proc/{pid}/cgroup").read_text()


def wait_what_a_logout_does(other):
    """Somebody who logs out later is gone altogether: what becomes of others
    has become of them."""
    other.log_out(other.shell())
    hosttree.until(lambda: not other.is_here(), other.describe, 60)


def is_back(person):
    shell = person.shell()
    attach(shell)
    assert shell.run("x + 1").startswith("42")
    shell.type("exit\r")
    shell.prompt = "shell> "
    shell.wait_prompt()
    person.log_out(shell)


def test_a_session_outlives_the_logout(person, other):
    shell = person.shell()
    begin(shell)
    assert "logging out" not in detach(shell)
    person.log_out(shell)
    wait_what_a_logout_does(other)
    is_back(person)


@pytest.mark.usefixtures("kills")
def test_where_logging_out_ends_it_that_was_said(person):
    shell = person.shell()
    said = json.loads(person.run(f"{BINARY} --check --json").stdout)
    assert said["logout"].startswith(KILLS)
    begin(shell)
    said = detach(shell)
    assert KILLS in said and "loginctl enable-linger" in said
    person.log_out(shell)
    hosttree.until(lambda: not person.sessions(), "the end of the session", 60)
    assert "no session" in person.run(f"{BINARY} --attach", check=False).stderr


@pytest.mark.usefixtures("kills")
def test_the_session_of_who_lingers_outlives_the_logout(person, other):
    person.run("loginctl enable-linger")
    said = json.loads(person.run(f"{BINARY} --check --json").stdout)
    assert said["logout"] is None
    shell = person.shell()
    begin(shell)
    hosttree.until(lambda: is_in_manager(person), "the move", 30)
    said = detach(shell)
    assert "logging out" not in said and "logout" not in said
    person.log_out(shell)
    wait_what_a_logout_does(other)
    is_back(person)


@pytest.mark.usefixtures("kills")
def test_what_is_said_helps(person, other):
    shell = person.shell()
    begin(shell)
    assert KILLS in detach(shell)
    shell.type("loginctl enable-linger\r")
    shell.wait_prompt()
    attach(shell)
    hosttree.until(lambda: is_in_manager(person), "the move", 30)
    assert "logging out" not in detach(shell)
    person.log_out(shell)
    wait_what_a_logout_does(other)
    is_back(person)


def test_who_is_not_killed_is_told_nothing(person, kills):
    tell_logind("KillUserProcesses=yes", f"KillExcludeUsers=root {person.name}")
    shell = person.shell()
    begin(shell)
    assert "logging out" not in detach(shell)
    tell_logind("KillUserProcesses=yes", "KillOnlyUsers=nobody")
    attach(shell)
    assert "logging out" not in detach(shell)
    tell_logind("KillUserProcesses=yes", f"KillOnlyUsers=nobody {person.name}")
    attach(shell)
    assert KILLS in detach(shell)


def test_a_session_in_ones_own_systemd_ends_with_the_last_logout(person):
    shell = person.shell()
    shell.type("systemd-run --user --scope -q -p Delegate=yes "
               f"{BINARY} --new\r")
    shell.prompt = ">>> "
    shell.start()
    shell.run("x = 41")
    assert LAST in detach(shell)
    person.log_out(shell)
    hosttree.until(lambda: not person.sessions(), "the end of the session", 60)


def test_a_login_manager_that_hangs_holds_nothing(person):
    shell = person.shell()
    logind = int(show("systemd-logind", "MainPID"))
    os.kill(logind, signal.SIGSTOP)
    try:
        begin(shell)
        assert "the login manager does not say" in detach(shell)
    finally:
        os.kill(logind, signal.SIGCONT)
