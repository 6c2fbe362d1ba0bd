# SPDX-License-Identifier: MIT
"""The picture of the README shows what the program says."""
import html
import importlib.machinery
import importlib.util
import pathlib
import re

import pytest

import world

TOP = world.TESTS.parent


def recorder():
    """tools/picture, as a module."""
    loader = importlib.machinery.SourceFileLoader(
        "picture", str(TOP / "tools/picture"))
    module = importlib.util.module_from_spec(
        importlib.util.spec_from_loader("picture", loader))
    loader.exec_module(module)
    return module


def drawn():
    """The rows of docs/picture.svg, as text."""
    rows = {}
    for x, y, width, text in re.findall(
            r'<text x="(\d+)" y="(\d+)"[^>]* textLength="(\d+)">([^<]*)<',
            (TOP / "docs/picture.svg").read_text()):
        row = rows.get(int(y), "").ljust(int(x) // 10)
        rows[int(y)] = row + html.unescape(text).replace("\xa0", " ")
    return [rows[y] for y in sorted(rows)]


@pytest.mark.limit(90)
def test_the_picture_of_the_readme_is_a_session(cb):
    picture = recorder()
    pathlib.Path(cb.work, "grades.csv").write_text(picture.GRADES)
    # On a busy host Python may take long to see the interrupt.
    s = cb.session("-s", "cell.cpu=60s", "-s", "cell.grace=30s",
                   size=(picture.ROWS, picture.COLUMNS))
    rows = drawn()
    assert len(rows) > 20
    at = 0
    for cell in picture.CELLS:
        at = rows.index(f">>> {cell}", at) + 1
        said = s.run(cell, deadline=90)
        # The last line: what stands above it depends on Python's version.
        last = said.split("\n")[-1] if said else ""
        end = next(i for i in range(at, len(rows))
                   if rows[i].startswith(">>>"))
        assert (rows[end - 1] if end > at else "") == last, cell
    for cell in picture.PLOT:
        at = rows.index(f">>> {cell}", at) + 1
    assert re.fullmatch(r"¦ \[figure 1 · 640x240 · :download figure-1.png\]",
                        rows[at])
