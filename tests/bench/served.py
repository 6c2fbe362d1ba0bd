#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Send many requests to --serve, and print what the server and the host hold
after some, and after all of them. It measures, and tests nothing.
`tests/bench/served.py [REQUESTS]`; $BUILD names the build directory."""
import json
import pathlib
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "lib"))

from hosttree import cgroups_of, stat_of  # noqa: E402
from world import World  # noqa: E402

FORMS = {"/v1/execute": {"code": "print(1)"}, "/eval": {"input": "print(1)"}}
CLIENTS = 8


class Client:
    """One connection, which is kept. A request goes out in one piece, as
    curl's does: http.client sends head and body one after the other."""

    def __init__(self, port, path, body=None):
        body = json.dumps(body or FORMS[path]).encode()
        self.request = (f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                        "Content-Type: application/json\r\n"
                        f"Content-Length: {len(body)}\r\n\r\n").encode() + body
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self):
        """The seconds from the first byte that is sent to the last that
        comes."""
        start = time.perf_counter()
        self.socket.sendall(self.request)
        got = b""
        while b"\r\n\r\n" not in got:
            got += self.receive()
        head, _, body = got.partition(b"\r\n\r\n")
        length = int(re.search(rb"(?i)\ncontent-length: *(\d+)", head)[1])
        while len(body) < length:
            body += self.receive()
        taken = time.perf_counter() - start
        assert json.loads(body)["stdout"] == "1\n", body
        return taken

    def receive(self):
        got = self.socket.recv(65536)
        assert got, "the server has closed the connection"
        return got


class Server:
    """One that runs; end() it."""

    def __init__(self, world):
        self.process = world.popen(
            "--serve", "127.0.0.1:0", stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        said = self.process.stderr.readline().decode()
        self.port = int(re.search(r":(\d+)", said)[1])
        self.tree = world.tree(self.process)
        time.sleep(1)  # until spares are made

    def ask(self, path, n, gap=0, body=None):
        """The seconds that each of n requests took, one after the other."""
        client, times = Client(self.port, path, body), []
        for _ in range(n):
            times.append(client.ask())
            time.sleep(gap)
        client.socket.close()
        return times

    def ask_together(self, path, n, clients=CLIENTS):
        """n requests of so many clients at once: seconds of each, and in
        all."""
        times = []
        threads = [threading.Thread(target=lambda: times.extend(
            self.ask(path, n // clients))) for _ in range(clients)]
        start = time.perf_counter()
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        return times, time.perf_counter() - start

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()
        self.process.stderr.close()


def kib_of(pid, key):
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(rf"{key}:\s+(\d+)", text)[1])


def held(server):
    """The memory and descriptors of the processes that stay, and of all."""
    time.sleep(2)  # spares are made, and jails are gone
    front = server.process.pid
    live = server.tree.look()
    maker, = (pid for pid in live if int(stat_of(pid)[1]) == front)
    return {
        "front end, KiB": kib_of(front, "VmRSS"),
        "maker, KiB": kib_of(maker, "VmRSS"),
        "front end, descriptors": len(list(
            pathlib.Path(f"/proc/{front}/fd").iterdir())),
        "maker, descriptors": len(list(
            pathlib.Path(f"/proc/{maker}/fd").iterdir())),
        "processes": len(live),
        "cgroups": len({g for pid in live for g in cgroups_of(pid)}),
        "cgroups of the host": sum(int(line.split()[2]) for line in open(
            "/proc/cgroups") if line[0] != "#"),
        "mounts of the host": len(open("/proc/self/mounts").readlines()),
        "kernel's own, MiB": int(re.search(
            r"SUnreclaim:\s+(\d+)", open("/proc/meminfo").read())[1]) >> 10,
    }


def main():
    total = int(sys.argv[1]) if len(sys.argv) > 1 else 10000
    world = World(tempfile.mkdtemp(prefix="cbbench-"))
    try:
        for path in FORMS:
            server = Server(world)
            steps = {"at the start": held(server)}
            done = 0
            for n in total // 10, total:
                times, seconds = server.ask_together(path, n - done)
                steps[f"after {n}"] = held(server)
                print(f"{path}: {(n - done) / seconds:.0f} a second, median "
                      f"{statistics.median(times) * 1000:.1f} ms", flush=True)
                done = n
            print(f"{'':26}" + "".join(f"{s:>14}" for s in steps))
            for what in steps["at the start"]:
                print(f"{what:26}" + "".join(
                    f"{s[what]:>14}" for s in steps.values()), flush=True)
            server.end()
    finally:
        world.close()
        shutil.rmtree(world.base, ignore_errors=True)


if __name__ == "__main__":
    main()
