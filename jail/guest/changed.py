# SPDX-License-Identifier: MIT
#
# changed.py - whether a cell has changed a variable
#
# Runs in:   the guest, before a checkpoint, while the person reads
# Trusts:    as cells.py; it runs nothing of the user's
# Leaves:    nothing
#
# The variables, and all that they lead to, become one number. Where there is
# too much to walk through, or a state that cannot be seen, as an iterator's,
# only a cell that plainly does no more than look is known to change nothing.
# In doubt it did.
from _weakref import ref
WALK_MOST = 2000  # objects
WALK_BYTES = 2 << 20
RESTS = 16  # cells without a walk after one that took too long
S.rests = 0

FLAGS = type.__dict__["__flags__"].__get__
MODULE = type.__dict__["__module__"].__get__
MRO = type.__dict__["__mro__"].__get__
NAME = type.__dict__["__name__"].__get__
DICT = type.__dict__["__dict__"].__get__
DICT_OFFSET = type.__dict__["__dictoffset__"].__get__
HEAP_TYPE = 1 << 9
VALUES = {int, float, complex, bool, str, bytes, type(None), type(...), range}
NAMED_VALUES = {"date", "datetime", "time", "timedelta", "timezone", "Decimal",
                "Pattern"}
FUNCTION = type(call)
CELL = type((lambda x: lambda: x)(0).__closure__[0])
METHOD = type(type("", (), {"f": lambda self: 0})().f)
HOLDERS = {list, tuple, dict, set, frozenset, object, CELL, slice, property,
           staticmethod, classmethod, type(S), METHOD}
UNSEEN = {"__dict__", "__weakref__", "__abc_impl", "_abc_impl"}
MEMBER = type(FUNCTION.__dict__["__globals__"])
GETSET = type(type.__dict__["__name__"])
LASTING = {type(sys), type(len), type(str.join), type([].__len__), ref,
           MEMBER, GETSET}
# The nodes of an expression that only looks.
LOOKING = {"Module", "Expr", "Name", "Constant", "Attribute", "Subscript",
         "Slice", "Tuple", "List", "BinOp", "UnaryOp", "BoolOp", "Compare",
         "IfExp", "JoinedStr", "FormattedValue", "Call", "keyword", "Pass"}
OPERATORS = {"operator", "unaryop", "boolop", "cmpop", "expr_context"}
LOOKERS = {"print", "len", "repr", "str", "type", "id", "abs", "round", "dir",
           "isinstance", "hasattr", "callable", "format", "hex", "bin", "ord",
           "chr", "help"}


def is_unchanged():
    "whether the variables are as they were when this was last asked"
    was, S.state, tree, S.tree = S.state, None, S.tree, None
    S.after = None
    try:  # no cell waits for this
        recv(1, 0x42)  # MSG_PEEK | MSG_DONTWAIT
        return False
    except OSError:
        pass
    try:
        note_files()
        S.state = walked()
        if S.state is not None and was is not None:
            return S.state == was
        return S.how == "syntax" or bool(tree) and only_looks(tree)
    except Exception:
        S.state = None
        return False


def note_files():
    "what is in the home after the last cell, for :diff"
    if S.ran and len(S.ran) == 4:
        S.ran.append(home_files())


def walked():
    """a number for all variables; None where that cannot be. S.after has the
    address and the number of each"""
    S.after = {name: (id(o), None) for name, o in own_names()}
    if S.rests:
        S.rests -= 1
        return None
    seen, size, parts, fields = {id(NS)}, 0, [], {}
    for name, o in own_names():
        held = []
        size = walk(o, seen, size, held, fields)
        if size is None:
            S.rests = RESTS
            return None
        if held[-1:] == [None]:
            parts = None
            continue
        S.after[name] = id(o), hash(tuple(held))
        if parts is not None:
            parts += name, S.after[name]
    return parts if parts is None else hash(tuple(parts))


def own_names():
    return [(name, NS[name]) for name in list(NS)
            if type(name) is not str or name[:2] != "__" and name != "_"]


def walk(o, seen, size, parts, fields):
    """append to `parts` what an object and all that it leads to is, and None at
    the end where that cannot be seen; returns the bytes looked at so far, or
    None: these are too many"""
    gc = stdlib("gc")
    todo = [o]
    while todo:
        o = todo.pop()
        kind = type(o)
        parts.append(id(o))
        if id(o) in seen:
            continue
        seen.add(id(o))
        if len(seen) > WALK_MOST or size > WALK_BYTES:
            return None
        parts.append(id(kind))
        if kind in VALUES or is_value(kind):
            size += len(o) if kind is str or kind is bytes else 0
            parts.append(hash(o))
        elif kind is bytearray or NAME(kind) == "ndarray" and \
                MODULE(kind) == "numpy":
            size += len(o) if kind is bytearray else o.nbytes
            if kind is not bytearray and o.dtype.hasobject:
                parts.append(o.shape)
                todo.extend(o.ravel().tolist())
            elif size <= WALK_BYTES:
                parts.append(hash(bytes(o) if kind is bytearray
                                  else (o.shape, o.dtype.str, o.tobytes())))
        elif kind is FUNCTION:
            if o.__globals__ is NS:
                parts += hash(o.__code__), id(o.__code__)
                todo += [o.__defaults__, o.__kwdefaults__, o.__closure__,
                         o.__dict__, o.__name__, o.__qualname__, o.__doc__]
        elif issubclass(kind, type):
            if MODULE(o) == "__main__":
                todo += [x for pair in DICT(o).items()
                         if pair[0] not in UNSEEN for x in pair]
        elif kind in LASTING:
            pass
        elif all(map(is_seen_through, MRO(kind))):
            if kind not in fields:
                fields[kind] = named_fields(kind)
            if fields[kind] is None:
                break
            held = [field_value(o, get) for get in fields[kind]]
            held += gc.get_referents(o)
            if issubclass(kind, dict):  # it leaves out keys that are strings
                held += dict.keys(o)
            todo += held
            parts.append(len(held))
        else:
            break
    else:
        return size
    parts.append(None)
    return size


def named_fields(kind):
    """what reads each field of its objects that may be empty: the collector's
    list of what they hold does not say in which field something is"""
    found = [(k, name, d) for k in MRO(kind) for name, d in DICT(k).items()]
    found = [(name, d.__get__) for k, name, d in found if type(d) is MEMBER or
             type(d) is GETSET and (name == "__dict__" or k is BaseException)]
    if DICT_OFFSET(kind) and "__dict__" not in dict(found):
        return None  # a __dict__ of the class hides it
    return [get for name, get in found]


def field_value(o, get):
    try:
        return get(o)
    except AttributeError:
        return field_value  # nothing is there


def is_value(kind):
    return (NAME(kind) in NAMED_VALUES
            and MODULE(kind) in ("datetime", "decimal", "re")
            or any(NAME(b) in ("generic", "dtype") and MODULE(b) == "numpy"
                   for b in MRO(kind)))


def is_seen_through(kind):
    "whether all that its objects hold are other objects: so it is in Python"
    if kind in HOLDERS or kind in VALUES:
        return True
    module = MODULE(kind)
    if module == "__main__" or module[:12] == "pandas._libs":
        return True
    if not FLAGS(kind) & HEAP_TYPE:
        return issubclass(kind, BaseException) or module == "collections"
    file = getattr(S.modules.get(module), "__file__", None)
    return type(file) is str and file.endswith(".py")


def only_looks(node):
    kind = type(node)
    if NAME(MRO(kind)[1]) in OPERATORS:
        return True
    if NAME(kind) not in LOOKING:
        return False
    if NAME(kind) == "Call" and not (
            NAME(type(node.func)) == "Name" and node.func.id in LOOKERS
            and node.func.id not in NS):
        return False
    for field in kind._fields:
        value = getattr(node, field, None)
        for one in value if type(value) is list else [value]:
            if hasattr(one, "_fields") and not only_looks(one):
                return False
    return True
