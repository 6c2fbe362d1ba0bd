# SPDX-License-Identifier: MIT
"""Run a command on a host that lacks something.

    lacking.py userns|proc COMMAND [ARG]...

The command runs in a new user namespace. Root keeps every id of the host in
it, and any other user keeps their own id. The host then lacks:

    userns   user namespaces: none can be made below this one
    proc     a mountable /proc, as in many containers: a mount covers a part of
             /proc, and the kernel refuses a new /proc to a namespace that
             does not own that mount
"""
import ctypes
import os
import sys

CLONE_NEWNS, CLONE_NEWUSER = 0x00020000, 0x10000000
MS_PRIVATE_REC = 0x44000
LIBC = ctypes.CDLL(None, use_errno=True)


def call(name, *args):
    if getattr(LIBC, name)(*args) < 0:
        sys.exit(f"lacking: {name}: {os.strerror(ctypes.get_errno())}")


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


def unshare(flags):
    """Unshare and write the id maps. Only a process outside the namespace may
    write the maps of root."""
    uid, gid, me = os.geteuid(), os.getegid(), os.getpid()
    ready, unshared = os.pipe()
    helper = os.fork()
    if helper == 0:
        os.close(unshared)
        os.read(ready, 1)
        if uid == 0:
            map_ids(me, uid, gid)
        os._exit(0)
    call("unshare", flags)
    os.write(unshared, b"x")
    os.waitpid(helper, 0)
    if uid != 0:
        map_ids("self", uid, gid)
    for fd in (ready, unshared):
        os.close(fd)


def without_userns():
    unshare(CLONE_NEWUSER)
    write("/proc/sys/user/max_user_namespaces", "0")


def without_proc():
    unshare(CLONE_NEWUSER | CLONE_NEWNS)
    call("mount", None, b"/", None, MS_PRIVATE_REC, None)
    call("mount", b"none", b"/proc/irq", b"tmpfs", 0, None)


if __name__ == "__main__":
    {"userns": without_userns, "proc": without_proc}[sys.argv[1]]()
    os.execvp(sys.argv[2], sys.argv[2:])
