# SPDX-License-Identifier: MIT
"""A host of their own for the tests, inside the real one.

    ownhost.py COMMAND [ARG]...

Root's run moves into a mount and a pid namespace (enter()). It sees nothing of
the product that the host has: /etc is a copy without /etc/cellblock and the
accounts of the package, in which nobody but root has a home; /run, /tmp,
/var/tmp and /dev/shm are empty, and so is each directory where sockets of
sessions may lie; no other process and no other cgroup is seen.
All that the tests leave there goes with the namespaces, whatever ends the run.

As a command: each worker of the tests is started by it. Root's worker gets a
/run, an /etc and cgroups of its own, so that neither sessions nor accounts of
one test are seen by another that runs at the same time. Orphans stay below
this process, so that a worker can find whatever its tests have started.
"""
import contextlib
import ctypes
import os
import pathlib
import pwd
import secrets
import signal
import subprocess
import sys
import time

CLONE_NEWNS, CLONE_NEWPID = 0x00020000, 0x20000000
CLONE_NEWCGROUP = 0x02000000
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
HERE = pathlib.Path(__file__).resolve()
LIBC = ctypes.CDLL(None, use_errno=True)
PEOPLE = range(1000, 60000)
ACCOUNTS = "cellblock", "cellblock-serve"   # etc/sysusers.d
EMPTY = {"/run": "755", "/tmp": "1777", "/var/tmp": "1777",
         "/dev/shm": "1777"}


def call(name, *args):
    if getattr(LIBC, name)(*args) < 0:
        errno = ctypes.get_errno()
        raise OSError(errno, f"{name}: {os.strerror(errno)}")


def mount(*args):
    subprocess.run(["mount", *map(str, args)], check=True,
                   capture_output=True, text=True)


def tmpfs(path, mode):
    mount("-t", "tmpfs", "-o", f"mode={mode}", "cbtest", path)


def hide(kept):
    """Make the directories of EMPTY empty, except for the way to `kept`."""
    held = {p: os.open(p, os.O_PATH) for p in kept
            if any(p.is_relative_to(e) for e in EMPTY)}
    for path, mode in EMPTY.items():
        if not os.path.islink(path) and os.path.isdir(path):
            tmpfs(path, mode)
    # systemd-analyze wants it to be there.
    os.makedirs("/run/systemd", exist_ok=True)
    for path, fd in held.items():
        path.mkdir(parents=True, exist_ok=True)
        mount("--no-canonicalize", "--rbind", f"/proc/{os.getpid()}/fd/{fd}",
              path)
        os.close(fd)


def take_homes(passwd):
    """Root lists the sessions in each home. Those of people may begin at any time,
    in a directory that is not there yet to be hidden."""
    lines = [line.split(":") for line in passwd.read_text().splitlines()]
    for fields in lines:
        if len(fields) == 7 and int(fields[2]) in PEOPLE:
            fields[5] = "/nonexistent"
    passwd.write_text("".join(":".join(f) + "\n" for f in lines))


def drop_accounts(etc):
    """Without the package's group nobody is a member of it, either."""
    for path in (etc / n for n in ("passwd", "shadow", "group", "gshadow")):
        if path.exists():
            lines = path.read_text().splitlines(keepends=True)
            path.write_text("".join(
                line for line in lines if line.split(":")[0] not in ACCOUNTS))


def copy_etc():
    copy = pathlib.Path("/run/etc")
    copy.mkdir()
    tmpfs(copy, "755")
    # A lock of useradd's, say, is gone before it is copied: then once more.
    for last in False, False, False, False, True:
        r = subprocess.run(["cp", "-a", "/etc/.", copy], check=last,
                           stderr=None if last else subprocess.DEVNULL)
        if r.returncode == 0:
            break
    for lock in copy.glob("*.lock"):
        lock.unlink()
    subprocess.run(["rm", "-rf", copy / "cellblock"], check=True)
    drop_accounts(copy)
    take_homes(copy / "passwd")
    mount("--move", copy, "/etc")
    copy.rmdir()


def hide_sessions():
    """Where the directory is not there yet, hide one that it would be in."""
    for entry in pwd.getpwall():
        place = pathlib.Path(entry.pw_dir, ".local/state/cellblock")
        for hidden in place, place.parent, place.parent.parent:
            if hidden.is_dir() and not HERE.is_relative_to(hidden):
                with contextlib.suppress(subprocess.CalledProcessError):
                    tmpfs(hidden, "700")
                    os.chown(hidden, entry.pw_uid, entry.pw_gid)
                break


def remove_tree(tree):
    for path, _, _ in os.walk(tree, topdown=False):
        with contextlib.suppress(OSError):
            os.rmdir(path)


def awaits_thaw(pid):
    """Whether a process was killed and is frozen: in version 1 of cgroups it
    does not die before it is thawed."""
    try:
        status = pathlib.Path("/proc", pid, "status").read_text()
    except OSError:
        return False
    pending = [int(line.split()[1], 16) for line in status.splitlines()
               if line.startswith(("SigPnd:", "ShdPnd:"))]
    return any(mask >> signal.SIGKILL - 1 & 1 for mask in pending)


def thaw_dead(tree):
    """Let the killed processes of a jail die whose warden and janitor were
    killed with them: nobody else is left who does."""
    for path, _, files in os.walk(tree):
        with contextlib.suppress(OSError):
            if "freezer.state" in files and any(map(awaits_thaw, pathlib.Path(
                    path, "cgroup.procs").read_text().split())):
                pathlib.Path(path, "freezer.state").write_text("THAWED")


def has_processes(tree):
    for path, _, _ in os.walk(tree):
        with contextlib.suppress(OSError):
            if pathlib.Path(path, "cgroup.procs").read_text():
                return True
    return False


class Cgroups:
    """A part of each hierarchy of cgroup version 1 that the product uses, which
    looks like the whole to who is in it. (The one hierarchy of version 2 needs
    none: there it is seen whether others are in a cgroup.)"""

    TOP = pathlib.Path("/sys/fs/cgroup")
    HIERARCHIES = "memory", "pids", "cpu", "cpuacct", "freezer"
    NAME = "cellblock-test-"
    OLD_SECONDS = 60
    # leaks.py finds the cgroups that are left after that.
    GONE_SECONDS = 8 * float(os.environ.get("CELLBLOCK_TEST_PATIENCE", "1"))

    def __init__(self):
        # One hierarchy may have two controllers, and a link for each.
        tops = {(self.TOP / h).resolve() for h in self.HIERARCHIES}
        name = f"{self.NAME}{int(time.time())}-{secrets.token_hex(4)}"
        self.places = [top / name for top in sorted(tops)
                       if os.access(top / "cgroup.procs", os.W_OK)]

    def enter(self):
        for place in self.places:
            place.mkdir()
            (place / "cgroup.procs").write_text("0")
        if self.places:
            call("unshare", CLONE_NEWCGROUP)
        for place in self.places:
            top = place.parent
            subprocess.run(["umount", "-l", top], check=True)
            mount("-t", "cgroup", "-o", top.name, "cgroup", top)

    def wait_empty(self):
        """Wait for the end of processes that the tests have ended."""
        end = time.monotonic() + self.GONE_SECONDS
        while any(map(has_processes, self.places)) and time.monotonic() < end:
            self.thaw()
            with contextlib.suppress(ChildProcessError):
                os.waitpid(-1, os.WNOHANG)
            time.sleep(0.01)

    def thaw(self):
        for place in self.places:
            thaw_dead(place)

    def remove(self):
        """For who has stayed outside. With those of runs that were killed. In
        that of a run which goes on a session may be about to enter a cgroup."""
        for place in self.places:
            for tree in place.parent.glob(f"{self.NAME}*-*"):
                made = int(tree.name.split("-")[-2])
                old = time.time() - made > self.OLD_SECONDS
                if old:
                    thaw_dead(tree)
                if tree == place or (old and not has_processes(tree)):
                    remove_tree(tree)


def refusal():
    """Why this host allows no such namespaces, or None."""
    r = subprocess.run(["unshare", "-mpf", "--mount-proc", "true"],
                       capture_output=True, text=True, check=False)
    return r.stderr.strip() if r.returncode else None


def enter(*kept):
    """Go on in namespaces of our own. The caller's process stays outside, waits
    and ends with the same status. `kept` are directories to be seen inside."""
    cgroups = Cgroups()
    call("unshare", CLONE_NEWPID)
    child = os.fork()
    if child:
        code = follow(child, cgroups.thaw)
        cgroups.remove()
        sys.exit(code)
    call("prctl", PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    here = os.getcwd()
    own_mounts()
    mount("-t", "proc", "proc", "/proc")
    cgroups.enter()
    hide(kept)
    os.chdir(here)
    copy_etc()
    hide_sessions()


def follow(child, thaw):
    """Pass signals on to a child and wait for its end. Returns its status. The
    first process of a pid namespace ends after all others of it."""
    for s in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(s, lambda signum, _: os.kill(child, signum))
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
    pid = 0
    while not pid:
        pid, status = os.waitpid(child, os.WNOHANG)
        if not pid:
            signal.sigtimedwait([signal.SIGCHLD], 1)
            thaw()
    status = os.waitstatus_to_exitcode(status)
    return status if status >= 0 else 128 - status


def adopt_orphans():
    call("prctl", PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def own_mounts():
    call("unshare", CLONE_NEWNS)
    mount("--make-rprivate", "/")


def own_run_and_etc():
    own_mounts()
    tmpfs("/run", "755")
    copy_etc()
    # Accounts of different workers have different ids, too.
    first = 20000 + os.getpid() % 400 * 100
    with open("/etc/login.defs", "a") as f:
        f.write(f"SYS_UID_MIN {first}\nSYS_UID_MAX {first + 99}\n"
                f"SYS_GID_MIN {first}\nSYS_GID_MAX {first + 99}\n")


def is_for_install():
    """Whether systemd runs here, and the tests may have it start things."""
    return "CELLBLOCK_TEST_MAY_INSTALL" in os.environ and \
        os.path.isdir("/run/systemd/system")


def main(argv):
    cgroups = Cgroups()
    os.environ["CELLBLOCK_TEST_BELOW"] = str(os.getpid())
    adopt_orphans()
    child = os.fork()
    if child == 0:
        call("prctl", PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.geteuid() == 0 and not is_for_install():
            with contextlib.suppress(OSError, subprocess.CalledProcessError):
                own_run_and_etc()
                cgroups.enter()
        os.execvp(argv[0], argv)
    null = os.open("/dev/null", os.O_RDWR)
    for fd in 0, 1:
        os.dup2(null, fd)
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == child:
            cgroups.wait_empty()
            cgroups.remove()
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
