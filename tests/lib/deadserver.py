# SPDX-License-Identifier: MIT
"""A server that is dead, and a child of it that takes its time to die: it has the
listening socket as long as the test wants."""
import contextlib
import subprocess

from world import PYTHON

CODE = """
import os, pathlib, socket, sys
pathlib.Path(sys.argv[1]).parent.mkdir(exist_ok=True)
s = socket.socket(socket.AF_UNIX, getattr(socket, sys.argv[2]))
s.bind(sys.argv[1])
s.listen()
if os.fork() == 0:
    sys.stdin.read()
"""


@contextlib.contextmanager
def at(path, kind, *inside):
    """`kind`: the name of the socket's type. `inside`: what runs a program where
    the server is to be."""
    with subprocess.Popen([*inside, PYTHON, "-c", CODE, path, kind],
                          stdin=subprocess.PIPE) as dead:
        assert dead.wait() == 0
        yield
