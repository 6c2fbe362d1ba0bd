# SPDX-License-Identifier: MIT
"""The driver with one request: a cell with variables, and its report."""
import marshal
import os
import re
import socket
import subprocess

from driver import (CELL, DEADLINE, FOREIGN_CELL, LIMITS, LOAD, PYTHON, memory,
                    until)


class Early:
    """A driver that waits for its cell."""

    def __init__(self, parts=CELL, **how):
        self.driver, self.report = memory(parts), memory()
        self.ctl, theirs = socket.socketpair(socket.AF_UNIX,
                                             socket.SOCK_SEQPACKET)
        self.ctl.settimeout(DEADLINE)
        tty = os.open("/dev/null", os.O_RDWR)
        self.process = subprocess.Popen(
            [PYTHON, "-u", "-I", "-S", "-c", LOAD, str(self.driver), *LIMITS, "-w",
             str(theirs.fileno()), str(tty)], text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=[self.driver, theirs.fileno(), tty], **how)
        theirs.close()
        os.close(tty)
        self.ready = self.ctl.recv(100)

    def run(self, code, variables=None, shows=True):
        # As in the front end's, it is not at the beginning of the file.
        what = marshal.dumps((code.encode(), variables or {}, shows), 2)
        stdio = [os.open(f"/proc/{self.process.pid}/fd/{fd}", flags) for fd, flags
                 in enumerate((os.O_RDONLY, os.O_WRONLY, os.O_WRONLY))]
        fds = [memory(b"12345" + what), *stdio]
        socket.send_fds(self.ctl, [b"START 0 5 %d" % len(what)],
                        [*fds, self.report])
        for fd in fds:
            os.close(fd)
        self.ctl.close()
        return self.end()

    def end(self):
        """(the ended process, {name of a piece: [bytes...]})"""
        p = self.process
        p.stdout, p.stderr = p.communicate(timeout=3 * DEADLINE)
        told = pieces(os.pread(self.report, 1 << 24, 0))
        for fd in self.driver, self.report:
            os.close(fd)
        return p, told


def request(code, variables=None, shows=True, **how):
    return Early(**how).run(code, variables, shows)


def test_it_waits_for_its_cell_and_ends_without_one():
    waits = Early()
    version = "%d.%d.%d" % tuple(eval(subprocess.run(
        [PYTHON, "-c", "import sys; print(tuple(sys.version_info[:3]))"],
        capture_output=True, check=True).stdout))
    assert waits.ready == f"READY {waits.process.pid} {version}".encode()
    assert waits.process.poll() is None
    waits.ctl.close()
    r, told = waits.end()
    assert (r.stdout, told) == ("", {}) and r.returncode != 0


def test_site_does_its_part_while_no_cell_comes(tmp_path):
    done = tmp_path / "done"
    (tmp_path / "sitecustomize.py").write_text(f"open({str(done)!r}, 'w')")
    rests = Early(env={**os.environ, "PYTHONPATH": str(tmp_path)})
    until(done.exists, "site has done its part")
    r, told = rests.run("import sys; [exit is not None, 'site' in sys.modules]")
    assert (r.stdout, r.stderr) == ("[True, True]\n", ""), r
    assert told["json"] == [b"[true, true]"]


def test_what_may_differ_from_start_to_start_does():
    made = "(hash('x'), id(object()), __import__('random').random())"
    seen = [eval(request(made)[1]["repr"][0]) for _ in range(3)]
    for values in zip(*seen):
        assert len(set(values)) == 3, seen


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
    assert told["json"] == [
        json.dumps(eval(value), ensure_ascii=False).encode()]
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
    r, told = request("6 * 7", parts=FOREIGN_CELL)
    assert r.stdout == "42\n" and told["json"] == [b"42"]


def test_a_broken_displayhook_only_costs_the_value():
    r, told = request("import sys; sys.displayhook = print\n5")
    assert (r.stdout, r.returncode, told) == ("5\n", 0, {})
