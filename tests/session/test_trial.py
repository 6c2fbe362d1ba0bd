# SPDX-License-Identifier: MIT
"""Tab evaluates expressions in a copy of Python, of which nothing stays."""
import re

import pytest

import hosttree
from evil import HARMS

pytestmark = pytest.mark.both

# Each of these is an object whose attribute `q` runs a function.
EVIL = HARMS + """\
import mmap, socket
class Evil:
    def __init__(self, f): self.__dict__["f"] = f
    def __getattr__(self, n):
        if n.startswith("_"): raise AttributeError(n)
        return self.f() or ""
x, m, names = 1, mmap.mmap(-1, 4096), {}
log = open("log", "w"); log.write("kept")
ours, theirs = socket.socketpair()
r, w = os.pipe()
def threads(): threading.Thread(target=loops).start()
def starts(): os.execv("/bin/sh", ["sh", "-c", "echo run > ran"])
def appends(): log.write("more"); log.flush()
def truncates(): open("log", "w")
def unlinks(): os.unlink("log")
def renames(): os.rename("log", "gone")
def makes(): os.mkdir("made")
def modes(): os.chmod("log", 0)
def dates(): os.utime("log", (1, 1))
def reads(): os.read(os.open("/dev/tty", os.O_RDONLY), 1)
def sends(): theirs.send(b"x"); os.write(w, b"x")
def moves(): os.lseek(log.fileno(), 0, 0)
def maps(): m[0] = 66
def binds():
    global x
    x = 2; names["a"] = 1; os.environ["NEW"] = "1"; os.chdir("/tmp")
def kills():
    for pid in range(1, 80):
        try: os.kill(pid, 9)
        except OSError: pass
def stops(): os.kill(os.getppid(), 19); os.kill(0, 19)
def limits():
    import resource
    resource.setrlimit(resource.RLIMIT_AS, (1 << 40, 1 << 40)); loops()
class Listed:
    def __dir__(self): loops()
    def _ipython_key_completions_(self): loops()
"""
SHAPES = re.findall(r"(?m)^def (\w+)\(", EVIL)
LOOKS = """\
import os
sorted(os.listdir()), os.stat("log").st_mode & 0o777, os.stat("log").st_mtime > 9, \
log.flush(), open("log").read(), log.tell(), x, m[0], names, os.getcwd(), \
"NEW" in os.environ, ours.setblocking(False), os.set_blocking(r, False)
"""
WAS = "(['evil.py', 'log'], 420, True, None, 'kept', 4, 1, 0, {}, '/home', " \
    "False, None, None)"


@pytest.fixture
def evil(cb):
    (cb.work / "evil.py").write_text(EVIL)
    s = cb.session("-u", "evil.py", size=(24, 160))
    s.run("exec(open('evil.py').read())")
    s.run("log.flush(); os.umask(0o22);")
    return s


def tab(session, text):
    """Press Tab behind `text`, and wait until the editor reads keys again. Returns
    the rows from the prompt on."""
    session.wait_prompt()
    row = session.screen.here()
    session.type(text + "\t#")
    session.wait(lambda: session.screen.rows(row)[-1:] and any(
        line.endswith(text + "#") for line in session.screen.rows(row)),
        f"a key behind {text!r}")
    said = "\n".join(session.screen.rows(row))
    session.type("\x03")
    session.wait_prompt()
    return said


def test_an_expression_is_evaluated_and_nothing_stays(evil):
    assert evil.run(LOOKS) == WAS
    for shape in SHAPES:
        evil.run(f"e = Evil({shape})")
        said = tab(evil, "e.q.")
        assert "printed" not in said, shape
        assert evil.run(LOOKS) == WAS, shape
    for text in "Listed().", "Listed()['":
        tab(evil, text)
    assert evil.run(LOOKS) == WAS
    # Copies that were killed may take a moment to be gone.
    hosttree.until(lambda: evil.run(
        "sum(p.isdigit() for p in os.listdir('/proc')) < 10") == "True",
        "the end of the copies")
    for at, f in ("ours.recv(1)", "BlockingIOError"), ("os.read(r, 1)", "BlockingIOError"):
        assert f in evil.run(at)
    # The controls: harmless ones are evaluated, and each of the others would
    # have changed something in a cell.
    evil.run("e = Evil(lambda: 'text')")
    evil.type("e.q.upp")
    evil.complete(">>> e.q.upper")
    evil.type("\x03")
    evil.wait_prompt()
    evil.run("for f in writes, appends, unlinks, makes, maps, binds, sends: f()")
    assert evil.run(LOOKS) != WAS


def test_what_takes_too_long_is_said_and_typing_goes_on(evil):
    evil.run("e = Evil(loops)")
    evil.type("e.q.\t")
    evil.expect(r"^\[not completed: e\.q takes longer than 150 ms\]$")
    evil.type("\x15e.q.app\t\x15'keys typed meanwhile'\r")
    evil.expect("^'keys typed meanwhile'$")
    evil.wait_prompt()
    assert evil.run("x") == "1"


def test_questions_and_signatures_of_expressions(evil):
    evil.run("def f(speed, *, wide=False):\n    'how fast'\n    return x\n")
    evil.run("e = Evil(lambda: f)")
    for question, answer in (
            ("e.q?", "how fast"), ("[e.q][0]?", "how fast"), ("e.q??", "return x"),
            ("Evil(lambda: 1 / 0).q?", "^ZeroDivisionError: division by zero$")):
        # On a busy host the copy may have too little time to answer at once.
        hosttree.until(lambda: re.search(answer, evil.run(question)), question)
    evil.run("e = Evil(loops)")
    assert "e.q takes longer than 150 ms" in evil.run("e.q?")
    # A long one is named by its first 48 bytes, without half a character.
    evil.run(f"e{30 * 'ä'} = e")
    assert f"e{23 * 'ä'}... takes longer than 150 ms" in \
        evil.run(f"e{30 * 'ä'}.q?")
    assert evil.run("x") == "1"


def test_where_memory_is_short_only_what_needs_no_copy_completes(cb):
    s = cb.session("-M", "128M", size=(24, 100))
    s.run("class C:\n    def __getattr__(self, n): return 'text'\n")
    s.run("c = C(); c.mine = 1; kept = bytearray(105 << 20)")
    s.type("c.mi")
    s.complete(">>> c.mine")
    s.type("\x03")
    s.wait_prompt()

    def is_refused():
        """On a busy host what a cell holds may be known only after the next."""
        s.run("_ = sum(range(10 ** 6))")
        return "upper" not in tab(s, "c.q.")
    hosttree.until(is_refused, "no copy to complete")


def test_columns_complete_and_no_files_name(cb):
    (cb.work / "co.csv").write_text("")
    s = cb.session("-u", "co.csv")
    s.run("class Frame:\n    def _ipython_key_completions_(self):\n"
          "        return ['column', 'row']\n")
    s.run("df = Frame()")
    for typed, wanted in (("df['co", "df['column']"), ("df[['row', 'co", "df[['row', 'column'"),
                          ("open('co", "open('co.csv'"), ("df['x", "df['x")):
        s.type(typed)
        s.complete(">>> " + wanted)
        s.type("\x03")
        s.wait_prompt()
