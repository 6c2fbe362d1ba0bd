# SPDX-License-Identifier: MIT
"""Files into a session's home and out of it, in turns with cp -r."""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time

SMALL, LARGE = "4000 small files", "a file of 48 MiB"


def command(session, line, ends):
    """The seconds that a command takes: from Enter to what it says."""
    session.wait_prompt()
    session.type(line)
    session.expect(f"{re.escape(line)}$")
    row = session.screen.here() + 1
    start = time.perf_counter()
    session.type("\r")
    session.expect_since(row, ends)
    return time.perf_counter() - start


def copied(a, b):
    start = time.perf_counter()
    subprocess.run(["cp", "-r", a, b], check=True)
    return time.perf_counter() - start


def turn(world, session, source, memory):
    """The seconds of each way: up, cp, down, cp."""
    (world.work / "d").mkdir()
    times = (command(session, f":upload {source.name}", "→ /home/"),
             copied(source, memory / "c"),
             command(session, f":download {source.name} d", "→ d/"),
             copied(memory / "c", world.work / "e"))
    command(session, f":rm -f {source.name}", "removed")
    subprocess.run(["rm", "-r", memory / "c", world.work / "d",
                    world.work / "e"], check=True)
    return times


def turns(world, rounds, kinds=(SMALL, LARGE)):
    """{kind: {"up": ([seconds], [cp's]), "down": ...}}"""
    session = world.session("-q", "-s", "files.max_count=10000", "-s",
                            "home.files=5000", "-s", "files.max_file=64M")
    memory = pathlib.Path(tempfile.mkdtemp(dir="/dev/shm"))
    tree, large = world.work / "t", world.work / "large"
    tree.mkdir(exist_ok=True)
    for i in range(4000 if SMALL in kinds else 0):
        (tree / f"f{i}").write_bytes(b"x" * 100)
    large.write_bytes(os.urandom(48 << 20))
    found = {}
    try:
        for kind in kinds:
            up, up_cp, down, down_cp = zip(*(
                turn(world, session, tree if kind == SMALL else large, memory)
                for _ in range(rounds)))
            found[kind] = {"up": (up, up_cp), "down": (down, down_cp)}
        return found
    finally:
        shutil.rmtree(memory)
        session.close()
