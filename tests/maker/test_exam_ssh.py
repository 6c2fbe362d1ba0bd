# SPDX-License-Identifier: MIT
"""An exam over a real sshd, with the snippet of etc: a student who tries
everything."""
import os
import pathlib
import re
import socket
import subprocess

import pytest

import freeport
import hosttree
import sshd
import term
from exams import Exam, begin, write
from world import PATIENCE

SSHD = sshd.find()
ETC = pathlib.Path(__file__).resolve().parent.parent.parent / "etc"
pytestmark = pytest.mark.skipif(not SSHD, reason="sshd is not installed")


class Server:
    """In the namespace of a host; `ann` is in the group that the snippet
    means."""

    def __init__(self, host):
        self.host, self.ann = host, host.people[0]
        for key in "host", "client":
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f",
                            str(host.dir / f"key-{key}")], check=True)
        self.port = freeport.pick()
        snippet = (ETC / "sshd_config.d/cellblock.conf").read_text().replace(
            "/usr/local/bin/cellblock", str(host.binary)).replace(
                "Group cellblock", f"Group {self.ann.name}")
        (host.dir / "sshd").write_text(f"""\
ListenAddress 127.0.0.1:{self.port}
HostKey {host.dir}/key-host
{sshd.KEX}
PidFile none
UsePAM no
StrictModes no
AuthorizedKeysFile {host.dir}/key-client.pub
PasswordAuthentication no
AcceptEnv *
Subsystem sftp internal-sftp
{snippet}""")
        subprocess.run([*host.inside(), "mkdir", "-p", sshd.EMPTY], check=True)
        with open(host.dir / "sshd.log", "wb") as log:
            self.process = subprocess.Popen(
                [*host.inside(), SSHD, "-D", "-e", "-f",
                 str(host.dir / "sshd")], stdin=subprocess.DEVNULL,
                stdout=log, stderr=log)
        hosttree.until(self.is_up, "the ssh server")

    def is_up(self):
        assert self.process.poll() is None, \
            (self.host.dir / "sshd.log").read_text()
        return self.reaches(self.port)

    @staticmethod
    def reaches(port):
        with socket.socket() as s:
            return s.connect_ex(("127.0.0.1", port)) == 0

    def options(self, *more):
        return ["-F", "none", "-i", str(self.host.dir / "key-client"),
                "-o", "StrictHostKeyChecking=no", "-o", "LogLevel=ERROR",
                "-o", "UserKnownHostsFile=/dev/null", "-o", "BatchMode=yes",
                *more]

    def argv(self, *options):
        return ["ssh", *self.options(*options), "-p", str(self.port), "--",
                f"{self.ann.name}@127.0.0.1"]

    def run(self, *command, stdin=b"", options=()):
        return subprocess.run([*self.argv("-T", *options), *command],
                              input=stdin, capture_output=True, check=False,
                              timeout=60 * PATIENCE)

    def copy(self, *args):
        return subprocess.run(
            ["scp", *self.options(), "-P", str(self.port), *map(str, args)],
            capture_output=True, timeout=60 * PATIENCE, check=False)

    def far(self, path):
        return f"{self.ann.name}@127.0.0.1:{path}"

    def session(self, *command, options=()):
        s = term.Session([*self.argv("-tt", *options), *command],
                         env={**os.environ, "TERM": "xterm-256color"})
        self.ann.open.append(s)
        return s

    def stop(self):
        self.process.terminate()
        self.process.wait()


@pytest.fixture(name="exam")
def _exam(host):
    exam = Exam(host)
    begin(host)
    # No person comes back to a session from elsewhere.
    exam.set(-60, 3600, more="[session]\nlinger = 0\nattach = no\n"
             "[files]\nremote = no\n")
    return exam


@pytest.fixture(name="lab")
def _lab(host, exam):
    server = Server(host)
    yield server
    server.stop()


def test_files_come_in_and_go_out_by_no_way(host, exam, lab, tmp_path):
    notes, back = tmp_path / "notes.py", tmp_path / "back.py"
    notes.write_text("solution = 42\n")
    s = lab.session().start()
    s.expect(r"exam: .* all that you type is\s+(¦\s+)?recorded")
    write(s, "a.py", "mine")
    for old in ["-O"], ["-s"]:
        for pair in (notes, lab.far("notes.py")), (lab.far("a.py"), back), \
                (lab.far("/etc/passwd"), back):
            r = lab.copy(*old, *pair)
            assert r.returncode != 0, r
    for command in "scp -t .", "rsync --server . .", "sftp-server":
        r = lab.run(command, stdin=b"C0644 4 x\nabc\n\0")
        assert r.returncode != 0 and r.stdout == b"", r
    r = subprocess.run(["sftp", *lab.options("-P", str(lab.port)), "-b", "-",
                        f"{lab.ann.name}@127.0.0.1"], input=b"get a.py\n",
                       capture_output=True, timeout=60 * PATIENCE,
                       check=False)
    assert r.returncode != 0, r
    # (the standard error of that session; nothing else of the host)
    assert not back.exists() and list(lab.ann.home.rglob("*.py")) == []
    assert s.run("import os; sorted(os.listdir())") == "['a.py']"
    s.run(f":upload {notes}")
    s.run(":download a.py /tmp")
    assert not pathlib.Path("/tmp/a.py").exists()
    s.leave()
    assert exam.until(lab.ann, ["a.py"]) == {"a.py": "mine"}


def test_nothing_is_forwarded(lab):
    far, near = freeport.pick(), freeport.pick()
    for way in (["-L", f"{near}:127.0.0.1:{lab.port}"], ["-D", str(near)],
                ["-R", f"{far}:127.0.0.1:{lab.port}"],
                ["-w", "any"], ["-R", "/tmp/cbtest.sock:127.0.0.1:22"],
                ["-W", f"127.0.0.1:{lab.port}"]):
        p = subprocess.Popen(
            [*lab.argv("-N", "-o", "ExitOnForwardFailure=yes", *way)]
            if way[0] != "-W" else lab.argv(*way),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE)
        if way[0] in ("-L", "-D"):
            hosttree.until(lambda: lab.reaches(near) or p.poll() is not None,
                           "the client's end")
            with socket.create_connection(("127.0.0.1", near)) as c:
                if way[0] == "-D":
                    c.sendall(b"\5\1\0")
                    c.recv(2)
                    c.sendall(b"\5\1\0\1\x7f\0\0\1"
                              + lab.port.to_bytes(2, "big"))
                assert b"SSH-" not in c.recv(64)
            p.kill()
            p.wait()
        else:
            out, _ = p.communicate(timeout=60 * PATIENCE)
            assert p.returncode != 0 and b"SSH-" not in out, way
        assert not lab.reaches(far)


def test_a_student_who_tries_everything(host, exam, lab):
    ann, bob = host.people
    other = bob.session().start()
    s = lab.session().start()
    write(s, "a.py", "mine")
    # Programs run, and are written down.
    assert lab.run("6 * 7").stdout == b"42\n"
    assert lab.run(stdin=b"print('by a file')").stdout == b"by a file\n"
    # No login reaches another session, another's, or the host.
    for command in "attach 1", "watch 1", f"attach {bob.name}/1", \
            f"end {bob.name}/1", "/bin/sh -c id", "--maker", \
            "-s exam.end=2099-01-01 10:00", "cellblock -s log.transcript=":
        r = lab.run(command)
        assert r.returncode != 0 and b"uid=" not in r.stdout, (command, r)
        r = lab.session(command)
        assert r.wait_exit() != 0, command
    assert other.run("'still here'") == "'still here'"
    # The environment of the client.
    for name, value in (("TZ", "XXX-20"), ("XDG_CONFIG_HOME", "/tmp"),
                        ("LD_PRELOAD", "/tmp/x.so"), ("HOME", "/tmp"),
                        ("SSH_ORIGINAL_COMMAND", "1"),
                        ("XDG_STATE_HOME", "/tmp")):
        r = lab.run("'it ran'", options=("-o", f"SetEnv={name}={value}"))
        if r.returncode == 0:
            assert r.stdout in (b"'it ran'\n", b"1\n"), (name, r)
    # The jail: no clock, no transcript, no way to what is outside.
    for line in ("import time; time.clock_settime(time.CLOCK_REALTIME, 0)",
                 f"open({str(exam.transcripts)!r})",
                 f"open({str(exam.place)!r})",
                 "open('/dev/kmsg', 'w')"):
        row = s.enter(line)
        s.expect_since(row, "^(PermissionError|FileNotFoundError|OSError)")
        s.wait_prompt()
    s.run("import os; os.kill(1, 9)")
    s.run("f = open('.junk', 'wb')\ntry:\n    while True:"
          " f.write(bytes(1 << 20))\nexcept OSError: print('full')\n")
    s.run("import os; os.kill(-1, 9)")
    s.run("'after that'")
    # The line, and all that is the student's, from one moment to the other.
    hosttree.send(
        pid for pid in hosttree.mine()
        if int(hosttree.status_of(pid).get("Uid", "0").split()[0]) == ann.uid)
    s.process.kill()
    assert exam.until(ann, ["a.py"]) == {"a.py": "mine"}
    exam.until_written(
        "open('a.py', 'w')", "6 * 7", "\n42\n", "print('by a file')",
        "\nby a file\n", "time.clock_settime", "\n'after that'\n",
        "from 127.0.0.1", "the front end has gone")
    assert all(p.stat().st_uid == 0 for p in exam.transcripts.iterdir())
    other.leave()


def test_nothing_begins_outside_of_its_times(host, exam, lab):
    for times, said in ((3600, 7200), b"the exam begins at"), \
            ((-7200, -3600), b"the exam ended at"):
        exam.set(*times)
        for r in (lab.run("print(1)"), lab.run(stdin=b"print(1)"),
                  lab.run("print(1)", options=("-o", "SetEnv=TZ=XXX-20"))):
            assert r.returncode != 0 and b"1\n" not in r.stdout, r
            assert said in r.stderr, r
        r = lab.run("cellblock-mcp", options=("-s",), stdin=b"{}\n")
        assert r.returncode == 78 and r.stdout == b"", r
        s = lab.session()
        assert s.wait_exit() == 78 and re.search(said.decode(), s.all_text())
