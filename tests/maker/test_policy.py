# SPDX-License-Identifier: MIT
"""The administrator's files about root's maker of sessions."""
import fcntl
import os
import re
import signal
import subprocess

import pytest

import deadserver
import hosttree
import term
from makerhost import made, of_jails, start
from world import PATIENCE, WHOLE

LOCKED = "[policy]\nlocked = yes\n"


def test_without_a_maker_sessions_are_made_as_ever(host):
    ann = host.people[0]
    r = ann.run("-c", "print(1)")
    assert r.code == 0 and r.said == "", r


@pytest.mark.parametrize("policy", ["", LOCKED])
def test_require_starts_nothing_without_one(host, policy):
    ann = host.people[0]
    host.policy(f"[session]\nmaker = require\n{policy}")
    r = ann.run("-c", "print(1)")
    assert r.code == 125 and r.text == "" and "/run/cellblock/maker" in r.said
    host.start()
    assert ann.run("-c", "print(1)").text == "1\n"


FRONTS = {"--eval": b'{"input": "print(1)"}\n', "--mcp": b"",
          "--serve": b""}


def argv_of(front):
    return [front, "127.0.0.1:0"] if front == "--serve" else [front]


@pytest.mark.parametrize("front", FRONTS)
def test_require_binds_what_makes_its_own_jails(host, front):
    ann, argv, text = host.people[0], argv_of(front), FRONTS[front]
    for policy in "", LOCKED:
        host.policy(f"[session]\nmaker = require\n{policy}")
        r = ann.run(*argv, stdin=text)
        assert (r.code, r.text) == (125, ""), r
        assert front in r.said and "session.maker = require" in r.said, r
    # Not even where there is a maker, and a locked word stays.
    host.start()
    assert ann.run("-c", "print(1)").text == "1\n"
    assert ann.run(*argv, stdin=text).code == 125
    for looser in "auto", "off":
        r = ann.run("-s", f"session.maker={looser}", *argv, stdin=text)
        assert (r.code, r.text) == (2, "") and "session.maker" in r.said, r
    host.policy("")
    r = ann.run("-s", "session.maker=require", *argv, stdin=text)
    assert (r.code, r.text) == (125, ""), r


def test_require_does_not_bind_root_or_who_is_not_told(host):
    ann = host.people[0]
    assert '"1\\n"' in ann.run("--eval", stdin=FRONTS["--eval"]).text
    assert ann.run("--mcp").code == 0
    host.policy("[session]\nmaker = require\n")
    for front in "--eval", "--mcp":
        p = subprocess.run([*host.inside(), str(host.binary), front],
                           input=FRONTS[front], capture_output=True,
                           check=False, timeout=60 * PATIENCE, cwd="/")
        assert p.returncode == 0, p
        assert front == "--mcp" or b'"1\\n"' in p.stdout, p


def test_require_allows_nothing_that_the_maker_does_not(maker, ann):
    r = ann.run("-s", "session.maker=require", "-M", "1G", "-c", "print(1)")
    assert r.code == 78 and r.text == "" and "session.memory" in r.said, r


@pytest.mark.parametrize("locked", [True, False])
def test_a_maker_that_is_gone_is_fatal_when_locked(maker, ann, locked):
    maker.policy(LOCKED if locked else "")
    maker.kill()
    r = ann.run("-c", "print(1)")
    assert ("Connection refused" in r.said) == locked, r
    assert (r.code, r.text) == ((125, "") if locked else (0, "1\n")), r


@pytest.mark.parametrize("locked", [True, False])
def test_a_socket_out_of_reach_is_fatal_when_locked(maker, ann, locked):
    maker.policy(LOCKED if locked else "")
    os.chmod(f"/proc/{maker.holder.pid}/root/run/cellblock", 0o700)
    r = ann.run("-c", "print(1)")
    assert "Permission denied" in r.said, r
    assert (r.code, r.text) == ((125, "") if locked else (0, "1\n")), r


GONE = """
import os, socket
os.unlink("/run/cellblock/maker")
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.bind("/run/cellblock/maker")
os.chmod("/run/cellblock/maker", 0o666)
s.listen()
print("listens", flush=True)
while True:
    c = s.accept()[0]
    c.recv(4096)
    c.close()
"""


@pytest.mark.parametrize("locked", [True, False])
def test_a_session_whose_maker_goes_is_made_without_it_or_leaves_nothing(
        maker, ann, locked):
    maker.policy(LOCKED if locked else "")
    maker.kill()
    fake = subprocess.Popen([*maker.inside(), "/usr/bin/python3", "-c", GONE],
                            stdout=subprocess.PIPE)
    try:
        assert fake.stdout.readline() == b"listens\n"
        s = ann.session()
        if locked:
            assert s.wait_exit() == 125
        else:
            s.start()
            assert s.run("6 * 7") == "42"
            row = s.enter("import time; print(6 * 9)\n"
                          "while True: time.sleep(.1)\n")
            s.expect_since(row, "^54")
            s.type("\x03")
            s.expect_since(row, "KeyboardInterrupt")
            s.wait_prompt()
        assert "the maker is gone" in s.all_text()
        assert ("is made without the" in s.all_text()) == (not locked)
        sockets = [p for p in ann.home.rglob("*") if p.is_socket()]
        assert bool(sockets) == (not locked), sockets
    finally:
        fake.kill()
        fake.communicate()


def test_a_login_asks_as_anybody(maker, ann):
    maker.policy(LOCKED + "[session]\nmaker = require\n")
    for argv0, args in (("-cellblock", ()), ("cellblock", ("--login",))):
        r = ann.run(*args, argv0=argv0, stdin=b"import os; print(6 * 7)",
                    env={"SSH_ORIGINAL_COMMAND": ""})
        assert r.code == 0 and "42" in r.text, r
    hosttree.until(lambda: len(made(maker)) >= 2, "the log")
    assert len(made(maker)) == 2


def test_a_locked_person_may_be_stricter_and_not_looser(maker, ann):
    maker.policy(LOCKED + "[session]\nmemory = 256M\nmaker = require\n")
    r = ann.run("-M", "128M", "-c", "x = b'x' * 150_000_000")
    assert r.code == 137 and "128 MiB" in r.said, r
    assert ann.run("-M", "257M", "-c", "1").code == 2
    r = ann.run("-s", "jail.require=memory cpus", "-c", "print(1)")
    assert r.code == 0, r


def has_place(person):
    """A session that has a place: the first prompt may come before the jail."""
    s = person.session().start()
    s.run("1")
    return s


def test_sessions_of_a_person_are_counted(maker, ann, bob):
    maker.policy(LOCKED + "[session]\nper_user = 2\n")
    first, _ = has_place(ann), has_place(ann)
    # Counted by the maker: another place for the count of the front end.
    r = ann.run("-c", "1", env={"XDG_STATE_HOME": "/nowhere"})
    assert r.code == 75 and "2 sessions already" in r.said, r
    assert bob.run("-c", "1").code == 0
    first.leave()
    hosttree.until(lambda: ann.run("-c", "1").code == 0, "a free place")


def test_those_of_all_persons_are_counted(maker, ann, bob):
    maker.policy("[maker]\nsessions = 2\n")
    has_place(ann)
    last = has_place(bob)
    r = bob.run("-c", "1")
    assert r.code == 75 and "maker.sessions = 2" in r.said, r
    last.leave()
    hosttree.until(lambda: bob.run("-c", "1").code == 0, "a free place")


@pytest.mark.parametrize("file", [False, True])
def test_a_refusal_is_all_that_is_said(maker, ann, bob, file):
    """The skeleton is put into the home while the maker still decides."""
    skeleton = maker.dir / "skeleton"
    skeleton.mkdir()
    skeleton.chmod(0o755)
    (skeleton / "notes.txt").write_text("welcome\n")
    maker.policy(f"[home]\nskeleton = {skeleton}\n[maker]\nsessions = 1\n")
    program = bob.home / "prog.py"
    program.write_text("print(open('notes.txt').read())")
    program.chmod(0o644)
    what = [str(program)] if file else ["-c", program.read_text()]
    assert bob.run(*what).text == "welcome\n\n"
    hosttree.until(lambda: not of_jails(), "its end")
    has_place(ann)
    for _ in range(3):
        r = bob.run(*what)
        assert r.code == 75 and r.said.startswith("cellblock: this host has"), r
        assert "gone" not in r.said, r


def all_memory():
    """The kernel's limit on all sessions together; None: there is none."""
    found = [p for p in ("/sys/fs/cgroup/memory/cellblock/"
                         "memory.limit_in_bytes",
                         "/sys/fs/cgroup/cellblock/memory.max")
             if os.path.exists(p)]
    assert found
    with open(found[0]) as f:
        text = f.read().strip()
    return None if text == "max" or int(text) > 1 << 60 else int(text)


@pytest.mark.parametrize("again", [False, True])
def test_all_sessions_together_have_a_limit(maker, ann, again):
    maker.policy("[maker]\nmemory = 900G\n")
    s = ann.session().start()
    s.run("1")
    assert all_memory() == 900 << 30
    # Without the key the next session goes without.
    maker.policy("")
    if again:
        maker.kill(signal.SIGTERM)
        maker.start()
    assert ann.run("-c", "print(1)").text == "1\n"
    assert all_memory() is None
    s.leave()


HOG = "x = bytearray(b'x') * (300 << 20)"


@pytest.fixture(name="tight")
def _tight(maker):
    """All sessions have less together than one of them may have."""
    maker.policy("[maker]\nmemory = 200M\n")
    yield maker
    maker.policy("")    # and no neighbour of a later test pays for it
    maker.people[0].run("-c", "1")


def test_the_limit_of_all_is_not_said_to_be_the_sessions(tight, ann):
    s = ann.session().start()
    said = s.run(HOG)
    assert "no memory is left for all sessions together · killed" in said, said
    assert "peak" in said and "memory limit" not in said
    assert "within its limit" in re.sub(r"\s+", " ", s.run(":explain"))
    # The control: its own limit.
    s.leave()
    s = ann.session("-M", "100M").start()
    assert "memory limit: 100 MiB" in s.run(HOG)
    s.leave()
    r = ann.run("-c", HOG)
    assert r.code == 137 and "no memory is left for all" in r.said, r
    assert "session.memory" not in r.said and "memory limit" not in r.said
    r = ann.run("-M", "100M", "-c", HOG)
    assert r.code == 1 and "MemoryError" in r.said or \
        "memory limit: 100 MiB" in r.said, r


@pytest.mark.parametrize("own", ["2G", "131M"], ids=["far", "near"])
def test_a_session_that_ends_for_the_limit_of_all_says_so(tight, ann, bob, own):
    """The largest goes first, and that may be one that waits for its person, and is
    near its own limit."""
    tight.policy(f"[maker]\nmemory = 200M\n[session]\nmemory = {own}\n")
    theirs, mine = ann.session().start(), bob.session().start()
    theirs.run("x = bytearray(b'x') * (120 << 20)")
    mine.run("y = bytearray(b'y') * (110 << 20)")

    def said():
        return re.sub(r"[\s¦]+", " ", theirs.all_text())
    theirs.wait(lambda: "Python died " in said(), "the end of Python")
    assert "no memory is left for all sessions together: " in said(), said()
    assert "of the session w" in said()
    mine.leave()
    theirs.leave()


def test_the_maker_is_for_root(maker, ann):
    r = ann.run("--maker")
    assert r.code == 2 and "only root" in r.said, r


def test_a_second_maker_does_not_take_the_first_ones_place(maker, ann):
    before = of_jails()
    second = subprocess.run(
        [*maker.inside(), str(maker.binary), "--maker"],
        timeout=30 * PATIENCE,
        capture_output=True, check=False)
    assert second.returncode == 1
    assert b"another server answers there" in second.stderr
    assert ann.run("-c", "1").code == 0
    hosttree.until(lambda: not of_jails() - before, "its end")


def test_the_last_child_of_a_dead_maker_is_waited_for(host):
    with deadserver.at("/run/cellblock/maker", "SOCK_SEQPACKET", 1,
                       *host.inside()):
        host.start()
        assert host.people[0].run("-c", "1").code == 0


def test_programs_of_one_person_leave_room_for_others(maker, ann, bob):
    """An unlocked person's programs do not count as sessions. They hold no more
    than a part of what the host has all the same."""
    maker.policy("[session]\nper_user = 1\n[maker]\nsessions = 8\n")
    holder = ann.python("""
import order, sys
held = [order.ask(order.order(per_user=1)) for _ in range(12)]
print(all(made for made, _ in held), flush=True)
sys.stdin.read()
""")
    assert holder.stdout.readline() == "True\n"
    hosttree.until(lambda: maker.said().count("host id") >= 2, "two of them")
    r = ann.run("-c", "print(1)")
    assert r.code == 75 and "2 sessions and programs already" in r.said, r
    assert "maker.sessions = 8" in r.said, r
    assert bob.run("-c", "print(1)").text == "1\n"
    holder.communicate("")
    hosttree.until(lambda: ann.run("-c", "1").code == 0, "a free place")


# ---- one after the other ----

IN_A_ROW = 60 if WHOLE else 5
SESSIONS_IN_A_ROW = 15 if WHOLE else 2
ONE = LOCKED + "[session]\nper_user = 1\n"
LOOP = """n=0
while [ $n -lt $0 ]; do
    "$@" </dev/null >/dev/null || { echo "number $n: status $?"; exit 1; }
    n=$((n + 1))
done"""

SESSIONS = """n=0
while [ $n -lt $0 ]; do
    "$1" --new || exit 1
    n=$((n + 1))
done"""


def in_a_row(person, *argv):
    """A shell runs the command so often, each as soon as the last has ended."""
    p = subprocess.run(person.argv("sh", "-c", LOOP, str(IN_A_ROW), *argv),
                       env=person.env, cwd="/", capture_output=True, text=True,
                       timeout=100 * PATIENCE, check=False)
    assert p.returncode == 0, (p.stdout, p.stderr)


CHILD = "import os, time\nif os.fork() == 0: time.sleep(100)"


@pytest.mark.sampled(2)
@pytest.mark.parametrize("spare, args", [
    (1, ("-c", "pass")), (0, ("-c", "pass")), (0, ("-e", "1")),
    (1, ("-e", "1")), (1, ("-c", CHILD)), (0, ("-c", CHILD))])
def test_programs_of_the_maker_in_a_row_are_one_at_a_time(host, spare, args):
    ann, _ = start(host, spare, ONE)
    in_a_row(ann, str(host.binary), *args)
    hosttree.until(lambda: len(made(host)) >= IN_A_ROW, "the log")
    assert len(made(host)) == IN_A_ROW


# With its own end, by a limit, by its reader, by a signal to the front end.
ENDS = ["exit 7", "timeout", "memory", "reader", "signal"]
ENDED = {
    "exit 7": ("-c", "import sys; sys.exit(7)"),
    "timeout": ("-t", "0.2", "-c", "while True: pass"),
    "memory": ("-M", "32M", "-c", "x = bytearray(1 << 30)\nx[:] = x"),
    "reader": ("-c", "while True: print('x' * 1000)"),
    "signal": ("-c", "print('on', flush=True)\nwhile True: pass")}
# The signal comes when the program runs: before it does, nobody waits for what
# the maker still makes.
COMMANDS = {"reader": "{ \"$@\"; echo $? >&3; } | head -c 1 >/dev/null",
            "signal": """{ sh -c 'echo $$; exec "$@"' sh "$@"; echo $? >&3; } |
    { read pid; read on; kill -INT $pid; cat; }"""}
AGAIN = """exec 3>&1 >/dev/null 2>&1 </dev/null
n=0
while [ $n -lt $0 ]; do
    n=$((n + 1))
    %s
done"""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("spare", [0, 1])
@pytest.mark.parametrize("how", ENDS)
def test_a_place_is_free_however_the_program_has_ended(host, spare, how):
    ann, _ = start(host, spare, ONE)
    command = COMMANDS.get(how, '"$@"; echo $? >&3')
    p = subprocess.run(
        ann.argv("sh", "-c", AGAIN % command, str(IN_A_ROW),
                 str(host.binary), *ENDED[how]),
        env=ann.env, cwd="/", capture_output=True, text=True,
        timeout=100 * PATIENCE, check=False)
    codes = p.stdout.split()
    assert len(codes) == IN_A_ROW and "75" not in codes, codes


@pytest.mark.parametrize("spare", [0, 1])
def test_two_at_a_time_are_never_three(host, spare):
    """As root grades submissions: xargs begins one as soon as one has ended."""
    start(host, spare, LOCKED + "[session]\nper_user = 2\n")
    p = subprocess.run(
        [*host.inside(), "sh", "-c",
         'seq $0 | xargs -P2 -I{} "$1" -c "print({})"', str(4 * IN_A_ROW),
         str(host.binary)], cwd="/", capture_output=True, text=True,
        timeout=100 * PATIENCE, check=False)
    assert p.returncode == 0, (p.returncode, p.stderr)
    assert sorted(map(int, p.stdout.split())) == list(
        range(1, 4 * IN_A_ROW + 1))


def pythons():
    """Those that run in jails of these tests."""
    return {pid for pid in of_jails()
            if hosttree.status_of(pid).get("Name") == "python3"}


def test_a_place_is_kept_as_long_as_the_home(host):
    """The program is over, and its front end is not: nobody reads."""
    ann, _ = start(host, 0, ONE)
    p = ann.popen("-c", "print('x' * 100_000, end='')")
    assert os.read(p.stdout.fileno(), 1) == b"x"
    hosttree.until(lambda: not pythons(), "the program's end")
    r = ann.run("-c", "print(1)")
    assert r.code == 75 and "1 session already" in r.said, r
    out, _ = p.communicate(timeout=20 * PATIENCE)
    assert (len(out), p.returncode) == (99_999, 0)
    assert ann.run("-c", "print(1)").text == "1\n"


@pytest.mark.sampled
@pytest.mark.parametrize("maker", ["auto", "off"])
@pytest.mark.parametrize("linger", ["0", "10m"])
def test_sessions_in_a_row_are_one_at_a_time(host, maker, linger):
    ann = host.people[0]
    policy = (f"[session]\nper_user = 1\nlinger = {linger}\nmaker = {maker}\n"
              + LOCKED)
    start(host, 0, policy)
    # The terminal of a shell, which goes on as soon as it may.
    s = term.Session(ann.argv("sh", "-c", SESSIONS, str(SESSIONS_IN_A_ROW),
                              str(host.binary)), env=ann.env, cwd="/")
    ann.open.append(s)
    for n in range(1, SESSIONS_IN_A_ROW + 1):
        s.wait(lambda: s.all_text().count("in a jail:") == n,
               f"session {n}")
        s.wait_prompt()
        s.type("\x04")
    assert s.wait_exit() == 0, s.all_text()


@pytest.mark.sampled
def test_a_place_is_free_when_the_terminal_is(host):
    """Also where the shell waits for another process than the session's: that
    of a terminal which has come to it."""
    ann = host.people[0]
    host.policy("[session]\nper_user = 1\nlinger = 10m\nmaker = off\n")
    for _ in range(SESSIONS_IN_A_ROW):
        s = ann.session("--new").start()
        s.type(":detach\n")
        s.wait_exit()
        s = ann.session("--attach").start()
        with open(ann.home / ".local/state/cellblock/sessions", "r+b") as f:
            with pytest.raises(BlockingIOError):
                fcntl.lockf(f, fcntl.LOCK_EX | fcntl.LOCK_NB, 1)
            s.type("\x04")
            s.process.wait()
            fcntl.lockf(f, fcntl.LOCK_EX | fcntl.LOCK_NB, 1)
        assert s.wait_exit() == 0


@pytest.mark.sampled
def test_logins_and_requests_without_the_maker_in_a_row(host):
    ann = host.people[0]
    host.policy(ONE)
    for argv in (("bash", "-c", 'exec -a -cellblock "$0"', str(host.binary)),
                 ("sh", "-c", """echo '{"session": true}' | "$0" --eval""",
                  str(host.binary)), (str(host.binary), "--mcp")):
        in_a_row(ann, *argv)
