# SPDX-License-Identifier: MIT
"""A request to the maker of sessions, as repl/maker/maker.h has it, for those who
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
    _fields_ = fields("repl/maker/maker.h", "order",
                      {**TYPES, "struct limits": Limits})


UNITS = {"": 1, "ms": 1, "s": 1000, "m": 60000, "h": 3600000,
         "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def built_in():
    """The built-in limits, from the table of keys: what a host without a
    configuration allows. The first word of an enum is its default."""
    found = {}
    text = (TOP / "repl/config/keys.c").read_text()
    for kind, name, value in re.findall(
            r'CONFIG_(\w+), LIMIT\((\w+)\), "([^"]*)"', text):
        if kind == "WORD":
            found[name] = 0
        elif kind == "SHARE":
            found[name] = int(float(value) * 1000)
        else:
            number, unit = re.fullmatch(r"(\d+)(\w*)", value).groups()
            found[name] = int(number) * UNITS[unit]
    return found


BUILT_IN = built_in()
VERSION = int(re.search(r"#define ORDER_VERSION (\d+)",
                        (TOP / "repl/maker/maker.h").read_text())[1])


def order(**changes):
    """The largest that is allowed, but for the changes."""
    o = Order(version=VERSION, mode=1, term=b"xterm")
    for name, value in BUILT_IN.items():
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
    except ConnectionResetError:  # refused unread: the answer is behind it
        data, fds, _, _ = socket.recv_fds(s, 8192, 1)
    if not data:
        return None, ""
    if fds:
        return True, socket.socket(fileno=fds[0])
    return False, data[12:].split(b"\0")[0].decode()


def ask(message, fds=(), seconds=30):
    with connect() as s:
        try:
            if fds:
                socket.send_fds(s, [bytes(message)], fds)
            else:
                s.send(bytes(message))
        except (BrokenPipeError, PermissionError):
            pass
        return answer(s, seconds)
