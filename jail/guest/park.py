# SPDX-License-Identifier: MIT
#
# park.py - checkpoints: copies of the live guest, asleep
#
# Runs in:   the guest, after a cell
# Trusts:    as cells.py
# Leaves:    a checkpoint beside a live guest that shows no trace of it
#
# No program can tell that it is copied, neither now nor when it continues as
# the copy, except by what no copy can have: its pid, threads, children,
# timers, pipes and sockets. copy.c makes the copy. Where copy.c cannot be
# loaded (a jail without /proc, a Python without _ctypes), os.fork() is called
# twice. Then the process in the middle adds to what getrusage() reports of
# children, a thread in os.wait() and a SIGCHLD handler may see that process,
# and an audit hook sees os.fork.
from posix import (O_ACCMODE, O_APPEND, O_CLOEXEC, O_DIRECTORY,
                   O_NONBLOCK, O_PATH, O_RDWR, O_SYNC, waitstatus_to_exitcode)
from errno import EAGAIN, ENOMEM
from _signal import SIGCHLD, sigtimedwait
from _thread import get_ident
from _stat import S_ISCHR, S_ISDIR, S_ISREG
fcntl = stdlib("fcntl")

REOPEN = O_ACCMODE | O_APPEND | O_DIRECTORY | O_NONBLOCK | O_SYNC
REFUSED = {-EAGAIN: "processes", -ENOMEM: "memory"}
S.writers = {}  # descriptor -> (device, inode), weak references to its files


def warm():
    "load what the next cells will need, before the copy is made"
    while S.warm:
        name = S.warm.pop()
        try:
            if name != "customize":
                stdlib(name)
            elif not S.site:
                part(name)
                customize()
        except Exception:
            pass  # the cell that needs it will say so


def park(no, sock, trial):
    """make a checkpoint, or a copy for a trial; returns in the live guest, and in
    a resumed copy"""
    ok, plain, count, others = "ok", False, names(), threads()
    if not trial:
        part("changed")
        ok = "same" if is_unchanged() else "ok"
        # A thread could open a file before the copy is made.
        plain = flush_writers(sock) and not others and S.copy is not twice
    S.parking = get_ident()
    pid = S.copy(sock, S.ctl, b" %d %d" % (count, others) if plain else None,
                   not trial)
    S.parking = None
    if pid:
        close(sock)
        say("PARKED %s %s" % (
            no, ok if pid > 0 else REFUSED.get(pid, "fork")))
        return None if trial else S.copy_pages(S.ctl)
    S.pid, S.lost, S.trial = getpid(), _count(), trial
    if trial:
        silence()
    if not plain:
        sleep_sealed(sock, count, others)
    say("AWAKE %d %d" % (S.pid, count))


def silence():
    "nothing that runs in a copy for a trial reaches the terminal"
    null = posix_open("/dev/null", O_RDWR | O_CLOEXEC)
    for fd in 0, 1, 2, S.mark, S.line:
        dup2(null, fd, fd < 3)
    close(null)


def sleep_sealed(sock, count, others):
    "be a checkpoint, which holds nothing of the live guest's, until it is live"
    setpgid(0, 0)
    dup2(sock, S.ctl, False)
    close(sock)
    shared, locks = seal()
    say("ASLEEP %d %d %d" % (S.pid, count, others))
    try:
        order = recv(64)
    except OSError:
        order = b""
    if order != b"RESUME":
        _exit(0)
    for fd, at in shared:
        lseek(fd, at, 0)
    for fd, kind in locks:
        lock_again(fd, kind)


def library():
    "the functions of copy.c and look.c"
    c = stdlib("_ctypes")
    number = type("number", (c._SimpleCData,), {"_type_": "i"})
    function = type("function", (c.CFuncPtr,), {
        "_restype_": number, "_flags_": 1 | 4})  # CDECL | PYTHONAPI
    handle = c.dlopen("/proc/self/fd/%d" % S.library, 2)
    thing = type("thing", (c._SimpleCData,), {"_type_": "O"})
    S.note = lambda first, *names: note(first, *map(thing, names))
    make, pages, note, S.same = [function(c.dlsym(handle, name)) for name in (
        "copy_make", "copy_pages", "look_note", "look_same")]
    return make, pages


def twice(*_):
    "without copy.c: 0 in the copy; here a positive number, or minus an errno"
    try:
        middle = quiet_fork()
        if middle == 0:
            try:
                return fork() and _exit(0)
            except OSError as e:
                _exit(e.errno)
        code = waitstatus_to_exitcode(waitpid(middle, 0)[1])
    except ChildProcessError:
        code = 0  # a wait() of another thread took the status
    except OSError as e:
        return -e.errno
    news = sigtimedwait((SIGCHLD,), 0)
    if news and news.si_pid != middle:
        kill(S.pid, SIGCHLD)
    return -max(code, 1) if code else middle


def quiet_fork():
    "fork() without the warning that 3.12 gives when there are threads"
    if sys.version_info < (3, 12):
        return fork()
    import _warnings
    filters = getattr(sys.modules.get("warnings"), "filters", None)
    if type(filters) is not list:
        filters = _warnings.filters
    # Not _filters_mutated(): a warning shown once still counts as shown.
    filters.insert(0, ("ignore", None, DeprecationWarning, None, 0))
    try:
        return fork()
    finally:
        del filters[0]


try:
    S.copy, S.copy_pages = library()
except Exception:
    S.copy, S.copy_pages = twice, int
note_whole()
S.keep.remove(S.library)
close(S.library)


def descriptors():
    "every descriptor but stdio and the driver's own"
    try:
        fds = [int(fd) for fd in listdir("/proc/self/fd")]
    except OSError:
        fds = range(1024)
    return [fd for fd in fds if fd not in S.keep]


def flush_writers(sock):
    """Flush file objects, or live guest and checkpoint both write the buffer.
    True when no descriptor but `sock` would have to be sealed in a copy.

    Finding them takes a walk over every object, which costs time and, worse,
    touches every page. So it is done only when a regular file is newly open
    for writing, and the youngest objects come first."""
    new, plain = {}, True
    for fd in descriptors():
        try:
            st = fstat(fd)
            plain = plain and (fd == sock or quiet_device(st))
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
            # The youngest always: os.fdopen() may wrap a known descriptor.
            if generation < 2 or not all(fd in S.writers for fd in new):
                find_writers(gc.get_objects(generation), new)
        for fd in new:
            S.writers.setdefault(fd, (new[fd], []))
    for _, refs in S.writers.values():
        for ref in refs:
            flush_if_open(ref())
    return plain


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
    """In the checkpoint: drop what another process could notice.

    Regular files get their own offset and no lock. Where that fails, the
    offset is returned and restored later; locks are returned and taken again.
    Pipes, sockets, terminals but the session's, and whatever else can wait or
    wake are replaced by one dead socket."""
    from _socket import socketpair
    dead, peer = socketpair()
    peer.close()
    fds = descriptors()
    twin, shared, locks = twins(fds), [], []
    for fd in fds:
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
            continue
        if fd in twin:
            dup2(twin[fd], fd, inherit)
            continue
        kind = lock_of(fd)
        if not reopened(fd, flags & REOPEN, inherit):
            try:
                shared.append((fd, lseek(fd, 0, 1)))
            except OSError:
                pass
        elif kind:
            locks.append((fd, kind))
    return shared, locks


def twins(fds):
    "which descriptors share one open file, as after dup()"
    firsts, twin = {}, {}
    for fd in fds:
        try:
            st = fstat(fd)
            if S_ISREG(st.st_mode) or S_ISDIR(st.st_mode):
                same = firsts.setdefault((st.st_dev, st.st_ino), [])
                for first in same:
                    if are_twins(first, fd):
                        twin[fd] = first
                        break
                else:
                    same.append(fd)
        except OSError:
            pass
    return twin


def are_twins(a, b):
    "toggle O_NONBLOCK, which a regular file ignores: does b follow?"
    was, other = fcntl.fcntl(a, fcntl.F_GETFL), fcntl.fcntl(b, fcntl.F_GETFL)
    fcntl.fcntl(a, fcntl.F_SETFL, was ^ O_NONBLOCK)
    try:
        return fcntl.fcntl(b, fcntl.F_GETFL) != other
    finally:
        fcntl.fcntl(a, fcntl.F_SETFL, was)


def on_file(path, flags, f, *args):
    "call f on a file that is open for this only; None where that fails"
    try:
        fd = posix_open(path, flags | O_CLOEXEC)
        try:
            return f(fd, *args)
        finally:
            close(fd)
    except OSError:
        return None


def lock_of(fd):
    "the flock() lock on this open file, or None"
    words = (on_file("/proc/self/fdinfo/%d" % fd, 0, read, 4096)
             or b"").split()
    if b"FLOCK" not in words:
        return None
    return fcntl.LOCK_EX if b"WRITE" in words else fcntl.LOCK_SH


def lock_again(fd, kind):
    try:
        fcntl.flock(fd, kind | fcntl.LOCK_NB)
    except OSError:
        pass  # another process has taken the lock


def quiet_device(st):
    "the session's tty, or a device that is no terminal"
    major = st.st_rdev >> 8 & 0xFFF
    return S_ISCHR(st.st_mode) and (
        st.st_rdev in (S.tty, 0x500) or not 136 <= major < 144 and major != 5)


def reopened(fd, flags, inherit):
    def replace(own):
        lseek(own, lseek(fd, 0, 1), 0)
        dup2(own, fd, inherit)
        return True
    return on_file("/proc/self/fd/%d" % fd, flags, replace)
