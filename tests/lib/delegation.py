# SPDX-License-Identifier: MIT
"""A cgroup v2 delegated to a user, as systemd does it for Delegate=yes. The
user may divide the cgroup. The cgroup has the controllers that sessions use,
and a leaf for the user's processes.
"""
import os
import pathlib
import secrets

MOUNT = pathlib.Path("/sys/fs/cgroup")
WANTED = ("memory", "pids", "cpu")
# The files that systemd delegates (cgroups(7), "Delegating a hierarchy").
DELEGATED_FILES = ("", "cgroup.procs", "cgroup.subtree_control",
                   "cgroup.threads")


class Delegated:
    """Raises OSError where delegation is impossible: without root, without
    cgroup v2, or without the controllers."""

    def __init__(self, uid):
        offered = (MOUNT / "cgroup.controllers").read_text().split()
        if not set(WANTED) <= set(offered):
            raise OSError("no controllers")
        self.top = MOUNT / f"cbtest-{secrets.token_hex(2)}"
        self.leaf = self.top / "leaf"
        self.inside = -1
        try:
            enable_controllers(MOUNT)
            self.leaf.mkdir(parents=True)
            enable_controllers(self.top)
            for name in DELEGATED_FILES:
                os.chown(self.top / name, uid, uid)
                os.chown(self.leaf / name, uid, uid)
            # The kernel checks the rights of the opener, not of the writer.
            self.inside = os.open(self.leaf / "cgroup.procs", os.O_WRONLY)
        except OSError:
            self.remove()
            raise

    def enter(self):
        """Move the calling process into the leaf. Works for any user; called
        before exec."""
        os.write(self.inside, b"0")

    def remove(self):
        if self.inside >= 0:
            os.close(self.inside)
        for place in (self.leaf, self.top):
            try:
                place.rmdir()
            except OSError:
                pass


def enable_controllers(place):
    (place / "cgroup.subtree_control").write_text(
        " ".join(f"+{name}" for name in WANTED))
