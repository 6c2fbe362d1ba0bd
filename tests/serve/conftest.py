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
        assert s.end() == 0, s.process.stderr and s.process.stderr.read()


@pytest.fixture(name="lasting", scope="module")
def _lasting(request, tmp_path_factory):
    """One for many tests that leave it as it is, with the options that their
    module has as LASTING."""
    world = World(tmp_path_factory.mktemp("lasting"))
    server = Server(world, *getattr(request.module, "LASTING", ()))
    yield server
    assert server.end() == 0, server.process.stderr.read()
    world.close()


class TokenFile:
    """A file of tokens, which a server reads."""

    def __init__(self, path):
        self.path = path
        self.args = ("-s", f"serve.token_file={path}")

    def write(self, data):
        """As an editor does: the old file is there until the new one is."""
        new = self.path.with_suffix(".new")
        new.touch(0o600)
        new.write_bytes(data if isinstance(data, bytes) else data.encode())
        new.rename(self.path)
        return self


@pytest.fixture(name="tokens")
def _tokens(cb):
    return TokenFile(cb.base / "tokens")


@pytest.fixture(name="server")
def _server(serve):
    return serve()
