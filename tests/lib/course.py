# SPDX-License-Identifier: MIT
"""A plan and submissions for --grade, in a directory of their own."""
import json

HONEST = "print(int(input()) * 2)\n"

PLAN = """\
[grade]
title = Twice
program = hw.py

[test two]
input = 1
output = 2

[test forty-two]
input = 21
output = 42
points = 3
"""


class Course:
    """plan.ini and subs/ in the working directory of a world."""

    def __init__(self, world, plan=PLAN, **files):
        self.world = world
        self.base = world.work
        self.subs = self.base / "subs"
        self.subs.mkdir()
        self.results = self.base / "results.jsonl"
        self.plan(plan, **files)
        # A limit in a plan of the course goes before this one.
        world.config("[cell]\ntimeout = 60s\n")

    def plan(self, text, **files):
        (self.base / "plan.ini").write_text(text)
        for name, content in files.items():
            (self.base / f"{name}.txt").write_text(content)

    def add(self, student, source=HONEST, name="hw.py", **more):
        """Write a submission, and more files of it. Returns its directory."""
        folder = self.subs / student
        folder.mkdir(exist_ok=True, parents=True)
        (folder / name).write_text(source)
        for other, text in more.items():
            (folder / other).write_text(text)
        return folder

    def argv(self, *args):
        return ["--grade", "plan.ini", "subs", *args]

    def grade(self, *args, options=(), **more):
        return self.world.run(*options, *self.argv(*args), timeout=120, **more)

    def graded(self, *args, **more):
        """The results by name, of a run that must succeed."""
        r = self.grade("--json", *args, **more)
        assert r.code == 0, r
        return by_name(r.text)

    def lines(self, path=None):
        """The whole lines of a results file, parsed."""
        text = (path or self.results).read_text()
        return [json.loads(line) for line in text.split("\n")[:-1]]


def by_name(text):
    lines = [json.loads(line) for line in text.splitlines()]
    found = {one["submission"]: one for one in lines}
    assert len(found) == len(lines), text
    return found


def whys(result):
    """All reasons of a result, in one text."""
    return " | ".join(w for w in [result["why"],
                                  *(t["why"] for t in result["tests"])] if w)
