# SPDX-License-Identifier: MIT
"""The driver as a program: one cell without a session."""
import os
import signal
import subprocess

import pytest

from driver import (CELL, DEADLINE, FOREIGN_CELL, LIMITS, LOAD, PYTHON,
                    memory)


def program(*args, before="", parts=CELL, **how):
    driver = memory(parts)
    try:
        return subprocess.run(
            [PYTHON, "-I", "-S", "-c", before + LOAD, str(driver), *LIMITS, "-e",
             *args],
            capture_output=True, text=True, timeout=3 * DEADLINE, pass_fds=[driver],
            **how)
    finally:
        os.close(driver)


def test_a_program_cell_shows_its_last_expression():
    r = program("x = 20\nx + 1")
    assert (r.stdout, r.stderr, r.returncode) == ("21\n", "", 0)
    r = program("import sys; sys.argv, __name__", "a", "-b")
    assert r.stdout == "(['-e', 'a', '-b'], '__main__')\n"


def test_a_program_cell_fails_as_a_program_does():
    r = program("def f(): 1/0\nf()")
    assert (r.stdout, r.returncode) == ("", 1)
    assert r.stderr.startswith('Traceback (most recent call last):\n'
                               '  File "<cell 1>", line 2, in <module>\n')
    assert r.stderr.endswith("ZeroDivisionError: division by zero\n")
    assert program("raise SystemExit(4)").returncode == 4
    r = program("raise SystemExit('why')")
    assert (r.returncode, r.stderr) == (1, "why\n")
    r = program("1 +")
    assert r.returncode == 1 and r.stderr.startswith('  File "<cell 1>"')
    r = program("raise KeyboardInterrupt")
    assert r.returncode == -signal.SIGINT
    assert r.stderr.rstrip().endswith("KeyboardInterrupt")


def test_a_program_cell_runs_exit_functions_and_reads_stdin():
    r = program("import atexit; atexit.register(print, 'last')\ninput()[::-1]",
                input="abc\n")
    assert r.stdout == "'cba'\nlast\n"


def test_a_traceback_is_shown_even_if_the_cell_has_broken_stderr():
    r = program("import sys; sys.stderr = None\n1/0")
    assert r.stderr.endswith("ZeroDivisionError: division by zero\n")
    assert r.returncode == 1


@pytest.mark.parametrize("cell", [
    "import resource as r\nr.setrlimit(r.RLIMIT_NOFILE, (3, 3))",
    "import sys\nsys.meta_path.clear()",
    "import sys\nsys.modules['traceback'] = None"])
@pytest.mark.parametrize("fails, said", [
    ("1/0", "ZeroDivisionError: division by zero"),
    ("raise MemoryError", "MemoryError")])
def test_an_error_is_shown_even_if_nothing_can_be_loaded(cell, fails, said):
    r = program(cell + "\n" + fails)
    assert r.stderr == ('Traceback (most recent call last):\n'
                        '  File "<cell 1>", line 3, in <module>\n'
                        f'{said}\n')
    assert r.returncode == 1


def test_a_program_cell_holds_no_descriptor_of_the_driver():
    r = program("import os; sorted(os.listdir('/proc/self/fd'))")
    assert r.stdout == "['0', '1', '2', '3']\n"  # 3: the directory


@pytest.mark.parametrize("version", [(3, 7, 16), (3, 8, 18)])
def test_a_python_that_is_too_old_is_refused(version):
    r = program("1", before=f"import sys; sys.version_info = {version}\n",
                parts=FOREIGN_CELL)
    assert (r.stdout, r.returncode) == ("", 1)
    assert r.stderr.startswith(f"Python 3.{version[1]} is too old for cells")
    assert r.stderr.count("\n") == 1


def test_the_oldest_supported_python_is_accepted():
    r = program("1", before="import sys; sys.version_info = (3, 9, 0)\n",
                parts=FOREIGN_CELL)
    assert (r.stdout, r.stderr) == ("1\n", "")
