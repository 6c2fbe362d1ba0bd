# SPDX-License-Identifier: MIT
"""What the asserts of whole.py compare is shown, as those of tests are."""
import pytest

pytest.register_assert_rewrite("whole")
