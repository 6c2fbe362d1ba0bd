# SPDX-License-Identifier: MIT
"""Run a command while some system calls fail, as on an older kernel or under
the filter of a container.

    without.py ERRNO CALL... -- COMMAND [ARG]...

ERRNO is the name of an error. CALL is a name, or NAME&MASK: the call then fails
only if its first argument has one of these bits; or NAME=VALUE: only if its
third argument is that.
"""
import ctypes
import errno
import os
import re
import struct
import sys

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
LOAD, JUMP_EQUAL, JUMP_SET, RETURN = 0x20, 0x15, 0x45, 0x06
ALLOW, ERRNO = 0x7FFF0000, 0x00050000
NR_AT, ARG0_AT, ARG2_AT = 0, 16, 32  # in struct seccomp_data, little endian
TESTS = {"&": (ARG0_AT, JUMP_SET), "=": (ARG2_AT, JUMP_EQUAL)}


class Program(ctypes.Structure):
    _fields_ = [("len", ctypes.c_ushort), ("filter", ctypes.c_void_p)]


def number_of(name):
    lib = ctypes.CDLL("libseccomp.so.2")
    nr = lib.seccomp_syscall_resolve_name(name.encode())
    if nr < 0:
        sys.exit(f"without: no system call {name}")
    return nr


def instruction(code, value, yes=0, no=0):
    return struct.pack("HBBI", code, yes, no, value)


def build(calls, code):
    """The filter: for each call, a test and a return of the errno."""
    refuse = instruction(RETURN, ERRNO | code)
    out = b""
    for call in calls:
        name, sign, number = re.fullmatch(r"(\w+)([&=]?)(\w*)", call).groups()
        out += instruction(LOAD, NR_AT)
        out += instruction(JUMP_EQUAL, number_of(name), 0, 3 if sign else 1)
        if sign:
            at, jump = TESTS[sign]
            out += instruction(LOAD, at)
            out += instruction(jump, int(number, 0), 0, 1)
        out += refuse
    return out + instruction(RETURN, ALLOW)


def install(code):
    libc = ctypes.CDLL(None, use_errno=True)
    kept = ctypes.create_string_buffer(code, len(code))
    program = Program(len(code) // 8, ctypes.addressof(kept))
    if os.geteuid() != 0 and libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        sys.exit("without: no_new_privs")
    if libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER,
                  ctypes.byref(program), 0, 0):
        sys.exit(f"without: {os.strerror(ctypes.get_errno())}")


def main(argv):
    end = argv.index("--")
    install(build(argv[1:end], getattr(errno, argv[0])))
    os.execvp(argv[end + 1], argv[end + 1:])


if __name__ == "__main__":
    main(sys.argv[1:])
