# SPDX-License-Identifier: MIT
"""A server that is dead, while a child of it has its listening socket."""
import contextlib
import subprocess

from world import PYTHON

CODE = """
import os, pathlib, select, socket, sys
path, kind, seconds = sys.argv[1:]
pathlib.Path(path).parent.mkdir(exist_ok=True)
s = socket.socket(socket.AF_UNIX, getattr(socket, kind))
s.bind(path)
s.listen()
if os.fork() == 0:
    select.select([sys.stdin], [], [], float(seconds))
"""


@contextlib.contextmanager
def at(path, kind, seconds, *inside):
    """`kind`: the name of the socket's type. `seconds`: how long the child lives, at
    most as long as the test. `inside`: what runs a program where the server is
    to be."""
    with subprocess.Popen([*inside, PYTHON, "-c", CODE, path, kind, str(seconds)],
                          stdin=subprocess.PIPE) as dead:
        assert dead.wait() == 0
        yield
