# SPDX-License-Identifier: MIT
"""A session may end in many ways. Nothing of it is ever left on the host."""
import os
import signal
import termios

import pytest

import hosttree

# Root may look into and signal what a person may not.
pytestmark = pytest.mark.both

BUSY = ("import subprocess, os; subprocess.Popen(['sleep', '300'],"
        " start_new_session=True); print('on'); input()")


@pytest.fixture
def busy(cb):
    """A session with a checkpoint and a daemon, in a cell that waits."""
    before = hosttree.mounts()
    s = cb.session()
    s.run("x = 1")
    row = s.enter(BUSY)
    s.expect_since(row, "^on")
    t = cb.tree(s)
    assert t.warden and len(t.guests()) >= 2
    s.tree, s.mounts = t, before
    return s


def assert_nothing_is_left(s):
    s.tree.wait_gone()
    hosttree.wait_removed(lambda: hosttree.mounts() - s.mounts)


def test_nothing_is_left_after_the_exit(cb):
    before = hosttree.mounts()
    s = cb.session()
    s.run("x = 1")
    s.tree, s.mounts = cb.tree(s), before
    assert s.tree.guests()
    assert s.leave() == 0
    assert_nothing_is_left(s)


def test_nothing_is_left_after_sigkill_of_the_front_end(busy):
    busy.tree.kill(busy.pid)
    busy.wait_exit()
    assert_nothing_is_left(busy)


def test_nothing_is_left_after_sigkill_of_the_warden(busy):
    if os.geteuid() != 0 and not may_signal(busy.tree.warden):
        pytest.skip("the kernel lets no ordinary user signal the warden")
    busy.tree.kill(busy.tree.warden)
    assert busy.wait_exit() != 0
    assert "cellblock: " in busy.all_text() or "[" in busy.all_text()
    assert_nothing_is_left(busy)


def may_signal(pid):
    try:
        os.kill(pid, 0)
        return True
    except PermissionError:
        return False


def test_sigkill_of_init_restarts_python_or_ends_the_session(busy):
    if os.geteuid() != 0 and not may_signal(busy.tree.init):
        pytest.skip("the kernel lets no ordinary user signal init")
    old = busy.tree.inside()
    busy.tree.kill(busy.tree.init)
    hosttree.until(lambda: not any(
        hosttree.is_alive(pid, busy.tree.seen[pid]) for _, pid in old),
        "the old jail to be gone")
    busy.wait(lambda: busy.at_prompt() or busy.process.poll() is not None,
              "a prompt or the end")
    if busy.process.poll() is None:
        assert busy.run("6 * 7") == "42"
        busy.tree.look()
        busy.leave()
    assert_nothing_is_left(busy)


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGHUP],
                         ids=lambda s: s.name)
def test_nothing_is_left_after_a_signal(busy, sig):
    busy.process.send_signal(sig)
    busy.wait_exit()
    assert_nothing_is_left(busy)


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGHUP,
                                 signal.SIGQUIT],
                         ids=lambda s: s.name)
def test_a_signal_during_a_cell_restores_the_terminal(session, sig):
    session.enter(r"import time; print('\x1b[?1049h\x1b[?25l\x1b[31mon',"
                  " flush=True); time.sleep(50)")
    session.expect("^on")
    assert session.screen.alternate and session.screen.cursor.hidden
    session.process.send_signal(sig)
    assert session.wait_exit() == 128 + sig
    assert not session.screen.alternate and not session.screen.cursor.hidden
    assert session.screen.cursor.attrs.fg == "default"
    assert session.terminal_modes() == session.before


def test_nothing_is_left_after_a_hangup(busy):
    os.close(busy.master)
    os.close(busy.slave)
    busy.closed = True
    hosttree.until(lambda: busy.process.poll() is not None,
                   "the session to end after the hangup")
    assert_nothing_is_left(busy)


def test_a_signal_at_a_question_sets_the_exit_status(session):
    session.run("open('a', 'w').close()")
    row = session.enter(":wipe")
    session.expect_since(row, r"\[y/N\]")
    session.process.send_signal(signal.SIGTERM)
    assert session.wait_exit() == 128 + signal.SIGTERM
    assert session.terminal_modes() == session.before


def test_a_signal_during_a_command_ends_the_session(cb, session):
    session.run("open('a', 'w').close()")
    warden = cb.tree(session).warden
    if os.geteuid() != 0 and not may_signal(warden):
        pytest.skip("the kernel lets no ordinary user signal the warden")
    os.kill(warden, signal.SIGSTOP)
    session.enter(":files")
    session.wait(lambda: session.terminal_modes()[3] & termios.ICANON,
                 "the command to wait for the warden")
    session.process.send_signal(signal.SIGTERM)
    os.kill(warden, signal.SIGCONT)
    assert session.wait_exit() == 128 + signal.SIGTERM


def test_nothing_is_left_after_sigkill_during_a_fork_bomb(cb):
    before = hosttree.mounts()
    s = cb.session("--set", "session.processes=30")
    row = s.enter("import os; print('on')\nwhile True:\n"
                  "    try: os.fork()\n    except OSError: pass")
    s.expect_since(row, "on")
    s.tree, s.mounts = cb.tree(s), before
    s.process.kill()
    s.wait_exit()
    assert_nothing_is_left(s)


def test_the_quit_command_ends_the_session(cb):
    s = cb.session()
    s.enter(":quit")
    assert s.wait_exit() == 0


def test_ctrl_z_in_a_cell_does_not_stop_the_session(session):
    row = session.enter("x = input('? ')")
    session.expect_since(row, r"^\?")
    session.type("\x1a")
    session.type("ok\r")
    session.wait_prompt()
    assert hosttree.stat_of(session.pid)[0] != b"T"


def test_guests_have_no_privilege_on_the_host(cb):
    s = cb.session()
    s.run("x = 1")
    t = cb.tree(s)

    def check(pid):
        status = hosttree.status_of(pid)
        uids = set(status["Uid"].split())
        assert "0" not in uids and "65534" not in uids
        if os.geteuid() == 0:
            assert all(int(u) >= 0x7f000000 for u in uids)
            assert not status["Groups"].strip()
        hosttree.assert_powerless(pid)

    hosttree.check_each([t.init, *t.guests()], check)


def test_the_front_end_has_no_capability_and_a_seccomp_filter(cb):
    s = cb.session()
    status = hosttree.status_of(s.pid)
    for name in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
        assert int(status[name], 16) == 0, name
    assert status["NoNewPrivs"] == "1" and status["Seccomp"] == "2"


def test_two_sessions_share_no_id_and_no_files(cb):
    a, b = cb.session(), cb.session()
    a.run("open('/tmp/mine', 'w').write('a'); open('/dev/shm/m', 'w').close()")
    assert b.run("import os; os.listdir('/tmp'), os.listdir('/dev/shm'),"
                 " os.listdir('/home')") == "([], [], [])"
    if os.geteuid() == 0:
        first, second = (hosttree.status_of(cb.tree(s).init)["Uid"]
                         for s in (a, b))
        assert first != second
