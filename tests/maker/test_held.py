# SPDX-License-Identifier: MIT
"""A program for which a jail was made ahead runs in a Python that was started
before its arguments were known. It is as any other."""
import json
import os
import re
import time

import pytest

import hosttree
from makerhost import BOTH, KINDS, as_any_other, ready, start, was_ahead
from world import PATIENCE

# All that a program can see of how it was started.
SEEN = r"""import ctypes, json, os, resource, signal, struct, sys
def read(name):
    with open("/proc/self/" + name, "rb") as f:
        return f.read().decode("utf-8", "backslashreplace")
def lines(name, *which):
    return [l.split() for l in read(name).splitlines()
            if l.split(":")[0] in which]
fields = read("stat").rpartition(")")[2].split()
with open("/proc/self/auxv", "rb") as f:
    auxv = [n for pair in struct.iter_unpack("QQ", f.read()) for n in pair]
base = dict(zip(auxv[::2], auxv[1::2]))
at = int(fields[45])  # where the arguments are
text = ctypes.string_at(base[9], 16)  # AT_ENTRY
with open(os.path.realpath("/proc/self/exe"), "rb") as f:
    file = f.read()
json.dump({
    "argv": sys.argv, "orig_argv": sys.orig_argv,
    "environ": dict(os.environ), "read environ": read("environ"),
    "cmdline": read("cmdline"), "comm": read("comm"),
    "at": ctypes.string_at(at, 16).decode("latin-1"),
    "argc": ctypes.c_long.from_address(int(fields[25])).value,
    "in order": int(fields[45]) < int(fields[46]) == int(fields[47])
                < int(fields[48]),
    "status": lines("status", "Name", "Umask", "TracerPid", "Uid", "Gid",
        "Groups", "SigQ", "SigPnd", "SigBlk", "SigIgn", "SigCgt", "CapInh",
        "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp",
        "Seccomp_filters", "Threads"),
    "limits": {n: resource.getrlimit(getattr(resource, n))
               for n in dir(resource) if n.startswith("RLIMIT_")},
    "fds": sorted(os.listdir("/proc/self/fd")),
    "kept": [os.get_inheritable(fd) for fd in range(3)],
    "cwd": os.getcwd(), "nice": os.nice(0),
    "leads": [os.getpgrp() == os.getpid() == int(fields[5]), os.getsid(0)],
    "ttys": [os.isatty(fd) for fd in range(3)],
    "stdin": sys.stdin.read() if not os.isatty(0) else "",
    "flags": str(sys.flags), "modules": sorted(sys.modules),
    "entry": text in file, "sigint": str(signal.getsignal(signal.SIGINT)),
    "child": os.popen("echo $0 $HOME; cat /proc/self/cmdline | wc -c").read(),
    "calls": [ctypes.CDLL(None, use_errno=True).prctl(35, 14, at, 104, 0),
              ctypes.CDLL(None).ptrace(0, 0, 0, 0)],
}, sys.stdout)
"""


def began(text):
    return float(re.search(r"began (\S+)", text)[1])


# Seconds since the host's start.
BEGAN = """import os
with open("/proc/self/stat") as f:
    ticks = f.read().rpartition(")")[2].split()[19]
print("began", int(ticks) / os.sysconf("SC_CLK_TCK"))
"""


@BOTH
def test_it_was_started_before_it_was_asked_for(host, spare):
    """The other tests of this file rely on this."""
    ann, _ = start(host, spare)
    wait_held(host, spare)
    asked = time.clock_gettime(time.CLOCK_BOOTTIME)
    r = ann.run("-c", BEGAN)
    assert r.code == 0 and (began(r.text) < asked - 0.2) == bool(spare), r
    assert was_ahead(host) == bool(spare)


def seen(ann, *args, **more):
    r = ann.run(*args, **more)
    assert r.code == 0, r
    return json.loads(r.text)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("args", [
    ["a", "b c", "", "-c"], [""], ["x" * 9000, "y" * 9000],
    ["z" * 40000], ["-"] * 300, [],
    ["\udcff\udc80"],
], ids=["some", "empty", "long", "too long", "many", "none", "bytes"])
def test_it_sees_what_any_program_sees(host, args):
    ann, _ = start(host)
    ahead = seen(ann, "-c", SEEN, *args, stdin=b"said")
    assert was_ahead(host)
    # One for which no jail fits.
    fresh = seen(ann, "-c", SEEN, *args, stdin=b"said", env={"NO_COLOR": "1"})
    assert not was_ahead(host, 2)
    assert fresh["environ"].pop("NO_COLOR") == "1"
    fresh["read environ"] = fresh["read environ"].replace("NO_COLOR=1\0", "")
    assert ahead == fresh
    assert ahead["argv"] == ["-c", *args] and ahead["in order"]
    assert ahead["cmdline"].startswith("/usr/bin/python3\0-c\0")
    assert ahead["at"] == "/usr/bin/python3" and ahead["entry"]
    assert ahead["fds"] == ["0", "1", "2", "3"] and ahead["stdin"] == "said"
    assert ahead["calls"] == [-1, -1]


def test_programs_in_a_row_see_the_same(host):
    """Where one follows another, no Python has run in the next one's jail: the
    program's own is the first process there."""
    ann, _ = start(host)
    text = "import os\nfirst = os.getpid() == 2\n" + SEEN.replace(
        "json.dump({", "json.dump({'first': first,")
    rested = seen(ann, "-c", text)
    assert was_ahead(host) and not rested.pop("first")
    hurried, sessions = {}, 1

    def is_hurried():
        """The two begin a tenth of a second apart at most, but on a busy host."""
        nonlocal hurried, sessions
        two = [ann.popen("-c", "pass") for _ in range(2)]
        assert [p.wait(60 * PATIENCE) for p in two] == [0, 0]
        ready(host)
        hurried = seen(ann, "-c", text)
        sessions += 3
        return was_ahead(host, sessions) and hurried.pop("first")
    hosttree.until(is_hurried, "a jail that is made in a hurry", 40)
    assert hurried == rested


@as_any_other
def test_a_file_and_a_module_and_standard_input(host, spare):
    ann, _ = start(host, spare)
    path = ann.home / "prog.py"
    path.write_text("import sys\nprint(sys.argv, __file__, sys.path[0])")
    r = ann.run(str(path), "a", "b")
    assert r.text == ("['prog.py', 'a', 'b'] /home/prog.py /home\n"), r
    assert was_ahead(host) == bool(spare)
    ready(host, spare * KINDS)
    r = ann.run("-m", "json.tool", stdin=b'{"a":1}')
    assert r.text == '{\n    "a": 1\n}\n', r
    assert was_ahead(host, 2) == bool(spare)
    ready(host, spare * KINDS)
    r = ann.run("-", "x", stdin=b"import sys; print(sys.argv)")
    assert r.text == "['-', 'x']\n", r
    assert was_ahead(host, 3) == bool(spare)


@as_any_other
def test_on_a_terminal_it_has_that_in_front(host, spare):
    ann, _ = start(host, spare)
    wait_held(host, spare)
    asked = time.clock_gettime(time.CLOCK_BOOTTIME)
    s = ann.session("-c", BEGAN + "print(os.tcgetpgrp(0) == os.getpid(),"
                    " os.get_terminal_size(), input('name? '))\n"
                    "while True: pass", size=(30, 100))
    s.wait(lambda: "name?" in s.all_text(), "the question")
    s.type("ann\r")
    s.wait(lambda: "True os.terminal_size(columns=100, lines=30) ann"
           in s.all_text(), "the answer")
    assert (began(s.all_text()) < asked - 0.2) == bool(spare)
    s.type("\x03")
    assert s.wait_exit() == 130
    assert "KeyboardInterrupt" in s.all_text()
    assert was_ahead(host) == bool(spare)


def held(host):
    """The Pythons that the maker's jails hold."""
    found = []
    for pid in hosttree.descendants(host.maker.pid):
        if hosttree.status_of(pid).get("State", "")[:1] == "t":
            found.append(pid)
    return found


def wait_held(host, spare):
    """Wait until one is held, and for the half of a second by which it is older
    than what is asked for then."""
    hosttree.until(lambda: len(held(host)) == spare, "a Python that is held")
    time.sleep(0.5)


def test_no_variable_has_the_linker_run_something_ahead(host):
    """It runs a library's constructors before it hands over."""
    ann, _ = start(host, policy="[python]\nenv.LD_PRELOAD = libm.so.6\n")
    time.sleep(0.5)
    assert not held(host)
    asked = time.clock_gettime(time.CLOCK_BOOTTIME)
    r = ann.run("-c", BEGAN + "print(os.environ['LD_PRELOAD'])")
    assert r.code == 0 and began(r.text) >= asked - 0.02, r
    assert "libm.so.6" in r.text and was_ahead(host)


def janitors():
    """Each goes when nothing of its session is left, its place neither."""
    return sum(hosttree.status_of(pid).get("Name") == "cellblock-janit"
               for pid in hosttree.mine())


def test_programs_that_overlap_have_jails_that_wait(host):
    """A jail is made ahead for the next program while others still run: for who
    has none that runs (test_fair.py)."""
    people = start(host, policy="[cell]\ntimeout = 10m\n")
    for n in range(6):
        person = people[n % 2]
        ready(host)
        if n > 1:
            # A janitor takes its name beside its jail, which may be there.
            hosttree.until(lambda: janitors() == KINDS + 2, "all janitors")
            person.open[-1].kill()
            hosttree.until(lambda: janitors() == KINDS + 1, "its end")
        person.popen("-c", "import time; time.sleep(1000)")
        assert was_ahead(host, n + 1)


def test_one_that_is_killed_is_replaced_by_another(host):
    ann, _ = start(host)
    hosttree.until(lambda: len(held(host)) == 1, "a Python that is held")
    asked = time.clock_gettime(time.CLOCK_BOOTTIME)
    os.kill(held(host)[0], 9)
    r = ann.run("-c", BEGAN)
    assert r.code == 0 and began(r.text) >= asked - 0.02, r
    assert was_ahead(host)
