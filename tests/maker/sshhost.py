# SPDX-License-Identifier: MIT
"""A real sshd, as our snippet sets it, on a host with root's maker."""
import pathlib
import socket
import subprocess

import freeport
import hosttree
import makerhost
import sshd

SNIPPET = (pathlib.Path(__file__).resolve().parent.parent.parent
           / "etc/sshd_config.d/cellblock.conf")
# Half of a key exchange is the client's, which is elsewhere in a laboratory.
CHEAP = "-o", sshd.KEX


def snippet(binary):
    """Its settings for the whole server, and for its group."""
    words = SNIPPET.read_text().replace("/usr/local/bin/cellblock",
                                        str(binary))
    return words.replace("Match Group cellblock",
                         "Match User cellblock-test-*")


class Ssh:
    def __init__(self, host):
        self.host = host
        d = host.dir
        for key in "host", "client":
            makerhost.run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f",
                          str(d / key))
        self.port = freeport.pick()
        (d / "sshd").write_text(f"""ListenAddress 127.0.0.1:{self.port}
HostKey {d}/host
PidFile none
UsePAM no
StrictModes no
AuthorizedKeysFile {d}/client.pub
PasswordAuthentication no
""" + snippet(host.binary))
        self.log = open(d / "sshd.log", "wb")
        self.process = subprocess.Popen(
            [*host.inside(), "sh", "-c", 'mkdir -p /run/sshd; exec "$@"', "sh",
             sshd.find(), "-D", "-e", "-f", str(d / "sshd")],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        hosttree.until(self._is_up, "the ssh server")

    def _is_up(self):
        assert self.process.poll() is None, \
            (self.host.dir / "sshd.log").read_text()
        with socket.socket() as s:
            return s.connect_ex(("127.0.0.1", self.port)) == 0

    def argv(self, person, *options, kex=CHEAP):
        return ["ssh", "-F", "none", "-p", str(self.port), "-i",
                str(self.host.dir / "client"), "-o", "LogLevel=ERROR",
                "-o", "StrictHostKeyChecking=no", "-o", "BatchMode=yes",
                "-o", "UserKnownHostsFile=/dev/null", *kex, *options, "--",
                f"{person.name}@127.0.0.1"]

    def close(self):
        self.process.terminate()
        self.process.wait()
        self.log.close()
