# SPDX-License-Identifier: MIT
"""A host with systemd as pid 1, its logind and its sshd. The tests install the
product, its units and accounts on it: only where a test may do that, as in the
virtual machine of tests/vm."""
import contextlib
import json
import os
import pathlib
import pwd
import secrets
import shutil
import socket
import subprocess

import hosttree
import term

ETC = pathlib.Path(__file__).resolve().parent.parent.parent / "etc"
BINARY = pathlib.Path("/usr/local/bin/cellblock")
UNITS = pathlib.Path("/etc/systemd/system")
SETTINGS = pathlib.Path("/etc/cellblock/cellblock.conf")
SECONDS = 60 * hosttree.PATIENCE


def run(*argv, check=True, **how):
    r = subprocess.run(argv, capture_output=True, text=True, check=False,
                       timeout=SECONDS, **how)
    assert not check or r.returncode == 0, r
    return r


def show(unit, name):
    return run("systemctl", "show", "-P", name, unit).stdout.strip()


@contextlib.contextmanager
def drop_in(unit, text):
    """A unit of ours with other settings. A running service is not restarted."""
    directory = UNITS / f"{unit}.d"
    directory.mkdir()
    (directory / "test.conf").write_text(text)
    run("systemctl", "daemon-reload")
    yield
    shutil.rmtree(directory)
    run("systemctl", "daemon-reload")


def reload_sshd():
    """It starts anew, and for a moment nobody listens."""
    run("systemctl", "reload", "ssh")
    hosttree.until(lambda: show("ssh", "ActiveState") == "active", "sshd", 30)
    hosttree.until(is_listening, "sshd", 30)


def is_listening():
    with socket.socket() as s:
        s.settimeout(SECONDS)
        return s.connect_ex(("127.0.0.1", 22)) == 0 and s.recv(4) == b"SSH-"


def rows(text):
    """What --check --json says: {limit: (enforcer, strength, remedy)}."""
    return {r["what"]: (r["enforced_by"], r["strength"], r["remedy"])
            for r in json.loads(text)["checks"]}


class Account:
    """Somebody who logs in over ssh with a key."""

    def __init__(self, directory):
        self.name = f"cellblock-test-{secrets.token_hex(2)}"
        self.key = directory / "key"
        self.open = []
        run("useradd", "-m", "-s", "/bin/bash", "-p", "*", self.name)
        entry = pwd.getpwnam(self.name)
        self.uid = entry.pw_uid
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.key))
        keys = pathlib.Path(entry.pw_dir) / ".ssh"
        keys.mkdir()
        shutil.copy(f"{self.key}.pub", keys / "authorized_keys")
        run("chown", "-R", self.name, entry.pw_dir)

    def ssh(self, *options, to="127.0.0.1"):
        return ["ssh", "-F", "none", "-i", str(self.key),
                "-o", "StrictHostKeyChecking=no", "-o", "LogLevel=ERROR",
                "-o", "UserKnownHostsFile=/dev/null", "-o", "BatchMode=yes",
                *options, "--", f"{self.name}@{to}"]

    def run(self, command, **how):
        return run(*self.ssh("-T"), command, **how)

    def here(self, *args, **how):
        """Run the product as the person, without a login."""
        return run("runuser", "-u", self.name, "--", str(BINARY), *args,
                   cwd="/", **how)

    def session(self, *command, before=(), to="127.0.0.1", **more):
        s = term.Session([*before, *self.ssh("-tt", to=to), *command],
                         env={**os.environ, "TERM": "xterm-256color"}, **more)
        self.open.append(s)
        return s

    def shell(self):
        """A login with a shell."""
        s = self.session("PS1='shell> ' bash --norc -i", size=(24, 200))
        s.prompt = "shell> "
        return s.start()

    def sessions(self):
        """The person's sessions, as root sees them."""
        listed = run(str(BINARY), "--sessions", "--json").stdout
        return [e for e in json.loads(listed) if e["who"] == self.name]

    def only(self, condition, what, seconds=30):
        """The only session, once condition(it) holds."""
        def holds():
            found = self.sessions()
            return len(found) == 1 and found[0]["answers"] \
                and condition(found[0])
        hosttree.until(holds, lambda: f"{what}: {self.sessions()}",
                       seconds)
        return self.sessions()[0]

    def cgroups(self):
        """The cgroups of the person's sessions."""
        top = pathlib.Path("/sys/fs/cgroup/user.slice")
        return list(top.glob(f"user-{self.uid}.slice/**/cellblock-pid-*"))

    def scopes(self):
        return [p.parent for p in self.cgroups()]

    def manager(self):
        return int(show(f"user@{self.uid}.service", "MainPID"))

    def is_here(self):
        return os.path.exists(f"/run/user/{self.uid}")

    def describe(self):
        units = run("systemctl", "status", "--no-pager", "-n", "20",
                    f"user-{self.uid}.slice", f"user@{self.uid}.service",
                    check=False).stdout
        return f"the end of the logins:\n{units}"

    def log_out(self, shell):
        """At the end of a shell, which is the end of the login."""
        shell.wait_prompt()
        shell.type("exit\r")
        shell.wait_exit()

    def leave(self):
        # To logind a login whose terminal is gone is closing: it is not ended
        # again, and a session that goes on there would keep it.
        for e in self.sessions():
            run(str(BINARY), "--end", f"{e['who']}/{e['id']}", check=False)
        for s in self.open:
            s.close()
        run("loginctl", "disable-linger", self.name, check=False)
        run("loginctl", "terminate-user", self.name, check=False)
        # A login manager that was started anew may have forgotten them.
        run("systemctl", "stop", f"user@{self.uid}.service",
            f"user-runtime-dir@{self.uid}.service", check=False)
        hosttree.until(lambda: not self.is_here(), self.describe, 30)
        run("userdel", "-r", "-f", self.name, check=False)
