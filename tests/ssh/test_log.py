# SPDX-License-Identifier: MIT
"""What the system log says of sessions over ssh."""
import pathlib
import re
import socket
import subprocess

import pytest

import hosttree


@pytest.fixture
def heard():
    """The lines that the system log gets."""
    path = pathlib.Path("/dev/log")
    if path.exists() or path.is_symlink():
        pytest.skip("somebody else has the system log of this host")
    lines = []
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        s.bind(str(path))
        path.chmod(0o666)
        s.setblocking(False)

        def read():
            while True:
                try:
                    lines.append(s.recv(8192).decode())
                except BlockingIOError:
                    return lines
        yield read
        path.unlink()


def until(heard, pattern):
    hosttree.until(lambda: any(re.search(pattern, x) for x in heard()),
                   f"{pattern} in the log: {heard()}")


def test_the_log_has_number_address_reason_and_use(heard, lab):
    name = lab.user.pw_name
    s = lab.session().start()
    until(heard, f"{name}: session 1 started from 127.0.0.1")
    s.run("import time; x = bytearray(b'x') * (60 << 20); time.sleep(1)")
    r = subprocess.run([lab.server.binary, "--end", f"{name}/1", "-m",
                        "the room closes"], check=False, timeout=40)
    assert r.returncode == 0
    s.wait_exit()
    until(heard, f"{name}: ended by root: the room closes$")
    until(heard, rf"{name}: ended with status 143, CPU time \S+ \S+, "
                 r"memory at most [6-9]\d(\.\d)? MiB")
    assert lab.run("1 + 1").stdout == b"2\n"
    until(heard, f"{name}: program started from 127.0.0.1")
