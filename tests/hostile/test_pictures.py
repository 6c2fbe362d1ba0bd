# SPDX-License-Identifier: MIT
"""A cell that speaks to the pipe for pictures itself, and one that uses
pictures to draw where it must not."""
import os
import re

import pytest

from graphics import Graphics, png
from hostile import is_whole

# The pipe, as any code of the cell can find it.
FIND = '''import os, stat, sys, threading, time
def pipe():
    for n in range(600, 700):
        try:
            if stat.S_ISFIFO(os.fstat(n).st_mode): return n
        except OSError: pass
def head(text): os.write(pipe(), text.ljust(63) + b"\\n")
def send(data):
    data = memoryview(data)
    while data: data = data[os.write(pipe(), data):]
def picture(w=8, h=16, n=7):
    head(b"rgb %d %d %d %d %d" % (w, h, w, h, n))
    send(bytes(3 * w * h))
'''
NO_PICTURE = "no more pictures of this cell are shown"
DRAWN = "figure 7 · 8x16 · :download figure-7.png"


def start(cb, way="kitty", *args):
    s = cb.session(*args, size=(40, 80))
    s.graphics = Graphics(way)
    s.run("open('kept.txt', 'w').write('in the home'); "
          "kept = {'cell': 1}")
    s.run(FIND)
    return s


def define_one_pixel(s):
    s.run("class P:\n    def _repr_png_(self): return bytes.fromhex('%s')\n"
          % png(1, 1, lambda y: bytes(4)).hex())


def test_the_pipe_can_be_found(cb):
    """The control: a correct picture of the kind that the others forge is drawn."""
    s = start(cb)
    assert DRAWN in s.run("picture()")
    assert len(s.graphics.pictures) == 1


HEADS = {
    "other_name": "head(b'png 8 16 8 16 7')",
    "no_width": "head(b'rgb 0 16 8 16 7')",
    "no_height": "head(b'rgb 8 0 8 16 7')",
    "negative": "head(b'rgb -8 16 8 16 7')",
    "too_wide": "head(b'rgb 16385 1 8 16 7')",
    "too_many": "head(b'rgb 4096 1025 8 16 7')",
    "overflows": "head(b'rgb 65536 65536 8 16 7')",
    "seven_digits": "head(b'rgb 8 16 8 16 1000000')",
    "one_missing": "head(b'rgb 8 16 8 16')",
    "one_more": "head(b'rgb 8 16 8 16 7 7')",
    "an_escape": "head(b'rgb 8 16 8 16 7\\x1b[2J')",
    "no_end": "send(b'rgb 8 16 8 16 7'.ljust(64))",
    "noise": "send(os.urandom(100000))",
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", HEADS)
def test_a_wrong_head_is_the_last(cb, name):
    s = start(cb)
    row = s.screen.here()
    out = s.run("try:\n    %s\n    time.sleep(0.1)\n    picture()\n"
                "except OSError as e: print(type(e).__name__)\n" % HEADS[name])
    assert NO_PICTURE + ": what it hands over is no picture" in out
    assert not s.graphics.pictures
    is_whole(s, row)
    assert DRAWN in s.run("picture()")      # another cell's are


def test_a_flood_of_pictures_ends_at_the_twentieth(cb):
    s = start(cb)
    row = s.screen.here()
    out = s.run("for i in range(100): picture()\n")
    assert NO_PICTURE + ": these are too many" in out
    assert len(s.graphics.pictures) == 20
    is_whole(s, row)


def test_the_twenty_first_picture_is_no_error(cb):
    s = start(cb)
    row = s.screen.here()
    define_one_pixel(s)
    out = s.run("for i in range(30): sys.displayhook(P())\nprint('end')\n")
    assert NO_PICTURE + ": these are too many" in s.all_text()
    assert "\nend" in out and "Traceback" not in out
    assert len(s.graphics.pictures) == 20
    is_whole(s, row)


@pytest.mark.parametrize("code", [
    "head(b'rgb 2048 2048 1 1 7')",
    "head(b'rgb 2048 2048 1 1 7'); send(bytes(1000000))",
    "send(b'rgb 8 16')"])
def test_half_a_picture_is_none(cb, code):
    s = start(cb)
    row = s.screen.here()
    assert s.run(code) == ""
    assert not s.graphics.pictures
    is_whole(s, row)
    assert DRAWN in s.run("picture()")


def test_a_child_that_keeps_the_pipe_draws_into_no_later_cell(cb):
    s = start(cb, "kitty", "-s", "cell.background=run")
    s.run("r, w = os.pipe()")
    s.run("p = pipe()\nif os.fork() == 0:\n    os.read(r, 1)\n    try:\n"
          "        os.write(p, b'rgb 8 16 8 16 9'.ljust(63) + b'\\n' "
          "+ bytes(384))\n    except OSError:\n"
          "        open('broken', 'w').close()\n    os._exit(0)\n")
    s.run("os.write(w, b'1'); os.wait()\nprint(end='')")
    assert "figure 9" not in s.all_text()
    assert s.run("os.path.exists('broken')") == "True"


def test_a_forged_mark_draws_nothing_and_ends_the_output(cb):
    s = start(cb)
    row = s.screen.here()
    s.run("os.write(1, b'\\x1b_' + b'0' * 32 + b'\\x1b\\\\')\nprint('more')")
    assert not s.graphics.pictures
    is_whole(s, row)


# ---- where a picture stands ----

@pytest.mark.parametrize("way", [None, "kitty", "sixel", "iterm2"])
def test_what_follows_a_picture_cannot_reach_it(cb, way):
    s = start(cb, way)
    s.run("class P:\n    def _repr_png_(self): return open('p.png', 'rb')"
          ".read()\n")
    with open(os.path.join(cb.work, "p.png"), "wb") as f:
        f.write(png(64, 64, lambda y: b"\0" + b"\xff\0\0" * 64))
    s.run(":upload p.png")
    row = s.enter("print('above'); sys.displayhook(P()); "
                  "print('\\x1b7\\x1b[20A\\rforged\\x1b8\\x1b[Hforged\\x1bM')")
    s.wait(lambda: s.screen.here() > row and s.at_prompt(), "the prompt")
    text = "\n".join(s.screen.rows(row))
    shown = text.index("above"), text.index("¦ [figure 1 · 64x64")
    assert shown[0] < shown[1] < text.index("forged")


def test_on_the_alternate_screen_a_picture_is_only_named(cb):
    s = start(cb)
    define_one_pixel(s)
    out = s.run("print('\\x1b[?1049h', end='', flush=True); "
                "sys.displayhook(P()); print('\\x1b[?1049l', end='')")
    assert "figure 1 · 1x1 · not drawn" in out
    assert not s.graphics.pictures and not s.screen.alternate
    # The control: on the main screen it is drawn.
    assert "figure 2 · 1x1 · :download" in s.run("P()")
    assert len(s.graphics.pictures) == 1


def test_pictures_count_as_output(cb):
    s = start(cb, None, "-s", "cell.output=8K", "-s", "cell.tail=1K")
    out = s.run("picture(1, 1)\nprint('x' * 100)\n")
    assert "not drawn" not in out
    out = s.run("import random\nhead(b'rgb 512 512 512 512 8')\n"
                "send(random.randbytes(3 << 18))\n")
    assert "512x512 · not drawn: output limit · :download figure-8.png" in \
        re.sub(r"\n¦ *", " ", out)
    assert "\N{UPPER HALF BLOCK}" not in out
    # A picture over the limit is not drawn, and a line says so.
    out = s.run("print('x' * 9000)\npicture()\n")
    assert "figure 7 · 8x16 · not drawn" in out


def test_a_cell_that_dies_within_a_picture_costs_the_cell(cb):
    s = start(cb)
    row = s.screen.here()
    s.run("head(b'rgb 100 100 1 1 7'); os.kill(os.getpid(), 9)")
    assert not s.graphics.pictures
    is_whole(s, row, must_keep=False)


def test_the_front_end_holds_one_picture(cb):
    """However many a cell hands over."""
    s = start(cb, None)

    def peak():
        with open("/proc/%d/status" % s.pid) as f:
            return int(re.search(r"VmHWM:\s+(\d+)", f.read())[1])
    before = peak()
    s.run("for i in range(10): picture(2048, 2048)\n", 60)
    assert peak() - before < 3 * (12 << 10)
