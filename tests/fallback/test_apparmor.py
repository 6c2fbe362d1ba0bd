# SPDX-License-Identifier: MIT
"""A host whose AppArmor restricts user namespaces, as Ubuntu's does since
24.04: cellblock names a remedy, and the remedy helps.

These tests switch the restriction on, install cellblock and load profiles. So
they run only on a host that is thrown away afterwards, as that of
tests/vm/ubuntu.
"""
import os
import pathlib
import re
import shutil
import subprocess

import pytest

from whole import checked, refused, walls_are_up, whole_session
from world import CELLBLOCK, IS_ROOT, TESTS

RESTRICTION = pathlib.Path(
    "/proc/sys/kernel/apparmor_restrict_unprivileged_userns")
LOADED = pathlib.Path("/sys/kernel/security/apparmor/profiles")
PROFILES = pathlib.Path("/etc/apparmor.d")
INSTALLED = "/usr/local/bin/cellblock"
USER = 65534
PEOPLE = {
    "root": (),
    "user": ("setpriv", f"--reuid={USER}", f"--regid={USER}",
             "--clear-groups")}

# A profile that allows everything but user namespaces.
OTHER = """
abi <abi/4.0>,
profile cellblocktest {
    file, capability, network, mount, umount, pivot_root, signal, ptrace, unix,
}
"""

pytestmark = [
    pytest.mark.limit(200),
    pytest.mark.skipif(
        not (IS_ROOT and os.environ.get("CELLBLOCK_TEST_MAY_INSTALL")),
        reason="these tests change the host: run tests/vm/ubuntu"),
    pytest.mark.skipif(
        not RESTRICTION.exists(),
        reason="this kernel's AppArmor does not restrict user namespaces")]


def apparmor(what, profile):
    subprocess.run(["apparmor_parser", what, str(profile)], check=True)


def make(*targets):
    subprocess.run(["make", "-s", *targets], cwd=TESTS.parent, check=True)


def at(path):
    """A command prefix that runs the cellblock at `path` instead."""
    return ("sh", "-c", 'shift; exec "$0" "$@"', str(path))


@pytest.fixture(params=["refused", "without_privilege"])
def restricted(request):
    """User namespaces are refused; or, with a profile of Ubuntu, they can be
    made but give no privilege."""
    before = RESTRICTION.read_text()
    RESTRICTION.write_text("1")
    if request.param == "without_privilege":
        apparmor("-r", PROFILES / "unprivileged_userns")
    yield
    for name in ("cellblock", "cellblocktest", "unprivileged_userns"):
        if re.search(f"^{name} ", LOADED.read_text(), re.M):
            apparmor("-R", PROFILES / name)
    for name in ("cellblock", "cellblocktest"):
        (PROFILES / name).unlink(missing_ok=True)
    make("uninstall")
    RESTRICTION.write_text(before)


@pytest.fixture(params=PEOPLE)
def person(request, cb):
    if request.param == "user":
        cb.let_in(cb.base)
        for path in (cb.home, cb.work):
            os.chown(path, USER, USER)
    return PEOPLE[request.param]


def processes_of_user():
    r = subprocess.run(["ps", "-o", "comm=", "-u", str(USER)],
                       stdout=subprocess.PIPE, check=False)
    return r.stdout.split()


def remedy(cb, wrapper):
    """The make targets that a refused program names as the remedy. --check
    names the same targets."""
    r = refused(cb, wrapper, "user namespace: ", RESTRICTION.name + " = 1")
    said = re.search(r":  sudo make( [a-z -]+?)  ", r.said)
    assert said, r
    answer = checked(cb, wrapper)
    assert answer["code"] == 125 and not answer["jail"], answer
    assert said[0] in answer["rows"]["jail"]["remedy"], answer
    assert answer["rows"]["/proc"]["remedy"] is None, answer
    assert processes_of_user() == []
    return said[1].split()


def test_each_step_of_the_remedy_helps(cb, restricted, person):
    elsewhere = cb.base / "cellblock"
    shutil.copy(CELLBLOCK, elsewhere)
    here = (*person, *at(elsewhere))
    installed = (*person, *at(INSTALLED))
    assert remedy(cb, here) == ["install", "install-apparmor"]
    make("install")
    targets = remedy(cb, installed)
    assert targets == ["install-apparmor"]
    make(*targets)
    whole_session(cb, installed)
    answer = checked(cb, installed)
    assert answer["code"] == 0 and answer["jail"], answer
    for wall in ("jail", "/proc", "landlock", "system calls"):
        assert answer["rows"][wall]["strength"] == "strong", answer
    # The profile has helped, and only the installed program.
    assert remedy(cb, here) == ["install", "install-apparmor"]


def test_the_remedy_helps_when_done_at_once(cb, restricted, person):
    make(*remedy(cb, (*person, *at(shutil.copy(CELLBLOCK, cb.base / "c")))))
    walls_are_up(cb, (*person, *at(INSTALLED)))


def test_another_profile_in_the_way_is_named(cb, restricted, person):
    (PROFILES / "cellblocktest").write_text(OTHER)
    apparmor("-r", PROFILES / "cellblocktest")
    under = (*person, "aa-exec", "-p", "cellblocktest", "--",
             *at(shutil.copy(CELLBLOCK, cb.base / "c")))
    refused(cb, under, "user namespace: ",
            "AppArmor profile, cellblocktest (enforce)")
    answer = checked(cb, under)
    assert answer["code"] == 125, answer
    assert "cellblocktest" in answer["rows"]["jail"]["remedy"], answer
