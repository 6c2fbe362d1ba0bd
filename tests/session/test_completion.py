# SPDX-License-Identifier: MIT
"""What Tab completes, and what is shown of a name: its signature, its doc."""
import re

import pytest

import hindered


@pytest.fixture(autouse=True)
def _slow(cb):
    """Python has ten seconds for what is asked of it, in the place of one, which
    a busy host may take to wake it."""
    cb.env.update(hindered.slow(cb.base))


def shows(session, text):
    """The cursor's row becomes `text`, behind the prompt."""
    session.wait(lambda: session.screen.cursor_row() == ">>> " + text,
                 f"the row to be {text!r}")


def completes(session, typed, wanted):
    """Tab at the end of `typed` makes it `wanted`."""
    session.type(typed + "\t")
    session.wait(lambda: session.screen.cursor_row() == ">>> " + wanted,
                 f"{typed!r} to become {wanted!r}")
    session.type("\x03")
    session.wait_prompt()


def test_tab_completes_a_name(session):
    session.run("quite_a_long_name = 11")
    session.type("quite_a\t")
    session.expect(r">>> quite_a_long_name")
    session.type("\r")
    session.expect("^11$")
    session.wait_prompt()


def test_tab_completes_an_attribute_and_an_import(session):
    session.run("import string")
    session.type("string.ascii_low\t")
    session.expect("string.ascii_lowercase")
    session.type("\x03")
    session.wait_prompt()
    session.type("import statis\t")
    session.expect("import statistics")
    session.type("\x03")
    session.wait_prompt()


def test_tab_completes_the_name_of_an_argument(session):
    session.run("def f(speed, colour=1, *, shape=None): return speed, shape")
    completes(session, "f(spee", "f(speed=")
    completes(session, "f(1, sha", "f(1, shape=")
    completes(session, "f(1, shape=colo", "f(1, shape=colo")
    session.type("f(1, sha\t")
    shows(session, "f(1, shape=")
    session.type("5)\r")
    session.expect(r"^\(1, 5\)$")
    session.wait_prompt()


def test_tab_completes_behind_literals_and_subscripts(session):
    session.run("z = [1j, {'kappa': 'x'}]")
    completes(session, "'x'.upp", "'x'.upper")
    completes(session, "z[0].rea", "z[0].real")
    completes(session, "z[1]['ka", "z[1]['kappa']")
    completes(session, "print(z[1]['kappa'].upp", "print(z[1]['kappa'].upper")


def test_tab_completes_a_home_file_and_closes_the_string(session):
    session.run("f = open('grades-2024.csv', 'w'); f.close()")
    session.run("import os; os.mkdir('results')")
    completes(session, "open('grad", "open('grades-2024.csv'")
    completes(session, 'open("/home/grad', 'open("/home/grades-2024.csv"')
    completes(session, "open('resu", "open('results/")


def test_tab_completes_a_key_and_closes_the_bracket(session):
    session.run("d = {'alpha': 1, 'beta/': 2}; n = {1234: 1}")
    for key, rest in [("d['al", "pha']"), ('d["al', 'pha"]'),
                      ("d['be", "ta/']"), ("n[12", "34]"),
                      ("f'{d[\"al", "pha\"]")]:
        completes(session, key, key + rest)


def test_tab_does_not_close_a_string_that_is_closed_already(session):
    session.run("d = {'alpha': 1}")
    session.type("d['al']\x02\x02\t")
    session.expect(r"^>>> d\['alpha'\]$")
    session.type(" ")
    session.expect(r"^>>> d\['alpha '\]$")
    session.type("\x03")
    session.wait_prompt()


def test_tab_closes_no_string_while_there_are_several_candidates(session):
    session.run("d = {'alpha': 1, 'alpine': 2}")
    completes(session, "d['a", "d['alp")


def test_tab_lists_the_candidates_when_there_are_several(session):
    session.run("import string")
    session.type("string.ascii\t")
    session.expect(r">>> string\.ascii_$")
    session.type("\t")
    session.expect(r"^ascii_letters  .*\n(.*\n)*>>> string\.ascii_$")
    session.type("\x03")
    session.wait_prompt()


def test_tab_walks_the_candidates_that_are_listed(cb):
    session = cb.session("--set", "terminal.suggest=no")
    session.run("walk_a, walk_b, walk_c = 1, 2, 3")
    session.type("walk")
    shows(session, "walk")
    session.type("\t")
    shows(session, "walk_")
    session.type("\t")
    session.expect(r"^walk_a  walk_b  walk_c$")
    for key, name in [("\t", "a"), ("\t", "b"), ("\t", "c"), ("\t", "a"),
                      ("\x1b[Z", "c"), ("\x1b[Z", "b")]:
        session.type(key)
        shows(session, "walk_" + name)
    assert len(re.findall("^walk_a  ", session.all_text(), re.M)) == 1
    # any other key keeps the choice, and the next Tab asks anew
    session.type("\x1b[D")
    session.type("\x1b[C")
    session.type("+walk_c")
    shows(session, "walk_b+walk_c")
    session.type("\r")
    session.expect("^5$")
    session.wait_prompt()
    session.type("walk_\t")
    session.expect(r"^walk_a  walk_b  walk_c$(\n.*)*^walk_a  walk_b  walk_c$")
    session.type("\x1b[Z")
    shows(session, "walk_c")
    session.type("\x03")
    session.wait_prompt()


def test_tab_completes_numbers_of_cells(session):
    session.run("first = 1")
    session.run("print('second')")
    completes(session, ":edit 1", ":edit 1")
    session.type(":edit \t")
    session.expect(r"^1  2$")
    session.type("\t")
    shows(session, ":edit 1")
    session.type("\r")
    shows(session, "first = 1")
    session.type("\x03")
    session.wait_prompt()


def test_tab_completes_the_target_of_a_download(cb):
    for name in "results-here", "resort":
        (cb.work / name).mkdir()
    (cb.work / "results.txt").touch()
    s = cb.session()
    s.run("f = open('a.csv', 'w'); f.close()")
    completes(s, ":download a.csv resu", ":download a.csv results-here/")
    s.type(":download a.csv res\t")
    s.expect(r"^resort/ +results-here/$")
    s.type("\t\t")
    shows(s, ":download a.csv results-here/")
    s.type("\r")
    s.wait_prompt()
    assert (cb.work / "results-here" / "a.csv").exists()


def test_tab_at_the_start_of_a_line_indents(session):
    session.type("\tx")
    session.expect(r"^>>>     x")
    session.type("\x03")
    session.wait_prompt()


SIGNATURE = "area(radius, *, unit='m')"


def below(session):
    """The row below the cursor's."""
    return "".join(session.screen.shown()[session.screen.cursor.y + 1:][:1])


def shows_below(session, text):
    session.wait(lambda: below(session) == text, f"{text!r} below the cell")


@pytest.fixture
def area(cb):
    s = cb.session("--set", "terminal.colour=always")
    s.run("def area(radius, *, unit='m'): return radius * 2")
    return s


def test_the_signature_is_shown_inside_a_call(area):
    for typed, wanted in [("area", ""), ("(", SIGNATURE), ("[1, (2", SIGNATURE),
                          (")], sum(", "sum(iterable, /, start=0)"),
                          ("3)", SIGNATURE), (")", "")]:
        area.type(typed)
        shows_below(area, wanted)
    area.type("\x1b[D")
    shows_below(area, SIGNATURE)
    area.type("\x03")
    area.wait_prompt()
    assert "unit='m')" not in area.screen_text().split("^C")[1]
    area.type("area(1")
    shows_below(area, SIGNATURE)
    area.type(" + 1)\r")
    area.expect("^4$")
    area.wait_prompt()
    assert not re.search("^area.radius", area.all_text(), re.M)


def test_the_signature_moves_no_prompt(area):
    """The prompt stays also where the cell ends at the bottom of the screen."""
    area.run("for i in range(40): print(i)")
    area.type("1 + ")
    area.wait(lambda: area.screen.cursor_row() == ">>> 1 +", "the text")
    y = area.screen.cursor.y
    # Below the last row there is nothing, either, while the cursor is there.
    for keys, text in ("area(", SIGNATURE), ("3)", ""):
        area.type(keys)
        area.wait(lambda: area.screen.cursor.y == y and below(area) == text,
                  f"{text!r} below the same row")
    area.type("\r")
    area.expect("^7$")
    area.wait_prompt()
    # the next prompt follows the value, without a row between
    assert area.screen.shown()[area.screen.cursor.y - 1] == "7"


def test_a_signature_that_is_too_wide_says_so(area):
    """Also where a wide character has no room at its end."""
    for letters in "'x' * 70", "'日' * 36", "'x' + '日' * 36":
        area.run(f"exec('def wide(a, %s, last): pass' % ({letters}))")
        area.type("wide(")
        area.wait(lambda: below(area).startswith("wide(a, "), "the signature")
        row = below(area)
        assert row.endswith("…") and "last" not in row, row
        area.type("\x03")
        area.wait_prompt()


def test_no_signature_is_shown_of_a_definition_or_a_command(area):
    for typed in "def area (", ":help area(", "x.area(", "nothing(":
        area.type(typed)
        area.wait(lambda: area.screen.cursor_row().endswith(typed), typed)
        # the control: that of a call which is typed next is shown
        area.type("\x03")
        area.wait_prompt()
        area.type("area(")
        shows_below(area, SIGNATURE)
        area.type("\x03")
        area.wait_prompt()
    assert len(re.findall(r"\x1b\[2marea\(radius", area.raw.decode())) == 4


@pytest.mark.parametrize("option, variable", [
    (("--set", "terminal.suggest=no"), {}), ((), {"NO_COLOR": "1"}),
    ((), {"TERM": "dumb"})])
def test_no_signature_is_shown_where_none_is_wanted(cb, option, variable):
    s = cb.session(*option, env=variable)
    s.run("asked = []")
    s.run("def area(radius, *, unit='m'): return radius * 2")
    s.type("area(1")
    s.wait(lambda: s.screen.cursor_row().endswith("area(1"), "the text")
    s.type(")\r")
    s.expect("^2$")
    s.wait_prompt()
    assert "area(radius, *" not in s.all_text().replace("def area(radius, *", "")
    assert b"\x1b[2marea" not in s.raw


@pytest.mark.parametrize("doc, source", [("area?", "area??"),
                                         ("?area", "??area")])
def test_one_question_mark_shows_the_doc_and_two_the_source(
        session, doc, source):
    session.run("def area(r):\n    'the area of a circle'")
    out = session.run(doc)
    assert "area(r)" in out and "the area of a circle" in out
    assert out.splitlines() != session.run(source).splitlines()
    assert "def area(r):" in session.run(source)
