# SPDX-License-Identifier: MIT
"""docs/LAB.md as somebody follows it: its commands, in order, and then a class
that logs in at once."""
import concurrent.futures
import re

from labhost import TOOL
from world import TESTS

HOSTILE = ("import os\nwhile True:\n    try: os.fork()\n    except OSError: pass",
           "x = []\nwhile True: x.append(bytearray(1 << 20))",
           "while True: print('x' * 10000)", "while True: pass",
           "import os; os.kill(-1, 9)",
           "open('/home/full', 'wb').write(bytes(1 << 30))")


def commands():
    """The commands that root types, but for packages, which are installed."""
    text = (TESTS.parent / "docs" / "LAB.md").read_text()
    return [c for c in re.findall(r"(?m)^ +root@lab# (.*)$", text)
            if not c.startswith("apt-get ")]


def prepare(work, binary, key, students):
    """The directory where they are typed: who comes, the course's files, and the
    program."""
    work.mkdir()
    public = key.with_suffix(".pub").read_text()
    names = [*(f"s{n}" for n in range(students)), "ann", "bob"]
    (work / "students.csv").write_text(
        "".join(f"{n},{public}" for n in names))
    (work / "grades.csv").write_text("1,2\n")
    for name, path in ("cellblock", binary), ("cellblock-lab", TOOL):
        (work / name).symlink_to(path)


def log_in_at_once(students, ask):
    """Each runs a cell over ssh, ask(name, text); every third is hostile. The
    others get their answers, and see nothing of each other."""
    def text(n):
        if n % 3 == 0:
            return HOSTILE[n // 3 % len(HOSTILE)]
        return (f"import os; open('/srv/python1/grades.csv').read(), {n}, "
                f"os.listdir('/home')")
    with concurrent.futures.ThreadPoolExecutor(students) as many:
        answers = list(many.map(lambda n: ask(f"s{n}", text(n)),
                                range(students)))
    for n, r in enumerate(answers):
        if n % 3:
            assert r.stdout == f"('1,2\\n', {n}, [])\n", (n, r)
        else:
            assert r.returncode, (n, r)
