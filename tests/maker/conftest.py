# SPDX-License-Identifier: MIT
"""Hosts with root's maker, and people who ask it."""
import pytest

from makerhost import ACCOUNTS, serve


def pytest_sessionfinish():
    ACCOUNTS.close()


@pytest.fixture(name="host")
def _host():
    """Without a maker yet."""
    yield from serve()


@pytest.fixture(name="maker")
def _maker(host):
    host.start()
    return host


@pytest.fixture(name="ann")
def _ann(maker):
    return maker.people[0]


@pytest.fixture(name="bob")
def _bob(maker):
    return maker.people[1]
