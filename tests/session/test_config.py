# SPDX-License-Identifier: MIT
"""Configuration, the checks of the host, and the errors before a session
starts."""
import re

import pytest

from world import IS_ROOT, PYTHON, TESTS


def test_config_errors_are_all_reported_with_file_and_line(cb):
    path = cb.config("[cell]\ntimeout = soon\n\n[sesion]\nmemory = 1G\n"
                     "[session]\nprocesses = -4\n")
    r = cb.run("-c", "pass")
    assert r.code == 78, r
    for line in (2, 7):
        assert f"{path}:{line}:" in r.said, r
    assert re.search(rf"{re.escape(str(path))}:[45]:", r.said), r
    assert "timeout" in r.said and "processes" in r.said
    assert r.out == b""


def test_config_errors_also_prevent_a_session(cb):
    cb.config("[cell]\ntimeot = 3s\n")
    s = cb.session(start=False)
    assert s.wait_exit() == 78
    assert "cellblock.conf:2" in s.all_text().replace("\n", "")


def test_the_configuration_file_of_the_person_is_used(cb):
    cb.config("[terminal]\nprompt = \"py> \"\nbanner = no\n")
    s = cb.session(start=False, prompt="py> ")
    s.wait_prompt()
    assert s.run("6 * 7") == "42"


def test_set_overrides_the_configuration_file(cb):
    cb.config("[cell]\ntimeout = 20s\n")
    r = cb.run("--set", "cell.timeout=77s", "--check-config")
    assert r.code == 0, r
    assert "77s" in r.text or "77 s" in r.text
    assert "--set" in r.text


def test_check_config_names_the_source_of_each_value(cb):
    path = cb.config("[cell]\ntimeout = 20s\n")
    r = cb.run("--check-config")
    assert r.code == 0, r
    assert f"{path}:2" in r.text and "built in" in r.text


def test_check_config_reports_the_errors_of_a_file(cb):
    bad = cb.work / "bad.conf"
    bad.write_text("[cell]\nundo = many\n")
    r = cb.run("--check-config", str(bad))
    assert r.code == 78, r
    assert "bad.conf:2:" in r.said + r.text


def test_a_bad_value_of_set_is_an_error(cb):
    r = cb.run("--set", "cell.timeout=soon", "-c", "pass")
    assert r.code in (2, 78), r
    assert "cell.timeout" in r.said and "--set" in r.said


def test_unknown_option_is_a_usage_error(cb):
    r = cb.run("--frobnicate")
    assert r.code == 2, r
    assert r.said.startswith("cellblock: ") and "frobnicate" in r.said


@pytest.mark.parametrize("option, value, key", [
    ("-t", "abc", "cell.timeout"), ("-M", "lots", "session.memory"),
    ("--set", "cell.timeout=abc", "cell.timeout")])
def test_a_wrong_value_is_told_of_the_option_that_has_it(
        cb, option, value, key):
    r = cb.run(option, value, "-c", "print('ran')")
    assert r.code == 2 and "ran" not in r.text, r
    assert r.said.startswith(f"cellblock: {option}: {key}: expected"), r
    # A mistake in a file is no error of the command line.
    cb.config("[cell]\ntimeout = abc\n")
    assert cb.run("-t", "5s", "-c", "pass").code == 78


def test_a_missing_config_file_is_an_error(cb):
    r = cb.run("-f", "/nonexistent/cb.conf", "-c", "pass")
    assert r.code == 2, r
    assert "/nonexistent/cb.conf" in r.said


def test_a_missing_interpreter_is_an_error(cb):
    r = cb.run("--set", "python.executable=/nonexistent/python3", "-c", "1")
    assert r.code in (78, 125), r
    assert "/nonexistent/python3" in r.said
    assert r.said.startswith("cellblock: ")


def test_a_program_that_is_no_interpreter_is_named_in_the_error(cb):
    s = cb.session("--set", "python.executable=/bin/true", start=False)
    assert s.wait_exit() in (78, 125)
    assert "/bin/true" in s.all_text().replace("\n", "")


def without_user_namespaces():
    """A command prefix: the command runs where no user namespace can be
    made."""
    return (PYTHON, "-B", str(TESTS / "lib" / "lacking.py"), "userns")


def test_a_host_without_user_namespaces_runs_no_program(cb):
    r = cb.run("-c", "print('ran')", wrapper=without_user_namespaces())
    assert r.code == 125, r
    assert b"ran" not in r.out
    said = [x for x in r.said.splitlines() if x.startswith("cellblock: ")]
    assert len(said) == 1, r
    assert "user namespace" in said[0]
    assert "max_user_namespaces" in r.said, "the hint names the setting"


def test_a_host_without_user_namespaces_runs_no_session(cb):
    s = cb.session(wrapper=without_user_namespaces(), start=False)
    assert s.wait_exit() == 125
    assert "user namespace" in s.all_text()


def test_check_reports_every_limit(cb):
    r = cb.run("--check")
    assert r.code == 0, r
    for word in ("memory", "processes", "seccomp", "Landlock"):
        assert word.lower() in r.text.lower(), f"{word} is not in:\n{r.text}"


def test_check_prints_json(cb):
    import json
    r = cb.run("--check", "--json")
    assert r.code == 0, r
    assert isinstance(json.loads(r.text), dict)


def test_check_prints_what_helps_against_several_things_once(cb):
    import json
    rows = json.loads(cb.run("--check", "--json").text)["checks"]
    firsts = {}
    for row in rows:
        firsts.setdefault(row["remedy"], row["what"])
    words = " ".join(cb.run("--check").text.split())
    for remedy in filter(None, firsts):
        assert words.count(" ".join(remedy.split())) == 1, (remedy, words)
    again = [firsts[row["remedy"]] for row in rows
             if row["remedy"] and firsts[row["remedy"]] != row["what"]]
    for what in set(again):
        assert words.count(f"as for {what}") == again.count(what), words


def test_check_says_why_this_configuration_starts_no_session(cb):
    import json
    shown = "jail.expose=/var/gone"
    ran = cb.run("--set", shown, "-c", "print('ran')")
    r = cb.run("--set", shown, "--check", "--json")
    answer = json.loads(r.text)
    assert (ran.code, r.code, answer["jail"]) == (125, 125, False), (ran, r)
    row = next(row for row in answer["checks"] if row["what"] == "jail")
    assert row["strength"] == "none", row
    assert "/var/gone: No such file" in row["remedy"], row
    assert "/var/gone: No such file" in ran.said, ran


def test_an_unknown_requirement_is_refused_with_the_known_ones(cb):
    r = cb.run("--set", "jail.require=no-such-thing", "-c", "print('ran')")
    assert r.code == 2, r
    assert b"ran" not in r.out and "no-such-thing" in r.said
    for word in "cgroup memory noswap processes cpus landlock proc".split():
        assert word in r.said, r


def test_a_requirement_is_met_exactly_if_check_calls_it_strong(cb):
    import json
    rows = json.loads(cb.run("--check", "--json").text)["checks"]
    words = {row["word"]: row["strength"] for row in rows if row["word"]}
    assert len(words) >= 8, words
    for word, strength in words.items():
        need = f"jail.require={word}"
        ran = cb.run("--set", need, "-c", "print('ran')")
        check = cb.run("--set", need, "--check")
        if strength == "strong":
            assert (ran.code, ran.text, check.code) == (0, "ran\n", 0), ran
        else:
            assert (ran.code, ran.text, check.code) == (125, "", 125), ran
            assert word in ran.said and word in check.text, (ran, check)


def test_help_and_version_are_printed(cb):
    r = cb.run("--help")
    assert r.code == 0 and "cellblock [OPTIONS]" in r.text and not r.err
    r = cb.run("--version")
    assert r.code == 0 and re.match(r"cellblock \d+\.\d+", r.text)


def test_environment_reaches_python_only_from_the_configuration(cb):
    r = cb.run("--set", "python.env.GREETING=hello there", "-c",
               "import os; print(os.environ.get('GREETING'),"
               " os.environ.get('SECRET'), os.environ.get('LD_PRELOAD'))",
               env={"SECRET": "leak", "LD_PRELOAD": "/nonexistent.so"})
    assert r.text.split("\n")[0] == "hello there None None", r


def test_the_startup_cell_runs(cb):
    s = cb.session("--set", "python.startup=import math; tau = math.tau")
    assert s.run("round(tau, 4)") == "6.2832"
    assert "<cell 2>" in s.run("1/0"), "the startup cell was counted"


def test_the_startup_cell_runs_in_every_new_python(cb):
    s = cb.session("--set", "python.startup=tau = 6", "--set",
                   "cell.checkpoint=never")
    s.run("tau = 7")
    s.run(":reset")
    assert s.run("tau") == "6"
    s.run("tau = 8")
    assert "variables lost" in s.run("import os; os._exit(1)")
    assert s.run("tau") == "6"
    assert "tau = 6" not in s.run(":history tau"), \
        "the startup cell is in the history"


def test_a_startup_cell_that_ends_python_is_not_run_again(cb):
    s = cb.session("--set", "python.startup=import os; os._exit(3)", "--set",
                   "cell.checkpoint=never")
    assert "python.startup did not end well" in s.all_text()
    s.run("'the notice that checkpoints are off has come'")
    assert s.run("6 * 7") == "42"
    assert s.all_text().count("did not end well") == 1


def test_skeleton_files_are_in_the_home(cb):
    (cb.work / "skel").mkdir()
    (cb.work / "skel" / "readme.txt").write_text("welcome")
    s = cb.session("--set", f"home.skeleton={cb.work}/skel")
    assert s.run("open('readme.txt').read()") == "'welcome'"


def test_a_skeleton_that_is_not_there_is_said_with_its_key(cb):
    r = cb.run("-s", "home.skeleton=/nowhere", "-c", "print(1)")
    assert (r.code, r.text) == (0, "1\n"), r
    assert r.said == \
        "cellblock: home.skeleton: /nowhere: No such file or directory\n"


def test_skeleton_is_copied_in_spite_of_the_transfer_limits(cb):
    skel = cb.work / "skel"
    (skel / "lib" / ".deep").mkdir(parents=True)
    for name in (".netrc", "[a]*", "lib/m.py", "lib/.deep/x"):
        (skel / name).write_text(name)
    (skel / "large").write_text("y" * 5000)
    (skel / "link").symlink_to("large")
    s = cb.session("-s", f"home.skeleton={skel}", "-s", "files.max_count=1",
                   "-s", "files.max_file=1K")
    found = s.run("import os; sorted(os.path.join(d, f)[6:] for d, _, files"
                  " in os.walk('/home') for f in files)")
    assert eval(found.replace("\n", "")) == [
        ".netrc", "[a]*", "large", "lib/.deep/x", "lib/m.py", "link"]
    assert s.run("os.path.getsize('link'), open('lib/.deep/x').read()") \
        == "(5000, 'lib/.deep/x')"
    assert "left out" not in s.all_text() and s.leave() == 0


def test_packages_directory_is_importable_and_read_only(cb):
    (cb.work / "pkgs").mkdir()
    (cb.work / "pkgs" / "cbmod.py").write_text("value = 77\n")
    cb.let_in(cb.work / "pkgs")
    s = cb.session("--set", f"python.packages={cb.work}/pkgs")
    assert s.run("import cbmod; cbmod.value") == "77"
    assert "OSError" in s.run("open(cbmod.__file__, 'a')") \
        or "PermissionError" in s.all_text()


def test_several_directories_of_packages_and_the_first_counts(cb):
    for name, both in ("one", 1), ("two", 2):
        (cb.work / name).mkdir()
        (cb.work / name / "cbboth.py").write_text(f"value = {both}\n")
        (cb.work / name / f"cb{name}.py").write_text(f"value = '{name}'\n")
        cb.let_in(cb.work / name)
    both = f"python.packages={cb.work}/one {cb.work}/two"
    code = ("import cbboth, cbone, cbtwo; print(cbboth.value, cbone.value,"
            " cbtwo.value)")
    s = cb.session("--set", both)
    assert s.run(code) == "1 one two"
    assert cb.run("--set", both, "-c", code).text == "1 one two\n"
    r = cb.run("--set", "python.packages=/srv/a:b /srv", "-c", code)
    assert r.code == 2 and "expected no colon in \"/srv/a:b\"" in r.said, r
    many = " ".join(f"/{'x' * 240}/{i}" for i in range(17))
    r = cb.run("--set", f"python.packages={many}", "-c", code)
    assert r.code == 2 and "at most" in r.said, r


@pytest.mark.parametrize("policy, out", [("none", "[]"),
                                         ("loopback", "['lo']")])
def test_network_is_none_or_loopback(cb, policy, out):
    r = cb.run("--set", f"jail.network={policy}", "-c", """if 1:
        import socket
        up = []
        try:
            s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen()
            c = socket.create_connection(s.getsockname()); up.append('lo')
        except OSError: pass
        print(up)""")
    assert r.text.strip() == out, r


def test_errors_are_folded_at_words_on_a_terminal(cb):
    s = cb.session("--nope", size=(24, 40), start=False)
    assert s.wait_exit() == 2
    assert s.screen.shown() == [
        "cellblock: unknown or ambiguous option", "  '--nope'",
        "  try 'cellblock -h'"]
    s = cb.session("-s", "cel.x=1", size=(24, 40), start=False)
    assert s.wait_exit() == 2
    assert s.screen.shown() == [
        "cellblock: --set cel.x=1: no section", "  cel; did you mean cell?"]
    # The control: without a terminal the lines are not folded.
    assert cb.run("--nope").said.startswith(
        "cellblock: unknown or ambiguous option '--nope'\n")


def test_a_wish_for_no_colours_reaches_the_jail(cb):
    ask = "import os; os.environ.get('NO_COLOR')"
    assert cb.session().run(ask) == ""
    assert cb.session(env={"NO_COLOR": ""}).run(ask) == ""
    assert cb.session(env={"NO_COLOR": "yes"}).run(ask) == "'1'"
    again = cb.session("-s", "python.env.NO_COLOR=0", env={"NO_COLOR": "1"})
    assert again.run(ask) == "'0'"


def test_caches_are_not_in_the_home(session):
    assert session.run("import os; os.environ['XDG_CACHE_HOME']") == (
        "'/tmp/cache'")


@pytest.mark.skipif(IS_ROOT, reason="root has a cgroup: nothing is watched")
def test_what_a_host_lacks_is_said_once(cb):
    first = cb.session()
    first.run("0")
    assert "[here memory may be exceeded" in first.all_text()
    second = cb.session()
    second.run("0")
    assert "[here" not in second.all_text()
    told = cb.home / ".local/state/cellblock/told"
    assert told.stat().st_mode & 0o777 == 0o600
    told.unlink()
    told.symlink_to("/etc/passwd")
    third = cb.session()
    third.run("0")
    assert "[here memory" in third.all_text()


def test_check_config_finds_an_interpreter_that_is_not_there(cb, tmp_path):
    file = tmp_path / "c.conf"
    file.write_text("[python]\nexecutable = /usr/bin/python3\n"
                    "executable = /opt/none/python3\n")
    r = cb.run("--check-config", str(file))
    assert r.code == 78 and "/opt/none/python3" in r.said and \
        "python.executable" in r.said, r
    assert "[python]" in r.text    # what is merged is shown all the same
    file.write_text("[python]\nexecutable = /usr/bin/python3\n")
    assert cb.run("--check-config", str(file)).code == 0
    (cb.work / "a file").touch()
    for path, why in ("/nowhere", "No such file"), (cb.work / "a file",
                                                    "no directory"):
        file.write_text(f'[python]\npackages = "{path}"\n')
        r = cb.run("--check-config", str(file))
        assert r.code == 78 and why in r.said and str(path) in r.said, r
        assert "python.packages" in r.said, r
    # A session is refused without it, or begins without its files.
    for key in "jail.expose", "home.skeleton":
        section, name = key.split(".")
        for path, code in ("/nowhere", 78), (cb.work, 0):
            file.write_text(f'[{section}]\n{name} = "{path}"\n')
            r = cb.run("--check-config", str(file))
            assert r.code == code and (key in r.said) == (code != 0), r
