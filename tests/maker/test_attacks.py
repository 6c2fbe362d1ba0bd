# SPDX-License-Identifier: MIT
"""People who do not ask root's maker of sessions as cellblock does."""
import ast
import os
import signal
import subprocess

import pytest

import hindered
import hosttree
import order
from makerhost import of_jails
from world import ASAN, PATIENCE, WHOLE

HEAD = "import order, os, socket, struct, sys, time\n"
# The host id of no session that runs.
JAIL_ID = 2130771960


def janitors(maker):
    return [pid for pid in hosttree.descendants(maker.maker.pid)
            if hosttree.status_of(pid).get("Name") == "cellblock-janit"
            and hosttree.status_of(pid).get("State", "Z")[0] != "Z"]


def control(person):
    """Somebody gets a session still."""
    r = person.run("-c", "print(40 + 2)")
    assert r.code == 0 and r.text == "42\n", r


def refused(person, *messages):
    """{message: what the maker says to it}."""
    out = person.asks(HEAD + f"""
for text in {messages}:
    ok, said = order.ask(eval(text))
    assert not ok, f'it was made: {{text}}'
    print(repr((text, said)))
""")
    control(person)
    said = dict(map(ast.literal_eval, out.splitlines()))
    assert tuple(said) == messages
    return said


def test_no_limit_can_be_loosened(ann):
    """Each key, a little past what the system allows and far past it."""
    looser = {"background": 2, "network": 1,
              "checkpoint": 3}  # of which every word is harmless
    told = refused(ann, *(
        f"order.order({name}={value})"
        for name, base in order.BUILT_IN.items()
        for value in (looser.get(name, base + 1), 2**31 - 1, -1)))
    for message, said in told.items():
        assert "looser than the" in said or "malformed" in said, message
    assert ann.asks(HEAD + "print(order.ask(order.order())[0])") == "True\n"


def test_a_number_out_of_range_is_refused(ann):
    told = refused(ann, *(f"order.order({change})" for change in (
        "python=1", "python=2**32 - 1", "mode=3", "mode=4", "mode=2**32 - 1",
        "expose=1", "expose=2**63", "require=1", "require=2**63", "plain=2",
        "tty_bits=8", "term=b'x' * 64", "checkpoint=3", "background=-1",
        "network=7")))
    for message, said in told.items():
        assert "malformed" in said, message


def test_a_message_of_another_size_is_refused(ann):
    told = refused(
        ann, "bytes(order.order())[:-1]", "bytes(order.order())[:4]",
        "bytes(order.order()) + b'x'", "bytes(order.order()) * 300")
    for message, said in told.items():
        assert "malformed" in said or "read a request" in said, message


def test_another_build_is_told_so(ann):
    told = refused(
        ann, "order.order(version=1)", "b'\\xf9\\0\\0\\0 and more'")
    for message, said in told.items():
        assert "another build" in said, message


def test_any_bytes_are_refused(maker, ann):
    ann.asks(HEAD + """
import random
r = random.Random(1)
size = len(bytes(order.order()))
for _ in range(300):
    ok, said = order.ask(b'\\1\\0\\0\\0' + r.randbytes(size - 4))
    assert not ok, said
""")
    control(ann)


def test_who_says_nothing_is_not_waited_for(ann):
    out = ann.asks(HEAD + "print(order.answer(order.connect()))")
    assert "no request came" in out
    control(ann)


def test_who_goes_at_once_costs_nothing(maker, ann, bob):
    ann.asks(HEAD + """
for _ in range(200):
    order.connect().close()
    with order.connect() as s:
        try:
            s.send(bytes(order.order()))
        except BrokenPipeError:
            pass
""")
    control(bob)
    hosttree.until(lambda: len(maker.children()) == 1, "one that waits")


@pytest.mark.sampled
def test_a_flood_keeps_nobody_else_out(maker, ann, bob):
    """Connections that say nothing, as many as there can be."""
    flood = ann.python(HEAD + """
import resource
most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
held = []
print('begun', flush=True)
while True:
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.settimeout(0.2)
    try:
        s.connect(order.PATH)
        held.append(s)
    except OSError:
        pass
    del held[:-900]
""")
    assert flood.stdout.readline() == "begun\n"
    for _ in range(3 if WHOLE else 1):
        control(bob)
    assert flood.poll() is None


# A socket whose closing blocks for as long as its owner likes: data that nobody
# takes, and SO_LINGER.
STUCK = HEAD + """
listener = socket.create_server(('127.0.0.1', 0))
def stuck():
    s = socket.create_connection(listener.getsockname())
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                 struct.pack('ii', 1, 3600))
    s.setblocking(False)
    try:
        while True:
            s.send(b'x' * 65536)
    except BlockingIOError:
        pass
    s.setblocking(True)
    return s
def last_words(say):
    # A child sends them and ends; this process keeps the other ends open.
    pid = os.fork()
    if pid == 0:
        print(say(), flush=True)
        os._exit(0)
    assert os.wait()[1] == 0
    sys.stdin.read()
"""


# A kernel before 6.16 has no SO_PASSRIGHTS, which refuses descriptors when they
# are sent.
OLD = ["/usr/bin/python3", "-B",
       str(order.TOP / "tests" / "fallback" / "without.py"), "ENOPROTOOPT",
       "setsockopt=83", "--"]
KERNELS = pytest.mark.parametrize("kernel", [[], OLD], ids=["new", "old"])


# The alarms of the maker's children (10 s) come so many times as late.
LATE = 1 if ASAN else int(3 * PATIENCE)


def begin(host, kernel=()):
    """A maker whose alarms come late, and its child that waits."""
    late = hindered.long_alarms(host.dir, LATE)
    host.under = ["env", *(f"{k}={v}" for k, v in late.items()), *kernel]
    host.start()
    hosttree.until(lambda: len(host.children()) == 1, "one that waits")


def is_asked(person, seconds=8 * LATE):
    """Somebody gets a session from the maker, at the first try, and sooner than
    the alarms of its children (10 s, and begin() has them late) could make room."""
    assert person.asks(HEAD + "print(order.ask(order.order(), "
                       f"seconds={seconds})[0])") == "True\n"


@pytest.mark.sampled(3)
@KERNELS
@pytest.mark.parametrize("where", ["with", "behind"])
def test_requests_with_descriptors_hold_no_place(host, kernel, where):
    """More of one person than there are places, each with a descriptor whose
    last copy is the maker's: who had the others has ended when they are looked
    at."""
    begin(host, kernel)
    ann, bob = host.people
    before = of_jails()
    stopped = [host.maker.pid, *host.children()]
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    asker = ann.python(STUCK + f"""
asks = [order.connect() for _ in range(100)]
def say():
    global kept
    kept, sent = [], 0
    for s in asks:
        one = stuck()
        kept.append(one)
        if {where!r} == 'behind':
            s.send(bytes(order.order()))
        try:
            socket.send_fds(s, [bytes(order.order())], [one.fileno()])
            sent += 1
        except PermissionError:
            pass
    return sent
last_words(say)
""")
    assert asker.stdout.readline() == ("100\n" if kernel else "0\n")
    hosttree.until(lambda: len(hosttree.descendants(asker.pid)) == 0,
                   "the asker's end")
    for pid in stopped:
        os.kill(pid, signal.SIGCONT)
    is_asked(bob)
    hosttree.until(lambda: len(host.children()) == 1, "the end of all", 8)
    assert asker.poll() is None
    asker.communicate("")
    hosttree.until(lambda: not of_jails() - before, "the end of what was made",
                   30)
    control(ann)


def test_a_descriptor_that_blocks_its_closer_leaves_no_janitor(maker, ann):
    """Behind a request that ends the session: nobody reads it, and the last who
    has the socket closes what is in it."""
    asker = ann.python(STUCK + """
for _ in range(3):
    if os.fork() == 0:
        many = [stuck(), stuck()]
        ok, s = order.ask(order.order())
        s.send(b'the end')
        socket.send_fds(s, [b'more'], [m.fileno() for m in many])
        os._exit(not ok)
    assert os.wait()[1] == 0
print('sent', flush=True)
sys.stdin.read()
""")
    assert asker.stdout.readline() == "sent\n"
    hosttree.until(lambda: maker.said().count("as host id") == 3, "sessions")
    hosttree.until(lambda: not janitors(maker), "their end", 40)
    assert asker.poll() is None
    control(ann)


def test_a_descriptor_in_a_request_is_refused(ann):
    ok, = [ann.asks(HEAD + """
r, w = os.pipe()
ok, said = order.ask(order.order(), [r])
print(ok)
""")]
    assert ok in ("False\n", "None\n")
    control(ann)


def test_who_is_in_a_jail_gets_no_session_from_it(maker, ann):
    ann.uid = JAIL_ID
    r = ann.asks(HEAD + "print(order.ask(order.order()))")
    assert f"cellblock-maker refuses uid {JAIL_ID}" in r, r


# Ids that no account has: any user may have thousands of them (subuid(5)).
NOBODYS = range(1_000_005_000, 1_000_005_200)
CROWD = HEAD + f"""
held = []
def crowd(of_each):
    for uid in range({NOBODYS.start}, {NOBODYS.stop}):
        os.seteuid(uid)
        held.extend(order.connect() for _ in range(of_each))
        os.seteuid(0)
    return held
"""


def test_an_id_without_an_account_gets_none(maker, ann):
    """A user with many such ids would have as many sessions, with permissions that
    the person does not have."""
    maker.policy("[session]\nmaker = off\n", f"users/{ann.name}.conf")
    uid, ann.uid = ann.uid, NOBODYS[0]
    said = ann.asks(HEAD + "print(order.ask(order.order()))")
    assert f"cellblock-maker refuses uid {ann.uid}, which has no account" in said, said
    ann.uid = uid
    assert not maker.said().count("as host id")


def test_ids_without_an_account_hold_no_place(host):
    """They say nothing, and would be waited for."""
    begin(host)
    stopped = [host.maker.pid, *host.children()]
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    many = host.root().python(
        CROWD + "print(len(crowd(4)), flush=True)\nsys.stdin.read()")
    assert many.stdout.readline() == "800\n"
    for pid in stopped:
        os.kill(pid, signal.SIGCONT)
    is_asked(host.people[1])
    assert many.poll() is None
    many.communicate("")


def test_a_name_service_that_hangs_does_not_hold_all_places(maker, bob):
    """The name service has not named these clients yet: all together have a few."""
    hangs = maker.dir / "passwd"
    os.mkfifo(hangs)

    def mount(*argv):
        subprocess.run([*maker.inside(), *argv, "/etc/passwd"], check=True)

    many = maker.root().python(CROWD + """
print('here', flush=True)
sys.stdin.readline()
said = [order.answer(s)[1] for s in crowd(1)]
print(sum('too many requests' in s for s in said), flush=True)
""")
    assert many.stdout.readline() == "here\n"
    mount("mount", "--bind", str(hangs))
    out, err = many.communicate("\n", timeout=60 * PATIENCE)
    mount("umount", "-l")
    assert many.returncode == 0 and int(out) >= len(NOBODYS) - 32, (out, err)
    hosttree.until(lambda: len(maker.children()) == 1, "their alarms", 40)
    is_asked(bob, 8 * PATIENCE)


def test_who_is_not_allowed_gets_none(maker, ann, bob):
    maker.policy("[session]\nmaker = off\n", f"users/{ann.name}.conf")
    said = ann.asks(HEAD + "print(order.ask(order.order()))")
    assert f"cellblock-maker refuses user {ann.name}" in said, said
    assert ann.run("-c", "1").code == 0      # without it
    assert ann.name not in maker.said()
    control(bob)


def test_a_broken_configuration_is_told(maker, ann):
    maker.policy("[session]\nmemory = much\n")
    said = ann.asks(HEAD + "print(order.ask(order.order()))")
    assert "cellblock.conf:2" in said, said
    assert ann.run("-c", "1").code == 78


def nobody_is_let_in(person, words):
    """A person who may go without the maker is told why; one who may not, too."""
    asked = {maker: person.popen("-s", f"session.maker={maker}", "-c",
                                 "print(1)")
             for maker in ("auto", "require")}
    said = {}
    for maker, p in asked.items():
        out, err = p.communicate(timeout=60 * PATIENCE)
        said[maker] = err.decode()
        assert said[maker].startswith("cellblock: ") and words in said[maker]
        assert out == (b"1\n" if maker == "auto" else b"")
    assert "this session is made without the maker" in said["auto"]
    return asked["require"].returncode, said["require"]


@pytest.mark.limit(180)
def test_a_queue_that_does_not_move_is_no_hang(maker, ann, bob):
    hosttree.until(lambda: len(maker.children()) == 1, "the child that waits")
    waiting, = maker.children()
    for pid in maker.maker.pid, waiting:
        os.kill(pid, signal.SIGSTOP)
    ann.env.update(hindered.fast(maker.dir))
    try:
        assert nobody_is_let_in(ann, "does not answer")[0] == 125
        crowd = bob.python(HEAD + """
held = []
try:
    while True:
        held.append(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
        held[-1].setblocking(False)
        held[-1].connect(order.PATH)
except BlockingIOError:
    print('full', flush=True)
sys.stdin.read()
""")
        assert crowd.stdout.readline() == "full\n"
        code, said = nobody_is_let_in(ann, "too many others")
        assert code == 75 and "try again in a moment" in said, said
        crowd.communicate("")
    finally:
        for pid in maker.maker.pid, waiting:
            os.kill(pid, signal.SIGCONT)
    hosttree.until(lambda: ann.run("-s", "session.maker=require", "-c",
                                   "print(1)").text == "1\n", "the control")


@pytest.mark.limit(180)
def test_a_crowd_has_sessions_or_is_told_that_there_are_too_many(host):
    host.policy("[maker]\nsessions = 4\n[cell]\ntimeout = 60s\n")
    host.start()
    asked = [p.popen("-s", "session.maker=require", "-c",
                     "import time; print(1, flush=True); "
                     f"time.sleep({2 * PATIENCE})")
             for _ in range(12) for p in host.people]
    got = []
    for p in asked:
        out, err = p.communicate(timeout=60 * PATIENCE)
        got.append(p.returncode)
        if p.returncode == 0:
            assert (out, err) == (b"1\n", b"")
        else:
            assert p.returncode == 75 and out == b"", (out, err)
            assert b"maker.sessions = 4" in err or \
                b"session already" in err or b"sessions already" in err or \
                b"too many requests" in err, err
    assert 0 in got and 75 in got, got
    # Orphans of its children are the maker's: but for them one waits.
    hosttree.until(lambda: len(hosttree.descendants(host.maker.pid)) == 1,
                   "the end of all", 60)
    control(host.people[0])


@pytest.mark.sampled
def test_requests_leave_nothing_in_the_maker(maker, ann):
    def size():
        pid = maker.maker.pid
        hosttree.until(lambda: len(maker.children()) == 1, "its rest")
        return hosttree.memory_of(pid), sorted(os.listdir(f"/proc/{pid}/fd"))

    some = HEAD + """
def ask():
    for i in range(%d):
        ok, s = order.ask(order.order(python=i %% 2))
        if ok:
            s.close()
        else:
            assert ok is False and 'malformed' in s or 'too many' in s, s
ask()
"""
    ann.asks(some % 50)
    control(ann)
    rss, fds = size()
    ann.asks(some % (1000 if WHOLE else 100), 120)
    control(ann)
    after, fds_after = size()
    assert fds_after == fds
    assert after <= rss + (512 << 10), (rss, after)


def test_sessions_do_not_need_the_maker(maker, ann, bob):
    s = ann.session().start()
    s.run("x = 5")
    maker.kill()
    assert "6" in s.run("x + 1")
    r = bob.run("-c", "1")
    assert r.code == 0 and r.said == "", r
    maker.start()
    assert "7" in s.run("x + 2")
    control(bob)
    maker.kill(signal.SIGTERM)
    assert "8" in s.run("x + 3")
    s.leave()


@pytest.mark.sampled
@pytest.mark.limit(240)
def test_a_maker_that_is_killed_leaves_nothing(maker, ann):
    """It and its children are killed at a different moment each time."""
    before, cgroups = of_jails(), hosttree.cgroups()
    for i in range(0, 12, 1 if WHOLE else 3):
        asker = ann.python(HEAD + """
print('go', flush=True)
held = [order.connect() for _ in range(3)]
for s in held:
    try:
        s.send(bytes(order.order()))
    except OSError:
        pass
sys.stdin.read()
""")
        assert asker.stdout.readline() == "go\n"
        subprocess.run(["sleep", str(i * 0.003)], check=True)
        os.kill(maker.maker.pid, signal.SIGSTOP)  # it forks no more
        pids = [*maker.children(), maker.maker.pid]
        hosttree.send(pids)
        maker.maker.wait(20 * PATIENCE)
        asker.communicate("")
        hosttree.until(lambda: not any(hosttree.thread_states(p).strip("ZX")
                                   for p in pids),
                       "their end")
        maker.start()
    # The next janitor removes the remains of one that was killed, too.
    control(ann)
    hosttree.until(lambda: not of_jails() - before, "the end of all", 60)
    hosttree.wait_removed(lambda: hosttree.new_cgroups(cgroups), 60)
