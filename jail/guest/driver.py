# SPDX-License-Identifier: MIT
#
# guest.py - the driver: runs the session's cells inside the jail's Python
#
# Runs in:   the jail's Python, after guest_start.py, beside the user's code:
#              ctl line mark tools [stack] recursion   a session
#              -e CELL [ARG...]                        one cell, as a program
# Holds:     ctl    the warden's socket, one message a read (wire.h)
#            line   a raw pty slave on which the source of a cell arrives
#            mark   the tty, kept apart from whatever becomes of 0, 1 and 2
#            tools  guest_copy.so, guest_park.py and guest_answer.py, one
#                   behind the other, for the first need of them
#            stack  a file for every thread's stack, written on signal 64
# Trusts:    the warden. Not the user's code: it shares this process, so what
#            is kept here only keeps accidents away; who breaks the driver on
#            purpose loses this process, and the warden has its checkpoint
# Leaves:    nothing of its own in the user's namespace
#
# A first cell may be on its way while this is read. So only modules that are
# built in or frozen are imported at boot, and what a first cell that ends well
# can do without is kept as text: in LATER, which tools/freeze fills from
# guest_later.py, or in the tools.
#
# The user's code runs nowhere but inside call(). Outside of it SIGINT is
# ignored and every other signal waits, except while the driver sleeps.
__builtins__ = __builtins__.__dict__.copy()  # what a cell patches is not ours
import sys
import builtins
from binascii import crc32
# All that will ever be called, now: a cell may put something else in place.
from posix import (_exit, close, dup2, fork, fstat, getpid, kill, listdir,
                   lseek, open as posix_open, pread, read, set_inheritable,
                   setpgid, waitpid, write)
from time import sleep
from _signal import (SIG_BLOCK, SIG_DFL, SIG_IGN, SIG_SETMASK, SIG_UNBLOCK,
                     SIGINT, default_int_handler, getsignal, pthread_sigmask,
                     signal)
from _thread import _count
from sys import getprofile, gettrace, setprofile, settrace

GUEST = globals()
FUTURES = 0x1FE0000  # the code flags that __future__ imports set
CELLS_KEPT, SOURCE_KEPT = 1000, 4 << 20
# A first cell with none of these neither imports anything nor sees what site
# puts among the builtins.
NEEDS_SITE = (b"import", b"exec", b"eval", b"breakpoint", b"__", b"help",
              b"exit", b"quit", b"copyright", b"credits", b"license")

S = type(sys.implementation)()  # the driver's state, in one place
S.pid = getpid()
S.flags = S.size = S.lost = 0
S.sources = {}
S.site = False  # whether customize() has run
S.warm = ()
S.owed = None
S.sock = S.parts = S.tools = None
S.linecache = S.traceback = S.tracing = S.profiling = None
S.on_int = default_int_handler
S.out, S.err, S.hook = sys.stdout, sys.stderr, sys.excepthook
S.main = sys.modules["__main__"]
STDLIB = sys.path[:]

user = type(sys)("__main__")
NS = user.__dict__
NS.update(__builtins__=builtins, __annotations__={},
          __loader__=sys.modules["_frozen_importlib"].BuiltinImporter)


def load(name):
    "import for the driver: no file of the home stands in for a module"
    path = sys.path
    sys.path = STDLIB
    try:
        return __import__(name)
    finally:
        sys.path = path


# ---- the user's code ----

def call(f, *args):
    """Run the user's code: returns what escaped from it, or None.

    An exception of a signal handler may strike between any two steps; so each
    can be done twice, and the way out is not left before it is complete."""
    started = False
    error = tracing = mask = handler = None
    while True:
        try:
            if not started:
                started = True
                try:
                    signal(SIGINT, S.on_int)
                    pthread_sigmask(SIG_SETMASK, S.mask)
                    f(*args)
                except BaseException as e:
                    error = e
            if tracing is None:
                tracing = gettrace(), getprofile()
            settrace(None)
            if callable(tracing[1]):  # cProfile's is not: it stays
                setprofile(None)
            if mask is None:
                mask = pthread_sigmask(SIG_BLOCK, ())
            pthread_sigmask(SIG_BLOCK, SIGNALS)
            if handler is None:
                handler = getsignal(SIGINT)
            signal(SIGINT, SIG_IGN)
            break
        except BaseException as e:
            error = error or e
    if f is execute:
        S.tracing, S.profiling = tracing
    S.mask = mask
    if handler is not None:
        S.on_int = handler
    return error


def compiled(name, source):
    "all but a last expression runs as a module; that one is shown"
    try:
        text = source.decode()
    except UnicodeDecodeError as e:
        raise SyntaxError("(unicode error) %s" % e, (
            name, source.count(b"\n", 0, e.start) + 1, None, None))
    keep(name, text)
    if "\0" in text:  # compile() names no line, and not always this error
        raise SyntaxError("source code string cannot contain null bytes", (
            name, text.count("\n", 0, text.index("\0")) + 1, None, None))
    codes = []
    tree = compile(text, name, "exec", 0x400 | S.flags, True)  # ONLY_AST
    last = tree.body[-1:]
    if last and type(last[0]).__name__ == "Expr":
        del tree.body[-1]
    else:
        last = None
    if tree.body or not last:
        codes.append(compile(tree, name, "exec", S.flags, True))
        S.flags |= codes[0].co_flags & FUTURES
    if last:
        tree = Interactive(last)
        codes.append(compile(tree, name, "single", S.flags, True))
    return codes


def execute(name, source):
    "sets S.how and S.error; until then an interrupt is an interrupt"
    try:
        codes = compiled(name, source)
    except KeyboardInterrupt as e:
        S.error = e
        return
    except BaseException as e:
        e.__context__ = None
        S.error, S.how = e.with_traceback(None), "syntax"
        if type(e) is SyntaxError and e.lineno and e.text is None:
            e.text = (S.sources.get(name, "").split("\n")[e.lineno - 1:]
                      or [None])[0]
        return
    try:
        if S.tracing or S.profiling:
            if callable(S.profiling):
                setprofile(S.profiling)
            settrace(S.tracing)
        for code in codes:
            exec(code, NS)
        S.how = "ok"
    except KeyboardInterrupt as e:
        S.error = e
    except SystemExit as e:
        S.error, S.how = e, "exit"
    except BaseException as e:
        S.error, S.how = e, "raised"


def keep(name, text):
    "hold a cell's source where tracebacks look for it"
    S.sources[name] = text
    S.size += len(text)
    gone = []
    while len(S.sources) > CELLS_KEPT or (
            S.size > SOURCE_KEPT and len(S.sources) > 1):
        gone.append(next(iter(S.sources)))
        S.size -= len(S.sources.pop(gone[-1]))
    publish(gone)


def publish(gone=()):
    if S.linecache is None:
        S.linecache = sys.modules.get("linecache")
    if S.linecache is not None:
        try:
            cache = S.linecache.cache
            for old in gone:
                cache.pop(old, None)
            for name, text in S.sources.items():
                if name not in cache:
                    lines = text.removesuffix("\n").split("\n")
                    cache[name] = (len(text), None,
                                   [line + "\n" for line in lines], name)
        except Exception:
            pass  # the user's own, or broken by the user


def flush(*files):
    for f in files:
        try:
            f.flush()
        except Exception:
            pass


def names():
    "how many names are the user's"
    return sum(type(k) is str and k[:2] != "__" and k != "_" for k in list(NS))


def threads():
    return max(_count() - S.lost, 0)


# ---- the warden ----

def put(data):
    "write to the tty, all of it; 0 if the tty is no longer there"
    try:
        if fstat(S.mark).st_rdev != S.tty:
            return 0
        while data:
            try:
                data = data[write(S.mark, data):]
            except BlockingIOError:
                sleep(0.001)
        return 1
    except OSError:
        return 0


def say(text, payload=b""):
    try:
        send(text.encode() + payload, 0x4000)  # MSG_NOSIGNAL
    except OSError:
        unlinked()


def unlinked():
    "the warden is out of reach: a death that no exit status can be taken for"
    signal(LOOK, SIG_DFL)
    pthread_sigmask(SIG_UNBLOCK, (LOOK,))
    kill(getpid(), LOOK)


def cell(no, size, crc, mark):
    size, source = int(size), b""
    while len(source) < size:
        try:
            got = read(S.line, size - len(source))
        except OSError:
            got = b""
        if not got:
            return say("BAD %s short" % no)
        source += got
    if crc32(source) != int(crc):
        return say("BAD %s crc" % no)
    say("TOOK " + no)
    S.owed = no, mark
    if any(w in source for w in NEEDS_SITE):
        if S.linecache is None:
            S.linecache = load("linecache")
        if not S.site:
            later("customize")()
    S.how, S.error, S.status = "interrupted", None, 0
    lost = call(execute, "<cell %s>" % no, source)
    if S.how == "interrupted" and S.error is None:
        S.error = lost
    if S.error is not None:
        later("report")(S.error)
    S.error = lost = None
    ended()


def ended():
    out, err = getattr(sys, "stdout", None), getattr(sys, "stderr", None)
    if out is not S.out or err is not S.err:
        call(flush, out, err)
    call(flush, S.out, S.err)
    if getpid() != S.pid:  # a forked child came back into the driver
        _exit(S.status)
    (no, mark), S.owed = S.owed, None
    marked = put(b"\33_%s\33\\" % mark.encode())
    say("DONE %s %s %d %d %d %d" % (
        no, S.how, names(), threads(), S.status * (S.how == "exit"), marked))


def later(name):
    "a function that is kept as text; its section is compiled at first need"
    if name not in GUEST:
        if name not in LATER:
            text = part = b"."
            while part:  # not much at once: malloc() learns from what is freed
                part = pread(S.tools, 1 << 16, len(text) - 1)
                text += part
            LATER.update(sections(text[1:].decode("utf-8", "replace")))
        exec(compile(LATER[name], "<cellblock>", "exec"), GUEST)
    return GUEST[name]


def sections(text):
    return [s.split("\n", 1) for s in text.split("\n#: section ")[1:]]


def step():
    if getpid() != S.pid:  # a handler forked while we slept
        _exit(0)
    pthread_sigmask(SIG_SETMASK, S.mask)
    try:
        recv(1, 2)  # MSG_PEEK: a handler may raise, and no message is lost
    except OSError:
        unlinked()
    pthread_sigmask(SIG_BLOCK, SIGNALS)
    data, extra, _, _ = recvmsg(65536, 256, 0x40000000)  # MSG_CMSG_CLOEXEC
    if not data:
        unlinked()
    line, _, text = data.partition(b"\n")
    word, *args = line.decode().split(" ")
    fds = [int.from_bytes(d[i:i + 4], sys.byteorder)
           for _, _, d in extra for i in range(0, len(d), 4)]
    if word == "CELL":
        cell(*args)
    elif word == "PARK":
        if S.warm:  # before the copy is made: then it is warm too
            later("warm")()
        later("park")(args[0], fds.pop(0))
    elif word == "ASK":
        later("ask")(args[0], args[1], text)
    for fd in fds:
        close(fd)


def serve():
    while True:
        try:
            step()
        except BaseException as e:  # of a handler, while we slept
            try:
                pthread_sigmask(SIG_BLOCK, SIGNALS)
                S.how = "raised"
                later("report")(e)
                if S.owed:  # the driver itself failed
                    ended()
            except BaseException:
                pass


def high(fd, at=512):
    "out of the way of code that closes or expects small numbers"
    while fd < 500:
        try:
            fstat(at)
            at += 1
        except OSError:
            try:
                dup2(fd, at, False)
                close(fd)
                return at
            except OSError:
                break  # beyond the limit
    set_inheritable(fd, False)
    return fd


def session(*argv):
    from _socket import socket
    S.ctl, S.line, S.mark, S.tools, *rest = S.keep = [
        high(int(fd)) for fd in argv[:-1]]
    S.sock = socket(1, 5, 0, S.ctl)  # AF_UNIX, SOCK_SEQPACKET
    GUEST.update(send=S.sock.send, recv=S.sock.recv, recvmsg=S.sock.recvmsg)
    S.mask = MASK
    # The types of the syntax tree alone take as long as all the rest.
    from _ast import Interactive
    GUEST.update(Interactive=Interactive)
    S.tty = fstat(S.mark).st_rdev
    for fd in rest:
        import faulthandler
        faulthandler.register(LOOK, fd, True, False)
    sys.ps1, sys.ps2 = ">>> ", "... "
    sys.setrecursionlimit(int(argv[-1]))
    S.warm = ["traceback", "textwrap", "linecache", "tokenize", "re", "enum",
              "functools", "collections", "operator", "keyword", "types",
              "customize", "park"]
    while True:
        try:
            serve()
        except BaseException:
            pass


LATER = dict(sections(TEXTS))

args = sys.argv[1:]
sys.modules["__main__"] = user
sys.argv = [""]
if hasattr(sys, "orig_argv"):
    sys.orig_argv = [sys.executable]
if args[:1] == ["-e"]:
    sys.argv = ["-e"] + args[2:]
    later("customize")
    later("program")(args[1].encode("utf-8", "surrogateescape"))
else:
    # Until 3.9 a frame has the builtins of the one before it, if both have the
    # same globals: so begin from a frame with others.
    eval("session(*args)", {"session": session, "args": args})
