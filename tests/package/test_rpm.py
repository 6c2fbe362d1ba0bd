# SPDX-License-Identifier: MIT
"""The package for Fedora, as far as a Debian can build it: the spec file, what
the package holds, and that its scripts are shell."""
import os
import pathlib
import re
import shutil
import subprocess

import pytest

from world import PATIENCE, TESTS, WHOLE

TOP = TESTS.parent
pytestmark = [pytest.mark.sampled, pytest.mark.limit(1200)]


@pytest.fixture(name="rpm", scope="module")
def _rpm(tmp_path_factory):
    if not WHOLE:
        pytest.skip("builds the program again: make test-all")
    for tool in "rpmbuild", "rpm":
        if not shutil.which(tool):
            pytest.skip(f"there is no {tool}")
    # An ordinary user may not write to the tree. The compiler need not optimise
    # what is only packed.
    build = tmp_path_factory.mktemp("rpm")
    r = subprocess.run(
        ["make", "-s", "rpm", f"BUILD={build}"], cwd=TOP,
        env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": str(build),
             "OPT": "-O0"},
        capture_output=True, text=True, check=False, timeout=1100 * PATIENCE)
    assert r.returncode == 0, f"{r.stdout[-2000:]}\n{r.stderr[-4000:]}"
    (rpm,) = (build / "rpm/RPMS").glob("*/cellblock-*.rpm")
    yield rpm
    shutil.rmtree(build, ignore_errors=True)


def ask(rpm, *query):
    return subprocess.run(
        ["rpm", "--dbpath", str(rpm.parent / "db"), "-qp", *query, str(rpm)],
        capture_output=True, text=True, check=True).stdout


def test_the_rpm_has_the_files_of_make_install(rpm, tmp_path):
    built = tmp_path / "built"
    built.mkdir()
    (built / "cellblock").touch(mode=0o755)
    subprocess.run(
        ["make", "-s", "-o", f"{built}/cellblock", f"BUILD={built}",
         f"DESTDIR={tmp_path}/root", "PREFIX=/usr", "install-package"],
        cwd=TOP, check=True, env={"PATH": "/usr/bin:/bin"})
    wanted = {"/" + str(p.relative_to(tmp_path / "root"))
              for p in (tmp_path / "root").rglob("*") if p.is_file()}
    has = {re.sub(r"(/man\d/.*)\.gz$", r"\1", name) for name in
           ask(rpm, "-l").split("\n")}
    assert wanted - has == set()
    more = {p for p in has - wanted if p and ".build-id" not in p}
    assert {pathlib.Path(p).name for p in more} >= {"README.md", "LICENSE"}
    assert all(p.startswith(("/usr/share/doc/cellblock", "/usr/lib/cellblock",
                             "/etc/cellblock")) for p in more), more
    assert ask(rpm, "--configfiles") == "/etc/cellblock/cellblock.conf\n"


def test_the_rpm_is_of_the_one_version(rpm):
    version = re.match(r"cellblock \((\S+)\)",
                       (TOP / "debian/changelog").read_text())[1]
    assert ask(rpm, "--qf", "%{VERSION}") == version


def test_the_scripts_of_the_rpm_are_shell(rpm, tmp_path):
    """This host cannot run them: they are of another system."""
    scripts = re.split(r"^\w+ scriptlet \(using /bin/sh\):\n",
                       ask(rpm, "--scripts"), flags=re.M)[1:]
    assert len(scripts) == 3
    for text in scripts:
        path = tmp_path / "script"
        path.write_text(text)
        r = subprocess.run(["sh", "-n", str(path)], capture_output=True,
                           text=True, check=False)
        assert r.returncode == 0, (text, r.stderr)
        assert "%{" not in text
    assert any("end-sessions" in text for text in scripts)
    assert os.access(TOP / "etc/package/end-sessions", os.X_OK)
