# SPDX-License-Identifier: MIT
"""Programs of the system that take the whole screen."""
import shutil
import time

import pytest

LIMIT = 3  # seconds: a loaded machine must start a program in less

# The program, what it shows once it waits, keys that end it, what it leaves.
PROGRAMS = {
    # It may say first that it has no timers; Enter goes on.
    "vim": ("vim -u DEFAULTS f.txt", "^one$|^Press ENTER", "\rx\x1bZZ"),
    "nano": ("nano -I f.txt", "^one$", "\x18"),
    "less": ("less f.txt", "^one$", "q"),
    "top": ("top -d 1", "PID USER", "q"),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_that_waits_for_a_key_costs_no_time(cb, name):
    if not shutil.which(name):
        pytest.skip(f"no {name} here")
    command, shows, keys = PROGRAMS[name]
    s = cb.session("-t", f"{LIMIT}s")
    s.run("open('f.txt', 'w').write('one\\n' * 50)")
    row = s.enter("!" + command)
    s.expect_since(row, shows)
    # Longer than the limit: a clock that runs would have ended it by then.
    time.sleep(LIMIT + 2)
    s.type(keys)
    s.wait_prompt()
    assert "time limit" not in s.all_text()
    assert not s.screen.alternate
    assert s.run("6 * 7") == "42"


def test_the_clock_runs_where_a_program_does_not_wait(cb):
    s = cb.session("-t", "1s")
    assert "time limit" in s.run("!while :; do :; done")


def test_htop_says_what_it_lacks_and_leaves_the_screen(cb):
    """A jail's /proc has no figures of the host, and htop needs them."""
    if not shutil.which("htop"):
        pytest.skip("no htop here")
    s = cb.session()
    s.run("print('BEFORE')")
    assert s.run("!htop").splitlines() == [
        "Cannot open /proc/stat: No such file or directory", "exit status 2"]
    s.run("import subprocess")
    assert "\n2" in s.run("subprocess.run(['htop']).returncode")
    assert "BEFORE" in s.screen_text() and not s.screen.alternate
