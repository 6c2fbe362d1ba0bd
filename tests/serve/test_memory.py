# SPDX-License-Identifier: MIT
"""cellblock --serve: a session with less memory than is configured."""
import contextlib
import pathlib

import pytest

import hosttree
from client import JSON
from test_sessions import SESSIONS, Session, warden_of
from test_terms import begin
from world import IS_ROOT

# The enforcement of a limit depends on the user: root's sessions have a cgroup.
pytestmark = pytest.mark.both

MIB = 1 << 20
LESS = {"memory_bytes": 64 * MIB}
TAKE_80M = "taken = b'1' * (80 << 20)\n"
# Where no cgroup counts memory, one process alone meets RLIMIT_DATA.
TAKE_80M_IN_TWO = """import os, signal
r, w = os.pipe()
if not os.fork():
    taken = b"1" * (30 << 20)
    os.write(w, b"1")
    signal.pause()
os.read(r, 1)
more = b"2" * (50 << 20)
"""
SIZES = """import os
for p in "/home", "/tmp":
    st = os.statvfs(p); print(st.f_blocks * st.f_frsize >> 20)
"""


def test_it_dies_at_its_own_limit(lasting):
    session = begin(lasting, limits=LESS)
    assert session.show("x = 1") == ""
    has_cgroup = hosttree.cgroups_of(lasting.tree.warden)
    take = TAKE_80M if has_cgroup else TAKE_80M_IN_TWO
    r = session.cell(take + "import signal; signal.pause()").json
    assert r["how"] == "killed" and r["after"] == "rolled back", r
    assert r["limit"] == {"key": "memory_bytes", "source": "request",
                          "text": "memory limit: 64 MiB"}
    assert "memory limit: 64 MiB" in r["verdict"], r
    assert "limit set in the request" in r["verdict"], r
    assert session.show("x") == "1\n"
    session("DELETE")
    # control: one with the memory of the configuration
    other = Session(lasting)
    r = other.cell(take).json
    assert r["how"] == "ok" and r["limit"] is None, r
    other("DELETE")


def test_its_checkpoints_bring_variables_back(lasting):
    session = begin(lasting, limits=LESS)
    assert session.show("x = 1") == session.show("x = 2") == ""
    r = session("POST", "/undo", {"undo": 1})
    assert r.status == 200 and session.show("x") == "1\n", r
    assert session.cell("import os; os.abort()").json["after"] == "rolled back"
    assert session.show("x") == "1\n"
    session("DELETE")


def test_all_that_depends_on_memory_is_less(lasting):
    session = begin(lasting, limits=LESS)
    for _ in range(2):
        assert session.show(SIZES) == "32\n16\n"
        assert session("POST", "/reset").status == 200
    total = session.show("try:\n    import psutil\n"
                         "    print(psutil.virtual_memory().total)\n"
                         "except ImportError:\n    print('none')")
    assert total in ("67108864\n", "none\n")
    session("DELETE")


def test_its_state_says_so(lasting):
    session, plain = begin(lasting, limits=LESS), Session(lasting)
    try:
        assert session("GET").json["limits"]["memory_bytes"] == 64 * MIB
        assert plain("GET").json["limits"]["memory_bytes"] == 512 * MIB
    finally:
        session("DELETE")
        plain("DELETE")
    # As much as there is is no looser.
    most = begin(lasting, limits={"memory_bytes": 512 * MIB})
    assert most.show("6 * 7") == "42\n"
    most("DELETE")


@pytest.mark.parametrize("n, words", [
    (512 * MIB + 1, "maximum of 536870912 (session.memory)"),
    (16 * MIB - 1, "minimum of 16777216"),
    (0, "minimum of 16777216"),
    ("64M", "not of type 'integer'"),
])
def test_no_looser_limit_is_taken(lasting, n, words):
    r = lasting("POST", SESSIONS, {"limits": {"memory_bytes": n}})
    assert r.status == 422 and words in r.json["detail"], r


def test_a_limit_too_small_for_python_is_refused(serve, cb):
    packages = cb.base / "packages"
    packages.mkdir()
    (packages / "sitecustomize.py").write_text(
        "import builtins\nbuiltins.large = b'1' * (20 << 20)\n")
    cb.let_in(packages)
    server = serve("-s", f"python.packages={packages}")
    for n in (16, 32):
        r = server("POST", SESSIONS, {"limits": {"memory_bytes": n * MIB}})
        assert r.status == 422 and "Python alone uses 2" in r.json["detail"], r
    assert server("GET", SESSIONS).json == {"sessions": []}
    session = begin(server, limits={"memory_bytes": 128 * MIB})
    assert session.show("len(large)") == f"{20 << 20}\n"
    session("DELETE")
    server.await_rest()


def held(warden):
    """Open files through which a memory limit can be written."""
    found = []
    for fd in pathlib.Path(f"/proc/{warden}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):    # it was closed
            name = fd.readlink().name
            if name.endswith(("limit_in_bytes", "memory.max")):
                found.append(name)
    return found


@pytest.mark.root
@pytest.mark.skipif(not IS_ROOT, reason="only root sees a warden's files")
def test_no_cell_runs_while_limits_may_change(serve):
    server = serve(spare=0)
    session = begin(server, limits={"memory_bytes": 64 * MIB})
    assert not held(warden_of(server))
    session("DELETE")
    hosttree.until(lambda: not server.tree.guests(), "it is gone")
    session = Session(server)
    warden = warden_of(server)
    assert bool(held(warden)) == bool(hosttree.cgroups_of(warden))
    assert session.show("1") == "1\n"
    assert not held(warden)
