# SPDX-License-Identifier: MIT
#
# explain.py - the last error in plain words, for :explain
#
# Runs in:   the guest, between cells
# Trusts:    as cells.py
# Leaves:    nothing
#
# A row is the name of an exception, a pattern for its message, and words with
# the groups of the pattern. The first row that fits counts.
difflib, linecache = stdlib("difflib"), stdlib("linecache")

NONE = " A function without return gives None, and so does a method that " \
    "changes its object, such as list.sort()."
NO_LISTENER = "Nothing in the jail listens there, and there is no other network."
# In a message: the file, or the first of two.
FILE = r"['\"](.*?)['\"](?: -> .*)?$"
ROWS = [
    ("SyntaxError", r"'(.)' was never closed",
     "The bracket {0} has no other half. The line may end with it, or one "
     "above."),
    ("SyntaxError", r"unmatched '(.)'",
     "The bracket {0} closes nothing: its other half is missing before it."),
    ("SyntaxError", r"does not match opening parenthesis '(.)'",
     "A bracket of another kind closes the {0}."),
    ("SyntaxError", r"unterminated (triple-quoted )?",
     "A string begins here and has no quote at its end."),
    ("SyntaxError", r"expected ':'",
     "Such a line (if, for, while, def, class) ends with a colon."),
    ("SyntaxError", r"(cannot assign to .*?)( here.*)?$",
     "What stands left of = cannot be given a value. To compare, write ==."),
    ("SyntaxError", r"invalid syntax. Perhaps you forgot a comma",
     "Two values follow each other: a comma or an operator is missing "
     "between them."),
    ("SyntaxError", r"Missing parentheses in call to '(\w+)'",
     "{0} is a function: write {0}(...)."),
    ("SyntaxError", r"'(return|await|yield)' outside",
     "{0} belongs into a function."),
    ("TabError", "", "Lines are indented with tabs and with blanks: use one of "
     "them."),
    ("IndentationError", r"expected an indented block",
     "The line above ends with a colon: the next one has to be indented."),
    ("IndentationError", r"unexpected indent",
     "This line is indented more than those above, and no colon asks for it."),
    ("IndentationError", r"unindent",
     "This line is indented less than those above, but as far as none of the "
     "blocks that are open."),
    ("SyntaxError", "", "Python cannot read this line. Often the mistake is "
     "just before the mark, or in the line above."),
    ("UnboundLocalError", r"'(\w+)'",
     "The function gives {0} a value further down, or only sometimes, so {0} "
     "is its own, and has none yet here. `global {0}` means the one outside."),
    ("NameError", r"'(\w+)'",
     "Nothing here has the name {0}. A name exists once it has been given a "
     "value, defined or imported. A text needs quotes."),
    ("ModuleNotFoundError", r"'([\w.]+)'",
     "There is no module {0} in this jail. The host provides the modules: "
     "python.packages in the configuration adds packages."),
    ("ImportError", r"cannot import name '(\w+)' from '([\w.]+)'",
     "The module {1} is there, but has nothing of the name {0}."),
    ("AttributeError", r"'NoneType' object has no attribute '(\w+)'",
     "What stands before .{0} is None, where a value was meant." + NONE),
    ("AttributeError", r"module '([\w.]+)' has no attribute '(\w+)'",
     "The module {0} has nothing of the name {1}. A file {0}.py of your own "
     "would hide the real module."),
    ("AttributeError", r"'([\w.]+)' object has no attribute '(\w+)'",
     "What stands before .{1} is of the type {0}, and that type has no {1}."),
    ("TypeError", r"'NoneType' object is not (subscriptable|iterable|callable)",
     "A value is None here, where something else was meant." + NONE),
    ("TypeError", r"'([\w.]+)' object is not callable",
     "Brackets call a function, and this is of the type {0}. A name of a "
     "function may have been given another value."),
    ("TypeError", r"'([\w.]+)' object is not subscriptable",
     "[...] takes something out of a container, and this is of the type {0}."),
    ("TypeError", r"'([\w.]+)' object is not iterable",
     "Here Python wants several values, one after another, and this is one "
     "of the type {0}."),
    ("TypeError", r"'([\w.]+)' object does not support item assignment",
     "A value of the type {0} cannot be changed in place: make a new one."),
    ("TypeError", r"unsupported operand type\(s\) for (.+): "
     r"'([\w.]+)' and '([\w.]+)'",
     "{0} does not work between the types {1} and {2}. str(), int() or "
     "float() makes one of the other."),
    ("TypeError", r"can only concatenate (\w+) \(not \"(\w+)\"\) to",
     "+ joins a {0} only with another {0}, and this is of the type {1}. An "
     "f-string, f\"{{x}}\", takes any value."),
    ("TypeError", r"'(.+)' not supported between instances of '([\w.]+)' and "
     r"'([\w.]+)'",
     "The types {1} and {2} have no order, so {0} cannot compare them."),
    ("TypeError", r"(\w+)\(\) missing (\d+) required [\w-]+ arguments?: (.*)",
     "{0} was called without a value for {2}."),
    ("TypeError", r"(\w+)\(\) takes (.+) positional arguments? but (\d+)",
     "{0} takes {1} values, and was given {2}. In a method the object itself "
     "counts as one."),
    ("TypeError", r"(\w+)\(\) got an unexpected keyword argument '(\w+)'",
     "{0} has no parameter of the name {1}: {0}? shows those that it has."),
    ("TypeError", r"unhashable type: '(\w+)'",
     "A {0} can change, so it cannot be a key of a dict or an element of a "
     "set. A tuple can."),
    ("TypeError", r"(list|tuple|string) indices must be integers",
     "A {0} is indexed by place, with whole numbers. Names as keys are for "
     "dicts and tables."),
    ("KeyError", "", "There is no such key."),
    ("IndexError", r"index out of range|out of bounds",
     "The index is behind the end. The first one is 0, the last one is the "
     "length less one."),
    ("ValueError", r"invalid literal for int\(\) with base \d+: (.*)",
     "{0} is no whole number as text. float() reads one with a point."),
    ("ValueError", r"could not convert string to float: (.*)",
     "{0} is no number as text: a blank, a comma or a unit in it is enough."),
    ("ValueError", r"not enough values to unpack \(expected (\S+), got (\d+)",
     "Left of = are {0} names, and right of it {1} values."),
    ("ValueError", r"too many values to unpack \(expected (\d+)",
     "Left of = are {0} names, and right of it more values."),
    ("ValueError", r"truth value of an? (\w+)",
     "A whole {0} is neither true nor false. Use & and | in place of and and "
     "or, with brackets around each side, or .any() or .all()."),
    ("ValueError", r"operands could not be broadcast together with shapes? "
     r"(.*)",
     "The arrays have the shapes {0}, which do not fit each other."),
    ("ValueError", r"math domain error|expected a (nonnegative|positive) input",
     "The function has no value for this number, as a root of a negative "
     "number."),
    ("ValueError", r"x not in list|is not in list|substring not found",
     "What was looked for is not in there. `in` asks before."),
    ("JSONDecodeError", r"(.*): line (\d+) column (\d+)",
     "The text is not JSON: {0}, in its line {1}, at its character {2}."),
    ("UnicodeDecodeError", r"'([\w-]+)' codec",
     "The bytes are no text in {0}. open(..., encoding=\"latin-1\") reads "
     "older files, mode \"rb\" any."),
    ("ZeroDivisionError", "", "A number is divided by zero."),
    ("OverflowError", "", "The result is too large for its type."),
    ("RecursionError", "", "A function calls itself, or others that call it, "
     "without an end: the case that ends it is missing or never reached."),
    ("MemoryError", "", "The value needs more memory than the session may "
     "have: :limits says how much. The variables are kept."),
    ("FileNotFoundError", FILE,
     "There is no file {0} in the jail. Files of the host are not: :upload "
     "copies one into the home, and :files lists those that are there."),
    ("FileExistsError", FILE, "{0} is there already."),
    ("IsADirectoryError", FILE, "{0} is a directory, not a file."),
    ("NotADirectoryError", FILE,
     "A part of {0} is a file, and no directory."),
    ("PermissionError", FILE,
     "{0} cannot be used that way here. Programs write files into the "
     "home."),
    ("gaierror", "", "A name was looked up on the network, and the jail has "
     "none. :upload brings data in."),
    ("URLError", r"\[Errno (-|101)", "The jail has no network. :upload brings data in."),
    ("OSError", r"\[Errno 101\]", "The jail has no network. :upload brings data "
     "in."),
    ("URLError", "refused", NO_LISTENER),
    ("ConnectionRefusedError", "", NO_LISTENER),
    ("OSError", r"No space left|quota", "The home is full: :usage says how "
     "full, and :rm makes room."),
    ("BlockingIOError", r"\[Errno 11\]", "No more processes or threads: "
     ":limits says how many the session may have."),
    ("RuntimeError", r"can't start new thread", "No more processes or "
     "threads: :limits says how many the session may have."),
    ("RuntimeError", r"changed size during iteration",
     "A loop goes over this, and its body adds or removes something: go over "
     "list(...) of it."),
    ("StopIteration", "", "next() was called, and nothing is left."),
    ("AssertionError", "", "What assert claims is not so."),
    ("EOFError", "", "The input ended before something was read."),
    ("KeyboardInterrupt", "", "Ctrl-C stopped the cell here."),
    ("NotImplementedError", "", "This is meant to be written, or overridden, "
     "and was not yet."),
]


def explained(text):
    e = getattr(sys, "last_value", None)
    if e is None:
        return ""
    while type(e).__name__ == "ExceptionGroup":
        e = e.exceptions[0]
    place, line, frame = place_of(e)
    said = [type(e).__name__ + place]
    if line:
        said += ["", "    " + line]
    said += ["", words_for(e)] + hints(e, line, frame)
    if e.__cause__ or e.__context__ and not e.__suppress_context__:
        said += ["", "It came while %s was handled." % type(
            e.__cause__ or e.__context__).__name__]
    return "\n".join(map(lined, said)) + "\n"


def lined(text):
    return shown(text)[:1000]


def message(e):
    try:
        return str(e)
    except Exception:
        return ""


def place_of(e):
    "(where in the person's code, the line there, its frame)"
    if isinstance(e, SyntaxError) and e.lineno:
        return " in %s, line %d" % (e.filename, e.lineno), \
            (e.text or "").strip(), None
    found, tb = None, e.__traceback__
    publish()
    while tb:
        file = tb.tb_frame.f_code.co_filename
        if file[:6] == "<cell " or found is None or file[:1] != "<" and \
                not file.startswith((sys.prefix, sys.base_prefix)):
            found = tb
        tb = tb.tb_next
    if not found:
        return "", "", None
    code = found.tb_frame.f_code
    inside = "" if code.co_name[:1] == "<" else ", in " + code.co_name
    return " in %s, line %d%s" % (
        code.co_filename, found.tb_lineno, inside), linecache.getline(
            code.co_filename, found.tb_lineno).strip(), found.tb_frame


def words_for(e):
    said = message(e)
    names = [class_name(c) for c in mro_of(type(e))]
    for name, pattern, words in ROWS:
        m = name in names and re.search(pattern, said, re.S)
        if m:
            return words.format(*m.groups(""))
    about = (type(e).__doc__ or "").strip().split("\n")[0]
    return ". ".join(filter(None, (said[:500], about)))


def hints(e, line, frame):
    "what is near: names like the wrong one, the keys and lengths there are"
    said, near = message(e), []
    if isinstance(e, NameError):
        wrong = re.search(r"'(\w+)'", said)
        spaces = (frame.f_locals, frame.f_globals) if frame else ()
        near = [n for space in (*spaces, vars(builtins)) for n in map_str(space)]
    elif isinstance(e, ModuleNotFoundError):
        wrong, near = re.search(r"'([\w.]+)'", said), top_modules()
    elif isinstance(e, AttributeError):
        wrong = re.search(r"attribute '(\w+)'", said)
        o = getattr(e, "obj", None)
        near = o is not None and attributes(o, "")
    elif isinstance(e, (KeyError, IndexError)) and frame:
        return container_hints(e, line, frame)
    if not near or not wrong:
        return []
    return meant(wrong[1], near)


def meant(wrong, near):
    near = {n for n in near if n[:1] != "_" or wrong[:1] == "_"}
    close = difflib.get_close_matches(wrong, sorted(near), 3, .7)
    return ["Did you mean %s?" % " or ".join(close)] if close else []


def container_hints(e, line, frame):
    "of the containers that the line takes something out of"
    said = []
    for name in dict.fromkeys(re.findall(r"([^\W\d]\w*)\s*\[", line)):
        o = frame.f_locals.get(name, frame.f_globals.get(name))
        if isinstance(e, KeyError):
            keys = named_keys(o)
            wrong = e.args[0] if e.args else None
            if type(wrong) is str and keys:
                said += meant(wrong, [k for k in keys if type(k) is str])
            if keys:
                said.append("%s has: %s" % (name, ", ".join(
                    map(short, keys[:20])) + (", ..." * (len(keys) > 20))))
        elif type(o) in SEQUENCES:
            said.append("%s has %d: from 0 to %d." % (
                name, len(o), len(o) - 1) if o else "%s is empty." % name)
    return said


def named_keys(o):
    if issubclass(type(o), dict):
        return list(dict.keys(o))
    try:
        return list(o._ipython_key_completions_())
    except Exception:
        return []
