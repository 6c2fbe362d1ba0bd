# SPDX-License-Identifier: MIT
"""What SECURITY.md says is not promised: true as well, so that nobody is
surprised and the page does not rot."""
import os
import socket
import threading

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
    """Whether the jail shows it through an overlay, with inodes of its own:
    not through the host's, should all its files be on one."""
    r = cb.run("-s", f"jail.expose={path}", "-c",
               "print(open('/proc/self/mountinfo').read())")
    lines = [x for x in r.text.splitlines() if f" {path} " in x]
    device = os.stat(path).st_dev
    host = f" {os.major(device)}:{os.minor(device)} "
    return " - overlay " in lines[-1] and host not in lines[-1]  # the topmost


def test_a_socket_in_an_exposed_directory(cb):
    """Can be connected to, unless the directory is shown by an overlay."""
    place = cb.base / "shown"
    place.mkdir()
    path = str(place / "socket")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        os.chmod(path, 0o777)
        cb.let_in(place)
        server.listen(2)
        server.settimeout(20)

        def serve():
            try:
                server.accept()[0].sendall(b"served")
            except OSError:
                pass
        thread = threading.Thread(target=serve)
        thread.start()
        # control: not exposed, not there
        r = cb.run("-c", CONNECT, path)
        assert r.text == "FileNotFoundError\n", r
        r = cb.run("-s", f"jail.expose={place}", "-c", CONNECT, path)
        if is_overlay(cb, place):
            assert r.text == "ConnectionRefusedError\n", r
            with socket.socket(socket.AF_UNIX) as host:
                host.connect(path)      # control: somebody is there
                assert host.recv(10) == b"served"
        else:
            assert r.text == "b'served'\n", r
        thread.join()


def test_what_would_lift_the_limits_is_never_exposed(cb):
    for path in ("/sys/fs/cgroup", "/run/dbus", "/", "/proc"):
        r = cb.run("-s", f"jail.expose={path}", "-c", "print('ran')")
        assert r.code == 78 and not r.out, r
    r = cb.run("-s", "jail.expose=/etc/hostname", "-c",
               "print(open('/etc/hostname').read())")
    assert r.code == 0, r
