# SPDX-License-Identifier: MIT
"""Attempts to reach into other processes, to signal them, and to run while the
jail is stopped."""
from rows import CALLS, EPERM, FORKS, Table

ALIVE = ("import signal\n"
         "succeed(lambda: (os.kill(1, 0), status(1)['State'])[1])")

reach = Table("processes", FORKS)
add = reach.add
VEC = ("b = ctypes.create_string_buffer(8)\n"
       "v = (ctypes.c_void_p * 2)(ctypes.addressof(b), 8)\n")
for whom, pid in {"init": "1", "parent": "os.getppid()"}.items():
    add(f"ptrace_attach_{whom}", f"call('ptrace', 16, {pid}, 0, 0)", EPERM)
    add(f"ptrace_seize_{whom}", f"call('ptrace', 0x4206, {pid}, 0, 0)", EPERM)
    add(f"process_vm_readv_{whom}",
        VEC + f"call('process_vm_readv', {pid}, v, 1, v, 1, 0)", EPERM)
    add(f"process_vm_writev_{whom}",
        VEC + f"call('process_vm_writev', {pid}, v, 1, v, 1, 0)", EPERM)
    add(f"pidfd_getfd_{whom}",
        f"f = raw(number_of('pidfd_open'), {pid}, 0)[0]\n"
        "call('pidfd_getfd', f, 0, 0)", EPERM)
    add(f"kcmp_{whom}", f"call('kcmp', {pid}, os.getpid(), 0, 0, 0)", EPERM)
    add(f"prlimit_{whom}",
        f"l = (ctypes.c_uint64 * 2)(1, 1)\n"
        f"call('prlimit64', {pid}, 7, l, 0)", EPERM,
        "l = (ctypes.c_uint64 * 2)()\nworks('prlimit64', 0, 7, 0, l)")
    add(f"sched_setscheduler_{whom}",
        f"p = ctypes.c_int(0)\n"
        f"call('sched_setscheduler', {pid}, 5, ctypes.byref(p))", EPERM)
    add(f"sched_setaffinity_{whom}",
        f"m = ctypes.c_uint64(1)\n"
        f"call('sched_setaffinity', {pid}, 8, ctypes.byref(m))", EPERM)
    add(f"sched_setattr_{whom}",
        "a = (ctypes.c_uint64 * 6)(48 | 5 << 32)\n"
        f"call('sched_setattr', {pid}, a, 0)", EPERM)
    add(f"setpriority_{whom}", f"call('setpriority', 0, {pid}, 19)", EPERM,
        "works('setpriority', 0, 0, 19)")
    add(f"ioprio_set_{whom}", f"call('ioprio_set', 1, {pid}, 3 << 13)", EPERM)
    add(f"get_robust_list_{whom}",
        "p, n = ctypes.c_void_p(), ctypes.c_size_t()\n"
        f"call('get_robust_list', {pid}, ctypes.byref(p), ctypes.byref(n))",
        EPERM)
    add(f"move_pages_{whom}", f"call('move_pages', {pid}, 0, 0, 0, 0, 0)",
        EPERM)
    add(f"migrate_pages_{whom}", f"call('migrate_pages', {pid}, 64, 0, 0)",
        EPERM)
add("ptrace_traceme", "call('ptrace', 0, 0, 0, 0)", EPERM)
add("ptrace_of_its_own_child",
    "p = os.fork()\n"
    "if not p:\n    import time; time.sleep(5); os._exit(0)\n"
    "call('ptrace', 16, p, 0, 0); os.kill(p, 9); os.waitpid(p, 0)", EPERM)
add("process_madvise", "call('process_madvise', 0, 0, 0, 0, 0)", EPERM)
add("process_mrelease", "call('process_mrelease', 0, 0)", EPERM)
add("setpriority_of_the_user", "call('setpriority', 2, 0, 19)", EPERM,
    "works('setpriority', 0, 0, 19)")
add("setpriority_of_the_group", "call('setpriority', 1, 0, 19)", EPERM,
    "works('setpriority', 0, 0, 19)")
add("priority_above_normal", "attempt(os.nice, -5)", "EPERM|EACCES",
    "succeed(os.nice, 1)")
add("realtime_for_this_process",
    "p = ctypes.c_int(50)\n"
    "call('sched_setscheduler', 0, 1, ctypes.byref(p))", EPERM)
add("limit_raised_again",
    "import resource\n"
    "h = resource.getrlimit(resource.RLIMIT_NOFILE)[1]\n"
    "attempt(resource.setrlimit, resource.RLIMIT_NOFILE, (h + 1, h + 1))",
    "EPERM|ValueError",
    "import resource\n"
    "succeed(resource.setrlimit, resource.RLIMIT_NOFILE, (50, 50))")
# Programs that hold secrets set the limit to 0 and abort if that fails. So the
# call succeeds and changes nothing.
add("core_limit_cannot_be_changed",
    "import resource as r\n"
    "was = r.getrlimit(r.RLIMIT_CORE)\n"
    "for l in (0, 0), (0, 1), (-1, -1): r.setrlimit(r.RLIMIT_CORE, l)\n"
    "l = (ctypes.c_uint64 * 2)(0, 0)\n"
    "raw(number_of('setrlimit'), 4, l)\n"
    "expect(r.getrlimit(r.RLIMIT_CORE) == was, str(was))", ".*",
    "import resource\n"
    "succeed(resource.setrlimit, resource.RLIMIT_NOFILE, (50, 50))")
add("memory_of_any_process",
    "got = []\n"
    "for p in os.listdir('/proc'):\n"
    "    if p.isdigit() and int(p) == 1:\n"
    "        try: got.append(os.open(f'/proc/{p}/mem', os.O_RDWR))\n"
    "        except OSError: pass\n"
    "expect(not got, str(got))", ".*")

signals = Table("signals", ALIVE)
add = signals.add
add("kill_every_process", "call('kill', -1, 9)", EPERM)
add("kill_every_process_with_high_bits", "call('kill', 0xffffffff, 9)", EPERM)
add("stop_every_process", "call('kill', -1, 19)", EPERM)
for sig in (9, 19, 15, 11):
    add(f"init_survives_signal_{sig}",
        f"raw(number_of('kill'), 1, {sig})\n"
        "expect(status(1)['State'][0] in 'SRD', status(1)['State'])", ".*")
add("init_survives_a_pidfd_signal",
    "f = raw(number_of('pidfd_open'), 1, 0)[0]\n"
    "raw(number_of('pidfd_send_signal'), f, 9, 0, 0)\n"
    "expect(status(1)['State'][0] in 'SRD')", ".*")
add("init_survives_tkill",
    "raw(number_of('tkill'), 1, 9); raw(number_of('tgkill'), 1, 1, 9)\n"
    "expect(status(1)['State'][0] in 'SRD')", ".*")
add("no_pid_outside_the_jail_can_be_signalled",
    "there = set()\n"
    "for p in range(1, 70000):\n"
    "    try: os.kill(p, 0); there.add(p)\n"
    "    except PermissionError: there.add(p)\n"
    "    except OSError: pass\n"
    "listed = {int(t) for p in os.listdir('/proc') if p.isdigit()"
    " for t in os.listdir(f'/proc/{p}/task')}\n"
    "expect(there <= listed and len(there) < 64, str(there - listed))", ".*")
add("init_has_no_visible_parent",
    "expect(status(1)['PPid'] == '0', status(1)['PPid'])", ".*")
add("no_process_of_the_host_is_listed",
    "pids = [p for p in os.listdir('/proc') if p.isdigit()]\n"
    "expect(len(pids) < 20, str(pids))", ".*")

cont = Table("running while the jail is stopped", CALLS)
add = cont.add
SIGCONT = 18
add("timer_that_sends_sigcont",
    "e = (ctypes.c_int * 16)(0, 0, 18, 0)\nt = ctypes.c_int()\n"
    "call('timer_create', 1, e, ctypes.byref(t))", "ENOSYS")
add("message_queue_that_sends_sigcont",
    "call('mq_notify', 0, 0)", "EPERM|EBADF")
add("io_signal_set_to_sigcont",
    "import fcntl\nr, w = os.pipe()\n"
    "attempt(fcntl.fcntl, r, 10, 18)", EPERM,
    "import fcntl\nr, w = os.pipe()\nsucceed(fcntl.fcntl, r, fcntl.F_GETFL)")
add("io_signal_set_to_sigcont_with_high_bits",
    "r, w = os.pipe()\ncall('fcntl', r, 10 | 1 << 40, 18)", EPERM)
add("parent_death_signal_set_to_sigcont",
    "call('prctl', 1, 18, 0, 0, 0)", EPERM,
    "works('prctl', 1, 9, 0, 0, 0)")
add("exit_signal_set_to_sigcont", "forked('clone', 18)", EPERM, FORKS)
add("becoming_a_reaper", "call('prctl', 36, 1, 0, 0, 0)", EPERM)
# A process that asks to be undumpable is told that it is, and is not.
add("hiding_from_proc",
    "raw(number_of('prctl'), 4, 0, 0, 0, 0)\n"
    "expect(raw(number_of('prctl'), 3, 0, 0, 0, 0)[0] == 1)", ".*")

ROWS = reach + signals + cont
