# SPDX-License-Identifier: MIT
"""The limits of a cell and of a session: when they strike, what the session
says, and what it keeps."""
import os
import re

import pytest

import hosttree
from world import PATIENCE

# The enforcement of a limit depends on the user: root's sessions have a cgroup.
pytestmark = pytest.mark.both

# For cells that take long on a slow machine.
UNHURRIED = ("--set", f"cell.timeout={30 * PATIENCE:.0f}s",
             "--set", f"cell.cpu={30 * PATIENCE:.0f}s")
# A limit that strikes, and leaves time enough for the cells before it.
SECONDS = int(max(1, PATIENCE))
SWALLOW = ("import time\nwhile True:\n    try: time.sleep(99)\n"
           "    except BaseException: pass")


def test_ctrl_c_interrupts_and_variables_stay(session):
    session.run("kept = 'yes'")
    row = session.enter("import time; print('on'); "
                        "[time.sleep(.1) for _ in range(300)]")
    session.expect_since(row, "^on")
    session.type("\x03")
    session.expect_since(row, "KeyboardInterrupt")
    session.wait_prompt()
    assert session.run("kept") == "'yes'"


def test_ctrl_c_interrupts_a_busy_loop(session):
    row = session.enter("print('on')\nwhile True: pass")
    session.expect_since(row, "^on")
    session.type("\x03")
    session.expect_since(row, "KeyboardInterrupt")
    session.wait_prompt()


def test_ctrl_c_does_not_reach_the_next_cell(session):
    row = session.enter("import time; print('on'); "
                        "[time.sleep(.1) for _ in range(300)]")
    session.expect_since(row, "^on")
    session.type("\x03")
    session.wait_prompt()
    assert session.run("sum(range(200000))") == "19999900000"
    assert "KeyboardInterrupt" not in session.run("1 + 1")


def test_ctrl_c_reaches_a_child(session):
    row = session.enter("import subprocess; print('on', flush=True);"
                        " subprocess.run(['sleep', '30'])")
    session.expect_since(row, "^on")
    session.type("\x03")
    session.expect_since(row, "KeyboardInterrupt")
    session.wait_prompt()


def test_ctrl_c_three_times_ends_a_cell_that_swallows_it(cb):
    s = cb.session("--set", "cell.timeout=50s", "--set", "cell.cpu=50s")
    s.run("kept = 'yes'")
    # An exception may come between two rounds of a loop, where nothing catches it.
    row = s.enter("import signal, time\nsignal.signal(2, lambda *_: None)\n"
                  "print('on')\nwhile True: time.sleep(99)")
    s.expect_since(row, "^on")
    for _ in range(3):
        s.type("\x03")
    s.wait_prompt()
    assert "Ctrl-C three times · killed" in "\n".join(s.screen.rows(row))
    assert s.run("kept") == "'yes'"


def test_time_limit_interrupts_a_busy_cell(cb):
    s = cb.session("-t", f"{SECONDS}s", "--set", "cell.grace=20s")
    s.run("kept = 'yes'")
    out = s.run("while True: pass")
    assert f"[time limit: {SECONDS} s · interrupted · variables kept]" in out
    assert s.run("kept") == "'yes'"


def test_time_limit_interrupts_a_sleep(cb):
    s = cb.session("-t", f"{SECONDS}s", "--set", "cell.grace=20s")
    out = s.run("import time; time.sleep(30)")
    assert f"time limit: {SECONDS} s · interrupted" in out


def test_time_limit_kills_a_cell_that_swallows_the_interrupt(cb):
    s = cb.session("-t", f"{SECONDS}s", "--set", "cell.grace=300ms",
                   size=(24, 160))
    s.run("kept = 'yes'")
    out = s.run(SWALLOW)
    assert f"[time limit: {SECONDS} s · killed · back to the state " \
        "before cell 2 (1 name) · home kept" in out, out
    assert s.run("kept") == "'yes'"


def test_a_killed_cell_shows_where_it_was(cb):
    s = cb.session("--set", f"cell.timeout={2 * SECONDS}s", "--set",
                   "cell.grace=2s", size=(90, 100))
    s.run("import threading, time\ne = threading.Event()\n"
          "for i in range(9): threading.Thread(target=e.wait).start()")
    out = s.run("def deep(n):\n    if n: deep(n - 1)\n    while True:\n"
                "        try: time.sleep(99)\n"
                "        except BaseException: pass\ndeep(50)", 25)
    rows = out.split("\n")
    verdict = max(i for i, r in enumerate(rows) if r.startswith("¦"))
    assert rows[verdict + 1:] == [
        "  it was in <cell 2>, line 4, in deep",
        "    try: time.sleep(99)",
        "  called from <cell 2>, line 2, in deep (50 times)",
        "    if n: deep(n - 1)",
        "  called from <cell 2>, line 6, in <module>",
        "    deep(50)"], out


def test_where_a_killed_cell_was_names_the_cells_before_it(cb):
    s = cb.session("--set", f"cell.timeout={2 * SECONDS}s", "--set",
                   "cell.grace=2s", size=(40, 100))
    s.run("import time\ndef stuck(f):\n    while True:\n"
          "        try: f(9)\n        except BaseException: pass")
    for i in range(8):
        s.run(f"f{i} = lambda x, g={'f%d' % (i - 1) if i else 'time.sleep'}: "
              f"stuck(g){' ' * i}")
    out = s.run("f7(1)", 25)
    places = re.findall(r"(it was in|called from) (.*)", out)
    assert places[0] == ("it was in", "<cell 1>, line 4, in stuck"), out
    assert places[1] == ("called from", "<cell 2>, line 1, in <lambda>"), out
    assert places[-1] == ("called from", "11 more"), out
    assert len(places) == 7 and "        try: f(9)" not in out, out
    assert "    try: f(9)" in out and "    f0 = lambda x, g=time.sleep" in out


def test_cpu_limit_strikes_before_the_wall_clock(cb):
    s = cb.session("--set", "cell.timeout=40s", "--set", "cell.cpu=500ms")
    s.run("kept = 'yes'")
    out = s.run("while True: pass", 35)
    assert "CPU limit: 500 ms" in out, out
    assert s.run("kept") == "'yes'"


def test_time_spent_waiting_for_the_person_does_not_count(cb):
    limit = 2 * SECONDS
    s = cb.session("-t", f"{limit}s", "-s",
                   f"session.lifetime={60 + 3 * limit}s")
    row = s.enter("x = input('? ')")
    s.expect_since(row, r"^\?")
    s.wait_notice("lifetime")
    s.type("late\r")
    s.wait_prompt()
    assert s.run("x") == "'late'"


def test_each_cell_has_its_own_clock(cb):
    s = cb.session("-t", f"{3 * SECONDS}s")
    for _ in range(3):
        assert "limit" not in s.run(
            f"import time; time.sleep({1.2 * SECONDS})")


def test_output_limit_shows_head_and_tail(cb):
    s = cb.session("--set", "cell.output=4K", "--set", "cell.tail=200",
                   *UNHURRIED)
    out = s.run("for i in range(100000): print(i)", 40)
    lines = out.splitlines()
    assert lines[0] == "0" and lines[1] == "1"
    said = [x for x in lines if "output limit" in x]
    assert len(said) == 1, out
    assert "4 KiB shown" in said[0] and "last lines follow" in said[0]
    assert lines[-1] == "99999" and lines[-2] == "99998"
    assert "50000" not in lines


def test_the_traceback_after_a_flood_is_shown(cb):
    s = cb.session("--set", "cell.output=4K", "--set", "cell.tail=1K",
                   *UNHURRIED)
    out = s.run("for i in range(100000): print(i)\n1/0", 40)
    assert "ZeroDivisionError: division by zero" in out


def test_out_pages_the_output_of_a_truncated_cell(cb):
    s = cb.session("--set", "cell.output=1K", "--set", "cell.tail=100",
                   size=(24, 80))
    s.run("for i in range(2000): print(i)")
    assert "output limit" in s.all_text()
    s.type(":out 1")
    s.expect(">>> :out 1")
    s.type("\r")
    s.expect("^22$")
    s.expect("^-- 0% .* --$")
    s.type("q")
    s.wait_prompt()


def test_memory_limit_is_reported(cb):
    s = cb.session("-M", "128M")
    s.run("kept = 'yes'")
    out = s.run("x = bytearray(4 << 30)", 40)
    assert "MemoryError" in out or "memory limit: 128 MiB" in out, out
    assert s.run("kept") == "'yes'"


def test_a_fork_bomb_is_stopped_and_the_session_goes_on(cb):
    s = cb.session("--set", "session.processes=20", *UNHURRIED)
    out = s.run("import os\nwhile True: os.fork()", 40)
    assert "Resource temporarily unavailable" in out, out
    # Children that were stopped before they could exit do so in the next cell.
    assert "42" in s.run("40 + 2").split("\n")
    # On a busy host one cell may be too short for that.
    hosttree.until(lambda: s.run("40 + 2") == "42", "the end of the children")


def test_process_limit_is_reported_and_leftover_processes_are_ended(cb):
    s = cb.session("--set", "session.processes=20", size=(24, 160))
    out = s.run("import os, time\nfor _ in range(99):\n"
                "    if not os.fork(): time.sleep(99); os._exit(0)", 40)
    assert "Resource temporarily unavailable" in out, out
    assert re.search(r"\[process limit: 20 · the cell's \d+ leftover "
                     r"processes were ended\]", out), out
    # Their parent has not waited for them, so they still count. The notice
    # about the checkpoint that could not be taken appears above the answer.
    assert s.run("40 + 2").endswith("42")
    tree = cb.tree(s)

    def left():
        return [p for p in tree.guests()
                if (hosttree.stat_of(p) or [b"X"])[0] not in (b"Z", b"X")]

    hosttree.until(lambda: len(left()) <= 3,
                   lambda: f"the end of {hosttree.describe(left())}")


def test_endless_recursion_raises_recursionerror(session):
    session.run("def f(): return f()")
    assert "RecursionError" in session.run("f()")
    assert session.run("1 + 1") == "2"


def test_a_full_home_raises_oserror_and_the_session_goes_on(cb):
    s = cb.session("--set", "home.size=1M")
    out = s.run("open('big', 'wb').write(b'x' * (8 << 20))")
    assert "OSError" in out and "No space left" in out, out
    assert "the home is full: of 1 MiB (home.size) 0 B are free" in out, out
    assert "full" not in s.run("1/0")
    assert s.run("1 + 1") == "2"
    assert s.run("import os; os.remove('big'); open('s', 'w').write('ok')") \
        == "2"


def test_a_full_home_leaves_python_room_to_start(cb):
    """The home outlives Python, so it must not use up all memory."""
    fill = ("import os; fd = os.open('big', os.O_CREAT | os.O_WRONLY | "
            "os.O_APPEND)\nwhile True: os.write(fd, bytes(65536))")
    s = cb.session("-M", "64M", "--set", "cell.checkpoint=never")
    s.run("n = open('kept', 'w').write('yes')")
    out = s.run(fill, 40)
    assert "No space left" in out, out
    for _ in range(3):
        s.run("import os; os._exit(1)", 40)
        assert s.run("open('kept').read()") == "'yes'"
    s.run(":reset", 40)
    assert s.run("__import__('os').path.getsize('big') > 31 << 20") == "True"


def test_a_home_too_large_for_the_memory_is_refused(cb):
    r = cb.run("-M", "64M", "--set", "home.size=60M", "-c", "1")
    assert r.code == 2 and "expected at most 44M" in r.said, r
    assert cb.run("-M", "64M", "--set", "home.size=44M", "-c", "1").code == 0


def test_a_home_full_of_names_raises_oserror_and_the_session_goes_on(cb):
    s = cb.session("--set", "home.files=100")
    out = s.run("for i in range(300): open(f'f{i}', 'w').close()")
    assert "OSError" in out and "No space left" in out, out
    assert "the home is full: it has 100 files (home.files)" in out, out
    assert s.run("1 + 1") == "2"


def test_escape_sequences_are_dropped_and_counted(session):
    out = session.run(r"print('\x1b]52;c;cm0gLXJm\x07hello')")
    assert out.splitlines()[0] == "hello"
    assert "[1 terminal sequence dropped: clipboard]" in out
    assert b"\x1b]52" not in session.raw


def test_titles_and_queries_never_reach_the_terminal(session):
    session.run(r"print('\x1b]0;owned\x07\x1b[c\x1b[6n\x1bP$qm\x1b\\x')")
    session.wait_prompt()
    assert session.screen.titles == []
    assert session.run("1 + 1") == "2"


def test_background_process_uses_no_cpu_at_the_prompt(cb):
    s = cb.session()
    s.run("import subprocess; p = subprocess.Popen("
          "['sh', '-c', 'while :; do :; done'])")
    t = cb.tree(s)
    assert_no_cpu_at_the_prompt(s, t)


def test_background_thread_uses_no_cpu_at_the_prompt(cb):
    s = cb.session()
    s.run("n = 0\ndef spin():\n    global n\n    while True: n += 1")
    s.run("import threading; threading.Thread(target=spin, daemon=True)"
          ".start()")
    t = cb.tree(s)
    assert_no_cpu_at_the_prompt(s, t)
    first = int(s.run("n"))
    assert int(s.run("import time; time.sleep(0.3); n")) > first


def assert_no_cpu_at_the_prompt(s, t):
    """Assert that the jail uses no CPU while the person slowly types a
    line."""
    before = [None]

    def settled():
        """Whether the checkpoint is taken and the jail is stopped: no
        guest runs, or waits for a processor, during some typing. A jail that
        runs on never gets there."""
        before[0] = t.guests_ran()
        type_slowly(s, "and then ")
        return t.nothing_runs() and t.guests_ran() == before[0]

    hosttree.until(settled, "the jail to be stopped")
    # No call: its parameters would be asked for.
    type_slowly(s, "for n in numbers:")
    assert t.guests_ran() == before[0]
    s.type("\x03")
    s.wait_prompt()


def type_slowly(s, word):
    """Type a word key by key, as people do. It takes some tenths of a
    second."""
    for letter in word:
        at = (s.screen.here(), s.screen.cursor.x)
        s.type(letter)
        s.wait(lambda: (s.screen.here(), s.screen.cursor.x) > at,
               f"the echo of {letter!r}")
        s.wait(lambda: not s._pump(0.02), "the terminal to be quiet")


def test_an_idle_session_is_ended_and_the_limit_is_named(cb):
    # (It may end before anybody has seen its prompt.)
    s = cb.session("--set", "session.idle=1s", start=False)
    s.wait_exit(15)
    assert "idle limit: 1 s" in s.all_text()


def test_the_lifetime_limit_ends_a_session_and_is_named(cb):
    s = cb.session("--set", "session.lifetime=2s", start=False)
    s.wait_exit(15)
    assert "lifetime limit: 2 s" in s.all_text()


def transcript(cb, *limits, wrapper=()):
    (cb.base / "log").mkdir()
    s = cb.session("-s", f"log.transcript={cb.base / 'log'}", *limits,
                   wrapper=wrapper)
    path, = (cb.base / "log").iterdir()
    return s, path


def test_the_transcript_holds_as_much_of_a_cell_as_the_screen(cb):
    s, path = transcript(cb, "-s", "cell.output=4K", "-s", "cell.tail=1K")
    s.run("print('few')")
    s.run("print('y' * 50_000)")
    assert s.leave() == 0
    text = path.read_text()
    assert "few\n" in text and "print('y' * 50_000)" in text
    assert text.count("y") < 5200
    written = 50_002 - 4096 - 1024          # the tty makes \r\n of \n
    assert re.search(f"\n# \\w+ {written} more bytes are not written down\n", text)


def test_a_cell_cannot_forge_a_line_of_the_transcript(cb):
    s, path = transcript(cb)
    s.run("print('\\n# cell 7, 1\\n# 0123456789abcdef cell 8, 1')")
    s.run("6 * 7")
    assert s.leave() == 0
    text = path.read_text()
    mark = text.split()[1]
    assert len(mark) == 16 and "cell 8, 1" in text
    assert re.findall(f"(?m)^# {mark} (cell \\d+|output)", text) == [
        "cell 1", "output", "cell 2", "output"]


def test_a_transcript_that_cannot_be_written_is_reported_once(cb):
    s, path = transcript(cb, wrapper=(
        "sh", "-c", 'ulimit -f 1024; exec "$@"', "sh"))
    assert "has a gap: File too large" in s.run("print('y' * 620_000)")
    assert "gap" not in s.run("print('more')")
    assert s.run("1 + 1") == "2"
    assert path.stat().st_size == 1024 * 512


def test_background_output_beyond_the_limit_is_counted(cb):
    s = cb.session("-s", "cell.background=run", "-s", "cell.output=4K")
    s.run(r"""import threading, time, os
def later():
    while not os.path.exists('go'): time.sleep(.01)
    print('begun\x1b]52;c;Zm9v\x07', flush=True)
    print('z' * 20_000, flush=True)
threading.Thread(target=later).start()""")
    row = s.enter("open('go', 'w').close()")
    s.expect_since(row, "zzz")
    s.wait_prompt()

    def told(pattern):
        s.run(":files")             # each line also shows earlier notices
        return re.search(pattern, "\n".join(s.screen.rows(row)))

    hosttree.until(lambda: told("1 terminal sequence dropped: clipboard"),
                   "the sequence", 30)
    # A cell that takes long to end has some of it for its own.
    hosttree.until(lambda: told(r"output limit: \d.* shown, \d.* not"),
                   "the count", 30)


def test_a_stack_of_driver_frames_only_is_not_shown(cb):
    s = cb.session("-t", "2s", "-s", "cell.grace=100ms")
    s.run("import functools, signal, sys, time")
    # Killed while the driver flushes: every frame is the driver's.
    out = s.run("class Slow:\n    write = len\n"
                "    flush = functools.partial(time.sleep, 50)\n\n"
                "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
                "sys.stdout = Slow()")
    assert "time limit: 2 s · killed" in out and "File" not in out, out


def test_time_tells_the_peak_of_the_cell(cb):
    """Where no cgroup has the peak, memory is looked at only now and then."""
    s = cb.session("-t", "60s", "-s", "cell.undo=0")
    peak = r"· CPU \S+ \S+ · memory peak (at most )?([\d.]+) MiB\]"
    held = 3 * PATIENCE
    first = re.search(peak, s.run(
        ":time import time; time.sleep(1); x = bytearray(80 << 20); "
        f"time.sleep({held}); del x", 40))
    assert not first[1] and 80 <= float(first[2]) < 120, first[0]
    small = re.search(peak, s.run(":time y = 5"))
    assert small[1] == "at most ", small[0]
    more = re.search(peak, s.run(
        ":time time.sleep(1); z = bytearray(130 << 20); "
        f"time.sleep({held})", 40))
    assert not more[1] and 130 <= float(more[2]) < 180, more[0]


# ---- a line at a wall of the jail ----

def hint(out):
    "what our lines say below an error"
    rows = out.split("\n")
    assert any("Error" in r for r in rows), out
    return " ".join(r.strip("\N{BROKEN BAR} []") for r in rows
                    if r.startswith("\N{BROKEN BAR}"))


NO_NETWORK = "there is no network in the jail"
NO_FILES = "the jail has no host files · :upload "


@pytest.mark.parametrize("cell, said", [
    ("bytearray(1 << 50)", "memory limit: 512 MiB · variables kept"),
    ("import urllib.request as u; u.urlopen('http://example.org')",
     NO_NETWORK),
    ("import socket; socket.create_connection(('192.0.2.1', 80))",
     NO_NETWORK),
    ("raise ValueError from __import__('socket').gaierror(-3)", NO_NETWORK),
    ("open('~/grades.csv')", NO_FILES + "~/grades.csv"),
    ("__import__('pathlib').Path('~/a').expanduser().open()",
     NO_FILES + "~/a"),
    ("open('/srv/my data/x')", NO_FILES + "'/srv/my data/x'"),
    ("raise FileNotFoundError('~/a.csv not found.')", NO_FILES + "~/a.csv"),
    ("open('/home/none')", ""), ("open('/tmp/none')", ""),
    ("open('none')", ""), ("open('../none')", ""), ("open('')", ""),
    ("open('/srv/' + 'a' * 300)", ""), ("open('/srv/a\\x1b[2Jb')", ""),
    ("open('/srv/a\\0b')", ""), ("1/0", ""), ("raise OSError(2)", "")])
def test_a_wall_of_the_jail_is_named_below_the_error(cb, cell, said):
    s = cb.session(*UNHURRIED)      # some import much
    assert hint(s.run(cell)) == said
    assert hint(s.run("1/0")) == ""


def test_a_file_of_the_working_directory_is_one_command_away(cb):
    for name in "data.csv", "prog.py":
        with open(os.path.join(cb.work, name), "w") as f:
            f.write("a = 5\n")
    s = cb.session()
    assert hint(s.run("open('data.csv')")) == NO_FILES + "data.csv"
    assert hint(s.run("%run prog.py 1")) == NO_FILES + "prog.py"
    assert hint(s.run("%run none.py 1")) == ""
    s.run(":upload prog.py")
    s.run("%run prog.py")
    assert s.run("a") == "5"


def test_a_path_of_the_persons_own_directory_is_the_hosts(cb):
    s = cb.session(env={"HOME": "/home/ann", "XDG_CONFIG_HOME": cb.work,
                        "XDG_STATE_HOME": cb.work})
    assert hint(s.run("open('/home/ann/x.csv')")) == \
        NO_FILES + "/home/ann/x.csv"
    assert hint(s.run("open('/home/bob/x.csv')")) == ""


def test_a_guest_cannot_say_what_it_likes_below_an_error(session):
    """The pipe takes known words, and a path that is shown as text."""
    session.run('''if 1:
    import os, sys
    def say(word, path=b""):
        fd = next(f for f in range(512, 700) if is_pipe(f))
        os.write(fd, (b"hint " + word).ljust(63) + b"\\n" +
                 path.ljust(256, b"\\0"))
    def is_pipe(fd):
        try: return os.readlink(f"/proc/self/fd/{fd}")[:4] == "pipe"
        except OSError: return False
''')
    assert hint(session.run("say(b'memory'); 1/0")) == \
        "memory limit: 512 MiB · variables kept"
    assert hint(session.run("say(b'anything'); 1/0")) == ""
    assert session.run("say(b'memory')") == ""
    assert hint(session.run("say(b'file', b'~/\\x1b[2Ja'); 1/0")) == ""
    out = session.run("say(b'file', b'~/a] \\xc2\\xa6 [no\\xff'); 1/0")
    assert hint(out).startswith(NO_FILES + "'~/a] ")
    assert out.count("\N{BROKEN BAR}") == 1
