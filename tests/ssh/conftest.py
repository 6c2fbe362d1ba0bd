# SPDX-License-Identifier: MIT
"""An ssh server on loopback with two accounts: the login shell of one is
cellblock; the other has a plain shell and a ForceCommand."""
import os
import pathlib
import pwd
import re
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile

import pytest

import freeport
import hosttree
import sshd
import term
from world import CELLBLOCK, PATIENCE

SSHD = sshd.find()
ETC = pathlib.Path(__file__).resolve().parent.parent.parent / "etc"

# The same under its other name, such as python3.11.
OTHER_PYTHON = os.path.realpath("/usr/bin/python3")


def run(*argv):
    subprocess.run(argv, check=True, capture_output=True)


class Server:
    def __init__(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="cbtest-ssh-"))
        self.dir.chmod(0o755)
        self.binary = self.dir / "cellblock"
        shutil.copy(CELLBLOCK, self.binary)
        self.users, self.process = {}, None

    def start(self, policy=None, hide=None, first=""):
        """With a policy, the server and the sessions see it as the
        administrator's configuration, and no program `hide`. `first` is what
        another file says to sshd."""
        tag = secrets.token_hex(2)
        self.add_user("shell", f"cellblock-test-s{tag}", self.binary)
        self.add_user("forced", f"cellblock-test-f{tag}", "/bin/sh")
        for key in ("host", "client"):
            run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f",
                str(self.dir / key))
        self.port = freeport.pick()
        (self.dir / "config").write_text(first + f"""\
ListenAddress 127.0.0.1:{self.port}
HostKey {self.dir}/host
{sshd.KEX}
PidFile none
UsePAM no
StrictModes no
AuthorizedKeysFile {self.dir}/client.pub
PasswordAuthentication no
AcceptEnv *
Subsystem sftp /usr/lib/openssh/sftp-server
Subsystem cellblock-mcp {self.binary} --mcp
Subsystem cellblock-named cellblock-mcp
Match User {self.users['forced'].pw_name}
    ForceCommand {self.binary} --login
""")
        self.log = open(self.dir / "log", "wb")
        argv = [SSHD, "-D", "-e", "-f", str(self.dir / "config")]
        if policy:
            place = self.dir / "etc" / "cellblock"
            place.mkdir(parents=True)
            (place / "cellblock.conf").write_text(policy)
            argv = ["unshare", "-m", "sh", "-c",
                    "mount -t overlay -o lowerdir=$0/etc:/etc x /etc && "
                    "{ [ ! -e $1 ] || mount --bind /dev/null $1; } && "
                    'shift && exec "$@"',
                    str(self.dir), hide or "/nonexistent", *argv]
        self.process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        hosttree.until(self.is_up, "the ssh server")

    def add_user(self, kind, name, shell):
        run("useradd", "-r", "-m", "-d", str(self.dir / kind), "-s",
            str(shell), "-p", "*", name)
        self.users[kind] = pwd.getpwnam(name)

    def is_up(self):
        assert self.process.poll() is None, (self.dir / "log").read_text()
        with socket.socket() as s:
            return s.connect_ex(("127.0.0.1", self.port)) == 0

    def stop(self):
        if self.process:
            self.process.terminate()
            self.process.wait()
            self.log.close()
        for user in self.users.values():
            subprocess.run(["userdel", "-f", user.pw_name],
                           capture_output=True, check=False)
        shutil.rmtree(self.dir, ignore_errors=True)


class Account:
    def __init__(self, server, kind):
        self.server, self.kind = server, kind
        self.user = server.users[kind]
        self.home = pathlib.Path(self.user.pw_dir)
        self.open = []

    def argv(self, *options):
        return ["ssh", "-F", "none", "-p", str(self.server.port),
                "-i", str(self.server.dir / "client"),
                "-o", "StrictHostKeyChecking=no", "-o", "LogLevel=ERROR",
                "-o", "UserKnownHostsFile=/dev/null", "-o", "BatchMode=yes",
                *options, "--", f"{self.user.pw_name}@127.0.0.1"]

    def run(self, *command, stdin=b"", options=(), env=None):
        """Run ssh lab COMMAND < stdin without a terminal."""
        return subprocess.run(
            [*self.argv("-T", *options), *command], input=stdin,
            capture_output=True, timeout=40 * PATIENCE, check=False,
            env={**os.environ, **(env or {})})

    def session(self, *command, options=()):
        s = term.Session([*self.argv("-tt", *options), *command],
                         env={**os.environ, "TERM": "xterm-256color"})
        self.open.append(s)
        return s

    def another(self, *command):
        """A new session beside those that are offered. One that is slow to answer
        is not offered: without any a new one begins at once."""
        s = self.session(*command)
        offer = re.compile(r"Enter\s+(alone\s+)?for\s+a\s+new\s+one")
        s.wait(lambda: s.at_prompt() or offer.search(s.screen_text()),
               "an offer, or a prompt")
        if not s.at_prompt():
            s.type("\r")
        return s.start()

    def processes(self):
        """The processes of this account on the host, without those of sshd."""
        found = []
        for pid in hosttree.all_pids():
            status = hosttree.status_of(pid)
            if status.get("Uid", "").split()[:1] == [str(self.user.pw_uid)] \
                    and status.get("Name") != "sshd" \
                    and status.get("State", "Z")[0] != "Z":
                found.append(pid)
        return found

    def end_sessions(self):
        """Those that have outlived their connection, too."""
        hosttree.send(self.processes(), signal.SIGTERM)

    def close(self):
        for s in self.open:
            if s.process.poll() is None:    # a test may have stopped it
                s.process.send_signal(signal.SIGCONT)
            s.close()
        self.end_sessions()
        hosttree.until(lambda: not self.processes(),
                       f"the end of the sessions of {self.user.pw_name}")


def serve(policy=None, hide=None, first=""):
    if os.geteuid() != 0:
        pytest.skip("making accounts for an ssh server takes root")
    if not SSHD:
        pytest.skip("sshd is not installed")
    s = Server()
    try:
        s.start(policy, hide, first)
        yield s
    finally:
        s.stop()


@pytest.fixture(scope="session")
def server():
    yield from serve()


@pytest.fixture(scope="session")
def etc_server():
    """The settings of the file in etc for the whole server, and for connections
    that ask for nothing, after a second."""
    words = (ETC / "sshd_config.d/cellblock.conf").read_text()
    nothing = re.search(r"(UnusedConnectionTimeout) \S+", words)[1]
    yield from serve(first=words[:words.index("Match ")].replace(
        "Subsystem", "#") + f"{nothing} 1\n")


@pytest.fixture(scope="session")
def locked_server():
    """A cell that waits outlasts several logins, on a busy host too."""
    yield from serve("[session]\nper_user = 2\n[policy]\nlocked = yes\n"
                     f"[cell]\ntimeout = {60 * PATIENCE:.0f}s\n"
                     f"cpu = {60 * PATIENCE:.0f}s\n"
                     f"[python]\nexecutable = /usr/bin/python3 {OTHER_PYTHON}\n")


@pytest.fixture(scope="session")
def remote_server():
    """A cell that waits outlasts several copies, on a busy host too."""
    yield from serve("[files]\nremote = yes\nmax_file = 4M\n"
                     f"[cell]\ntimeout = {60 * PATIENCE:.0f}s\n"
                     "[home]\nsize = 8M\n[policy]\nlocked = yes\n")


@pytest.fixture(scope="session")
def share_server():
    yield from serve("[files]\nremote = yes\nshare = yes\n"
                     "[session]\nper_user = 2\n[policy]\nlocked = yes\n")


@pytest.fixture(scope="session")
def written_server():
    """All is written down, in a directory that nobody may list."""
    place = pathlib.Path(tempfile.mkdtemp(prefix="cbtest-ssh-log-"))
    place.chmod(0o1733)
    given = place / "given"
    given.mkdir()
    given.chmod(0o1733)
    for s in serve(f"[log]\ntranscript = {place}\n[policy]\nlocked = yes\n"
                   f"[files]\ndownload_to = {given}\n"):
        s.transcripts, s.given = place, given
        yield s
    shutil.rmtree(place)


@pytest.fixture(scope="session")
def sessions_server():
    """No programs."""
    yield from serve("[policy]\nlocked = yes\nprograms = no\n")


@pytest.fixture(scope="session")
def brief_server():
    linger = int(3 * PATIENCE)  # seconds: a client of files has begun by then
    for s in serve(f"[files]\nremote = yes\n[session]\nlinger = {linger}s\n"):
        s.linger = linger
        yield s


@pytest.fixture(scope="session")
def alone_server():
    """Nobody's session goes on alone, and a program is missing."""
    yield from serve("[files]\nremote = yes\n[session]\nlinger = 0\n",
                     hide="/usr/bin/rsync")


def log_in(server, kind):
    account = Account(server, kind)
    yield account
    account.close()


@pytest.fixture
def share_lab(share_server):
    yield from log_in(share_server, "forced")


@pytest.fixture(params=["shell", "forced"])
def written_lab(written_server, request):
    for path in written_server.transcripts.glob("*.log"):
        path.unlink()
    yield from log_in(written_server, request.param)


@pytest.fixture(params=["shell", "forced"])
def sessions_lab(sessions_server, request):
    yield from log_in(sessions_server, request.param)


@pytest.fixture
def etc_lab(etc_server):
    yield from log_in(etc_server, "forced")


@pytest.fixture
def brief_lab(brief_server):
    yield from log_in(brief_server, "shell")


@pytest.fixture
def alone_lab(alone_server):
    yield from log_in(alone_server, "shell")


@pytest.fixture(params=["shell", "forced"])
def remote_lab(remote_server, request):
    yield from log_in(remote_server, request.param)


@pytest.fixture(params=["shell", "forced"])
def lab(server, request):
    yield from log_in(server, request.param)


@pytest.fixture
def plain_lab(server):
    """A person with an ordinary shell, who starts cellblock."""
    if "plain" not in server.users:
        server.add_user("plain", f"cellblock-test-p{secrets.token_hex(2)}",
                        "/bin/bash")
    yield from log_in(server, "plain")


@pytest.fixture(params=["shell", "forced"])
def locked_lab(locked_server, request):
    yield from log_in(locked_server, request.param)
