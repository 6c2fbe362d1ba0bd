# SPDX-License-Identifier: MIT
"""Pictures: which there are, how they are drawn, and what they cannot do."""
import os
import re
import struct
import zlib

import pytest

from figures import needs
from graphics import Graphics, pixels, png
from hindered import slow

HALF = "\N{UPPER HALF BLOCK}"
FRAME = "¦ [figure %d · %dx%d · :download figure-%d.png]"
# A class whose value is a picture: red above, blue below.
FLAG = ('''import struct, zlib
def chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(
        ">I", zlib.crc32(kind + body))
def png(w, h):
    rows = [b"\\0" + (b"\\xff\\0\\0" if y < h / 2 else b"\\0\\0\\xff") * w
            for y in range(h)]
    return b"\\x89PNG\\r\\n\\x1a\\n" + chunk(b"IHDR", struct.pack(
        ">IIBBBBB", w, h, 8, 2, 0, 0, 0)) + chunk(
        b"IDAT", zlib.compress(b"".join(rows))) + chunk(b"IEND", b"")
class Flag:
    def __init__(self, w=64, h=64): self.size = w, h
    def _repr_png_(self): return png(*self.size)
''')


def drawing(cb, way=None, args=(), size=(24, 80), env=None, flag=True, **more):
    """A session on a terminal that draws this way."""
    with open(os.path.join(cb.work, "flag.py"), "w") as f:
        f.write(FLAG)
    s = cb.session("-u", "flag.py", *args, size=size, env=env)
    s.graphics = Graphics(way, **more)
    if flag:
        s.run("from flag import *")
    return s


PATIENT = ("-s", "cell.timeout=90s", "-s", "cell.cpu=90s")


def halves(out):
    """How many rows of half blocks, and how many columns the widest has."""
    rows = [r for r in out.split("\n") if r.startswith(HALF)]
    assert all(set(r) == {HALF} for r in rows)
    return len(rows), max(map(len, rows), default=0)


@pytest.mark.parametrize("way", ["kitty", "iterm2"])
def test_the_terminals_own_protocol_gets_the_pixels(cb, way):
    s = drawing(cb, way)
    out = s.run("print('above'); Flag()").split("\n")
    picture, = s.graphics.pictures
    width, height, rows = pixels(picture.data)
    assert (width, height) == (64, 64)
    assert rows[0] == b"\xff\0\0" * 64 and rows[63] == b"\0\0\xff" * 64
    # 64 pixels are 4 rows of 16; the rows are free, and then comes the line.
    assert out == ["above", "", "", "", "", FRAME % (1, 64, 64, 1)]
    assert picture.keys[b"r" if way == "kitty" else b"height"] == b"4"
    assert picture.column == 0
    assert s.screen.rows(picture.row - 1, picture.row) == ["above"]


def test_sixel_is_drawn_where_the_terminal_has_it(cb):
    s = drawing(cb, "sixel", cell=(20, 10))
    out = s.run("print('above'); Flag()").split("\n")
    picture, = s.graphics.pictures
    assert out == ["above", "", "", "", FRAME % (1, 64, 64, 1)]
    size = re.match(rb"[\d;]*q\"1;1;(\d+);(\d+)", picture.data)
    # No more than the three rows, and whole sixels.
    assert (int(size[1]), int(size[2])) == (60, 60)
    assert picture.data.count(b"-") in (9, 10)
    assert s.screen.rows(picture.row - 1, picture.row) == ["above"]


def test_a_sixel_terminal_that_hides_its_cells_gets_blocks(cb):
    s = drawing(cb, "sixel", cell=None)
    assert halves(s.run("Flag()")) == (4, 8)
    assert not s.graphics.pictures


@pytest.mark.parametrize("true_colour", [False, True])
def test_other_terminals_get_half_blocks(cb, true_colour):
    s = drawing(cb, true_colour=true_colour)
    at = len(s.raw)
    out = s.run("print('above'); Flag()")
    assert out.split("\n")[0] == "above"
    assert out.split("\n")[-1] == FRAME % (1, 64, 64, 1)
    assert halves(out) == (4, 8)
    shown = bytes(s.raw[at:])
    assert (b"\x1b[38;2;255;0;0m" in shown) == true_colour
    assert (b"\x1b[38;5;196m" in shown) == (not true_colour)
    assert b"\x1b[38;2;0;0;255m" in shown if true_colour else \
        b"\x1b[38;5;21m" in shown


def test_the_environment_may_promise_all_colours(cb):
    s = drawing(cb, env={"COLORTERM": "truecolor"})
    s.run("Flag()")
    assert b"\x1b[38;2;255;0;0m" in s.raw


@pytest.mark.parametrize("env, args, asks", [
    ({"NO_COLOR": "1"}, (), False), ({"TERM": "dumb"}, (), False),
    ({}, ("-s", "terminal.pictures=no"), False),
    ({}, ("-s", "terminal.colour=never"), False), ({}, (), True)])
def test_without_colours_a_picture_is_only_named(cb, env, args, asks):
    s = drawing(cb, "kitty", args, env=env)
    at = len(s.raw)
    out = s.run("Flag()")
    assert out.split("\n")[-1] == FRAME % (1, 64, 64, 1)
    assert bool(s.graphics.pictures) == asks == (b"\x1b_G" in s.raw[at:])
    assert "'figure-1.png'" in s.run("import os; os.listdir()")


def test_blocks_may_be_preferred(cb):
    s = drawing(cb, "kitty", ("-s", "terminal.pictures=blocks"))
    assert halves(s.run("Flag()")) == (4, 8)
    assert not s.graphics.pictures


def test_the_terminal_is_asked_once_and_not_before_a_picture(cb):
    s = drawing(cb, "kitty")
    s.run("print(1)")
    assert not s.graphics.asked
    s.run("Flag()")
    asked = list(s.graphics.asked)
    assert asked[-1] == "c" and asked.count("kitty") == 1
    s.run("Flag()")
    assert s.graphics.asked == asked
    assert len(s.graphics.pictures) == 2


def test_keys_typed_while_the_terminal_is_asked_stay_keys(cb):
    """The answers stand in the middle of what is typed."""
    s = drawing(cb, "kitty", hold=True, env=slow(cb.base))
    s.enter("import sys; sys.displayhook(Flag()); x = input()")
    s.wait(lambda: "c" in s.graphics.asked, "the questions")
    s.type("a\x1b[")
    s.type("C")
    s.graphics.release()
    s.type("b\r")
    s.wait_prompt()
    assert len(s.graphics.pictures) == 1
    assert s.run("x") == repr("a\x1b[Cb")


def test_an_answer_that_comes_late_is_no_input(cb):
    s = drawing(cb, "kitty", hold=True)
    s.enter("import sys; sys.displayhook(Flag()); x = input('? ')")
    s.expect(r"^\? $|^\?$")
    assert not s.graphics.pictures and HALF in s.screen_text()
    s.graphics.release()
    s.type("yes\r")
    s.wait_prompt()
    assert s.run("x") == "'yes'"
    s.run("Flag()")
    assert len(s.graphics.pictures) == 1


def test_a_late_answer_does_not_reach_the_prompt(cb):
    s = drawing(cb, "kitty", hold=True)
    assert HALF in s.run("Flag()")
    s.graphics.release()
    s.type("6 * 7")
    s.expect(r"^>>> 6 \* 7$")
    s.type("\r")
    s.expect("^42$")


def test_an_answer_that_is_cut_by_the_end_of_a_cell_is_no_input(cb):
    s = drawing(cb, "kitty", hold=True)
    row = s.enter("import sys, time; sys.displayhook(Flag()); time.sleep(5)")
    s.expect_since(row, HALF)
    held, s.graphics.hold = s.graphics.held, False
    s.type(held[:7])
    s.wait_prompt()
    s.type(held[7:])
    row = s.enter("x = input('? ')")
    s.expect_since(row, r"^\?")
    s.type("yes\r")
    s.wait_prompt()
    assert s.run("x") == "'yes'"


@pytest.mark.sampled(2)
@pytest.mark.parametrize("way", [None, "kitty", "sixel"])
@pytest.mark.parametrize("size", [(24, 80), (10, 30), (3, 20)])
def test_a_picture_that_is_too_large_is_made_smaller(cb, way, size):
    s = drawing(cb, way, PATIENT)
    s.resize(*size)
    out = s.run("Flag(2000, 1000)")
    assert re.sub(r"\n¦ *", " ", out).rstrip().endswith("figure-1.png]")
    rows, columns = halves(out)
    assert rows <= size[0] - 2 and columns < size[1]
    assert bool(rows) == (way is None)
    for p in s.graphics.pictures:
        assert int(p.keys.get(b"r", b"1")) <= size[0] - 2
    s.resize(24, 80)
    assert s.run("6 * 7") == "42"


def test_pictures_stand_where_they_were_shown(cb):
    s = drawing(cb)
    s.run("show = __import__('sys').displayhook")
    out = s.run("for i in range(2): print('before', i); show(Flag(8, 16))\n"
                "print('end')\n")
    assert out.split("\n") == [
        "before 0", HALF, FRAME % (1, 8, 16, 1),
        "before 1", HALF, FRAME % (2, 8, 16, 2), "end"]


def test_a_value_is_shown_as_text_where_it_has_no_picture(cb):
    s = drawing(cb, "kitty")
    s.run("class No(Flag):\n  def _repr_png_(self): return None\n"
          "  def __repr__(self): return 'no picture'\n")
    assert s.run("No()") == "no picture"
    s.run("class Bad(No):\n  def _repr_png_(self): 1/0\n")
    assert s.run("Bad()") == "no picture"
    s.run("class Junk(No):\n  def _repr_png_(self): return b'junk'\n")
    assert s.run("Junk()") == "no picture"
    assert s.run("Flag();") == ""
    assert not s.graphics.pictures
    assert s.run("Flag()").endswith(FRAME % (1, 64, 64, 1))
    assert s.run("type(_)") == "<class 'flag.Flag'>"


# ---- matplotlib and Pillow ----

@pytest.mark.limit(240)
def test_plt_show_draws_the_figures_and_closes_them(cb):
    needs(cb, "matplotlib")
    s = drawing(cb, "kitty", PATIENT, flag=False)
    s.run("import matplotlib.pyplot as plt", 90)
    s.run("fig, ax = plt.subplots(); ax.plot([1, 4, 2])\nprint(end='')")
    assert not s.graphics.pictures
    out = s.run("print('a'); plt.show(); print('b')", 90).split("\n")
    assert out[0] == "a" and out[-2:] == [FRAME % (1, 640, 480, 1), "b"]
    width, height, _ = pixels(s.graphics.pictures[0].data)
    assert abs(width / height - 640 / 480) < 0.02
    # Matplotlib may have left a program behind, to look for fonts.
    assert s.run("plt.get_fignums()").split("\n")[0] == "[]"
    assert s.run("fig", 60).endswith(FRAME % (2, 640, 480, 2))
    assert s.run("ax", 60).endswith(FRAME % (3, 640, 480, 3))
    assert s.run("ax.lines[0]", 60).endswith(FRAME % (4, 640, 480, 4))
    assert s.run("fig.show()", 60).endswith(FRAME % (5, 640, 480, 5))
    s.run("open('figure-1.png', 'rb').read(8)")
    assert len(s.graphics.pictures) == 5


@pytest.mark.limit(240)
def test_what_plots_draws_its_figure_and_closes_it(cb):
    """As a last value. A figure in which nothing is drawn is shown as text, and
    the next plot finds it."""
    needs(cb, "matplotlib")
    s = drawing(cb, "kitty", PATIENT, flag=False)
    s.run("import matplotlib.pyplot as plt\nprint(end='')", 90)
    number = 0
    for cell, size, text in (
            ("plt.plot([1, 4, 2])", (640, 480), None),
            ("plt.hist([1, 4, 2])", (640, 480), "BarContainer"),
            ("plt.boxplot([1, 4, 2])", (640, 480), None),
            ("plt.contour([[1, 2], [3, 5]])", (640, 480), None),
            ("plt.figure(figsize=(4, 2))", None, "400x200 with 0 Axes"),
            ("plt.subplot(1, 2, 1)", None, "Axes"),
            ("plt.title('a')", None, "'a'"),
            ("plt.bar([1], [2])", (400, 200), None),
            ("fig, axes = plt.subplots(2, 2)", None, None),
            ("axes", None, "Axes"),
            ("axes[0, 1].scatter([1], [2])", (640, 480), None),
            ("axes", (640, 480), None),
            ("plt.plot([1]), 5", (640, 480), "5)"),
            ("made = plt.plot([1])", None, None),
            ("plt.gcf()", (640, 480), None)):
        out = s.run(cell, 90)
        if size:
            number += 1
            assert FRAME % (number, *size, number) in out, cell
            assert s.run("plt.get_fignums()") == "[]", cell
        assert len(s.graphics.pictures) == number, cell
        rest = [r for r in out.split("\n") if r and r[0] != "\N{BROKEN BAR}"]
        assert text in "".join(rest) if text else not rest, cell


@pytest.mark.limit(240)
def test_a_semicolon_hides_the_value_and_shows_the_new_figures(cb):
    needs(cb, "matplotlib")
    s = drawing(cb, "kitty", PATIENT, flag=False)
    s.run("import matplotlib.pyplot as plt\nprint(end='')", 90)
    shown = {
        "plt.plot([1, 4, 2]);": 1,
        "plt.plot([1, 4, 2]) ; # again": 1,
        "_ = plt.hist([1, 4, 2]);": 1,
        "plt.plot([1]); plt.figure(); plt.plot([1]);  # two": 2,
        # A figure without anything drawn in it is not shown.
        "plt.figure();": 0,
        "plt.gca();": 0,
        "plt.plot([1, 4, 2], label='it');": 1,
        # One that is there already, and is worked on.
        "kept = plt.figure(); held = plt.plot([1])": 0,
        "kept.suptitle('x');": 0,
        "plt.figure(); plt.plot([1]);": 1,
        "1 + 1;": 0,
        "import os; os.fork() or (plt.figure(), plt.plot([1]), os._exit(0));"
        "os.wait();": 0,
    }
    number = 0
    for cell, pictures in shown.items():
        out = s.run(cell, 90).split("\n")
        frames = [FRAME % (number + n + 1, 640, 480, number + n + 1)
                  for n in range(pictures)]
        number += pictures
        assert len(s.graphics.pictures) == number, cell
        assert [row for row in out if row] == frames, cell
    assert s.run("plt.get_fignums() == [kept.number]") == "True"
    assert s.run("'x' in vars() or 1/0;").endswith("division by zero")


def test_an_image_of_pillows_is_drawn(cb):
    needs(cb, "PIL")
    s = drawing(cb, "kitty", PATIENT, flag=False)
    s.run("from PIL import Image", 60)
    out = s.run("Image.new('RGBA', (32, 16), (0, 0, 255, 128))")
    assert out.endswith(FRAME % (1, 32, 16, 1))
    _, _, rows = pixels(s.graphics.pictures[0].data)
    assert rows[0][:3] == bytes((127, 127, 255))    # on white
    assert s.run("Image.new('P', (3000, 2000)).show()").endswith(
        FRAME % (2, 3000, 2000, 2))


def test_a_module_is_adapted_whenever_it_is_imported(cb):
    needs(cb, "PIL")
    s = drawing(cb, "kitty", PATIENT, flag=False)
    s.run("import importlib.util; from PIL import Image", 60)
    s.run("importlib.util.find_spec('PIL.ImageShow').name")
    assert s.run("Image.new('RGB', (8, 8)).show()", 60).endswith(
        FRAME % (1, 8, 8, 1))
    s.run("from PIL import ImageShow; importlib.reload(ImageShow).__name__")
    assert s.run("Image.new('RGB', (8, 8)).show()", 60).endswith(
        FRAME % (2, 8, 8, 2))


# ---- the files ----

def test_a_figure_is_one_word_away(cb):
    s = drawing(cb)
    s.run("Flag()")
    s.run(":download figure-1.png")
    with open(os.path.join(cb.work, "figure-1.png"), "rb") as f:
        assert pixels(f.read())[:2] == (64, 64)


def test_a_file_of_the_users_is_never_overwritten(cb):
    s = drawing(cb)
    s.run("open('figure-1.png', 'w').write('mine')")
    s.run("import os; os.symlink('mine', 'figure-2.png'); os.chdir('/tmp')")
    assert s.run("Flag()").endswith(FRAME % (3, 64, 64, 3))
    assert s.run("open('/home/figure-1.png').read()") == "'mine'"
    assert s.run("os.path.exists('/home/mine')") == "False"


def test_only_the_last_figures_are_kept(cb):
    s = drawing(cb)
    s.run("show = __import__('sys').displayhook; import os, glob")
    s.run("show(Flag(1, 1)); open('figure-1.png', 'ab').write(b'mine')\n")
    for n in 2, 3:
        s.run("for i in range(12): show(Flag(1, 1))\n")
    assert s.run("len(glob.glob('*.png'))") == "21"
    assert s.run("os.path.exists('figure-1.png'), "
                 "os.path.exists('figure-5.png'), "
                 "os.path.exists('figure-6.png')") == "(True, False, True)"


def test_leaving_does_not_warn_of_figures(cb):
    s = drawing(cb)
    s.run("Flag()")
    s.type(":quit\r")
    assert s.wait_exit() == 0


def test_leaving_warns_of_other_files(cb):
    s = drawing(cb)
    s.run("Flag(); open('figure-9.png', 'w').close()")
    s.type(":quit\r")
    s.expect("1 file never downloaded: figure-9.png")


def test_a_full_home_keeps_no_figure_and_shows_it_all_the_same(cb):
    s = drawing(cb, "kitty", ("-s", "home.size=1M"))
    s.run("f = open('x', 'wb')\ntry: f.write(bytes(1 << 21)); f.flush()\n"
          "except OSError: pass\n")
    s.run("try: f.close()\nexcept OSError: pass\n")
    assert s.run("Flag()").endswith(
        "¦ [picture · 64x64 · not kept: no room in the home]")
    assert len(s.graphics.pictures) == 1


# ---- :show ----

def put(cb, s, name, data):
    """A file of the home, through the host."""
    with open(os.path.join(cb.work, name), "wb") as f:
        f.write(data)
    s.run(":upload '%s'" % name)


def without_pillow(s):
    s.run("import sys; sys.modules['PIL'] = None")


COLOURS = b"PLTE\0\0\0\xff\x80\0"   # 0 is black, 1 orange
PALETTE = struct.pack(">I", 6) + COLOURS + struct.pack(
    ">I", zlib.crc32(COLOURS))
KINDS = {   # what a row says, depth, colour, bytes beside; the first pixel
    "grey": (lambda y: b"\0\x80\x20", 8, 0, b"", (128, 128, 128)),
    "rgb": (lambda y: b"\1\x10\x20\x30\1\1\1", 8, 2, b"", (16, 32, 48)),
    "one_bit": (lambda y: b"\0\x80", 1, 0, b"", (255, 255, 255)),
    "palette": (lambda y: b"\0\x10", 4, 3, PALETTE, (255, 128, 0)),
    "grey_alpha": (lambda y: b"\0\0\x80\0\0", 8, 4, b"", (127, 127, 127)),
    "rgba": (lambda y: b"\2\0\0\0\0\0\0\0\0", 8, 6, b"", (255, 255, 255)),
    "deep": (lambda y: b"\0\x12\x34\x56\x78\x9a\xbc" + bytes(6), 16, 2, b"",
             (0x12, 0x56, 0x9a)),
    "paeth": (lambda y: b"\4" + bytes((7, 8, 9)) * 2, 8, 2, b"", (7, 8, 9)),
    "average": (lambda y: b"\3" + bytes((8, 8, 8)) * 2, 8, 2, b"", (8, 8, 8)),
}


@pytest.mark.parametrize("name", KINDS)
def test_show_draws_an_image_file(cb, name):
    """With and without Pillow the pixels are the same."""
    row, depth, colour, extra, first = KINDS[name]
    s = drawing(cb, "kitty", PATIENT, flag=False)
    put(cb, s, "a b.png", png(2, 3, row, colour, depth, extra))
    out = s.run(":show 'a b.png'")
    assert out.split("\n")[-1] == "¦ [a b.png · 2x3]"
    without_pillow(s)
    assert s.run(":show 'a b.png'") == out
    one, two = (pixels(p.data) for p in s.graphics.pictures)
    assert two == one or name in ("deep", "grey_alpha", "rgba")
    assert tuple(two[2][0][:3]) == first
    # No name is made, and no number of a figure is used.
    assert "'figure-1.png'" not in s.run("import os; os.listdir()")


def test_show_prints_other_files_as_text(cb):
    s = drawing(cb, "kitty", flag=False)
    s.run("open('t', 'w').write('BM is no image\\n');")
    assert s.run(":show t") == "BM is no image"
    s.run("open('t', 'w').write('\\x89PNG\\n');")
    assert "PNG" in s.run(":show t")
    assert not s.graphics.pictures


DAMAGED = {
    "cut": (b"\x89PNG\r\n\x1a\n", "ends too early|cannot identify"),
    "long": (b"\x89PNG\r\n\x1a\n" + b"\xff" * 5000,
             "ends too early|cannot identify|broken"),
    "gif": (b"GIF89a", "no Pillow|cannot identify"),
    "jpeg": (b"\xff\xd8\xff" + b"\0" * 100, "no Pillow|cannot identify"),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", DAMAGED)
@pytest.mark.parametrize("pillow", [True, False])
def test_a_damaged_image_is_said_to_be_one(cb, name, pillow):
    data, said = DAMAGED[name]
    s = drawing(cb, "kitty", PATIENT, flag=False)
    put(cb, s, "x.png", data)
    if not pillow:
        without_pillow(s)
    out = s.run(":show x.png")
    assert re.match(r"/home/x\.png: .*(%s)" % said, out), out
    assert "Traceback" not in out
    assert not s.graphics.pictures
    assert s.run("6 * 7") == "42"


def test_show_is_interrupted_and_limited_as_a_cell_is(cb):
    s = drawing(cb, "kitty", flag=False)
    s.run("kept = 1")
    put(cb, s, "big.png", png(20000, 20000, lambda y: b"\4" + bytes(2500), 0, 1))
    without_pillow(s)
    s.enter(":show big.png")
    s.expect("big.png")
    s.type("\x03")
    s.wait(s.at_prompt, "the prompt")
    assert not s.graphics.pictures
    assert s.run("kept") == "1"
