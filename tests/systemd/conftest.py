# SPDX-License-Identifier: MIT
"""A host with systemd as pid 1, its logind and its sshd. The tests install the
product, its units and accounts on it: only where a test may do that, as in the
virtual machine of tests/vm."""
import json
import os
import pathlib
import pwd
import secrets
import shutil
import subprocess

import pytest

import hosttree
import term
from world import CELLBLOCK

ETC = pathlib.Path(__file__).resolve().parent.parent.parent / "etc"
BINARY = pathlib.Path("/usr/local/bin/cellblock")
UNITS = pathlib.Path("/etc/systemd/system")
SECONDS = 60 * hosttree.PATIENCE


def run(*argv, check=True, **how):
    r = subprocess.run(argv, capture_output=True, text=True, check=False,
                       timeout=SECONDS, **how)
    assert not check or r.returncode == 0, r
    return r


def show(unit, name):
    return run("systemctl", "show", "-P", name, unit).stdout.strip()


def rows(text):
    """What --check --json says: {limit: (enforcer, strength, remedy)}."""
    return {r["what"]: (r["enforced_by"], r["strength"], r["remedy"])
            for r in json.loads(text)["checks"]}


@pytest.fixture(scope="session", autouse=True)
def host():
    if os.geteuid() != 0 or not os.path.isdir("/run/systemd/system"):
        pytest.skip("this takes root, and systemd as pid 1")
    if "CELLBLOCK_TEST_MAY_INSTALL" not in os.environ:
        pytest.skip("things may not be installed here")
    shutil.copy(CELLBLOCK, BINARY)
    for unit in (ETC / "systemd").rglob("*.*"):
        if unit.is_file():
            to = UNITS / unit.relative_to(ETC / "systemd")
            to.parent.mkdir(exist_ok=True)
            shutil.copy(unit, to)
    users = pathlib.Path("/etc/sysusers.d")
    users.mkdir(exist_ok=True)
    shutil.copy(ETC / "sysusers.d/cellblock.conf", users)
    run("systemd-sysusers")
    run("systemctl", "daemon-reload")


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

    def ssh(self, *options):
        return ["ssh", "-F", "none", "-i", str(self.key),
                "-o", "StrictHostKeyChecking=no", "-o", "LogLevel=ERROR",
                "-o", "UserKnownHostsFile=/dev/null", "-o", "BatchMode=yes",
                *options, "--", f"{self.name}@127.0.0.1"]

    def run(self, command, **how):
        return run(*self.ssh("-T"), command, **how)

    def here(self, *args, **how):
        """Run the product as the person, without a login."""
        return run("runuser", "-u", self.name, "--", str(BINARY), *args,
                   cwd="/", **how)

    def session(self, *command):
        s = term.Session([*self.ssh("-tt"), *command],
                         env={**os.environ, "TERM": "xterm-256color"})
        self.open.append(s)
        return s

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

    def leave(self):
        for s in self.open:
            s.close()
        run("loginctl", "terminate-user", self.name, check=False)
        hosttree.until(lambda: not self.is_here(), "the end of the logins", 30)
        run("userdel", "-r", "-f", self.name, check=False)


@pytest.fixture
def person(tmp_path):
    p = Account(tmp_path)
    yield p
    p.leave()
