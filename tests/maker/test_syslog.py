# SPDX-License-Identifier: MIT
"""The lines of sessions in the system log, read from a /dev/log of the test's own
mount namespace."""
import re
import socket
import subprocess

import pytest

import hindered
import hosttree
from exams import Exam, write
from world import PATIENCE

# All that a session needs of /dev, and a place for a socket.
OWN_DEV = """mkdir $0/dev && mount --rbind /dev $0/dev && mount -t tmpfs x /dev &&
for f in null zero full random urandom tty; do
  : >/dev/$f && mount --bind $0/dev/$f /dev/$f || exit; done
mkdir /dev/pts /dev/shm && mount --rbind $0/dev/pts /dev/pts &&
ln -s pts/ptmx /dev/ptmx && ln -s /proc/self/fd /dev/fd"""


class Log:
    def __init__(self, host):
        subprocess.run([*host.inside(), "sh", "-c", OWN_DEV, str(host.dir)],
                       check=True)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        path = f"/proc/{host.holder.pid}/root/dev/log"
        self.socket.bind(path)
        subprocess.run([*host.inside(), "chmod", "666", "/dev/log"],
                       check=True)
        self.lines = []

    def read(self):
        while True:
            try:
                data = self.socket.recv(8192, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return self.lines
            self.lines.append(data.decode().rstrip("\n\0"))

    def until(self, pattern):
        """The first line that matches."""
        found = []

        def there():
            found[:] = [m for line in self.read()
                        if (m := re.search(pattern, line))]
            return found
        hosttree.until(there, lambda: f"{pattern} in {self.lines}")
        return found[0]


@pytest.fixture(name="first_log")
def _first_log(host):
    """Of a host on which nothing has started yet."""
    log = Log(host)
    yield log
    log.socket.close()


@pytest.fixture(name="log")
def _log(host, first_log):
    # A program starts within it.
    host.policy(f"[cell]\ntimeout = {3 * PATIENCE:.0f}s\ncpu = 5m\n")
    host.start()
    return first_log


def test_who_came_from_where_and_how_it_ended(host, log):
    ann, bob = host.people
    ann.env["SSH_CONNECTION"] = "192.0.2.7 4711 192.0.2.1 22"
    s = ann.session().start()
    first = log.until(rf"cellblock\[(\d+)\]: {ann.name}: session 1 started "
                      r"from 192\.0\.2\.7$")
    log.until(rf"cellblock-maker\[\d+\]: {ann.name} \(uid {ann.uid}\): a "
              r"session as host id \d+")
    s.run("import time; time.sleep(99)")
    log.until(rf"cellblock\[{first[1]}\]: {ann.name}: limit struck: cell.timeout$")
    assert s.leave() == 0
    log.until(rf"cellblock\[{first[1]}\]: {ann.name}: ended with status 0, "
              r"CPU time \S+ m?s, memory at most \S+ [KMG]iB$")
    assert bob.run("--login", env={"SSH_ORIGINAL_COMMAND": "1 + 1"}).out \
        == b"2\n"
    log.until(rf"{bob.name}: program started")
    log.until(rf"{bob.name}: ended with status 0")


def test_what_came_too_late_is_said_with_its_exercise(host, log):
    ann = host.people[0]
    place = host.dir / "submissions"
    place.mkdir(mode=0o755)
    host.policy(f"[lab]\ncourse = python1\nexercise = 4\nsubmit = {place}\n"
                "deadline = 2000-01-01 10:00\n")
    s = ann.session().start()
    s.run("_ = open('a.py', 'w').write('1')")
    s.run(":submit a.py")
    log.until(rf"cellblock-maker\[\d+\]: {ann.name} could not hand in "
              "python1/4: exercise 4 was due")
    s.leave()


def test_an_end_from_outside_has_its_reason(host, log):
    ann, bob = host.people
    s = ann.session().start()
    assert ann.run("--end", "1", "-m", "lunch\x1b[31m").code == 0
    s.wait_exit()
    line = log.until(rf"{ann.name}: ended by the person: (.*)$")
    assert line[1].startswith("lunch") and "\x1b" not in line[1]
    t = bob.session().start()
    assert host.root().run("--end", f"{bob.name}/1", "-m", "the room closes",
                           ).code == 0
    t.wait_exit()
    log.until(rf"{bob.name}: ended by root: the room closes$")


def test_a_terminal_that_leaves_and_comes_is_there(host, log):
    ann, _ = host.people
    s = ann.session().start()
    s.run("x = 1")
    s.type(":detach\r")
    s.expect("goes on for")
    log.until(rf"{ann.name}: detached")
    s = ann.session("--attach", "1").start()
    log.until(rf"{ann.name}: attached")
    s.leave()


def test_nothing_is_logged_where_that_is_off(host, log):
    host.policy("[log]\nsyslog = no\n")
    ann, _ = host.people
    s = ann.session().start()
    assert s.leave() == 0
    host.policy("")
    assert ann.run("-c", "print(1)").out == b"1\n"
    log.until(rf"{ann.name}: program started")
    assert not [x for x in log.lines if "session 1 started" in x], log.lines


def test_what_hangs_at_an_exams_end_is_said(host, first_log):
    """The hand-in is lost, and the log says so."""
    short = hindered.short_alarms(host.dir)
    host.under = ["env", *(f"{k}={v}" for k, v in short.items())]
    exam = Exam(host)
    ann, s = exam.sit()
    write(s, "a.py", "1")
    with exam.hand_in_locked(ann):
        s.leave()
        first_log.until(
            rf"{ann.name}: what the home has was not handed in at the end: "
            r"a step of it took more than 60 s$")


def test_what_was_handed_in_before_needs_no_room_at_an_exams_end(
        host, first_log):
    ann, s = Exam(host).sit(lab="quota = 40K\n")
    write(s, "a.py", "1" * 20000)
    s.run(":submit a.py")
    s.leave()
    first_log.until(rf"{ann.name}: .* has nothing new to hand in$")
    assert not [x for x in first_log.lines if "was not handed" in x], \
        first_log.lines
