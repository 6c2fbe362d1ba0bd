# SPDX-License-Identifier: MIT
"""Every path in the home can be seen and removed, and none leads elsewhere."""


def wipe(s):
    """:wipe, and yes if it asks. Returns what it said last."""
    row = s.enter(":wipe")
    s.expect_since(row, r"\[y/N\]|\[the home is empty\]")
    if "[y/N]" in s.all_text():
        s.type("y\r")
    s.wait_prompt()
    return s.screen.rows(row)


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
