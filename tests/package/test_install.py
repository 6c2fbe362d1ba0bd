# SPDX-License-Identifier: MIT
"""`make install`: what it installs, and where commands then are."""
import os
import pathlib
import pwd
import re
import subprocess

import pytest

from world import CELLBLOCK, TESTS

TOP = TESTS.parent
PLAIN = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}


def make(tmp_path, target, *words):
    """Run make with the program that was built already."""
    built = tmp_path / "built"
    if not built.exists():
        built.mkdir()
        (built / "cellblock").symlink_to(CELLBLOCK)
    r = subprocess.run(
        ["make", "-s", "-o", f"{built}/cellblock", f"BUILD={built}",
         f"DESTDIR={tmp_path}/root", *words, target], cwd=TOP, env=PLAIN,
        capture_output=True, text=True, check=False)
    assert r.returncode == 0, r
    return tmp_path / "root"


def files(root):
    return {"/" + str(p.relative_to(root)) for p in root.rglob("*")
            if not p.is_dir()}


@pytest.mark.parametrize("prefix", ["/usr/local", "/usr", "/opt/cellblock"])
def test_what_is_installed_names_the_program_where_it_is(tmp_path, prefix):
    """Units, the snippet for sshd, and the manual."""
    root = make(tmp_path, "install", f"PREFIX={prefix}")
    program = f"{prefix}/bin/cellblock"
    assert os.access(root / program[1:], os.X_OK)
    commands = {}
    for name in files(root) - {program}:
        text = (root / name[1:]).read_text()
        for path in re.findall(r"(\S*/bin/cellblock) --?\w", text):
            commands.setdefault(path.partition("=")[2] or path,
                                []).append(name)
    assert set(commands) == {program}, commands
    assert {pathlib.Path(p).name for p in commands[program]} >= {
        "cellblock-maker.service", "cellblock-serve.service",
        "cellblock.conf", "cellblock.1"}
    assert os.access(root / f"{prefix}/sbin/cellblock-lab"[1:], os.X_OK)
    # both of the paths that the profile is for stay
    assert "/usr/local/bin/cellblock :" in (
        root / f"{prefix}/share/man/man1/cellblock.1"[1:]).read_text()


def test_uninstall_leaves_no_file(tmp_path):
    root = make(tmp_path, "install")
    assert len(files(root)) > 20
    make(tmp_path, "uninstall")
    assert files(root) == set()


def test_only_a_package_touches_the_hosts_configuration(tmp_path):
    root = make(tmp_path, "install")
    assert not (root / "etc").exists()
    make(tmp_path, "install-package", "PREFIX=/usr")
    assert (root / "etc/cellblock/cellblock.conf").read_bytes() == \
        (TOP / "etc/cellblock.conf").read_bytes()
    assert os.access(root / "usr/lib/cellblock/end-sessions", os.X_OK)


def test_the_version_stands_in_one_place(cb):
    """In debian/changelog: the program, the spec file and make have it from
    there."""
    version = re.match(r"cellblock \((\S+)\)",
                       (TOP / "debian/changelog").read_text())[1]
    assert cb.run("--version").text == f"cellblock {version}\n"
    for path in "Makefile", "etc/rpm/cellblock.spec", "tools/deb", "tools/rpm":
        assert version not in re.findall(r"\d[\w.]*\d", (
            TOP / path).read_text()), path


@pytest.mark.parametrize("lacks, kept, advice", [
    ("mmdebstrap", "sh dirname id grep mkdir", "apt-get install mmdebstrap"),
    ("newuidmap", "sh dirname id grep mkdir mmdebstrap",
     "apt-get install uidmap"),
    ("subordinate ids", "sh dirname id grep mkdir mmdebstrap newuidmap",
     "usermod --add-subuids")])
def test_make_deb_says_what_to_install(tmp_path, lacks, kept, advice):
    if os.geteuid() == 0:
        pytest.skip("root needs less")
    if lacks == "subordinate ids" and re.search(
            rf"^({pwd.getpwuid(os.geteuid()).pw_name}|{os.geteuid()}):",
            pathlib.Path("/etc/subuid").read_text(), re.M):
        pytest.skip("whoever runs this has subordinate ids")
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    for name in kept.split():
        if not (pathlib.Path("/usr/bin") / name).exists():
            (bin_ / name).symlink_to("/usr/bin/true")
        else:
            (bin_ / name).symlink_to(f"/usr/bin/{name}")
    r = subprocess.run([TOP / "tools/deb", "bookworm"], capture_output=True,
                       text=True, check=False,
                       env={"PATH": str(bin_), "BUILD": str(tmp_path / "b")})
    assert r.returncode == 1 and advice in r.stderr, (lacks, r)
    assert "as root" in r.stderr, r


def test_make_rpm_says_what_to_install(tmp_path):
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    for name in "sh", "dirname":
        (bin_ / name).symlink_to(f"/usr/bin/{name}")
    r = subprocess.run([TOP / "tools/rpm"], capture_output=True, text=True,
                       check=False, env={"PATH": str(bin_), "VERSION": "1",
                                         "BUILD": str(tmp_path / "b")})
    assert r.returncode == 1 and "install rpm" in r.stderr, r
