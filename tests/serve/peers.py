# SPDX-License-Identifier: MIT
"""The answers of two peers, request by request, and of cellblock --serve.

The answers of snekbox and of Onyx's interpreter are those of their sources, and
of the tests in these; neither runs here. test_peers.py sends each request to ours.
`peers.py` as a program writes these rows into docs/PEERS.md, which a test holds
to be the same."""
import base64
import json
import pathlib
import re

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/PEERS.md"


class Has:
    """A string, or bytes, in which these words occur in this order."""

    def __init__(self, *words):
        self.words = words

    def __eq__(self, text):
        return isinstance(text, str) and bool(re.search(
            ".*".join(re.escape(w) for w in self.words), text, re.S))

    def __repr__(self):
        return "…" + "…".join(w if len(w) < 60 else w[:6] + "…"
                              for w in self.words) + "…" * any(self.words)


class Row:
    """A request: its name, what is sent, and what the peer answers. Where we
    answer something else: that, and the reason. `counted`: we answer so only
    where no cgroup counts memory."""

    def __init__(self, name, ask, theirs, ours=None, why=None, uploads=(),
                 counted=False):
        self.name, self.ask, self.uploads = name, ask, uploads
        self.counted = counted
        self.theirs, self.why = theirs, why
        self.ours = theirs if ours is None else ours

    def __repr__(self):
        return self.name


class Ask:
    """A request that is no POST of JSON to the usual place."""

    def __init__(self, method, path, body=None, **fields):
        self.method, self.path, self.body = method, path, body
        self.fields = {k.replace("_", "-"): v for k, v in fields.items()}


def packed(data):
    return base64.b64encode(
        data if isinstance(data, bytes) else data.encode()).decode()


def file(path, data=None):
    return {"path": path} if data is None else {"path": path,
                                                "content": packed(data)}


# ---- snekbox ----

FAILED = "Request data failed validation"
INVALID = "Request file is invalid"
NEITHER = "is not valid under any of the given schemas"
PATTERN = r"'^(?!/)(?!.*\\\\0).*$'"


def ran(stdout="", code=0, **files):
    return 200, {"stdout": stdout, "returncode": code, "files": files}


def left(files, stdout="", code=0):
    """A run after which there are files whose names are no words."""
    return 200, {"stdout": stdout, "returncode": code, "files": files}


def refused(description, title=FAILED, status=400):
    return status, {"title": title, "description": description}


def title(words, status=400, **fields):
    return status, {"title": words}, fields


def code(text):
    return {"input": text}


def with_file(path, data=None, text="import os; print(sorted(os.listdir()))"):
    return {"input": text, "files": [file(path, data)]}


def executable(path):
    return {"input": "print(1)", "executable_path": path}


def body(data, kind="application/json"):
    return Ask("POST", "/eval", data, **({"Content_Type": kind} if kind else {}))


KILL = "import os; os.kill(os.getpid(), %d)"
UNCOUNTED = "only where no cgroup counts memory: else as there"
WHICH = "the description says which"
OURS = "one world for all forms; no program should ask"

SNEKBOX = [
    # code and arguments
    Row("code", code("print(6 * 7)"), ran("42\n")),
    Row("arguments", {"args": ["-c", "print(6 * 7)"]}, ran("42\n")),
    Row("code after arguments",
        {"args": ["-I", "-c"],
         "input": "import sys; print(sys.flags.isolated)"}, ran("1\n")),
    Row("no argument", {"args": []}, ran()),
    Row("empty arguments at the front, which go",
        {"args": ["", "", "-c", "print(1)"]}, ran("1\n")),
    Row("arguments of the program, with an empty one",
        {"args": ["-c", "import sys; print(sys.argv)", "a b", "", "é"]},
        ran("['-c', 'a b', '', 'é']\n")),
    Row("an option instead of code", {"args": [], "input": "--version"},
        ran(Has("Python 3."))),
    Row("a program that was sent, with arguments",
        {"args": ["main.py", "x"], "files": [
            file("main.py", "import sys; print(sys.argv, __name__)")]},
        ran("['main.py', 'x'] __main__\n")),
    Row("a program that imports a module beside it",
        {"args": ["main.py"], "files": [
            file("main.py", "from mod import lib; print(lib.var)"),
            file("mod/__init__.py"), file("mod/lib.py", "var = 'hello'")]},
        ran("hello\n")),
    Row("a program that is not there", {"args": ["nothing.py"]},
        ran(Has("can't open file '/home/nothing.py': [Errno 2]"), 2)),
    Row("an unknown key, which is ignored", {"input": "print(1)", "x": [1]},
        ran("1\n")),
    Row("a NUL in the code", code("a\0b"),
        ran("ValueError: embedded null byte", None)),
    Row("a NUL in an argument", {"args": ["-c", "1", "a\0b"]},
        ran("ValueError: embedded null byte", None)),
    # input and output
    Row("a read of standard input", code(
        "import sys; print(repr(sys.stdin.read()))"), ran("''\n")),
    Row("output and errors, in order", code(
        "import sys\nprint('a')\nprint('b', file=sys.stderr)\nprint('c')"),
        ran("a\nb\nc\n")),
    Row("characters of many languages", code("print('é☃😀')"), ran("é☃😀\n")),
    Row("\\r\\n and \\r, which become \\n", code(
        "import sys; sys.stdout.write('a\\r\\nb\\rc\\n')"), ran("a\nb\nc\n")),
    Row("bytes that are no UTF-8", code(
        "import sys; sys.stdout.buffer.write(b'\\xff')"),
        ran("UnicodeDecodeError: invalid Unicode in output pipe", None)),
    Row("half a surrogate pair printed", code("print(chr(56550))"),
        ran(Has("UnicodeEncodeError"), 1)),
    Row("900,000 bytes", code("print('x' * 900000, end='')"),
        ran("x" * 900000)),
    Row("output without end", code("while True: print('x' * 99)"),
        ran(("x" * 99 + "\n") * 10000, 143)),
    Row("output without end, with SIGTERM ignored", code(
        "import signal\nsignal.signal(15, signal.SIG_IGN)\n"
        "while True: print('x' * 99)"), ran(("x" * 99 + "\n") * 10000, 143)),
    Row("output without end in ☃", code("while True: print('☃' * 99)"),
        ran(("☃" * 99 + "\n") * 5000, 143)),
    # how it ends
    Row("an exception", code("1/0"), ran(Has("ZeroDivisionError"), 1)),
    Row("exit(3)", code("exit(3)"), ran("", 3)),
    Row("exit(-1)", code("exit(-1)"), ran("", 255)),
    Row("KeyboardInterrupt", code("raise KeyboardInterrupt"),
        ran(Has("KeyboardInterrupt"), 130)),
    Row("SIGKILL to itself", code(KILL % 9), ran("", 137)),
    Row("a segmentation fault", code("import ctypes; ctypes.string_at(0)"),
        ran("", 139)),
    Row("a process that stays behind", code(
        "import subprocess; subprocess.Popen(['sleep', '30']); print('x')"),
        ran("x\n")),
    # limits
    Row("no end", code("print('a')\nwhile True: pass"), ran("a\n", 137)),
    Row("too much memory", code("x = ' ' * (73400320 + 1000)"), ran("", 137),
        ran(Has("MemoryError"), 1), UNCOUNTED, counted=True),
    Row("too much memory of two processes", code(
        "from multiprocessing import Process\n"
        "def f():\n    x = b'A' * 40_000_000\n    import time; time.sleep(1)\n"
        "p = [Process(target=f) for _ in 'ab']\nfor q in p: q.start()\n"
        "for q in p: q.join()\nprint([q.exitcode for q in p])"),
        ran(Has("-9")), ran("", 137),
        UNCOUNTED, counted=True),
    Row("too many processes", code("import os\nwhile True: os.fork()"),
        ran(Has("Resource temporarily unavailable"), 1)),
    Row("a pool of two processes", code(
        "from multiprocessing import Pool\ndef f(x): return x * x\n"
        "with Pool(2) as p: print(p.map(f, [1, 2, 3]))"),
        ran("[1, 4, 9]\n")),
    Row("a file that is larger than the home", code(
        "with open('_f', 'wb') as f:\n"
        "    for _ in range(49): f.write(bytes(1 << 20))"),
        ran(Has("No space left on device"), 1), ran(Has("File too large"), 1),
        "no file may be larger than the home"),
    # files that are sent
    Row("a file", with_file("f.txt", "hi", "print(open('f.txt').read())"),
        ran("hi\n")),
    Row("a file of all bytes", with_file(
        "f", bytes(range(256)),
        "print(open('f', 'rb').read() == bytes(range(256)))"), ran("True\n")),
    Row("its mode", with_file(
        "f", "", "import os; print(oct(os.stat('f').st_mode))"),
        ran("0o100777\n")),
    Row("a file in directories", with_file(
        "a/b/f", "", "import glob; print(glob.glob('**', recursive=True))"),
        ran("['a', 'a/b', 'a/b/f']\n")),
    Row("a path that turns back", with_file("a/../f"),
        ran("['a', 'f']\n"), ran("['f']\n"),
        "only the directories of the file are made"),
    Row("a name that is not ASCII", with_file("é☃.txt"), ran("['é☃.txt']\n")),
    Row("two files of one name, of which the last stays", {
        "input": "print(open('f').read())",
        "files": [file("f", "a"), file("f", "b")]}, ran("b\n")),
    Row("a file in place of a directory", {
        "input": "", "files": [file("d/x"), file("d")]},
        ran("IsADirectoryError: Failed to create file 'd'.", None)),
    Row("a file in a file", {"input": "", "files": [file("x"), file("x/y")]},
        ran("FileExistsError: Failed to create file 'x/y'.", None)),
    Row("a directory in a file", {
        "input": "", "files": [file("x"), file("x/y/z")]},
        ran("NotADirectoryError: Failed to create file 'x/y/z'.", None)),
    Row("an empty path", with_file(""),
        ran("IsADirectoryError: Failed to create file ''.", None)),
    Row("a name of 300 bytes", with_file("x" * 300),
        ran(f"OSError: Failed to create file '{'x' * 300}'.", None)),
    Row("an absolute path", with_file("/etc/passwd"),
        refused(f"'/etc/passwd' does not match {PATTERN}")),
    Row("a backslash and a zero in a path", with_file("a\\0b"),
        refused(f"'a\\\\0b' does not match {PATTERN}")),
    Row("a path that leads out", with_file("a/../../f"),
        refused("File path 'a/../../f' may not traverse beyond root", INVALID)),
    Row("a NUL in a path", with_file("a\0b"),
        refused("File path 'a\0b' may not traverse beyond root", INVALID),
        refused("File path 'a' may not hold a NUL", INVALID),
        "it says what is wrong"),
    Row("base64 that is cut",
        {"input": "", "files": [{"path": "f", "content": "aGk"}]},
        refused("Invalid base64 encoding for file 'f'", INVALID)),
    Row("line ends in base64, which are passed over",
        {"input": "print(open('f').read())",
         "files": [{"path": "f", "content": "aG\r\nk=\n"}]}, ran("hi\n")),
    # files that come back
    Row("new files, in order of their names", code(
        "import os; os.mkdir('d')\n"
        "for n in ('x', 'd/y', 'a'): open(n, 'w').write(n)"),
        left({"a": b"a", "d/y": b"d/y", "x": b"x"})),
    Row("a changed file, and one that is not", {
        "input": "open('a', 'a').write('!')",
        "files": [file("a", "a"), file("b", "b")]}, ran(a=b"a!")),
    Row("a file that is written as it was", {
        "input": "open('a', 'w').write('a')", "files": [file("a", "a")]},
        ran(a=b"a")),
    Row("hidden files, and names that begin with _", code(
        "import os; os.makedirs('.h'); os.mkdir('_d')\n"
        "for n in ('.x', '_x', '.h/a', '_d/b', '_d/_c'): open(n, 'w')"),
        left({"_d/b": b""})),
    Row("links", code(
        "import os; open('f', 'w').write('x'); os.symlink('f', 'to-f')\n"
        "os.symlink('/etc/passwd', 'out'); os.symlink('no', 'nowhere')"),
        left({"f": b"x", "to-f": b"x"})),
    Row("what is no file", code(
        "import os, socket; os.mkdir('d'); os.mkfifo('fifo')\n"
        "socket.socket(socket.AF_UNIX).bind('s')"), ran()),
    Row("a line end and a character in a name", code("open('é\\n', 'w')"),
        left({"é\n": b""})),
    Row("a name that is no UTF-8", code("open(b'\\xff', 'w')"),
        ran("FileParsingError: invalid bytes in filename while parsing "
            "attachments", None)),
    Row("1,000 directories in each other", code(
        "import os\nfor i in range(1000): os.mkdir('d'); os.chdir('d')"),
        ran("FileParsingError: Exceeded directory depth limit while parsing "
            "attachments", None)),
    Row("a sparse file of a terabyte", code(
        "import os; os.truncate(os.open('f', 66), 1 << 40)"), ran(),
        ran(Has("File too large"), 1, f=b""),
        "no file may be larger than the home"),
    Row("a link to a file, 20 times in 6 MB", code(
        "import os; open('a', 'wb').write(bytes(6 << 20))\n"
        "for i in range(20): os.symlink('a', f'l{i:02}')"),
        "8 files"),
    Row("102 files", code("for i in range(102): open(f'{i:03}', 'w')"),
        "101 files", "100 files", "its loop looks one file too late"),
    # what there is
    Row("the working directory, and HOME", code(
        "import os; print(os.getcwd(), os.environ['HOME'])"),
        ran("/home /home\n")),
    Row("the encoding of the output, and PYTHONDONTWRITEBYTECODE", code(
        "import sys; print(sys.stdout.encoding, sys.stdout.errors, "
        "sys.dont_write_bytecode)"), ran("utf-8 strict True\n")),
    Row("the user's id, and the name of the host", code(
        "import os, socket; print(os.getuid(), socket.gethostname())"),
        ran("65534 snekbox\n"), ran("1000 cellblock\n"), OURS),
    Row("LANG", code("import os; print(os.environ['LANG'])"),
        ran("en_US.UTF-8\n"), ran("C.UTF-8\n"), "every host has it"),
    Row("OMP_NUM_THREADS", code(
        "import os; print(os.environ['OMP_NUM_THREADS'] == '15')"),
        ran("True\n"), ran("False\n"),
        "the cores that it may use: more threads only wait"),
    Row("/proc", code("import os; print(os.path.exists('/proc/self'))"),
        ran("False\n"), ran("True\n"),
        "programs need it; the jail's own shows nothing else"),
    Row("a file in /tmp", code("open('/tmp/x', 'w')"),
        ran(Has("No such file or directory"), 1), ran(),
        "programs need it; it goes with the jail"),
    Row("a file in /usr", code("open('/usr/x', 'w')"),
        ran(Has("Read-only file system"), 1)),
    Row("the network", code(
        "import socket; socket.create_connection(('192.0.2.1', 80), 1)"),
        ran(Has("Network is unreachable"), 1)),
    Row("shared memory", code(
        "from multiprocessing.shared_memory import SharedMemory\n"
        "m = SharedMemory(create=True, size=1 << 20); m.buf[-1] = 7\n"
        "print(m.buf[-1]); m.close(); m.unlink()"), ran("7\n")),
    # requests that are none
    Row("neither code nor arguments", {"stuff": "foo"},
        refused(f"{{'stuff': 'foo'}} {NEITHER}")),
    Row("a list", [], refused("[] is not of type 'object'")),
    Row("a number for arguments", {"args": 400},
        refused("400 is not of type 'array'")),
    Row("a number among arguments", {"args": ["-c", 1]},
        refused("1 is not of type 'string'")),
    Row("a number for a file", {"args": [], "files": [215]},
        refused("215 is not of type 'object'")),
    Row("a file without a path", {"input": "", "files": [{}]},
        refused("'path' is a required property")),
    Row("no body", body(""),
        refused("Could not parse an empty JSON body", "Invalid JSON")),
    Row("half an object", body("{"),
        refused(Has("Could not parse JSON body"), "Invalid JSON")),
    Row("a key twice", body('{"input": "print(1)", "input": "print(2)"}'),
        ran("2\n"), refused(Has(""), "Invalid JSON"),
        "two programs could read it in two ways"),
    Row("half a surrogate pair in the code", body('{"input": "\\ud800"}'),
        ran("ValueError: embedded null byte", None),
        refused(Has(""), "Invalid JSON"),
        "two programs could read it in two ways"),
    # programs, methods, paths, fields
    Row("an interpreter that is not there", executable("/abc/def"),
        title("executable_path does not exist"),
        refused("/abc/def", "executable_path does not exist"), WHICH),
    Row("a file for an interpreter", executable("/etc/hostname"),
        title("executable_path is not executable"),
        refused("/etc/hostname is not one of python.executable",
                "executable_path is not executable"), WHICH),
    Row("another program", executable("/bin/true"), ran(),
        refused("/bin/true is not one of python.executable",
                "executable_path is not executable"),
        "no request can start what python.executable does not name"),
    Row("GET", Ask("GET", "/eval"),
        title("405 Method Not Allowed", 405, Allow="POST, OPTIONS")),
    Row("OPTIONS", Ask("OPTIONS", "/eval"), (200, None, {"Allow": "POST"})),
    Row("another path", Ask("GET", "/nothing"),
        title("404 Not Found", 404)),
    Row("XML", body("<x/>", "application/xml"),
        refused("application/xml is an unsupported media type.",
                "415 Unsupported Media Type", 415)),
    Row("no Content-Type", body('{"input": "print(1)"}', None), ran("1\n")),
]


# ---- Onyx's interpreter ----

def did(stdout="", stderr="", exit_code=0, timed_out=False, **files):
    """The keys that are Onyx's; `files` by their contents."""
    return 200, {"stdout": stdout, "stderr": stderr, "exit_code": exit_code,
                 "timed_out": timed_out, "files": files}


def did_leave(files, *more):
    status, a = did(*more)
    return status, {**a, "files": files}


def wrong(kind, loc, msg, given, **more):
    return {"type": kind, "loc": ["body", *loc], "msg": msg, "input": given,
            **more}


def invalid(*mistakes):
    return 422, {"detail": list(mistakes)}


def told(detail, status=422):
    return status, {"detail": detail}


def execute(text, **more):
    return Ask("POST", "/v1/execute", {"code": text, **more})


def execute_raw(data, kind="application/json"):
    return Ask("POST", "/v1/execute", data,
               **({"Content_Type": kind} if kind else {}))


def staged(text, path="f", **more):
    return execute(text, files=[{"path": path, "file_id": "@0"}], **more)


def form(disposition, data="x"):
    return Ask("POST", "/v1/files",
               "--XX\r\nContent-Disposition: form-data; "
               f"{disposition}\r\n\r\n{data}\r\n--XX--\r\n",
               Content_Type="multipart/form-data; boundary=XX")


DECODE = {"type": "json_invalid", "msg": "JSON decode error", "input": {}}
ID = "an id"
UNKNOWN = "00000000-0000-4000-8000-000000000000"
OBJECT = "Input should be a valid dictionary or object to extract fields from"
HI = [("f", b"hi")]

ONYX = [
    # code
    Row("print()", execute("print('hello')"), did("hello\n")),
    Row("an expression at the end", execute("1 + 1\n2 + 2"), did("4\n")),
    Row("an expression with a semicolon", execute("6 * 7;"),
        did("42\n"), did(), "as at the prompt: it keeps the value back"),
    Row("last_line_interactive: false",
        execute("6 * 7", last_line_interactive=False), did()),
    Row("a quote and a backslash", execute("print('\\'\\\\' + \"'''\")"),
        did("'\\'''\n")),
    Row("an exception in the middle", execute("x = 5\nx\n1/0\ny = 10"),
        did("", Has("ZeroDivisionError"), 1)),
    Row("both streams", execute("import sys\nprint('a')\n"
                                "print('b', file=sys.stderr)"),
        did("a\n", "b\n")),
    Row("stdin", execute("print(input(), input())", stdin="é\nb\n"),
        did("é b\n")),
    Row("stdin: null", execute("input()", stdin=None),
        did("", Has("EOFError"), 1)),
    Row("bytes that are no UTF-8", execute(
        "import sys; n = sys.stdout.buffer.write(b'a\\xffb')"),
        did("a\ufffdb")),
    Row("1,000,000 bytes", execute("print('x' * 1000000, end='')"),
        did("x" * 1000000)),
    Row("1,000,001 bytes", execute("print('x' * 1000001, end='')"),
        did("x" * 999968 + "\n...[truncated]")),
    Row("exit(3)", execute("exit(3)"), did("", "", 3)),
    Row("SIGKILL to itself", execute(KILL % 9), did("", "", 137)),
    Row("a segmentation fault", execute("import ctypes; ctypes.string_at(0)"),
        did("", "", 139)),
    Row("too long", execute("import time; print('a'); time.sleep(9)",
                            timeout_ms=1000),
        did("a\n", "", None, True)),
    Row("a file, and then too long", execute(
        "import time; n = open('f', 'w').write('x'); time.sleep(9)",
        timeout_ms=1000), did("", "", None, True, f=b"x")),
    Row("the network", execute(
        "import socket; socket.create_connection(('192.0.2.1', 80), 1)"),
        did("", Has("Network is unreachable"), 1)),
    Row("the working directory", execute("import os; os.getcwd()"),
        did("'/workspace'\n")),
    Row("a path in /workspace", execute(
        "n = open('/workspace/f', 'w').write('x')"), did(f=b"x")),
    Row("__file__", execute("__file__"),
        did("'/workspace/__main__.py'\n")),
    Row("sys.argv", execute("import sys; sys.argv"),
        did("['/workspace/__main__.py']\n"), did("['']\n"),
        "the code is a cell, as at the prompt"),
    # what is no request
    Row("code missing", Ask("POST", "/v1/execute", {}),
        invalid(wrong("missing", ["code"], "Field required", {}))),
    Row("a number for the code", execute(5), invalid(wrong(
        "string_type", ["code"], "Input should be a valid string", 5))),
    Row("timeout_ms: 0", execute("1", timeout_ms=0), invalid(wrong(
        "greater_than_equal", ["timeout_ms"],
        "Input should be greater than or equal to 1", 0, ctx={"ge": 1}))),
    Row("a string for timeout_ms", execute("1", timeout_ms="5"),
        invalid(wrong("int_type", ["timeout_ms"],
                      "Input should be a valid integer", "5"))),
    Row("timeout_ms: 60001", execute("1", timeout_ms=60001),
        told("timeout_ms exceeds maximum of 60000 ms")),
    Row('"no" for last_line_interactive',
        execute("1", last_line_interactive="no"), did(),
        invalid(wrong("bool_type", ["last_line_interactive"],
                      "Input should be a valid boolean", "no")),
        "only true and false are booleans"),
    Row("an unknown key", execute("6", x=1), did("6\n")),
    Row("a list", Ask("POST", "/v1/execute", []), invalid(wrong(
        "model_attributes_type", [], OBJECT, []))),
    Row("no body", execute_raw(""), invalid(wrong(
        "missing", [], "Field required", None))),
    Row("half an object", execute_raw("{"), invalid({
        **DECODE, "loc": ["body", 1], "ctx": {
            "error": "Expecting property name enclosed in double quotes"}}),
        invalid({**DECODE, "loc": ["body", 1], "ctx": {"error": Has("expected")}}),
        "the words of another parser"),
    Row("a key twice", execute_raw('{"code": "1", "code": "2"}'),
        did("2\n"), invalid({**DECODE, "loc": ["body", 20], "ctx": {
            "error": Has("duplicate object key")}}),
        "two programs could read it in two ways"),
    Row("no Content-Type", execute_raw('{"code": "6"}', None), did("6\n"),
        invalid(wrong("model_attributes_type", [], OBJECT, None)),
        "a page of another origin can make a browser send that"),
    Row("text/plain", execute_raw("{}", "text/plain"), invalid(wrong(
        "model_attributes_type", [], OBJECT, "{}")), invalid(wrong(
            "model_attributes_type", [], OBJECT, None)),
        "what is no JSON is not repeated"),
    Row("GET", Ask("GET", "/v1/execute"),
        (405, {"detail": "Method Not Allowed"}, {"Allow": "POST"})),
    Row("another path", Ask("GET", "/v1/x"), told("Not Found", 404)),
    Row("the stream of later versions", Ask(
        "POST", "/v1/execute/stream", {"code": "1"}), told("Not Found", 404)),
    Row("/health", Ask("GET", "/health"), (200, {"status": "ok"})),
    Row("HEAD of /health", Ask("HEAD", "/health"), (405, None),
        (200, None), "HTTP wants that HEAD is as GET"),
    # files
    Row("an upload", form('name="file"; filename="a b.txt"'),
        (201, {"file_id": ID, "filename": "a b.txt", "size_bytes": 1})),
    Row("an upload of nothing", form('name="file"; filename="a"', ""),
        (201, {"file_id": ID, "filename": "a", "size_bytes": 0})),
    Row("a name that is not ASCII", form('name="file"; filename="é☃"'),
        (201, {"file_id": ID, "filename": "é☃", "size_bytes": 1})),
    Row("an empty name", form('name="file"; filename=""'),
        (201, {"file_id": ID, "filename": "unnamed", "size_bytes": 1})),
    Row("another field", form('name="x"; filename="a"'), invalid(wrong(
        "missing", ["file"], "Field required", None))),
    Row("a field that is no file", form('name="file"'), invalid(wrong(
        "value_error", ["file"], Has("Expected UploadFile"), "x",
        ctx={"error": {}})), invalid(wrong(
            "missing", ["file"], "Field required", None)),
        "there is no file"),
    Row("a download", Ask("GET", "/v1/files/@0"), (200, b"hi", {
        "Content-Type": "application/octet-stream",
        "Content-Disposition": 'attachment; filename="f"'}), uploads=HI),
    Row("the list", Ask("GET", "/v1/files"), (200, {"files": [
        {"file_id": ID, "filename": "f", "size_bytes": 2}]}), uploads=HI),
    Row("a deletion", Ask("DELETE", "/v1/files/@0"), (204, None), uploads=HI),
    Row("a download of nothing", Ask("GET", f"/v1/files/{UNKNOWN}"),
        told(f"File with ID '{UNKNOWN}' not found", 404)),
    Row("a staged file", staged("print(open('a/f').read())", "a/f"),
        did("hi\n"), uploads=HI),
    Row("a staged file that is changed", staged(
        "n = open('f', 'a').write('!')"), did(f=b"hi!"), uploads=HI),
    Row("a staged file that is written as it was", staged(
        "n = open('f', 'w').write('hi')"), did(), uploads=HI),
    Row("a file without an id", execute("1", files=[{"path": "f"}]),
        invalid(wrong("missing", ["files", 0, "file_id"], "Field required",
                      {"path": "f"}))),
    Row("an unknown id", execute("1", files=[
        {"path": "p", "file_id": "nope"}]),
        told("File with ID 'nope' not found for path 'p'.", 404)),
    Row("an absolute path", staged("1", "/x"),
        told("File paths must be relative."), uploads=HI),
    Row("a path that leads out", staged("1", "a/../x"),
        told("File paths must not contain '..'."), uploads=HI),
    Row("an empty path", staged("1", "./"),
        told("File path must not be empty."), uploads=HI),
    Row("a file in place of the code", staged("1", "__main__.py"),
        told("File path '__main__.py' is reserved for the execution "
             "entrypoint."), uploads=HI),
    Row("new files", execute(
        "import os; os.makedirs('a/b')\n"
        "for n in 'x', 'a/b/_y': open(n, 'w').write(n)"),
        did_leave({"x": b"x", "a/b/_y": b"a/b/_y"})),
    Row("a hidden file", execute("n = open('.x', 'w').write('x')"),
        did(x=b"x"), did_leave({".x": b"x"}),
        "its name is `.x`"),
    Row("a link to a file", execute(
        "import os; n = open('f', 'w').write('x'); os.symlink('f', 'l')"),
        did(f=b"x"), did(f=b"x", l=b"x"), "as in snekbox's form"),
]


# ---- the page ----

def cell(text):
    return text.replace("|", "\\|").replace("\n", "\\n")


def quoted(value):
    if isinstance(value, Has):
        return f"`{cell(repr(value))}`"
    if isinstance(value, str) and len(value) > 100:
        return f"`{cell(repr(value[:6])[:-1])}…` ({len(value):,} characters)"
    text = repr(value) if isinstance(value, (str, bytes)) else \
        json.dumps(value, ensure_ascii=False, default=repr)
    return f"`{cell(text)}`"


def in_words(answer):
    """An answer as a cell of a table."""
    if isinstance(answer, str):
        return answer
    status, content, *fields = answer
    said = [f"{k}: `{v}`" for f in fields for k, v in f.items()]
    if not isinstance(content, dict):
        said[:0] = [] if content is None else [quoted(content)]
    elif "files" in content and isinstance(content["files"], dict):
        streams = [content["stdout"], *([content["stderr"]]
                                        if content.get("stderr") else [])]
        said[:0] = [*map(quoted, streams),
                    str(content.get("returncode", content.get("exit_code")))]
        if content.get("timed_out"):
            said.append("`timed_out`")
        said += [f"file {quoted(name)}" for name in content["files"]]
        return ", ".join(said).replace("None", "null")
    elif "title" in content:
        said[:0] = [content["title"] + (
            f": {quoted(content['description'])}"
            if "description" in content else "")]
    elif isinstance(content.get("detail"), list):
        said[:0] = [f"`{d['type']}` at `{json.dumps(d['loc'])}`"
                    for d in content["detail"]]
    else:
        said[:0] = [quoted(content.get("detail", content))]
    return ", ".join((str(status), *said))


def tables(peer, rows):
    other = [r for r in rows if r.why]
    yield f"Of {len(rows)} requests, {len(rows) - len(other)} are answered " \
          "as there. The others:\n"
    yield f"| request | {peer} | here | why |\n| --- | --- | --- | --- |"
    for r in other:
        yield f"| {cell(r.name)} | {in_words(r.theirs)} | " \
              f"{in_words(r.ours)} | {r.why} |"
    yield "\nAs there:\n\n| request | answer |\n| --- | --- |"
    for r in rows:
        if not r.why:
            yield f"| {cell(r.name)} | {in_words(r.ours)} |"


def page(text):
    """The page with the tables of these rows."""
    for peer, rows in ("snekbox", SNEKBOX), ("Onyx's", ONYX):
        mark = f"<!-- tests/serve/peers.py: {peer} -->\n"
        before, _, after = text.split(mark)
        text = mark.join((before, "\n".join(tables(peer, rows)) + "\n", after))
    return text


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
