# SPDX-License-Identifier: MIT
#
# wait.py - one cell, whose Python is up before it is known what it runs
#
# Runs in:   the jail's Python, started with: parts -w ctl tty
# Holds:     ctl     a socket to the warden, until START comes from it (wire.h)
#                    with a file, and what is not the tty of 0, 1 and 2, which
#                    are a pipe until then. The file is struct wire_start's: a
#                    program -e; or a request, and a pipe for its report
#            tty     the person's tty
# Trusts:    the warden
# Leaves:    stdio and sys.argv as if Python had been started with them
SOCKET, TIMEOUT = (getattr(__import__("_socket"), name)
                   for name in ("socket", "timeout"))
CTL, TTY = map(int, ARGS[1:3])
REPORT = 600
# Where clients wait for jails, a cell comes sooner than this. Most cells need
# nothing of what site does, which takes longer than all the rest: such a cell
# neither waits for it nor pays for it.
REST = 0.02
part("lease")
part("request")


def strings(file):
    "arguments and variables: two numbers, a third, and texts that end with NUL"
    size = fstat(file).st_size
    head, body = pread(file, 12, 0), b""
    while len(body) < size - 12:
        body += pread(file, size - 12 - len(body), 12 + len(body))
    n, more = (int.from_bytes(head[i:i + 4], sys.byteorder) for i in (0, 4))
    texts = body.split(b"\0")
    return texts[:n], texts[n:n + more]


def take_stdio(bits, fds):
    for fd in 0, 1, 2:
        source = TTY if bits >> fd & 1 else fds.pop(0)
        dup2(source, fd)
        if source != TTY:
            close(source)
    close(TTY)
    sys.stdout.reconfigure(line_buffering=bits >> 1 & 1 == 1)
    S.tty = fstat(2).st_rdev


def given():
    "(the numbers of START, its descriptors), after any lease"
    sock = SOCKET(fileno=CTL)
    prepare()
    freeze()
    sock.send(b"READY %d %d.%d.%d" % ((getpid(),) + sys.version_info[:3]))
    sock.settimeout(REST)
    while True:
        try:
            data, extra, _, _ = sock.recvmsg(4096, 64, 0x40000000)
        except TIMEOUT:
            sock.settimeout(None)
            customize()
            freeze()
            continue
        line, _, text = data.partition(b"\n")
        word, *args = line.decode().split(" ")
        if word != "LEASE":
            break
        lease(*args[:2], text)
    if word != "START":
        sys.exit("cellblock: nothing to run")
    sock.close()
    return [int(a) for a in args], [
        int.from_bytes(d[i:i + 4], sys.byteorder)
        for _, _, d in extra for i in range(0, len(d), 4)]


def wait():
    (bits, at, size), (file, *fds) = given()
    take_stdio(bits, fds)
    if size:
        what = loads(pread(file, size, at))
        close(file)
        try:  # out of the way of the user's descriptors
            report = dup2(fds[0], REPORT, False)
            close(fds[0])
        except OSError:
            report = fds[0]
        request(report, *what)
        return
    argv, env = strings(file)
    close(file)
    customize_for(argv[1])
    for row in env:
        name, _, value = row.partition(b"=")
        if name not in environ:
            set_variable(name, value)
    sys.argv = ["-e"] + [a.decode("utf-8", "surrogateescape")
                         for a in argv[2:]]
    program(argv[1])
