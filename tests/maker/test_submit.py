# SPDX-License-Identifier: MIT
"""Files that people hand in, which root's service keeps out of their reach."""
import json
import os
import pathlib
import re
import struct
import subprocess
import time

import pytest

import hindered
import hosttree
from exams import write
from world import PATIENCE

LOCKED = "[policy]\nlocked = yes\n"
RECEIPT = r"receipt ([0-9a-f]{4}-[0-9a-f]{2})"
HAND = "import handing\n"


class Course:
    """A course of a host, and what was handed in there."""

    def __init__(self, host):
        self.host = host
        self.place = host.dir / "submissions"
        self.place.mkdir(mode=0o755)
        self.home = self.place / "python1" / "4"
        self.set()

    def set(self, more="", deadline=None, exercise=4, policy=LOCKED,
            place=None):
        when = "" if deadline is None else time.strftime(
            "deadline = %Y-%m-%d %H:%M:%S\n", time.localtime(deadline))
        self.host.policy(
            f"[lab]\ncourse = python1\nexercise = {exercise}\n"
            f"submit = {place or self.place}/{{course}}\n{when}{more}"
            + policy)

    def of(self, person, version):
        """{name: text} of a version."""
        return {p.name: p.read_text() for p in
                (self.home / person.name / str(version)).iterdir()}

    def names(self, person):
        """All but the lock, which stays."""
        there = self.home / person.name
        return {p.name for p in there.iterdir() if p.name != ".lock"} \
            if there.exists() else set()

    def versions(self, person):
        return sorted(int(n) for n in self.names(person) if n[0] != ".")

    def rest(self, person):
        """The names that begin with a dot, and are no records."""
        return {n for n in self.names(person)
                if n[0] == "." and not n[1:].isdigit()}

    def collect(self, *args, code=0):
        r = self.host.root().run("--collect", *map(str, args))
        assert r.code == code, r
        return r


@pytest.fixture(name="course")
def _course(maker):
    return Course(maker)


@pytest.fixture(name="session")
def _session(course, ann):
    s = ann.session().start()
    yield s
    s.leave()


def submit(s, *names):
    """The receipts."""
    said = s.run(f":submit {' '.join(names)}")
    got = re.findall(RECEIPT, said)
    assert len(got) == len(names) and said.count("submitted ") == len(names), \
        said
    return got


def framed(s, line):
    """The lines of the frame that a command answers, as one."""
    return re.sub(r"\n¦ +", " ", s.run(line))


# ---- what everybody does ----

def test_a_session_from_before_there_was_a_directory_says_so(maker, ann):
    s = ann.session().start()
    course = Course(maker)
    write(s, "a.py", "1")
    said = framed(s, ":submit a.py")
    assert "when it began, the administrator had set no lab.submit · a " \
        "session that begins now can" in said, said
    t = ann.session("--new").start()
    write(t, "a.py", "1")
    submit(t, "a.py")
    assert course.versions(ann) == [1]
    s.leave()
    t.leave()


def test_each_version_is_kept_with_its_name_time_and_hash(course, ann, bob):
    due = time.time() + 3 * 86400
    course.set(deadline=due)
    s = ann.session().start()
    day = time.strftime("%A", time.localtime(due))
    assert f"course python1: exercise 4 due {day}" in s.all_text()
    write(s, "mean.py", "print(1)\n")
    said = framed(s, ":submit mean.py")
    assert re.search(r"submitted mean\.py · 9 B · 1st version · " + RECEIPT
                     + rf" · until {day} \d\d:\d\d", said), said
    first = re.search(RECEIPT, said)[1]
    write(s, "mean.py", "print(22)\n")
    second, = submit(s, "mean.py")
    assert "2nd version" in s.all_text() and first != second
    assert course.of(ann, 1) == {"mean.py": "print(1)\n"}
    assert course.of(ann, 2) == {"mean.py": "print(22)\n"}
    listed = s.run(":submit")
    assert second in listed and first not in listed and "2 versions" in listed
    assert re.search(r"mean\.py.*submitted \d\d:\d\d", s.run(":files"))
    s.leave()
    assert "never downloaded" not in s.all_text()
    t = bob.session().start()
    assert "nothing was handed in yet" in t.run(":submit")
    t.leave()
    table = course.collect("python1/4").text.splitlines()
    assert table[0].split() == ["STUDENT", "FILE", "VERSION", "WHEN", "SIZE",
                                "RECEIPT"]
    assert re.fullmatch(
        rf"{ann.name}\s+mean\.py\s+2\s+(today|\w+day) \d\d:\d\d\s+10 B\s+"
        + second, table[1]) and len(table) == 2
    assert "nothing was handed in there yet" in \
        course.collect("python1/77", code=1).said
    every = course.collect("python1/4", "-a").text
    assert first in every and second in every
    rows = json.loads(course.host.root().run(
        "--json", "--collect", str(course.home), "-a").text)
    assert [(r["student"], r["version"], r["receipt"]) for r in rows] == [
        (ann.name, 1, first), (ann.name, 2, second)]
    sha = subprocess.run(["sha256sum"], input=b"print(22)\n", check=True,
                         capture_output=True).stdout.split()[0].decode()
    assert rows[1]["sha256"] == sha and rows[1]["bytes"] == 10


def test_a_version_has_what_was_handed_in_before(course, ann, session):
    for name in "a.py", "b.py":
        write(session, name, name)
        submit(session, name)
    assert course.of(ann, 2) == {"a.py": "a.py", "b.py": "b.py"}
    write(session, "a.py", "new")
    receipts = submit(session, "a.py", "b.py")
    assert len(set(receipts)) == 2
    assert course.of(ann, 1) == {"a.py": "a.py"}
    assert course.of(ann, 3) == {"a.py": "new", "b.py": "b.py"}


def test_nobody_else_can_read_or_change_it(course, ann, session):
    write(session, "a.py", "secret")
    submit(session, "a.py")
    there = course.home / ann.name / "1" / "a.py"
    out = ann.asks(
        "import os\n"
        f"for p in {[str(there), str(there.parent.parent)]!r}:\n"
        "  for act in (open, os.listdir, os.unlink, os.rmdir):\n"
        "    try: print(act(p))\n"
        "    except OSError as e: print(type(e).__name__)\n")
    assert out.split() == ["PermissionError"] * 8
    for path in course.home, course.home / ann.name, there.parent, there:
        st = path.stat()
        assert st.st_uid == 0 and st.st_mode & 0o077 == 0, path


def test_what_cannot_be_handed_in_is_refused_in_words(course, ann, session):
    session.run("import os; os.mkdir('d'); os.symlink('/etc/passwd', 'l');"
                " os.mkfifo('p')")
    session.run("for n in ('.hid', 'a\\nb', 'd/same', 'same', 'w\\u202ey'):"
                " _ = open(n, 'w').write('x')")
    for line, words in {
            "nope.py": "nope.py: there is no such file in the home",
            "*.txt": "there is no such file",
            "d": "d is a directory", "/home": "is a directory",
            "l": "l is a link", "p": "p is not a regular file",
            ".hid": "without a dot", "'a\\nb'": "no such file",
            '"a\\nb"': "control characters", "w*": "control characters",
            "d/same same": "different names",
            "../../etc/passwd": "no such file",
            "/etc/passwd": "no such file"}.items():
        assert words in framed(session, f":submit {line}"), line
    session.run("for i in range(3000): _ = open(f'{i}.txt', 'w').write('x')")
    assert "at most 32 files" in framed(session, ":submit *.txt")
    assert course.names(ann) == set()
    long = "n" * 251 + ".py"
    write(session, long, "x")
    assert "1st version" in framed(session, f":submit {long}")
    assert course.of(ann, 1) == {long: "x"}


def test_no_more_than_64_files(course, ann, session):
    session.run("for i in range(66): _ = open(f'{i:02}.txt', 'w').write('x')")
    submit(session, *(f"{i:02}.txt" for i in range(32)))
    submit(session, *(f"{i:02}.txt" for i in range(32, 64)))
    assert "64 files" in framed(session, ":submit 64.txt")
    assert len(course.of(ann, 2)) == 64 and course.versions(ann) == [1, 2]
    assert course.rest(ann) == set()
    assert session.run(":submit").count("receipt") == 64


def test_a_session_without_a_place_says_so(maker, ann):
    s = ann.session().start()
    assert "lab.submit" in s.run(":submit x") and "course" not in s.all_text()
    s.leave()


def test_policy_can_leave_the_command_out(course, ann):
    course.set(policy=LOCKED + "commands = files help quit\n")
    s = ann.session().start()
    assert "there is no command :submit" in s.run(":submit x")
    s.leave()
    assert "policy.commands" in ann.asks(
        HAND + "print(handing.hand_in((b'a', b'x'))[-1][4])")
    assert course.names(ann) == set()


def test_another_exercise_is_named(course, ann, session):
    write(session, "a.py", "x")
    course.set(exercise=5)
    assert "a.py · exercise 5 · " in session.run(":submit a.py")
    assert (course.place / "python1" / "5" / ann.name / "1").is_dir()
    assert not course.home.exists()


# ---- the deadline ----

@pytest.fixture(name="clock")
def _clock(host, tmp_path):
    """The clock of the service, which the test sets."""
    os.chmod(tmp_path, 0o755)
    file = tmp_path / "clocks"
    file.write_bytes(bytes(16))

    def set_ahead(seconds):
        with open(file, "r+b", buffering=0) as f:
            os.pwrite(f.fileno(), struct.pack("=q", seconds), 0)
    host.under = ["env", f"LD_PRELOAD={hindered._library(tmp_path)}",
                  f"HINDER_CLOCKS={file}"]
    return set_ahead


def test_the_clock_of_the_host_decides(clock, maker, ann):
    course = Course(maker)
    course.set(deadline=time.time() + 3600)
    s = ann.session().start()
    write(s, "a.py", "1")
    submit(s, "a.py")
    clock(7200)
    said = framed(s, ":submit a.py")
    assert "exercise 4 was due" in said and "nothing was handed in" in said
    assert "receipt" in s.run(":submit") and course.versions(ann) == [1]
    # A deadline that has passed stays past.
    clock(0)
    said = framed(s, ":submit a.py")
    assert "which has passed, though this host's clock was set back" in said
    assert course.versions(ann) == [1]
    # An administrator may give more time.
    clock(7200)
    course.set(deadline=time.time() + 3 * 3600)
    submit(s, "a.py")
    assert course.versions(ann) == [1, 2]
    s.leave()


def test_a_clock_that_jumps_meanwhile(clock, maker, ann):
    """The moment that counts is the one at which all has come."""
    course = Course(maker)
    course.set(deadline=time.time() + 3600)
    p = ann.python(HAND + """
s = handing.begin(handing.head(b"a.py", 4), b"12")
print("half", flush=True)
input()
handing.send(s, b"34", handing.head())
print(handing.rows(s)[-1])
""")
    assert p.stdout.readline() == "half\n"
    hosttree.until(lambda: ".new" in course.names(ann), "the half")
    clock(7200)
    out, _ = p.communicate("\n", timeout=60 * PATIENCE)
    assert "was due" in out and course.names(ann) == set()


# ---- limits ----

def test_the_quota_counts_all_versions(course, ann, session):
    course.set("quota = 64K\n")
    session.run("for n, k in ('a', 30), ('b', 100):"
                " _ = open(n, 'w').write('x' * k * 1024)")
    submit(session, "a")
    said = framed(session, ":submit a")
    assert "a has 30 KiB" in said and "64 KiB" in said and "18 KiB is left" \
        in said
    assert "b has 100 KiB" in framed(session, ":submit b")
    assert course.versions(ann) == [1] and course.rest(ann) == set()
    course.set("quota = 0\n")
    write(session, "c", "")
    assert "all versions" in framed(session, ":submit c")


def test_the_quota_counts_what_versions_take_beside_the_files(course, ann):
    """Each has all names again, in its directory and in its record."""
    course.set("quota = 1M\n")
    said = ann.asks(HAND + """
def names(n):
    return [(b'%02d' % i + b'"' * 250, b'') for i in range(*n)]
assert handing.hand_in(*names((0, 32)))[-1][0]
assert handing.hand_in(*names((32, 64)))[-1][0]
for i in range(200):
    last = handing.hand_in(*names((0, 1)))[-1]
    if not last[0]:
        print(last[4])
        break
""")
    assert "all versions together may have 1 MiB" in said, said
    taken, seen = 0, set()
    for path in (course.home / ann.name).rglob("*"):
        st = path.stat()
        taken += 0 if st.st_ino in seen else st.st_blocks * 512
        seen.add(st.st_ino)
    assert 1 << 17 < taken <= 1 << 20, taken


def test_two_sessions_of_a_person_share_the_quota(course, ann):
    course.set("quota = 84K\n")
    script = HAND + """
r = handing.hand_in((b"a", b"x" * 30000))[-1]
print("kept" if r[0] else r[4])
"""
    ps = [ann.python(script) for _ in range(6)]
    said = [p.communicate(timeout=120 * PATIENCE)[0] for p in ps]
    assert said.count("kept\n") == 2, said
    assert all(s == "kept\n" or "all versions together" in s for s in said)
    assert course.versions(ann) == [1, 2] and course.rest(ann) == set()


def test_two_at_once_get_two_versions(course, ann):
    script = HAND + "print(handing.hand_in((b'a', b'x'))[0][1])"
    ps = [ann.python(script) for _ in range(8)]
    got = [int(p.communicate(timeout=120 * PATIENCE)[0]) for p in ps]
    assert sorted(got) == list(range(1, 9)) == course.versions(ann)


def in_host(course, *command):
    subprocess.run([*course.host.inside(), *command], check=True)


def test_a_full_disk_leaves_what_was_there(course, ann, session):
    in_host(course, "mount", "-t", "tmpfs", "-o", "size=256k,mode=755", "x",
            str(course.place))
    seen = Course.__new__(Course)
    seen.host, seen.home = course.host, pathlib.Path(
        f"/proc/{course.host.holder.pid}/root{course.home}")
    session.run("for n, k in ('a', 100), ('b', 200), ('c', 40):"
                " _ = open(n, 'w').write('x' * k * 1024)")
    submit(session, "a")
    said = framed(session, ":submit b")
    assert "No space left" in said and "is kept" in said, said
    assert seen.versions(ann) == [1] and seen.rest(ann) == set()
    submit(session, "c")
    assert set(seen.of(ann, 2)) == {"a", "c"}
    r = course.host.root().run("--collect", str(course.home), "-o",
                               str(course.place / "all.tar"))
    assert r.code == 1 and "tar" in r.said
    assert not list(seen.home.parent.parent.glob("all*"))
    assert not list(seen.home.parent.parent.glob(".cell*"))


# ---- hostile people ----

MALFORMED = {
    "handing.head(b'../bob/1/x', 1)": "a slash",
    "handing.head(b'/etc/passwd', 1)": "a slash",
    "handing.head(b'..', 1)": "a dot",
    "handing.head(b'.1', 1)": "a dot",
    "handing.head(b'a\\nb', 1)": "control",
    "handing.head(b'a\\xff', 1)": "control",
    "handing.head(b'x' * 256, 1)": "malformed",
    "handing.head(b'a', -1)": "malformed",
    "handing.head(b'a', 1 << 62)": "all versions together",
    "handing.head(b'a', (1 << 63) - 1)": "all versions together",
    "handing.head(b'a', 1)[:-1]": "malformed",
    "handing.head()": "no file",
    "b''": "went away",
    "b'x'": "malformed",
    "handing.head(b'a', 1), b'xy'": "more came",
    "handing.head(b'a', 100000), b'x' * 70000": "Message too long",
    "handing.head(b'a', 0), handing.head(b'a', 0)": "comes twice",
    "*[handing.head(b'%d' % i) for i in range(40)]": "at most 32",
}


def test_malformed_requests_leave_nothing(course, ann, bob):
    lines = "".join(f"print(handing.said({m}))\n" for m in MALFORMED)
    said = ann.asks(HAND + lines, timeout=120).splitlines()
    for (message, words), line in zip(MALFORMED.items(), said):
        assert words in line, (message, line)
    assert "descriptors" in (out := ann.asks(
        HAND + "print(handing.with_descriptors(handing.head(b'a', 1)))")) \
        or "kernel" in out
    assert course.versions(ann) == [] and course.rest(ann) == set()
    assert sorted(p.name for p in course.home.iterdir()) == [ann.name]
    assert "kept" in bob.asks(
        HAND + "print('kept', handing.hand_in((b'a', b'x')))")


def test_a_client_that_is_silent_holds_up_itself_alone(course, ann, bob):
    p = ann.python(HAND + """
many = [handing.begin(handing.head(b"a", 2), b"1") for _ in range(2)]
print("silent", flush=True)
print(*(handing.rows(s)[-1] for s in many))
""")
    assert p.stdout.readline() == "silent\n"
    assert "1" in bob.asks(HAND + "print(handing.hand_in((b'a', b'x'))[0][1])")
    assert ann.run("-c", "print(6 * 7)").text == "42\n"
    out, _ = p.communicate(timeout=120 * PATIENCE)
    assert "nothing came for 5 s" in out
    assert "1" in ann.asks(HAND + "print(handing.hand_in((b'a', b'x'))[0][1])")
    assert course.versions(ann) == [1] and course.rest(ann) == set()


def test_a_person_is_who_the_kernel_says(course, ann, bob):
    ann.env.update(USER=bob.name, LOGNAME=bob.name)
    s = ann.session().start()
    write(s, "a.py", "x")
    submit(s, "a.py")
    s.leave()
    assert course.versions(ann) == [1] and course.versions(bob) == []


def test_a_file_that_changes_meanwhile_is_not_handed_in(host):
    """The disk takes seconds for it, in which the thread runs on a busy host,
    too."""
    slow = hindered.slow_writes(host.dir)
    host.under = ["env", *(f"{k}={v}" for k, v in slow.items())]
    host.start()
    course, ann = Course(host), host.people[0]
    course.set("quota = 1G\n", policy=LOCKED + "[cell]\nbackground = run\n")
    s = ann.session().start()
    s.run("import threading, os")
    s.run("_ = open('a', 'wb').write(bytes(2 << 20))")
    s.enter("def change():\n    while True:\n        os.utime('a')\n")
    s.wait_prompt()
    s.run("threading.Thread(target=change, daemon=True).start()")
    said = framed(s, ":submit a")
    assert "a changed while it was copied" in said, said
    assert course.versions(ann) == []
    s.leave()


def named(path, said):
    """Whether it names this path, and not one beneath it."""
    return re.search(rf"{re.escape(str(path))}(:|can|belongs)",
                     re.sub(r"[\s¦]", "", said)) is not None


@pytest.mark.parametrize("where", ["course", "exercise", "person"])
@pytest.mark.parametrize("what", ["link", "owned", "open"])
def test_what_others_have_put_there_is_not_used(
        course, ann, session, where, what):
    write(session, "a.py", "x")
    trap = course.host.dir / "trap"
    trap.mkdir(mode=0o700)
    at = {"course": course.home.parent, "exercise": course.home,
          "person": course.home / ann.name}[where]
    at.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if what == "link":
        at.symlink_to(trap)
    else:
        at.mkdir()
        if what == "owned":
            os.chown(at, ann.uid, ann.uid)
        else:
            at.chmod(0o772)
    said = framed(session, ":submit a.py")
    words = {"link": "a link is in the way", "owned": f"to uid {ann.uid}",
             "open": "can be changed by others"}[what]
    assert words in said and named(at, said), said
    assert not list(trap.iterdir()) and (what == "link" or
                                         not list(at.iterdir()))


def test_a_place_that_is_not_mounted_is_not_made(course, ann, session):
    write(session, "a.py", "x")
    course.set(place=course.host.dir / "not-there")
    said = framed(session, ":submit a.py")
    assert "No such file" in said and \
        named(course.host.dir / "not-there", said), said
    assert not (course.host.dir / "not-there").exists()


# ---- a service that ends ----

HALF = HAND + """
s = handing.begin(handing.head(b"a.py", 4), b"12")
print("half", flush=True)
input()
handing.send(s, b"34", handing.head())
print(handing.rows(s))
"""


def half(course, ann):
    p = ann.python(HALF)
    assert p.stdout.readline() == "half\n"
    hosttree.until(lambda: ".new" in course.names(ann), "the half")
    return p


def taking(host, ann):
    """The child of the service that takes what the person hands in."""
    found = [pid for pid in host.children()
             if any(f"/{ann.name}" in to for to in hosttree.open_in(pid))]
    assert len(found) == 1, found
    return found[0]


def test_a_killed_service_ends_no_hand_in(course, ann, session):
    p = half(course, ann)
    course.host.maker.kill()
    course.host.maker.wait()
    out, _ = p.communicate("\n", timeout=60 * PATIENCE)
    assert "a.py" in out and course.of(ann, 1) == {"a.py": "1234"}
    write(session, "b.py", "x")
    said = framed(session, ":submit b.py")
    assert "nothing was handed in" in said and "/run/cellblock/maker" in said
    course.host.start()
    submit(session, "b.py")
    assert set(course.of(ann, 2)) == {"a.py", "b.py"}


def test_what_was_killed_in_the_middle_is_not_there(course, ann, session):
    p = half(course, ann)
    os.kill(taking(course.host, ann), 9)
    out, _ = p.communicate("\n", timeout=60 * PATIENCE)
    assert out == "[None]\n" and course.versions(ann) == []
    assert course.rest(ann) == {".new"}
    assert "STUDENT" in course.collect("python1/4").text
    write(session, "a.py", "x")
    submit(session, "a.py")
    assert course.of(ann, 1) == {"a.py": "x"} and course.rest(ann) == set()


def test_the_courier_ends_with_its_session(course, ann):
    def couriers():
        return {pid for pid in hosttree.mine()
                if hosttree.status_of(pid).get("Name") == "cellblock-hand"}
    before = couriers()
    s = ann.session().start()
    hosttree.until(lambda: len(couriers() - before) == 1, "the courier")
    s.leave()
    hosttree.until(lambda: not couriers() - before, "its end")


# ---- collecting ----

def test_an_archive_has_the_newest_or_all(course, ann, bob, session):
    for text in "1", "22":
        write(session, "a.py", text)
        submit(session, "a.py")
    bob.asks(HAND + "handing.hand_in((b'n .py', b'x'))")
    archive = course.host.dir / "all.tar.gz"
    r = course.collect("python1/4", "-o", archive)
    assert "2 files of 2 people" in r.text
    names = sorted([f"{ann.name}/a.py", f"{bob.name}/n .py"])
    assert subprocess.run(["tar", "tzf", archive], capture_output=True,
                          check=True, text=True).stdout.splitlines() == names
    assert archive.stat().st_mode & 0o777 == 0o600
    r = course.collect("python1/4", "-o", archive, code=1)
    assert "is there already, and stays as it is" in r.said
    every = course.host.dir / "every.tar"
    course.collect("python1/4", "-a", "-o", every)
    got = subprocess.run(["tar", "tf", every], capture_output=True, check=True,
                         text=True).stdout
    assert f"{ann.name}/1/a.py" in got and f"{ann.name}/2/a.py" in got
    course.collect("python1/4", "-o", course.host.dir / "x.zip", code=1)
    assert not list(course.host.dir.glob(".cell*"))


def test_what_cannot_be_collected_is_said(course, ann, bob, session):
    r = ann.run("--collect", str(course.home))
    assert r.code == 2 and "only root" in r.said
    for what in "python1/5", "other/4", "python1/..", course.place / "x":
        assert course.collect(what, code=2 if ".." in str(what) else 1).said
    write(session, "a.py", "x")
    submit(session, "a.py")
    bob.asks(HAND + "handing.hand_in((b'b.py', b'x'))")
    (course.home / ann.name / ".1").write_text("{")
    r = course.collect("python1/4", code=1)
    assert "b.py" in r.text and ann.name in r.said and "broken" in r.said
    assert "broken" in framed(session, ":submit a.py")
