# SPDX-License-Identifier: MIT
#
# request.py - one request: a cell with variables, and what it made
#
# Runs in:   the jail's Python, when it has what to run (wait.py)
# Holds:     report  a pipe to the front end
# Trusts:    the front end. Its reports are the user's: they may hold anything
# Leaves:    in the report, each piece after a line "NAME BYTES":
#              type   the name of the last value's type
#              json   the value as json.dumps() writes it, if it can
#              repr   the value as repr() writes it
#              png    a picture for each figure of matplotlib's that is open
#            and for a client that asks, what bundle.py has of the value
from posix import chdir, stat

part("figures")
part("bundle")
WORKSPACE = "/workspace"


def request(report, source, variables, shows, bundles=False, works=False):
    home = enter_workspace() if works else "/home"
    customize_for(source)
    NS.update(variables)
    if b"__file__" in source:  # the front end has put it there
        NS["__file__"] = home + "/__main__.py"
    S.value = None
    shown = sys.displayhook

    def keep_value(value):
        S.value = value
        if shows:
            shown(value)

    sys.displayhook = keep_value
    known = fstat(report)[1:3]
    program(source, lambda: is_open(report, known) and tell_all(
        report, shows, bundles))


def enter_workspace():
    "the home's other name, unless the host shows something else there"
    try:
        if stat(WORKSPACE)[1:3] == stat("/home")[1:3]:
            chdir(WORKSPACE)
            return WORKSPACE
    except OSError:
        pass
    return "/home"


def tell_all(report, shows, bundles):
    if shows and S.value is not None:
        tell_value(report, S.value)
        if bundles:
            tell_bundle(report, S.value)
    S.value = None
    plt = sys.modules.get("matplotlib.pyplot")
    if plt is not None:
        tell_figures(report, plt)
    try:
        close(report)
    except OSError:  # showing the value has closed it, as it may
        pass


def tell_value(report, value):
    try:
        piece(report, b"type", type(value).__name__.encode()[:200])
        piece(report, b"repr", as_utf8(repr(value)))
        data = as_json(value)
        if len(data) <= MOST:
            piece(report, b"json", data)
    except Exception:
        pass
