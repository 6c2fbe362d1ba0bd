# SPDX-License-Identifier: MIT
#
# link.py - a session's messages from and to the warden
#
# Runs in:   the guest; the loop that the live guest and every checkpoint is in
# Trusts:    as cells.py
# Leaves:    only by a signal, or when a fork of the user returns into it
from binascii import crc32
from fcntl import F_DUPFD_CLOEXEC, fcntl as copy_fd, ioctl
from posix import environ, scandir
HOME_FOLDER = environ.get(b"HOME", b"/home").decode(
    "utf-8", "surrogateescape")
FILES_MOST = 300
STREAMS = "stdin", "stdout", "stderr"
# The parts that run a cell that is no Python.
RUNNERS = {"image": ("pictures", "errors"), "edit": ("edit", "errors")}
LEAST_DEPTH = 50  # the driver's own calls, and those of a small cell


def say(text, payload=b""):
    try:
        send(text.encode() + payload, 0x4000)  # MSG_NOSIGNAL
    except OSError:
        unlinked()


def unlinked():
    "the link to the warden is gone: die in a way that no exit status imitates"
    signal(STACK_SIGNAL, SIG_DFL)
    pthread_sigmask(SIG_UNBLOCK, (STACK_SIGNAL,))
    kill(getpid(), STACK_SIGNAL)


def cell(fds, no, size, crc, mark, kind="silent"):
    size, source = int(size), b""
    while len(source) < size:
        try:
            got = read(S.line, size - len(source))
        except OSError:
            got = b""
        if not got:
            return say("BAD %s short" % no)
        source += got
    if crc32(source) != int(crc):
        return say("BAD %s crc" % no)
    # An interrupt that comes from now on waits, blocked, for call().
    signal(SIGINT, S.on_int)
    say("TOOK " + no)
    bundles = kind == "bundle"
    kind = "silent" if bundles else kind
    S.owed, S.kind, S.leaves = (no, mark), kind, False
    S.habitual = kind == "habit" or kind == "prompt" and any(
        word in source for word in HABITUAL)
    if kind in RUNNERS or S.habitual or needs_site(source):
        if S.linecache is None:
            S.linecache = stdlib("linecache")
        if not S.site:
            part("customize")
            customize()
    if b"pdb" in source or b"breakpoint" in source:
        part("debug")
    if S.habitual:
        part("habits")
        note_inputs(no, source)
    counts = kind not in ("silent", "edit")  # for :diff
    if counts:
        S.before, S.after = S.after, None
        if S.before is None:  # no checkpoint was made since the last cell
            S.before = {name: id(NS[name]) for name in [*NS]}
        S.ran = [no, time_ns(), S.ran[4] if S.ran and S.ran[4:] else
                 home_files()]
    S.how, S.error, S.status = "interrupted", None, 0
    if kind != "silent" and fds:
        S.pictures, S.place = fds[0], mark.encode()
    run = execute
    if kind in RUNNERS:
        for name in RUNNERS[kind]:
            part(name)
        run = show_file if kind == "image" else edit_text
    lost = call(run, "<cell %s>" % no, source)
    if bundles and S.how == "ok" and getpid() == S.pid:
        for name in "figures", "bundle":
            part(name)
        failed = int(no) in S.values and call(
            tell_bundle, fds[0], S.values[int(no)])
        if failed:
            S.how, lost, failed = "interrupted", failed, None
    plt = fds and kind == "silent" and S.modules.get("matplotlib.pyplot")
    pipe, S.pictures = S.pictures, None
    if counts:
        S.ran.append(time_ns())
    if plt and getpid() == S.pid:
        part("figures")
        failed = call(tell_figures, fds[0], plt)
        if failed and S.error is None:
            S.how, lost, failed = "interrupted", failed, None
    if S.how == "interrupted" and S.error is None:
        S.error = lost
    if getpid() == S.pid and not is_whole():
        part("mend")
        S.broken = mend()
    if S.error is not None:
        part("errors")
        report(S.error)
        if S.how == "raised" and pipe is not None and getpid() == S.pid:
            part("hints")
            call(tell_hint, pipe, S.error)
    S.error = lost = failed = plt = None
    ended()


def home_files():
    """what is in the home and when it last changed, for :diff; None: it is
    much"""
    found, todo = {}, [HOME_FOLDER]
    try:
        while todo:
            folder = todo.pop()
            for entry in scandir(folder):
                found[folder + "/" + entry.name] = entry.stat(
                    follow_symlinks=False).st_ctime_ns
                if entry.is_dir(follow_symlinks=False):
                    todo.append(folder + "/" + entry.name)
            if len(found) > FILES_MOST:
                return None
    except OSError:
        return None
    return found


def ended():
    out, err = getattr(sys, "stdout", None), getattr(sys, "stderr", None)
    if out is not S.streams[1] or err is not S.streams[2]:
        call(flush, out, err)
    call(flush, *S.streams[1:])
    if getpid() != S.pid:  # a child forked by the cell came back to here
        _exit(S.status)
    if S.broken:
        put(("cellblock: put back what this cell broke: %s\n"
             % ", ".join(S.broken)).encode("utf-8", "backslashreplace"))
        S.broken = ()
    (no, mark), S.owed = S.owed, None
    hush()
    marked = put(b"\33_%s\33\\" % mark.encode())
    exits = S.how == "exit"
    say("DONE %s %s %d %d %d %d" % (
        no, "leave" if exits and S.leaves else S.how, names(), threads(),
        S.status * exits, marked))


def hush():
    """end the echo of the tty. Keys that the front end sent before it has seen
    the mark reach the tty after the mark: their echo would look like output.
    The kernel first completes an echo that it has begun."""
    try:
        if fstat(S.mark).st_rdev == S.tty:
            modes = bytearray(ioctl(S.mark, 0x5401, bytes(36)))  # TCGETS
            modes[12] &= ~0x48  # of c_lflag: ECHO, ECHONL
            ioctl(S.mark, 0x5402, modes)  # TCSETS
    except OSError:
        pass  # put() fails, too


def remember():
    "how a prompt is, before any cell: mend() puts back what one breaks"
    S.sys, S.depth = sys.__dict__, getrecursionlimit()
    S.note, S.same = None, is_same
    S.streams = [S.sys[name] for name in STREAMS]
    S.tried = S.streams.copy()
    S.encodings = [(f.encoding, f.errors) for f in S.streams]
    S.imported, S.core = S.modules.copy(), S.modules.copy()
    S.importers = {name: S.sys[name].copy()
                   for name in ("path", "meta_path", "path_hooks")}
    S.whole = [
        ("builtins", "builtins.%s", builtins.__dict__, __builtins__.copy()),
        ("sys", "sys.%s", S.sys, {
            name: S.sys[name] for name in S.sys if name not in STREAMS}),
        ("sys.modules", "sys.modules[%r]", S.modules, S.core),
        ("__main__", "%s", NS, {
            "__builtins__": builtins, "__name__": "__main__"})]


def is_same():
    "without look.c"
    return all([*map(names.get, was)] == [*was.values()]
               for _, _, names, was in S.whole)


def note_whole():
    "for look.c, once it is loaded: what stands in its places now"
    for row in S.whole if S.note else ():
        if S.note(row is S.whole[0], *row[2:]):
            S.same = is_same


def is_whole():
    "a quick look: whether all that mend() puts back is as it last was"
    try:
        if not S.same():
            return False
        for name, kept in S.importers.items():
            if not S.sys[name]:
                return False
            if len(S.sys[name]) != len(kept):
                S.importers[name] = S.sys[name].copy()
        if len(S.imported) != len(S.modules):
            S.imported = S.modules.copy()
        for fd, name in enumerate(STREAMS):
            if S.sys[name] is not S.streams[fd] or S.streams[fd].closed or \
                    fstat(fd).st_rdev != S.tty:
                return False
        _, out, err = S.streams
        return (callable(out.write) and callable(out.flush)
                and callable(err.write) and getrecursionlimit() >= LEAST_DEPTH)
    except Exception:
        return False


def step():
    if getpid() != S.pid:  # a signal handler forked while the driver slept
        _exit(0)
    pthread_sigmask(SIG_SETMASK, S.mask)
    try:
        recv(1, 2)  # MSG_PEEK: a handler may raise, and no message is lost
    except BlockingIOError:  # a cell has set O_NONBLOCK
        return S.sock.setblocking(True)
    except OSError:
        unlinked()
    pthread_sigmask(SIG_BLOCK, SIGNALS)
    data, extra, _, _ = recvmsg(65536, 256, 0x40000000)  # MSG_CMSG_CLOEXEC
    if not data:
        unlinked()
    line, _, text = data.partition(b"\n")
    word, *args = line.decode().split(" ")
    fds = [int.from_bytes(d[i:i + 4], sys.byteorder)
           for _, _, d in extra for i in range(0, len(d), 4)]
    if word == "CELL":
        # Where pictures go, out of the way of the user's descriptors.
        fds = [high(fd, 600) for fd in fds]
        known = [fstat(fd)[1:3] for fd in fds]
        cell(fds, *args)
        fds = [fd for fd, file in zip(fds, known) if is_open(fd, file)]
    elif word in ("PARK", "TRIAL"):
        part("park")
        warm()
        if fds:
            park(args[0], fds.pop(0), word == "TRIAL")
        else:  # a cell has left no descriptor for the socket
            say("PARKED %s descriptors" % args[0])
    elif word == "WARM":  # nobody waits for anything yet
        part("park")
        warm()
    elif word == "LEASE":
        part("lease")
        lease(*args[:2], text)
        sys.setrecursionlimit(int(args[2]))
        S.depth = getrecursionlimit()
    elif word == "ASK":
        part("answer")
        ask(args[0], args[1], text, args[3:] == ["alone"])
    for fd in fds:
        close(fd)


def serve():
    while True:
        try:
            step()
        except BaseException as e:  # of a handler, while the driver slept
            try:
                pthread_sigmask(SIG_BLOCK, SIGNALS)
                S.how = "raised"
                part("errors")
                report(e)
                if S.owed:  # the driver itself failed
                    ended()
            except BaseException:
                pass


def high(fd, at=512):
    "move a descriptor away from code that closes or expects small numbers"
    if fd < 500:
        try:
            free = copy_fd(fd, F_DUPFD_CLOEXEC, at)
            close(fd)
            return free
        except OSError:
            pass  # beyond the limit
    set_inheritable(fd, False)
    return fd


def session(*argv):
    from _socket import socket
    S.parts, S.ctl, S.line, S.mark, S.library, *rest = S.keep = [
        high(int(fd)) for fd in (PARTS, *argv[:-1])]
    S.sock = socket(1, 5, 0, S.ctl)  # AF_UNIX, SOCK_SEQPACKET
    GUEST.update(PARTS=S.parts, send=S.sock.send, recv=S.sock.recv,
                 recvmsg=S.sock.recvmsg)
    S.mask = MASK
    # Making the types of the syntax tree takes as long as all the rest.
    from _ast import Interactive
    GUEST.update(Interactive=Interactive)
    S.tty = fstat(S.mark).st_rdev
    for fd in rest:
        import faulthandler
        faulthandler.register(STACK_SIGNAL, fd, True, False)
    sys.ps1, sys.ps2 = ">>> ", "... "
    sys.displayhook = display
    sys.setrecursionlimit(int(argv[-1]))
    remember()
    S.warm = ["traceback", "textwrap", "linecache", "tokenize", "re", "enum",
              "functools", "collections", "operator", "keyword", "types",
              "customize"]
    while True:
        try:
            serve()
        except BaseException:
            pass
