# SPDX-License-Identifier: MIT
#
# load.py - the text of Python's -c: loads the driver, one part after another
#
# tools/freeze packs boot.py and the other parts into one file, whose
# descriptor is the first argument: the magic number of the Python they were
# compiled for, the length of a table, the table {part: (offset, bytes of code,
# bytes of source)}, and behind it the code and the source of each part. Any
# other Python compiles the source. Python parses this text at every start, so
# it is short.
#
# The gain of the two refinements, from Python's exec (best of 80 starts on
# two cores): compiled parts save 1.0 ms of 6.3 to READY and 2.1 ms of 8.8 to
# the first answer; READY before the rest of the driver (boot.py) saves 0.7 ms.
import sys
from marshal import loads
from posix import pread
__builtins__ = __builtins__.__dict__.copy()  # a cell may patch the others
PARTS = int(sys.argv.pop(1))
HEAD = pread(PARTS, 8, 0)
TABLE = loads(pread(PARTS, int.from_bytes(HEAD[4:], "little"), 8))
COMPILED = HEAD[:4] == sys.modules["_frozen_importlib_external"].MAGIC_NUMBER


def part(name):
    if name in TABLE:
        at, code, source = TABLE[name]
        exec(loads(pread(PARTS, code, at)) if COMPILED else
             compile(pread(PARTS, source, at + code), "<cellblock>", "exec"),
             globals())
        TABLE.pop(name, None)


part("boot")
