# SPDX-License-Identifier: MIT
#
# debug.py - pdb shows the user's frames, stops in them, and in none of the driver
#
# Runs in:   the guest, before the first cell that speaks of pdb
# Trusts:    as cells.py
# Leaves:    Bdb.get_stack() and Bdb.stop_here() of the bdb module replaced
try:
    S.bdb = stdlib("bdb").Bdb
    S.stack, S.stops = S.bdb.get_stack, S.bdb.stop_here
    S.bdb.get_stack = lambda self, frame, tb: above(
        *S.stack(self, frame, tb))
    S.bdb.stop_here = lambda self, frame: stops(self, frame)
except Exception:
    pass  # pdb goes without


def above(stack, at):
    "the frames from the cell's on; `at` is the current one"
    for n in range(at + 1):
        if stack[n][0].f_globals is NS:
            return stack[n:], at - n
    return stack, at


def stops(self, frame):
    "a step out of the cell goes on: the next cell is not stepped through"
    if frame.f_globals is not GUEST:
        return S.stops(self, frame)
    if frame.f_code is execute.__code__:
        self.set_continue()
    return False
