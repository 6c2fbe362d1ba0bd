# SPDX-License-Identifier: MIT
"""Run a command where no user namespace can be made.

    no_userns.py COMMAND [ARG]...

In a user namespace of its own in which none may be created below. There root
is still root, with every id of the host; anybody else is themselves.
"""
import ctypes
import os
import sys

CLONE_NEWUSER = 0x10000000
SETTING = "/proc/sys/user/max_user_namespaces"


def write(path, text):
    with open(path, "w") as f:
        f.write(text)


def map_ids(pid, uid, gid):
    if uid == 0:
        write(f"/proc/{pid}/uid_map", "0 0 4294967295")
        write(f"/proc/{pid}/gid_map", "0 0 4294967295")
    else:
        write(f"/proc/{pid}/setgroups", "deny")
        write(f"/proc/{pid}/uid_map", f"{uid} {uid} 1")
        write(f"/proc/{pid}/gid_map", f"{gid} {gid} 1")


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
    if libc.unshare(CLONE_NEWUSER) < 0:
        sys.exit(f"no_userns: unshare: {os.strerror(ctypes.get_errno())}")
    os.write(unshared, b"x")
    os.waitpid(helper, 0)
    if uid != 0:
        map_ids("self", uid, gid)
    write(SETTING, "0")
    for fd in (ready, unshared):
        os.close(fd)
    os.execvp(command[0], command)


if __name__ == "__main__":
    main(sys.argv[1:])
