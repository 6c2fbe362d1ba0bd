# SPDX-License-Identifier: MIT
"""cellblock-lab on a host of its own."""
import os
import signal
import subprocess
import threading

import pytest

import hosttree
import page
import sshd
from labhost import TOOL, Host
from world import PATIENCE, TESTS, WHOLE

TOP = TESTS.parent


def a_host():
    if os.geteuid() != 0 or not sshd.find():
        pytest.skip("only root sets a laboratory up, with openssh-server")
    h = Host()
    yield h
    h.close()


@pytest.fixture(name="host")
def _host():
    yield from a_host()


@pytest.fixture(scope="module")
def untouched():
    """One host for those who are refused: it stays as it is."""
    yield from a_host()


def test_a_dry_run_says_all_and_does_nothing(host):
    before = host.state()
    r = host.lab("--dry-run", "setup", "--students", "30", "--course", "python1",
                 "--files", "/srv/python1", "--packages", "/srv/packages")
    assert r.returncode == 0, r.stderr
    for word in ("groupadd", "/etc/cellblock/conf.d/50-lab.conf", "memory = ",
                 "expose = /srv/python1", "packages = /srv/packages",
                 "ForceCommand", "sshd -t", "locked = yes",
                 "log in over ssh to localhost, port 22, as cellblock-check"):
        assert word in r.stdout, word
    assert host.state() == before
    csv = host.csv(f"ann,{host.key('ann').with_suffix('.pub').read_text()}")
    r = host.lab("--dry-run", "add", csv)
    assert "useradd" in r.stdout and host.state() == before, r.stderr
    assert r.stdout.endswith("would: let 1 student log in\n"), r


def at(host):
    return "--port", host.port, "--host", "127.0.0.1"


def reread(host):
    """sshd reads its files again."""
    host.sshd.send_signal(signal.SIGHUP)
    last = []

    def is_checked():
        last[:] = [host.lab("check", *at(host))]
        return last[0].returncode == 0
    hosttree.until(is_checked, lambda: f"the check: {last}", 20)


def answer(host, *asked):
    """As soon as sshd listens again: it may be at its files still."""
    found = []

    def is_there():
        found[:] = [host.ask(*asked)]
        return found[0].returncode != 255
    hosttree.until(is_there, lambda: f"an answer: {found}", 20)
    return found[0]


def first_setup(host, *more):
    """Without a unit manager the administrator has sshd read its files again."""
    r = host.lab("setup", *at(host), "--students", "2", *more)
    assert r.returncode == 1 and "kill -HUP" in r.stderr, r
    assert "then: cellblock-lab check" in r.stderr, r


def set_up(host, *more):
    """Where sshd begins after that, there is less to wait for."""
    host.start_maker()
    first_setup(host, *more)
    host.start_sshd()


def add(host, *names):
    keys = {n: host.key(n) for n in names}
    csv = host.csv("name,key\n" + "".join(
        f"{n},{k.with_suffix('.pub').read_text()}" for n, k in keys.items()))
    r = host.lab("add", csv)
    assert r.returncode == 0 and f"add to ~{names[-1]}/" in r.stdout, r
    return keys, csv


def sshd_of(host, name):
    """The process of sshd that acts for a student. That of the last answer may be
    about to end."""
    uid = host.run("id", "-u", name).stdout.strip()
    found = []

    def is_one():
        status = {p: hosttree.status_of(p)
                  for p in hosttree.descendants(host.sshd.pid)}
        found[:] = [p for p, s in status.items()
                    if s.get("Name") == "sshd" and s["Uid"].split()[0] == uid]
        return len(found) == 1
    hosttree.until(is_one, lambda: f"one of {found}")
    return found[0]


def test_a_laboratory_is_set_up_filled_emptied_and_undone(host):
    before = host.state()
    host.start()
    first_setup(host, "--files", "/srv/python1")
    reread(host)
    r = host.lab("setup", *at(host), "--students", "2", "--files", "/srv/python1")
    for said in "there is no network", "nothing is forwarded":
        assert f"checked over ssh: {said}" in r.stdout, r
    assert r.returncode == 0, r
    keys, csv = add(host, "ann", "bob")
    r = host.lab("add", csv)
    assert r.returncode == 0 and r.stdout == "2 students may log in\n", r
    host.run("sh", "-c", "echo 1,2 > /srv/python1/data.csv")
    for name, key in keys.items():
        r = host.ask(name, key, "open('/srv/python1/data.csv').read()")
        assert (r.returncode, r.stdout) == (0, "'1,2\\n'\n"), r
    assert "Read-only" in host.ask(
        "ann", keys["ann"], "open('/srv/python1/data.csv', 'w')").stderr
    session = host.session("ann", keys["ann"])
    program = subprocess.Popen(
        host.ssh("ann", keys["ann"],
                 "print(1, flush=True); import time; time.sleep(999)"),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    assert program.stdout.read(2) == b"1\n"
    r = host.lab("remove", "ann")
    assert r.returncode == 0, r
    session.expect("ended by root: your account ends")
    # No program of an account goes on when another student gets the account.
    assert program.wait(20 * PATIENCE) != 0
    program.stdout.close()
    assert host.ask("ann", keys["ann"], "1").returncode == 255
    assert host.ask("bob", keys["bob"], "1").stdout == "1\n"
    # An error in a file keeps students out, and root from nothing.
    session = host.session("bob", keys["bob"])
    wrong = host.etc / "cellblock/conf.d/60-theirs.conf"
    wrong.write_text("[cell]\ntimeout = soon\n")
    r = host.ask("bob", keys["bob"], "1")
    assert r.returncode == 78 and r.stderr.splitlines() == [
        'cellblock: /etc/cellblock/conf.d/60-theirs.conf:2: cell.timeout: '
        'expected a time such as 500ms, 10s, 5m or 1h, not "soon"',
        "  the administrator of this host can mend that"], r
    # sshd may be slow.
    slow = sshd_of(host, "bob")
    os.kill(slow, signal.SIGSTOP)
    threading.Timer(1, os.kill, (slow, signal.SIGCONT)).start()
    r = host.lab("remove", "bob")
    assert r.returncode == 0, r
    session.expect("ended by root: your account ends")
    wrong.unlink()
    r = host.lab("undo")
    assert r.returncode == 0 and "nothing to undo" not in r.stdout, r
    host.sshd.send_signal(signal.SIGHUP)
    host.run("rm", "-r", "/srv/python1")
    assert host.state() == before
    r = host.lab("undo")
    assert r.returncode == 0 and r.stdout.startswith("there is nothing to undo"), r


def test_a_mistake_elsewhere_takes_no_protection_away(host):
    set_up(host)
    keys, _ = add(host, "ann")
    ours = host.etc / "cellblock/conf.d/50-lab.conf", \
        host.etc / "ssh/sshd_config.d/cellblock.conf"
    before = [p.read_text() for p in ours]
    wrong = host.etc / "cellblock/conf.d/60-theirs.conf"
    sshd_config = host.etc / "ssh/sshd_config"
    good = sshd_config.read_text()
    # As it is, and otherwise.
    for course in "python", "another":
        wrong.write_text("[cell]\ntimeout = soon\n")
        r = host.lab("setup", *at(host), "--students", "2", "--course", course)
        assert r.returncode == 1 and "60-theirs.conf:2" in r.stderr, r
        assert [p.read_text() for p in ours] == before
        wrong.unlink()
    sshd_config.write_text(good + "Bogus yes\n")
    r = host.lab("setup", *at(host), "--students", "2")
    assert r.returncode == 1 and "Bogus" in r.stderr, r
    assert [p.read_text() for p in ours] == before
    sshd_config.write_text(good)
    # The control: both are still ours to change, and to remove.
    r = host.lab("setup", *at(host), "--students", "2", "--course", "another")
    assert r.returncode == 0 and "another" in ours[0].read_text(), r
    # And if the file for sshd holds no more, there is still no shell.
    ours[1].unlink()
    host.sshd.send_signal(signal.SIGHUP)
    hosttree.until(lambda: host.lab("check", *at(host)).returncode == 1,
                   "another configuration of sshd", 20)
    r = answer(host, "ann", keys["ann"], "__import__('os').path.exists('/root')")
    assert r.stdout == "False\n", r
    r = answer(host, "ann", keys["ann"], "ls / #")
    assert "SyntaxError" in r.stderr or "NameError" in r.stderr, r
    assert host.lab("undo").returncode == 0 and not ours[0].exists()


@pytest.mark.parametrize("text", [
    "Match User cellblock-check\n  DisableForwarding no\n",
    "Match Address 192.0.2.0/24\n  ForceCommand /bin/sh\n"])
def test_what_sshd_does_with_a_student_is_asked_of_sshd(host, text):
    set_up(host)
    (host.etc / "ssh/sshd_config.d/00-theirs.conf").write_text(text)
    r = host.lab("check", *at(host))
    assert r.returncode == 1, r
    assert "sshd does not keep students in: " in r.stderr, r
    assert text.split()[-2].lower() in r.stderr, r


def test_an_interrupt_advises_to_remove_nothing(host):
    fifo = host.dir / "list"
    os.mkfifo(fifo)
    with subprocess.Popen(
            ["env", f"CELLBLOCK={host.binary}", *host.inside(TOOL, "add", fifo)],
            stderr=subprocess.PIPE, text=True) as p:
        with open(fifo, "wb"):     # once it has begun to read
            p.send_signal(signal.SIGINT)
            said = p.stderr.read()
    assert p.returncode == 1 and "interrupted: run it again" in said, said
    assert "undo" not in said


def test_a_full_disk_leaves_nothing_that_is_half(host):
    """Each file of ours as it was, and the next try goes on from there."""
    set_up(host)
    place = "/etc/cellblock/conf.d"
    r = host.run("sh", "-ec", f"cp -a {place} /run/kept; mount -t tmpfs -o "
                 f"size=16k,mode=755 x {place}; cp -a /run/kept/. {place}; "
                 f"cat /dev/zero > {place}/full || true")
    assert r.returncode == 0, r
    policy = host.etc / "cellblock/conf.d/50-lab.conf"
    before = policy.read_text()
    r = host.lab("setup", *at(host), "--students", "3")
    assert r.returncode == 1, r
    assert f"write {place}/50-lab.conf: No space left" in r.stderr, r
    assert policy.read_text() == before
    host.run("rm", f"{place}/full")
    r = host.lab("setup", *at(host), "--students", "3")
    assert r.returncode == 0 and "3 students" in policy.read_text(), r
    r = host.lab("undo")
    assert r.returncode == 0 and "changed since" not in r.stderr, r
    assert f"left: something is mounted at {place}" in r.stderr, r
    assert host.run("ls", "-A", place).stdout == "", r


def test_a_student_whose_step_fails_keeps_out_nobody_else(host):
    set_up(host)
    host.run("mkdir", "-m", "700", "/home/ann")         # and it is root's
    keys = {n: host.key(n) for n in ("ann", "bob")}
    csv = host.csv("".join(f"{n},{k.with_suffix('.pub').read_text()}"
                           for n, k in keys.items()))
    r = host.lab("add", csv)
    assert r.returncode == 1 and r.stdout.endswith("\n1 student may log in\n"), r
    assert "cellblock-lab: ann: add the key of ann: /home/ann/.ssh: Permission " \
        "denied\nMend that, and add the same list again\n" in r.stderr, r
    assert host.ask("bob", keys["bob"], "1").stdout == "1\n"
    host.run("chown", "ann:", "/home/ann")
    r = host.lab("add", csv)
    assert r.returncode == 0 and r.stdout.endswith("2 students may log in\n"), r
    assert host.ask("ann", keys["ann"], "1").stdout == "1\n"
    # remove names the file of the name: the next student with it has that, too.
    host.run("sh", "-ec", "mkdir -p /etc/cellblock/users; "
             "echo > /etc/cellblock/users/bob.conf")
    r = host.lab("remove", "ann", "bob")
    assert r.returncode == 0 and "left: /etc/cellblock/users/bob.conf" in r.stderr
    assert "ann.conf" not in r.stderr, r


def test_undo_says_what_it_cannot_read_and_leaves_who_is_not_from_here(host):
    set_up(host)
    host.run("useradd", "-G", "cellblock", "guest")
    r = host.lab("undo")
    assert r.returncode == 0, r
    assert "left: group cellblock has members who are not from here: guest" \
        in r.stderr, r
    assert "guest" in host.run("getent", "group", "cellblock").stdout
    host.run("sh", "-c", "echo '{' > /var/lib/cellblock/lab.json")
    r = host.lab("undo")
    assert r.returncode == 1 and "lab.json, which says what was made here, is " \
        "broken" in r.stderr and "Traceback" not in r.stderr, r


def test_a_purge_of_the_package_leaves_sshd_its_group(host):
    """Members of the group have sessions alone; without it they have a shell."""
    script = (TOP / "debian/cellblock.postrm").read_text().replace(
        "#DEBHELPER#", "")
    host.run("sh", "-ec", "mount -t tmpfs x /sys/fs/cgroup; "
             "groupadd -f cellblock; useradd -G cellblock ann")
    for members in True, False:
        r = host.run("sh", "-s", "purge", stdin=script)
        assert r.returncode == 0, r
        assert (host.run("getent", "group", "cellblock").returncode == 0) == members
        assert ("because of its members: ann" in r.stderr) == members, r
        # -f: the host may have processes of that number.
        host.run("userdel", "-f", "ann")


@pytest.fixture(scope="module")
def good(untouched):
    """A key that may be added, and the state of the host with it."""
    key = untouched.key("k").with_suffix(".pub").read_text().strip()
    return key, untouched.state()


@pytest.mark.parametrize("line, said", [
    ("Ann,{key}", "expected a name"), ("../x,{key}", "expected a name"),
    ("a b,{key}", "expected a name"), ("-rf,{key}", "expected a name"),
    ("ann,nothing", "expected NAME,KEY"), ("ann", "expected NAME,KEY"),
    ("ann,ssh-ed25519 AAAA", "ssh-keygen does not know"),
    ("ann,{key}\nann,{key}", "twice"), ("root,{key}", "already"),
    ("ann;{key}", "a comma between them, not a semicolon"),
    ("ann,{key},ann@x.org", "not 3 columns"),
    ("ann,{key} \x1b]0;x\x07", "without control characters"),
    ('ann,"{key}\nx"\nbob,nothing', "students.csv:4: expected NAME,KEY"),
    ("sudo,{key}", "groups named sudo already"),
    ("x" * 33 + ",{key}", "expected a name")])
def test_a_list_with_a_mistake_adds_nobody(untouched, good, line, said):
    key, before = good
    r = untouched.lab("add", untouched.csv(
        f"good,{key}\n" + line.format(key=key) + "\n"))
    assert r.returncode == 1 and said in r.stderr and "Nobody" in r.stderr, r
    assert untouched.state() == before


def test_a_list_that_is_not_there_is_named(untouched):
    r = untouched.lab("add", "/srv/students.csv")
    assert r.returncode == 1 and r.stderr == (
        "cellblock-lab: read /srv/students.csv: No such file or directory. "
        "Nobody was added\n"), r


@pytest.mark.parametrize("data, said", [
    (b"", " has no line NAME,KEY"), (b"name,key\r\n# all\n", " has no line"),
    (b"# all\nm\xfcller,ssh-ed25519 AAAA\n", ":2: expected UTF-8")])
def test_a_list_without_a_line_that_can_be_read_is_a_mistake(
        untouched, data, said):
    csv = untouched.csv("")
    csv.write_bytes(data)
    r = untouched.lab("add", csv)
    assert r.returncode == 1 and f"students.csv{said}" in r.stderr, r


def test_what_needs_a_laboratory_says_so(host):
    key = host.key("ann").with_suffix(".pub").read_text()
    before = host.state()
    for made in "true", "groupadd cellblock":
        host.run("sh", "-c", made)
        for args in ("add", host.csv(f"ann,{key}")), ("check",):
            r = host.lab(*args)
            assert r.returncode == 1 and r.stdout == "", r
            assert "no laboratory yet: run 'cellblock-lab setup'" in r.stderr
    host.run("groupdel", "cellblock")
    assert host.state() == before
    r = host.lab("setup", "--port", "65536")
    assert r.returncode == 2 and "a port from 1 to 65535" in r.stderr, r
    assert host.state() == before


def test_an_option_that_is_left_out_is_said(host):
    set_up(host, "--files", "/srv/python1")
    r = host.lab("setup", *at(host), "--students", "3")
    assert r.returncode == 0, r
    assert "left out this time: --files /srv/python1," in r.stderr, r
    r = host.lab("setup", *at(host), "--students", "4")
    assert r.returncode == 0 and "left out" not in r.stderr, r
    # check names an error of the configuration before it makes an account.
    (host.etc / "cellblock/conf.d/60-theirs.conf").write_text(
        "[cell]\ntimeout = soon\n")
    r = host.lab("check", *at(host))
    assert r.returncode == 1 and r.stdout == "", r
    assert "\ncellblock: /etc/cellblock/conf.d/60-theirs.conf:2: " in r.stderr


def test_a_dry_undo_names_no_student_as_a_stranger(host):
    set_up(host)
    add(host, "ann")
    r = host.lab("--dry-run", "undo")
    assert r.returncode == 0 and "not from here" not in r.stderr, r
    assert "would: groupdel cellblock" in r.stdout, r


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


def test_a_folder_may_have_any_name(host):
    set_up(host, "--files", '/srv/my \\ "course" ; 1')
    keys, _ = add(host, "ann")
    r = host.ask("ann", keys["ann"], "__import__('os').listdir('/srv')")
    assert r.stdout == repr(['my \\ "course" ; 1']) + "\n", r


def test_only_root_may(host):
    r = host.run("setpriv", "--reuid=65534", "--clear-groups", TOOL, "undo")
    assert r.returncode == 1 and "only root" in r.stderr, r


def test_root_checks_the_files_of_all_groups_and_persons(host):
    d = host.etc / "cellblock"
    for name in "groups", "users":
        (d / name).mkdir(parents=True)
    host.run("sh", "-c", "groupadd exam; useradd ann")
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
    r = host.run(host.binary, "--check-config")
    assert r.returncode == 0 and r.stderr == "", r
    # An exam of nobody's is said; its group may come later.
    (d / "groups" / "exams.conf").write_text("[cell]\ntimeout = 9s\n")
    (d / "users" / "anna.conf").write_text("")
    r = host.run(host.binary, "--check-config")
    assert r.returncode == 0 and r.stderr == (
        "cellblock: /etc/cellblock/groups/exams.conf: there is no group exams "
        "yet\ncellblock: /etc/cellblock/users/anna.conf: there is no account "
        "anna yet\n"), r


@pytest.mark.parametrize("path, remedy", [
    ("", "a+rx"), ("conf.d", "a+rx"), ("conf.d/60-x.conf", "a+r"),
    ("groups", "a+rx"), ("groups/ann.conf", "a+r"), ("cellblock.conf", "a+r")])
def test_root_is_told_what_others_cannot_read(host, path, remedy):
    """Root's umask is 077 on many a host, and then nobody has a session."""
    d = host.etc / "cellblock"
    for name in "conf.d", "groups":
        (d / name).mkdir(parents=True)
    for name in "conf.d/60-x.conf", "groups/ann.conf", "cellblock.conf":
        (d / name).write_text("[cell]\ntimeout = 9s\n")
    host.run("useradd", "ann")

    def both():
        return host.run(host.binary, "--check-config"), host.run(
            "env", "HOME=/", "setpriv", "--reuid=ann", "--regid=ann",
            "--init-groups", host.binary, "--check-config")
    for r in both():
        assert (r.returncode, r.stderr) == (0, ""), r
    (d / path).chmod(0o700 if "x" in remedy else 0o600)
    said = f"cellblock: /etc/cellblock/{path}".rstrip("/") + \
        ": expected to be readable by everybody"
    root, ann = both()
    assert root.returncode == 78 and \
        root.stderr == f"{said} (chmod {remedy})\n", root
    assert ann.returncode == 78 and \
        ann.stderr == f"{said} (as root: chmod {remedy})\n", ann
    if path == "groups/ann.conf":
        host.run("sh", "-c", f"cd /etc/cellblock/groups && "
                 "chgrp ann ann.conf && chmod 640 ann.conf")
        for r in both():
            assert (r.returncode, r.stderr) == (0, ""), r


STUDENTS = 30 if WHOLE else 6


@pytest.mark.alone("whole")
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
            reread(host)
            continue
        assert r.returncode == 0, (command, r)
    assert host.ask("bob", key, "1").returncode == 255, "he was removed"
    (host.etc / "cellblock" / "conf.d" / "60-hurried.conf").write_text(
        f"[cell]\ntimeout = {int(5 * PATIENCE)}s\ncpu = 5s\n")
    page.log_in_at_once(STUDENTS, lambda name, text: host.ask(name, key, text))
