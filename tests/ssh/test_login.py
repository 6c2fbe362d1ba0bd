# SPDX-License-Identifier: MIT
"""ssh to a host where cellblock is the login shell or a forced command."""
import json
import subprocess

import pytest

import hosttree
from graphics import Graphics, pixels, png
from world import PATIENCE

NO_PLACE = 75       # the exit status where as many sessions are as may be


def test_a_remote_command_runs_as_a_cell(lab):
    r = lab.run("2**100")
    assert (r.returncode, r.stdout, r.stderr) == \
        (0, b"1267650600228229401496703205376\n", b""), r


def test_a_command_may_have_several_lines(lab):
    r = lab.run("x = 20\nfor i in range(2):\n    x += i\nx")
    assert r.stdout == b"21\n", r


def test_standard_input_without_a_command_is_a_program(lab):
    r = lab.run(stdin=b"import sys\nprint('homework')\n"
                      b"print('err', file=sys.stderr)\nsys.exit(7)\n")
    assert (r.returncode, r.stdout, r.stderr) == \
        (7, b"homework\n", b"err\n"), r


def test_a_command_reads_the_input_of_the_client(lab):
    r = lab.run("import sys; sys.stdin.read().upper()", stdin=b"abc")
    assert r.stdout == b"'ABC'\n", r


@pytest.mark.sampled(5)
@pytest.mark.parametrize("command, error", [
    ("cat < /etc/passwd", b"SyntaxError"), ("ls -la", b"NameError"),
    ("cat /etc/passwd", b"NameError")])     # to Python this is a division
def test_a_shell_command_is_a_python_error(lab, command, error):
    r = lab.run(command)
    assert r.returncode == 1 and error in r.stderr, r
    assert b"root:" not in r.stdout + r.stderr


@pytest.mark.sampled(7)
@pytest.mark.parametrize("command", [
    "--help", "--check", "-c 'print(1)'", "-f /etc/passwd", "--version",
    "-s cell.timeout=99h", "--set policy.locked=no", "-u /etc/passwd",
    "-p /bin/sh", "; id", "$(id)", "`id`", "| id", "&& id", "-",
    "'\n--help"])
def test_options_from_the_client_are_python_and_not_options(lab, command):
    r = lab.run(command)
    assert r.returncode == 1, r
    assert b"Error" in r.stderr, r
    assert b"uid=" not in r.stdout and b"cellblock [OPTIONS]" not in r.stdout


@pytest.mark.sampled(5)
@pytest.mark.parametrize("command", [
    "scp -t /tmp", "scp -f /etc/passwd", "/usr/lib/openssh/sftp-server",
    "rsync --server -e.Lsfx . /tmp", "git-upload-pack 'x'",
    "git-receive-pack 'x'"])
def test_a_file_transfer_service_is_refused_by_name(lab, command):
    r = lab.run(command)
    assert r.returncode not in (0, 255), r
    service = command.split()[0].split("/")[-1].split("-")[0]
    assert service.encode() in r.stderr and b"SyntaxError" not in r.stderr, r
    assert r.stdout == b""


def test_the_sftp_subsystem_is_refused(lab):
    r = lab.run("sftp", options=("-s",))
    assert r.returncode not in (0, 255), r
    assert r.stdout == b"", r


AGENT = b"""\
{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": \
{"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {}}}
{"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": \
{"name": "run_cell", "arguments": {"code": "6 * 7"}}}
"""


def agent(lab, *command, options=()):
    """The answers to an agent that leaves when it has them; None where there
    is no place for one more session."""
    with subprocess.Popen([*lab.argv("-T", *options), *command],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as p:
        p.stdin.write(AGENT)
        p.stdin.flush()
        answers = [json.loads(p.stdout.readline() or "null")
                   for _ in range(2)]
        p.stdin.close()
        if p.wait(40 * PATIENCE) == NO_PLACE:
            return None
        assert p.returncode == 0, p.stderr.read()
        assert p.stdout.read() == b""
    return answers


@pytest.mark.sampled(3)
@pytest.mark.parametrize("command, options", [
    ("cellblock-mcp", ("-s",)),     # a subsystem: a command line of sshd's
    ("cellblock-mcp", ()),          # a command, where sshd knows no subsystem
    ("cellblock-named", ("-s",)),   # a subsystem: the name alone
    (" /opt/x/cellblock  --mcp ", ())])
def test_an_agent_gets_a_session(lab, command, options):
    first, second = agent(lab, command, options=options)
    assert first["result"]["serverInfo"]["name"] == "cellblock"
    assert second["result"]["content"] == [{"type": "text", "text": "42\n"}]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("command", [
    "cellblock-mcp -s cell.timeout=99h", "cellblock --mcp -p /bin/sh",
    "cellblock -s session.memory=9G --mcp", "cellblock --mcp; id",
    "cellblock-mcp\nimport os", "cellblock --mcp=1"])
def test_options_do_not_come_with_an_agent(lab, command):
    r = lab.run(command, stdin=AGENT)
    assert r.returncode == 1 and b"Error" in r.stderr, r
    assert b"jsonrpc" not in r.stdout


@pytest.mark.sampled(2)
def test_an_agent_counts_as_a_session(locked_lab):
    s = [locked_lab.session().start(), locked_lab.another()]
    r = locked_lab.run("cellblock-mcp", stdin=AGENT)
    assert r.returncode == NO_PLACE and b"per_user" in r.stderr, r
    assert r.stdout == b""
    s[0].leave()
    hosttree.until(lambda: agent(locked_lab, "cellblock-mcp"), "a place")


def test_a_login_on_a_terminal_starts_a_session(lab):
    s = lab.session().start()
    assert "512 MiB" in s.all_text()
    assert s.run("6 * 7") == "42"
    assert s.leave() == 0


def test_the_window_size_reaches_the_session(lab):
    s = lab.session().start()
    assert s.run("import os; os.get_terminal_size().columns") == "80"


@pytest.mark.sampled(2)
def test_ctrl_z_names_detach_where_the_session_is_the_login(lab):
    s = lab.session().start()
    s.type("40 + 2\x1a")
    s.expect(r"\[Ctrl-Z: no shell waits .* :detach")
    s.expect(r"^>>> 40 \+ 2$")
    s.type("\r")
    s.expect("^42$")
    s.wait_prompt()
    s.type(":detach\r")
    assert s.wait_exit() == 0


def test_ctrl_z_names_no_detach_where_it_would_not_work(alone_lab):
    s = alone_lab.session().start()
    s.type("\x1a")
    s.expect(r"\[Ctrl-Z: no shell waits [^]]* nobody\s")
    assert ":detach" not in s.screen_text()
    assert s.run("6 * 7") == "42"


@pytest.mark.sampled(2)
def test_ctrl_z_is_a_key_for_a_command(lab):
    s = lab.session("input('? ')")
    s.expect(r"^\?")
    s.type("\x1aok\r")
    s.expect(r"^'\\x1aok'$")
    assert s.wait_exit() == 0


def test_ctrl_z_stops_a_session_that_a_shell_waits_for(plain_lab):
    s = plain_lab.session("PS1='sh-job$ ' exec bash --norc -i")
    s.prompt = "sh-job$ "
    s.wait_prompt()
    s.type(f"{plain_lab.server.binary}\r")
    s.prompt = ">>> "
    s.wait_prompt()
    s.run("x = 41")
    s.type("x + 1\x1a")
    s.expect("Stopped")
    s.prompt = "sh-job$ "
    s.wait_prompt()
    s.type("\x0c")
    s.wait(lambda: s.screen.cursor.y == 0 and s.at_prompt(), "a clear screen")
    s.type("fg\r")
    s.expect(r"^>>> x \+ 1$")
    s.type("\r")
    s.expect("^42$")


def test_ctrl_c_interrupts_a_cell(lab):
    s = lab.session().start()
    row = s.enter("import time; print('on'); "
                  "[time.sleep(.1) for _ in range(500)]")
    s.expect_since(row, "^on")
    s.type("\x03")
    s.expect_since(row, "KeyboardInterrupt")
    s.wait_prompt()


def test_a_command_whose_connection_drops_leaves_no_process(lab):
    s = lab.session("import time; print('on'); time.sleep(50)")
    s.expect("^on")
    assert lab.processes()
    s.process.kill()
    s.close()
    hosttree.until(lambda: not lab.processes(),
                   hosttree.describe(lab.processes()))


def test_a_dropped_connection_is_come_back_to(lab):
    s = lab.session().start()
    row = s.enter("import time\nfor i in range(40):\n print('n', i, flush=True)"
                  "; time.sleep(.05)\nx = i\n")
    s.expect_since(row, "^n 1$")
    s.process.kill()
    s.close()
    second = lab.session()
    second.expect(r"your\s+session\s+from")
    second.type("\r")
    second.expect("^n 39$")
    assert second.run("x + 3") == "42"
    assert second.leave() == 0
    hosttree.until(lambda: not lab.processes(),
                   hosttree.describe(lab.processes()))


@pytest.mark.sampled(7)
@pytest.mark.parametrize("name", [
    "LD_PRELOAD", "PYTHONSTARTUP", "PYTHONPATH", "PYTHONHOME", "TERMINFO",
    "BASH_ENV", "GCONV_PATH", "EDITOR", "XDG_CONFIG_HOME", "SECRET"])
def test_the_environment_of_the_client_does_not_reach_the_jail(lab, name):
    r = lab.run(f"import os; os.environ.get({name!r})",
                options=("-o", f"SetEnv={name}=/nonexistent/x"))
    assert r.stdout == b"" and r.returncode == 0, r


def test_the_configuration_file_of_the_account_is_not_read(lab):
    path = lab.home / ".config" / "cellblock" / "cellblock.conf"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("[cell]\nnonsense = yes\n")
    try:
        assert lab.run("1 + 1").stdout == b"2\n"
    finally:
        path.unlink()


def test_files_of_the_account_are_not_in_the_jail(lab):
    (lab.home / "private.txt").write_text("mine")
    r = lab.run(f"open({str(lab.home / 'private.txt')!r})")
    assert b"FileNotFoundError" in r.stderr, r


def test_a_client_cannot_set_the_original_command_variable(lab):
    r = lab.run("1 + 1", options=(
        "-o", "SetEnv=SSH_ORIGINAL_COMMAND=print('planted')"))
    assert r.stdout == b"2\n", r


@pytest.mark.sampled(2)
def test_two_sessions_of_an_account_are_separate(lab):
    a, b = lab.session().start(), lab.another()
    a.run("x = 'a'")
    assert "NameError" in b.run("x")
    assert a.run("x") == "'a'"


WAIT = "import time; print('on', flush=True); time.sleep(600)"


@pytest.mark.sampled(2)
@pytest.mark.parametrize("late", ["command", "program", "session"])
def test_every_command_of_a_locked_login_counts_as_a_session(locked_lab, late):
    """Of session.per_user = 2. The control: one that ends makes room."""
    first, second = locked_lab.session(WAIT), locked_lab.session(WAIT)
    first.expect("^on")
    second.expect("^on")
    if late == "session":
        s = locked_lab.session()
        code, said = s.wait_exit(), s.all_text()
    else:
        r = locked_lab.run("1 + 1") if late == "command" else \
            locked_lab.run(stdin=b"print(2)\n")
        code, said = r.returncode, r.stderr.decode()
        assert r.stdout == b""
    assert code == NO_PLACE and "there are 2 sessions already" in said, said
    first.close()
    hosttree.until(lambda: locked_lab.run("1 + 1").stdout == b"2\n",
                   "room for one more")


@pytest.mark.sampled(2)
def test_commands_of_a_login_that_is_not_locked_are_not_counted(lab):
    """The control of the test above: 4 sessions are allowed."""
    waiting = [lab.session(WAIT) for _ in range(5)]
    for s in waiting:
        s.expect("^on")


@pytest.mark.sampled(2)
def test_a_picture_is_drawn_as_the_clients_terminal_draws(lab):
    s = lab.session().start()
    s.graphics = Graphics("kitty")
    s.run("class P:\n    def _repr_png_(self): return bytes.fromhex('%s')\n" %
          png(2, 1, lambda y: b"\0\xff\0\0\0\0\xff").hex())
    assert "figure 1 · 2x1" in s.run("P()")
    assert pixels(s.graphics.pictures[0].data) == (
        2, 1, [b"\xff\0\0\0\0\xff"])


FLOOD = "import sys\nwhile True: sys.{}.write('x' * 4096)"
WHOLE_MIB = 1 << 20


@pytest.mark.sampled(2)
@pytest.mark.parametrize("how", ["command", "program", "errors"])
def test_a_program_of_a_locked_login_writes_no_more_than_it_may(
        locked_lab, how):
    code = FLOOD.format("stderr" if how == "errors" else "stdout")
    r = locked_lab.run(stdin=code.encode()) if how == "program" else \
        locked_lab.run(code)
    said = r.stderr.replace(b"x" * 4096, b"")[-400:]
    assert r.returncode == 137 and b"output limit: 1 MiB" in said, said
    written = (r.stdout + r.stderr).count(b"x")
    assert WHOLE_MIB <= written < 2 * WHOLE_MIB
    # The control: output within the limit comes whole.
    r = locked_lab.run(f"print('x' * {WHOLE_MIB - 1})")
    assert (r.returncode, r.stdout.count(b"x")) == (0, WHOLE_MIB - 1)


@pytest.mark.sampled(2)
def test_a_command_on_a_terminal_writes_no_more_either(locked_lab):
    s = locked_lab.session(FLOOD.format("stdout"))
    assert s.wait_exit() == 137
    assert "output limit: 1 MiB" in s.all_text()


@pytest.mark.sampled(2)
def test_a_program_of_a_login_that_is_not_locked_writes_all_it_wants(lab):
    r = lab.run(f"print('x' * {3 * WHOLE_MIB})")
    assert (r.returncode, len(r.stdout)) == (0, 3 * WHOLE_MIB + 1)
