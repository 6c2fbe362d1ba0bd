# SPDX-License-Identifier: MIT
"""Three hosts behind HAProxy, as the page has it: each in namespaces of its own
for mounts, the network and the name, with its own sshd, maker and /run. Students
come over ssh, each from an address of their own."""
import fcntl
import itertools
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time

import pytest

import hosttree
import sshd
import term
from makerhost import ACCOUNTS, Host
from netns import Net, PATH, change, wait
from world import IS_ROOT, PATIENCE, TESTS

PAGE = (TESTS.parent / "docs" / "LAB.md").read_text()
PROXY = "10.8.0.254"
NAMES = "lab1", "lab2", "lab3"
# Of two students of makerhost.Host, and one more.
STUDENTS = 3

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(not IS_ROOT, reason="network namespaces need root"),
    *(pytest.mark.skipif(not shutil.which(tool, path=PATH),
                         reason=f"{tool} is not installed")
      for tool in ("haproxy", "ip", "socat", "sshd", "ssh")),
]


def commands_of_the_page(prompt, word):
    """The commands behind this prompt that have the word."""
    found = [c for c in re.findall(rf"(?m)^    {prompt} (.*)$", PAGE)
             if word in c]
    assert found, (prompt, word)
    return found


def haproxy_of_the_page():
    """The indented block that begins with "global"."""
    lines = PAGE[PAGE.index("\n    global\n") + 1:].splitlines()
    return "".join(line[4:] + "\n" for line in itertools.takewhile(
        lambda line: line[:4].strip() == "", lines))


class Machine(Host):
    """One of the hosts."""

    APART = ["-m", "-n", "-u"]

    def __init__(self, lab, number, accounts):
        super().__init__(accounts)
        self.lab, self.name, self.sshd = lab, f"lab{number}", None
        self.number = number
        self.spare = int(number == 2)  # one with sessions that are made ahead
        self.within("sh", "-c", f"""set -e
            echo {self.name} > /proc/sys/kernel/hostname
            ip link set lo up
            mkdir -p /run/sshd""")
        self.configure()

    def within(self, *argv):
        r = subprocess.run(self.inside() + list(argv), capture_output=True,
                           text=True, check=False, timeout=60 * PATIENCE)
        assert r.returncode == 0, r
        return r.stdout

    def configure(self, policy=""):
        """As the page has it, with this test's directories."""
        (self.etc / "conf.d").mkdir(exist_ok=True)
        command, = commands_of_the_page("root@lab1#", "reach")
        self.page(change(command, {
            "hosts = /srv/hosts": f"hosts = {self.lab.shared}",
            "-p 2201 lab": f"-p {2200 + self.number} {PROXY}"}))
        self.policy(f"""{policy}
[session]
maker = require
per_user = 3
[lab]
course = python1
exercise = 4
submit = {self.lab.handed}/{{course}}
[policy]
locked = yes
""")

    def page(self, command):
        """Run a command of the page on this host."""
        self.within("sh", "-c", command)

    def up(self):
        if not self.maker or self.maker.poll() is not None:
            self.start()
        config = self.dir / "sshd"
        config.write_text(f"""\
ListenAddress 10.8.0.{self.number}:22
HostKey {self.lab.dir}/hostkey
{sshd.KEX}
PidFile none
UsePAM no
StrictModes no
AuthorizedKeysFile {self.lab.dir}/key.pub
PasswordAuthentication no
ForceCommand {self.binary} --login
ClientAliveInterval 10
""")
        with open(self.dir / "sshd.log", "ab") as log:
            self.sshd = subprocess.Popen(
                [*self.inside(), sshd.find(), "-D", "-e", "-f", str(config)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def die(self):
        """As a machine that goes down, as far as others can see."""
        self.kill(signal.SIGKILL)
        self.sshd.kill()
        self.sshd.wait()

    def close(self):
        if self.sshd and self.sshd.poll() is None:
            self.sshd.terminate()
            self.sshd.wait()
        super().close()


class Lab:
    def __init__(self):
        self.dir = TESTS.__class__(tempfile.mkdtemp(prefix="cbtest-hosts-"))
        self.dir.chmod(0o755)
        self.shared, self.handed = self.dir / "hosts", self.dir / "handed"
        self.shared.mkdir(mode=0o700)
        self.handed.mkdir(mode=0o700)
        for name in ("hostkey", "key"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f",
                            self.dir / name], check=True)
        self.accounts = [ACCOUNTS.take() for _ in range(STUDENTS)]
        self.names = [name for name, *_ in self.accounts]
        self.hub, self.hosts, self.proxy = Net(), [], None
        self.open = []

    def begin(self):
        self.hub("ip", "link", "add", "br0", "type", "bridge")
        for last in (254, *range(100, 100 + STUDENTS)):
            self.hub("ip", "addr", "add", f"10.8.0.{last}/24", "dev", "br0")
        self.hub("ip", "link", "set", "br0", "up")
        for n, name in enumerate(NAMES, 1):
            m = Machine(self, n, self.accounts)
            self.hosts.append(m)
            self.hub("ip", "link", "add", name, "type", "veth", "peer", "name",
                     "eth0", "netns", str(m.holder.pid))
            self.hub("ip", "link", "set", name, "master", "br0", "up")
            m.within("ip", "addr", "add", f"10.8.0.{n}/24", "dev", "eth0")
            m.within("ip", "link", "set", "eth0", "up")
            m.up()
        self.admin = self.dir / "admin.sock"
        config = self.dir / "haproxy.cfg"
        # A busy host has an sshd say its version later than at the next check.
        config.write_text(change(haproxy_of_the_page(), {
            "timeout connect 5s":
                f"timeout connect 5s\n    timeout check {int(5 * PATIENCE)}s",
            "log /dev/log local0": "log stdout format raw local0",
            "/run/haproxy/admin.sock": str(self.admin)}))
        self.log = open(self.dir / "proxy.log", "w+")
        self.proxy = subprocess.Popen(
            self.hub.wrap("haproxy", "-db", "-f", str(config)),
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        wait(self.all_are_up, "the hosts to be up")
        wait(lambda: all((self.shared / n / ".host").exists() for n in NAMES),
             "the hosts to say so")

    def tell_proxy(self, text):
        """As the page does."""
        return self.proxy_command(f"echo '{text}' | socat - {self.admin}")

    def proxy_command(self, command):
        r = subprocess.run(["sh", "-c", command], capture_output=True,
                           text=True, check=False, timeout=30 * PATIENCE)
        assert r.returncode == 0 and not r.stderr, r
        return r.stdout

    def state_of(self, server):
        """Of the backend: what HAProxy thinks."""
        for row in self.tell_proxy("show stat").splitlines():
            fields = row.split(",")
            if fields[:2] == ["lab", server]:
                return fields[17]
        return None

    def all_are_up(self):
        assert self.proxy.poll() is None, (self.dir / "proxy.log").read_text()
        with socket.socket(socket.AF_UNIX) as s:    # it is there before it listens
            listens = s.connect_ex(str(self.admin)) == 0
        return listens and all(self.state_of(n) == "UP" for n in NAMES)

    def ssh(self, n, *options, port=22):
        """Student `n` comes from an address of the student's own, and knows one
        host."""
        known = self.dir / f"known{n}"
        new = "no" if known.exists() else "accept-new"
        return self.hub.wrap(
            "ssh", "-F", "none", "-b", f"10.8.0.{100 + n}", "-p", str(port),
            "-i", str(self.dir / "key"), "-o", f"UserKnownHostsFile={known}",
            "-o", f"StrictHostKeyChecking={'yes' if new == 'no' else new}",
            "-o", "HostKeyAlias=lab", "-o", "BatchMode=yes", *options,
            f"{self.names[n]}@{PROXY}")

    def session(self, n, port=22):
        s = term.Session(self.ssh(n, "-tt", port=port), size=(24, 120),
                         env={**os.environ, "TERM": "xterm-256color"})
        self.open.append(s)
        return s

    def run(self, n, *command, port=22):
        return subprocess.run(
            [*self.ssh(n, "-T", port=port), *command], text=True,
            capture_output=True, check=False, stdin=subprocess.DEVNULL,
            timeout=60 * PATIENCE)

    def where(self, n):
        """The hosts on which the student has sessions, by what they share."""
        return [path.parent.name for path in sorted(self.shared.glob("*/*"))
                if path.name.partition(".")[2] == self.names[n]]

    def at(self, n):
        """The one host."""
        found = wait_for(lambda: self.where(n))
        assert len(found) == 1, found
        return self.hosts[NAMES.index(found[0])]

    def drop(self, n, session, host=None):
        """The line is cut; the session goes on."""
        host = host or self.at(n)
        session.process.kill()
        session.process.wait()
        person = host.people[n]
        wait(lambda: '"detached": true' in person.run(
            "--sessions", "--json").text, "the session to be alone")

    def end(self):
        for s in self.open:
            s.close()
        for h in self.hosts:
            for person in h.people:
                person.run("--end", "all")
            h.close()
        if self.proxy:
            self.proxy.terminate()
            self.proxy.wait(30 * PATIENCE)
            self.log.close()
        self.hub.end()
        for name, uid, home in self.accounts:
            ACCOUNTS.free.append((name, uid, home))
        shutil.rmtree(self.dir, ignore_errors=True)


def wait_for(get):
    got = []

    def look():
        got[:] = [get()]
        return got[0]
    wait(look, "what is shared")
    return got[0]


@pytest.fixture(name="lab")
def _lab():
    lab = Lab()
    try:
        lab.begin()
        yield lab
    finally:
        lab.end()


def said(text):
    """A pattern for words that the screen may break anywhere."""
    return r"\s+".join(re.escape(word) for word in text.split())


def is_on(host):
    return (r"your\s+session\s+from\s+\d\d:\d\d\s+is\s+on\s+" + host.name
            + r"\s+·\s+" + said(f"ssh -p {2200 + host.number} {PROXY} goes there"))


@pytest.mark.limit(240)
def test_a_student_comes_back_to_the_host_where_the_session_is(lab):
    """Each of three has another host, and none is warned of a host key."""
    sessions = []
    for n in range(STUDENTS):
        s = lab.session(n).start()
        assert s.run(f"x = {n}") == ""
        sessions.append(s)
    hosts = [lab.at(n) for n in range(STUDENTS)]
    assert sorted(h.name for h in hosts) == list(NAMES)
    for n, s in enumerate(sessions):
        lab.drop(n, s)
        again = lab.session(n)
        again.expect(said("is still here"))
        assert "is on lab" not in again.all_text()
        again.type("\r")
        assert again.start().run("x") == str(n)
    # A student reads of no others. Root reads of all, and of where.
    assert all(os.stat(lab.shared / n).st_mode & 0o777 == 0o700 for n in NAMES)
    rows = hosts[0].root().run("--sessions").text
    assert all(re.search(rf"(?m)^{h.name} +{lab.names[n]} ", rows)
               for n, h in enumerate(hosts) if n), rows
    r = lab.run(1, "sessions")
    assert lab.names[1] in r.stdout and lab.names[0] not in r.stdout, r
    # A session that has ended is told no more.
    assert again.leave() == 0
    wait(lambda: not lab.where(STUDENTS - 1), "the session to be removed")


@pytest.mark.limit(240)
def test_where_the_proxy_has_forgotten_the_login_says_where_the_session_is(lab):
    s = lab.session(0).start()
    s.run("x = 41")
    host = lab.at(0)
    lab.drop(0, s)
    lab.tell_proxy("clear table lab")
    lab.tell_proxy(f"set server lab/{host.name} state drain")
    new = lab.session(0)
    new.expect(is_on(host))
    assert "NameError" in new.start().run("x")
    r = lab.run(0, "sessions")
    rows = [row.split()[:4] for row in r.stdout.splitlines()]
    assert [host.name, lab.names[0], "(on", f"{host.name})"] in rows, r
    assert lab.run(0, "attach", "7").stderr.count(f"is on {host.name}") == 1
    # To the port of that host: and port 22 knows the way again.
    assert new.leave() == 0
    back = lab.session(0, 2200 + host.number)
    back.expect(said("is still here"))
    back.type("\r")
    assert back.start().run("x + 1") == "42"
    lab.drop(0, back, host)
    back = lab.session(0)
    back.expect(said("is still here"))
    back.type("\r")
    assert back.start().run("x + 2") == "43"


@pytest.mark.limit(240)
def test_a_host_that_drains_takes_nobody_new_and_ends_nobody(lab):
    s = lab.session(0).start()
    s.run("x = 41")
    host = lab.at(0)
    for command in commands_of_the_page("root@proxy#", "state drain"):
        lab.proxy_command(change(command, {
            "lab/lab1": f"lab/{host.name}",
            "/run/haproxy/admin.sock": str(lab.admin)}))
    for command in commands_of_the_page("root@lab1#", "drain = yes"):
        host.page(command)
    assert s.run("x += 1; x") == "42"
    lab.drop(0, s)
    wait(lambda: '"drain": true' in (lab.shared / host.name / ".host")
         .read_text(), "the host to say so")
    # A student with a session comes back to it, by the same port.
    s = lab.session(0)
    s.expect(said("is still here"))
    s.type("\r")
    assert s.start().run("x") == "42"
    s.run("open('a.py', 'w').write('x')")
    assert "receipt" in s.run(":submit a.py")
    # Others go elsewhere, or read where they get one.
    for n in (1, 2):
        lab.session(n).start()
        assert lab.at(n) is not host
    r = lab.run(1, "6 * 7", port=2200 + host.number)
    assert r.returncode == 75 and f"{host.name} takes no new sessions now" in \
        r.stderr, r
    other = re.search(rf"log in on another host: ssh -p 220(\d) {PROXY}", r.stderr)
    assert other and int(other[1]) != host.number, r
    assert s.run("x") == "42"
    # And back.
    for command in commands_of_the_page("root@lab1#", "rm /etc"):
        host.page(command)
    assert lab.run(1, "6 * 7", port=2200 + host.number).stdout == "42\n"


@pytest.mark.limit(240)
def test_after_a_host_has_died_the_next_login_goes_elsewhere_and_is_told(lab):
    s = lab.session(0).start()
    s.run("x = 41")
    host = lab.at(0)
    host.die()
    wait(lambda: lab.state_of(host.name) == "DOWN", "the proxy to find out")
    # The line ends with the host.
    assert s.wait_exit() == 255
    file = lab.shared / host.name / ".host"
    last = time.time() - 40
    os.utime(file, (last, last))
    new = lab.session(0)
    said = new.expect(
        r"your\s+session\s+from\s+\d\d:\d\d\s+was\s+on\s+" + host.name
        + r",\s+which\s+has\s+not\s+been\s+heard\s+of\s+for\s+(\d+)\s+s")
    assert 40 <= int(said[1]) <= time.time() - last + 1, said
    assert new.start().run("6 * 7") == "42"
    # It was the network: the session goes on.
    host.up()
    wait(lambda: lab.state_of(host.name) == "UP", "the host to be back")
    back = lab.session(0, 2200 + host.number)
    back.expect(r"\[your\s+session\s+from\s+\S+\s+is\s+still\s+here|"
                r"is\s+on\s+another\s+terminal")
    back.type("a" if "another terminal" in back.all_text() else "\r")
    assert back.start().run("x + 1") == "42"
    # A file without a session is removed: as one of before a start of the host.
    stale = lab.shared / host.name / f"2130706433.{lab.names[1]}"
    stale.touch()
    wait(lambda: not stale.exists(), "the rest to be removed")
    assert lab.where(0).count(host.name) == 1


@pytest.mark.limit(240)
def test_files_are_handed_in_from_two_hosts_at_once(lab):
    both = [lab.session(0, 2201).start()]
    assert lab.at(0) is lab.hosts[0]
    both.append(lab.session(0, 2202))
    both[1].expect(is_on(lab.hosts[0]))
    both[1].start()
    for i, s in enumerate(both):
        s.run(f"open('f{i}.py', 'w').write('{i}')")
    place = lab.handed / "python1" / "4" / lab.names[0]
    each = 6
    for k in range(each):
        rows = [s.enter(f":submit f{i}.py") for i, s in enumerate(both)]
        for row, s in zip(rows, both):
            s.expect_since(row, r"receipt\s+[0-9a-f]{4}-[0-9a-f]{2}")
            s.start()
    assert sorted(int(p.name) for p in place.iterdir()
                  if p.name[0] != ".") == list(range(1, 2 * each + 1))
    # Homes are shared: so are the places of a person.
    third = lab.session(0, 2203).start()
    r = lab.run(0, "6 * 7", port=2203)
    assert r.returncode == 75 and "there are 3 sessions already" in r.stderr, r
    assert third.leave() == 0
    newest = place / str(2 * each)
    assert {p.name: p.read_text() for p in newest.iterdir()} == {
        "f0.py": "0", "f1.py": "1"}
    # NFS keeps the locks of files alone: one that another host holds counts.
    with open(place / ".lock", "r+", encoding="ascii") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        row = both[0].enter(":submit f0.py")
        both[0].expect_since(row, said("you are handing in something else"))
    assert "receipt" in both[0].start().run(":submit f0.py")


def test_a_directory_that_does_not_answer_holds_no_login_up(host):
    """As where the machine is gone that has it: a read waits, and so does what
    writes."""
    shared = host.dir / "hosts"
    (shared / "lab9").mkdir(parents=True)
    host.policy(f"[maker]\nhosts = {shared}\n")
    host.start()
    ann = host.people[0]
    wait(lambda: list(shared.glob("*/.host")), "the host to say so")
    herald, = [pid for pid in hosttree.descendants(host.maker.pid)
               if hosttree.status_of(pid).get("Name") == "cellblock-hosts"]
    os.kill(herald, signal.SIGSTOP)
    os.mkfifo(shared / "lab9" / ".host")
    s = ann.session().start()
    assert s.run("6 * 7") == "42"
    assert re.search(said("look for sessions on other hosts"), s.all_text())
    assert not list(shared.glob("*/[0-9]*"))
    os.kill(herald, signal.SIGCONT)
    wait(lambda: [p.name.partition(".")[2] for p in shared.glob("*/[0-9]*")]
         == [ann.name], "the session to be told")
    # A directory that is not mounted is not filled.
    (shared / "lab9" / ".host").unlink()
    host.policy(f"[maker]\nhosts = {shared}/gone\n")
    assert ann.session().start().run("1") == "1"
    assert not (shared / "gone").exists()


def test_a_host_of_the_same_name_is_left_alone(host):
    """Each would remove what the other has written; a host that has started anew
    waits until what it was before is silent."""
    shared = host.dir / "hosts"
    shared.mkdir()
    host.policy(f"[maker]\nhosts = {shared}\n")
    host.start()
    ann = host.people[0]
    state, = wait_for(lambda: list(shared.glob("*/.host")))
    state.write_text('{"boot": "another"}')
    theirs = state.with_name(f"2130706433.{ann.name}")
    theirs.touch()
    s = ann.session().start()
    assert s.run("6 * 7") == "42"
    assert list(state.parent.glob("[0-9]*")) == [theirs]
    assert state.read_text() == '{"boot": "another"}'
    os.utime(state, (time.time() - 40,) * 2)
    wait(lambda: not theirs.exists(), "the other's to be removed")
    assert [p.name.partition(".")[2] for p in
            wait_for(lambda: list(state.parent.glob("[0-9]*")))] == [ann.name]
