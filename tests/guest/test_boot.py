# SPDX-License-Identifier: MIT
"""Loading of the driver, compiled or from source."""
import pytest

from driver import until


@pytest.fixture(params=["compiled", "source"])
def guest(make, request):
    return make(foreign=request.param == "source")


def test_every_part_runs_compiled_or_from_source(guest):
    assert guest.out_of("1 + 1") == "2\n"
    assert guest.run("1/0") == "raised"
    assert guest.out.endswith("ZeroDivisionError: division by zero\n")
    assert guest.out_of("import re; x = 3") == ""
    assert guest.park()
    assert guest.complete("re.compil") == (6, ["compile"])
    assert "x\tint" in guest.ask("who")
    assert guest.ask("doc", "len").startswith("len(obj, /)")


def test_the_library_is_closed_once_it_is_loaded(guest):
    listing = "import os; len(os.listdir('/proc/self/fd'))"
    before = int(guest.out_of(listing))
    assert guest.park()
    until(lambda: int(guest.out_of(listing)) == before - 1,
          "the library to be closed")
