# SPDX-License-Identifier: MIT
#
# guest_tools.py - the rest of the driver: parking, and answers to questions
#
# Runs in:   the guest; each section is compiled into guest.py's own globals
#            the first time one of its functions is needed
# Trusts:    as guest.py does
# Leaves:    park: a checkpoint beside a live guest that shows no trace of it
#            answer: nothing, but for what evaluating the user's names does
#
# What parking cannot hide: os.fork() runs the hooks of os.register_at_fork()
# and raises the audit event os.fork (a raw fork would skip the hooks of the
# interpreter's locks and of libc as well, and hang); a SIGCHLD handler that
# was installed from C, and a thread that sits in os.wait() at that very
# moment, may see the process in the middle.

#: section park
from posix import (O_ACCMODE, O_APPEND, O_CLOEXEC, O_DIRECTORY,
                   O_NONBLOCK, O_PATH, O_SYNC, O_WRONLY, P_ALL,
                   WEXITED, WNOHANG, WNOWAIT, waitstatus_to_exitcode)
from errno import EAGAIN, ENOMEM
from _signal import SIG_DFL, SIGCHLD, raise_signal
from _stat import S_ISCHR, S_ISDIR, S_ISREG
fcntl = load("fcntl")

REOPEN = O_ACCMODE | O_APPEND | O_DIRECTORY | O_NONBLOCK | O_SYNC
OOM_LIVE, OOM_ASLEEP = b"500", b"0"
S.writers = {}  # descriptor -> what it was, and the file objects on top


def park(no, sock):
    "leave a checkpoint behind; returns in the live guest, now or much later"
    count, others = names(), threads()
    random = random_state()
    flush_writers()
    why = copy()
    if why is not None:
        close(sock)
        return say("PARKED %s %s" % (no, why))
    setpgid(0, 0)
    S.pid, S.lost = getpid(), _count()
    dup2(sock, S.ctl, False)
    close(sock)
    shared = seal()
    oom_score(OOM_ASLEEP)
    say("ASLEEP %d %d %d" % (S.pid, count, others))
    try:
        order = recv(64)
    except OSError:
        order = b""
    if order != b"RESUME":
        _exit(0)
    for fd, at in shared:
        lseek(fd, at, 0)
    if random:
        random_restore(*random)
    oom_score(OOM_LIVE)
    say("AWAKE %d %d" % (S.pid, count))


def copy():
    "the double fork: None in the checkpoint, a word for PARKED in the live"
    old = getsignal(SIGCHLD)
    if old is not None:  # no handler may see the process in the middle
        signal(SIGCHLD, SIG_DFL)
    why = "ok"
    try:
        middle = quiet_fork()
        if middle == 0:
            try:
                if fork():
                    _exit(0)
            except OSError as e:
                _exit(e.errno)
            if old is not None:
                signal(SIGCHLD, old)
            return None
        code = waitstatus_to_exitcode(waitpid(middle, 0)[1])
        if code:
            why = fork_error(code)
    except ChildProcessError:
        pass  # somebody else's wait() took the one in the middle
    except OSError as e:
        why = fork_error(e.errno)
    if old is not None:
        signal(SIGCHLD, SIG_DFL)  # drops the news of it, which waits blocked
        signal(SIGCHLD, old)
        other_children(old)
    return why


def fork_error(errno):
    return {EAGAIN: "processes", ENOMEM: "memory"}.get(errno, "fork")


def quiet_fork():
    "3.12 warns of threads; the user's filters must neither show nor raise it"
    if sys.version_info < (3, 12):
        return fork()
    import _warnings
    filters = getattr(sys.modules.get("warnings"), "filters", None)
    if type(filters) is not list:
        filters = _warnings.filters
    # Without _filters_mutated(): what was shown once is still known as shown.
    filters.insert(0, ("ignore", None, DeprecationWarning, None, 0))
    try:
        return fork()
    finally:
        del filters[0]


def other_children(old):
    "the user's own children that ended meanwhile are not forgotten"
    try:
        if old == SIG_IGN:
            while waitpid(-1, WNOHANG)[0]:
                pass
        elif waitid(P_ALL, 0, WEXITED | WNOHANG | WNOWAIT):
            raise_signal(SIGCHLD)
    except OSError:
        pass


def random_state():
    "a forked child reseeds `random`; the checkpoint must go on as it was"
    try:
        inst = sys.modules["random"]._inst
        return inst, inst.getstate()
    except Exception:
        return None


def random_restore(inst, state):
    try:
        inst.setstate(state)
    except Exception:
        pass


def descriptors():
    "every descriptor but stdio and the driver's own"
    try:
        fds = [int(fd) for fd in listdir("/proc/self/fd")]
    except OSError:
        fds = range(1024)
    return [fd for fd in fds if fd not in S.keep]


def flush_writers():
    """What a file object holds back would be written by live and checkpoint.

    To find them takes a look at every object, which costs time and, worse,
    touches every page. So only if a regular file is open for writing, only
    when it is new here, and the youngest objects first."""
    new = {}
    for fd in descriptors():
        try:
            st = fstat(fd)
            if fd > 2 and S_ISREG(st.st_mode) and \
                    fcntl.fcntl(fd, fcntl.F_GETFL) & O_ACCMODE:
                new[fd] = st.st_dev, st.st_ino
        except OSError:
            pass
    known = S.writers
    S.writers = {fd: known[fd] for fd in new
                 if fd in known and known[fd][0] == new[fd]}
    if new:
        import gc
        for generation in 0, 1, 2:
            # In the youngest also for what os.fdopen() may have wrapped since.
            if generation < 2 or not all(fd in S.writers for fd in new):
                find_writers(gc.get_objects(generation), new)
        for fd in new:
            S.writers.setdefault(fd, (new[fd], []))
    for _, refs in S.writers.values():
        for ref in refs:
            flush_if_open(ref())


def find_writers(objects, new):
    import io
    from _weakref import ref
    kinds = io.TextIOWrapper, io.BufferedWriter, io.BufferedRandom
    for o in objects:
        if type(o) not in kinds:
            continue
        try:
            fd = o.fileno()
        except Exception:
            continue
        if fd in new:
            refs = S.writers.setdefault(fd, (new[fd], []))[1]
            if not any(r() is o for r in refs):
                refs.append(ref(o))


def flush_if_open(o):
    try:
        if o is not None and not o.closed and o.writable():
            o.flush()
    except Exception:
        pass


def seal():
    """In the checkpoint: nothing that another process can feel.

    Regular files get an offset (and no lock) of their own; where that cannot
    be, the offset is returned, to be restored. Pipes, sockets, terminals but
    the session's, and whatever else waits or wakes become one dead socket."""
    from _socket import socketpair
    dead, peer = socketpair()
    peer.close()
    shared = []
    for fd in descriptors():
        try:
            st = fstat(fd)
            flags = fcntl.fcntl(fd, fcntl.F_GETFL)
            inherit = not fcntl.fcntl(fd, fcntl.F_GETFD) & fcntl.FD_CLOEXEC
        except OSError:
            continue
        if flags & O_PATH or fd == dead.fileno() or quiet_device(st):
            continue
        if not S_ISREG(st.st_mode) and not S_ISDIR(st.st_mode):
            dup2(dead.fileno(), fd, inherit)
        elif not reopened(fd, flags & REOPEN, inherit):
            try:
                shared.append((fd, lseek(fd, 0, 1)))
            except OSError:
                pass
    return shared


def quiet_device(st):
    "a device that nobody waits for: not a terminal of the user's making"
    major = st.st_rdev >> 8 & 0xFFF
    return S_ISCHR(st.st_mode) and (
        st.st_rdev in (S.tty, 0x500) or not 136 <= major < 144 and major != 5)


def reopened(fd, flags, inherit):
    try:
        at = lseek(fd, 0, 1)
        own = posix_open("/proc/self/fd/%d" % fd, flags | O_CLOEXEC)
        lseek(own, at, 0)
        dup2(own, fd, inherit)
        close(own)
        return True
    except OSError:
        return False


def oom_score(value):
    "who goes first when memory ends; not every kernel lets us say"
    try:
        fd = posix_open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC)
        try:
            write(fd, value)
        finally:
            close(fd)
    except OSError:
        pass


#: section answer
ANSWER_MAX = 60 * 1024  # WIRE_ANSWER_MAX
KINDS = "complete", "doc", "source", "who", "latest"


def answer(kind, text):
    "S.answer becomes the answer to one question; it may be interrupted"
    if kind in KINDS:
        said = later(kind)(text.decode("utf-8", "replace"))
        S.answer = cut(said.encode("utf-8", "backslashreplace"))


def cut(said):
    if len(said) <= ANSWER_MAX:
        return said
    note = b"\n[cut: %d bytes in all]\n" % len(said)
    said = said[:ANSWER_MAX - len(note)]
    return said.decode("utf-8", "ignore").encode() + note


def shown(text):
    "on one line, with nothing that could steer a terminal"
    return "".join(c if c.isprintable() else c.encode(
        "unicode_escape").decode() for c in text)


def found(text, calls):
    """The object behind a dotted name: (True, object), or (False, None).

    Without `calls` nothing of the user's runs: attributes are looked up where
    they are stored, and only what C implements is asked for its value."""
    first, *rest = text.split(".")
    for space in NS, vars(builtins):
        if first in space:
            o = space[first]
            break
    else:
        return False, None
    for name in rest:
        ok, value = stored(o, name)
        if not ok and calls:
            try:
                ok, value = True, getattr(o, name)
            except Exception:
                pass
        if not ok:
            return False, None
        o = value
    return True, o


def stored(o, name):
    "an attribute, as (True, value), if that takes no code of the user's"
    kind = type(o)
    if issubclass(kind, type):
        for c in type.__dict__["__mro__"].__get__(o):
            if name in type.__dict__["__dict__"].__get__(c):
                return plain(type.__dict__["__dict__"].__get__(c)[name])
    else:
        try:
            own = object.__getattribute__(o, "__dict__")
        except Exception:
            own = None
        if type(own) is dict and name in own:
            return True, own[name]
    for c in type.__dict__["__mro__"].__get__(kind):
        space = type.__dict__["__dict__"].__get__(c)
        if name in space:
            value = space[name]
            if type(value).__name__ in ("getset_descriptor",
                                        "member_descriptor"):
                try:
                    return True, value.__get__(o, kind)
                except Exception:
                    return False, None
            return plain(value)
    return False, None


def plain(value):
    kind = type(value)
    if kind in (staticmethod, classmethod):
        return True, value.__func__
    special = any("__get__" in type.__dict__["__dict__"].__get__(c)
                  for c in type.__dict__["__mro__"].__get__(kind))
    if special and kind.__name__ not in (
            "function", "method_descriptor", "builtin_function_or_method",
            "wrapper_descriptor", "classmethod_descriptor", "type"):
        return False, None
    return True, value


def latest(text):
    try:
        return repr(builtins._)
    except AttributeError:
        return ""


#: section complete
import re
from keyword import kwlist
os = site.os

CANDIDATES_MAX, CANDIDATE_MAX = 500, 200
SUFFIXES = (".py", ".so", ".pyc")
S.listed = {}  # directory -> (mtime, the modules in it)
IDENT = r"[^\W\d]\w*"
DOTTED = IDENT + r"(?:\." + IDENT + ")*"


def complete(text):
    "how many bytes to replace before the cursor, then the candidates"
    typed, names = candidates(text)
    lines, size = [str(len(typed.encode()))], 16
    for name in sorted(set(names), key=lambda n: (n.startswith("_"), n)):
        raw = name.encode("utf-8", "surrogateescape")
        if len(raw) > CANDIDATE_MAX or not name.isprintable():
            continue
        size += len(raw) + 1
        if len(lines) > CANDIDATES_MAX or size > ANSWER_MAX:
            break
        lines.append(name)
    return "\n".join(lines) + "\n"


def candidates(text):
    "(what was typed of it, candidates), by what stands before the cursor"
    quote, at = open_string(text)
    if quote == "#":
        return "", []
    if quote and re.search(r"[fF][rR]?$", text[:at]) and \
            text.rfind("{", at) > text.rfind("}", at):
        return candidates(text[text.rfind("{", at) + 1:])
    if quote:
        return in_string(text[:at], quote, text[at + len(quote):])
    line = re.split(r"[\n;]", text)[-1].lstrip()
    for pattern, offer in LINES:
        m = re.match(pattern, line)
        if m:
            return offer(*m.groups())
    m = re.search(r"(%s)\[(?:(\w*))$" % DOTTED, text)
    if m and (not m.group(2) or m.group(2).isdigit()):
        keys = keys_of(m.group(1))
        return m.group(2), [repr(k) for k in keys
                            if repr(k).startswith(m.group(2))]
    m = re.search(r"(?:(%s)\.)?((?:%s)?)$" % (DOTTED, IDENT), text)
    start, typed = m.groups()
    before = text[:m.start()].rstrip(" ")
    if start is None:
        if text[:m.start()].endswith(".") or not typed:
            return "", []
        return typed, starting(typed, [*map_str(NS), *vars(builtins), *kwlist])
    if before.endswith((".", ")", "]", "'", '"')):
        return "", []
    ok, o = found(start, False)
    return typed, starting(typed, attributes(o)) if ok else []


def open_string(text):
    "the quote that is open at the end and where, '#' for a comment, or ''"
    quote, at, i = "", 0, 0
    while i < len(text):
        c = text[i]
        if quote == "#":
            quote = "" if c == "\n" else quote
        elif quote:
            if c == "\\":
                i += 1
            elif text.startswith(quote, i):
                i += len(quote) - 1
                quote = ""
            elif c == "\n" and len(quote) == 1:
                quote = ""
        elif c == "#":
            quote = c
        elif c in "'\"":
            quote = c * 3 if text.startswith(c * 3, i) else c
            at = i
            i += len(quote) - 1
        i += 1
    return quote, at


def map_str(space):
    return [k for k in list(space) if type(k) is str]


def starting(typed, names):
    "private names only for who asks for them"
    return [n for n in names if n.startswith(typed) and
            (typed.startswith("_") or not n.startswith("_"))]


def attributes(o):
    try:
        return [n for n in dir(o) if type(n) is str and n.isidentifier()]
    except Exception:
        return []


def keys_of(name):
    ok, o = found(name, False)
    keys = []
    if ok and issubclass(type(o), dict):
        keys = list(dict.keys(o))
    elif ok and hasattr(type(o), "_ipython_key_completions_"):
        try:  # data frames and their like say it this way
            keys = list(o._ipython_key_completions_())
        except Exception:
            pass
    return [k for k in keys if type(k) in (str, int, bytes)]


def in_string(before, quote, typed):
    m = re.search(r"(%s)\[$" % DOTTED, before)
    keys = m and keys_of(m.group(1))
    if keys:
        escaped = (shown(k.replace("\\", "\\\\").replace(
            quote, "\\" + quote)) for k in keys if type(k) is str)
        return typed, [k for k in escaped if k.startswith(typed)]
    if "\n" in typed:
        return "", []
    folder, name = os.path.split(typed)
    names = []
    try:
        with os.scandir(os.path.expanduser(folder) or ".") as entries:
            for e in entries:
                if e.name.startswith(name) and quote not in e.name and \
                        "\\" not in e.name and (
                            name[:1] == "." or e.name[0] != "."):
                    names.append(e.name + "/" * e.is_dir())
                if len(names) > 10 * CANDIDATES_MAX:
                    break
    except (OSError, ValueError):
        pass
    return name, names


# ---- modules, without importing any ----

def import_names(typed):
    "import a, b.c<TAB>   from b.c<TAB>"
    package, dot, name = typed.rpartition(".")
    return name, starting(name, submodules(package) if dot else top_modules())


def from_names(module, typed):
    "from b.c import d, e<TAB>"
    return typed, starting(typed, module_names(module) + submodules(module))


LINES = (
    (r"from\s+(%s)\s+import\s+(?:\(?[\w\s,]*[,(\s])?\(?(\w*)$" % DOTTED,
     from_names),
    (r"from\s+([\w.]*)$", import_names),
    (r"import\s+(?:[\w\s.,]*,\s*)?([\w.]*)$", import_names),
    (r"from\s+%s\s+(\w*)$" % DOTTED,
     lambda typed: (typed, starting(typed, ["import"]))),
)


def listed(folder):
    "the modules in a directory"
    folder = folder or "."
    try:
        mtime = os.stat(folder).st_mtime_ns
        if S.listed.get(folder, (0,))[0] != mtime:
            names = set()
            for entry in os.listdir(folder):
                name, dot, rest = entry.partition(".")
                if not name.isidentifier() or name == "__init__":
                    continue
                if dot and ("." + rest).endswith(SUFFIXES) or not dot and (
                        os.path.exists(folder + "/" + name + "/__init__.py")):
                    names.add(name)
            S.listed[folder] = mtime, names
        return S.listed[folder][1]
    except OSError:
        return set()


def top_modules():
    names = set(sys.builtin_module_names)
    for folder in list(sys.path):
        if type(folder) is str:
            names |= listed(folder)
    return [n for n in names if n != "__main__"]


def folders(package):
    "where a package's modules lie"
    module = sys.modules.get(package)
    if module is not None:
        try:
            return [p for p in vars(module).get("__path__", ())]
        except Exception:
            return []
    return [os.path.join(p, *package.split(".")) for p in list(sys.path)
            if type(p) is str]


def submodules(package):
    return [n for folder in folders(package) for n in listed(folder)]


def module_names(name):
    "what a module defines: by asking it if it is loaded, by reading it if not"
    if name in sys.modules:
        return attributes(sys.modules[name])
    if name in sys.builtin_module_names:
        return attributes(load(name))
    head, _, tail = name.rpartition(".")
    for folder in folders(head) if head else list(sys.path):
        for path in os.path.join(folder, tail + ".py"), \
                os.path.join(folder, tail, "__init__.py"):
            try:
                with site.io.open(path, "rb") as f:
                    return defined(compile(f.read(), path, "exec", 0x400))
            except (OSError, ValueError, SyntaxError):
                pass
    return []


def defined(tree):
    names = []
    for node in tree.body:
        kind = type(node).__name__
        if kind in ("FunctionDef", "AsyncFunctionDef", "ClassDef"):
            names.append(node.name)
        elif kind in ("Import", "ImportFrom"):
            names += [(a.asname or a.name).split(".")[0] for a in node.names]
        elif kind in ("Assign", "AnnAssign"):
            names += [t.id for t in getattr(node, "targets", None) or
                      [node.target] if type(t).__name__ == "Name"]
    return [n for n in names if n != "*"]


#: section doc
inspect = load("inspect")


def the_object(text):
    "what the person asks about: a dotted name, or any expression"
    text = text.strip()
    ok, o = found(text, True)
    if not ok and text in sys.modules:
        ok, o = True, sys.modules[text]
    return o if ok else eval(text, NS)


def doc(text):
    text = text.strip()
    about = topic(text)
    if about:
        return about
    try:
        o = the_object(text)
    except Exception as e:
        return "%s: %s\n" % (type(e).__name__, e)
    lines = []
    if callable(o):
        name = getattr(o, "__qualname__", None) or text
        try:
            lines.append(name + str(inspect.signature(o)))
        except (ValueError, TypeError):
            lines.append(name + "(...)")
        if isinstance(o, type):
            lines[0] = "class " + lines[0]
    elif inspect.ismodule(o):
        lines.append("module " + getattr(o, "__name__", text))
    else:
        later("who")
        lines.append("%s = %s" % (type(o).__name__, short(o)))
    said = inspect.getdoc(o)
    if said is None and inspect.isroutine(o):
        said = inspect.getcomments(o)
    lines += ["", said or "(no documentation)"]
    return "\n".join(lines).rstrip() + "\n"


def topic(text):
    "what Python's manual says of a keyword or an operator"
    from keyword import iskeyword
    if not iskeyword(text) or text in ("True", "False", "None"):
        return None
    try:
        names = load("pydoc").Helper.keywords.get(text)
        while isinstance(names, str) and names in \
                sys.modules["pydoc"].Helper.keywords:
            names = sys.modules["pydoc"].Helper.keywords[names]
        name = names[0] if isinstance(names, tuple) else names
        __import__("pydoc_data.topics")
        return sys.modules["pydoc_data.topics"].topics[name].strip() + "\n"
    except Exception:
        return None


def source(text):
    publish()
    try:
        o = inspect.unwrap(the_object(text))
        if isinstance(o, type) and o.__module__ == "__main__":
            said = class_source(o)
            if said:
                return said
        return inspect.getsource(o)
    except Exception as e:
        return "no source of %s: %s\n" % (text.strip(), e)


def class_source(kind):
    "inspect finds no class of a cell before 3.13: the newest that defines it"
    for name in reversed(list(S.sources)):
        said = S.sources[name]
        if "class" not in said:
            continue
        try:
            tree = compile(said, name, "exec", 0x400 | S.flags, True)
        except (SyntaxError, ValueError):
            continue
        node = class_node(tree, kind.__qualname__.split("."))
        if node:
            first = min([node.lineno] +
                        [d.lineno for d in node.decorator_list])
            return "\n".join(said.split("\n")[first - 1:node.end_lineno]) + "\n"
    return None


def class_node(tree, path):
    for node in reversed(tree.body):
        if type(node).__name__ == "ClassDef" and node.name == path[0]:
            return class_node(node, path[1:]) if path[1:] else node
    return None


#: section source
later("doc")


#: section who
import reprlib

VALUE_MAX = 60


def who(text):
    "name, type, size and short value of each of the user's names"
    lines = []
    for name in list(NS):
        if type(name) is not str or name[:2] == "__" or name == "_":
            continue
        try:
            o = NS[name]
        except KeyError:
            continue
        lines.append("\t".join((shown(name)[:100], shown(type(o).__name__),
                                size_of(o), short(o))))
    return "\n".join(lines) + "\n" if lines else ""


def size_of(o):
    try:
        n = sys.getsizeof(o)
    except Exception:
        return "-"
    for unit in "B", "KiB", "MiB":
        if n < 1024:
            break
        n /= 1024
    else:
        unit = "GiB"
    return "%d B" % n if unit == "B" else "%.1f %s" % (n, unit)


def short(o):
    "a value in at most VALUE_MAX characters"
    try:
        if type(o).__name__ == "ndarray":
            text = "shape %s, %s" % (o.shape, o.dtype)
        elif type(o) is type(sys):
            text = getattr(o, "__file__", None) or "built in"
        else:
            text = shortener().repr(o)
    except Exception as e:
        text = "(its repr raises %s)" % type(e).__name__
    text = shown(text[:4 * VALUE_MAX].strip())
    if len(text) > VALUE_MAX:
        text = text[:VALUE_MAX - 3] + "..."
    return text


def shortener():
    r = reprlib.Repr()
    r.maxstring = r.maxother = r.maxlong = VALUE_MAX
    r.maxlevel = 3
    return r
