# SPDX-License-Identifier: MIT
"""Cells that end Python or break its link in unusual ways. The session reports
the true cause in time."""
import pytest

from hostile import FIND, is_whole, start, value
from world import WHOLE

# Root's jails are stopped by the freezer, a person's by signals.
pytestmark = pytest.mark.both


# The ends, those that a shell gives a meaning, and those of signals.
STATUSES = range(256) if WHOLE else (
    0, 1, 2, 3, 64, 75, *range(124, 140), 143, 159, 192, 254, 255)


@pytest.mark.sampled
@pytest.mark.limit(120)
def test_every_exit_status_is_reported_as_the_cell_gave_it(cb):
    s = start(cb, "--set", "cell.timeout=20s", size=(40, 120))
    s.run("import os")
    for status in STATUSES:
        out = s.run(f"os._exit({status})", 25)
        assert out.startswith(
            f"¦ [Python exited with status {status} · back to"), out
    assert value(s, "kept") == "{'cell': 1}"


UNLINKED = {
    "closed": "os.close(sockets()[-1])",
    "closed_but_held":
        "held = os.dup(sockets()[-1]); os.close(sockets()[-1])",
    "closed_but_held_by_a_child":
        "if os.fork():\n    os.close(sockets()[-1])\n"
        "else:\n    import time; time.sleep(99)",
    "replaced": "null = os.open('/dev/null', os.O_RDWR)\n"
                "os.dup2(null, sockets()[-1])",
    "with_every_signal_blocked":
        "import signal; signal.pthread_sigmask(0, range(1, 65))\n"
        "os.close(sockets()[-1])",
    "with_every_signal_ignored":
        "import signal\nfor n in range(1, 65):\n"
        "    try: signal.signal(n, signal.SIG_IGN)\n"
        "    except (OSError, ValueError): pass\n"
        "os.close(sockets()[-1])",
}


@pytest.mark.parametrize("name", UNLINKED)
def test_a_broken_link_is_reported_as_a_broken_link(cb, name):
    s = start(cb)
    row = s.screen.here()
    out = s.run(FIND + "\n" + UNLINKED[name], 25).replace("\n", "")
    assert "Python's link to the session broke" in out, out
    is_whole(s, row)
