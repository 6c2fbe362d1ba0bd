# SPDX-License-Identifier: MIT
"""cellblock --serve where there is no room for a file."""
import contextlib
import os
import pathlib

from client import TIMEOUT_MS, request

EDGE = 64 << 10


def leave(n=1, size=1, fill="x"):
    """Code that leaves so many files."""
    return (f"for i in range({n}):\n"
            f"    with open(f'f{{i:03}}', 'w') as f: f.write({fill!r} * {size})")


def ids_of(answer):
    assert answer.status == 200, answer
    return [f["file_id"] for f in answer.json["files"]]


def status_of(server, file_id):
    return server("GET", f"/v1/files/{file_id}").status


def kept(server):
    return {f["file_id"] for f in server("GET", "/v1/files").json["files"]}


def figures(server):
    now = server.figures()
    return now["files"], now["files_bytes"], now["files_dropped_total"]


def test_the_oldest_result_makes_room(serve):
    server = serve("-s", "serve.files=8")   # of which a client has six
    ids = []
    for i in range(10):
        r = server.run(leave(fill=str(i)))
        assert r.json["files_error"] is None
        ids += ids_of(r)
        assert kept(server) == set(ids[-6:]), i
    assert [status_of(server, i) for i in ids] == [404] * 4 + [200] * 6
    assert server("GET", f"/v1/files/{ids[-1]}").body == b"9"
    assert figures(server) == (6, 6, 4)


def test_bytes_make_room_like_files(serve):
    server = serve("-s", "serve.storage=4M", "-s", "files.max_file=8M")
    ids = []
    for i in range(5):
        ids += ids_of(server.run(leave(size=1 << 20, fill=str(i))))
    assert [status_of(server, i) for i in ids] == [404] * 2 + [200] * 3
    assert server("GET", f"/v1/files/{ids[2]}").body == b"2" * (1 << 20)
    # A file for which there can be no room costs none of the others.
    r = server.run(leave(size=4 << 20)).json
    assert r["files"] == [] and r["files_error"] == \
        "left out: f000: there is no room for more files"
    assert kept(server) == set(ids[2:])
    # An upload makes room for itself, too.
    assert server.upload(b"u" * (2 << 20)).status == 201
    assert kept(server) & set(ids) == {ids[4]}


def test_an_upload_never_goes(serve):
    server = serve("-s", "serve.files=8")
    result, = ids_of(server.run(leave()))
    uploads = [server.upload(b"u") for _ in range(6)]
    assert [u.status for u in uploads] == [201] * 6
    assert status_of(server, result) == 404
    assert server.upload(b"u").status == 507
    r = server.run(leave(2)).json
    assert r["files"] == [] and r["files_error"] == \
        "left out: f000 and others: there is no room for more files"
    ids = [u.json["file_id"] for u in uploads]
    assert kept(server) == set(ids)
    # control: where one goes, a result comes, and stays
    assert server("DELETE", f"/v1/files/{ids[0]}").status == 204
    assert len(ids_of(server.run(leave()))) == 1


def test_an_answer_keeps_what_fits_and_names_the_rest(serve):
    server = serve("-s", "serve.files=8", "-s", "files.max_count=7")
    for _ in range(2):
        r = server.run(leave(7))
        assert [f["path"] for f in r.json["files"]] == \
            [f"f{i:03}" for i in range(6)]
        assert r.json["files_error"] == \
            "left out: f006: there is no room for more files"
        assert kept(server) == set(ids_of(r)), "its own files stay"
    r = server.run(leave(9)).json
    assert r["files_error"].startswith("left out: f006 and others: ")


def test_files_beyond_the_limits_of_an_answer_are_named(serve):
    server = serve("-s", "files.max_count=2", "-s", "files.max_file=1K")
    r = server.run(leave(2, 2000)).json
    assert r["files"] == [] and r["files_error"] == \
        "left out: f000 and others: it is larger than files.max_file"
    r = server.run(leave(3)).json
    assert len(r["files"]) == 2 and r["files_error"] == \
        "left out: f002: there are more than files.max_count"
    assert server.run(leave(2)).json["files_error"] is None


def test_a_result_that_is_read_or_used_stays(serve):
    server = serve("-s", "serve.files=4", "-s", "serve.storage=64M")
    size = 16 << 20
    first, = ids_of(server.run(leave(size=size, fill="a")))
    with server.connect() as s:
        s.sendall(request("GET", f"/v1/files/{first}", b"",
                          "Connection: close"))
        got = s.recv(1000)
        assert got.startswith(b"HTTP/1.1 200 ")
        for i in range(4):
            ids_of(server.run(leave(fill=str(i))))
            got += s.recv(1 << 18)  # a client that reads nothing is cut off
        while more := s.recv(1 << 20):
            got += more
    assert got.endswith(b"\r\n\r\n" + b"a" * size)
    # No one reads it any more: it is the oldest, and goes.
    ids_of(server.run(leave()))
    assert status_of(server, first) == 404


def test_others_keep_their_part(serve):
    """However much a client makes, a quarter is left to another."""
    server = serve("-s", "serve.files=8")

    def other(code):
        return ids_of(server.curl(
            "POST", "/v1/execute", {"code": code, "timeout_ms": TIMEOUT_MS},
            "--interface", "127.0.0.2"))

    theirs = [*other(leave()), *other(leave())]
    for _ in range(10):
        assert len(ids_of(server.run(leave()))) == 1
    assert set(theirs) <= kept(server)
    # Where all is taken, the other one's new file takes the oldest place.
    theirs += other(leave())
    assert len(theirs) == 3 and len(kept(server)) == 8


def test_hundreds_of_results_fit_at_once(server):
    """As many as an agent makes in a day, without a descriptor for each."""
    fds = pathlib.Path(f"/proc/{server.process.pid}/fd")
    ids_of(server.run(leave()))
    before = len(list(fds.iterdir()))
    ids = [i for n in range(5) for i in ids_of(server.run(leave(100)))]
    assert len(set(ids)) == 500 and set(ids) <= kept(server)
    assert status_of(server, ids[0]) == 200
    assert len(list(fds.iterdir())) < before + 20


# ---- all files are in one ----

SIZES = [0, 1, EDGE - 1, EDGE, EDGE + 1, 2 * EDGE]


def test_no_file_has_bytes_of_another(serve):
    server = serve("-s", f"serve.upload={2 * EDGE}")
    for _ in range(2):      # the second time in places that had others
        data = {chr(ord("a") + i): bytes([ord("a") + i]) * n
                for i, n in enumerate(SIZES)}
        ids = {name: server.upload(b, name).json["file_id"]
               for name, b in data.items()}
        assert server.upload(b"z" * (2 * EDGE + 1)).status == 413
        for name, i in ids.items():
            assert server("GET", f"/v1/files/{i}").body == data[name]
        r = server.run(
            "import os\n{n: (len(b := open(n, 'rb').read()), sorted(set(b)))"
            " for n in sorted(os.listdir())}",
            files=[{"path": n, "file_id": i} for n, i in ids.items()]).json
        assert r["result"] == {n: [len(b), sorted(set(b))]
                               for n, b in data.items()}, r
        for i in list(ids.values())[::-1]:
            assert server("DELETE", f"/v1/files/{i}").status == 204
        SIZES.reverse()
    assert figures(server)[:2] == (0, 0)


def test_a_place_that_is_free_takes_no_room_on_the_disk(serve):
    server = serve()
    def blocks():
        return sum(os.stat(f).st_blocks for f in files)

    files = []
    for f in pathlib.Path(f"/proc/{server.process.pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):    # it was closed
            if os.readlink(f).startswith("/var/tmp/"):
                files.append(f)
    assert len(files) == 1
    ids = [server.upload(b"x" * (4 << 20)).json["file_id"] for _ in range(3)]
    assert blocks() >= 3 * 8192
    for i in ids[:2]:
        server("DELETE", f"/v1/files/{i}")
    assert 8192 <= blocks() < 2 * 8192
    assert server("GET", f"/v1/files/{ids[2]}").body == b"x" * (4 << 20)
    server("DELETE", f"/v1/files/{ids[2]}")
    assert blocks() == 0
