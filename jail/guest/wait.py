# SPDX-License-Identifier: MIT
#
# wait.py - a program `-e`, whose Python is up before it is known what it runs
#
# Runs in:   the jail's Python, started with: parts -w ctl tty
# Holds:     ctl     a socket to the warden, until START comes from it (wire.h)
#                    with a file, struct wire_start's, and what is not the tty
#                    of 0, 1 and 2, which are /dev/null until then
#            tty     the person's tty
# Trusts:    the warden
# Leaves:    stdio and sys.argv as if Python had been started with them
WAITS, TTY = map(int, ARGS[1:3])
part("lease")


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


def wait():
    sock = __import__("_socket").socket(fileno=WAITS)
    prepare()
    sock.send(b"READY %d %d.%d.%d" % ((getpid(),) + sys.version_info[:3]))
    while True:
        data, extra, _, _ = sock.recvmsg(4096, 64, 0x40000000)
        line, _, text = data.partition(b"\n")
        word, *args = line.decode().split(" ")
        if word != "LEASE":
            break
        lease(*args[:2], text)
    if word != "START":
        sys.exit("cellblock: nothing to run")
    sock.close()
    file, *fds = [int.from_bytes(d[i:i + 4], sys.byteorder)
                  for _, _, d in extra for i in range(0, len(d), 4)]
    take_stdio(int(args[0]), fds)
    argv, env = strings(file)
    close(file)
    for row in env:
        name, _, value = row.partition(b"=")
        if name not in environ:
            set_variable(name, value)
    sys.argv = ["-e"] + [a.decode("utf-8", "surrogateescape")
                         for a in argv[2:]]
    return argv[1]
