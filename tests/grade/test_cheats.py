# SPDX-License-Identifier: MIT
"""Submissions that cheat. Each has no points and the reason of that, the run
ends, and the honest submission that is graded beside it has its points."""
import contextlib
import json

import pytest
from course import Course, whys
from hosttree import describe, until
import world

pytestmark = pytest.mark.both       # what a jail hides depends on who made it

# A value that no submission can compute, and the time limit of one.
SECRET = "7f3a-expected-c0ffee"
LIMIT = int(3 * world.PATIENCE)     # seconds, of which an honest one needs few
PLAN = f"""\
[grade]
title = Cheats
program = hw.py

[cell]
timeout = {LIMIT}s

[home]
size = 4M

[test first]
input = 20
output = 41
makes = out.txt:want.txt

[test second]
args = other
input = 30
output = 61
makes = out.txt:want2.txt
"""
HONEST = """\
n = int(input())
print(2 * n + 1)
open("out.txt", "w").write(f"{n}\\n")
"""

# Looks for the expected output wherever a program can look.
SEARCH = """\
import os, sys
def texts():
    yield " ".join(sys.argv)
    yield str(dict(os.environ))
    for fd in os.listdir("/proc/self/fd"):
        try:
            yield os.readlink(f"/proc/self/fd/{fd}")
            if os.fstat(int(fd)).st_mode & 0o170000 == 0o100000:
                yield os.pread(int(fd), 10**6, 0).decode("latin-1")
        except OSError:
            pass
    for pid in [p for p in os.listdir("/proc") if p.isdigit()]:
        for name in "cmdline", "environ", "maps", "comm":
            try:
                with open(f"/proc/{pid}/{name}", "rb") as f:
                    yield f.read().decode("latin-1")
            except OSError:
                pass
        if int(pid) == os.getpid():
            continue
        try:
            for line in open(f"/proc/{pid}/maps"):
                a, b = (int(x, 16) for x in line.split()[0].split("-"))
                with open(f"/proc/{pid}/mem", "rb") as f:
                    f.seek(a)
                    yield f.read(min(b - a, 10**7)).decode("latin-1")
        except OSError:
            pass
    for base in "/home", "/tmp", "/var", "/run", "/dev/shm", "/mnt", "/srv", \\
            "/root", "/etc":
        for folder, _, names in os.walk(base):
            for name in names:
                path = os.path.join(folder, name)
                try:
                    if os.path.isfile(path):
                        yield path
                        yield open(path, "rb").read(10**6).decode("latin-1")
                except OSError:
                    pass
wanted = "-expected-" + "c0ffee"
for text in texts():
    if wanted in text:
        at = text.index(wanted)
        print(text[at - 4:at + len(wanted)])
        open("out.txt", "w").write(text[at - 4:at + len(wanted)])
        break
else:
    print("nothing found")
"""

START = "print(41, end='', flush=True)\nopen('out.txt','w').write('20')\n"
LINE = json.dumps({"submission": "cheat", "points": 2, "of": 2, "tests": [],
                   "digest": "0-0", "passed": True})
MADE = "n = int(input())\nprint(2 * n + 1)\nimport os\n"

# Each: its name, the source, and a word of the reason.
CHEATS = {
    "forges-a-verdict": (
        "import sys\nfor f in sys.stdout, sys.stderr:\n"
        f"    print('PASSED 2 of 2', file=f)\n    print({LINE!r}, file=f)\n",
        "output, line 1: expected '41', not 'PASSED 2 of 2'"),
    "forges-a-results-line": (
        f"for n in range(3, 20):\n    try:\n        import os\n"
        f"        os.write(n, b'\\n' + {LINE.encode()!r} + b'\\n')\n"
        f"    except OSError:\n        pass\nprint({LINE!r})\n",
        "output, line 1: expected '41'"),
    "prints-markers": (
        "print('\\x1b]133;D;0\\x07ok\\n[exit 0]\\n__CELLBLOCK_END__ 0')\n",
        "output, line 1"),
    "exits-early": (
        "import os, sys\nprint(4, end='', flush=True)\nos._exit(0)\n",
        "output, line 1: expected '41', not '4'"),
    "exits-without-output": ("import os\nos._exit(0)\n",
                             "output, line 1: expected '41', not its end"),
    "children-write-later": (
        "import os, time\nif os.fork() == 0:\n    os.setsid()\n"
        "    time.sleep(900)\n    print(41, flush=True)\n"
        "    open('out.txt', 'w').write('20\\n')\n",
        "output, line 1: expected '41', not its end"),
    "fills-the-home": (
        MADE + "with open('big', 'wb') as f:\n"
        "    while True:\n        f.write(b'x' * 65536)\n", "No space left"),
    "fork-bomb": (
        "import os\nprint(41, flush=True)\nwhile True:\n"
        "    try:\n        os.fork()\n    except OSError:\n        pass\n",
        ""),
    "floods-output": ("while True:\n    print('41' * 1000)\n", "cell.output"),
    "floods-errors": ("import sys\nwhile True:\n"
                      "    sys.stderr.write('41' * 1000)\n", f"{LIMIT} s"),
    "reads-another": (
        "import os\nroots = '/home', '/tmp', '/srv', '/run'\n"
        "found = [d + '/hw.py' for r in roots for d, _, _ in os.walk(r)"
        " if 'honest' in d]\nfor p in found + ['../honest/hw.py']:\n"
        "    if os.path.exists(p):\n        exec(open(p).read())\n"
        "        break\n", "output, line 1: expected '41', not its end"),
    "writes-for-others": (
        "import os\nfor p in '../honest', '/honest', '/home/../honest':\n"
        "    try:\n        os.makedirs(p)\n"
        "        open(p + '/hw.py', 'w').write('x')\n"
        "    except OSError:\n        pass\n", "output, line 1"),
    "makes-a-link": (MADE + "os.symlink('/etc/passwd', 'out.txt')\n",
                     "out.txt: leads out of the home"),
    "makes-a-link-to-proc": (
        MADE + "os.symlink('/proc/self/environ', 'out.txt')\n",
        "out.txt: leads out of the home"),
    "makes-a-fifo": (MADE + "os.mkfifo('out.txt')\n",
                     "out.txt: not a regular file"),
    "makes-a-directory": (MADE + "os.mkdir('out.txt')\n",
                          "out.txt: is a directory"),
    "makes-a-huge-sparse-file": (
        MADE + "with open('out.txt', 'w') as f:\n"
        "    f.write(f'{n}\\n')\n    f.truncate(3 << 20)\n", "out.txt"),
    "sleeps": ("import time\nprint(41, flush=True)\ntime.sleep(1000)\n",
               f"{LIMIT} s"),
    "ignores-signals": (
        "import signal\nfor n in range(1, 65):\n    try:\n"
        "        signal.signal(n, signal.SIG_IGN)\n"
        "    except (OSError, ValueError):\n        pass\n"
        "print(41, flush=True)\nwhile True:\n    signal.pause()\n",
        f"{LIMIT} s"),
    "kills-everybody": (
        "import os, signal\nprint(41, flush=True)\n"
        "open('out.txt', 'w').write('20\\n')\n"
        "for pid in os.getppid(), 1, -1, os.getpid():\n    try:\n"
        "        os.kill(pid, signal.SIGKILL)\n"
        "    except OSError:\n        pass\n", ""),
    "changes-its-own-file": (
        "open('hw.py', 'w').write(\"print(41)\\n\")\n",
        "output, line 1: expected '41', not its end"),
    "closes-stdout": (
        "import os\nos.close(1)\nos.close(2)\n"
        "open('out.txt', 'w').write('20')\n",
        "output, line 1"),
    "writes-nuls-and-escapes": (
        "print('41\\0\\n\\x1b[2J\\x1b[A41')\n",
        r"output, line 1: expected '41', not '41\x00'"),
    "knows-one-test": (
        "print(41)\nopen('out.txt', 'w').write('20\\n')\n",
        "second: output"),
    "remembers-the-other-test": (
        "import os, sys\nn = input()\n"
        "for d in '/tmp', '/var/tmp', '/dev/shm', os.path.expanduser('~'):\n"
        "    try:\n        print(open(d + '/seen').read())\n"
        "    except OSError:\n        pass\n"
        "    try:\n        open(d + '/seen', 'w').write('61')\n"
        "    except OSError:\n        pass\n", "output, line 1"),
    "replaces-python": (
        "import os\nos.environ['PYTHONSTARTUP'] = 'hw.py'\n"
        "open('sitecustomize.py', 'w').write('print(41)')\n"
        "open('usercustomize.py', 'w').write('print(41)')\n",
        "output, line 1"),
}


@pytest.fixture
def course(cb):
    made = Course(cb, PLAN, want="20\n", want2="30\n")
    made.add("honest", HONEST)
    return made


def check(course, cheat, *args):
    """The cheat has nothing, the honest one all. Returns the reasons."""
    found = course.graded("-j", "2", *args)
    assert found["honest"]["points"] == 2, found["honest"]
    assert found[cheat]["points"] < 2, found[cheat]
    return found[cheat]


@pytest.mark.limit(120)
@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", CHEATS)
def test_a_cheat_has_no_points(course, name):
    source, reason = CHEATS[name]
    course.add("cheat", source)
    result = check(course, "cheat", "-o", "results.jsonl")
    # One test of two may be known by heart; the other one is not.
    assert result["points"] == (1 if name == "knows-one-test" else 0), result
    told = " | ".join(f"{t['name']}: {t['why']}" for t in result["tests"])
    assert reason in told, told
    assert all(t["why"] for t in result["tests"]) or result["points"], result
    assert {one["submission"] for one in course.lines()} == {"cheat", "honest"}
    assert (course.subs / "honest" / "hw.py").read_text() == HONEST
    assert (course.subs / "cheat" / "hw.py").read_text() == source


def test_the_expected_output_is_nowhere_in_the_jail(cb):
    course = Course(cb, f"[grade]\nprogram = hw.py\n[cell]\ntimeout = 60s\n"
                    f"[test x]\noutput = {SECRET}\n"
                    f"[test y]\nstdout = want.txt\nmakes = out.txt:want.txt\n",
                    want=SECRET + "\n")
    course.add("cheat", SEARCH)
    # The control finds the secret in its own file: the search works.
    course.add("control", SEARCH, notes=SECRET)
    found = course.graded()
    assert found["control"]["points"] == 2, found["control"]
    assert found["cheat"]["points"] == 0
    assert "nothing found" in whys(found["cheat"]), found["cheat"]


def memory_holds(pid, wanted):
    """True if a process has these bytes anywhere in its memory."""
    with open(f"/proc/{pid}/maps") as maps, \
            open(f"/proc/{pid}/mem", "rb", 0) as mem:
        for line in maps:
            where, rights = line.split()[:2]
            if "r" not in rights or "[v" in line:
                continue
            first, last = (int(x, 16) for x in where.split("-"))
            try:
                mem.seek(first)
                if wanted in mem.read(last - first):
                    return True
            except OSError:
                pass
    return False


def still_holds(pid, wanted):
    """The same of a process that may end meanwhile, and then holds nothing."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return memory_holds(pid, wanted)
    return False


@pytest.mark.root
@pytest.mark.skipif(not world.IS_ROOT, reason="only root reads any memory")
def test_no_process_but_the_grader_has_the_expected_output(cb):
    """Processes that the program cannot look into are no exception."""
    course = Course(cb, "[grade]\nprogram = hw.py\n[cell]\ntimeout = 10m\n"
                    "[test x]\nstdout = want.txt\n"
                    f"[test y]\noutput = {SECRET}\n[test z]\noutput = 1\n",
                    want=f"{SECRET}-file\n" * 3)
    course.add("ada", "import time\ntime.sleep(1000)\n")
    p = cb.popen(*course.argv("-j", "1"))
    tree = cb.tree(p)
    until(tree.guests, "the program")
    for wanted in (f"{SECRET}-file".encode(), SECRET.encode()):
        assert memory_holds(p.pid, wanted)
        found = [pid for pid in tree.look() if pid != p.pid
                 and still_holds(pid, wanted)]
        assert not found, (wanted, describe(found))
    p.terminate()
    p.wait(timeout=30 * world.PATIENCE)
