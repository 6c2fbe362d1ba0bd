# SPDX-License-Identifier: MIT
#
# request.py - one request: a cell with variables, and what it made
#
# Runs in:   the jail's Python, started with: parts -j ctl report [hurried]
# Holds:     ctl     a socket to the warden, until START comes from it (wire.h)
#                    with a file: a marshalled (source, variables, shows)
#            report  a pipe to the front end
# Trusts:    the front end. What it reports is the user's: anything
# Leaves:    in the report, each piece after a line "NAME BYTES":
#              type   the name of the last value's type
#              json   the value as json.dumps() writes it, if it can
#              repr   the value as repr() writes it
#              png    a picture for each figure of matplotlib's that is open
SOCKET = __import__("_socket").socket
CTL, REPORT = map(int, ARGS[1:3])
MOST = 1000000  # bytes of a value
part("figures")


def given():
    "what to run; Python may have been started long before it is known"
    sock = SOCKET(fileno=CTL)
    sock.send(b"READY %d %d.%d.%d" % ((getpid(),) + sys.version_info[:3]))
    line, ((_, _, fd),), _, _ = sock.recvmsg(
        64, 64, 0x40000000)  # MSG_CMSG_CLOEXEC
    sock.close()
    file = int.from_bytes(fd[:4], sys.byteorder)
    at, size = map(int, line.split()[1:])
    found = loads(pread(file, size, at))
    close(file)
    return found


def request():
    prepare("hurried" in ARGS)
    source, variables, shows = given()
    if not S.site and needs_site(source):
        customize()
    NS.update(variables)
    S.value = None
    shown = sys.displayhook

    def keep_value(value):
        S.value = value
        if shows:
            shown(value)

    sys.displayhook = keep_value
    program(source, lambda: tell_all(shows))


def tell_all(shows):
    if shows and S.value is not None:
        tell_value(S.value)
    S.value = None
    plt = sys.modules.get("matplotlib.pyplot")
    if plt is not None:
        tell_figures(REPORT, plt)
    try:
        close(REPORT)
    except OSError:  # the cell closed it, as it may
        pass


def tell_value(value):
    try:
        piece(REPORT, b"type", type(value).__name__.encode()[:200])
        text = repr(value)[:MOST]
        piece(REPORT, b"repr", text.encode("utf-8", "backslashreplace"))
        text = as_json(value)
        if len(text) <= MOST:
            piece(REPORT, b"json", text.encode())
    except Exception:
        pass


def as_json(value):
    "what json.dumps() does, without loading json"
    json = stdlib("_json")
    return "".join(json.make_encoder(
        {}, unknown, json.encode_basestring_ascii, None, ": ", ", ",
        False, False, False)(value, 0))


def unknown(value):
    raise TypeError
