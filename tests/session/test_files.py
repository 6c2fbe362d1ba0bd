# SPDX-License-Identifier: MIT
"""Uploads, downloads and the commands for files."""
import os
import signal

import pytest

import hindered

# Root's front end gives up its capabilities, and root may read and write more.
pytestmark = pytest.mark.both


def test_a_file_survives_a_reset(session):
    assert session.run("open('notes', 'w').write('still here')") == "10"
    session.run(":reset", 40)
    assert session.run("open('notes').read()") == "'still here'"


def test_an_uploaded_file_can_be_used_and_a_result_downloaded(cb):
    cb.work.joinpath("grades.csv").write_text("name,points\nann,3\nbob,4\n")
    s = cb.session()
    out = s.run(":upload grades.csv")
    assert "grades.csv" in out and "/home/grades.csv" in out
    s.run("import csv; n = sum(int(r['points']) for r in"
          " csv.DictReader(open('grades.csv')))")
    s.run("open('sum.txt', 'w').write(str(n))")
    listing = s.run(":files")
    assert "grades.csv" in listing and "sum.txt" in listing
    out = s.run(":download sum.txt")
    assert "sum.txt" in out
    assert cb.work.joinpath("sum.txt").read_text() == "7"


def test_upload_takes_an_absolute_path_and_another_name(cb):
    source = cb.home / "data file.bin"
    source.write_bytes(bytes(range(256)))
    s = cb.session()
    s.run(f":upload '{source}' /home/in.bin")
    assert s.run("open('in.bin', 'rb').read() == bytes(range(256))") == "True"


def test_upload_takes_a_pattern(cb):
    for name in ("a.txt", "b.txt", "c.log"):
        cb.work.joinpath(name).write_text(name)
    s = cb.session()
    s.run(":upload *.txt")
    assert s.run("import os; sorted(os.listdir('/home'))") \
        == "['a.txt', 'b.txt']"


@pytest.mark.parametrize("kind", ["missing", "fifo", "device", "unreadable"])
def test_upload_of_anything_but_a_readable_file_is_refused(cb, kind):
    path = cb.work / "thing"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "unreadable":
        path.write_text("x")
        path.chmod(0)
    s = cb.session()
    out = s.run(":upload thing")
    assert "thing" in out and len(out.splitlines()) <= 4, out
    assert s.run("import os; os.listdir('/home')") == "[]"
    assert s.run("1 + 1") == "2"


def test_upload_larger_than_the_limit_leaves_no_file(cb):
    cb.work.joinpath("big").write_bytes(b"x" * 300_000)
    s = cb.session("--set", "files.max_file=100K")
    out = s.run(":upload big")
    assert "100 KiB" in out or "max_file" in out, out
    assert s.run("import os; os.listdir('/home')") == "[]"


def test_upload_that_fills_the_home_leaves_no_partial_file(cb):
    cb.work.joinpath("big").write_bytes(b"x" * 3_000_000)
    s = cb.session("--set", "home.size=1M")
    out = s.run(":upload big")
    assert out.strip()
    assert s.run("import os; os.listdir('/home')") == "[]"


def test_download_of_a_link_to_etc_passwd_is_refused(cb):
    s = cb.session()
    s.run("import os; os.symlink('/etc/passwd', 'link')")
    out = s.run(":download link")
    assert "link" in out
    assert not os.path.lexists(cb.work / "link")
    assert "root:" not in s.all_text()


def test_download_through_a_link_within_the_home_works(cb):
    s = cb.session()
    s.run("import os; open('real', 'w').write('ok'); os.symlink('real', 'l')")
    s.run(":download l")
    assert cb.work.joinpath("l").read_text() == "ok"
    assert not cb.work.joinpath("l").is_symlink()


@pytest.mark.parametrize("cell", [
    "import os; os.mkfifo('odd')",
    "import os; os.mkdir('odd')",
    "import os; os.symlink('/proc/self/mem', 'odd')",
    "import os; os.symlink('../etc/hosts', 'odd')",
    "import socket; socket.socket(socket.AF_UNIX).bind('odd')",
])
def test_download_of_anything_but_a_regular_file_is_refused(cb, cell):
    s = cb.session()
    s.run(cell)
    out = s.run(":download odd")
    assert "odd" in out, out
    assert not os.path.lexists(cb.work / "odd") \
        or (cb.work / "odd").is_dir() and not os.listdir(cb.work / "odd")
    assert s.run("1 + 1") == "2"


def test_download_does_not_overwrite_without_asking(cb):
    cb.work.joinpath("f").write_text("mine")
    s = cb.session()
    s.run("open('f', 'w').write('theirs')")
    s.type(":download f")
    s.expect(":download f")
    s.type("\r")
    s.wait(lambda: s.at_prompt() or "?" in s.screen.cursor_row(),
           "a prompt or a question")
    if not s.at_prompt():
        s.type("n\r")
        s.wait_prompt()
    assert cb.work.joinpath("f").read_text() == "mine"


def test_a_long_question_is_folded_at_words(cb):
    cb.work.joinpath("a-rather-long-name").write_text("mine")
    s = cb.session(size=(24, 40))
    s.run("open('a-rather-long-name', 'w').close()")
    row = s.enter(":download a-rather-long-name")
    s.expect_since(row, r"\[y/N\]")
    assert s.screen.rows(row, row + 2) == [
        "./a-rather-long-name is there already.", "Overwrite? [y/N]"]
    s.type("n")
    s.wait_prompt()
    assert s.screen.rows(row, row + 4) == [
        "./a-rather-long-name is there already.", "Overwrite? [y/N] n",
        "¦ [./a-rather-long-name is there already", "¦  and was left alone]"]


def test_overwriting_keeps_the_permissions(cb):
    for name in ("priv", "open", "cells.py"):
        cb.work.joinpath(name).write_text("old")
    cb.work.joinpath("priv").chmod(0o600)
    cb.work.joinpath("open").chmod(0o666)
    cb.work.joinpath("cells.py").chmod(0o700)
    s = cb.session()
    s.run("for n in ('priv', 'open', 'fresh'): "
          "print('new', file=open(n, 'w'))")
    for command in (":download priv", ":download open", ":save cells.py"):
        row = s.enter(command)
        s.expect_since(row, r"\[y/N\]")
        s.type("y")
        s.wait_prompt()
    s.run(":download fresh")
    umask = os.umask(0)
    os.umask(umask)
    modes = {n: cb.work.joinpath(n).stat().st_mode & 0o777
             for n in os.listdir(cb.work)}
    assert modes == {"priv": 0o600, "open": 0o666, "cells.py": 0o700,
                     "fresh": 0o666 & ~umask}
    assert cb.work.joinpath("priv").read_text() == "new\n"


def test_download_takes_a_pattern_and_a_directory(cb):
    (cb.work / "out").mkdir()
    s = cb.session()
    s.run("for n in 'ab': open(n + '.png', 'w').write(n)")
    s.run(":download *.png out")
    assert (cb.work / "out" / "a.png").read_text() == "a"
    assert (cb.work / "out" / "b.png").read_text() == "b"


def test_download_of_a_path_outside_the_home_is_refused(cb):
    s = cb.session()
    out = s.run(":download ../etc/passwd")
    assert out.strip()
    assert not (cb.work / "passwd").exists()


def test_file_names_with_escape_sequences_are_shown_escaped(cb):
    s = cb.session()
    s.run(r"open('a\x1b]0;owned\x07\nb', 'w').close()")
    out = s.run(":files")
    assert s.screen.titles == []
    assert "\\x1b" in out or "\\e" in out or "^[" in out, out


def test_show_prints_a_file_and_rm_removes_it(session):
    session.run("open('f', 'w').write('line one\\nline two\\n')")
    assert "line two" in session.run(":show f")
    session.run(":rm f")
    assert session.run("import os; os.listdir('/home')") == "[]"


def test_saved_cells_can_be_loaded_in_another_session(cb):
    s = cb.session()
    s.run("def twice(x):\n    return 2 * x")
    s.run("twice(4)")
    s.run(":save work.py")
    text = cb.work.joinpath("work.py").read_text()
    assert "def twice(x):" in text and "twice(4)" in text
    assert s.leave() == 0
    s = cb.session()
    s.run(":load work.py")
    assert s.run("twice(21)") == "42"


def test_a_script_that_was_loaded_and_saved_has_the_same_cells(cb):
    script = "# %% one\na = 1\n\n# %%\nb = 2\n\n"
    cb.work.joinpath("a.py").write_text(script)
    s = cb.session()
    s.run(":load a.py")
    s.run("c = 3")
    s.run(":save b.py")
    text = cb.work.joinpath("b.py").read_text()
    assert [line for line in text.split("\n") if line] == [
        "# %% one", "a = 1", "# %%", "b = 2", "# %%", "c = 3"]
    s.leave()
    for old, new in "bc", "cd":
        s = cb.session()
        s.run(f":load {old}.py")
        s.run(f":save {new}.py")
        s.leave()
        assert cb.work.joinpath(f"{new}.py").read_text() == text


def test_quit_warns_once_of_files_never_downloaded(cb):
    s = cb.session()
    s.run("open('notes.txt', 'w').write('x')")
    out = s.run(":quit")
    assert "has 1 file never downloaded: notes.txt · :quit again to leave" \
        in " ".join(out.replace("¦", "").split()), out
    s.enter(":quit")
    assert s.wait_exit() == 0


def ctrl_d(s):
    """What Ctrl-D says where the session goes on, on one line."""
    row = s.screen.here()
    s.type("\x04")
    s.wait(lambda: s.screen.here() > row and s.at_prompt(), "a question")
    return " ".join("".join(s.screen.rows(row)).replace("¦", " ").split())


def test_ctrl_d_asks_once_where_variables_would_be_lost(cb):
    s = cb.session()
    s.run("import os; a = b = 1")
    assert "[the session has 2 variables · Ctrl-D again to leave]" in ctrl_d(s)
    s.run("open('notes.txt', 'w').close()")  # the question comes again
    assert "2 variables and 1 file never downloaded: notes.txt · Ctrl-D again" \
        in ctrl_d(s)
    s.type("\x04")
    assert s.wait_exit() == 0


@pytest.mark.parametrize("args, cells, key", [
    (["-s", "session.confirm=no"], ["a = 1"], "\x04"),
    ([], ["import os", "1 + 1"], "\x04"),      # modules are no loss
    ([], [":undo"], "\x04"),
    ([], ["a = 1", "del a"], "\x04"),
    ([], ["a = 1", ":save s.py"], "\x04"),
    ([], ["a = 1", "f = open('a.txt', 'w')", "f.close()", ":download a.txt"],
     "\x04"),
    # They are typed on purpose.
    ([], ["a = 1"], "exit\r"), ([], ["a = 1"], ":quit\r"),
])
def test_leaving_asks_nothing_where_that_is_wanted_or_nothing_is_lost(
        cb, args, cells, key):
    s = cb.session(*args)
    for cell in cells:
        s.run(cell)
    s.type(key)
    assert s.wait_exit() == 0
    assert "again to leave" not in s.all_text()


def test_ctrl_d_asks_again_after_a_cell_that_was_not_saved(cb):
    s = cb.session("-s", "session.linger=0")
    s.run("a = 1")
    s.run(":save s.py")
    s.run("b = 2")
    assert ctrl_d(s).endswith("has 2 variables · Ctrl-D again to leave]>>>")


def test_exit_warns_once_of_files_never_downloaded(cb):
    s = cb.session()
    s.run("open('notes.txt', 'w').write('x')")
    assert "notes.txt" in s.run("exit")
    # A cell that goes on with the session: the warning comes again.
    assert "notes.txt" not in s.run("raise SystemExit(3)")
    assert "notes.txt" in s.run("exit(3)")
    s.enter("exit(4)")
    assert s.wait_exit() == 4


def test_an_arrow_key_at_a_question_means_no_and_types_nothing(session):
    session.run("open('a', 'w').close()")
    row = session.enter(":wipe")
    session.expect_since(row, r"\[y/N\]")
    session.type("\x1b[A")
    session.expect_since(row, "nothing was removed")
    assert session.run("1 + 1") == "2"


def test_messages_reach_the_terminal_when_output_goes_to_a_file(cb):
    out = cb.work / "out.txt"
    out.touch()
    s = cb.session(wrapper=("sh", "-c", 'exec "$@" > out.txt', "sh"),
                   start=False)

    def printed(text):
        s.wait(lambda: text in out.read_text(), f"{text!r} in the file")

    def enter(line):
        s.wait(lambda: s.terminal_modes() == s.before, "no cell")
        s.type(line + "\r")

    enter("print('one')")
    printed("one\n")
    enter("import os; os._exit(3)")
    s.expect("Python exited")
    enter(":rm missing")
    s.expect("missing: there is no such file in the home")
    enter("print(open('a', 'w').close())")
    printed("None\n")
    enter(":wipe")
    s.expect(r"Remove 1 file \(0 B\) from the home\? \[y/N\]")
    s.type("y")
    s.expect("the home is empty")
    enter(":quit")
    s.wait_exit()
    assert "[" not in out.read_text()


def test_the_download_option_of_a_session_works_even_after_sigterm(cb):
    (cb.work / "res").mkdir()
    s = cb.session("-d", "*.csv:res")
    s.run("for n in ('a.csv', 'b.csv', 'c.txt'): print(n, file=open(n, 'w'))")
    row = s.enter(":quit")
    s.expect_since(row, r"1 file never downloaded: c\.txt")
    s.run("print('more', file=open('d.csv', 'w'))")
    s.process.send_signal(signal.SIGTERM)
    assert s.wait_exit() == 128 + signal.SIGTERM
    assert sorted(os.listdir(cb.work / "res")) == ["a.csv", "b.csv", "d.csv"]
    assert "left alone" not in s.all_text()


def test_each_download_option_has_its_own_directory(cb):
    for name in ("x", "y"):
        cb.work.joinpath(name).mkdir()
    s = cb.session("-d", "a*:x", "-d", "a.txt:y")
    s.run("open('a.txt', 'w').write('result'); open('ab', 'w').write('b')")
    s.run(":download ab y")
    s.type(":quit\r")
    assert s.wait_exit() == 0
    assert [(cb.work / p).read_text() for p in ("x/a.txt", "y/a.txt", "x/ab")] \
        == ["result", "result", "b"]


def test_a_bad_download_directory_starts_no_session(cb):
    s = cb.session("-d", "*.csv:missing", start=False)
    assert s.wait_exit() == 2
    assert "cellblock: download to: missing" in s.all_text()


def test_limits_lists_the_limits_and_their_sources(session):
    out = session.run(":limits")
    for word in ("memory", "512 MiB", "processes", "64", "built in"):
        assert word in out, out


def test_who_lists_variables(cb):
    # Python has ten seconds to list them, in the place of one.
    session = cb.session(env=hindered.slow(cb.base))
    session.run("alpha = 5; beta = 'text'")
    out = session.run(":who")
    assert "alpha" in out and "int" in out and "beta" in out and "str" in out


def test_help_lists_every_command(cb):
    out = cb.session(size=(50, 80)).run(":help")
    for name in ("upload", "download", "files", "limits", "undo", "reset",
                 "quit", "history", "load", "save", "who", "usage"):
        assert f":{name}" in out, name


def test_an_unknown_command_is_named(session):
    out = session.run(":uplaod x")
    assert "uplaod" in out
    assert "SyntaxError" not in out


def test_rm_of_a_recursive_pattern_empties_the_home(session):
    session.run("import os; os.makedirs('a/b')")
    session.run("for n in ('a.txt', 'a/x', 'a/b/y', 'a-z', 'z'):"
                " open(n, 'w').close()")
    row = session.enter(":rm **")
    session.expect_since(
        row, r"Remove 5 files, 2 directories \(0 B\) from the home\?")
    session.type("n")
    session.expect_since(row, "nothing was removed")
    session.wait_prompt()
    assert "5 files, 2 directories removed" in session.run(":rm -f **")
    assert session.run("os.listdir('/home')") == "[]"


def test_download_works_from_a_directory_with_a_star_in_its_name(cb):
    s = cb.session()
    s.run("import os; os.mkdir('a*b'); open('a*b/out.png', 'w').close()")
    assert "→ ./out.png" in s.run(r":download a\*b/*.png")
    assert (cb.work / "out.png").exists()


def test_a_missing_upload_source_is_not_taken_for_the_destination(cb):
    for name in ("a.csv", "c.csv"):
        cb.work.joinpath(name).write_text(name)
    s = cb.session()
    out = s.run(":upload a.csv b.csv")
    assert "b.csv: No such file" in out, out
    assert "/home/b.csv is the place of that name" in out, out
    assert s.run("import os; os.listdir('/home')") == "[]"
    s.run("os.mkdir('d')")
    for there in ("d", "d/", "/home/d", "/home/d/", "new/"):
        s.run(f":upload c.csv {there}")
        where = "new" if there == "new/" else "d"
        assert s.run(f"os.listdir('/home/{where}')") == "['c.csv']", there
        s.run(f":rm /home/{where}/c.csv")
        assert s.run(f"os.listdir('/home/{where}')") == "[]", there


def test_a_name_with_or_without_home_means_the_same_file(cb):
    session = cb.session()
    session.run("import os; os.mkdir('d'); open('d/a', 'w').write('within')")
    for name in ("d/a", "./d/a", "/home/d/a"):
        assert session.run(f":show {name}") == "within"
        assert "d/a" in session.run(f":files {name}")
        assert "→ ./a" in session.run(f":download {name}"), name
        (cb.work / "a").unlink()
        assert "1 file removed" in session.run(f":rm {name}")
        session.run("open('d/a', 'w').write('within')")


def test_more_files_than_may_be_transferred_are_none(cb):
    s = cb.session("-s", "files.max_count=5")
    for i in range(8):
        (cb.work / f"up{i}").touch()
    assert "no more than 5 are transferred" in s.run(":upload up*")
    assert s.run("import os; os.listdir('/home')") == "[]"
    s.run("for i in range(9): open(f'd{i}', 'w').close()")
    out = s.run(":download d*")
    assert "9 files" in out and "no more than 5 are transferred" in out, out
    assert not list(cb.work.glob("d*"))
    assert s.run(":upload up[0-4]").count("→") == 5


def test_a_tree_is_transferred_up_to_the_size_of_the_home(cb):
    for i in range(150):
        path = cb.work / "tree" / f"d{i % 3}" / f"f{i}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(str(i))
    s = cb.session("-s", "home.files=400", size=(24, 120))
    row = next(r for r in s.run(":limits").split("\n") if "r, files" in r)
    assert row.split()[2] == "400" and "--set" in row, row
    assert "150 files" in s.run(":upload tree")
    s.run("import os; os.rename('tree', 'back')")
    assert "150 files" in s.run(":download back")
    assert (cb.work / "back/d2/f149").read_text() == "149"
    assert s.run(":rm -f back") and s.run("os.listdir()") == "[]"
    for i in range(300):
        (cb.work / "tree/d0" / f"more{i}").touch()
    assert "no more than 400 are transferred" in s.run(":upload tree")
    assert s.run("os.listdir()") == "[]"
    # A key that is set counts for trees as well.
    s = cb.session("-s", "files.max_count=149", size=(24, 120))
    row = next(r for r in s.run(":limits").split("\n") if "r, files" in r)
    assert row.split()[2] == "149", row
    assert "no more than 149 are transferred" in s.run(":upload back")


def test_download_through_a_link_shows_the_size_of_the_file(cb):
    s = cb.session()
    s.run("import os; open('f', 'w').write('y' * 5000); os.symlink('f', 'l')")
    assert "l  4.9 KiB  → ./l" in s.run(":download l")
    assert (cb.work / "l").stat().st_size == 5000


def test_a_destination_that_cannot_be_written_is_named(cb):
    if os.geteuid() == 0:
        there = cb.base / "theirs"
        there.mkdir(mode=0o755)
        os.chown(there, 65534, 65534)
    else:
        there = cb.base / "closed"
        there.mkdir(mode=0o555)
    s = cb.session(size=(24, 200))
    s.run("open('o', 'w').close()")
    for line in (f":download o {there}", f":save {there}/o"):
        out = s.run(line)
        assert f"{there}/o: create a file: Permission denied" in out, out
        assert ("has no capability" in out) == (os.geteuid() == 0), out


def test_load_limits_each_cell_of_a_script_and_not_the_script(cb):
    (cb.work / "many.py").write_bytes(
        b"\xef\xbb\xbfa = 1\n# %%\n" + b"a += 1\n" * 40 + b"# %%\na\n")
    s = cb.session("-s", "cell.source=300")
    assert s.run(":load many.py").split() == ["41"]
    (cb.work / "long.py").write_text("b = 1\n# %%\n" + "b += 1\n" * 50)
    assert "cell 2 of the script is longer than cell.source" \
        in s.run(":load long.py")
    assert s.run("b") == "1"


def test_show_prints_a_long_line_whole(cb):
    s = cb.session(size=(200, 100))
    s.run("open('wide', 'w').write('x' + 'é' * 6000 + '.')")
    out = s.run(":show wide").replace("\n", "")
    assert out == "x" + "é" * 6000 + ".", len(out)


def test_completed_host_files_are_sorted(cb):
    names = [f"f{c}" for c in "tkzaqmbyxc"]
    for name in names:
        (cb.work / name).touch()
    s = cb.session()
    s.type(":upload f\t\t")
    shown = s.expect(r"^f.( +f.){9}$").group().split()
    assert shown == sorted(names), shown


def test_a_tree_goes_up_and_comes_down_as_it_is(cb):
    tree = cb.work / "t"
    (tree / "sub").mkdir(parents=True)
    (tree / "empty").mkdir(mode=0o711)
    (tree / "sub" / "run").write_text("#!")
    (tree / ".hidden").write_text("h")
    (tree / "sub" / "run").chmod(0o750)
    for name in ("sub/run", "sub", "empty", "."):
        os.utime(tree / name, (1, 1000000007))
    (cb.work / "out").mkdir()
    s = cb.session()
    out = s.run(":upload t")
    assert "t/empty/" in out and "t/sub/run" in out, out
    assert s.run("import os; os.stat('t/sub/run').st_mode & 0o777 == 0o750,"
                 " os.stat('t/empty').st_mtime, os.listdir('t/empty')") \
        == "(True, 1000000007.0, [])"
    s.run("open('t/sub/new', 'w').close()")
    s.run(":download t out")
    there = cb.work / "out" / "t"
    assert sorted(p.name for p in there.rglob("*")) == [
        ".hidden", "empty", "new", "run", "sub"]
    assert (there / "sub" / "run").stat().st_mode & 0o777 == 0o750
    assert (there / "empty").stat().st_mode & 0o777 == 0o711
    assert (there / "empty").stat().st_mtime == 1000000007
    assert (there / "sub" / "run").stat().st_mtime == 1000000007


def test_a_directory_of_a_tree_that_cannot_be_read_is_named(cb):
    closed = cb.work / "t" / "closed"
    closed.mkdir(parents=True)
    (cb.work / "t" / "f").write_text("f")
    closed.chmod(0)
    s = cb.session()
    out = s.run(":upload t")
    assert "[t/closed: Permission denied]" in out and "t/f" in out, out
    assert s.run("import os; sorted(os.listdir('t'))") == "['closed', 'f']"


def test_a_pattern_keeps_directories_and_columns_are_aligned(cb):
    for n in ("1", "22"):
        (cb.work / "pp" / n).mkdir(parents=True)
        (cb.work / "pp" / n / "x.txt").write_text("x" * 100 * int(n))
    s = cb.session()
    assert s.run(":upload pp/*/x.txt").splitlines() == [
        "1/x.txt     100 B  → /home/1/x.txt",
        "22/x.txt  2.1 KiB  → /home/22/x.txt"]
    out = s.run(":upload pp/1/x.txt pp/22/x.txt")
    assert "pp/1/x.txt and pp/22/x.txt would both become x.txt" in out, out
    assert s.run("import os; sorted(os.listdir('/home'))") == "['1', '22']"


def test_an_upload_asks_before_it_overwrites(cb):
    cb.work.joinpath("f").write_text("mine")
    s = cb.session()
    s.run("print('theirs', end='', file=open('f', 'w'))")
    row = s.enter(":upload f")
    s.expect_since(row, r"/home/f is there already\. Overwrite\? \[y/N\]")
    s.type("n")
    s.expect_since(row, "was left alone")
    assert s.run("open('f').read()") == "'theirs'"
    row = s.enter(":upload f")
    s.expect_since(row, r"\[y/N\]")
    s.type("y")
    s.expect_since(row, "→ /home/f")
    assert s.run("open('f').read()") == "'mine'"
    s.run("print('again', end='', file=open('f', 'w'))")
    assert "→ /home/f" in s.run(":upload -f f")
    assert s.run("open('f').read()") == "'mine'"


def test_a_download_of_which_one_word_is_wrong_copies_nothing(cb):
    s = cb.session()
    s.run("for n in 'ab': open(n, 'w').close()")
    out = s.run(":download a b nodir")
    assert "nodir: there is no such file in the home" in out, out
    assert "nor a directory nodir on the host" in out, out
    assert not os.listdir(cb.work)
    (cb.work / "nodir").mkdir()
    s.run(":download a b nodir")
    assert sorted(os.listdir(cb.work / "nodir")) == ["a", "b"]


def test_many_files_are_one_line(cb):
    (cb.work / "t").mkdir()
    for i in range(40):
        (cb.work / "t" / f"f{i}").write_text("xx")
    s = cb.session()
    assert s.run(":upload t") == "40 files, 1 directory  80 B  → /home/t"
    (cb.work / "out").mkdir()
    assert s.run(":download t out") \
        == "40 files, 1 directory  80 B  → out/t"
    assert len(os.listdir(cb.work / "out" / "t")) == 40


def test_a_full_home_says_its_limit_and_what_is_free(cb):
    cb.work.joinpath("big").write_bytes(b"x" * 3_000_000)
    s = cb.session("--set", "home.size=1M", size=(24, 120))
    out = s.run(":upload big")
    assert "2.9 MiB are needed" in out and "of 1 MiB (home.size) 1 MiB are " \
        "free" in out, out
    assert s.run("import os; os.listdir('/home')") == "[]"


def test_rm_of_a_directory_asks_and_of_a_file_does_not(session):
    s = session
    s.run("import os; os.makedirs('d/e'); open('d/f', 'w').write('x')")
    s.run("open('g', 'w').close()")
    row = s.enter(":rm d")
    s.expect_since(
        row, r"Remove 1 file, 2 directories \(4 KiB\) from the home\? \[y/N\]")
    s.type("n")
    s.expect_since(row, "nothing was removed")
    assert "1 file removed" in s.run(":rm g")
    assert "x: there is no such file" in s.run(":rm -f d x")
    assert s.run("os.listdir('/home')") == "['d']"
    assert "1 file, 2 directories removed" in s.run(":rm -f d")
    assert s.run("os.listdir('/home')") == "[]"
