# SPDX-License-Identifier: MIT
"""The driver without a jail: its start, and running cells."""
import json
import os
import re
import subprocess

import pytest

from driver import MARK, PYTHON, plain_python, until

VERSION = tuple(map(int, subprocess.run(
    [PYTHON, "-c", "import sys; print(*sys.version_info[:2])"],
    capture_output=True, check=True).stdout.split()))


# ---- boot ----

def test_ready_names_the_process_and_the_version(guest):
    word, pid, version = guest.ready.split()
    assert (word, int(pid)) == (b"READY", guest.pid)
    assert re.fullmatch(rb"3\.\d+\.\d+", version)


def test_sys_path_is_that_of_plain_python(guest):
    code = "import sys, json; print(json.dumps(sys.path))"
    assert json.loads(guest.out_of(code)) == json.loads(plain_python(code))


def test_a_venv_has_the_paths_of_plain_python(make, tmp_path):
    venv = tmp_path / "venv"
    subprocess.run([PYTHON, "-m", "venv", "--without-pip", venv], check=True)
    code = ("import sys, json;"
            "print(json.dumps([sys.path, sys.prefix, sys.base_prefix]))")
    python = str(venv / "bin" / "python3")
    guest = make(python=python)
    assert json.loads(guest.out_of(code)) == json.loads(
        plain_python(code, python))


def test_pythonpath_is_honoured(make, tmp_path):
    (tmp_path / "extra").mkdir()
    (tmp_path / "extra" / "extra_mod.py").write_text("x = 42\n")
    guest = make(env={"PYTHONPATH": str(tmp_path / "extra")})
    assert guest.out_of("import extra_mod; extra_mod.x") == "42\n"


def test_pth_lines_that_import_run_before_the_first_import(make, tmp_path):
    venv = tmp_path / "venv"
    subprocess.run([PYTHON, "-m", "venv", "--without-pip", venv], check=True)
    site = next((venv / "lib").glob("python3*/site-packages"))
    (site / "a.pth").write_text(
        "import sys; sys.from_pth = sys._getframe(1).f_locals['sitedir']\n"
        "/nowhere\n" + str(tmp_path) + "\n")
    guest = make(python=str(venv / "bin" / "python3"))
    assert guest.out_of("1 + 1") == "2\n"
    assert guest.out_of("import sys; sys.from_pth") == repr(str(site)) + "\n"
    assert guest.out_of("%r in sys.path" % str(tmp_path)) == "True\n"


def test_the_builtins_of_site_exist(guest):
    assert guest.out_of("print(exit, license)").startswith("Use exit()")
    assert guest.out_of("[n for n in 'quit exit help copyright credits license'"
                        ".split() if n not in dir(__builtins__)]") == "[]\n"


def test_the_namespace_is_that_of_a_python_prompt(guest):
    names = plain_python(
        "import subprocess, sys, pty, os\n"
        "r = subprocess.run([sys.executable, '-i', '-q', '-S', '-I'],"
        "input='print(dir())', capture_output=True, text=True)\n"
        "print(r.stdout)")
    assert eval(guest.out_of("dir()")) == eval(names)
    assert guest.out_of("import sys; sys.argv, sys.ps1, sys.path[0]") == \
        "([''], '>>> ', '')\n"


def test_a_session_holds_only_the_expected_descriptors(guest):
    guest.run("0")      # READY comes before all of the driver is loaded
    fds = {}
    for fd in os.listdir("/proc/%d/fd" % guest.pid):
        with open("/proc/%d/fdinfo/%s" % (guest.pid, fd)) as f:
            fds[int(fd)] = int(re.search(r"flags:\s*(\d+)", f.read())[1], 8)
    # driver, socket, line, tty, library (until it is loaded), stack file
    assert sorted(fds)[:3] == [0, 1, 2] and len(fds) == 9
    assert all(fd >= 500 and flags & os.O_CLOEXEC
               for fd, flags in fds.items() if fd > 2)


# ---- cells ----

def test_values_of_earlier_cells_are_at_hand(guest):
    for no, cell in enumerate(("'a'", "x = 1", "None", "'b'", "'c'"), 1):
        guest.out_of(cell)
    assert guest.out_of("_, __, ___") == "('c', 'b', 'a')\n"
    assert guest.out_of("_1 + _4 + Out[5]") == "'abc'\n"
    assert guest.out_of("sorted(Out)") == "[1, 4, 5, 6, 7]\n"
    assert guest.out_of("import builtins; [n for n in dir() if '_' == n[0]"
                        " and n[1] != '_' or n == 'Out']") == "[]\n"


def test_a_bounded_number_of_values_is_kept(guest):
    for _ in range(103):
        guest.out_of("'v'")
    assert guest.out_of("len(Out), min(Out)") == "(100, 4)\n"
    assert guest.out_of("import builtins as b; hasattr(b, '_3')") == "False\n"


@pytest.mark.parametrize("cell, out", [
    ("6 * 7;", ""), ("6 * 7 ; # seen;", ""), ("(6 *\n7) ;\n\n", ""),
    ("'ü'; ';'", "';'\n"), ("6 # ;", "6\n"), ("';'", "';'\n"),
    ("print(5);", "5\n"), ("x = 1;", "")])
def test_a_semicolon_hides_the_value(guest, cell, out):
    assert guest.out_of(cell) == out


def test_a_wide_container_is_laid_out(guest):
    out = guest.out_of("{i: ['some words'] * 3 for i in range(3)}")
    assert out.count("\n") == 3 and eval(out) == {
        i: ["some words"] * 3 for i in range(3)}
    assert guest.out_of("type(_).__name__") == "'dict'\n"
    out = guest.out_of("list(range(100))")
    assert max(map(len, out.split("\n"))) <= 80 < len(out)
    out = guest.out_of("['x' * 100] * 2000")
    assert out.count("\n") == 1, "too much to lay out"
    guest.out_of("class L(list): __repr__ = lambda s: 'L' * 300")
    assert guest.out_of("L()") == "L" * 300 + "\n"


def test_await_works_outside_of_functions(guest):
    guest.out_of("import asyncio\n"
                 "async def f(x): await asyncio.sleep(0.01); return x * 2")
    assert guest.out_of("await f(4)") == "8\n"
    assert guest.out_of("y = await f(5)\nasync with asyncio.Lock(): z = y\n"
                        "[await f(i) async for i in g()] if 0 else z") == "10\n"
    assert guest.out_of("t = asyncio.ensure_future(f(6), loop=None) "
                        "if 0 else 1\nawait f(t)") == "2\n"
    assert guest.run("async def bad(): 1 / 0\nawait bad()") == "raised"
    assert re.sub(r"\n +[\^~]+", "", guest.out) == (
        'Traceback (most recent call last):\n'
        '  File "<cell 5>", line 2, in <module>\n    await bad()\n'
        '  File "<cell 5>", line 1, in bad\n    async def bad(): 1 / 0\n'
        'ZeroDivisionError: division by zero\n')


def test_a_task_goes_on_while_a_later_cell_waits(guest):
    guest.out_of("import asyncio\nseen = []\nasync def f():\n"
                 "    for i in range(3): await asyncio.sleep(0); seen.append(i)")
    guest.out_of("async def start(): return asyncio.create_task(f())\n"
                 "t = await start()")
    assert guest.out_of("await t; seen") == "[0, 1, 2]\n"
    assert guest.out_of("asyncio.run(f()); len(seen)") == "6\n"
    assert guest.out_of("await asyncio.sleep(0, 'still')") == "'still'\n"


def test_a_last_expression_is_shown_and_kept(guest):
    assert guest.out_of("x = 20\nx + 1") == "21\n"
    assert guest.out_of("_ * 2") == "42\n"
    assert guest.out_of("1; 2") == "2\n"
    assert guest.out_of("None") == ""
    assert guest.out_of("for i in range(3): i") == ""
    assert guest.out_of("") == guest.out_of("# nothing") == ""


def test_done_counts_names_and_threads(guest):
    guest.run("a = 1\n_b = 2\n__c = 3\n_ = 4\nimport threading")
    assert (guest.names, guest.threads) == (3, 0)
    guest.run("e = threading.Event()\n"
              "t = threading.Thread(target=e.wait); t.start()")
    assert (guest.names, guest.threads) == (5, 1)
    guest.run("e.set(); t.join()")
    assert guest.threads == 0


def test_the_end_mark_follows_the_output(guest):
    guest.start("print('out', end='')\n'shown'")
    assert guest.done() == "ok"
    assert guest.marked == 1
    guest.drain()
    assert guest.seen == b"out'shown'\n\33_%s\33\\" % MARK.encode()


def test_the_end_mark_is_written_to_a_full_nonblocking_tty(guest):
    assert guest.out_of(
        "import os\nos.set_blocking(0, False)\n"
        "try:\n  while True: os.write(1, b'x' * 1000)\n"
        "except BlockingIOError: pass").strip("x") == ""
    assert guest.marked == 1


def test_the_guest_reports_that_it_could_not_write_the_end_mark(guest):
    guest.run("import os\nfor fd in range(500, 600):\n"
              "  try:\n    if os.isatty(fd) and os.ttyname(fd) == "
              "os.ttyname(0): os.close(fd)\n  except OSError: pass")
    assert guest.marked == 0
    assert guest.run("1") == "ok"


def test_a_long_cell_arrives_whole(guest):
    source = "x = [\n" + "".join("    %d,\n" % i for i in range(60000)) + "]"
    assert guest.run(source) == "ok"
    assert guest.out_of("len(x), x[-1]") == "(60000, 59999)\n"


def test_a_cell_with_a_wrong_checksum_does_not_run(guest):
    guest.ctl.send(b"CELL 1 6 12345 " + MARK.encode())
    os.write(guest.line, b"x = 99")
    assert guest.say() == b"BAD 1 crc"
    guest.cells = 1
    assert guest.run("x") == "raised"
    assert "NameError" in guest.out


def test_a_source_line_that_ends_early_is_an_error_and_not_a_hang(guest):
    guest.ctl.send(b"CELL 1 60 12345 " + MARK.encode())
    os.write(guest.line, b"x = 99")
    os.close(guest.line)
    assert guest.say() == b"BAD 1 short"
    guest.line = os.dup(guest.slave)


def test_future_imports_stay_in_force(guest):
    guest.run("from __future__ import annotations")
    assert guest.out_of("def f(a: nowhere): pass\nf.__annotations__") == \
        "{'a': 'nowhere'}\n"


def test_pickle_dataclasses_and_multiprocessing_find_main(guest):
    assert guest.out_of(
        "import pickle, dataclasses\n"
        "@dataclasses.dataclass\nclass P:\n  x: int\n"
        "pickle.loads(pickle.dumps(P(3)))") == "P(x=3)\n"
    assert guest.out_of(
        "import multiprocessing as mp\ndef f(x): return x * x\n"
        "with mp.get_context('fork').Pool(2) as p: r = p.map(f, range(4))\nr"
    ) == "[0, 1, 4, 9]\n"


def test_a_module_in_the_home_is_found_but_never_by_the_driver(
        make, tmp_path):
    for name in "mine", "traceback", "linecache", "re", "keyword", "inspect":
        (tmp_path / (name + ".py")).write_text("here = 1\n")
    guest = make()
    assert guest.run("def f(): 1/0\nf()") == "raised"
    assert "    def f(): 1/0" in guest.out
    assert guest.out_of("import mine; mine.here") == "1\n"


# ---- errors ----

def test_a_traceback_shows_the_users_frames_and_source(guest):
    guest.run("def area(r):\n    import math\n    return math.pi * r**2")
    assert guest.run("area('x')") == "raised"
    lines = [line for line in guest.out.splitlines()
             if not set(line) <= set(" ~^")]
    assert lines[:-1] == [
        "Traceback (most recent call last):",
        '  File "<cell 2>", line 1, in <module>',
        "    area('x')",
        '  File "<cell 1>", line 3, in area',
        "    return math.pi * r**2"]
    assert lines[-1].startswith("TypeError: unsupported operand")


def test_chained_and_grouped_exceptions_are_shown_whole(guest):
    guest.run("try: 1/0\nexcept Exception as e: raise KeyError('k') from e")
    assert "direct cause" in guest.out and "ZeroDivisionError" in guest.out
    if VERSION >= (3, 11):
        guest.run("raise ExceptionGroup('g', [ValueError(1), TypeError(2)])")
        assert "ValueError: 1" in guest.out and "TypeError: 2" in guest.out
    assert "cellblock" not in guest.out and "<string>" not in guest.out


@pytest.mark.skipif(VERSION < (3, 10), reason="suggestions came with 3.10")
def test_a_misspelt_name_gets_a_suggestion(guest):
    guest.run("pritn(1)")
    assert guest.out.endswith("name 'pritn' is not defined. "
                              "Did you mean: 'print'?\n")


def test_an_exception_that_cannot_be_shown_is_named(guest):
    assert guest.run("class E(Exception):\n"
                     "  def __str__(self): raise ValueError\nraise E") == "raised"
    assert guest.out.splitlines()[-1].startswith("E: <")


def test_endless_recursion_gives_a_short_traceback(guest):
    assert guest.run("def f(): f()\nf()") == "raised"
    assert "RecursionError" in guest.out and len(guest.out) < 2000
    guest.run("import sys; sys.setrecursionlimit(60)")
    assert guest.run("f()") == "raised"
    assert "RecursionError" in guest.out
    assert guest.out_of("sys.getrecursionlimit()") == "60\n"


@pytest.mark.parametrize("source, said", [
    ("x = = 1", "SyntaxError: invalid syntax"),
    ("if True:\nx", "IndentationError: expected an indented block"),
    ("return 1", "SyntaxError: 'return' outside function"),
    ("x = '\0'", "SyntaxError: source code string cannot contain null bytes"),
    (b"x = '\xff'", "SyntaxError: (unicode error) 'utf-8' codec can't decode"),
])
def test_a_cell_that_does_not_compile_runs_nothing(guest, source, said):
    assert guest.run(source) == "syntax"
    assert said in guest.out
    assert guest.out.startswith('  File "<cell 1>", line ')


def test_a_syntax_error_shows_its_caret(guest):
    guest.run("x = = 1")
    assert guest.out.startswith(
        '  File "<cell 1>", line 1\n    x = = 1\n        ^\n')
    guest.run("x = 1\nreturn x")
    assert guest.out.startswith(
        '  File "<cell 2>", line 2\n    return x\n    ^')


def test_the_users_excepthook_is_used_and_may_fail(guest):
    guest.run("import sys\nsys.excepthook = lambda t, e, tb: print('mine', e)")
    assert guest.run("raise ValueError(7)") == "raised"
    assert guest.out == "mine 7\n"
    guest.run("def sys_hook(*a): raise TypeError('bad')\n"
              "sys.excepthook = sys_hook")
    guest.run("raise ValueError(7)")
    assert guest.out.startswith("Error in sys.excepthook:")
    assert "TypeError: bad\n\nOriginal exception was:\n" in guest.out
    assert guest.out.rstrip().endswith("ValueError: 7")


def test_post_mortem_finds_the_last_error(guest):
    guest.run("def f():\n  secret = 5\n  1/0\nf()")
    assert guest.out_of("import sys\nsys.last_traceback.tb_next.tb_frame"
                        ".f_locals['secret'], sys.last_type") == \
        "(5, <class 'ZeroDivisionError'>)\n"


def test_functions_and_old_cells_keep_their_source(guest):
    guest.run("def f():\n    'doc'\n    return 1")
    assert guest.out_of("import inspect; print(inspect.getsource(f))") == \
        "def f():\n    'doc'\n    return 1\n\n"
    guest.run("import linecache; linecache.clearcache()")
    guest.run("linecache.checkcache(); f(1)")
    assert "    linecache.checkcache(); f(1)" in guest.out


def test_the_oldest_sources_are_dropped(guest):
    guest.run("def f(): 1/0")
    for i in range(5):
        guest.run("'" + "x" * (900 << 10) + "'; 0")
    guest.run("f()")
    assert 'File "<cell 1>", line 1, in f\n' in guest.out
    assert "def f(): 1/0" not in guest.out


def test_an_error_is_shown_even_if_stderr_is_broken(guest):
    for spoiled in ("sys.stderr.close()", "sys.stderr = None",
                    "sys.stderr = 5", "del sys.stderr"):
        guest.run("import sys\n" + spoiled)
        assert guest.run("1/0") == "raised"
        assert "ZeroDivisionError" in guest.out, spoiled
    assert guest.marked == 1


def test_an_error_is_shown_even_if_no_module_can_be_imported(guest):
    guest.run("import sys, builtins\nsys.meta_path.clear(); sys.modules.clear()")
    assert guest.run("def f(): 1/0\nf()") == "raised"
    assert 'File "<cell 2>", line 1, in f' in guest.out
    assert guest.out.endswith("ZeroDivisionError: division by zero\n")


# ---- exits ----

@pytest.mark.parametrize("source, status, said", [
    ("exit()", 0, ""), ("raise SystemExit(3)", 3, ""), ("exit(-1)", 255, ""),
    ("import sys; sys.exit('bye')", 1, "bye\n"), ("quit(None)", 0, ""),
])
def test_exit_is_reported_and_the_guest_goes_on(guest, source, status, said):
    assert guest.run(source) == "exit"
    assert (guest.status, guest.out) == (status, said)
    assert guest.out_of("import sys; sys.stdin.closed, 1") == "(False, 1)\n"


@pytest.mark.parametrize("source, how, status", [
    ("exit", "leave", 0), ("quit", "leave", 0), ("exit # bye\n\n", "leave", 0),
    ("exit()", "leave", 0), ("quit(3)", "leave", 3), ("exit(1 + 1);", "leave", 2),
    # They are not alone, or something else ends the cell.
    ("1; exit()", "exit", 0), ("if 1: exit(3)", "exit", 3), ("(exit, 1)", "ok", 0),
    ("x = exit", "ok", 0), ("raise SystemExit(3)", "exit", 3), ("exit.eof", "ok", 0),
    ("import sys; sys.exit()", "exit", 0), ("exec('exit()')", "exit", 0),
    ("exit(1/0)", "raised", 0), ("exit +", "syntax", 0),
    ("exit = lambda: 5\nexit()", "ok", 0),
])
def test_exit_and_quit_alone_leave(guest, source, how, status):
    assert guest.run(source, "prompt") == how
    assert guest.status == status and guest.marked == 1
    assert guest.run("import sys\nsys.exit(4)", "prompt") == "exit"


def test_exit_of_the_users_own_does_not_leave(guest):
    assert guest.run("exit = lambda n=6: n", "prompt") == "ok"
    assert guest.run("exit", "prompt") == guest.run("exit()", "prompt") == "ok"
    assert guest.out == "6\n"
    assert guest.run("quit", "prompt") == "leave"
    guest.run("del exit")
    assert guest.run("exit", "prompt") == "leave" and guest.out == ""


def test_exit_alone_is_python_where_nobody_types(guest):
    assert guest.run("exit", "silent") == "ok"
    assert guest.out.startswith("Use exit()")
    assert guest.run("exit(2)", "silent") == "exit"


def test_a_forked_child_exits_at_the_end_of_its_cell(guest):
    assert guest.out_of(
        "import os\npid = os.fork()\n"
        "if pid == 0: print('child', flush=False)\n"
        "else: print('parent', os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))"
    ) == "child\nparent 0\n"
    assert guest.out_of(
        "pid = os.fork()\nif not pid: raise SystemExit(7)\n"
        "os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])") == "7\n"
    assert guest.out_of("os.getpid()") == "%d\n" % guest.pid


def test_a_broken_link_ends_the_guest(guest):
    guest.ctl.close()
    pid, status = os.waitpid(guest.pid, 0)
    guest.pids.remove(pid)
    guest.pid = None
    assert os.WTERMSIG(status) == 64  # WIRE_STACK_SIGNAL


def test_an_interrupt_that_c_code_did_not_expect_is_one(guest):
    assert guest.run("raise SystemError('x') from KeyboardInterrupt()") == \
        "interrupted"
    assert guest.out.endswith("KeyboardInterrupt\n")
    assert guest.run("raise SystemError('x')") == "raised"


def test_a_fork_that_fails_writes_no_mark(guest):
    guest.run("import os\nif not os.fork(): 1 / 0\nos.wait()[1]")
    assert "ZeroDivisionError" in guest.out and "\33_" not in guest.out


def test_an_error_whose_showing_fails_is_named(guest):
    guest.run("import sys\ndef hook(*_): raise SystemExit\n"
              "sys.excepthook = hook")
    assert guest.run("1/0") == "raised"
    assert guest.out.endswith("ZeroDivisionError: division by zero\n")
    assert "interrupted" not in guest.out


def test_no_key_is_echoed_behind_the_end_mark(guest):
    """Bytes behind the mark are taken for output. Some keys reach the tty only
    then."""
    def typed(keys):
        os.write(guest.master, keys)
        assert os.read(guest.slave, 64) == keys
        os.write(guest.slave, b".")  # the kernel writes the echo before it
        until(lambda: guest.drain() or b"." in guest.seen, "the dot")
        return guest.screen()

    assert typed(b"before\n") == "before\n."
    guest.run("pass")
    assert typed(b"behind\n") == "."


def test_the_end_of_the_echo_is_that_of_the_sessions_own_tty(guest):
    guest.run("import os, pty, termios; m, s = pty.openpty()\n"
              "for fd in range(500, 1000):\n"
              "    if os.isatty(fd) and os.ttyname(fd) == os.ttyname(0):\n"
              "        os.dup2(s, fd)")
    assert not guest.marked
    assert guest.out_of("bool(termios.tcgetattr(s)[3] & termios.ECHO)") == \
        "True\n"
