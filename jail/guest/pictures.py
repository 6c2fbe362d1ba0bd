# SPDX-License-Identifier: MIT
#
# pictures.py - what a cell shows as pictures
#
# Runs in:   the guest, within a cell, as its user's code does
# Trusts:    the front end, which reads the pipe while the cell runs
# Leaves:    in the home the last KEPT pictures; in the pipe, for each, a head
#            of PICTURE_HEAD bytes, "rgb WIDTH HEIGHT WIDTH HEIGHT NUMBER", blanks and a
#            line end, then the pixels; and behind it the end mark on the tty.
#            The second size is that of the file figure-NUMBER.png; 0: none was
#            kept. A head "cut", without pixels, says that the value which is
#            shown next is not shown whole (values.py)
#
# Every picture becomes a PNG file first: that file is kept, and all pictures
# take the same way.
from itertools import islice
from posix import (O_CLOEXEC, O_CREAT, O_EXCL, O_NOFOLLOW, O_RDONLY, O_WRONLY,
                   stat, unlink)

HOME = "/home/figure-%d.png"
KEPT = 20
PICTURE_HEAD = 64  # JAIL_PICTURE_HEAD
PIXELS = 1 << 22  # PICTURES_PIXELS: larger ones are made smaller
ARTISTS = 100  # of a container we look at so many things,
LOOKED_AT = 1000  # and of all that it holds at so many
DRAWERS = "matplotlib.", "mpl_toolkits.", "seaborn."
LABELS = {"matplotlib.text", "matplotlib.legend"}
part("figures")
S.figure = 0
S.kept = []  # [name, what stat() says]


def send_all(fd, data):
    data = memoryview(data)
    while data:
        data = data[write(fd, data):]


def hand_over(head, rgb=b""):
    """A head and pixels into the pipe, then the mark on the tty. Half a picture
    would make nonsense of the next one, so what fails or is interrupted is the
    last."""
    report, S.pictures = S.pictures, -1
    if report < 0:
        return
    flush(sys.stdout, sys.stderr, *S.streams[1:])
    send_all(report, head.ljust(PICTURE_HEAD - 1) + b"\n")
    send_all(report, rgb)
    if put(b"\33_%s\33\\" % S.place):
        S.pictures = report


def hand_picture_over(size, rgb, whole, number):
    hand_over(b"rgb %d %d %d %d %d" % (*size, *whole, number), rgb)


def draw(png):
    "a PNG file: keep it, and show it"
    from io import BytesIO
    if S.pictures >= 0:
        size, rgb, whole = decoded(BytesIO(png))
        try:
            hand_picture_over(size, rgb, whole, kept(png))
        except BrokenPipeError:
            pass  # the front end takes no more of this cell's


# ---- what is a picture ----

def draw_value(value):
    "show a value as a picture; False when it is none"
    if S.modules.get("matplotlib.figure") is not None:
        found = dict.fromkeys(islice(figures_of(value), LOOKED_AT))
        for figure in found:
            if figure is not None:
                draw_figure(figure)
        if found and None not in found:
            return True
    if not hasattr(type(value), "_repr_png_"):
        return False
    try:
        png = value._repr_png_()
        if type(png) is tuple:  # with what is known about it
            png = png[0]
        if not png:
            return False
        draw(bytes(png))
    except Exception:  # it is shown as text
        return False
    return True


def figures_of(value, depth=3):
    """the figures of the artists that a value is or holds, as the list that
    plot() returns holds its lines; None for an artist that is in no figure,
    and nothing for a label"""
    if depth and holds_artists(value):
        items = value.values() if isinstance(value, dict) else value
        for item in islice(items, ARTISTS):
            yield from figures_of(item, depth - 1)
        return
    modules = [str(c.__module__) for c in type(value).__mro__]
    if not LABELS.intersection(modules):
        figure = None
        if any(m.startswith(DRAWERS) for m in modules):
            figure = getattr(value, "figure", None) or getattr(
                getattr(value, "axes", None), "figure", None)
        figure = getattr(figure, "figure", None)  # that of a subfigure
        yield figure if figure and not is_blank(figure) else None


def holds_artists(value):
    return isinstance(value, (dict, list, tuple)) or (
        type(value).__name__ == "ndarray" and value.dtype == object)


def is_blank(figure):
    "nothing is drawn in it yet: what plots next is to find it"
    return not any(
        a.texts or a.tables or a.artists or a.has_data()
        for a in figure.axes) and not (
            figure.artists or figure.images or figure.lines or
            figure.patches or figure.texts)


def drawn_figures(helpers):
    "pyplot's figures in which something is drawn"
    figures = [m.canvas.figure for m in helpers.Gcf.figs.values()]
    return [f for f in figures if not is_blank(f)]


def draw_figure(figure):
    "what has been shown is closed: the next plot begins a new figure"
    draw(printed(figure))
    plt = S.modules.get("matplotlib.pyplot")
    if plt is not None:
        plt.close(figure)


def shows_pictures():
    "whether this is the process, and the moment, to show pictures"
    return S.pictures is not None and getpid() == S.pid


def adapt(module):
    "what would open a window draws in the terminal"
    if module.__name__ == "PIL.ImageShow":
        plain_show = module.show

        def show(image, title=None, **options):
            if not shows_pictures():
                return plain_show(image, title, **options)
            draw(image._repr_png_())
            return True

        module.show = show
        return
    plain, plain_figure = module.show, module.Figure.show

    def show(*args, **kwargs):
        if not shows_pictures():
            return plain(*args, **kwargs)
        for number in module.get_fignums():
            draw_figure(module.figure(number))

    def show_figure(self, warn=True):
        if not shows_pictures():
            return plain_figure(self, warn)
        draw_figure(self)

    show.__doc__, show_figure.__doc__ = plain.__doc__, plain_figure.__doc__
    show_figure.__name__ = "show"
    module.show, module.Figure.show = show, show_figure


# ---- the files that are kept ----

def kept(png):
    "keep it in the home: its number, 0 when there is no room"
    name, fd = "", -1
    try:
        while fd < 0:
            S.figure += 1
            name = HOME % S.figure
            try:
                fd = posix_open(name, O_WRONLY | O_CREAT | O_EXCL |
                                O_NOFOLLOW | O_CLOEXEC, 0o644)
            except FileExistsError:
                pass
        try:
            send_all(fd, png)
        except OSError:
            unlink(name)
            return 0
        finally:
            close(fd)
        S.kept.append((name, identity(name)))
        while len(S.kept) > KEPT:
            old, known = S.kept.pop(0)
            if identity(old) == known:  # the user has not changed it
                unlink(old)
    except OSError:
        return S.figure if fd >= 0 else 0
    return S.figure


def identity(name):
    try:
        st = stat(name, follow_symlinks=False)
    except OSError:
        return None
    return st.st_ino, st.st_size, st.st_mtime_ns


# ---- image files ----

def show_file(_, path):
    "the path is what the person typed behind :show"
    try:
        with open(path, "rb") as f:
            size, rgb, whole = decoded(f)
        hand_picture_over(size, rgb, whole, 0)
        S.how = "ok"
    except KeyboardInterrupt as e:
        S.error = e
    except BrokenPipeError:
        S.how = "ok"
    except BaseException as e:
        S.how = "raised"
        tell("%s: %s\n" % (path.decode("utf-8", "backslashreplace"),
                           getattr(e, "strerror", None) or str(e) or
                           type(e).__name__))


def decoded(f):
    "an image file: the size, the pixels as RGB, and the size of all of it"
    try:
        from PIL import Image, ImageOps
    except ImportError:
        part("png")
        return decoded_png(f, PIXELS)
    with Image.open(f) as image:
        image = ImageOps.exif_transpose(image)
        whole = image.size
        if image.mode in ("I;16", "I;16B", "I", "F"):
            low, high = image.convert("F").getextrema()
            image = image.convert("F").point(
                lambda x: x * (255 / max(high - low, 1e-9)) +
                -low * (255 / max(high - low, 1e-9))).convert("L")
        if image.mode[-1] in "Aa" or "transparency" in image.info:
            image = image.convert("RGBA")
            image = Image.alpha_composite(
                Image.new("RGBA", image.size, "white"), image)
        image = image.convert("RGB")
        if whole[0] * whole[1] > PIXELS:
            by = (PIXELS / (whole[0] * whole[1])) ** 0.5
            w, h = (max(int(n * by), 1) for n in whole)
            image = image.resize((min(w, PIXELS // h or 1),
                                  min(h, PIXELS // w)), reducing_gap=2.0)
        return image.size, image.tobytes(), whole
