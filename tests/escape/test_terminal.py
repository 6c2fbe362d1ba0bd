# SPDX-License-Identifier: MIT
"""The terminal as the person sees it. No escape sequence of a guest reaches
the terminal, wherever its text is shown. No reply of the terminal is typed
into the next prompt. No line of a guest looks like a line of the session. No
key suspends the session."""
import contextlib
import os
import re
import signal

import pytest

import hosttree
import term
from world import CELLBLOCK, PATIENCE

# Root's jails have a host id of their own, a person's have the person's.
pytestmark = pytest.mark.both

# Sequences that a terminal answers or obeys: DECRQSS, device attributes,
# status and cursor reports, modes, the window size, colours, the clipboard, a
# title, a command; and the same with C1 controls, in 8 bits and in UTF-8.
SEQUENCES = ["\x1bP$qm\x1b\\", "\x1bP+q544e\x1b\\", "\x1b[c", "\x1b[>0q",
             "\x1b[5n", "\x1b[6n", "\x1b[?1$p", "\x1b[14t", "\x1b[1x",
             "\x1b]10;?\x1b\\", "\x1b]52;c;?\x07", "\x1b]0;owned\x07",
             "\x1b_Gi=1;a\x1b\\", "\x1b^x\x1b\\", "\x1bX x\x1b\\",
             "\x90$qm\x9c", "\x9b6n", "\x9d0;owned\x9c"]
STRING = "'a" + "".join(f"\\x{ord(c):02x}" for c in "".join(SEQUENCES)) + "b'"
PASSED_ON = re.compile(
    "\x1b[P\\]_^X]|\x1b\\[[<=>?]?[\\d;:]*(?:[cnx]|\\$p|t|q)|[\x80-\x9f]")
# Controls for an 8-bit terminal. In UTF-8 they are parts of characters.
BYTES = "b'\\x90$qm\\x9c \\x9b6n \\x9d0;owned\\x9c \\xc2\\x9b6n'"


def passed_on(raw):
    """The sequences in `raw` other than text and colours."""
    text = bytes(raw).decode("utf-8", "surrogateescape")
    return [m.group() for m in PASSED_ON.finditer(
        re.sub("[\udc80-\udc9f]", lambda m: chr(ord(m[0]) - 0xdc00), text))]


SHOWN = {
    # name: (cell, commands or cells that show the text)
    "output": ("None", ["print(q)"]),
    "bytes": ("import os", [f"os.write(1, {BYTES}); None"]),
    "error_output": ("import sys", ["sys.stderr.write(q); None"]),
    "parts": ("import sys", ["for c in q: sys.stdout.write(c);"
                             " sys.stdout.flush()"]),
    "value": ("class R:\n    __repr__ = lambda _: q\n", ["R()"]),
    "traceback": ("None", ["raise ValueError(q)"]),
    "exception_name": ("None", ["raise type(q, (Exception,), {})"]),
    "syntax_error": ("None", ["exec('x = \"' + q)"]),
    "file_name": ("import os; open(q.replace('/', ''), 'w').close()",
                  [":files", ":download a*", ":rm -f a*"]),
    "variable_name": ("globals()[q] = 1", [":who"]),
    "variable_type": ("odd = type(q, (), {})()", [":who"]),
    "variable_value": ("class R:\n    __repr__ = lambda _: q\nodd = R()\n",
                       [":who"]),
    "doc": ("def odd(): pass\nodd.__doc__ = q; odd.__module__ = q;"
            " odd.__qualname__ = q", [":doc odd", "odd?", "odd??"]),
    "signature": ("class R:\n    __repr__ = lambda _: q\n"
                  "def odd(x=R()): pass\n", ["odd?"]),
}


@pytest.mark.parametrize("name", SHOWN)
def test_no_escape_sequence_of_a_guest_reaches_the_terminal(cb, name):
    s = cb.session("-q")
    s.run(f"q = {STRING}")
    cell, looks = SHOWN[name]
    s.run(cell)
    before = len(s.raw)
    for look in looks:
        said = s.run(look)
        assert "Unknown command" not in said and said.strip(), said
        assert passed_on(s.raw[before:]) == [], look
    assert s.run("6 * 7") == "42"
    assert not s.screen.titles


@pytest.mark.parametrize("line", ["odd.", "odd.a", "odd['", "open('a"])
def test_no_escape_sequence_reaches_the_terminal_by_completion(cb, line):
    s = cb.session("-q")
    s.run(f"q = {STRING}")
    s.run("class Odd(dict):\n    def __dir__(self): return [q, q + 'c', 'ab']\n")
    s.run("odd = Odd({q: 1, q + 'c': 2})")
    s.run("for n in 'cd': open(q.replace('/', '') + n, 'w').close()")
    before = len(s.raw)
    s.type(line)
    s.expect(re.escape(line))
    if line.startswith("odd."):
        s.complete(">>> odd.ab")    # the control: a plain name is completed
    s.type("\t\t")
    s.type("\x15")              # no reply of the terminal may follow the line
    s.wait_prompt()
    assert passed_on(s.raw[before:]) == []
    assert s.run("6 * 7") == "42"


def test_in_raw_mode_every_escape_sequence_reaches_the_terminal(cb):
    """The control: in raw mode the terminal gets all sequences, and this test
    sees them."""
    s = cb.session("-q", "--set", "terminal.escapes=raw")
    s.run(f"q = {STRING}")
    s.enter("print(q)")
    s.wait(lambda: len(passed_on(s.raw)) >= len(SEQUENCES),
           "every sequence to be passed on")
    assert s.screen.titles


# ---- guest lines that look like lines of the session ----

FORGED = "\xa6 [home kept]"
# The bar, whole and in pieces, wherever a line or a wrapped row may begin.
BARS = ["\xa6 [home kept]", "\r\xa6 [home kept]", "x\b\xa6 [home kept]",
        "\x1b[2m\xa6 [home kept]\x1b[0m", "\x1b[4:2m\x1b[24m\xa6 [home kept]",
        "\x1b[38:2m\xa6 [home kept]", "\x1b[38;2;90;90;90m\xa6 [home kept]",
        " " * 80 + "\xa6 [home kept]", "x\x1b[G\xa6 [home kept]",
        "\x1b(0\xa6\x1b(B [home kept]", "\xa6\x1b[b\x1b[b [home kept]",
        "\uffe4 [home kept]", "\u254e [home kept]", "\u250a [home kept]"]


def forged_rows(s, row):
    """Rows from `row` on that look like a line of the session, but are not."""
    bars = "\xa6\uffe4\u254e\u250a"
    return [x for x in s.screen.rows(row) if any(b in x for b in bars) and
            (not re.match("\xa6 (\\[| )", x) or x.count("\xa6") > 1
             or x.startswith(FORGED))]


MODES = {
    "colour": ["terminal.colour=always"],
    "no_colour": ["terminal.colour=never"],
    "plain": ["terminal.escapes=plain"],
}


@pytest.fixture(params=MODES)
def looked_at(request, cb):
    """A session in each mode."""
    return cb.session("-q", *(x for m in MODES[request.param]
                              for x in ("--set", m)))


def test_no_output_looks_like_a_line_of_the_session(looked_at):
    s = looked_at
    row = s.screen.here()
    for bar in BARS:
        s.run(f"print({ascii(bar)})")
        s.run(f"import os; os.write(1, {bar.encode()!r}); None")
    assert forged_rows(s, row) == []
    assert re.search("^\xa6 \\[", s.run(":undo"), re.M)    # control: the session's


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", SHOWN)
def test_no_text_of_a_guest_looks_like_a_line_of_the_session(looked_at, name):
    s = looked_at
    s.run(f"q = {ascii('a' + chr(10) + FORGED)}")
    cell, looks = SHOWN[name]
    row = s.screen.here() + 1
    s.run(cell)
    shown = [s.run(look) for look in looks]
    assert "home kept" in "".join(shown) or name in ("bytes", "syntax_error")
    assert forged_rows(s, row) == []


@pytest.mark.sampled(2)
@pytest.mark.parametrize("show", [":show f", ":out", ":history", ":save f"])
def test_no_listing_looks_like_a_line_of_the_session(looked_at, show):
    s = looked_at
    s.run(f"q = {ascii(FORGED)}; open('f', 'w').write("
          "q + '\\n' + ' ' * 80 + q)")
    row = s.screen.here()
    s.run("print(open('f').read())")
    s.run(show)
    assert forged_rows(s, row) == []


@pytest.mark.sampled(4)
@pytest.mark.parametrize("line", ["odd['", "open('"])
def test_no_completion_looks_like_a_line_of_the_session(looked_at, line):
    s = looked_at
    s.run(f"q = {ascii(FORGED)}; odd = {{q: 1, q + ' c': 2}}")
    s.run("for n in 'cd': open(q + n, 'w').close()")
    row = s.screen.here()
    s.type(line)
    s.expect(re.escape(line))
    s.type("\t\t")
    s.expect("00A6|xa6")
    s.type("\x15")
    s.wait_prompt()
    assert forged_rows(s, row) == []


def test_in_raw_mode_a_guest_can_write_the_bar(cb):
    """The control."""
    s = cb.session("-q", "--set", "terminal.escapes=raw")
    row = s.screen.here()
    s.run(f"print({ascii(FORGED)})")
    assert forged_rows(s, row)


# ---- lines of the session that something is written over ----

OVER = ["\x1b[9A\x1b[J", "\x1b[9F\x1b[J", "\x1b[H\x1b[2J", "\x1b[1J", "\x1b[2J",
        "\x1bM" * 9 + "\x1b[J", "\x1b[9T\x1b[H\x1b[J", "\x1b[1;3r\x1b[9S\x1b[r",
        "\x1b[2d\x1b[K", "\x1b[u\x1b[H\x1b[J", "\x1b8\x1b[9A\x1b[J",
        "\x1b[?47h\x1b[H\x1b[?47l\x1b[J", "\x1b[?1047h\x1b[2;2H\x1b[?1047l\x1b[J",
        "\x1b[?1049l\x1b[J", "\x1b[?1048l\x1b[9A\x1b[J",
        "\x1b[99L\x1b[99B\x1b[9A\x1b[99M", "\u6570" * 41 + "\r\x1b[9A\x1b[J",
        "\x1b[?1049h\x1b[H\x1b7\x1b[?1049l\x1b8\x1b[J",
        "\x1b[?1049h\x1b[?1049l\x1b8\x1b[J", "\x1b[?1048h\x1b8\x1b[J",
        "\x1b[?1049h" + "\n" * 40 + "\x1b[?1049l\x1b[99B\x1b[99A\x1b[J"]


def frames(s):
    return [x for x in s.screen.rows() if x.startswith("\xa6")]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("over", OVER)
def test_no_cell_removes_what_stands_above_it(cb, over):
    s = cb.session("-q")
    s.run("print('\\x1b]0;t\\x07')")
    s.run("6 * 7")
    before = s.screen.rows(0, s.screen.here())
    assert len(frames(s)) == 1
    s.run(f"print({over!r} + '>>> check()\\r\\nall is well')")
    assert s.screen.rows(0, len(before)) == before
    assert "all is well" in s.screen_text()
    # The next lines of the session are whole, too.
    s.run(f"print('\\x1b]0;t\\x07' + {over!r}, end='')")
    s.run(f"print({over!r}, end='')")
    assert len([x for x in frames(s) if x.endswith(": title]")]) == 2


# Output of a cell while the window gets another size: the terminal draws it
# with a size that the session has not heard of yet.
WIDER = [r"print(('x' * 81 + '\x1b[A') * 30, end='')",
         r"print('\x1b[C' + ('x' * 81 + '\x1b[A') * 30, end='')",
         r"print('x' * 800 + '\x1b[9A\x1b[J', end='')",
         r"print('\x1b[C' + ('\xe9' * 81 + '\x1b[A\x1b[K') * 30, end='')",
         "import termios, tty; m = termios.tcgetattr(0); tty.setraw(0);"
         r" print(('x' * 81 + '\x1b[A') * 30, end='', flush=True);"
         " termios.tcsetattr(0, 1, m)"]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("cell", WIDER)
def test_no_row_is_lost_to_a_window_that_gets_wider(cb, cell):
    s = cb.session("-q")
    for _ in range(3):
        s.run("print('\\x1b]0;t\\x07')")
    s.run("True or False")
    before = s.screen.rows(0, s.screen.here())
    assert len(frames(s)) == 3
    s.wait_prompt()
    s.screen.resize(24, 120)
    s.enter(cell)
    s.wait(lambda: s.at_prompt() and s.screen.here() > len(before), "a prompt")
    assert s.screen.rows(0, len(before)) == before


@pytest.mark.parametrize("cell", [
    r"print(('\x1b[70C' + '\b' * 69) * 9 + 'x' * 9, end='')",
    r"print('y\r' + ('\x1b[70C' + '\b' * 69) * 9 + '\x1b[K', end='')"])
def test_no_row_is_lost_to_a_window_that_gets_narrower(cb, cell):
    s = cb.session("-q")
    s.screen.goes_up = True
    for _ in range(3):
        s.run("print('\\x1b]0;t\\x07')")
    s.screen.resize(24, 40)
    before = [x.rstrip() for x in s.screen.rows(0, s.screen.here())]
    row = s.screen.here()
    s.enter(cell)
    s.wait(lambda: s.at_prompt() and s.screen.here() > row, "a prompt")
    assert [x.rstrip() for x in s.screen.rows(0, len(before))] == before
    # The control: this terminal goes up.
    s.screen.backspace()
    s.screen.carriage_return()
    row = s.screen.here()
    s.screen.backspace()
    assert s.screen.here() == row - 1


def test_long_lines_stay_whole_until_the_cursor_moves(cb):
    """The control: a terminal knows which of its rows are one line."""
    s = cb.session("-q")
    # While the cell runs: between cells the tty is in the mode of a program
    # that reads keys, and output that is read late is taken for its output.
    s.enter("print('x' * 200); input()")
    s.wait(lambda: b"x" * 200 in s.raw, "a whole line")
    s.type("\r")
    s.wait_prompt()
    s.run(r"print('\x1b[C' + 'y' * 200 + '\x1b[2A\x1b[K')")
    assert b"y" * 79 + b"\r\n" + b"y" * 80 + b"\r\n" + b"y" * 41 in s.raw
    assert b"\x1b[2A\x1b[K" in s.raw


# Before and after.
HIGHER = [(r"\x1b[H", r"\x1b[H\x1b[2J"), (r"\x1b[H", r"\x1bM\x1bM\x1b[J"),
          (r"\x1b7", r"\x1b8\x1b[J"), (r"\x1b[H\x1b7", r"\x1b8\x1b[J"),
          (r"\x1b[1;9r", r"\x1b[9;1H\n\n\n\x1b[r"),
          (r"\x1b[?1049h", r"\x1b[H\x1b[2J")]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("begin, again", HIGHER)
@pytest.mark.parametrize("single", [False, True])
def test_no_row_is_lost_to_a_window_that_gets_higher(cb, begin, again, single):
    s = cb.session("-q")
    s.screen.single = single
    for _ in range(12):
        s.run("print('\\x1b]0;t\\x07')")
    before = s.screen.rows(0, s.screen.here())
    s.enter(f"print('{begin}be' 'gun', end='', flush=True); input();"
            f" print('{again}' * 3 + 'dra' 'wn', flush=True); input()")
    s.expect("begun")
    s.screen.heighten(50)
    s.type("\r")
    s.expect("drawn")
    s.type("\r")
    s.wait_prompt()
    assert s.screen.rows(0, len(before)) == before


@pytest.mark.parametrize("left", ["", r"\x1b[?1049l", r"\x1b[?1049l\x1b[9A\x1b[J"])
def test_a_terminal_without_an_alternate_screen_keeps_what_stood_there(cb, left):
    s = cb.session("-q")
    s.screen.single = True
    for _ in range(12):
        s.run("print('\\x1b]0;t\\x07')")
    before = s.screen.rows(0, s.screen.here())
    s.run(rf"print('\x1b[?1049h\x1b[H' + 'drawn\x1b[K\r\n' * 20 + '{left}')")
    assert s.screen.rows(0, len(before)) == before
    assert "drawn" in s.screen_text()
    # The control: where there is one, nothing is scrolled away.
    s.screen.single = False
    row = s.screen.here()
    s.run(rf"print('\x1b[?1049h\x1b[H' + 'drawn\x1b[K\r\n' * 20 + '{left}')")
    assert s.screen.here() - row < 4


def test_a_cell_draws_on_its_own_rows(cb):
    """The control."""
    s = cb.session("-q")
    out = s.run("print('a\\nb\\nc\\x1b[2A\\x1b[2K\\rA\\x1b[2B\\rC')")
    assert out.split() == ["A", "b", "C"]
    row = s.screen.here()
    s.run("print('old\\x1b[H\\x1b[2Jnew\\x1b[5;5Hhere')")
    assert s.screen.shown()[:5] == ["new", "", "", "", "    here"]
    assert s.screen.rows(row, row + 2) == [
        ">>> print('old\\x1b[H\\x1b[2Jnew\\x1b[5;5Hhere')", "old"]


# How a cell may leave the terminal.
LEFT = ["x", "x\r", "x" * 80, "x" * 80 + "\r", "\t", "x\b", "\x1b[5;9H", "\x1b[5;9Hx",
        "a\r\nb\r\nc\x1b[2A", "a\r\nb\x1b[A\r", "\x1b[3;7r\x1b[4;4Hx",
        "\x1b[?1049hx\x1b[4;4H", "\x1b[?47h\x1b[3;3Hx\x1b[?47l", "\x1b[4h", "\x1b(0x",
        "\x1b)0\x0e", "\x1b[?7l" + "x" * 99, "\x1b[31;7;8m", "\x1b[?5h", "\x1b[",
        "\x1b]0;", "\x1bP", "\xe2\x82", "\u6570" * 40, "e\u0301\b", "\x1b[2;3H\x1b7\x1b[H",
        "\x1b[10;10H>>> \x1b[3;1H", "\x1b[C", "\x1b[40G", "\x1b[u", "x\x1b[Gx\x1b[G"]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("left", LEFT)
def test_a_verdict_begins_a_row_with_nothing_below(cb, left):
    s = cb.session("-q")
    left = left.encode() if "\xe2" not in left else b"\xe2\x82"
    row = s.enter(f"import os; os.write(1, b'\\x1b]0;t\\x07' + {left!r});"
                  " os._exit(3)")
    s.wait(lambda: s.screen.here() > row and s.at_prompt(), "the prompt", 40)
    rows = s.screen.rows()
    here = s.screen.here()
    assert re.search("^\xa6 \\[\\d terminal sequences? dropped: [\\w, ]+\\]\n"
                     "\xa6 \\[Python exited with status 3 .*(\n\xa6  .*)*\\Z",
                     "\n".join(rows[:here]), re.M), s.picture()
    assert not any(rows[here + 1:]), s.picture()


def test_a_verdict_begins_a_row_in_a_window_that_got_wider(cb):
    s = cb.session("-q")
    s.screen.resize(24, 120)
    row = s.enter("import os; os.write(1, b'x' * 90 + b'\\b' * 10 + b'\\x1b[K');"
                  " os._exit(3)")
    s.wait(lambda: s.screen.here() > row and s.at_prompt(), "the prompt", 40)
    rows = s.screen.rows(row)
    assert [x for x in rows if "Python exited" in x] == \
        [x for x in rows if x.startswith("\xa6 [Python exited with status 3")]


FLOOD = r"""
import os, signal, sys, time
if not os.fork():
    os.setpgid(0, 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        try:
            os.write(1, b"\x1b[9A\x1b[J>>> check()\r\nall is well\r\n")
            time.sleep(0.005)
        except BaseException:
            pass
time.sleep(0.2)
print('\x1b]0;t\x07')
"""


@pytest.mark.parametrize("background", ["stop", "run"])
def test_what_is_left_behind_is_text_below_a_line_that_says_so(cb, background):
    s = cb.session("-q", "--set", f"cell.background={background}")
    row = s.enter(FLOOD)
    s.expect_since(row, "left behind|^\xa6 \\[background output follows\\]")
    s.wait(lambda: s.all_text().count("all is well") > 20 or s.at_prompt(),
           "more of it")
    s.enter("6 * 7")
    # Output beside it may erase its own output.
    s.wait(lambda: b"42\r\n" in s.raw, "42")
    s.wait(s.at_prompt, "the prompt")
    rows = s.screen.rows(row)
    verdict = [n for n, x in enumerate(rows) if x.endswith(": title]")]
    said = [n for n, x in enumerate(rows)
            if x == "\xa6 [background output follows]"]
    assert len(verdict) == 1 and said, s.picture()
    # The rows between the two are the cell's and ours.
    assert [n for n in said if n > verdict[0]] == said


def test_what_is_left_behind_does_not_bury_a_verdict(cb):
    s = cb.session("-q")
    row = s.enter("import os, threading; threading.Thread(target=lambda:"
                  " [os.write(1, b'late\\n' * 900) for _ in range(10**6)],"
                  " daemon=True).start(); print('\\x1b]0;t\\x07')")
    s.wait_prompt()

    def cut():
        return "of the background shown, " in "\n".join(s.screen.rows(row))
    # A busy host may stop it before it has written so much.
    with contextlib.suppress(term.NotSeen):
        s.wait(cut, "what was left out", 5)
    rows = s.screen.rows(row)
    verdict = [n for n, x in enumerate(rows) if x.endswith(": title]")]
    assert len(verdict) == 1
    shown = rows[verdict[0]:].count("late")
    assert shown <= 500 and (shown > 400 or not cut())


def test_in_a_background_that_runs_everything_is_shown(cb):
    """The control."""
    s = cb.session("-q", "--set", "cell.background=run")
    s.run("import os, time")
    s.enter("os.fork() or (time.sleep(.5), os.write(1, b'late\\n' * 900),"
            " os._exit(0)); None")

    def shown():
        """Without our lines, and the ends that we give to pieces."""
        rows = s.all_text().split("os._exit(0))", 1)[-1].split("\n")
        return "".join(r for r in rows if r[:1] != "\xa6").count("late")

    s.wait(lambda: shown() == 900, "all of it")


def test_every_screenful_of_the_background_says_what_it_is(cb):
    s = cb.session("-q", "--set", "cell.background=run", size=(5, 60))
    s.run("import os, time")
    row = s.enter(f"os.fork() or (time.sleep({PATIENCE}),"
                  " os.write(1, b'late\\n' * 12), os._exit(0)); None")
    s.wait(lambda: s.all_text().count("\nlate") >= 12, "all of it")
    rows = s.screen.rows(row)
    for n in [n for n, x in enumerate(rows) if x == "late"]:
        assert any(x.startswith("\xa6 [background output follows")
                   for x in rows[max(0, n - 3):n]), s.picture()


def test_where_a_cell_was_does_not_bury_its_verdict(cb):
    s = cb.session("-q", "-t", f"{2 * PATIENCE:.0f}s", "-s", "cell.grace=2s")
    s.run("import signal, time; signal.signal(2, signal.SIG_IGN)\n"
          "def deep(name, *then):\n"
          "    f = lambda g, *h: g(*h)\n"
          "    f.__code__ = f.__code__.replace(co_name=name * 9)\n"
          "    f(*then)\n"
          "names = [c + 'x' * 60 + ' >>> check()' + ' ' * 70 for c in 'abcd']")
    row = s.screen.here()
    s.run("deep(names[0], deep, names[1], deep, names[2], deep, names[3],"
          " time.sleep, 50); " + "1; " * 99)
    rows = s.screen.rows(row, s.screen.here())
    assert len([x for x in rows if "killed" in x and x.startswith("\xa6")]) == 1
    assert "check()" not in "\n".join(rows)
    assert "  it was in <cell 1>, line 3, in dxxxx" in "\n".join(rows)
    assert len(rows) < s.screen.lines


def test_tabs_do_not_make_a_screenful_larger(cb):
    s = cb.session("-q", "--set", "cell.background=run")
    s.run("import os, time")
    row = s.enter(f"os.fork() or (time.sleep({PATIENCE}),"
                  " os.write(1, (b'\\t' * 10 + b'xx') * 60), os._exit(0)); None")
    s.wait(lambda: s.all_text().count("x\nx") > 50, "all of it")
    rows = s.screen.rows(row)
    for n in [n for n, x in enumerate(rows) if x.startswith("x ")]:
        assert any(x.startswith("\xa6 [background output follows")
                   for x in rows[max(0, n - 22):n]), s.picture()


def test_what_is_said_on_the_alternate_screen_is_said_again(cb):
    s = cb.session("-q", "--set", f"session.lifetime={60 + 3 * PATIENCE:.0f}s",
                   "--set", "cell.timeout=30s")
    s.enter("import time; print('\\x1b[?1049h\\x1b[2J\\x1b[Htop', flush=True);"
            f" time.sleep({3 * PATIENCE + 4})")
    s.wait(lambda: s.screen.alternate, "the alternate screen")
    s.expect("^.the session ends in")
    assert s.screen.shown()[0] == "top"
    # The cell could write what it likes behind a bar.
    assert "\xa6" not in "".join(s.screen.shown())
    s.wait_prompt()
    assert len([x for x in s.screen.rows()
                if x.startswith("\xa6 [the session ends in")]) == 1
    # A program that leaves it, and a cell that goes on.
    assert s.run("6 * 7") == "42"


def test_a_false_prompt_gets_the_keys_of_its_own_cell_only(cb):
    s = cb.session("-q")
    row = s.enter("x = input('\\r>>> ')")
    s.expect_since(row, r"^>>>")
    s.type(":quit\r")
    s.wait(lambda: s.screen.here() > row and s.at_prompt(), "the next prompt")
    assert s.run("x") == "':quit'"
    # A false prompt that is left behind stands above the real one.
    row = s.enter("print('>>> ', end='', flush=True)")
    s.wait(lambda: s.screen.here() > row and s.at_prompt(), "the next prompt")
    assert s.screen.rows(row, s.screen.here())[0].startswith(">>>")
    assert s.run("6 * 7") == "42"


# ---- keys and signals that suspend ----

LOGIN = ("bash", "-c", 'exec -a -cellblock "$1"', "sh", CELLBLOCK)


def is_running(s):
    return "T" not in hosttree.thread_states(s.pid)


def wait_line(s, number):
    """Wait for that many lines that say why Ctrl-Z stops nothing here."""
    s.wait(lambda: s.all_text().count("[Ctrl-Z: no shell") == number,
           f"line {number}")


@pytest.mark.parametrize("how", [(), LOGIN], ids=["command", "login_shell"])
def test_no_key_or_signal_suspends_a_session(cb, how):
    s = cb.session(wrapper=how)
    for stops in (signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU):
        os.kill(s.pid, stops)
        wait_line(s, 1)
        assert s.run("6 * 7") == "42"
        assert is_running(s)
    for key in ("\x1a", "\x19"):            # ^Z, ^Y: at the prompt
        s.type(key + "\x15")
        wait_line(s, 2)
        assert s.run("6 * 7") == "42"
        assert is_running(s)
    row = s.enter("x = input('? ')")        # and in a cell
    s.expect_since(row, r"^\?")
    for stops in (signal.SIGTSTP, signal.SIGTTIN):
        os.kill(s.pid, stops)
        wait_line(s, 3)
    s.type("\x1aok\r")
    wait_line(s, 4)
    s.wait_prompt()
    assert "ok" in s.run("x") and is_running(s)
    os.kill(s.pid, signal.SIGSTOP)          # the control
    hosttree.until(lambda: not is_running(s), "the front end to be stopped")
    os.kill(s.pid, signal.SIGCONT)
    assert s.run("6 * 7") == "42"
    assert s.leave() == 0                   # a login's would linger
