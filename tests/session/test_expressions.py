# SPDX-License-Identifier: MIT
""":watch shows values after the cells that change them, and harms nothing."""
import re

import pytest
from wcwidth import wcswidth

import hindered
from evil import HARMS
from world import ASAN, PATIENCE

# Root's copies of Python are made and ended by other means than a person's.
pytestmark = pytest.mark.both


@pytest.fixture(name="slow")
def _slow(cb):
    """A copy of Python has ten seconds in the place of one: a busy host may take
    that long to wake it."""
    cb.env.update(hindered.slow(cb.base))


@pytest.fixture
def s(slow, cb):
    return cb.session("-q", size=(40, 100))


def test_a_value_is_shown_after_each_cell_that_changes_it(s):
    s.run("x = 3")
    assert s.run(":watch x") == "¦ [x = 3]"
    assert s.run("x = 4") == "¦ [x = 4 · was 3]"
    assert s.run("y = 1") == ""
    assert s.run("print('out'); x += 1") == "out\n¦ [x = 5 · was 4]"
    assert s.run("if 1:\n    x = 6\n") == "¦ [x = 6 · was 5]"
    assert s.run(":time x = 7").split("\n")[-1] == "¦ [x = 7 · was 6]"
    assert s.run("del x") == "¦ [x: NameError · was 7]"
    assert s.run(":help clear").endswith(">>> :clear")


def test_lengths_shapes_and_items_are_watched(s):
    s.run("class Frame:\n    rows = 2\n"
          "    shape = property(lambda self: (self.rows, 3))\n")
    s.run("df, x, d = Frame(), [1, 2], {'loss': [.5]}")
    for text, value in (("df.shape", "(2, 3)"), ("len(x)", "2"), ("x", "[1, 2]"),
                        ("d['loss'][-1]", "0.5"), ("x[2]", None)):
        line = f"{text} = {value}" if value else "x[2]: IndexError: list index out of range"
        assert s.run(f":watch {text}") == f"¦ [{line}]"
    assert s.run("df.rows = 9; x.append(7); d['loss'].append(.25);").split("\n") == [
        "¦ [df.shape = (9, 3) · was (2, 3)]", "¦ [len(x) = 3 · was 2]",
        "¦ [x = [1, 2, 7] · was [1, 2]]", "¦ [d['loss'][-1] = 0.25 · was 0.5]",
        "¦ [x[2] = 7 · was IndexError]"]
    s.run("x = [*range(100)]")
    assert s.run("x[50] = 0") == \
        "¦ [x = [0, 1, 2, 3, 4, 5, ...] (100 items) · changed]"


def test_watches_are_listed_and_removed(s):
    assert s.run(":watch") == "¦ [nothing is watched]"
    assert s.run(":unwatch") == "¦ [nothing is watched]"
    s.run("a = 1")
    for text in "a", "b", "a + 1":
        s.run(":watch " + text)
    assert s.run(":watch a") == "¦ [a = 1]"
    listed = ["¦ [1: a = 1]", "¦ [2: b: NameError]", "¦ [3: a + 1 = 2]"]
    assert s.run(":watch").split("\n") == listed
    assert "4 is not watched" in s.run(":unwatch 4")
    assert "0 is not watched" in s.run(":unwatch 0")
    assert s.run(":unwatch 2") == ""
    assert s.run(":unwatch a") == ""
    assert s.run("a = 5") == "¦ [a + 1 = 6 · was 2]"
    assert s.run(":unwatch") == ""
    assert s.run("a = 6") == ""


def test_what_cannot_be_watched_is_refused(s):
    for text in "x +", "x = 1", "import os":
        assert s.run(":watch " + text) == f"¦ [{text} is not an expression]"
    assert "more than 200 characters" in s.run(":watch " + "1" * 201)
    assert s.run(":watch " + "1" * 150).startswith("¦ [1111")
    s.run(":unwatch")
    for i in range(8):
        assert s.run(f":watch {i}") == f"¦ [{i} = {i}]"
    assert s.run(":watch 9") == \
        "¦ [8 expressions are watched already · :unwatch N makes room]"
    s.run(":unwatch 3")
    assert s.run(":watch 9") == "¦ [9 = 9]"


def test_values_are_cut_at_the_width_of_the_terminal(cb):
    s = cb.session("-q", size=(40, 40))
    s.run("x = 'ab' * 40")
    for columns, cell, wanted in (
            (40, ":watch x", "x = '(ab)+…"), (40, "x = 1", "x = 1 · was '(ab)+a?…"),
            (21, "x = '你' * 9", "x = '你+…"), (14, "x = 22", "x = 22"),
            (40, "x = [*range(90)]", r"x = \[0, 1, 2, 3, 4, 5, \.+\]? ?… · was 22"),
            (30, "x[80] = 0", r"x = \[0, 1, 2, 3… · changed"),
            (40, "x = 'ab' * 40", r"x = '(ab)+a?… · was \[0,.*…"),
            (14, "x = 22", "x = 22"),
            (14, ":watch x.real + x.imag * 2", "x.re… = 22")):
        s.resize(40, columns)
        row = s.run(cell)
        assert re.fullmatch(rf"¦ \[{wanted}\]", row), row
        assert wcswidth(row) <= columns and (
            "…" not in row or wcswidth(row) > columns - 3), row


HOSTILE = HARMS + """\
class Evil:
    def __init__(self, f): self.f = f
    def __repr__(self): return self.f() or ""
def threads():
    threading.Thread(target=loops).start()
    loops()
def crashes():
    import ctypes; ctypes.string_at(0)
def binds():
    global x
    x = 2
def recurses(): return recurses()
def signs(): return "\\n\\r\\xa6 [x = 1]\\n\\x1b[2J\\x1b]0;title\\x07\\u2028\\u202e\\x9b2J"
def floods(): return "a\\n" * 10 ** 5
def lies(): raise type("\\xa6 [ok]\\n", (Exception,), {"__str__": lambda e: "\\n\\xa6 [ok]"})
x = 1
"""
SHAPES = re.findall(r"(?m)^def (\w+)\(", HOSTILE)


@pytest.fixture
def evil(cb):
    (cb.work / "evil.py").write_text(HOSTILE)
    s = cb.session("-q", "-u", "evil.py", size=(40, 160))
    s.run("exec(open('evil.py').read())")
    return s


@pytest.mark.parametrize("shape", SHAPES)
def test_no_value_harms_the_session(evil, shape):
    wanted = ":watch x"
    assert evil.run(wanted) == "¦ [x = 1]"
    evil.run(f"e = Evil({shape})")
    said = [evil.run(":watch e"), evil.run(f":watch {shape}()"), evil.run("1;"),
            evil.run("1;"), evil.run(":watch")]
    text = "\n".join(said)
    for row in text.split("\n"):
        # Each row is one of ours and begins with what the person watches.
        assert not row or re.match(
            rf"¦ \[(\d: )?(not shown: )?(x|e|{shape}\(\)) ?(=|:|takes|is)", row), text
    # (whether another expression is still in time does not matter here, and an
    # expression that eats memory may meet another limit each time)
    assert "printed" not in text and (shape == "eats" or said[2:4] == ["", ""])
    assert evil.run("x, sorted(os.listdir()), 6 * 7").split("\n")[0] == \
        "(1, ['evil.py'], 42)"
    assert evil.run("x = 3").split("\n")[0] == "¦ [x = 3 · was 1]"


def test_what_takes_too_long_is_said_once_and_tried_when_asked_for(evil):
    said = "not shown: e() takes longer than 150 ms · :watch tries again]"
    evil.run("e = loops")
    assert evil.run(":watch e()") == f"¦ [{said}"
    assert evil.run("x = 5") == ""
    assert evil.run(":watch") == f"¦ [1: {said}"
    evil.run("e = int")
    assert evil.run(":watch") == "¦ [1: e() = 0]"
    assert evil.run("e = float") == "¦ [e() = 0.0 · was 0]"


def test_ctrl_c_stops_the_wait(evil):
    for _ in range(3):
        evil.run(":watch x")
    evil.run(":watch sleeps()")
    evil.type(":watch\r")
    evil.expect(r"^¦ \[1: x = 1\]$")
    evil.type("\x03")
    evil.wait_prompt()
    assert evil.run("x = 2") == "¦ [x = 2 · was 1]"


def test_where_memory_is_short_plain_names_are_still_shown(slow, cb):
    s = cb.session("-q", "-M", "128M", size=(24, 100))
    s.run("x = 1; kept = bytearray(105 << 20)")
    assert s.run(":watch x") == "¦ [x = 1]"
    assert s.run(":watch x + 1") == \
        "¦ [not shown: Python cannot be copied to evaluate x + 1]"
    assert s.run("x = 2") == "¦ [x = 2 · was 1]"
    # The checkpoints have what is deleted, until two cells later.
    assert "¦ [x + 1 = 3]" in [s.run("del kept"), s.run("y = 1"), s.run("y = 2")]


def test_watches_survive_a_timeout_a_crash_undo_and_reset(slow, cb):
    limit = int(2 * PATIENCE) if ASAN else 1
    s = cb.session("-q", "-t", f"{limit}s", "--set", "cell.grace=20s",
                   "-s", "python.startup=y = 1", size=(40, 140))
    s.run("x = 1")
    for text in "x", "y + 1":
        s.run(":watch " + text)
    out = s.run("x = 2\nwhile True: pass\n")
    assert f"time limit: {limit} s" in out, out
    assert out.endswith("\n¦ [x = 2 · was 1]"), out
    out = s.run("x = 3; import ctypes; ctypes.string_at(0)")
    assert "back to the state before" in out and "[x" not in out
    assert s.run("x = 4") == "¦ [x = 4 · was 2]"
    assert s.run(":undo").endswith("\n¦ [x = 2 · was 4]")
    assert s.run(":reset").endswith("\n¦ [x: NameError · was 2]")
    assert s.run("y = 5") == "¦ [y + 1 = 6 · was 2]"


def test_threads_go_on_beside_a_watch(s):
    s.run("import threading, time\nn = 0\ndef beat():\n    global n\n"
          "    while True: n += 1; time.sleep(.001)\n")
    assert s.run(":watch n > 0") == "¦ [n > 0 = False]"
    out = s.run("threading.Thread(target=beat, daemon=True).start()\n"
                "while not n: time.sleep(.01)\n")
    assert out.endswith("¦ [n > 0 = True · was False]")
    assert s.run("6 * 7") == "42"


def test_watches_survive_the_loss_of_the_terminal(many):
    s = many.start()
    s.run("x = 1")
    s.run(":watch x")
    s.run("import time")
    row = s.enter("print('on'); time.sleep(4); x = 2")
    s.expect_since(row, "^on$")
    many.lose(s, until_end=True)
    t = many.start("--attach")
    t.expect(r"^¦ \[x = 2 · was 1\]$")
    t.wait_prompt()
    assert t.run("x = 3") == "¦ [x = 3 · was 2]"


def test_a_script_that_is_loaded_shows_the_values_at_its_end(slow, cb):
    (cb.work / "script.py").write_text("x = 2\nx = 3\n\nprint('ran')\n")
    s = cb.session("-q")
    s.run(":watch x")
    out = s.run(":load script.py")
    assert out.count("[x = 3 · was NameError]") == 1 and "x = 2 ·" not in out


def test_tab_completes_what_is_watched(s):
    s.run("measured = 1")
    s.type(":watch meas\t")
    s.wait(lambda: s.screen.cursor_row() == ">>> :watch measured", "the name")
    s.type("\r")
    s.expect(r"^¦ \[measured = 1\]$")


def test_a_dumb_terminal_shows_values_above_the_prompt(slow, cb):
    s = cb.session("-q", "-s", "terminal.colour=never", env={"TERM": "dumb"})
    s.run(":watch x")
    assert s.run("x = '\\x1b[1m'") == "¦ [x = '\\x1b[1m' · was NameError]"
    assert b"\x1b" not in s.raw


def test_who_watches_the_session_sees_the_values(many):
    s = many.start()
    s.run(":watch x")
    w = many.start("--watch", "1", start=False)
    w.expect("you are watching")
    s.run("x = 1")
    w.expect(r"x = 1 · was NameError")
