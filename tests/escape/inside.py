# SPDX-License-Identifier: MIT
"""Runs inside the jail. Makes each attempt in a process of its own, and
reports the results. Reads {"numbers", "given", "seconds", "rows": [[name,
code] ...]} from the file that is the first argument. Writes {name: result} as
JSON to the file that is the second argument, or to standard output.

An attempt prints REFUSED:<errno or reason> or ESCAPED:<what>; a control prints
OK.
"""
import ctypes
import errno
import json
import os
import platform
import select
import signal
import struct
import sys
import time

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.syscall.restype = ctypes.c_long
ARM = platform.machine() == "aarch64"
NUMBERS = {}


def name_of(number):
    return errno.errorcode.get(number, str(number))


def raw(number, *args):
    """A system call by its number: (result, errno)."""
    ctypes.set_errno(0)
    words = [ctypes.c_long(a) if isinstance(a, int) else a for a in args]
    result = LIBC.syscall(ctypes.c_long(number), *words)
    return result, ctypes.get_errno()


def number_of(name):
    number = NUMBERS[name][1 if ARM else 0]
    if number is None:
        print("REFUSED:ENOSYS (this machine has no such call)")
        sys.stdout.flush()
        os._exit(0)
    return number


def call(name, *args):
    """Attempt a system call that must fail."""
    result, e = raw(number_of(name), *args)
    print(f"REFUSED:{name_of(e)}" if result == -1 else f"ESCAPED:{result}")


def works(name, *args):
    """The control: a system call that must succeed."""
    result, e = raw(number_of(name), *args)
    print(f"OK:{result}" if result != -1 else f"failed:{name_of(e)}")


def attempt(function, *args):
    """Attempt something through Python that must raise."""
    try:
        value = function(*args)
    except OSError as e:
        print(f"REFUSED:{name_of(e.errno)}")
    except (ImportError, ValueError) as e:
        print(f"REFUSED:{type(e).__name__}")
    else:
        print(f"ESCAPED:{value!r:.200}")


def succeed(function, *args):
    try:
        print(f"OK:{function(*args)!r:.200}")
    except Exception as e:
        print(f"failed:{e!r:.200}")


def read(path, n=200):
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        return os.read(fd, n)
    finally:
        os.close(fd)


def write(path, data=b"x"):
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NONBLOCK, 0o600)
    try:
        return os.write(fd, data)
    finally:
        os.close(fd)


def rewrite(path, data=b"x"):
    """Write to a file that exists already."""
    fd = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    try:
        return os.write(fd, data)
    finally:
        os.close(fd)


def forked(name, flags):
    """clone(2) with flags. No child may come into being."""
    args = (flags, 0, 0, 0, 0)
    result, e = raw(number_of(name), *args)
    if result == 0:
        os._exit(0)
    print(f"REFUSED:{name_of(e)}" if result == -1 else f"ESCAPED:{result}")


def mount_of(path):
    fd = os.open(path, os.O_PATH | os.O_NOFOLLOW)
    try:
        text = read(f"/proc/self/fdinfo/{fd}", 999).decode()
    finally:
        os.close(fd)
    return text.partition("mnt_id:")[2].split()[0]


def mounts():
    """{path: flags} of the mounts. In a session that a person starts the table
    of mounts is empty."""
    found, todo = {"/": os.statvfs("/").f_flag}, ["/"]
    while todo:
        top = todo.pop()
        for entry in os.scandir(top):
            if entry.is_symlink():
                continue
            if mount_of(entry.path) != mount_of(top):
                found[entry.path] = os.statvfs(entry.path).f_flag
            if entry.is_dir() and entry.path not in ("/usr", "/proc"):
                todo.append(entry.path)
    return found


def expect(truth, what=""):
    print(f"REFUSED:{what}" if truth else f"ESCAPED:{what}")


def status(pid="self"):
    with open(f"/proc/{pid}/status") as f:
        return dict(line.rstrip("\n").split(":\t", 1)
                    for line in f if ":\t" in line)


def identity(pid="self"):
    """Whether a process has no capability, no_new_privs and a filter, as every
    process of the jail must."""
    s = status(pid)
    caps = [s[c] for c in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")]
    right = all(int(c, 16) == 0 for c in caps) \
        and s["NoNewPrivs"] == "1" and s["Seccomp"] == "2"
    return right, f"{caps} {s['NoNewPrivs']} {s['Seccomp']}"


def machine_code(code):
    """Run machine code. Returns the value that it leaves in eax."""
    import mmap
    page = mmap.mmap(-1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS,
                     mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(code)
    address = ctypes.addressof(ctypes.c_char.from_buffer(page))
    return ctypes.CFUNCTYPE(ctypes.c_int)(address)()


# The code of write(1, ...); exit(0) for each processor and word size, with the
# machine number of the ELF header. The text to write stands in front of the
# code.
WRITES_OK = {
    ("x86_64", 64): (62, "bf01000000 be78000100 ba04000000 b801000000 0f05"
                         "31ff b83c000000 0f05"),
    ("x86_64", 32): (3, "bb01000000 b954000100 ba04000000 b804000000 cd80"
                        "31db b801000000 cd80"),
    ("aarch64", 64): (183, "200080d2 010f80d2 2100a0f2 820080d2 080880d2"
                           "010000d4 000080d2 a80b80d2 010000d4"),
    ("aarch64", 32): (40, "0100a0e3 541000e3 011040e3 0420a0e3 0470a0e3"
                          "000000ef 0000a0e3 0170a0e3 000000ef"),
}


def become_a_program(bits):
    """Execute a program of `bits` bits, which writes OK: and ends."""
    machine, code = WRITES_OK[platform.machine(), bits]
    wide = bits == 64
    at, size = 0x10000, 0x78 if wide else 0x54
    body = b"OK:\n" + bytes(4) + bytes.fromhex(code)
    header = struct.pack(
        "<16sHHIQQQIHHHHHH" if wide else "<16sHHIIIIIHHHHHH",
        b"\x7fELF" + bytes((bits // 32, 1, 1)), 2, machine, 1, at + size + 8,
        size - 56 if wide else size - 32, 0, 0x5000000 if machine == 40 else 0,
        size - 56 if wide else size - 32, 56 if wide else 32, 1, 0, 0, 0)
    length = size + len(body)
    segment = struct.pack("<IIQQQQQQ", 1, 5, 0, at, at, length, length, 0x1000) \
        if wide else struct.pack("<8I", 1, 0, at, at, length, length, 5, 0x1000)
    path = f"/home/program{bits}"
    with open(path, "wb") as f:
        os.fchmod(f.fileno(), 0o700)
        f.write(header + segment + body)
    os.execv(path, [path])


def isolated(code, seconds):
    """Run code in a child. Returns its output, or how the child died."""
    r, w = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(r)
            os.dup2(w, 1)
            sys.stdout = open(1, "w", closefd=False)
            exec(compile(code, "<attempt>", "exec"), globals())
            sys.stdout.flush()
        except SystemExit:
            sys.stdout.flush()
        except BaseException as e:
            sys.stdout.write(f"raised:{e!r:.200}")
            sys.stdout.flush()
        finally:
            os._exit(0)
    os.close(w)
    out, how, end = b"", None, time.monotonic() + seconds
    while how is None and time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        how = status if done else None
        # A process that the child left behind may hold the pipe open. So after
        # the child has ended, only the bytes already in the pipe are read.
        while select.select([r], [], [], 0 if done else 0.02)[0]:
            data = os.read(r, 4096)
            if not data:
                time.sleep(0.0005)      # the child is about to end
                break
            out += data
    os.close(r)
    if how is None:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        return "hung"
    if os.WIFSIGNALED(how):
        return f"REFUSED:signal {os.WTERMSIG(how)}"
    return out.decode(errors="replace").strip() or "nothing"


def main(rows_path, results_path=None):
    with open(rows_path) as f:
        request = json.load(f)
    NUMBERS.update(request["numbers"])
    globals().update(request["given"])
    sys.stdout.flush()
    results = {name: isolated(code, request["seconds"])
               for name, code in request["rows"]}
    if results_path:
        with open(results_path, "w") as f:
            json.dump(results, f)
    else:
        json.dump(results, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
