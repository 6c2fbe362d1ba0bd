# SPDX-License-Identifier: MIT
"""Root's maker of sessions, run by hand in a mount namespace with a /run and an
/etc/cellblock of its own, and people who ask it."""
import json
import os
import pathlib
import pwd
import re
import secrets
import shutil
import signal
import subprocess
import tempfile

import pytest

import hosttree
import term
from world import CELLBLOCK, PATIENCE, Ended

JAIL_UIDS = range(2130706432, 2130771968)
MOUNTS = """mount --make-rprivate / && mount -t tmpfs x /run &&
mount -t overlay -o lowerdir=$0/etc:/etc x /etc &&
mount --bind $0/etc/cellblock /etc/cellblock && exec sleep infinity"""


def run(*argv):
    subprocess.run(argv, check=True, capture_output=True)


def of_jails():
    """Processes of these tests that run under a host id of a session's."""
    found = set()
    for pid in hosttree.mine():
        uid = hosttree.status_of(pid).get("Uid", "0").split()[0]
        if int(uid) in JAIL_UIDS:
            found.add(pid)
    return found


class Accounts:
    """Accounts of people, made once and lent to one host after the other:
    useradd and userdel take longer than most tests."""

    def __init__(self):
        self.dir, self.made, self.free = None, [], []

    def take(self):
        """(name, uid, home), with an empty home."""
        name, uid, home = self.free.pop() if self.free else self._make()
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir(mode=0o700)
        os.chown(home, uid, uid)
        return name, uid, home

    def _make(self):
        if not self.dir:
            self.dir = pathlib.Path(tempfile.mkdtemp(prefix="cbtest-people-"))
            self.dir.chmod(0o755)
        name = f"cellblock-test-m{secrets.token_hex(3)}"
        # The password is none, but the account is not locked: sshd asks.
        run("useradd", "-r", "-U", "-M", "-p", "*", "-d",
            str(self.dir / name), "-s", "/bin/sh", name)
        self.made.append(name)
        return name, pwd.getpwnam(name).pw_uid, self.dir / name

    def give_back(self, person):
        self.free.append((person.name, person.account, person.home))

    def close(self):
        for name in self.made:
            subprocess.run(["userdel", "-f", name], capture_output=True,
                           check=False)
        if self.dir:
            shutil.rmtree(self.dir, ignore_errors=True)
        self.dir, self.made, self.free = None, [], []


ACCOUNTS = Accounts()


class Person:
    def __init__(self, host, name, uid, home):
        self.host, self.name, self.home = host, name, home
        self.uid = self.account = uid  # a test may ask under another uid
        self.open = []
        self.env = {"HOME": str(self.home), "USER": name, "LOGNAME": name,
                    "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8",
                    "TERM": "xterm-256color"}

    def argv(self, *command):
        return [*self.host.inside(), "setpriv", f"--reuid={self.uid}",
                f"--regid={self.uid}", "--clear-groups", *command]

    def run(self, *args, stdin=b"", timeout=40, argv0=None, env=None):
        command = [str(self.host.binary), *args]
        if argv0:
            command = ["bash", "-c", f'exec -a {argv0} "$0" "$@"', *command]
        p = subprocess.run(self.argv(*command), input=stdin,
                           capture_output=True, timeout=timeout * PATIENCE,
                           check=False, env={**self.env, **(env or {})},
                           cwd="/")
        return Ended(args, p.returncode, p.stdout, p.stderr)

    def popen(self, *args, **more):
        p = subprocess.Popen(
            self.argv(str(self.host.binary), *args), env=self.env, cwd="/",
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, **more)
        self.open.append(p)
        return p

    def python(self, source, *args, **more):
        """A script of the person's own that attacks; it may import order."""
        lib = pathlib.Path(__file__).parent
        p = subprocess.Popen(
            self.argv("/usr/bin/python3", "-B", "-S", "-c",
                      f"import sys; sys.path.insert(0, {str(lib)!r})\n"
                      + source, *args),
            env=self.env, cwd="/", stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)
        self.open.append(p)
        return p

    def asks(self, source, timeout=60):
        """The output of such a script."""
        p = self.python(source)
        out, err = p.communicate(timeout=timeout * PATIENCE)
        assert p.returncode == 0, err
        return out

    def session(self, *args, **more):
        s = term.Session(self.argv(str(self.host.binary), *args),
                         env=self.env, cwd="/", **more)
        self.open.append(s)
        return s

    def end_sessions(self):
        """Those that outlive their terminals."""
        for s in json.loads(self.run("--sessions", "--json").text or "[]"):
            self.run("--end", str(s["id"]))

    def close(self):
        for p in self.open:
            if isinstance(p, term.Session):
                p.close()
                self.end_sessions()
                continue
            if p.poll() is None:
                p.kill()
            p.communicate()


class Host:
    """A mount namespace, its people, and the maker. Several hosts may lend each
    other their people, and have more namespaces of their own."""

    APART = ["-m"]

    def __init__(self, accounts=None):
        # Before the mounts hide changes of /etc.
        self.lends = accounts is None
        accounts = accounts or [ACCOUNTS.take(), ACCOUNTS.take()]
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="cbtest-maker-"))
        self.dir.chmod(0o755)
        self.binary = self.dir / "cellblock"
        shutil.copy(CELLBLOCK, self.binary)
        self.etc = self.dir / "etc" / "cellblock"
        self.etc.mkdir(parents=True)
        self.people, self.maker = [Person(self, *a) for a in accounts], None
        self.spare = 0  # jails made ahead, of each kind
        self.policy("")
        self.under = []  # a command that runs the maker
        self.log = self.dir / "log"
        self.holder = subprocess.Popen(
            ["unshare", *self.APART, "sh", "-c", MOUNTS, str(self.dir)])
        hosttree.until(self._is_mounted, "the mounts of the test")

    def _is_mounted(self):
        assert self.holder.poll() is None
        with open(f"/proc/{self.holder.pid}/comm") as f:
            return f.read() == "sleep\n"

    def inside(self):
        return ["nsenter", "-t", str(self.holder.pid), *self.APART]

    def root(self):
        return Person(self, "root", 0, self.dir / "root")

    def policy(self, text, file="cellblock.conf"):
        path = self.etc / file
        path.parent.mkdir(exist_ok=True)
        if file == "cellblock.conf":
            text += f"\n[spare]\njails = {self.spare}\n"
        path.write_text(text)

    def start(self, *options):
        """Start the maker, and wait until it listens."""
        before = self.said().count("making sessions at")
        with open(self.log, "ab") as log:
            self.maker = subprocess.Popen(
                [*self.inside(), *self.under, str(self.binary), "-v", *options,
                 "--maker"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/")
        hosttree.until(
            lambda: self.said().count("making sessions at") > before
            or self.maker.poll() is not None, "the maker")
        assert self.maker.poll() is None, self.said()

    def said(self):
        return self.log.read_text() if self.log.exists() else ""

    def kill(self, sig=signal.SIGKILL):
        waiting = self.children()
        self.maker.send_signal(sig)
        status = self.maker.wait(timeout=20 * PATIENCE)
        # On a busy host a janitor may have had no name of its own yet.
        hosttree.until(lambda: not any(map(self.is_child, waiting)),
                       "the end of the maker's children")
        return status

    @staticmethod
    def is_child(pid):
        """Whether it is a process of a maker's, and no warden of a session."""
        status = hosttree.status_of(pid)
        return status.get("Uid", "1").split()[0] == "0" \
            and status.get("Name") == "cellblock" \
            and status.get("State", "Z")[0] != "Z"

    def children(self):
        return set(filter(self.is_child,
                          hosttree.descendants(self.maker.pid)))

    def close(self):
        for p in self.people:
            p.close()
        if self.maker and self.maker.poll() is None:
            assert self.kill(signal.SIGTERM) == 0, self.said()
        self.holder.kill()
        self.holder.wait()
        for p in self.people if self.lends else ():
            ACCOUNTS.give_back(p)
        shutil.rmtree(self.dir, ignore_errors=True)


def serve():
    if os.geteuid() != 0:
        pytest.skip("only root makes sessions for others")
    # The namespaces of an earlier test's sessions take a while to go.
    hosttree.until(lambda: not of_jails(), "the end of an earlier test's jails")
    h = Host()
    yield h
    h.close()


# ---- jails made ahead ----

KINDS = 3
# The one difference that a person could see is in the maker's log.
BOTH = pytest.mark.parametrize("spare", [1, 0])


def as_any_other(test):
    """A test of jails that were made ahead, and in a longer run of those that
    were not, for the same answers."""
    return pytest.mark.sampled(2)(BOTH(test))


def start(host, spare=1, policy=""):
    """A maker, and the spares that it keeps."""
    host.spare = spare
    host.policy(policy)
    host.start()
    ready(host, spare * KINDS)
    return host.people


def ready(host, n=KINDS):
    """Wait until so many spares lie there."""
    def last():
        found = re.findall(r"^spare jails: (\d+)$", host.said(), re.M)
        return int(found[-1]) if found else 0
    hosttree.until(lambda: last() == n, f"{n} spares", 60)


def made(host):
    """The persons who have got a session, and whether it was made ahead."""
    return re.findall(r"^(\S+) \(uid \d+\): a session as host id \d+"
                      r"(, made ahead)?$", host.said(), re.M)


def logged(host):
    """The persons who have got a session that was not made ahead, their uid and
    its host id."""
    return re.findall(r"^(\S+) \(uid (\d+)\): a session as host id (\d+)$",
                      host.said(), re.M)


def was_ahead(host, n=1):
    """Of the n-th session, which may be logged a moment later."""
    hosttree.until(lambda: len(made(host)) >= n, "the log")
    return bool(made(host)[n - 1][1])
