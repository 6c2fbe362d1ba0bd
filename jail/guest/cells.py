# SPDX-License-Identifier: MIT
#
# cells.py - compile and run the user's cells
#
# Runs in:   the jail's Python, beside the user's code
# Trusts:    the warden. Not the user's code, which shares this process: the
#            state kept here only prevents accidents. Code that breaks the
#            driver on purpose loses this process, and the warden has its
#            checkpoint.
# Leaves:    nothing of its own in the user's namespace
#
# A first cell may be on its way while this part is loaded. So boot, cells and
# link import only modules that are built in or frozen, and everything that a
# first cell without an error can do without is in another part.
#
# The user's code runs only inside call(). Outside of it SIGINT is ignored and
# every other signal is blocked, except while the driver sleeps.
import builtins
# A cell may replace the functions in these modules: bind all of them now.
from posix import (_exit, close, dup2, fork, fstat, get_terminal_size, kill,
                   listdir, lseek, open as posix_open, read, set_inheritable,
                   setpgid, waitpid)
from time import sleep, time_ns
from _signal import (SIG_DFL, SIG_IGN, SIG_SETMASK, SIG_UNBLOCK, SIGINT,
                     default_int_handler, getsignal, signal)
from _thread import _count
from sys import (getprofile, getrecursionlimit, gettrace, setprofile,
                 setrecursionlimit, settrace)
from _io import BufferedReader, BufferedWriter, FileIO, TextIOWrapper

FUTURES = 0x1FE0000  # the code flags that __future__ imports set
CELLS_KEPT, SOURCE_KEPT = 1000, 4 << 20
VALUES_KEPT = 100
AWAITS = 0x2000  # compile(): await may stand outside of functions
COROUTINE = 0x80  # the flag of code that has one there
# A first cell with none of these words neither imports anything nor sees what
# site puts among the builtins.
NEEDS_SITE = (b"import", b"exec", b"eval", b"breakpoint", b"__", b"help",
              b"exit", b"quit", b"copyright", b"credits", b"license")
# A cell with none of these has no habits of other prompts in it (habits.py).
HABITUAL = b"!", b"%", b"In", b"_i", b"display("
CONTAINERS = frozenset({dict, list, tuple, set, frozenset})

S = type(sys.implementation)()  # the driver's state, in one place
S.pid = getpid()
S.flags = S.size = S.lost = 0
S.sources = {}
S.site = False  # whether customize() has run
S.trial = False  # in a copy that answers one question (trial.c)
S.warm = ()
S.owed = None
S.habitual = False  # whether the cell may have habits in it (habits.py)
S.state = S.tree = None  # of the variables; of the cell (changed.py)
S.broken = ()  # what a cell broke, in words
S.name = ""  # of the cell
# diff.py: the names before the last cell and after it; that cell.
S.before, S.after, S.ran = {}, {}, None
S.values = {}  # what cells showed
S.kind, S.leaves = "", False  # of the cell; whether it asks to leave
S.pictures = None  # during a cell that shows any: a pipe, -1 when it is broken
S.loop = None  # where cells await
S.sock = None
S.linecache = S.traceback = S.tracing = S.profiling = None
S.on_int = default_int_handler
S.hook, S.show = sys.excepthook, sys.displayhook
S.modules = sys.modules
S.main = S.modules["__main__"]
STDLIB = sys.path[:]

user = type(sys)("__main__")
NS = user.__dict__
NS.update(__builtins__=builtins, __annotations__={},
          __loader__=sys.modules["_frozen_importlib"].BuiltinImporter)


def needs_site(source):
    return any(w in source for w in NEEDS_SITE)


def stdlib(name):
    """import for the driver: no file of the home replaces a module, nor does
    an __import__ of the user's import what the module needs"""
    path, load = sys.path, builtins.__dict__.get("__import__")
    sys.path, builtins.__import__ = STDLIB, __import__
    try:
        return __import__(name)
    finally:
        sys.path, builtins.__import__ = path, load


def call(f, *args):
    """Run the user's code: returns the exception that escaped, or None.

    A signal handler may raise between any two steps. So each step can be done
    twice, and the loop ends only when all of them are done."""
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
        S.on_int = default_int_handler if is_pdbs(handler) else handler
    return error


def is_pdbs(handler):
    """pdb leaves its handler behind when it lets the program go on. In a later
    cell Ctrl-C would open a debugger that nobody asked for."""
    return type(handler).__name__ == "method" and handler.__module__ == "pdb"


def compiled(name, source):
    "all but a last expression runs as a module; the last expression is shown"
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
    flags = AWAITS | S.flags
    tree = parsed(name, text, flags)
    S.tree = type(tree)(tree.body[:], [])
    last = tree.body[-1:]
    S.quiet = bool(last) and is_quiet(text, last[0])
    if last and type(last[0]).__name__ == "Expr" and not S.quiet:
        del tree.body[-1]
    else:
        last = None
    if tree.body or not last:
        codes.append(compile(tree, name, "exec", flags, True))
        S.flags |= codes[0].co_flags & FUTURES
    if last:
        tree = Interactive(last)
        codes.append(compile(tree, name, "single", AWAITS | S.flags, True))
    return codes


def parsed(name, text, flags):
    "the tree of a cell; a habit in it (names = !ls, %run) is that of a call"
    failed = None
    if S.kind != "habit":
        try:
            return compile(text, name, "exec", 0x400 | flags, True)  # ONLY_AST
        except SyntaxError as e:
            if not S.habitual:
                raise
            failed = e
    return rewritten(name, text, flags, failed)


def is_quiet(text, last):
    "a semicolon behind the last statement: its value is not shown"
    if ";" not in text:
        return False
    line = text.split("\n")[last.end_lineno - 1].encode()
    return line[last.end_col_offset:].lstrip().startswith(b";")


def display(value):
    """sys.displayhook: as Python's own; the values before it are in __ and ___,
    and that of cell N in _N and Out[N]"""
    if value is None:
        return
    names = builtins.__dict__
    before = names.get("_"), names.get("__")
    show_value(value)
    names["__"], names["___"] = before
    number = int(S.name[6:-1])  # <cell N>
    names["Out"] = S.values
    S.values[number] = names["_%d" % number] = value
    while len(S.values) > VALUES_KEPT:
        old = next(iter(S.values))
        del S.values[old]
        names.pop("_%d" % old, None)


def show_value(value):
    "it is _ then"
    if is_drawn(value):
        builtins._ = value
    elif type(value) in CONTAINERS:
        part("values")
        show_container(value)
    else:
        S.show(value)


def is_drawn(value):
    "draw what is a picture"
    if S.pictures is None or getpid() != S.pid or not (
            "matplotlib.figure" in S.modules or
            hasattr(type(value), "_repr_png_")):
        return False
    part("pictures")
    return draw_value(value)


def figures():
    "the figures of pyplot in which something is drawn; none where none is shown"
    helpers = S.pictures is not None and S.modules.get(
        "matplotlib._pylab_helpers")
    if not helpers or getpid() != S.pid:
        return []
    part("pictures")
    return drawn_figures(helpers)


def leaver(body):
    "exit or quit, or a call of one: what a cell that is nothing else evaluates"
    if len(body) != 1 or type(body[0]).__name__ != "Expr":
        return None
    node = body[0].value
    name = getattr(getattr(node, "func", node), "id", None)
    return node if name in ("exit", "quit") and name not in NS else None


def is_open(fd, file):
    "whether a cell has neither closed nor replaced it"
    try:
        return fstat(fd)[1:3] == file
    except OSError:
        return False


def columns():
    try:
        return get_terminal_size(S.mark).columns or 80
    except OSError:
        return 80


def execute(name, source):
    "sets S.how and S.error; S.how stays \"interrupted\" after an interrupt"
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
    leaves = leaver(S.tree.body) if S.kind == "prompt" else None
    try:
        if S.tracing or S.profiling:
            if callable(S.profiling):
                setprofile(S.profiling)
            settrace(S.tracing)
        S.name = name
        if type(leaves).__name__ == "Name":
            raise SystemExit
        NS.pop("__warningregistry__", None)  # each cell may warn anew
        before = S.quiet and figures()
        for code in codes:
            if code.co_flags & COROUTINE:
                part("awaits")
                awaited(eval(code, NS))
            else:
                exec(code, NS)
        # The value is not shown; a figure that the cell has begun is.
        for figure in S.quiet and figures() or ():
            if figure not in before:
                draw_figure(figure)
        S.how = "ok"
    except KeyboardInterrupt as e:
        S.error = e
    except SystemExit as e:
        S.error, S.how, S.leaves = e, "exit", bool(leaves)
    except BaseException as e:
        S.error, S.how = e, "raised"
        # C code that did not expect an interrupt makes this of it.
        if type(e) is SystemError and type(e.__cause__) is KeyboardInterrupt:
            S.error, S.how = e.__cause__, "interrupted"


def keep(name, text):
    "keep the source of a cell where tracebacks look for it"
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
            pass  # the user's own linecache, or one that the user broke


def flush(*files):
    for f in files:
        try:
            f.flush()
        except Exception:
            pass


def put(data):
    "write all of it to the tty; 0 if the descriptor is no longer the tty"
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


def names():
    "how many names are the user's"
    return sum(type(k) is str and k[:2] != "__" and k != "_" for k in list(NS))


def threads():
    return max(_count() - S.lost, 0)
