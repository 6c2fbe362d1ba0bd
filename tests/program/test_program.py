# SPDX-License-Identifier: MIT
"""cellblock in place of python3: arguments, streams, exit statuses."""
import os
import re
import select
import signal
import subprocess
import termios
import time

import pytest

import hosttree
from world import PATIENCE

# Root's front end gives up its capabilities, and root may read and write more.
pytestmark = pytest.mark.both

# The longest that a program takes to end.
SECONDS = 30 * PATIENCE


def test_code_runs(cb):
    r = cb.run("-c", "print(6 * 7)")
    assert (r.code, r.out, r.err) == (0, b"42\n", b""), r


def test_code_gets_its_arguments(cb):
    r = cb.run("-c", "import sys; print(sys.argv)", "a b", "--flag", "-t")
    assert r.text == "['-c', 'a b', '--flag', '-t']\n", r


def test_a_file_gets_its_arguments(cb):
    cb.work.joinpath("prog.py").write_text(
        "import sys\nprint(sys.argv[1:], __name__)\n")
    r = cb.run("prog.py", "x", "-c", "--help")
    assert r.text == "['x', '-c', '--help'] __main__\n", r


def test_a_file_may_be_given_by_an_absolute_host_path(cb):
    path = cb.home / "prog.py"
    path.write_text("print('read by the front end')\n")
    r = cb.run(str(path))
    assert r.text == "read by the front end\n", r


def test_a_missing_file_is_an_error(cb):
    r = cb.run("missing.py")
    assert r.code == 2 and "missing.py" in r.said, r
    assert r.said.startswith("cellblock: ")


@pytest.mark.parametrize("kind", ["a directory", "a FIFO"])
def test_a_directory_or_fifo_is_refused_as_a_program(cb, kind):
    (os.mkdir if kind == "a directory" else os.mkfifo)(cb.work / "thing")
    r = cb.run("thing")
    assert (r.code, r.out) == (2, b""), r
    assert r.said.startswith(
        f"cellblock: run a program: thing is {kind}, not a regular file\n"), r
    assert "cellblock - < FILE" in r.said, r
    assert cb.run("-u", "thing", "-c", "1").code \
        == (0 if kind == "a directory" else 2)


def test_a_missing_upload_is_an_error(cb):
    r = cb.run("-u", "missing.csv", "-c", "print(1)")
    assert (r.code, r.out) == (2, b"") and "missing.csv" in r.said, r


def test_a_cell_beyond_the_source_limit_is_refused(cb):
    r = cb.run("-s", "cell.source=9", "-e", "123456789")
    assert r.text == "123456789\n", r
    r = cb.run("-s", "cell.source=9", "-e", "1234567890")
    assert (r.code, r.out) == (2, b"") and "cell.source" in r.said, r


def test_a_program_may_come_from_standard_input(cb):
    r = cb.run(stdin="print('from stdin')\nprint(2)\n")
    assert (r.code, r.text) == (0, "from stdin\n2\n"), r
    r = cb.run("-", stdin="print(__name__)")
    assert r.text == "__main__\n", r


def test_a_module_runs(cb):
    r = cb.run("-m", "this")
    assert r.code == 0 and b"Beautiful is better" in r.out, r
    r = cb.run("-m", "json.tool", stdin='{"a":1}')
    assert r.text == '{\n    "a": 1\n}\n', r


PSUTIL = ("try:\n  import psutil\nexcept ImportError: print('none here')\n"
          "else: print(psutil.virtual_memory().total >> 20)")


def test_psutil_has_the_jails_figures_in_a_cell_and_complains_elsewhere(cb):
    r = cb.run("-M", "96M", "-e", PSUTIL)
    if r.text == "none here\n":
        pytest.skip("no psutil here")
    assert (r.text, r.err) == ("96\n", b"")
    r = cb.run("-M", "96M", "-c", PSUTIL)
    assert (r.text, r.code) == ("", 1) and b"'/proc/" in r.err
    # nothing of the kind is in a cell that does without
    r = cb.run("-e", "import sys; 'psutil' in sys.modules")
    assert r.text == "False\n"


def test_a_cell_shows_its_last_expression(cb):
    assert cb.run("-e", "2**100").text == "1267650600228229401496703205376\n"
    assert cb.run("-e", "x = 20\nx + 1").text == "21\n"
    assert cb.run("-e", "x = 20").text == ""


@pytest.mark.parametrize("code, status", [
    ("raise SystemExit", 0), ("raise SystemExit(0)", 0),
    ("raise SystemExit(7)", 7), ("import os; os._exit(9)", 9),
    ("1/0", 1), ("x = = 1", 1), ("raise SystemExit('why')", 1),
    ("import sys; sys.exit(300)", 300 & 255),
])
def test_the_exit_status_is_that_of_the_program(cb, code, status):
    assert cb.run("-c", code).code == status


@pytest.mark.parametrize("sig", ["SIGTERM", "SIGSEGV", "SIGABRT", "SIGKILL",
                                 "SIGPIPE", "SIGHUP"])
def test_the_exit_status_after_a_signal_is_128_plus_the_signal(cb, sig):
    r = cb.run("-c", f"import os, signal; signal.signal(signal.SIGPIPE, "
                     f"signal.SIG_DFL); os.kill(os.getpid(), signal.{sig})")
    number = getattr(signal, sig)
    said = f"the program was ended by a signal: {signal.strsignal(number)}\n"
    assert r.code == 128 + number, r
    assert r.said == ("" if sig == "SIGPIPE" else "cellblock: " + said), r


def test_stdout_and_stderr_are_separate(cb):
    r = cb.run("-c", "import sys; print('out'); print('err', file=sys.stderr)")
    assert (r.out, r.err) == (b"out\n", b"err\n"), r


def test_piped_streams_are_not_terminals(cb):
    r = cb.run("-c", "import os; print([os.isatty(n) for n in (0, 1, 2)])")
    assert r.text == "[False, False, False]\n", r


def test_streams_carry_any_bytes(cb):
    data = os.urandom(5_000_000)
    r = cb.run("-c", "import shutil, sys; shutil.copyfileobj(sys.stdin.buffer,"
                     " sys.stdout.buffer)", stdin=data)
    assert r.code == 0 and r.out == data, (len(r.out), r.said)


def test_the_end_of_standard_input_is_passed_on(cb):
    r = cb.run("-c", "import sys; print(len(sys.stdin.read()))", stdin=b"x" * 9)
    assert r.text == "9\n", r


def test_a_program_need_not_read_all_its_input(cb):
    r = cb.run("-c", "import sys; print(sys.stdin.readline().strip())",
               stdin=b"first\n" + b"x" * 3_000_000)
    assert (r.code, r.text) == (0, "first\n"), r


def test_a_program_ends_when_its_reader_goes_away(cb):
    p = cb.popen("-c", "while True: print('y' * 1000)",
                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                 stderr=subprocess.PIPE)
    tree = hosttree.Tree(p.pid)
    assert p.stdout.read(10) == b"y" * 10
    tree.look()
    p.stdout.close()
    hosttree.until(lambda: p.poll() is not None, "the program to end")
    tree.wait_gone()


def is_still_waiting(process):
    """Whether the process still waits after 3 s, far longer than the grace of
    a silent program."""
    try:
        process.wait(3)
    except subprocess.TimeoutExpired:
        return True
    return False


def test_a_slow_reader_gets_all_output(cb):
    p = cb.popen("-c", "import os; os.write(2, b'on'); print('x' * 150_000)",
                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                 stderr=subprocess.PIPE)
    assert p.stderr.read(2) == b"on"
    assert is_still_waiting(p)
    assert len(p.stdout.read()) == 150_001
    assert p.wait(SECONDS) == 0


def test_a_slow_terminal_gets_all_output(cb):
    s = cb.session("-c", "print('x' * 80_000)", start=False)
    assert is_still_waiting(s.process)
    assert s.wait_exit() == 0
    assert s.raw.count(b"x") == 80_000


def test_ctrl_c_ends_the_wait_for_a_slow_terminal(cb):
    s = cb.session("-c", "print('x' * 80_000)", start=False)
    hosttree.until(lambda: not select.select([], [s.slave], [], 0)[1],
                   "the terminal to be full")
    assert is_still_waiting(s.process)
    s.type("\x03")
    assert s.wait_exit() == 128 + signal.SIGINT


def test_a_full_disk_is_reported(cb):
    r = cb.run("-c", "while True: print('y' * 1000)",
               wrapper=("sh", "-c", 'exec "$@" >/dev/full', "sh"))
    assert r.code == 1, r
    assert r.said == ("cellblock: write standard output: "
                      "No space left on device\n"), r
    r = cb.run("-c", "print('y' * 2_000_000)",
               wrapper=("sh", "-c", 'ulimit -f 1024; exec "$@" >big', "sh"))
    assert r.code == 1 and "File too large" in r.said, r


def test_a_file_size_limit_that_is_too_small_is_named(cb):
    small = ("sh", "-c", 'ulimit -f 16; exec "$@"', "sh")
    assert cb.run("-c", "print(1)", wrapper=small).text == "1\n"
    r = cb.run("-e", "1", wrapper=small)  # the driver is a file in memory
    assert r.code == 125, r
    assert "File too large" in r.said and "ulimit -f" in r.said, r
    # A cell's own limit strikes as it does in plain Python.
    cell = ("import resource, subprocess\n"
            "resource.setrlimit(resource.RLIMIT_FSIZE, (99, 99))\n"
            "print(subprocess.run(['sh', '-c', 'yes > f']).returncode)")
    r = cb.run("-c", cell)
    assert r.text in ("-25\n", "153\n"), r


@pytest.mark.parametrize("what", ["--help", "--version", "--check",
                                  "--check-config"])
def test_help_that_cannot_be_written_is_reported(cb, what):
    r = cb.run(what, wrapper=("sh", "-c", 'exec "$@" >/dev/full', "sh"))
    assert r.code == 1, r
    assert r.said == ("cellblock: write standard output: "
                      "No space left on device\n"), r
    assert cb.run(what).said == ""


# Python's own race: a signal in the instant before a sleep does not shorten it.
SLEEPS = ("import time; print('on', flush=True);"
          " [time.sleep(.1) for _ in range(500)]")


def piped(cb, code, to="cat"):
    """A program on a terminal, with its output in a pipe."""
    return cb.session("-c", code, start=False,
                      wrapper=("sh", "-c", f'trap : INT; "$@" | {{ {to}; }}', "sh"))


def test_output_through_a_pipe_begins_in_the_first_column(cb):
    s = piped(cb, "for i in range(3): print(i)")
    assert s.wait_exit() == 0
    assert s.screen.shown() == ["0", "1", "2"]


def test_input_is_echoed_once_when_output_is_piped(cb):
    s = piped(cb, "import sys; print('got', input('? '));"
                  " sys.stdout.flush(); print(sys.stdin.read())")
    s.expect(r"^\?")
    s.type("bob\té\r")
    s.expect("^got bob")
    s.type("rest\r\x04")
    assert s.wait_exit() == 0
    assert s.screen.shown() == \
        ["? bob   é", "got bob é", "rest", "rest"]


def test_a_password_is_not_echoed_when_output_is_piped(cb):
    s = piped(cb, "from getpass import getpass; p = getpass();"
                  " print(p == 'se' + 'cret', input())")
    s.expect("^Password:")
    s.type("secret\r")
    s.wait(lambda: s.terminal_modes() == s.before, "the terminal as it was")
    s.type("shown\r")
    s.expect("^True shown$")
    assert s.wait_exit() == 0
    assert s.screen.shown() == ["Password:", "shown", "True shown"]


def test_a_pager_behind_the_pipe_keeps_its_terminal_modes(cb):
    pager = ("read first; stty -icanon -echo </dev/tty; echo ready; "
             "key=$(dd bs=1 count=1 2>/dev/null </dev/tty); "
             "cat >/dev/null; echo key $key $(stty -a </dev/tty | "
             "grep -ow -e -icanon -e -echo)")
    s = piped(cb, "import time; print('x', flush=True); time.sleep(2)", pager)
    s.expect("^ready$")
    s.type("k")
    s.expect("^key k -icanon -echo$")
    s.wait_exit()


def test_ctrl_c_reaches_a_program_with_piped_output(cb):
    s = piped(cb, SLEEPS,
              "trap '' INT; cat")
    s.expect("^on$")
    s.type("\x03")
    s.expect("^KeyboardInterrupt$")
    s.wait_exit()


def test_a_program_in_the_background_is_not_stopped(cb):
    s = cb.session("-c", "print('done')", start=False, wrapper=(
        "sh", "-mc", '"$@" >out & wait $!; echo "status $?"', "sh"))
    s.expect("status 0")
    assert cb.work.joinpath("out").read_text() == "done\n"


def test_a_program_brought_to_the_foreground_gets_the_keys(cb):
    s = cb.session("-c", "print('got', input('? '))", start=False, wrapper=(
        "sh", "-mc", '"$@" & read go; fg %1', "sh"))
    s.expect(r"^\?")
    s.type("go\r")
    s.wait(lambda: not termios.tcgetattr(s.slave)[3] & termios.ICANON,
           "the terminal in raw mode")
    s.type("it\r")
    s.expect("got it")
    assert s.wait_exit() == 0


# Seconds in which Python starts and writes something, also on a busy host.
STARTS = int(3 * PATIENCE)


def test_the_time_limit_gives_status_137_and_one_line(cb):
    r = cb.run("-t", f"{STARTS}s", "-c",
               "print('a', flush=True)\nimport time; time.sleep(99)")
    assert r.code == 137, r
    assert r.text == "a\n"
    assert f"time limit: {STARTS} s" in r.said and r.said.count("\n") == 1, r


def test_the_time_limit_ends_a_program_that_sleeps(cb):
    r = cb.run("-t", "500ms", "-c", "import time; time.sleep(50)")
    assert r.code == 137 and "time limit" in r.said, r


def test_memory_limit_is_reported(cb):
    r = cb.run("-M", "64M", "-c", "x = []\n"
               "while True: x.append(bytearray(1 << 20))", timeout=40)
    assert r.code in (1, 137), r
    assert "MemoryError" in r.said or "memory limit: 64 MiB" in r.said, r


def test_a_closed_standard_input_is_allowed(cb):
    r = cb.run("-c", "import sys; print(sys.stdin and sys.stdin.read())",
               wrapper=("sh", "-c", 'exec "$@" <&-', "sh"))
    assert r.code == 0 and r.text in ("\n", "None\n"), r


def test_a_closed_standard_output_is_allowed(cb):
    r = cb.run("-c", "import sys; sys.stderr.write('still here')",
               wrapper=("sh", "-c", 'exec "$@" >&-', "sh"))
    assert "still here" in r.said, r


def test_a_closed_standard_error_is_allowed(cb):
    r = cb.run("-c", "print('still here')",
               wrapper=("sh", "-c", 'exec "$@" 2>&-', "sh"))
    assert r.text == "still here\n", r


def test_the_program_holds_no_descriptor_of_the_caller(cb):
    secret = cb.work / "secret"
    secret.write_text("host file")
    with open(secret, "r+b") as f:
        os.set_inheritable(f.fileno(), True)
        r = cb.run("-c", """if 1:
            import os
            for n in range(256):
                try: s = os.fstat(n)
                except OSError: continue
                print(n, oct(s.st_mode >> 12))
        """, pass_fds=[f.fileno()])
    kinds = [line.split() for line in r.text.splitlines()]
    assert [k[0] for k in kinds] == ["0", "1", "2"], r
    assert all(k[1] in ("0o1", "0o2") for k in kinds), r


def test_the_program_can_only_write_to_the_file_behind_stdout(cb):
    out = cb.work / "out.txt"
    out.write_text("")
    out.chmod(0o640)
    with open(out, "r+b") as f:
        p = cb.popen("-c", """if 1:
            import os
            os.write(1, b'kept')
            for call in (lambda: os.ftruncate(1, 0), lambda: os.fchmod(1, 0o777),
                         lambda: os.lseek(1, 0, 0)):
                try: call()
                except OSError: pass
        """, stdin=subprocess.DEVNULL, stdout=f)
        assert p.wait(SECONDS) == 0
    assert out.read_text() == "kept"
    assert out.stat().st_mode & 0o777 == 0o640


def test_traceback_names_the_script(cb):
    cb.work.joinpath("broken.py").write_text("def f():\n    1/0\nf()\n")
    r = cb.run("broken.py")
    assert r.code == 1, r
    assert "broken.py\", line 3" in r.said and "1/0" in r.said, r
    assert "ZeroDivisionError" in r.said


def test_the_upload_and_download_options_work(cb):
    cb.work.joinpath("in.csv").write_text("1\n2\n3\n")
    r = cb.run("-u", "in.csv", "-d", "total.txt", "-c",
               "open('total.txt', 'w').write("
               "str(sum(map(int, open('in.csv')))))")
    assert r.code == 0, r
    assert cb.work.joinpath("total.txt").read_text() == "6"


def test_upload_takes_another_name_and_download_a_directory(cb):
    cb.work.joinpath("in.csv").write_text("x")
    (cb.work / "res").mkdir()
    r = cb.run("-u", "in.csv:data/d.csv", "-d", "*.out:res", "-c",
               "open('a.out', 'w').write(open('data/d.csv').read())")
    assert r.code == 0, r
    assert (cb.work / "res" / "a.out").read_text() == "x"


def test_a_program_gets_a_tree_and_gives_one_back(cb):
    (cb.work / "in" / "sub").mkdir(parents=True)
    (cb.work / "in" / "sub" / "f").write_text("x")
    for i in range(120):    # more than requests may have
        (cb.work / "in" / f"g{i}").touch()
    r = cb.run("-u", "in:data", "-d", "out", "-c",
               "import shutil; shutil.copytree('data', 'out')")
    assert r.code == 0, r
    assert (cb.work / "out" / "sub" / "f").read_text() == "x"
    assert len(list((cb.work / "out").glob("g*"))) == 120


def test_a_result_that_is_there_already_is_left_alone_without_the_flag(cb):
    cb.work.joinpath("a.out").write_text("mine")
    args = ("-d", "*.out", "-c",
            "for n in 'ab': open(n + '.out', 'w').write('new')")
    r = cb.run(*args)
    assert r.code == 1, r
    assert "./a.out is there already and was left alone" in r.said, r
    assert "--overwrite overwrites" in r.said, r
    assert cb.work.joinpath("a.out").read_text() == "mine"
    assert cb.work.joinpath("b.out").read_text() == "new"
    assert cb.run("--overwrite", *args).code == 0
    assert cb.work.joinpath("a.out").read_text() == "new"


def test_two_uploads_to_one_name_start_no_program(cb):
    for n in "12":
        (cb.work / n).mkdir()
        (cb.work / n / "x").write_text(n)
    args = ("-u", "1/x", "-u", "2/x", "-c", "print(open('x').read())")
    r = cb.run(*args)
    assert r.code == 2 and not r.out, r
    assert "/home/x is there already" in r.said, r
    assert cb.run("--overwrite", *args).text == "2\n"


@pytest.mark.parametrize("sig", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_during_the_upload_sets_the_exit_status(cb, sig):
    with open(cb.work / "big", "wb") as f:
        f.truncate(1 << 30)
    p = cb.popen("-s", "files.max_file=2G", "-M", "2G", "-s", "home.size=1200M",
                 "-u", "big", "-c", "import time; time.sleep(99)",
                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                 stderr=subprocess.PIPE)
    hosttree.until(lambda: hosttree.descendants(p.pid), "the jail")
    time.sleep(0.1)
    p.send_signal(sig)
    out, said = p.communicate(timeout=SECONDS)
    # A signal after the upload would end the program with the same status.
    assert p.returncode == 128 + sig, said


def test_a_missing_upload_starts_no_program(cb):
    r = cb.run("-u", "missing.csv", "-c", "print('ran')")
    assert r.code != 0 and b"ran" not in r.out and "missing.csv" in r.said, r


@pytest.mark.parametrize("where", ["missing", "not a directory", "read-only"])
def test_a_bad_download_directory_starts_no_program(cb, where):
    to = cb.work / "res"
    if where == "not a directory":
        to.write_text("")
    elif where == "read-only":
        if os.geteuid() == 0:
            pytest.skip("root may write in every directory of its own")
        to.mkdir(mode=0o500)
    r = cb.run("-d", f"*.out:{to}", "-c", "print('ran')")
    assert r.code == 2 and b"ran" not in r.out and "res" in r.said, r
    assert r.said.startswith("cellblock: run a program: download to"), r


def test_the_check_of_the_download_directory_leaves_no_file_in_it(cb):
    (cb.work / "res").mkdir()
    assert cb.run("-d", "*.out:res", "-c", "open('a.out', 'w')").code == 0
    assert os.listdir(cb.work / "res") == ["a.out"]


LEAVES = {
    "nothing": "",
    "a process": "subprocess.Popen(['sleep', '99'], start_new_session=True)",
    "a dead process": "subprocess.Popen(['true']); time.sleep(.2)",
    "an orphan": "subprocess.run(['sh', '-c', 'setsid sleep 99 &'])",
    "a stopped one": "os.kill(subprocess.Popen(['sleep', '99']).pid, 19)",
}


@pytest.mark.parametrize("what", LEAVES)
def test_at_the_exit_no_process_of_the_program_is_left(cb, what):
    p = cb.popen("-c", "import os, subprocess, time\n" + LEAVES[what] +
                 "\nprint('on', flush=True); input()",
                 stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                 stderr=subprocess.DEVNULL)
    assert p.stdout.readline() == b"on\n"
    tree = hosttree.Tree(p.pid)
    guests = tree.guests()
    assert guests
    p.stdin.close()
    p.wait(SECONDS)
    left = [g for g in guests if g in tree.alive()]
    assert not left, hosttree.describe(left)
    tree.wait_gone()


# pid 1 of a container may be a program that reaps no orphans.
PID1 = """import os, subprocess, sys
assert os.getpid() == 1
subprocess.run(sys.argv[1:], check=True)
os.waitpid(-1, os.WNOHANG)"""


@pytest.mark.skipif(os.geteuid() == 0, reason="the janitor of root's sessions "
                    "outlives cellblock, whatever its parent is")
def test_a_pid_1_that_starts_it_inherits_no_process(cb):
    r = cb.run("-c", "print(1)", wrapper=[
        "unshare", "-Upf", "--map-current-user", "--mount-proc",
        "/usr/bin/python3", "-c", PID1])
    assert r.out == b"1\n" and b"No child processes" in r.err, r


def test_ctrl_c_reaches_the_program(cb):
    p = cb.popen("-c", SLEEPS,
                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                 stderr=subprocess.PIPE)
    assert p.stdout.readline() == b"on\n"
    p.send_signal(signal.SIGINT)
    _, err = p.communicate(timeout=SECONDS)
    assert p.returncode in (130, 1) and b"KeyboardInterrupt" in err, err


def test_sigterm_ends_the_program_and_leaves_nothing(cb):
    p = cb.popen("-c", "import time; print('on', flush=True); time.sleep(50)",
                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    assert p.stdout.readline() == b"on\n"
    tree = hosttree.Tree(p.pid)
    p.terminate()
    assert p.wait(SECONDS) == 128 + signal.SIGTERM
    tree.wait_gone()


def test_a_program_on_a_terminal_has_a_terminal(cb):
    s = cb.session("-c", "import os; print([os.isatty(n) for n in (0, 1, 2)],"
                   " os.get_terminal_size().columns)", start=False)
    assert s.wait_exit() == 0
    assert "[True, True, True] 80" in s.all_text()


def test_a_program_on_a_terminal_reads_from_it(cb):
    s = cb.session("-c", "print('got', input('? '))", start=False)
    s.expect(r"^\?")
    s.type("it\r")
    s.expect("got it")
    assert s.wait_exit() == 0


def test_redirected_streams_are_not_terminals(cb):
    s = cb.session("-c", "import os; print([os.isatty(n) for n in (0, 1, 2)])",
                   start=False, wrapper=("sh", "-c",
                                         '"$@" </dev/null 2>&1 | cat', "sh"))
    s.wait_exit()
    assert "[False, False, False]" in s.all_text()


def test_numpy_works(cb):
    pytest.importorskip("numpy")
    r = cb.run("-t", "60s", "-c",
               "import numpy as np; a = np.ones((300, 300));"
               " print((a @ a).sum())")
    assert r.text == "27000000.0\n", r


def test_a_check_shows_the_plan_of_the_jail_if_asked(cb):
    plan = re.compile(r"(?m)^jail +home +/home$")
    plain, more = cb.run("--check"), cb.run("--check", "-v")
    assert not plan.search(plain.text) and plan.search(more.text), more
    assert more.text.startswith(plain.text) and more.code == plain.code, more


def test_timeout_says_nothing_about_timers(cb):
    r = cb.run("-c", "import os; print(os.system('timeout 20 true')); "
               "print(os.waitstatus_to_exitcode("
               "os.system('timeout .1 sleep 20')))")
    assert (r.text, r.err) == ("0\n124\n", b""), r


def test_a_login_reads_no_locale_of_the_person(cb):
    locale = cb.base / "locale"
    for name in ("C.UTF-8", "C.utf8", "en_US.UTF-8", "en_US.utf8"):
        (locale / name).mkdir(parents=True)
        # Opening the FIFO would block, because it has no writer.
        os.mkfifo(locale / name / "LC_CTYPE")
    r = cb.run("--login", env={
        "LOCPATH": str(locale), "LC_ALL": "en_US.UTF-8",
        "SSH_ORIGINAL_COMMAND": "6 * 7"})
    assert r.out == b"42\n", r


# ---- however a program ends, the terminal is as it was ----

MODES = ("\x1b[?1049h\x1b[?25l\x1b[?1;7h\x1b[?7l\x1b=\x1b[?2004h\x1b[4h"
         "\x1b[2;5r\x1b)0\x0e\x1b(0\x1b[31;7mdrawn")


def drawing(cb, code, *args, wrapper=(), to="sys.stdout"):
    """A program that has changed all modes there are."""
    s = cb.session(*args, "-c", f"import sys, time; print({MODES!r}, end='',"
                   f" file={to}, flush=True); {code}",
                   start=False, wrapper=wrapper)
    s.wait(lambda: b"\x1b[31;7mdrawn" in s.raw, "a drawing")
    return s


def assert_restored(s):
    """Nothing that the modes change is left, on the screen or the line."""
    assert s.terminal_modes() == s.before
    undone = bytes(s.raw).rpartition(b"\x1b[31;7mdrawn")[2]
    for off in ("[?1049l", "[?25h", "[?1l", "[?7h", ">", "[?2004l", "[4l",
                "[r", ")B", "(B"):
        assert b"\x1b" + off.encode() in undone, (off, undone)
    # Python, which colours tracebacks from 3.13 on, may have said so before.
    assert b"\x1b[m" in undone or b"\x1b[0m" in undone, undone
    assert b"\x0f" in undone
    s.stream.feed(b"here")
    assert "here" in s.screen_text() and not s.screen.alternate
    assert not s.screen.buffer[s.screen.cursor.y][s.screen.cursor.x - 1].reverse


ENDS = {
    # name: (code, what ends it, exit status)
    "sigterm": ("time.sleep(60)", signal.SIGTERM, 128 + signal.SIGTERM),
    "sighup": ("time.sleep(60)", signal.SIGHUP, 128 + signal.SIGHUP),
    "sigquit": ("time.sleep(60)", signal.SIGQUIT, 128 + signal.SIGQUIT),
    "sigint": ("[time.sleep(.1) for _ in range(600)]", signal.SIGINT, 130),
    "a_signal_in_a_flood": ("\nwhile True: print('x' * 99)", signal.SIGTERM,
                            128 + signal.SIGTERM),
    "exit": ("sys.exit(3)", None, 3),
    "crash": ("import os; os.abort()", None, 128 + signal.SIGABRT),
    "time_limit": ("time.sleep(60)", None, 137),
}


@pytest.mark.parametrize("name", ENDS)
def test_the_terminal_is_as_it_was_after(cb, name):
    code, sig, status = ENDS[name]
    limit = STARTS if name == "time_limit" else 60
    s = drawing(cb, code, "-t", f"{limit}s")
    if sig:
        s.process.send_signal(sig)
    assert s.wait_exit() == status
    assert_restored(s)


def test_the_terminal_is_as_it_was_after_the_warden_dies(cb):
    s = drawing(cb, "time.sleep(60)")
    os.kill(cb.tree(s.process).warden, signal.SIGKILL)
    assert s.wait_exit() == 125
    assert_restored(s)


def test_the_terminal_is_as_it_was_when_the_reader_goes_away(cb):
    s = drawing(cb, "\nwhile True: print('x', flush=True)", to="sys.stderr",
                wrapper=("bash", "-c", '"$@" | head -1; exit ${PIPESTATUS[0]}',
                         "sh"))
    assert s.wait_exit() == 128 + signal.SIGPIPE
    assert_restored(s)


def test_a_signal_restores_a_terminal_that_is_not_standard_output(cb):
    s = drawing(cb, "time.sleep(60)", to="sys.stderr",
                wrapper=("bash", "-c", 'exec "$@" > out', "sh"))
    s.process.send_signal(signal.SIGTERM)
    assert s.wait_exit() == 128 + signal.SIGTERM
    assert_restored(s)


@pytest.mark.parametrize("how", ["key", "signal"])
def test_a_program_that_is_suspended_leaves_the_terminal_as_it_was(cb, how):
    s = drawing(cb, "sys.stdin.readline(); print('went on')", "-t", "60s",
                wrapper=(
        "bash", "-mc", '"$@"; echo stopped; read; fg >/dev/null; echo "=$?"',
        "sh"))
    front = min(hosttree.descendants(s.pid))
    if how == "key":
        s.type("\x1a")
    else:
        os.kill(front, signal.SIGTSTP)
    s.expect("stopped")
    assert hosttree.is_stopped(front)
    assert_restored(s)
    s.type("\r")
    hosttree.until(lambda: s.terminal_modes() != s.before, "the program")
    s.type("\r")
    s.expect("went on")
    s.expect("^=0")
    assert s.wait_exit() == 0
    assert s.terminal_modes() == s.before
