# SPDX-License-Identifier: MIT
"""One program against many submissions: what is graded, and how it is told."""
import os
import re
import socket
import xml.etree.ElementTree

import pytest
from course import HONEST, Course, whys
import world

pytestmark = pytest.mark.both       # files belong to whoever grades


@pytest.fixture
def course(cb):
    return Course(cb)


def test_a_table_has_points_and_reasons(course):
    course.add("ada")
    course.add("bob", "print(2)\n")
    course.add("eve", "raise ValueError('no')\n")
    r = course.grade()
    assert r.code == 0, r
    rows = [line.split() for line in r.text.splitlines()]
    assert rows[0][:3] == ["SUBMISSION", "VERSION", "POINTS"], r
    assert rows[1] == ["ada", "4", "of", "4"], r
    assert rows[2][:4] == ["bob", "1", "of", "4"], r
    assert "forty-two: output, line 1: expected '42', not '2'" in r.text, r
    assert "exit status 1 · ValueError: no" in r.text, r
    assert not r.err, r


def test_json_has_a_line_for_each(course):
    course.add("ada")
    course.add("bob", "print(2)\n")
    found = course.graded()
    assert [found[n]["points"] for n in ("ada", "bob")] == [4, 1]
    first, second = found["bob"]["tests"]
    assert first["passed"] and first["why"] is None and first["points"] == 1
    assert not second["passed"] and second["of"] == 3
    assert second["exit_code"] == 0 and second["limit"] is None
    assert second["duration_ms"] >= 0
    # The option may stand where options of a program usually stand, too.
    assert course.grade(options=["--json"]).text.count('"submission"') == 2


def test_junit_is_xml_that_a_parser_takes(course):
    course.add("ada")
    course.add("<&\"'\x1b]0;x\x07>", "import sys; sys.exit('<&\">\\x01]]>')")
    r = course.grade("--junit", "junit.xml")
    assert r.code == 0, r
    root = xml.etree.ElementTree.parse(course.base / "junit.xml").getroot()
    assert root.tag == "testsuites" and root.get("name") == "Twice"
    suites = {s.get("name"): s for s in root}
    assert suites["ada"].get("tests") == "2"
    assert suites["ada"].get("failures") == "0"
    hostile = next(s for n, s in suites.items() if n != "ada")
    assert hostile.get("name").startswith("<&\"'\\x1b]0;x")
    assert hostile.get("failures") == "2"
    assert all("exit status 1 · <&\">" in f.get("message")
               for f in hostile.iter("failure"))


def test_the_highest_version_counts(course):
    course.add("ada/1", "print('old')\n")
    course.add("ada/2", "print('old')\n")
    course.add("ada/10")
    course.add("bob/3", "print('bad')\n")
    # A directory with a file beside them has no versions.
    course.add("eve/1")
    (course.subs / "eve" / "hw.py").write_text(HONEST)
    (course.subs / "eve" / "notes").write_text("")
    found = course.graded()
    assert found["ada"]["version"] == 10 and found["ada"]["points"] == 4
    assert found["bob"]["version"] == 3 and found["bob"]["points"] == 0
    assert found["eve"]["version"] is None and found["eve"]["points"] == 4


def test_one_file_is_a_submission(course):
    (course.subs / "ada.py").write_text(HONEST)
    (course.subs / "ada.txt").write_text("print(0)\n")
    course.add("ada")
    (course.subs / ".hidden.py").write_text(HONEST)
    found = course.graded()
    assert {n: f["points"] for n, f in found.items()} == {
        "ada": 4, "ada.py": 4, "ada.txt": 0}


def test_what_a_submission_must_have_is_missed(course):
    course.plan("[grade]\nprogram = hw.py\nfiles = a.txt, lib/b.py\n"
                "[test x]\noutput = 1\n")
    whole = course.add("whole", "print(1)\n", **{"a.txt": "1"})
    (whole / "lib").mkdir()
    (whole / "lib" / "b.py").write_text("")
    course.add("ada", "print(1)\n")
    linked = course.add("bob", "print(1)\n")
    (linked / "a.txt").symlink_to("/etc/passwd")
    found = course.graded()
    assert found["whole"]["points"] == 1, found
    assert found["ada"]["why"] == "a.txt is missing"
    assert found["bob"]["why"] == "a.txt is missing · left out: a.txt: a link"
    assert not found["ada"]["tests"] and found["ada"]["points"] == 0


def test_links_fifos_sockets_and_deep_trees_are_left_out(course):
    folder = course.add("ada", "import os\nprint(int(input()) * 2)\n"
                        "assert os.listdir() == ['hw.py']\n")
    (folder / "link").symlink_to("/etc/passwd")
    (folder / "out").symlink_to("..")
    os.mkfifo(folder / "fifo")
    s = socket.socket(socket.AF_UNIX)
    here = os.getcwd()
    os.chdir(folder)                # the name of a socket is short
    s.bind("socket")
    os.chdir(here)
    s.close()
    if world.IS_ROOT:
        os.mknod(folder / "device", 0o020666, os.makedev(1, 5))
    deep = folder
    for _ in range(30):
        deep /= "d"
        deep.mkdir()
    (deep / "hw.py").write_text("")
    found = course.graded()
    assert found["ada"]["points"] == 4, found
    left = found["ada"]["left_out"]
    assert "link: a link" in left and "out: a link" in left, left
    assert "fifo: neither file nor directory" in left, left
    assert "socket: neither file nor directory" in left, left
    assert any(w.endswith("d: too deep") for w in left), left
    assert not world.IS_ROOT or any("device" in w for w in left), left


def test_an_entry_that_is_no_submission_has_a_row_and_no_points(course):
    course.add("ada")
    (course.subs / "link").symlink_to("ada")
    os.mkfifo(course.subs / "fifo")
    (course.subs / "empty").mkdir()
    found = course.graded()
    assert found["link"]["why"] == "it is a link"
    assert found["fifo"]["why"] == "it is neither a file nor a directory"
    assert found["empty"]["why"] == "hw.py is missing"
    assert found["ada"]["points"] == 4


def test_too_much_is_refused_and_the_next_is_graded(course):
    course.add("many", **{f"f{i}": "" for i in range(30)})
    course.add("large", big="x" * 20000)
    course.add("whole", **{f"f{i}": "x" * 9000 for i in range(15)})
    course.add("zeros")
    with open(course.subs / "zeros" / "sparse", "wb") as f:
        f.truncate(1 << 40)
    course.add("ada")
    found = course.graded(options=[
        "-s", "files.max_count=20", "-s", "files.max_file=10K",
        "-s", "home.size=128K"])
    assert found["many"]["why"] == "it has more files than files.max_count"
    assert found["large"]["why"] == "big is larger than files.max_file"
    assert found["whole"]["why"] == "it is larger than home.size"
    assert found["zeros"]["why"] == "sparse is larger than files.max_file"
    assert found["ada"]["points"] == 4


HOSTILE = [b"\xff\xfe.py", b"\x1b[2J\x1b]0;t\x07.py", "é\u202eyp.py".encode(),
           b"a\\x1b[2J.py", b"\x9b31m.py", b"n\nl\t.py"]


def test_no_name_reaches_the_terminal_raw(course):
    """And two names never become one."""
    for name in HOSTILE:
        (course.subs / os.fsdecode(name)).write_text(HONEST)
    inner = os.fsencode(course.add("eve"))
    with open(os.path.join(inner, b"\x1b[2J\xff"), "wb"):
        pass
    with open(os.path.join(inner, b"\xff\x1b[31m.py"), "wb"):
        pass
    os.symlink("x", os.path.join(inner, b"\x1b]0;link\x07"))
    r = course.grade("-o", "results.jsonl", "--junit", "j.xml")
    assert r.code == 0 and r.text.count("4 of 4") >= len(HOSTILE), r
    shown = r.out + (course.base / "j.xml").read_bytes() + \
        course.results.read_bytes()
    for bad in (b"\x1b", b"\x07", b"\x9b31", b"\xff", "\u202e".encode()):
        assert bad not in shown, (bad, r)
    assert len({one["submission"] for one in course.lines()}) == \
        len(HOSTILE) + 1
    # They are found again.
    assert len(course.lines()) == len(HOSTILE) + 1
    assert course.grade("-o", "results.jsonl").out == r.out
    assert len(course.lines()) == len(HOSTILE) + 1


def test_output_reaches_the_terminal_as_text(course):
    course.add("ada", "import sys\nprint('\\x1b[2J\\x00\\xff\\u202e')\n")
    course.add("bob", "import sys\nsys.exit('\\x1b]0;x\\x07' + 'y' * 5000)\n")
    r = course.grade()
    assert r.code == 0 and b"\x1b" not in r.out and b"\x00" not in r.out, r
    assert r"not '\x1b[2J\x00" in r.text, r


def test_files_are_given_and_files_are_made(course):
    course.plan("[grade]\nprogram = hw.py\n"
                "[test copy]\ngive = data.txt, data.txt:in/other\n"
                "makes = out/a:want.txt\n"
                "[test fewer]\ngive = data.txt\nmakes = out/a:want.txt\n",
                data="x y\n", want="x y\nx y\n")
    course.add("ada", "import os\nos.mkdir('out')\nopen('out/a', 'w').write("
               "open('data.txt').read() + open('in/other').read())\n")
    # The files of the plan stand in place of those that were handed in.
    course.add("bob", "import os\nos.mkdir('out')\nopen('out/a', 'w').write("
               "open('data.txt').read())\n", **{"data.txt": "x y\nx y\n"})
    found = course.graded()
    assert [t["passed"] for t in found["ada"]["tests"]] == [True, False]
    assert "FileNotFoundError" in found["ada"]["tests"][1]["why"]
    assert found["bob"]["points"] == 0
    assert "out/a, line 2: expected 'x y', not its end" in whys(found["bob"])


@pytest.mark.parametrize("how, same, other", [
    ("lines", "a  b  \n\nc\n\n\n", "a b\n\nc\n"),
    ("exact", "a  b\n\nc\n", "a  b\n\nc"),
    ("words", "a\nb c", "a b cc"),
])
def test_outputs_are_compared_as_the_plan_says(course, how, same, other):
    course.plan("[grade]\nprogram = hw.py\n[test x]\nstdout = want.txt\n"
                f"compare = {how}\n", want="a  b\n\nc\n")
    course.add("same", f"import sys\nsys.stdout.write({same!r})\n")
    course.add("other", f"import sys\nsys.stdout.write({other!r})\n")
    found = course.graded()
    assert found["same"]["points"] == 1, found["same"]
    assert found["other"]["points"] == 0 and "output" in whys(found["other"])


def test_blanks_hide_nothing_behind_them(course):
    course.plan("[grade]\nprogram = hw.py\n[test x]\nmakes = a:want.txt\n",
                want="1\n")
    course.add("ada", "open('a', 'w').write('1\\n' + ' ' * 10**6 + 'junk')\n")
    found = course.graded()
    assert whys(found["ada"]) == "a is far longer than expected"


def test_arguments_input_and_exit_status(course):
    course.plan("[grade]\nprogram = hw.py\n[test x]\n"
                'args = a "b c" -v\nstdin = data.txt\nexit = 3\n'
                'output = ["a", "b c", "-v"] 5\n', data="12345")
    course.add("ada", "import json, sys\nprint(json.dumps(sys.argv[1:]), "
               "len(sys.stdin.read()))\nsys.exit(3)\n")
    course.add("bob", "import json, sys\nprint(json.dumps(sys.argv[1:]), "
               "len(sys.stdin.read()))\n")
    found = course.graded()
    assert found["ada"]["points"] == 1, found["ada"]
    assert whys(found["bob"]) == "exit status 0, expected 3"


def test_a_large_output_that_the_plan_allows_is_compared(course):
    course.plan("[grade]\nprogram = hw.py\n[cell]\noutput = 3M\n"
                "[test x]\nstdout = want.txt\n", want="x" * 99 * 1024 * 20)
    course.add("ada", "print('x' * 99 * 1024 * 20)\n")
    course.add("bob", "print('x' * 99 * 1024 * 20 + 'y')\n")
    found = course.graded()
    assert found["ada"]["points"] == 1, whys(found["ada"])
    assert found["bob"]["points"] == 0


def test_shares_are_disjoint_and_together_all(course):
    for i in range(11):
        course.add(f"s{i:02}")
    shares = [set(course.graded("--share", f"{k}/4")) for k in range(4)]
    assert set().union(*shares) == {f"s{i:02}" for i in range(11)}
    assert sum(map(len, shares)) == 11
    # Of an array that counts from one.
    assert set(course.graded("--share", "4/4")) == shares[0]
    # More shares than submissions: the rest have nothing to do.
    assert not course.graded("--share", "15/20")


def test_progress_is_shown_on_a_terminal_alone(cb, course):
    for i in range(6):
        course.add(f"s{i}", "import time\ntime.sleep(0.5)\n" + HONEST)
    s = cb.session(*course.argv("-j", "1"), start=False)
    # A busy host may show few of its states, and each for a short time.
    s.wait(lambda: re.search(rb"\] [1-5] of 6.*left", s.raw), "the progress")
    s.wait_exit()
    assert "4 of 4" in s.screen_text() and "SUBMISSION" in s.screen_text()
    assert "] " not in s.screen_text(), s.screen_text()
    r = course.grade("-j", "1")
    assert b"\x1b" not in r.out and b"of 6" not in r.out and not r.err, r
