# SPDX-License-Identifier: MIT
#
# hints.py - which wall of the jail an error comes from
#
# Runs in:   the guest, after an error was told
# Trusts:    the front end, which reads the pipe and has the words. The error is
#            the user's
# Leaves:    in the pipe of the cell's pictures a head "hint WORD", and
#            HINT_PATH bytes: a path and zeros. WORD is "memory", "network",
#            "space" or "file", for a file that is not there
from posix import stat
HINT_PATH = 256  # JAIL_HINT_PATH
ENETUNREACH = 101
NO_SPACE = 28, 122  # ENOSPC, EDQUOT
CAUSES = 20


def tell_hint(pipe, e):
    part("pictures")
    for cause in causes(e, []):
        word, path = wall_of(cause)
        path = path.encode("utf-8", "surrogateescape")
        if word:
            if len(path) >= HINT_PATH:
                path = b""
            return send_all(pipe, (b"hint " + word).ljust(
                PICTURE_HEAD - 1) + b"\n" + path.ljust(HINT_PATH, b"\0"))


def causes(e, seen):
    if isinstance(e, BaseException) and e not in seen and len(seen) < CAUSES:
        seen.append(e)
        causes(e.__cause__, seen)
        causes(e.__context__, seen)
    return seen


def wall_of(e):
    "a word, and a path"
    if isinstance(e, MemoryError):
        return b"memory", ""
    if isinstance(e, OSError):
        if type(e).__name__ == "gaierror" or e.errno == ENETUNREACH:
            return b"network", ""
        if e.errno in NO_SPACE:
            return b"space", ""
    if type(e).__name__ == "OperationalError" and "is full" in str(e):
        return b"space", ""  # sqlite3's
    if isinstance(e, FileNotFoundError):
        # numpy's has only a text.
        name = e.filename or str(e).removesuffix(" not found.")
        if type(name) is str and may_be_outside(name):
            if name[:6] == "/home/" and "~" in S.sources.get(S.name, ""):
                name = "~" + name[5:]  # as it was before expanduser()
            return b"file", name
    return None, ""


def may_be_outside(name):
    "whether a missing file is in no directory of the jail, but the current one"
    if name[:1] == "~" or "/" not in name or name[:6] == "/home/":
        return True
    try:
        stat(name.rpartition("/")[0])
    except OSError:
        return name[0] == "/"
    except ValueError:
        pass
    return False
