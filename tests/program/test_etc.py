# SPDX-License-Identifier: MIT
"""The files in etc/, checked by the programs that read them."""
import grp
import os
import pathlib
import pwd
import re
import shutil
import subprocess

import pytest

import sshd
from world import CELLBLOCK, TESTS

ETC = TESTS.parent / "etc"
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"


def program(name):
    path = shutil.which(name, path=PATH)
    if not path:
        pytest.skip(f"there is no {name}")
    return path


def test_sshd_accepts_the_snippet(tmp_path):
    path = sshd.find()
    if not path:
        pytest.skip("there is no sshd")
    key = tmp_path / "key"
    subprocess.run([program("ssh-keygen"), "-q", "-t", "ed25519", "-N", "",
                    "-f", key], check=True)
    me = pwd.getpwuid(os.geteuid())
    text = (ETC / "sshd_config.d/cellblock.conf").read_text()
    assert "\nMatch Group cellblock\n" in text
    mine = text.replace("Group cellblock",
                        f"Group {grp.getgrgid(me.pw_gid).gr_name}")

    def effective(snippet):
        config = tmp_path / "config"
        config.write_text(f"HostKey {key}\n{snippet}")
        r = subprocess.run(
            [path, "-T", "-f", config, "-C",
             f"user={me.pw_name},host=x,addr=127.0.0.1"],
            capture_output=True, text=True, check=False)
        assert r.returncode == 0, r
        return r.stdout

    with_it, control = effective(mine), effective("")
    others = effective(text.replace("Group cellblock", "Group nobody-at-all"))
    for line in ("forcecommand /usr/local/bin/cellblock --login",
                 "disableforwarding yes", "permittunnel no",
                 "permituserrc no", "x11forwarding no",
                 "clientaliveinterval 10",
                 "unusedconnectiontimeout 60"):
        assert f"\n{line}\n" in with_it, with_it
    assert "\nforcecommand none\n" in control, control
    for line in ("forcecommand none", "clientaliveinterval 0"):
        assert f"\n{line}\n" in others, others


def test_systemd_sysusers_makes_the_group(tmp_path):
    (tmp_path / "etc").mkdir()
    r = subprocess.run(
        [program("systemd-sysusers"), f"--root={tmp_path}",
         str(ETC / "sysusers.d/cellblock.conf")],
        capture_output=True, text=True, check=False)
    assert r.returncode == 0, r
    assert re.search(r"^cellblock:", (tmp_path / "etc/group").read_text(), re.M)


def test_the_home_of_the_server_is_the_directory_that_its_unit_makes(tmp_path):
    (tmp_path / "etc").mkdir()
    subprocess.run(
        [program("systemd-sysusers"), f"--root={tmp_path}",
         str(ETC / "sysusers.d/cellblock.conf")], check=True)
    home, = re.findall(r"^cellblock-serve:.*:([^:]+):[^:]*$",
                       (tmp_path / "etc/passwd").read_text(), re.M)
    unit = (ETC / "systemd/cellblock-serve.service").read_text()
    made = re.search(r"^StateDirectory=(\S+)$", unit, re.M)[1]
    assert home == f"/var/lib/{made}"
    assert re.search(r"^User=(.*)$", unit, re.M)[1] == "cellblock-serve"


def test_the_slice_has_only_settings_that_systemd_knows(tmp_path):
    analyze = program("systemd-analyze")
    text = (ETC / "systemd/user-.slice.d/cellblock.conf").read_text()

    def complaints(content):
        unit = tmp_path / "cellblocktest.slice"
        unit.write_text(content)
        r = subprocess.run([analyze, "verify", "--man=no", str(unit)],
                           capture_output=True, text=True, check=False,
                           env={"PATH": PATH, "SYSTEMD_LOG_LEVEL": "warning"})
        return [x for x in r.stderr.splitlines() if "cellblocktest.slice:" in x]

    control = complaints("[Slice]\nMemoryMaxx=1\n")
    if not control:
        pytest.skip("systemd-analyze cannot judge units here")
    assert complaints(text) == []


def test_apparmor_accepts_the_profile():
    parser = program("apparmor_parser")
    r = subprocess.run([parser, "-QK", str(ETC / "apparmor.d/cellblock")],
                       capture_output=True, text=True, check=False)
    if "abi/4.0" in r.stderr:
        pytest.skip("this AppArmor is older than the restriction")
    assert r.returncode == 0, r


def test_remedies_name_files_that_are_shipped():
    """The make targets and files that messages name exist."""
    makefile = (TESTS.parent / "Makefile")
    if not makefile.exists():
        pytest.skip("this copy of the tree has no Makefile")
    text = makefile.read_text()
    assert "\ninstall-apparmor:" in text
    assert (ETC / "apparmor.d/cellblock").exists()


@pytest.mark.parametrize("units, setting", [
    (("cellblock-serve.service", "cellblock-serve.socket"), "PrivateTmp"),
    (("cellblock-maker.service", "cellblock.socket",
      "cellblock-sessions.service"), "KillMode")])
def test_the_units_have_only_settings_that_systemd_knows(
        tmp_path, units, setting):
    analyze = program("systemd-analyze")

    def complaints(change):
        for unit in units:
            text = (ETC / "systemd" / unit).read_text()
            text = text.replace("/usr/local/bin/cellblock", str(CELLBLOCK))
            (tmp_path / unit).write_text(text.replace(*change))
        r = subprocess.run(
            [analyze, "verify", "--man=no", *[str(tmp_path / u)
                                              for u in units]],
            capture_output=True, text=True, check=False,
            env={"PATH": PATH, "SYSTEMD_LOG_LEVEL": "warning"})
        return [x for x in r.stderr.splitlines()
                if any(u + ":" in x for u in units)]

    assert complaints(("", "")) == []
    assert complaints((f"{setting}=", f"{setting}x="))


def test_the_makers_units_agree_with_its_source():
    source = (TESTS.parent / "repl/maker/service.c").read_text() \
        + (TESTS.parent / "repl/maker/maker.h").read_text()
    below = re.search(r'#define BELOW "(.*)"', source)[1]
    sessions = (ETC / "systemd" / below.rpartition("/")[2]).read_text()
    assert f"/sys/fs/cgroup/{below}/cellblock-host" in sessions
    place = re.search(r'#define SERVICE_DIR "(.*)"', source)[1]
    assert f"ListenSequentialPacket={place}/maker\n" in \
        (ETC / "systemd/cellblock.socket").read_text()


def test_the_service_is_hardened(tmp_path):
    unit = tmp_path / "cellblock-serve.service"
    unit.write_text((ETC / "systemd/cellblock-serve.service").read_text())
    r = subprocess.run(
        [program("systemd-analyze"), "security", "--offline=yes",
         "--threshold=40", "--no-pager", str(unit)], capture_output=True,
        text=True, check=False, env={"PATH": PATH})
    if "unrecognized option" in r.stderr:
        pytest.skip("this systemd-analyze judges only what runs")
    assert r.returncode == 0 and "exposure level" in r.stdout, r


def test_systemd_waits_until_the_server_has_ended():
    """The longest program, its answer, and some of serve.drain."""
    source = (TESTS.parent / "repl/serve/serve.c").read_text()
    ms = [int(re.search(rf"#define {name} (\d+)", source)[1])
          for name in ("ASKED_MS", "DRAIN_MS", "LATE_MS")]
    unit = (ETC / "systemd/cellblock-serve.service").read_text()
    most = int(re.search(r"^TimeoutStopSec=(\d+)s$", unit, re.M)[1])
    spared = int(re.search(r"and up to (\d+) s of\n# serve\.drain", unit)[1])
    assert sum(ms) / 1000 + spared <= most
