# SPDX-License-Identifier: MIT
#
# diff.py - what the last cell changed, for :diff
#
# Runs in:   the guest, between cells
# Trusts:    as cells.py
# Leaves:    nothing
#
# The names before a cell are those after the cell before it, from the walk for
# its checkpoint (changed.py); without one only their addresses are known, and a
# change in place is not seen.
CLOCK = 10 ** 7  # the file system's clock stands still for some milliseconds


def diff():
    "the number of the cell, then a row for each change: what, name, type, value"
    if S.ran is None:
        return ""
    note_files()
    if S.after is None:
        walked()
    return "\n".join([S.ran[0], *name_rows(S.before, S.after), *file_rows(
        *S.ran[1:])]) + "\n"


def name_rows(before, after):
    unseen = []
    for name in after:
        if type(name) is not str or name not in NS:
            continue
        o = NS[name]
        was, now = before.get(name), after[name]
        was = (was, None) if type(was) is int else was
        if was is None:
            yield row("new", name, type(o).__name__, short(o))
        elif was[0] != now[0] or None not in (was[1], now[1]) and was != now:
            yield row("changed", name, type(o).__name__, short(o))
        elif None in (was[1], now[1]) and type(o) not in VALUES and not any(
                type(o) is kind for kind in LASTING):
            unseen.append(name)
    for name in before:
        if name not in after and type(name) is str and name[:2] != "__" and \
                name != "_":
            yield row("removed", name)
    if unseen:
        yield row("not looked into", ", ".join(unseen[:10]) +
                  ", ..." * (len(unseen) > 10))


def file_rows(began, before, until, after):
    if before is None or after is None:
        return
    for path in sorted({**before, **after}):
        name = path[len(HOME_FOLDER) + 1:]
        try:  # what a person copied or removed before does not count
            file = os.lstat(path if path in after else path.rpartition("/")[0])
        except OSError:
            file = None
        if path not in after:
            if file is None or file.st_mtime_ns >= began - CLOCK:
                yield row("removed file", name)
            continue
        if file is None or file.st_ctime_ns < began - CLOCK:
            continue
        kind = "directory" if os.path.isdir(path) else "file"
        if path not in before:
            yield row("new " + kind, name, "", bytes_of(file.st_size))
        elif kind == "file" and before[path] != after[path] and \
                file.st_ctime_ns <= until:
            yield row("changed file", name, "", bytes_of(file.st_size))


def row(*texts):
    return "\t".join(shown(text)[:200] for text in texts)
