# SPDX-License-Identifier: MIT
"""Attempts by system calls, by sockets, and to gain privilege."""
from rows import CALLS, EPERM, FORKS, Table

kernel = Table("kernel surface", CALLS)
add = kernel.add
Z = "b'\\0' * 128"
for name, args in {
        "io_uring_setup": f"8, {Z}", "io_uring_enter": "0, 1, 0, 0, 0, 0",
        "io_uring_register": "0, 0, 0, 0", "bpf": f"0, {Z}, 64",
        "perf_event_open": f"{Z}, 0, -1, -1, 0", "userfaultfd": "0",
        "add_key": "b'user', b'k', b'v', 1, -3",
        "request_key": "b'user', b'k', 0, -3", "keyctl": "0, -3, 0, 0, 0",
        "init_module": f"{Z}, 8, b''", "finit_module": "0, b'', 0",
        "delete_module": "b'x', 0", "kexec_load": "0, 0, 0, 0",
        "kexec_file_load": "0, 0, 0, 0, 0",
        "reboot": "0xfee1dead, 672274793, 0, 0", "swapoff": "b'/x'",
        "acct": "0", "quotactl_fd": "0, 0, 0, 0", "syslog": f"3, {Z}, 100",
        "vhangup": "", "settimeofday": f"{Z}, 0", "clock_settime": f"0, {Z}",
        "adjtimex": "b'\\1' * 256", "clock_adjtime": "0, b'\\1' * 256",
        "lookup_dcookie": f"0, {Z}, 8", "nfsservctl": "0, 0, 0",
        "fanotify_init": "0, 0", "fanotify_mark": "0, 1, 1, -100, b'/'",
        "memfd_secret": "0", "iopl": "3", "ioperm": "0, 1, 1",
        "modify_ldt": f"0, {Z}, 64", "io_setup": f"1, {Z}",
        "io_submit": "0, 0, 0", "mbind": "0, 0, 0, 0, 0, 0",
        "set_mempolicy": "0, 0, 0", "remap_file_pages": "0, 0, 0, 0, 0",
        "seccomp": "0, 0, 0", "_sysctl": "0", "uselib": "b'/x'",
        "ustat": "0, 0", "sysfs": "3", }.items():
    add(name, f"call({name!r}{', ' if args else ''}{args})", "EPERM|ENOSYS")
add("seccomp_by_prctl", "call('prctl', 22, 2, 0, 0, 0)", EPERM)
add("personality", "call('personality', 0x0040000)", EPERM,
    "works('personality', 0xffffffff)")
# (335 is uretprobe; the kernel applies no filter to that call.)
for number in (400, 600, 1000, 4095, 0xfffff):
    add(f"unknown_call_{number}",
        f"r, e = raw({number})\n"
        "print(f'REFUSED:{name_of(e)}' if r == -1 else f'ESCAPED:{r}')",
        "ENOSYS")
add("x32_entry",
    "r, e = raw(0x40000000 | number_of('getpid'))\n"
    "print(f'REFUSED:{name_of(e)}' if r == -1 else f'ESCAPED:{r}')",
    "ENOSYS|EPERM|signal 31")
add("i386_entry",
    # mov eax, 20 (getpid); int 0x80; ret
    "if ARM: print('REFUSED:no such entry'); raise SystemExit\n"
    "r = machine_code(b'\\xb8\\x14\\0\\0\\0\\xcd\\x80\\xc3')\n"
    "print('REFUSED:ENOSYS' if r == -38 else f'ESCAPED:{r}')",
    "signal 31|signal 11|ENOSYS|no such",
    # mov eax, 39 (getpid); syscall; ret
    "print('OK:', 'arm' if ARM else"
    " machine_code(b'\\xb8\\x27\\0\\0\\0\\x0f\\x05\\xc3'))")
add("program_of_32_bits", "attempt(become_a_program, 32)",
    "signal 31|ENOEXEC", "attempt(become_a_program, 64)")

network = Table("sockets", "import socket\n"
                "a, b = socket.socketpair()\n"
                "succeed(a.send, b'x')")
add = network.add
for name, family in {
        "ax25": 3, "ipx": 4, "appletalk": 5, "netrom": 6, "x25": 9,
        "rose": 11, "key": 15, "packet": 17, "rds": 21, "irda": 23,
        "pppox": 24, "llc": 26, "ib": 27, "mpls": 28, "can": 29, "tipc": 30,
        "bluetooth": 31, "rxrpc": 33, "phonet": 35, "ieee802154": 36,
        "caif": 37, "alg": 38, "nfc": 39, "vsock": 40, "kcm": 41,
        "qipcrtr": 42, "smc": 43, "xdp": 44, "mctp": 45}.items():
    add(f"family_{name}", f"call('socket', {family}, 2, 0)", EPERM)
add("family_with_high_bits", "call('socket', 40 | 1 << 40, 1, 0)", EPERM)
for name, protocol in {"audit": 9, "netfilter": 12, "uevent": 15,
                       "sock_diag": 4, "xfrm": 6, "connector": 11,
                       "generic": 16, "crypto": 21}.items():
    add(f"netlink_{name}", f"call('socket', 16, 3, {protocol})", EPERM)
# Unread answers of netlink are memory that no limit counts. The control: host
# names resolve without netlink.
add("netlink_route", "call('socket', 16, 3, 0)", EPERM,
    "import socket\nsucceed(socket.getaddrinfo, 'localhost', 80)")
for name, args in {"raw_icmp": "2, 3, 1", "raw_any": "2, 3, 255",
                   "ping": "2, 2, 1", "sctp": "2, 1, 132", "mptcp":
                   "2, 1, 262", "raw6": "10, 3, 58", "dccp": "2, 6, 33",
                   "udplite": "2, 2, 136"}.items():
    add(f"protocol_{name}", f"call('socket', {args})",
        "EPERM|EACCES|EPROTONOSUPPORT")
# Each of these would make the kernel load a module, as root.
for name, args in {"dccp": "2, 6, 0", "dccp6": "10, 6, 0", "sctp": "2, 5, 0",
                   "sctp_closed_on_exec": "2, 5 | 1 << 19, 0",
                   "rdm": "2, 4, 0", "packet": "2, 10, 0", "none": "2, 0, 0",
                   "udp_in_a_stream": "2, 1, 17", "tcp_in_datagrams":
                   "2, 2 | 1 << 11, 6"}.items():
    add(f"type_{name}", f"call('socket', {args})", EPERM,
        "for t, p in (1, 0), (1 | 1 << 19, 6), (2, 0), (2 | 1 << 11, 17):\n"
        "    for f in 2, 1: assert raw(number_of('socket'), f, t,"
        " p * (f - 1))[0] > 2\n"
        "print('OK:')")
add("raw_socket_without_a_protocol", "call('socket', 2, 3, 0)",
    "EPERM|EACCES|EPROTONOSUPPORT")
add("pair_of_vsock",
    "v = (ctypes.c_int * 2)()\ncall('socketpair', 40, 1, 0, v)", EPERM)
add("packet_filter",
    "import socket\ns = socket.socketpair()[0]\n"
    "attempt(s.setsockopt, 1, 26, b'\\0' * 16)", EPERM)
add("bpf_filter",
    "import socket\ns = socket.socketpair()[0]\n"
    "attempt(s.setsockopt, 1, 50, b'\\0' * 4)", EPERM)
# These options take memory that no limit counts.
for name, (level, option) in {
        "ip_options": (0, 4), "ip_blocked_source": (0, 38),
        "ip_unknown": (0, 200), "ipv6_hop_options": (41, 54),
        "ipv6_first_options": (41, 55), "ipv6_route": (41, 57),
        "ipv6_options": (41, 59), "ipv6_unknown": (41, 200),
        "tcp_fast_open_key": (6, 33), "tcp_saved_syn": (6, 27),
        "tcp_unknown": (6, 200), "udp_cork": (17, 1),
        "udp_capsule": (17, 100), "memory_ahead": (1, 73),
        "unknown": (1, 200), "unknown_level": (255, 1),
        "ip_group": (0, 35), "ip_group_of_source": (0, 39),
        "ip_sources": (0, 41), "ip_any_group": (0, 42),
        "ip_any_group_of_source": (0, 46), "ip_any_sources": (0, 48),
        "tcp_layer": (6, 31), "ipv6_packet_options": (41, 6), "ipv6_group": (41, 20),
        "ipv6_anycast": (41, 27), "ipv6_flow_label": (41, 32),
        "ipv6_any_group": (41, 42), "ipv6_group_of_source": (41, 46),
        "tcp_md5": (6, 14), "tcp_md5_of_net": (6, 32),
        "tcp_ao": (6, 38)}.items():
    add(f"socket_option_{name}",
        f"import socket\ns = socket.socket()\n"
        f"attempt(s.setsockopt, {level}, {option}, bytes(256))", EPERM,
        "import socket\ns = socket.socket()\n"
        "succeed(s.setsockopt, 6, 1, 1)")
add("socket_option_with_high_bits",
    "import socket\ns = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)\n"
    "call('setsockopt', s.fileno(), 41 | 1 << 40, 57 | 1 << 40, 0, 0)", EPERM,
    "import socket\ns = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)\n"
    "v = ctypes.c_int(1)\n"
    "assert raw(number_of('setsockopt'), s.fileno(), 41, 49,"
    " ctypes.addressof(v), 4)[0] == 0\nprint('OK:')")
# Each port that is shared takes 2 KiB. The other options of servers are granted.
add("shared_port",
    "import socket\ns = socket.socket()\n"
    "s.setsockopt(1, socket.SO_REUSEPORT, 1)\n"
    "expect(s.getsockopt(1, socket.SO_REUSEPORT) == 0)", ".*",
    "import socket\n"
    "s4, s6, u4, u6 = (socket.socket(f, t) for t in (1, 2) for f in (2, 10))\n"
    "for s, level, options in ((s4, 0, (1, 2, 11, 24)),"
    " (u4, 0, (8, 10, 12, 33, 34)), (s6, 41, (26, 67, 16, 66)),"
    " (u6, 41, (18, 19, 25, 49, 51)), (s4, 6, (1, 3, 4, 5, 6, 18)),"
    " (s4, 1, (2, 6, 9, 10)), (s4, 1, (12, 18))):\n"
    "    for o in options: s.setsockopt(level, o, 1)\n"
    "print('OK:')")
for name, address in {"internet": ("192.0.2.1", 80),
                      "metadata": ("169.254.169.254", 80),
                      "dns": ("8.8.8.8", 53)}.items():
    add(f"connect_{name}",
        "import socket\ns = socket.socket(); s.settimeout(3)\n"
        f"attempt(s.connect, {address!r})", "ENETUNREACH|EPERM|EACCES")
add("connect_the_hosts_loopback",
    "import socket\ns = socket.socket(); s.settimeout(3)\n"
    "attempt(s.connect, ('127.0.0.1', HOST_PORT))",
    "ENETUNREACH|ECONNREFUSED|EADDRNOTAVAIL|EPERM")
add("connect_the_hosts_abstract_socket",
    "import socket\ns = socket.socket(socket.AF_UNIX)\n"
    "attempt(s.connect, '\\0' + HOST_ABSTRACT)", "ECONNREFUSED|EPERM")
add("no_interface_but_lo",
    "import socket\n"
    "names = set()\n"
    "for n in range(1, 1000):\n"
    "    try: names.add(socket.if_indextoname(n))\n"
    "    except OSError: pass\n"
    "expect(names == {'lo'}, str(names))", ".*")

privilege = Table("privilege", "succeed(os.getuid)")
add = privilege.add
add("identity_of_this_process", "expect(*identity())", ".*")
add("identity_of_every_process",
    "bad = [(p, identity(p)) for p in os.listdir('/proc')"
    " if p.isdigit() and not identity(p)[0]]\nexpect(not bad, str(bad))", ".*")
READ_IT = ("import sys; sys.path.insert(0, '.')\n"
           "print(open('/proc/self/status').read())")
STARTED = {
    "subprocess": "out = subprocess.check_output([sys.executable, '-c', CODE],"
                  " text=True)",
    "shell": "out = subprocess.check_output('cat /proc/self/status',"
             " shell=True, text=True)",
    "posix_spawn": "r, w = os.pipe(); os.dup2(w, 9)\n"
                   "p = os.posix_spawn('/bin/sh', ['sh', '-c',"
                   " 'cat /proc/self/status >&9'], os.environ); os.close(w)\n"
                   "os.close(9); out = open(r).read(); os.waitpid(p, 0)",
    "double_fork": "r, w = os.pipe()\n"
                   "if not os.fork():\n    os.setsid()\n"
                   "    if not os.fork():\n"
                   "        os.write(w, open('/proc/self/status','rb')"
                   ".read())\n    os._exit(0)\n"
                   "os.close(w); os.wait(); out = open(r).read()",
    "thread": "o = []\nt = threading.Thread(target=lambda: o.append("
              "open('/proc/thread-self/status').read()))\n"
              "t.start(); t.join(); out = o[0]",
    "fork": "r, w = os.pipe()\n"
            "if not os.fork():\n"
            "    os.write(w, open('/proc/self/status','rb').read())\n"
            "    os._exit(0)\n"
            "os.close(w); os.wait(); out = open(r).read()",
}
for name, how in STARTED.items():
    add(f"identity_when_started_by_{name}",
        f"import subprocess, threading\nCODE = {READ_IT!r}\n{how}\n"
        "s = dict(x.split(':\\t', 1) for x in out.splitlines() if ':\\t' in x)"
        "\nexpect(int(s['CapEff'], 16) == 0 and int(s['CapBnd'], 16) == 0 and"
        " s['NoNewPrivs'] == '1' and s['Seccomp'] == '2', str(s['CapEff']))",
        ".*")
for name, args in {"setuid": "0", "setgid": "0", "setreuid": "0, 0",
                   "setresuid": "0, 0, 0", "setresgid": "0, 0, 0"}.items():
    add(f"{name}_root", f"call({name!r}, {args})", "EPERM|EINVAL",
        "works('setuid', os.getuid())")
add("setfsuid_root",
    "raw(number_of('setfsuid'), 0)\n"
    "now = raw(number_of('setfsuid'), -1)[0]\nexpect(now == os.getuid())",
    ".*")
add("capset_all",
    "h = (ctypes.c_uint32 * 2)(0x20080522, 0)\n"
    "d = (ctypes.c_uint32 * 6)(*[0xffffffff] * 6)\ncall('capset', h, d)",
    EPERM)
for name, args in {"ambient_raise": "47, 2, 21, 0, 0", "keepcaps":
                   "8, 1, 0, 0, 0", "securebits": "28, 0, 0, 0, 0",
                   "capbset_drop": "24, 21, 0, 0, 0", "set_mm":
                   "35, 1, 0, 0, 0", "set_ptracer": "0x59616d61, -1, 0, 0, 0",
                   "no_new_privs_off": "38, 0, 0, 0, 0",
                   "set_seccomp_strict": "22, 1, 0, 0, 0"}.items():
    add(f"prctl_{name}", f"call('prctl', {args})", "EPERM|EINVAL",
        "works('prctl', 39, 0, 0, 0, 0)")
# For pid 1's own use: it has no tracer to ask.
add("prctl_set_mm_map", "m = (ctypes.c_uint64 * 13)()\n"
    "call('prctl', 35, 14, m, 104, 0)", "ENOSYS",
    "works('prctl', 39, 0, 0, 0, 0)")
for program, args in {"su": ["-c", "id -u"], "sudo": ["-n", "id", "-u"],
                      "pkexec": ["id", "-u"], "sg": ["root", "id -u"],
                      "runuser": ["-u", "root", "--", "id", "-u"],
                      "setpriv": ["--reuid=0", "id", "-u"]}.items():
    add(f"program_{program}",
        "import shutil, subprocess\n"
        f"p = shutil.which({program!r}, path='/usr/bin:/usr/sbin:/bin:/sbin')\n"
        f"if not p: print('ABSENT:{program}'); raise SystemExit\n"
        f"r = subprocess.run([p] + {args!r}, capture_output=True, text=True,"
        " stdin=subprocess.DEVNULL)\n"
        "expect(r.stdout.strip() != '0', r.stderr)", ".*", FORKS)
add("nosuid_on_every_mount",
    "bad = [p for p, f in mounts().items() if not f & os.ST_NOSUID]\n"
    "expect(not bad and '/home' in mounts(), str(bad))", ".*")
add("nodev_on_every_mount_but_dev",
    "bad = [p for p, f in mounts().items() if not f & os.ST_NODEV"
    " and not p.startswith('/dev')]\n"
    "expect(not bad, str(bad))", ".*")
add("only_the_expected_mounts_are_writable",
    "bad = [p for p, f in mounts().items() if not f & os.ST_RDONLY and p not in"
    " '/home /tmp /dev/shm /dev/pts /proc /dev/null /dev/zero /dev/full"
    " /dev/random /dev/urandom /dev/tty /dev/ptmx'.split()]\n"
    "expect(not bad, str(bad))", ".*")
add("capability_on_a_file",
    "write('/home/capfile')\n"
    "attempt(os.setxattr, '/home/capfile', 'security.capability',"
    " b'\\1\\0\\0\\2' + b'\\xff' * 16)", "EPERM|EINVAL|ENOTSUP",
    "succeed(write, '/home/capfile2')")
add("ids_in_the_jail_are_1000", "expect(os.getresuid() == (1000,) * 3 and"
    " os.getresgid() == (1000,) * 3, str(os.getresuid()))", ".*")
add("no_group_of_the_host",
    "expect(set(os.getgroups()) <= {1000, 65534}, str(os.getgroups()))", ".*")
add("exactly_one_id_is_mapped",
    "m = open('/proc/self/uid_map').read().split()\n"
    "expect(len(m) == 3 and m[2] == '1', str(m))", ".*")
add("outside_id_is_not_root",
    "m = open('/proc/self/uid_map').read().split()\n"
    "expect(m[1] not in ('0', '65534'), str(m))", ".*")

ROWS = kernel + network + privilege
