# SPDX-License-Identifier: MIT
"""The socket at which root's maker listens: who is told what when nobody can
answer there, and whose files the one who answers sees."""
import signal
import subprocess

import pytest

import hosttree
from hindered import without_processes
from makerhost import logged
from world import PATIENCE

PATH = "/run/cellblock/maker"


def has_socket(host):
    return subprocess.run([*host.inside(), "test", "-S", PATH],
                          check=False).returncode == 0


def test_a_maker_that_ends_removes_its_socket(maker, ann):
    assert has_socket(maker)
    assert maker.kill(signal.SIGTERM) == 0
    assert not has_socket(maker)
    r = ann.run("-c", "print(1)")
    assert (r.code, r.text, r.said) == (0, "1\n", ""), r


def test_a_second_maker_leaves_the_firsts_socket(maker, ann):
    second = subprocess.run(
        [*maker.inside(), str(maker.binary), "--maker"],
        timeout=30 * PATIENCE,
        capture_output=True, check=False)
    assert second.returncode == 1 and has_socket(maker)
    assert ann.run("-c", "print(1)").text == "1\n"
    hosttree.until(lambda: len(logged(maker)) == 1, "the session's line")


def test_a_socket_that_nobody_listens_at_is_said_by_check_alone(maker, ann):
    maker.kill()
    assert has_socket(maker)
    for args in ("-c", "print(1)"), ("-e", "1"):
        r = ann.run(*args)
        assert (r.code, r.text, r.said) == (0, "1\n", ""), r
    said = ann.run("--check").said
    assert said.count("Connection refused") == 1, said
    assert ann.run("-s", "session.maker=off", "--check").said == ""
    r = ann.run("-s", "session.maker=require", "-c", "print(1)")
    assert (r.code, r.text) == (125, "") and "Connection refused" in r.said, r


# ---- no process can be had ----

@pytest.fixture(name="few")
def _few(host):
    """A maker, and a file: while it is there the maker can fork nothing."""
    env, file = without_processes(host.dir)
    host.under = ["env", *(f"{name}={value}" for name, value in env.items())]
    host.start()
    return file


POISON = """
import order, os
print(order.ask(order.order(), os.pipe()[:1])[0])
"""


def test_a_fork_that_fails_ends_no_maker(host, few):
    ann, bob = host.people
    assert ann.run("-c", "print(1)").text == "1\n"
    few.touch()
    # One child waits already, or the maker could not have it any more.
    refused = "the maker of sessions: start a process: Resource temporarily"
    hosttree.until(lambda: refused in ann.run("-c", "print(2)").said,
                   "a refusal")
    for _ in range(3):
        r = bob.run("-s", "session.maker=require", "-c", "print(3)")
        assert (r.code, r.text) == (125, "") and refused in r.said, r
    assert ann.asks(POISON) == "False\n"
    assert host.maker.poll() is None, host.said()
    few.unlink()
    before = len(logged(host))
    for n in range(3):
        assert ann.run("-s", "session.maker=require", "-c", "print(4)").text \
            == "4\n"
    hosttree.until(lambda: len(logged(host)) == before + 3, "three sessions")


# ---- a service manager's socket ----

# It listens, and has the maker started by a child, as systemd does.
MANAGER = """
import ctypes, os, signal, socket, sys
os.makedirs("/run/cellblock", 0o711, exist_ok=True)
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.bind("/run/cellblock/maker")
os.chmod("/run/cellblock/maker", 0o666)
s.listen()
signals = {signal.SIGTERM, signal.SIGCHLD}
signal.pthread_sigmask(signal.SIG_BLOCK, signals)
child = os.fork()
apart = ctypes.CDLL(None, use_errno=True).unshare
if (sys.argv[1] == "maker") == (child == 0) and apart(0x20000) < 0:
    os._exit(1)
if child == 0:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, signals)
    os.dup2(os.dup(s.fileno()), 3)
    os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS="1")
    os.execv(sys.argv[2], sys.argv[2:])
while signal.sigwait(signals) == signal.SIGTERM:
    os.kill(child, signal.SIGTERM)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def root_runs(host):
    p = subprocess.run([*host.inside(), str(host.binary), "-c", "print(1)"],
                       env={"HOME": str(host.dir), "PATH": "/usr/bin:/bin"},
                       cwd="/", stdin=subprocess.DEVNULL, capture_output=True,
                       text=True, timeout=60 * PATIENCE, check=False)
    assert (p.returncode, p.stdout, p.stderr) == (0, "1\n", ""), p


@pytest.mark.parametrize("apart", ["maker", "manager"])
def test_roots_programs_are_the_makers_where_it_sees_the_same_files(
        host, apart):
    """Another process than the maker listens."""
    host.under = ["/usr/bin/python3", "-c", MANAGER, apart]
    host.start()
    root_runs(host)
    # The control: an ordinary person's is made by the maker in any case.
    assert host.people[0].run("-c", "print(1)").text == "1\n"
    hosttree.until(lambda: any(who == host.people[0].name
                               for who, _, _ in logged(host)), "its line")
    assert [who for who, _, _ in logged(host)].count("root") == \
        (apart == "manager")


def test_a_service_managers_socket_stays(host):
    host.under = ["/usr/bin/python3", "-c", MANAGER, "manager"]
    host.start()
    assert host.kill(signal.SIGTERM) == 0
    assert has_socket(host)
