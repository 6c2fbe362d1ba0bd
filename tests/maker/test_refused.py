# SPDX-License-Identifier: MIT
"""Logins that this host could serve only badly are refused in words: over a real
sshd, as our snippet sets it."""
import os
import re
import subprocess

import pytest

import hosttree
import makerhost
import sshd
import sshhost
import term

REQUIRE = "[policy]\nlocked = yes\n[session]\nmaker = require\nper_user = 4\n"


@pytest.fixture(name="lab")
def _lab(host):
    """A host with an sshd, and no maker yet."""
    if not sshd.find():
        pytest.skip("sshd is not installed")
    ssh = sshhost.Ssh(host)
    yield host, ssh
    ssh.close()


def login(ssh, person):
    s = term.Session(ssh.argv(person, "-tt"),
                     env={**os.environ, "TERM": "xterm-256color"})
    person.open.append(s)
    return s


def program(ssh, person):
    return subprocess.run([*ssh.argv(person, "-T"), "print(1)"],
                          stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=60 * hosttree.PATIENCE,
                          check=False)


def refused(ssh, person):
    """The messages of a login and a program that get no session."""
    s = login(ssh, person)
    code = s.wait_exit()
    said = re.sub(r"\s+", " ", s.all_text())
    assert code == 75, said
    p = program(ssh, person)
    assert (p.returncode, p.stdout) == (75, ""), p
    return said, re.sub(r"\s+", " ", p.stderr)


@makerhost.BOTH
def test_a_host_without_memory_says_so(lab, spare):
    host, ssh = lab
    ann, _ = makerhost.start(host, spare, REQUIRE
                             + "[maker]\nreserve = 1000G\n")
    for said in refused(ssh, ann):
        assert "too little memory for one more session" in said
        assert "MiB are left" in said and "maker.reserve" in said
        assert "try again later" in said
    # The control: the same host with a reserve that it has.
    host.policy(REQUIRE + "[maker]\nreserve = 1M\n")
    assert "42" in login(ssh, ann).start().run("6 * 7")


@makerhost.BOTH
def test_sessions_that_have_all_they_may_have_are_named(lab, spare):
    host, ssh = lab
    ann, bob = makerhost.start(host, spare, REQUIRE
                               + "[maker]\nmemory = 240M\n")
    s = login(ssh, ann).start()
    s.run("held = []")
    for _ in range(40):
        # A program that has ended, or a spare in the making, may have memory for a
        # moment.
        if all(program(ssh, bob).returncode == 75 for _ in range(2)):
            break
        s.run("held.append(bytearray(b'x') * (8 << 20))")
    for said in refused(ssh, bob):
        assert "use all the memory that they may have together" in said
        assert "maker.memory = 240 MiB" in said
    # A person with a session keeps it, and its memory.
    assert "True" in s.run("sum(map(len, held)) == len(held) * (8 << 20) > 0")
    s.leave()
    hosttree.until(lambda: program(ssh, bob).returncode == 0,
                   "memory for one more", 60)


def test_as_many_sessions_as_may_be_are_named(lab):
    host, ssh = lab
    ann, bob = makerhost.start(host, 0, REQUIRE + "[maker]\nsessions = 1\n")
    # The first prompt may come before the jail, which has the place.
    login(ssh, ann).start().run("1")
    for said in refused(ssh, bob):
        assert "all the sessions that it may have" in said
        assert "maker.sessions = 1" in said
