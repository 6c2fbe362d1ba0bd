# SPDX-License-Identifier: MIT
"""Programs of the system that take the whole screen."""
import shutil
import time

import pytest

LIMIT = 8  # seconds: a loaded machine must start a program in less

# The program, what it shows once it waits, keys that end it, what it leaves.
PROGRAMS = {
    # It may say first that it has no timers; Enter goes on.
    "vim": ("vim -u DEFAULTS f.txt", "^one$|^Press ENTER", "\rx\x1bZZ"),
    "nano": ("nano -I f.txt", "^one$", "\x18"),
    "less": ("less f.txt", "^one$", "q"),
    "top": ("top -d 1", "PID USER", "q"),
}


def test_a_program_that_waits_for_a_key_costs_no_time(cb):
    sessions = {}
    for name, (command, shows, _) in PROGRAMS.items():
        if not shutil.which(name):
            continue
        s = sessions[name] = cb.session(
            "-t", f"{LIMIT}s", "-s", "session.per_user=20")
        s.run("open('f.txt', 'w').write('one\\n' * 50)")
        s.expect_since(s.enter("!" + command), shows)
    if not sessions:
        pytest.skip("no such program here")
    # Longer than the limit: a clock that runs would have ended them by then.
    time.sleep(LIMIT + 2)
    for name, s in sessions.items():
        s.type(PROGRAMS[name][2])
        s.wait_prompt()
        assert "time limit" not in s.all_text(), name
        assert not s.screen.alternate, name
        assert s.run("6 * 7") == "42", name


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
