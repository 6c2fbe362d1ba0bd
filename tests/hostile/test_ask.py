# SPDX-License-Identifier: MIT
"""Questions to the guest between cells: Tab, :who, NAME?. A question may run
code of the user. A short time limit applies, and code that hangs costs the
session nothing."""
import pytest

from hostile import is_whole, start, uses_no_cpu, value

HANGS = {
    "dir": "class A:\n    def __dir__(s):\n        while True: pass\na = A()",
    "dir_that_swallows":
        "class A:\n    def __dir__(s):\n        while True:\n"
        "            try:\n                while True: pass\n"
        "            except BaseException: pass\na = A()",
    "dir_in_c": "class A:\n    def __dir__(s): return 10 ** 10 ** 8 % 7\n"
                "a = A()",
    "dir_that_dies": "import os\nclass A:\n    def __dir__(s): os._exit(3)\n"
                     "a = A()",
    "dir_that_crashes": "import ctypes\nclass A:\n"
                        "    def __dir__(s): ctypes.string_at(0)\na = A()",
    "dir_that_lies": "class L(str):\n    def isidentifier(s): 1 / 0\n"
                     "class A:\n    def __dir__(s): return [L('x'), 3, None,"
                     " 'ab\\x1b[2J', 'a' * 10**6, '\\udcff']\na = A()",
    "dir_that_prints": "class A:\n    def __dir__(s):\n"
                       "        print('\\x1b]0;owned\\x07' * 999)\n"
                       "        return ['abc']\na = A()",
    "dir_that_forks": "import os\nclass A:\n    def __dir__(s):\n"
                      "        os.fork(); os.fork(); return ['abc']\na = A()",
    "dir_that_reads": "class A:\n    def __dir__(s): return [input()]\n"
                      "a = A()",
    "memory": "class A:\n    def __dir__(s):\n        x = []\n"
              "        while True: x.append(bytearray(1 << 20))\na = A()",
    "getattr": "class A:\n    def __getattr__(s, n):\n        while True: pass"
               "\na = A()",
    "getattribute": "class A:\n    def __getattribute__(s, n):\n"
                    "        while True: pass\na = A()",
    "property": "class A:\n    @property\n    def b(s):\n"
                "        while True: pass\na = A()",
    "class_of": "class A:\n    @property\n    def __class__(s):\n"
                "        while True: pass\na = A()",
    "dir_that_exits": "class A:\n    def __dir__(s): raise SystemExit\n"
                      "a = A()",
    "metaclass": "class M(type):\n    def __getattribute__(c, n):\n"
                 "        while True: pass\nclass A(metaclass=M): pass\n"
                 "a = A()",
    "dict_subclass": "class A(dict):\n    def keys(s):\n        while True: pass"
                     "\n    __iter__ = __getitem__ = keys\na = A(x=1)",
}


def back_at_the_prompt(s):
    """Drop the line, also one that Tab has changed. Until it is seen, the prompt
    is the one before it."""
    s.wait(lambda: not s.at_prompt(), "the line")
    s.type("\x03")
    s.wait_prompt(25)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", HANGS)
def test_tab_costs_nothing_when_the_guest_misbehaves(cb, name):
    s = start(cb)
    s.run(HANGS[name], 25)
    row = s.screen.here()
    for line in ("a.", "a.b.", "a[", "x = a.b"):
        s.type(line + "\t")
        back_at_the_prompt(s)
    is_whole(s, row)
    assert s.screen.titles == []
    assert b"\x1b]0;owned" not in s.raw


WHO = {
    "repr": "class A:\n    def __repr__(s):\n        while True: pass\na = A()",
    "sizeof": "class A:\n    def __sizeof__(s):\n        while True: pass\n"
              "a = A()",
    "len": "class A(list):\n    def __len__(s):\n        while True: pass\n"
           "a = A()",
    "names": "globals()['\\x1b[2J'] = 1; globals()[5] = 2\n"
             "globals()['a' * 10**6] = 3; globals()['new\\nline'] = 4",
    "swallow": "class A:\n    def __repr__(s):\n        while True:\n"
               "            try:\n                while True: pass\n"
               "            except BaseException: pass\na = A()",
}


# Each kind once, and each command once.
@pytest.mark.sampled(len(WHO) + 1)
@pytest.mark.parametrize("name", WHO)
@pytest.mark.parametrize("command", [":who", "%who", "a?", "a??", ":doc a"])
def test_a_question_costs_nothing_when_the_guest_misbehaves(cb, name, command):
    s = start(cb)
    s.run(WHO[name], 25)
    row = s.screen.here()
    s.run(command, 25)
    is_whole(s, row)
    assert b"\x1b[2J\x1b[2J" not in s.raw


def test_a_question_that_hung_leaves_nothing_running(cb):
    s = start(cb, "--set", "session.idle=61s")
    s.run(HANGS["dir_that_forks"], 25)
    s.type("a.\t")
    back_at_the_prompt(s)
    t = cb.tree(s)
    uses_no_cpu(s, t)
    assert value(s, "kept") == "{'cell': 1}"
