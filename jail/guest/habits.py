# SPDX-License-Identifier: MIT
#
# habits.py - run what is not Python but a habit: !ls, names = !ls, %run, %debug
#
# Runs in:   the guest, before the first cell that may hold a habit
# Trusts:    as cells.py; the code that runs for a habit is the person's
# Leaves:    among the builtins __habit__, display, _exit_code, In, _i, _ii and
#            _iii
#
# A habit becomes a call of __habit__() on the same line. The person's own text
# stays the cell's source, for tracebacks and In.
re, ast = stdlib("re"), stdlib("ast")
part("answer")

# [TARGET =] !COMMAND, or %NAME ARGUMENTS, as a line of a cell
LINE = re.compile(r"([ \t]*)((?:[^\W\d][^\n=!%#()]*=[ \t]*)?)"
                  r"(?=!|%[^\W\d])(.*)", re.S)
# {{ and }}; {EXPRESSION}; $NAME, $NAME.NAME and $$NAME, but not inside '…'
FIELD = re.compile(
    r"\{\{|\}\}|\{([^{}]*(?:\{[^{}]*\}[^{}]*)*)\}|"
    r"\$(\$?)([^\W\d]\w*(?:\.[^\W\d]\w*)*)(?=[^']*(?:'[^']*'[^']*)*$)")
# The part in which values of Python stand: below it is a file, or a script.
FIRST_LINE = re.compile(r"(?:[^\n\\]|\\.)*", re.S)
# Habits that are a command of the shell.
COMMANDS = {"cat": "cat ", "cp": "cp ", "ll": "ls -lF ",
            "ls": "ls ", "mkdir": "mkdir ", "mv": "mv ", "rm": "rm ",
            "rmdir": "rmdir ", "sh": "", "system": ""}
# A notebook often begins with these: a cell of several lines passes over them.
IDLE = {"autoreload", "colors", "config", "load_ext", "matplotlib", "precision",
        "reload_ext"}


class Lines(list):
    "the output of a command: a list of its lines, .s with blanks, .n as it was"
    s = property(" ".join)
    n = property("\n".join)
    l = property(list)

    def __reduce__(self):  # another Python does not know this class
        return list, (list(self),)


# ---- from text to calls ----

def rewritten(name, text, flags, failed):
    "the tree of a cell with habits; `failed`: what Python says to the text"
    said = translated(text, failed is None)
    if said == text and failed:
        raise failed
    lines = text.split("\n")
    try:
        tree = compile(said, name, "exec", 0x400 | flags, True)
    except SyntaxError as e:
        if e.lineno and lines[e.lineno - 1] != said.split("\n")[e.lineno - 1]:
            e.text, e.offset = lines[e.lineno - 1], None
        raise
    for node in ast.walk(tree):  # a traceback marks no part of such a line
        if type(node) is ast.Call and type(node.func) is ast.Name and \
                node.func.id == "__habit__":
            line = lines[node.lineno - 1]
            node.col_offset = len(line) - len(line.lstrip())
            node.end_col_offset = len(line.rstrip().encode())
    return tree


def translated(text, whole):
    "the text with a call for each habit; `whole`: all of it is one habit"
    if whole or text.lstrip()[:2] == "%%":
        return as_call("", "", text.strip())
    lines, done = text.split("\n"), []
    while lines:
        m = LINE.match(lines[0])
        if not m or not is_statement("\n".join(done)):
            done.append(lines.pop(0))
            continue
        indent, target, said = m.groups()
        lines.pop(0)
        while said.endswith("\\") and lines:
            said += "\n" + lines.pop(0)
        done.append(as_call(indent, target, said))
    return "\n".join(done)


def is_statement(before):
    "whether a statement may begin on the line below this text"
    quote, _, opened, _ = scan(before + "\n")
    return not quote and not opened and not before.endswith("\\")


def parted(said):
    "(name, arguments) of a habit; the name of a command of the shell is !"
    said = said.lstrip()
    if said[:1] == "!":
        name = said[:2] if said[1:2] == "!" else "!"
        return name, said[len(name):].lstrip()
    name, rest = re.match(r"(%{0,2}\w*)[ \t]*(.*)", said, re.S).groups()
    if name not in HABITS:
        name = name.lstrip("%")
    if name in COMMANDS:
        return "!", COMMANDS[name] + rest
    return {"sx": "!!", "file": "writefile", "set_env": "env"}.get(
        name, name), rest


def as_call(indent, target, said):
    name, rest = parted(said)
    return "%s%s__habit__(%r, %r, %d)%s" % (
        indent, target, name, rest, bool(target), "\n" * said.count("\n"))


def habit(name, rest, wanted):
    "`wanted`: the cell assigns the value"
    frame = sys._getframe(1)
    if name in HABITS:
        if name not in CODE:
            line = FIRST_LINE.match(rest).end()
            rest = expanded(rest[:line], frame) + rest[line:]
        return HABITS[name](rest, frame, wanted)
    if name not in IDLE:
        raise NameError("there is no %%%s in a cell of several lines" % name)


# ---- {expression} and $name ----

def expanded(text, frame):
    "what cannot be evaluated stays as it is"
    def field(m):
        inner, escaped, name = m.groups()
        if m[0] in ("{{", "}}"):
            return m[0][0]
        if escaped:
            return m[0][1:]
        rest = ""
        while inner or name:
            try:
                return evaluated(inner or name, frame) + rest
            except Exception:
                name, dot, last = (name or "").rpartition(".")
                inner, rest = None, dot + last + rest
        return m[0]
    return FIELD.sub(field, text)


def evaluated(text, frame):
    names = frame.f_globals, frame.f_locals
    try:  # with a conversion or a format, too
        return eval("f%r" % ("{%s}" % text), *names)
    except SyntaxError:  # before 3.12 it may hold quotes of one kind only
        return str(eval(text, *names))


# ---- habits ----

def shell(command, frame, wanted, program=None):
    flush(sys.stdout, sys.stderr)
    run = stdlib("subprocess")
    builtins._exit_code = None
    if wanted:
        done = run.run(command, shell=True, executable=program,
                       stdout=run.PIPE, stderr=run.STDOUT,
                       encoding="utf-8", errors="replace")
        builtins._exit_code = done.returncode
        return Lines(done.stdout.splitlines())
    try:
        n = builtins._exit_code = run.call(
            command, shell=True, executable=program)
    except KeyboardInterrupt:
        if S.kind != "habit":
            raise
        return
    if n:
        print(*("signal", -n) if n < 0 else ("exit status", n))


def bash(command, frame, wanted):
    return shell(command, frame, wanted, "/bin/bash")


def change_folder(folder, frame, wanted):
    os = site.os
    try:
        here = os.getcwd()
    except FileNotFoundError:  # it was removed
        here = "/"
    folder = folder.strip("'\"") or "~"
    os.chdir(os.environ.get("OLDPWD", here) if folder == "-" else
             os.path.expanduser(folder))
    os.environ["OLDPWD"] = here
    print(os.getcwd())


def print_folder(rest, frame, wanted):
    here = site.os.getcwd()
    return here if wanted else print(here)


def environment(rest, frame, wanted):
    environ = site.os.environ
    name, sign, value = rest.strip().partition("=")
    if not sign:
        name, sign, value = name.partition(" ")
    if sign:
        environ[name.strip()] = value.strip()
        return print("env: %s=%s" % (name.strip(), value.strip()))
    if name or wanted:
        return environ[name] if name else dict(environ)
    print(*("%s=%s" % pair for pair in sorted(environ.items())), sep="\n")


def run_file(rest, frame, wanted):
    "its names become the cell's, also where an error ends it"
    os = site.os
    argv = stdlib("shlex").split(rest)
    inside = argv[:1] == ["-i"] and argv.pop(0)
    if not argv or argv[0][:1] == "-":
        raise TypeError("%run [-i] FILE [ARGUMENT...]")
    path = os.path.expanduser(argv[0])
    if not os.path.exists(path) and os.path.exists(path + ".py"):
        path += ".py"
    with site.io.open(path, "rb") as f:
        source = f.read()
    main, space = type(sys)("__main__"), frame.f_globals
    if not inside:
        space = main.__dict__
    space.update(__file__=path, __builtins__=builtins)
    before = sys.argv, sys.modules["__main__"], sys.path[:]
    sys.argv = argv
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    if not inside:
        sys.modules["__main__"] = main
    try:
        exec(compile(source, path, "exec", 0, True), space)
    finally:
        sys.argv, sys.modules["__main__"], sys.path[:] = before
        space.pop("__file__", None)
        if not inside:
            frame.f_globals.update((k, space[k]) for k in map_str(space)
                                   if k[:2] != "__")


RUN_CODE = run_file.__code__


def write_file(rest, frame, wanted):
    name, _, text = rest.partition("\n")
    mode, name = ("a", name[3:]) if name[:3] == "-a " else ("w", name)
    name = site.os.path.expanduser(name.strip().strip("'\""))
    with site.io.open(name, mode) as f:
        f.write(text + "\n")


def timed(rest, frame, wanted):
    clock = stdlib("time")
    text = "\n" * (frame.f_lineno - 1) + rest
    try:
        code = compile(text, S.name, "eval", S.flags, True)
    except SyntaxError:
        code = compile(text, S.name, "exec", S.flags, True)
    wall, cpu = clock.perf_counter(), clock.process_time()
    value = eval(code, frame.f_globals, frame.f_locals)
    cpu, wall = clock.process_time() - cpu, clock.perf_counter() - wall
    print("%s · CPU %s" % (lasted(wall), lasted(cpu)))
    return value


def timed_often(rest, frame, wanted):
    """what python -m timeit does, with as many loops as take 0.2 s; -n and -r
    mean what they mean there"""
    options, code = parted_options(rest)
    measured(options, "pass", code, frame)


def cell_timed_often(rest, frame, wanted):
    "what stands beside %%timeit runs before each run"
    line, _, code = rest.partition("\n")
    options, setup = parted_options(line)
    measured(options, setup or "pass", code, frame)


def parted_options(text):
    "({letter: number}, the rest)"
    said, rest = re.match(
        r"((?:-[nr] *\d+(?:\s+|$))*)(.*)", text, re.S).groups()
    return {k: int(v) for k, v in re.findall(r"-([nr]) *(\d+)", said)}, rest


def measured(options, setup, code, frame):
    timer = stdlib("timeit").Timer(code, setup, globals=frame.f_globals)
    n, took = options.get("n"), 0
    if not n:
        n, took = timer.autorange()
    runs = timer.repeat(options.get("r", 7 if took < .5 else 3), n)
    each = [x / n for x in runs]
    mean = sum(each) / len(each)
    off = (sum((x - mean) ** 2 for x in each) / len(each)) ** .5
    print("%s ± %s a loop (%d runs of %d)" % (
        lasted(mean), lasted(off, mean), len(runs), n))


def lasted(seconds, unit_of=None):
    unit, factor = next(
        ((u, f) for u, f in (("s", 1), ("ms", 1e3), ("µs", 1e6))
         if (unit_of or seconds) * f >= .9995), ("ns", 1e9))
    n = seconds * factor
    return "%s %s" % ("%.3g" % n if unit_of is None else
                      "%.*f" % (n < 10, n), unit)


def last_error():
    e = getattr(sys, "last_value", None)
    if e is None:
        print("no cell has ended with an error")
    return e


def show_again(rest, frame, wanted):
    e = last_error()
    if e is not None:
        part("errors")
        show(e)


def debug(rest, frame, wanted):
    e = last_error()
    if e is not None and e.__traceback__ is None:
        print("no line ran before the last error: nothing to debug")
    elif e is not None:
        part("debug")
        stdlib("pdb").post_mortem(e.__traceback__)


def profiled(code, frame, wanted):
    profile = stdlib("cProfile").Profile()
    try:
        profile.runctx(code, frame.f_globals, frame.f_locals)
    finally:
        stdlib("pstats").Stats(profile).strip_dirs().sort_stats(
            "tottime").print_stats(PROFILE_LINES)


HABITS = {"!": shell, "!!": lambda rest, frame, wanted:
          shell(rest, frame, True), "%%timeit": cell_timed_often, "bash": bash,
          "cd": change_folder, "debug": debug, "env": environment,
          "prun": profiled, "pwd": print_folder, "run": run_file,
          "tb": show_again, "time": timed, "timeit": timed_often,
          "writefile": write_file}
CODE = {"%%timeit", "prun", "time", "timeit"}
PROFILE_LINES = 25
builtins.__habit__ = habit


def show_values(*values):
    "show each as a cell shows its last one, which stays in _"
    names = builtins.__dict__
    before = [names["_"]] if "_" in names else []
    for value in values:
        show_value(value)
    names.pop("_", None)
    names.update(("_", value) for value in before)


show_values.__name__ = show_values.__qualname__ = "display"
builtins.display = show_values


# ---- In, _i ----

def note_inputs(no, source):
    "what was run, by number: this cell is the last"
    last = int(no)
    builtins.In = [""] * (last + 1)
    for name, text in [*S.sources.items(), (
            "<cell %d>" % last, source.decode("utf-8", "replace"))]:
        builtins.In[int(name[6:-1])] = text
    before = [text for text in builtins.In[-1001:-1] if text]
    for n, name in enumerate(("_i", "_ii", "_iii"), 1):
        setattr(builtins, name, before[-n] if n <= len(before) else "")
    for n in re.findall(rb"\b_i(\d{1,9})\b", source):
        if int(n) < last:
            setattr(builtins, "_i%d" % int(n), builtins.In[int(n)])
