# SPDX-License-Identifier: MIT
"""Guests for the tests; each is ended with its own process and no other."""
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from driver import Guest  # noqa: E402


@pytest.fixture
def home(tmp_path):
    return tmp_path


@pytest.fixture
def make(home):
    """Make guests, in ways of the test's choosing."""
    guests = []

    def one(**how):
        guests.append(Guest(home, **how))
        return guests[-1]
    yield one
    for g in guests:
        g.close()


@pytest.fixture
def guest(make):
    return make()
