# SPDX-License-Identifier: MIT
#
# machine.py - the machine that the jail is, for psutil
#
# Runs in:   the guest, where a cell imports psutil
# Trusts:    nothing: the figures are for the session's own user
# Leaves:    psutil reads some files below /proc that are not there
#
# The jail's /proc has processes and nothing of the host (subset=pid), and the
# kernel lets no file be added to it. So psutil's own open() answers for the
# files that describe a machine: the CPU time of the jail's processes, the
# limits of the jail. Figures that cannot be known so, as the time of each
# core, are absent.
def first_number(path, word):
    "the number behind a word at the start of a line"
    with open(path) as f:
        for line in f:
            if line.startswith(word):
                return int(line.split()[1])
    return 0


def processes():
    return [pid for pid in listdir("/proc") if pid.isdigit()]


def machine_cpu():
    "in ticks; a process that is gone counts in the one that waited for it"
    import time, os
    hertz = os.sysconf("SC_CLK_TCK")
    up = time.clock_gettime(time.CLOCK_BOOTTIME)
    born, user_ticks, system = up, 0, 0
    for pid in processes():
        try:
            with open("/proc/%s/stat" % pid) as f:
                fields = f.read().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended
        user_ticks += int(fields[11]) + int(fields[13])
        system += int(fields[12]) + int(fields[14])
        born = min(born, int(fields[19]) / hertz)
    idle = (up - born) * hertz * int(LIMITS[1]) / 1000 - user_ticks - system
    return "cpu  %d 0 %d %d 0 0 0 0 0 0\nbtime %d\n" % (
        user_ticks, system, max(idle, 0), time.time() - up)


def machine_memory():
    "shared pages count once; files in memory count"
    import os
    total = int(LIMITS[0]) >> 10
    used = files = 0
    for pid in processes():
        try:
            used += first_number("/proc/%s/smaps_rollup" % pid, "Pss:")
        except OSError:
            pass  # it has ended, or is pid 1
    for place in "/home", "/tmp", "/dev/shm":
        fs = os.statvfs(place)
        files += (fs.f_blocks - fs.f_bfree) * fs.f_frsize >> 10
    free = max(total - used - files, 0)
    return "".join("%s: %d kB\n" % row for row in (
        ("MemTotal", total), ("MemFree", free), ("MemAvailable", free),
        ("Buffers", 0), ("Cached", files), ("SwapCached", 0), ("Active", 0),
        ("Inactive", 0), ("Shmem", files), ("Slab", 0), ("SwapTotal", 0),
        ("SwapFree", 0)))


MACHINE = {"/proc/stat": machine_cpu, "/proc/meminfo": machine_memory,
           "/proc/vmstat": lambda: "pswpin 0\npswpout 0\n",
           "/proc/cpuinfo": lambda: "", "/proc/filesystems": lambda: ""}


def machine_open(path, mode="r", *args, **options):
    "in place of psutil's open()"
    try:
        return open(path, mode, *args, **options)
    except FileNotFoundError:
        if str(path).startswith("/proc/net/"):
            return open("/proc/self" + path[5:], mode, *args, **options)
        if path not in MACHINE:
            raise
    import io
    text = MACHINE[path]()
    return io.BytesIO(text.encode()) if "b" in mode else io.StringIO(text)
