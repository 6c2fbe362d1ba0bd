# SPDX-License-Identifier: MIT
"""cellblock-lab on a host of its own."""
import os
import signal

import pytest

import hosttree
import page
import sshd
from labhost import TOOL, Host
from world import WHOLE


@pytest.fixture(name="host")
def _host():
    if os.geteuid() != 0 or not sshd.find():
        pytest.skip("only root sets a laboratory up, with openssh-server")
    h = Host()
    yield h
    h.close()


def test_a_dry_run_says_all_and_does_nothing(host):
    before = host.state()
    r = host.lab("--dry-run", "setup", "--students", "30", "--course", "python1",
                 "--files", "/srv/python1", "--packages", "/srv/packages")
    assert r.returncode == 0, r.stderr
    for word in ("groupadd", "/etc/cellblock/conf.d/50-lab.conf", "memory = ",
                 "expose = /srv/python1", "packages = /srv/packages",
                 "ForceCommand", "sshd -t", "locked = yes"):
        assert word in r.stdout, word
    assert host.state() == before
    csv = host.csv(f"ann,{host.key('ann').with_suffix('.pub').read_text()}")
    r = host.lab("--dry-run", "add", csv)
    assert "useradd" in r.stdout and host.state() == before, r.stderr


def test_a_laboratory_is_set_up_filled_emptied_and_undone(host):
    before = host.state()
    host.start()
    # Without a unit manager the administrator has sshd read its files again.
    r = host.lab("setup", "--port", host.port, "--host", "127.0.0.1",
                 "--students", "2", "--files", "/srv/python1")
    assert "kill -HUP" in r.stderr and "then: cellblock-lab check" in r.stderr, r
    host.sshd.send_signal(signal.SIGHUP)
    last = []

    def is_checked():
        last[:] = [host.lab("check", "--port", host.port, "--host", "127.0.0.1")]
        return last[0].returncode == 0
    hosttree.until(is_checked, lambda: f"the check: {last}", 20)
    r = host.lab("setup", "--port", host.port, "--host", "127.0.0.1",
                 "--students", "2", "--files", "/srv/python1")
    assert r.returncode == 0 and "checked over ssh: there is no network" in r.stdout, r
    keys = {n: host.key(n) for n in ("ann", "bob")}
    csv = host.csv("name,key\n" + "".join(
        f"{n},{k.with_suffix('.pub').read_text()}" for n, k in keys.items()))
    r = host.lab("add", csv)
    assert r.returncode == 0 and "add to ~bob/" in r.stdout, r
    r = host.lab("add", csv)
    assert r.returncode == 0 and r.stdout == "2 students may log in\n", r
    host.run("sh", "-c", "echo 1,2 > /srv/python1/data.csv")
    for name, key in keys.items():
        r = host.ask(name, key, "open('/srv/python1/data.csv').read()")
        assert (r.returncode, r.stdout) == (0, "'1,2\\n'\n"), r
    assert "Read-only" in host.ask(
        "ann", keys["ann"], "open('/srv/python1/data.csv', 'w')").stderr
    session = host.session("ann", keys["ann"])
    r = host.lab("remove", "ann")
    assert r.returncode == 0, r
    session.expect("ended by root: your account ends")
    assert host.ask("ann", keys["ann"], "1").returncode == 255
    assert host.ask("bob", keys["bob"], "1").stdout == "1\n"
    r = host.lab("undo")
    assert r.returncode == 0, r
    host.sshd.send_signal(signal.SIGHUP)
    host.run("rm", "-r", "/srv/python1")
    assert host.state() == before


@pytest.mark.parametrize("line, said", [
    ("Ann,{key}", "expected a name"), ("../x,{key}", "expected a name"),
    ("a b,{key}", "expected a name"), ("-rf,{key}", "expected a name"),
    ("ann,nothing", "expected NAME,KEY"), ("ann", "expected NAME,KEY"),
    ("ann,ssh-ed25519 AAAA", "ssh-keygen does not know"),
    ("ann,{key}\nann,{key}", "twice"), ("root,{key}", "already"),
    ("x" * 33 + ",{key}", "expected a name")])
def test_a_list_with_a_mistake_adds_nobody(host, line, said):
    key = host.key("k").with_suffix(".pub").read_text().strip()
    before = host.state()
    r = host.lab("add", host.csv(f"good,{key}\n" + line.format(key=key) + "\n"))
    assert r.returncode == 1 and said in r.stderr and "Nobody" in r.stderr, r
    assert host.state() == before


def test_a_list_that_is_not_there_is_named(host):
    r = host.lab("add", "/srv/students.csv")
    assert r.returncode == 1 and r.stderr == (
        "cellblock-lab: read /srv/students.csv: No such file or directory. "
        "Nobody was added\n"), r


def test_who_has_read_enough_is_told_nothing_more(host):
    r = host.run("sh", "-c", f"{TOOL} --dry-run setup | true")
    assert r.stderr == "", r


def test_what_is_there_already_is_said_and_left(host):
    place = host.etc / "ssh" / "sshd_config.d"
    other = place / "other.conf"
    other.write_text("Match Group cellblock\n  ForceCommand /bin/false\n")
    before = host.state()
    r = host.lab("setup")
    assert r.returncode == 1 and str("/etc/ssh/sshd_config.d/other.conf") \
        in r.stderr, r
    assert host.state() == before
    other.unlink()
    (place / "cellblock.conf").write_text("# theirs\n")
    r = host.lab("setup")
    assert r.returncode == 1 and "is left as it is" in r.stderr, r
    assert (place / "cellblock.conf").read_text() == "# theirs\n"
    assert host.lab("undo").returncode == 0
    config = host.etc / "ssh" / "sshd_config"
    config.write_text(config.read_text().replace("Include", "#Include"))
    r = host.lab("setup")
    assert r.returncode == 1 and "does not include" in r.stderr, r


def test_two_administrators_do_not_meet(host):
    host.run("mkdir", "/var/lib/cellblock")
    p = host.background("flock", "--no-fork", "/var/lib/cellblock/lab.lock",
                        "sleep", "100")
    hosttree.until(lambda: "somebody else" in host.lab("undo").stderr, "the lock")
    p.kill()


def test_a_folder_that_is_a_link_is_refused(host):
    host.run("ln", "-s", "/etc", "/srv/course")
    r = host.lab("setup", "--files", "/srv/course")
    assert r.returncode == 2 and "no link" in r.stderr, r


def test_only_root_may(host):
    r = host.run("setpriv", "--reuid=65534", "--clear-groups", TOOL, "undo")
    assert r.returncode == 1 and "only root" in r.stderr, r


def test_root_checks_the_files_of_all_groups_and_persons(host):
    d = host.etc / "cellblock"
    for name in "groups", "users":
        (d / name).mkdir(parents=True)
    (d / "groups" / "exam.conf").write_text("[exam]\nbegin = 2099-12-01 09:00\n")
    (d / "users" / "ann.conf").write_text("[cell]\ntimeout = soon\n")
    (d / "groups" / "notes.txt").write_text("no configuration")
    r = host.run(host.binary, "--check-config")
    assert r.returncode == 78, r
    assert "groups/exam.conf:2: exam.begin" in r.stderr, r
    assert "users/ann.conf:2: cell.timeout" in r.stderr, r
    assert len(r.stderr.splitlines()) == 2, r
    (d / "groups" / "exam.conf").unlink()
    (d / "users" / "ann.conf").write_text("[cell]\ntimeout = 9s\n")
    assert host.run(host.binary, "--check-config").returncode == 0


STUDENTS = 30 if WHOLE else 6


@pytest.mark.alone
@pytest.mark.sampled
@pytest.mark.limit(240)
def test_the_commands_of_the_page_do_what_it_says(host):
    """Each, in its order; then thirty students (six, in a short run) come at
    once, a third of them hostile."""
    host.start()
    key = host.key("student")
    work = host.dir / "work"
    page.prepare(work, host.binary, key, STUDENTS)
    for command in page.commands():
        if "cellblock-lab setup" in command:
            command += f" --port {host.port} --host 127.0.0.1"
        r = host.run("sh", "-c", f"cd {work} && PATH={work}:$PATH && {command}")
        if "kill -HUP" in r.stderr:
            host.sshd.send_signal(signal.SIGHUP)
            hosttree.until(lambda: host.lab(
                "check", "--port", host.port, "--host", "127.0.0.1"
            ).returncode == 0, "the check", 20)
            continue
        assert r.returncode == 0, (command, r)
    assert host.ask("bob", key, "1").returncode == 255, "he was removed"
    (host.etc / "cellblock" / "conf.d" / "60-hurried.conf").write_text(
        "[cell]\ntimeout = 5s\ncpu = 5s\n")
    page.log_in_at_once(STUDENTS, lambda name, text: host.ask(name, key, text))
