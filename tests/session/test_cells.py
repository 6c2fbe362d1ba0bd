# SPDX-License-Identifier: MIT
"""Ordinary Python cells at the prompt."""
import re

import pytest

OURS = re.compile(r"guest\.py|<driver>|exec\(|_cellblock|runpy|<string>")


def test_the_prompt_appears(session):
    assert session.screen.cursor_row() == ">>>"


def test_banner_names_python_and_the_limits(session):
    text = session.all_text()
    assert re.search(r"cellblock \d.*Python 3\.\d+", text)
    assert "512 MiB" in text and "64 processes" in text and ":help" in text


def test_quiet_shows_no_banner(cb):
    s = cb.session("-q")
    assert s.all_text().strip() == ">>>"


def test_the_value_of_an_expression_is_shown_and_kept_in_underscore(session):
    assert session.run("6 * 7") == "42"
    assert session.run("_ + 1") == "43"


def test_none_is_not_shown_and_does_not_change_underscore(session):
    assert session.run("5") == "5"
    assert session.run("None") == ""
    assert session.run("_") == "5"


def test_an_assignment_shows_nothing(session):
    assert session.run("x = 41") == ""
    assert session.run("x + 1") == "42"


def test_a_function_of_several_lines_can_be_used_two_cells_later(session):
    session.run("def area(r):\n    import math\n    return math.pi * r**2")
    assert session.run("a = 1") == ""
    assert session.run("round(area(2), 3)") == "12.566"


def test_last_expression_of_several_statements_is_shown(session):
    assert session.run("a = 1\nb = 2\na + b") == "3"


def test_traceback_shows_source_lines_and_no_frame_of_the_driver(session):
    session.run("def area(r):\n    return 3.14 * r**2")
    out = session.run('area("x")')
    assert 'File "<cell 2>", line 1, in <module>' in out
    assert 'File "<cell 1>", line 2, in area' in out
    assert 'area("x")' in out and "return 3.14 * r**2" in out
    assert "TypeError: unsupported operand type(s)" in out
    assert not OURS.search(out), out
    assert out.count("File ") == 2


def test_chained_exceptions_show_no_frame_of_the_driver(session):
    out = session.run("try: 1/0\nexcept Exception as e: raise KeyError(2) from e")
    assert "ZeroDivisionError" in out and "KeyError: 2" in out
    assert "direct cause" in out
    assert not OURS.search(out), out


def test_inspect_finds_the_source_of_a_function(session):
    session.run("def f():\n    return 'found me'")
    out = session.run("import inspect; print(inspect.getsource(f))")
    assert "return 'found me'" in out


def test_a_syntax_error_is_shown_and_the_session_goes_on(session):
    out = session.run("x = = 3")
    assert "SyntaxError: invalid syntax" in out
    assert "x = = 3" in out and not OURS.search(out)
    assert session.run("1 + 1") == "2"


def test_a_cell_with_a_syntax_error_runs_no_line(session):
    out = session.run("ran = True\nx = = 3")
    assert "SyntaxError" in out
    assert "NameError" in session.run("ran")


def test_import_and_standard_library_work(session):
    assert session.run("import json; json.dumps({'a': [1, None]})") \
        == """'{"a": [1, null]}'"""
    assert session.run("from decimal import Decimal; Decimal(1) / 3") \
        == "Decimal('0.3333333333333333333333333333')"


def test_name_is_main_and_classes_can_be_pickled(session):
    assert session.run("__name__") == "'__main__'"
    session.run("class P:\n    v = 7")
    assert session.run(
        "import pickle; pickle.loads(pickle.dumps(P())).v") == "7"


def test_future_annotations_stay_in_force(session):
    session.run("from __future__ import annotations")
    session.run("def f(x: Undefined): pass")
    assert session.run("f.__annotations__") == "{'x': 'Undefined'}"


def test_displayhook_of_the_person_is_used(session):
    session.run("import sys")
    session.run("sys.displayhook = lambda v: print('shown:', v)")
    assert session.run("3 + 4") == "shown: 7"


def test_excepthook_of_the_person_is_used(session):
    session.run("import sys")
    session.run("sys.excepthook = lambda t, v, tb: print('mine:', v)")
    assert "mine: division by zero" in session.run("1/0")


def test_warnings_name_the_cell(session):
    out = session.run("import warnings; warnings.warn('careful')")
    assert "<cell 1>" in out and "careful" in out


def test_each_cell_warns_anew(session):
    session.run("import warnings")
    session.run("def f(): warnings.warn('of f')")
    for _ in range(2):
        assert "UserWarning: careful" in session.run("warnings.warn('careful')")
        out = session.run("for i in range(3): f()\n")
        assert out.count("UserWarning: of f") == 1
    session.run("warnings.simplefilter('ignore')")
    assert session.run("warnings.warn('careful')") == ""


def test_asyncio_run_works_in_a_cell(session):
    session.run("import asyncio")
    assert session.run("asyncio.run(asyncio.sleep(0, 'slept'))") == "'slept'"


def test_stderr_and_stdout_are_both_shown(session):
    out = session.run("import sys; print('o'); print('e', file=sys.stderr)")
    assert sorted(out.split()) == ["e", "o"]


@pytest.mark.parametrize("cell", [
    "print('abc', end=''); 1/0",
    "print('abc', end='', flush=True); 1/0",
    "import os; os.write(1, b'abc') and 1/0",
    "print('abc', end=''); raise SystemError",
    "print('abc', end=''); os.kill(os.getpid(), 2); time.sleep(9)"])
def test_a_traceback_begins_on_a_line_of_its_own(session, cell):
    session.run("import os, time")
    said = session.run(cell)
    assert said.split("\n")[0] == "abc"
    assert said.split("\n")[1].startswith("Traceback")
    # The control: no line is left empty.
    assert session.run("print('abc'); 1/0").startswith("abc\nTraceback")


def test_output_without_a_newline_leaves_the_prompt_on_its_own_line(session):
    assert session.run("print('abc', end='')") == "abc"
    assert session.run("1") == "1"


GOES_ON = "the cell ended with exit status %d · the session goes on"


def test_system_exit_ends_the_code_and_not_the_session(session, tmp_path):
    s = session
    for cell, status in (
            ("raise SystemExit(7)", 7), ("import sys; sys.exit()", 0),
            ("x = 1; exit(2)", 2), (":time sys.exit(3)", 3),
            ("def main():\n    exit(4)", None), ("main()", 4)):
        out = s.run(cell)
        assert status is None or GOES_ON % status in out, (cell, out)
    out = s.run("sys.exit('no data')")
    assert out.startswith("no data\n") and GOES_ON % 1 in out, out
    s.run("open('m.py', 'w').write('y = 1; exit(5)')")
    assert GOES_ON % 5 in s.run("%run m.py")
    script = tmp_path / "s.py"
    script.write_text("z = 1\n# %%\nexit()\n")
    assert GOES_ON % 0 in s.run(f":load {script}")
    assert s.run("x, z") == "(1, 1)"
    assert s.run("sys.exit(1/0)").endswith("ZeroDivisionError: division by zero")
    # The control: nothing is said of a cell that does not exit.
    assert "goes on" not in s.run("x")


def test_exit_and_quit_alone_end_the_session(cb):
    for word, status in (("exit", 0), ("quit", 0), ("exit()", 0), ("quit(7)", 7)):
        s = cb.session("-q")
        s.run("x = 1")
        s.enter(word)
        assert s.wait_exit() == status
        assert "goes on" not in s.all_text()


def test_a_lone_help_and_question_mark_show_the_commands(cb):
    session = cb.session(size=(60, 100))
    for line in ("?", "help"):
        out = session.run(line)
        assert ":upload" in out and "help(NAME)" in out, out
    assert ":upload" not in session.run("print(help)")
    session.run("help = 5")
    assert session.run("help") == "5"


def test_subprocess_works(session):
    out = session.run(
        "import subprocess; subprocess.run(['echo', 'from a child'])")
    assert "from a child" in out and "returncode=0" in out


def test_shell_pipeline_works(session):
    assert session.run("import os; os.popen('printf abc | wc -c').read()") \
        == "'3\\n'"


def test_multiprocessing_works(cb):
    # Several processes start, which a busy host makes long.
    session = cb.session("-t", "60s")
    session.run("def sq(x): return x * x")
    out = session.run("import multiprocessing as mp\n"
                      "with mp.Pool(2) as p: print(p.map(sq, [1, 2, 3]))")
    assert "[1, 4, 9]" in out, out


def test_threads_work_within_a_cell(session):
    out = session.run("import threading; r = []\n"
                      "t = threading.Thread(target=r.append, args=(5,))\n"
                      "t.start(); t.join(); r")
    assert out == "[5]"


def test_a_forked_child_does_not_become_a_second_session(session):
    out = session.run("import os; pid = os.fork()\n"
                      "if pid: print(os.waitpid(pid, 0)[1])")
    assert out.strip() == "0"
    assert session.run("1 + 1") == "2"


def test_a_nul_in_the_output_does_no_harm(session):
    out = session.run("print('a\\0b')")
    assert "a" in out and "b" in out
    assert session.run("1 + 1") == "2"


def test_a_nul_in_the_source_does_no_harm(session):
    session.type("1 + \0 1")
    session.expect(r">>> 1 \+ +1")
    session.type("\r")
    session.wait_prompt()
    assert session.run("40 + 2") == "42"


def test_invalid_utf8_in_the_output_is_shown_escaped(session):
    out = session.run("import os; os.write(1, b'<\\xff\\xfe>\\n')")
    assert "\\xff" in out.lower() and "\\xfe" in out.lower(), out
    assert session.run("'ä€😀'") == "'ä€😀'"


def test_a_script_of_one_megabyte_runs(cb):
    cb.work.joinpath("big.py").write_text(
        "x = '" + "a" * 1_000_000 + "'\nprint(len(x))\n")
    s = cb.session()
    out = s.run(":load big.py", deadline=40)
    assert "1000000" in out, out[-300:]


def test_source_beyond_the_limit_is_refused_and_the_session_goes_on(cb):
    cb.work.joinpath("big.py").write_text("x = 1 #" + "a" * 20_000 + "\n")
    s = cb.session("--set", "cell.source=10K")
    out = s.run(":load big.py")
    assert out.strip(), "the session says nothing"
    assert "NameError" in s.run("x")


def test_a_script_that_only_the_home_has_is_not_loaded(cb):
    s = cb.session(size=(24, 160))
    s.run("open('inside.py', 'w').close()")
    said = s.run("%load inside.py").replace("\n¦ ", "")
    assert "No such file" in said and "%run FILE runs one of the home" in said


def test_a_script_in_another_encoding_is_refused_or_read_as_declared(cb):
    latin = b"# coding: latin-1\nx = 'caf\xe9'\nprint(x, len(x))\n"
    cb.work.joinpath("latin.py").write_bytes(latin)
    cb.work.joinpath("none.py").write_bytes(b"x = 1\n# %%\ny = '\xe9'\n")
    cb.work.joinpath("bom.py").write_bytes(
        b"\xef\xbb\xbf# coding: utf-8\nprint('caf\xc3\xa9')\n")
    assert cb.run("latin.py").text == "café 4\n"
    s = cb.session(size=(24, 160))
    assert "latin.py: expected UTF-8, but it is declared to be latin-1" in \
        s.run(":load latin.py")
    assert "none.py:3: expected UTF-8" in s.run(":load none.py")
    assert "NameError" in s.run("x")
    assert s.run(":load bom.py") == "café"


def test_comments_and_blank_cells_do_nothing(session):
    assert session.run("# nothing") == ""
    session.type("\r")
    session.wait_prompt()
    assert session.run("1") == "1"


PAINTED = re.compile(rb"\x1b\[[0-9;]*3[15]m")


def test_a_traceback_is_coloured(session):
    out = session.run("def f(x):\n    return 1 / x\nf(0)")
    assert '  File "<cell 1>", line 2, in f' in out
    raw = bytes(session.raw)
    for part in b'"<cell 1>"', b"f", b"~~^~~", b"ZeroDivisionError":
        assert re.search(PAINTED.pattern + re.escape(part) + rb"\x1b", raw), part
    # each end of colour is there: the text behind it is plain
    row = next(y for y, text in enumerate(session.screen.display)
               if text.startswith("ZeroDivisionError"))
    cells = session.screen.buffer[row]
    assert cells[0].fg == "magenta" and cells[0].bold
    assert cells[len("ZeroDivisionError")].fg == "default"


@pytest.mark.parametrize("option, variable", [
    ((), {"NO_COLOR": "1"}), (("-s", "terminal.colour=never"), {}),
    (("-s", "terminal.escapes=plain"), {}), ((), {"TERM": "dumb"})])
def test_a_traceback_is_plain_where_no_colours_are_shown(cb, option, variable):
    s = cb.session(*option, env=variable)
    out = s.run("1 / 0")
    assert "ZeroDivisionError: division by zero" in out
    assert "dropped" not in out
    assert not re.search(PAINTED.pattern + b"Zero", s.raw)
    assert not re.search(PAINTED.pattern + b'"<cell', s.raw)


def test_a_traceback_that_is_not_for_the_terminal_is_plain(session):
    session.run("import io, sys, traceback; e = sys.stderr")
    session.run("sys.stderr = io.StringIO()\n1 / 0")
    assert session.run("kept = sys.stderr.getvalue(); sys.stderr = e\n"
                       "len(kept) > 50, '\\33' in kept") == "(True, False)"
    # nor is what a cell formats itself
    assert session.run("try: 1 / 0\nexcept Exception: text = "
                       "traceback.format_exc()\n'\\33' in text") == "False"


def needs_psutil(session):
    """There is no /proc/stat, which psutil looks at first."""
    if session.run("import importlib.util as u; u.find_spec('psutil')") == "":
        pytest.skip("no psutil here")
    assert session.run("import psutil") == ""


def test_psutil_comes_without_a_traceback(session):
    needs_psutil(session)
    assert session.run("psutil.Process().memory_info().rss > 0") == "True"
    assert session.run("psutil.Process().name()") == "'python3'"
    session.run("import time")
    assert session.run("0 < time.time() - psutil.Process().create_time() "
                       "< 3600") == "True"
    assert session.run("import traceback\ntry: 1/0\n"
                       "except ArithmeticError: traceback.print_exc()"
                       ).endswith("ZeroDivisionError: division by zero")


def test_psutil_has_the_figures_of_the_jail(cb):
    session = cb.session("-t", "60s", "-s", "cell.cpu=60s")
    needs_psutil(session)
    assert session.run("psutil.virtual_memory().total >> 20") == "512"
    session.run("m = psutil.virtual_memory; before = m().used")
    session.run("x = b'x' * (64 << 20)")
    assert 32 < int(session.run("m().used - before >> 20")) < 200
    session.run("open('/tmp/f', 'wb').write(x); before = m().cached")
    assert session.run("m().cached - before >> 20 in (0, -1) and "
                       "m().shared >> 20 >= 64") == "True"
    assert session.run("psutil.swap_memory().total, psutil.swap_memory().sin"
                       ) == "(0, 0)"
    session.run("import os, subprocess, time")
    assert session.run("psutil.cpu_count() == os.cpu_count()") == "True"
    # Another process counts too, and still counts when it has ended.
    session.run("c = psutil.cpu_times; before = c().user")
    session.run("subprocess.run(['python3', '-c', 'import time\\nwhile "
                "time.process_time() < .3: pass'])")
    assert session.run(".25 <= c().user + c().system - before < 60") == "True"
    assert session.run("psutil.cpu_percent() <= 100") == "True"
    assert session.run("abs(psutil.boot_time() - time.time() + time.clock_"
                       "gettime(time.CLOCK_BOOTTIME)) < 5") == "True"


def test_what_psutil_cannot_know_is_said_or_absent(session):
    needs_psutil(session)
    assert session.run("psutil.cpu_times(percpu=True), psutil.cpu_freq(), "
                       "psutil.disk_partitions()") == "([], None, [])"
    assert "NotImplementedError" in session.run("psutil.disk_io_counters()")
    # only psutil sees these files
    assert "FileNotFoundError" in session.run("open('/proc/stat')")
    assert "FileNotFoundError" in session.run(
        "psutil._common.open_text('/proc/version')")
