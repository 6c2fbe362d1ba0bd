# SPDX-License-Identifier: MIT
"""Sessions beside others that take all they can get: what a person has seen is
never taken back because somebody else is busy."""
import random
import threading
import time

import pytest

import world
from evaluation import START, Stream

# A person's jail is stopped by signals, and no cgroup shares out the CPU; root's
# has both. For long it makes the host busy for everybody, and needs it for
# itself; for short it is one of those that make it busy.
pytestmark = [pytest.mark.both, pytest.mark.sampled, pytest.mark.alone("whole")]

LOOP = "while True: pass"
FORKS = "import os\nwhile True:\n  try: os.fork()\n  except OSError: pass"
FLOOD = "while True: print('y' * 4000)"
MEMORY = "held = []\nwhile True: held.append(bytearray(1 << 20))"
FILL = """import os
n = 0
while True:
    n += 1
    try: open('f%d' % n, 'wb').write(b'x' * (1 << 20))
    except OSError: [os.unlink(f) for f in os.listdir() if f[0] == 'f']"""
NOISE = (LOOP, FORKS, FLOOD, MEMORY, FILL)
NOISE += (FORKS, LOOP, FORKS, FILL) if world.WHOLE else ()
# A cell that is taken back is lost at its end: cells count, and not seconds.
SECONDS, NOISE_MS = (15, 3000) if world.WHOLE else (1, 500)
PAUSE = .05, .5
QUIET = 15 if world.WHOLE else 4
MANY = ("-s", "session.per_user=100")


def work(stream, number, end, taken_back):
    """Cells that count, with pauses: none is ever undone."""
    chance = random.Random(number)
    n = 0
    while time.monotonic() < end:
        time.sleep(chance.uniform(*PAUSE))
        answer = stream({"code": "n += 1\nn"})
        said = " ".join([answer["verdict"], *answer["notices"]])
        if answer["how"] == "refused":  # it waited too long, and says so
            continue
        n += 1
        if answer["output"] != f"{n}\n" or "back to" in said.replace(
                "would go back to", "") or "restarted" in said:
            taken_back.append((number, n, answer["output"], said))
            return


def disturb(stream, code, end):
    while time.monotonic() < end:
        stream({"code": code, "timeout_ms": NOISE_MS})


@pytest.mark.limit(180)
def test_no_load_of_others_takes_a_finished_cell_back(cb):
    quiet = [Stream(cb, *MANY, begin=START) for _ in range(QUIET)]
    noisy = [Stream(cb, *MANY, begin=START) for _ in NOISE]
    for stream in quiet:
        assert stream({"code": "n = 0"})["how"] == "ok"
    end = time.monotonic() + SECONDS
    taken_back = []
    threads = [threading.Thread(target=disturb, args=(s, code, end))
               for s, code in zip(noisy, NOISE)]
    threads += [threading.Thread(target=work, args=(s, i, end, taken_back))
                for i, s in enumerate(quiet)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not taken_back, taken_back
    # Each has a checkpoint again.
    for stream in quiet:
        answers = stream({"code": "n"}), stream({"code": "import os; os.abort()"})
        assert [a["how"] for a in answers] == ["ok", "crashed"], answers
        assert "back to the state before" in answers[1]["verdict"], answers
        assert stream({"code": "n"})["output"] == answers[0]["output"]
    for stream in quiet + noisy:
        stream.close()
