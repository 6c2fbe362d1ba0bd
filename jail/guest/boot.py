# SPDX-License-Identifier: MIT
#
# boot.py - the driver's start: as a session, one cell (-e), one that waits
#
# Runs in:   the jail's Python, started as -I -S -c <load.py> with:
#              parts memory cpus ...
#                 ... ctl line mark library [stack] recursion  a session
#                 ... -e CELL [ARG...]                         one cell
#                 ... -w ctl tty                               wait.py
# Holds:     parts    the driver itself (load.py)
#            memory, cpus    the jail's limits, in bytes and thousandths
#            ctl      the socket to the warden, one message a read (wire.h)
#            line     a raw pty slave on which the source of a cell arrives
#            mark     the tty, whatever becomes of 0, 1 and 2
#            library  copy.c, for the first checkpoint
#            stack    a file for the stack of every thread (signal 64)
# Trusts:    the warden
# Leaves:    the loop of link.py, or the end of the one cell
#
# The first prompt waits for READY, and reading the rest of the driver takes
# longer than saying so: READY goes first. An import that could fail later for
# lack of a module is tried before. From here on every signal is blocked except
# SIGINT, which is ignored since before exec.
if sys.version_info < (3, 9):
    sys.exit("Python %d.%d is too old for cells, which need 3.9 or newer; "
             "programs (FILE, -c, -m) may have any" % sys.version_info[:2])
from posix import getpid, write
from _signal import SIG_BLOCK, SIGQUIT, pthread_sigmask, valid_signals

GUEST = globals()
STACK_SIGNAL = 64  # WIRE_STACK_SIGNAL
SIGNALS = valid_signals() - {STACK_SIGNAL}
LIMITS = sys.argv[1:3]
ARGS = sys.argv[3:]
if ARGS[0][0] != "-":
    for name in "_socket", "binascii", "fcntl":
        if name not in sys.builtin_module_names:
            __import__(name)
    MASK = pthread_sigmask(SIG_BLOCK, SIGNALS)
    write(int(ARGS[0]), b"READY %d %d.%d.%d" % (
        (getpid(),) + sys.version_info[:3]))
part("cells")


def prepare():
    "what each program's only cell needs, before the cell is known"
    for name in "customize", "errors", "awaits", "machine":
        part(name)
    close(PARTS)
    GUEST.update(Interactive=__import__("_ast").Interactive)
    S.mark, S.how, S.error = 2, "interrupted", None
    try:
        S.tty = fstat(2).st_rdev
    except OSError:
        S.tty = None


def freeze():
    """The objects of the start outlive the cell: a collection, as at Python's
    end, need not look at them (1.5 ms of that end), nor clear the modules that
    are the driver's alone (0.1 ms). A cell that wants them imports them."""
    gc = __import__("gc")
    own = [sys.modules.pop(name, None) for name in ("_ast", "_socket", "gc")]
    own.append(own)
    gc.freeze()


def program(source, done=lambda: None):
    "what escapes from the cell ends Python as it ends a program"
    try:  # a key that was pressed before is for the cell
        pthread_sigmask(SIG_UNBLOCK, (SIGINT, SIGQUIT))
        execute("<cell 1>", source)
    except KeyboardInterrupt as e:
        S.error = e
    done()
    e = S.error
    if e is None:
        return
    if S.how != "exit":
        load_traceback()
        show(e)
        sys.excepthook = lambda *_: None
        if S.how != "interrupted":
            e = SystemExit(1)
    raise e.with_traceback(None)


sys.modules["__main__"] = user
sys.argv = [""]
if hasattr(sys, "orig_argv"):
    sys.orig_argv = [sys.executable]
if ARGS[0] == "-e":
    sys.argv = ["-e"] + ARGS[2:]
    prepare()
    customize()
    freeze()
    program(ARGS[1].encode("utf-8", "surrogateescape"))
elif ARGS[0] == "-w":
    part("wait")
    wait()
else:
    part("link")
    # Until 3.9 a frame takes the builtins of its caller when both have the
    # same globals. So the caller has other ones.
    eval("session(*args)", {"session": session, "args": ARGS})
