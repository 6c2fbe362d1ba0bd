# SPDX-License-Identifier: MIT
"""The transcript of all that a student does over ssh."""
import re

import pytest

import hosttree


def only(lab):
    """The transcript, once it has its last line."""
    path, = lab.server.transcripts.glob("*.log")
    assert path.stat().st_uid == lab.user.pw_uid
    return hosttree.until(
        lambda: (text := path.read_text()) and
        re.search(r"ended with status \d+, \d{10}\s*\Z", text) and text,
        lambda: f"the last line of {path.read_text()}")


def head(lab, what):
    return (rf"\A\n# (\w{{16}}) {what} of {lab.user.pw_name} from 127\.0\.0\.1,"
            r" \d{10}, cellblock \S+\n")


def test_a_session_is_written_down_from_head_to_end(written_lab):
    s = written_lab.session().start()
    s.run("x = 41")
    s.run(":limits")
    s.run("import os; os.kill(os.getpid(), 11)")
    s.run(r"print('\x1b[31mred\x1b]0;title\x07')")
    assert s.leave() == 0
    text = only(written_lab)
    mark = re.match(head(written_lab, r"session 1"), text)[1]
    ours = re.findall(f"^# {mark} (.*)$", text, re.M)
    for line in ("cell 1, ", "output", ":limits", "crashed: Segmentation"):
        assert any(x.startswith(line) for x in ours), (line, ours)
    assert re.fullmatch(r"ended with status 0, \d{10}", ours[-1]), ours
    # A terminal that shows it does nothing.
    assert r"\x1b[31mred\x1b]0;title\x07" in text
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", text)


@pytest.mark.parametrize("how", ["command", "program", "limit"])
def test_a_program_is_written_down(written_lab, how):
    if how == "command":
        r = written_lab.run("input() * 3", stdin=b"abc\n")
    elif how == "program":
        r = written_lab.run(stdin=b"print('abc' * 3)\nimport sys; sys.exit(7)")
    else:
        r = written_lab.run("print('abc' * 3, flush=True)\n"
                            "import time; time.sleep(99)")
    text = only(written_lab)
    mark = re.match(head(written_lab, "program"), text)[1]
    ours = [re.sub(r"\d{10}", "T", x)
            for x in re.findall(f"^# {mark} (.*)$", text, re.M)]
    assert re.search("^'?abcabcabc'?$", text, re.M), text
    if how == "command":
        assert ours[1:] == ["cell 1, T", "output", "input", "output",
                            "ended with status 0, T"], ours
        assert "input() * 3" in text and "\nabc\n" in text
    elif how == "program":
        assert ours[1:] == ["input", "output", "ended with status 7, T"], ours
        assert "sys.exit(7)" in text and r.returncode == 7
    else:
        assert "time limit: 10 s" in ours[-2], ours
        assert ours[-1] == "ended with status 137, T"


@pytest.mark.sampled(2)
def test_a_login_without_programs_has_sessions(sessions_lab):
    for r in sessions_lab.run("1 + 1"), sessions_lab.run(stdin=b"print(2)"):
        assert r.returncode == 78 and r.stdout == b"", r
        assert b"policy.programs = no" in r.stderr, r
    s = sessions_lab.session().start()
    assert s.run("6 * 7") == "42"


def test_a_file_goes_into_a_directory_that_nobody_may_list(written_lab):
    given = written_lab.server.given
    s = written_lab.session().start()
    name = f"{written_lab.kind}.txt"
    s.run(f"open('{name}', 'w').write('6 * 7')")
    said = s.run(f":download {name} {given}/")
    assert (given / name).read_text() == "6 * 7", said
    tree = f"d-{written_lab.kind}"
    s.run(f"import os; os.makedirs('{tree}/e'); "
          f"open('{tree}/e/f', 'w').close()")
    said = s.run(f":download {tree} {given}/")
    assert (given / tree / "e/f").exists(), said
    s.leave()
