# SPDX-License-Identifier: MIT
"""Terminals that die in the middle of something. Nothing is lost but what was
not yet typed."""
import pytest

import hosttree

# Root's sessions and a person's have their sockets in different places.
pytestmark = pytest.mark.both


def test_a_cell_that_reads_keys_goes_on_with_the_next(many):
    s = many.start("-t", "60s")
    row = s.enter(
        "import os, sys, tty\nm = tty.tcgetattr(0)\ntty.setcbreak(0)\n"
        "keys = b''\nprint('on', flush=True)\nwhile keys[-1:] != b'.':\n"
        "    keys += os.read(0, 1)\n    print(keys, flush=True)\n\n"
        "tty.tcsetattr(0, tty.TCSANOW, m)")
    s.expect_since(row, "^on")
    s.type("ab")
    s.expect_since(row, "^b'ab'")
    many.lose(s)
    t = many.start("--attach", start=False)
    t.expect("session 1 again|missed while away")
    t.type("c")
    t.expect("b'abc'")
    t.type(".")
    t.wait_prompt()
    assert t.run("keys") == "b'abc.'"


def test_a_download_goes_on_to_its_end(many):
    s = many.start("-s", "files.max_count=2000")
    s.run("import os; os.mkdir('many'); x = [open(f'many/f{i}', 'wb')"
          ".write(b'x' * 1000) for i in range(1000)]; None")
    many.lose_in_transfer(s, ":download many")
    t = many.start("--attach")
    assert t.run("len(x), sum(x)") == "(1000, 1000000)"
    tree = many.cb.work / "many"
    hosttree.until(lambda: len(list(tree.iterdir())) == 1000, "all files")
    assert {f.stat().st_size for f in tree.iterdir()} == {1000}


def test_a_command_that_was_not_sent_is_not_run(many):
    """The text at the prompt is there again, for the person to decide."""
    s = many.start()
    s.run("open('f', 'w').close()")
    s.type(":rm f")
    s.expect("^>>> :rm f$")
    many.lose(s)
    t = many.start("--attach", start=False)
    t.expect("^>>> :rm f$")
    t.type("\x15")
    t.wait_prompt()
    assert t.run("import os; os.listdir()") == "['f']"
