# SPDX-License-Identifier: MIT
"""cellblock --serve: files that ordinary clients upload arrive as they are."""
import json
import shutil
import subprocess

import pytest

from client import SLOW

# The first piece of a content may be any number of bytes: the last of a buffer.
SIZES = [*range(9), *(edge + n for edge in (1 << 12, 1 << 14, 1 << 16)
                      for n in range(-9, 10, 3))]
FETCH = """
const [url, ...paths] = process.argv.slice(1), fs = require("fs");
(async () => {
  for (const path of paths) {
    const form = new FormData();
    form.append("before", "x");
    form.append("file", new Blob([fs.readFileSync(path)]), "é.txt");
    const r = await fetch(url, {method: "POST", body: form});
    console.log(await r.text());
  }
})();
"""


def content(n):
    """Bytes that look like a boundary, also at their end."""
    return (b"\r\n--" * (n // 4 + 1))[-n:] if n else b""


def by_curl(url, paths):
    return [subprocess.run(
        ["curl", "-sS", "-F", "before=x", "-F", f"file=@{p};filename=é.txt", url],
        check=True, stdout=subprocess.PIPE, timeout=SLOW).stdout for p in paths]


def by_fetch(url, paths):
    if subprocess.run(["node", "-e", "fetch; FormData"],
                      stderr=subprocess.DEVNULL, check=False).returncode:
        pytest.skip("this Node has no fetch")
    return subprocess.run(
        ["node", "-e", FETCH, url, *map(str, paths)], check=True,
        stdout=subprocess.PIPE, timeout=2 * SLOW).stdout.splitlines()


def by_library(library):
    def send(url, paths):
        module = pytest.importorskip(library)
        return [module.post(url, data={"before": "x"}, files={
            "file": ("é.txt", p.read_bytes())}).content for p in paths]
    return send


CLIENTS = {"curl": by_curl, "node": by_fetch,
           "requests": by_library("requests"), "httpx": by_library("httpx")}


@pytest.mark.limit(180)
@pytest.mark.sampled(2)
@pytest.mark.parametrize("client", CLIENTS)
def test_a_file_of_any_size_arrives(serve, tmp_path, client):
    if client in ("curl", "node") and not shutil.which(client):
        pytest.skip(f"{client} is not installed")
    server, paths = serve(), []
    for n in SIZES:
        paths.append(tmp_path / f"f{n}")
        paths[-1].write_bytes(content(n))
    told = [json.loads(text) for text in CLIENTS[client](
        server.url + "/v1/files", paths)]
    assert [t["size_bytes"] for t in told] == SIZES, told
    assert {t["filename"] for t in told} == {"é.txt"}
    for t in told:
        r = server("GET", f"/v1/files/{t['file_id']}")
        assert r.body == content(t["size_bytes"])
