# SPDX-License-Identifier: MIT
"""Ctrl-Z stops a session as a job, where a shell waits for it: the terminal is
as the shell wants it, and `fg` draws again. The jail goes on. Where no shell
waits, one line names what else there is."""
import contextlib
import os
import re
import shutil
import signal
import termios

import pytest

import hosttree
import inflight
import term
from world import CELLBLOCK, IS_ROOT

BASH = shutil.which("bash")
SHELL = "sh-job$ "
STOP = "\x1a"
# With its client, the session goes on and the client stops; without, the front
# end stops itself.
KINDS = {"client": [], "alone": ["-s", "session.linger=0"]}


class Shell(term.Session):
    """A shell with job control, and cellblock as its job."""

    def __init__(self, cb, *args, command=None, size=(24, 80), env=None):
        super().__init__([BASH, "--norc", "--noprofile", "-i"], size=size,
                         env={**cb.env, "PS1": SHELL, "HISTFILE": "",
                              **(env or {})}, cwd=cb.work, prompt=SHELL)
        cb.open.append(self)
        self.job(command or " ".join([CELLBLOCK, *args]))

    def shell(self, line):
        """Have the shell run a line. The next prompt is cellblock's."""
        self.prompt = SHELL
        self.wait_prompt()
        self.type(line + "\r")
        self.prompt = ">>> "

    def job(self, line):
        """Start or continue cellblock, up to an empty prompt."""
        self.shell(line)
        self.wait_prompt()

    def expect_shell(self, wanted=""):
        """Wait for a prompt of the shell, below what it says."""
        self.prompt = SHELL
        self.wait(lambda: self.at_prompt() and
                  re.search(wanted, self.screen_text(), re.M),
                  f"the shell: {wanted}")

    def stop(self):
        self.type(STOP)
        self.expect_stopped()

    def expect_stopped(self):
        self.expect_shell("Stopped")
        assert not self.screen.alternate and not self.screen.cursor.hidden
        assert hosttree.is_stopped(self.pid_of_job())

    def pid_of_job(self):
        """The process that the shell waits for."""
        below = {p: hosttree.stat_of(p) for p in hosttree.descendants(self.pid)}
        return max(p for p, s in below.items() if s and int(s[1]) == self.pid)

    def background(self):
        """The session stops again, and the shell has its terminal."""
        self.clear()
        self.shell("bg")
        self.expect_shell("&$")
        # The shell tells of it before a prompt.
        hosttree.until(lambda: self.shell("") or self.expect_shell() or
                       "Stopped" in self.screen_text(), "the job to stop")
        assert hosttree.is_stopped(self.pid_of_job())
        self.shell("echo still=$((2 + 3))")
        self.expect_shell("^still=5")
        self.clear()

    def clear(self):
        self.type("\x0c")
        self.wait(lambda: self.screen.cursor.y == 0 and self.at_prompt(),
                  "a clear screen")

    def finish(self):
        """The session works, and ends: the shell is back."""
        assert self.run("6 * 7") == "42"
        self.type("exit\r")
        self.wait(lambda: self.screen.cursor_row() == SHELL.strip() or
                  "again to leave" in self.screen_text(), "the end")
        if self.screen.cursor_row() != SHELL.strip():
            self.wait_prompt()
            self.type("exit\r")
        self.prompt = SHELL
        self.wait_prompt()


@pytest.fixture(params=KINDS)
def shell(request, cb, many):
    s = Shell(cb, *KINDS[request.param])
    s.kind, s.registry = request.param, many.registry
    return s


# ---- at the prompt ----

def test_ctrl_z_stops_the_session_and_fg_draws_the_prompt_again(shell):
    shell.run("x = 41")
    shell.stop()
    shell.shell("echo $((5 * 5))")
    shell.expect_shell("^25$")
    shell.job("fg")
    assert shell.run("x + 1") == "42"
    shell.stop()                            # and once more
    shell.job("fg")
    shell.finish()


@pytest.mark.alone      # others of this user may have more in flight
def test_descriptors_in_flight_do_not_keep_a_session_from_the_terminal(cb, many):
    """As many as cells of the same person may have elsewhere."""
    if IS_ROOT:
        pytest.skip("root may send any number")
    inflight.wait_landed()
    s = Shell(cb, command=f"ulimit -Sn 1024; {CELLBLOCK}")
    s.run("x = 41")
    s.stop()
    with inflight.held(inflight.CELLS):
        s.job("fg")
        assert s.run("x + 1") == "42"
    s.finish()


def reads_lines(s):
    return bool(s.terminal_modes()[3] & termios.ICANON)


def interrupt(s):
    """Type Ctrl-C until there is a prompt. A signal just before read() is handled
    only after the read."""
    for _ in range(4):
        s.type("\x03")
        with contextlib.suppress(term.NotSeen):
            return s.wait(lambda: s.at_prompt() and s.screen.bracketed_paste,
                          "a prompt", 4)
    raise term.NotSeen(s.picture())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("keys", ["", "x = input()\r", "def f():\r"],
                         ids=["prompt", "cell", "text"])
def test_the_terminal_has_its_own_modes_while_the_session_is_stopped(
        cb, many, kind, keys):
    """This shell leaves the modes alone, as many do."""
    s = cb.session(*([] if kind == "alone" else ["-s", "session.linger=10m"]),
                   wrapper=(BASH, "-mc", '"$@"; echo stopped; read; fg'
                            ' >/dev/null; echo "=$?"', "sh"))
    s.type(keys)
    s.wait(lambda: not s.at_prompt() or not keys, "the keys")
    s.wait(lambda: not reads_lines(s), "the session's modes")
    s.type(STOP)
    s.expect("^stopped")
    assert s.terminal_modes() == s.before
    assert not s.screen.bracketed_paste
    s.type("\r")
    s.wait(lambda: not reads_lines(s), "the session's modes")
    interrupt(s)
    assert s.run("6 * 7") == "42"
    s.type("\x04")
    s.expect("^=0")
    assert s.terminal_modes() == s.before


TYPED = {
    # name: (keys, what they show, more keys, the output)
    "line": ("x = 'typed'", r"^>>> x = 'typed'", "; x\r", "^'typed'$"),
    "cursor": ("1 + 2\x1b[D\x1b[D\x1b[D\x1b[D", r"^>>> 1 \+ 2", "\x04\x040\r",
               "^102?$|^10$|SyntaxError|^3$"),
    "cell": ("def f():\rreturn 41", "^>>> def f.*\n\\.\\.\\.     return 41",
             "\r\rf()\r", "^41$"),
    "search": ("\x12findme", "search: findme", "\x05 + 1\r", "^42$"),
}


@pytest.mark.parametrize("name", TYPED)
def test_what_was_typed_is_there_again(shell, name):
    keys, shown, more, output = TYPED[name]
    shell.run("findme = 41")
    shell.run("findme")
    shell.type(keys)
    shell.expect(shown)
    shell.stop()
    assert "^Z" in shell.screen_text()
    shell.clear()
    shell.shell("fg")
    shell.expect(shown.replace("search: ", "^>>> "))
    shell.type(more)
    shell.expect(output)
    shell.wait_prompt()
    shell.finish()


def test_a_terminal_that_cannot_address_its_cursor_stops_too(cb, many):
    for kind in KINDS.values():
        s = Shell(cb, *kind, env={"TERM": "dumb"})
        s.type("def f():\r")
        s.expect(r"^\.\.\.$")
        s.type("    return 41\r")
        s.expect(r"41\n\.\.\.$")
        s.stop()
        s.shell("fg")
        s.expect(r"fg\n.*\n>>> def f\(\):\n\.\.\.     return 41\n\.\.\.$")
        s.type("\rf()\r")
        s.expect("^41$")
        s.wait_prompt()
        s.finish()


def test_the_pager_stops_and_is_drawn_again(shell):
    shell.type(":help\r")
    shell.expect("q leaves")
    assert shell.screen.alternate
    top = shell.screen.shown()[0]
    shell.stop()
    shell.shell("fg")
    shell.expect("q leaves")
    assert shell.screen.alternate and shell.screen.shown()[0] == top
    shell.type("q")
    shell.wait_prompt()
    shell.finish()


def test_a_question_is_asked_again(shell):
    shell.run("open('a', 'w').close()")
    shell.type(":wipe\r")
    shell.expect(r"\[y/N\]$")
    shell.stop()
    shell.clear()
    shell.shell("fg")
    shell.expect(r"\[y/N\]$")
    shell.type("y")
    shell.wait_prompt()
    assert shell.run("import os; os.listdir()") == "[]"


def test_a_resized_window_is_noticed_when_the_session_goes_on(shell):
    shell.run("x = 'w' * 100; import os")
    shell.type("x" * 100)
    shell.expect("x{20}$")
    shell.stop()
    shell.resize(20, 60)
    shell.clear()
    shell.shell("fg")
    shell.expect("^>>> x{56}\nx{44}$")
    shell.type("\x15\x15")
    shell.wait_prompt()
    assert "columns=60, lines=20" in shell.run("os.get_terminal_size()")
    shell.finish()


# ---- in a cell ----

def test_a_cell_goes_on_while_the_session_is_stopped(shell):
    row = shell.enter("import time\nfor i in range(12):\n"
                      "    print('n', i, flush=True); time.sleep(.1)\n")
    shell.expect_since(row, "^n 0$")
    shell.stop()
    if shell.kind == "client":
        hosttree.until(lambda: [e for e in shell.registry() if e["answers"] and
                                not e["running"]], "its end")
    shell.shell("fg")
    shell.expect("^n 11$")
    shell.wait_prompt()
    for i in range(12):
        assert re.search(f"^n {i}$", shell.all_text(), re.M), i
    shell.finish()


def test_the_clock_of_a_cell_goes_on(cb, many):
    for kind in KINDS.values():
        s = Shell(cb, "-t", "2s", *kind)
        s.type("import time; time.sleep(99)\r")
        s.wait(lambda: s.screen.cursor.x == 0, "the cell to run")
        s.stop()
        s.shell("fg")
        s.expect(r"\[time limit: 2 s · (interrupted|killed)")
        s.wait_prompt()
        s.finish()


def test_a_cell_that_waits_for_input_waits_on(shell):
    row = shell.enter("x = input('? ')")
    shell.expect_since(row, r"^\?$")
    shell.type("4")
    shell.expect_since(row, r"^\? 4$")
    shell.stop()
    shell.shell("fg")
    shell.expect("^" + re.escape(CELLBLOCK))
    shell.type("2\r")
    shell.wait_prompt()
    assert shell.run("x") == "'42'"
    shell.finish()


def test_a_cell_that_reads_raw_keys_gets_ctrl_z(shell):
    row = shell.enter("import os, tty, termios\nm = termios.tcgetattr(0)\n"
                      "tty.setraw(0); print('on', flush=True)\n"
                      "k = os.read(0, 1); termios.tcsetattr(0, 0, m)")
    shell.expect_since(row, "^on")
    shell.type(STOP)
    shell.wait_prompt()
    assert shell.run("k") == r"b'\x1a'"
    shell.finish()


# A handler that prints may come in the middle of a print.
SCREEN = """import os, signal
def draw(*_):
    os.write(1, b'\\x1b[?1049h\\x1b[?25l\\x1b[H\\x1b[Jdrawn %d'
             % os.get_terminal_size().lines)
signal.signal(signal.SIGWINCH, draw); draw()
why = 0
try: input()
except BaseException as e: why = e
os.write(1, b'\\x1b[?1049l\\x1b[?25h'); why
"""


def test_a_full_screen_program_is_drawn_again(shell):
    shell.enter(SCREEN)
    shell.expect("^drawn 24$")
    os.kill(shell.pid_of_job(), signal.SIGTSTP)
    shell.expect_stopped()
    shell.clear()
    shell.shell("fg")
    shell.expect("^drawn 24$")
    assert shell.screen.alternate
    shell.type("\r")
    shell.expect("^0$")
    shell.wait_prompt()
    shell.finish()


def test_ctrl_z_typed_ahead_stops_at_once(shell):
    """In one piece with the Enter before it."""
    shell.type("import time; time.sleep(1); print('end')\r" + STOP)
    shell.expect_stopped()
    shell.shell("fg")
    shell.expect("^end$")
    shell.wait_prompt()
    shell.finish()


# ---- signals, and the background ----

def test_a_signal_from_outside_stops_the_session(shell):
    shell.type("abc")
    shell.expect("abc$")
    os.kill(shell.pid_of_job(), signal.SIGTSTP)
    shell.expect_stopped()
    shell.clear()
    shell.shell("fg")
    shell.expect("^>>> abc$")
    shell.type("\x15")
    shell.wait_prompt()
    shell.finish()


@pytest.mark.parametrize("then", ["fg", "bg"])
def test_a_session_goes_on_after_sigstop(shell, then):
    shell.type("abc")
    shell.expect("abc$")
    os.killpg(os.getpgid(shell.pid_of_job()), signal.SIGSTOP)
    shell.expect_stopped()
    shell.clear()
    if then == "bg":
        shell.background()
    shell.shell("fg")
    shell.expect("^>>> abc$")
    shell.type("\x15")
    shell.wait_prompt()
    shell.finish()


def test_the_shell_has_its_keys_while_only_the_client_is_stopped(cb, many):
    """The front end reads no key of the shell's, and takes none for the end."""
    s = Shell(cb)
    s.run("x = 41")
    os.kill(s.pid_of_job(), signal.SIGSTOP)
    s.expect_shell("Stopped")
    for _ in range(3):
        s.shell("echo still=$((2 + 3))")
        s.expect_shell("^still=5")
        s.clear()
    s.background()
    s.job("fg")
    assert s.run("x + 1") == "42"
    s.finish()


# What to type, what then stands before the cursor, and again after `fg`; a key
# that ends it, and what comes of it.
WAITS_FOR_KEYS = {
    "prompt": ("abc", "^>>> abc$", "^>>> abc$", "\r", "NameError: name 'abc'"),
    "input": ("input('? ')\rbc\x01a", r"^\? abc$", "^" + re.escape(CELLBLOCK),
              "\r", "^'abc'$"),
    "question": ("open('a', 'w').close()\r:wipe\r", r"\[y/N\]$", r"\[y/N\]$",
                 "n", "nothing was removed"),
    "pager": (":help\r", "q leaves", "q leaves", "q", "")}


@pytest.mark.parametrize("first", ["", "bg; "], ids=["key", "bg"])
@pytest.mark.parametrize("what", WAITS_FOR_KEYS)
def test_a_key_changes_no_modes_while_only_the_client_is_stopped(
        cb, many, what, first):
    """A command of the shell's runs that reads no key: the front end, which may
    still wait for one, sees it first; or first a signal that the client passes
    on."""
    keys, stands, again, end, does = WAITS_FOR_KEYS[what]
    s = Shell(cb, command=f"{CELLBLOCK}; {first}until [ -e {cb.work}/go ]; do "
              "sleep .1; done; stty -a")
    s.run("None")       # what the host lacks is said before the second prompt
    s.type(keys)
    s.expect(stands)
    os.kill(s.pid_of_job(), signal.SIGSTOP)
    s.expect("Stopped")
    s.type("echo still=$((2 + 3))\r")
    s.expect("^echo still=")
    (cb.work / "go").touch()
    s.expect(r"^still=5\n(.*\n)*" + re.escape(SHELL.strip()))
    said = s.screen_text()
    for mode in "icanon", "opost", "echo":
        assert re.search(rf"(?<!-)\b{mode}\b", said), said
    s.type("\x0c")
    s.wait(lambda: s.screen.cursor.y == 0, "a clear screen")
    s.type("fg\r")
    s.expect(again)
    s.type(end)
    s.expect(does)
    s.wait_prompt()
    assert "missed" not in s.screen_text(), s.picture()
    s.finish()


def test_a_session_in_the_background_stops_again_and_leaves_the_terminal(shell):
    row = shell.enter("import time\nfor i in range(20):\n"
                      "    print('n', i, flush=True); time.sleep(.05)\n")
    shell.expect_since(row, "^n 0$")
    shell.stop()
    shell.background()
    shell.shell("fg")
    shell.expect("^n 19$")
    shell.wait_prompt()
    shell.finish()


def test_a_script_that_runs_cellblock_stops_with_it(cb, many):
    for kind in KINDS.values():
        run = " ".join([CELLBLOCK, *kind])
        s = Shell(cb, command=f"sh -c '{run}; echo after'")
        s.stop()
        s.job("fg")
        s.finish()
        s.expect("^after$")


def test_a_stopped_session_can_be_killed(shell):
    shell.run("x = 1")
    shell.stop()
    left = hosttree.descendants(shell.pid)
    shell.shell("kill %1; echo killed")
    shell.expect_shell("^killed")
    hosttree.until(lambda: not hosttree.descendants(shell.pid).items() &
                   left.items(), "the end of the job")
    hosttree.until(lambda: not shell.registry(), "the end of the session")
    shell.shell("jobs; jobs; echo jobs: $(jobs | wc -l)")
    shell.expect_shell("^jobs: 0$")
    shell.shell("stty -a")
    shell.expect_shell(" icanon .* echo ")


def test_the_end_of_a_stopped_session_is_told_when_it_goes_on(cb, many):
    s = Shell(cb)
    s.run("x = 1")
    s.stop()
    assert cb.run("--end", "1").code == 0
    many.none()
    s.shell("fg; echo =$?")
    s.expect_shell("^=143$")
    assert "ended by you, elsewhere" in s.screen_text()


def test_a_stopped_session_answers(cb, many):
    s = Shell(cb)
    s.run("x = 41")
    s.stop()
    assert many.only()["answers"]
    assert cb.run("--message", "1", "hello").code == 0
    s.shell("fg")
    s.expect("message from you, elsewhere: hello")
    s.wait_prompt()
    assert s.run("x + 1") == "42"
    s.finish()


def test_another_terminal_can_take_a_stopped_session(cb, many):
    s = Shell(cb)
    s.run("x = 41")
    s.stop()
    other = many.start("--attach")
    assert other.run("x + 1") == "42"
    s.shell("fg; echo =$?")
    s.expect_shell("^=0$")
    assert "taken over from" in s.screen_text()
    assert other.run("6 * 7") == "42"


def test_a_client_that_attached_stops_as_a_job(cb, many):
    first = many.start()
    first.run("x = 41")
    many.lose(first)
    s = Shell(cb, "--attach")
    s.stop()
    s.job("fg")
    row = s.enter("import time\nfor i in range(6):\n"
                  "    print('n', i, flush=True); time.sleep(.1)\n")
    s.expect_since(row, "^n 0$")
    s.stop()
    s.shell("fg")
    s.expect("^n 5$")
    s.wait_prompt()
    assert s.run("x + 1") == "42"
    s.finish()


def test_a_stopped_session_outlives_its_shell(cb, many):
    s = Shell(cb)
    s.run("x = 41")
    s.stop()
    s.process.kill()
    s.process.wait()
    many.detached()
    t = many.start("--attach")
    assert t.run("x + 1") == "42"


def test_a_stopped_session_that_cannot_go_on_ends_with_its_shell(cb, many):
    s = Shell(cb, *KINDS["alone"])
    s.run("x = 1")
    s.stop()
    below = hosttree.descendants(s.pid)
    s.process.kill()
    s.process.wait()
    hosttree.until(
        lambda: not any(hosttree.is_alive(*p) for p in below.items()),
        "the end of the session")


# ---- the question which session, and a watcher ----

def test_the_question_which_session_can_be_stopped(cb, many):
    first = many.start()
    first.run("x = 41")
    many.lose(first)
    s = Shell(cb, command="true") if False else None
    s = ShellOnly(cb)
    s.shell(CELLBLOCK)
    s.expect("Enter to go back")
    s.stop()
    s.clear()
    s.shell("fg")
    s.expect("Enter to go back")
    s.type("\r")
    s.wait_prompt()
    assert s.run("x + 1") == "42"


class ShellOnly(Shell):
    def job(self, line):
        if line != " ".join([CELLBLOCK]):
            super().job(line)


def test_a_watcher_stops(cb, many):
    first = many.start()
    s = ShellOnly(cb)
    s.shell(f"{CELLBLOCK} --watch 1")
    s.expect("watching session 1")
    s.stop()
    s.clear()
    s.shell("fg")
    first.run("6 * 7")
    s.expect("^42$")
    s.type("q")
    s.expect_shell()


# ---- no shell ----

def test_where_no_shell_waits_a_line_names_detach(many):
    s = many.start()
    s.type("x = 4" + STOP)
    s.expect(r"\[Ctrl-Z: no shell waits .* :detach")
    s.expect("^>>> x = 4$")
    s.type("1\r")
    s.wait_prompt()
    row = s.enter("y = input('? ')")
    s.expect_since(row, r"^\?$")
    s.type(STOP)
    s.expect_since(row, r"\[Ctrl-Z: no shell waits .* :detach")
    s.type("ok\r")
    s.wait_prompt()
    assert s.run("x, y") == "(41, 'ok')"
    s.type(":detach\r")                     # what the line names works
    s.expect("goes on for")


def test_where_a_session_cannot_be_left_the_line_says_so(cb):
    s = cb.session()
    s.type(STOP)
    s.expect(r"\[Ctrl-Z: no shell waits for cellblock here, and nobody could")
    assert ":detach" not in s.screen_text()
    s.wait_prompt()
    assert s.run("6 * 7") == "42"
