# SPDX-License-Identifier: MIT
"""A client whose network is gone, without a word to anybody."""
import pathlib
import re
import secrets
import shutil

import pytest

from lab import BINARY, ETC, reload_sshd, run

pytestmark = pytest.mark.limit(600)
HERE, THERE = "198.51.100.1", "198.51.100.2"
COUNT = ("import time\nfor i in range(60):\n    print('n', i, flush=True)\n"
         "    time.sleep(1)\nd = i\n")


class Far:
    """A machine of its own as far as the network goes, on a cable."""

    def __init__(self):
        self.name = f"far-{secrets.token_hex(2)}"
        self.end = f"cb-{secrets.token_hex(3)}"
        run("ip", "netns", "add", self.name)
        run("ip", "link", "add", self.end, "type", "veth", "peer", "name",
            "wire", "netns", self.name)
        run("ip", "addr", "add", f"{HERE}/24", "dev", self.end)
        run("ip", "link", "set", self.end, "up")
        self.run("ip", "addr", "add", f"{THERE}/24", "dev", "wire")
        self.run("ip", "link", "set", "wire", "up")

    @property
    def inside(self):
        return ("ip", "netns", "exec", self.name)

    def run(self, *argv):
        return run(*self.inside, *argv)

    def cut(self):
        """Nothing comes through any more, and no end hears of it."""
        self.run("ip", "link", "set", "wire", "down")

    def remove(self):
        run("ip", "link", "del", self.end, check=False)
        run("ip", "netns", "del", self.name, check=False)
        run("umount", "/run/netns", check=False)


@pytest.fixture
def far():
    f = Far()
    yield f
    f.remove()


@pytest.fixture(params=["a shell", "the group of etc"])
def logs_in(request, person):
    """How somebody far away comes to a session: with a shell, on a host whose
    sshd looks after its clients; or as a member of the group, which sshd lets
    into sessions only. The command; None: it is forced."""
    to = pathlib.Path("/etc/ssh/sshd_config.d/cellblock.conf")
    if request.param == "a shell":
        to.write_text("ClientAliveInterval 5\nClientAliveCountMax 2\n")
    else:
        shutil.copy(ETC / "sshd_config.d/cellblock.conf", to)
        run("gpasswd", "-a", person.name, "cellblock")
    run("sshd", "-t")
    reload_sshd()
    yield (str(BINARY),) if request.param == "a shell" else ()
    to.unlink()
    reload_sshd()


def test_a_cell_outlives_the_network_of_its_client(person, far, logs_in):
    s = person.session(*logs_in, before=far.inside, to=HERE)
    s.start()
    assert s.run("x = 41") == ""
    row = s.enter(COUNT)
    s.expect_since(row, "^n 3$")
    began = person.only(lambda e: e["running"], "the session")
    assert began["from"] == THERE and not began["detached"]
    far.cut()
    # Some versions of sshd notice only when there is nothing to send any more.
    person.only(lambda e: not e["running"], "the end of the cell", 120)
    person.only(lambda e: e["detached"], "the loss of the terminal", 120)
    # The client has not heard of it.
    assert s.process.poll() is None
    assert "n 59" not in s.all_text()
    t = person.session(*logs_in, size=(80, 80))
    t.expect(r"your session from .* is still here: cell 2 ended")
    t.type("\r")
    t.expect(r"missed while away: \d+ lines|cell 2 wrote last may not have come")
    t.expect("^n 59$")
    t.wait_prompt()
    assert t.run("x + 1, d").startswith("(42, 59)")
    assert re.findall(r"^n (\d+)$", t.run(":out 2"), re.M) \
        == [str(i) for i in range(60)]
    t.leave()
