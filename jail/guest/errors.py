# SPDX-License-Identifier: MIT
#
# errors.py - tell the person what escaped from a cell
#
# Runs in:   the guest, at the first error
# Trusts:    as cells.py; the errors are the user's, hooks included
# Leaves:    nothing
from posix import environ


def report(e):
    "tell the person what escaped from the cell"
    S.status = int(S.how != "exit")
    call(begin_line)
    if S.how == "exit":
        call(exit_status, e)
        return
    load_traceback()  # outside call(): no interrupt cuts an import in half
    if call(show, e):
        call(lambda: tell(bare(e)))


def load_traceback():
    """show() does without it where the cell has left no memory, or no
    descriptor, to load it"""
    try:
        if S.traceback is None:
            S.linecache = stdlib("linecache")
            S.traceback = stdlib("traceback")
    except Exception:
        pass


def exit_status(e):
    S.status = 1
    if e.code is None:
        S.status = 0
    elif isinstance(e.code, int):
        S.status = e.code & 0xFF
    else:
        tell(str(e.code) + "\n")


def begin_line():
    """Earlier output stands above, and the front end ends its last line: only
    the front end knows where the cursor is."""
    flush(sys.stdout)
    if S.owed and getpid() == S.pid:  # a fork's would be no mark
        put(b"\33_%s\7" % S.owed[1].encode())


def tell(text):
    "to stderr, or to the tty where a cell has broken stderr"
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except Exception:
        put(text.encode("utf-8", "backslashreplace"))


def formatted(e):
    "the traceback, from the user's first frame on"
    tb = e.__traceback__
    while tb and tb.tb_frame.f_globals is GUEST:
        tb = tb.tb_next
    tb = of_file(tb)
    BaseException.with_traceback(e, tb)
    frame = tb
    while frame:  # nor those of ours between the user's: a displayhook
        while frame.tb_next and frame.tb_next.tb_frame.f_globals is GUEST:
            frame.tb_next = frame.tb_next.tb_next
        frame = frame.tb_next
    publish()
    if tb is None and not e.__context__ and not e.__cause__:
        lines = S.traceback.format_exception_only(type(e), e)
    else:
        lines = S.traceback.format_exception(type(e), e, tb)
    text = "".join(lines)
    if (3, 10) <= sys.version_info < (3, 12) and not threads():
        text = suggested(text, e, tb)
    return text


def of_file(tb):
    "%run: from the file's first frame on"
    run = tb
    while run and run.tb_frame.f_code is not GUEST.get("RUN_CODE"):
        run = run.tb_next
    return run.tb_next if run else tb


def suggested(text, e, tb):
    "before 3.12 only the interpreter's own hook makes suggestions"
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


def has_colours():
    """whether what is told comes to a terminal that shows colours: the front end
    sets NO_COLOR where it shows none"""
    try:
        return bool(S.sock) and sys.stderr is S.streams[2] and \
            fstat(2).st_rdev == S.tty and not environ.get(b"NO_COLOR") and \
            environ.get(b"TERM", b"dumb") != b"dumb"
    except Exception:
        return False


def type_names(e, seen):
    "the names of the exceptions that a traceback of this one may show"
    if isinstance(e, BaseException) and id(e) not in seen and len(seen) < 50:
        seen[id(e)] = type(e).__name__
        for more in (e.__cause__, e.__context__,
                     *getattr(e, "exceptions", ())[:10]):
            type_names(more, seen)
    return seen.values()


def painted(text, e):
    "in colours: where it was, carets, and the exceptions' names"
    re = stdlib("re")
    names = "|".join(re.escape(n) for n in type_names(e, {}))
    for pattern, paint in (
            (r'^([ |+-]*File )("[^"\n]*")(, line )(\d+)(?:(, in )(.+))?$',
             lambda m: "".join(
                 "\33[35m%s\33[m" % t if i % 2 else t
                 for i, t in enumerate(m.groups("")) if t)),
            (r"^([ |]*)([~^][ ~^]*)$", "\\1\33[1;31m\\2\33[m"),
            (r"^((?:  )*(?:\| )?(?:[\w.<>]+\.)?)(%s)(?=:|$)" % names,
             "\\1\33[1;35m\\2\33[m")):
        text = re.sub(pattern, paint, text, flags=re.M)
    return text


def bare(e):
    "without the traceback module, which the user may have broken"
    tb, lines = e.__traceback__, []
    while tb and len(lines) < 20:
        code = tb.tb_frame.f_code
        if tb.tb_frame.f_globals is not GUEST:
            lines.append('  File "%s", line %d, in %s\n' % (
                code.co_filename, tb.tb_lineno, code.co_name))
        tb = tb.tb_next
    try:
        said = ": %s" % e if str(e) else ""
    except Exception:
        said = ""
    if lines:
        lines.insert(0, "Traceback (most recent call last):\n")
    return "%s%s%s\n" % ("".join(lines), type(e).__name__, said)


def show(e):
    "show a traceback as Python's own prompt does"
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
        tell(painted(text, e) if has_colours() else text)
    except Exception:
        tell(bare(e))
    finally:
        sys.setrecursionlimit(limit)
