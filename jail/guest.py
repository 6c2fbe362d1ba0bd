# SPDX-License-Identifier: MIT
#
# guest.py - the driver: runs the session's cells inside the jail's Python
#
# Runs in:   the jail, as PYTHON -I -S -c <this text>, beside the user's code:
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
# This text is compiled at every start and stands before the first prompt. So
# only modules that are built in or frozen are imported at boot, and what a
# first cell that ends well can do without is kept as text: in LATER below,
# or in the tools.
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
                     signal, valid_signals)
from _thread import _count
from sys import getprofile, gettrace, setprofile, settrace

GUEST = globals()
LOOK = 64  # WIRE_LOOK_SIGNAL
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
SIGNALS = valid_signals() - {LOOK}

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
            while part:
                part = pread(S.tools, 1 << 20, len(text) - 1)
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
    S.mask = pthread_sigmask(SIG_BLOCK, SIGNALS)
    say("READY %d %d.%d.%d" % ((S.pid,) + sys.version_info[:3]))
    # While a first cell is on its way. The types of the syntax tree alone take
    # as long as all the rest.
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


# What is not needed when all goes well. A text costs nothing to compile.
LATER = dict(sections(r'''
#: section warm
def warm():
    "while the person reads: what the next cells will need"
    while S.warm:
        name = S.warm.pop()
        try:
            if name == "park":
                later(name)
            elif name != "customize":
                load(name)
            elif not S.site:
                later(name)()
        except Exception:
            pass  # it will be told when it is needed


#: section customize
import posix
from posix import register_at_fork
from _thread import get_ident

# What these do at a fork mends the locks of threads that a copy is without.
MENDERS = ("threading", "logging", "concurrent.futures.thread",
           "asyncio.events")
S.parking = None  # the thread that parks


def customize():
    "what site does, before a cell can import anything; not from the home"
    global site
    S.site = True
    site, lines = load("site"), []
    site.exec = lambda line: lines.append(
        (line, sys._getframe(1).f_locals.get("sitedir")))
    known = site.venv(site.removeduppaths())
    site.ENABLE_USER_SITE = False
    site.addsitepackages(known)
    del site.exec
    site.setquit()
    site.setcopyright()
    site.sethelper()
    if S.sock:
        builtins.quit.__class__ = builtins.exit.__class__ = type(
            "Quitter", (type(builtins.quit),), {"__call__": leave})
        site.os.register_at_fork = posix.register_at_fork = at_fork
    more = site.os.environ.get("PYTHONPATH", "")
    sys.path[:0] = [p for p in more.split(":") if p]
    for line, sitedir in lines:
        try:  # such a line may look for `sitedir` in the frame that runs it
            exec(line, site.__dict__, {"sitedir": sitedir})
        except Exception as e:
            print("Error in a .pth file of %s: %s: %s" % (
                sitedir, type(e).__name__, e), file=sys.stderr)
    site.execsitecustomize()
    sys.path.insert(0, "")


def leave(self, code=None):
    "exit() that does not close stdin: the session may go on"
    raise SystemExit(code)


def at_fork(**hooks):
    "os.register_at_fork(): parking is no fork, for all that a hook can see"
    if sys._getframe(1).f_globals.get("__name__") not in MENDERS:
        for when, hook in hooks.items():
            if callable(hook):
                hooks[when] = unless_parking(hook)
    register_at_fork(**hooks)


def unless_parking(hook):
    return lambda: S.parking != get_ident() and hook()


#: section report
def report(e):
    "what escaped from the cell: tell the person"
    S.status = int(S.how != "exit")
    later("tell")
    if S.how == "exit":
        call(exit_status, e)
        return
    try:  # here, where no interrupt leaves half an import behind
        if S.traceback is None:
            S.linecache = load("linecache")
            S.traceback = load("traceback")
    except Exception:
        pass  # show() does without
    if call(later("show"), e):
        call(tell, "%s (and showing it was interrupted)\n" % type(e).__name__)


def exit_status(e):
    S.status = 1
    if e.code is None:
        S.status = 0
    elif isinstance(e.code, int):
        S.status = e.code & 0xFF
    else:
        tell(str(e.code) + "\n")


#: section tell
def tell(text):
    "to stderr; where a cell has broken it, to the tty"
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except Exception:
        put(text.encode("utf-8", "backslashreplace"))


#: section show
def formatted(e):
    "the traceback, from the user's first frame on"
    tb = e.__traceback__
    while tb and tb.tb_frame.f_globals is GUEST:
        tb = tb.tb_next
    BaseException.with_traceback(e, tb)
    publish()
    if tb is None and not e.__context__ and not e.__cause__:
        lines = S.traceback.format_exception_only(type(e), e)
    else:
        lines = S.traceback.format_exception(type(e), e, tb)
    text = "".join(lines)
    if (3, 10) <= sys.version_info < (3, 12) and not threads():
        text = suggested(text, e, tb)
    return text


def suggested(text, e, tb):
    "before 3.12 only the interpreter's own hook knows what was meant"
    if not isinstance(e, (NameError, AttributeError)):
        return text
    import io
    err, sys.stderr = getattr(sys, "stderr", None), io.StringIO()
    try:
        S.hook(type(e), e, tb)
        said = sys.stderr.getvalue()
    finally:
        sys.stderr = err
    tail = text[text[:-1].rfind("\n") + 1:-1]
    at = said.rfind(tail + ". Did you mean: ")
    return text if at < 0 else text[:-1] + said[at + len(tail):]


def bare(e):
    "without any help: the modules for it are broken"
    tb, lines = e.__traceback__, []
    while tb and len(lines) < 20:
        code = tb.tb_frame.f_code
        if tb.tb_frame.f_globals is not GUEST:
            lines.append('  File "%s", line %d, in %s\n' % (
                code.co_filename, tb.tb_lineno, code.co_name))
        tb = tb.tb_next
    try:
        said = ": %s" % e
    except Exception:
        said = ""
    if lines:
        lines.insert(0, "Traceback (most recent call last):\n")
    return "%s%s%s\n" % ("".join(lines), type(e).__name__, said)


def show(e):
    "a traceback, as Python's own prompt shows it"
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, 1000))
    try:
        text = formatted(e)
        sys.last_type, sys.last_value = type(e), e
        sys.last_traceback = e.__traceback__
        if sys.version_info >= (3, 12):
            sys.last_exc = e
        hook = sys.excepthook
        if hook is not S.hook:
            try:
                return hook(type(e), e, e.__traceback__)
            except Exception as bad:
                text = "Error in sys.excepthook:\n%s\n" \
                    "Original exception was:\n%s" % (formatted(bad), text)
        tell(text)
    except Exception:
        tell(bare(e))
    finally:
        sys.setrecursionlimit(limit)


#: section ask
def ask(no, kind, text):
    "a question, between cells"
    if not S.site:
        later("customize")()
    S.answer = b"0\n" if kind == "complete" else b""
    call(lambda: later("answer")(kind, text))
    if getpid() != S.pid:
        _exit(0)
    say("ANSWER %s %d\n" % (no, len(S.answer)), S.answer)


#: section program
def program(source):
    "-e: what escapes the cell ends Python as it would end a program"
    later("tell")
    later("show")
    customize()
    from _ast import Interactive
    GUEST.update(Interactive=Interactive)
    S.tty, S.how, S.error = None, "interrupted", None
    execute("<cell 1>", source)
    e = S.error
    if e is None:
        return
    if S.how != "exit":
        S.linecache, S.traceback = load("linecache"), load("traceback")
        show(e)
        sys.excepthook = lambda *_: None
        if S.how != "interrupted":
            e = SystemExit(1)
    raise e.with_traceback(None)
'''))

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
