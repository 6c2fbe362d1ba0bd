# SPDX-License-Identifier: MIT
#
# guest_park.py - the driver's checkpoints: copies of the live guest, asleep
#
# Runs in:   the guest, after a cell; compiled into guest.py's own globals
#            the first time it is needed
# Trusts:    as guest.py does
# Leaves:    a checkpoint beside a live guest that shows no trace of it
#
# What parking cannot hide: os.fork() runs the hooks of os.register_at_fork()
# and raises the audit event os.fork (a raw fork would skip the hooks of the
# interpreter's locks and of libc as well, and hang); a SIGCHLD handler that
# was installed from C, and a thread that sits in os.wait() at that very
# moment, may see the process in the middle.

#: section park
from posix import (O_ACCMODE, O_APPEND, O_CLOEXEC, O_DIRECTORY,
                   O_NONBLOCK, O_PATH, O_SYNC, O_WRONLY, P_ALL,
                   WEXITED, WNOHANG, WNOWAIT, waitstatus_to_exitcode)
from errno import EAGAIN, ENOMEM
from _signal import SIGCHLD, raise_signal
from _stat import S_ISCHR, S_ISDIR, S_ISREG
fcntl = load("fcntl")

REOPEN = O_ACCMODE | O_APPEND | O_DIRECTORY | O_NONBLOCK | O_SYNC
OOM_LIVE, OOM_ASLEEP = b"500", b"0"
S.writers = {}  # descriptor -> what it was, and the file objects on top


def park(no, sock):
    "leave a checkpoint behind; returns in the live guest, now or much later"
    count, others = names(), threads()
    random = random_state()
    flush_writers()
    why = copy()
    if why is not None:
        close(sock)
        return say("PARKED %s %s" % (no, why))
    setpgid(0, 0)
    S.pid, S.lost = getpid(), _count()
    dup2(sock, S.ctl, False)
    close(sock)
    shared = seal()
    oom_score(OOM_ASLEEP)
    say("ASLEEP %d %d %d" % (S.pid, count, others))
    try:
        order = recv(64)
    except OSError:
        order = b""
    if order != b"RESUME":
        _exit(0)
    for fd, at in shared:
        lseek(fd, at, 0)
    if random:
        random_restore(*random)
    oom_score(OOM_LIVE)
    say("AWAKE %d %d" % (S.pid, count))


def copy():
    "the double fork: None in the checkpoint, a word for PARKED in the live"
    old = getsignal(SIGCHLD)
    if old is not None:  # no handler may see the process in the middle
        signal(SIGCHLD, SIG_DFL)
    why = "ok"
    try:
        middle = quiet_fork()
        if middle == 0:
            try:
                if fork():
                    _exit(0)
            except OSError as e:
                _exit(e.errno)
            if old is not None:
                signal(SIGCHLD, old)
            return None
        code = waitstatus_to_exitcode(waitpid(middle, 0)[1])
        if code:
            why = fork_error(code)
    except ChildProcessError:
        pass  # somebody else's wait() took the one in the middle
    except OSError as e:
        why = fork_error(e.errno)
    if old is not None:
        signal(SIGCHLD, SIG_DFL)  # drops the news of it, which waits blocked
        signal(SIGCHLD, old)
        other_children(old)
    return why


def fork_error(errno):
    return {EAGAIN: "processes", ENOMEM: "memory"}.get(errno, "fork")


def quiet_fork():
    "3.12 warns of threads; the user's filters must neither show nor raise it"
    if sys.version_info < (3, 12):
        return fork()
    import _warnings
    filters = getattr(sys.modules.get("warnings"), "filters", None)
    if type(filters) is not list:
        filters = _warnings.filters
    # Without _filters_mutated(): what was shown once is still known as shown.
    filters.insert(0, ("ignore", None, DeprecationWarning, None, 0))
    try:
        return fork()
    finally:
        del filters[0]


def other_children(old):
    "the user's own children that ended meanwhile are not forgotten"
    try:
        if old == SIG_IGN:
            while waitpid(-1, WNOHANG)[0]:
                pass
        elif waitid(P_ALL, 0, WEXITED | WNOHANG | WNOWAIT):
            raise_signal(SIGCHLD)
    except OSError:
        pass


def random_state():
    "a forked child reseeds `random`; the checkpoint must go on as it was"
    try:
        inst = sys.modules["random"]._inst
        return inst, inst.getstate()
    except Exception:
        return None


def random_restore(inst, state):
    try:
        inst.setstate(state)
    except Exception:
        pass


def descriptors():
    "every descriptor but stdio and the driver's own"
    try:
        fds = [int(fd) for fd in listdir("/proc/self/fd")]
    except OSError:
        fds = range(1024)
    return [fd for fd in fds if fd not in S.keep]


def flush_writers():
    """What a file object holds back would be written by live and checkpoint.

    To find them takes a look at every object, which costs time and, worse,
    touches every page. So only if a regular file is open for writing, only
    when it is new here, and the youngest objects first."""
    new = {}
    for fd in descriptors():
        try:
            st = fstat(fd)
            if fd > 2 and S_ISREG(st.st_mode) and \
                    fcntl.fcntl(fd, fcntl.F_GETFL) & O_ACCMODE:
                new[fd] = st.st_dev, st.st_ino
        except OSError:
            pass
    known = S.writers
    S.writers = {fd: known[fd] for fd in new
                 if fd in known and known[fd][0] == new[fd]}
    if new:
        import gc
        for generation in 0, 1, 2:
            # In the youngest also for what os.fdopen() may have wrapped since.
            if generation < 2 or not all(fd in S.writers for fd in new):
                find_writers(gc.get_objects(generation), new)
        for fd in new:
            S.writers.setdefault(fd, (new[fd], []))
    for _, refs in S.writers.values():
        for ref in refs:
            flush_if_open(ref())


def find_writers(objects, new):
    import io
    from _weakref import ref
    kinds = io.TextIOWrapper, io.BufferedWriter, io.BufferedRandom
    for o in objects:
        if type(o) not in kinds:
            continue
        try:
            fd = o.fileno()
        except Exception:
            continue
        if fd in new:
            refs = S.writers.setdefault(fd, (new[fd], []))[1]
            if not any(r() is o for r in refs):
                refs.append(ref(o))


def flush_if_open(o):
    try:
        if o is not None and not o.closed and o.writable():
            o.flush()
    except Exception:
        pass


def seal():
    """In the checkpoint: nothing that another process can feel.

    Regular files get an offset (and no lock) of their own; where that cannot
    be, the offset is returned, to be restored. Pipes, sockets, terminals but
    the session's, and whatever else waits or wakes become one dead socket."""
    from _socket import socketpair
    dead, peer = socketpair()
    peer.close()
    shared = []
    for fd in descriptors():
        try:
            st = fstat(fd)
            flags = fcntl.fcntl(fd, fcntl.F_GETFL)
            inherit = not fcntl.fcntl(fd, fcntl.F_GETFD) & fcntl.FD_CLOEXEC
        except OSError:
            continue
        if flags & O_PATH or fd == dead.fileno() or quiet_device(st):
            continue
        if not S_ISREG(st.st_mode) and not S_ISDIR(st.st_mode):
            dup2(dead.fileno(), fd, inherit)
        elif not reopened(fd, flags & REOPEN, inherit):
            try:
                shared.append((fd, lseek(fd, 0, 1)))
            except OSError:
                pass
    return shared


def quiet_device(st):
    "a device that nobody waits for: not a terminal of the user's making"
    major = st.st_rdev >> 8 & 0xFFF
    return S_ISCHR(st.st_mode) and (
        st.st_rdev in (S.tty, 0x500) or not 136 <= major < 144 and major != 5)


def reopened(fd, flags, inherit):
    try:
        at = lseek(fd, 0, 1)
        own = posix_open("/proc/self/fd/%d" % fd, flags | O_CLOEXEC)
        lseek(own, at, 0)
        dup2(own, fd, inherit)
        close(own)
        return True
    except OSError:
        return False


def oom_score(value):
    "who goes first when memory ends; not every kernel lets us say"
    try:
        fd = posix_open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC)
        try:
            write(fd, value)
        finally:
            close(fd)
    except OSError:
        pass
