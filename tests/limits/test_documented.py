# SPDX-License-Identifier: MIT
"""SECURITY.md also says what is not promised. These tests check that it is
still right."""
import os
import socket
import threading

import pytest

from world import PATIENCE

# The enforcement of a limit depends on the user: root's sessions have a cgroup.
pytestmark = pytest.mark.both

CONNECT = """
import socket, sys
s = socket.socket(socket.AF_UNIX)
s.settimeout(10)
try:
    s.connect(sys.argv[1])
    print(s.recv(10))
except OSError as e:
    print(type(e).__name__)
"""


def is_overlay(cb, path):
    """Whether the jail shows `path` through an overlay of its own, with
    separate inodes. An overlay of the host, which may hold all of its files,
    does not count."""
    r = cb.run("-s", f"jail.expose={path}", "-c",
               f"import os; print(os.stat({str(path)!r}).st_dev)")
    return int(r.text) != os.stat(path).st_dev


def test_a_socket_in_an_exposed_directory_can_be_reached(cb):
    """The socket accepts connections from the jail, unless the jail shows the
    directory through an overlay."""
    place = cb.base / "shown"
    place.mkdir()
    path = str(place / "socket")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        os.chmod(path, 0o777)
        cb.let_in(place)
        server.listen(2)
        server.settimeout(20 * PATIENCE)

        def serve():
            try:
                server.accept()[0].sendall(b"served")
            except OSError:
                pass
        thread = threading.Thread(target=serve)
        thread.start()
        # control: a directory that is not exposed does not exist
        r = cb.run("-c", CONNECT, path)
        assert r.text == "FileNotFoundError\n", r
        r = cb.run("-s", f"jail.expose={place}", "-c", CONNECT, path)
        if is_overlay(cb, place):
            assert r.text == "ConnectionRefusedError\n", r
            with socket.socket(socket.AF_UNIX) as host:
                host.connect(path)      # control: the server still runs
                assert host.recv(10) == b"served"
        else:
            assert r.text == "b'served'\n", r
        thread.join()


def test_paths_that_would_lift_the_limits_are_never_exposed(cb):
    for path in ("/sys/fs/cgroup", "/run/dbus", "/", "/proc"):
        r = cb.run("-s", f"jail.expose={path}", "-c", "print('ran')")
        assert r.code in (2, 78) and not r.out, r
    r = cb.run("-s", "jail.expose=/etc/hostname", "-c",
               "print(open('/etc/hostname').read())")
    assert r.code == 0, r
