# SPDX-License-Identifier: MIT
"""What a row of the tables is.

An attempt is code for inside.py that must print REFUSED:…, matching
`expected`, or ABSENT:… when what it needs is not installed; its control is
code that must print OK:…, so that a jail in which nothing works passes
nothing.
"""
import dataclasses
import re

EPERM = "EPERM"
DENIED = "EPERM|EACCES|ENOENT|EROFS"
ABSENT = "ENOENT"
READ_ONLY = "EROFS|EACCES|EPERM"


@dataclasses.dataclass(frozen=True)
class Row:
    group: str
    name: str
    code: str
    expected: str
    control: str
    where: str = "both"         # program, session or both

    def refused(self, seen):
        return re.fullmatch(rf"REFUSED:(?:{self.expected}).*", seen or "",
                            re.S) is not None


class Table(list):
    """Rows of one group with one control, unless a row has its own."""

    def __init__(self, group, control):
        super().__init__()
        self.group, self.control = group, control

    def add(self, name, code, expected, control=None, where="both"):
        self.append(Row(self.group, name, code, expected,
                        control or self.control, where))


CALLS = "works('getpid')"
READS = "succeed(read, '/etc/passwd')"
WRITES = "succeed(write, '/home/control')"
FORKS = ("import subprocess\n"
         "succeed(subprocess.check_output, ['echo', 'ok'])")
