# SPDX-License-Identifier: MIT
"""The limits of an ordinary person's session are the kernel's, because their
systemd gives it a cgroup."""
import os
import signal

import pytest

import hosttree
from lab import BINARY, rows

pytestmark = pytest.mark.limit(120)


def test_check_over_ssh_says_that_the_kernel_enforces(person):
    r = person.run(f"{BINARY} --check --json")
    said = rows(r.stdout)
    assert said["cgroup"][:2] == ("cgroup v2, from your systemd", "strong")
    for what in ("memory", "processes", "cores", "cell CPU", "stopping"):
        assert said[what][:2] == ("cgroup v2", "strong"), what


def test_without_a_login_there_is_no_systemd_to_ask(person):
    r = person.here("--check", "--json")
    assert rows(r.stdout)["memory"][:2] == ("watched, no huge pages", "weak")


def test_the_kernel_ends_a_cell_that_takes_too_much_memory(person):
    s = person.session(str(BINARY), "-M", "96M")
    s.start()
    s.type(":limits\r")
    s.expect("cgroup v2")
    s.wait_prompt()
    s.run("x = 41")
    killed = [p / "jail/memory.events" for p in person.cgroups()]
    assert len(killed) == 1
    assert "\noom_kill 0\n" in killed[0].read_text()
    # Shared memory is no limit of a single process.
    s.enter("import mmap; m = mmap.mmap(-1, 400 << 20); "
            "[m.__setitem__(i, 1) for i in range(0, len(m), 4096)] and 0")
    s.expect(r"\[memory limit")
    s.wait_prompt()
    assert "\noom_kill 0\n" not in killed[0].read_text()
    assert s.run("x + 1").startswith("42")


def test_nothing_is_left_of_the_scope(person):
    s = person.session(str(BINARY))
    s.start()
    s.run("1")
    scopes = person.scopes()
    assert len(scopes) == 1 and scopes[0].name.startswith("cellblock-")
    assert "app.slice" in str(scopes[0])
    s.leave()
    hosttree.until(lambda: not scopes[0].exists(), "the end of the scope", 20)


def test_each_session_has_a_scope_of_its_own(person):
    both = [person.session(str(BINARY)) for _ in range(2)]
    for s in both:
        s.start()
        s.run("1")
    assert len(set(person.scopes())) == 2


@pytest.fixture
def hung(person):
    """A shell of the person's, whose systemd hangs."""
    shell = person.session("PS1='shell> ' bash --norc -i")
    shell.expect("shell>")
    manager = person.manager()
    os.kill(manager, signal.SIGSTOP)
    yield shell
    os.kill(manager, signal.SIGCONT)


def test_a_systemd_that_hangs_does_not_hold_the_prompt(person, hung):
    hung.type(f"{BINARY}\r")
    hung.expect(">>>")
    assert hung.run("6 * 7").startswith("42")
    assert not person.cgroups()
    hung.expect("memory may be exceeded")


@pytest.mark.usefixtures("hung")
def test_check_says_why_a_systemd_gave_none(person):
    r = person.here("--check", "--json")
    by, strength, remedy = rows(r.stdout)["memory"]
    assert (by, strength) == ("watched, no huge pages", "weak")
    assert remedy.startswith("your systemd gave no cgroup: "), remedy
