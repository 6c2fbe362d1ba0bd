# SPDX-License-Identifier: MIT
#
# lease.py - a jail that was made ahead is somebody's now
#
# Runs in:   the guest, before any code of the user's
# Trusts:    the warden
# Leaves:    limits and variables as if Python had been started with them
from posix import environ, putenv


def lease(memory, cpus, text):
    LIMITS[:] = memory, cpus
    for row in text.split(b"\0")[:-1]:
        name, _, value = row.partition(b"=")
        set_variable(name, value)


def set_variable(name, value):
    "os.environ is made from what posix has, once"
    environ[name] = value
    putenv(name, value)
    if "os" in sys.modules:
        sys.modules["os"].environb[name] = value
