# SPDX-License-Identifier: MIT
"""Shared by all tests of hostile cells: the session must still work after such
a cell, and everything the session says about itself must be true."""
import re

import hosttree
from world import IS_ROOT, PATIENCE, WHOLE

LOST = "variables lost"
# A line of the session about a cell: text between brackets, not a value.
FRAME = re.compile(r"^¦ \[[^\[\]]*(?: · | left behind|stopped until|ended"
                   r"|killed|be taken|dropped:|ends in)[^\[\]]*\]$", re.M)

# Finds the driver's sockets. It does not use /proc, because some jails have
# none.
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

# Ends the first thread of a process and leaves its other threads running.
END_FIRST_THREAD = """\
import ctypes, threading
def end_first_thread():
    libc = ctypes.CDLL(None)
    libc.syscall({'x86_64': 60, 'aarch64': 93}[os.uname().machine], 0)
"""

SWALLOW = ("while True:\n    try:\n        while True: pass\n"
           "    except BaseException: pass")


# Registers a handler of libc's fork() that hangs: before the fork, after it in
# the parent, or after it in the child.
HANG = """\
import ctypes, os
libc = ctypes.CDLL(None)
hang = ctypes.cast(libc.pause, ctypes.c_void_p)
getattr(libc, '__register_atfork')(%s, None)
mine = 'too'"""


def clocks(args):
    """Settings that end a cell soon. A cell that burns takes the CPU from other
    tests until its time is over: a user's meets the CPU limit, which strikes as
    the time limit does. In the long form root's meets the time limit.
    A test that sets a clock means that clock to strike. On a busy host a cell
    that does little may take longer than a second."""
    wall = ("--set", f"cell.timeout={1500 * PATIENCE:.0f}ms", "--set",
            "cell.grace=300ms")
    set_by_test = any(a.startswith(("cell.timeout=", "cell.cpu="))
                      for a in args)
    return wall if WHOLE and IS_ROOT or set_by_test else \
        (*wall, "--set", "cell.cpu=400ms")


def patient(key, seconds):
    """The setting of a limit in which work must be done that takes much less; on
    a busy host it is longer."""
    return "--set", f"{key}={int(seconds * PATIENCE)}s"


def start(cb, *args, **more):
    """A session with short clocks, one variable and one file in the home."""
    s = cb.session(*clocks(args), "--set", "session.processes=40", "-M", "256M",
                   *args, **more)
    s.run("kept = {'cell': 1}")
    s.run("open('kept.txt', 'w').write('in the home')")
    return s


def said_since(s, row):
    """The text on the screen from `row` on, with wrapped lines joined, those of
    the session, too."""
    return re.sub(r"¦ (?!\[)", " ", "".join(s.screen.rows(row)))


def value(s, expression, deadline=25):
    """The value of an expression. The lines that the session prints around the
    value, about an earlier cell or about the background, are left out; what the
    background writes before it may leave the cursor anywhere in its row."""
    lines = FRAME.sub("", s.run(expression, deadline)).rstrip().split("\n")
    return lines[-1].strip()


def wait_stopped(tree):
    """Wait until every process of the jail is stopped or frozen."""
    hosttree.until(lambda: all(map(hosttree.is_stopped, tree.guests())),
                   "the jail to be stopped")


def uses_no_cpu(s, tree):
    """Assert that no guest runs between two notices of the idle limit,
    which the test has set to little more than 60 s."""
    # One may have come while the keys of the cell were on their way.
    s.forget_notices("idle")
    s.wait_notice("idle")
    # A process that waits for a processor, also to end, seems to rest, too.
    wait_stopped(tree)
    before = tree.wait_at_rest()
    s.type("\r")
    s.wait_notice("idle")
    assert tree.guests_ran() == before


def is_whole(s, row, must_keep=True):
    """Assert that the session works and has kept its home. It has also kept
    its variables, or has reported their loss since `row`. Returns whether the
    variables were kept."""
    assert value(s, "6 * 7") == "42", s.picture()
    out = value(s, "kept")
    assert value(s, "open('kept.txt').read()") == "'in the home'"
    lost = LOST in said_since(s, row)
    if "NameError" in out:
        assert lost, "the variables are lost without a word\n" + s.picture()
        assert not must_keep, s.picture()
        return False
    assert out == "{'cell': 1}", out
    assert not lost, "said to be lost, but the variables exist"
    return True


def recovers(s, cell, must_keep=True, deadline=25):
    """Run a cell and assert that the session is whole afterwards. Returns the
    output of the cell."""
    row = s.screen.here()
    out = s.run(cell, deadline)
    is_whole(s, row, must_keep)
    return out
