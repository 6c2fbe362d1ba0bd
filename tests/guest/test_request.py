# SPDX-License-Identifier: MIT
"""The driver with one request: a cell with variables, and its report."""
import marshal
import os
import re
import subprocess

from driver import FOREIGN_PARTS, LOAD, PARTS, PYTHON, memory


def request(code, variables=None, shows=True, parts=PARTS, **how):
    """(the ended process, {name of a piece: [bytes...]})"""
    # As in the front end's, the request is not at the beginning of the file.
    what = marshal.dumps((code.encode(), variables or {}, shows), 2)
    driver, file, report = memory(parts), memory(b"12345" + what), memory()
    try:
        r = subprocess.run(
            [PYTHON, "-u", "-I", "-S", "-c", LOAD, str(driver), "-j",
             str(file), "5", str(len(what)), str(report)],
            capture_output=True, text=True, timeout=60,
            pass_fds=[driver, file, report], **how)
        return r, pieces(os.pread(report, 1 << 24, 0))
    finally:
        for fd in driver, file, report:
            os.close(fd)


def pieces(data):
    found = {}
    while data:
        name, size, data = re.match(rb"(\w+) (\d+)\n(.*)", data,
                                    re.S).groups()
        found.setdefault(name.decode(), []).append(data[:int(size)])
        data = data[int(size):]
    return found


def test_the_last_value_is_shown_and_reported():
    r, told = request("y = x + 1\ny", {"x": 41})
    assert (r.stdout, r.stderr, r.returncode) == ("42\n", "", 0)
    assert told == {"type": [b"int"], "json": [b"42"], "repr": [b"42"]}


def test_a_value_is_json_as_json_dumps_writes_it():
    value = ('{"a": [1, -2.5, None, True, "\\u00e9\\n"], 1: (2, 3), '
             'None: {}, "n": 2**80}')
    _, told = request(value)
    import json
    assert told["json"] == [json.dumps(eval(value)).encode()]
    for none in "object()", "float('nan')", "{1, 2}", "b'x'", "{(1, 2): 3}":
        _, told = request(none)
        assert "json" not in told and told["repr"][0], none


def test_a_value_that_cannot_be_shown_is_left_out():
    r, told = request("class C:\n    def __repr__(self): 1/0\n[C()]")
    assert r.returncode == 1 and "ZeroDivisionError" in r.stderr
    assert "json" not in told and "repr" not in told


def test_nothing_is_reported_of_none_of_errors_and_of_statements():
    for code in "None", "x = 5", "", "1/0", "import sys; sys.exit(3)", "1 +":
        r, told = request(code)
        assert told == {}, (code, r)
    assert request("import sys; sys.exit(3)")[0].returncode == 3
    assert request("1/0")[0].stderr.startswith(
        'Traceback (most recent call last):\n  File "<cell 1>", line 1')


def test_the_last_line_is_not_shown_if_it_is_not_interactive():
    r, told = request("print(1)\n2", shows=False)
    assert (r.stdout, told) == ("1\n", {})


def test_variables_keep_their_values():
    r, _ = request("[v, __name__]", {"v": [1, 2**40, 1.5, "é\0", None, True,
                                           {"k": []}]})
    assert r.stdout == ("[[1, 1099511627776, 1.5, 'é\\x00', None, True, "
                        "{'k': []}], '__main__']\n")


def test_a_cell_holds_no_file_of_the_request():
    r, _ = request("import os; print(len(os.listdir('/proc/self/fd')))")
    # 0, 1, 2, the directory itself, and the report.
    assert r.stdout == "5\n"


def test_another_python_runs_the_source_of_the_driver():
    r, told = request("6 * 7", parts=FOREIGN_PARTS)
    assert r.stdout == "42\n" and told["json"] == [b"42"]


def test_a_broken_displayhook_only_costs_the_value():
    r, told = request("import sys; sys.displayhook = print\n5")
    assert (r.stdout, r.returncode, told) == ("5\n", 0, {})
