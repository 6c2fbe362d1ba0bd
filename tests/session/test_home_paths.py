# SPDX-License-Identifier: MIT
"""Paths in the home, and exposed host paths below /home. The person can see
and remove every file of the home. No path leads out of the home, and exposed
files of the host stay."""
import os
import shutil

import pytest

from deep import DEEP
from world import CELLBLOCK, WHOLE

# Root's jails are built with root's means, a person's in a user namespace.
pytestmark = pytest.mark.both


def wipe(s):
    """Run :wipe, and answer yes if it asks. Returns what it prints."""
    row = s.enter(":wipe")
    s.expect_since(row, r"\[y/N\]|\[the home is empty\]")
    if "[y/N]" in s.all_text():
        s.type("y")
    s.wait(lambda: s.screen.here() > row and s.at_prompt(),
           "the prompt after :wipe", 60)
    return "\n".join(s.screen.rows(row))


LISTED = "sorted(os.listdir('/home'))"


def test_no_file_name_hides_a_file_from_the_person(session):
    s = session
    s.run("import os; open('.cellblock-x', 'w').write('1');"
          " os.mkdir('.cellblock-d'); open('.cellblock-d/f', 'w').close()")
    assert "2 hidden files" in s.run(":files")
    listing = s.run(":files -a")
    assert ".cellblock-x" in listing and ".cellblock-d/f" in listing
    assert "1" in s.run(":show .cellblock-x")
    assert "removed" in s.run(":rm .cellblock-x")
    assert s.run(LISTED) == "['.cellblock-d']"
    wipe(s)
    assert s.run(LISTED) == "[]"


def test_a_tree_of_any_depth_is_removed(session):
    s = session
    s.run("import os")
    s.run(DEEP)
    s.run("deep(300)")
    listing = s.run(":files")
    assert "0 B" in listing and "more files" not in listing, listing
    assert "1 file, 300 directories removed" in s.run(":rm -f d")
    assert s.run(LISTED) == "[]"
    # This tree is deeper than the longest possible path.
    s.run("deep(3000)")
    assert "more files than are listed" in s.run(":files")
    wipe(s)
    assert s.run(LISTED) == "[]"
    assert "in 0 files" in s.run(":usage")


# A listing has 10,000.
COUNT = 25000 if WHOLE else 11000
MANY = f"for i in range({COUNT}): os.mknod(f'n{{i}}')"


@pytest.mark.sampled
def test_a_home_of_many_names_can_be_emptied(cb):
    """There are more names than :files lists at a time."""
    s = cb.session("--set", "home.files=60000", "-M", "1G", "-t", "60s")
    s.run("import os")
    s.run(MANY, 60)
    assert "more files than are listed" in s.run(":files no")
    assert "more files than are listed" in s.run(":rm no*")
    assert "no: there is no such file" in s.run(":rm no")
    # A name is found even where it is not listed.
    assert "[2 entries removed]" in s.run(f":rm n0 /home/n{COUNT - 1}")
    assert f"{COUNT - 2} entries removed" in s.run(":rm -f n*", 60)
    assert s.run(LISTED) == "[]"
    s.run(MANY, 60)
    assert "[the home is empty]" in wipe(s)
    assert s.run(LISTED) == "[]"


# A /home on the host with files that a session may expose. It hides the program,
# if that is in somebody's home: the first word is a copy.
OWN_HOME = ["unshare", "--mount", *(
    [] if os.geteuid() == 0
    else ["--user", "--map-current-user", "--keep-caps"]),
    "sh", "-c", "mount -t tmpfs t /home && mkdir -p /home/u/lib &&"
    " echo f > /home/u/lib/f && echo g > /home/g && p=$1 && shift 2"
    " && exec \"$p\" \"$@\"", "sh"]


@pytest.mark.parametrize("expose, file, place", [
    ("/home/u/lib", "/home/u/lib/f", "u"),      # a deeper directory
    ("/home/u", "/home/u/lib/f", "u"),          # a directory in /home
    ("/home/g", "/home/g", "g"),                # a file in /home
])
def test_exposed_paths_below_home_cannot_be_removed(
        cb, expose, file, place):
    program = shutil.copy(CELLBLOCK, cb.base / "cellblock")
    s = cb.session("--set", f"jail.expose={expose}",
                   wrapper=[*OWN_HOME, str(program)])
    s.run("import os; open('mine', 'w').close()")
    assert s.run(f"open('{file}').read()") in (r"'f\n'", r"'g\n'")
    # Neither the guest nor the person can remove the exposed path.
    for cell in (f"os.rename('{place}', 'away')",
                 f"os.rmdir('{place}')", f"os.remove('{place}')",
                 f"open('{place}', 'w')", f"open('{file}', 'w')"):
        assert "Error" in s.run(cell), cell
    assert "in 1 file" in s.run(":usage")
    assert place not in s.run(":files").split()
    assert "no such file" in s.run(f":rm {place}")
    wipe(s)
    assert s.run(LISTED) == f"['{place}']"
    # The next jail has the path again, whatever the guest has tried.
    assert "Error" in s.run(f"os.symlink('/tmp', '{place}')")
    s.run(":reset", 40)
    assert s.run(f"open('{file}').read()") in (r"'f\n'", r"'g\n'")


@pytest.mark.parametrize("leads_to", ["/", "/proc", "/run", "/sys/fs/cgroup"])
def test_an_exposed_link_is_checked_by_its_target(cb, leads_to):
    data = cb.base / "data"
    data.mkdir()
    (data / "f").write_text("data")
    cb.let_in(data)
    link = cb.base / "link"
    show = ("--set", f"jail.expose={link}", "-c",
            f"import os; print(os.listdir('{link}'))")
    link.symlink_to(leads_to)
    ended = cb.run(*show)
    assert ended.code in (2, 78) and leads_to in ended.said and not ended.out, ended
    link.unlink()
    link.symlink_to(data)
    ended = cb.run(*show)
    assert ended.code == 0 and ended.text == "['f']\n", ended
