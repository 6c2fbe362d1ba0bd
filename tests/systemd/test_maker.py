# SPDX-License-Identifier: MIT
"""The maker of sessions as a service, with its units."""
import json
import pathlib

import pytest

import hosttree
import term
from conftest import BINARY, run, show

pytestmark = pytest.mark.limit(120)
SESSIONS = pathlib.Path(
    "/sys/fs/cgroup/system.slice/cellblock-sessions.service")


# Jails that are made ahead: one of each kind.
SPARES = 3


def rows(text):
    return {r["what"]: (r["enforced_by"], r["strength"])
            for r in json.loads(text)["checks"]}


def as_person(person, *words):
    return ["runuser", "-u", person.name, "--", str(BINARY), *words]


def prompt(person):
    s = term.Session(as_person(person),
                     env={"PATH": "/usr/sbin:/usr/bin", "LANG": "C.UTF-8",
                          "TERM": "xterm-256color",
                          "HOME": f"/home/{person.name}"}, cwd="/")
    person.open.append(s)
    return s.start()


def cgroups():
    return list((SESSIONS / "cellblock").glob("[0-9]*"))


@pytest.fixture(name="maker", autouse=True)
def _maker():
    run("systemctl", "start", "cellblock.socket")
    yield
    for unit in ("cellblock.socket", "cellblock-maker.service",
                 "cellblock-sessions.service"):
        run("systemctl", "stop", unit, check=False)
        assert show(unit, "ActiveState") in ("inactive", "failed")


def test_limits_are_the_same_as_in_roots_shell(person):
    theirs = run(*as_person(person, "--check", "--json"), cwd="/").stdout
    roots = run(str(BINARY), "--check", "--json").stdout
    assert rows(theirs) == rows(roots)
    assert rows(theirs)["memory"] == ("cgroup v2", "strong")


def test_sessions_lie_in_a_unit_that_the_maker_is_not_in(person):
    s = prompt(person)
    s.run("x = 41")
    hosttree.until(lambda: len(cgroups()) == 1 + SPARES,
                   "its cgroup, and those of the spares", 30)
    for place in cgroups():
        assert (place / "memory.max").read_text() == f"{512 << 20}\n"
    main = int(show("cellblock-maker.service", "MainPID"))
    its = pathlib.Path(hosttree.cgroup_v2_of(main))
    assert its.name == "cellblock-maker.service"
    hosttree.until(lambda: len((its / "cgroup.procs").read_text().split())
                   == 2, "the maker, and its child that waits")
    s.leave()
    hosttree.until(lambda: len(cgroups()) == SPARES,
                   "the end of the cgroup", 30)


def test_a_maker_that_ends_ends_no_session(person):
    s = prompt(person)
    assert s.run("x = 41") == "", s.picture()
    first = show("cellblock-maker.service", "MainPID")
    run("systemctl", "restart", "cellblock-maker.service")
    assert show("cellblock-maker.service", "MainPID") != first
    assert s.run("x + 1").startswith("42"), s.picture()
    run("systemctl", "kill", "-s", "KILL", "--kill-who=main",
        "cellblock-maker.service")
    assert s.run("x + 2").startswith("43")
    # The socket is there all the while, and starts it anew.
    r = run(*as_person(person, "--check", "--json"), cwd="/")
    assert rows(r.stdout)["memory"] == ("cgroup v2", "strong")
    run("systemctl", "stop", "cellblock-maker.service")
    assert s.run("x + 3").startswith("44")
    s.leave()


def test_the_end_of_the_sessions_unit_is_that_of_all_sessions(person):
    s = prompt(person)
    s.run("x = 41")
    run("systemctl", "stop", "cellblock-sessions.service")
    hosttree.until(lambda: not cgroups(), "the end of the cgroup", 30)
    s.wait_exit()
