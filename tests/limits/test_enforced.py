# SPDX-License-Identifier: MIT
"""The enforcement of the other limits of a session: the cgroup, the count of its
processes, the freezer, the share of the CPU.
"""
import json
import os
import pathlib
import re
import subprocess
import time

import pytest

import hindered
import hosttree
from hostile import value
from world import IS_ROOT, PATIENCE, PYTHON

# The enforcement of a limit depends on the user: root's sessions have a cgroup.
pytestmark = pytest.mark.both

MIB = 1 << 20
# For cells that have a small share of the CPU.
LONG = "-s", f"cell.timeout={60 * PATIENCE:.0f}s", "-s", "cell.cpu=60s"


def cgroup_of(pid, controller):
    """The cgroup of a process for one controller. Under v2 all controllers
    share it."""
    place = pathlib.Path(hosttree.cgroup_v2_of(pid) or "/")
    if "cellblock" in str(place):
        return place
    if not IS_ROOT:
        pytest.skip("no cgroup of version 2 is delegated to this user")
    text = pathlib.Path(f"/proc/{pid}/cgroup").read_text()
    m = re.search(rf"^\d+:(?:.*,)?{controller}(?:,.*)?:(.*)$", text, re.M)
    place = pathlib.Path(f"/sys/fs/cgroup/{controller}")
    if not m or not place.is_dir():
        pytest.skip(f"this host has no {controller} controller")
    return place / m[1].lstrip("/")


def checked(cb, what):
    """The row of --check."""
    row, = (row for row in json.loads(cb.run("--check", "--json").text)["checks"]
            if row["what"] == what)
    return row


@pytest.mark.root
def test_a_session_whose_cgroup_cannot_be_made_is_refused(cb):
    """It would be weaker than --check says."""
    row = checked(cb, "cgroup")
    if row["strength"] != "strong":
        pytest.skip("no cgroup for root here: " + row["remedy"])
    r = cb.run("-c", "print(1)", env=hindered.without_directory(cb.base, "jail"))
    assert (r.code, r.text) == (125, "") and "cgroup: make a leaf" in r.said, r
    assert cb.run("-c", "print(1)").text == "1\n"


def jail_cgroup(s, controller):
    return cgroup_of(hosttree.Tree(s.pid).init, controller)


def cpu_cgroup(s):
    """The limit of the whole session: the jail and its warden share the cores."""
    return jail_cgroup(s, "cpu").parent


def number(path):
    return int(path.read_text())


def numbers_of(path):
    return {int(p) for p in path.read_text().split()}


def test_the_cgroup_has_the_configured_limits(cb):
    s = cb.session("-M", "200M", "-s", "session.processes=20",
                   "-s", "session.cpus=0.5")
    s.run("None")       # the prompt appears before the jail is ready
    memory = jail_cgroup(s, "memory")
    cpu = cpu_cgroup(s)
    if (memory / "memory.max").exists():
        assert number(memory / "memory.max") == 200 * MIB
        if (memory / "memory.swap.max").exists():
            assert number(memory / "memory.swap.max") == 0
        assert number(memory / "memory.oom.group") == 0
        assert (cpu / "cpu.max").read_text() == "50000 100000\n"
    else:
        assert number(memory / "memory.limit_in_bytes") == 200 * MIB
        if (memory / "memory.memsw.limit_in_bytes").exists():
            assert number(memory / "memory.memsw.limit_in_bytes") == 200 * MIB
        assert (number(cpu / "cpu.cfs_quota_us") * 2
                == number(cpu / "cpu.cfs_period_us"))
    assert 20 < number(jail_cgroup(s, "pids") / "pids.max") <= 28
    assert "cgroup" in checked(cb, "processes")["enforced_by"]
    # Every guest is in the cgroup.
    def all_inside():
        guests = hosttree.Tree(s.pid).guests()
        try:
            return guests and all(cgroup_of(pid, "memory").is_relative_to(
                memory) for pid in guests)
        except (FileNotFoundError, ProcessLookupError):
            return False            # one has ended: it made a checkpoint
    hosttree.until(all_inside, "every guest in the cgroup")


# As many processes, or threads, as there may be; the first one is counted too.
MANY_PROCESSES = """\
import os, signal, time
pids = []
try:
    while len(pids) < 60:
        pid = os.fork()
        if pid == 0:
            while True: signal.pause()
        pids.append(pid)
except BlockingIOError: pass
print("many", len(pids) + 1)
for pid in pids: os.kill(pid, 9), os.waitpid(pid, 0)
del pid, pids
"""
MANY_THREADS = """\
import threading
end, n = threading.Event(), 1
try:
    while n < 60:
        threading.Thread(target=end.wait, daemon=True).start(); n += 1
except RuntimeError: pass
print("many", n)
end.set()
"""


@pytest.mark.parametrize("code", [MANY_PROCESSES, MANY_THREADS],
                         ids=["processes", "threads"])
@pytest.mark.parametrize("most", [15, 40])
def test_there_are_as_many_processes_as_is_told(cb, most, code):
    said = f"many {most}\n".encode()
    few = "-s", f"session.processes={most}"
    assert cb.run(*few, "-c", code).out == said
    assert cb.run(*few, "-e", code).out == said
    for request in {"args": ["-c", code]}, {"code": code}:
        r = cb.run(*few, "--eval", stdin=json.dumps(request).encode())
        assert json.loads(r.out)["stdout"].encode() == said, r


def many_in_session(cb, *args):
    requests = [{"session": True}]
    for i in range(9):
        requests += [{"code": f"x = {i}"}, {"code": MANY_PROCESSES}]
    requests += [{"code": "import os; os.abort()"}, {"code": MANY_THREADS}]
    r = cb.run("-s", "session.processes=15", *args, "--eval",
               stdin="\n".join(map(json.dumps, requests)).encode())
    said = [json.loads(line) for line in r.out.splitlines()]
    many = [int(a["output"].split()[1]) for a in said
            if "many" in a.get("output", "")]
    assert len(many) == 10, said
    return many


def test_a_session_has_as_many_processes_as_is_told(cb):
    assert many_in_session(cb, "-s", "cell.checkpoint=never") == [15] * 10


def test_checkpoints_are_not_processes_of_a_cell(cb):
    """Whether there are few of them or as many as there may be. While one comes
    or goes the limit of the next cell follows a moment later."""
    many = many_in_session(cb, "-s", "cell.undo=3")
    assert all(12 <= n <= 17 for n in many) and 15 in many, many


def test_a_session_keeps_the_lower_limit_that_it_sets_itself(cb):
    s = cb.session("-s", "session.processes=15")
    s.run("import resource as r; k = r.RLIMIT_NPROC; hard = r.getrlimit(k)[1]")
    # A copy that is not gone yet counts: with 5, a busy host took no checkpoint.
    s.run("r.setrlimit(k, (9, hard))")
    assert value(s, "r.getrlimit(k)[0]") == "9"


def freezer_of(place):
    """The state of the freezer, in the words of cgroup v1."""
    state = place / "freezer.state"
    if state.exists():
        return state.read_text().strip()
    if (place / "cgroup.freeze").read_text() == "0\n":
        return "THAWED"
    frozen = "frozen 1\n" in (place / "cgroup.events").read_text()
    return "FROZEN" if frozen else "FREEZING"


def test_the_freezer_holds_the_guests_between_cells(cb):
    s = cb.session()
    s.run("import subprocess; p = subprocess.Popen(['sleep', '99'])")
    tree = hosttree.Tree(s.pid)
    place = cgroup_of(tree.guests()[0], "freezer")
    hosttree.until(lambda: freezer_of(place) == "FROZEN",
                   "the freezer to be closed")
    # (A process that has just ended stays in the cgroup until init reaps it.)
    hosttree.until(lambda: numbers_of(place / "cgroup.procs")
                   == set(tree.guests()), "every guest in the freezer")
    assert tree.init not in numbers_of(place / "cgroup.procs")
    # control: the freezer is open during a cell
    row = s.enter("print('on'); input()")
    s.expect_since(row, "^on")
    hosttree.until(lambda: freezer_of(place) == "THAWED",
                   "the freezer to be open")


# One process uses up the jail's share of the CPU. Then the cell ends on
# another core, where a little of an earlier share is left.
SHORT_OF_CPU = """\
import os, time
burner = os.fork()
if not burner:
    os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
    while True: pass
os.sched_setaffinity(0, [max(os.sched_getaffinity(0))])
input('first')
time.sleep(0.7)
input('second')
"""


def throttled(cpu):
    return int(re.search(r"nr_throttled (\d+)",
                         (cpu / "cpu.stat").read_text())[1])


def share_cpu(cpu, share_us, period_us):
    if (cpu / "cpu.max").exists():
        (cpu / "cpu.max").write_text(f"{share_us} {period_us}")
        return
    (cpu / "cpu.cfs_quota_us").write_text("-1")
    (cpu / "cpu.cfs_period_us").write_text(str(period_us))
    (cpu / "cpu.cfs_quota_us").write_text(str(share_us))


def seconds_until_frozen(place):
    """The time from the freezing of the jail until it is frozen, in seconds. A
    throttled process freezes late, because it does not run."""
    asked = None

    def is_frozen():
        nonlocal asked
        if asked is None and freezer_of(place) == "FREEZING":
            asked = time.monotonic()
        return freezer_of(place) == "FROZEN"
    hosttree.until(is_frozen, "the freezer to be closed")
    return time.monotonic() - asked if asked else 0


def test_a_throttled_process_is_frozen_late_and_not_killed(cb):
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("this test needs two cores")
    s = cb.session("-s", "cell.checkpoint=never", *LONG)
    s.run("kept = 5")
    place = cgroup_of(hosttree.Tree(s.pid).guests()[0], "freezer")
    cpu = cpu_cgroup(s)
    if "cellblock" not in str(place) or "cellblock" not in str(cpu):
        pytest.skip("the jail has no cgroups here")
    for _ in range(8):
        row = s.enter(SHORT_OF_CPU)
        s.expect_since(row, "^first")
        share_cpu(cpu, 20000, 500000)
        s.type("\r")
        s.expect_since(row, "second", 20)
        before = throttled(cpu)
        hosttree.until(lambda: throttled(cpu) > before,
                       "the CPU share of the jail to be used up")
        s.type("\r")
        late = seconds_until_frozen(place)
        share_cpu(cpu, 100000, 100000)
        s.wait_prompt()
        assert s.run("os.waitpid(burner, os.WNOHANG), kept") == "((0, 0), 5)"
        if late > 0.2:
            return
        s.run("os.kill(burner, 9); os.wait()")
    pytest.skip("no process is throttled for long on this host")


# libc runs fork handlers before it makes the copy. These handlers take so much
# CPU that the fork lasts seconds with a hundredth of a core. (A handler costs
# less CPU when libc calls it than when Python does.)
SLOW_TO_COPY = """\
import ctypes, time
libc = ctypes.CDLL(None)
handler = ctypes.cast(libc.clock, ctypes.c_void_p)
start = time.process_time()
for _ in range(2000):
    libc.clock()
for _ in range(int(0.08 * 2000 / (time.process_time() - start))):
    libc.__register_atfork(handler, None, None, None)
kept = 5
input('go on')
"""


def test_a_throttled_session_keeps_its_variables(cb):
    s = cb.session(*LONG)
    s.run("None")
    cpu = cpu_cgroup(s)
    if "cellblock" not in str(cpu):
        pytest.skip("the jail has no cgroups here")
    row = s.enter(SLOW_TO_COPY)
    s.expect_since(row, "^go on")
    share_cpu(cpu, 1000, 100000)
    s.type("\r")
    second = s.enter("kept")
    s.expect_since(second, "^5", 60)
    share_cpu(cpu, 100000, 100000)
    s.wait_prompt()
    assert "stopped answering" not in s.screen_text(), s.picture()
    assert "before cell 4 " in s.run("import os; os.abort()")
    assert s.run("kept") == "5"


def test_cpu_use_is_limited_to_the_configured_share(cb):
    """A session that wants more than its share is throttled."""
    s = cb.session("-s", "session.cpus=0.2", *LONG)
    s.run("None")
    cpu = cpu_cgroup(s)
    before = throttled(cpu)
    got = s.run("import time\nstart = time.time()\n"
                "end = time.process_time() + 0.2\n"
                "while time.process_time() < end: pass\n"
                "0.2 / (time.time() - start)")
    # On a busy host the session may get no more than its share anyway. (Alone
    # it would get 1.0. The kernel does not throttle what exceeds the share
    # within a tick.)
    assert throttled(cpu) > before or float(got) <= 0.25


@pytest.mark.root
def test_two_sessions_of_root_have_two_host_ids(cb):
    if not IS_ROOT:
        pytest.skip("a person's sessions run as that person")
    uids = set()
    sessions = [cb.session(), cb.session()]
    for s in sessions:
        s.run("0")              # now the jail is ready
        tree = hosttree.Tree(s.pid)

        def check(pid, s=s):
            status = hosttree.status_of(pid)
            ids = set(status["Uid"].split()) | set(status["Gid"].split())
            assert len(ids) == 1, status
            assert not status["Groups"].strip(), status
            uids.update((s.pid, int(i)) for i in ids)

        hosttree.check_each([tree.warden, tree.init, *tree.guests()], check)
    assert len(uids) == 2, uids
    numbers = {uid for _, uid in uids}
    assert len(numbers) == 2 and not numbers & {0, 65534}, uids
    low, high = 2130706432, 2130771967
    assert all(low <= uid <= high for uid in numbers), uids
    # control: inside the jails the ids are the same
    for s in sessions:
        ids = value(s, "import os; os.getuid(), os.getgid()")
        assert ids == "(1000, 1000)"


def test_the_front_end_and_the_jail_keep_no_capability(cb):
    s = cb.session()
    s.run("0")              # now the jail is ready

    def check(pid):
        status = hosttree.status_of(pid)
        for key in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
            assert int(status[key], 16) == 0, (pid, key, status[key])
        if IS_ROOT or pid != s.pid:
            assert int(status["CapBnd"], 16) == 0, status["CapBnd"]
        assert status["NoNewPrivs"] == "1" and status["Seccomp"] == "2", status

    inside = [p for _, p in hosttree.Tree(s.pid).inside()]
    hosttree.check_each([s.pid, *inside], check)


@pytest.mark.root
def test_real_time_scheduling_is_not_inherited(cb):
    """A cell in real time could keep all other programs of the host from
    running."""
    def in_real_time():
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    if not IS_ROOT:
        pytest.skip("only root may start anything in real time")
    code = "import os; print(os.sched_getscheduler(0), os.nice(0))"
    try:
        control = subprocess.run([PYTHON, "-c", code], capture_output=True,
                                 text=True, preexec_fn=in_real_time,
                                 check=True)
    except (PermissionError, subprocess.SubprocessError) as e:
        pytest.skip(f"real time is not available here: {e}")
    assert control.stdout.startswith(f"{os.SCHED_FIFO} "), control
    nice = os.nice(0)
    r = cb.run("-c", code, preexec_fn=in_real_time)
    assert (r.code, r.text) == (0, f"{os.SCHED_OTHER} {max(5, nice)}\n"), r
    r = cb.run("-c", code, wrapper=("nice", "-n", "-10"))
    assert r.text == f"{os.SCHED_OTHER} {max(5, nice - 10)}\n", r


def test_the_kernel_kills_guests_first_when_memory_runs_out(cb):
    score = "oom_score_adj"
    own = int(pathlib.Path("/proc/self", score).read_text())
    r = cb.run("-c", f"for p in ('self', 1): print(open(f'/proc/{{p}}/{score}')"
                     ".read(), end='')")
    assert (r.code, r.text) == (0, f"600\n{own + 100}\n"), r


def test_the_kernel_kills_a_checkpoint_later_than_a_cell(cb):
    """The kernel kills pid 1 last. The state after a rollback is no exception."""
    def score_of(pid):
        try:
            return int(pathlib.Path(f"/proc/{pid}/oom_score_adj").read_text())
        except (FileNotFoundError, ProcessLookupError):
            return None

    own, s = score_of("self"), cb.session("-q")
    for cell in ("1", "import os; os.abort()", "1"):
        s.run(cell)
        hosttree.until(lambda: {score_of(p) for p in cb.tree(s).guests()}
                       == {600, own + 200}, "the scores")
