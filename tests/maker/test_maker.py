# SPDX-License-Identifier: MIT
"""Sessions that root's maker makes for ordinary people."""
import ctypes
import json
import pathlib
import re
import subprocess

import hosttree
import pytest
from makerhost import JAIL_UIDS, logged, of_jails


def rows(ended):
    return {row["what"]: row for row in json.loads(ended.text)["checks"]}


def test_an_ordinary_persons_limits_are_the_kernels(ann):
    with_it = rows(ann.run("--check", "--json"))
    control = rows(ann.run("-s", "session.maker=off", "--check", "--json"))
    for what in ("cgroup", "memory", "cores", "cell CPU", "stopping", "inodes",
                 "user's counts"):
        assert with_it[what]["strength"] == "strong", with_it[what]
        assert control[what]["strength"] != "strong", control[what]


def test_limits_says_so_in_a_session(ann):
    s = ann.session().start()
    s.run("x = 41")
    assert "42" in s.run("x + 1")
    assert re.search(r"memory.*cgroup v[12]", s.run(":limits"))
    s.leave()


def test_its_program_stays_in_memory(maker):
    """However much memory sessions use up. A login that needs a dropped page would
    wait until the page is read again."""
    size = {k: int(v.split()[0]) for k, v in
            hosttree.status_of(maker.maker.pid).items() if k.startswith("Vm")}
    if not size["VmLck"] and ctypes.CDLL(None).mlockall(1) < 0:
        pytest.skip("root may lock no memory here")
    assert size["VmLck"] >= size["VmExe"] + size["VmLib"] > 0, size


# To fill hundreds of MiB takes long where others have the processors.
PATIENT = "[cell]\ntimeout = 60s\n"


def test_the_cgroup_holds_the_memory(maker, ann):
    maker.policy(PATIENT)
    r = ann.run("-c", "x = b'x' * 700_000_000")
    assert r.code == 137 and "memory limit: 512 MiB" in r.said, r
    r = ann.run("-M", "64M", "-c", "x = b'x' * 100_000_000")
    assert r.code == 137 and "memory limit: 64 MiB" in r.said, r
    assert ann.run("-M", "64M", "-c", "print(len(b'x' * 10_000_000))").code \
        == 0


def test_each_session_has_a_host_id_of_its_own(maker, ann):
    s, t = ann.session().start(), ann.session().start()
    hosttree.until(lambda: len(logged(maker)) == 2, "two lines of the log")
    assert len(set(logged(maker))) == 2
    for name, uid, host_id in logged(maker):
        assert name == ann.name and int(uid) == ann.uid
        assert int(host_id) in JAIL_UIDS
    s.leave()
    t.leave()


def test_a_session_leaves_nothing(ann):
    before, cgroups = of_jails(), hosttree.cgroups()
    s = ann.session().start()
    hosttree.until(lambda: of_jails() - before, "the session's processes")
    s.run("import os; os.fork()")
    s.leave()
    hosttree.until(lambda: not of_jails() - before, "their end")
    hosttree.wait_removed(lambda: hosttree.new_cgroups(cgroups))


def test_other_hosts_see_no_session_of_an_earlier_person(host):
    """A host id may be locked again at once: by that nobody sees that the session
    of before, whose file is there still, has ended."""
    shared = host.dir / "hosts"
    shared.mkdir(mode=0o755)
    few = range(JAIL_UIDS[0], JAIL_UIDS[0] + 16)
    host.policy(f"[maker]\nhosts = {shared}\n[jail]\nuids = {few[0]}-{few[-1]}\n")
    host.start()
    hosttree.until(lambda: list(shared.glob("*/.host")), "the herald")
    own, = shared.iterdir()
    for i in few:
        (own / f"{i}.gone").touch()
    ann = host.people[0]
    s = ann.session().start()
    hosttree.until(lambda: list(own.glob(f"*.{ann.name}")), "its file")
    begun, = own.glob(f"*.{ann.name}")
    assert not begun.with_suffix(".gone").exists()
    s.leave()


def test_a_person_may_have_a_long_name(host):
    """As those of a directory service have it, with the domain."""
    shared = host.dir / "hosts"
    shared.mkdir(mode=0o755)
    ann = host.people[0]
    name = ann.name + "@" + "department.of." * 8 + "example"
    accounts = host.dir / "passwd"
    accounts.write_text(pathlib.Path("/etc/passwd").read_text().replace(
        f"\n{ann.name}:", f"\n{name}:"))
    subprocess.run([*host.inside(), "mount", "--bind", str(accounts),
                    "/etc/passwd"], check=True)
    host.policy(f"[maker]\nhosts = {shared}\n")
    host.start()
    s = ann.session().start()
    hosttree.until(lambda: list(shared.glob("*/[1-9]*")), "its file")
    path, = shared.glob("*/[1-9]*")
    assert path.name.partition(".")[2] == name
    assert (name, str(ann.uid)) in [m[:2] for m in logged(host)]
    s.leave()


def test_what_is_stricter_is_kept_to(ann):
    r = ann.run("-t", "300ms", "-c", "while True: pass")
    assert r.code == 137 and "300" in r.said, r
    r = ann.run("-s", "session.processes=5", "-c",
                "import threading as t\n"
                "for _ in range(40): t.Thread(target=t.Event().wait,"
                " daemon=True).start()")
    assert r.code != 0 and b"start new thread" in r.err, r


def test_who_wants_more_and_may_has_it_without_the_maker(maker, ann):
    maker.policy(PATIENT)
    r = ann.run("-M", "1G", "-c", "print(len(b'x' * 600_000_000))")
    assert r.code == 0 and r.said == "", r
    (ann.home / "place").mkdir()
    for option in ("python.env.A=b", f"jail.expose={ann.home}/place"):
        assert ann.run("-s", option, "-c", "1").code == 0
    assert logged(maker) == []
    assert ann.run("-c", "1").code == 0
    hosttree.until(lambda: len(logged(maker)) == 1, "the control's session")
