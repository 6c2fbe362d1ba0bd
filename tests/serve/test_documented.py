# SPDX-License-Identifier: MIT
"""The examples of the documents work: every configuration is accepted, and every
command that needs no other host is run."""
import json
import os
import pathlib
import re
import shlex
import subprocess

import pytest

import world
from agent import Client

TOP = world.TESTS.parent
PAGES = ["README.md", "SECURITY.md", "CONTRIBUTING.md",
         *sorted(f"docs/{p.name}" for p in (TOP / "docs").glob("*.md")),
         *sorted(f"man/{p.name}" for p in (TOP / "man").iterdir())]


def blocks(page):
    """The commands of a page, as typed: indented, or a literal display."""
    text = (TOP / page).read_text()
    if page.endswith(".md"):
        found = re.findall(r"(?:^ {4}.*\n|^\n(?= {4}))+", text, re.M)
        return [re.sub(r"^ {4}", "", b, flags=re.M).strip() for b in found]
    text = text.replace(r"\(dq", '"')
    return re.findall(r"^\.Bd -literal.*\n((?:(?!\.Ed).*\n)+)", text, re.M) + \
        re.findall(r"^\.Dl (.*)", text, re.M)


def shown():
    return [(page, b) for page in PAGES for b in blocks(page)]


# Plans, and what becomes of them, are tried in tests/grade/test_page.py.
CONFIGURATIONS = [(p, b) for p, b in shown() if re.match(r"\[\w+\]\n", b)
                  and not b.startswith("[grade]")]
# Each command of ours with what is shown below it; a session alone shows no end.
COMMANDS = [(p, c, below) for p, b in shown() if ">>>" not in b
            for c, below in re.findall(r"^\$ (.*)\n?((?:(?!\$ ).*\n?)*)", b,
                                       re.M)
            if re.match(r"(cellblock (?!--attach|--grade)|echo |curl )", c)]
AGENTS = [(p, line) for p, b in shown() for line in b.splitlines()
          if line.startswith('{"mcpServers"') and '"ssh"' not in line]


def one_of(page, begin):
    """The block of a page that begins so."""
    found, = [b for b in blocks(page) if b.startswith(begin)]
    return found


def test_there_is_what_to_try():
    assert len(CONFIGURATIONS) >= 3 and len(COMMANDS) >= 5 and len(AGENTS) >= 3


@pytest.mark.parametrize("page, text", CONFIGURATIONS)
def test_a_configuration_is_accepted(cb, page, text):
    file = cb.base / "shown.conf"
    for path in re.findall(r"^executable = (/opt/\S+)$", text, re.M):
        own = cb.base / os.path.basename(path)  # this host has no such Python
        own.symlink_to("/usr/bin/python3")
        text = text.replace(path, str(own))
    for path in re.findall(r"^expose = (\S+)$", text, re.M):
        text = text.replace(path, str(cb.base))     # nor such data
    file.write_text(text)
    r = cb.run("--check-config", str(file))
    assert r.code == 0, (page, r)
    file.write_text(text + "\n[cell]\ntimeouts = 1\n")
    assert cb.run("--check-config", str(file)).code == 78, "a control"


def test_snekboxs_world_holds_a_full_home(cb):
    """48 MiB of files, and a Python that a program starts beside them."""
    file = cb.base / "snekbox.conf"
    file.write_text(one_of("docs/JSON.md", "[cell]\ntimeout = 6s"))
    # (a busy host may need more than its six seconds)
    more = "-t", "60s", "--eval"
    r = cb.run("-f", str(file), *more, stdin=json.dumps({"input": (
        "import subprocess, sys\n"
        "with open('_f', 'wb') as f:\n"
        "    for _ in range(47 * 16): _ = f.write(b'x' * 65536)\n"
        "subprocess.run([sys.executable, '-c', 'print(6 * 7)'])")}))
    assert json.loads(r.text) == {"stdout": "42\n", "returncode": 0,
                                  "files": []}, r


@pytest.mark.parametrize("page, command, below", COMMANDS)
def test_a_command_does_what_is_shown(cb, request, page, command, below):
    (cb.base / "bin").mkdir()
    (cb.base / "bin/cellblock").symlink_to(world.CELLBLOCK)
    cb.env["PATH"] = f"{cb.base}/bin:{cb.env['PATH']}"
    for name, text in (
            ("suspicious.py", "import sys; print(sys.argv[1:], input())"),
            ("input.txt", "line\n"), ("data.csv", "1,2\n"),
            ("analyse.py", "import os; os.mkdir('out')\n"
                           "open('out/a.png', 'w').write(open('data.csv').read())")):
        (cb.work / name).write_text(text)
    if "localhost:8060" in command:
        server = request.getfixturevalue("serve")()
        command = command.replace("localhost:8060", f"127.0.0.1:{server.port}")
    r = subprocess.run(["bash", "-c", command], cwd=cb.work, env=cb.env,
                       capture_output=True, text=True, check=False,
                       timeout=50 * world.PATIENCE)
    assert r.returncode == 0, (page, command, r)
    wanted = ".*".join(re.escape(p.strip()) for p in below.strip().split("…"))
    assert re.fullmatch(wanted, r.stdout.strip()) or not below, (page, r)
    for named, made in ("> output.txt", "output.txt"), ("-d 'out", "a.png"):
        assert named not in command or list(cb.work.rglob(made)), (page, r)


@pytest.mark.parametrize("page, line", AGENTS)
def test_an_agent_is_told_so(cb, page, line):
    server = json.loads(line)["mcpServers"]["python"]
    assert server["command"] == "cellblock" and server["args"][-1] == "--mcp"
    client = Client(cb, *server["args"][:-1])
    r = client.tool("run_cell", code="6 * 7")
    assert r["structuredContent"]["output"] == "42\n", (page, r)
    assert client.close() == 0


def test_a_message_by_hand_is_answered_without_a_handshake(cb):
    client = Client(cb, version=None)
    client.raw(one_of("docs/MCP.md", '{"jsonrpc"') + "\n")
    answer = client.take()
    assert answer["result"]["structuredContent"]["output"] == "42\n", answer
    assert client.close() == 0


def test_a_call_of_an_agent_is_answered_as_shown(cb):
    text = one_of("docs/MCP.md", "→").replace("\n", "")
    asked, told = re.fullmatch(r"→ (.*)← (.*)", text).groups()
    client = Client(cb)
    for _ in range(5):
        client.tool("run_cell", code="1")
    call = json.loads(asked)["params"]
    r = client.tool(call["name"], **call["arguments"])
    told = json.loads(told.replace(", …}", "}"))["result"]
    first, verdict = r["content"]
    wanted = told["content"][0]["text"].split(" … ")
    assert first["text"].startswith(wanted[0]) and \
        first["text"].endswith(wanted[1])
    assert verdict == told["content"][1] and r["isError"] == told["isError"]
    assert told["structuredContent"].items() <= r["structuredContent"].items()
    assert client.close() == 0


def test_a_refusal_is_as_shown(cb):
    wanted = one_of("docs/JSON.md", '{"title"')
    r = cb.run("--eval", stdin='{"args": 400}\n')
    assert (r.code, r.text.strip()) == (2, wanted)


def test_commands_name_options_that_exist(cb):
    """Also those that need another host."""
    said = cb.run("-h").text
    for page, block in shown():
        for line in block.splitlines():
            if not re.match(r"(\$ )?cellblock --?\w", line):
                continue
            for word in shlex.split(line.replace("…", "")):
                if word.startswith("--") and "flag" not in word:
                    assert word in said, (page, line)
