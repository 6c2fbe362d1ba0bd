# SPDX-License-Identifier: MIT
"""A guest says of each cell whether it has changed a variable."""
import pytest

BEGIN = """
import collections, datetime, math, re
n, text, words = 1000, 'abc', ['a', ['b']]
table = {'k': [1]}
counts = collections.defaultdict(list, a=[1])
day, pattern = datetime.date(2020, 1, 1), re.compile('x')
class A:
    size = 5
    def __init__(self): self.n = 7
    def get(self): return self.n
    def put(self, n): self.n = n
class S:
    __slots__ = 'x',
    def __init__(self): self.x = [1]
a, s = A(), S()
class T:
    __slots__ = 'x', 'y'
    def __init__(self): self.x = words
class E(Exception): pass
t, e = T(), E()
e.__context__ = error = E()
q = __import__('types').SimpleNamespace(x=words)
h = lambda x: x + 1
def f(x, memo=[]): return x
def g(x): words.append(x)
data = bytearray(b'1234')
"""
SAME = ["n", "n + 1", "words[0], table['k']", "print(words)", "a.get()",
        "f(5)", "math.sin(1)", "sorted(words[1])", "pattern.match('x')",
        "1/0", "n = = 5", "[x for x in words];", "n = n", "pass",
        "assert n == 5", "len(data), data[0]", "day.year", "None",
        "words.index('a')", "f'{n}'", "import math", "a.__dict__", "t.x",
        "e.args, e.__context__", "q.x", "h(1)"]
CHANGED = ["n = 1001", "del n", "m = 5", "words.append(5)", "words[1][0] = 5",
           "words.sort(key=str)", "table['k'].pop()", "table['j'] = 1",
           "counts['new']", "counts['b'] = counts.pop('a')",
           "table['use_cache'] = True", "table['j'] = table.pop('k')",
           "a.put(8)", "a.n += 1", "A.size = 6", "g(1)",
           "s.x.append(2)", "data[0] = 5", "f.__defaults__[0].append(1)",
           "def f(x, memo=[]): return x + 1", "import json", "n = 1000.0",
           "a.m = a.n; del a.n", "A.n = A.size; del A.size",
           "t.y = t.x; del t.x", "q.y = q.x; del q.x",
           "e.y = error; e.__context__ = None",
           "e.__cause__ = error; e.__context__ = None",
           "h.__code__ = (lambda x: x - 1).__code__", "f.__doc__ = 'f'",
           "class A: pass", "text += 'd'", "words = words[:]"]


def begin(guest):
    guest.out_of(BEGIN)
    assert guest.park()


@pytest.fixture
def begun(guest):
    begin(guest)
    return guest


def said(guest, cell):
    guest.run(cell)
    assert guest.park()
    return guest.parked.split()[2]


def test_a_cell_that_looks_changes_nothing(begun):
    assert {cell: said(begun, cell) for cell in SAME} == \
        dict.fromkeys(SAME, b"same")


def test_a_change_is_seen(guest):
    """Of one guest, in which everything begins anew for each cell."""
    seen = {}
    for cell in CHANGED:
        begin(guest)
        seen[cell] = said(guest, cell)
        assert said(guest, "pass") == b"same", cell
    assert seen == dict.fromkeys(CHANGED, b"ok")


def test_what_cannot_be_seen_may_have_changed(begun):
    assert said(begun, "it = iter(words)") == b"ok"
    assert said(begun, "next(it)") == b"ok"
    assert said(begun, "a.get()") == b"ok", "it may have gone on"
    assert said(begun, "print(n)") == b"same", "this only looks"
    assert said(begun, "del it") == b"ok"
    assert said(begun, "a.get()") == b"same"


def test_too_much_to_walk_through_may_have_changed(begun):
    assert said(begun, "big = list(range(99999))") == b"ok"
    assert said(begun, "big.count(3)") == b"ok"
    assert said(begun, "len(big), big[5]") == b"same"


def test_arrays_are_compared_by_what_they_hold(begun):
    pytest.importorskip("numpy")
    assert said(begun, "import numpy as np; z = np.arange(9)") == b"ok"
    assert said(begun, "z.sum(), z[1:3]") == b"same"
    assert said(begun, "z[4] = 0") == b"ok"
    assert said(begun, "z.sort()") == b"ok"


def test_nothing_of_the_users_runs(begun):
    cell = ("ran = []\nclass M(type):\n    def __getattribute__(c, n):\n"
            "        ran.append(n)\n        return super()"
            ".__getattribute__(n)\n"
            "class B(metaclass=M):\n"
            "    def __hash__(s): ran.append('hash'); return 1\n"
            "    def __eq__(s, o): ran.append('eq'); return True\n"
            "    def __getattribute__(s, n): ran.append(n)\n"
            "b = B(); d = {b: b}; ran.clear()")
    assert said(begun, cell) == b"ok"
    assert said(begun, "pass") == b"same"
    assert begun.out_of("ran") == "[]\n"
