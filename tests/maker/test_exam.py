# SPDX-License-Identifier: MIT
"""An exam: a group between two times of the host's clock, and a student who
tries what a student may try."""
import os
import re
import time

import pytest

import hosttree
from exams import Exam, begin, soon
from makerhost import as_any_other
from world import PATIENCE


@pytest.fixture(name="exam")
def _exam(host):
    return Exam(host, lab="")


WAYS = [("-c", "print(1)"), ("-e", "1"), ("-q",), ("--attach",), ("--eval",),
        ("--mcp",), ("-",)]


@pytest.mark.parametrize("times,said", [
    ((3600, 7200), b"the exam begins at"), ((-7200, -3600),
                                            b"the exam ended at")])
def test_nothing_is_run_before_it_or_after_it(host, exam, times, said):
    begin(host)
    ann, bob = host.people
    exam.set(*times)
    for way in WAYS:
        p = ann.run(*way, stdin=b"print(1)")
        assert p.code == 78 and said in p.err, (way, p)
        assert b"this host's clock says" in p.err and b"1\n" != p.out
    s = ann.session()
    assert s.wait_exit() == 78
    assert said.decode() in s.all_text()
    # Over ssh.
    for command in "print(1)", "attach 1", "scp -t .":
        p = ann.run("--login", env={"SSH_ORIGINAL_COMMAND": command})
        assert p.code != 0 and said in p.err, (command, p)
    # The controls: another group, and its time.
    assert bob.run("-c", "print(1)").out == b"1\n"
    exam.set(-60, 3600)
    assert ann.run("-c", "print(1)").out == b"1\n"


def test_the_maker_refuses_whatever_the_client_believes(host, exam):
    begin(host)
    ann, bob = host.people
    exam.set(3600, 4 * 3600)
    said = ann.asks("import order; print(order.ask(order.order()))")
    assert "the exam begins at" in said
    # A time zone of the person's own moves the client's clock alone.
    p = ann.run("-c", "print(1)", env={"TZ": "XXX-2"})
    assert p.code == 78 and p.out == b"" and b"the exam begins at" in p.err
    assert "the exam" not in bob.asks(
        "import order; print(order.ask(order.order()))")


def test_the_prompt_says_how_much_time_is_left(host, exam):
    begin(host)
    ann, bob = host.people
    more = '[terminal]\nprompt = "{left} >>> "\n'
    exam.set(-60, 90 * 60 - 10, more)
    s = ann.session(prompt="90 min >>> ").start()
    assert s.run("6 * 7") == "42"
    host.policy(more, f"groups/{bob.name}.conf")
    assert bob.session(prompt=" >>> ").start().run("6 * 7") == "42"


def test_a_prompt_that_waits_says_anew_how_much_is_left(host, exam):
    """The person gets a notice, and keeps the typed text."""
    begin(host)
    ann, _ = host.people
    # For six seconds the tenth minute counts as begun already.
    exam.set(-60, 10 * 60 + 6 + soon(10),
             '[terminal]\nprompt = "{left} >>> "\n')
    s = ann.session("-q", prompt="11 min >>> ").start()
    s.type("6 *")
    s.expect("the exam ends in 10 min", 80)
    s.expect(r"^10 min >>> 6 \*")
    s.type(" 7\r")
    s.expect("^42$")


def test_the_end_of_the_day_is_shown(host):
    begin(host)
    ann, _ = host.people
    ends = time.localtime(time.time() + 7200)
    host.policy("[policy]\nlocked = yes\n[session]\nuntil = "
                + time.strftime("%H:%M\n", ends))
    s = ann.session().start()
    assert re.search(time.strftime(r"until (today|\w+day) %H:%M", ends),
                     " ".join(s.all_text().split()))
    assert re.search(time.strftime(r"until +%H:%M ", ends), s.run(":limits"))
    s.leave()
    # The control.
    host.policy("")
    s = ann.session().start()
    assert "until" not in s.run(":limits") and "until" not in s.all_text()
    s.leave()


@as_any_other
def test_no_order_outlasts_it(host, exam, spare):
    begin(host, spare)
    exam.set(-60, soon(8))
    out = host.people[0].asks("""
import order
sessions = []
for mode in 0, 1, 2:
    ok, s = order.ask(order.order(mode=mode, until_s=1 << 40,
                                  cell_wall_ms=60000))
    assert ok, s
    sessions.append(s)
for s in sessions:
    s.setblocking(True)
    while s.recv(1 << 16):
        pass
    print('over')
ok, s = order.ask(order.order(until_s=1 << 40))
assert not ok and 'the exam ended' in s, s
""")
    assert out == "over\n" * 3


@as_any_other
def test_all_ends_with_it(host, exam, spare):
    begin(host, spare)
    ann, bob = host.people
    exam.set(-60, soon(14))
    busy, left, other = ann.session().start(), ann.session("--new").start(), \
        bob.session().start()
    busy.expect(r"exam: 1 min left, until \d{4}-")
    program = ann.popen("-c", "import time; time.sleep(3600)")
    left.run("x = 1")
    left.type(":detach\r")
    left.expect("goes on for")
    busy.type("import time; time.sleep(99)\r")
    busy.expect(r"the exam ends in \d+ s, and this session with it")
    busy.expect("the exam has ended")
    busy.wait_exit()
    assert program.wait(timeout=60 * PATIENCE) != 0
    assert b"the exam has ended" in program.stderr.read()
    hosttree.until(lambda: ann.run("--sessions", "--json").text.strip()
                   in ("", "[]"), "no sessions")
    assert ann.run("-c", "1").code == 78
    other.run("y = 2")
    assert other.leave() == 0


@as_any_other
@pytest.mark.limit(240)
def test_all_ends_at_a_time_of_the_day(host, spare):
    """The next full minute: cells, sessions that were left, and programs. What
    begins then has until the next day."""
    begin(host, spare)
    ann, bob = host.people
    ends = (time.time() + soon(25)) // 60 * 60 + 60
    host.policy("[cell]\ntimeout = 5m\ncpu = 5m\n[policy]\nlocked = yes\n"
                "[session]\nmaker = require\nuntil = "
                + time.strftime("%H:%M", time.localtime(ends)) + "\n")
    busy, left = ann.session().start(), ann.session("--new").start()
    program = bob.popen("-c", "import time; time.sleep(3600)")
    left.run("x = 1")
    left.type(":detach\r")
    left.expect("goes on for")
    busy.expect(r"the session ends in \d+ (min|s), as all do at that time")
    busy.type("import time; time.sleep(3600)\r")
    hosttree.until(lambda: program.poll() is not None, "its end", 120)
    assert time.time() >= ends
    assert b"all sessions end at this time of day" in program.stderr.read()
    busy.expect("all sessions end at this time of day")
    busy.wait_exit()
    hosttree.until(lambda: ann.run("--sessions", "--json").text.strip()
                   in ("", "[]"), "no sessions")
    assert ann.run("-c", "print(1)").out == b"1\n"
    for looser in "", "23:59", "23:58":
        p = ann.run("-s", f"session.until={looser}", "-c", "print(1)")
        same = looser == time.strftime("%H:%M", time.localtime(ends))
        assert same or (p.code == 2 and p.out == b""), p


def test_the_first_notice_comes_ten_minutes_before(host, exam):
    begin(host)
    ann, _ = host.people
    exam.set(-60, 9 * 60)
    s = ann.session("-q").start()
    s.expect(r"exam: 9 min left, until .* all that you type is recorded")
    s.expect("the exam ends in 9 min")
    assert s.run("1 + 1") == "2"
    s.leave()


def test_a_session_from_before_ends_when_its_person_comes(host, exam):
    begin(host)
    ann, _ = host.people
    s = ann.session().start()
    s.run("cheat = 41")
    s.type(":detach\r")
    s.expect("goes on for")
    # A second later, so that it did not begin in the exam's first.
    time.sleep(1.1)
    exam.set(0, 3600)
    hosttree.until(lambda: ann.run("-c", "print(1)").code == 0, "the exam")
    s = ann.session().start()
    assert "NameError" in s.run("cheat")
    assert "your session" not in s.all_text()
    s.leave()


def test_a_student_who_tries_everything(host, exam):
    begin(host)
    ann, _ = host.people
    (exam.folder / "task.txt").write_text("the task")
    notes = ann.home / "notes.txt"
    notes.write_text("learnt by heart")
    os.chown(notes, ann.uid, ann.uid)
    history = ann.home / ".local/state/cellblock"
    history.mkdir(parents=True, mode=0o700)
    (history / "history").write_text("yesterday = 'solved'\n")
    for p in (ann.home / ".local", ann.home / ".local/state", history,
              history / "history"):
        os.chown(p, ann.uid, ann.uid)
    exam.set(-60, 3600)
    # Options that are looser than the exam's file.
    for option in (("-s", "exam.end=2099-01-01 10:00"),
                   ("-s", "exam.begin=2000-01-01 10:00"),
                   ("-s", "exam.end="), ("-s", "policy.locked=no"),
                   ("-s", "log.transcript="), ("-s", "session.maker=off"),
                   ("-s", f"files.upload_from={ann.home}"),
                   ("-s", "files.download_to=/tmp")):
        p = ann.run(*option, "-c", "print(1)")
        assert p.code in (2, 78) and p.out == b"", (option, p)
    own = ann.home / ".config/cellblock"
    own.mkdir(parents=True)
    for text in "[exam]\nend = 2099-01-01 10:00\n", \
            "[log]\ntranscript =\n", "[policy]\nlocked = no\n":
        (own / "cellblock.conf").write_text(text)
        for p in ann.home / ".config", own, own / "cellblock.conf":
            os.chown(p, ann.uid, ann.uid)
        p = ann.run("-c", "print(1)")
        assert p.code == 78 and p.out == b"", (text, p)
    (own / "cellblock.conf").unlink()
    s = ann.session("-q", "-s", "terminal.history=yes").start()
    # (fewer, where what was refused has taken minutes)
    s.expect(r"exam: (5\d|60) min left|exam: 1 h left")
    s.run(f":upload {exam.folder}/task.txt")
    assert s.run("open('task.txt').read()") == "'the task'"
    for line in (f":upload {notes}", ":upload /etc/passwd",
                 f":download task.txt {ann.home}",
                 f":upload {exam.folder}/../home/notes.txt"):
        s.run(line)
    s.run(f"import os; os.listdir({str(exam.transcripts)!r})")
    s.expect("FileNotFoundError")
    assert s.run("sorted(os.listdir())") == "['task.txt']"
    assert not (ann.home / "task.txt").exists()
    s.type("\x12yester")
    s.expect("no match: yester")
    s.type("\x03\x03")
    s.wait_prompt()
    # A transcript is whole when anything is killed.
    s.run("answer = 6 * 7; answer")
    s.run("import signal; print('before the end')")
    s.run("os.kill(os.getpid(), signal.SIGKILL)")
    s.run("last = 'words'; last")
    hosttree.send([*hosttree.descendants(s.pid), s.pid])
    # The output that was shown is on its way to a process of root's.
    hosttree.until(lambda: "the front end has gone" in exam.written().split(
        "last = 'words'")[-1], "the end of the transcript")
    text = exam.written()
    for said in ("answer = 6 * 7; answer", "\n42\n", "before the end",
                 "last = 'words'; last", "\n'words'\n", ":upload /etc/passwd",
                 f"session 1 of {ann.name}"):
        assert said in text, (said, text)


@pytest.mark.parametrize("text,said", [
    ("begin = 2026-12-01 09:00", "exam.begin: expected exam.end, too"),
    ("end = 2026-12-01 09:00", "exam.end: expected exam.begin, too"),
    ("begin = 2026-12-01 09:00\nend = 2026-12-01 09:00",
     "exam.end: expected a time behind exam.begin"),
    ("begin = 9:00\nend = 2026-12-01 09:00", "a local time such as"),
    ("begin = 2026-02-31 09:00\nend = 2026-12-01 09:00",
     "a local time such as"),
    ("begin = 2026-12-01 09:00\nend = 2026-12-01 11:00",
     "expected policy.locked = yes")])
def test_times_that_are_none_are_errors(host, text, said):
    ann, bob = host.people
    host.policy(f"[exam]\n{text}\n", f"groups/{ann.name}.conf")
    p = ann.run("-c", "print(1)")
    assert p.code == 78 and said in p.err.decode() and p.out == b"", p
    assert bob.run("-c", "print(1)").out == b"1\n"
