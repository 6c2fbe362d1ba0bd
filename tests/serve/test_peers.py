# SPDX-License-Identifier: MIT
"""cellblock --serve beside two peers: each row of peers.py."""
import base64
import json
import re
import textwrap
import uuid

import pytest

import peers
from client import JSON, Server
from world import PATIENCE, World


@pytest.fixture(name="theirs", scope="module")
def _theirs(tmp_path_factory):
    """A server with snekbox's limits, as docs/JSON.md has them. A busy host
    has more time."""
    world = World(tmp_path_factory.mktemp("snekbox"))
    conf = world.base / "snekbox.conf"
    shown, = re.findall(r"\n(    \[cell\]\n    timeout = 6s\n(?:    .*\n)+)",
                        (peers.PAGE.parent / "JSON.md").read_text())
    conf.write_text(textwrap.dedent(shown).replace(
        "timeout = 6s", f"timeout = {int(6 * PATIENCE)}s"))
    server = Server(world, "-f", str(conf))
    yield server
    assert server.end() == 0, server.process.stderr.read()
    world.close()


def sent(server, ask):
    data = ask.body
    if not isinstance(data, (str, type(None))):
        return server(ask.method, ask.path, data)
    # urllib names a type where none is given, so a request without is curl's.
    if data and not ask.fields:
        return server.curl(ask.method, ask.path, None, "-H", "Content-Type:",
                           "--data-binary", data)
    return server(ask.method, ask.path,
                  None if data is None else data.encode(),
                  ask.fields or None)


def compare(row, r, got):
    """The answer r, whose content is `got`, is what the row has as ours."""
    if row.counted and (r.status, got) == row.theirs:
        return
    status, wanted, *fields = row.ours
    assert (r.status, got) == (status, wanted), (row, r)
    for name, value in dict(*fields).items():
        assert r.headers[name] == value, (row, name)


@pytest.mark.parametrize("row", peers.SNEKBOX, ids=repr)
def test_a_request_of_snekboxs_is_answered_as_its_row_says(theirs, row):
    ask = row.ask if isinstance(row.ask, peers.Ask) else \
        peers.Ask("POST", "/eval", row.ask)
    r = sent(theirs, ask)
    got = r.json if r.body else None
    if got and "files" in got:
        files = got["files"]
        assert [f["path"] for f in files] == sorted(f["path"] for f in files)
        got["files"] = {f["path"]: base64.b64decode(f["content"])
                        for f in files}
        assert all(f["size"] == len(got["files"][f["path"]]) for f in files)
        if isinstance(row.ours, str):
            assert f"{len(files)} files" == row.ours
            return
    compare(row, r, got)


def with_ids(value, ids):
    """The text of a request, with ids of what was uploaded."""
    return re.sub(r"@(\d)", lambda m: ids[int(m[1])], value)


@pytest.mark.parametrize("row", peers.ONYX, ids=repr)
def test_a_request_of_onyxs_is_answered_as_its_row_says(lasting, row):
    server = lasting
    for f in server("GET", "/v1/files").json["files"]:
        server("DELETE", f"/v1/files/{f['file_id']}")
    ids = [server.upload(data, name).json["file_id"]
           for name, data in row.uploads]
    ask = row.ask
    if not isinstance(ask.body, (str, type(None))):
        body = ask.body
        if isinstance(row.ours[1], dict) and \
                row.ours[1].get("timed_out") is False:
            # A busy host may need more than the two seconds of the default.
            body = {"timeout_ms": 60000, **body}
        elif isinstance(body, dict) and body.get("timeout_ms") == 1000:
            body = {**body, "timeout_ms": int(1000 * PATIENCE)}
        ask = peers.Ask(ask.method, ask.path, json.dumps(body),
                        Content_Type=JSON["Content-Type"])
    ask.path = with_ids(ask.path, ids)
    ask.body = ask.body and with_ids(ask.body, ids)
    r = sent(server, ask)
    got = r.body or None
    if got and r.headers["Content-Type"] == "application/json":
        got = r.json
    if isinstance(got, dict) and "stdout" in got and row.ours[0] == 200:
        assert isinstance(got["duration_ms"], int)
        got["files"] = {f["path"]: server(
            "GET", f"/v1/files/{f['file_id']}").body for f in got["files"]}
        got = {k: got[k] for k in row.ours[1]}
    for told in [got, *got.get("files", [])] if isinstance(got, dict) else []:
        if isinstance(told, dict) and "file_id" in told:
            assert uuid.UUID(told["file_id"]).version == 4
            told["file_id"] = peers.ID
            told.pop("upload_time", None)
    compare(row, r, got)
