# SPDX-License-Identifier: MIT
"""Run a command where a jail cannot have a /proc, as in many containers.

    no_proc.py COMMAND [ARG]...

In a user and a mount namespace of its own, in which a part of /proc is covered
up: then the kernel refuses a fresh one to whoever does not own that cover.
There root is still root, with every id of the host; anybody else is
themselves.
"""
import ctypes
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))

from no_userns import map_ids  # noqa: E402

CLONE_NEWNS, CLONE_NEWUSER = 0x00020000, 0x10000000
MS_PRIVATE_REC = 0x44000


def call(libc, name, *args):
    if getattr(libc, name)(*args) < 0:
        sys.exit(f"no_proc: {name}: {os.strerror(ctypes.get_errno())}")


def main(command):
    uid, gid, me = os.geteuid(), os.getegid(), os.getpid()
    ready, unshared = os.pipe()
    helper = os.fork()
    if helper == 0:             # outside: root writes the maps from there
        os.close(unshared)
        os.read(ready, 1)
        if uid == 0:
            map_ids(me, uid, gid)
        os._exit(0)
    libc = ctypes.CDLL(None, use_errno=True)
    call(libc, "unshare", CLONE_NEWUSER | CLONE_NEWNS)
    os.write(unshared, b"x")
    os.waitpid(helper, 0)
    if uid != 0:
        map_ids("self", uid, gid)
    for fd in (ready, unshared):
        os.close(fd)
    call(libc, "mount", None, b"/", None, MS_PRIVATE_REC, None)
    call(libc, "mount", b"none", b"/proc/irq", b"tmpfs", 0, None)
    os.execvp(command[0], command)


if __name__ == "__main__":
    main(sys.argv[1:])
