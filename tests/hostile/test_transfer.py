# SPDX-License-Identifier: MIT
"""A home whose names, kinds and sizes are made to hurt whoever copies it."""
import os
import stat

from deep import DEEP


def below(place):
    """Every entry, as bytes: what is there, not what it is called."""
    found = []
    for top, dirs, files in os.walk(os.fsencode(place)):
        found += [os.path.join(top, name) for name in dirs + files]
    return found


def test_no_name_leaves_the_target_or_reaches_the_terminal(cb):
    (cb.work / "out").mkdir()
    s = cb.session()
    s.run("import os\nos.makedirs('t')\nos.chdir('/home/t')")
    s.run(r"names = [b'..\x01', b'...', b'-rf', b'a\nb', b'\x1b]0;owned\x07',"
          r" b'\xff\xfe', '\u202egnp'.encode(), b'~', b'$HOME', b'x' * 255,"
          r" b'\x9b31m', b' ', b'.', b'..']")
    s.run("for n in names:\n    try: open(n, 'w').close()\n"
          "    except IsADirectoryError: pass")
    s.run("os.mkdir(b'd\\x1b[2J'); open(b'd\\x1b[2J/f', 'w').close()")
    assert s.run("os.chdir('/home'); len(os.listdir('t'))") == "13"
    s.run(":download t out")
    found = below(cb.work / "out")
    assert len(found) == 1 + 13 + 1, found
    for path in found:
        name = os.path.basename(path).decode("utf-8")
        assert name.isprintable() and name not in (".", ".."), path
    assert os.listdir(cb.work) == ["out"]
    assert s.screen.titles == []
    assert s.run("1 + 1") == "2"


def test_a_tree_brings_no_link_no_device_and_no_set_id_bit(cb):
    (cb.work / "out").mkdir()
    s = cb.session(size=(24, 120))
    s.run("import os, socket; os.mkdir('t')\n"
          "open('t/f', 'w').write('x'); os.link('t/f', 't/hard')")
    s.run("os.chmod('t/f', 0o6755); os.chmod('t', 0o1777)\n"
          "os.mkfifo('t/fifo'); socket.socket(socket.AF_UNIX).bind('t/sock')")
    s.run("os.symlink('/etc/passwd', 't/abs'); os.symlink('..', 't/up')\n"
          "os.symlink('loop', 't/loop'); os.symlink('f', 't/in')")
    s.run("os.truncate(os.open('t/sparse', os.O_CREAT | os.O_RDWR), 8 << 20)")
    out = s.run(":download t out", 40)
    for name in ("fifo", "sock", "abs", "up", "loop"):
        assert f"t/{name}" in out, out
    there = {p: os.lstat(p) for p in below(cb.work / "out")}
    assert sorted(os.path.basename(p) for p in there) == [
        b"f", b"hard", b"in", b"sparse", b"t"]
    for path, st in there.items():
        assert stat.S_ISREG(st.st_mode) or path.endswith(b"/t"), path
        assert not st.st_mode & 0o7000, path
        assert st.st_mode & 0o022 == 0, path
        assert path.endswith(b"/t") or st.st_nlink == 1, path
    assert (cb.work / "out/t/sparse").stat().st_size == 8 << 20


def test_no_time_of_a_file_is_too_far_away(cb):
    (cb.work / "out").mkdir()
    s = cb.session()
    s.run("import os; os.mkdir('t')")
    s.run("for n, ns in enumerate((-1, -2**62, 2**62, 2**63 - 1, -2**63)):\n"
          "    open(f't/{n}', 'w').close()\n"
          "    os.utime(f't/{n}', ns=(0, ns))")
    s.run("import ctypes, struct\n"
          "for n, at in enumerate((2**62, -2**62)):\n"
          "    open(f't/far{n}', 'w').close()\n"
          "    ctypes.CDLL(None).utimensat(-100, f't/far{n}'.encode(),"
          " struct.pack('4q', 0, 0, at, 5), 0)")
    assert "t/far0" in s.run(":download t out")
    assert len(os.listdir(cb.work / "out" / "t")) == 7
    (cb.work / "far").touch()
    os.utime(cb.work / "far", (0, 2**33))
    assert "/home/far" in s.run(":upload far")
    assert s.run("os.stat('far').st_mtime == 2**33") == "True"


def test_a_tree_too_deep_to_name_takes_nothing_else_along(cb):
    (cb.work / "out").mkdir()
    s = cb.session(size=(24, 120))
    s.run("import os")
    s.run(DEEP)
    s.run("deep(3900); open('mine', 'w').close(); None")
    assert "mine" in s.run(":download mine out")
    row = s.enter(":rm *")
    s.expect_since(row, "Remove more than .* from the home")
    s.type("y")
    s.expect_since(row, "removed")
    s.wait_prompt()
    assert s.run("os.listdir('/home')") == "[]"
    s.run("deep(300)")
    s.run(":download d out", 40)
    depth = sum(len(dirs) for _, dirs, _ in os.walk(cb.work / "out"))
    assert depth == 300


def test_a_copy_that_is_interrupted_leaves_no_half_of_a_file(cb):
    with open(cb.work / "big", "wb") as f:
        f.truncate(5 << 30)    # it is interrupted after half a second
    s = cb.session("-M", "8G", "--set", "home.size=6G",
                   "--set", "files.max_file=6G", size=(24, 120))
    row = s.enter(":upload big")
    s.expect_since(row, r"\[#*-+\]")
    s.type("\x03")
    s.expect_since(row, "interrupted · 0 files uploaded, nothing is half there")
    s.wait_prompt()
    assert s.run("import os; os.listdir('/home')") == "[]"
    assert "in 0 files" in s.run(":usage")
