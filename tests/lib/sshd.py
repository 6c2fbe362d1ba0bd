# SPDX-License-Identifier: MIT
"""The sshd of the host, for tests that start a server or check a
configuration."""
import os
import shutil

PATH = "/usr/sbin:/usr/local/sbin:/sbin"
# sshd refuses to start as root without this directory. The system service
# makes it, so it is missing on a machine where that service has never run.
EMPTY = "/run/sshd"
# The key exchange of the default, sntrup761, costs more than the rest of a test.
KEX = "KexAlgorithms=curve25519-sha256"


def find():
    """The path of an sshd that can be started, or None."""
    path = shutil.which("sshd", path=PATH)
    if path and os.geteuid() == 0:
        os.makedirs(EMPTY, exist_ok=True)
    return path
