# SPDX-License-Identifier: MIT
"""The driver without a jail: no question runs code of the user's in the live
Python, whatever objects have been made for that."""
import pytest

KEY = """ran = []
class S(str):
    def __hash__(s): ran.append("hash"); return hash(str(s)[1:])
    def __eq__(s, o): ran.append("eq"); return False
    def __lt__(s, o): ran.append("lt"); return False
    __gt__ = __lt__
    def startswith(s, *t): ran.append("startswith"); return True
    def isidentifier(s): ran.append("isidentifier"); return True
    def isprintable(s): ran.append("isprintable"); return True
class Meta(type):
    def __eq__(c, o): ran.append("=="); return True
    def __hash__(c): ran.append("#"); return 1
    def __getattribute__(c, n): ran.append(n); return type.__getattribute__(c, n)
"""
# How an object is made, and the questions about it.
TRICKS = {
    "a key of an object": (
        "class C: pass\nx = C(); x.a = 1\n"
        "x.__dict__[S('xnext')] = 1; x.__dict__[S('x__dir__')] = 1",
        ["x.next.", "x.", "x.a.", "x['", "x.next(", "x(", "x.a"]),
    "a key of a class": (
        "C = type('C', (), {S('xnext'): 1, S('x__get__'): 1, S('x__dict__'): 1, "
        "S('x__dir__'): 1, S('x__module__'): 1, S('x__init__'): 1, "
        "S('x__class__'): 1, S('x__call__'): 1, S('x__wrapped__'): 1})\nx = C()",
        ["x.next.", "C.next.", "x.", "C.", "x['", "x.next(", "x(", "C(", "x"]),
    "a key of a module": (
        "import types\nx = types.ModuleType('x')\n"
        "x.__dict__[S('xnext')] = 1; x.__dict__[S('x__dir__')] = 1\n"
        "import sys; sys.modules['x'] = x",
        ["x.", "x.next.", "from x import ", "import x."]),
    "a key of sys.modules": (
        "import sys; sys.modules[S('xnext')] = 1",
        ["import next.", "from next import ", "next.", "next("]),
    "a key of builtins": (
        "import builtins; vars(builtins)[S('xnext')] = 1", ["next.", "ne", "n"]),
    "a name in the place of a descriptor's": (
        "class getset_descriptor:\n"
        "    def __get__(s, o, k): ran.append('get'); return {}\n"
        "class member_descriptor(getset_descriptor): pass\n"
        "class C: a = getset_descriptor(); b = member_descriptor()\n"
        "class D: __dict__ = member_descriptor(); __class__ = getset_descriptor()\n"
        "x, y = C(), D()",
        ["x.a.", "x.b.", "x.a['", "x.b(", "y.a.", "y.", "x.a", "y.a"]),
    "a class of a class": (
        "class C(metaclass=Meta): pass\n"
        "x, l, d = C(), [C()], {1: C(), C: 1}\n"
        "def f(a=C(), *, b=C(), c=C): pass",
        ["x.", "C.", "x.a.", "l[0].", "d['", "d[", "f(", "f(a=1, ", "x(", "C(", "x", "d"]),
    "a key whose class has a class": (
        "class C(metaclass=Meta): pass\nx = {C(): 1}", ["x['", "x[", "x[1]."]),
    "defaults": (
        "class T(tuple):\n"
        "    def __len__(s): ran.append('len'); return 1\n"
        "    def __bool__(s): ran.append('bool'); return True\n"
        "    def __getitem__(s, i): ran.append('item'); return (1,)\n"
        "class D(dict):\n    def __len__(s): ran.append('len'); return 1\n"
        "    def __bool__(s): ran.append('bool'); return True\n"
        "def f(a, *, b): pass\n"
        "f.__defaults__ = T((1,)); f.__kwdefaults__ = D(b=1)",
        ["f(", "f(a"]),
    "what a partial holds": (
        "import functools\ndef f(a, b): pass\n"
        "p = functools.partial(f, b=1); p.keywords[S('xa')] = 1", ["p(", "p(a"]),
    "a path of a package": (
        "import sys, types\nclass P:\n"
        "    def __iter__(s): ran.append('iter'); return iter(())\n"
        "class Q:\n    def __bool__(s): ran.append('bool'); return True\n"
        "    def __fspath__(s): ran.append('path'); return '.'\n"
        "    def __hash__(s): ran.append('hash'); return 1\n"
        "    def __add__(s, o): ran.append('add'); return ''\n"
        "for name, path in ('x', P()), ('y', [Q()]):\n"
        "    sys.modules[name] = types.ModuleType(name)\n"
        "    sys.modules[name].__path__ = path",
        ["import x.", "from x import ", "import y.", "from y import "]),
    "no module": (
        "import sys\nclass M:\n    @property\n"
        "    def __dict__(s): ran.append('dict'); return {}\n"
        "sys.modules['x'] = M()", ["import x.", "from x import ", "x."]),
    "the path": (
        "import sys\nclass P(list):\n"
        "    def __iter__(s): ran.append('iter'); return iter(())\n"
        "sys.path = P(sys.path)", ["import ", "import absent.", "from absent import "]),
    "what a C field asks": (
        "import io, types\nclass R(io.RawIOBase):\n"
        "    def readable(s): return True\n    @property\n"
        "    def closed(s): ran.append('closed'); return False\n"
        "class F:\n    def __call__(s): pass\n    @property\n"
        "    def __doc__(s): ran.append('doc'); return ''\n"
        "    @property\n"
        "    def __isabstractmethod__(s): ran.append('abstract'); return 1\n"
        "x, y, z = io.BufferedReader(R()), types.MethodType(F(), 1), property(F())\n"
        "ran.clear()",
        ["x.closed.", "y.__doc__.", "y(", "z.__isabstractmethod__."]),
    "what a proxy stands for": (
        "import weakref\nclass C:\n"
        "    def __getattribute__(s, n): ran.append(n); return {}\n"
        "c = C(); x = weakref.proxy(c)", ["x.", "x.a.", "x['", "x(", "x"]),
    "an alias of classes": (
        "class C:\n    def __getattr__(s, n): ran.append(n); raise AttributeError\n"
        "x = list[C()]; ran.clear()", ["x.", "x.__parameters__.", "x("]),
}


@pytest.mark.parametrize("what", TRICKS)
def test_no_trick_runs_anything_in_the_live_python(guest, what):
    made, questions = TRICKS[what]
    guest.run(KEY + made + "\nran.clear()")
    assert guest.out == "", guest.out
    guest.run("len(ran)")
    assert guest.out_of("ran") == "[]\n", "cells run it"
    for text in questions:
        for kind, last in ("complete", ""), ("signature", "("), ("watch", ""):
            asked = text[:len(text) - len(last)]
            if text.endswith(last) and not (
                    kind == "watch" and not text[-1].isalnum()):
                guest.ask(kind, asked)
                assert guest.out_of("ran") == "[]\n", (kind, asked)


def test_the_tricks_are_some(guest):
    """The control: the same code runs in a cell."""
    guest.run(KEY + "class C(metaclass=Meta): pass\nran.clear()")
    for text, wanted in [("'next' in {S('xnext'): 1}", "eq"),
                         ("C in (1, int)", "=="), ("hash(C)", "#"),
                         ("C.__dict__ and 1", "__dict__"),
                         ("sorted([S('a'), S('b')]) and 1", "lt")]:
        guest.out_of(text)
        assert wanted in guest.out_of("ran"), text
        guest.run("ran.clear()")
