# SPDX-License-Identifier: MIT
"""A session is charged for its warden, and for all that its warden hands
out."""
import contextlib
import pathlib
import re
import time

import pytest

import hindered
import hosttree
from makerhost import of_jails
from test_attacks import HEAD, control
from world import PATIENCE, WHOLE

MIB = 1 << 20
TOP = pathlib.Path("/sys/fs/cgroup")
HEAD += "import front, threading\n"
# A session of a tenth of a core whose front end has its warden list a full home
# for as long as it is not told to end.
LISTS = HEAD + """
f = front.Front(cpus_milli=100)
f.fill()
print('go', flush=True)
end = []
threading.Thread(target=lambda: end.append(sys.stdin.read()),
                 daemon=True).start()
n = 0
while not end:
    f.ask('FRONT_HOME_LIST')
    f.drop()
    n += 1
print(n)
"""


def wardens():
    return {pid for pid in of_jails()
            if hosttree.status_of(pid).get("Name") == "cellblock"
            and hosttree.status_of(pid).get("NSpid", "0 0").count("\t") == 0}


def await_wardens(n=1, others=()):
    """So many that are not among the others. For a moment the helper process of
    one has its name still."""
    def all_of_them():
        found = wardens().difference(others)
        return found if len(found) == n else None
    return hosttree.until(all_of_them, f"{n} wardens")


def leaf_of(pid, controller):
    """The cgroup of a process, as it is seen here."""
    text = pathlib.Path(f"/proc/{pid}/cgroup").read_text()
    v1 = re.search(rf"^\d+:(?:.*,)?{controller}(?:,.*)?:(.*)$", text, re.M)
    v2 = re.search(r"^0::(.*)$", text, re.M)
    return TOP / controller / v1[1].lstrip("/") if v1 \
        else TOP / v2[1].lstrip("/")


def jails(controller="memory"):
    """{process: its cgroup} for those in a jail."""
    found = {}
    for pid in of_jails():
        with contextlib.suppress(OSError):  # it has ended meanwhile
            found[pid] = leaf_of(pid, controller)
    return {pid: leaf for pid, leaf in found.items() if leaf.name == "jail"}


def charged(session):
    """The memory of a session's cgroup, with all that is in it."""
    for name in "memory.usage_in_bytes", "memory.current":
        with contextlib.suppress(OSError):
            return int((session / name).read_text())
    return 0


def throttled(session):
    return int(re.search(r"^nr_throttled (\d+)",
                         (session / "cpu.stat").read_text(), re.M)[1])


def test_a_warden_is_in_a_leaf_of_its_session(ann, bob):
    mine, theirs = ann.session().start(), bob.session().start()
    for s in mine, theirs:
        s.run("1")
    found = await_wardens(2)
    for controller in "memory", "pids", "cpu":
        places = {leaf_of(pid, controller) for pid in found}
        assert {p.name for p in places} == {"warden"}
        assert len({p.parent for p in places}) == 2
        # And its jail is beside it.
        assert {leaf.parent for leaf in jails(controller).values()} \
            == {p.parent for p in places}
    # The helper process of a warden follows it.
    mine.run("import time; time.sleep(0.5)")
    helpers = hosttree.until(lambda: [
        pid for pid in of_jails()
        if hosttree.status_of(pid).get("Name") == "cellblock-help"], "the helper")
    for pid in helpers:
        assert leaf_of(pid, "memory").name == "warden"
    mine.leave()
    theirs.leave()


@pytest.mark.sampled
@pytest.mark.limit(180)
def test_answers_cannot_be_hoarded(maker, ann, bob):
    """They were files of 12 MiB, made by the warden, which whoever asked kept:
    in memory that was charged to nobody, and after the session too."""
    often = 40 if WHOLE else 12
    asker = ann.python(HEAD + f"""
f = front.Front()
f.fill()
for _ in range({often}):
    f.ask('FRONT_HOME_LIST')
print(f.got, f.held(), flush=True)
sys.stdin.readline()
""")
    got, held = map(int, asker.stdout.readline().split())
    warden, = await_wardens()
    session = leaf_of(warden, "memory").parent
    # The control: they were long.
    assert got + held > (often - 1) * 11 * MIB, (got, held)
    assert held <= MIB
    assert charged(session) < 96 * MIB, session
    control(bob)
    asker.communicate("\n")
    hosttree.wait_removed(lambda: hosttree.cgroups() & {str(session)})


@pytest.mark.limit(180)
def test_who_does_not_read_an_answer_ends_no_session_but_its_own(host):
    """The warden waits, and then ends the session: unread bytes are bounded."""
    hasten = hindered.fast(host.dir)
    host.under = ["env", *(f"{name}={hasten[name]}" for name in hasten)]
    host.policy("[cell]\ntimeout = 60s\n")
    host.start()
    ann, bob = host.people
    asker = ann.python(HEAD + """
f = front.Front()
f.fill()
for _ in range(3):
    f.send('FRONT_HOME_LIST')
print('asked', flush=True)
sys.stdin.readline()
""")
    assert asker.stdout.readline() == "asked\n"
    warden, = await_wardens()
    session = leaf_of(warden, "memory").parent
    assert charged(session) < 96 * MIB
    s = bob.session().start()
    assert s.run("40 + 2").startswith("42")
    hosttree.until(lambda: warden not in wardens(), "the end of the session",
                   60)
    assert asker.poll() is None
    assert s.run("x = 5; x").startswith("5")
    s.leave()
    asker.communicate("\n")


@pytest.mark.limit(240)
def test_requests_are_paid_for_by_the_session(maker, ann):
    """A session that is idle, for all that its jail knows, has no more of the
    cores than it may have."""
    asker = ann.python(LISTS)
    assert asker.stdout.readline() == "go\n"
    warden, = await_wardens()
    session = leaf_of(warden, "cpu").parent

    def used():
        s = hosttree.stat_of(warden)
        return (int(s[11]) + int(s[12])) / hosttree.TICK
    before, begun, cpu = throttled(session), time.monotonic(), used()
    hosttree.until(lambda: throttled(session) > before + 10,
                   "the share to be used up", 60)
    # Had it all that it asks for, this would be the whole time.
    assert used() - cpu < (time.monotonic() - begun) * 0.2 + 0.2
    out, err = asker.communicate("", timeout=60 * PATIENCE)
    assert asker.returncode == 0 and int(out) > 0, err


@pytest.mark.limit(180)
def test_a_warden_over_its_memory_ends_no_session_but_its_own(maker, ann, bob):
    """Its leaf has a limit, which is lowered here: no front end gets there."""
    theirs = bob.session().start()
    theirs.run("x = 41")
    others = await_wardens()
    asker = ann.python(HEAD + """
f = front.Front()
f.fill()
f.ask('FRONT_HOME_LIST')
print('listed', flush=True)
sys.stdin.readline()
f.send('FRONT_HOME_LIST')
while True:
    f._receive()
""")
    assert asker.stdout.readline() == "listed\n"
    warden, = await_wardens(1, others)
    leaf = leaf_of(warden, "memory")
    limit, = [leaf / name for name in ("memory.limit_in_bytes", "memory.max")
              if (leaf / name).exists()]
    assert 64 * MIB < int(limit.read_text()) < 256 * MIB
    limit.write_text(str(charged(leaf) + 2 * MIB))
    out, err = asker.communicate("\n", timeout=60 * PATIENCE)
    assert "the warden is gone" in err, (out, err)
    assert theirs.run("x + 1").startswith("42")
    assert await_wardens() == others
    hosttree.wait_removed(lambda: hosttree.cgroups() & {str(leaf.parent)})
    control(ann)
    theirs.leave()


def score(pid):
    return int(pathlib.Path(f"/proc/{pid}/oom_score_adj").read_text())


def test_the_memory_of_all_costs_nobody_their_warden(maker, ann, bob):
    """The kernel kills processes in a jail first, whatever they do."""
    maker.policy("[maker]\nmemory = 160M\n")
    mine, theirs = ann.session().start(), bob.session().start()
    theirs.run("x = 41")
    mine.run("y = 5")
    found = await_wardens(2)
    inits = {pid for pid in jails()
             if hosttree.status_of(pid).get("Name") == "cellblock-init"}
    assert len(inits) == 2
    assert max(map(score, found)) + 100 <= min(map(score, inits))
    mine.run("z = b'z' * 300_000_000")
    assert await_wardens(2) == found
    assert theirs.run("x + 1").startswith("42")
    assert mine.run("y").startswith("5")
    mine.leave()
    theirs.leave()
