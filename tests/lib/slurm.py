# SPDX-License-Identifier: MIT
"""Slurm with three nodes on this machine: munged, slurmctld and three slurmd,
with keys, sockets and state in a directory of their own. All of it listens on
the loopback interface, and ends by its pid."""
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import time

from hosttree import all_pids, open_in, send, until
import world

NODES = ("node1", "node2", "node3")
TOOLS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scontrol",
         "sinfo")

CONF = """\
ClusterName=cbtest
SlurmctldHost=localhost(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={base}/munge.socket
CredType=cred/munge
CommunicationParameters=NoAddrCache
SlurmctldPort={ports[0]}
StateSaveLocation={base}/state
SlurmctldPidFile={base}/slurmctld.pid
SlurmctldLogFile={base}/slurmctld.log
SlurmdPidFile={base}/%n.pid
SlurmdLogFile={base}/%n.log
SlurmdSpoolDir={base}/%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/builtin
SwitchType=switch/none
ReturnToService=2
SlurmdTimeout=300
KillWait=2
MinJobAge=300
{nodes}
PartitionName=all Nodes={names} Default=YES MaxTime=INFINITE State=UP
"""


def missing():
    """Why there is no Slurm here, or None."""
    path = "/usr/sbin:/sbin:" + os.environ.get("PATH", "")
    lacks = [t for t in TOOLS if not shutil.which(t, path=path)]
    return f"no {', '.join(lacks)}" if lacks else None


def free_ports(n):
    """Ports of 127.0.0.1 that nobody has now, and none that the kernel gives
    to a client."""
    ports = []
    while len(ports) < n:
        port = random.randrange(10000, 32000)
        try:
            socket.create_server(("127.0.0.1", port)).close()
        except OSError:
            continue
        ports.append(port)
    return ports


def environ_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []


def command_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


class Cluster:
    def __init__(self, base):
        self.base = pathlib.Path(base)
        self.processes = {}
        ports = free_ports(1 + len(NODES))
        (self.base / "state").mkdir()
        nodes = "\n".join(
            f"NodeName={n} NodeHostname=localhost NodeAddr=127.0.0.1 "
            f"Port={p} CPUs=1 State=UNKNOWN" for n, p in zip(NODES, ports[1:]))
        self.conf = self.base / "slurm.conf"
        self.conf.write_text(CONF.format(
            base=self.base, ports=ports, nodes=nodes, names=",".join(NODES)))
        self.env = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8",
                    "SLURM_CONF": str(self.conf), "HOME": str(self.base)}
        key = self.base / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)

    def start(self):
        """Start all of it. False where a port was taken meanwhile."""
        b = self.base
        self.spawn("munged", "munged", "--foreground", "--force",
                   f"--key-file={b}/munge.key", f"--socket={b}/munge.socket",
                   f"--pid-file={b}/munged.pid", f"--log-file={b}/munged.log",
                   f"--seed-file={b}/munged.seed")
        until(lambda: (b / "munge.socket").exists(), self.logs, 30)
        self.spawn("slurmctld", "slurmctld", "-D", "-c", "-f", self.conf)
        for node in NODES:
            self.start_node(node)
        until(lambda: self.has_failed() or
              self.states() == {n: "idle" for n in NODES}, self.logs, 60)
        return not self.has_failed()

    def has_failed(self):
        """Whether a daemon has ended, such as one whose port was taken."""
        return any(p.poll() is not None for p in self.processes.values())

    def spawn(self, name, *argv):
        with open(self.base / f"{name}.out", "ab") as out:
            self.processes[name] = subprocess.Popen(
                list(map(str, argv)), env=self.env, cwd=self.base,
                stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                start_new_session=True)

    def start_node(self, node):
        (self.base / node).mkdir(exist_ok=True)
        self.spawn(node, "slurmd", "-D", "-N", node, "-f", self.conf)

    def logs(self):
        names = [p for p in sorted(self.base.glob("*.log")) +
                 sorted(self.base.glob("*.out")) if p.stat().st_size]
        return "\n".join(f"--- {p.name}\n{p.read_text()[-1500:]}"
                         for p in names)

    def ask(self, *argv, check=True):
        r = subprocess.run(list(map(str, argv)), env=self.env, text=True,
                           cwd=self.base, capture_output=True, check=False,
                           timeout=60 * world.PATIENCE)
        assert r.returncode == 0 or not check, (argv, r, self.logs())
        return r.stdout

    def states(self):
        text = self.ask("sinfo", "-h", "-N", "-o", "%N %t", check=False)
        return dict(line.split()[:2] for line in text.splitlines())

    def queue(self):
        """[(job_task, state, node)] of what is not over."""
        return [tuple(line.split("|")) for line in self.ask(
            "squeue", "-h", "-r", "-o", "%i|%T|%N").splitlines()]

    def wait_empty(self, seconds=240):
        until(lambda: not self.queue(),
              lambda: f"the queue {self.queue()}\n{self.logs()}", seconds)

    def kill_node(self, node):
        """Kill everything on it at once, as if it had lost its power."""
        daemon = self.processes.pop(node)
        os.kill(daemon.pid, signal.SIGSTOP)         # it sees nothing of it
        name = f"SLURMD_NODENAME={node}".encode()
        jobs = {i.encode() for i, _, on in self.queue_raw() if on == node}
        killed = []
        for _ in range(3):
            for pid in all_pids():
                there = name in environ_of(pid) or any(
                    command_of(pid).startswith(b"slurmstepd: [" + j + b".")
                    for j in jobs)
                if there and self.has(pid):
                    killed.append((pid, command_of(pid)))
                    send([pid])
            time.sleep(0.05)
        send([daemon.pid])
        daemon.wait()
        return killed

    def has(self, pid):
        """Whether a process is of this cluster, and of no other that tests
        have at the same time. slurmstepd hides its variables."""
        if pid == os.getpid():
            return False
        if f"SLURM_CONF={self.conf}".encode() in environ_of(pid):
            return True
        return any(path.startswith(f"{self.base}/") for path in open_in(pid))

    def queue_raw(self):
        """The same with the numbers of jobs, as slurmstepd names them."""
        return [tuple(line.split("|")) for line in self.ask(
            "squeue", "-h", "-r", "-o", "%A|%T|%N").splitlines()]

    def close(self):
        self.ask("scancel", "-u", "root", check=False)
        for name in (*NODES, "slurmctld", "munged"):
            p = self.processes.pop(name, None)
            if not p:
                continue
            p.terminate()
            try:
                p.wait(timeout=20 * world.PATIENCE)
            except subprocess.TimeoutExpired:
                p.kill()
                p.wait()
        send(pid for pid in all_pids() if self.has(pid))
