# SPDX-License-Identifier: MIT
"""An exam of the first of two people: a group's file, a directory for transcripts
and one for what is handed in, which nobody but root reaches."""
import contextlib
import fcntl
import time

import hosttree
from makerhost import ready
from world import PATIENCE

LAB = """[lab]
course = python1
exercise = exam
submit = {place}/{{course}}
"""
POLICY = """[exam]
begin = {begin}
end = {end}
[policy]
locked = yes
[session]
maker = require
[cell]
timeout = 5m
cpu = 5m
[files]
upload_from = {folder}
download_to = {folder}
[log]
transcript = {transcripts}
"""


def at(seconds):
    """So many seconds from now, as the configuration has it."""
    return time.strftime("%Y-%m-%d %H:%M:%S",
                         time.localtime(time.time() + seconds))


def soon(seconds, most=55):
    """So many seconds, in which a test does what takes less. On a busy host
    more, but at most `most`: a minute before its end an exam says so."""
    return min(seconds * PATIENCE, most)


def begin(host, spare=0):
    host.spare = spare
    host.policy("")
    host.start()
    ready(host, spare * 3)


def write(s, name, text):
    s.run(f"_ = open({name!r}, 'w').write({text!r})")


class Exam:
    def __init__(self, host, lab=LAB):
        self.host, self.lab = host, lab
        self.folder = host.dir / "exam"
        self.folder.mkdir()
        self.folder.chmod(0o777)
        self.transcripts = host.dir / "transcripts"
        self.place = host.dir / "submissions"
        for p in self.transcripts, self.place:
            p.mkdir(mode=0o700)

    def set(self, start, end, more="", lab="", mark=""):
        """By the account's group. `mark` stands before all, `lab` in its section."""
        self.end = time.time() + end
        self.host.policy(
            mark + self.lab.format(place=self.place) + lab
            + POLICY.format(begin=at(start), end=at(end), folder=self.folder,
                            transcripts=self.transcripts) + more,
            f"groups/{self.host.people[0].name}.conf")

    def sit(self, more="", **others):
        """The examinee of an exam that has begun, and the session."""
        begin(self.host)
        ann, _ = self.host.people
        self.set(-60, 3600, more, **others)
        return ann, ann.session("-q").start()

    @contextlib.contextmanager
    def hand_in_locked(self, person):
        """As while another hand-in of the person's goes on."""
        there = self.place / "python1/exam" / person.name
        there.mkdir(parents=True)
        there.parent.chmod(0o700)
        with open(there / ".lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def written(self):
        """All transcripts."""
        return "".join(p.read_text() for p in
                       sorted(self.transcripts.iterdir()))

    def until_written(self, *words):
        """All that a front end has sent: who keeps it is another process."""
        hosttree.until(lambda: all(w in self.written() for w in words),
                       lambda: f"{words} in {self.written()}")

    def of(self, person):
        """{name: text} of the newest version."""
        there = self.place / "python1/exam" / person.name
        versions = [int(p.name) for p in there.glob("[1-9]*")]
        if not versions:
            return {}
        return {p.name: p.read_text()
                for p in (there / str(max(versions))).iterdir()}

    def until(self, person, names):
        hosttree.until(lambda: set(self.of(person)) == set(names),
                       f"{names} of {person.name}", 60)
        return self.of(person)

    def transcript(self, s=None):
        """Of the only session, or of the one whose front end `s` is."""
        found = [p for p in self.transcripts.iterdir()
                 if s is None or p.name.endswith(f"-{s}.log")]
        assert len(found) == 1, found
        return found[0]
