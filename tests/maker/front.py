# SPDX-License-Identifier: MIT
"""A front end of a person's own: it asks its warden as jail/wire/wire.h has it,
without cellblock. The layout is read from the headers."""
import ctypes
import os
import re
import socket

import order

NAME = 250  # bytes, of a directory


def constant(header, name):
    text = (order.TOP / header).read_text()
    return eval(re.search(rf"^#define {name} \(?([^)/\n]+)", text, re.M)[1])


def words(header, name):
    """{word: number} of an enum."""
    text = re.sub(r"/\*.*?\*/", "", (order.TOP / header).read_text(),
                  flags=re.S)
    body = re.search(rf"^enum {name} \{{(.*?)^\}};", text, re.S | re.M)[1]
    return {word: i for i, word in enumerate(re.findall(r"\w+", body))}


class End(ctypes.Structure):
    _fields_ = order.fields("jail/jail.h", "jail_end", order.TYPES)


class Request(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("seq", ctypes.c_uint32),
                ("a", ctypes.c_int64), ("b", ctypes.c_int64),
                ("c", ctypes.c_int64),
                ("ends", End * constant("jail/jail.h", "JAIL_MANY_MAX")),
                ("path", ctypes.c_char * constant("jail/jail.h",
                                                  "JAIL_PATH_MAX"))]


REQUESTS = words("jail/wire/wire.h", "wire_front_type")
EVENTS = words("jail/jail.h", "jail_event_type")


class Front:
    def __init__(self, **limits):
        ok, self.sock = order.ask(order.order(mode=0, **limits))
        assert ok, self.sock
        self.sock.setblocking(True)
        self.seq, self.kept, self.got = 0, [], 0
        # The warden's first message is an event, never a reply.
        self.event = len(self._receive())
        while self._type(self._receive()) != EVENTS["JAIL_UP"]:
            pass

    def _receive(self):
        data, fds, _, _ = socket.recv_fds(self.sock, 1 << 20, 8)
        assert data, "the warden is gone"
        self.kept += fds
        self.got += len(data)
        return data

    def _type(self, data):
        """Of an event; None: bytes behind one."""
        return int.from_bytes(data[:4], "little") \
            if len(data) == self.event else None

    def send(self, name, path=b"", **more):
        self.seq += 1
        self.sock.send(bytes(Request(type=REQUESTS[name], seq=self.seq,
                                     path=path, **more)))

    def ask(self, name, path=b"", **more):
        """Ask, and wait for a reply. The pieces of an earlier answer may arrive
        before it."""
        self.send(name, path, **more)
        while self._type(self._receive()) != EVENTS["JAIL_REPLY"]:
            pass

    def fill(self, n=3900):
        """A home of directories whose list is as long as a list can be."""
        top = b"/".join(bytes([ord("a") + i]) * NAME for i in range(12))
        self.ask("FRONT_HOME_MKDIR", top, a=1)
        for i in range(n):
            self.ask("FRONT_HOME_MKDIR", top + b"/%d" % i, a=1)
        self.drop()

    def drop(self):
        for fd in self.kept:
            os.close(fd)
        self.kept, self.got = [], 0

    def held(self):
        """Bytes of the files that the warden has handed over."""
        return sum(os.fstat(fd).st_size for fd in self.kept)
