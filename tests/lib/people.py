# SPDX-License-Identifier: MIT
"""The users that run the suites: the caller, and a user made for the run."""
import os
import pathlib
import pwd
import secrets
import shutil
import subprocess

from delegation import Delegated

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
PASSED_ON = ("ASAN_OPTIONS", "UBSAN_OPTIONS", "CELLBLOCK_TEST_PATIENCE",
             "CELLBLOCK_TEST_IPYTHON",
             "CELLBLOCK_TEST_MAY_INSTALL", "NODE_PATH")


class Person:
    def __init__(self, who, directory, top, binary, entry, identity):
        self.who = who                      # "root" or "user"
        self.directory = directory          # for files that tests write
        self.top = top                      # the tree that the person can read
        self.identity = identity            # for subprocess
        self.entry = entry
        self.made = bool(identity)
        self.cgroup = None                  # delegated to the person
        self.env = {
            "PATH": PATH, "LANG": "C.UTF-8", "HOME": entry.pw_dir,
            "USER": entry.pw_name, "LOGNAME": entry.pw_name,
            "TERM": "dumb",
            # Of the tests, compiled once and not by each worker.
            "PYTHONPYCACHEPREFIX": str(directory / "pyc"),
            "CELLBLOCK": str(binary), "CELLBLOCK_TEST_WHO": f"--{who}",
            "CELLBLOCK_REPORTS": str(directory), "TMPDIR": str(directory),
            "BUILD": os.environ.get("BUILD", "build"),
        }
        self.env.update({n: os.environ[n] for n in PASSED_ON
                         if n in os.environ})

    @property
    def is_root(self):
        return self.entry.pw_uid == 0

    @classmethod
    def caller(cls, directory, build):
        entry = pwd.getpwuid(os.geteuid())
        mine = directory / "caller"
        mine.mkdir(mode=0o755)
        return cls("root" if entry.pw_uid == 0 else "user", mine, TOP,
                   (TOP / build / "cellblock").resolve(), entry, {})

    def keep_reports(self, build):
        for report in self.directory.glob("*.txt"):
            shutil.copy(report, build / report.name)
            print(f"report: {build / report.name}")

    def remove(self):
        if self.cgroup:
            self.cgroup.remove()
        if self.made:
            subprocess.run(["userdel", "-f", self.entry.pw_name],
                           stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL, check=False)


def make_person(directory, build):
    """Make an unprivileged user, with a readable copy of the tree. Returns
    (person, None), or (None, the reason why not)."""
    name = f"cellblock-test-{secrets.token_hex(2)}"
    home = directory / "home"
    made = subprocess.run(
        ["useradd", "-r", "-m", "-d", str(home), "-s", "/bin/sh", name],
        capture_output=True, text=True, check=False)
    if made.returncode:
        return None, f"useradd: {made.stderr.strip()}"
    entry = pwd.getpwnam(name)
    top = directory / "tree"
    ignore = shutil.ignore_patterns("__pycache__", ".git", "corpus")
    parts = {p: p for p in ("tests", "jail", "repl", "etc", "man",
                            "docs", "completions", "tools", "debian", "lab",
                            ".ci", ".github")}
    for part, to in {**parts, f"{build}/gen": "build/gen"}.items():
        if (TOP / part).is_dir():
            shutil.copytree(TOP / part, top / to, ignore=ignore)
    for path in (TOP / "Makefile", TOP / "Containerfile", TOP / "LICENSE",
                 *TOP.glob("*.md")):
        shutil.copy(path, top)
    binary = top / "bin" / "cellblock"
    binary.parent.mkdir(parents=True)
    if (TOP / build / "cellblock").exists():
        shutil.copy(TOP / build / "cellblock", binary)
    mine = directory / "user"
    mine.mkdir(mode=0o755)
    os.chown(mine, entry.pw_uid, entry.pw_gid)
    identity = {"user": entry.pw_uid, "group": entry.pw_gid,
                "extra_groups": []}
    person = Person("user", mine, top, binary, entry, identity)
    person.env["BUILD"] = "build"
    try:
        person.cgroup = Delegated(entry.pw_uid)
        person.identity["preexec_fn"] = person.cgroup.enter
    except OSError:
        pass
    return person, None
