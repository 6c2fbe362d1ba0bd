# SPDX-License-Identifier: MIT
"""cellblock --eval: a value in all its forms (`mime`), of code and of a cell."""
import json

import pytest

from evaluation import START, packed
from figures import needs
from world import PATIENCE

SOME = """
class V:
    def __repr__(self): return "V()"
    def _repr_html_(self): return "<b>\\u00e9</b>"
    def _repr_markdown_(self): return None
    def _repr_latex_(self): return "$x$", {"known": "about it"}
    def _repr_svg_(self): return b"<svg/>"
    def _repr_png_(self): return b"\\x89PNG"
    def _repr_json_(self): return {"a": [1, 2.5, None]}
V()
"""
OWN = """
class V:
    def _repr_mimebundle_(self, include, exclude):
        return {"application/vnd.vega.v5+json": {"x": 1}, "text/plain": "mine",
                "image/png": "aGk=", "application/x-own": bytearray(b"own"),
                "not a type": "x", "text/\\n": "x", 5: "x"}, {"about": "it"}
    def _repr_html_(self): return "html"
    def _repr_png_(self): return b"not asked"
V()
"""
FAILS = """
class V:
    def __repr__(self): return "V()"
    def _repr_mimebundle_(self, **about): return {"text/x-%s": 1, "text/y": "y"}
    def _repr_html_(self): 1/0
    def _repr_latex_(self): raise SystemExit("bye")
    def _repr_markdown_(self): return 5
    def _repr_json_(self): return {1: {2}}
    def _repr_svg_(self): return "x" * 1000001
    def _repr_png_(self): return bytes(5 << 20)
V()
"""


@pytest.fixture(name="ask", params=["code", "session"])
def _ask(request, ev):
    """The answers to cells with `mime`: each in a jail of its own, or all in a
    session."""
    def ask(*codes, args=(), **more):
        cells = [{"code": c, "mime": True, **more} for c in codes]
        if request.param == "session":
            return ev(START, *cells, args=args)[1:]
        answers = ev(*cells, args=args)
        return answers if isinstance(answers, list) else [answers]
    ask.session = request.param == "session"
    return ask


def test_a_value_comes_in_the_forms_that_it_offers(ask):
    some, own, plain, none = ask(SOME, OWN, "'é'", "x = 1")
    assert some["bundle"] == {
        "text/html": "<b>é</b>", "text/latex": "$x$", "image/svg+xml": "<svg/>",
        "image/png": packed(b"\x89PNG"), "text/plain": "V()",
        "application/json": {"a": [1, 2.5, None]}}
    assert own["bundle"] == {
        "application/vnd.vega.v5+json": {"x": 1}, "text/plain": "mine",
        "image/png": "aGk=", "application/x-own": packed("own"),
        "text/html": "html", "5": "x"}
    assert plain["bundle"] == {"text/plain": "'é'"}
    assert none["bundle"] is None
    assert [a["notices"] for a in (some, own, plain, none)] == [[]] * 4


def test_who_does_not_ask_gets_what_was(ev):
    """The methods are not called either."""
    code = SOME + "print(V._repr_html_.__name__)"
    a, b, c = ev({"code": SOME}, {"code": SOME, "mime": False}, {"code": code})
    for one in a, b:
        assert "bundle" not in one and "notices" not in one
    _, a = ev(START, {"code": SOME.replace("return \"<b>", "print(); \"<b>")})
    assert a["output"] == "V()\n" and "bundle" not in a and a["notices"] == []
    assert c["exit_code"] == 0
    assert ev({"code": "1", "mime": 1})["title"] == \
        "Request data failed validation"


def test_a_form_that_fails_is_left_out_and_said(ask):
    a, = ask(FAILS)
    assert a["bundle"] == {"text/y": "y", "text/plain": "V()"}
    said = {n.split()[1]: n for n in a["notices"]}
    assert set(said) == {"text/x-%s", "_repr_html_", "_repr_latex_",
                         "_repr_markdown_", "_repr_json_", "_repr_svg_",
                         "_repr_png_"}, a["notices"]
    assert said["_repr_html_"] == (
        "bundle: _repr_html_ left out: ZeroDivisionError: division by zero")
    assert "SystemExit: bye" in said["_repr_latex_"]
    assert "too many" in said["_repr_svg_"] and "too many" in said["_repr_png_"]
    assert a["how"] == "ok" if ask.session else a["exit_code"] == 0


def test_a_figure_is_a_picture_of_the_bundle(ask, cb):
    needs(cb, "matplotlib")
    a, = ask("import matplotlib.pyplot as plt\nf = plt.figure()\n"
             "_ = plt.plot([1, 2])\nf", args=("-t", "60s"))
    assert set(a["bundle"]) == {"image/png", "text/plain"}
    assert a["bundle"]["image/png"].startswith(packed(b"\x89PNG\r\n"))
    assert len(a["images"]) == 1, "as without"


@pytest.mark.parametrize("does,how,code", [
    ("import time; time.sleep(60)", "interrupted", None),
    ("\n        while True: pass", "interrupted", None),
    ("import os; os._exit(3)", "exited", 3),
    ("raise KeyboardInterrupt", "interrupted", 130)])
def test_a_method_runs_on_the_clock_of_its_cell(ask, does, how, code):
    """Each act of it counts for the cell, and the next request is served."""
    bad = f"class V:\n    def _repr_html_(self): {does}\nV()"
    if ask.session and how == "exited":
        a, b = ask(bad, "6 * 7")
    else:
        a, b = ask(bad, "6 * 7", timeout_ms=int(1500 * PATIENCE))
    if ask.session:
        assert a["how"] == how
    else:
        assert a["exit_code"] == code and a["timed_out"] is (code is None)
    assert b["bundle"] == {"text/plain": "42"}


FORGE = ("import os, stat\nfor fd in range(3, 1024):\n"
         "    try:\n        if stat.S_ISFIFO(os.fstat(fd).st_mode):\n"
         "            os.write(fd, %r)\n    except OSError: pass\n")


def mime(data):
    return b"mime %d\n%s" % (len(data), data)


# Bytes that a cell writes into the report, and the part that the answer has.
FORGED = {
    "nothing": (mime(b"a text\n"), {"a": ""}),
    "a type twice": (mime(b"a text\n1") + mime(b"a text\n2"), {"a": "1"}),
    "no type": (mime(b" text\n"), {}), "no head": (mime(b"\n"), {}),
    "no bytes": (mime(b""), {}), "no line end": (mime(b"a text"), {}),
    "a zero in the type": (mime(b"a\0 text\nx"), {}),
    "a quote in the type": (mime(b'a" text\nx'), {}),
    "a long type": (mime(b"t" * 200 + b" text\n"), {}),
    "no encoding": (mime(b"a \n"), {}),
    "another encoding": (mime(b"a nothing\n"), {}),
    "a long encoding": (mime(b"a " + b"text" * 99 + b"\n"), {}),
    "JSON": (mime(b"a json\n{}"), {"a": {}}),
    "JSON with blanks": (mime(b"a json\n 1 ") + mime(b"b json\n[ ] "),
                         {"a": 1, "b": []}),
    "a value with blanks": (b"json 2\n1 " + mime(b"a text\n"), {"a": ""}),
    "two lines of JSON": (mime(b"a json\n\n\n"), {}),
    "no JSON": (mime(b"a json\n{]"), {}),
    "deep JSON": (mime(b"a json\n" + b"[" * 300 + b"]" * 300), {}),
    "bytes": (mime(b"a bytes\n\xff\0\n"), {"a": packed(b"\xff\0\n")}),
    "no UTF-8": (mime(b"a text\n\xff\n"), {"a": "\ufffd\n"}),
    "less than it says": (b"mime 9999999999\na text\n", None),
    "a note of anything": (b"note 7\n\x1b[2J\xff\0\n", None),
}


@pytest.mark.parametrize("what", FORGED)
def test_a_forged_bundle_is_json_all_the_same(ask, what):
    forged, bundle = FORGED[what]
    a, b = ask(FORGE % forged, "6 * 7")
    if a["bundle"]:
        assert bundle.items() <= a["bundle"].items()
    else:
        assert a["bundle"] == bundle
    assert all(n.startswith("bundle: ") for n in a["notices"])
    assert "42" in json.dumps(b)


def test_forged_bundles_are_bounded(ask):
    """In number, in bytes, and in what their JSON would take."""
    a, b, c, d = ask(
        "import os, stat\nfor fd in range(3, 1024):\n    try:\n"
        "        if not stat.S_ISFIFO(os.fstat(fd).st_mode): continue\n"
        "    except OSError: continue\n"
        "    for i in range(100):\n"
        "        os.write(fd, b'mime 9\\nt%02d text\\n' % i)\n",
        FORGE % b"" + "for fd in range(3, 1024):\n    try:\n"
        "        if not stat.S_ISFIFO(os.fstat(fd).st_mode): continue\n"
        "    except OSError: continue\n"
        "    data = memoryview(b'mime 5000000\\na text\\n' + bytes(4999993))\n"
        "    while data: data = data[os.write(fd, data):]\n",
        FORGE % b"" + "for fd in range(3, 1024):\n    try:\n"
        "        if not stat.S_ISFIFO(os.fstat(fd).st_mode): continue\n"
        "    except OSError: continue\n"
        "    data = memoryview(b'mime 2000000\\na json\\n' + b' ' * 1999991 + "
        "b'{}')\n    while data: data = data[os.write(fd, data):]\n", "6 * 7",
        args=("-t", "60s"))
    assert len(a["bundle"]) == 16 and "t15" in a["bundle"]
    assert b["bundle"] is None and c["bundle"] == {}
    assert d["bundle"] == {"text/plain": "42"}
