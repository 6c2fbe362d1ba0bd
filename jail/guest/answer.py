# SPDX-License-Identifier: MIT
#
# answer.py - answers to questions: completion, documentation, names
#
# Runs in:   the guest, between cells; a copy of it that is thrown away
# Trusts:    as cells.py
# Leaves:    nothing, but for what documentation of a user's name may run
#
# The live guest evaluates no expression, and lists no attributes of an object
# whose class has a say in that: Wants says that a copy is to answer (trial.c).
# In the copy (S.trial) all of that is done.
#
# A class can also have a say where Python looks for a name: a key of a dict
# may define its own == and hash, and so may a class. Where is_odd() finds no
# such key, Python looks; elsewhere looked() does. Kinds are compared by "is".
if not S.site:
    part("customize")
    customize()
os = site.os
re, reprlib = stdlib("re"), stdlib("reprlib")
kwlist = (*stdlib("keyword").kwlist,)
is_same_as, repeat = stdlib("_operator").is_, stdlib("itertools").repeat

ANSWER_MAX = 60 * 1024  # WIRE_ANSWER_MAX
CANDIDATES_MAX, CANDIDATE_MAX = 500, 200
VALUE_MAX = 60
SUFFIXES = (".py", ".so", ".pyc")
IDENT = r"[^\W\d]\w*"
DOTTED = IDENT + r"(?:\." + IDENT + ")*"
# The real ones, whatever a metaclass of the user's defines.
mro_of = type.__dict__["__mro__"].__get__
class_name = type.__dict__["__name__"].__get__
module_name = type.__dict__["__module__"].__get__
dict_of = type.__dict__["__dict__"].__get__
# Marks that open or close something, and the ends of strings.
MARK = re.compile("#[^\n]*|\"\"\"|'''|[]['\"(){}]")
END = {q: re.compile((r"(?:[^\\\n%s]|\\.)*(?:%s|\n)" if len(q) == 1 else
                      r"(?:[^\\]|\\.)*?(?:%.0s%s)") % (q, q), re.S)
       for q in ("'", '"', "'''", '"""')}
SEQUENCES = list, tuple, str, bytes
LOOKS = 10000
S.listed = {}  # directory -> (mtime, the modules in it)
WANTS_MAX = 200
# A class that defines one of these decides what dir() says.
LISTS = "__dir__", "__getattribute__", "__getattr__"
flags_of = type.__dict__["__flags__"].__get__
HEAP = 1 << 9
# A member lies in the object itself. A getter may ask what the object holds.
STORED = type(type(call).__dict__["__globals__"])  # not in type from 3.12 on
GETTER = type(type.__dict__["__dict__"])
BUILTIN = type(len), type(str.join), type(object.__init__), type(
    dict.__dict__["fromkeys"])
BINDING = (type(stdlib), type, *BUILTIN)  # what their __get__ does is known
PROXIES = stdlib("_weakref").ProxyType, stdlib("_weakref").CallableProxyType
# Names that dir() of a frame leaves out (pandas' _accessors, _hidden_attrs).
FRAME_HIDES = "sparse", "tshift", "get_values"


class Wants(Exception):
    "only a copy may evaluate this"


def ask(no, kind, text, alone=False):
    "`alone`: there is no copy, so what needs one is left out"
    S.answer = b"0\n" if kind == "complete" else b""
    S.alone = alone
    wants = call(answer, kind, text)
    if getpid() != S.pid:
        _exit(0)
    if type(wants) is Wants:
        said = wants.args[0].encode("utf-8", "replace")
        say("WANTS %s %d\n" % (no, len(said)), said)
    else:
        say("ANSWER %s %d\n" % (no, len(S.answer)), S.answer)


def may_run(text):
    "whether code of the user's may run here, for this expression"
    if not S.trial and not S.alone:
        raise Wants(shown(text[:WANTS_MAX]))
    return S.trial


def answer(kind, text):
    "answer one question in S.answer; it may be interrupted"
    global inspect
    if kind in ("doc", "source"):  # slow to import, and the rest does without
        inspect = stdlib("inspect")
    if kind in KINDS:
        said = KINDS[kind](text.decode("utf-8", "replace"))
        S.answer = cut(said.encode("utf-8", "backslashreplace"))


def cut(said):
    if len(said) <= ANSWER_MAX:
        return said
    note = b"\n[cut: %d bytes in all]\n" % len(said)
    said = said[:ANSWER_MAX - len(note)]
    return said.decode("utf-8", "ignore").encode() + note


def shown(text):
    "on one line, without control characters"
    return "".join(c if c.isprintable() else c.encode(
        "unicode_escape").decode() for c in text)


def is_one(kind, kinds):
    return any(kind is k for k in kinds)


def has_odd_keys(space):
    return not all(map(is_same_as, map(type, [*space]), repeat(str)))


def looked(space, name):
    "(True, space[name]) of a dict, or of that of a class"
    if not has_odd_keys(space):
        return (True, space[name]) if name in space else (False, None)
    for key, value in list(space.items()):
        if type(key) is str and key == name:
            return True, value
    return False, None


def is_odd(o):
    "whether a class has keys with which Python may run code of the user's"
    kind = type(o)
    classes = mro_of(kind)
    if issubclass(kind, type):
        classes = (*classes, *mro_of(o))
    return any(flags_of(c) & HEAP and has_odd_keys(dict_of(c))
               for c in classes)


def found(text):
    "(True, object) of a name"
    for space in NS, vars(builtins):
        ok, value = looked(space, text)
        if ok:
            return ok, value
    return False, None


def is_replaced(o, name):
    "whether a class of the user's computes __class__ or __dict__"
    said = [dict_of(c)[name] for c in mro_of(type(o)) if name in dict_of(c)]
    return not all(is_one(type(s), (STORED, GETTER)) for s in said)


def own_dict(o):
    if is_odd(o) or is_replaced(o, "__dict__"):
        return {}
    try:
        own = object.__getattribute__(o, "__dict__")
    except Exception:
        own = None
    return own if type(own) is dict else {}


def stored(o, name):
    "(True, value) of an attribute, if no code of the user's is needed for it"
    kind = type(o)
    if is_odd(o):
        return False, None
    if issubclass(kind, type):
        for c in mro_of(o):
            if name in dict_of(c):
                return plain(dict_of(c)[name])
    else:
        ok, value = looked(own_dict(o), name)
        if ok:
            return ok, value
    for c in mro_of(kind):
        if name in dict_of(c):
            value = dict_of(c)[name]
            if type(value) is not STORED and not gets_alone(
                    value, c, kind, name):
                return plain(value)
            try:
                return True, value.__get__(o, kind)
            except Exception:
                return False, None
    return False, None


def gets_alone(value, owner, kind, name):
    "whether it is a getter that is known to run nothing but itself"
    if type(value) is not GETTER or flags_of(owner) & HEAP:
        return False
    if name in ("__doc__", "__text_signature__"):
        return is_one(kind, BINDING)
    return is_of_pandas(module_name(owner)) or (
        kind is owner and module_name(kind) == "numpy")


def plain(value):
    kind = type(value)
    if kind is staticmethod or kind is classmethod:
        return True, value.__func__
    special = is_odd(value) or any("__get__" in dict_of(c)
                                   for c in mro_of(kind))
    if special and not is_one(kind, BINDING):
        return False, None
    return True, value


# ---- completion ----

def complete(text):
    "the number of bytes to replace before the cursor, then the candidates"
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
    "(what is typed of the name, candidates), by the text before the cursor"
    quote, at, opened, pairs = scan(text)
    if quote == "#":
        return "", []
    if quote and re.search(r"[fF][rR]?$", text[:at]) and \
            text.rfind("{", at) > text.rfind("}", at):
        return candidates(text[text.rfind("{", at) + 1:])
    if quote:
        holder = holder_of(text, opened)
        keys = keys_of(text, holder, pairs) if holder else None
        return in_string(keys, quote, text[at + len(quote):])
    line = re.split(r"[\n;]", text)[-1].lstrip()
    for pattern, offer in LINES:
        m = re.match(pattern, line)
        if m:
            return offer(*m.groups())
    typed, start = word_before(text, len(text))
    before = text[:start].rstrip(None if opened else " ")
    if before.endswith("[") and (not typed or typed.isdigit()) and opened:
        keys = [repr(k) for k in keys_of(text, opened[-1], pairs)]
        return typed, [k for k in keys if k.startswith(typed)]
    if typed and not typed.isidentifier():
        return "", []
    if before.endswith("."):
        end = len(before) - 1
        ok, o = value_before(text, end, pairs)
        return typed, starting(typed, attributes(
            o, text[start_of(text, end, pairs):end])) if ok else []
    names = []
    if opened and text[opened[-1]] == "(" and before.endswith(("(", ",")):
        names = keywords(text, opened[-1], pairs)
    if typed:
        names += [*map_str(NS), *map_str(vars(builtins)), *kwlist]
    if before.endswith((")", "]", "'", '"')):
        names = []
    return typed, starting(typed, names)


def word_before(text, end):
    "(the name or number that ends at `end`, its start)"
    start = end
    while start and (text[start - 1].isalnum() or text[start - 1] == "_"):
        start -= 1
    return text[start:end], start


def scan(text):
    """(the quote open at the end, its place, the places of the open brackets,
    {end: start} of the closed brackets and strings); '#' for a comment, '' for
    neither"""
    opened, pairs, at = [], {}, 0
    for m in iter(lambda: MARK.search(text, at), None):
        mark, start, at = m.group(), m.start(), m.end()
        if mark[0] == "#":
            if at == len(text):
                return "#", start, opened, pairs
        elif mark in END:
            end = END[mark].match(text, at)
            if not end:
                return mark, start, opened, pairs
            at = end.end()
            pairs[at] = start
        elif mark in "([{":
            opened.append(start)
        elif opened:
            pairs[at] = opened.pop()
    return "", 0, opened, pairs


def is_holder(text, end):
    "whether a bracket at `end` is behind a value"
    before = text[end - 1:end]
    return bool(before) and (before in "_)]'\"" or before.isalnum())


def holder_of(text, opened):
    """where the value ends of which the open brackets name items, as in df["a
    and df[["a", "b; 0: they name none"""
    for at in reversed(opened[-2:]):
        if text[at] != "[":
            break
        if is_holder(text, at):
            return at
    return 0


def start_of(text, end, pairs):
    "where the expression begins that ends at `end`: names, calls, items"
    while True:
        start = pairs.get(end)
        is_item = start is not None and text[start] in "(["
        if start is None or text[start] in "'\"":
            start = word_before(text, end if start is None else start)[1]
        if start < end and text[start - 1:start] == ".":
            end = start - 1
        elif is_item and is_holder(text, start):
            end = start
        else:
            return start


def value_before(text, end, pairs):
    "(True, object) of what ends at `end`"
    ok, o = known_before(text, end, pairs)
    if ok:
        return ok, o
    said = text[start_of(text, end, pairs):end]
    name = re.match(IDENT, said)
    is_value = found(name.group())[0] if name else said[:1] in tuple("([{'\"")
    if not is_value or not may_run(said):
        return False, None
    try:
        return True, eval("(%s\n)" % said, NS)
    except Exception:
        return False, None


def known_before(text, end, pairs):
    """(True, object) of what ends at `end`, if no code of the user's is needed
    for it: names, attributes, what builtin containers hold, literals"""
    start = pairs.get(end)
    if start is None:
        name, start = word_before(text, end)
        if text[start - 1:start] == ".":
            ok, o = known_before(text, start - 1, pairs)
            return stored(o, name) if ok else (False, None)
        return found(name)
    if text[start] in "'\"":
        return True, b"" if "b" in word_before(text, start)[0].lower() else ""
    holder = is_holder(text, start)
    if text[start] == "[" and holder:
        ok, o = known_before(text, start, pairs)
        return item(o, text[start + 1:end - 1]) if ok else (False, None)
    return text[start] != "(" and not holder, [] if text[start] == "[" else {}


def item(o, key):
    "(True, o[key]) of a builtin container, for a key that is a literal"
    kind = type(o)
    key = key.strip()
    is_sequence = any(kind is k for k in SEQUENCES)
    if is_sequence and ":" in key:
        return True, kind()
    m = re.match(r"(-?[0-9]{1,9})$|(['\"])([^\\]*)\2$", key)
    if not m:
        return False, None
    key = int(key) if m.group(1) else m.group(3)
    if is_sequence and type(key) is int and -len(o) <= key < len(o):
        return True, o[key]
    if kind is dict and len(o) <= LOOKS:  # a look-up may compare with any key
        for k, value in list(o.items()):
            if type(k) is type(key) and k == key:
                return True, value
    return False, None


def map_str(space):
    return [k for k in list(space) if type(k) is str]


def starting(typed, names):
    "private names only when an underscore is typed"
    return [n for n in names if n.startswith(typed) and
            (typed.startswith("_") or not n.startswith("_"))]


def lists_itself(o):
    "whether dir(o) may run code of the user's"
    kind = type(o)
    if kind is type(sys):
        return looked(vars(o), "__dir__")[0]
    return is_odd(o) or is_one(kind, PROXIES) or bool(listers(o)) or \
        is_replaced(o, "__class__") or is_replaced(o, "__dict__")


def listers(o):
    return [c for c in mro_of(type(o)) if flags_of(c) & HEAP and
            any(n in dict_of(c) for n in LISTS)]


def attributes(o, text):
    "the attributes of the value of an expression"
    columns = frame_columns(o)
    if columns or not lists_itself(o) or not may_run(text):
        names = names_of(o) + columns
    else:
        try:
            names = dir(o)
        except Exception:
            names = []
    hidden = FRAME_HIDES if columns else ()
    return [n for n in names
            if type(n) is str and n.isidentifier() and n not in hidden]


def names_of(o):
    "what dir() says of an object whose class has no say in that"
    kind = type(o)
    dicts = [vars(o)] if kind is type(sys) else map(dict_of, mro_of(o)) \
        if issubclass(kind, type) else (
            own_dict(o), *map(dict_of, mro_of(kind)))
    return [n for d in dicts for n in [*d]]


def frame_columns(o):
    """the labels of a frame of pandas, if no code of the user's is needed for
    them: then dir() is not, and it takes ten times as long in a copy"""
    ok = not is_odd(o) and bool(listers(o)) and all(
        is_of_pandas(dict_of(c).get("__module__")) for c in listers(o))
    for name in "_mgr", "axes":
        ok, o = stored(o, name) if ok else (False, None)
    ok, data = stored(o[0], "_data") if type(o) is list and o else (False, o)
    kind = type(data)
    if not ok or flags_of(kind) & HEAP or class_name(kind) != "ndarray":
        return []
    return kind.tolist(kind.__getitem__(data, slice(LOOKS)))


def keys_of(text, end, pairs):
    "the keys of what ends at `end`"
    ok, o = value_before(text, end, pairs)
    keys = ()
    if ok and issubclass(type(o), dict):
        keys = dict.keys(o)
    elif ok and has_labels(o) and may_run(
            text[start_of(text, end, pairs):end]):
        try:
            keys = labels(o)
        except Exception:
            pass
    return [k for k, _ in zip(keys, range(LOOKS))
            if is_one(type(k), (str, int, bytes)) and (
                k.bit_length() if type(k) is int else len(k)) <= CANDIDATE_MAX]


def has_labels(o):
    classes = mro_of(type(o))
    return is_odd(o) or any("_ipython_key_completions_" in dict_of(c) or
               class_name(c) in ("ndarray", "void") or
               is_of_pandas(dict_of(c).get("__module__")) for c in classes)


def is_of_pandas(module):
    "`module`: what a class names as its own, which may be any object"
    return type(module) is str and module.startswith("pandas.")


def labels(o):
    "the keys of frames, series, records, and of what tells IPython its own"
    tell = getattr(o, "_ipython_key_completions_", None)
    if tell:
        return tell()
    dtype = getattr(o, "dtype", None)
    if getattr(dtype, "names", None):
        return dtype.names
    o = getattr(o, "obj", o)  # of .loc
    return getattr(o, "columns", getattr(o, "index", ()))


def keywords(text, at, pairs):
    "the keyword arguments that the call with its bracket at `at` still takes"
    part("calls")
    own, i = "", at
    for start, end in sorted((s, e) for e, s in pairs.items() if s > at):
        if start >= i:
            own += text[i:start]
            i = end
    own += text[i:]
    return [n + "=" for n in keyword_names(called(text, at, pairs) or [])
            if not re.search(r"[(,]\s*%s\s*=(?!=)" % n, own)]


def signature_of(text):
    part("calls")
    return signature(text)


def in_string(keys, quote, typed):
    "keys, or where the string names no item (None) files of the home"
    if keys is not None:
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
    "import a, b.c<TAB>, and from b.c<TAB>"
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
    names = set(builtin_modules())
    for folder in texts_in(sys.path):
        names |= listed(folder)
    return [n for n in names if n != "__main__"]


def builtin_modules():
    return texts_in(sys.builtin_module_names)


def texts_in(some):
    "those in a list or a tuple, whatever else it is"
    for kind in list, tuple:
        if issubclass(type(some), kind):
            return [s for s in kind.__iter__(some) if type(s) is str]
    return []


def folders(package):
    "where a package's modules lie"
    ok, module = looked(S.modules, package)
    if not ok or module is None:
        return [os.path.join(p, *package.split("."))
                for p in texts_in(sys.path)]
    path = looked(own_dict(module), "__path__")[1]
    if type(path) is not list:  # of a namespace: it looks for its parts anew
        path = stored(path, "_path")[1]
    return texts_in(path)


def submodules(package):
    return [n for folder in folders(package) for n in listed(folder)]


def module_names(name):
    "what a module defines: by asking it if it is loaded, by reading it if not"
    ok, module = looked(S.modules, name)
    if ok:
        return attributes(module, name)
    if name in builtin_modules():
        return attributes(stdlib(name), name)
    head, _, tail = name.rpartition(".")
    for folder in folders(head) if head else texts_in(sys.path):
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


def explained_error(text):
    may_run("the last error")  # to say what it says runs its class
    part("explain")
    return explained(text)


def watch_of(text):
    part("watch")
    return watch(text)


def difference(text):
    for name in "changed", "diff":
        part(name)
    return diff()


# ---- documentation and source ----

def the_object(text):
    "the object that a dotted name, or any expression, names"
    text = text.strip()
    ok, module = looked(S.modules, text)
    if ok and not found(text.split(".")[0])[0]:
        return module
    pairs = scan(text)[3]
    if start_of(text, len(text), pairs) == 0:
        ok, o = known_before(text, len(text), pairs)
        if ok:
            return o
    if not may_run(text):
        raise LookupError("Python cannot be copied to evaluate it")
    return eval(text, NS)


def doc(text):
    text = text.strip()
    if "*" in text and re.fullmatch(r"[\w.*]+", text):
        return matching(text)
    about = topic(text)
    if about:
        return about
    try:
        o = the_object(text)
    except Wants:
        raise
    except Exception as e:
        return "%s: %s\n" % (type(e).__name__, e)
    lines = []
    if callable(o):
        name = getattr(o, "__qualname__", None) or text
        # <lambda> and <locals> say less than what was typed.
        if type(name) is not str or "<" in name:
            name = text
        try:
            lines.append(name + str(inspect.signature(o)))
        except (ValueError, TypeError):
            lines.append(name + "(...)")
        if isinstance(o, type):
            lines[0] = "class " + lines[0]
    elif inspect.ismodule(o):
        lines.append("module " + getattr(o, "__name__", text))
    else:
        lines.append("%s = %s" % (type(o).__name__, short(o)))
    said = inspect.getdoc(o)
    if said is None and inspect.isroutine(o):
        said = inspect.getcomments(o)
    lines += ["", said or "(no documentation)"]
    return "\n".join(lines).rstrip() + "\n"


def matching(text):
    "the names, or attributes of an object, that a pattern such as *int* names"
    head, _, pattern = text.rpartition(".")
    names = [*map_str(NS), *map_str(vars(builtins))]
    try:
        if head:
            names = attributes(the_object(head), head)
    except Wants:
        raise
    except Exception as e:
        return "%s: %s\n" % (type(e).__name__, e)
    wanted = re.compile(re.escape(pattern).replace(r"\*", ".*"), re.I)
    names = sorted({n for n in names if wanted.fullmatch(n) and (
        n[:1] != "_" or pattern[:1] == "_")})
    return "".join("%s.%s\n" % (head, n) if head else n + "\n" for n in names)


def topic(text):
    "what Python's manual says about a keyword"
    if text not in kwlist or text in ("True", "False", "None"):
        return None
    try:
        names = stdlib("pydoc").Helper.keywords.get(text)
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
        o = written(inspect.unwrap(the_object(text)))
        if isinstance(o, type) and o.__module__ == "__main__":
            said = class_source(o)
            if said:
                return said
        return inspect.getsource(o)
    except Wants:
        raise
    except TypeError:
        e = "it is not written in Python"
    except Exception as error:
        e = error
    return "no source of %s: %s\n" % (text.strip(), e)


def written(o):
    "the object whose source is meant: a class stands for its instances"
    if isinstance(o, property):
        o = o.fget
    if isinstance(o, (type, type(sys))) or inspect.isroutine(o) or hasattr(
            o, "__code__"):
        return o
    return type(o)


def class_source(kind):
    "before 3.13 inspect finds no class of a cell: look for the newest one"
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


# ---- names ----

def who(text):
    """name, type, size and short value of each of the user's names; `text`: of
    those whose type is one of these"""
    lines, kinds = [], text.split()
    for name in list(NS):
        if type(name) is not str or name[:2] == "__" or name == "_":
            continue
        try:
            o = NS[name]
        except KeyError:
            continue
        if kinds and class_name(type(o)) not in kinds:
            continue
        lines.append("\t".join((shown(name)[:100], shown(type(o).__name__),
                                size_of(o), short(o))))
    return "\n".join(lines) + "\n" if lines else ""


def size_of(o):
    try:
        n = sys.getsizeof(o)
    except Exception:
        return "-"
    return bytes_of(n)


def bytes_of(n):
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
            text = SHORT.repr(o)
    except Exception as e:
        text = "(its repr raises %s)" % type(e).__name__
    text = shown(text[:4 * VALUE_MAX].strip())
    if len(text) > VALUE_MAX:
        text = text[:VALUE_MAX - 3] + "..."
    return text


SHORT = reprlib.Repr()
SHORT.maxstring = SHORT.maxother = SHORT.maxlong = VALUE_MAX
SHORT.maxlevel = 3
KINDS = {"complete": complete, "doc": doc, "source": source, "who": who,
         "diff": difference, "explain": explained_error,
         "signature": signature_of, "watch": watch_of}
