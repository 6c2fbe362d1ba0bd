# SPDX-License-Identifier: MIT
"""docs/LAB.md on a host with systemd: units, logins through PAM, cgroup v2."""
import pathlib
import subprocess

import pytest

import page
from labhost import TOOL
from lab import BINARY, SECONDS, run, show

pytestmark = pytest.mark.limit(1200)
STUDENTS = 30


def test_thirty_students_after_the_commands_of_the_page(tmp_path):
    tmp_path.chmod(0o755)
    key = tmp_path / "student"
    run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key))
    work = tmp_path / "work"
    page.prepare(work, BINARY, key, STUDENTS)
    env = {"PATH": f"{work}:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
           "HOME": "/root", "LANG": "C.UTF-8"}
    try:
        for command in page.commands():
            run("sh", "-c", command, cwd=work, env=env)
        assert show("cellblock.socket", "ActiveState") == "active"
        # Emulated processors: five seconds would be few for the honest.
        pathlib.Path("/etc/cellblock/conf.d/60-hurried.conf").write_text(
            "[cell]\ntimeout = 60s\ncpu = 10s\n")

        def ask(name, text):
            return subprocess.run(
                ["ssh", "-F", "none", "-i", str(key), "-T",
                 "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no",
                 "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR",
                 f"{name}@127.0.0.1", text], stdin=subprocess.DEVNULL,
                capture_output=True, text=True, check=False,
                timeout=10 * SECONDS)
        page.log_in_at_once(STUDENTS, ask)
    finally:
        undone = run(TOOL, "undo", check=False, env=env)
    assert undone.returncode == 0, undone
