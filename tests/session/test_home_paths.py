# SPDX-License-Identifier: MIT
"""Paths of the home, and of what is shown beside it: every one can be seen and
removed, none leads elsewhere, and what is not the session's stays."""
import os

import pytest


def wipe(s):
    """:wipe, and yes if it asks. Returns what it said last."""
    row = s.enter(":wipe")
    s.expect_since(row, r"\[y/N\]|\[the home is empty\]")
    if "[y/N]" in s.all_text():
        s.type("y")
    s.wait(lambda: s.screen.here() > row and s.at_prompt(), "the end", 60)
    return "\n".join(s.screen.rows(row))


LISTED = "sorted(os.listdir('/home'))"


def test_no_name_hides_a_file_from_its_person(session):
    s = session
    s.run("import os; open('.cellblock-x', 'w').write('1');"
          " os.mkdir('.cellblock-d'); open('.cellblock-d/f', 'w').close()")
    listing = s.run(":files")
    assert ".cellblock-x" in listing and ".cellblock-d/f" in listing
    assert "1" in s.run(":show .cellblock-x")
    assert "removed" in s.run(":rm .cellblock-x")
    assert s.run(LISTED) == "['.cellblock-d']"
    wipe(s)
    assert s.run(LISTED) == "[]"


DEEP = """\
def deep(n):
    for _ in range(n):
        os.mkdir('d'); os.chdir('d')
    open('last', 'w').close()
    os.chdir('/home')
"""


def test_a_tree_of_any_depth_is_removed(session):
    s = session
    s.run("import os")
    s.run(DEEP)
    s.run("deep(300)")
    listing = s.run(":files")
    assert "0 B" in listing and "more files" not in listing, listing
    assert "1 entry removed" in s.run(":rm d")
    assert s.run(LISTED) == "[]"
    # No path is as long as this is deep.
    s.run("deep(3000)")
    assert "more files than are listed" in s.run(":files")
    wipe(s)
    assert s.run(LISTED) == "[]"
    assert "in 0 files" in s.run(":usage")


MANY = "for i in range(25000): os.mknod(f'n{i}')"


def test_many_names_are_removed_to_the_last(cb):
    """There are more than are listed at a time."""
    s = cb.session("--set", "home.files=60000", "-M", "1G")
    s.run("import os")
    s.run(MANY, 60)
    assert "more files than are listed" in s.run(":files no")
    assert "more files than are listed" in s.run(":rm no*")
    assert "no: there is no such file" in s.run(":rm no")
    # A name is found wherever it is.
    assert "[2 entries removed]" in s.run(":rm n0 /home/n24999")
    assert "24998 entries removed" in s.run(":rm n*", 60)
    assert s.run(LISTED) == "[]"
    s.run(MANY, 60)
    assert "[the home is empty]" in wipe(s)
    assert s.run(LISTED) == "[]"


# A /home of the host's that holds what a session may be shown.
OWN_HOME = ["unshare", "--mount", *(
    [] if os.geteuid() == 0
    else ["--user", "--map-current-user", "--keep-caps"]),
    "sh", "-c", "mount -t tmpfs t /home && mkdir -p /home/u/lib &&"
    " echo f > /home/u/lib/f && echo g > /home/g && exec \"$@\"", "sh"]


@pytest.mark.parametrize("expose, file, place", [
    ("/home/u/lib", "/home/u/lib/f", "u"),      # deeper
    ("/home/u", "/home/u/lib/f", "u"),          # a place of its own
    ("/home/g", "/home/g", "g"),                # a file
])
def test_what_is_shown_below_home_is_not_the_persons_to_lose(
        cb, expose, file, place):
    s = cb.session("--set", f"jail.expose={expose}", wrapper=OWN_HOME)
    s.run("import os; open('mine', 'w').close()")
    assert s.run(f"open('{file}').read()") in (r"'f\n'", r"'g\n'")
    # The guest cannot take it away, and neither can its person.
    for cell in (f"os.rename('{place}', 'away')",
                 f"os.rmdir('{place}')", f"os.remove('{place}')",
                 f"open('{place}', 'w')", f"open('{file}', 'w')"):
        assert "Error" in s.run(cell), cell
    assert "in 1 file" in s.run(":usage")
    assert place not in s.run(":files").split()
    assert "no such file" in s.run(f":rm {place}")
    wipe(s)
    assert s.run(LISTED) == f"['{place}']"
    # The next jail has it again, whatever was tried in between.
    assert "Error" in s.run(f"os.symlink('/tmp', '{place}')")
    s.run(":reset", 40)
    assert s.run(f"open('{file}').read()") in (r"'f\n'", r"'g\n'")


@pytest.mark.parametrize("leads_to", ["/", "/proc", "/run", "/sys/fs/cgroup"])
def test_a_link_shows_no_more_than_what_it_leads_to(cb, leads_to):
    data = cb.base / "data"
    data.mkdir()
    (data / "f").write_text("data")
    cb.let_in(data)
    link = cb.base / "link"
    show = ("--set", f"jail.expose={link}", "-c",
            f"import os; print(os.listdir('{link}'))")
    link.symlink_to(leads_to)
    ended = cb.run(*show)
    assert ended.code == 78 and leads_to in ended.said and not ended.out, ended
    link.unlink()
    link.symlink_to(data)
    ended = cb.run(*show)
    assert ended.code == 0 and ended.text == "['f']\n", ended
