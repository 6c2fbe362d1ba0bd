# SPDX-License-Identifier: MIT
"""The release: a tarball that builds without git, and the same bytes whoever
packs and builds it, where and when."""
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import tarfile

import pytest

from world import CELLBLOCK, PATIENCE, TESTS, WHOLE

TOP = TESTS.parent
# The run of the user has a part of the tree.
pytestmark = [pytest.mark.root, pytest.mark.limit(1200)]
ENV = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}


def run(*argv, cwd=TOP, **more):
    r = subprocess.run(argv, cwd=cwd, env={**ENV, **more}, check=False,
                       capture_output=True, text=True, timeout=1100 * PATIENCE)
    assert r.returncode == 0, f"{argv}:\n{r.stdout[-2000:]}{r.stderr[-2000:]}"
    return r.stdout


def digest(path):
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()


def pack(tree, to, clock=()):
    """The tarball of that tree."""
    run(*clock, "tools/dist", "7.1", cwd=tree, BUILD=str(to))
    return to / "dist/cellblock-7.1.tar.gz"


@pytest.fixture(name="tarball", scope="module")
def _tarball(tmp_path_factory):
    return pack(TOP, tmp_path_factory.mktemp("dist"))


def test_the_tarball_has_the_sources_and_nothing_of_who_packed_it(tarball):
    with tarfile.open(tarball) as t:
        members = t.getmembers()
    assert {(m.uid, m.gid, m.uname, m.gname) for m in members} == \
        {(0, 0, "", "")}
    assert len({m.mtime for m in members}) == 1
    names = [m.name for m in members]
    assert names == sorted(names, key=os.fsencode)
    assert {n.split("/")[0] for n in names} == {"cellblock-7.1"}
    assert not [n for n in names if "/.git/" in n or "/build/" in n
                or n.endswith((".o", ".pyc"))]
    assert {f"cellblock-7.1/{n}" for n in
            ("Makefile", "README.md", "LICENSE", "jail/base/sys.c",
             "tests/run", ".ci/run")} <= set(names)
    sums = (tarball.parent / "SHA256SUMS").read_text()
    assert sums == f"{digest(tarball)}  {tarball.name}\n"


def test_it_builds_without_git_to_the_same_bytes_elsewhere(tarball, tmp_path):
    """Another directory, another day, another mask for new files."""
    if not WHOLE:
        pytest.skip("builds the program again: make test-all")
    ours = TOP / "build/cellblock"
    if not ours.exists() or digest(CELLBLOCK) != digest(ours):
        pytest.skip("what is tested is a build of another kind")
    clock = ["faketime", "+3 days 5 hours"] if shutil.which("faketime") else []
    with tarfile.open(tarball) as t:
        t.extractall(tmp_path / "a-longer-name")
    tree = tmp_path / "a-longer-name/cellblock-7.1"
    again = pack(tree, tmp_path, clock)
    assert digest(again) == digest(tarball)
    run("sh", "-c", 'umask 027; exec "$@"', "sh", *clock, "make", "-s", "-j2",
        "build", "build/sbom.spdx.json", cwd=tree)
    assert digest(tree / "build/cellblock") == digest(ours)
    shutil.rmtree(tree / "build/repl")
    about = json.loads((tree / "build/sbom.spdx.json").read_text())
    assert about["spdxVersion"] == "SPDX-2.3"
    by_id = {p["SPDXID"]: p for p in about["packages"]}
    me = by_id["SPDXRef-cellblock"]
    assert me["checksums"][0]["checksumValue"] == digest(ours)
    assert me["versionInfo"] == run(str(ours), "--version").split()[1]
    asked = set(re.findall(r"\(NEEDED\).*\[(.*)\]",
                           run("readelf", "-dW", str(ours))))
    kinds = {r["relatedSpdxElement"]: r["relationshipType"]
             for r in about["relationships"]}
    dynamic = {p["name"] for i, p in by_id.items()
               if kinds[i] == "DYNAMIC_LINK"}
    assert len(dynamic) == len(asked)
    for i, p in by_id.items():
        if kinds[i] != "DESCRIBES" and shutil.which("dpkg-query"):
            assert p["versionInfo"] and p["externalRefs"], p
