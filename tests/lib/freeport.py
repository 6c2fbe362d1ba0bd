# SPDX-License-Identifier: MIT
"""A port of 127.0.0.1 for a server that cannot say which one it got."""
import random
import socket

# Below those that the kernel gives to clients (ip_local_port_range): a test
# beside this one with a thousand connections would take a port of theirs before
# the server has it.
PORTS = range(10000, 32000)


def pick():
    while True:
        port = random.SystemRandom().choice(PORTS)
        try:
            with socket.create_server(("127.0.0.1", port)):
                return port
        except OSError:
            pass
