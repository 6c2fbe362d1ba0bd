# SPDX-License-Identifier: MIT
"""Programs of the system that take the whole screen."""
import os
import shutil
import subprocess
import time

import pytest

from world import PATIENCE

# Seconds: a loaded machine must start a program in less.
LIMIT = int(8 * PATIENCE)

# The program, what it shows once it waits, keys that end it, what it leaves.
PROGRAMS = {
    # It may say first that it has no timers; Enter goes on.
    "vim": ("vim -u DEFAULTS f.txt", "^one$|^Press ENTER", "\rx\x1bZZ"),
    "nano": ("nano -I f.txt", "^one$", "\x18"),
    "less": ("less f.txt", "^one$", "q"),
    "top": ("top -d 1", "PID USER", "q"),
    "htop": ("LD_PRELOAD=/home/figures.so htop", "Load average", "q"),
}
# A jail's /proc has no figures of the host, without which htop does not start.
# So it reads those that are uploaded for it.
LACKING = ["stat", "meminfo", "uptime", "loadavg"]
FIGURES = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

FILE *fopen(const char *path, const char *mode)
{
	FILE *(*real)(const char *, const char *) = dlsym(RTLD_NEXT, "fopen");
	char here[64] = "/home/";

	if (!strncmp(path, "/proc/", 6) && strlen(path) < 40 &&
		!strchr(path + 6, '/'))
		path = strcat(here, path + 6);
	return real(path, mode);
}
"""


def figures(cb):
    """The options that bring what htop lacks; None: no compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not compiler:
        return None
    (cb.work / "figures.c").write_text(FIGURES)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", cb.work / "figures.so",
                    cb.work / "figures.c", "-ldl"], check=True)
    for name in LACKING:
        with open(os.path.join("/proc", name)) as f:
            (cb.work / name).write_text(f.read())
    return [word for name in ("figures.so", *LACKING)
            for word in ("-u", str(cb.work / name))]


@pytest.mark.limit(90)
def test_a_program_that_waits_for_a_key_costs_no_time(cb):
    sessions = {}
    for name, (command, shows, _) in PROGRAMS.items():
        more = figures(cb) if name == "htop" else []
        if not shutil.which(name) or more is None:
            continue
        s = sessions[name] = cb.session(
            "-t", f"{LIMIT}s", "-s", "session.per_user=20", *more)
        s.run("open('f.txt', 'w').write('one\\n' * 50)")
        s.enter("!" + command)
        s.expect(shows)
    if not sessions:
        pytest.skip("no such program here")
    # Longer than the limit: a clock that runs would have ended them by then.
    time.sleep(LIMIT + 2)
    for name, s in sessions.items():
        s.type(PROGRAMS[name][2])
        s.wait_prompt()
        assert "time limit" not in s.all_text(), name
        assert "exit status" not in s.all_text(), name
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
