# SPDX-License-Identifier: MIT
"""Files that are handed in as repl/lab/lab.h has it, by those who do not go
through cellblock: scripts of people import it, beside order."""
import re
import select
import socket
import struct
import time

import order

TEXT = (order.TOP / "repl/lab/lab.h").read_text()
VERSION = int(re.search(r"HANDIN_VERSION (\w+)", TEXT)[1], 16)
FILES, LIST = 0, 1


def ask(kind=FILES):
    """(True, the socket for the rest), or (False, what was said). Like
    cellblock, ask again while too many others do."""
    while True:
        ok, got = order.ask(struct.pack("=II", VERSION, kind))
        if ok or not got.startswith("too many"):
            return ok, got
        time.sleep(.02)


def head(name=b"", size=0):
    return struct.pack("=q256s", size, name)


def row(sock, seconds=60):
    """(ok, version, receipt, name, what was said); None: cut off."""
    if not select.select([sock], [], [], seconds)[0]:
        return None
    for _ in range(2):
        try:
            data = sock.recv(8192)
            break
        except ConnectionResetError:  # the answer is behind it
            data = b""
    if not data:
        return None
    ok, version = struct.unpack_from("=iI", data)

    def text(at, n):
        return data[at:at + n].split(b"\0")[0].decode()
    return ok, version, text(32, 12), text(44, 256), text(440, 512)


def rows(sock, seconds=60):
    found = []
    while (r := row(sock, seconds)) and r[0] and r[3]:
        found.append(r)
    return found + [r]


def begin(*messages, kind=FILES):
    ok, sock = ask(kind)
    assert ok, sock
    send(sock, *messages)
    return sock


def send(sock, *messages):
    for m in messages:
        try:
            sock.send(m)
        except (BrokenPipeError, ConnectionResetError):
            return


def hand_in(*files):
    """Of [(name, bytes)...]: the answers."""
    sock = begin()
    for name, data in files:
        send(sock, head(name, len(data)))
        for i in range(0, len(data), 1 << 16):
            send(sock, data[i:i + (1 << 16)])
    send(sock, head())
    return rows(sock)


def said(*messages):
    """The answer of the service to such messages."""
    last = rows(begin(*messages))[-1]
    return last and last[4]


def with_descriptors(message):
    sock = begin()
    ours, theirs = socket.socketpair()
    try:
        socket.send_fds(sock, [message], [theirs.fileno()])
    except OSError:  # the kernel refuses to send them
        return "refused by the kernel"
    theirs.close()
    last = rows(sock)[-1]
    ours.close()
    return last and last[4]
