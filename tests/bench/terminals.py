# SPDX-License-Identifier: MIT
"""Commands on terminals, and when they wrote what. No screen is kept: that would
take longer than what is measured."""
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time

import term

PATIENCE = 60
MOST = 65536            # bytes at a time
LONGEST = 1000          # that a mark may be
QUIET = 0.03            # seconds after which nothing more of an answer comes


class Terminal:
    """A command on a pty of its own, and every byte that it has written."""

    def __init__(self, argv, env, cwd="/"):
        self.fd, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.seen = bytearray()
        self.begun = time.perf_counter()
        self.process = subprocess.Popen(
            [term.SETSID, "--ctty", *argv], stdin=slave, stdout=slave,
            stderr=slave, env=env, cwd=cwd)
        os.close(slave)

    def read(self):
        """Whether there was something: the command has not ended."""
        try:
            data = os.read(self.fd, MOST)
        except OSError:
            data = b""
        self.seen += data
        return bool(data)

    def until(self, mark, since=0):
        """The moment at which what it wrote after `since` bytes had `mark`, a
        regular expression."""
        end = time.perf_counter() + PATIENCE
        while not re.search(mark, self.seen[max(
                since, len(self.seen) - MOST - LONGEST):]):
            if not select.select([self.fd], [], [], 1)[0]:
                assert time.perf_counter() < end, (mark, self.seen[-500:])
            else:
                assert self.read(), (mark, self.seen[-500:])
        return time.perf_counter()

    def settle(self):
        while select.select([self.fd], [], [], QUIET)[0] and self.read():
            pass

    def ask(self, line, mark):
        """The seconds from Enter to `mark`, at a prompt that is there."""
        self.settle()
        since, start = len(self.seen), time.perf_counter()
        os.write(self.fd, line.encode() + b"\r")
        return self.until(mark, since) - start

    def end(self):
        self.process.terminate()
        self.process.wait()
        os.close(self.fd)


def at_once(argvs, mark, env):
    """Start commands, each on a terminal: the seconds until each has written
    `mark`, in order, and the terminals. They are still there."""
    times, begun = [], time.perf_counter()
    terminals = [Terminal(argv, env) for argv in argvs]
    waiting = {t.fd: t for t in terminals}
    while waiting and time.perf_counter() - begun < PATIENCE:
        for fd in select.select(list(waiting), [], [], 1)[0]:
            alive = waiting[fd].read()
            if re.search(mark, waiting[fd].seen):
                times.append(time.perf_counter() - begun)
            elif alive:
                continue
            del waiting[fd]
    return times, terminals
