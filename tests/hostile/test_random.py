# SPDX-License-Identifier: MIT
"""Many cells send random messages to the warden. The seed is fixed, so a
failure can be reproduced."""
import random

import pytest

from hostile import FIND, LOST, start, said_since, value
from world import PATIENCE

SEED = 4711
ROUNDS = 20

WORDS = [b"READY", b"TOOK", b"BAD", b"DONE", b"PARKED", b"ASLEEP", b"AWAKE",
         b"ANSWER", b"CELL", b"RESUME", b"", b"D\0NE", b"done"]
HOWS = [b"ok", b"raised", b"syntax", b"interrupted", b"exits", b"", b"x" * 70]


def number(dice, cell):
    return dice.choice([
        lambda: b"%d" % dice.randrange(10), lambda: b"%d" % cell,
        lambda: b"%d" % (cell + 1), lambda: b"4294967295",
        lambda: b"4294967296", lambda: b"9" * dice.randrange(1, 30),
        lambda: b"-1", lambda: b"0x1", lambda: b" ", lambda: b""])()


def message(dice, cell):
    """A message that is nearly valid, or random bytes."""
    if dice.random() < 0.1:
        return dice.randbytes(dice.choice([0, 1, 17, 300, 65536, 65537]))
    parts = [dice.choice(WORDS)]
    for _ in range(dice.randrange(8)):
        parts.append(dice.choice(HOWS) if dice.random() < 0.25
                     else number(dice, cell))
    text = b" ".join(parts)
    if dice.random() < 0.2:
        text += b"\n" + dice.randbytes(dice.randrange(40))
    return text


def true_looking(dice, cell):
    """A message that the driver itself could send now. The message that the
    cell called exit() is left out, because it ends the session."""
    return dice.choice([
        b"DONE %d ok 3 0 0 1" % cell, b"DONE %d raised 3 0 7 0" % cell,
        b"BAD %d short" % cell, b"PARKED %d ok" % (cell + 1),
        b"PARKED %d no" % (cell + 1), b"ASLEEP 3 1 1", b"AWAKE 3 1",
        b"ASLEEP 1 1 1", b"READY 2 3.11.2"])


def a_round(dice, cell):
    """The source of a cell that sends some messages and then does something
    else."""
    lines = [FIND, "import time", "c = control()"]
    for _ in range(dice.randrange(1, 6)):
        m = true_looking(dice, cell) if dice.random() < 0.4 \
            else message(dice, cell)
        lines.append(f"try: c.send({m[:3000]!r} + bytes({len(m[3000:])}))\n"
                     f"except OSError: pass")
        if dice.random() < 0.3:
            lines.append(f"time.sleep({dice.random() * 0.05:.3f})")
    lines.append(dice.choice([
        "pass", "while True: pass", "time.sleep(99)", "c.close()",
        "os.close(sockets()[-1])", "os._exit(0)", "os.kill(os.getpid(), 9)",
        "os.fork()", "1 / 0",
        "import threading\n"
        "threading.Thread(target=lambda: [c.send(b'TOOK 9') for i in range(9)"
        "]).start()",
        "os.register_at_fork(after_in_child=lambda: c.send(b'ASLEEP 2 0 0'))",
        "os.register_at_fork(before=lambda: c.send(b'PARKED 4 ok'))"]))
    return "\n".join(lines)


@pytest.mark.sampled(2)
@pytest.mark.limit(240)
@pytest.mark.parametrize("seed", [SEED, SEED + 1])
def test_random_messages_cost_no_session(cb, seed):
    dice = random.Random(seed)
    s = start(cb, "--set", f"cell.timeout={700 * PATIENCE:.0f}ms",
              "--set", "cell.grace=200ms", size=(50, 120))
    cell, kept = 2, True
    for n in range(ROUNDS):
        source = a_round(dice, cell + 1)
        row = s.screen.here()
        s.run(source, 40)
        if s.process.poll() is not None:
            break
        cell += 1
        assert value(s, "6 * 7", 40) == "42", f"round {n}: {source[-600:]}"
        cell += 1
        out = value(s, "kept", 40)
        cell += 1
        lost = LOST in said_since(s, row)
        assert lost or not kept or out == "{'cell': 1}", \
            f"round {n}: {out}\n{source[-600:]}"
        if lost:
            s.run("kept = {'cell': 1}")
            cell += 1
        assert value(s, "open('kept.txt').read()") == "'in the home'"
        cell += 1
