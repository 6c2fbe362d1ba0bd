# SPDX-License-Identifier: MIT
"""A cgroup of version 2 handed to a user, as systemd does for Delegate=yes:
theirs to divide, with the controllers that sessions use, and a leaf to be in.
"""
import os
import pathlib
import secrets

MOUNT = pathlib.Path("/sys/fs/cgroup")
WANTED = ("memory", "pids", "cpu")
# What systemd gives away (cgroups(7), "Delegating a hierarchy").
HANDED = ("", "cgroup.procs", "cgroup.subtree_control", "cgroup.threads")


class Delegated:
    """Raises OSError where that cannot be: not root, no version 2, or without
    its controllers."""

    def __init__(self, uid):
        offered = (MOUNT / "cgroup.controllers").read_text().split()
        if not set(WANTED) <= set(offered):
            raise OSError("no controllers")
        self.top = MOUNT / f"cbtest-{secrets.token_hex(2)}"
        self.leaf = self.top / "leaf"
        self.inside = -1
        try:
            hand_on(MOUNT)
            self.leaf.mkdir(parents=True)
            hand_on(self.top)
            for name in HANDED:
                os.chown(self.top / name, uid, uid)
                os.chown(self.leaf / name, uid, uid)
            # Who opens it decides whom it may move.
            self.inside = os.open(self.leaf / "cgroup.procs", os.O_WRONLY)
        except OSError:
            self.remove()
            raise

    def enter(self):
        """Before exec, in a process of anybody's."""
        os.write(self.inside, b"0")

    def remove(self):
        if self.inside >= 0:
            os.close(self.inside)
        for place in (self.leaf, self.top):
            try:
                place.rmdir()
            except OSError:
                pass


def hand_on(place):
    (place / "cgroup.subtree_control").write_text(
        " ".join(f"+{name}" for name in WANTED))
