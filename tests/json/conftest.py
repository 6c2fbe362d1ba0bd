# SPDX-License-Identifier: MIT
"""What the suites of --eval share."""
import pytest

from evaluation import Eval


@pytest.fixture(name="ev")
def _ev(cb):
    return Eval(cb)
