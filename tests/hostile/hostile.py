# SPDX-License-Identifier: MIT
"""What every test here asks after a hostile cell: the session is still there,
and what it says of itself is true."""
import re

import hosttree
LOST = "variables lost"
# What the session says of a cell: between brackets, and not a value.
FRAME = re.compile(r"^\[[^\[\]]*(?: · | left behind|ended|killed|be taken"
                   r"|dropped:)[^\[\]]*\]$", re.M)

# Finds the driver's sockets without /proc, which not every jail has.
FIND = """\
import os, stat, socket
def sockets():
    found = []
    for n in range(1024):
        try:
            if stat.S_ISSOCK(os.fstat(n).st_mode):
                found.append(n)
        except OSError:
            pass
    return found
def control():
    return socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET, 0,
                         os.dup(sockets()[-1]))"""

# In a child, or in the guest itself: only its first thread ends.
END_FIRST_THREAD = """\
import ctypes, threading
def end_first_thread():
    libc = ctypes.CDLL(None)
    libc.syscall({'x86_64': 60, 'aarch64': 93}[os.uname().machine], 0)
"""

SWALLOW = ("while True:\n    try:\n        while True: pass\n"
           "    except BaseException: pass")


# A handler of libc's fork() that hangs: before it, behind it, or in the child.
HANG = """\
import ctypes, os
libc = ctypes.CDLL(None)
hang = ctypes.cast(libc.pause, ctypes.c_void_p)
getattr(libc, '__register_atfork')(%s, None)
mine = 'too'"""


def start(cb, *args, **more):
    """A session with something to lose, and short clocks."""
    s = cb.session("--set", "cell.timeout=1500ms", "--set", "cell.grace=300ms",
                   "--set", "session.processes=40", "-M", "256M", *args,
                   **more)
    s.run("kept = {'cell': 1}")
    s.run("open('kept.txt', 'w').write('in the home')")
    return s


def said_since(s, row):
    """What stands on the screen since `row`, wrapped lines joined."""
    return "".join(s.screen.rows(row))


def value(s, expression, deadline=25):
    """The value of an expression, without what was said of an earlier cell
    before it, or of what goes on in the background behind it."""
    lines = FRAME.sub("", s.run(expression, deadline)).rstrip().split("\n")
    return lines[-1]


def wait_stopped(tree):
    """Until every process of the jail is stopped or frozen."""
    hosttree.until(lambda: all(map(hosttree.is_stopped, tree.guests())),
                   "the jail to be stopped")


def is_whole(s, row, must_keep=True):
    """Works, the home is kept, and the variables too, or their loss was said
    since `row`. Returns whether they were kept."""
    assert value(s, "6 * 7") == "42", s.picture()
    out = value(s, "kept")
    assert value(s, "open('kept.txt').read()") == "'in the home'"
    lost = LOST in said_since(s, row)
    if "NameError" in out:
        assert lost, "variables are gone, and nothing was said"
        assert not must_keep, s.picture()
        return False
    assert out == "{'cell': 1}", out
    assert not lost, "said to be lost, and are there"
    return True


def recovers(s, cell, must_keep=True, deadline=25):
    """Run it, and be whole afterwards. Returns what it said."""
    row = s.screen.here()
    out = s.run(cell, deadline)
    is_whole(s, row, must_keep)
    return out
