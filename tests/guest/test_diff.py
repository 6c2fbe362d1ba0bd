# SPDX-License-Identifier: MIT
"""The driver without a jail: what the last cell changed."""
import time

import pytest

from driver import until


def run(guest, source, park=True):
    """A cell of a prompt; its checkpoint comes while the person reads."""
    guest.took(guest.send(source, "prompt"))
    how = guest.done()
    if park:
        guest.park()
    return how


def rows(guest):
    no, *lines = guest.ask("diff").splitlines()
    assert int(no) == guest.cells
    return [tuple(line.split("\t")) for line in lines]


@pytest.mark.parametrize("park", [True, False])
def test_names_are_new_changed_and_removed(guest, park):
    run(guest, "a = 1; b = 2; c = [3]; d = 4", park)
    assert [r[:2] for r in rows(guest)] == [
        ("new", n) for n in ("a", "b", "c", "d")]
    run(guest, "del a; b = 'x'; e = 5", park)
    assert [r for r in rows(guest) if r[0] != "not looked into"] == [
        ("changed", "b", "str", "'x'"), ("new", "e", "int", "5"),
        ("removed", "a")]
    run(guest, "b", park)
    assert [r for r in rows(guest) if r[0] != "not looked into"] == []
    run(guest, "b = 'y'; 1/0", park)
    assert ("changed", "b", "str", "'y'") in rows(guest)


@pytest.mark.parametrize("change, name", [
    ("x.append(1)", "x"), ("x[0]['k'] = 2", "x"), ("y.n = 2", "y"),
    ("f.k = 1", "f"), ("x[0]['k']", None)])
def test_a_change_in_place_is_seen(guest, change, name):
    run(guest, "class C: n = 1\nx, y = [{'k': 1}], C()\ndef f(): pass\n")
    run(guest, "1")
    assert rows(guest) == []
    run(guest, change)
    assert [r[:2] for r in rows(guest)] == [("changed", name)] * bool(name)


def test_what_cannot_be_looked_into_is_said(guest):
    run(guest, "g = iter([1]); n = 1")
    run(guest, "next(g)")
    assert rows(guest) == [("not looked into", "g")]


def test_files_are_new_changed_and_removed(guest, home):
    (home / "old").write_text("1")
    (home / "gone").write_text("1")
    run(guest, "import os; os.mkdir('d'); open('d/new', 'w').close()")
    assert rows(guest)[1:] == [
        ("new directory", "d", "", rows(guest)[1][3]),
        ("new file", "d/new", "", "0 B")]
    (home / "uploaded").write_text("1")
    written = (home / "uploaded").stat().st_ctime_ns
    until(lambda: time.time_ns() > written + 3 * 10 ** 7, "a later time")
    run(guest, "os.remove('gone'); open('old', 'a').write('23')")
    (home / "later").write_text("1")
    assert rows(guest) == [("removed file", "gone"),
                           ("changed file", "old", "", "3 B")]


def test_a_state_that_is_gone_back_to_tells_its_own_cell(guest):
    run(guest, "a = 1", park=False)
    point = guest.park()
    run(guest, "b = 1", park=False)
    point.resume()
    assert guest.ask("diff").splitlines() == ["1", "new\ta\tint\t1"]


def test_there_is_no_difference_before_a_cell(guest):
    assert guest.ask("diff") == ""
