# SPDX-License-Identifier: MIT
"""A guest without a jail: the driver, its socket, its terminals.

A test plays the warden for its Guest.

$GUEST_PYTHON names another interpreter to test the driver with.
"""
import array
import binascii
import functools
import os
import pathlib
import re
import select
import signal
import socket
import subprocess
import termios
import time
import tty

import pytest

from hosttree import PATIENCE

JAIL = pathlib.Path(__file__).resolve().parents[2] / "jail"
PYTHON = os.environ.get("GUEST_PYTHON", "/usr/bin/python3")
BUILD = JAIL.parent / os.environ.get("BUILD", "build")
LOAD = (BUILD / "gen/guest_load").read_text()
# The limits of the jail, which follow the driver itself: 512 MiB, one core.
LIMITS = str(512 << 20), "1000"
PARTS = (BUILD / "gen/guest_parts").read_bytes()
# Those that a single cell has.
CELL = (BUILD / "gen/guest_cell").read_bytes()
# A Python for which the driver is not compiled runs its source.
FOREIGN_PARTS, FOREIGN_CELL = (bytes(4) + p[4:] for p in (PARTS, CELL))
LIBRARY = (BUILD / "gen/guest_copy.so").read_bytes()
DEADLINE = 20 * PATIENCE
MARK = "0123456789abcdef0123456789abcdef"


def until(condition, what):
    """Wait for a condition. On timeout the test fails and names it."""
    end = time.monotonic() + DEADLINE
    while time.monotonic() < end:
        got = condition()
        if got:
            return got
        time.sleep(0.002)
    pytest.fail("waited %d s for %s" % (DEADLINE, what))


@functools.lru_cache(maxsize=None)
def plain_python(code, python=PYTHON):
    """The output of a program under plain Python: the control."""
    return subprocess.run(
        [python, "-s", "-c", code], capture_output=True, text=True,
        check=True, env={"PATH": "/usr/bin:/bin"}).stdout


def memory(data=b""):
    """A memory file with these bytes."""
    fd = os.memfd_create("driver")
    os.write(fd, data)
    return fd


def receive(sock):
    sock.settimeout(DEADLINE)
    return sock.recv(65536)


class Checkpoint:
    def __init__(self, guest, sock, asleep):
        self.guest, self.sock = guest, sock
        word, pid, names, threads = asleep.split()
        assert word == b"ASLEEP"
        self.pid, self.names, self.threads = int(pid), int(names), int(threads)

    def resume(self):
        """Go back: the live guest dies, the checkpoint takes its place."""
        self.guest.kill()
        self.sock.send(b"RESUME")
        word, pid, names = receive(self.sock).split()
        assert (word, int(pid)) == (b"AWAKE", self.pid)
        self.guest.ctl, self.guest.pid = self.sock, self.pid
        return int(names)


class Guest:
    def __init__(self, home, python=PYTHON, env=None, library=True,
                 foreign=False):
        self.home, self.python = home, python
        self.env = {"PATH": "/usr/bin:/bin", "HOME": str(home),
                    "LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"}
        self.env.update(env or {})
        self.cells = self.parks = self.asks = 0
        self.pid, self.seen, self.pids = None, b"", []
        self.master, self.slave = os.openpty()
        self.line, line_slave = os.openpty()
        tty.setraw(line_slave)
        mode = termios.tcgetattr(self.slave)
        mode[1] &= ~termios.OPOST
        termios.tcsetattr(self.slave, termios.TCSANOW, mode)
        self.ctl, theirs = socket.socketpair(
            socket.AF_UNIX, socket.SOCK_SEQPACKET)
        driver = memory(FOREIGN_PARTS if foreign else PARTS)
        lib = memory(LIBRARY if library else b"")
        self.stack = memory()
        fds = [driver, theirs.fileno(), line_slave, self.slave, lib,
               self.stack]
        self.pid = os.fork()
        if self.pid == 0:
            self.become(fds)
        self.pids.append(self.pid)
        theirs.close()
        for fd in line_slave, driver, lib:
            os.close(fd)
        self.ready = receive(self.ctl)

    def become(self, fds):
        try:
            os.setsid()
            for fd in 0, 1, 2:
                os.dup2(self.slave, fd)
            for fd in os.listdir("/proc/self/fd"):
                try:
                    os.set_inheritable(int(fd), int(fd) < 3 or int(fd) in fds)
                except OSError:
                    pass  # this descriptor listed the directory and is closed
            os.chdir(self.home)
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            os.execve(self.python, [
                self.python, "-I", "-S", "-c", LOAD,
                str(fds[0]), *LIMITS, *map(str, fds[1:]), "1000"], self.env)
        finally:
            os._exit(127)

    def kill(self):
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            if self.pid in self.pids:
                os.waitpid(self.pid, 0)
                self.pids.remove(self.pid)
            self.pid = None

    def close(self):
        self.kill()
        for fd in self.master, self.slave, self.line, self.stack:
            os.close(fd)
        self.ctl.close()

    # ---- the terminal, and messages of the guest ----

    def drain(self):
        while select.select([self.master], [], [], 0)[0]:
            try:
                self.seen += os.read(self.master, 65536)
            except OSError:
                return

    def say(self):
        """The next message; the terminal is read meanwhile."""
        end = time.monotonic() + DEADLINE
        while time.monotonic() < end:
            ready, _, _ = select.select([self.ctl, self.master], [], [], 1)
            self.drain()
            if self.ctl in ready:
                return self.ctl.recv(65536)
        pytest.fail("waited %d s for a message of the guest" % DEADLINE)

    def screen(self):
        """The new text on the terminal since the last call, without marks."""
        self.drain()
        seen, self.seen = self.seen, b""
        return re.sub(rb"\x1b_%s(\x1b\\|\x07)" % MARK.encode(), b"", seen).decode(
            "utf-8", "replace")

    # ---- messages of the warden ----

    def start(self, source, kind=None):
        self.took(self.send(source, kind))

    def send(self, source, kind=None):
        """Announce a cell. Returns what took() writes."""
        if isinstance(source, str):
            source = source.encode()
        self.cells += 1
        self.ctl.send(b"CELL %d %d %d %s" % (
            self.cells, len(source), binascii.crc32(source), MARK.encode())
            + (b" " + kind.encode() if kind else b""))
        os.set_blocking(self.line, False)
        return source

    def took(self, source):
        def written():
            nonlocal source
            if source and select.select([], [self.line], [], 0)[1]:
                source = source[os.write(self.line, source):]
            self.drain()
            return not source
        until(written, "the cell to be read")
        assert self.say() == b"TOOK %d" % self.cells

    def started(self, source):
        """Start a cell, and wait until the cell prints."""
        self.screen()
        self.start("print('go', flush=True)\n" + source)

        def going():
            self.drain()
            return b"go" in self.seen
        until(going, "the cell to print")

    def done(self):
        word, no, how, names, threads, status, marked = self.say().split()
        assert (word, int(no)) == (b"DONE", self.cells)
        self.names, self.threads = int(names), int(threads)
        self.status, self.marked = int(status), int(marked)
        return how.decode()

    def run(self, source, kind=None):
        """Run a cell. Returns how it ended; its output is in self.out."""
        self.screen()
        self.start(source, kind)
        how = self.done()
        self.out = self.screen()
        return how

    def out_of(self, source):
        """Run a cell that must succeed. Returns its output."""
        how = self.run(source)
        assert how == "ok", self.out
        return self.out

    def interrupt(self):
        os.kill(self.pid, signal.SIGINT)

    def send_park(self, sock, word=b"PARK"):
        """Ask for a checkpoint on a socket, which is taken."""
        self.parks += 1
        self.ctl.sendmsg([b"%s %d" % (word, self.parks)], [
            (socket.SOL_SOCKET, socket.SCM_RIGHTS,
             array.array("i", [sock.fileno()]))])
        sock.close()

    def park(self, word=b"PARK"):
        ours, theirs = socket.socketpair(
            socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.send_park(theirs, word)
        self.parked = self.say()
        if self.parked not in (b"PARKED %d ok" % self.parks,
                               b"PARKED %d same" % self.parks):
            ours.close()
            return None
        point = Checkpoint(self, ours, receive(ours))
        self.reap_orphans_of_the_fork()
        return point

    def reap_orphans_of_the_fork(self):
        """Reap the processes between the guest and its copy, as init does in a
        jail."""
        dead = os.WEXITED | os.WNOHANG | os.WNOWAIT
        while True:
            try:
                ended = os.waitid(os.P_ALL, 0, dead)
            except ChildProcessError:
                return
            if ended is None or ended.si_pid in self.pids:
                return
            os.waitpid(ended.si_pid, 0)

    def ask(self, kind, text="", alone=False):
        """The answer; where the guest wants a copy to answer, the copy's."""
        self.asks += 1
        text = text.encode()
        asked = b"ASK %d %s %d" % (self.asks, kind.encode(), len(text))
        self.ctl.send(asked + b" alone" * alone + b"\n" + text)
        line, _, answer = self.say().partition(b"\n")
        self.wanted = None
        if line.startswith(b"WANTS"):
            assert line == b"WANTS %d %d" % (self.asks, len(answer))
            self.wanted = answer.decode()
            copy = self.park(b"TRIAL")
            copy.sock.send(b"RESUME")
            assert receive(copy.sock).startswith(b"AWAKE %d " % copy.pid)
            copy.sock.send(asked + b"\n" + text)
            line, _, answer = receive(copy.sock).partition(b"\n")
            os.kill(copy.pid, signal.SIGKILL)
            copy.sock.close()
        assert line == b"ANSWER %d %d" % (self.asks, len(answer))
        return answer.decode()

    def complete(self, text):
        """(bytes to replace, candidates)"""
        size, *names = self.ask("complete", text).splitlines()
        return int(size), names
