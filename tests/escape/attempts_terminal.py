# SPDX-License-Identifier: MIT
"""Attempts on the terminal: ioctl requests that type into it, take it over or
break it. Each request is made on every descriptor, on /dev/tty, and on a new
pty of the jail."""
from rows import EPERM, Table

SIZE = ("import fcntl, termios\n"
        "m, s = os.openpty()\n"
        "succeed(fcntl.ioctl, s, termios.TIOCGWINSZ, b'\\0' * 8)")

terminal = Table("terminal requests", SIZE)
add = terminal.add

ON_ALL = """
import termios
arg = ctypes.create_string_buffer({arg} + b'\\0' * 64)
m, s = os.openpty()
fds = [m, s]
for n in range(4096):
    try:
        if os.isatty(n): fds.append(n)
    except OSError: pass
for path in ('/dev/tty', '/proc/self/fd/0', '/dev/pts/0', '/dev/pts/1'):
    try: fds.append(os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK))
    except OSError: pass
seen = set()
for fd in fds:
    r, e = raw(number_of('ioctl'), fd, {request}, {value})
    seen.add('ESCAPED' if r != -1 else name_of(e))
print('REFUSED:' + seen.pop() if len(seen) == 1 and 'ESCAPED' not in seen
      else f'ESCAPED:{{sorted(seen)}}')
"""

REQUESTS = {
    # name: (request, what the argument points to)
    "tiocsti": (0x5412, "b'x'"),
    "tioclinux_paste": (0x541c, "b'\\3'"),
    "tioclinux_select": (0x541c, "b'\\2'"),
    "tiocsetd": (0x5423, "b'\\1'"),
    "tioccons": (0x541d, "b''"),
    "tiocexcl": (0x540c, "b''"),
}
for name, (request, arg) in REQUESTS.items():
    for shown, bits in (("", 0), ("_with_high_bits", 1 << 32),
                        ("_with_all_high_bits", 0xffffffff << 32)):
        wide = (request | bits) - (1 << 64 if bits >> 63 else 0)
        add(name + shown,
            ON_ALL.format(request=hex(wide), arg=arg, value="arg"), EPERM)
UNKNOWN = {
    "tiocvhangup": 0x5437, "tiocsserial": 0x541f, "kdsetmode": 0x4b3a,
    "kdskbmode": 0x4b45, "vt_activate": 0x5606, "vt_lockswitch": 0x560b,
    "kdskbent": 0x4b47, "tiocmset": 0x5418, "pio_font": 0x4b61,
    "siocsifflags": 0x8914, "siocethtool": 0x8946, "siocbraddbr": 0x89a0,
    "fs_ioc_setflags": 0x40086602, "fifreeze": 0xc0045877,
    "fitrim": 0xc0185879, "blkroset": 0x125d, "loop_set_fd": 0x4c00,
    "ns_get_parent": 0xb702, "tun_setiff": 0x400454ca,
    "rndaddentropy": 0x40085203, "rndclearpool": 0x5206,
    "ficlone_neighbour": 0x40049410, "evio_grab": 0x40044590,
}
for name, request in UNKNOWN.items():
    add(name, ON_ALL.format(request=hex(request), arg="b''", value="arg"),
        "ENOTTY|EPERM")
add("terminal_of_another_session",
    "s = os.openpty()[1]\n"
    "if os.fork() == 0:\n"
    "    os.setsid()\n"
    "    r, e = raw(number_of('ioctl'), 0, 0x540e, 1)\n"
    "    print(f'REFUSED:{name_of(e)}' if r == -1 else 'ESCAPED')\n"
    "    sys.stdout.flush(); os._exit(0)\n"
    "os.wait()", "EPERM|ENOTTY", where="session")
add("no_pty_of_the_host_is_visible",
    "names = set(os.listdir('/dev/pts'))\n"
    "expect(len(names) <= 6, str(names))", ".*")
add("number_of_ptys_is_limited",
    "fds = []\n"
    "def many():\n"
    "    for _ in range(64): fds.extend(os.openpty())\n"
    "attempt(many)", "ENOSPC|EMFILE|ENOENT|EIO|EAGAIN")

ROWS = list(terminal)
