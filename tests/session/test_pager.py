# SPDX-License-Identifier: MIT
"""Long texts in pages: keys, search, size, and the screen afterwards."""
import re
import signal

import pytest

from graphics import Unseen
from world import PATIENCE

STATUS = r"^-- ({}) · q leaves"


def rows_shown(s):
    """The rows above the pager's own; at least one, also while it draws."""
    return s.screen.shown()[:-1] or [""]


def opened(cb, cell="for i in range(60): print(i)", **more):
    """A session with the output of a cell in the pager, at its top."""
    more.setdefault("size", (10, 80))
    first = more.pop("before", ())
    s = cb.session(**more)
    for each in first:
        s.run(each)
    s.run(cell)
    s.shown_before = s.screen.shown()[-3:]
    s.type(":out\r")
    s.wait(lambda: s.screen.alternate, "the pager")
    s.expect(r"^-- \d+%")
    return s


def expect_top(s, first):
    rows = [str(i) for i in range(first, first + 9)]
    s.wait(lambda: rows_shown(s) == rows, f"rows from {first} on")


def test_a_page_is_as_long_as_the_resized_terminal(cb):
    s = cb.session(size=(24, 80))
    s.run("for i in range(30): print(i)")
    s.resize(10, 80)
    s.type(":out\r")
    s.expect(STATUS.format(r"\d+%"))
    expect_top(s, 0)
    s.type("q")
    s.wait_prompt()


def test_each_key_goes_as_far_as_it_says(cb):
    s = opened(cb)
    for key, first in (("\x1b[B", 1), ("\x1bOB", 2), ("\r", 3), ("j", 4),
                       ("\x1b[D", 4), ("x", 4), ("é", 4), ("\x1b[6~", 13),
                       (" ", 22), ("d", 27), ("u", 22), ("k", 21),
                       ("\x1b[A", 20), ("b", 11), ("\x1b[5~", 2), ("G", 51),
                       (" ", 51), ("j", 51), ("\x1b[H", 0), ("b", 0),
                       ("\x1b[F", 51), ("g", 0)):
        s.type(key)
        expect_top(s, first)
    s.type("G")
    s.expect(STATUS.format("end"))
    s.type("q")
    s.wait_prompt()


@pytest.mark.parametrize("key", ["q", "\x1b", "\x03"])
def test_leaving_leaves_the_screen_as_it_was(cb, key):
    s = opened(cb)
    s.type("  ")
    expect_top(s, 18)
    s.type(key)
    s.wait_prompt()
    assert s.screen.shown()[-4:] == s.shown_before[-3:-1] + [">>> :out", ">>>"]
    assert s.run("6 * 7") == "42"


def test_a_terminal_with_one_screen_keeps_the_part_seen_last(cb):
    s = cb.session(size=(10, 80))
    s.screen.single = True
    s.run("for i in range(60): print(i)")
    s.type(":out\r")
    expect_top(s, 0)
    s.type(" ")
    expect_top(s, 9)
    s.type("q")
    s.wait_prompt()
    assert s.screen.shown()[-8:] == [*map(str, range(11, 18)), ">>>"]
    assert "59" in s.screen.rows(), "what came before has scrolled away"


@pytest.mark.parametrize("env", [{}, {"NO_COLOR": "1"}])
def test_a_search_goes_down_and_up_and_is_highlighted(cb, env):
    s = opened(cb, "for i in range(60): print('a.c' if i % 20 == 7 "
               "else f'Row {i} abc')", env=env)

    def reverse(y, x):
        return s.screen.buffer[y][x].reverse

    s.type("/a.c")
    s.expect(r"^/a\.c$")
    s.type("\r")
    s.wait(lambda: rows_shown(s)[:2] == ["a.c", "Row 8 abc"], "row 7")
    assert reverse(0, 0) and reverse(0, 2) and not reverse(0, 3)
    assert not reverse(1, 6)
    for key, first in (("n", 27), ("n", 47), ("N", 27)):
        s.type(key)
        s.wait(lambda: rows_shown(s)[:2] == ["a.c", f"Row {first + 1} abc"],
               f"row {first}")
    s.type("?row 1\r")
    s.wait(lambda: rows_shown(s)[0] == "Row 19 abc", "row 19")
    assert reverse(0, 0) and reverse(0, 4) and not reverse(0, 5)
    s.type("/ROW\r")
    s.expect("^-- not found below --")
    s.type("/Row 5\r")
    s.wait(lambda: rows_shown(s)[0] == "Row 50 abc", "row 50")
    s.type("/no\x03")
    s.expect(STATUS.format(r"\d+%"))
    s.type("q")
    s.wait_prompt()


def test_the_pager_follows_the_window(cb):
    s = opened(cb, "for i in range(40): print(f'{i:02}' * 15)")
    s.type("jjjjj")
    s.wait(lambda: rows_shown(s)[0] == "05" * 15, "row 5")
    for rows, columns in (7, 20), (24, 200), (10, 80):
        s.resize(rows, columns)
        first = ("05" * 15)[:columns]
        s.wait(lambda: len(s.screen.shown()) == rows and
               s.screen.shown()[0] == first and
               s.screen.shown()[-1].startswith("--"), f"{rows}x{columns}")
    s.type("q")
    s.wait_prompt()
    assert s.run("6 * 7") == "42"


@pytest.mark.parametrize("columns", [20, 200])
def test_wide_characters_and_long_lines_are_wrapped(cb, columns):
    s = opened(cb, "print(w+x)", size=(12, columns), before=(
        "w = '漢' * 2000", "x = 'x' * 2000"))
    s.wait(lambda: len(rows_shown(s)) == 11, "a page")
    # The emulator has the second half of a wide character as a cell of its own.
    assert all(r.replace("\0", "") == "漢" * (columns // 2)
               for r in rows_shown(s))
    s.type("G")
    s.expect("^-- end")
    assert rows_shown(s)[-1] == "x" * columns
    s.type("q")
    s.wait_prompt()


def test_a_text_of_a_megabyte_is_searched_from_end_to_end(cb):
    s = cb.session(size=(24, 80))
    s.enter("print('x' * 500_000 + ' here ' + '漢' * 160_000); print('all of it')")
    s.graphics = Unseen
    s.wait(lambda: b"\nall of it" in s.raw, "the end of it")
    s.graphics = None
    s.type("\r:out 1\r")
    s.wait(lambda: s.screen.alternate, "the pager")
    s.expect(r"^-- \d+%")
    s.type("/here\r")
    s.wait(lambda: " here " in rows_shown(s)[0], "the place")
    s.type("G")
    s.expect("^-- end")
    s.type("?here\r")
    s.wait(lambda: " here " in rows_shown(s)[0], "the place")
    s.type("g/there\r")
    s.expect("^-- not found below --")
    s.type("q")
    s.wait_prompt()


def test_hostile_text_is_harmless_in_pages(cb):
    s = opened(cb, r"print('\x1b]0;title\x07\x1b[?1049l\x9b2J\u202e' * 99)")
    assert r"\x1b]0;title\x07" in s.screen.shown()[0]
    s.type("/\x1b[31m\\x9B2j\r/\\x9b2j\r")
    s.wait(lambda: any(c.reverse for c in s.screen.buffer[0].values()),
           "the place")
    assert s.screen.alternate and not s.screen.titles
    s.type("q")
    s.wait_prompt()


def test_other_texts_are_paged_too(cb):
    s = cb.session(size=(10, 80))
    s.run("open('f.txt', 'w').write('\\n'.join(map(str, range(60))))")
    for command in (":show f.txt", ":doc int"):
        s.type(command + "\r")
        s.wait(lambda: s.screen.alternate, "the pager")
        s.expect(STATUS.format(r"\d+%"))
        s.type("q")
        s.wait_prompt()


def test_an_interrupt_closes_one_page_and_not_the_next(cb):
    s = opened(cb, "for i in range(30): print(i)")
    for again in True, False:
        s.process.send_signal(signal.SIGINT)
        s.wait_prompt()
        assert not s.screen.alternate
        if again:
            s.type(":out\r")
            s.wait(lambda: s.screen.alternate, "the pager")
            expect_top(s, 0)


def test_a_signal_at_the_pager_ends_the_session_with_its_status(cb):
    s = opened(cb, "for i in range(30): print(i)")
    s.process.send_signal(signal.SIGTERM)
    assert s.wait_exit() == 128 + signal.SIGTERM
    assert not s.screen.alternate
    assert not re.search("^-- ", s.screen_text(), re.M)


# ---- values that a cell does not show whole ----

CUT = "\N{BROKEN BAR} [the first 1,000 items are shown · :out %d for all]"


@pytest.mark.parametrize("cell, end, whole", [
    ("list(range(5000))", " 997, 998, 999, ...]", "4998, 4999]"),
    ("tuple(range(1001))", " 999, ...)", " 999, 1000)"),
    ("set(range(1001))", " 999, ...}", " 999, 1000}"),
    ("{i: i for i in range(1001)}", "\n 999: 999,\n ...}", " 1000: 1000}"),
    ("{1: [0] * 1500}", "0, ...]}", "0, 0]}")])
def test_a_value_of_many_items_is_cut_and_out_has_all(cb, cell, end, whole):
    s = cb.session(size=(12, 200))
    out = s.run(cell)
    assert out.endswith(end + "\n" + CUT % 1)
    for _ in range(2):  # and it is no cell that others see
        s.type(":out\r")
        s.wait(lambda: s.screen.alternate, "the pager")
        s.type("G")
        s.wait(lambda: rows_shown(s)[-1].endswith(whole), "the end")
        s.type("q")
        s.wait_prompt()
    assert s.run(f"_ == {cell}") == "True"
    assert s.run(f"Out[1] == {cell}, list(Out)") == "(True, [1, 2])"


def test_what_is_not_cut_is_shown_as_it_is(cb):
    s = cb.session(size=(50, 200))
    for cell in ("list(range(1000))", "[[1] * 600] * 2", "[r := [], r][0]",
                 "l = [1]; l.append(l); l"):
        out = s.run(cell)
        assert "1,000" not in out and "..." not in out.replace("[...]", "")
    assert CUT[:8] not in s.run("print(list(range(2000)))")
    assert s.run("len(repr(list(range(2000))))") == "10890"


def test_out_has_what_was_written_before_a_value_that_is_cut(cb):
    s = cb.session(size=(12, 80))
    s.run("print('before')\nlist(range(2000))")
    s.type(":out\r")
    s.wait(lambda: s.screen.alternate, "the pager")
    s.wait(lambda: rows_shown(s)[0] == "before", "what was written")
    s.type("G")
    s.wait(lambda: rows_shown(s)[-1].endswith(" 1999]"), "the end")
    s.type("q")
    s.wait_prompt()
    s.run("Out.clear()")
    s.type(":out 1\r")
    s.wait(lambda: s.screen.alternate, "the pager")
    s.type("G")
    s.wait(lambda: rows_shown(s)[-1].endswith(" ...]"), "the cut end")
    s.type("q")
    s.expect("value of cell 1 is not there any more: this was shown of it")


@pytest.mark.limit(90)
def test_lines_of_ours_are_shown_while_out_computes_a_value(cb):
    """The cell of :out shows nothing, and its filter drops nothing."""
    # It is announced while the value is computed, which begins before that.
    until = int(6 * PATIENCE)
    s = cb.session("-q", "-s", f"session.lifetime={60 + until}s", "-t", "300s",
                   size=(60, 80))
    # Few of them sleep: where the host is busy each sleep takes longer.
    s.run("import time; n = slow = 0\nclass X:\n    def __repr__(self):\n"
          "        global n; n += 1; n % 100 or time.sleep(slow)\n"
          "        return '\\x1b]0;t\\7X'\n")
    s.run("[X()] * 1500")
    s.run(f"slow = {1.3 * until / 15}")
    assert "session ends" not in s.all_text()
    row = s.screen.here()
    s.type(":out 2\r")
    s.expect_since(row, r"^¦ \[the session ends in 60 s: lifetime limit\]")
    s.expect("q leaves", 30)
    s.type("q")
    s.wait_prompt()
    rows = s.screen.rows(row)
    assert len([x for x in rows if "session ends" in x]) == 1
    assert not [x for x in rows if "dropped" in x]
