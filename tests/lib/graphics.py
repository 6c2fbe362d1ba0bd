# SPDX-License-Identifier: MIT
"""Terminals that draw pictures: one that answers and draws as kitty does, as
iTerm2, as a terminal with sixel, or one that has none of that.

A Graphics stands before the screen of a Session (session.graphics = ...). It
takes the strings out of what comes, answers those that ask, and keeps the
pictures with the row on which each begins. Then it leaves the cursor somewhere
else, as such terminals do, each in its own place.
"""
import base64
import re
import struct
import zlib

QUERY = re.compile(
    rb"\x1b_(?P<apc>[^\x1b]*)\x1b\\|\x1b\](?P<osc>[^\x1b\a]*)(?:\x1b\\|\a)|"
    rb"\x1bP(?P<dcs>[^\x1b]*)\x1b\\|(?P<csi>\x1b\[(?:16t|c|\?1;1;0S))")
UNFINISHED = re.compile(rb"\x1b(?:[_P\]](?:[^\x1b\a]|\x1b$)*|\[?\??[\d;]*)?$")


class Picture:
    def __init__(self, way, row, column, data, keys):
        self.way, self.row, self.column = way, row, column
        self.data, self.keys = data, keys


class Graphics:
    def __init__(self, way=None, true_colour=False, cell=(16, 8), hold=False):
        self.way, self.true_colour, self.cell = way, true_colour, cell
        self.hold = hold        # answers wait for release()
        self.held = b""
        self.pictures = []
        self.asked = []         # what was asked, in order
        self.seen = self.chunks = b""

    def take(self, data, session):
        """Feed the screen with what is text; answer and draw the rest."""
        self.session = session
        self.seen += data
        while True:
            m = QUERY.search(self.seen)
            if not m:
                break
            session.stream.feed(self.seen[:m.start()])
            self.seen = self.seen[m.end():]
            for kind in "apc", "osc", "dcs", "csi":
                if m[kind] is not None:
                    getattr(self, kind)(m[kind])
        m = UNFINISHED.search(self.seen)
        at = m.start() if m else len(self.seen)
        session.stream.feed(self.seen[:at])
        self.seen = self.seen[at:]

    def answer(self, text):
        if self.hold:
            self.held += text
        else:
            self.session.type(text)

    def release(self):
        self.hold, held = False, self.held
        self.session.type(held)

    def draw(self, data, keys):
        screen = self.session.screen
        self.pictures.append(Picture(self.way, screen.here(),
                                     screen.cursor.x, data, keys))
        self.session.stream.feed(b"\r\n\n\x1b[7C")

    def apc(self, body):
        keys, _, data = body[1:].partition(b";")
        keys = dict(k.split(b"=") for k in keys.split(b","))
        if keys.get(b"a") == b"q":
            self.asked.append("kitty")
            if self.way == "kitty":
                self.answer(b"\x1b_Gi=31;OK\x1b\\")
            return
        self.first = keys if b"a" in keys else self.first
        self.chunks += data
        assert len(data) <= 4096
        if keys[b"m"] == b"0":
            assert self.way == "kitty" and self.first[b"q"] == b"2"
            self.draw(base64.b64decode(self.chunks, validate=True), self.first)
            self.chunks = b""

    def osc(self, body):
        if body == b"1337;ReportCellSize":
            self.asked.append("iterm2")
            if self.way == "iterm2":
                self.answer(b"\x1b]1337;ReportCellSize=%d.0;%d.0;1.0\x1b\\" %
                            self.cell)
        elif body.startswith(b"1337;File="):
            keys, _, data = body[10:].partition(b":")
            keys = dict(k.split(b"=") for k in keys.split(b";"))
            assert self.way == "iterm2" and keys[b"inline"] == b"1"
            data = base64.b64decode(data, validate=True)
            assert len(data) == int(keys[b"size"])
            self.draw(data, keys)

    def dcs(self, body):
        if body == b"$qm":
            self.asked.append("colour")
            self.answer(b"\x1bP1$r0;48:2::1:2:3m\x1b\\" if self.true_colour
                        else b"\x1bP1$r0;48:5:16m\x1b\\")
        else:
            assert self.way == "sixel", body[:80]
            self.draw(body, {})

    def csi(self, body):
        self.asked.append(body[2:].decode())
        if body == b"\x1b[c":
            self.answer(b"\x1b[?62;%s22c" % (
                b"4;" if self.way == "sixel" else b""))
        elif body == b"\x1b[16t" and self.cell:
            self.answer(b"\x1b[6;%d;%dt" % self.cell)
        elif body == b"\x1b[?1;1;0S" and self.way == "sixel":
            self.answer(b"\x1b[?1;0;64S")


class Unseen:
    """A terminal that reads and draws nothing: of much that takes long."""
    @staticmethod
    def take(data, session):
        pass


# ---- PNG, both ways ----

def png(width, height, row, colour=2, depth=8, extra=b""):
    """A PNG file whose rows are row(y), bytes with their filter before them."""
    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(
            ">I", zlib.crc32(kind + body))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(
        ">IIBBBBB", width, height, depth, colour, 0, 0, 0)) + extra + chunk(
        b"IDAT", zlib.compress(b"".join(map(row, range(height))))) + chunk(
        b"IEND", b"")


def pixels(data):
    """Width, height, and rows of RGB of a PNG file of ours."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", data[16:24])
    at, packed = 8, b""
    while at < len(data):
        size, = struct.unpack(">I", data[at:at + 4])
        kind, body = data[at + 4:at + 8], data[at + 8:at + 8 + size]
        assert struct.unpack(">I", data[at + 8 + size:at + 12 + size])[0] == \
            zlib.crc32(kind + body)
        packed += body if kind == b"IDAT" else b""
        at += 12 + size
    raw, rows, above = zlib.decompress(packed), [], bytes(3 * width)
    for y in range(height):
        line = raw[y * (3 * width + 1):(y + 1) * (3 * width + 1)]
        assert line[0] in (0, 2)
        above = bytes(a + b & 255 for a, b in zip(line[1:], above)) \
            if line[0] else line[1:]
        rows.append(above)
    return width, height, rows
