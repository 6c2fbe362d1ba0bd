# SPDX-License-Identifier: MIT
"""The driver puts back the objects that the prompt needs, and no others."""
import os

import pytest

from driver import until

# name: (a cell, what it is said to have broken)
BROKEN = {
    "stdout_closed": ("sys.stdout.close()", "sys.stdout"),
    "stdout_none": ("sys.stdout = None", "sys.stdout"),
    "stdout_deleted": ("del sys.stdout", "sys.stdout"),
    "stdout_detached": ("b = sys.stdout.detach()", "sys.stdout"),
    "stdout_without_its_buffer": ("sys.stdout.buffer.close()", "sys.stdout"),
    "stdout_without_a_write": ("sys.stdout.write = None", "sys.stdout"),
    "stdout_of_bytes": ("import io; sys.stdout = io.BytesIO()", "sys.stdout"),
    "stdout_that_raises": (
        "class W:\n    def write(self, s): raise OSError\nsys.stdout = W()",
        "sys.stdout"),
    "stdout_that_exits": (
        "class W:\n    def write(self, s): raise SystemExit\n"
        "sys.stdout = W()", "sys.stdout"),
    "stdin_and_stderr": ("sys.stdin = 5; sys.stderr.close()",
                         "sys.stdin, sys.stderr"),
    "displayhook_none": ("sys.displayhook = None", "sys.displayhook"),
    "displayhook_deleted": ("del sys.displayhook", "sys.displayhook"),
    "excepthook_none": ("sys.excepthook = None", "sys.excepthook"),
    "modules_cleared": ("sys.modules.clear()", " names of sys.modules"),
    "modules_deleted": ("del sys.modules", "sys.modules"),
    "modules_replaced": ("sys.modules = {}", "sys.modules"),
    "one_module": ("del sys.modules['builtins']", "sys.modules['builtins']"),
    "sys_emptied": ("x = vars(sys).clear()", " names of sys"),
    "compile_none": ("import builtins; builtins.compile = None",
                     "builtins.compile"),
    "print_deleted": ("import builtins; del builtins.print",
                      "builtins.print"),
    "exit_deleted": ("import builtins; del builtins.exit", "builtins.exit"),
    "an_exception": ("import builtins; builtins.ValueError = print",
                     "builtins.ValueError"),
    "builtins_emptied": ("import builtins; vars(builtins).clear()",
                         " names of builtins"),
    "builtins_of_main": ("__builtins__ = {}", "__builtins__"),
    "globals_emptied": ("globals().clear()", "__builtins__, __name__"),
    "path_none": ("sys.path = None", "sys.path"),
    "path_emptied": ("sys.path.clear()", "sys.path"),
    "finders_emptied": ("sys.meta_path.clear(); sys.path_hooks.clear()",
                        "sys.meta_path, sys.path_hooks"),
    "recursion": ("sys.setrecursionlimit(20)", "the recursion limit"),
    "stdout_descriptor_closed": ("os.close(1)", "descriptor 1"),
    "all_descriptors_closed": ("os.closerange(0, 3)",
                               "descriptor 0, descriptor 1, descriptor 2"),
    "descriptors_to_null": (
        "n = os.open('/dev/null', 2)\nfor i in 0, 1, 2: os.dup2(n, i)",
        "descriptor 0, descriptor 1, descriptor 2"),
    "descriptor_to_a_file": (
        "n = os.open('o', 66); i = os.dup2(n, 1)", "descriptor 1"),
    "both": ("sys.stdout.close(); os.close(1)", "descriptor 1, sys.stdout"),
}
SAID = "cellblock: put back what this cell broke: "
# name: (a cell, a later one, what that shows)
KEPT = {
    "stream": ("import io; sys.stdout = io.StringIO()\nprint('kept')",
               "sys.stderr.write(sys.stdout.getvalue());", "kept\n"),
    "stream_of_their_own": (
        "class W:\n    def __init__(self, f): self.f = f\n"
        "    def write(self, s): self.f.write(s.upper())\n"
        "sys.stdout = W(sys.stdout)", "print('loud')", "LOUD\n"),
    "input_from_a_string": (
        "import io; sys.stdin = io.StringIO('a\\nb\\n')",
        "print([input(), input()])", "['a', 'b']\n"),
    "displayhook": ("sys.displayhook = lambda v: print('shown:', v)",
                    "3 + 4", "shown: 7\n"),
    "excepthook": ("sys.excepthook = lambda t, e, tb: print('mine:', e)",
                   "1/0", "mine: division by zero\n"),
    "print": ("import builtins, functools\n"
              "builtins.print = functools.partial(print, 'and')",
              "print(1)", "and 1\n"),
    "exception": ("import builtins\nclass Mine(ValueError): pass\n"
                  "builtins.ValueError = Mine", "ValueError is Mine",
                  "True\n"),
    "path": ("sys.path = ['.'] + sys.path", "sys.path[0]", "'.'\n"),
    "a_module_taken_away": ("import json; del sys.modules['json']",
                            "'json' in sys.modules", "False\n"),
    "a_recursion_limit": ("sys.setrecursionlimit(60)",
                          "sys.getrecursionlimit()", "60\n"),
    "their_builtins": ("b = dict(vars(__builtins__), here=1)\n"
                       "__builtins__ = b", "here", "1\n"),
}


@pytest.fixture
def broken(guest):
    guest.out_of("import os, sys; kept = 1")
    return guest


def assert_it_lives(guest):
    """Cells are shown, import, read and raise as before."""
    assert guest.out_of("print('hello')") == "hello\n"
    assert guest.out_of("6 * 7") == "42\n"
    assert guest.out_of("import colorsys\nclass A: x = 5\nA().x") == "5\n"
    os.write(guest.master, b"typed\n")
    assert guest.out_of("input()").endswith("'typed'\n")
    assert guest.run("1/0") == "raised"
    assert "    1/0\n" in guest.out and "ZeroDivisionError" in guest.out
    assert SAID not in guest.out


@pytest.mark.parametrize("names", [list(BROKEN)[n::4] for n in range(4)],
                         ids=lambda names: names[0])
def test_what_a_prompt_needs_is_put_back_and_said(broken, names):
    """A guest for several: what is put back can be broken again."""
    for name in names:
        cell, what = BROKEN[name]
        broken.out_of("import os, sys")
        assert broken.run(cell) == "ok", name
        line, = [x for x in broken.out.splitlines() if x.startswith(SAID)]
        said = line[len(SAID):]
        assert what in said if what[0] == " " else \
            sorted(said.split(", ")) == sorted(what.split(", ")), (name, said)
        assert_it_lives(broken)


def test_variables_survive_what_is_put_back(broken):
    broken.out_of("import builtins, sys; vars(builtins).clear();"
                  "sys.modules.clear(); sys.stdout.close()")
    assert broken.out_of("kept") == "1\n"
    assert broken.park()
    assert broken.out_of("kept") == "1\n"


@pytest.mark.parametrize("name", KEPT)
def test_a_working_replacement_stays(broken, name):
    cell, later, shows = KEPT[name]
    for source in cell, "x = 1":
        assert broken.run(source) == "ok"
        assert broken.out == "", source
    broken.run(later)
    assert broken.out == shows


def test_their_own_is_put_back_when_it_worked(broken):
    broken.out_of("sys.displayhook = lambda v: print('shown:', v)")
    broken.out_of("sys.displayhook = None")
    assert broken.out_of("5") == "shown: 5\n"


def test_modules_are_put_back_as_they_were(broken):
    broken.out_of("import json; sys.path.append('added')")
    broken.out_of("sys.modules.clear(); sys.path.clear()")
    assert broken.out_of("import json as j; j is json, sys.path[-1]") == \
        "(True, 'added')\n"


def test_a_traceback_is_shown_where_the_cell_breaks_stderr(broken):
    assert broken.run("os.dup2(os.open('o', 66), 2); 1/0") == "raised"
    assert "ZeroDivisionError" in broken.out
    assert broken.out.endswith(SAID + "descriptor 2\n")


def test_what_was_written_to_a_closed_descriptor_is_shown(broken):
    out = broken.out_of("print('begun', end='')\nos.close(1)")
    assert out == "begun" + SAID + "descriptor 1\n"


def test_a_new_stream_is_written_to_once(broken):
    broken.out_of("class W(list):\n    def write(self, s): self.append(s)\n"
                  "sys.stdout = W()")
    broken.out_of("x = 1")
    broken.out_of("x = 2")
    assert broken.out_of("print(list(sys.stdout), file=sys.stderr)") == \
        "['']\n"


def test_a_stream_that_hangs_can_be_interrupted(broken):
    broken.started("import time\nclass W:\n    def write(self, s):\n"
                   "        sys.__stdout__.write('here')\n"
                   "        sys.__stdout__.flush()\n"
                   "        while True: pass\nsys.stdout = W()")

    def hangs():
        broken.drain()
        return b"here" in broken.seen
    until(hangs, "the stream to hang")
    broken.interrupt()
    assert broken.done() == "interrupted"
    assert_it_lives(broken)


def test_a_forked_child_says_nothing(broken):
    out = broken.out_of("pid = os.fork()\nif not pid: sys.stdout = None\n"
                        "else: print(os.waitpid(pid, 0)[1])")
    assert out == "0\n"
