# SPDX-License-Identifier: MIT
"""A Debian in a directory, in namespaces of its own: packages are installed
there, and people use them."""
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

import hosttree
import term
from world import PATIENCE

# An ordinary user in a chroot may make no user namespace; after pivot_root the
# directory is the root. Processes whose parents end are awaited.
HOLD = """set -e
mount --make-rprivate /
mount --bind "$0" "$0"
cd "$0"
mount -t proc proc proc
mount --rbind /sys sys
mount --rbind /dev dev
mount -t tmpfs -o mode=755 run run
mount -t tmpfs -o mode=1777 tmp tmp
pivot_root . mnt
umount -l /mnt
exec python3 -c 'import signal
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
while True: signal.pause()'
"""
ENV = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
       "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", "TERM": "xterm-256color",
       "DEBIAN_FRONTEND": "noninteractive"}
# How often the runner hears of a command that takes long.
WORD_SECONDS = 60


class Loud:
    """Commands that take minutes. The runner gives a silent test up, so it hears
    of them: on the standard error of pytest, which no test sees."""
    capture = None              # pytest's plugin

    @classmethod
    def say(cls, argv):
        if cls.capture:
            with cls.capture.global_and_fixture_disabled():
                os.write(2, f"still running: {argv[-1]}\n".encode())


def run(argv, seconds=1800, **more):
    """(status, what it writes)"""
    end = time.monotonic() + seconds * PATIENCE
    with tempfile.TemporaryFile() as out, subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=out,
            stderr=subprocess.STDOUT, **more) as p:
        while True:
            try:
                p.wait(WORD_SECONDS)
                break
            except subprocess.TimeoutExpired:
                Loud.say(argv)
                if time.monotonic() > end:
                    p.kill()
        out.seek(0)
        return p.returncode, out.read().decode("utf-8", "replace")


class System:
    def __init__(self, directory):
        self.dir, self.open = pathlib.Path(directory), []
        shutil.copy("/etc/resolv.conf", self.dir / "etc")
        self.holder = subprocess.Popen(
            ["unshare", "-mpf", "--kill-child", "sh", "-c", HOLD,
             str(self.dir)], stdin=subprocess.DEVNULL)
        self.init = None
        hosttree.until(self._is_up, "the namespaces of the system", 30)

    def _is_up(self):
        assert self.holder.poll() is None, "the system ended"
        for pid in hosttree.descendants(self.holder.pid):
            if hosttree.status_of(pid).get("Name") == "python3":
                self.init = pid
        return self.init

    def argv(self, *command, user=None):
        inside = ["nsenter", "-t", str(self.init), "-m", "-p", "--wdns=/"]
        who = ["runuser", "-u", user, "--"] if user else []
        return [*inside, *who, *command]

    def run(self, *command, user=None, check=True, env=None):
        """The output of a command; with `check` False its status before it."""
        code, said = run(self.argv(*command, user=user),
                         env={**ENV, **(env or {})})
        if not check:
            return code, said
        assert code == 0, f"{command} ended with {code}:\n{said[-4000:]}"
        return said

    def start(self, *command, user=None):
        p = subprocess.Popen(self.argv(*command, user=user), env=ENV,
                             stdin=subprocess.DEVNULL)
        self.open.append(p)
        return p

    def session(self, *args, user):
        """`cellblock` of a person, on a terminal."""
        s = term.Session(
            self.argv("cellblock", *args, user=user), cwd="/",
            env={**ENV, "HOME": f"/home/{user}", "USER": user,
                 "LOGNAME": user})
        self.open.append(s)
        return s

    def files(self):
        """The files of the system, but for mounted ones and those that packages
        leave everywhere."""
        found = set()
        for path, dirs, files in os.walk(self.dir):
            at = pathlib.Path("/", os.path.relpath(path, self.dir))
            dirs[:] = [d for d in dirs if not (self.dir / at.relative_to("/") /
                                               d).is_mount()]
            found.update(str(at / name) for name in dirs + files)
        return found

    def put(self, path, to):
        """Copy a file of the host into the system's directory."""
        place = self.dir / to.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, place)

    def close(self):
        for p in self.open:
            if isinstance(p, term.Session):
                p.close()
            elif p.poll() is None:
                p.kill()
                p.wait()
        os.kill(self.init, signal.SIGKILL)      # all others end with it
        self.holder.wait()
