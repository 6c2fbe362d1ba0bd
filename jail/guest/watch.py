# SPDX-License-Identifier: MIT
#
# watch.py - the value of an expression in one line, for :watch
#
# Runs in:   the guest, between cells; a copy of it that is thrown away
# Trusts:    as cells.py
# Leaves:    nothing
#
# The live guest says what a name or an attribute is, where neither finding nor
# writing the value runs code of the user's. The rest is a copy's (answer.py).
LENGTH = 160  # of a line
WHOLE = 4000  # of a value that the live guest writes whole
SHOWN = 300  # of its first items, where it does not
FIRST = 6
SIMPLE = float, complex, bool, type(None), type(...), range
STRINGS = {str: "characters", bytes: "bytes", bytearray: "bytes"}
HOLDING = list, tuple, set, frozenset, dict


def watch(text):
    """a line: "=" and a value, ":" and an exception, "?" (no expression), "-"
    (only a copy can say). Below it a number, which changes with the value"""
    said = known(text)
    if not said:
        said = computed(text) if may_run(text) else ("-", "", "")
    kind, line, whole = said
    # An object that the expression makes has another address each time.
    whole = re.sub("at 0x[0-9a-f]+>", "", whole)
    return "%s%s\n%d" % (kind, shown(line)[:LENGTH], crc32(
        whole.encode("utf-8", "surrogatepass")))


def known(text):
    "what the live guest can say; None: that takes code of the user's"
    first, *rest = text.split(".")
    if not re.fullmatch(DOTTED, text) or {first, *rest} & {*kwlist}:
        return None
    ok, o = found(first)
    if not ok:  # Python writes some characters of names in another way
        return (":", "NameError", "") if text.isascii() else None
    for name in rest:
        ok, o = own_value(o, name)
        if not ok:
            return None
    return written_value(o)


def own_value(o, name):
    "(True, o.name), where only the object itself has the name"
    if is_odd(o):
        return False, None
    for c in mro_of(type(o)):
        if name in dict_of(c) or flags_of(c) & HEAP and (
                "__getattribute__" in dict_of(c)):
            return False, None
    return looked(own_dict(o), name)


def computed(text):
    try:
        code = compile(text, "<watch>", "eval", S.flags, True)
    except SyntaxError:
        return "?", "", ""
    except BaseException as e:
        return raised(e)
    try:
        o = eval(code, NS)
        return written_value(o) or any_value(o)
    except BaseException as e:
        return raised(e)


def raised(e):
    try:
        said = ": " + str(e)
    except BaseException:
        said = ""
    return ":", class_name(type(e)) + said * (said != ": "), said


def written_value(o):
    "a value that builtin types make up; None for others, and for a long one"
    if not is_small(o, WHOLE):
        line = beginning(o)
        return line and ("=", line, line)
    try:
        whole = repr(o)
    except RecursionError:
        return None
    line = len(whole) > LENGTH and beginning(o) or whole
    return "=", line, whole


def any_value(o):
    kind = type(o)
    if is_one(kind, HOLDING):
        line = SHORT.repr(o)[:LENGTH - 30]
        line = whole = line + count(o) * (len(o) > FIRST)
    else:
        try:
            whole = " ".join(repr(o).split())
        except Exception as e:
            whole = "(its repr raises %s)" % class_name(type(e))
        line = whole
    if len(line) > LENGTH and hasattr(o, "shape"):
        line = "%s, shape %s" % (class_name(kind), o.shape)
    elif len(line) > LENGTH:
        line = line[:LENGTH - 3] + "..."
    return "=", line, whole


def is_small(o, room):
    "whether builtin types make it up, and repr() of it takes no time"
    todo = [o]
    while todo:
        o = todo.pop()
        kind = type(o)
        room -= 1
        if is_one(kind, HOLDING):
            room -= len(o)
            if room > 0:
                todo += [*o, *o.values()] if kind is dict else o
        elif is_one(kind, STRINGS):
            room -= len(o)
        elif kind is int:
            room -= o.bit_length() * 2  # long ones are not written at all
        elif not is_one(kind, SIMPLE):
            return False
        if room <= 0:
            return False
    return True


def beginning(o):
    "the first items of a long value, and how many there are; or None"
    kind = type(o)
    if is_one(kind, STRINGS):
        return repr(o[:60]) + "..." + count(o)
    if not is_one(kind, HOLDING):
        return None
    items = o.items() if kind is dict else o
    some = [item for item, _ in zip(items, range(FIRST))]
    if len(some) == len(o) or not is_small(some, SHOWN):
        return None
    text = repr(kind(some))
    end = len(text) - 1 - (kind is frozenset)
    return text[:end] + ", ..." + text[end:] + count(o)


def count(o):
    return " (%d %s)" % (len(o), STRINGS.get(type(o), "items"))
