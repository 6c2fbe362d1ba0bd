# SPDX-License-Identifier: MIT
"""A host for cellblock-lab: an sshd, root's maker, and an /etc, /home, /run and
/var/lib of its own."""
import contextlib
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile

import freeport
import hosttree
import sshd
import term
from world import CELLBLOCK, PATIENCE, TESTS

MOUNTS = """set -e
mount --make-rprivate /
mount -t tmpfs -o mode=755 x /run
mkdir /run/etc /run/sshd
cp -a /etc/. /run/etc
rm -rf /run/etc/cellblock /run/etc/ssh/sshd_config.d/*
mount --bind /run/etc /etc
for d in /home /var/lib /var/log /srv; do mount -t tmpfs -o mode=755 x $d; done
exec sleep infinity"""
TOOL = TESTS.parent / "lab" / "cellblock-lab"


class Host:
    def __init__(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="cbtest-lab-"))
        self.dir.chmod(0o755)
        self.binary = self.dir / "cellblock"
        shutil.copy(CELLBLOCK, self.binary)
        # The kernel ends it with us, however we end.
        self.holder = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "unshare", "-m", "sh", "-c", MOUNTS])
        hosttree.until(self.is_mounted, "the mounts of the test")
        self.etc = pathlib.Path(f"/proc/{self.holder.pid}/root/etc")
        self.running = []
        self.sessions = []
        self.port = str(freeport.pick())

    def is_mounted(self):
        assert self.holder.poll() is None
        return pathlib.Path(
            f"/proc/{self.holder.pid}/comm").read_text() == "sleep\n"

    def inside(self, *argv):
        return ["nsenter", "-t", str(self.holder.pid), "-m", *map(str, argv)]

    def run(self, *argv, stdin=""):
        return subprocess.run(
            self.inside(*argv), input=stdin, capture_output=True, text=True,
            timeout=60 * PATIENCE, check=False, cwd="/",
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8",
                 "HOME": "/root", "CELLBLOCK": str(self.binary)})

    def lab(self, *args):
        return self.run(TOOL, *args)

    def background(self, *argv):
        with open(self.dir / "log", "ab") as log:
            p = subprocess.Popen(self.inside(*argv), stdin=subprocess.DEVNULL,
                                 stdout=log, stderr=log, cwd="/")
        self.running.append(p)
        return p

    def start(self):
        self.start_maker()
        self.start_sshd()

    def start_maker(self):
        self.background(self.binary, "--maker")
        socket_of = pathlib.Path(
            f"/proc/{self.holder.pid}/root/run/cellblock/maker")
        hosttree.until(socket_of.exists, "the maker")

    def start_sshd(self):
        """As Debian configures it, on a port of its own."""
        p = self.background(
            sshd.find(), "-D", "-e", "-p", self.port,
            "-o", "ListenAddress=127.0.0.1", "-o", "UsePAM=no",
            "-o", "PidFile=none", "-o", sshd.KEX)

        def is_up():
            assert p.poll() is None, (self.dir / "log").read_text()
            with contextlib.suppress(OSError), \
                    socket.create_connection(("127.0.0.1", int(self.port))):
                return True
            return False
        hosttree.until(is_up, "the ssh server")
        self.sshd = p

    def ssh(self, name, key, *more, terminal="-T"):
        return ["ssh", "-F", "none", terminal, "-i", str(key), "-p", self.port,
                "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no",
                "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR",
                f"{name}@127.0.0.1", *more]

    def session(self, name, key):
        s = term.Session(self.ssh(name, key, terminal="-tt"),
                         env={**os.environ, "TERM": "xterm-256color"})
        self.sessions.append(s)
        return s.start()

    def ask(self, name, key, command):
        return subprocess.run(
            self.ssh(name, key, command),
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
            timeout=60 * PATIENCE)

    def key(self, name):
        path = self.dir / name
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name,
                        "-f", str(path)], check=True)
        return path

    def csv(self, text):
        path = self.dir / "students.csv"
        path.write_text(text)
        return path

    def state(self):
        """The host's files and accounts that a laboratory changes."""
        return self.run("sh", "-c", """
            find /etc /home /srv /var/lib /etc/ssh -not -name '*-' \
                -not -name '*.lock' -not -path '/etc/passwd' -type f \
                -exec sha256sum {} + | grep -v 'lab.lock$' | sort
            getent passwd | sort; getent group | sort""").stdout

    def close(self):
        for s in self.sessions:
            s.close()
        for p in reversed(self.running):
            p.terminate()
            p.wait(timeout=20 * PATIENCE)
        self.holder.kill()
        self.holder.wait()
        shutil.rmtree(self.dir, ignore_errors=True)
