# SPDX-License-Identifier: MIT
#
# mend.py - put back what a prompt cannot live without
#
# Runs in:   the guest, when a cell has left something changed (is_whole())
# Trusts:    as cells.py; the object in a place is tried inside call()
# Leaves:    objects that work as the cell left them; others as before the cell
#
# An object that works stays: a stream that can be written to, a displayhook of
# the person's own. The descriptors 0, 1 and 2 lead to the terminal at each
# prompt: to redirect output for more than a cell, a person sets sys.stdout.
MOST_NAMES = 3  # of one place; of more, the number is told


def mend():
    "returns in words what it has put back"
    back = ["descriptor %d" % fd for fd in (0, 1, 2) if lead_back(fd)]
    for place, form, names, was in S.whole:
        lost = [name for name in was if not is_kept(name, names, was)]
        if names is S.modules and lost:
            was = S.imported
            lost = [name for name in was if names.get(name) is None]
        names.update((name, was[name]) for name in lost)
        if len(lost) > MOST_NAMES:
            back.append("%d names of %s" % (len(lost), place))
        else:
            back += [form % name for name in lost]
    back += ["sys." + name for fd, name in enumerate(STREAMS)
             if is_put_back(fd, name)]
    if getrecursionlimit() < LEAST_DEPTH:
        setrecursionlimit(S.depth)
        back.append("the recursion limit")
    S.whole = [(*row, {name: was[name] for name in names if name in was})
               for *row, was in S.whole for names in row[2:]]
    note_whole()
    return back


def is_kept(name, names, was):
    "whether what is there serves: it is what will be put back later"
    value = names.get(name, mend)
    if names is S.sys and name in S.importers:
        if not issubclass(type(value), list) or not value:
            was[name][:] = S.importers[name]
            return False
    elif value is mend or value is None and names is S.modules or \
            value is not was[name] and not serves(name, value, was[name]):
        return False
    was[name] = value
    return True


def serves(name, value, was):
    "whether a value can take the place of another"
    kind = type(value)
    if name == "__builtins__":
        names = value if kind is dict else getattr(value, "__dict__", ())
        return all(map(names.__contains__, __builtins__))
    if was is S.modules:
        return kind is dict and all(map(value.__contains__, S.core))
    if type(was) is dict:
        return issubclass(kind, dict)
    if type(was) is type and issubclass(was, BaseException):
        return issubclass(kind, type) and issubclass(value, BaseException)
    return callable(value) or not callable(was)


def lead_back(fd):
    "make it lead to the terminal again: whether it did not"
    try:
        if fstat(fd).st_rdev == S.tty:
            return False
    except OSError:
        pass
    try:
        if fstat(S.mark).st_rdev != S.tty:
            return False
        dup2(S.mark, fd, True)
        return True
    except OSError:
        return False


# ---- streams ----

def is_put_back(fd, name):
    "put a stream back that does not work: whether it did not"
    found, own = S.sys.get(name), S.streams[fd]
    if works(fd, found, found is not S.tried[fd]):
        S.tried[fd] = found
        return False
    if not works(fd, own, False):
        S.streams[fd] = stream(fd, name)
        if S.sys.get("__%s__" % name, own) is own:
            S.sys["__%s__" % name] = S.streams[fd]
    S.tried[fd] = S.sys[name] = S.streams[fd]
    return True


def works(fd, f, is_new):
    good = []
    failed = call(try_stream, fd, f, is_new, good)
    if type(failed) is KeyboardInterrupt and S.error is None:
        S.how, S.error = "interrupted", failed
    return bool(good)


def try_stream(fd, f, is_new, good):
    if f is None or getattr(f, "closed", False):
        return
    if fd and is_new:
        f.write("")
    if callable(f.write if fd else f.readline) and \
            callable(getattr(f, "flush", id)):
        good.append(f)


def stream(fd, name):
    "as Python makes it when it starts"
    file = FileIO(fd, "w" if fd else "r", closefd=False)
    file.name = "<%s>" % name
    encoding, errors = S.encodings[fd]
    return TextIOWrapper((BufferedWriter if fd else BufferedReader)(file),
                         encoding, errors, "\n", True)
