# SPDX-License-Identifier: MIT
"""The host's own sshd, for servers and configurations of ours."""
import os
import shutil

PATH = "/usr/sbin:/usr/local/sbin:/sbin"
#: Root's starts with this directory alone. Its service makes it; on a machine
#: where that has never run it is missing.
EMPTY = "/run/sshd"


def find():
    """Where it is, ready to be started, or None."""
    path = shutil.which("sshd", path=PATH)
    if path and os.geteuid() == 0:
        os.makedirs(EMPTY, exist_ok=True)
    return path
