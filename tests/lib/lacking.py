# SPDX-License-Identifier: MIT
"""Run a command on a host that lacks something.

    lacking.py userns|proc|listener COMMAND [ARG]...

The command runs in a new user namespace (not with `listener`). Root keeps every
id of the host in it, and any other user keeps their own id. The host then
lacks:

    userns   user namespaces: none can be made below this one
    proc     a mountable /proc, as in many containers: a mount covers a part of
             /proc, and the kernel refuses a new /proc to a namespace that
             does not own that mount
    listener the right to listen to system calls: somebody above does already,
             as managers of containers do
"""
import ctypes
import os
import struct
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


def without_listener():
    """The caller stays and listens; the command runs in a child."""
    allow = struct.pack("HBBI", 6, 0, 0, 0x7fff0000)
    allow = ctypes.create_string_buffer(allow)
    program = struct.pack("HxxxxxxP", 1, ctypes.addressof(allow))
    seccomp = {"x86_64": 317, "aarch64": 277}[os.uname().machine]
    call("prctl", 38, 1, 0, 0, 0)                   # no_new_privs
    call("syscall", seccomp, 1, 8, program)         # a filter that hears
    child = os.fork()
    if child:
        status = os.waitpid(child, 0)[1]
        os._exit(os.waitstatus_to_exitcode(status) & 0xff)


if __name__ == "__main__":
    {"userns": without_userns, "proc": without_proc,
     "listener": without_listener}[sys.argv[1]]()
    os.execvp(sys.argv[2], sys.argv[2:])
