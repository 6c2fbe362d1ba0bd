# SPDX-License-Identifier: MIT
"""Network namespaces, and a proxy's configuration, for tests of several hosts."""
import ctypes
import subprocess

import hosttree

CLONE_NEWNET = 0x40000000
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"


def wait(test, what):
    hosttree.until(test, lambda: what, 30)


def sh(*words):
    subprocess.run(words, check=True, capture_output=True,
                   timeout=30 * hosttree.PATIENCE)


class Net:
    """A network namespace, kept by a process."""

    def __init__(self):
        self.keeper = subprocess.Popen(
            ["unshare", "--net", "sh", "-c", "echo; exec cat"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.keeper.stdout.readline()
        self.pid = str(self.keeper.pid)
        self("ip", "link", "set", "lo", "up")

    def wrap(self, *words):
        return ["nsenter", "--net", "-t", self.pid, "--", *words]

    def __call__(self, *words):
        sh(*self.wrap(*words))

    def enter(self):
        """Move this thread, and the sockets that it makes."""
        with open(f"/proc/{self.pid}/ns/net") as f:
            assert ctypes.CDLL(None, use_errno=True).setns(
                f.fileno(), CLONE_NEWNET) == 0, ctypes.get_errno()

    def end(self):
        self.keeper.stdin.close()
        self.keeper.stdout.close()
        self.keeper.wait(30 * hosttree.PATIENCE)


def change(text, changes):
    for old, new in changes.items():
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text
