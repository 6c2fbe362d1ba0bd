# SPDX-License-Identifier: MIT
"""The host of lab.py, and accounts on it."""
import os
import pathlib
import shutil

import pytest

from lab import BINARY, ETC, SETTINGS, UNITS, Account, run
from world import CELLBLOCK


@pytest.fixture(scope="session", autouse=True)
def host():
    if os.geteuid() != 0 or not os.path.isdir("/run/systemd/system"):
        pytest.skip("this takes root, and systemd as pid 1")
    if "CELLBLOCK_TEST_MAY_INSTALL" not in os.environ:
        pytest.skip("things may not be installed here")
    shutil.copy(CELLBLOCK, BINARY)
    for unit in (ETC / "systemd").rglob("*.*"):
        if unit.is_file():
            to = UNITS / unit.relative_to(ETC / "systemd")
            to.parent.mkdir(exist_ok=True)
            shutil.copy(unit, to)
    users = pathlib.Path("/etc/sysusers.d")
    users.mkdir(exist_ok=True)
    shutil.copy(ETC / "sysusers.d/cellblock.conf", users)
    run("systemd-sysusers")
    # Under emulation a cell may wait long for the processor.
    SETTINGS.parent.mkdir(exist_ok=True)
    SETTINGS.write_text("[cell]\ntimeout = 10m\n")
    run("systemctl", "daemon-reload")


@pytest.fixture
def person(tmp_path):
    p = Account(tmp_path)
    yield p
    p.leave()


@pytest.fixture
def other(tmp_path):
    """Somebody else, to compare with."""
    (tmp_path / "other").mkdir()
    p = Account(tmp_path / "other")
    yield p
    p.leave()
