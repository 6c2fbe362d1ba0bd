# SPDX-License-Identifier: MIT
"""Promises that are checked from the host: neighbouring sessions, signals,
core dumps, and traces that one jail leaves for the next."""
import contextlib
import ctypes
import fcntl
import json
import os
import re
import resource
import signal
import stat
import subprocess
import sys
import time

import pytest

import hosttree
from inflight import wait_landed
from world import PATIENCE, PYTHON

# Root's jails have a host id of their own, a person's have the person's.
pytestmark = pytest.mark.both


@pytest.fixture
def neighbours(cb):
    a, b = cb.session("-q"), cb.session("-q")
    return a, b


def test_abstract_sockets_are_not_shared(neighbours):
    a, b = neighbours
    bind = "import socket; s = socket.socket(socket.AF_UNIX)"
    a.run(bind)
    assert a.run("s.bind('\\0cb-neighbour'); s.listen()") == ""
    b.run(bind)
    assert "ConnectionRefusedError" in b.run("s.connect('\\0cb-neighbour')")
    a.run("c = socket.socket(socket.AF_UNIX)")
    assert a.run("c.connect('\\0cb-neighbour'); 'control'") == "'control'"


@pytest.mark.parametrize("place", ["/tmp", "/dev/shm", "/home"])
def test_writable_places_are_not_shared(neighbours, place):
    a, b = neighbours
    assert a.run(f"open('{place}/note', 'w').write('hi')") == "2"
    assert "FileNotFoundError" in b.run(f"open('{place}/note')")
    assert a.run(f"open('{place}/note').read()") == "'hi'"


def test_system_v_shared_memory_is_not_shared(cb):
    made = subprocess.run(["ipcmk", "-M", "4096"], capture_output=True,
                          text=True, check=True)
    ident = re.search(r"(\d+)", made.stdout).group(1)
    try:
        r = cb.run("-c", f"""if 1:
            import ctypes
            l = ctypes.CDLL(None, use_errno=True)
            l.shmat.restype = ctypes.c_long
            print(l.shmat({ident}, 0, 0), ctypes.get_errno())
        """)
        assert r.text.split() in (["-1", "22"], ["-1", "1"], ["-1", "38"]), r
        shown = subprocess.run(["ipcs", "-m", "-i", ident],
                               capture_output=True, text=True, check=True)
        assert "nattch" in shown.stdout
    finally:
        subprocess.run(["ipcrm", "-m", ident], check=True)


def test_posix_message_queues_are_not_shared(cb):
    libc = ctypes.CDLL(None, use_errno=True)
    name = f"/cellblock-test-{os.getpid()}".encode()
    queue = libc.mq_open(name, os.O_CREAT | os.O_RDWR, 0o666, None)
    assert queue >= 0, os.strerror(ctypes.get_errno())
    try:
        again = libc.mq_open(name, os.O_RDONLY)
        assert again >= 0, "the control"
        os.close(again)
        r = cb.run("-c", "import ctypes; l = ctypes.CDLL(None); print("
                   f"l.mq_open({name!r}, {os.O_RDONLY}))")
        assert r.text == "-1\n", r
    finally:
        os.close(queue)
        libc.mq_unlink(name)


@pytest.fixture
def separate_locks():
    """Skips unless overlays can be mounted (Linux 5.11): only then do exposed
    files have locks of their own."""
    overlay = ("unshare", "-Urm", "mount", "-t", "overlay", "-o",
               "lowerdir=/usr/bin:/usr/lib", "overlay", "/tmp")
    r = subprocess.run(overlay, capture_output=True, text=True)
    if r.returncode:
        pytest.skip("no user may mount an overlay here: " + r.stderr.strip())


def test_file_locks_on_shared_files_do_not_reach_a_neighbour(
        separate_locks, neighbours):
    a, b = neighbours
    take = ("import fcntl; f = open('/usr/bin/env', 'rb');"
            " fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB); 'free'")
    a.run(take)
    assert b.run(take) == "'free'"


@pytest.mark.parametrize("what", [
    "open('/dev/null', 'r+b', 0)", "open('/dev/tty', 'rb', 0)",
    "os.eventfd(0)", "select.epoll()",
    *(f"open('/proc/self/ns/{n}', 'rb')" for n in ("user", "net", "time"))])
def test_locks_on_what_a_host_shares_do_not_reach_a_neighbour(
        neighbours, what):
    take = (f"f = {what}; fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)",
            f"f = {what}; fcntl.lockf(f, fcntl.LOCK_SH | fcntl.LOCK_NB)")
    for s in neighbours:
        s.run("import fcntl, os, select")
    for line in take:
        said = [s.run(line) for s in neighbours]
        assert not any("Resource temp" in x for x in said), said
        assert all(x in ("", *said[0:1]) for x in said), said
    control = ("f = open('/tmp/f', 'w');"
               " fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB); 'locked'")
    assert [s.run(control) for s in neighbours] == ["'locked'"] * 2


def test_file_locks_on_shared_files_do_not_reach_the_host(separate_locks, cb):
    s = cb.session("-q")
    s.run("import fcntl; f = open('/usr/bin/env', 'rb');"
          " fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB); 'free'")
    with open("/usr/bin/env", "rb") as f:
        fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.flock(f, fcntl.LOCK_UN)


@pytest.fixture
def own_inodes(cb):
    """Whether nothing that the jail shows is an inode of the host."""
    rows = json.loads(cb.run("--check", "--json").text)["checks"]
    return {r["what"]: r["strength"] for r in rows}["inodes"] == "strong"


WATCH = """
import ctypes, os
def watch(path):
    fd = inotify_init()
    wd = ctypes.CDLL(None).inotify_add_watch(fd, path.encode(), 0xfff)
    return fd if wd > 0 else 'no watch'
def inotify_init():
    l = ctypes.CDLL(None, use_errno=True)
    fd = l.inotify_init1(os.O_NONBLOCK)
    if fd < 0: raise OSError(ctypes.get_errno(), 'inotify_init1')
    return fd
def seen(fd):
    try: return len(os.read(fd, 4096))
    except BlockingIOError: return 0
"""


def test_no_cell_sees_what_the_host_opens(own_inodes, cb):
    """Where the inodes are the host's there is no inotify."""
    paths = ["/dev/null", "/dev/zero", "/dev/urandom", "/usr", "/usr/bin",
             "/usr/bin/env"]
    s = cb.session("-q")
    for line in WATCH.strip().split("\ndef "):
        s.run(line if line.startswith("import") else "def " + line)
    out = s.run(f"fds = [watch(p) for p in {paths}]; fds")
    if not own_inodes:
        assert "Errno 38" in s.run("inotify_init()"), out
        assert s.run("open('/dev/null', 'w').write('control')") == "7"
        return
    assert "no watch" not in out and "Error" not in out, out
    for path in paths:
        os.listdir(path) if os.path.isdir(path) else open(path, "rb").close()
    assert s.run("[seen(fd) for fd in fds]") == "[0, 0, 0, 0, 0, 0]"
    s.run("open('/dev/null', 'w').close(); open('/usr/bin/env').close()")
    assert "0" not in s.run("seen(fds[0]), seen(fds[5])"), "the control"


def is_free(f):
    try:
        fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.lockf(f, fcntl.LOCK_EX | fcntl.LOCK_NB, 1)
    except BlockingIOError:
        return False
    return True


@pytest.mark.alone  # other tests open the nodes
def test_nothing_of_a_cell_stays_at_a_device_node_of_the_host(own_inodes, cb):
    """No watch, no lock, no time, by root's sessions not even a trace in a
    watch of the host's own."""
    nodes = ["/dev/null", "/dev/zero", "/dev/urandom"]
    if own_inodes:  # others would be seen by who observes this one
        nodes.append("/dev/full")
    before = [os.stat(n) for n in nodes]
    libc = ctypes.CDLL(None, use_errno=True)
    observer = libc.inotify_init1(os.O_NONBLOCK)
    watched = libc.inotify_add_watch(observer, b"/dev/full", 0xfff)
    assert observer >= 0 and watched > 0, os.strerror(ctypes.get_errno())
    s = cb.session("-q")
    s.run("import fcntl, os")
    s.run(f"fs = [open(n, 'r+b', 0) for n in {nodes}]")
    for n in range(len(nodes)):
        s.run(f"fcntl.flock(fs[{n}], fcntl.LOCK_EX | fcntl.LOCK_NB)")
        s.run(f"fcntl.lockf(fs[{n}], fcntl.LOCK_EX | fcntl.LOCK_NB, 1)")
    assert "Read-only" in s.run("os.utime('/dev/null')")
    assert s.run("len(fs[1].read(5))") == "5"
    after = [os.stat(n) for n in nodes]
    assert [(x.st_mode, x.st_atime_ns, x.st_mtime_ns) for x in before] \
        == [(x.st_mode, x.st_atime_ns, x.st_mtime_ns) for x in after]
    for n in nodes:
        # Another test of this kind may hold it for a moment.
        with open(n, "r+b", 0) as f:
            hosttree.until(lambda: is_free(f), f"a lock on {n}")
    if not own_inodes:
        os.close(observer)
        return  # opens reach the host's nodes here; --check says so
    events = os.read(observer, 65536)
    os.close(observer)
    # Ours alone: one open and one close of /dev/full (and a read on no path).
    assert len(events) == 2 * 16, events


FLIGHT = """
import os, resource, socket
def send():
    ends = socket.socketpair()
    try: socket.send_fds(ends[0], [b'x'], [0] * 253)
    except OSError as e: return str(e.errno)
    kept.append(ends)
    return 'sent'
kept = []
"""
ETOOMANYREFS = 109
OUTSIDE = FLIGHT + """
for soft in 4096, 1024:
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, soft))
    if os.fork() == 0:
        print(send(), end=' ', flush=True)
        os._exit(0)
    os.wait()
"""


@pytest.mark.alone
def test_descriptors_in_flight_count_for_the_user_of_the_session(cb):
    """A session of root's has a user of its own. A person's programs need a
    limit above what cells have in flight, as --check says."""
    rows = json.loads(cb.run("--check", "--json").text)["checks"]
    row = {r["what"]: r for r in rows}["user's counts"]
    wait_landed()
    own = os.geteuid() == 0
    assert row["strength"] == ("strong" if own else "weak"), row
    assert cb.run("-c", FLIGHT + "print(send())").text == "sent\n", "control"
    s = cb.session("-q")
    s.run("import os, socket; kept = []")
    s.run("def send():\n    a, b = socket.socketpair(); kept.append((a, b))\n"
          "    socket.send_fds(a, [b'x'], [0] * 253)\n")
    assert "109" in s.run("while True: send()\n")
    r = cb.run("-c", FLIGHT + "print(send())")
    assert r.text == ("sent\n" if own else f"{ETOOMANYREFS}\n"), r
    if not own:
        said = subprocess.run([sys.executable, "-c", OUTSIDE], text=True,
                              capture_output=True, timeout=30 * PATIENCE)
        assert said.stdout.split() == ["sent", str(ETOOMANYREFS)], said


TABLES = ("import os; print(*(open(f'/proc/self/{n}').read() for n in"
          " ('mountinfo', 'mounts', 'mountstats')), os.path.ismount('/home'))")


def test_the_mounts_of_a_jail_name_no_person(cb):
    """The kernel shows the owner of a tmpfs as the host numbers it."""
    r = cb.run("-c", TABLES)
    if os.geteuid() == 0:
        assert "uid=" in r.text, r
        assert all(int(n) >= 65536 for n in re.findall(r"[ug]id=(\d+)", r.text))
    else:
        assert r.text.split() == ["True"], r
        with open("/proc/self/mountinfo") as f:
            assert f.read().strip(), "the control"


def test_the_mounts_of_a_jail_name_no_disk_of_the_host(own_inodes, cb):
    if not own_inodes and os.geteuid() == 0:
        pytest.skip("without overlays the kernel names the disk of each bind;"
                    " without nodes of its own, the host's devtmpfs")
    r = cb.run("-c", "print(open('/proc/self/mountinfo').read())")
    if os.geteuid() != 0:
        assert not r.text.strip(), r
        return
    types = {line.partition(" - ")[2].split()[0]
             for line in r.text.splitlines() if line}
    assert types == {"tmpfs", "devpts", "proc", "overlay"}, r.text


def keys_of(uid):
    """How many keys count for a user."""
    with open("/proc/key-users") as f:
        for line in f:
            user, _, _, used, *_ = line.split()
            if int(user.rstrip(":")) == uid:
                return int(used.partition("/")[0])
    return 0


def test_no_session_takes_a_key_of_the_person(cb):
    """A person has 200 keys (kernel.keys.maxkeys)."""
    if not os.path.exists("/proc/key-users"):
        pytest.skip("this kernel has no keyrings")
    before = keys_of(os.geteuid())
    sessions = [cb.session("-q") for _ in range(4)]
    assert [s.run("6 * 7") for s in sessions] == ["42"] * 4
    # Another test of the same user may have some for a moment.
    hosttree.until(lambda: keys_of(os.geteuid()) - before < 4, "no key of theirs")


@pytest.mark.root
def test_the_nis_domain_of_the_host_is_not_in_the_jail(cb):
    wrapper = ("unshare", "-u", "sh", "-c", "echo of-the-host >"
               " /proc/sys/kernel/domainname && exec \"$@\"", "sh")
    if os.geteuid() != 0:
        pytest.skip("only root can give the host a NIS domain")
    code = ("import ctypes; b = ctypes.create_string_buffer(390);"
            " ctypes.CDLL(None).uname(b); print(b.raw[325:].split(b'\\0')[0],"
            " b.raw[65:].split(b'\\0')[0])")
    control = subprocess.run([*wrapper, PYTHON, "-c", code],
                             capture_output=True, text=True, check=True)
    assert control.stdout.startswith("b'of-the-host'"), control
    r = cb.run("-c", code, wrapper=wrapper)
    assert r.text == "b'(none)' b'cellblock'\n", r


def test_signals_do_not_reach_the_host(cb):
    victim = subprocess.Popen(["sleep", "60"])
    try:
        r = cb.run("-c", f"""if 1:
            import os
            for n in ({victim.pid}, -{victim.pid}):
                try: os.kill(n, 9); print('sent')
                except OSError as e: print(type(e).__name__)
            p = os.fork()
            if not p: import time; time.sleep(9)
            os.kill(p, 9); print('control', os.waitpid(p, 0)[1])
        """)
        assert "sent" not in r.text and "control 9" in r.text, r
        assert victim.poll() is None
    finally:
        victim.kill()
        victim.wait()


RAISES = "import resource as r; r.setrlimit(4, (0, 0)); r.setrlimit(4, (1, 1))"


@pytest.mark.parametrize("hard", [-1, 0])
def test_a_crash_leaves_no_core_dump(cb, hard):
    """No core dump is piped to a program of the host either. A limit of 0 does
    not prevent that, a limit of 1 does. If the hard limit is 0, only root can
    raise it to 1."""
    if hard and resource.getrlimit(resource.RLIMIT_CORE)[1] != hard:
        pytest.skip("there is a hard limit on core dumps")
    least = "(1, 1)" if hard or subprocess.run(
        [PYTHON, "-c", RAISES], stderr=subprocess.DEVNULL,
        check=False).returncode == 0 else "(0, 0)"
    r = cb.run("-c", "import os, resource; print(resource.getrlimit("
               "resource.RLIMIT_CORE), flush=True); os.abort()",
               preexec_fn=lambda: resource.setrlimit(
                   resource.RLIMIT_CORE, (hard, hard)))
    assert r.code == 128 + signal.SIGABRT, r
    assert r.text.startswith(least), r
    assert not list(cb.work.rglob("*")) + list(cb.home.rglob("core*"))


def test_a_directory_on_standard_input_gives_no_access_to_the_host(cb):
    secret = cb.work / "secret"
    secret.write_text("host")
    directory = os.open(cb.work, os.O_RDONLY | os.O_DIRECTORY)
    try:
        p = cb.popen("-c", "import os\n"
                     "for n in range(4096):\n"
                     "    try: print(os.open('secret', 0, dir_fd=n), 'ESCAPED')\n"
                     "    except OSError: pass\n"
                     "print('done')",
                     stdin=directory, stdout=subprocess.PIPE,
                     stderr=subprocess.PIPE)
        out, err = p.communicate(timeout=30 * PATIENCE)
    finally:
        os.close(directory)
    assert b"ESCAPED" not in out
    assert b"done" in out or p.returncode != 0, (out, err)


def test_inherited_descriptors_do_not_reach_the_jail(cb):
    secret = cb.work / "secret"
    secret.write_text("host")
    f = os.open(secret, os.O_RDWR)
    os.set_inheritable(f, True)
    try:
        s = cb.session("-q", pass_fds=[f])
        out = s.run("import os; [os.readlink(f'/proc/self/fd/{n}') for n in"
                    " os.listdir('/proc/self/fd') if os.path.lexists("
                    "f'/proc/self/fd/{n}')]")
    finally:
        os.close(f)
    assert "secret" not in out.replace("\n", "")


@pytest.mark.parametrize("checkpoint", ["auto", "never"])
def test_no_planted_file_takes_effect_after_a_reset(cb, checkpoint):
    """While there are states to go back to, their jail stays, and its files."""
    s = cb.session("-q", "--set", f"cell.checkpoint={checkpoint}")
    s.run("import os; os.makedirs('/tmp/usr/lib'); os.symlink('/', '/tmp/r');"
          " open('/dev/shm/plant', 'w').close()")
    s.run("os.symlink('/etc', '/home/usr'); open('/home/sitecustomize.py',"
          " 'w').write('print(\"planted\")')")
    s.run("open('/home/usercustomize.py', 'w').write('print(\"planted\")');"
          " os.makedirs('/home/.local/lib')")
    out = s.run(":reset", 40)
    assert "planted" not in out + s.run("1")
    left = s.run("import os; os.listdir('/tmp'), os.listdir('/dev/shm')")
    assert left == "([], [])" or checkpoint == "auto", left
    assert s.run("os.listdir('/proc/self/root') == os.listdir('/')") == "True"


def test_modules_in_the_home_do_not_shadow_modules_of_the_driver(cb):
    s = cb.session("-q")
    for name in ("ast", "codeop", "linecache", "traceback", "random", "json"):
        s.run(f"open('/home/{name}.py', 'w').write('print(\"shadow\")')")
    out = s.run(":reset", 40)
    assert "shadow" not in out
    assert "ZeroDivisionError" in s.run("1/0")


def test_the_environment_of_the_host_is_not_in_the_jail(cb):
    s = cb.session("-q", env={"SECRET_TOKEN": "hunter2", "PYTHONPATH": "/x",
                              "PYTHONSTARTUP": "/x", "BASH_ENV": "/x"})
    assert s.run("import os; sorted(k for k in os.environ if k in ("
                 "'SECRET_TOKEN', 'PYTHONPATH', 'PYTHONSTARTUP',"
                 " 'BASH_ENV'))") == "[]"


@pytest.mark.root
def test_no_process_of_the_jail_holds_the_terminal_of_the_host(cb):
    """Otherwise a guest could type into the terminal of the front end."""
    s = cb.session("-q")
    mine = os.ttyname(s.slave)
    s.run("x = 1")
    t = cb.tree(s)
    if os.geteuid() != 0:
        pytest.skip("only root may look at the descriptors of the jail")

    def check(pid):
        links = []
        for n in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(FileNotFoundError):  # closed meanwhile
                links.append(os.readlink(f"/proc/{pid}/fd/{n}"))
        assert mine not in [x for x in links if x.startswith("/dev/pts")] \
            or os.stat(f"/proc/{pid}/fd/0").st_dev != os.fstat(s.slave).st_dev

    hosttree.check_each([t.init, *t.guests()], check)


def is_detached_proc(directory):
    """Whether it is a /proc of another pid namespace, which has none of our
    processes, and is mounted nowhere: its .. leads to itself."""
    return os.path.samestat(os.stat(directory), os.stat(directory + "/..")) \
        and "self" in os.listdir(directory) \
        and not os.path.exists(directory + "/self")


def directories_of(pid):
    """(path, whether the mount is in the process's own mount table, or a
    detached /proc of the jail's own) of each directory that the process has
    open."""
    found = []
    with open(f"/proc/{pid}/mountinfo") as f:
        inside = {line.split()[0] for line in f}
    for n in os.listdir(f"/proc/{pid}/fd"):
        where = f"/proc/{pid}/fd/{n}"
        with contextlib.suppress(FileNotFoundError):    # closed meanwhile
            if stat.S_ISDIR(os.stat(where).st_mode):
                with open(f"/proc/{pid}/fdinfo/{n}") as f:
                    mount = re.search(r"mnt_id:\s*(\d+)", f.read()).group(1)
                found.append((os.readlink(where), mount in inside or
                              is_detached_proc(where)))
    return found


@pytest.mark.root
def test_no_descriptor_of_the_jail_leads_out_of_it(cb):
    """A directory on a mount of the host would lead out: its .. leads to the
    host's root."""
    if os.geteuid() != 0:
        pytest.skip("only root may look at the descriptors of the jail")
    s = cb.session("-q")
    s.run("import os; here = os.open('/home', os.O_RDONLY)")
    t, seen = cb.tree(s), []
    hosttree.check_each([t.init, *t.guests()],
                        lambda pid: seen.extend(directories_of(pid)))
    assert ("/home", True) in seen, seen
    assert not [where for where, inside in seen if not inside], seen


def test_the_clock_of_the_host_cannot_be_set(cb):
    before = time.time() - time.monotonic()
    cb.run("-c", "import time\ntry: time.clock_settime(0, 1)\n"
           "except OSError: print('refused')")
    assert abs(time.time() - time.monotonic() - before) < 60


def test_ten_starts_leave_no_cgroup_and_no_mount(cb):
    cgroups, mounts = hosttree.cgroups(), hosttree.mounts()
    for _ in range(10):
        assert cb.run("-c", "pass").code == 0
    hosttree.wait_removed(lambda: hosttree.new_cgroups(cgroups))
    hosttree.wait_removed(lambda: hosttree.mounts() - mounts)
