# SPDX-License-Identifier: MIT
"""The end of an exam: the files that are handed in, and a transcript of root's;
and the clock of the host, which may be set back."""
import json
import os
import pathlib
import re
import signal
import stat
import subprocess
import time

import pytest

import hindered
import hosttree
from exams import POLICY, Exam, at, begin, soon, write
from makerhost import as_any_other, of_jails
from test_attacks import OLD
from world import PATIENCE

# They mostly wait, for the maker's look at its files, say: so they begin early.
pytestmark = pytest.mark.limit(90)


@pytest.fixture(name="exam")
def _exam(host):
    return Exam(host)


def await_notes(host, n):
    """Wait until so many sessions have a note: the ids of their users. One that
    is being written has another name."""
    place = pathlib.Path(
        f"/proc/{host.holder.pid}/root/run/cellblock/sessions")
    found = set()

    def are_there():
        found.clear()
        found.update(int(p.name) for p in place.glob("[0-9]*"))
        return len(found) == n
    hosttree.until(are_there, f"{n} notes")
    return found


# ---- what is handed in ----

@as_any_other
def test_everything_is_handed_in_at_the_end(host, exam, spare):
    begin(host, spare)
    ann, bob = host.people
    exam.set(-60, soon(14))
    s = ann.session().start()
    assert "the files of the home are handed in then" in \
        re.sub(r"[\s¦]+", " ", s.all_text())
    assert "no file is handed in" not in host.root().run("--check-config").said
    s.run("import os; os.makedirs('more/deep')")
    for name in "a.py", ".hidden", "more/deep/b.txt":
        write(s, name, name)
    s.run("os.symlink('/etc/passwd', 'link'); os.mkfifo('pipe')")
    s.type("import time; time.sleep(3600)\r")
    s.expect("the exam has ended")
    s.expect(r"handed in a\.py · 4 B · 1st version · receipt [0-9a-f]{4}-")
    s.wait_exit()
    assert exam.of(ann) == {"a.py": "a.py",
                            "more_deep_b.txt": "more/deep/b.txt"}
    assert "handed in more_deep_b.txt" in s.all_text()
    # The control: somebody who writes no exam.
    t = bob.session().start()
    write(t, "x.py", "x")
    t.leave()
    assert exam.of(bob) == {}


def test_without_the_maker_all_is_handed_in_and_receipts_are_missing(
        host, exam):
    begin(host)
    ann = host.people[0]
    exam.set(-60, soon(14))
    s = ann.session().start()
    write(s, "a.py", "a")
    host.kill()
    s.expect("the exam has ended")
    s.wait_exit()
    said = " ".join(s.all_text().split())
    assert "show the receipts of what was handed in: ask the maker" in said
    assert "the files of the home are handed in without it" in said
    assert exam.of(ann) == {"a.py": "a"}


WAYS = {"left": lambda s: s.leave(),
        "killed": lambda s: s.wait_exit(),
        "hung up": lambda s: s.close()}


@pytest.mark.parametrize("way", WAYS)
def test_what_a_session_leaves_is_handed_in(host, exam, way):
    ann, s = exam.sit()
    for name in "a.py", "b.py":
        write(s, name, f"# {name}\n")
    assert "1st version" in s.run(":submit a.py")
    write(s, "b.py", "# at last\n")
    if way == "killed":
        hosttree.send(hosttree.descendants(s.pid))
    if way == "hung up":
        s.type("while True: pass\r")
        ann.open.remove(s)
    WAYS[way](s)
    if way == "hung up":    # it would linger
        ann.end_sessions()
    assert exam.until(ann, ["a.py", "b.py"])["b.py"] == "# at last\n"
    there = exam.place / "python1/exam" / ann.name
    assert {p.name for p in there.iterdir()} == \
        {"1", "2", ".1", ".2", ".lock"}


def test_what_is_left_waits_for_another_hand_in(host, exam):
    """Longer than a person does who can try again."""
    ann, s = exam.sit()
    write(s, "a.py", "1")
    with exam.hand_in_locked(ann):
        s.type(":quit\r")
        time.sleep(13)
    s.wait_exit()
    assert exam.of(ann) == {"a.py": "1"}


def test_what_will_be_handed_in_is_no_loss(host, exam):
    ann, s = exam.sit(more="[exam]\nhand_in = *.py\n")
    write(s, "a.py", "1")
    write(s, "b.txt", "2")
    assert "1 file never downloaded: b.txt" in s.run(":quit")
    s.run(":rm -f b.txt")
    s.type(":quit\r")
    s.wait_exit()
    exam.until(ann, ["a.py"])


def test_a_session_without_anything_new_makes_no_version(host, exam):
    ann, s = exam.sit()
    write(s, "a.py", "1")
    s.run(":submit a.py")
    s.leave()
    ann.session("-q").start().leave()
    there = exam.place / "python1/exam" / ann.name
    assert {p.name for p in there.iterdir()} == {"1", ".1", ".lock"}


def test_what_is_too_much_is_left_out_and_the_rest_is_handed_in(host, exam):
    ann, s = exam.sit(lab="quota = 64K\n", 
             more="[exam]\nhand_in = *.py\n")
    for name, size in ("a.py", 10), ("big.py", 100_000), ("z.py", 20), \
            ("notes.txt", 5):
        write(s, name, "x" * size)
    # A home that is full takes nothing away from what is there.
    s.run("f = open('.full', 'wb')\ntry:\n    while True:"
          " f.write(bytes(1 << 20))\nexcept OSError: pass\n")
    s.leave()
    assert set(exam.until(ann, ["a.py", "z.py"])) == {"a.py", "z.py"}


def test_what_is_large_takes_no_room_from_what_is_small(host, exam):
    """In whatever order a directory lists them."""
    ann, s = exam.sit(lab="quota = 64K\n")
    s.run("import os; os.mkdir('a')")
    write(s, "a/deep.py", "x")
    for name, size in ("first", 50_000), ("solution.py", 10), ("last", 50_000):
        write(s, name, "x" * size)
    s.leave()
    exam.until(ann, ["solution.py", "a_deep.py"])


def test_two_files_of_one_name_are_one_and_cost_the_room_of_one(host, exam):
    begin(host)
    ann, _ = host.people
    exam.set(-60, 3600)

    def leave():
        s = ann.session("-q").start()
        s.run("import os; os.mkdir('a')")
        write(s, "a/b.py", "y" * 100_000)
        write(s, "a_b.py", "x" * 1000)
        # Of names that no file can have there, and of no files, none.
        s.run(r"_ = open(b'bad\xff.py', 'w'), open('new\nline.py', 'w')")
        s.run("os.mkfifo('f.py'); os.symlink('/etc/shadow', 's.py')")
        s.leave()
    leave()
    assert exam.until(ann, ["a_b.py"]) == {"a_b.py": "x" * 1000}
    there = exam.place / "python1/exam" / ann.name
    assert 1000 < json.loads((there / ".1").read_text())["kept"] < 20_000
    # It has not changed: the other does not take its place.
    leave()
    assert list(there.glob("[0-9]*")) == [there / "1"]


def test_a_deadline_before_the_end_holds(host, exam):
    """It may be that of the homework: then root and the person are told."""
    ann, s = exam.sit(lab=f"deadline = {at(-1)}\n")
    said = " ".join(s.all_text().split())
    assert "no files are handed in then: they are due before" in said, said
    write(s, "a.py", "1")
    s.leave()
    assert exam.of(ann) == {}
    said = " ".join(s.all_text().split())
    assert "nothing was handed in: exercise exam was due" in said, said
    r = host.root().run("--check-config")
    assert r.code == 0 and "exam.end: no file is handed in" in r.said, r


def test_a_slow_disk_takes_nothing_away(host, exam):
    """Two homes, one after the other, and each takes longer than a step may."""
    slow = hindered.slow_disk(host.dir)
    host.under = ["env", *(f"{k}={v}" for k, v in slow.items())]
    begin(host)
    ann, _ = host.people
    exam.set(-60, 3600, lab="quota = 100M\n")
    s, t = ann.session("-q").start(), ann.session("-q", "--new").start()
    for each, name in (s, "a.py"), (t, "b.py"):
        each.run(f"_ = open({name!r}, 'w').write({name[0]!r} * (8 << 20))")
    s.leave()
    t.leave()
    found = exam.until(ann, ["a.py", "b.py"])
    assert found == {n: n[0] * (8 << 20) for n in ("a.py", "b.py")}


def test_what_comes_after_the_end_is_not_handed_in(host, exam):
    """Though it began to come before."""
    begin(host)
    ann, _ = host.people
    exam.set(-60, soon(5))
    # The maker waits five seconds for more: a byte comes each tenth of one.
    p = ann.python(f"""
import handing, time
sock = handing.begin(handing.head(b'a', 1000))
print('begun', flush=True)
n = 0
while time.time() < {exam.end}:
    time.sleep(.1)
    handing.send(sock, b'x')
    n += 1
handing.send(sock, b'x' * (1000 - n), handing.head())
print(handing.rows(sock)[-1])
""")
    assert p.stdout.readline() == "begun\n"
    out, err = p.communicate(timeout=120 * PATIENCE)
    assert "the exam ended at" in out, (out, err)
    assert exam.of(ann) == {}


# ---- the transcript ----

def test_a_transcript_is_roots_and_whole_whatever_is_killed(host, exam):
    ann, s = exam.sit()
    s.run("answer = 6 * 7; answer")
    s.run(r"print('\x1b[31mred\x07')")
    s.run(":limits")
    path = exam.transcript()
    assert path.stat().st_uid == 0 and path.stat().st_gid == 0
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    # All that the person may signal, from a shell of their own.
    s.type("print('last', 'words', flush=True); import time; time.sleep(999)\r")
    s.expect("last words")
    ann.asks("""
import os, signal
for name in os.listdir('/proc'):
    try:
        if name.isdigit() and int(name) != os.getpid():
            os.kill(int(name), signal.SIGKILL)
    except OSError:
        pass
for path in %r, %r:
    for act in os.unlink, os.truncate, open:
        try:
            act(path, 0) if act is os.truncate else act(path)
            print('!', act)
        except OSError:
            pass
""" % (str(path), str(path.parent)))

    def text():
        return path.read_text()
    hosttree.until(lambda: "the front end has gone" in text(), "its end")
    ours = re.match(rf"\n# (\w{{16}}) transcript of {ann.name} \(uid "
                    rf"{ann.uid}\), process \d+, kept by root, \d+\n", text())
    for said in ("answer = 6 * 7; answer", "\n42\n", r"\x1b[31mred\x07",
                 ":limits", "\nlast words\n", f"# {ours[1]} the front end"):
        assert said in text(), (said, text())
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", text())


def test_no_flood_hides_what_is_typed_after_it_or_shown_at_its_end(host, exam):
    ann, s = exam.sit()
    s.type("print('J' * 4_000_000 + 'K' * 20); exec(input('code? '))\r")
    path = exam.transcript()
    s.wait(lambda: "J" * 1_000_000 in path.read_text(), "the flood")
    s.type("print('sec' + 'ret', 6 * 7)\r")
    s.wait_prompt()
    assert "secret 42" in s.all_text()
    hosttree.until(lambda: "secret 42" in path.read_text(), "the output")
    assert "print('sec' + 'ret', 6 * 7)" in path.read_text()
    # Input that no terminal shows is typed, too.
    s.type("import getpass; exec(getpass.getpass('p' + 'w: '))\r")
    s.expect("pw:")
    s.type("hidden = 1\r")
    s.wait_prompt()
    hosttree.until(lambda: "hidden = 1" in path.read_text(), "the input")
    s.leave()
    # A program, behind a comment.
    p = ann.run("--login", stdin=b"#" + b"x" * 3_000_000 + b"\nlast = 6 * 7\n",
                env={"SSH_CONNECTION": "192.0.2.7 1 192.0.2.1 22"})
    assert p.code == 0, p
    exam.until_written("\nlast = 6 * 7\n")


def test_no_command_is_missing_however_it_is_called(host, exam):
    """Parts of commands, and refused ones, are not missing either."""
    ann, s = exam.sit()
    write(s, "notes.txt", "by heart")
    row = s.screen.here()
    s.type("  :show notes.txt\r")
    s.wait(lambda: s.screen.here() > row and s.at_prompt(), "the next prompt")
    lines = ["%less notes.txt", "len?", "%hist", "%who?",
             "history by", "%nothing of that name", "%store it",
             ":doc " + "(" * 1100 + "end", ":watch 6 * 7 + 0x1b"]
    for line in lines:
        s.run(line)
    s.leave()
    hosttree.until(lambda: "has gone" in exam.transcript().read_text(), "its end")
    for line in ["  :show notes.txt", *lines]:
        assert re.search(rf"\n# \w{{16}} {re.escape(line)}\n",
                         exam.transcript().read_text()), line


@pytest.mark.parametrize("cell", ["", "while True: print(1, flush=True)\r"])
def test_a_session_ends_with_its_transcript(host, exam, cell):
    ann, s = exam.sit()
    s.run("1 + 1")
    s.type(cell)
    hosttree.until(scribes, "the scribe, by its name")
    keeper, = scribes()
    os.kill(keeper, signal.SIGKILL)
    hosttree.until(lambda: not scribes(), "the end of the scribe")
    if not cell:
        s.type("2 + 2\r")
    assert s.wait_exit() != 0
    assert "there is no session without it" in " ".join(s.all_text().split())


def test_a_full_disk_is_said_and_ends_nothing(host, exam):
    begin(host)
    ann, _ = host.people
    exam.set(-60, 3600)
    subprocess.run([*host.inside(), "mount", "-t", "tmpfs", "-o", "size=64k",
                    "x", str(exam.transcripts)], check=True)
    s = ann.session("-q").start()
    s.run("for i in range(3000): print('x' * 70)")
    s.run("1 + 1")
    s.expect("the transcript of this session has a gap: No space left")
    assert s.run("2 + 2") == "4"
    s.leave()


def test_programs_are_written_down_too(host, exam):
    begin(host)
    ann, _ = host.people
    exam.set(-60, 3600)
    for command, stdin in ("input() * 3", b"abc\n"), ("", b"print('homework')"):
        p = ann.run("--login", stdin=stdin,
                    env={"SSH_ORIGINAL_COMMAND": command} if command else
                    {"SSH_CONNECTION": "192.0.2.7 1 192.0.2.1 22"})
        assert p.code == 0, p
    exam.until_written("input() * 3", "'abcabcabc'", "print('homework')",
                       "\nhomework\n", "from 192.0.2.7",
                       "ended with status 0")


def test_without_a_transcript_there_is_no_session(host, exam):
    ann, s = exam.sit()
    exam.transcripts.rmdir() if not list(exam.transcripts.iterdir()) else \
        exam.transcripts.rename(host.dir / "moved")
    p = ann.run("--login", env={"SSH_ORIGINAL_COMMAND": "1 + 1"})
    assert p.code == 78 and b"transcript" in p.err and p.out == b"", p
    # One that goes on is written down where the directory is now.
    s.run("'moved'")
    s.leave()
    hosttree.until(
        lambda: "'moved'" in next((host.dir / "moved").iterdir()).read_text(),
        "what the scribe writes")


def test_a_client_of_ones_own_gets_no_more_than_a_file(host, exam):
    begin(host)
    ann, bob = host.people
    exam.set(-60, 3600)
    scribe = """
import order, re, socket, struct
text = (order.TOP / 'repl/maker/maker.h').read_text()
V = int(re.search(r'SCRIBE_VERSION (\\w+)', text)[1], 16)
ok, s = order.ask(struct.pack('=I', V))
"""
    assert "log.transcript names no directory" in bob.asks(
        scribe + "print(ok, s)")
    ann.asks(scribe + r"""
assert ok, s
t = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, fileno=s.detach())
t.setblocking(True)
ours, theirs = socket.socketpair()
try:
    socket.send_fds(t, [b'\x1b]0;me\x07mine\n'], [theirs.fileno()])
except OSError:     # the kernel refuses to send descriptors
    t.sendall(b'\x1b]0;me\x07mine\n')
t.close()
""")
    path = exam.transcript()
    hosttree.until(lambda: "has gone" in path.read_text(), "the end")
    assert r"\x1b]0;me\x07mine" in path.read_text()
    hosttree.until(lambda: not scribes(), "the end of the scribe")
    # A transcript that is too long ends. (A carriage return is not written down.)
    path.unlink()
    assert "nobody" == ann.asks(scribe + r"""
assert ok, s
t = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, fileno=s.detach())
t.setblocking(True)
try:
    for _ in range(300):
        t.sendall(b'\r' * (1 << 20))
except OSError:
    print('nobody', end='')
""")
    hosttree.until(lambda: "is too long, and ends here" in
                   exam.transcript().read_text(), "the end of what is too long")


def scribes():
    return {p for p in hosttree.mine()
            if hosttree.status_of(p).get("Name") == "cellblock-scrib"}


def test_a_transcript_goes_on_when_the_service_starts_again(host, exam):
    ann, s = exam.sit()
    # By its name it is known not to end with the service.
    hosttree.until(scribes, "the process that keeps the transcript")
    host.kill(signal.SIGTERM)
    host.start()
    s.run("'after that'")
    s.leave()
    hosttree.until(lambda: "has gone" in exam.transcript().read_text(),
                   "its end")
    assert "\n'after that'\n" in exam.transcript().read_text()


# ---- who was there before ----

def test_who_stays_from_before_is_told_and_then_ended(host, exam):
    begin(host)
    ann, bob = host.people
    s, other = ann.session().start(), bob.session().start()
    write(s, "a.py", "of before")
    program = ann.popen("-c", "import time; time.sleep(3600)")
    await_notes(host, 3)
    exam.set(soon(14), 3600)
    s.expect(r"the exam begins at .*\s+session\s+ends\s+(¦\s+)?then")
    s.expect("the exam begins$|by root: the exam begins")
    s.wait_exit()
    assert program.wait(timeout=60 * PATIENCE) != 0
    assert other.run("6 * 7") == "42"
    other.leave()
    s = ann.session("-q").start()
    assert s.run("1 + 1") == "2"
    s.leave()


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_who_came_before_the_file_of_an_exam_that_goes_on(host, exam, mark):
    """Some editors put a mark before the first line of a file."""
    begin(host)
    ann, _ = host.people
    s = ann.session().start()
    exam.lab = ""       # the section is the first
    exam.set(-60, 3600, mark=mark)
    s.expect("ended by root: the exam begins", deadline=60)
    s.wait_exit()
    # One that is in the exam goes on.
    s = ann.session("-q").start()
    s.run("import time; time.sleep(12)")
    assert s.run("1 + 1") == "2"
    s.leave()


def test_a_front_end_that_does_not_listen_loses_its_jail(host, exam):
    begin(host)
    ann, _ = host.people
    s = ann.session().start()
    s.type("import time; time.sleep(99)\r")
    # The prompt may be there before the jail.
    ids = await_notes(host, 1)
    front = [p for p in [s.pid, *hosttree.descendants(s.pid)]
             if hosttree.status_of(p).get("Name") == "cellblock"]
    for pid in front:
        os.kill(pid, signal.SIGSTOP)
    jail = hosttree.until(lambda: [
        p for p in hosttree.mine()
        if int(hosttree.status_of(p).get("Uid", "0").split()[0]) in ids],
        "the jail")

    def runs():
        return any(map(hosttree.status_of, jail))
    time.sleep(1.1)     # the exam begins in a later second
    exam.set(0, 3600)
    hosttree.until(lambda: not runs(), "the end of the jail", 60)
    for pid in front:
        os.kill(pid, signal.SIGCONT)
    s.wait_exit()


# A student's own program, which listens where sessions do: each of its sockets
# says that it is the session, and then nothing when it is told anything.
PLANTED = r"""
import glob, os, resource, selectors, socket, struct, sys
most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
front, n = int(sys.argv[1]), int(sys.argv[2])
place, = glob.glob(os.path.expanduser('~/.local/state/cellblock/live'))
here, wait, kept = os.open(place, os.O_RDONLY), selectors.DefaultSelector(), []
for i in range(1, n + 1):
    k = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        k.bind(f'/proc/self/fd/{here}/{i}')
    except OSError:     # the session itself
        continue
    k.listen(8)
    wait.register(k, selectors.EVENT_READ, True)
print('ready', flush=True)
head = struct.pack('=IHHiI512s', 0x6b626c63, 1, 1, 0, 0, b'')
status = struct.pack('=iIIIqqqqqqqq64s64s32s', front, 0, 0, 0, 1, 0, 0, -1,
                     0, 0, 0, 0, b'', b'', b'0.1')
while True:
    for key, _ in wait.select():
        if key.data:
            c, _ = key.fileobj.accept()
            wait.register(c, selectors.EVENT_READ, False)
            kept.append(c)
            continue
        wait.unregister(key.fileobj)
        if struct.unpack_from('=H', key.fileobj.recv(4096), 6)[0] == 1:
            key.fileobj.send(head + status)
"""


@as_any_other
def test_the_note_of_a_session_goes_with_it(host, spare):
    """Also where there is no exam: there may be many sessions until the host
    starts anew."""
    begin(host, spare)
    ann, bob = host.people
    s = bob.session().start()
    program = ann.popen("-c", "import time; time.sleep(3600)")
    await_notes(host, 2)
    program.kill()
    for code in "print(1)", "import os; os.abort()":
        ann.run("-c", code)
    await_notes(host, 1)
    assert s.leave() == 0
    await_notes(host, 0)


def test_who_says_nothing_delays_the_end_of_nobody_else(host, exam):
    """As many sockets as a directory may have, of somebody who is looked at
    first."""
    begin(host)
    slow, other = sorted(host.people, key=lambda p: p.uid)
    a, b = slow.session().start(), other.session().start()
    front = json.loads(slow.run("--sessions", "--json").text)[0]["pid"]
    p = slow.python(PLANTED, str(front), "900")
    assert p.stdout.readline() == "ready\n", p.stderr.read()
    exam.set(-60, 3600)
    text = (host.etc / "groups" / f"{host.people[0].name}.conf").read_text()
    host.policy(text, f"groups/{host.people[1].name}.conf")
    b.expect("ended by root: the exam begins", deadline=60)
    b.wait_exit()
    a.wait_exit()
    hosttree.until(lambda: not of_jails(), "the end of the other's jail", 60)
    assert p.poll() is None


# Answers as no session does. Behind that is a descriptor whose closing takes an
# hour: the proctor has its last copy when it closes the connection.
FALSE_SESSION = """
import array, os, socket, struct, sys, threading
listener = socket.create_server(('127.0.0.1', 0))
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.bind(sys.argv[1] + '/7')
s.listen()
print('listens', flush=True)
def linger(one, seconds):
    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                   struct.pack('ii', 1, seconds))
while True:
    one = socket.create_connection(listener.getsockname())
    linger(one, 3600)
    one.setblocking(False)
    try:
        while True: one.send(b'x' * 65536)
    except BlockingIOError: pass
    args = [b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS,
                     array.array('i', [one.fileno()]))]
    asker, _ = s.accept()
    try:
        asker.send(b'x')
        asker.sendmsg(*args)
    except OSError:
        linger(one, 0)
    # If the proctor was faster, this copy is the last: then it hangs here.
    threading.Thread(target=one.close).start()
    print('asked', flush=True)
    asker.close()
"""


@pytest.mark.parametrize("kernel", [[], OLD], ids=["new", "old"])
def test_who_sends_a_descriptor_along_delays_the_end_of_nobody_else(
        host, exam, kernel):
    """Sessions are looked at by the numbers of their persons. The first answers
    as she likes."""
    host.under = kernel
    begin(host)
    ann, bob = sorted(host.people, key=lambda person: person.uid)
    hers, his = ann.session().start(), bob.session().start()
    liar = ann.python(FALSE_SESSION,
                      str(ann.home / ".local/state/cellblock/live"))
    assert liar.stdout.readline() == "listens\n", liar.stderr.read()
    for person in ann, bob:
        host.policy(POLICY.format(
            begin=at(-60), end=at(3600), folder=exam.folder,
            transcripts=exam.transcripts), f"groups/{person.name}.conf")
    his.expect("ended by root: the exam begins", deadline=60)
    his.wait_exit()
    assert liar.stdout.readline() == "asked\n"
    hers.wait_exit(60)
    assert liar.poll() is None


# ---- the clock of the host ----

class Clock:
    """Of the maker and its children; a front end has the host's own."""

    def __init__(self, host):
        self.base, self.env = host.dir, {}
        self.clocks = hindered.Clocks(self)
        host.under = ["env", *(f"{k}={v}" for k, v in self.env.items())]
        self.set = self.clocks.set


def test_an_exam_that_has_ended_stays_ended(host, exam):
    clock = Clock(host)
    begin(host)
    ann, _ = host.people
    exam.set(-60, 1800)
    s = ann.session("-q").start()
    write(s, "a.py", "1")
    clock.set(day=3600)
    s.expect("the exam has ended")
    s.wait_exit()
    assert exam.until(ann, ["a.py"])
    clock.set(day=0)
    p = ann.run("-c", "print(1)")
    assert p.code == 78 and b"the exam ended at" in p.err \
        and b"was set back since" in p.err and p.out == b"", p
    exam.set(-60, 2400)
    assert ann.run("-c", "print(1)").out == b"1\n"
