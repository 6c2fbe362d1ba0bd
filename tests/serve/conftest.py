# SPDX-License-Identifier: MIT
"""Servers for the tests; each ends as it should, and leaves nothing."""
import pytest

from client import Server


@pytest.fixture(name="serve")
def _serve(cb):
    servers = []

    def start(*args, **more):
        servers.append(Server(cb, *args, **more))
        return servers[-1]

    yield start
    for s in servers:
        assert s.end() == 0, s.process.stderr.read()


@pytest.fixture(name="server")
def _server(serve):
    return serve()
