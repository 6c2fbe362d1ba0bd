# SPDX-License-Identifier: MIT
"""Makes pytest show the compared values of asserts in whole.py, as in
tests."""
import pytest

pytest.register_assert_rewrite("whole")
