# SPDX-License-Identifier: MIT
"""Attempts to escape through files: reading host files, and writing outside
the home."""
from rows import (ABSENT, CALLS, DENIED, EPERM, READ_ONLY, READS, WRITES,
                  Table)

reading = Table("host files by any path", READS)
add = reading.add

# SECRET is a file on the host that the person may read.
add("secret_by_absolute_path", "attempt(read, SECRET)", ABSENT)
add("secret_by_dot_dot", "attempt(read, '../' * 40 + SECRET)", ABSENT)
add("secret_through_a_link",
    "os.symlink(SECRET, '/home/l1'); attempt(read, '/home/l1')", ABSENT)
add("secret_through_a_chain_of_links",
    "os.symlink('/' + '../' * 9, '/home/l2')\n"
    "attempt(read, '/home/l2/' + SECRET)", ABSENT)
for link in ("root", "cwd"):
    add(f"secret_by_proc_self_{link}",
        f"attempt(read, '/proc/self/{link}/../../..' + SECRET)", DENIED)
    add(f"secret_by_proc_1_{link}",
        f"attempt(read, '/proc/1/{link}' + SECRET)", DENIED)
    add(f"secret_by_proc_parent_{link}",
        f"attempt(read, f'/proc/{{os.getppid()}}/{link}' + SECRET)", DENIED)
add("secret_from_any_process_root",
    "found = []\n"
    "for p in os.listdir('/proc'):\n"
    "    for l in ('root', 'cwd'):\n"
    "        try: found.append(read(f'/proc/{p}/{l}/{SECRET}'))\n"
    "        except OSError: pass\n"
    "expect(not found, str(found))", ".*")
for name in ("environ", "maps", "mem", "exe", "auxv", "stack", "syscall",
             "io", "map_files", "fd/0", "fd/3", "cwd", "root"):
    add(f"init_{name.replace('/', '_')}",
        f"attempt(read if {name!r} not in ('cwd', 'root', 'map_files')"
        f" else os.listdir, '/proc/1/{name}')", DENIED)
add("command_line_of_init",
    "text = read('/proc/1/cmdline', 99999)\n"
    "expect(text.strip(b'\\0') == b'cellblock-init', str(text))", ".*",
    "succeed(read, '/proc/self/cmdline', 99999)")
for path in ("/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/etc/ssh",
             "/etc/ssl/private", "/etc/cellblock", "/etc/machine-id",
             "/etc/hostname", "/etc/fstab"):
    add("host" + path.replace("/", "_"),
        f"attempt(read if os.path.isfile({path!r}) else os.listdir,"
        f" {path!r})", DENIED)
for path in ("/root", "/var", "/boot", "/srv", "/mnt", "/media", "/run",
             "/sys", "/lost+found", "/var/run/docker.sock", "/proc/sys",
             "/proc/bus", "/proc/fs", "/proc/irq", "/proc/scsi"):
    add("list" + path.replace("/", "_"), f"attempt(os.listdir, {path!r})",
        DENIED, "succeed(os.listdir, '/')")
for path in ("/proc/kcore", "/proc/kallsyms", "/proc/kmsg", "/proc/iomem",
             "/proc/keys", "/proc/timer_list", "/proc/config.gz",
             "/proc/cmdline", "/proc/modules", "/proc/sched_debug",
             "/proc/mounts/../1/mounts/x"):
    add("read" + path.replace("/", "_").replace(".", ""),
        f"attempt(read, {path!r})", DENIED + "|ENOTDIR")
for path in ("/dev/mem", "/dev/kmem", "/dev/port", "/dev/kmsg", "/dev/sda",
             "/dev/vda", "/dev/kvm", "/dev/fuse", "/dev/net/tun",
             "/dev/loop0", "/dev/loop-control", "/dev/console", "/dev/tty0",
             "/dev/input", "/dev/dri", "/dev/vcs", "/dev/log", "/dev/mqueue",
             "/dev/hugepages", "/dev/vhost-vsock"):
    add("device" + path.replace("/", "_"), f"attempt(read, {path!r})", ABSENT,
        "succeed(read, '/dev/zero', 4)")
add("nothing_else_in_dev",
    "extra = set(os.listdir('/dev')) - set('null zero full random urandom tty"
    " pts ptmx shm fd stdin stdout stderr core'.split())\n"
    "expect(not extra, str(extra))", ".*", "succeed(os.listdir, '/dev')")
add("nothing_else_in_the_root",
    "extra = set(os.listdir('/')) - set('usr lib lib32 lib64 libx32 bin sbin"
    " etc home tmp dev proc opt packages'.split())\n"
    "expect(not extra, str(extra))", ".*", "succeed(os.listdir, '/')")
add("only_harmless_names_in_etc",
    "extra = {n for n in os.listdir('/etc') if n not in"
    " 'ld.so.cache alternatives localtime matplotlibrc fonts mime.types passwd"
    " group hosts host.conf resolv.conf nsswitch.conf'.split() and not n.startswith('python3')}\n"
    "expect(not extra, str(extra))", ".*", "succeed(os.listdir, '/etc')")
for path in ("/etc/resolv.conf", "/etc/hosts", "/etc/host.conf"):
    add("nothing_of_the_host_in" + path.replace("/", "_").replace(".", "_"),
        f"t = read({path!r}, 9999).decode() if os.path.exists({path!r})"
        " else ''\n"
        "expect('nameserver' not in t and HOSTNAME not in t, t)", ".*")
add("passwd_names_no_user_of_the_host",
    "names = read('/etc/passwd', 9999).decode()\n"
    "expect(names.count('\\n') <= 4 and 'daemon' not in names)", ".*")
add("mount_table_names_no_private_path",
    "text = read('/proc/self/mountinfo', 99999).decode()\n"
    "expect(os.path.dirname(SECRET) not in text)", ".*",
    "succeed(read, '/proc/self/mountinfo')")
add("no_directory_is_open",
    "extra = []\n"
    "for n in range(3, 4096):\n"
    "    try: s = os.fstat(n)\n"
    "    except OSError: continue\n"
    "    if s.st_mode >> 12 == 4: extra.append(n)\n"
    "expect(not extra, str(extra))", ".*", "succeed(os.fstat, 0)")
# The driver's descriptors begin at 500: a terminal, a socket and memory files.
# A memory file is sealed, or the cell could hide data in it. No descriptor is
# a host file.
add("no_descriptor_is_a_host_file",
    "import fcntl\n"
    "def is_sealed(n):\n"
    "    try: return fcntl.fcntl(n, 1034) & 6 == 6\n"
    "    except OSError: return False\n"
    "ours = {os.stat(p).st_dev for p in mounts()}\n"
    "extra = []\n"
    "for n in range(4096):\n"
    "    try: s = os.fstat(n)\n"
    "    except OSError: continue\n"
    "    if s.st_mode >> 12 in (1, 12): continue\n"
    "    if s.st_dev not in ours and not is_sealed(n):\n"
    "        extra.append((n, oct(s.st_mode)))\n"
    "expect(not extra, str(extra))", ".*",
    "seen = []\n"
    "for n in range(500, 4096):\n"
    "    try: seen.append(os.fstat(n))\n"
    "    except OSError: pass\n"
    "print('OK:' if seen else 'failed:', len(seen))", where="session")
add("dot_dot_from_every_descriptor",
    "got = []\n"
    "for n in range(4096):\n"
    "    try: got.append(os.open('..' + SECRET, os.O_RDONLY, dir_fd=n))\n"
    "    except OSError: pass\n"
    "expect(not got, str(got))", ".*")
add("hard_link_to_a_host_file", "attempt(os.link, SECRET, '/home/h1')",
    ABSENT)
add("hard_link_to_a_host_program",
    "attempt(os.link, os.path.realpath(sys.executable), '/home/h2')",
    "EXDEV|EPERM|EROFS|EACCES", "open('/home/h3', 'w').close();"
    " succeed(os.link, '/home/h3', '/home/h4')")
add("open_by_handle_at",
    "h = ctypes.create_string_buffer(b'\\x08\\0\\0\\0\\x01\\0\\0\\0' + b'\\2'"
    " + b'\\0' * 15)\ncall('open_by_handle_at', -100, h, 0)", EPERM, CALLS)
add("name_to_handle_at",
    "h = ctypes.create_string_buffer(b'\\x80\\0\\0\\0' + b'\\0' * 200)\n"
    "m = ctypes.c_int()\n"
    "call('name_to_handle_at', -100, b'/usr', h, ctypes.byref(m), 0)", EPERM,
    CALLS)
for kind, mode, device in (("block", 0o060600, 0x800), ("char", 0o020600,
                                                        0x101)):
    add(f"mknod_{kind}",
        f"attempt(os.mknod, '/home/node', {mode:#o}, {device})", EPERM,
        "succeed(os.mkfifo, '/home/fifo')")

writing = Table("writing outside the home", WRITES)
add = writing.add
for path in ("/x", "/usr/x", "/usr/bin/x", "/usr/lib/x", "/etc/x", "/dev/x",
             "/bin/x", "/lib/x", "/dev/pts/x", "/proc/x"):
    add("create" + path.replace("/", "_"), f"attempt(write, {path!r})",
        READ_ONLY + "|ENOENT")
for path in ("/etc/passwd", "/etc/group", "/usr/bin/env", "/usr/bin/python3",
             "/etc/ld.so.cache"):
    add("rewrite" + path.replace("/", "_").replace(".", ""),
        f"attempt(rewrite, {path!r})", READ_ONLY + "|ETXTBSY")
for what, code in {
        "chmod_in_usr": "os.chmod, '/usr/bin/env', 0o777",
        "chown_in_usr": "os.chown, '/usr/bin/env', 1000, 1000",
        "utime_in_usr": "os.utime, '/usr/bin/env', (1, 1)",
        "truncate_in_usr": "os.truncate, '/usr/bin/env', 0",
        "unlink_in_usr": "os.unlink, '/usr/bin/env'",
        "rename_in_usr": "os.rename, '/usr/bin/env', '/usr/bin/env2'",
        "rename_out_of_usr": "os.rename, '/usr/bin/env', '/home/env'",
        "mkdir_in_usr": "os.mkdir, '/usr/dir'",
        "mkdir_in_the_root": "os.mkdir, '/dir'",
        "rmdir_of_the_home": "os.rmdir, '/home'",
        "rename_of_the_home": "os.rename, '/home', '/home2'",
        "symlink_in_usr": "os.symlink, 'x', '/usr/link'",
        "setxattr_in_usr": "os.setxattr, '/usr/bin/env', 'user.x', b'1'",
        "mkfifo_in_usr": "os.mkfifo, '/usr/fifo'"}.items():
    add(what, f"attempt({code})", READ_ONLY + "|EXDEV|EBUSY|ENOTSUP",
        "write('/home/c'); succeed(os.chmod, '/home/c', 0o600)")
add("shared_writable_mapping_of_usr",
    "import mmap\n"
    "f = os.open('/usr/bin/env', os.O_RDONLY)\n"
    "attempt(lambda: mmap.mmap(f, 10, mmap.MAP_SHARED,"
    " mmap.PROT_READ | mmap.PROT_WRITE))", "EACCES|EPERM")
add("descriptor_of_usr_reopened_for_writing",
    "f = os.open('/usr/bin/env', os.O_RDONLY)\n"
    "attempt(os.open, f'/proc/self/fd/{f}', os.O_RDWR)",
    READ_ONLY + "|ETXTBSY")
add("executable_of_this_process", "attempt(rewrite, '/proc/self/exe')",
    READ_ONLY + "|ETXTBSY")
add("executable_of_init", "attempt(rewrite, '/proc/1/exe')", DENIED)
add("memory_of_init", "attempt(rewrite, '/proc/1/mem')", DENIED)
for path in ("sys/kernel/core_pattern", "sys/kernel/hostname",
             "sys/kernel/modprobe", "sys/vm/overcommit_memory",
             "sys/fs/suid_dumpable", "sys/net/ipv4/ip_forward",
             "sysrq-trigger", "sys/user/max_user_namespaces"):
    add("proc_" + path.replace("/", "_"),
        f"attempt(rewrite, '/proc/{path}')", DENIED)
for path in ("uid_map", "gid_map", "setgroups", "projid_map", "loginuid",
             "timens_offsets"):
    data = "b'deny'" if path == "setgroups" else "b'0 0 1'"
    add(f"rewrite_{path}_of_this_process",
        f"attempt(rewrite, '/proc/self/{path}', {data})",
        DENIED + "|EINVAL")
for score in (-1000, 0, 499):
    add(f"oom_score_of_{score}",
        f"attempt(rewrite, '/proc/self/oom_score_adj', b'{score}')", DENIED,
        "succeed(read, '/proc/self/oom_score_adj')")
# An inode of the host may be behind these.
for node in "null zero full random urandom tty".split():
    add(f"times_of_{node}", f"attempt(os.utime, '/dev/{node}')", READ_ONLY,
        "succeed(write, '/dev/null')")
for name, (command, value, where) in {
        "directory_notification": (1026, 4, "/usr"),
        "lease_on_a_file": (1024, 0, "/usr/bin/env"),
        "lease_on_a_directory": (1040, 0, "/usr")}.items():
    add(name, f"call('fcntl', os.open({where!r}, 0), {command}, {value})",
        EPERM, f"works('fcntl', os.open({where!r}, 0), 3)")
add("residency_of_the_hosts_page_cache",
    "call('cachestat', 0, 0, 0, 0)", "ENOSYS")
# These would reach the disk or the cache of the host. They seem to succeed, so
# that it shows in a descriptor that does not exist.
for name, args in {"fsync": "-1", "fdatasync": "-1", "sync_file_range":
                   "-1, 0, 0, 0", "msync": "0, 4096, 4",
                   "fadvise64": "-1, 0, 0, 4"}.items():
    add(f"{name}_reaches_no_file",
        f"expect(raw(number_of({name!r}), {args}) == (0, 0))", ".*",
        "f = open('/home/synced', 'wb')\nsucceed(os.fsync, f)")
for name, code in {
        "opened": "attempt(os.open, '/usr/bin/env', os.O_DIRECT)",
        "set_later": "import fcntl\nf = os.open('/usr/bin/env', 0)\n"
                     "attempt(fcntl.fcntl, f, fcntl.F_SETFL, os.O_DIRECT)",
}.items():
    add(f"reads_past_the_cache_{name}", code, "EINVAL",
        "succeed(read, '/usr/bin/env')")
MAPPED = "mmap.mmap(os.open('/usr/bin/env', 0), 4096, prot=1).madvise, "
for name, advice in {"merge": 12, "make_cold": 20, "page_out": 21}.items():
    add(f"advice_to_{name}_shown_pages",
        f"import mmap\nattempt({MAPPED}{advice})", "EINVAL",
        f"import mmap\nsucceed({MAPPED}mmap.MADV_DONTNEED)")
for path in ("/sys/fs/cgroup", "/sys/fs/cgroup/memory/release_agent",
             "/sys/kernel/uevent_helper", "/sys/kernel/security",
             "/sys/fs/cgroup/cgroup.procs"):
    add("write" + path.replace("/", "_").replace(".", "_"),
        f"attempt(write, {path!r})", DENIED)
add("no_cgroup_file_is_visible",
    "seen = []\n"
    "for top, dirs, files in os.walk('/'):\n"
    "    dirs[:] = [d for d in dirs if (top, d) not in"
    " {('/', 'proc'), ('/', 'usr')}]\n"
    "    seen += [f for f in files if f.startswith(('cgroup.', 'memory.',"
    " 'pids.', 'cpu.', 'release_agent'))]\n"
    "expect(not seen, str(seen[:3]))", ".*")
add("cgroup_path_of_the_host",
    "expect('cellblock' not in open('/proc/self/cgroup').read())", ".*",
    "succeed(read, '/proc/self/cgroup')")
add("no_bus_or_agent_of_the_person_is_visible",
    "expect(not any(n in os.environ for n in ('DBUS_SESSION_BUS_ADDRESS',"
    " 'XDG_RUNTIME_DIR', 'SSH_AUTH_SOCK', 'DISPLAY')))", ".*")

# Memory that no limit counts: lists of access rights, and pages that a pipe or a
# socket refers to. The controls: programs that copy files and data go on
# without them.
kernel = Table("memory of the kernel",
               "import shutil\nwrite('/home/k', b'kept')\n"
               "shutil.copy2('/home/k', '/home/k2')\n"
               "succeed(read, '/home/k2')")
for what in ("system.posix_acl_access", "system.posix_acl_default", "user.x"):
    kernel.add("setxattr_of_" + what.replace(".", "_"),
               f"attempt(os.setxattr, '/home', {what!r},"
               " b'\\2\\0\\0\\0' + bytes.fromhex("
               "'01000700ffffffff 04000700ffffffff 20000700ffffffff'))",
               "ENOTSUP|EOPNOTSUPP")
kernel.add("setxattr_of_a_descriptor",
           "attempt(os.setxattr, os.open('/home', os.O_RDONLY), 'user.x',"
           " b'')", "ENOTSUP|EOPNOTSUPP")
kernel.add("setxattrat", "call('setxattrat', -100, b'/home', 0, b'user.x', 0,"
           " 0)", "ENOSYS")
kernel.add("splice",
           "write('/home/s'); r, w = os.pipe()\n"
           "call('splice', os.open('/home/s', os.O_RDONLY), 0, w, 0, 1, 0)",
           "EINVAL")
kernel.add("tee", "r, w = os.pipe(); r2, w2 = os.pipe(); os.write(w, b'x')\n"
           "call('tee', r, w2, 1, 2)", "EINVAL")
kernel.add("vmsplice",
           "r, w = os.pipe(); b = ctypes.create_string_buffer(8)\n"
           "v = (ctypes.c_void_p * 2)(ctypes.addressof(b), 8)\n"
           "call('vmsplice', w, v, 1, 0)", "EINVAL")
kernel.add("sendfile",
           "import socket\na, b = socket.socketpair()\nwrite('/home/s')\n"
           "attempt(os.sendfile, a.fileno(), os.open('/home/s', 0), 0, 1)",
           "EINVAL",
           "import socket\na, b = socket.socketpair()\nwrite('/home/s')\n"
           "assert a.sendfile(open('/home/s', 'rb')) == 1\n"
           "succeed(b.recv, 9)")
kernel.add("zerocopy",
           "import socket\ns = socket.socket()\n"
           "attempt(s.setsockopt, socket.SOL_SOCKET, 60, 1)", EPERM,
           "import socket\ns = socket.socket()\n"
           "succeed(s.setsockopt, socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)")
kernel.add("name_of_a_mapping",
           "import mmap\nm = mmap.mmap(-1, 4096, mmap.MAP_PRIVATE)\n"
           "a = ctypes.addressof(ctypes.c_char.from_buffer(m))\n"
           "call('prctl', 0x53564d41, 0, a, 4096, b'name')", "EINVAL",
           "works('prctl', 15, b'name', 0, 0, 0)")
# The kernel counts pending signals of a user, also outside the jail.
kernel.add("more_than_512_pending_signals",
           "import signal\n"
           "signal.pthread_sigmask(signal.SIG_BLOCK, [40])\n"
           "sent = [LIBC.sigqueue(os.getpid(), 40, None) for i in range(600)]\n"
           "e = ctypes.get_errno()\n"
           "expect(-1 in sent and e == errno.EAGAIN, name_of(e))", ".*",
           "import signal\n"
           "signal.pthread_sigmask(signal.SIG_BLOCK, [40])\n"
           "succeed(LIBC.sigqueue, os.getpid(), 40, None)")

ROWS = reading + writing + kernel
