# SPDX-License-Identifier: MIT
"""The package for Debian: `make deb` as an ordinary user, what lintian says,
whether a second build is the same, and its life on a system where people have
sessions."""
import hashlib
import json
import os
import pathlib
import re
import secrets
import shutil
import subprocess
import urllib.request

import pytest

import hosttree
import leaks
import system as system_of
from system import Loud, System
from world import PATIENCE, TESTS, WHOLE

TOP = TESTS.parent
TOOLS = "mmdebstrap newuidmap lintian unshare nsenter dpkg-deb".split()
pytestmark = [pytest.mark.root, pytest.mark.sampled,
              pytest.mark.limit(3600)]
ANN, BOB = "ann", "bob"
# Packages that the package's own build needs, and its tests.
NEEDS = ("build-essential debhelper dh-apparmor libcap-dev libedit-dev "
         "libinih-dev libjansson-dev libseccomp-dev libsixel-dev zlib1g-dev "
         "python3 systemd autopkgtest procps python3-pytest "
         "python3-pytest-xdist python3-pyte util-linux passwd").split()


def release():
    text = pathlib.Path("/etc/os-release").read_text()
    found = re.search(r"^VERSION_CODENAME=(\w+)", text, re.M)
    return found[1] if found else "bookworm"


def refusal():
    """Why no package can be built here, or None."""
    if not WHOLE:
        return "builds packages and whole systems: make test-all"
    for tool in TOOLS:
        if not shutil.which(tool):
            return f"there is no {tool}"
    url = f"http://deb.debian.org/debian/dists/{release()}/Release"
    try:
        with urllib.request.urlopen(url, timeout=60 * PATIENCE) as answer:
            answer.read(1)
    except OSError as e:
        return f"no mirror of Debian: {e}"
    return None


def run(*argv, **more):
    code, said = system_of.run(argv, **more)
    assert code == 0, f"{argv} ended with {code}:\n{said[-4000:]}"
    return said


@pytest.fixture(name="place", scope="module")
def _place(tmp_path_factory, request):
    why = refusal()
    if why:
        pytest.skip(why)
    Loud.capture = request.config.pluginmanager.getplugin("capturemanager")
    place = tmp_path_factory.mktemp("package")
    for path in (place, *place.parents):
        if path.stat().st_uid == 0 and not path.stat().st_mode & 1:
            path.chmod(path.stat().st_mode | 0o11)
    yield place
    leaks.remove_tree(place)


def source(to):
    """A copy of this tree, as the source package has it."""
    to.mkdir(parents=True)
    names = run("tools/source", cwd=TOP).split("\0")
    for name in filter(None, names):
        if (TOP / name).exists():
            place = to / name
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(TOP / name, place, follow_symlinks=False)
    return to


class Made:
    """What `make deb` has made for a user, and its words."""

    def __init__(self, place):
        name = f"cellblock-test-d{secrets.token_hex(3)}"
        run("useradd", "-m", "-d", str(place / "user"), "-s", "/bin/sh", name)
        try:
            tree = source(place / "user/tree")
            run("chown", "-R", f"{name}:", str(place / "user"))
            self.said = run(
                "runuser", "-u", name, "--", "make", "deb", cwd=tree,
                env={"PATH": "/usr/bin:/bin:/usr/sbin:/sbin",
                     "HOME": str(place / "user"), "LANG": "C.UTF-8",
                     "TMPDIR": str(place / "user")})
            self.dir = tree / "build/deb"
            (self.deb,) = self.dir.glob("cellblock_*.deb")
        finally:
            subprocess.run(["userdel", "-f", name], check=False,
                           capture_output=True)


@pytest.fixture(name="made", scope="module")
def _made(place):
    return Made(place)


@pytest.fixture(name="system", scope="module")
def _system(place):
    """A small Debian in which the package can be built and used."""
    directory = place / "system"
    run("mmdebstrap", "--mode=root", "--variant=apt", "--dpkgopt=force-unsafe-io",
        f"--include={','.join(NEEDS)}", "--skip=cleanup/apt/lists", release(),
        str(directory))
    system = System(directory)
    for who in ANN, BOB:
        system.run("useradd", "-m", "-s", "/bin/bash", who)
    yield system
    system.close()


# Where the package is built in the system.
PLACE = "srv/another/place"


def build(system, *options):
    """Build the package in the system, as root, otherwise than `make deb`
    does. Its path."""
    system.run("sh", "-ec", f"umask 077; cd /{PLACE}/src; chmod -R go-w .; "
               f"exec dpkg-buildpackage -us -uc -b -j1 {' '.join(options)}",
               env={"TZ": "Asia/Tokyo", "LC_ALL": "C", "LANG": "C",
                    "HOME": "/nonexistent", "USER": "else"})
    return max((system.dir / PLACE).glob("cellblock_*.deb"),
               key=os.path.getmtime)


@pytest.fixture(name="second", scope="module")
def _second(system):
    source(system.dir / PLACE / "src")
    return build(system)


@pytest.fixture(name="packages", scope="module")
def _packages(system, made, second):
    """Where the packages lie in the system: of an older version, and that. The
    older one is made of the objects of the second build."""
    log = system.dir / PLACE / "src/debian/changelog"
    log.write_text(re.sub(r"\(.*?\)", "(0.1~old)", log.read_text(), count=1))
    system.run("sh", "-ec", f"cd /{PLACE}/src; dh_clean")
    old = build(system, "-nc")
    assert old != second
    system.put(old, "/opt/old.deb")
    system.put(made.deb, "/opt/new.deb")
    return "/opt/old.deb", "/opt/new.deb"


def test_make_deb_as_a_user_is_what_lintian_wants(made):
    """The overrides have a reason each: a comment before them."""
    said = (made.dir / "lintian.txt").read_text()
    assert said == "", said
    listed = run("dpkg-deb", "-c", str(made.deb))
    for path in ("/usr/bin/cellblock", "/lib/systemd/system/cellblock.socket",
                 "/usr/share/man/man1/cellblock.1.gz",
                 "/usr/share/bash-completion/completions/cellblock",
                 "/usr/lib/sysusers.d/cellblock.conf",
                 "/usr/lib/tmpfiles.d/cellblock.conf",
                 "/etc/cellblock/cellblock.conf"):
        assert f".{path}\n" in listed, listed
    assert "apparmor.d/cellblock" in listed
    assert "root/root" in listed and not re.search(
        r"^\S+ (?!root/root)", listed, re.M), listed


def test_a_second_build_is_the_same(made, second):
    """Elsewhere, later, by another user, with other words and one process."""
    assert hashlib.sha256(second.read_bytes()).hexdigest() == \
        hashlib.sha256(made.deb.read_bytes()).hexdigest()


# ---- the life of a package ----

def install(system, deb):
    """Asks for nothing: there is no terminal, and no answer is ahead."""
    return system.run("dpkg", "-i", deb, env={"DEBIAN_FRONTEND": "readline"})


def purge(system):
    system.run("dpkg", "--purge", "cellblock")


def account(system, base, name):
    code, said = system.run("getent", base, name, check=False)
    return said if code == 0 else None


def listed(system, user=None):
    return {f"{s['who']}/{s['number']}": s for s in json.loads(
        system.run("cellblock", "--sessions", "--json", user=user))}


def begin_maker(system):
    maker = system.start("cellblock", "--quiet", "--maker")
    hosttree.until(
        lambda: system.run("test", "-S", "/run/cellblock/maker",
                           check=False)[0] == 0, "the maker")
    return maker


def test_what_is_installed_works_and_waits(system, packages):
    install(system, packages[1])
    try:
        assert account(system, "group", "cellblock")
        assert account(system, "passwd", "cellblock-serve")
        assert "/usr/bin/cellblock" in system.run(
            "cat", "/etc/shells").split("\n")
        assert system.run("stat", "-c", "%a %U", "/run/cellblock") == \
            "711 root\n"
        for unit in "cellblock.socket", "cellblock-serve.socket":
            assert system.run("systemctl", "is-enabled", unit,
                              check=False)[1] == "disabled\n"
        assert "/etc/cellblock/cellblock.conf" in system.run(
            "dpkg-query", "-W", "-f", "${Conffiles}", "cellblock")
        assert system.run("cellblock", "-e", "6 * 7", user=ANN) == "42\n"
        assert system.run("dpkg", "--verify", "cellblock") == ""
    finally:
        purge(system)


def test_an_upgrade_ends_no_session(system, packages):
    """A session of the person's own process and one of the maker go on; the new
    program lists both, goes back to both, and ends them."""
    old, new = packages
    install(system, old)
    assert "0.1~old" in system.run("cellblock", "--version")
    ann = system.session(user=ANN).start()
    ann.run("x = 41")
    maker = begin_maker(system)
    bob = system.session(user=BOB).start()
    bob.run("y = 21")
    try:
        install(system, new)
        assert "0.1~old" not in system.run("cellblock", "--version")
        found = listed(system)
        assert {s["version"] for s in found.values()} == {"0.1~old"}
        assert set(found) == {"ann/1", "bob/1"}
        # they go on where they are
        assert ann.run("x + 1") == "42" and bob.run("y * 2") == "42"
        # and at another terminal, to which the new program brings them
        for s, who, cell in (ann, ANN, "x + 1"), (bob, BOB, "y * 2"):
            s.type(":detach\r")
            s.wait_exit()
            again = system.session("--attach", "1", user=who)
            again.expect("session 1 again")
            again.wait_prompt()
            assert again.run(cell) == "42"
            said = system.run("cellblock", "--end", "1", "-m", "bye for now",
                              user=who)
            assert "ended session 1" in said
            again.wait_exit()
            assert "bye for now" in again.all_text()
        assert listed(system) == {}
        # the maker of before serves those of the new program
        fresh = system.session(user=BOB).start()
        assert fresh.run("6 * 7") == "42"
        assert listed(system)["bob/1"]["version"] != "0.1~old"
        fresh.leave()
    finally:
        maker.terminate()
        maker.wait()
        purge(system)


def test_removal_ends_sessions_with_a_word(system, packages):
    install(system, packages[1])
    maker = begin_maker(system)
    sessions = [system.session(user=who) for who in (ANN, BOB)]
    sessions.append(system.session("-s", "session.maker=off", user=ANN))
    sessions.append(system.session("-s", "session.attach=no", user=BOB))
    for s in sessions:
        s.start()
    system.run("dpkg", "--remove", "cellblock")
    for s in sessions:
        s.wait_exit()
    for s in sessions[:3]:
        assert "cellblock is being removed from this host" in s.all_text()
    assert maker.wait(20) == 0          # one that was started by hand, too
    # the configuration stays until the purge
    assert system.run("cat", "/etc/cellblock/cellblock.conf")
    assert "cellblock" not in system.run("cat", "/etc/shells")
    purge(system)


def remains(system):
    """Paths, accounts, cgroups and processes."""
    return (system.files(),
            system.run("cat", "/etc/passwd", "/etc/group", "/etc/shells"),
            system.run("find", "/run", "-name", "*cellblock*"),
            system.run("sh", "-c", "find /sys/fs/cgroup -name '*cellblock*' "
                       "-not -name 'cellblock-test-*' || true"),
            system.run("sh", "-c", "ls -l /proc/*/exe 2>/dev/null | "
                       "grep cellblock || true"))


# Files that dpkg keeps of any package, and people's own.
KEPT = re.compile(r"/(var/(lib/(dpkg|apt)|log|cache)|home|srv|opt"
                  r"|etc/(passwd|group|g?shadow|sub[ug]id)-)(/|$)|.*__pycache__")


def test_a_purge_leaves_nothing(system, packages):
    before = remains(system)
    install(system, packages[1])
    policy = system.dir / "etc/cellblock/conf.d/lab.conf"
    policy.parent.mkdir()
    policy.write_text("[cell]\ntimeout = 5s\n")
    maker = begin_maker(system)
    with system.session(user=ANN) as s:
        s.start()
        assert s.run("6 * 7") == "42"
        purge(system)
        s.wait_exit()
    maker.wait(20)
    after = remains(system)
    new = {p for p in after[0] - before[0] if not KEPT.match(p)}
    assert new == set()
    assert after[1:] == before[1:]


def test_autopkgtest_runs_what_is_installed(system, packages):
    """Of debian/tests, the part that takes seconds."""
    tree = source(system.dir / "srv/tests/cellblock")
    said = system.run(
        "autopkgtest", "--no-built-binaries", "--test-name=programs",
        packages[1], "/" + str(tree.relative_to(system.dir)), "--", "null",
        check=False)[1]
    purge(system)
    assert re.search(r"^programs\s+PASS", said, re.M), said[-4000:]
