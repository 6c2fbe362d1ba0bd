# SPDX-License-Identifier: MIT
"""cellblock --serve: files that clients keep, and forms that are none."""
import json
import re

import pytest

import hosttree
from client import request, small_disk
from world import IS_ROOT, WHOLE

MEGABYTE = b"x" * (1 << 20)


def form(server, body, boundary="XX", kind="multipart/form-data"):
    return server("POST", "/v1/files", body, {
        "Content-Type": f"{kind}; boundary={boundary}" if boundary else kind})


def part(head, data=b"x", boundary="XX"):
    return (f"--{boundary}\r\nContent-Disposition: form-data; {head}\r\n\r\n"
            ).encode("latin-1") + data + b"\r\n"


END = b"--XX--\r\n"
FILE = part('name="file"; filename="f"')


@pytest.mark.root
def test_a_full_disk_is_said_and_freed(serve, cb):
    if not IS_ROOT:
        pytest.skip("mounting needs root")
    with small_disk(cb.base / "disk", "3m") as disk:
        server = serve("-s", f"serve.directory={disk}")
        ids = [server.upload(MEGABYTE).json["file_id"] for _ in range(2)]
        r = server.upload(MEGABYTE * 2)
        assert (r.status, r.json) == (
            507, {"detail": "There is no room for more files"})
        # The file of a program does not fit either, and the answer says so.
        a = server.run("open('f', 'wb').write(b'x' * 2_000_000)").json
        assert a["exit_code"] == 0 and "no room" in str(a), a
        assert server("DELETE", f"/v1/files/{ids[0]}").status == 204
        assert server.upload(MEGABYTE).status == 201
        assert server("GET", f"/v1/files/{ids[1]}").body == MEGABYTE
        server.end()


def test_a_directory_may_disappear(serve, cb):
    where = cb.base / "d"
    where.mkdir()
    (where / "link").symlink_to("/etc/passwd")
    server = serve("-s", f"serve.directory={where}")
    assert [p.name for p in where.iterdir()] == ["link"], "no file has a name"
    (where / "link").unlink()
    where.rmdir()
    up = server.upload(MEGABYTE).json
    assert server("GET", f"/v1/files/{up['file_id']}").body == MEGABYTE


def test_a_directory_that_cannot_be_used(cb):
    file = cb.base / "file"
    file.write_text("")
    for bad in cb.base / "nothing", file, "/proc/self":
        r = cb.run("-s", f"serve.directory={bad}", "--serve", "127.0.0.1:0")
        assert r.code != 0 and "serve.directory" in r.said, r


def test_an_upload_that_is_cut_leaves_nothing(serve):
    server = serve("-s", "serve.storage=4M", "-s", "serve.files=3")
    body = part('name="file"; filename="f"', MEGABYTE * 2)
    for _ in range(5):
        with server.connect() as s:
            s.sendall(request(
                "POST", "/v1/files", body[:1_500_000],
                "Content-Type: multipart/form-data; boundary=XX",
                f"Content-Length: {len(body) + len(END)}"))
    hosttree.until(lambda: server.figures()["clients"] == 1, "they are gone")
    assert server("GET", "/v1/files").json == {"files": []}
    assert [server.upload(MEGABYTE).status for _ in range(2)] == [201, 201]


NONSENSE = {
    "no boundary": (FILE + END, "", 422),
    "a boundary of 500": (FILE.replace(b"XX", b"Y" * 500), "Y" * 500, 422),
    "an empty boundary": (FILE + END, '""', 422),
    "no end": (FILE, "XX", 422),
    "cut in a head": (FILE[:20], "XX", 422),
    "no head": (b"--XX\r\n\r\nx\r\n" + END, "XX", 422),
    "another boundary": (FILE + END, "YY", 422),
    "nothing": (b"", "XX", 422),
    "no part": (END, "XX", 422),
    "no name of a file": (part('name="file"') + END, "XX", 422),
    "no name of a field": (part('filename="f"') + END, "XX", 422),
    "half a line's end": (part('name="file"; filename="a\rb"') + END, "XX", 422),
    "the other half": (part('name="file"; filename="a\nb"') + END, "XX", 422),
    "a zero": (part('name="file"; filename="a\0b"') + END, "XX", 422),
    "a name that does not end": (part('name="file"; filename="f') + END, "XX",
                                 422),
    "a name whose end is quoted": (part(r'name="file"; filename="f\"') + END,
                                   "XX", 422),
    "another field before": (part('name="x"; x="; name=file; filename=f"') + END,
                             "XX", 422),
    "a million parameters": (part("; " * 2000 + 'name="file"; filename="f') +
                             END, "XX", 422),
    "line feeds alone": (FILE.replace(b"\r\n", b"\n") + END, "XX", 422),
    "a boundary in a line": (b"x" + FILE + END, "XX", 422),
    "half an end": (FILE + b"--XX-", "XX", 422),
    "a boundary with a line end": (FILE + END, '"XX\\"', 422),
    "a long head": (part('name="file"; filename="' + "f" * 100000 + '"') + END,
                    "XX", 422),
}


@pytest.mark.parametrize("what", NONSENSE)
def test_forms_that_are_none(lasting, what):
    before = lasting("GET", "/v1/files").json["files"]
    body, boundary, status = NONSENSE[what]
    r = form(lasting, body, boundary)
    assert r.status == status and r.json["detail"], r
    assert lasting("GET", "/v1/files").json["files"] == before
    assert form(lasting, FILE + END).status == 201, "a control"


def test_forms_that_are_odd(server):
    many = b"".join(part(f'name="x{i}"') for i in range(10000))
    r = form(server, many + FILE + END)
    assert (r.status, r.json["size_bytes"]) == (201, 1)
    # Of several the first counts; a form in a part is bytes of that part.
    r = form(server, part('name="file"; filename="a"', b"first") +
             part('name="file"; filename="b"', b"second") + END)
    assert (r.json["filename"], r.json["size_bytes"]) == ("a", 5)
    inner = part('name="file"; filename="in"', b"y", "YY") + b"--YY--"
    r = form(server, part('name="file"; filename="out"', inner) + END)
    assert (r.json["filename"], r.json["size_bytes"]) == ("out", len(inner))
    assert form(server, b"file=x", "",
                "application/x-www-form-urlencoded").status == 422
    assert form(server, b"{}", "", "application/json").status == 422


@pytest.mark.parametrize("name", [
    "a'b", "../../etc/passwd", "é.txt", "\xff\xfe", "a;b=c", "\t", "%0d%0a",
    "a\x1b[31mb", "x" * 1000])
def test_a_name_is_a_name(lasting, name):
    before = lasting("GET", "/v1/files").json["files"]
    r = form(lasting, part(f'name="file"; filename="{name}"') + END)
    assert r.status == 201, r
    file = r.json["file_id"]
    r = lasting("GET", f"/v1/files/{file}")
    said = r.headers["Content-Disposition"]
    assert r.body == b"x"
    assert said.startswith('attachment; filename="') and said.isprintable()
    assert said.count('"') == 2 and "\\" not in said
    assert re.fullmatch(r"(; filename\*=UTF-8''[\w.~%-]+)?",
                        said.rpartition('"')[2]), said
    listed, = [f for f in lasting("GET", "/v1/files").json["files"]
               if f not in before]
    assert listed["file_id"] == file


@pytest.mark.parametrize("name,said", [
    ("a b.txt", 'filename="a b.txt"'),
    ("é.txt", "filename=\"__.txt\"; filename*=UTF-8''%C3%A9.txt"),
    (r"a\"b", "filename=\"a_b\"; filename*=UTF-8''a%22b"),
    ("x" * 300, 'filename="' + "x" * 255 + '"'),
    ("é" * 200, 'filename="' + "_" * 254 + "\"; filename*=UTF-8''" +
     "%C3%A9" * 127)])
def test_a_download_has_the_name_of_the_file(lasting, name, said):
    """In ASCII byte for byte; what is not once more, as RFC 8187 has it."""
    r = form(lasting, f'--XX\r\nContent-Disposition: form-data; name="file"; '
             f'filename="{name}"\r\n\r\nx\r\n'.encode() + END)
    r = lasting("GET", f"/v1/files/{r.json['file_id']}")
    assert r.headers["Content-Disposition"] == "attachment; " + said


def test_a_list_of_all_is_short(server):
    """No count of the store has the bytes of names, and a list has all."""
    for name in "x" * 255, "x" * 15_000, "é" * 7_000, "\xff" * 15_000:
        r = form(server, part(f'name="file"; filename="{name}"') + END)
        assert r.status == 201 and len(r.json["filename"].encode()) < 800, r
    files = server("GET", "/v1/files").json["files"]
    assert [f["filename"] for f in files[:3]] == [
        "x" * 255, "x" * 255, "\ufffd" * 255]
    assert len(files) == 4


def test_ids_are_not_guessed(server):
    ids = {server.upload(b"x").json["file_id"] for _ in range(20)}
    assert len(ids) == 20
    assert all(len(i) == 36 and i[14] == "4" for i in ids)
    known = ids.pop()
    for near in known.upper(), known[:-1], known + "0", known.replace("-", ""):
        if near != known:
            assert server("GET", f"/v1/files/{near}").status == 404


# ---- a form in pieces ----

def chunked(*pieces):
    """A form whose pieces reach the form's parser one by one."""
    return request(
        "POST", "/v1/files",
        b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in pieces if p) +
        b"0\r\n\r\n",
        "Content-Type: multipart/form-data; boundary=XX",
        "Transfer-Encoding: chunked", "Connection: close")


def stored(server, *pieces):
    """The name and the content of what is stored of a form in pieces."""
    head, _, body = server.raw(chunked(*pieces)).partition(b"\r\n\r\n")
    assert b" 201 " in head, (head, body)
    told = json.loads(body)
    r = server("GET", f"/v1/files/{told['file_id']}")
    assert server("DELETE", f"/v1/files/{told['file_id']}").status == 204
    assert (r.status, len(r.body)) == (200, told["size_bytes"])
    return told["filename"], r.body


def file_part(name, data):
    return part(f'name="file"; filename="{name}"', data)


# The parts, and where the content of the file begins that counts: after that
# many parts.
FORMS = {
    "one file": ([file_part("a", b"0123456789abcdef")], 0),
    "one byte": ([file_part("a", b"0")], 0),
    "an empty file": ([file_part("a", b"")], 0),
    "like a boundary": ([file_part("a", b"\r\n--XY\r\n--X\r\n--")], 0),
    "after a field": ([part('name="x"', b"0"), file_part("a", b"012345")], 1),
    "after an empty field": ([part('name="x"', b""), file_part("a", b"01")], 1),
    "before a field": ([file_part("a", b"012345"), part('name="x"', b"0")], 0),
    "before a file of its name": (
        [file_part("a", b"012345"), file_part("a", b"6789")], 0),
    "empty, before a file of its name": (
        [file_part("a", b""), file_part("a", b"6789")], 0),
    "empty, before a long file of its name": (
        [file_part("a", b""), file_part("a", b"6" * 40000)], 0),
    "empty, before an empty one": (
        [file_part("a", b""), file_part("a", b"")], 0),
    "empty, after a file of another field": (
        [part('name="x"; filename="a"', b"0"), file_part("a", b"")], 1),
}


def content_of(form):
    parts, at = FORMS[form]
    return parts[at].partition(b"\r\n\r\n")[2][:-2]


@pytest.mark.parametrize("form", FORMS)
def test_a_form_is_one_however_it_is_split(lasting, form):
    parts, at = FORMS[form]
    whole = b"".join(parts) + END
    begins = len(b"".join(parts[:at])) + parts[at].index(b"\r\n\r\n") + 4
    want = "a", content_of(form)
    assert stored(lasting, whole) == want
    for n in range(-4, 9):
        assert stored(lasting, whole[:begins + n], whole[begins + n:]) == want
        # And the next byte alone.
        assert stored(lasting, whole[:begins + n],
                      whole[begins + n:begins + n + 1],
                      whole[begins + n + 1:]) == want
    if len(whole) < 1000:
        for size in 1, 2, 3, 5:
            assert stored(lasting, *(whole[i:i + size] for i in range(
                0, len(whole), size))) == want


@pytest.mark.parametrize("kind", [
    'Multipart/Form-Data; charset=utf-8; boundary="XX"',
    'multipart/form-data;boundary=XX;x=y',
    'multipart/form-data; x="; boundary=YY"; boundary=XX'])
def test_a_boundary_is_found(server, kind):
    r = server("POST", "/v1/files", b"ignored\r\n" + FILE + END + b"ignored",
               {"Content-Type": kind})
    assert (r.status, r.json["size_bytes"]) == (201, 1), r


@pytest.mark.parametrize("words,name", [
    ('name=file; filename=a.txt', "a.txt"), ('FILENAME="a"; NAME="file"', "a"),
    ('filename="; name=x"; name="file"', "; name=x"),
    ("name=\"file\"; filename*=UTF-8''b; filename=\"a\"", "a"),
    ("name=\"file\"; filename*=UTF-8'de'%c3%A9%20%zz'", "é %zz'"),
    (r'name="file"; filename="a\"; x=\"\\b.txt"', 'a"; x="\\b.txt'),
    (r'x="\""; name="file"; filename="C:\new\a"', r"C:\new\a"),
    ('name=file ; x ; filename=a', "a"), ('name="file"; filename=""', "unnamed")])
def test_a_name_is_found(server, words, name):
    assert form(server, part(words) + END).json["filename"] == name
    # control: what is only like them
    assert form(server, part(re.sub("(?i)name=", "x=", words)) +
                END).status == 422


@pytest.mark.parametrize("n,status", [(1, 201), (70, 201), (71, 422)])
def test_a_boundary_has_so_many_bytes_and_no_more(server, n, status):
    mark = "b" * n
    assert form(server, FILE.replace(b"XX", mark.encode()) +
                END.replace(b"XX", mark.encode()), mark).status == status


@pytest.mark.parametrize("rest", [b"", b"-", b"x\r\n", b"\n", b" x\r\n"])
def test_what_follows_a_boundary_is_a_line_end(server, rest):
    assert form(server, FILE + b"--XX" + rest).status == 422
    # control: blanks may come between
    assert form(server, FILE.replace(b"XX\r", b"XX \t\r") + END).status == 201


def test_a_long_file_is_what_was_sent(server):
    """It comes back also if it is full of bytes that may begin a boundary."""
    for data in (MEGABYTE * 3, b"\r\n--X" * 100_000, b"", b"y"):
        file = server.upload(data).json["file_id"]
        assert server("GET", f"/v1/files/{file}").body == data


@pytest.mark.sampled
def test_a_form_of_two_files_is_one_wherever_it_is_split(server):
    whole = file_part("a", b"") + file_part("a", b"6789") + END
    for i in range(0, len(whole), 1 if WHOLE else 7):
        for n in 1, 3, 5:
            assert stored(server, whole[:i], whole[i:i + n],
                          whole[i + n:]) == ("a", b"")
