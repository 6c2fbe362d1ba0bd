# SPDX-License-Identifier: MIT
"""Hosts that lack a feature. Either cellblock runs whole sessions without the
feature and says so, or it refuses with a message that names a remedy.

The tests remove a feature with a filter on system calls or in namespaces. The
control is the same person on the same host with the feature.
"""
import os
import pathlib
import shutil
import subprocess

import pytest

import hosttree
from whole import checked, refused, walls_are_up, whole_session
from world import IS_ROOT, PATIENCE, PYTHON, TESTS

# Root's jails are built with root's means, a person's in a user namespace.
pytestmark = pytest.mark.both

HERE = TESTS / "fallback"
CLONE_NEWUSER = "0x10000000"
KINDS = ("ENOSYS", "EPERM")


def without(kind, *calls):
    return (PYTHON, "-B", str(HERE / "without.py"), kind, *calls, "--")


LACKING = (PYTHON, "-B", str(TESTS / "lib" / "lacking.py"))
NO_PROC, NO_USERNS = (*LACKING, "proc"), (*LACKING, "userns")
NO_LISTENER = (*LACKING, "listener")
NO_CGROUP = ("unshare", "-m", "sh", "-c",
             'umount -lR /sys/fs/cgroup && exec "$@"', "sh")
# An ordinary user cannot unmount the cgroups, but a cgroup namespace hides
# them.
HIDDEN_CGROUP = ("unshare", "-UC", "--map-current-user")


# ---- control ----

def test_control_a_whole_session_runs_with_every_feature(cb):
    whole_session(cb, without("ENOSYS", "io_uring_setup"))


# ---- calls that have a substitute ----

@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("call", [
    "mount_setattr", "close_range", "clone3", "landlock_create_ruleset",
    "pidfd_open", "keyctl", "faccessat2"])
def test_a_whole_session_runs_without_the_call(cb, call, kind):
    whole_session(cb, without(kind, call))


def test_every_mount_is_restricted_without_mount_setattr(cb):
    """The mounts are then restricted one by one, with those below exposed
    paths."""
    helpers = (TESTS / "escape/inside.py").read_text()
    code = (f"inside = {{'__name__': 'inside'}}; exec({helpers!r}, inside)\n"
            "for path, flags in sorted(inside['mounts']().items()):\n"
            "    print(path, flags)\n")
    here = cb.run("-c", code)
    there = cb.run("-c", code, wrapper=without("ENOSYS", "mount_setattr"))
    assert here.code == there.code == 0 and "/home " in here.text, (here, there)
    assert there.text == here.text


def test_landlock_is_optional_and_can_be_required(cb):
    no = without("ENOSYS", "landlock_create_ruleset")
    if checked(cb, ())["rows"]["landlock"]["strength"] != "strong":
        pytest.skip("this kernel has no Landlock")
    row = checked(cb, no)["rows"]["landlock"]
    assert row["strength"] == "none" and "5.13" in row["remedy"], row
    r = cb.run("-s", "jail.require=landlock", "-c", "1", wrapper=no)
    assert r.code == 125 and "landlock" in r.said, r
    assert cb.run("-s", "jail.require=landlock", "-c", "1").code == 0


@pytest.mark.parametrize("kind", KINDS)
def test_where_the_device_nodes_are_the_hosts_there_is_no_inotify(cb, kind):
    no = without(kind, "mknodat")
    whole_session(cb, no)
    row = checked(cb, no)["rows"]["inodes"]
    assert row["strength"] == "weak", row
    r = cb.run("-s", "jail.require=inodes", "-c", "1", wrapper=no)
    assert r.code == 125 and "inodes" in r.said, r
    code = ("import ctypes, os; print(ctypes.CDLL(None).inotify_init1(0) > 0,"
            " os.open('/dev/null', os.O_RDWR) > 0)")
    assert cb.run("-c", code, wrapper=no).text == "False True\n"
    if checked(cb, ())["rows"]["inodes"]["strength"] == "strong":
        assert cb.run("-c", code).text == "True True\n"
        assert cb.run("-s", "jail.require=inodes", "-c", "1").code == 0


def test_where_somebody_listens_already_nothing_is_granted(cb):
    """Locks, and anonymous shared memory where no cgroup counts it."""
    code = ("import errno, fcntl, mmap, os\n"
            "fd = os.open('f', os.O_RDWR | os.O_CREAT)\n"
            "for f in (lambda: fcntl.lockf(fd, fcntl.LOCK_EX),\n"
            "          lambda: fcntl.flock(fd, fcntl.LOCK_EX),\n"
            "          lambda: mmap.mmap(-1, 4096)):\n"
            "    try: f(); print('granted')\n"
            "    except OSError as e: print(errno.errorcode[e.errno])\n")
    whole_session(cb, NO_LISTENER)
    there = checked(cb, NO_LISTENER)["rows"]
    row = there["file locks"]
    assert row["strength"] == "none" and "ENOLCK" in row["remedy"], row
    counted = there["memory"]["strength"] == "strong"
    r = cb.run("-c", code, wrapper=NO_LISTENER)
    assert r.text.split() == ["ENOLCK", "ENOSYS",
                              "granted" if counted else "EPERM"], r
    # control
    assert checked(cb, ())["rows"]["file locks"]["strength"] == "strong"
    assert cb.run("-c", code).text.split() == ["granted"] * 3


# ---- calls without a substitute ----

@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("call, step", [
    ("fsopen", "mount tmpfs"), ("open_tree", "copy the mount"),
    ("move_mount", "mount tmpfs"), ("pivot_root", "make it the root"),
    ("seccomp", "seccomp"), ("memfd_create", "memory")])
def test_a_program_is_refused_without_the_call(cb, call, step, kind):
    refused(cb, without(kind, call), step)


@pytest.mark.parametrize("kind", KINDS)
def test_without_openat2_only_transfers_are_refused(cb, kind):
    no = without(kind, "openat2")
    cb.work.joinpath("up.txt").write_text("up")
    walls_are_up(cb, no)
    # A failed upload is reported before the program starts, with the status 2
    # that python3 gives for a missing script.
    for status, args in ((2, ("-u", "up.txt")), (1, ("-d", "*.txt"))):
        r = cb.run(*args, "-c", "open('a.txt', 'w')", wrapper=no)
        assert r.code == status and "openat2(2): Linux 5.6" in r.said, r
        r = cb.run(*args, "-c", "open('a.txt', 'w')")
        assert r.code == 0, r


# ---- user namespaces ----

@pytest.mark.parametrize("calls", [
    ("unshare",), ("unshare", "clone&" + CLONE_NEWUSER),
    ("clone&" + CLONE_NEWUSER,)])
def test_the_filter_of_a_container_is_named(cb, calls):
    no = without("EPERM", *calls)
    refused(cb, no, "namespace", "--security-opt seccomp=unconfined")
    answer = checked(cb, no)
    assert answer["code"] == 125 and not answer["jail"], answer
    assert "seccomp=unconfined" in answer["rows"]["jail"]["remedy"]
    assert checked(cb, ())["code"] == 0


def test_a_kernel_without_user_namespaces_is_named(cb):
    refused(cb, without("EINVAL", "unshare"), "CONFIG_USER_NS")


def test_a_sysctl_that_allows_no_user_namespaces_is_named(cb):
    refused(cb, NO_USERNS, "user.max_user_namespaces = 0",
            "sudo sysctl -w user.max_user_namespaces=")
    answer = checked(cb, NO_USERNS)
    assert answer["code"] == 125
    assert "sysctl" in answer["rows"]["jail"]["remedy"]


# ---- /proc ----

def test_a_whole_session_runs_without_proc(cb):
    whole_session(cb, NO_PROC)
    r = cb.run("-c", "import os; print(os.listdir('/proc'))", wrapper=NO_PROC)
    assert r.text == "[]\n", r
    r = cb.run("-c", "import os; print(len(os.listdir('/proc')) > 0)")
    assert r.text == "True\n", r


def test_a_stuck_cell_is_ended_without_proc(cb):
    s = cb.session("-t", f"{PATIENCE:.0f}s", "-s", "cell.grace=200ms",
                   wrapper=NO_PROC)
    s.run("x = 6")
    out = s.run("import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
                "while True: pass\n")
    assert "killed" in out and "back to the state" in out, out
    assert "42" in s.run("x * 7")


def test_a_missing_proc_is_reported_and_can_be_required(cb):
    row = checked(cb, NO_PROC)["rows"]["/proc"]
    assert row["strength"] == "none" and row["remedy"], row
    assert checked(cb, ())["rows"]["/proc"]["strength"] == "strong"
    need = ("-s", "jail.require=proc", "-c", "1")
    r = cb.run(*need, wrapper=NO_PROC)
    assert r.code == 125 and "proc" in r.said and "container" in r.said, r
    assert cb.run(*need).code == 0


# ---- cgroups ----

@pytest.fixture
def no_cgroup(cb):
    if not shutil.which("unshare"):
        pytest.skip("there is no unshare(1)")
    if IS_ROOT:
        return NO_CGROUP
    # On most hosts an ordinary user has no cgroup anyway.
    has = checked(cb, ())["rows"]["cgroup"]["strength"] == "strong"
    return HIDDEN_CGROUP if has else ()


def test_a_whole_session_runs_without_a_cgroup(cb, no_cgroup):
    whole_session(cb, no_cgroup)


def test_memory_is_watched_without_a_cgroup(cb, no_cgroup):
    patience = f"{10 * PATIENCE:.0f}s"
    s = cb.session("-M", "200M", "-t", patience, "--set",
                   f"cell.cpu={patience}", wrapper=no_cgroup)
    s.run("x = 21")
    out = s.run("b = []\nwhile True: b.append(bytearray(1 << 20))\n")
    assert "memory limit: 200 MiB" in out or "MemoryError" in out, out
    assert "42" in s.run("x * 2")


def test_a_missing_cgroup_is_reported_and_can_be_required(cb, no_cgroup):
    rows = checked(cb, no_cgroup)["rows"]
    assert rows["memory"]["strength"] == "weak", rows
    assert rows["memory"]["remedy"] and rows["cores"]["remedy"], rows
    r = cb.run("-s", "jail.require=memory", "-c", "1", wrapper=no_cgroup)
    assert r.code == 125 and "memory" in r.said, r


STRONG = ("-s", "jail.require=cgroup memory processes cpus cpu freezer",
          "-c", "print(1)")


def test_cgroups_are_used_where_possible(cb):
    """The control of the tests above."""
    rows = checked(cb, ())["rows"]
    if rows["memory"]["strength"] != "strong":
        pytest.skip("no cgroup for this user here: "
                    + rows["memory"]["remedy"])
    r = cb.run(*STRONG)
    assert (r.code, r.text) == (0, "1\n"), r


CROWDED = 'echo 0 > "$0"/cgroup.procs && "$@"; exit $?'
ALONE = 'echo 0 > "$0"/cgroup.procs && exec "$@"'


def test_a_delegated_cgroup_with_other_processes_is_not_divided(cb):
    """Cellblock moves only itself into another cgroup, and no other process. A
    slice with other processes in it cannot be divided."""
    own = hosttree.cgroup_v2_of("self")
    if IS_ROOT or not own or not os.access(os.path.dirname(own), os.W_OK):
        pytest.skip("no cgroup of version 2 is delegated to this user")
    slice_ = pathlib.Path(own).parent / "cbtest.slice"
    scope = slice_ / "scope"
    scope.mkdir(parents=True)
    (slice_ / "cgroup.subtree_control").write_text("+memory +pids +cpu")
    try:
        crowded = ("sh", "-c", CROWDED, scope)
        row = checked(cb, crowded)["rows"]["memory"]
        assert row["strength"] == "weak", row
        assert "other processes" in row["remedy"], row
        assert cb.run("-c", "print(1)", wrapper=crowded).text == "1\n"
        r = cb.run(*STRONG, wrapper=crowded)
        assert r.code == 125 and "other processes" in r.said, r
        assert not [d for d in scope.iterdir() if d.is_dir()]
        # control: alone in the cgroup, cellblock moves itself aside
        r = cb.run(*STRONG, wrapper=("sh", "-c", ALONE, scope))
        assert (r.code, r.text) == (0, "1\n"), r
        assert [d.name for d in scope.iterdir() if d.is_dir()] \
            == ["cellblock-host"]
    finally:
        for place in (scope / "cellblock-host", scope, slice_):
            if place.exists():
                place.rmdir()


IN_CONTAINER = """
echo 0 > "$0"/cgroup.procs &&
exec unshare -mC sh -c 'umount -l /sys/fs/cgroup &&
    mount -t cgroup2 none /sys/fs/cgroup && "$@"; exit $?' sh "$@"
"""


@pytest.mark.root
def test_a_container_whose_top_cgroup_holds_processes_has_weak_limits(cb):
    """A container of root: the top cgroup that it sees holds processes, and so
    cannot be divided."""
    mount = pathlib.Path("/sys/fs/cgroup")
    if not IS_ROOT or not (mount / "cgroup.controllers").exists():
        pytest.skip("making cgroups here takes root and cgroup v2")
    assert cb.run(*STRONG).code == 0, "the control, which enables controllers"
    container = mount / "cbtest-container"
    container.mkdir()
    try:
        wrapper = ("sh", "-c", IN_CONTAINER, container)
        row = checked(cb, wrapper)["rows"]["memory"]
        assert (row["strength"], "a leaf" in row["remedy"]) == ("weak", True)
        r = cb.run("-c", "print(1)", wrapper=wrapper)
        assert (r.code, r.text) == (0, "1\n"), r
        assert cb.run(*STRONG, wrapper=wrapper).code == 125
    finally:
        container.rmdir()


def test_a_jail_without_a_freezer_is_stopped_between_cells(cb, no_cgroup):
    """Without a freezer pid 1 stops the processes by signals."""
    s = cb.session(wrapper=no_cgroup)
    s.run("import threading")
    s.run("n = 0")
    s.run("def count():\n    global n\n    while True: n += 1\n")
    s.run("threading.Thread(target=count, daemon=True).start()")
    tree = cb.tree(s)

    def stopped():
        now = [hosttree.stat_of(pid) for pid in tree.guests()]
        return now and all(st and st[0] == b"T" for st in now)
    s.wait(stopped, "every process of the jail to be stopped")
    before = tree.wait_at_rest()
    for _ in range(20):
        assert tree.nothing_runs()
    assert tree.guests_ran() == before
    assert "True" in s.run("n > 0")


def test_control_the_removed_features_are_missing(cb):
    """The control of all tests above: the feature is really missing."""
    for kind in KINDS:
        r = subprocess.run(
            [*without(kind, "mkdirat"), PYTHON, "-c", "import os\n"
             "try: os.mkdir('x', dir_fd=os.open('.', os.O_RDONLY))\n"
             "except OSError as e: print(e)"],
            cwd=cb.work, capture_output=True, text=True, check=False)
        want = "not implemented" if kind == "ENOSYS" else "not permitted"
        assert want in r.stdout, r
    if IS_ROOT:
        r = subprocess.run([*NO_CGROUP, "cat", "/proc/self/mountinfo"],
                           capture_output=True, text=True, check=True)
        assert "cgroup" not in r.stdout
    r = subprocess.run([*NO_PROC, "cat", "/proc/self/mountinfo"],
                       capture_output=True, text=True, check=True)
    assert "/proc/irq" in r.stdout and os.path.isdir("/proc/irq")
