# SPDX-License-Identifier: MIT
"""cellblock --eval with a session: cells that share variables and a home."""
import base64
import json

import pytest

import hindered
from evaluation import START, Stream, packed, unpacked
from figures import pyplot
from world import IS_ROOT, PATIENCE, WHOLE


def test_a_session_keeps_its_variables_and_files(ev):
    r = ev(START, {"code": "x = 20"}, {"code": "x += 1\nprint('p')\n2 * x"},
           {"code": "open('f', 'w').write('1')"}, {"read": "*"},
           {"code": "print('a', end='')"})
    assert r[0]["session"] is True and r[0]["python"].startswith("3.")
    assert [a.get("output") for a in r[1:]] == [
        "", "p\n42\n", "1\n", None, "a"]
    assert [a.get("cell") for a in r[1:]] == [1, 2, 3, None, 4]
    assert r[2]["how"] == "ok" and r[2]["after"] == "kept"
    assert (r[2]["names"], r[2]["limit"], r[2]["verdict"]) == (1, None, "")
    assert unpacked(r[4]) == {"f": b"1"}
    assert ev.code == 0


def test_output_of_a_cell_is_plain_text_up_to_its_limit(ev):
    r = ev(START, {"code": "print('\\x1b[31mred\\x1b[0m \\x07é')"},
           {"code": "print('x' * 3000, '\\nend')"}, {"code": "1"},
           args=("-s", "cell.output=100", "-s", "cell.tail=20"))
    assert r[1]["output"] == "red é\n"
    assert r[2]["output"].startswith("x" * 100) and "output limit" in \
        r[2]["output"] and r[2]["output"].endswith("end\n"), r[2]
    assert r[3]["output"] == "1\n"


# The end of a cell's output is marked on a descriptor that the cell can close.
WRITES_ON = """import os, time
tty = os.fstat(1).st_rdev
begun, begins = os.pipe()
if os.fork() == 0:
    os.close(begun)
    while True:
        os.write(1, b"x")
        if begins: begins = os.close(begins)
        time.sleep(0.005)
os.close(begins)
end = os.read(begun, 1)
for fd in range(3, 1100):
    try:
        if os.fstat(fd).st_rdev == tty: os.close(fd)
    except OSError: pass
"""


def test_a_process_that_writes_on_does_not_keep_a_cell_from_ending(ev):
    r = ev(START, {"code": WRITES_ON}, {"code": "1 + 1"},
           args=("-s", "cell.background=run"))
    assert [a["how"] for a in r[1:]] == ["ok", "ok"]
    assert set(r[1]["output"]) == {"x"} and "2\n" in r[2]["output"], r


def test_a_cell_that_fails_says_how(ev):
    r = ev(START, {"code": "x = 1"}, {"code": "1/0"}, {"code": "1 +"},
           {"code": "import os; os.abort()"}, {"code": "x"},
           {"code": "while True: pass", "timeout_ms": 300}, {"code": "x"},
           args=("-t", "60s"))
    assert [a.get("how") for a in r[1:]] == [
        "ok", "raised", "syntax", "crashed", "ok", "interrupted", "ok"]
    assert [a.get("after") for a in r[4:]] == [
        "rolled back", "kept", "kept", "kept"]
    assert r[5]["output"] == r[7]["output"] == "1\n"
    assert "back to the state before cell" in r[4]["verdict"]
    assert r[6]["verdict"] == ("time limit: 300 ms · interrupted · variables "
                               "kept")
    assert r[6]["limit"]["source"] == "request"


def test_a_cell_that_ignores_its_limit_is_killed(ev):
    n = int(2 * PATIENCE)
    r = ev(START, {"code": "x = 1"},
           {"code": "import time\nwhile True:\n    try: time.sleep(9)\n"
                    "    except KeyboardInterrupt: pass"},
           {"code": "x"}, args=("-t", f"{n}s", "-s", "cell.grace=200ms"))
    assert [a.get("how") for a in r[1:]] == ["ok", "killed", "ok"]
    assert [a.get("after") for a in r[1:]] == ["kept", "rolled back", "kept"]
    assert r[3]["output"] == "1\n"
    assert r[2]["limit"] == {"key": "cell.timeout", "source": "-t",
                             "text": f"time limit: {n} s"}


def test_a_limit_that_a_cell_survives_is_told(ev):
    ms = int(1000 * PATIENCE)       # in which it comes to its `try`
    r = ev(START, {"code": "import time; x = 5\ntry:\n"
                           "    while True: time.sleep(.05)\n"
                           "except KeyboardInterrupt:\n    print('on')",
                   "timeout_ms": ms}, {"code": "x"})
    assert (r[1]["how"], r[1]["output"], r[1]["after"]) == ("ok", "on\n", "kept")
    assert r[1]["limit"] == {"key": "timeout_ms", "source": "request",
                             "text": f"time limit: {ms // 1000} s"}, r
    assert r[2]["output"] == "5\n" and r[2]["limit"] is None


# Their parent waits for none of them: the kernel adds their CPU time nowhere.
BURNS = """import os, signal, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
children = []
def burn():
    for i in range(2):
        children.append(os.fork())
        if children[-1] == 0:
            while time.process_time() < 0.5: pass
            os.write(wrote, b"x")
            time.sleep(600)
    while len(os.read(read, 1)) + len(os.read(read, 1)) < 2: pass
def end():
    while children: os.kill(children.pop(), 9)
read, wrote = os.pipe()
"""


def test_the_end_of_a_process_gives_no_cpu_time_and_takes_none(ev):
    rounds = [{"code": code} for code in ("burn()", "end()", "1")] * 2
    r = ev(START, {"code": BURNS}, *rounds, args=("-t", "5m"))[2:]
    assert all(a["how"] == "ok" for a in r), r
    burnt, ended, after = ([a["cpu_ms"] for a in r[i::3]] for i in range(3))
    assert min(burnt) > 500, burnt
    assert min(ended) >= 0 and max(ended) < 500, ended
    assert min(after) >= 0 and max(after) < 500, after


@pytest.mark.sampled
def test_a_crash_with_a_thread_is_a_crash(ev):
    crash = ("import os, threading, time\nthreading.Thread("
             "target=time.sleep, args=(9,), daemon=True).start()\nos.abort()")
    r = ev(START, *[{"code": crash}] * (40 if WHOLE else 15))
    assert {a["how"] for a in r[1:]} == {"crashed"}, r

def test_standard_input_of_a_cell_ends(ev):
    r = ev(START, {"code": "[input(), input()]", "stdin": "a\té\nb"},
           {"code": "input()"}, {"code": "import sys; sys.stdin.read()",
                                 "stdin": "x\ny"}, {"code": "1"},
           {"code": "while True:\n    try: input()\n"
                    "    except EOFError: pass"}, {"code": "2"},
           args=("-t", f"{int(2 * PATIENCE)}s"))
    assert r[1]["output"].endswith("['a\\té', 'b']\n"), r[1]
    assert r[2]["how"] == "raised" and "EOFError" in r[2]["output"]
    assert r[3]["output"].endswith("'x\\ny\\n'\n"), r[3]
    assert r[4]["output"] == "1\n"
    assert r[5]["how"] == "interrupted" and r[5]["limit"], r[5]
    assert r[6]["output"] == "2\n"


def test_cells_can_be_undone(ev):
    r = ev(START, {"code": "x = 1"}, {"code": "x = 2"}, {"undo": 1},
           {"code": "x"}, {"undo": 9}, {"reset": True},
           {"code": "x"}, {"code": "y = 1"})
    assert r[3]["undo"] == 1 and r[3]["back_to"] == 2
    assert r[4]["output"] == "1\n"
    assert r[5]["title"] == "Nothing was undone"
    assert r[6]["reset"] is True and "NameError" in r[7]["output"]
    assert ev.code == 2


def test_so_many_cells_cannot_be_undone(ev):
    r = ev(START, *({"undo": n} for n in (0, -1, 1001, "1", None)))
    assert [a["description"] for a in r[1:]] == [
        "undo: 0 is less than the minimum of 1",
        "undo: -1 is less than the minimum of 1",
        "undo: 1001 is greater than the maximum of 1000",
        "undo: '1' is not of type 'integer'",
        "undo: None is not of type 'integer'"]


# Takes so many MiB of the jail's memory.
FILLS = """\
b = bytearray({} << 20)
for i in range(0, len(b), 4096): b[i] = 1
"""


@pytest.mark.both
@pytest.mark.sampled
@pytest.mark.limit(180)
def test_a_cell_that_ends_near_the_memory_limit_is_not_lost(ev):
    """A checkpoint has no room beside it: the session goes without, and says so."""
    without = 0
    for mib in range(108, 121, 1 if WHOLE else 3):
        r = ev(START, {"code": "x = 1"}, {"code": FILLS.format(mib)},
               {"code": "x = 2"}, {"code": "x"}, args=(
                   "-M", "128M", "-t", "60s", "-s", "cell.cpu=60s"))
        said = str(r)
        assert "died" not in said and "stopped answering" not in said, r
        # A later cell may meet the limit, and the session says so.
        assert r[4]["output"] == "2\n" or "back to the state before" in said, r
        without += "no checkpoint could be taken, there is too little" in said
    # Without a cgroup the warden knows less exactly how much is left.
    assert without or not (WHOLE and IS_ROOT)


def test_an_undo_says_whether_it_took_a_reset_back(ev):
    r = ev(START, {"code": "x = 1"}, {"code": "x = 2"}, {"reset": True},
           {"undo": 1}, {"code": "x"}, {"undo": 1}, {"code": "x"})
    assert r[4]["reset"] is True and r[5]["output"] == "2\n", r
    assert r[6]["reset"] is False and r[7]["output"] == "1\n", r
    assert ev.code == 0


def test_a_reset_says_whether_it_can_be_undone(ev):
    r = ev(START, {"code": "x = bytearray(b'x' * 50_000_000)"},
           {"reset": True}, {"undo": 1}, {"code": "y = x * 2"},
           {"reset": True}, {"undo": 1}, args=("-M", "256M"))
    assert r[2]["kept"] is True and r[3]["reset"] is True, r
    assert r[5]["kept"] is False and r[6]["title"] == "Nothing was undone", r


def test_a_policy_for_commands_binds_requests(ev):
    ev.cb.config("[policy]\ncommands = help undo\n")
    files = [{"path": "f", "content": ""}]
    r = ev(START, {"code": "x = 1"}, {"code": "x = 2"}, {"undo": 1},
           {"reset": True}, {"read": "*"}, {"code": "x = 3", "files": files},
           {"code": "import os; x, os.listdir()"})
    for answer, command in zip(r[4:7], ("reset", "download", "upload")):
        assert answer["title"] == "Request is not allowed", answer
        assert f"policy.commands leaves out {command}: it is set in" in \
            answer["description"] and "cellblock.conf:2" in \
            answer["description"]
    # the control: the rest works, and nothing has happened
    assert r[3]["undo"] == 1 and r[7]["output"] == "(1, [])\n", r
    assert ev.code == 2


def test_a_session_that_was_left_is_over(ev):
    r = ev(START, {"code": "exit(3)"}, {"code": "1"}, {"undo": 1})
    assert (r[1]["how"], r[1]["exit_code"], r[1]["after"]) == (
        "exit", 3, "ended")
    assert [a["title"] for a in r[2:]] == ["The session is over"] * 2
    r = ev(START, {"code": "import os; os._exit(4)"}, {"code": "1"})
    assert (r[1]["how"], r[1]["exit_code"], r[1]["after"]) == (
        "exited", 4, "restarted")
    assert r[2]["output"] == "1\n"


def test_a_session_counts_as_one_of_the_persons(cb):
    """The control: a stream without a session does not, and one that ends
    makes room."""
    one = ("-s", "session.per_user=1")
    first = Stream(cb, *one, begin=START)
    r = cb.run(*one, "--eval", stdin=json.dumps(START) + '\n{"code": "1"}\n')
    assert json.loads(r.text) == {
        "title": "The session may not begin",
        "description": "there is 1 session already"}
    assert r.code == 75
    assert "there is 1 session already" in r.said and "per_user" in r.said
    s = cb.session(*one, start=False)
    assert s.wait_exit() == 75 and "1 session already" in s.all_text()
    r = cb.run(*one, "--eval", stdin='{"code": "1"}\n')
    assert json.loads(r.text)["result"] == 1
    assert first({"code": "2"})["output"] == "2\n"
    assert first.close() == 0
    s = cb.session(*one)
    r = cb.run(*one, "--eval", stdin=json.dumps(START) + "\n")
    assert r.code == 75, r


@pytest.mark.sampled
def test_figures_of_a_cell_become_pictures_once(ev, cb):
    _, a, b, c, d = ev(
        {"session": True},
        {"code": pyplot(cb) + "f = plt.figure(); g = plt.figure()"},
        {"code": "plt.get_fignums()"},
        {"code": "plt.plot([1])\n1/0"},
        {"code": "import os; r = os.fork()\nif r: os.wait()\n"
                 "_ = plt.plot([2])"}, args=("-t", "60s"))
    assert [len(r["images"]) for r in (a, b, c, d)] == [2, 0, 1, 1]
    for image in a["images"]:
        assert base64.b64decode(image).startswith(b"\x89PNG\r\n")
    assert (b["output"], c["how"]) == ("[]\n", "raised")


def test_the_report_of_a_cell_is_only_a_claim(ev):
    "whatever a cell does to the pipe harms the pictures of this cell alone"
    find = ("import os, stat\npipes = []\nfor n in range(3, 1024):\n"
            "    try:\n        if stat.S_ISFIFO(os.fstat(n).st_mode):\n"
            "            pipes.append(n)\n    except OSError: pass\n")
    _, *r = ev({"session": True},
               {"code": find + "len(pipes)"},
               {"code": find + "for n in pipes: _ = os.write(n, b'png 3\\nabc'"
                               " + b'png 999999999999\\nx')"},
               {"code": find + "for n in pipes: os.close(n)"},
               {"code": find + "for n in pipes: os.dup2(0, n)\nlen(pipes)"},
               {"code": find + "len(pipes)"},
               {"code": find + "import threading, time\n"
                "def flood():\n    while True:\n        try:\n"
                "            for n in pipes: os.write(n, b'x' * 60000)\n"
                "        except OSError: time.sleep(0.01)\n"
                "threading.Thread(target=flood, daemon=True).start()"},
               {"code": "6 * 7"})
    assert [a["how"] for a in r] == ["ok"] * 7, r
    assert [a["images"] for a in r] == [[], ["YWJj"], [], [], [], [], []]
    assert [r[i]["output"] for i in (0, 3, 4, 6)] == [
        "1\n", "1\n", "1\n", "42\n"]


PYPLOT = ("import os, sys, types\nm = types.ModuleType('matplotlib.pyplot')\n"
          "class F:\n    def savefig(self, to, format): %s\n"
          "m.figure = lambda n: F()\nm.close = lambda n: None\n"
          "m.get_fignums = lambda: [1]\n"
          "sys.modules['matplotlib.pyplot'] = m\n")


@pytest.mark.parametrize("savefig, how, images", [
    ("to.write(b'abc')", "ok", 1), ("to.write(5)", "ok", 0),
    ("time.sleep(60)", "interrupted", 0), ("sys.exit(3)", "interrupted", 0),
    ("os.abort()", "crashed", 0), ("os._exit(3)", "exited", 0),
    ("to.write(bytes(17 << 20))", "ok", 0)])
def test_a_figure_is_drawn_within_its_cell(ev, savefig, how, images):
    """A cell's own stand-in for matplotlib runs on the clock of that cell."""
    _, a, b, c = ev({"session": True}, {"code": "import time; x = 1"},
                    {"code": PYPLOT % savefig,
                     "timeout_ms": 1000 if how == "interrupted" else 60000},
                    {"code": "sys.modules = None\nx" if how == "ok" else "x"},
                    args=() if how == "interrupted" else ("-t", "60s"))
    assert (b["how"], len(b["images"])) == (how, images), b
    assert ("17 << 20" in savefig) == any("left out" in n for n in b["notices"])
    if how == "ok":
        assert c["how"] == "ok" and c["output"] == (
            "1\ncellblock: put back what this cell broke: sys.modules\n"), c


@pytest.mark.sampled
@pytest.mark.parametrize("what", ["os.isatty(n)",
                                  "stat.S_ISFIFO(os.fstat(n).st_mode)"])
def test_no_cell_keeps_the_reader_busy(cb, what):
    s = Stream(cb, "-t", "5m", begin={"session": True})
    busy = 1 if WHOLE else 0.5
    find = ("import os, stat, time\nfor n in range(1, 1024):\n    try:\n"
            "        if %s: fd = n; break\n    except OSError: pass\n" % what)
    before = s.cpu()
    r = s({"code": find + f"end = time.process_time() + {busy}\n"
                          "while time.process_time() < end:\n"
                          "    for _ in range(999): _ = os.write(fd, b'x')\n"
                          "6 * 7"})
    assert r["how"] == "ok" and r["output"].endswith("42\n"), r["how"]
    assert s.cpu() - before < 0.25 * busy
    assert s.close() == 0


def test_a_session_has_one_pipe_however_many_cells_keep_it(ev, cb):
    keep = ("import os, stat\nfor n in range(3, 1024):\n    try:\n"
            "        if stat.S_ISFIFO(os.fstat(n).st_mode):\n"
            "            os.dup(n); os.write(n, b'png 999\\n'); break\n"
            "    except OSError: pass\n")
    _, *r = ev({"session": True}, *[{"code": keep}] * 20,
               {"code": "len({os.fstat(n).st_ino for n in range(3, 1024) if "
                        "os.path.exists('/proc/self/fd/%d' % n) and "
                        "stat.S_ISFIFO(os.fstat(n).st_mode)})"})
    assert r[-1]["output"] == "1\n" and r[-1]["images"] == [], r[-1]


def test_files_go_into_a_session(ev):
    r = ev(START, {"code": "open('d/a').read()", "files": [
        {"path": "d/a", "content": packed("A")}]},
        {"code": "1", "files": [{"path": "d"}]}, {"read": "d/*"})
    assert r[1]["output"] == "'A'\n"
    assert r[2]["title"] == "Request file is invalid"
    assert unpacked(r[3]) == {"d/a": b"A"}


def test_files_of_a_session_for_which_there_is_no_memory(cb, ev):
    cb.env.update(hindered.without_memory_for_files(cb, 2))
    files = [{"path": n, "content": packed(n)} for n in "ab"]
    _, r, listed = ev(START, {"code": "1", "files": files},
                      {"code": "import os; os.listdir()"})
    assert r["title"] == "The jail failed", r
    assert r["description"].endswith("Cannot allocate memory"), r
    assert listed["output"] == "[]\n"


def test_only_the_first_line_begins_a_session(ev):
    r = ev({"code": "1"}, START)
    assert "first line" in r[1]["description"] and ev.code == 2
    r = ev(START, START, {"input": "1"}, "nope", {"code": "1"})
    assert [a.get("title") for a in r[1:]] == [
        "Request data failed validation", "Request data failed validation",
        "Invalid JSON", None]


@pytest.mark.sampled
@pytest.mark.limit(120)
def test_no_output_is_lost_between_cells(ev):
    n = 200 if WHOLE else 50
    r = ev(START, *({"code": str(i)} for i in range(n)))
    assert [a["output"] for a in r[1:]] == [f"{i}\n" for i in range(n)]
