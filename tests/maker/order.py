# SPDX-License-Identifier: MIT
"""A request to the maker of sessions, as repl/maker/order.h has it, for those who
do not go through cellblock. The layout is read from the headers."""
import ctypes
import pathlib
import re
import select
import socket

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
PATH = "/run/cellblock/maker"
TYPES = {"int64_t": ctypes.c_int64, "uint64_t": ctypes.c_uint64,
         "uint32_t": ctypes.c_uint32, "uint16_t": ctypes.c_uint16,
         "int": ctypes.c_int}


def fields(header, name, types):
    """[(name, type)...] of a struct that has no pointers."""
    text = re.sub(r"/\*.*?\*/", "", (TOP / header).read_text(), flags=re.S)
    body = re.search(rf"^struct {name} \{{(.*?)^\}};", text, re.S | re.M)[1]
    found = []
    for kind, names in re.findall(r"^\s*((?:enum |struct )?\w+)\s+([^;]+);",
                                  body, re.M):
        for n in names.split(","):
            n, _, size = n.strip().rstrip("]").partition("[")
            t = ctypes.c_char * int(size) if size else types.get(
                kind, ctypes.c_int if kind.startswith("enum ") else None)
            assert t, kind
            found.append((n, t))
    return found


class Limits(ctypes.Structure):
    _fields_ = fields("jail/spec.h", "limits", TYPES)


class Order(ctypes.Structure):
    _fields_ = fields("repl/maker/order.h", "order",
                      {**TYPES, "struct limits": Limits})


MIB = 1 << 20
# The built-in limits: what a host without a configuration allows.
BUILT_IN = {
    "cell_wall_ms": 10000, "cell_grace_ms": 1000, "cell_cpu_ms": 10000,
    "output_bytes": MIB, "tail_bytes": 8192, "source_bytes": MIB,
    "background": 0, "undo": 5, "checkpoint": 0,
    "memory_bytes": 512 * MIB, "processes": 64, "cpus_milli": 1000,
    "idle_ms": 1800000, "lifetime_ms": 43200000, "per_user": 4,
    "home_bytes": 64 * MIB, "home_files": 4096, "max_file_bytes": 16 * MIB,
    "max_count": 100, "files_ms": 5000, "recursion": 1000, "network": 0}


def order(**changes):
    """The largest that is allowed, but for the changes."""
    o = Order(version=1, mode=1, term=b"xterm")
    for name, value in BUILT_IN.items():
        if name in dict(Limits._fields_):
            setattr(o.limits, name, value)
    for name, value in changes.items():
        at = o.limits if hasattr(o.limits, name) else o
        setattr(at, name, value)
    return o


def connect():
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.connect(PATH)
    return s


def answer(s, seconds=30):
    """(True, the session's socket), (False, what was said), or (None, "")
    where nothing came back."""
    if not select.select([s], [], [], seconds)[0]:
        return None, "silence"
    try:
        data, fds, _, _ = socket.recv_fds(s, 8192, 1)
    except ConnectionResetError:
        return None, ""
    if not data:
        return None, ""
    if fds:
        return True, socket.socket(fileno=fds[0])
    return False, data[12:].split(b"\0")[0].decode()


def ask(message, fds=()):
    with connect() as s:
        try:
            if fds:
                socket.send_fds(s, [bytes(message)], fds)
            else:
                s.send(bytes(message))
        except (BrokenPipeError, PermissionError):
            pass
        return answer(s)
