# SPDX-License-Identifier: MIT
"""A session outlives its terminal, and terminals come and go."""
import os
import pathlib
import re
import signal
import termios
import time

import pytest

import hosttree
import term
from lingering import COUNT, drop
from world import CELLBLOCK, PATIENCE

# Root's sessions and a person's have their sockets in different places.
pytestmark = pytest.mark.both


def test_a_cell_goes_on_without_a_terminal(many):
    s = many.start("-t", "60s")
    s.type("x = 41\r")
    s.wait_prompt()
    row = s.enter(COUNT)
    s.expect_since(row, "^n 1$")
    many.lose(s, until_end=True)
    t = many.start("--attach")
    t.expect(r"\[missed while away: \d+ lines, the last 20 follow · :out 2 for"
             r"\s(¦\s+)?cell 2\]$")
    t.expect("^n 39$")
    assert t.run("x + 1, d") == "(42, 39)"
    assert t.leave() == 0


def test_out_is_not_said_to_have_what_the_background_wrote(many):
    s = many.start("-s", "cell.background=run", "-t", "60s")
    s.run("import os, threading, time")
    s.run("def late():\n    while not os.path.exists('go'): time.sleep(0.01)\n"
          f"    time.sleep({2 * PATIENCE})  # by then the cell has ended\n"
          "    os.write(1, b'late\\n' * 99); open('went', 'w').close()\n")
    s.run("threading.Thread(target=late).start()")
    row = s.enter("time.sleep(1); open('go', 'w').close()")
    s.wait(lambda: s.screen.here() >= row, "the cell to run")
    many.lose(s, until_end=True)
    t = many.start("--attach")
    t.run("while not os.path.exists('went'): time.sleep(0.01)\n")
    assert "late" in t.all_text() and ":out" not in t.all_text()


@pytest.mark.parametrize("was_seen", [False, True])
def test_what_a_dead_line_may_have_swallowed_is_shown_again(many, was_seen):
    """A line is dead long before anybody notices, and a cell writes into it."""
    s = many.start()
    s.run("for i in range(30): print('n', i, '\\n\\xa6 [not ours]' * (i == 28))\n")
    if was_seen:
        s.run("")
    many.lose(s)
    t = many.start("--attach")
    t.expect("session 1 again")
    text = t.all_text()
    assert ("cell 1 wrote last may not have come · :out 1" in text) != was_seen
    assert ("n 29\n" in text) != was_seen and "n 9\n" not in text
    assert ("[not ours]" in text) != was_seen and "¦ [not ours]" not in text


def test_a_home_may_last_a_year(many):
    """With its session, where the administrator wants that."""
    year = [f"-ssession.{key}=8760h" for key in ("lifetime", "idle", "linger")]
    s = many.start(*year)
    s.run("open('notes', 'w').write('kept')")
    s.type(":detach\r")
    assert s.wait_exit() == 0 and "goes on for 8760 h" in s.all_text()
    t = many.start("--attach")
    assert t.run("open('notes').read()") == "'kept'"
    r = many.cb.run("-s", "session.linger=8761h", "-c", "1")
    assert r.code == 2 and "expected 0 to 8760h" in r.said, r


def test_detach_leaves_the_session_and_says_how_to_come_back(many):
    s = many.start()
    before = s.before
    s.run("x = 41")
    s.type(":detach\r")
    assert s.wait_exit() == 0
    assert re.search(
        r"session \d+ goes on for 10 min · come back with: "
        r"cellblock --attach \d+\]", s.all_text())
    assert termios.tcgetattr(s.slave) == before
    t = many.start("--attach", str(many.detached()["id"]))
    assert t.run("x + 1") == "42"
    assert t.leave() == 0
    many.none()


def test_the_way_back_is_not_wrapped(many):
    s = many.start()
    s.run("x = 41")
    s.resize(24, 60)
    s.type(":detach\r")
    assert s.wait_exit() == 0
    assert re.search(r"^ cellblock --attach \d+\]$", s.all_text(), re.M)


@pytest.mark.parametrize("how", ["kill", "hangup"])
def test_a_client_that_dies_costs_nothing(many, how):
    s = many.start()
    s.run("x = 41")
    row = s.enter(COUNT)
    s.expect_since(row, "^n 1$")
    if how == "kill":
        s.process.kill()
    else:
        s.process.send_signal(signal.SIGHUP)
    s.process.wait(timeout=term.DEADLINE)
    many.detached()
    t = many.start("--attach")
    assert t.run("x + 1") == "42"


@pytest.mark.parametrize("cell", ["import time; time.sleep(60)",
                                  "input('? ')"])
def test_a_client_that_is_killed_leaves_no_modes(many, cell):
    s = term.Session(["sh", "-c", '"$0"; echo "=$?"; sleep 99', CELLBLOCK],
                     env=many.cb.env, cwd=many.cb.work)
    many.cb.open.append(s)
    s.start()
    s.enter(cell)
    s.wait(lambda: not s.at_prompt(), "the cell")
    client = int(pathlib.Path(f"/proc/{s.process.pid}/task/{s.process.pid}"
                              "/children").read_text().split()[0])
    os.kill(client, signal.SIGKILL)
    s.expect("=137$")
    s.wait(lambda: s.terminal_modes() == s.before, "the terminal as it was")


def test_a_session_is_offered_in_one_line(many):
    s = many.start()
    s.run("x = 41")
    many.lose(s)
    for key, code in (("\x03", 0), ("\x04", 0)):
        t = many.start(start=False)
        t.expect(r"n for a new one\]")
        t.type(key)
        assert t.wait_exit() == code
    t = many.start(start=False)
    t.expect(r"your session from \S+ is still here: cell 1 ended")
    t.type("n")
    t.start()
    assert "NameError" in t.run("x")
    assert t.leave() == 0
    t = many.start(start=False)
    t.expect(r"n for a new one\]")
    t.type("\r")
    assert t.run("x + 1") == "42"


def test_a_signal_at_the_offer_leaves_the_terminal_as_it_was(many):
    s = many.start()
    s.run("x = 1")
    many.lose(s)
    t = many.start(start=False)
    t.expect(r"n for a new one\]")
    assert termios.tcgetattr(t.slave) != t.before
    t.process.terminate()
    assert t.process.wait(term.DEADLINE) == -signal.SIGTERM
    assert termios.tcgetattr(t.slave) == t.before
    assert many.only()["detached"]


def test_keys_that_were_typed_before_the_offer_answer_nothing(many):
    s = many.start()
    s.run("x = 41")
    many.lose(s)
    go = many.cb.work / "go"
    t = term.Session(
        ["sh", "-c", 'while [ ! -e go ]; do sleep .05; done; exec "$0"',
         CELLBLOCK], env=many.cb.env, cwd=many.cb.work)
    many.cb.open.append(t)
    t.type("x = 1\r")
    t.expect("^x = 1$")     # the terminal has it
    go.write_text("")
    t.expect(r"\[what you typed already goes to a new session")
    t.expect("^>>> x = 1$")
    t.wait_prompt()
    assert t.run("x") == "1"
    assert t.leave() == 0
    t = many.start("--attach")
    assert t.run("x + 1") == "42"


def test_what_a_cell_uses_is_seen_while_it_runs(many):
    s = many.start("-t", "60s", "-s", "cell.cpu=60s")
    s.enter("b = bytearray(b'x') * (60 << 20)\nwhile True: pass\n")
    first = many.until(lambda e: e["answers"] and e["running"] and
                       e["memory_bytes"] > 60 << 20, "the memory to be seen")
    many.until(lambda e: e["answers"] and e["running"] and
               e["cpu_ms"] > first["cpu_ms"], "the CPU time to grow")
    s.type("\x03")
    s.wait_prompt()
    assert s.run("len(b) >> 20") == "60"


def ms_since(begun):
    """The most that a session can be idle whose last key came at `begun`; the
    list may take long to ask it, and the warden counts whole milliseconds."""
    return (time.monotonic() - begun) * 1000 + 1


def test_idle_is_since_any_key_or_the_end_of_a_cell(many):
    s = many.start()
    s.run("x = 41")
    time.sleep(2)
    many.until(lambda e: e["answers"] and e["idle_ms"] > 2000,
               "some time to pass")
    begun = time.monotonic()
    s.type("6")
    s.expect("^>>> 6")
    assert many.only()["idle_ms"] <= ms_since(begun)
    s.type(" * 7\r")
    s.wait_prompt()
    row = s.enter("print('on'); input()")
    s.expect_since(row, "^on")
    time.sleep(2)
    # Each question draws the line anew: somebody reads that.
    s.wait(lambda: many.only()["idle_ms"] > 2000, "some time to pass")
    begun = time.monotonic()
    s.type("y")
    many.until(lambda e: e["answers"] and e["idle_ms"] <= ms_since(begun),
               "the key to be seen")
    s.type("\r")
    s.wait_prompt()
    begun = time.monotonic()
    s.enter("import time; time.sleep(6)")
    time.sleep(5)
    ended = many.until(lambda e: e["answers"] and not e["running"],
                       "the end of the cell")
    assert ended["idle_ms"] < ms_since(begun) - 5000


def test_new_and_commands_do_not_ask(many):
    s = many.start()
    s.run("x = 1")
    many.lose(s)
    t = many.start("--new")
    assert t.run("1 + 1") == "2"
    assert t.leave() == 0
    assert many.cb.run("-e", "1 + 1").text == "2\n"


def test_several_sessions_are_asked_for_by_number(many):
    for value in (1, 2):
        s = many.start("--new")
        s.run(f"x = {value}")
        drop(s)
        hosttree.until(lambda n=value: sum(
            e["detached"] for e in many.registry()) == n, "the session to stay")
    r = many.cb.run("--attach", "9")
    assert r.code == 1 and "there is no session 9" in r.said
    t = many.start(start=False)
    t.expect("its number and Enter")
    t.type("2\r")
    assert t.run("x") == "2"
    t.leave()


def detach(many, *cells):
    """A session that ran these cells, and goes on alone."""
    s = many.start("--new")
    for cell in cells:
        s.run(cell)
    s.type(":detach\r")
    assert s.wait_exit() == 0


def test_at_the_limit_a_session_can_be_ended_for_a_new_one(many):
    limit = ["-s", "session.per_user=2"]
    for value in (1, 2):
        detach(many, f"x = {value}")
    r = many.start("--new", *limit, start=False)
    assert r.wait_exit() == 75 and "cellblock --end" in r.all_text()
    t = many.start(*limit, start=False)
    t.expect("these are all that you may have")
    t.type("e3\r\x7f\x7f2\x7f\x7f\x7f2\r")   # there is no 3; e 2; then 2 alone
    assert t.run("x") == "2"
    # One that another terminal shows can be ended, too.
    u = many.start(*limit, start=False)
    u.expect("these are all that you may have")
    u.type("e 2\r")
    u.expect(r"^ended session 2 of \S+ · 2 cells$")
    assert t.wait_exit() == 128 + signal.SIGTERM
    assert "NameError" in u.run("x")
    assert len(many.registry()) == 2
    # The control: where there is room, no e is taken.
    v = many.start("-s", "session.per_user=3", start=False)
    v.expect(r"n for a new one\]")
    v.type("e\r")
    v.start()
    assert v.run("x") == "1"


def test_the_only_session_is_ended_without_its_number(many):
    detach(many, "x = 1")
    s = many.start("-s", "session.per_user=1", start=False)
    s.expect("e and Enter to end it for a new one")
    s.type("e\r")
    s.expect(r"^ended session 1 of \S+ · 1 cell$")
    assert "NameError" in s.run("x")


def test_end_takes_several_and_says_what_it_ended(many):
    detach(many)
    detach(many, "x = 1", "open('f', 'w').close()")
    detach(many, "x = 1")
    r = many.cb.run("--end", "1", "9")
    assert r.code == 1 and "there is no session 9" in r.said
    assert len(many.registry()) == 3
    r = many.cb.run("--end", "1", "3", "-m", "good night")
    assert r.code == 0 and re.fullmatch(
        r"ended session 1 of \S+ · 0 cells\nended session 3 of \S+ · 1 cell\n",
        r.text), r
    assert many.only()["number"] == "2"
    r = many.cb.run("--end", "all")
    assert r.code == 0 and r.text.startswith("ended session 2 of "), r
    assert "2 cells" in r.text
    assert many.registry() == []
    r = many.cb.run("--end", "all")
    assert r.code == 0 and r.text.startswith("there was no session to end"), r


def test_a_session_that_was_never_used_ends_with_its_terminal(many):
    skeleton = many.cb.work / "skeleton"
    skeleton.mkdir()
    (skeleton / "given.txt").write_text("x")
    for args in [], ["-s", f"home.skeleton={skeleton}"]:
        s = many.start(*args)
        s.type("half a cell")
        drop(s)
        many.none()
    # The controls: a file was put, or a cell ran.
    (many.cb.work / "data.txt").write_text("x")
    for args, line in ([], ":upload data.txt"), (["-u", "data.txt"], None), \
            ([], "1/0"):
        s = many.start(*args)
        if line:
            s.run(line)
        many.lose(s)
        assert many.cb.run("--end", "1").code == 0


def test_the_environment_names_no_directory(many):
    """Every shell of a person sees the same sessions, and no number twice."""
    some = []
    for i, name in enumerate(["login", None, "other"]):
        many.cb.env.pop("XDG_RUNTIME_DIR", None)
        if name:
            runtime = many.cb.base / name
            runtime.mkdir(mode=0o700)
            many.cb.env["XDG_RUNTIME_DIR"] = str(runtime)
        s = many.start("--new")
        s.run(f"x = {i}")
        some.append(s)
        assert [e["number"] for e in many.registry()] == \
            [str(n + 1) for n in range(i + 1)]
        assert (many.places[0] / str(i + 1)).is_socket()
    del many.cb.env["XDG_RUNTIME_DIR"]
    assert "there is no session 1.2" in many.cb.run("--end", "1.2").said
    assert many.cb.run("--end", f"{many.registry()[0]['who']}/2").code == 0
    assert some[1].wait_exit() == 128 + signal.SIGTERM
    assert [e["number"] for e in many.registry()] == ["1", "3"]
    for i in 0, 2:
        assert some[i].run("x") == str(i)
        some[i].leave()


def test_a_second_terminal_takes_over_and_the_first_is_told(many):
    s = many.start()
    s.run("x = 41")
    s.type("x + ")
    s.expect(r"^>>> x \+")
    t = many.start("--attach", start=False)
    t.expect(r"^>>> x \+")
    assert s.wait_exit() == 0
    assert "taken over from" in s.all_text()
    assert termios.tcgetattr(s.slave) == s.before
    t.type("1\r")
    t.expect("^42$")
    t.wait_prompt()


def test_a_takeover_reaches_a_running_cell(many):
    s = many.start()
    row = s.enter("a = input('name? ')")
    s.expect_since(row, r"name\?")
    t = many.start("--attach", start=False)
    assert s.wait_exit() == 0
    many.until(lambda e: e["answers"] and e["running"], "the cell to run")
    t.expect("session 1 again")
    t.type("ann\r")
    t.wait_prompt()
    assert t.run("a") == "'ann'"
    row = t.enter("import time; print('on'); "
                  "[time.sleep(.1) for _ in range(600)]")
    # A cell that has not begun would be killed.
    t.expect_since(row, "^on$")
    t.type("\x03")
    t.expect_since(row, "KeyboardInterrupt|interrupted")


def test_two_who_come_at_once_both_get_an_answer(many):
    s = many.start()
    s.run("x = 41")
    many.lose(s)
    both = [many.start("--attach", start=False) for _ in range(2)]

    def left():
        for t in both:
            t._pump(0)
        return [t for t in both if t.process.poll() is None]
    hosttree.until(lambda: len(left()) == 1, "one of them to be let go")
    winner = left()[0].start()
    loser = both[both.index(winner) - 1]
    assert loser.wait_exit() == 0 and "taken over" in loser.all_text()
    assert winner.run("x + 1") == "42"


def test_input_waits_for_the_person(many):
    s = many.start("-t", f"{2 * PATIENCE:.0f}s")
    row = s.enter("a = input('name? ')")
    s.expect_since(row, r"name\?")
    drop(s)
    many.until(lambda e: e["detached"] and e["running"], "the cell to wait")
    t = many.start("--attach", start=False)
    t.expect("session 1 again|missed")
    t.type("ann\r")
    t.wait_prompt()
    assert t.run("a") == "'ann'"


def test_exit_in_a_cell_that_nobody_sees_waits_for_the_person(many):
    s = many.start()
    s.run("import time")
    row = s.enter("exit(print('on') or time.sleep(4) or 7)")
    s.expect_since(row, "^on")
    many.lose(s, until_end=True)
    t = many.start("--attach", start=False)
    assert t.wait_exit() == 7
    many.none()


def test_who_is_about_to_leave_is_told_how_to_keep_the_session(many):
    s = many.start()
    s.run("a = 1")
    s.type("\x04")
    s.expect("session 1 has 1 variable · Ctrl-D again to leave, :detach to")
    s.wait_prompt()
    s.type(":detach\r")
    assert s.wait_exit() == 0
    t = many.start("--attach", start=False).start()
    assert t.run("a") == "1"


def test_system_exit_in_a_cell_that_nobody_sees_does_not_end_the_session(many):
    s = many.start()
    row = s.enter("import time; print('on'); time.sleep(4); "
                  "raise SystemExit(7)")
    s.expect_since(row, "^on")
    many.lose(s, until_end=True)
    t = many.start("--attach", start=False)
    t.expect("the cell ended with exit")
    t.wait_prompt()
    assert t.run("1") == "1"


def test_a_session_ends_when_nobody_comes_back(many):
    s = many.start("-s", "session.linger=1s")
    s.run("x = 1")
    drop(s)
    many.none()
    assert list(many.places[0].iterdir()) == []


@pytest.mark.parametrize("key", ["session.linger=0", "session.attach=no"])
def test_without_lingering_a_session_ends_with_its_terminal(many, key):
    s = many.start("-s", key)
    s.type(":detach\r")
    s.expect("nobody could come back to this session")
    assert many.registry() == []
    tree = many.cb.tree(s)
    drop(s)
    tree.wait_gone()


def test_a_program_with_the_whole_screen_draws_anew(many):
    s = many.start("-t", "60s")
    row = s.enter(
        "import signal, sys, time\n"
        "def draw(*_):\n"
        " sys.stdout.write('\\x1b[?1049h\\x1b[H\\x1b[2Jpainted')\n"
        " sys.stdout.flush()\n"
        "signal.signal(signal.SIGWINCH, draw)\ndraw()\ninput()\n"
        "sys.stdout.write('\\x1b[?1049l')\n")
    s.wait(lambda: s.screen.alternate, "the whole screen")
    many.lose(s)
    t = many.start("--attach", start=False)
    t.wait(lambda: t.screen.alternate and "painted" in t.screen_text(),
           "the screen to be painted")
    t.type("\r")
    t.wait_prompt()
    del row


def test_what_nobody_reads_neither_stops_a_cell_nor_takes_memory(many):
    s = many.start("-t", "60s", "-s", "cell.cpu=60s")
    pid = many.only()["pid"]
    row = s.enter("import time\nend = time.time() + 4\n"
                  "while time.time() < end:\n print('y' * 1000)\n\nprint('last', 6 * 7)")
    s.expect_since(row, "yyy")
    many.lose(s, until_end=True)
    assert hosttree.memory_of(pid) < 64 << 20
    t = many.start("--attach")
    t.expect("last 42")
    assert re.search(r"missed while away: \d+ lines, the last 20", t.all_text())


def test_a_terminal_that_dies_in_the_pager_leaves_a_prompt(many):
    s = many.start()
    s.run("x = 41; print('\\n'.join(map(str, range(300))))")
    s.type(":out\r")
    s.wait(lambda: not s.at_prompt() and "0" in s.screen_text(), "the pager")
    many.lose(s)
    t = many.start("--attach")
    assert t.run("x + 1") == "42"


def test_a_terminal_that_dies_at_a_question_answers_no(many):
    s = many.start()
    s.run("open('f', 'w').write('x'); None")
    s.type(":wipe\r")
    s.expect(r"\[y/N\]")
    many.lose(s)
    t = many.start("--attach")
    assert t.run("import os; os.listdir()") == "['f']"


def test_a_terminal_that_dies_in_a_transfer_leaves_whole_files(many):
    tree = many.cb.work / "many"
    tree.mkdir()
    for i in range(1000):
        (tree / f"f{i}").write_bytes(b"x" * 1000)
    s = many.start("-s", "files.max_count=2000")
    many.lose_in_transfer(s, ":upload many")
    t = many.start("--attach")
    assert t.run("import os; len(os.listdir('many')), "
                 "{os.path.getsize('many/' + f) for f in os.listdir('many')}"
                 ) == "(1000, {1000})"


def test_a_terminal_that_dies_during_a_picture_costs_nothing(many):
    s = many.start()
    s.run("x = 41")
    row = s.enter(
        "import struct, time, zlib\n"
        "def chunk(k, d): return (struct.pack('>I', len(d)) + k + d +"
        " struct.pack('>I', zlib.crc32(k + d)))\n"
        "png = (b'\\x89PNG\\r\\n\\x1a\\n' + chunk(b'IHDR', struct.pack("
        "'>IIBBBBB', 4, 4, 8, 2, 0, 0, 0)) + chunk(b'IDAT', zlib.compress("
        "(b'\\0' + b'\\xff\\0\\0' * 4) * 4)) + chunk(b'IEND', b''))\n"
        "open('p.png', 'wb').write(png)\nprint('on')\ntime.sleep(1)\n"
        "class P:\n def _repr_png_(self): return png\n\nP()")
    s.expect_since(row, "^on")
    many.lose(s, until_end=True)
    t = many.start("--attach")
    assert t.run("x + 1") == "42"


def test_a_locked_session_lingers_and_leaves_no_socket(many):
    s = many.start("-s", "policy.locked=yes")
    s.run("x = 41")
    many.lose(s)
    t = many.start("--attach")
    assert t.run("x + 1") == "42"
    assert t.leave() == 0
    many.none()
    assert list(many.places[0].iterdir()) == []


def test_messages_and_ends_come_from_outside(many):
    s = many.start()
    full = f"{many.only()['who']}/1"
    s.type("1 + ")
    assert many.cb.run("--message", "1", "in five\x1b[31m minutes").code == 0
    s.expect(r"message from you, elsewhere: in five\\x1b\[31m minutes")
    s.expect(r"^>>> 1 \+")
    row = s.screen.here()
    assert many.cb.run("--end", "1", "-m", "good night").code == 0
    s.expect_since(row, "ended by you, elsewhere: good night")
    assert s.wait_exit() == 128 + signal.SIGTERM
    # For root a number alone might be another person's session now.
    assert many.cb.run("--end", full).code == 1


def test_a_roster_is_a_table_for_people(many):
    s = many.start()
    s.run("x = 1")
    text = many.cb.run("--sessions").text
    assert re.match(r"ID +WHO +FROM +SINCE +IDLE +CELL +CPU +MEMORY +HOME", text)
    assert re.search(r"^(\w+/)?1 ", text, re.M)


def test_a_roster_does_not_say_what_it_does_not_know_yet(many):
    """A session that has just begun is not asked what it uses."""
    s = many.start()
    s.run("x = 1")
    seen = []

    def knows():
        seen.append(many.cb.run("--sessions").text.split("\n")[1])
        return re.search(r"\d [KM]iB ", seen[-1])
    hosttree.until(knows, lambda: f"its memory: {seen[-1]}")
    assert not [row for row in seen if " 0 B " in row], seen
