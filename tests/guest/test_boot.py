# SPDX-License-Identifier: MIT
"""Loading of the driver, compiled or from source."""
import ast

import pytest

from driver import JAIL, until


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


def test_no_two_parts_define_one_name():
    """They are loaded into one namespace, some of them late."""
    owners = {}
    for part in (JAIL / "guest").glob("*.py"):
        for node in ast.parse(part.read_text()).body:
            names = [node.name] if hasattr(node, "name") else [
                t.id for t in getattr(node, "targets", ())
                if isinstance(t, ast.Name)]
            for name in names:
                owners.setdefault(name, []).append(part.name)
    assert "execute" in owners
    assert not {n: o for n, o in owners.items() if len(set(o)) > 1}
