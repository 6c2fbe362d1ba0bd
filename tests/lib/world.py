# SPDX-License-Identifier: MIT
"""The path of the binary, and a private place for each test to start it in."""
import os
import pathlib
import subprocess

import term
from hosttree import Tree

TESTS = pathlib.Path(__file__).resolve().parent.parent
CELLBLOCK = os.environ.get(
    "CELLBLOCK",
    str(TESTS.parent / os.environ.get("BUILD", "build") / "cellblock"))
# Whether it was built with AddressSanitizer.
ASAN = b"__asan_init" in pathlib.Path(CELLBLOCK).read_bytes()
PYTHON = "/usr/bin/python3"
IS_ROOT = os.geteuid() == 0
PATIENCE = term.PATIENCE
# Whether tests marked `sampled` try all of it.
WHOLE = os.environ.get("CELLBLOCK_TEST_PART") != "once"


COMPILED = {}                   # what this process has compiled: its bytes


def compiled(to, source, *options):
    """Compile a program, or with -shared a library, that a test needs."""
    made = pathlib.Path(source).read_bytes(), options
    to = pathlib.Path(to)
    if made in COMPILED:
        to.write_bytes(COMPILED[made])
        to.chmod(0o755)
    else:
        subprocess.run(["cc", "-O1", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-o",
                        to, source, *options], check=True)
        COMPILED[made] = to.read_bytes()
    return to


class Ended:
    """The result of a run. out and err are bytes, text and said strings."""

    def __init__(self, args, code, out, err):
        self.args, self.code, self.out, self.err = args, code, out, err

    @property
    def text(self):
        return self.out.decode("utf-8", "backslashreplace")

    @property
    def said(self):
        return self.err.decode("utf-8", "backslashreplace")

    def __repr__(self):
        return (f"{self.args!r} ended with {self.code}\n"
                f"stdout: {self.text[-2000:]!r}\nstderr: {self.said[-2000:]!r}")


class World:
    """A home, a working directory and an environment for one test."""

    def __init__(self, base):
        self.base = pathlib.Path(base)
        self.home = self.base / "home"
        self.work = self.base / "work"
        self.home.mkdir(mode=0o700)
        self.work.mkdir()
        self.env = {
            "HOME": str(self.home),
            "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:"
                    "/sbin:/bin",
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
            "USER": os.environ.get("USER", "root"),
            "LOGNAME": os.environ.get("USER", "root"),
        }
        for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS"):
            if name in os.environ:
                self.env[name] = os.environ[name]
        self.open = []

    def config(self, text):
        """Write the person's configuration file. Returns its path."""
        path = self.home / ".config" / "cellblock" / "cellblock.conf"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def let_in(self, path):
        """Make `path` readable for everybody, like a directory of packages."""
        for p in (path, *path.parents):
            if p.stat().st_uid == os.geteuid() and not p.stat().st_mode & 1:
                p.chmod(p.stat().st_mode | 0o55)

    # ---- a session ----

    def session(self, *args, size=(24, 80), env=None, wrapper=(), start=True,
                **more):
        """Start cellblock on a terminal and wait for its first prompt. It ends
        with its terminal: tests of sessions that go on have `many`."""
        s = term.Session([*wrapper, CELLBLOCK, "-s", "session.linger=0", *args],
                         env={**self.env, **(env or {})}, size=size,
                         cwd=self.work, **more)
        self.open.append(s)
        if start:
            s.start()
        return s

    # ---- a program ----

    def run(self, *args, stdin=b"", env=None, timeout=30, wrapper=(), **more):
        """Run cellblock without a terminal until it ends."""
        if isinstance(stdin, str):
            stdin = stdin.encode()
        argv = [*wrapper, CELLBLOCK, *args]
        with subprocess.Popen(
                argv, env={**self.env, **(env or {})}, cwd=self.work,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, **more) as p:
            try:
                out, err = p.communicate(stdin, timeout=timeout * PATIENCE)
            except subprocess.TimeoutExpired:
                p.kill()
                out, err = p.communicate()
                raise AssertionError(
                    f"did not end: {Ended(args, None, out, err)!r}") from None
        return Ended(args, p.returncode, out, err)

    def popen(self, *args, env=None, wrapper=(), **more):
        p = subprocess.Popen([*wrapper, CELLBLOCK, *args],
                             env={**self.env, **(env or {})}, cwd=self.work,
                             **more)
        self.open.append(_Open(p))
        return p

    def tree(self, process):
        return Tree(process.pid)

    def close(self):
        for s in self.open:
            s.close()


class _Open:
    def __init__(self, process):
        self.process = process

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        for stream in (self.process.stdin, self.process.stdout,
                       self.process.stderr):
            if stream:
                try:
                    stream.close()
                except OSError:
                    pass
        self.process.wait()
