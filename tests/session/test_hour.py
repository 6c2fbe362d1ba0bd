# SPDX-License-Identifier: MIT
"""An ordinary hour of an IPython user, replayed here and in IPython."""
import re

import pytest

import hindered
import hour
from figures import needs
from ipython import PATH, IPython

KEYS = {
    "Enter": "\r", "Tab": "\t", "Backspace": "\x7f", "Up": "\x1b[A",
    "Down": "\x1b[B", "Right": "\x1b[C", "Left": "\x1b[D", "Home": "\x1b[H",
    "End": "\x1b[F", "Delete": "\x1b[3~", "F1": "\x1bOP", "F2": "\x1bOQ",
    "F3": "\x1bOR", "Alt-Enter": "\x1b\r",
}
IMPORTS = 60            # seconds that a cell with imports has
TOKEN = re.compile(r"\{(?:(see|out|paste):(.*?)\}(?=$|[^\]})])|([A-Z][\w.-]*)\})",
                   re.S)


def key(name):
    if name in KEYS:
        return KEYS[name]
    if name.startswith("Ctrl-"):
        return chr(ord(name[-1]) & 0x1f)
    return "\x1b" + name[-1].lower()


def tokens(keys):
    """(kind, text) in turns: text, see, paste or key."""
    at = 0
    for m in TOKEN.finditer(keys):
        if m.start() > at:
            yield "text", keys[at:m.start()]
        yield (m[1], m[2]) if m[1] else ("key", m[3])
        at = m.end()
    if at < len(keys):
        yield "text", keys[at:]


class Replay:
    def __init__(self, session):
        self.s = session

    def echoed(self, text):
        """Wait until what was typed is on the screen: a person looks."""
        last = text.split("\n")[-1].strip()[-8:]
        self.s.wait(lambda: self.s._typed(0).endswith(last),
                    f"the echo of {last!r}")

    def before_cursor(self):
        """The line, without what is suggested behind the cursor."""
        screen = self.s.screen
        row = screen.rows(screen.here(), screen.here() + 1)[0]
        return row[:screen.cursor.x]

    def row(self):
        """The row of the cursor, which is elsewhere while the line is drawn."""
        self.s.wait(lambda: self.s.screen.cursor.x, "the cursor in the line")
        return self.s.screen.here()

    def play(self, keys):
        """Type; return the absolute row below the line that ran."""
        s = self.s
        s.wait_prompt()
        row = s.screen.here()
        runs = False                # the rest is read by the cell
        for kind, text in tokens(keys):
            if kind == "text":
                s.type(text)
                self.echoed(text)
            elif kind == "paste":
                s.paste(text)
                s.wait(lambda: not s.at_prompt(), "the pasted text")
            elif kind == "see":
                s.wait(lambda: re.search(text, self.before_cursor()),
                       f"{text!r} before the cursor")
            elif kind == "out":
                s.expect_since(row, text)
            elif text == "Run":
                row, runs = self.row() + 1, True
                s.type("\r")
            else:
                enter = text == "Enter" and not runs
                if enter:
                    row = self.row() + 1
                s.type(key(text))
                if enter:
                    s.wait(lambda: s.screen.here() >= row, "the next line")
        return row

    def step(self, keys):
        s = self.s
        row = self.play(keys)
        s.wait(lambda: s.process.poll() is not None or
               s.screen.here() >= row and s.at_prompt(), "a prompt", IMPORTS)
        if s.process.poll() is not None:
            s.wait_exit()
            return "ended"
        rows = s.screen.rows(row, s.screen.here())
        text = "\n".join(r.rstrip() for r in rows if r.strip())
        return re.sub(r"^Out\[\d+\]: ?\n?", "", text, flags=re.M)


def fits(text, wanted):
    if wanted.startswith("~"):
        return re.fullmatch(wanted[1:], text)
    if wanted.startswith("…"):
        return text.endswith(wanted[1:])
    return text == wanted


def replay(cb, session, steps):
    player = Replay(session)
    for keys, wanted in steps:
        text = player.step(keys.replace("WORK", str(cb.work)))
        assert fits(text, wanted), (keys, wanted, text, session.picture())


def given(cb, chapter):
    if chapter in hour.NEEDS:
        needs(cb, hour.NEEDS[chapter])
    name, text = hour.FILE
    (cb.work / name).write_text(text)
    return str(cb.work / name)


def differing(chapter, column):
    """The steps of a chapter in which the two differ: 0 for here, 1 for there."""
    return [(keys if isinstance(keys, str) else keys[column], ends[column])
            for keys, *ends, _ in hour.DIFFER[chapter]]


def replay_here(cb, chapter, steps):
    path = given(cb, chapter)
    # Python has ten seconds in the place of one for what Tab and ? ask.
    with cb.session("-s", "cell.timeout=90s", "-s", "cell.cpu=90s",
                    size=(40, 100), env=hindered.slow(cb.base)) as s:
        s.run(f":upload {path}")
        replay(cb, s, steps)


def replay_in_ipython(cb, chapter, steps):
    given(cb, chapter)
    with IPython(cb, (40, 100)) as s:
        replay(cb, s, steps)


@pytest.mark.limit(120)
@pytest.mark.parametrize("chapter", [*hour.BOTH, *hour.HERE])
def test_the_hour_here(cb, chapter):
    replay_here(cb, chapter, {**hour.BOTH, **hour.HERE}[chapter])


@pytest.mark.limit(120)
@pytest.mark.parametrize("chapter", hour.DIFFER)
def test_what_differs_here(cb, chapter):
    replay_here(cb, chapter, differing(chapter, 0))


@pytest.mark.sampled(8)
@pytest.mark.limit(180)
@pytest.mark.skipif(not PATH, reason="no IPython here")
@pytest.mark.parametrize("chapter", hour.BOTH)
def test_the_hour_in_ipython(cb, chapter):
    replay_in_ipython(cb, chapter, hour.BOTH[chapter])


@pytest.mark.sampled(8)
@pytest.mark.limit(180)
@pytest.mark.skipif(not PATH, reason="no IPython here")
@pytest.mark.parametrize("chapter", hour.DIFFER)
def test_what_differs_in_ipython(cb, chapter):
    replay_in_ipython(cb, chapter, differing(chapter, 1))
