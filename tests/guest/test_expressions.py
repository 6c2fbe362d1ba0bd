# SPDX-License-Identifier: MIT
"""The driver without a jail: the values of expressions that are watched."""
import pytest



def value(guest, text, copied=False):
    """The line of the answer; `copied`: a copy is what gives it."""
    line, number = guest.ask("watch", text).split("\n")
    assert int(number) >= 0
    assert (guest.wanted == text) == copied, guest.wanted
    return line


PLAIN = [
    ("n", "=3"), ("f", "=0.5"), ("none", "=None"), ("text", "='a\\n\\x1b[1mb'"),
    ("data", "=b'\\x00'"), ("l", "=[1, 'x', (2, None)]"), ("d", "={'k': {1.5}}"),
    ("größe", "=1"), ("c.own", "=[1]"), ("c.inner.own", "=2"), ("m.attr", "=7"),
    ("absent", ":NameError"), ("absent.x.y", ":NameError"),
    ("long", "=[0, 1, 2, 3, 4, 5, ...] (100000 items)"),
    ("longer", "=[0, 1, 2, 3, 4, 5, ...] (100 items)"),
    ("huge", "='" + "a" * 60 + "'... (50000000 characters)"),
    ("keys", "={0: 0, 1: 0, 2: 0, 3: 0, 4: 0, 5: 0, ...} (100000 items)"),
    ("frozen", "=frozenset({0, 1, 2, 3, 4, 5, ...}) (100000 items)")]


def test_plain_names_and_attributes_are_read_in_the_live_python(guest):
    guest.run("import types\nn, f, none, text, data = 3, .5, None, 'a\\n\\x1b[1mb', b'\\0'\n"
              "l, d, größe = [1, 'x', (2, None)], {'k': {1.5}}, 1\n"
              "class C: pass\nc = C(); c.own = [1]; c.inner = C(); c.inner.own = 2\n"
              "m = types.ModuleType('m'); m.attr = 7\n"
              "long, longer = [*range(10 ** 5)], [*range(100)]\n"
              "huge = 'a' * (50 * 10 ** 6)\nkeys = dict.fromkeys(range(10 ** 5), 0)\n"
              "frozen = frozenset(keys)")
    for text, wanted in PLAIN:
        assert value(guest, text) == wanted


def test_what_may_run_code_of_the_users_is_for_a_copy(guest):
    guest.run("""ran = []
class Odd:
    other = 1
    def __repr__(self): ran.append("repr"); return "odd one"
    def __hash__(self): ran.append("hash"); return 1
    def __eq__(self, o): ran.append("eq"); return True
    def __len__(self): ran.append("len"); return 4
    @property
    def prop(self): ran.append("prop"); return 5
class Asks:
    def __getattribute__(self, name): ran.append(name); return name
class Sub(list):
    def __repr__(self): ran.append("sub"); return "a list"
class Meta(type):
    def __eq__(c, o): ran.append("=="); return True
    def __hash__(c): ran.append("#"); return hash(list)
    def __instancecheck__(c, o): ran.append("is"); return True
class Made(metaclass=Meta):
    def __repr__(self): ran.append("made"); return "made"
class Data:
    @property
    def own(self): ran.append("own"); return 6
odd, asks, sub, made, data = Odd(), Asks(), Sub(), Made(), Data()
data.__dict__["own"] = 7
odd.__dict__["prop"] = 8
many, keys = {odd: 1}, {odd} | {*range(9999)}
ran.clear()
""")
    for text, wanted in [
            ("odd", "=odd one"), ("odd.prop", "=5"), ("odd.other", "=1"), ("[odd]", "=[odd one]"),
            ("asks.x", "='x'"), ("sub", "=a list"), ("made", "=made"), ("data.own", "=6"),
            ("len(odd)", "=4"), ("many", "={odd one: 1}"), ("1 + 1", "=2"),
            ("[1, 2][0]", "=1"), ("[1]", "=[1]"), ("'text'", "='text'"), ("None", "=None"),
            ("odd.absent", ":AttributeError: 'Odd' object has no attribute 'absent'"),
            ("absent + 1", ":NameError: name 'absent' is not defined"),
            ("(odd := 9)", "=9"), ("1 / 0", ":ZeroDivisionError: division by zero"),
            ("exit(3)", ":SystemExit: 3"), ("x = 1", "?"), ("import os", "?"), ("x +", "?"),
            ("lambda", "?"), ("(", "?")]:
        assert value(guest, text, copied=True) == wanted, text
    assert value(guest, "keys", copied=True).endswith(" items)")
    assert guest.out_of("ran") == "[]\n"
    assert guest.out_of("type(odd).__name__") == "'Odd'\n"


def test_where_no_copy_can_be_made_nothing_runs(guest):
    guest.run("ran, n = [], 1\ndef f(): ran.append(1)")
    assert guest.ask("watch", "f()", alone=True).split("\n")[0] == "-"
    assert guest.ask("watch", "n", alone=True).split("\n")[0] == "=1"
    assert guest.out_of("ran") == "[]\n"


@pytest.mark.parametrize("source", [
    "def __repr__(self): raise KeyError(1)", "def __repr__(self): return 5",
    "def __repr__(self): return repr(self)", "def __repr__(self): raise SystemExit",
    "def __repr__(self): return 'a\\r\\n¦ [x]\\x1b]0;t\\x07\\u202e'", "__repr__ = None",
    "def __repr__(self): return Text('x')", "shape = property(lambda self: 1 / 0)\n"
    "  def __repr__(self): return 'x' * 10 ** 6",
    "shape = 'a\\nb'\n  def __repr__(self): return 'x' * 10 ** 6"])
def test_a_repr_gives_one_line_whatever_it_does(guest, source):
    guest.run("class Text(str):\n  def split(self): return 1\nclass C:\n  " + source + "\nc = C()")
    line = value(guest, "c", copied=True)
    assert len(line) <= 161 and (line[1:].isprintable() and line[0] in "=:")
    assert guest.out_of("1") == "1\n"


def test_the_number_changes_with_what_the_line_does_not_show(guest):
    guest.run("l, c = [*range(100)], type('C', (), {\n  '__repr__': lambda self: 'x' * 999 + y})()\n"
              "y = 'a'")
    before = guest.ask("watch", "l"), guest.ask("watch", "c")
    assert (guest.ask("watch", "l"), guest.ask("watch", "c")) == before
    guest.run("l[50] = y = 'b'")
    for was, now in zip(before, (guest.ask("watch", "l"), guest.ask("watch", "c"))):
        assert was.split("\n")[0] == now.split("\n")[0] and was != now


def test_the_number_is_not_that_of_an_address(guest):
    guest.run("class C: pass\none, two = C(), C()")
    values = [guest.ask("watch", name) for name in ("one", "two")]
    assert values[0].splitlines()[0] != values[1].splitlines()[0]
    assert values[0].splitlines()[1] == values[1].splitlines()[1]


def test_long_numbers_and_values_in_themselves_are_no_error(guest):
    guest.run("n, loop, deep = 10 ** 5000, [], []\nloop.append(loop)\n"
              "for i in range(1500): deep = [deep]\n")
    assert value(guest, "n", copied=True).startswith(
        ("=(its repr raises ValueError)", "=1000"))  # before 3.11 there is no limit
    assert value(guest, "loop", copied=True) == "=[[[[...]]]]"
    # Python's own limit for repr() is deeper from 3.12 on: no copy is needed
    assert guest.ask("watch", "deep").startswith("=[[[")
    assert guest.out_of("1") == "1\n"


def test_an_array_and_a_table_are_shown_by_their_shape(guest):
    guest.run("class Table:\n  shape = 1200, 7\n  def __repr__(self):\n"
              "    return 'a b\\n' * 100\nt = Table()\nclass Small(Table):\n"
              "  def __repr__(self): return 'a  b\\n1  2'\nu = Small()")
    assert value(guest, "t", copied=True) == "=Table, shape (1200, 7)"
    assert value(guest, "t.shape", copied=True) == "=(1200, 7)"
    assert value(guest, "u", copied=True) == "=a b 1 2"
