# SPDX-License-Identifier: MIT
"""Servers for the tests; each ends as it should, and leaves nothing."""
import pytest

from client import Server
from world import World


@pytest.fixture(name="serve")
def _serve(cb):
    servers = []

    def start(*args, **more):
        servers.append(Server(cb, *args, **more))
        return servers[-1]

    yield start
    for s in servers:
        assert s.end() == 0, s.process.stderr.read()


@pytest.fixture(name="lasting", scope="module")
def _lasting(tmp_path_factory):
    """One for many tests that leave it as it is."""
    world = World(tmp_path_factory.mktemp("lasting"))
    server = Server(world)
    yield server
    assert server.end() == 0, server.process.stderr.read()
    world.close()


@pytest.fixture(name="server")
def _server(serve):
    return serve()
