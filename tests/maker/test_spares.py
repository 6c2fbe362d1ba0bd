# SPDX-License-Identifier: MIT
"""Jails that root's maker makes ahead: they are as any other, and somebody's own
from the moment that they are leased."""
import os
import re
import signal
import subprocess
import time

import pytest

import hosttree
from makerhost import BOTH, JAIL_UIDS, KINDS, as_any_other, made, ready, start, \
    was_ahead
from world import PATIENCE

def wardens(host):
    """The maker's children that have a host id: those of the spares, where
    nobody has a session."""
    found = []
    for pid in hosttree.all_pids():
        status = hosttree.status_of(pid)
        if status.get("PPid") == str(host.maker.pid) \
                and int(status.get("Uid", "0").split()[0]) in JAIL_UIDS:
            found.append(pid)
    return found


@as_any_other
def test_a_session_is_as_any_other(host, spare):
    ann, _ = start(host, spare)
    ann.env["TERM"] = "vt100"
    s = ann.session().start()
    hosttree.until(lambda: "vt100" in s.run(
        "import os; os.environ['TERM']"), "the terminal's name")
    assert "('vt100', 'C.UTF-8', False)" in s.run(
        "os.popen('echo $TERM').read().strip(), os.environ['LANG'],"
        " 'NO_COLOR' in os.environ")
    assert "columns=80, lines=24" in s.run("os.get_terminal_size()")
    assert "['os']" in s.run("[n for n in dir() if n[0] != '_']")
    assert "[]" in s.run("os.listdir('.') + os.listdir('/tmp')")
    s.run("x = 41")
    s.run("x = 42")
    s.run(":undo")
    assert "41" in s.run("x")
    s.run("open('kept', 'w').close()")
    s.run(":reset")
    assert "NameError" in s.run("x")
    assert "('vt100', ['kept'])" in s.run(
        "import os; os.environ['TERM'], os.listdir('.')")
    assert re.search(r"memory\s.*cgroup v[12]", s.run(":limits"))
    s.run("os.remove('kept')")
    s.leave()
    assert was_ahead(host) == bool(spare)


# It runs when Python loads what cells need.
LOADED = """import os
os.system('stty -echo -onlcr </dev/tty')
open('/tmp/left', 'w').close()
"""


@BOTH
def test_a_first_cell_finds_its_tty_as_any_other(host, spare):
    packages = host.dir / "packages"
    packages.mkdir()
    (packages / "sitecustomize.py").write_text(LOADED)
    ann, _ = start(host, spare, f"[python]\npackages = {packages}\n")
    if spare:
        # In the jail for a session, and in the one for --eval, each with its
        # init.
        hosttree.until(lambda: sum(
            os.path.exists(f"/proc/{pid}/root/tmp/left")
            for pid in hosttree.descendants(host.maker.pid)) >= 4,
            "what Python loads")
    s = ann.session().start()
    text = s.run("import os; t = os.popen('stty -a </dev/tty').read().split();"
                 " os.path.exists('/tmp/left'), '-echo' in t, '-onlcr' in t")
    # Without a spare this cell may be the one that loads it.
    assert "(True, False, False)" in text or \
        not spare and "(True, True, True)" in text, text
    assert was_ahead(host) == bool(spare)


@as_any_other
def test_a_window_has_the_size_of_its_terminal(host, spare):
    ann, _ = start(host, spare)
    s = ann.session().start()
    s.resize(33, 99)
    hosttree.until(lambda: "columns=99, lines=33" in s.run(
        "import os; os.get_terminal_size()"), "the size")
    assert was_ahead(host) == bool(spare)


SECONDS = int(3 * PATIENCE)
PATIENT = "[cell]\ntimeout = 60s\n"  # a limit that STRICT is not looser than
STRICT = ["-M", "64M", "-s", "session.processes=9", "-s", "home.size=1M", "-s",
          "home.files=30", "-s", "session.cpus=0.5", "-s",
          "python.recursion=300", "-t", f"{SECONDS}s"]


@as_any_other
def test_the_limits_of_a_session_are_the_persons(host, spare):
    ann, _ = start(host, spare, PATIENT)
    s = ann.session(*STRICT).start()
    s.run("import os, sys, threading")
    assert "(16777216, 16777216, 1048576, 31)" in s.run(
        "tuple(os.statvfs(d).f_blocks * 4096 for d in"
        " ('/tmp', '/dev/shm', '.')) + (os.statvfs('.').f_files,)")
    assert "(300, '1')" in s.run(
        "sys.getrecursionlimit(), os.environ['OMP_NUM_THREADS']")
    assert "No space left" in s.run("open('big', 'wb').write(b'x' * 2**21)")
    s.run("os.remove('big')")
    assert "start new thread" in s.run(
        "for _ in range(40): threading.Thread(target=threading.Event().wait,"
        " daemon=True).start()")
    assert "memory limit: 64 MiB" in s.run("x = b'x' * 100_000_000")
    assert f"time limit: {SECONDS} s" in s.run(
        "import time; time.sleep(99)")
    assert re.search(r"processes\s+9\s", s.run(":limits"))
    s.run(":reset")
    assert "(300, 1048576)" in s.run(
        "import os, sys; sys.getrecursionlimit(),"
        " os.statvfs('.').f_blocks * 4096")
    s.leave()
    assert was_ahead(host) == bool(spare)


@as_any_other
def test_the_limits_of_a_program_are_the_persons(host, spare):
    ann, _ = start(host, spare, PATIENT)
    r = ann.run(*STRICT, "-c", "import os, resource, sys\n"
                "print(os.statvfs('/tmp').f_blocks * 4096,"
                " os.statvfs('.').f_files,"
                " resource.getrlimit(resource.RLIMIT_NPROC)[1],"
                " resource.getrlimit(resource.RLIMIT_FSIZE)[1],"
                " os.environ['OMP_NUM_THREADS'], os.environ['TERM'])")
    assert r.text == "16777216 31 10 16777216 1 xterm-256color\n", r
    assert was_ahead(host) == bool(spare)
    ready(host, spare * KINDS)
    r = ann.run("-M", "64M", "-c", "x = b'x' * 100_000_000")
    assert r.code == 137 and "memory limit: 64 MiB" in r.said, r
    assert was_ahead(host, 2) == bool(spare)
    ready(host, spare * KINDS)
    r = ann.run("-t", "300ms", "-c", "while True: pass")
    assert r.code == 137 and "300" in r.said, r
    assert ann.run("-c", "import sys; print(sys.argv, sys.stdin.read())",
                   "a", stdin=b"b").text == "['-c', 'a'] b\n"


WHAT = """import os, sys
print(sys.argv, sys.stdin.read(), os.environ['TERM'], __name__,
      [os.isatty(fd) for fd in range(3)], sys.stdout.line_buffering,
      [f.seekable() for f in (sys.stdin, sys.stdout, sys.stderr)],
      os.statvfs('/tmp').f_blocks * 4096, sys.flags.isolated,
      '_socket' in sys.modules)
print(len(os.listdir('/proc/self/fd')), os.getcwd(), os.listdir('.'),
      os.get_inheritable(0), open('/proc/self/stat').read().split()[4:8:3],
      sorted(set(os.environ)), file=sys.stderr)
sys.exit(3)"""


@as_any_other
def test_a_cell_is_as_any_other(host, spare):
    """No answer shows the difference."""
    ann, _ = start(host, spare)
    r = ann.run("-M", "64M", "-e", WHAT, stdin=b"in")
    assert r.code == 3 and r.text == (
        "['-e'] in xterm-256color __main__ "
        "[False, False, False] False "
        "[False, False, False] 16777216 1 False\n"), r
    assert r.said.startswith("4 /home [] True "), r
    assert was_ahead(host) == bool(spare)
    for code, text, status in (("6 * 7", "42\n", 0), ("1 / 0", "", 1),
                               ("import os; os.abort()", "", 134)):
        ready(host, spare * KINDS)
        r = ann.run("-e", code)
        assert (r.text, r.code) == (text, status), r
    assert "ZeroDivisionError" in ann.run("-e", "1 / 0").said
    ready(host, spare * KINDS)
    r = ann.run("-t", "500ms", "-e", "print(1)\nwhile True: pass")
    assert r.code == 137 and "500 ms" in r.said, r
    ready(host, spare * KINDS)
    r = ann.run("-M", "64M", "-e", "x = b'x' * 100_000_000")
    assert r.code == 137 and "memory limit: 64 MiB" in r.said, r


@as_any_other
def test_no_package_runs_before_the_program(host, spare):
    packages = host.dir / "packages"
    packages.mkdir()
    (packages / "sitecustomize.py").write_text(
        "with open('/home/ran', 'a') as f:\n    f.write('once')\n")
    ann, _ = start(host, spare, f"[python]\npackages = {packages}\n")
    r = ann.run("-c", "import os; print(open('/home/ran').read(),"
                " os.listdir('/home'), os.listdir('/dev/shm'),"
                " sum(d.isdigit() for d in os.listdir('/proc')))")
    assert r.code == 0 and r.text == "once ['ran'] [] 2\n", r
    assert was_ahead(host) == bool(spare)


def as_root(host, *args, before=()):
    p = subprocess.run([*host.inside(), *before, str(host.binary), *args],
                       env={"HOME": str(host.dir), "PATH": "/usr/bin:/bin"},
                       cwd="/", stdin=subprocess.DEVNULL, capture_output=True,
                       text=True, timeout=60 * PATIENCE, check=False)
    assert (p.returncode, p.stderr) == (0, ""), p
    return p.stdout


def test_roots_programs_have_them_and_need_no_place(host):
    ann, _ = start(host, policy="[maker]\nsessions = 1")
    assert as_root(host, "-c", "print(1)") == "1\n"
    assert was_ahead(host)
    ready(host)
    assert as_root(host, "-e", "2") == "2\n"
    assert was_ahead(host, 2)
    ready(host)
    hosttree.until(lambda: len(wardens(host)) == KINDS, "a free place")
    # A program that sees other files than the maker has a jail of its own.
    assert as_root(host, "-c", "print(3)", before=["unshare", "-m"]) == "3\n"
    s = ann.session().start()
    assert as_root(host, "-c", "print(4)") == "4\n"
    assert as_root(host, "-s", "session.maker=require", "-c", "1") == ""
    s.leave()
    hosttree.until(lambda: ann.run("-c", "1").code == 0, "a free place")
    hosttree.until(lambda: len(made(host)) >= 4, "the log")
    assert [who for who, _ in made(host)] == [
        "root", "root", ann.name, ann.name]


@as_any_other
def test_a_cell_on_a_terminal_is_as_any_other(host, spare):
    ann, _ = start(host, spare)
    ann.env["TERM"] = "vt100"
    s = ann.session("-e", "import os, sys\n"
                    "print([os.ttyname(fd) for fd in range(3)],"
                    " sys.stdout.line_buffering, os.environ['TERM'])\n"
                    "print(os.get_terminal_size(), input('name? '))")
    s.wait(lambda: "name?" in s.all_text(), "the question")
    s.type("ann\r")
    assert s.wait_exit() == 0
    text = s.all_text()
    assert "['/dev/pts/0', '/dev/pts/0', '/dev/pts/0'] True vt100" in text
    assert "os.terminal_size(columns=80, lines=24) ann" in text
    assert was_ahead(host) == bool(spare)
    ready(host, spare * KINDS)
    s = ann.session("-e", "print('begun')\nwhile True: pass")
    s.wait(lambda: "begun" in s.all_text(), "its output")
    s.type("\x03")
    assert s.wait_exit() == 130
    assert "KeyboardInterrupt" in s.all_text()


@as_any_other
def test_a_file_is_copied_beside_it(host, spare):
    ann, _ = start(host, spare, "[files]\nremote = yes\n")
    s = ann.session().start()
    s.run("with open('out', 'w') as f: f.write('kept')")
    r = ann.run("-c", "scp -f out", argv0="-cellblock", stdin=b"\0\0\0")
    assert r.text == "C0644 4 out\nkept\0", r
    s.run("import os; os.remove('out')")
    s.leave()
    assert was_ahead(host) == bool(spare)


def test_sessions_from_spares_are_counted(host):
    ann, bob = start(host, policy="[session]\nper_user = 1\n"
                     "[policy]\nlocked = yes\n")
    first = ann.session().start()
    first.run("1")
    ready(host)
    for _ in range(3):
        r = ann.run("-c", "1", env={"XDG_STATE_HOME": "/nowhere"})
        assert r.code == 75 and "1 session already" in r.said, r
    r = bob.run("-c", "print(1)")
    assert r.text == "1\n" and was_ahead(host, 2)  # the spare is still there
    first.leave()
    hosttree.until(lambda: ann.run("-c", "1").code == 0, "a free place")


def test_the_places_of_the_host_are_counted(host):
    ann, bob = start(host, policy="[maker]\nsessions = 1")
    s = ann.session().start()
    ready(host)
    r = bob.run("-c", "1")
    assert r.code == 75 and "maker.sessions = 1" in r.said, r
    s.leave()
    hosttree.until(lambda: bob.run("-c", "1").code == 0, "a free place")


def test_one_that_does_not_fit_is_left_to_others(host):
    (host.dir / "data").mkdir()
    ann, bob = start(host, policy=f"[jail]\nexpose = {host.dir}/data\n")
    r = ann.run("-c", "import os; print(os.environ['NO_COLOR'])",
                env={"NO_COLOR": "1"})
    assert r.text == "1\n" and not was_ahead(host), r
    r = bob.run("-c", f"import os; print(os.path.isdir('{host.dir}/data'))")
    assert r.text == "True\n" and was_ahead(host, 2), r


def test_what_took_the_place_of_what_is_shown_is_shown(host):
    old, new = host.dir / "data", host.dir / "new"
    for path, text in (old, "old"), (new, "new"):
        path.mkdir()
        (path / "what").write_text(text)
    ann, _ = start(host, policy=f"[jail]\nexpose = {old}\n")
    show = f"print(open('{old}/what').read())"
    r = ann.run("-c", show)
    assert r.text == "old\n" and was_ahead(host), r  # the control
    ready(host)
    old.rename(host.dir / "gone")
    new.rename(old)
    r = ann.run("-c", show)
    assert r.text == "new\n" and not was_ahead(host, 2), r


def test_what_is_looser_is_refused_as_ever(host):
    ann, bob = start(host, policy="[policy]\nlocked = yes\n"
                     "[session]\nmaker = require\nmemory = 256M\n")
    assert ann.run("-M", "257M", "-c", "1").code == 2
    out = ann.asks("import order\nprint(order.ask(order.order(mode=1)))")
    assert "looser than the" in out, out
    r = bob.run("-c", "print(1)")
    assert r.text == "1\n" and was_ahead(host), r


def test_variables_of_the_configuration_stay(host):
    names = ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS",
             "NUMEXPR_NUM_THREADS", "TERM"]
    ann, _ = start(host, policy="[python]\n" + "".join(
        f"env.{n} = of{n}\n" for n in names))
    s = ann.session("-s", "python.recursion=300").start()
    s.run("import os, sys; x = 1")
    assert "True" in s.run(
        f"all(os.environ[n] == 'of' + n for n in {names})")
    assert "(300, False)" in s.run(
        "sys.getrecursionlimit(), '' in os.environ")
    s.leave()
    r = ann.run("-e", "import os; os.environ['TERM']")
    assert r.text == "'ofTERM'\n", r
    assert was_ahead(host) and was_ahead(host, 2)


def test_a_configuration_that_changed_is_the_one_that_counts(host):
    ann, _ = start(host)
    host.policy("[session]\nmemory = 1G\n[python]\nenv.A = b\n")
    r = ann.run("-c", "import os; print(os.environ.get('A'),"
                " os.statvfs('/tmp').f_blocks * 4096 >> 20)")
    assert r.text == "b 256\n" and not was_ahead(host), r


def test_two_who_ask_at_once_have_two_sessions(host):
    people = start(host, spare=2)

    def ids():
        return re.findall(r"host id (\d+), made ahead", host.said())

    for turn in range(4):
        ready(host, 2 * KINDS)
        before = len(ids())
        running = [p.popen("-c", "import os, time\n"
                           f"open('mine', 'w').write('{p.name}')\n"
                           "time.sleep(0.2)\n"
                           "print(open('mine').read(), os.listdir('/tmp'))")
                   for p in people]
        for person, p in zip(people, running):
            out, err = p.communicate(timeout=30 * PATIENCE)
            assert out.decode() == f"{person.name} []\n", (out, err)
        # An id that is free again may be anybody's, at random.
        now = ids()[before:]
        assert len(now) == len(set(now)), host.said()
    assert len(ids()) >= 2, host.said()


def test_nothing_of_one_person_is_seen_by_the_next(host):
    ann, bob = start(host)
    s = ann.session().start()
    s.run("import os; secret = 1; open('/home/s', 'w').close();"
          " open('/tmp/s', 'w').close(); open('/dev/shm/s', 'w').close();"
          " os.environ['S'] = '1'")
    assert was_ahead(host)
    ready(host)
    t = bob.session().start()
    assert "([], False, False)" in t.run(
        "import os; sum((os.listdir(d) for d in ('/home', '/tmp',"
        " '/dev/shm')), []), 'S' in os.environ, 'secret' in dir()")
    assert was_ahead(host, 2)
    assert "1" in s.run("secret")
    t.leave()


def age_of(pid):
    with open(f"/proc/{pid}/stat") as f:
        born = int(f.read().rpartition(")")[2].split()[19])
    return time.clock_gettime(time.CLOCK_BOOTTIME) \
        - born / os.sysconf("SC_CLK_TCK")


def test_clocks_begin_with_the_claim(host):
    seconds = int(5 * PATIENCE)
    ann, _ = start(host, policy=f"[session]\nidle = {seconds}s\n"
                   f"lifetime = {seconds}s\n")
    spares = wardens(host)
    assert len(spares) == KINDS
    hosttree.until(lambda: min(map(age_of, spares)) > seconds + 1,
                   "older spares", 30)
    assert sorted(wardens(host)) == sorted(spares)
    s = ann.session().start()
    assert "42" in s.run("6 * 7")
    assert was_ahead(host)
    s.expect("lifetime limit")  # the control


def used_by(pids):
    return [hosttree.ticks_of(pid) for pid in pids]


def test_spares_that_wait_use_no_cpu(host):
    start(host)
    pids = [p for w in wardens(host) for p in (w, *hosttree.descendants(w))]
    assert len(pids) > 2 * KINDS

    def is_calm():
        """The modules of cells are loaded after the spare is ready."""
        before = used_by(pids)
        time.sleep(.5)
        return used_by(pids) == before and not any(
            "R" in hosttree.thread_states(pid) for pid in pids)

    hosttree.until(is_calm, "the end of the preparations")
    before, begun = used_by(pids), time.monotonic()
    hosttree.until(lambda: time.monotonic() > begun + 2, "two seconds")
    assert used_by(pids) == before


def test_one_that_died_is_not_handed_out(host):
    ann, _ = start(host)
    for _ in range(3):
        ready(host)
        dead = wardens(host)
        hosttree.send(dead)
        r = ann.run("-c", "print(1)")
        assert r.text == "1\n" and r.said == "", r
        hosttree.until(lambda: len(set(wardens(host)) - set(dead)) == KINDS,
                       "spares in their place", 60)
    ready(host)


def test_one_whose_python_died_is_not_handed_out(host):
    ann, _ = start(host)
    for w in wardens(host):
        hosttree.send(pid for pid in hosttree.descendants(w)
                      if hosttree.status_of(pid).get("Name") == "python3")
    s = ann.session().start()
    assert "42" in s.run("6 * 7")
    s.leave()


def test_a_front_end_claims_nothing(host):
    """It has the session's socket alone, to which a lease is no request."""
    ann, bob = start(host)
    out = ann.asks("""
import order, ctypes
for size in (ctypes.sizeof(order.Limits) + 80, 1, 8192):
    ok, s = order.ask(order.order())
    assert ok
    s.send(b'\\0' * size)
    s.settimeout(30)
    got = 1
    while got:
        got = len(s.recv(1 << 16))
    print('over')
""")
    assert out == "over\n" * 3
    assert bob.run("-c", "print(1)").text == "1\n"
    assert ann.asks("import order\nprint(order.ask(order.order())[0])") \
        == "True\n"  # the control


def takes_interrupts(pid):
    """Whether a process is cellblock, which waits for signals, and no longer
    what starts it."""
    status = hosttree.status_of(pid)
    return status.get("Name") == "cellblock" and \
        int(status.get("SigBlk", "0"), 16) >> signal.SIGINT - 1 & 1


@pytest.mark.parametrize("mode, late", [
    ("-e", "cellblock-init"), ("-c", "cellblock-init"), ("-e", "python3")])
def test_an_interrupt_before_a_program_begins_ends_it(host, mode, late):
    """While the jail is leased, and while a Python that is up has not begun."""
    ann, bob = start(host)
    slow = [pid for pid in hosttree.descendants(host.maker.pid)
            if hosttree.status_of(pid).get("Name") == late]
    assert slow
    for pid in slow:
        os.kill(pid, signal.SIGSTOP)
    p = ann.popen(mode, "print(42)")
    hosttree.until(lambda: takes_interrupts(p.pid), "the front end")
    time.sleep(1)
    p.send_signal(signal.SIGINT)
    time.sleep(0.3)
    hosttree.send(slow, signal.SIGCONT)
    out, err = p.communicate(timeout=40 * PATIENCE)
    assert (p.returncode, out) == (130, b"") and b"cellblock:" not in err, err
    assert bob.run(mode, "print(1)").text == "1\n"


def test_a_jail_without_a_program_ends_by_its_clocks(host):
    ann, _ = start(host)
    out = ann.asks("""
import order
for mode in 1, 2:
    ok, s = order.ask(order.order(mode=mode, idle_ms=1000))
    assert ok, s
    s.settimeout(30)
    s.setblocking(True)
    while s.recv(1 << 16):
        pass
    print('over')
""")
    assert out == "over\n" * 2


FORKS = """import os, time
n = 1
try:
    while True:
        if os.fork() == 0:
            time.sleep(60)
            os._exit(0)
        n += 1
except OSError:
    print(n)"""


@as_any_other
def test_a_program_may_have_as_many_processes_as_are_asked_for(host, spare):
    ann, _ = start(host, spare)
    for mode in "-e", "-c":
        ready(host, spare * KINDS)
        r = ann.run("-s", "session.processes=5", mode, FORKS)
        assert r.text == "5\n", r


def test_without_spares_nothing_is_made_ahead(host):
    ann, _ = start(host, spare=0)
    assert ann.run("-c", "1").code == 0
    assert not was_ahead(host)
    assert "spare jails" not in host.said()
    hosttree.until(lambda: not wardens(host), "the end of the session")


def test_a_session_ends_with_its_front_end(host):
    """The process that waits for requests was started beside a spare in the making,
    and keeps no socket of it."""
    ann, _ = start(host)
    for _ in range(6):
        p = ann.popen("-c", "import time; print(1, flush=True);"
                      " time.sleep(3600)")
        assert p.stdout.readline() == b"1\n"
        p.kill()
        p.wait()
        ready(host)
        hosttree.until(lambda: len(wardens(host)) == KINDS, "its end")
    assert sum(bool(ahead) for _, ahead in made(host)) > 0


@pytest.mark.parametrize("sig", [signal.SIGKILL, signal.SIGTERM])
def test_spares_end_with_their_maker(host, sig):
    cgroups = hosttree.cgroups()
    start(host, spare=2)
    pids = [p for w in wardens(host) for p in (w, *hosttree.descendants(w))]
    assert len(pids) > 4 * KINDS and hosttree.new_cgroups(cgroups)
    host.kill(sig)
    hosttree.until(lambda: not set(pids) & set(hosttree.all_pids()),
                   "the end of the spares", 30)
    hosttree.wait_removed(lambda: hosttree.new_cgroups(cgroups))
