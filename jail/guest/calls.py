# SPDX-License-Identifier: MIT
#
# calls.py - the parameters of what is called
#
# Runs in:   the guest, when answer.py needs it
# Trusts:    as cells.py
# Leaves:    nothing, and runs no code of the user's: inspect would, and so
#            would the repr of anything but a builtin's own value
FUNCTION, METHOD = type(stdlib), type(SHORT.repr)
UNBOUND = BUILTIN[1:3]
PLAIN = type(None), bool, int, float, complex, str, bytes
EMPTY = {tuple: "()", list: "[]", dict: "{}"}
DEFAULT_MAX, TEXT_MAX, SIGNATURE_MAX = 30, 2000, 1000


def signature(text):
    "the parameters of what is named, on one line; nothing where nobody knows"
    said = called(text, len(text), scan(text)[3])
    return "" if said is None else "(%s)" % ", ".join(said)[:SIGNATURE_MAX]


def called(text, end, pairs):
    "the parameters of what ends at `end`; a method has its object already"
    ok, o = value_before(text, end, pairs)
    name, start = word_before(text, end)
    bound = 0
    if ok and name and text[start - 1:start] == ".":
        holder = value_before(text, start - 1, pairs)[1]
        is_class = issubclass(type(holder), type)
        made = maker(mro_of(holder if is_class else type(holder)), (name,))
        bound = type(made) is classmethod or (
            made is o and not is_class and is_one(
                type(o), (FUNCTION, *UNBOUND)))
    return parameters(o, bound) if ok else None


def parameters(o, bound=0, depth=8):
    """["a", "b=1", "*", "c=None"], without the first `bound`; None if they are
    unknown"""
    kind = type(o)
    if is_odd(o):
        return None
    is_class = issubclass(kind, type)
    wrapped = None if is_class or not depth else stored(o, "__wrapped__")[1]
    if wrapped is not None:
        return parameters(wrapped, bound, depth - 1)
    if kind is FUNCTION:
        return without(of_function(o), bound)
    if kind is METHOD and depth:
        return parameters(o.__func__, bound + 1, depth - 1)
    partial = looked(S.modules, "functools")[1]
    if partial and kind is stored(partial, "partial")[1] and depth:
        said = parameters(o.func, bound + len(o.args), depth - 1)
        given = map_str(o.keywords)
        return said and [p for p in said if name_of(p) not in given]
    made = maker(mro_of(o if is_class else kind),
                 ("__init__", "__new__") if is_class else ("__call__",))
    if type(made) is staticmethod:  # __new__
        made = made.__func__
    if type(made) is FUNCTION:
        return without(of_function(made), bound + 1)
    return of_text(o, bound) if made is not None else None


def maker(classes, names):
    "what a call of an object with these classes runs"
    for c in classes:
        for name in names:
            made = looked(dict_of(c), name)[1]
            if made is not None:
                return made
    return None


def of_function(f):
    code, values, more = f.__code__, f.__defaults__, f.__kwdefaults__
    values = () if values is None else (*tuple.__iter__(values),)
    more = () if more is None else [*dict.items(more)]
    names, n = code.co_varnames, code.co_argcount
    only = code.co_kwonlyargcount
    said = [name + default(values[i - n:][:1] if i - n >= -len(values) else ())
            for i, name in enumerate(names[:n])]
    if code.co_posonlyargcount:
        said.insert(code.co_posonlyargcount, "/")
    rest = n + only
    if code.co_flags & 4:
        said.append("*" + names[rest])
        rest += 1
    elif only:
        said.append("*")
    for name in names[n:n + only]:
        values = [v for k, v in more if type(k) is str and k == name]
        said.append(name + default(values))
    if code.co_flags & 8:
        said.append("**" + names[rest])
    return said


def default(values):
    "=1 of (1,); what could be code of the user's is not shown"
    for value in values:
        kind = type(value)
        if kind is type:
            return "=" + class_name(value)
        text = repr(value) if is_one(kind, PLAIN) and (
            kind is not int or value.bit_length() < 100) else \
            EMPTY[kind] if is_one(kind, EMPTY) and not value else "..."
        return "=" + (text if len(text) <= DEFAULT_MAX else "...")
    return ""


def of_text(o, bound):
    """what a builtin says of itself, or else its documentation's first line,
    which has no self"""
    text = stored(o, "__text_signature__")[1]
    doc = stored(o, "__doc__")[1]
    if type(text) is not str and type(doc) is str:
        m = re.match(r"\s*[\w.]+(?=\()", doc[:TEXT_MAX])
        text, bound = m and doc[m.end():TEXT_MAX], 0
    if not text:
        return None
    ends = {start: end for end, start in scan(text)[3].items()}
    if 0 not in ends:
        return None
    said, at, i = [], 1, 1
    while i < ends[0]:
        if text[i] == "," or i == ends[0] - 1:
            said.append(" ".join(text[at:i].split()))
            at = i + 1
        i = ends.get(i, i + 1)
    if said[0][:1] == "$":
        bound += not is_one(type(o), UNBOUND)
        said[0] = said[0][1:]
    return without([p for p in said if p], bound)


def without(said, bound):
    said = said[:]
    while bound and said and said[0][0] != "*":
        bound -= said.pop(0) != "/"
    return said[1:] if said[:1] == ["/"] else said


def name_of(parameter):
    return parameter.split("=")[0].split(":")[0].strip(" []")


def keyword_names(said):
    if "/" in said:
        said = said[said.index("/") + 1:]
    return [n for n in map(name_of, said) if n.isidentifier()]
