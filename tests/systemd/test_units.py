# SPDX-License-Identifier: MIT
"""The files in etc/ do under systemd what they say."""
import json
import pathlib
import pwd
import shutil
import urllib.error
import urllib.request

import pytest

import hosttree
from lab import BINARY, ETC, SECONDS, drop_in, reload_sshd, run, show

pytestmark = pytest.mark.limit(120)

TAKES = ("import mmap\nm = mmap.mmap(-1, 400 << 20)\n"
         "for i in range(0, len(m), 4096): m[i] = 1\n")


def evaluate(source):
    r = urllib.request.Request(
        "http://127.0.0.1:8060/eval", json.dumps({"input": source}).encode(),
        {"Content-Type": "application/json"})
    with urllib.request.urlopen(r, timeout=SECONDS) as answer:
        return json.load(answer)


@pytest.fixture
def serving():
    """The server by its socket, with less memory for a program."""
    with drop_in("cellblock-serve.service",
                 f"[Service]\nExecStart=\n"
                 f"ExecStart={BINARY} -M 96M --quiet --serve\n"):
        run("systemctl", "start", "cellblock-serve.socket")
        yield
        run("systemctl", "stop", "cellblock-serve.socket", "cellblock-serve")


def test_the_server_is_started_by_its_first_client(serving):
    assert show("cellblock-serve", "ActiveState") == "inactive"
    assert evaluate("print(6 * 7)")["stdout"] == "42\n"
    # Type=notify: it has said that it is ready.
    assert show("cellblock-serve", "ActiveState") == "active"
    assert show("cellblock-serve", "NRestarts") == "0"
    files = evaluate("open('a.txt', 'w').write('kept')")["files"]
    assert [f["path"] for f in files] == ["a.txt"]
    pid = int(show("cellblock-serve", "MainPID"))
    uid = int(hosttree.status_of(pid)["Uid"].split()[0])
    assert uid == pwd.getpwnam("cellblock-serve").pw_uid
    hosttree.assert_powerless(pid)
    run("systemctl", "stop", "cellblock-serve")
    assert show("cellblock-serve", "Result") == "success"


def test_an_operator_sees_and_ends_the_servers_sessions(serving):
    r = urllib.request.Request("http://127.0.0.1:8060/v1/sessions", b"{}",
                               {"Content-Type": "application/json"})
    with urllib.request.urlopen(r, timeout=SECONDS) as answer:
        session = json.load(answer)["id"]
    name = "cellblock-serve/s1.1"
    assert name in run(BINARY, "--sessions").stdout
    own = run("runuser", "-u", "cellblock-serve", "--", BINARY, "--sessions")
    assert "s1.1" in own.stdout, own
    run("systemctl", "reload", "cellblock-serve")
    assert name in run(BINARY, "--sessions").stdout
    run(BINARY, "--end", name, "-m", "the host is updated")
    with pytest.raises(urllib.error.HTTPError, match="410") as e:
        urllib.request.urlopen(f"{r.full_url}/{session}", timeout=SECONDS)
    assert b"the host is updated" in e.value.read()


def test_the_kernel_limits_programs_of_the_server(serving):
    r = evaluate(TAKES)
    assert r["returncode"] == 137, r
    events = pathlib.Path("/sys/fs/cgroup/system.slice/"
                          "cellblock-serve.service/memory.events")
    assert "\noom_kill 0\n" not in events.read_text()
    assert evaluate("print(1)")["stdout"] == "1\n"
    assert show("cellblock-serve", "NRestarts") == "0"


def test_all_that_a_person_runs_is_bounded(person):
    person.run("true")
    s = person.session("true")
    s.wait_exit()
    assert show(f"user-{person.uid}.slice", "MemoryMax") == str(2200 << 20)
    assert show(f"user-{person.uid}.slice", "TasksMax") == "400"


@pytest.fixture
def lab(person):
    """The person is in the group whose members land in a session."""
    to = pathlib.Path("/etc/ssh/sshd_config.d/cellblock.conf")
    shutil.copy(ETC / "sshd_config.d/cellblock.conf", to)
    run("gpasswd", "-a", person.name, "cellblock")
    reload_sshd()
    yield person
    to.unlink()
    reload_sshd()


def test_the_group_lands_in_sessions_with_limits_of_the_kernels(lab):
    assert lab.run("2**100").stdout == "1267650600228229401496703205376\n"
    s = lab.session()
    s.start()
    assert "cgroup v2" in s.run(":limits")
    assert len(lab.cgroups()) == 1
    s.leave()


def test_sshd_looks_after_the_clients_of_the_group_alone(lab, other):
    def watched(person):
        said = run("sshd", "-T", "-C",
                   f"user={person.name},host=localhost,addr=127.0.0.1").stdout
        return dict(line.split(" ", 1) for line in said.splitlines()
                    if line.startswith("clientalive"))

    run("sshd", "-t")
    assert watched(lab) == {"clientaliveinterval": "10",
                            "clientalivecountmax": "3"}
    assert watched(other)["clientaliveinterval"] == "0"
    # And they come in, and nobody forces anything on others.
    assert lab.run("6 * 7").stdout == "42\n"
    assert other.run("echo $((6 * 7))").stdout == "42\n"
