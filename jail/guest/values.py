# SPDX-License-Identifier: MIT
#
# values.py - show a container: cut, and laid out in the terminal's width
#
# Runs in:   the guest, at the first such value
# Trusts:    as cells.py
# Leaves:    nothing
#
# As in IPython, a container of containers is shown with the first ITEMS of each.
from itertools import islice

ITEMS = 1000  # PICTURES_ITEMS
DEPTH = 20
LONGEST = 100000  # beyond that, laying out takes longer than reading


class Dots:
    "in the place of the items that are not shown; pprint puts it last in a set"
    __repr__ = lambda self: "\0"
    __lt__ = lambda self, other: False
    __gt__ = lambda self, other: True


DOTS = Dots()


def shortened(value, known, depth=DEPTH):
    """the value itself, or a copy without the items that are too many; `known`:
    address -> what it became"""
    if id(value) in known:
        return known[id(value)]
    known[id(value)] = value
    kind = type(value)
    pairs = kind is dict
    items = list(islice(value.items() if pairs else value, ITEMS))
    cut = len(value) > ITEMS
    if depth and kind not in (set, frozenset):
        for i, item in enumerate(items):
            held = item[1] if pairs else item
            if type(held) in CONTAINERS:
                short = shortened(held, known, depth - 1)
                if short is not held:
                    items[i] = (item[0], short) if pairs else short
                    cut = True
    if len(value) > ITEMS:
        items.append((DOTS, DOTS) if pairs else DOTS)
    if cut:
        known[id(value)] = kind(items)
    return known[id(value)]


def is_noted():
    "whether the front end knows that the next value is cut, and can show all"
    if S.pictures is None or getpid() != S.pid:
        return False
    part("pictures")
    try:
        hand_over(b"cut")
    except BrokenPipeError:
        pass
    return S.pictures >= 0


def show_container(value):
    short = shortened(value, {})
    if short is value or not is_noted():
        short = value
    text = repr(short)
    if len(text) <= columns():
        return S.show(value)
    builtins._ = None
    text = laid_out(short, text)
    if short is not value:
        text = text.replace("\0: \0", "...").replace("\0", "...")
    print(text)
    builtins._ = value


def laid_out(value, text):
    "the value over several lines; `text` is its repr"
    if len(text) > LONGEST or "\n" in text:
        return text
    return stdlib("pprint").pformat(
        value, width=columns(), compact=True, sort_dicts=False)
