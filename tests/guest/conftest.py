# SPDX-License-Identifier: MIT
"""Guests for the tests. A test ends only the processes of its own guests."""
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
    """A function that makes guests with given options."""
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
