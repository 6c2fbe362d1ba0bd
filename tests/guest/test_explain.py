# SPDX-License-Identifier: MIT
"""The driver without a jail: the last error in plain words."""
import pytest


def explained(guest, cell):
    assert guest.run(cell) in ("raised", "syntax"), guest.out
    return guest.ask("explain")


@pytest.mark.parametrize("cell, words", [
    ("print((1", "The bracket ( has no other half"),
    ("if 1\n  2", "ends with a colon"),
    ("1 = x", "cannot be given a value"),
    ("if 1:\nx", "the next one has to be indented"),
    ("x = = 1", "Python cannot read this line"),
    ("x = 'a", "no quote at its end"),
    ("nowhere", "Nothing here has the name nowhere"),
    ("def f():\n  n += 1\nf()", "The function gives n a value"),
    ("import nowhere", "There is no module nowhere"),
    ("from os import nowhere", "has nothing of the name nowhere"),
    ("[].sort().x", "What stands before .x is None"),
    ("(1).nowhere", "is of the type int, and that type has no nowhere"),
    ("None[0]", "A value is None here"),
    ("(5)()", "Brackets call a function, and this is of the type int"),
    ("for i in 5: pass", "several values"),
    ("(1,)[0] = 2", "cannot be changed in place"),
    ("1 + 'a'", "+ does not work between the types int and str"),
    ("'a' + 1", "+ joins a str only with another str"),
    ("1 < 'a'", "< cannot compare them"),
    ("def f(a, b): pass\nf(1)", "f was called without a value for 'b'"),
    ("def f(a): pass\nf(1, 2)", "f takes 1 values, and was given 2"),
    ("def f(a): pass\nf(b=1)", "f has no parameter of the name b"),
    ("{[]: 1}", "A list can change"),
    ("[1]['a']", "A list is indexed by place"),
    ("int('x')", "'x' is no whole number"),
    ("a, b = 1, 2, 3", "Left of = are 2 names, and right of it more"),
    ("a, b = [1]", "Left of = are 2 names, and right of it 1 values"),
    ("1 / 0", "divided by zero"),
    ("def f(): f()\nf()", "A function calls itself"),
    ("open('nowhere')", "There is no file nowhere in the jail"),
    ("import json; json.loads('{')", "The text is not JSON"),
    ("b'\\xff'.decode()", "no text in utf-8"),
    ("assert 1 == 2", "What assert claims"),
    ("raise LookupError('deep')", "deep. Base class for lookup errors."),
])
def test_an_error_is_said_in_plain_words(guest, cell, words):
    assert words in explained(guest, cell)


def test_the_persons_line_is_shown(guest):
    guest.run("def mean(xs):\n    return sum(xs) / len(x)")
    assert explained(guest, "xs = [1]\nmean(xs)").split("\n")[:3] == [
        "NameError in <cell 1>, line 2, in mean", "",
        "    return sum(xs) / len(x)"]
    # Also where the error came from deep in a library.
    assert explained(guest, "import json\njson.loads('')").split("\n")[:3] == [
        "JSONDecodeError in <cell 3>, line 2", "", "    json.loads('')"]


@pytest.mark.parametrize("cell, hint", [
    ("count = 1; cuont", "Did you mean count?"),
    ("import jsn", "Did you mean json?"),
    ("d = {'score': 1}; d['scoer']", "Did you mean score?"),
    ("d = {'a': 1}; d['b']", "d has: 'a'"),
    ("xs = [1, 2]; xs[2]", "xs has 2: from 0 to 1."),
    ("xs = []; xs[0]", "xs is empty."),
    ("'x'.uper()", "Did you mean upper"),
])
def test_what_was_meant_is_guessed(guest, cell, hint):
    assert hint in explained(guest, cell)


def test_nothing_is_said_before_an_error(guest):
    guest.run("1")
    assert guest.ask("explain") == ""


def test_an_error_that_cannot_be_shown_is_explained(guest):
    guest.run("class E(Exception):\n  'own words'\n"
              "  def __str__(self): 1/0")
    assert "own words" in explained(guest, "raise E")
