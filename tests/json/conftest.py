# SPDX-License-Identifier: MIT
"""Fixtures that the suites of --eval share."""
import pytest

from evaluation import Eval


@pytest.fixture(name="ev")
def _ev(cb):
    return Eval(cb)
