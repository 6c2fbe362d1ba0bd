# SPDX-License-Identifier: MIT
"""log.accounting, and what cellblock --report says of it."""
import csv
import io
import json
import os
import re
import signal
import stat
import subprocess
import time

import hosttree
import pytest

import makerhost
from makerhost import as_any_other, start
from world import PATIENCE

# In which a Python starts, and uses some of a processor.
TIMEOUT = int(4 * PATIENCE)


@pytest.fixture(name="records")
def _records(host):
    """The file, in a directory that the maker makes."""
    return host.dir / "accounts" / "of.jsonl"


def begin(host, records, spare=0, policy=""):
    start(host, spare, f"[log]\naccounting = {records}\n{policy}")


def report(host, *args):
    p = host.root().run("--report", *args)
    assert p.code == 0, p.err
    return p.text


def rows(host, *args):
    return [json.loads(line) for line in
            report(host, "--json", *args).splitlines()]


def until_rows(host, n, state="ended"):
    """So many of that state: a program's end is written after its caller has
    gone on."""
    found = []

    def enough():
        found[:] = [r for r in rows(host) if r["state"] == state]
        return len(found) >= n
    hosttree.until(enough, f"{n} rows that say {state}")
    return found


def janitors():
    return {p for p in hosttree.mine()
            if hosttree.status_of(p).get("Name") == "cellblock-janit"}


@as_any_other
def test_who_when_how_long_and_what_struck(host, records, spare):
    begin(host, records, spare, "[session]\nmemory = 128M\n"
          f"[home]\nsize = 16M\n[cell]\ntimeout = {TIMEOUT}s\ncpu = 5m\n"
          "grace = 200ms\n")
    ann, bob = host.people
    before = time.time()
    s = ann.session().start()
    s.run("import time")
    s.run("while time.process_time() < 0.2: pass")
    s.run("x = b'x' * (30 << 20)")
    s.run("time.sleep(99)", TIMEOUT + 20)
    running = rows(host)
    assert [(r["user"], r["state"], r["what"]) for r in running] == \
        [(ann.name, "runs", "session")]
    assert running[0]["cpu_ms"] is None and running[0]["uid"] == ann.uid
    assert bob.run("-c", "print(1)").out == b"1\n"
    s.leave()
    found = {r["user"]: r for r in until_rows(host, 2)}
    assert len(rows(host)) == 2
    mine, his = found[ann.name], found[bob.name]
    assert mine["struck"] == {"cell.timeout": 1}
    assert mine["cpu_ms"] >= 150, mine
    assert mine["peak_bytes"] >= 30 << 20, mine
    assert before - 2 <= mine["began_ms"] / 1000 <= mine["ended_ms"] / 1000 \
        <= time.time() + 2
    most = (time.time() - before + 2) * 1000
    assert TIMEOUT * 1000 <= mine["lasted_ms"] <= most
    assert his["what"] == "program" and his["struck"] == {}
    assert his["cpu_ms"] >= 0 and his["peak_bytes"] > 0
    table = report(host).splitlines()
    assert table[0].split() == ["USER", "WHAT", "BEGAN", "STATE", "LASTED",
                                "CPU", "MEMORY", "STRUCK"]
    assert any(re.match(ann.name[:19] + r"\S+ session +\d{4}-\d\d-\d\d "
                        r"\d\d:\d\d:\d\d ended .* cell\.timeout$", x)
               for x in table), table
    read = list(csv.DictReader(io.StringIO(report(host, "--csv"))))
    assert {(r["user"], r["state"], r["struck"]) for r in read} == {
        (ann.name, "ended", "cell.timeout"), (bob.name, "ended", "")}
    assert {int(r["cpu_ms"]) for r in read} == \
        {r["cpu_ms"] for r in found.values()}


def test_a_child_that_the_kernel_kills_for_memory_counts(host, records):
    begin(host, records, 0, "[session]\nmemory = 128M\n")
    s = host.people[0].session().start()
    said = s.run("import os; os.fork() or (bytearray(b'x') * (200 << 20), "
                 "os._exit(0)); os.wait()[1]")
    assert "memory limit: 1 process of the cell was killed" in said, said
    s.leave()
    row, = until_rows(host, 1)
    assert row["struck"] == {"session.memory": 1}


def test_the_number_of_a_session_and_where_it_came_from(host, records):
    begin(host, records)
    ann, bob = host.people
    ann.env["SSH_CONNECTION"] = "192.0.2.7 4711 192.0.2.1 22"
    s = ann.session().start()
    second = ann.session("--new").start()
    ann.run("-c", "1")
    bob.env["SSH_CONNECTION"] = "=1\x1b[31m" + "x" * 100 + " 1"
    bob.run("-c", "1")
    second.leave()
    s.leave()
    found = {(r["user"], r["what"], r["session"], r["from"])
             for r in until_rows(host, 4)}
    assert found == {(ann.name, "session", 1, "192.0.2.7"),
                     (ann.name, "session", 2, "192.0.2.7"),
                     (ann.name, "program", None, "192.0.2.7"),
                     (bob.name, "program", None, next(
                         x[3] for x in found if x[0] == bob.name))}
    hostile = next(x[3] for x in found if x[0] == bob.name)
    assert "\x1b" not in hostile and hostile.startswith("=1")
    read = list(csv.DictReader(io.StringIO(report(host, "--csv"))))
    assert sorted(r["session"] for r in read) == ["", "", "1", "2"]
    assert {r["from"][:3] for r in read} == {"192", "'=1"}


def test_nobody_but_root_reads_or_changes_the_file(host, records):
    begin(host, records)
    ann, _ = host.people
    ann.run("-c", "1")
    until_rows(host, 1)
    assert stat.S_IMODE(records.stat().st_mode) == 0o600
    assert records.stat().st_uid == records.parent.stat().st_uid == 0
    assert stat.S_IMODE(records.parent.stat().st_mode) == 0o700
    p = ann.run("--report")
    assert p.code != 0 and str(records) in p.err.decode() and p.out == b"", p.err
    # The control: the group that the administrator gives the file to.
    records.parent.chmod(0o755)
    os.chown(records, 0, ann.uid)
    records.chmod(0o640)
    assert ann.name[:15] in ann.run("--report").text


@as_any_other
def test_an_end_is_written_whatever_is_killed(host, records, spare):
    begin(host, records, spare)
    ann, bob = host.people
    s, t = ann.session().start(), bob.session().start()
    s.run("x = 1")
    t.run("x = 1")
    assert len(rows(host)) == 2
    # All processes of the jail and the warden, under a host id each.
    hosttree.send(makerhost.of_jails())
    assert len(until_rows(host, 2)) == 2
    s.wait_exit()
    t.wait_exit()
    # The front end, and then the maker while a session goes on.
    s, t = ann.session().start(), bob.session().start()
    s.run("x = 1")
    t.run("x = 1")
    hosttree.send([*hosttree.descendants(s.pid), s.pid])
    until_rows(host, 3)
    host.kill()
    assert [r["user"] for r in rows(host) if r["state"] == "runs"] == \
        [bob.name]
    t.leave()
    assert len(until_rows(host, 4)) == 4


def test_a_session_without_an_end_is_said_to_have_none(host, records):
    begin(host, records)
    ann, bob = host.people
    old = janitors()
    s = ann.session().start()
    # It takes its name beside the session, whose prompt does not wait for that.
    hosttree.until(lambda: janitors() - old, "the session's janitor")
    (mine,) = janitors() - old
    os.kill(mine, signal.SIGKILL)
    assert s.leave() == 0
    assert [r["user"] for r in until_rows(host, 1, "no end")] == [ann.name]
    assert " no end " in report(host)
    bob.run("-c", "1")
    assert [r["user"] for r in until_rows(host, 1)] == [bob.name]


def test_a_session_runs_until_its_end_is_written(host, records):
    """A janitor may be at work for minutes, as with an exam's home."""
    begin(host, records)
    old = janitors()
    s = host.people[0].session().start()
    hosttree.until(lambda: janitors() - old, "the session's janitor")
    (mine,) = janitors() - old
    os.kill(mine, signal.SIGSTOP)
    hosttree.send([*hosttree.descendants(s.pid), s.pid])
    hosttree.until(lambda: not makerhost.of_jails(), "the end of the jail")
    assert [r["state"] for r in rows(host)] == ["runs"]
    os.kill(mine, signal.SIGCONT)
    until_rows(host, 1)


def test_the_file_may_be_moved_and_the_disk_full(host, records):
    begin(host, records)
    ann, bob = host.people
    s = ann.session().start()
    hosttree.until(records.exists, "the line of the begin")
    records.rename(records.with_name(records.name + ".1"))
    s.leave()
    bob.run("-c", "1")
    assert {r["user"] for r in until_rows(host, 2)} == {ann.name, bob.name}
    assert len(records.read_text().splitlines()) == 3
    # A line that a full disk has cut does not take the next one with it.
    with open(records, "a") as f:
        f.write('{"begin":2130706')
    ann.run("-c", "1")
    p = None

    def there():
        nonlocal p
        p = host.root().run("--report", "--json")
        return p.out.count(b'"ended"') == 3
    hosttree.until(there, "three ends")
    assert p.code != 0 and "1 line is no record" in p.err.decode()


def test_a_file_that_a_student_has_made_is_not_the_record(host, records):
    """Where transcripts lie, too, all may make files."""
    records.parent.mkdir()
    records.parent.chmod(0o1733)
    ann, _ = host.people
    records.touch(0o600)
    os.chown(records, ann.uid, ann.uid)
    begin(host, records)
    assert ann.run("-c", "print(1)").out == b"1\n"
    # On a busy host a janitor may have had no name of its own yet.
    hosttree.until(lambda: not janitors() and len(host.children()) == 1, "the end")
    assert records.read_text() == ""
    # The control.
    os.chown(records, 0, 0)
    assert ann.run("-c", "print(1)").out == b"1\n"
    until_rows(host, 1)


def test_a_session_goes_on_where_the_file_cannot_be_written(host):
    begin(host, host.dir)       # a directory
    ann, _ = host.people
    assert ann.run("-c", "print(1)").out == b"1\n"


def line(**more):
    return json.dumps(more) + "\n"


def test_hostile_names_and_lines(host, records):
    records.parent.mkdir()
    name = "=cmd|'/c'!A\x1b[31m\u202e\x9b,\"\n"
    records.write_text(
        line(begin=7, at_ms=1_000_000, up_ms=5, user=name, uid=1,
             what="session", pid=1, pid_start=0)
        + "[1]\n{}\nnull\n" + "x" * 100_000 + "\n"
        + line(begin=8, at_ms="x", up_ms=[], user=5, what={})
        + line(end=9, at_ms=1, up_ms=1, cpu_ms=1, peak_bytes=1, struck={})
        + line(end=7, at_ms=2_000_000, up_ms=905, cpu_ms=61_000,
               peak_bytes=1 << 20, struck={"\x1b[2J": 2, "cell.cpu": "x"}))
    host.policy(f"[log]\naccounting = {records}\n")
    root = host.root()
    for option in (), ("--json",), ("--csv",):
        p = root.run("--report", *option)
        assert p.code != 0 and "5 lines are no record" in p.err.decode(), p.err
        assert not re.search(rb"[\x00-\x09\x0b\x0c\x0e-\x1f\x7f]|\xc2\x9b|"
                             rb"\xe2\x80\xae", p.out), p.out
    read = list(csv.DictReader(io.StringIO(
        root.run("--report", "--csv").text)))
    assert len(read) == 1 and read[0]["user"].startswith("'=cmd")
    assert read[0]["lasted_ms"] == "900" and read[0]["cpu_ms"] == "61000"


def test_since(host, records):
    records.parent.mkdir()
    now = int(time.time() * 1000)
    hour = 3_600_000
    text = ""
    for i, ago in enumerate((50, 3, 1)):
        text += line(begin=i, at_ms=now - ago * hour - 600_000, up_ms=0,
                     user=f"of-{ago}", uid=1, what="session", pid=1,
                     pid_start=0)
        text += line(end=i, at_ms=now - ago * hour, up_ms=600_000, cpu_ms=1,
                     peak_bytes=1, struck={})
    records.write_text(text)
    host.policy(f"[log]\naccounting = {records}\n")

    def users(*args):
        return [r["user"] for r in rows(host, *args)]
    at = time.strftime("%Y-%m-%d %H:%M", time.localtime(now / 1000 - 7200))
    assert users() == ["of-50", "of-3", "of-1"]
    assert users("--since", "4h") == ["of-3", "of-1"]
    assert users("--since", "3d") == ["of-50", "of-3", "of-1"]
    assert users("--since", at) == users("--since", at.replace(" ", "T")) \
        == ["of-1"]
    assert users("--since", "2100-01-01") == []
    for wrong in "yesterday", "5", "-3h", "2026-13-01", "25:00", "":
        p = host.root().run("--report", "--since", wrong)
        assert p.code == 2 and "--since wants a time" in p.err.decode(), p.err


def test_a_long_file_takes_no_more_memory(host, records):
    records.parent.mkdir()
    with open(records, "w") as f:
        for i in range(60_000):
            f.write(line(begin=i % 50, at_ms=i, up_ms=i, user="u" * 200,
                         uid=1, what="session", pid=1, pid_start=0))
            f.write(line(end=i % 50, at_ms=i, up_ms=i, cpu_ms=1,
                         peak_bytes=1, struck={}))
    host.policy(f"[log]\naccounting = {records}\n")
    command = [*host.inside(), "prlimit", "--data=16777216",
               str(host.binary), "--report"]
    p = subprocess.run(command, capture_output=True, check=False, cwd="/",
                       env=host.root().env)
    assert p.returncode == 0 and p.stdout.count(b"\n") == 60_001, p.stderr
    assert len(p.stdout) > 1 << 20


def test_without_the_key_there_is_no_file(host):
    begin_without = host.root().run("--report")
    assert begin_without.code != 0
    assert "log.accounting names it" in begin_without.err.decode()
