# SPDX-License-Identifier: MIT
"""The driver without a jail: answers to questions."""
import pytest

from driver import until

def test_names_attributes_and_keywords_complete(guest):
    guest.run("import math\nvalue = 1\n_hidden = 2\nclass C:\n  ab = 1\n"
              "  def __init__(self): self.ac = 2\nc = C()")
    assert guest.complete("va") == (2, ["value", "vars"])
    assert guest.complete("x = [whi") == (3, ["while"])
    assert guest.complete("_hi") == (3, ["_hidden"])
    assert guest.complete("c.a") == (1, ["ab", "ac"])
    assert guest.complete("c.")[1][:2] == ["ab", "ac"]
    assert guest.complete("print(math.flo") == (3, ["floor"])
    assert guest.complete("nowhere.x") == (1, [])
    assert guest.complete("1.re")[1] == []
    assert guest.complete("# va") == (0, [])


def test_a_key_of_the_namespace_is_not_compared(guest):
    guest.run("ran = []\nclass Key:\n  def __hash__(self): return hash('abc')\n"
              "  def __eq__(self, other): ran.append(other)\n"
              "globals()[Key()] = 1\nabc = 2")
    guest.run("ran.clear()")
    assert guest.complete("abc.rea") == (3, ["real"])
    assert guest.complete("abd.rea") == (3, [])
    assert guest.out_of("len(ran)") == "0\n"


def test_completion_counts_bytes(guest):
    guest.run("größe = 1")
    assert guest.complete("grö") == (4, ["größe"])


def test_what_runs_code_of_the_users_is_evaluated_in_a_copy(guest):
    guest.run("ran = []\nclass C:\n  @property\n  def p(self):\n"
              "    ran.append(1); return self\n"
              "  def __getattr__(self, n):\n    ran.append(n); return 1\nc = C()")
    assert "p" in guest.complete("c.")[1]
    assert guest.wanted == "c"
    assert "p" in guest.complete("c.p.")[1]
    assert guest.wanted == "c.p"
    assert guest.complete("c.q.rea") == (3, ["real"])
    assert guest.complete("x = [c.p.q, (c.q + 1).rea") == (3, ["real"])
    assert guest.wanted == "(c.q + 1)"
    for text in "c.p.nothing.", "(c.).x", "none.x.", "len(c.q).y.z", "(await c).":
        guest.complete(text)
    assert guest.out_of("ran") == "[]\n"
    # Where no copy can be made nothing runs, and the rest is said.
    assert "p" in guest.ask("complete", "c.", alone=True).splitlines()
    assert guest.ask("complete", "c.q.", alone=True) == "0\n"
    assert "cannot be copied" in guest.ask("doc", "c.q", alone=True)
    assert guest.out_of("ran") == "[]\n"


def test_nothing_runs_of_what_a_class_says_of_itself(guest):
    guest.run("ran = []\nclass Odd:\n  def __repr__(self): ran.append(1)\n"
              "class C:\n  __module__ = Odd()\nc = C()\nclass D:\n"
              "  __dict__ = property(lambda self: ran.append(2) or {})\n"
              "  mine = 1\nd = D()")
    assert guest.complete("c['") == (0, [])
    assert guest.complete("d.mi") == (2, ["mine"])
    assert guest.complete("d.mine.rea") == (3, ["real"])
    assert guest.out_of("ran") == "[]\n"


FRAME = """
import numpy
ran = []
class Base:
    __module__ = "pandas.core"
    def __dir__(self): ran.append(1); return []
    sparse = 1
class Index: pass
class Manager: pass
def frame(kind, *labels):
    o = object.__new__(kind)
    index, manager = Index(), Manager()
    index._data = numpy.array(labels, dtype=object)
    manager.axes = [index, None]
    o.__dict__["_mgr"] = manager
    return o
class Key:
    def __hash__(self): return hash("sparse")
    def __eq__(self, other): ran.append(2); return True
"""


def test_the_attributes_of_a_frame_are_known_without_a_copy(guest):
    """A frame of pandas says what its columns are, and dir() of it is pandas'
    own."""
    pytest.importorskip("numpy")
    guest.run(FRAME + "class Mine(Base):\n  def __dir__(self): ran.append(3)\n"
              "f = frame(Base, 'score', 'a b', 7, Key())\n"
              "f.__dict__[Key()] = 1\nmine = frame(Mine, 'score')\n"
              "class Late(Base):\n"
              "  _mgr = property(lambda self: ran.append(4))\n"
              "late = object.__new__(Late)")
    assert guest.complete("f.") == (0, ["score"])
    assert guest.wanted is None
    assert guest.complete("mine.") == (0, [])
    assert guest.wanted == "mine"
    guest.complete("late.")
    assert guest.wanted == "late"
    assert guest.out_of("ran") == "[]\n"


def test_the_attributes_of_a_frame_are_those_that_dir_says(guest):
    if guest.run("import pandas") != "ok":
        pytest.skip("no pandas")
    guest.run("f = pandas.DataFrame({'a': [1], 'b c': ['x'], 'count_': [2]})")
    said = guest.complete("f.")[1]
    assert guest.wanted is None
    assert "a" in said and "count_" in said and "plot" in said
    assert guest.out_of("sorted(n for n in dir(f) if n[0] != '_') == %r"
                        % sorted(said)) == "True\n"


def test_columns_and_fields_complete(guest):
    pytest.importorskip("numpy")
    guest.run("import numpy as np\n"
              "rec = np.zeros(3, dtype=[('alpha', int), ('beta', float)])\n"
              "class T:\n  def _ipython_key_completions_(self):\n"
              "    return ['col', 'cost']\n  loc = property(lambda self: self)\n"
              "t = T(); d = {'t': t, 'k': 1}; keys = ['col']")
    for text, names in [
            ("rec['al", ["alpha"]), ("rec[0]['be", ["beta"]), ("t['co", ["col", "cost"]),
            ("t[['col', 'cos", ["cost"]), ("t.loc[:, 'cos", ["cost"]), ("t['col'].x, t[\"cos", ["cost"]),
            ("d['t']['col", ["col"]), ("d['", ["k", "t"]), ("t['x", []), ("keys['c", []),
            ("rec[t['co", ["col", "cost"])]:
        assert guest.complete(text)[1] == names, text


def test_keys_that_are_too_long_to_be_typed_are_left_out(guest):
    """Writing out a number of so many digits takes minutes."""
    guest.run("import sys\ngetattr(sys, 'set_int_max_str_digits', id)"
              "(0)\nlong = 10 ** 8\n"
              "d = {1 << long: 0, 'x' * long: 0, b'x' * long: 0, 7: 0, 'x': 0}")
    assert guest.complete("d[") == (0, ["'x'", "7"])
    assert guest.complete("d['") == (0, ["x"])


def test_a_files_name_completes_only_where_a_path_may_be(guest, home):
    (home / "col.csv").write_text("")
    guest.run("class T:\n  pass\nt = T()")
    for text, names in [
            ("open('co", ["col.csv"]), ("x = 'co", ["col.csv"]), ("['co", ["col.csv"]),
            ("t[open('co", ["col.csv"]), ("t['co", []), ("t[['co", []), ("t.x['co", []),
            ("t(1)['co", [])]:
        assert guest.complete(text)[1] == names, text


def test_nothing_of_a_metaclass_runs_but_in_a_copy(guest):
    guest.run("ran = []\nclass M(type):\n"
              "  def __eq__(c, o): ran.append('=='); return False\n"
              "  __hash__ = type.__hash__\n  @property\n"
              "  def __name__(c): ran.append('name'); return 'x'\n"
              "class C(metaclass=M): pass\n"
              "c = C()\nc.own = C.one = c\nc.name = ['']")
    for text in "c[0].", "c['a'].", "c.own.", "c.one.", "C.one.", "c[":
        guest.complete(text)
    assert guest.out_of("ran") == "[]\n"
    assert "upper" in guest.complete("c.own.one.name[0].")[1]


def test_modules_complete_without_being_imported(guest, home):
    (home / "mypack").mkdir()
    (home / "mypack" / "__init__.py").write_text("import nowhere\nabc = 1\n")
    (home / "mypack" / "sub.py").write_text("def deep(): pass\n")
    assert guest.complete("import mypa") == (4, ["mypack"])
    assert guest.complete("import os, mypa") == (4, ["mypack"])
    assert guest.complete("import mypack.s") == (1, ["sub"])
    assert guest.complete("from mypack import a") == (1, ["abc"])
    assert guest.complete("from mypack import abc, s") == (1, ["sub"])
    assert guest.complete("from mypack.sub import d") == (1, ["deep"])
    assert "json" in guest.complete("import jso")[1]
    assert "JSONDecoder" in guest.complete("from json import JSOND")[1]
    assert guest.complete("from json im") == (2, ["import"])
    assert guest.run("mypack") == "raised"


SAMPLE = """\
import collections, functools
ran = []
class Odd:
    value = 1
    def __getitem__(self, key): ran.append(key); return self
    def __getattr__(self, name): ran.append(name); return self
    def __repr__(self): ran.append("repr"); return "odd"
    def __eq__(self, other): ran.append("eq"); return True
    def __hash__(self): return hash("k")
    def __call__(self, *, again=None): pass
    def method(self, speed, *, wide=False): pass
    @property
    def prop(self): ran.append("prop"); return self
class List(list):
    def __getitem__(self, i): ran.append(i); return 1
odd, lists, z = Odd(), List("a"), [1j, "s", {"kappa": ["x"]}]
d = {"outer": {"inner one": 1, 7: 2}, odd: {"no": 1}}
class Point:
    def __init__(self, left, right=0): pass
class Made:
    def __new__(cls, model): pass
def f(name, number=1, *rest, other=odd, **more): pass
def only(first, /, second): pass
part = functools.partial(f, 1, other=2)
@functools.wraps(f)
def wrapper(*args): pass
"""


def test_literals_and_what_builtin_containers_hold_complete(guest):
    guest.run(SAMPLE)
    for text, name in [
            ('"x".up', "upper"), ("f(b'x'.fromh", "fromhex"), ("[].app", "append"),
            ("{}.setd", "setdefault"), ("z[0].rea", "real"), ("z[1].up", "upper"),
            ("z[-1].setd", "setdefault"), ("z[2]['kappa'][0].up", "upper"),
            ("z[1:].app", "append"), ("d['outer'].setd", "setdefault"),
            ('"""a"b""".up', "upper"), ("len('(') + z[0].rea", "real")]:
        assert guest.complete(text)[1] == [name], text
        assert guest.wanted is None
    assert guest.complete("d['outer']['in") == (2, ["inner one"])
    assert guest.complete("d['outer'][") == (0, ["'inner one'", "7"])
    for text in "z[9].rea", "z[z].rea", "1.rea", "z[0]().rea", "'a' .join.x.y":
        assert guest.complete(text)[1] == [], text
    for text, name in [
            ("odd[0].va", "value"), ("odd.prop.va", "value"), ("odd.nothing.va", "value"),
            ("lists[0].rea", "real"), ("d['k'].setd", "setdefault"), ("(z)[0].rea", "real"),
            ("odd.va", "value")]:
        assert guest.complete(text)[1] == [name], text
        assert guest.wanted
    assert guest.out_of("ran") == "[]\n"
    # the control: what they name would run
    guest.run("odd[0].value, odd.prop;")
    assert guest.out_of("ran") == "[0, 'prop']\n"


def test_keyword_arguments_complete(guest):
    guest.run(SAMPLE)
    for text, names in [
            ("f(", ["name=", "number=", "other="]), ("f(nam", ["name="]),
            ("f(1, o", ["object", "oct", "odd", "only", "open", "or", "ord", "other="]),
            ("x = [f(1,\n  num", ["number="]), ("f(number=2, n", ["name=", "next", "nonlocal", "not"]),
            ("f(g(name=1), nam", ["name="]), ("f(name=nam", []), ("f[nam", []),
            ("f((1, nam", []), ("f(1)(nam", []), ("only(", ["second="]),
            ("odd(ag", ["again="]), ("odd.method(s", ["set", "setattr", "slice",
                "sorted", "speed=", "staticmethod", "str", "sum", "super"]),
            ("Odd.method(wi", ["wide=", "with"]), ("Point(le", ["left=", "len"]),
            ("Made(mo", ["model="]), ("part(nu", ["number="]), ("part(ot", []),
            ("wrapper(nam", ["name="]), ("print(fl", ["float", "flush="]),
            ("sorted(ke", ["key="]), ("'a'.split(max", ["max", "maxsplit="])]:
        assert guest.complete(text)[1] == names, text
    assert guest.out_of("ran") == "[]\n"


def test_signatures_show_no_value_whose_repr_is_the_users(guest):
    guest.run(SAMPLE)
    for text, said in [
            ("f", "(name, number=1, *rest, other=..., **more)"),
            ("only", "(first, /, second)"), ("odd.method", "(speed, *, wide=False)"),
            ("odd", "(*, again=None)"), ("Point", "(left, right=0)"), ("part", "(number=1, *rest, **more)"),
            ("sum", "(iterable, /, start=0)"), ("str.join", "(self, iterable, /)"),
            ("'a'.join", "(iterable, /)"), ("dict.fromkeys", "(iterable, value=None, /)"),
            ("range", "(stop)"), ("Odd.method", "(self, speed, *, wide=False)"),
            ("''.join.x", ""), ("object", "()"),
            ("nothing", ""), ("z", ""), ("odd.prop", "(*, again=None)"),
            ("odd.nothing.method", "(speed, *, wide=False)"),
            ("x = [z[0].real, str(z[1]).join", "(iterable, /)")]:
        assert guest.ask("signature", text) == said, text
    assert guest.out_of("ran") == "[]\n"


def test_keys_and_files_complete_in_strings(guest, home):
    (home / "grades.csv").write_text("")
    (home / "data").mkdir()
    (home / "data" / "deep.txt").write_text("")
    (home / "odd\nname").write_text("")
    guest.run("d = {'alpha': 1, 'al\"so': 2, 3: 4}")
    assert guest.complete("d['al") == (2, ['al"so', "alpha"])
    assert guest.complete('d["al') == (2, ['al\\"so', "alpha"])
    assert guest.complete("d[") == (0, ["'al\"so'", "'alpha'", "3"])
    assert guest.complete("open('gr") == (2, ["grades.csv"])
    assert guest.complete("open('data/") == (0, ["deep.txt"])
    assert guest.complete("open('da") == (2, ["data/"])
    assert guest.complete("open('odd") == (3, [])
    assert guest.complete("'''da\nda") == (0, [])
    assert guest.complete("f'{d.ke") == (2, ["keys"])
    guest.run("class T:\n  def _ipython_key_completions_(self):\n"
              "    return ['col']\nt = T()")
    assert guest.complete("t['c") == (1, ["col"])


def test_answers_are_bounded(guest):
    guest.run("big = {('k%04d' % i): 1 for i in range(3000)}\n"
              "class C:\n  'doc'\nC.__doc__ = 'x' * 10**6\n"
              "globals().update({'v%04d' % i: 'é' * 300 for i in range(2000)})")
    assert len(guest.complete("big['k")[1]) == 500
    for kind, text in ("doc", "C"), ("who", ""), ("source", "C"):
        assert len(guest.ask(kind, text).encode()) <= 60 * 1024
    assert "[cut: " in guest.ask("doc", "C")


def test_doc_shows_signature_and_text(guest):
    guest.run("def area(r: float, *, unit='m'):\n  'the area'\n\n"
              "class P:\n  'a point'\n  def __init__(self, x): self.x = x\n"
              "p = P(3)")
    assert guest.ask("doc", "area") == \
        "area(r: float, *, unit='m')\n\nthe area\n"
    assert guest.ask("doc", "P") == "class P(x)\n\na point\n"
    assert "a point" in guest.ask("doc", "p")
    assert guest.ask("doc", "nowhere").startswith("NameError")
    assert guest.ask("doc", "len").startswith("len(obj, /)")
    assert '"for" statement' in guest.ask("doc", "for")
    guest.run("twice = lambda x: 2 * x\n"
              "def outer():\n  def inner(y): pass\n  return inner\n"
              "got = outer()\nP.__qualname__ = 'Q'")
    assert guest.ask("doc", "twice") == "twice(x)\n\n(no documentation)\n"
    assert guest.ask("doc", "got").startswith("got(y)\n")
    assert guest.ask("doc", "P").startswith("class Q(x)\n")


def test_source_is_found_for_functions_and_classes_of_cells(guest):
    guest.run("class Old:\n  x = 1\n")
    guest.run("@len.__class__.__call__ if 0 else (lambda c: c)\n"
              "class Old:\n    class In:\n        y = 2\n\nz = 1")
    guest.run("def f(a):\n    return a")
    assert guest.ask("source", "f") == "def f(a):\n    return a\n"
    assert guest.ask("source", "Old").endswith("y = 2\n")
    assert guest.ask("source", "Old").startswith("@len")
    assert guest.ask("source", "Old.In").strip() == "class In:\n        y = 2"
    guest.run("o = Old(); n = 5; import enum\n"
              "class P:\n  @property\n  def p(self): return 1\n")
    assert guest.ask("source", "o") == guest.ask("source", "Old")
    assert guest.ask("source", "P.p").startswith("  @property\n")
    assert guest.ask("source", "enum").startswith("import ")
    for name in ("len", "n", "int", "str.upper"):
        assert guest.ask("source", name) == \
            f"no source of {name}: it is not written in Python\n"
    assert "'nowhere' is not defined" in guest.ask("source", "nowhere")


def test_who_lists_names_types_sizes_and_values(guest):
    guest.run("n = 3\ns = 'a\\tb\\x1b[31m'\n_ = 1\n__x = 2\n"
              "class Bad:\n  def __repr__(self): raise ValueError\nb = Bad()\n"
              "l = list(range(1000))")
    rows = [line.split("\t") for line in guest.ask("who").splitlines()]
    assert [r[0] for r in rows] == ["n", "s", "Bad", "b", "l"]
    assert all(len(r) == 4 and len(r[3]) <= 60 for r in rows)
    assert rows[0][1:] == ["int", "28 B", "3"]
    assert "\33" not in rows[1][3]
    assert rows[4][2].endswith("KiB")


def test_a_question_that_hangs_can_be_interrupted(guest):
    guest.run("class C:\n  @property\n  def __doc__(self):\n"
              "    print('in doc', flush=True)\n    while True: pass\nc = C()")
    guest.screen()
    guest.ctl.send(b"ASK 1 doc 1\nc")
    until(lambda: guest.drain() or b"in doc" in guest.seen, "__doc__")
    guest.interrupt()
    assert guest.say() == b"ANSWER 1 0\n"
    assert guest.out_of("1 + 1") == "2\n"
