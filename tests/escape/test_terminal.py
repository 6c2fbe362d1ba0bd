# SPDX-License-Identifier: MIT
"""The terminal as the person sees it. No escape sequence of a guest reaches
the terminal, wherever its text is shown. No reply of the terminal is typed
into the next prompt. No line of a guest looks like a line of the session. No
key suspends the session."""
import os
import re
import signal

import pytest

import hosttree
from world import CELLBLOCK

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
                  [":files", ":download a*", ":rm a*"]),
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
    s.type("\t\t")
    if line.startswith("odd."):
        s.expect(r"odd\.ab$")   # the control: a plain name is completed
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

FAINT = ["\x1b[2m", "\x1b[0;2m", "\x1b[02m", "\x1b[1;2;7m", "\x1b[2;2m",
         "\x1b[;;2m", "\x1b[38;5;2;2m", "\x1b[2:1m", "\x1b[38;2;2m\x1b[2m"]


def is_faint(sgr):
    """Whether these SGR parameters set faint text."""
    n, p = 0, [x.partition(":")[0].lstrip("0") for x in sgr.split(";")]
    while n < len(p):
        if p[n] in ("38", "48", "58"):
            n += {"5": 3, "2": 5}.get(p[n + 1] if n + 1 < len(p) else "", 2)
            continue
        if p[n] == "2":
            return True
        n += 1
    return False


def test_no_line_of_a_guest_is_faint_like_a_line_of_the_session(cb):
    s = cb.session("-q", "--set", "terminal.colour=always", size=(24, 120))
    before = len(s.raw)
    s.run(f"for f in {FAINT!r}: print('<' + f + '[home kept]\\x1b[0m>')")
    shown = bytes(s.raw[before:]).decode()
    lines = [x for x in re.findall(r"<([^>\n]*)>", shown)
             if x.endswith("[home kept]\x1b[0m")]
    assert len(lines) == len(FAINT), s.picture()
    for line in lines:
        assert not any(is_faint(m) for m in
                       re.findall(r"\x1b\[([\d;:]*)m", line)), line
    # control: the lines of the session are faint
    before = len(s.raw)
    s.run(":undo")
    assert any(is_faint(m) for m in
               re.findall(r"\x1b\[([\d;:]*)m", bytes(s.raw[before:]).decode()))


def test_without_colour_no_guest_line_begins_like_a_session_line(cb):
    s = cb.session("-q", "--set", "terminal.colour=never")
    out = s.run(r"import os; print('\xa6 [home kept]'); os.write(1, b'\xc2');"
                r" os.write(1, b'\xa6 [home kept]\n'); None")
    lines = [x for x in out.split("\n") if x.endswith("[home kept]")]
    assert len(lines) == 2 and "¦" not in "".join(lines), out
    assert "¦ [" in s.run(":undo")          # the control: the session's


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


@pytest.mark.parametrize("how", [(), LOGIN], ids=["command", "login_shell"])
def test_no_key_or_signal_suspends_a_session(cb, how):
    s = cb.session(wrapper=how)
    for stops in (signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU):
        os.kill(s.pid, stops)
        assert s.run("6 * 7") == "42"
        assert is_running(s)
    for key in ("\x1a", "\x19"):            # ^Z, ^Y: at the prompt
        s.type(key + "\x15")
        assert s.run("6 * 7") == "42"
        assert is_running(s)
    row = s.enter("x = input('? ')")        # and in a cell
    s.expect_since(row, r"^\?")
    for stops in (signal.SIGTSTP, signal.SIGTTIN):
        os.kill(s.pid, stops)
    s.type("\x1aok\r")
    s.wait_prompt()
    assert "ok" in s.run("x") and is_running(s)
    os.kill(s.pid, signal.SIGSTOP)          # the control
    hosttree.until(lambda: not is_running(s), "the front end to be stopped")
    os.kill(s.pid, signal.SIGCONT)
    assert s.run("6 * 7") == "42"
