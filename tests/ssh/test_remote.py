# SPDX-License-Identifier: MIT
"""scp, sftp and rsync into the home of a session that goes on."""
import os
import shutil
import subprocess
import time

import pytest

import hosttree
from world import PATIENCE


@pytest.fixture
def here(tmp_path):
    (tmp_path / "grades.csv").write_text("ann,1\nbob,2\n")
    return tmp_path


def options(lab):
    """Options for the three clients, beside the port."""
    argv = lab.argv()
    return argv[argv.index("-i"):argv.index("--")]


def far(lab, path):
    return f"{lab.user.pw_name}@127.0.0.1:{path}"


def call(*argv, stdin=None):
    return subprocess.run(
        [str(a) for a in argv], input=stdin, timeout=60 * PATIENCE,
        capture_output=True, text=True, check=False)


def scp(lab, *args, **kw):
    return call("scp", "-F", "none", "-P", lab.server.port, *options(lab),
                *args, **kw)


def sftp(lab, batch):
    return call("sftp", "-F", "none", "-P", lab.server.port, "-b", "-",
                *options(lab), far(lab, "")[:-1], stdin=batch)


def rsync(lab, *args):
    if not shutil.which("rsync"):
        pytest.skip("rsync is not installed")
    ssh = ["ssh", "-F", "none", "-p", str(lab.server.port), *options(lab)]
    return call("rsync", "-e", " ".join(ssh), *args)


def good(r):
    assert r.returncode == 0, r
    return r


COPIES = {
    "scp": lambda lab, src, to: scp(lab, src, far(lab, to)),
    "scp_old": lambda lab, src, to: scp(lab, "-O", src, far(lab, to)),
    "sftp": lambda lab, src, to: sftp(lab, f"put {src} {to}\n"),
    "rsync": lambda lab, src, to: rsync(lab, src, far(lab, to)),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("how", COPIES)
def test_a_file_is_used_by_the_next_cell(remote_lab, here, how):
    s = remote_lab.session().start()
    good(COPIES[how](remote_lab, here / "grades.csv", "in.csv"))
    assert s.run("open('in.csv').read()") == "'ann,1\\nbob,2\\n'"
    assert s.run("import os; os.getcwd()") == "'/home'"


@pytest.mark.sampled(3)
@pytest.mark.parametrize("old", [[], ["-O"]])
def test_a_file_comes_out_while_a_cell_runs(remote_lab, here, old):
    s = remote_lab.session().start()
    row = s.enter("import os, time; open('a b.txt', 'w').write('out')\n"
                  "while not os.path.exists('go'): time.sleep(.05)\n"
                  "print('went')\n")
    name = "a\\ b.txt" if old else "a b.txt"

    def copied():
        return scp(remote_lab, *old, far(remote_lab, name),
                   here / "b").returncode == 0

    hosttree.until(copied, "the file of the cell")
    assert (here / "b").read_text() == "out"
    good(scp(remote_lab, *old, here / "grades.csv", far(remote_lab, "go")))
    s.expect_since(row, "^went")
    s.wait_prompt()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("how", ["scp", "scp_old", "rsync"])
def test_a_tree_keeps_its_modes(remote_lab, here, how):
    tree = here / "tree"
    (tree / "sub").mkdir(parents=True)
    (tree / "run").write_text("#!/bin/sh\n")
    (tree / "run").chmod(0o755)
    (tree / "sub" / "x").write_text("x" * 70000)
    (tree / "sub" / "x").chmod(0o640)
    s = remote_lab.session().start()
    if how == "rsync":
        good(rsync(remote_lab, "-a", tree, far(remote_lab, "")))
    else:
        old = ["-O"] if how == "scp_old" else []
        good(scp(remote_lab, *old, "-rp", tree, far(remote_lab, "")))
    assert s.run("import os; [oct(os.stat('tree/' + n).st_mode & 0o777) "
                 "for n in ('run', 'sub/x')]") == "['0o755', '0o640']"
    back = here / "back"
    if how == "rsync":
        good(rsync(remote_lab, "-a", far(remote_lab, "tree/"), back))
    else:
        good(scp(remote_lab, *old, "-rp", far(remote_lab, "tree"), back))
    assert (back / "sub" / "x").read_text() == "x" * 70000
    assert (back / "run").stat().st_mode & 0o777 == 0o755


def says(r, why):
    """The protocol of sftp has no other word than this for it. A client of
    rsync may not live long enough to say it: 11 is an error of a file."""
    said = r.stdout + r.stderr
    return why in said or "Failure" in said or \
        (r.args[0] == "rsync" and r.returncode == 11)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("how", COPIES)
def test_a_full_home_is_an_error_and_costs_nothing(remote_lab, here, how):
    """The home has 8 MiB, a file may have 4."""
    for i in range(3):
        with open(here / f"big{i}", "wb") as f:
            f.write(os.urandom(3 << 20))
    with open(here / "huge", "wb") as f:
        f.write(os.urandom(5 << 20))
    s = remote_lab.session().start()
    s.run("x = 7")
    r = COPIES[how](remote_lab, here / "huge", "huge")
    assert r.returncode != 0, r
    assert says(r, "File too large"), r
    s.run("import os; os.path.exists('huge') and os.remove('huge')")
    good(COPIES[how](remote_lab, here / "big0", "big0"))
    good(COPIES[how](remote_lab, here / "big1", "big1"))
    r = COPIES[how](remote_lab, here / "big2", "big2")
    assert r.returncode != 0, r
    assert says(r, "No space left"), r
    assert s.run("x") == "7"


def test_without_a_session_one_begins_and_goes_on(remote_lab, here):
    """It is the same for the second client, and for the terminal."""
    assert not remote_lab.processes()
    good(scp(remote_lab, here / "grades.csv", far(remote_lab, "in.csv")))
    good(scp(remote_lab, far(remote_lab, "in.csv"), here / "back"))
    assert (here / "back").read_text() == "ann,1\nbob,2\n"
    s = remote_lab.session()
    s.expect("your session from .* is still here")
    s.type("\r")
    s.wait_prompt()
    assert s.run("len(open('in.csv').read())") == "12"


@pytest.mark.sampled(2)
def test_the_session_that_was_used_last_is_meant(remote_lab, here):
    first, second = remote_lab.session().start(), remote_lab.another()
    first.run("1")
    second.run("import time; time.sleep(2)")
    second.run("2")
    r = good(scp(remote_lab, "-O", here / "grades.csv",
                 far(remote_lab, "a.csv")))
    assert "the last used of 2" in r.stderr, r
    assert second.run("import os; os.path.exists('a.csv')") == "True"
    assert first.run("import os; os.path.exists('a.csv')") == "False"


@pytest.mark.sampled(2)
def test_a_session_that_ends_ends_the_copy(remote_lab, here):
    s = remote_lab.session().start()
    with subprocess.Popen(
            [*remote_lab.argv("-T"), "scp -t x"], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE) as p:
        assert p.stdout.read(1) == b"\0"       # it waits for a file
        s.leave()
        said = p.stderr.read().decode()
        assert p.wait(40 * PATIENCE) != 0
    assert "the session has ended" in said, said


@pytest.mark.sampled(2)
def test_an_interrupted_copy_leaves_nothing_running(remote_lab, here):
    s = remote_lab.session().start()
    s.run("1")          # it has all its processes
    with subprocess.Popen(
            [*remote_lab.argv("-T"), "scp -t x"], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as p:
        assert p.stdout.read(1) == b"\0"
        with_copy = len(remote_lab.processes())
        p.stdin.write(b"C0644 1000000 x\n" + b"y" * 1000)
        p.stdin.flush()
        p.kill()
    hosttree.until(lambda: len(remote_lab.processes()) <= with_copy - 3,
                   "the end of the copy")
    assert s.run("6 * 7") == "42"


@pytest.mark.sampled(4)
@pytest.mark.parametrize("path", [
    "/etc/passwd", "/tmp/cbtest-out", "/cbtest-out", "../../cbtest-out"])
@pytest.mark.parametrize("old", [[], ["-O"]])
def test_nothing_is_written_outside_the_home(remote_lab, here, path, old):
    s = remote_lab.session().start()
    r = scp(remote_lab, *old, here / "grades.csv", far(remote_lab, path))
    assert r.returncode != 0, r
    good(scp(remote_lab, *old, here / "grades.csv", far(remote_lab, "ok")))
    assert s.run("import os; os.listdir()") == "['ok']"
    assert not os.path.exists("/cbtest-out")
    assert not os.path.exists("/tmp/cbtest-out")


@pytest.mark.sampled(2)
def test_nothing_of_the_host_is_read(remote_lab, here):
    (remote_lab.home / "private").write_text("mine")
    remote_lab.session().start()
    for path in (remote_lab.home / "private", "/etc/shadow", "/root/.bashrc",
                 "/etc/ssh/sshd_config", "/proc/1/environ"):
        r = scp(remote_lab, far(remote_lab, path), here / "got")
        assert r.returncode != 0, r
    good(scp(remote_lab, far(remote_lab, "/etc/passwd"), here / "got"))
    assert remote_lab.user.pw_name not in (here / "got").read_text()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("command", [
    "scp -t x; id -u; hostname", "scp -S /bin/sh -t $(hostname)",
    "rsync --server --daemon --config=/etc/passwd .",
    "/usr/lib/openssh/sftp-server -d /etc -R; hostname",
    "scp -t `hostname`"])
def test_what_comes_with_the_command_stays_in_the_jail(remote_lab, command):
    """A shell reads it, in a jail beside the session."""
    s = remote_lab.session().start()
    r = remote_lab.run(command, stdin=b"")
    out = r.stdout + r.stderr
    assert os.uname().nodename.encode() not in out, r
    assert str(remote_lab.user.pw_uid).encode() not in out, r
    assert s.run("6 * 7") == "42"


DIAL = """\
import socket
for how in ("socket", "socketpair"):
    try:
        if how == "socket":
            s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        else:
            s = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0]
        s.connect("/home/ear")
        socket.send_fds(s, [b"x"], [0])
        print(how, "heard")
    except OSError as e:
        print(how, e.strerror)
a, b = socket.socketpair()
print("pair", a.send(b"x"))
"""


@pytest.mark.sampled(2)
def test_a_copy_hands_no_descriptor_to_a_cell(remote_lab, here):
    """It would keep what belongs to the jail of the copy: file systems in
    memory and ptys, which end with it and count for nobody then."""
    s = remote_lab.session().start()
    (here / "dial.py").write_text(DIAL)
    good(scp(remote_lab, here / "dial.py", far(remote_lab, "dial.py")))
    s.run("import socket\near = socket.socket(socket.AF_UNIX, "
          "socket.SOCK_DGRAM)\near.bind('/home/ear')")
    r = remote_lab.run("scp -t x; python3 dial.py")
    assert r.stdout.decode().lstrip("\0").splitlines() == [
        "socket Operation not permitted",
        "socketpair Operation not permitted", "pair 1"], r
    s.run("import dial")            # the control
    assert "socketpair heard" in s.screen_text(), s.picture()
    assert s.run("len(socket.recv_fds(ear, 1, 1)[1])") == "1"


def test_a_session_lingers_as_long_as_a_copy_goes_on(brief_lab):
    """The control is the end of this."""
    with subprocess.Popen(
            [*brief_lab.argv("-T"), "scp -t x"], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE) as p:
        first = p.stdout.read(1)
        assert first == b"\0", (
            first, p.communicate(timeout=40 * PATIENCE), p.returncode)
        time.sleep(2 * brief_lab.server.linger)
        out, said = p.communicate(b"C0644 3 x\nabc\0", timeout=40 * PATIENCE)
        assert p.returncode == 0 and out == b"\0\0", (out, said)
    hosttree.until(lambda: not brief_lab.processes(), "the session's end")


def test_where_no_session_goes_on_alone_none_is_begun(alone_lab, here):
    r = scp(alone_lab, "-O", here / "grades.csv", far(alone_lab, "x"))
    assert r.returncode != 0, r
    assert "there is no session to copy files to" in r.stderr, r
    assert "session.linger" in r.stderr, r
    assert not alone_lab.processes()


@pytest.mark.sampled(2)
def test_a_program_that_is_missing_is_named(alone_lab, remote_lab):
    r = alone_lab.run("rsync --server . x")
    assert r.returncode == 1, r
    assert r.stderr == \
        b"cellblock: rsync is not installed on this host\n", r
    remote_lab.session().start()
    if shutil.which("rsync"):       # the control
        r = remote_lab.run("rsync --server . x")
        assert b"not installed" not in r.stderr, r


def test_git_is_refused_as_ever(remote_lab):
    r = remote_lab.run("git-upload-pack 'x'")
    assert r.returncode == 1 and b"git is not served here" in r.stderr, r


def test_it_is_off_by_default(lab, here):
    lab.session().start()
    r = lab.run("scp -t x")
    assert r.returncode == 1 and b"scp is not served here" in r.stderr, r
    assert r.stdout == b""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("how", COPIES)
@pytest.mark.parametrize("out", [False, True])
def test_where_it_is_off_the_client_is_told_a_reason(lab, here, how, out):
    """scp and sftp are a subsystem, whose errors sshd throws away: the
    protocol has to say it."""
    file = here / "grades.csv"
    if not out:
        r = COPIES[how](lab, file, "x")
    elif how == "sftp":
        r = sftp(lab, f"get x {here}/got\n")
    elif how == "rsync":
        r = rsync(lab, far(lab, "x"), here / "got")
    else:
        r = scp(lab, *(["-O"] if how == "scp_old" else []), far(lab, "x"),
                here / "got")
    reason = "Permission denied" if how in ("scp", "sftp") else \
        f"{how.split('_')[0]} is not served here"
    assert r.returncode not in (0, 255) and reason in r.stderr, r
    assert "Connection closed" not in r.stderr, r
    assert not (here / "got").exists() or not (here / "got").read_bytes()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("said", [
    b"\0\0\0\5\1\0\0\0\3", b"\0\0\0\5\1\0\0\0",
    b"\0\0\0\0\1\0\0\0\3" * 9, b"\xff" * 100, bytes(1000),
    b"\0\0\0\5\1\0\0\0\3" + b"\0\0\0\x09\x11abcd" + b"x" * 9],
    ids=["then gone", "cut", "no length", "too long", "nothing", "rest"])
def test_what_is_no_sftp_ends_the_refusal(lab, said):
    r = lab.run("sftp", options=("-s",), stdin=said)
    assert r.returncode == 1 and len(r.stdout) <= 22, r


READ = "print(open('grades.csv').read())"


def test_a_program_finds_what_was_copied(share_lab, here):
    """scp data.csv lab: && ssh lab < hw.py"""
    good(scp(share_lab, here / "grades.csv", far(share_lab, "")))
    r = share_lab.run(stdin=(READ + "\nimport sys; sys.exit(3)").encode())
    assert (r.returncode, r.stdout, r.stderr) == \
        (3, b"ann,1\nbob,2\n\n", b""), r
    r = share_lab.run("open('out', 'w').write('x' * 7)")
    assert (r.returncode, r.stdout) == (0, b"7\n"), r
    s = share_lab.session()
    s.expect("your session from .* is still here")
    s.type("\r")
    assert s.start().run("open('out').read()") == "'xxxxxxx'"
    # While a cell runs, too, and it has nothing of the session but the home.
    s.run("x = 1")
    row = s.enter("import time; print('on'); time.sleep(3); print('off')")
    s.expect_since(row, "^on")
    r = share_lab.run("x")
    assert r.returncode == 1 and b"NameError" in r.stderr, r
    assert share_lab.run("import os; 'out' in os.listdir()").stdout == \
        b"True\n"
    s.expect_since(row, "^off")
    s.wait_prompt()
    # The control: on a terminal, and without a session, a home is empty.
    t = share_lab.session("import os; sorted(os.listdir())")
    assert t.wait_exit() == 0 and "[]" in t.all_text()
    s.leave()
    hosttree.until(lambda: share_lab.run("import os; os.listdir()").stdout
                   == b"[]\n", "the end of the session")


@pytest.mark.sampled(2)
def test_a_program_in_the_home_of_a_session_has_limits(share_lab):
    s = share_lab.session().start()
    r = share_lab.run("import time; time.sleep(50)")
    assert r.returncode == 137 and b"time limit: 10 s" in r.stderr, r
    r = share_lab.run("while True: print('x' * 4096)")
    assert r.returncode == 137 and b"output limit: 1 MiB" in r.stderr, r
    assert s.run("6 * 7") == "42"


@pytest.mark.sampled(2)
def test_without_share_a_program_has_a_home_of_its_own(remote_lab, here):
    good(scp(remote_lab, here / "grades.csv", far(remote_lab, "")))
    r = remote_lab.run(stdin=READ.encode())
    assert r.returncode == 1 and b"FileNotFoundError" in r.stderr, r
