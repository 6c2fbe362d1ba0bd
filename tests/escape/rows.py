# SPDX-License-Identifier: MIT
"""The rows of the tables of attempts.

An attempt is code for inside.py. It must print REFUSED:… with a reason that
matches `expected`, or ABSENT:… when a program that it needs is not installed.
Its control is code that must print OK:…, so that a jail in which nothing works
passes no test.
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
    """The rows of one group. They share a control; a row may have its own."""

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
