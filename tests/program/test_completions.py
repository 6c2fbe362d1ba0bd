# SPDX-License-Identifier: MIT
"""The completions for bash, fish and zsh, as the shells themselves offer
them."""
import pathlib
import re
import shutil
import subprocess

import pytest

import term
from world import CELLBLOCK, PATIENCE

HERE = pathlib.Path(__file__).resolve().parents[2] / "completions"
LONG = r"(?<![\w-])--[a-z][\w-]*"


class Bash:
    def __init__(self, cb, base):
        self.cb = cb

    def offers(self, *words):
        """The candidates for the last word, in COMPREPLY."""
        quoted = " ".join(f"'{w}'" for w in words)
        name = words[0]
        script = (f"source {HERE}/{name}.bash; COMP_WORDS=({quoted}); "
                  f"COMP_CWORD={len(words) - 1}; "
                  f"f=$(complete -p {name}); f=${{f#*-F }}; "
                  f"${{f% {name}}}; printf '%s\\n' \"${{COMPREPLY[@]}}\"")
        return run(self.cb, "bash", "--norc", "-c", script).split()


class Fish:
    def __init__(self, cb, base):
        self.cb = cb

    def offers(self, *words):
        script = (f"source {HERE}/{words[0]}.fish; "
                  f"complete -C '{' '.join(words)}'")
        lines = run(self.cb, "fish", "--no-config", "-c", script).splitlines()
        return [line.partition("\t")[0] for line in lines]


class Zsh:
    """A zsh at a prompt: its completion works nowhere else."""

    def __init__(self, cb, base):
        place = cb.base / "zsh"
        place.mkdir()
        for name in "cellblock", "cellblock-lab":
            shutil.copy(HERE / f"{name}.zsh", place / f"_{name}")
        (place / ".zshrc").write_text(
            f"PS1='%% '; unsetopt prompt_sp; fpath=({place} $fpath)\n"
            f"autoload -Uz compinit; compinit -u -C -d {base}/zcompdump;"
            " LISTMAX=1000\n")
        self.session = term.Session(
            ["zsh", "-d"], env={**cb.env, "ZDOTDIR": str(place)},
            size=(70, 100), cwd=cb.work, prompt="% ")
        cb.open.append(self.session)
        self.session.start()

    def offers(self, *words):
        s, line = self.session, " ".join(words)
        s.type("\x15\x0c")              # an empty line on an empty screen
        s.wait(lambda: s.screen.shown() == ["%"], "an empty screen")
        s.type(line + "\x04")           # Ctrl-D lists the candidates
        s.wait(lambda: len(s.screen.shown()) > 1 and
               s.screen.cursor_row() == f"% {line}".rstrip(), "the candidates")
        rows = [r.split(" -- ")[0].split() for r in s.screen.shown()[1:]]
        return [word for row in rows for word in row]


SHELLS = {"bash": Bash, "fish": Fish, "zsh": Zsh}


def run(cb, *argv):
    return subprocess.run(argv, cwd=cb.work, env=cb.env, check=True,
                          stdin=subprocess.DEVNULL, timeout=30 * PATIENCE,
                          stdout=subprocess.PIPE, text=True).stdout


@pytest.fixture(params=sorted(SHELLS))
def shell(cb, request, tmp_path_factory):
    """A shell whose files for its next start go to a place of the worker's."""
    if not shutil.which(request.param):
        pytest.skip(f"{request.param} is not installed")
    return SHELLS[request.param](cb, tmp_path_factory.getbasetemp())


def test_every_long_option_of_the_help_is_offered_and_no_other(cb, shell):
    wanted = set(re.findall(LONG, cb.run("-h").text))
    assert len(wanted) > 12, wanted
    assert set(re.findall(LONG, " ".join(shell.offers("cellblock", "--")))) \
        == wanted


def test_configuration_keys_are_offered_for_set(shell):
    offered = shell.offers("cellblock", "--set", "session.")
    assert {key.rstrip("=") for key in offered} == {
        "session.memory", "session.processes", "session.cpus", "session.idle",
        "session.lifetime", "session.until", "session.per_user",
        "session.maker", "session.linger", "session.confirm",
        "session.attach"}


@pytest.fixture(name="number")
def number_of_a_session(cb):
    """Of one that the shells can ask for with what is installed."""
    cb.env["PATH"] = f"{pathlib.Path(CELLBLOCK).parent}:{cb.env['PATH']}"
    s = term.Session([CELLBLOCK], env=cb.env, cwd=cb.work)
    cb.open.append(s)
    s.start()
    yield next((cb.home / ".local/state/cellblock/live").glob("[0-9]*")).name
    assert s.leave() == 0


def test_sessions_are_offered_and_no_files(cb, number, shell):
    (cb.work / "homework.py").write_text("")
    for option in "--attach", "--end", "--message", "--watch":
        offered = shell.offers("cellblock", option, "")
        assert number in [word.rpartition("/")[2] for word in offered], \
            (option, offered)
        assert "homework.py" not in offered, option


def test_save_is_offered_behind_end_and_directories_behind_save(cb, shell):
    (cb.work / "homes").mkdir()
    (cb.work / "homework.py").write_text("")
    assert "--save" in shell.offers("cellblock", "--end", "3", "--s")
    offered = shell.offers("cellblock", "--end", "3", "--save", "home")
    assert [word.rstrip("/") for word in offered] == ["homes"], offered


def test_files_are_offered_as_the_program(cb, shell):
    (cb.work / "homework.py").write_text("")
    (cb.work / "homework.txt").write_text("")
    assert sorted(shell.offers("cellblock", "-q", "home")) == [
        "homework.py", "homework.txt"]


def test_no_option_of_cellblock_is_offered_after_the_program(cb, shell):
    (cb.work / "--its-own").write_text("")
    (cb.work / "--its-other").write_text("")
    assert sorted(shell.offers("cellblock", "prog.py", "--")) == [
        "--its-other", "--its-own"]


LAB = HERE.parent / "lab" / "cellblock-lab"


def lab_help(cb, *args):
    """The help, and the long options that it explains."""
    text = run(cb, LAB, *args, "--help")
    return text, set(re.findall(rf"(?m)^  (?:-\w, )?({LONG})", text))


def test_the_commands_and_options_of_the_lab_are_offered(cb, shell):
    text, options = lab_help(cb)
    commands = re.findall(r"(?m)^    ([a-z]+) ", text)
    assert len(commands) == 5, text
    offered = shell.offers("cellblock-lab", "")
    assert set(commands) <= set(offered), offered
    assert set(re.findall(LONG, " ".join(shell.offers(
        "cellblock-lab", "--")))) == options
    for command in commands:
        wanted = lab_help(cb, command)[1]
        offered = set(re.findall(LONG, " ".join(shell.offers(
            "cellblock-lab", command, "--"))))
        assert offered == wanted, command
    (cb.work / "students.csv").write_text("")
    assert shell.offers("cellblock-lab", "add", "stud") == ["students.csv"]
