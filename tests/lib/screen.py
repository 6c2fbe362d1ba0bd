# SPDX-License-Identifier: MIT
"""A person's screen: a terminal emulator that keeps rows that scroll away.

pyte's Screen, plus the alternate screen (full-screen programs), the bracketed
paste mode, and the answers a real terminal gives to queries. Every row has an
absolute number that never changes, so that a cell's output can be cut out.
"""
import pyte
from pyte import modes as mo

ALTERNATE = {47 << 5, 1047 << 5, 1049 << 5}
BRACKETED_PASTE = 2004 << 5
PLAIN = pyte.screens.Char(" ")
REVERSED = PLAIN._replace(reverse=True)


class Characters(dict):
    """The characters that are drawn with some attributes."""

    def __init__(self, attributes):
        super().__init__()
        self.attributes = attributes

    def __missing__(self, character):
        self[character] = drawn = self.attributes._replace(data=character)
        return drawn


class Terminal(pyte.Screen):
    def __init__(self, columns, lines, answer=None):
        self.characters = {}        # {attributes: Characters}
        self.texts = {}             # {y: the text of a row that is not dirty}
        self.scrolled = []          # rows that have left the screen at the top
        self.other = None           # the main screen, during the alternate one
        self.saved_cursor = None
        self.single = False         # told to have no alternate screen
        self.goes_up = False        # from the left edge, as GNU screen does
        self.titles = []
        self.answer = answer
        super().__init__(columns, lines)

    # ---- what takes pyte long ----

    @property
    def default_char(self):
        return REVERSED if mo.DECSCNM in self.mode else PLAIN

    def draw(self, data):
        """Of text that is ASCII what fits a row is drawn at once."""
        cursor = self.cursor
        if not data.isascii() or not data.isprintable() or self.charset or \
                mo.IRM in self.mode or mo.DECAWM not in self.mode or \
                cursor.x > self.columns:
            super().draw(data)
            self.texts.clear()    # an accent may belong to another row
            return
        known = self.characters.get(cursor.attrs)
        if known is None:
            known = self.characters[cursor.attrs] = Characters(cursor.attrs)
        at = 0
        while at < len(data):
            if cursor.x == self.columns:
                self.dirty.add(cursor.y)
                self.carriage_return()
                self.linefeed()
            part = data[at:at + self.columns - cursor.x]
            self.buffer[cursor.y].update(zip(
                range(cursor.x, self.columns), map(known.__getitem__, part)))
            self.dirty.add(cursor.y)
            cursor.x += len(part)
            at += len(part)

    def erase_in_line(self, how=0, private=False):
        first = 0 if how else self.cursor.x
        end = self.cursor.x + 1 if how == 1 else self.columns
        self.dirty.add(self.cursor.y)
        self.buffer[self.cursor.y].update(
            dict.fromkeys(range(first, end), self.cursor.attrs))

    # ---- features that pyte lacks ----

    def write_process_input(self, data):
        if self.answer:
            self.answer(data)

    def backspace(self):
        if self.goes_up and self.cursor.x == 0 and self.cursor.y > 0:
            self.cursor.x = self.columns
            self.cursor.y -= 1
        super().backspace()

    def set_title(self, param):
        self.titles.append(param)

    set_icon_name = set_title

    def index(self):
        top, bottom = self.margins or (0, self.lines - 1)
        if self.cursor.y == bottom and top == 0 and self.other is None:
            self.scrolled.append(self._row(0))
        known = {}
        if self.cursor.y == self.lines - 1 and not self.margins:
            self._forget()
            known = {y - 1: text for y, text in self.texts.items() if y}
        super().index()
        if known:
            self.texts = known
            self.dirty.clear()

    def set_mode(self, *modes, **kwargs):
        super().set_mode(*modes, **kwargs)
        if kwargs.get("private") and self.other is None and not self.single:
            if ALTERNATE & {m << 5 for m in modes}:
                self.other = {y: dict(r) for y, r in self.buffer.items()}
                self.saved_cursor = (self.cursor.x, self.cursor.y)
                self.buffer.clear()
                self.texts.clear()

    def reset_mode(self, *modes, **kwargs):
        super().reset_mode(*modes, **kwargs)
        if kwargs.get("private") and self.other is not None:
            if ALTERNATE & {m << 5 for m in modes}:
                self.buffer.clear()
                for y, row in self.other.items():
                    self.buffer[y].update(row)
                self.cursor.x, self.cursor.y = self.saved_cursor
                self.other = None
                self.texts.clear()

    def resize(self, lines=None, columns=None):
        """Resize as terminals do: rows leave at the top only if the row of the
        cursor would not fit."""
        lines, columns = lines or self.lines, columns or self.columns
        while self.cursor.y >= lines:
            self.scrolled.append(self._text(0))
            for y in range(self.lines - 1):
                self.buffer[y] = self.buffer[y + 1]
            self.buffer.pop(self.lines - 1, None)
            self.cursor.y -= 1
        for y in [y for y in self.buffer if y >= lines]:
            del self.buffer[y]
        for row in self.buffer.values():
            for x in [x for x in row if x >= columns]:
                del row[x]
        self.lines, self.columns = lines, columns
        self.cursor.x = min(self.cursor.x, columns - 1)
        self.set_margins()
        self.texts.clear()

    def heighten(self, lines):
        """Get higher as many terminals do: the rows that left the screen last
        are back. A cursor that was saved keeps its place on the screen."""
        back = min(lines - self.lines, len(self.scrolled))
        rows = self.scrolled[len(self.scrolled) - back:]
        del self.scrolled[len(self.scrolled) - back:]
        main = self.buffer if self.other is None else self.other
        below = {y + back: dict(main[y]) for y in main}
        main.clear()
        for y, row in enumerate(rows):
            main[y] = {x: self.default_char._replace(data=c)
                       for x, c in enumerate(row)}
        main.update(below)
        if self.other is None:
            for y in list(main):
                row, main[y] = main[y], pyte.screens.StaticDefaultDict(
                    self.default_char)
                main[y].update(row)
            self.cursor.y += back
        else:
            x, y = self.saved_cursor
            self.saved_cursor = x, y + back
        self.lines = lines
        self.set_margins()
        self.texts.clear()

    # ---- looking ----

    @property
    def alternate(self):
        return self.other is not None

    @property
    def bracketed_paste(self):
        return BRACKETED_PASTE in self.mode

    def _forget(self):
        """Forget the texts of rows that have changed, which pyte names."""
        for y in self.dirty:
            self.texts.pop(y, None)
        self.dirty.clear()

    def _row(self, y):
        self._forget()
        text = self.texts.get(y)
        if text is None:
            text = self.texts[y] = self._text(y)
        return text

    def _text(self, y):
        row = self.buffer.get(y)
        if not row:
            return ""
        return "".join([row[x].data if x in row else " "
                        for x in range(max(row) + 1)]).rstrip()

    def here(self):
        """The absolute number of the row that the cursor is on."""
        return len(self.scrolled) + self.cursor.y

    def rows(self, first=0, end=None):
        """Rows by absolute number, as strings without trailing blanks."""
        gone = len(self.scrolled)
        first, end, _ = slice(first, end).indices(gone + self.lines)
        return self.scrolled[first:end] + [
            self._row(y) for y in range(max(first - gone, 0), end - gone)]

    def shown(self):
        """The visible rows, down to the last that is not empty."""
        rows = [self._row(y) for y in range(self.lines)]
        while rows and not rows[-1]:
            rows.pop()
        return rows

    def cursor_row(self):
        return self._row(self.cursor.y)
