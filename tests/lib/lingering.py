# SPDX-License-Identifier: MIT
"""Sessions that outlive their terminal, and what is said to their sockets."""
import array
import contextlib
import json
import os
import re
import socket
import struct

import hosttree
import term
from world import CELLBLOCK, IS_ROOT, TESTS

# It takes 4 s: a test that has seen its beginning is to lose the terminal, or
# to ask something, before its end.
COUNT = ("import time\nfor i in range(40):\n print('n', i, flush=True);"
         " time.sleep(.1)\nd = i\n")
MAGIC, TEXT = 0x6b626c63, 512
VERSION = int(re.search(r"#define ATTACH_VERSION (\d+)",
                        (TESTS.parent / "repl/attach/attach.h").read_text())[1])
STATUS, END, ATTACH, WATCH = 1, 2, 64, 66
OK, NO = 1, 2
NOBODY = 65534


class Lingering:
    """Sessions that are ended by hand: the fixture `many`."""

    def __init__(self, cb):
        self.cb = cb
        self.places = [cb.home / ".local/state/cellblock/live"]

    def start(self, *args, start=True, **more):
        s = term.Session([CELLBLOCK, *args], env=self.cb.env,
                         cwd=self.cb.work, **more)
        self.cb.open.append(s)
        return s.start() if start else s

    def registry(self):
        r = self.cb.run("--sessions", "--json")
        assert r.code == 0, r
        mine = [e for e in json.loads(r.text)
                if not IS_ROOT or e["who"] == "root"]
        return mine

    def only(self):
        """The one session there is, once it answers: where the host is busy,
        the list does not wait for that."""
        def answers():
            found = self.registry()
            assert len(found) == 1, found
            return found[0]["answers"] and found
        return hosttree.until(answers, "the session to answer")[0]

    def until(self, condition, what):
        """The only session, once condition(it) holds."""
        def holds():
            found = self.registry()
            return len(found) == 1 and condition(found[0]) and found
        return hosttree.until(holds, what)[0]

    def detached(self):
        return self.until(lambda e: e["answers"] and e["detached"],
                          "the session to be detached")

    def lose(self, s, until_end=False):
        """Its terminal is gone; with `until_end`, until its cell has ended."""
        drop(s)
        self.until(lambda e: e["answers"] and e["detached"] and
                   not (until_end and e["running"]), "the session to go on")

    def lose_in_transfer(self, s, command):
        """Its terminal is gone while that command moves files."""
        s.type(command)
        s.expect(f"^>>> {command}$")
        row = s.screen.here()
        s.type("\r")
        s.wait(lambda: s.screen.here() > row, "the transfer to begin")
        self.lose(s)

    def none(self):
        hosttree.until(lambda: not self.registry(), "the end of all sessions")

    def socket(self):
        return self.places[0] / str(self.only()["id"])

    def close(self):
        left = self.registry()
        for e in left:
            self.cb.run("--end", f"{e['who']}/{e['number']}")
        if left:
            self.none()


# States of a runtime directory in which there can be no `cellblock`.
SPOILT = ["missing", "file", "open", "link", "others", "open above",
          "of others"]


def spoil(path, what, uid):
    """Make the runtime directory of `uid` one of those."""
    if what == "missing":
        return
    path.mkdir(mode=0o700)
    inside = path / "cellblock"
    if what == "read-only":
        path.chmod(0o500)
    elif what == "open above":
        path.chmod(0o777)
    elif what == "file":
        inside.write_text("")
    elif what == "link":
        inside.symlink_to("/tmp")
    elif what == "open":
        inside.mkdir()
        inside.chmod(0o777)
    elif what == "others":
        inside.mkdir(mode=0o755)
        os.chown(inside, NOBODY, NOBODY)
    if what == "open" or what == "file":
        os.chown(inside, uid, uid)
    owner = NOBODY if what == "of others" else uid
    os.chown(path, owner, owner)


def drop(s):
    """The terminal is gone, as after a line that dropped."""
    os.close(s.master)
    os.close(s.slave)
    s.closed = True
    s.process.wait(timeout=term.DEADLINE)


def namespace():
    return os.open("/proc/self/ns/user", os.O_RDONLY)


def request(kind, version=VERSION, magic=MAGIC, text=b"", rest=168):
    return struct.pack("=IHHiI512s", magic, version, kind, 0, 0, text) + \
        bytes(rest)


@contextlib.contextmanager
def door(path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as k:
        k.settimeout(term.DEADLINE)
        here = os.open(path.parent, os.O_RDONLY)
        try:
            k.connect(f"/proc/self/fd/{here}/{path.name}")
        finally:
            os.close(here)
        yield k


def send(k, data, fds):
    k.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS,
                        array.array("i", fds))] if fds else [])


def hear(k):
    """The word of the answer, and its text; None: the connection was dropped."""
    got = k.recv(4096)
    if not got:
        return None
    return (struct.unpack_from("=IHHi", got)[2],
            got[16:16 + TEXT].split(b"\0")[0].decode())


def ask(path, data, fds):
    """The result of hear() for the answer."""
    with door(path) as k:
        try:
            send(k, data, fds)
            return hear(k)
        except ConnectionError:
            return None
