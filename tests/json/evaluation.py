# SPDX-License-Identifier: MIT
"""Requests and answers of cellblock --eval: one by one, or as a stream."""
import base64
import json
import subprocess

import hosttree
from world import PATIENCE

START = {"session": True}
# On a busy host a second is short for Python to raise KeyboardInterrupt.
GRACE = ("-s", "cell.grace=10s")


class Eval:
    def __init__(self, cb):
        self.cb = cb
        self.code = self.said = None

    def __call__(self, *requests, args=()):
        """The answer, or the answers to several requests."""
        text = "".join((r if isinstance(r, str) else json.dumps(r)) + "\n"
                       for r in requests)
        r = self.cb.run(*GRACE, *args, "--eval", stdin=text)
        self.code, self.said = r.code, r.said
        answers = [json.loads(line) for line in r.text.splitlines()]
        assert len(answers) == len(requests), r
        return answers[0] if len(requests) == 1 else answers


def packed(data):
    return base64.b64encode(
        data if isinstance(data, bytes) else data.encode()).decode()


def unpacked(answer):
    """{path: content} of an answer's files."""
    files = {}
    for f in answer["files"]:
        files[f["path"]] = base64.b64decode(f["content"], validate=True)
        assert f["size"] == len(files[f["path"]])
    assert list(files) == sorted(files)
    return files


class Stream:
    """A stream whose reader is looked at between the requests."""

    def __init__(self, cb, *args, begin=None):
        self.p = cb.popen(*GRACE, *args, "--eval", stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE)
        if begin:
            assert self(begin)["session"] is True
        else:
            assert self({"code": "1"})["result"] == 1

    def __call__(self, request):
        if not isinstance(request, bytes):
            request = json.dumps(request).encode()
        self.p.stdin.write(request + b"\n")
        self.p.stdin.flush()
        return json.loads(self.p.stdout.readline())

    def peak(self):
        return hosttree.memory_of(self.p.pid, "VmHWM")

    def cpu(self):
        """Seconds."""
        return hosttree.ticks_of(self.p.pid) / hosttree.TICK

    def close(self):
        self.p.stdin.close()
        return self.p.wait(20 * PATIENCE)


# The report is the pipe that is not standard input, output or error.
REPORT = '''
import os, stat, time
def is_pipe(fd):
    try: return stat.S_ISFIFO(os.fstat(fd).st_mode)
    except OSError: return False
report = next(filter(is_pipe, range(3, 1024)))
def send(data):
    while data: data = data[os.write(report, data):]
'''
