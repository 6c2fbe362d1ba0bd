# SPDX-License-Identifier: MIT
#
# bundle.py - a value in all the forms that it offers to Jupyter
#
# Runs in:   the guest, after a cell, as its user's code does
# Trusts:    the front end. The report has bytes of the user's: anything
# Leaves:    in the report, for each form, a piece "mime" of a line "TYPE
#            ENCODING" and the content: text; JSON; bytes. For each that fails,
#            a piece "note" with the reason in words
MOST = 1000000  # REPORT_TEXT_MAX: bytes of a value, or of a form that is text
CUT = b"...[truncated]"
ALL = 4 << 20  # REPORT_FORMS_BYTES
TYPES = 16  # REPORT_FORMS
FORMS = {"text/html": "_repr_html_", "text/markdown": "_repr_markdown_",
         "text/latex": "_repr_latex_", "image/svg+xml": "_repr_svg_",
         "image/png": "_repr_png_", "image/jpeg": "_repr_jpeg_",
         "application/json": "_repr_json_"}
TEXTS = "text/", "image/svg+xml", "application/javascript"


def tell_bundle(report, value):
    "what the value's own methods give; what fails is left out"
    told, left = set(), ALL

    def tell(kind, make, name):
        nonlocal left
        if kind in told or len(told) == TYPES:
            return
        try:
            data = make()
            if type(data) is tuple:  # with what is known about it
                data = data[0]
            if data is None:
                return
            encoding, data = encoded(kind, data)
            form = ("%s %s\n" % (kind, encoding)).encode() + data
            if len(form) > left or len(data) > MOST and encoding != "bytes":
                raise ValueError("%d bytes are too many" % len(data))
        except (Exception, SystemExit) as e:
            return note(report, name, e)
        left -= len(form)
        told.add(kind)
        piece(report, b"mime", form)

    try:
        for kind, data in bundle_of(report, value):
            tell(kind, lambda: data, kind)
        for kind, name in FORMS.items():
            if hasattr(type(value), name):
                tell(kind, lambda: getattr(value, name)(), name)
        figure = getattr(sys.modules.get("matplotlib.figure"), "Figure", ())
        if isinstance(value, figure):
            tell("image/png", lambda: printed(value), "savefig")
        tell("text/plain", lambda: as_utf8(repr(value)).decode(), "repr")
    except Exception:
        pass  # a method has closed the pipe, or broken what is used here


def bundle_of(report, value):
    "what _repr_mimebundle_ gives, in which a type may be that of the user's"
    name = "_repr_mimebundle_"
    try:
        if not hasattr(type(value), name):
            return []
        bundle = getattr(value, name)(include=None, exclude=None)
        if type(bundle) is tuple:
            bundle = bundle[0]
        kinds = list(bundle or ())[:TYPES]
        return [(str(kind), bundle[kind]) for kind in kinds]
    except (Exception, SystemExit) as e:
        note(report, name, e)
        return []


def encoded(kind, data):
    if kind == "application/json" or kind.endswith("+json"):
        return "json", as_json(data)
    if isinstance(data, str):
        return "text", data.encode("utf-8", "backslashreplace")
    data = bytes(memoryview(data))
    return "text" if kind.startswith(TEXTS) else "bytes", data


def note(report, name, e):
    try:
        text = "%s: %s" % (type(e).__name__, e)
    except (Exception, SystemExit):
        text = type(e).__name__
    text = "%.100s left out: %.200s" % (name, text)
    piece(report, b"note", text.encode("utf-8", "backslashreplace"))


def as_utf8(text):
    "as UTF-8 of whole characters, with a mark where there was more"
    data = text[:MOST].encode("utf-8", "backslashreplace")
    if len(text) <= MOST and len(data) <= MOST:
        return data
    return data[:MOST - len(CUT)].decode("utf-8", "ignore").encode() + CUT


def as_json(value):
    "what json.dumps() does, without loading json, and in UTF-8"
    json = stdlib("_json")
    return "".join(json.make_encoder(
        {}, unknown, json.encode_basestring, None, ": ", ", ",
        False, False, False)(value, 0)).encode()


def unknown(value):
    raise TypeError("%s is no JSON" % type(value).__name__)
