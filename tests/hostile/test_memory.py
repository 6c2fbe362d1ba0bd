# SPDX-License-Identifier: MIT
"""Memory of every kind: the cell meets the memory limit, and the session
reports it truthfully. The front end and the warden stay small."""
import pytest

import hosttree
from hostile import is_whole, patient, said_since, start, value
from world import WHOLE

# Root's sessions are counted by a cgroup, a person's memory is watched.
pytestmark = pytest.mark.both

KINDS = {
    "heap": "x = []\nwhile True: x.append(bytearray(1 << 20))",
    "small_objects": "x = []\nwhile True: x.append([len(x)])",
    "one_string": "x = 'a'\nwhile True: x += x",
    "mmap_private": "import mmap\nx = []\nwhile True:\n"
                    "    m = mmap.mmap(-1, 4 << 20, mmap.MAP_PRIVATE |"
                    " mmap.MAP_ANONYMOUS)\n"
                    "    m.write(b'x' * (4 << 20)); x.append(m)",
    "mmap_shared": "import mmap\nx = []\nwhile True:\n"
                   "    m = mmap.mmap(-1, 4 << 20)\n"
                   "    m.write(b'x' * (4 << 20)); x.append(m)",
    "memfd": "import os\nx = []\nwhile True:\n    fd = os.memfd_create('m')\n"
             "    os.write(fd, bytes(8 << 20)); x.append(fd)",
    "shared_memory": "f = open('/dev/shm/f', 'wb')\n"
                     "while True: f.write(bytes(1 << 20))",
    "tmp": "f = open('/tmp/f', 'wb')\nwhile True: f.write(bytes(1 << 20))",
    "pipes": "import os\nx = []\nwhile True:\n    r, w = os.pipe()\n"
             "    os.write(w, bytes(65536)); x += [r, w]",
    "sockets": "import socket\nx = []\nwhile True:\n"
               "    a, b = socket.socketpair(); a.setblocking(False)\n"
               "    try:\n        while True: a.send(bytes(65536))\n"
               "    except BlockingIOError: x += [a, b]",
    "page_tables": "import mmap\nx = []\nwhile True:\n"
                   "    m = mmap.mmap(-1, 1 << 30, mmap.MAP_PRIVATE |"
                   " mmap.MAP_ANONYMOUS | 0x4000)\n"
                   "    for at in range(0, 1 << 30, 2 << 20): m[at] = 1\n"
                   "    x.append(m)",
    "thread_stacks": "import threading, time\n"
                     "threading.stack_size(32 << 20)\n"
                     "for i in range(99): threading.Thread("
                     "target=time.sleep, args=(9,), daemon=True).start()",
    "children": "import os\nfor i in range(20):\n    if not os.fork():\n"
                "        x = bytearray(b'x') * (40 << 20)\n"
                "        while True: pass\nwhile True: pass",
    "driver_file": "import os, stat\nfor n in range(500, 1024):\n    try:\n"
                   "        if stat.S_ISREG(os.fstat(n).st_mode):\n"
                   "            while os.write(n, bytes(1 << 20)): pass\n"
                   "    except OSError: pass",
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", KINDS)
@pytest.mark.limit(90)
def test_memory_of_every_kind_is_limited(cb, name):
    """The cell ends with an error, or is killed and the session says why. Then
    the session goes on."""
    s = start(cb, "--set", "cell.timeout=8s", "-M", "128M")
    t = cb.tree(s)
    small = {p: resident(p) for p in (s.pid, t.warden)}
    row = s.screen.here()
    s.run(KINDS[name], 40)
    s.run("x = f = None", 25)
    is_whole(s, row)
    for pid, before in small.items():
        assert resident(pid) < before + 8192, f"KiB of {pid}"


def resident(pid):
    return int(hosttree.status_of(pid)["VmRSS"].split()[0])


def test_the_verdict_names_limit_and_peak_and_where_it_was_set(cb):
    path = cb.config("[session]\nmemory = 96M\n")
    s = cb.session()
    s.run("kept = {'cell': 1}")
    out = s.run("x = []\nwhile True: x.append(bytearray(1 << 20))", 40)
    out = out.replace("\n", "")
    if "MemoryError" in out:
        pytest.skip("an allocation failed before the limit was reached")
    assert "memory limit: 96 MiB · killed" in out, out
    assert "peak 9" in out or "peak 1" in out, out
    assert str(path) in out, out
    assert value(s, "kept") == "{'cell': 1}"


@pytest.mark.parametrize("checkpoint", ["auto", "always"])
def test_the_checkpoint_is_given_up_before_the_cell_and_the_session_says_so(
        cb, checkpoint):
    """A cell writes to all memory of the session, near the limit. There is
    enough memory only without the checkpoint, so the checkpoint is given up
    and the cell runs. When a later cell crashes, the session says what is
    lost."""
    s = cb.session("-M", "400M", *patient("cell.timeout", 20),
                   "--set", "cell.cpu=20s",
                   "--set", f"cell.checkpoint={checkpoint}")
    s.run("import os, time; kept = {'cell': 1}\n"
          "big = bytearray(b'x') * (230 << 20)")
    # Slowly enough that the warden, which polls, sees the memory grow, also
    # where its helper waits for a processor.
    out = s.run("for i in range(0, len(big), 4096):\n"
                "    big[i] = 1\n"
                "    if i % (4 << 20) == 0: time.sleep(0.1)\n\nbig[5]", 40)
    flat = out.replace("\n", "")
    assert "given up" in flat or \
        checkpoint == "auto" and "copying memory" in flat, flat
    assert out.split("\n")[-1] == "120", out
    out = s.run("for i in range(0, len(big), 4096): big[i] = 2\n"
                "time.sleep(0.5); os._exit(1)", 40).replace("\n", "")
    assert "back to the state" in out or "given up" in out, out
    assert value(s, "6 * 7") == "42"


def test_a_child_that_the_kernel_killed_for_memory_is_reported(cb):
    s = start(cb, "-M", "128M", *patient("cell.timeout", 8))
    out = s.run("import subprocess, sys\nsubprocess.run([sys.executable, '-c',"
                " 'x = []\\nwhile True: x.append(bytearray(1 << 20))'])"
                ".returncode", 40).replace("\n", "")
    if "MemoryError" in out or "killed · back" in out:
        pytest.skip("here the child meets another limit first")
    assert "-9" in out and "memory limit: 1 process of the cell was killed" \
        in out, out


CHILDREN = """\
import os, time
for i in range(8):
    if not os.fork():
        while not os.path.exists('/tmp/go'): time.sleep(0.01)
        x = bytearray(b'x') * (60 << 20)
        time.sleep(1000)
"""
BESIDE = {
    "while_it_is_parked": ("""\
import sys
frame = sys._getframe()
while 'PARTS' not in frame.f_globals: frame = frame.f_back
driver = frame.f_globals
def park(no, sock):
    open('/tmp/go', 'w'); time.sleep(0.5); driver['say']('PARKED %s fork' % no)
driver['part']('park'); driver['park'] = park
""", "stop"),
    "in_the_background": ("""\
if not os.fork():
    time.sleep(0.5); open('/tmp/go', 'w'); os._exit(0)
""", "run"),
}


def memory_of(tree):
    """KiB of each process that lives."""
    found = [hosttree.status_of(p).get("RssAnon") for p in tree.guests()]
    return [int(kib.split()[0]) for kib in found if kib]


@pytest.mark.parametrize("name", BESIDE)
def test_memory_is_limited_while_no_cell_runs(cb, name):
    """Either what takes too much is killed, or it is stopped before that. What
    the children share is in each sum of theirs: where a cgroup counts it, the
    kernel sees to the limit."""
    cell, background = BESIDE[name]
    s = start(cb, "-M", "128M", "--set", f"cell.background={background}")
    t = cb.tree(s)
    s.run(CHILDREN)
    shared = memory_of(t)
    assert len(shared) > 8    # the control
    row = s.screen.here()
    s.run(cell)
    s.wait(lambda: len(memory_of(t)) < 6 or
           (t.cgroups or sum(memory_of(t)) < (128 << 10) + sum(shared))
           and all(map(hosttree.is_stopped, t.guests())), "memory to be freed")
    is_whole(s, row)


FLOODS = {
    "no_newline": "while True: sys.stdout.write('x' * 65536)",
    "newlines": "while True: sys.stdout.write('\\n' * 65536)",
    "one_long_line": "sys.stdout.write('x' * (200 << 20))",
    "nul": "while True: os.write(1, bytes(65536))",
    "invalid": "while True: os.write(1, b'\\xff\\xc0\\x80' * 20000)",
    "escapes": "while True: os.write(1, b'\\x1b[1;2;3m\\x1b]0;' * 5000)",
    "unended_title": "os.write(1, b'\\x1b]0;')\n"
                        "while True: os.write(1, b'a' * 65536)",
    "unended_parameters": "os.write(1, b'\\x1b[')\n"
                  "while True: os.write(1, b'1;' * 30000)",
    "half_a_mark": "while True: os.write(1, b'\\x1b_' + b'0' * 31)",
    "from_children": "for i in range(6): os.fork()\n"
                     "while True: os.write(1, b'y' * 4096)",
    "threads_after_the_cell": "import threading\ndef f():\n"
                      "    while True: os.write(1, b'z' * 4096)\n"
                      "for i in range(4): threading.Thread(target=f,"
                      " daemon=True).start()",
}


# How much of a flood is drawn.
SHOWN = "1M" if WHOLE else "100K"


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", FLOODS)
@pytest.mark.limit(90)
def test_a_flood_of_output_costs_no_session(cb, name):
    s = start(cb, *patient("cell.timeout", 2), "--set", "cell.undo=2",
              "--set", f"cell.output={SHOWN}")
    t = cb.tree(s)
    small = {p: resident(p) for p in (s.pid, t.warden)}
    # Where the flood is killed, there is this cell to undo instead of it.
    s.run("other = 1")
    row = s.screen.here()
    s.run("import sys, os\n" + FLOODS[name], 40)
    s.run("1", 40)
    # An undo also ends what the cell left running in the background.
    s.run(":undo", 25)
    # Output that left the jail before the undo is still shown.
    hosttree.until(lambda: s.run("0") == "0", "the end of the flood")
    is_whole(s, row)
    for pid, before in small.items():
        assert resident(pid) < before + 16384, f"KiB of {pid}"


HOMES = {
    "large_file": "open('big', 'wb').write(bytes(200 << 20))",
    "many_names": "for i in range(10**6): open(f'n{i}', 'w').close()",
    "sparse_file": "f = open('sparse', 'wb'); f.truncate(60 << 20)\n"
              "f.seek(50 << 20); f.write(b'x'); f.close()",
    "deep_tree": "import os\nfor i in range(3000):\n    os.mkdir('d')\n"
            "    os.chdir('d')",
    "odd_names":
        "import os\nfor n in b'a\\nb', b'\\xff\\xfe', b'\\x1b[2J', b' ',"
           " b'-rf', b'x' * 255:\n    os.close(os.open(n, os.O_CREAT))",
    "fifos_and_links":
        "import os\nos.mkfifo('fifo'); os.symlink('/etc/passwd', 'out')\n"
             "os.symlink('loop', 'loop')",
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", HOMES)
@pytest.mark.limit(90)
def test_a_hostile_home_costs_no_session(cb, name):
    s = start(cb, "--set", "cell.timeout=15s", "--set", "cell.cpu=15s")
    s.run(HOMES[name], 40)
    assert value(s, "6 * 7") == "42"
    s.run(":files", 40)
    assert value(s, "kept") == "{'cell': 1}"
    s.run("import os; os.chdir('/home'); os._exit(1)", 25)
    assert value(s, "kept") == "{'cell': 1}"
    assert b"\x1b[2J" not in s.raw


def test_a_file_whose_name_begins_with_blanks_can_be_removed(cb):
    s = start(cb)
    s.run("open('  two', 'w').close(); open('two', 'w').close()")
    s.run(":rm '  two'", 25)
    assert value(s, "import os; sorted(os.listdir())") == "['kept.txt', 'two']"


@pytest.mark.limit(90)
def test_a_home_of_many_long_paths_can_be_listed(cb):
    s = start(cb, "--set", "home.files=30000", "--set", "home.size=200M",
              *patient("cell.timeout", 20), "--set", "cell.cpu=20s")
    s.run("import os\nd = '/'.join(['d' * 250] * 14)\nos.makedirs(d)\n"
          # More than the 12 MiB that a listing may have.
          "for i in range(3800): open(f'{d}/{i}', 'w').close()", 60)
    row = s.enter(":files")

    def asks():
        return "-- more" in s.screen.cursor_row()
    s.wait(lambda: asks() or s.screen.here() >= row and s.at_prompt(),
           "a page or the prompt", 40)
    if asks():
        s.type("q")
    s.wait_prompt(30)
    assert "missing" not in said_since(s, row)
    is_whole(s, s.screen.here())
