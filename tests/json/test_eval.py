# SPDX-License-Identifier: MIT
"""cellblock --eval: requests in, answers out, each in a jail of its own."""
import base64
import json
import os
import pathlib
import signal
import subprocess

import pytest

import hindered
import hosttree
from evaluation import REPORT, START, Stream, packed, unpacked
from figures import needs
from world import PATIENCE, WHOLE


# ---- the form of snekbox ----

def test_input_runs_as_code(ev):
    assert ev({"input": "print(6 * 7)"}) == {
        "stdout": "42\n", "returncode": 0, "files": []}
    assert (ev.code, ev.said) == (0, "")


def test_args_are_the_interpreters(ev):
    r = ev({"args": ["", "-c", "import sys; print(sys.argv)", "a b", ""]},
           {"args": ["-I", "-c"], "input": "import sys; print(sys.flags.isolated)"},
           {"args": ["-m", "this"]}, {"args": [], "input": "--version"})
    assert r[0]["stdout"] == "['-c', 'a b', '']\n"
    assert r[1]["stdout"] == "1\n"
    assert "Beautiful is better" in r[2]["stdout"]
    assert r[3]["stdout"].startswith("Python 3.")


def test_output_and_errors_are_one_stream_in_order(ev):
    r = ev({"input": "import sys\nprint('a')\nprint('b', file=sys.stderr)\n"
                     "print('c')\nsys.stdout.write('d\\r\\ne\\rf')\n1/0"},
           args=("-s", "python.env.PYTHON_COLORS=0"))
    assert r["stdout"].startswith("a\nb\nc\nd\ne\nfTraceback (most recent")
    assert r["stdout"].endswith("ZeroDivisionError: division by zero\n")
    assert r["returncode"] == 1


def test_return_codes(ev):
    codes = {"exit(3)": 3, "import os; os.kill(os.getpid(), 11)": 139,
             "import os; os.kill(os.getpid(), 9)": 137,
             "import ctypes; ctypes.string_at(0)": 139,
             "import time; time.sleep(60)": 137}
    answers = ev(*({"input": c} for c in codes),
                 args=("-t", f"{int(3 * PATIENCE)}s"))
    assert [a["returncode"] for a in answers] == list(codes.values())
    assert ev({"input": "x = bytearray(2**30)\nprint(len(x))"},
              args=("-M", "64M"))["returncode"] in (1, 137)


def test_the_end_of_python_keeps_what_a_cell_left_open(ev):
    end = "def g():\n    try: yield\n    finally: print('end')\n"
    r = ev({"code": "f = open('f', 'w'); f.write('x')"},
           {"code": "a = [open('f', 'w')]; a.append(a); a[0].write('x')"},
           {"code": "i = getattr(getattr(print, '_' '_self_' '_'), "
                    "'_' '_imp' 'ort_' '_'); f = open('f', 'w'); "
                    "i('contextvars').ContextVar('v').set(f); f.write('x')"},
           {"code": end + "x = g(); next(x)"},
           {"code": "print('x', end=''); open(1, 'w').close()"})
    assert [f["size"] for a in r[:3] for f in a["files"]] == [1] * 3, r
    assert [a["stdout"] for a in r[3:]] == ["end\n", "x"], r
    assert {a["exit_code"] for a in r} == {0}, r


def test_a_flood_is_cut_and_ended(ev):
    r = ev({"input": "while True: print('x' * 99)"})
    assert r["returncode"] == 143
    assert len(r["stdout"]) == 1000000
    r = ev({"input": "while True: print('x' * 99)"},
           args=("-s", "cell.output=20000"))
    assert r["returncode"] == 143 and len(r["stdout"]) == 20000, len(
        r["stdout"])


def test_a_program_that_ends_in_time_is_not_cut(ev):
    r = ev({"input": "print('x' * 900000)"})
    assert r["returncode"] == 0 and len(r["stdout"]) == 900001


def test_what_cannot_be_run_or_told_has_no_return_code(ev):
    r = ev({"input": "a\0b"},
           {"input": "import sys; sys.stdout.buffer.write(b'\\xff')"},
           {"input": "", "files": [{"path": "d/x"}, {"path": "d"}]},
           {"input": "", "files": [{"path": "x"}, {"path": "x/y"}]},
           {"input": "", "files": [{"path": ""}]},
           {"input": "", "files": [{"path": "x" * 300}]})
    assert [a["returncode"] for a in r] == [None] * 6
    assert [a["stdout"] for a in r[:5]] == [
        "ValueError: embedded null byte",
        "UnicodeDecodeError: invalid Unicode in output pipe",
        "IsADirectoryError: Failed to create file 'd'.",
        "FileExistsError: Failed to create file 'x/y'.",
        "IsADirectoryError: Failed to create file ''."]
    assert r[5]["stdout"].startswith("OSError: Failed to create file 'xxx")
    assert ev.code == 0


def test_the_environment_is_snekboxs_unless_configured(ev):
    code = ("import os, sys; print(os.environ['PYTHON_COLORS'], "
            "os.getcwd(), os.environ['HOME'], sys.stdout.errors)")
    assert ev({"input": code})["stdout"] == "1 /home /home strict\n"
    assert ev({"input": code}, args=("-s", "python.env.PYTHON_COLORS=0"))[
        "stdout"] == "0 /home /home strict\n"


def test_arguments_may_be_long_but_not_too_long(ev):
    fits = "#" * 131071
    r = ev({"input": fits}, {"input": fits + "#"},
           {"args": ["-c", "1"] + ["x" * 1000] * 2000},
           {"args": ["-c", "import sys; print(len(sys.argv))"] + [""] * 4094},
           {"args": [""] + ["-c", "1"] + [""] * 4095},
           {"args": ["-c", "1", fits, fits + "#"]},
           {"code": "#" * 500000 + "\n6 * 7"})
    assert [a.get("returncode") for a in r] == [0, None, None, 0] + [None] * 3
    assert r[3]["stdout"] == "4095\n" and r[6]["result"] == 42
    one = "an argument, as 'input' is, is longer than 131071 bytes"
    assert [r[i]["description"] for i in (1, 2, 4, 5)] == [
        one, "the arguments are longer than 1048576 bytes together",
        "there are more than 4096 arguments", one]


# ---- files ----

def test_files_go_in_and_come_out(ev):
    r = ev({"args": ["main.py"], "files": [
        {"path": "main.py", "content": packed(
            "import os\n"
            "assert os.stat('main.py').st_mode & 0o7777 == 0o777\n"
            "print(open('d/e/in.txt').read(), os.listdir('empty'))\n"
            "open('out.txt', 'w').write('new')\n"
            "open('d/e/in.txt', 'a').write('!')\n"
            "open('old.txt', 'r').read()\n")},
        {"path": "d/e/in.txt", "content": packed("été")},
        {"path": "old.txt", "content": packed("old")},
        {"path": "x/../empty/../old2.txt"},
        {"path": "empty/.keep", "content": ""}]})
    assert r["stdout"] == "été ['.keep']\n", r
    assert unpacked(r) == {"d/e/in.txt": "été!".encode(), "out.txt": b"new"}


def test_which_files_come_out(ev):
    code = ("import os\n"
            "os.makedirs('a/.h/b'); os.makedirs('_d')\n"
            "for p in ('x', '.x', '_x', 'a/y', 'a/_y', 'a/.h/b/z', '_d/w'):\n"
            "    open(p, 'w').write(p)\n"
            "os.symlink('x', 'l'); os.symlink('/etc/passwd', 'l2')\n"
            "os.symlink('a', 'l3'); os.symlink('nowhere', 'l4')\n"
            "os.mkfifo('fifo'); os.mkdir('z')\n")
    r = ev({"input": code})
    assert (r["stdout"], r["returncode"]) == ("", 0)
    assert unpacked(r) == {"x": b"x", "a/y": b"a/y", "_d/w": b"_d/w",
                           "l": b"x"}
    r = ev({"input": code}, args=("-s", "files.pattern=a/*"))
    assert list(unpacked(r)) == ["a/_y", "a/y"]


FIVE = [{"path": str(i), "content": packed(str(i))} for i in range(5)]


@pytest.mark.parametrize("request_, wrong, status", [
    ({"code": "1", "files": FIVE},
     {"title": "The jail failed",
      "description": "hold the list of files: Cannot allocate memory"}, 125),
    ({"input": "1", "files": FIVE},
     {"stdout": "", "returncode": 255, "files": []}, 125)])
def test_files_for_which_there_is_no_memory(cb, ev, request_, wrong, status):
    cb.env.update(hindered.without_memory_for_files(cb, 5))
    four = {**request_, "files": FIVE[:4]}
    r = ev(four, request_, four)
    assert r[1] == wrong and ev.code == status, r
    assert all(a.get("exit_code", a.get("returncode")) == 0
               for a in (r[0], r[2])), r


def test_files_come_whole_however_slowly_we_run(cb, ev):
    cb.env.update(hindered.slowly(cb))
    r = ev({"code": "import os; sorted(os.listdir())", "files": FIVE})
    assert r["result"] == list("01234"), r


def test_files_have_limits(ev):
    many = "for i in range(30): open('%02d' % i, 'w').write('x' * 10)\n"
    r = ev({"input": many}, args=("-s", "files.max_count=7"))
    assert list(unpacked(r)) == ["%02d" % i for i in range(7)]
    sparse = ("for name in 'abcde':\n    with open(name, 'w') as f:\n"
              "        f.truncate(1500000 if name in 'bd' else 1)\n")
    r = ev({"input": sparse}, args=("-s", "home.size=2M", "-s",
                                    "files.max_file=1M"))
    assert list(unpacked(r)) == ["a", "c", "e"], "b and d are too large"
    r = ev({"input": sparse}, args=("-s", "home.size=2M"))
    assert list(unpacked(r)) == ["a", "b", "c"], "with d it is too much"
    r = ev({"input": many}, args=("-s", "files.timeout=1ms"))
    assert r["returncode"] in (None, 0)


def test_files_that_cannot_be_listed(ev):
    deep = ("import os\nfor i in range(1200):\n"
            "    os.mkdir('d'); os.chdir('d')\n")
    name = "import os\nopen(b'\\xff', 'w').close()\n"
    r = ev({"input": deep}, {"input": name}, args=("-s", "home.files=5000"))
    assert r[0]["stdout"] == ("FileParsingError: Exceeded directory depth "
                              "limit while parsing attachments")
    assert r[1]["stdout"] == ("FileParsingError: invalid bytes in filename "
                              "while parsing attachments")
    assert [a["returncode"] for a in r] == [None, None]
    r = ev({"code": name})
    assert r["exit_code"] == 0 and r["files"] == []
    assert r["files_error"].startswith("FileParsingError: invalid bytes")


def test_the_skeleton_is_there(ev, cb):
    skeleton = cb.base / "skeleton"
    skeleton.mkdir()
    skeleton.joinpath("s.txt").write_text("from the skeleton")
    cb.let_in(skeleton)
    r = ev({"code": "open('s.txt').read()"}, {"input": "print(1)"},
           args=("-s", f"home.skeleton={skeleton}"))
    assert r[0]["result"] == "from the skeleton", r


# ---- our form ----

def test_code_has_separate_streams_and_a_result(ev):
    r = ev({"code": "import sys\nprint(sys.stdin.read())\n"
                    "print('e', file=sys.stderr)\n{'x': x, 'y': [1.5, None]}",
            "stdin": "in é\0", "variables": {"x": "\u20ac"}})
    assert r["stdout"] == "in é\0\n{'x': '€', 'y': [1.5, None]}\n"
    assert (r["stderr"], r["exit_code"], r["timed_out"]) == ("e\n", 0, False)
    assert r["result"] == {"x": "€", "y": [1.5, None]}
    assert r["result_type"] == "dict"
    assert (r["limit"], r["images"], r["files"]) == (None, [], [])
    assert r["duration_ms"] >= 0 and r["cpu_ms"] >= 0


def test_cpu_time_counts_also_of_processes_that_have_ended(ev):
    burn = ("import time\nend = time.process_time() + .3\n"
            "while time.process_time() < end: pass")
    child = f"import subprocess\nsubprocess.run(['python3', '-c', {burn!r}])"
    r = ev({"code": burn}, {"code": child}, {"code": "1"}, args=("-t", "60s"))
    assert r[0]["cpu_ms"] >= 250 and r[1]["cpu_ms"] >= 250, r
    assert r[2]["cpu_ms"] < r[0]["cpu_ms"], r


def test_a_result_has_the_digits_of_python(cb):
    r = cb.run("--eval", stdin=json.dumps(
        {"code": "[0.1, 0.1 + 0.2, 1e100, 2.0]"}).encode())
    assert '"result": [0.1, 0.30000000000000004, 1e+100, 2.0]' in r.text, r


TAKEN = """import os
os.closerange(3, {end})
files = [open(f"p{{i}}", "w+") for i in range({n})]
for f in files:
    if f.fileno() not in ({kept}):
        os.unlink(f.name)
5"""


def test_nothing_is_reported_into_a_file_of_the_cells(ev):
    """A cell that closes all descriptors, as a daemon does, and opens files."""
    r = ev({"code": TAKEN.format(end=100, n=20, kept="4, 5, 6, 7")},
           {"code": TAKEN.format(end=1024, n=700, kept="600,")})
    assert [a["result"] for a in r] == [5, None], r
    assert [[f["size"] for f in a["files"]] for a in r] == [[0] * 4, [0]], r


def test_a_forged_result_is_no_deeper_than_a_request(ev):
    r = ev(*({"code": REPORT + f"""
text = b'[' * {n} + b']' * {n}
send(b'json %d\\n' % len(text) + text)"""} for n in (199, 201, 2000)))
    assert [bool(a["result"]) for a in r] == [True, False, False]


def test_results_that_are_no_json(ev):
    r = ev({"code": "2**100"}, {"code": "{1, 2}"}, {"code": "'{1, 2}'"},
           {"code": "None"}, {"code": "1", "last_line_interactive": False})
    assert [(a["result"], a["result_type"]) for a in r] == [
        ("1267650600228229401496703205376", "int"), ("{1, 2}", "set"),
        ("{1, 2}", "str"), (None, None), (None, None)]
    assert r[4]["stdout"] == ""


@pytest.mark.parametrize("letter", ["x", "é", "☃", "\U0001f600", "\x7f"])
def test_a_result_has_a_million_bytes_of_utf8(ev, letter):
    size = len(letter.encode())
    fits = (1000000 - len("''")) // size
    r = ev(*({"code": f"{letter!r} * {n}"} for n in (fits, fits + 1)),
           {"code": f"[{letter!r} * {fits + 1}]", "mime": True})
    assert r[0]["result"] == letter * fits
    for a in r[1:]:
        begin = ("['" if a is r[2] else "'") + repr(letter)[1:-1]
        assert a["result"].startswith(begin)
        assert a["result"].endswith("...[truncated]")
        assert 999900 < len(a["result"].encode()) <= 1000000
    assert r[2]["bundle"]["text/plain"] == r[2]["result"], r[2]["notices"]


def test_half_a_surrogate_pair_is_no_json(ev):
    r = ev({"code": "['\\ud83d', '\U0001f600']"})
    assert r["result"] == "['\\ud83d', '\U0001f600']"


def test_what_a_guest_reports_is_only_a_claim(ev):
    forge = ("import os\nfor fd in range(3, 1024):\n"
             "    try: os.write(fd, %r)\n    except OSError: pass\n1")
    r = ev({"code": forge % b"json 4\n]]}}type 3\n\n\n\n"},
           {"code": forge % b"json 99999999999\n"},
           {"code": forge % (b"json 2001\n" + b"[" * 2001)},
           {"code": forge % b"png 3\n\xff\0\n"},
           {"code": forge % b'json 3\n"\xe9"'},
           {"code": forge % b'json 3\n\xc3\xa90'})
    assert [a["exit_code"] for a in r] == [0] * 6, r
    assert r[3]["images"] == [packed(b"\xff\0\n")]


def test_a_cell_may_close_what_it_does_not_know(ev):
    r = ev({"code": "import os\nos.closerange(3, 1024)\n6 * 7"},
           {"code": "6 * 7"})
    assert [(a["exit_code"], a["stdout"], a["stderr"]) for a in r] == [
        (0, "42\n", "")] * 2
    assert [a["result"] for a in r] == [None, 42]


def test_a_traceback_has_no_frame_of_the_driver(ev, cb):
    code = "class A:\n    def __repr__(self): 1/0\nA()"
    r = ev({"code": code})
    assert "ZeroDivisionError" in r["stderr"] and r["exit_code"] == 1
    assert "<cellblock>" not in r["stderr"], r
    assert r["stderr"] == cb.run("-e", code).said


def test_limits_say_who_set_them(ev, cb):
    n = int(2 * PATIENCE)       # seconds, in which it comes to its loop
    cb.config(f"[cell]\ntimeout = {2 * n}s\n[session]\nmemory = 64M\n")
    spin = "import time\nprint('before')\nwhile True: time.sleep(1)"
    r = ev({"code": spin, "timeout_ms": 1000 * n}, {"code": spin})
    assert [a["limit"]["key"] for a in r] == ["timeout_ms", "cell.timeout"]
    assert [a["exit_code"] for a in r] == [None, None]
    assert r[0]["timed_out"] and r[1]["timed_out"]
    assert r[0]["stdout"] == "before\n", "what was printed until then"
    assert r[0]["limit"]["source"] == "request"
    assert r[0]["limit"]["text"] == f"time limit: {n} s"
    assert 1000 * n <= r[0]["duration_ms"] and 2000 * n <= r[1]["duration_ms"]
    assert r[1]["limit"]["source"].endswith("cellblock.conf:2")
    r = ev({"code": "while True: pass"},
           {"code": "x = [bytearray(2**20) for _ in range(9999)]"},
           args=("-t", "5m", "-s", "cell.cpu=1s"))
    assert (r[0]["limit"]["key"], r[0]["limit"]["source"]) == (
        "cell.cpu", "--set")
    assert (r[0]["exit_code"], r[0]["timed_out"]) == (137, False)
    # Without a cgroup each process has a limit of its own, and may learn of
    # it before the warden does.
    if r[1]["limit"]:
        assert r[1]["limit"]["key"] == "session.memory"
        assert r[1]["limit"]["source"].endswith("cellblock.conf:4")
    else:
        assert "MemoryError" in r[1]["stderr"]
    assert ev.code == 0


def test_long_streams_are_cut_each(ev):
    r = ev({"code": "import sys\nsys.stdout.write('o' * 2000000)\n"
                    "sys.stderr.write('é' * 500000)\n"
                    "open('end', 'w').close()"})
    assert r["stdout"] == "o" * (1000000 - 32) + "\n...[truncated]"
    assert r["stderr"] == "é" * 500000
    assert list(unpacked(r)) == ["end"], "it ran to its end"


def test_files_of_code(ev):
    r = ev({"code": "open('b', 'w').write(open('a').read())\nNone",
            "files": [{"path": "a", "content": packed("A")}]})
    assert r["files"] == [{"path": "b", "kind": "file", "size": 1,
                           "content": packed("A")}], r
    assert r["files_error"] is None
    r = ev({"code": "", "files": [{"path": "d/x"}, {"path": "d"}]})
    assert ev.code == 2 and r == {
        "title": "Request file is invalid",
        "description": "IsADirectoryError: Failed to create file 'd'."}


def test_figures_become_pictures(ev, cb):
    needs(cb, "matplotlib")
    r = ev({"code": "import matplotlib.pyplot as plt\n"
                    "plt.plot([1, 2])\nplt.figure()\nplt.show()\nNone"},
           args=("-t", "60s"))
    assert len(r["images"]) == 2, r
    for image in r["images"]:
        assert base64.b64decode(image).startswith(b"\x89PNG\r\n")


# ---- many requests ----

def test_each_request_has_a_jail_of_its_own(ev):
    leave = {"input": "import os\nif os.fork(): os._exit(0)\n"
                      "import time\nopen('left', 'w')\ntime.sleep(99)"}
    look = {"code": "import os\n[os.listdir('/home'), os.listdir('/tmp'), "
                    "len([p for p in os.listdir('/proc') if p.isdigit()])]"}
    r = ev(leave, look, leave, look)
    assert r[1]["result"] == r[3]["result"] == [[], [], 2]


def test_answers_come_in_order_and_at_once(cb):
    p = cb.popen("--eval", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    for i in range(3):
        p.stdin.write(b'{"code": "%d"}\n' % i)
        p.stdin.flush()
        assert json.loads(p.stdout.readline())["result"] == i
    p.stdin.close()
    assert p.wait(20 * PATIENCE) == 0


def test_a_request_may_have_many_lines(ev):
    both = json.dumps({"code": "1"}, indent=4) + "\n" + json.dumps(
        {"code": "2"}, indent=1)
    r = ev.cb.run("--eval", stdin=both)
    assert [json.loads(x)["result"] for x in r.text.splitlines()] == [1, 2]


# ---- what would be too much for the reader ----

def test_no_program_makes_the_reader_large(cb):
    s = Stream(cb, "-t", "2m")
    lists = "b'[' + b'[],' * %d + b'0]'"
    code = (REPORT + "data = " + lists + "\n"
            "send(b'json %%d\\n' %% len(data) + data)\nos._exit(0)")
    assert len(s({"code": code % 1000})["result"]) == 1001
    assert s({"code": code % 3000000})["result"] is None
    assert s({"input": "import os\nb = b'\\x80' * 65536\n"
                       "while True: os.write(1, b)"}) == {
        "stdout": "UnicodeDecodeError: invalid Unicode in output pipe",
        "returncode": None, "files": []}
    assert s.peak() < 64 << 20
    assert s.close() == 0


def test_no_request_makes_the_reader_large(cb):
    s = Stream(cb)
    lists = b'{"code": "len(x)", "variables": {"x": [%b0]}}'
    assert s(lists % (b"[]," * 1000))["result"] == 1001
    assert s(lists % (b"[]," * 3000000)) == {
        "title": "Request is too large",
        "description": "it has more than 1000000 values"}
    assert s.peak() < 64 << 20
    r = s({"code": "1", "variables": {"x": "x" * (33 << 20)}})
    assert r["description"] == "variables: longer than 32 MiB"
    assert s({"code": "2"})["result"] == 2
    assert s.close() == 2


@pytest.mark.sampled
@pytest.mark.parametrize("fd", ["1", "report"])
def test_no_program_keeps_the_reader_busy(cb, fd):
    s, busy = Stream(cb, "-t", "5m"), 1 if WHOLE else 0.5
    before = s.cpu()
    r = s({"code": REPORT + f"end = time.process_time() + {busy}\n"
                            "while time.process_time() < end:\n"
                            "    for _ in range(999): os.write(%s, b'x')\n"
                            "open('end', 'w').close()" % fd})
    assert list(unpacked(r)) == ["end"], r
    assert s.cpu() - before < 0.25 * busy
    assert s.close() == 0


@pytest.mark.parametrize("us", [400, 600, 800, 1200])
def test_a_pause_of_the_reader_ends(cb, us):
    """Also one of 2 ms that is over between two looks at the clock."""
    cb.env.update(hindered.slowly(cb, us))
    s = Stream(cb, "-t", f"{int(30 * PATIENCE)}s")
    r = s({"code": "import os, time\nfor _ in range(300):\n"
                   "    os.write(1, b'x'); time.sleep(0.001)\n"
                   "for _ in range(300): os.write(1, b'x' * 1000)"})
    assert (r["limit"], len(r["stdout"])) == (None, 300300), r["limit"]
    assert s.close() == 0


@pytest.mark.limit(330)
@pytest.mark.parametrize("begin", [None, {"session": True}],
                         ids=["alone", "session"])
def test_what_the_reader_does_for_a_cell_is_the_cells_work(cb, begin):
    """The reader rests so often that this takes ten seconds, and a minute on a
    busy host."""
    s = Stream(cb, "-t", "5m", "-s", "cell.cpu=500ms", begin=begin)
    loop = ("import os, time\nend = time.process_time() + 0.4\n"
            "while time.process_time() < end: ")
    control = s({"code": loop + "pass"})
    assert control["limit"] is None, control
    r = s({"code": loop + "os.write(1, b'\\x1b[31mx' * 1000)"})
    assert r["limit"]["key"] == "cell.cpu" and r["cpu_ms"] < 400, r["limit"]
    assert s.close() == 0


# ---- many requests ----

def held(pid):
    """The processes below one, and how many descriptors each has, as far as
    that may be known. A jail that waits may have its helper or not yet."""
    found = []
    for p in (pid, *hosttree.descendants(pid)):
        status = hosttree.status_of(p)
        if status and status["State"][0] != "Z":
            try:
                fds = len(os.listdir(f"/proc/{p}/fd"))
            except OSError:
                fds = None
            found.append((status["Name"], fds))
    names = [name for name, _ in found]
    if names.count("cellblock-help") <= names.count("cellblock-init"):
        found = [f for f in found if f[0] != "cellblock-help"]
    return sorted(found, key=str)


def rest(pid):
    """Wait until nothing comes or goes any more."""
    seen = []

    def same():
        seen.append(held(pid))
        return len(seen) > 20 and len({str(s) for s in seen[-20:]}) == 1
    hosttree.until(same, "the stream to rest")
    return seen[-1]


def is_near(now, before):
    """The same processes, and none has more than one descriptor more: that of
    a jail that was made ahead, and of which the reader has heard since. A leak of
    each request shows after some rounds."""
    return len(now) == len(before) and all(
        a == b and (m == n or (m and n and m <= n + 1))
        for (a, m), (b, n) in zip(now, before))


ALONE = [{"code": "1"}, {"input": "print(1)"}, "nope", {"stuff": 1},
         {"code": "import os; os.abort()"}, {"input": "1", "files": 5},
         {"code": "open('a', 'w').write('x')", "variables": {"x": "y" * 9999},
          "files": [{"path": "b", "content": "eA=="}]},
         {"code": "import os\nif not os.fork(): os.execlp('sleep', 'x', '9')"}]
CELLS = [{"code": "x = 1"}, {"code": "1/0"}, "nope", {"undo": 1}, {"undo": 99},
         {"code": "import os; os.abort()"}, {"read": "*"}, {"code": "print(7)"},
         {"code": "open('a', 'w').write('x')", "files": [{"path": "b"}]}]


def test_jails_of_a_stream_are_in_cgroups_as_a_sessions_is(cb):
    """Also where a cgroup was delegated to the user: then the reader and the
    maker of the jails make room in it."""
    session = cb.session("-q")
    session.run("1")            # a prompt may come before the jail
    wanted = len(hosttree.cgroups_of(cb.tree(session).init))
    session.close()
    s = Stream(cb)
    for _ in range(5):
        s({"code": "1"})
        # The first that is seen may be on its way out.
        hosttree.until(lambda: len(hosttree.cgroups_of(cb.tree(s.p).init))
                       == wanted, lambda: f"{wanted} cgroups")
    s.close()


@pytest.mark.sampled
@pytest.mark.limit(180)
@pytest.mark.parametrize("begin, requests", [(None, ALONE), (START, CELLS)],
                         ids=["alone", "session"])
def test_many_requests_leave_nothing_behind(cb, begin, requests):
    s = Stream(cb, begin=begin)
    tree = cb.tree(s.p)
    ours = [s.p.pid]

    def round_():
        for request in requests:
            s(request if isinstance(request, dict) else request.encode())
            tree.look()

    def left():
        now = set().union(*map(hosttree.cgroups_of, tree.alive()))
        return {c for c in tree.cgroups - now if os.path.exists(c)}
    round_()
    before = rest(s.p.pid)
    if begin:
        ours += [tree.warden, tree.init]
    sizes = [hosttree.memory_of(pid) for pid in ours]
    rounds = 8 if WHOLE else 3
    for _ in range(rounds):
        round_()
    hosttree.until(lambda: is_near(held(s.p.pid), before),
                   lambda: f"{held(s.p.pid)} to become {before}")
    hosttree.wait_removed(left)
    # AddressSanitizer keeps what was freed.
    for pid, size in zip(ours, sizes if "ASAN_OPTIONS" not in os.environ else ()):
        assert hosttree.memory_of(pid) < size + (512 << 10), pid
    if not begin:
        assert len(tree.seen) > rounds * 5, "control: each had a jail of its own"
    s.close()
    tree.wait_gone()


# ---- bad input ----

@pytest.mark.parametrize("text, title", [
    ("nope", "Invalid JSON"),
    ("", "Invalid JSON"),
    ("{", "Invalid JSON"),
    ('{"input": "1", "input": "2"}', "Invalid JSON"),
    ('{"input": 1e999}', "Invalid JSON"),
    ("[" * 5000, "Request is too large"),
    ('{"code": "1", "variables": {"x": %s}}' % ("[" * 300 + "]" * 300),
     "Request is too large"),
    ("7", "Request data failed validation"),
    ('{"stuff": 1}', "Request data failed validation"),
    ('{"code": "1", "session": true}', "Request data failed validation"),
    ('{"code": "1", "timeout_ms": 11000}', "Request data failed validation"),
    ('{"input": "1", "files": [{"path": "../../etc/x"}]}',
     "Request file is invalid"),
    ('{"input": "1", "files": [{"path": "x", "content": "!"}]}',
     "Request file is invalid"),
    ('{"input": "1", "executable_path": "/bin/sh"}',
     "executable_path is not executable"),
])
def test_a_request_that_is_not_in_order_is_refused(cb, text, title):
    r = cb.run("--eval", stdin=text)
    answer = json.loads(r.text)
    assert (r.code, r.said) == (2, ""), r
    assert answer["title"] == title and set(answer) == {"title",
                                                        "description"}


def test_a_bad_request_leaves_the_others_alone(ev):
    r = ev({"code": "1"}, "nope", '{"code": "', {"code": "2"}, [], {"input": 5},
           {"code": "3"})
    assert [a.get("result") for a in r] == [1, None, None, 2, None, None, 3]
    assert ev.code == 2


def test_a_forgotten_bracket_takes_no_other_request_along(cb):
    s = Stream(cb)
    assert s(b'{"code": "1"\n{"code": "2"}')["title"] == "Invalid JSON"
    assert json.loads(s.p.stdout.readline())["result"] == 2
    s.close()


def test_a_long_request_is_passed_over(cb):
    long = json.dumps({"code": "1", "stdin": "x" * 3000000})
    r = cb.run("-s", "home.size=64K", "-s", "cell.source=1K", "--eval",
               stdin=long + '\n{"code": "2"}\n')
    first, second = map(json.loads, r.text.splitlines())
    assert first["title"] == "Request is too large" and second["result"] == 2
    assert r.code == 2


def test_options_that_make_no_sense_are_refused(cb):
    for args in (["-u", "x"], ["-d", "x"], ["-c", "1"]):
        r = cb.run(*args, "--eval") if args[0] != "-c" \
            else cb.run("--eval", *args)
        assert r.code == 2 and r.out == b"" and r.said, r


# ---- what goes wrong ----

def test_a_jail_that_cannot_be_built_is_told(ev):
    args = ("-s", "jail.expose=/no/such/place")
    r = ev({"input": "1"}, args=args)
    assert r == {"stdout": "", "returncode": 255, "files": []}, ev.said
    assert ev.code in (78, 125) and "/no/such/place" in ev.said
    r = ev({"code": "1"}, args=args)
    assert r["title"] == "The jail failed" and ev.code in (78, 125)
    r = ev({"session": True}, args=args)
    assert r["title"] == "The jail failed" and ev.code in (78, 125)


@pytest.mark.parametrize("to, code", [("&-", 1), ("/dev/full", 1),
                                      ("/dev/null", 0)])
def test_an_answer_that_cannot_be_written_is_a_failure(cb, to, code):
    r = cb.run("--eval", stdin='{"code": "1"}', wrapper=(
        "sh", "-c", f'exec "$@" >{to}', "sh"))
    assert r.code == code and ("write an answer" in r.said) == (code != 0), r


def test_a_session_that_is_killed_is_told(cb):
    p = cb.popen("--eval", stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                 stderr=subprocess.PIPE)
    p.stdin.write(b'{"session": true}\n{"code": "6 * 7"}\n')
    p.stdin.flush()
    p.stdout.readline()
    assert json.loads(p.stdout.readline())["output"] == "42\n"
    tree = cb.tree(p)
    tree.kill(tree.warden)
    p.stdin.write(b'{"code": "1"}\n')
    p.stdin.flush()
    assert json.loads(p.stdout.readline())["title"] == "The session is over"
    p.stdin.close()
    assert p.wait(30 * PATIENCE) in (2, 125)
    tree.wait_gone()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_no_jail_outlives_its_front_end(cb, how):
    p = cb.popen("--eval", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    p.stdin.write(b'{"code": "import time\\ntime.sleep(60)"}\n')
    p.stdin.flush()
    tree = cb.tree(p)
    # Two jails: the one that runs, and the next one.
    hosttree.until(lambda: tree.look() and len(tree.guests()) == 2 and
                   len(tree.inside()) == 4, "the jails stand")
    p.send_signal(how)
    p.wait(20 * PATIENCE)
    tree.wait_gone()


def test_every_request_is_answered_without_a_maker(cb):
    p = cb.popen("--eval", stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                 stderr=subprocess.PIPE)
    p.stdin.write(b'{"code": "1"}\n')
    p.stdin.flush()
    assert json.loads(p.stdout.readline())["result"] == 1
    maker, = [int(c) for c in pathlib.Path(
        f"/proc/{p.pid}/task/{p.pid}/children").read_text().split()]
    os.kill(maker, signal.SIGKILL)
    hosttree.until(lambda: (hosttree.stat_of(maker) or [b"X"])[0] in b"XZ",
                   "the maker is dead")
    out, said = p.communicate(b'{"input": "1"}\n{"code": "1"}\n' * 2,
                              timeout=20 * PATIENCE)
    answers = [json.loads(line) for line in out.splitlines()]
    assert len(answers) == 4, "a jail may have been made before"
    assert answers[2] == {"stdout": "", "returncode": 255, "files": []}
    assert answers[3]["title"] == "The jail failed"
    assert p.returncode == 125
    assert said.startswith(b"cellblock: "), said


def test_the_reader_of_requests_can_do_nothing(cb):
    """It has no file, no capability, and starts nothing."""
    p = cb.popen("--eval", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    p.stdin.write(b'{"code": "1"}\n')
    p.stdin.flush()
    assert json.loads(p.stdout.readline())["result"] == 1
    hosttree.assert_powerless(p.pid)
    p.stdin.close()
    assert p.wait(20 * PATIENCE) == 0


def test_psutil_has_the_jails_figures_in_code(ev):
    """Whether the Python waited for the request, or was started for it."""
    code = ("try: import psutil\nexcept ImportError: r = None\n"
            "else: r = psutil.virtual_memory().total >> 20\nr")
    answers = ev({"code": code}, {"code": code},
                 args=("-M", "96M", "-t", "60s"))
    if answers[0]["result"] is None:
        pytest.skip("no psutil here")
    assert [a["result"] for a in answers] == [96, 96]
    assert [a["stderr"] for a in answers] == ["", ""]
