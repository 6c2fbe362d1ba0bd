# SPDX-License-Identifier: MIT
"""A laboratory: root's maker, a real sshd as our snippet sets it, and people who
log in over it. For root."""
import json
import os
import pathlib
import signal
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "lib"), str(HERE.parent / "maker")]

import hosttree  # noqa: E402
import makerhost  # noqa: E402
import sshhost  # noqa: E402
import term  # noqa: E402

POLICY = """[policy]
locked = yes
[session]
maker = require
memory = 256M
per_user = 2
cpus = 1
"""


class Lab:
    def __init__(self, people, policy=POLICY, spare=1):
        self.host = makerhost.Host(
            [makerhost.ACCOUNTS.take() for _ in range(people)])
        self.people, self.open = self.host.people, []
        self.host.spare = spare
        self.host.policy(policy)
        self.host.start()
        makerhost.ready(self.host, spare * makerhost.KINDS)
        self.ssh = sshhost.Ssh(self.host)

    def login(self, person):
        s = term.Session(self.ssh.argv(person, "-tt"),
                         env={**os.environ, "TERM": "xterm-256color"})
        self.open.append(s)
        return s

    def end_sessions(self):
        for s in self.open:
            s.close()
        self.open = []
        for p in self.people:
            p.end_sessions()

    def close(self):
        self.end_sessions()
        self.ssh.close()
        self.host.close()
        makerhost.ACCOUNTS.close()


# Keeps a terminal for a hostile student: types the cell at each prompt, and
# throws away what it writes. One process for all of them, which uses little.
HOSTILE = """
import json, os, pty, select, subprocess, sys, time
who = json.loads(sys.stdin.readline())
seen, cells = {}, {}
for argv, cell in who:
    master, slave = pty.openpty()
    subprocess.Popen(["setsid", "--ctty", *argv], stdin=slave, stdout=slave,
                     stderr=slave)
    os.close(slave)
    seen[master], cells[master] = b"", cell.encode() + b"\\r"
began = set()
while seen:
    for fd in select.select(list(seen), [], [])[0]:
        try:
            data = os.read(fd, 65536)
        except OSError:
            del seen[fd]
            continue
        seen[fd] = (seen[fd] + data)[-200:]
        if b">>> " in seen[fd]:
            seen[fd] = b""
            os.write(fd, cells[fd])
            if fd not in began:
                began.add(fd)
                print(len(began), flush=True)
"""


class Hostile:
    """Students who run one cell again and again."""

    def __init__(self, lab, people, cells):
        whom = [(lab.ssh.argv(p, "-tt"), cells[i % len(cells)])
                for i, p in enumerate(people)]
        self.process = subprocess.Popen(
            ["/usr/bin/python3", "-S", "-c", HOSTILE], text=True,
            env={**os.environ, "TERM": "xterm-256color"},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.lab, self.people = lab, people
        self.process.stdin.write(json.dumps(whom) + "\n")
        self.process.stdin.flush()
        for _ in people:    # each has begun
            self.process.stdout.readline()

    def close(self):
        children = pathlib.Path(
            f"/proc/{self.process.pid}/task/{self.process.pid}/children"
        ).read_text().split()
        self.process.kill()
        self.process.communicate()
        hosttree.send(map(int, children), signal.SIGTERM)
        for p in self.people:
            p.end_sessions()
