# SPDX-License-Identifier: MIT
#
# guest_later.py - the driver's second thoughts: modules, errors, questions
#
# Runs in:   the guest; each section is compiled into guest.py's own globals
#            the first time one of its functions is needed
# Trusts:    as guest.py does
# Leaves:    among the user's modules what site puts there
#
# What a first cell that ends well can do without. A text costs nothing to
# compile. tools/freeze hands it to guest.py, as TEXTS.

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
