#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The times that a person waits for, here and in the programs they would take
instead, in turns: a table in Markdown, of medians, and of how many times Python's
own they are. It measures, and tests nothing. `tests/bench/beside.py [ROUNDS]`;
$BUILD names the build directory."""
import datetime
import os
import pathlib
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "lib")]

from cost import BWRAP, NSJAIL  # noqa: E402
import hosttree  # noqa: E402
import ipython  # noqa: E402
from terminals import Terminal, at_once  # noqa: E402
import transfers  # noqa: E402
from world import CELLBLOCK, PYTHON, World  # noqa: E402

MANY = 100
PROMPT = rb">>> "
FIREJAIL = ["firejail", "--quiet", "--noprofile", "--net=none", "--private",
            PYTHON, "-c", "pass"]
OURS = ["-q", "--new", "-s", "session.linger=0", "-s", "session.per_user=200",
        "-M", "1G"]
LARGE = "x = b'1' * (300 << 20); print('done')"
OUTPUT = "print(('y' * 69 + chr(10)) * 10000)"


def whole(argv, env, **who):
    """The time of a process from its start to its end. Others have a
    moment to clean up after it, which is not in the next one's time."""
    start = time.perf_counter()
    subprocess.run(argv, check=True, env=env, stdin=subprocess.DEVNULL,
                   stdout=subprocess.DEVNULL, cwd="/", **who)
    taken = time.perf_counter() - start
    time.sleep(0.02)
    return taken


class Peer:
    """A program that runs `pass`, its prompt, and how its version is told."""

    def __init__(self, program, session, mark=PROMPT, version=()):
        self.program, self.session, self.mark = program, session, mark
        self.version = version


def of_python(argv, version=()):
    """The peer that runs a program of Python's, whose prompt is Python's."""
    return Peer(argv, [*argv[:-2], "-q"], version=version)


PEERS = {
    "cellblock": Peer([CELLBLOCK, "-c", "pass"], [CELLBLOCK, *OURS],
                      version=[CELLBLOCK, "--version"]),
    "python3": of_python([PYTHON, "-c", "pass"], [PYTHON, "--version"]),
    "IPython": Peer([ipython.PATH, "-c", "pass"],
                    [ipython.PATH, "--no-banner", "--colors=NoColor",
                     "--no-confirm-exit"], rb"In \[\d+\]:",
                    [ipython.PATH, "--version"]),
    "bubblewrap": of_python(BWRAP, ["bwrap", "--version"]),
    "firejail": of_python(FIREJAIL, ["firejail", "--version"]),
    "nsjail": of_python(NSJAIL, ["nsjail", "--version"]),
}


def ms(seconds):
    return f"{seconds * 1000:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def mib(size):
    return f"{size / (1 << 20):.3g} MiB"


def is_there(peer):
    return peer.program[0] and shutil.which(peer.program[0])


def version_of(peer):
    said = subprocess.run(peer.version, capture_output=True, text=True,
                          check=False).stdout
    found = re.search(r"\d+(\.\d+)+", said)
    return found[0] if found else ""


def environment(world):
    return {**world.env, "IPYTHONDIR": str(world.home / "ipython"),
            "PROMPT_TOOLKIT_NO_CPR": "1"}


def memory_of(pids):
    """The memory of living processes, each page shared out among those that have
    it; None where we may not see that."""
    size = 0
    for pid in pids:
        try:
            text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
        except PermissionError:
            return None
        except OSError:     # it has no memory any more
            continue
        size += int(re.search(r"\nPss: +(\d+)", text)[1]) << 10
    return size


class Table:
    def __init__(self, peers):
        self.peers = peers
        print("\n| | " + " | ".join(
            f"{name} {version_of(p)}" for name, p in peers.items()) + " |")
        print("|" + " --- |" * (len(peers) + 1), flush=True)

    def row(self, what, values, unit):
        """`values` has a list for each peer, a value for each turn."""
        plain = values.get("python3")
        cells = []
        for name in self.peers:
            mine = [v for v in values.get(name, ()) if v is not None]
            if not mine:
                cells.append("–")
                continue
            times = statistics.median(v / p for v, p in zip(mine, plain)) \
                if plain and plain[0] and name != "python3" else 0
            cells.append(unit(statistics.median(mine)) +
                         (f" ({times:.2g})" if times else ""))
        print(f"| {what} | " + " | ".join(cells) + " |", flush=True)


def starts(world, peers, rounds):
    values = {name: [] for name in peers}
    for _ in range(rounds):
        for name, p in peers.items():
            values[name].append(whole(p.program, environment(world)))
    return values


def first(world, peers, rounds):
    """Until the prompt is there, and until 1+1 is answered, from exec."""
    prompts, answers = ({name: [] for name in peers} for _ in range(2))
    for _ in range(rounds):
        for name, p in peers.items():
            t = Terminal(p.session, environment(world))
            prompts[name].append(t.until(p.mark) - t.begun)
            os.write(t.fd, b"1000003*7\r")
            answers[name].append(t.until(b"7000021") - t.begun)
            t.end()
    return prompts, answers


def trips(terminals, rounds):
    """From Enter to the answer."""
    values = {name: [] for name in terminals}
    for i in range(rounds):
        for name, t in terminals.items():
            values[name].append(
                t.ask(f"1000003*{i + 1}", b"%d" % (1000003 * (i + 1))))
    return values


def asked(terminals, peers, line, rounds):
    """From Enter to the prompt behind the last line of the output."""
    return {name: [t.ask(line, rb"[ey]\r\n(?s:.{0,300})" + peers[name].mark)
                   for _ in range(rounds)] for name, t in terminals.items()}


def many(world, peer):
    """Seconds until `MANY` that start together have their prompts, and the
    memory of each."""
    before = set(hosttree.all_pids())
    times, terminals = at_once([peer.session] * MANY, peer.mark,
                               environment(world))
    for t in terminals:
        t.settle()
    size = memory_of(set(hosttree.all_pids()) - before)
    for t in terminals:
        t.end()
    if len(times) < MANY:
        return None, None
    return times[-1], size and size / MANY


def table(world, rounds):
    peers = {name: p for name, p in PEERS.items() if is_there(p)}
    cpu = re.search(r"model name\s*: (.*)",
                    pathlib.Path("/proc/cpuinfo").read_text())
    print(f"\n{datetime.date.today()}, {os.cpu_count()} processors "
          f"({cpu[1] if cpu else platform.machine()}), Linux "
          f"{platform.release()}. In brackets: times Python's own.")
    out = Table(peers)
    out.row("a program that does nothing", starts(world, peers, rounds * 2),
            ms)
    prompts, answers = first(world, peers, rounds)
    out.row("the first prompt", prompts, ms)
    out.row("the first answer", answers, ms)
    terminals = {}
    for name, p in peers.items():
        terminals[name] = Terminal(p.session, environment(world))
        terminals[name].until(p.mark)
    out.row("a cell, from Enter to its answer", trips(terminals, rounds * 4),
            ms)
    out.row("700 kB of output", asked(terminals, peers, OUTPUT,
                                      max(3, rounds // 4)), ms)
    asked(terminals, peers, LARGE, 1)
    out.row("a cell beside 300 MB of data", trips(terminals, rounds * 2), ms)
    for t in terminals.values():
        t.end()
    large = transfers.turns(world, max(3, rounds // 4), [transfers.LARGE])
    for way, (ours, cp) in large[transfers.LARGE].items():
        out.row(f"{transfers.LARGE} {way} (cp: {ms(statistics.median(cp))})",
                {"cellblock": ours}, ms)
    crowds = {name: many(world, p) for name, p in peers.items()}
    out.row(f"{MANY} prompts that start together",
            {name: [c[0]] for name, c in crowds.items()}, ms)
    out.row("memory of each", {name: [c[1]] for name, c in crowds.items()},
            mib)


def main():
    world = World(tempfile.mkdtemp(prefix="cbbench-"))
    try:
        table(world, int(sys.argv[1]) if len(sys.argv) > 1 else 20)
    finally:
        world.close()
        shutil.rmtree(world.base, ignore_errors=True)


if __name__ == "__main__":
    main()
