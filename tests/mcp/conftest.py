# SPDX-License-Identifier: MIT
"""Fixtures that the tests of --mcp share."""
import pytest

from agent import Client
from world import World


@pytest.fixture(name="mcp")
def _mcp(cb):
    return Client(cb)


@pytest.fixture(name="lasting", scope="module")
def _lasting(tmp_path_factory):
    """One for many messages that leave it as it is."""
    world = World(tmp_path_factory.mktemp("lasting"))
    client = Client(world)
    yield client
    assert client.close() == 0
    world.close()
