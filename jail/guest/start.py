# SPDX-License-Identifier: MIT
#
# guest_start.py - the driver's first word: Python is there
#
# Runs in:   the jail, as PYTHON -I -S -c <this text>, with the arguments of
#            guest.py, before anything of the user's
# Holds:     back every signal but SIGINT, which is ignored since before exec
# Trusts:    the warden
# Leaves:    the place to guest.py, which tools/freeze hands over as DRIVER
#
# The first prompt waits for READY. The driver takes longer to read than to say
# this, so it is read behind it; what could fail then is tried before.
import sys
if sys.version_info < (3, 9):
    sys.exit("Python %d.%d is too old for cells, which need 3.9 or newer; "
             "programs (FILE, -c, -m) may have any" % sys.version_info[:2])
from posix import getpid, write
from _signal import SIG_BLOCK, pthread_sigmask, valid_signals

LOOK = 64  # WIRE_STACK_SIGNAL
SIGNALS = valid_signals() - {LOOK}
if sys.argv[1] != "-e":
    for name in "_socket", "binascii":
        if name not in sys.builtin_module_names:
            __import__(name)
    MASK = pthread_sigmask(SIG_BLOCK, SIGNALS)
    write(int(sys.argv[1]), b"READY %d %d.%d.%d" % (
        (getpid(),) + sys.version_info[:3]))
if type(DRIVER) is bytes:
    from marshal import loads
    DRIVER = loads(DRIVER)
exec(DRIVER)
