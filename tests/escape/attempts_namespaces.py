# SPDX-License-Identifier: MIT
"""Attempts to escape by mounts and namespaces."""
from rows import CALLS, DENIED, EPERM, FORKS, Table

FLAGS = {"newuser": 0x10000000, "newns": 0x00020000, "newpid": 0x20000000,
         "newnet": 0x40000000, "newipc": 0x08000000, "newuts": 0x04000000,
         "newcgroup": 0x02000000, "newtime": 0x00000080}
SIGCHLD = 17

namespaces = Table("namespaces", FORKS)
add = namespaces.add
for name, flag in FLAGS.items():
    add(f"unshare_{name}", f"call('unshare', {flag:#x})", EPERM)
    if name != "newtime":       # clone(2) uses those bits for the exit signal
        add(f"clone_{name}", f"forked('clone', {flag | SIGCHLD:#x})", EPERM)
add("unshare_all_namespaces", "call('unshare', 0x7c020000)", EPERM)
add("unshare_with_high_bits", "call('unshare', 0x10000000 | 1 << 40)",
    "EPERM|EINVAL")
add("clone_user_with_high_bits",
    f"forked('clone', {0x10000000 | SIGCHLD:#x} | 1 << 40)", EPERM)
add("clone3_new_user",
    "a = (ctypes.c_uint64 * 11)(0x10000000, 0, 0, 0, 17)\n"
    "r, e = raw(number_of('clone3'), a, 88)\n"
    "if r == 0: os._exit(0)\n"
    "print(f'REFUSED:{name_of(e)}' if r == -1 else f'ESCAPED:{r}')", "ENOSYS")
add("clone3_plain",
    "a = (ctypes.c_uint64 * 11)(0, 0, 0, 0, 17)\n"
    "r, e = raw(number_of('clone3'), a, 88)\n"
    "if r == 0: os._exit(0)\n"
    "print(f'REFUSED:{name_of(e)}' if r == -1 else f'ESCAPED:{r}')", "ENOSYS")
add("clone3_into_cgroup",
    "a = (ctypes.c_uint64 * 11)(0x200000000, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0)\n"
    "r, e = raw(number_of('clone3'), a, 88)\n"
    "if r == 0: os._exit(0)\n"
    "print(f'REFUSED:{name_of(e)}' if r == -1 else f'ESCAPED:{r}')", "ENOSYS")
for name in ("user", "mnt", "pid", "net", "ipc", "uts", "cgroup"):
    add(f"setns_{name}",
        f"try: f = os.open('/proc/self/ns/{name}', os.O_RDONLY)\n"
        f"except OSError: f = 0\n"
        f"call('setns', f, 0)", EPERM)
    add(f"setns_of_init_{name}",
        f"attempt(os.open, '/proc/1/ns/{name}', os.O_RDONLY)", DENIED)
add("setns_by_pidfd",
    "call('setns', raw(number_of('pidfd_open'), os.getppid(), 0)[0],"
    " 0x10000000)", EPERM)
add("unshare_program",
    "import subprocess\n"
    "r = subprocess.run(['unshare', '-Ur', 'true'], capture_output=True)\n"
    "expect(r.returncode != 0, r.stderr.decode())", ".*")
add("setgroups", "call('setgroups', 0, 0)", EPERM)
add("setgroups_to_host_groups", "attempt(os.setgroups, [0, 4, 27])", EPERM)
add("hostname", "call('sethostname', b'owned', 5)", EPERM)
add("domainname", "call('setdomainname', b'owned', 5)", EPERM)
add("hostname_is_not_the_hosts",
    "expect(os.uname().nodename != HOSTNAME, os.uname().nodename)", ".*")

mounts = Table("mounts", CALLS)
add = mounts.add
MS_BIND, MS_REMOUNT, MS_MOVE = 4096, 32, 8192
for name, args in {
        "tmpfs": "b'none', b'/tmp', b'tmpfs', 0, 0",
        "proc": "b'proc', b'/tmp', b'proc', 0, 0",
        "sysfs": "b'sysfs', b'/tmp', b'sysfs', 0, 0",
        "cgroup": "b'cgroup', b'/tmp', b'cgroup', 0, b'memory'",
        "cgroup2": "b'none', b'/tmp', b'cgroup2', 0, 0",
        "overlay": "b'o', b'/tmp', b'overlay', 0,"
                   " b'lowerdir=/,upperdir=/home,workdir=/tmp'",
        "devpts": "b'devpts', b'/tmp', b'devpts', 0, 0",
        "mqueue": "b'mqueue', b'/tmp', b'mqueue', 0, 0",
        "bind": f"b'/', b'/tmp', 0, {MS_BIND}, 0",
        "move": f"b'/home', b'/tmp', 0, {MS_MOVE}, 0",
        "remount_root": f"0, b'/', 0, {MS_REMOUNT}, 0",
        "remount_usr": f"0, b'/usr', 0, {MS_REMOUNT | MS_BIND}, 0",
        "shared": "0, b'/', 0, 1 << 20, 0"}.items():
    add(f"mount_{name}", f"call('mount', {args})", EPERM)
for path in ("/home", "/proc", "/usr", "/dev", "/"):
    add("umount" + (path.replace("/", "_") if path != "/" else "_root"),
        f"call('umount2', {path.encode()!r}, 2)", EPERM)
add("pivot_root", "call('pivot_root', b'/home', b'/home')", EPERM)
add("chroot", "call('chroot', b'/home')", EPERM)
add("chroot_by_python", "attempt(os.chroot, '/home')", EPERM)
add("fsopen", "call('fsopen', b'tmpfs', 0)", EPERM)
add("fsconfig", "call('fsconfig', 0, 6, 0, 0, 0)", EPERM)
add("fsmount", "call('fsmount', 0, 0, 0)", EPERM)
add("fspick", "call('fspick', -100, b'/', 0)", EPERM)
add("open_tree", "call('open_tree', -100, b'/', 0)", EPERM)
add("open_tree_clone", "call('open_tree', -100, b'/', 1)", EPERM)
add("move_mount", "call('move_mount', -100, b'/', -100, b'/tmp', 0)", EPERM)
add("mount_setattr",
    "a = (ctypes.c_uint64 * 4)(0, 1, 0, 0)\n"
    "call('mount_setattr', -100, b'/usr', 0x8000, a, 32)", EPERM)
add("statmount", "call('statmount', 0, 0, 0, 0)", "EPERM|ENOSYS")
add("listmount", "call('listmount', 0, 0, 0, 0)", "EPERM|ENOSYS")
add("mount_program",
    "import subprocess\n"
    "r = subprocess.run(['mount', '-t', 'tmpfs', 'x', '/tmp'],"
    " capture_output=True)\nexpect(r.returncode != 0, r.stderr.decode())",
    ".*", FORKS)
add("swapon", "call('swapon', b'/home/x', 0)", EPERM)
add("quotactl", "call('quotactl', 0x800007, 0, 0, 0)", EPERM)
add("sync", "call('sync')", EPERM)
add("syncfs", "call('syncfs', 0)", EPERM)

ROWS = namespaces + mounts
