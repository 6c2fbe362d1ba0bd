# SPDX-License-Identifier: MIT
#
# customize.py - do what Python's site module does, before a cell can import
#
# Runs in:   the guest, before the first cell that may need it
# Trusts:    as cells.py; no file of the home
# Leaves:    in the user's modules what site puts there; among the finders one
#            that changes a few modules when they are imported
import posix
from posix import register_at_fork
from _thread import get_ident

# The fork hooks of these modules repair the locks of threads that the copy
# lacks.
MENDERS = ("threading", "logging", "concurrent.futures.thread",
           "asyncio.events")
# The names that site puts among the builtins.
OFFERED = "quit", "exit", "copyright", "credits", "license", "help"
S.parking = None  # the thread that is making a checkpoint


def customize():
    "what site does; not from the home"
    global site
    S.site = True
    site, lines = stdlib("site"), []
    site.exec = lambda line: lines.append(
        (line, sys._getframe(1).f_locals.get("sitedir")))
    known = site.venv(site.removeduppaths())
    site.ENABLE_USER_SITE = False
    site.addsitepackages(known)
    del site.exec
    site.setquit()
    site.setcopyright()
    site.sethelper()
    if S.sock:
        builtins.quit.__class__ = builtins.exit.__class__ = type(
            "Quitter", (type(builtins.quit),), {"__call__": leave})
        S.whole[0][3].update((name, builtins.__dict__[name]) for name in OFFERED)
        note_whole()
        site.os.register_at_fork = posix.register_at_fork = at_fork
    more = site.os.environ.get("PYTHONPATH", "")
    sys.path[:0] = [p for p in more.split(":") if p]
    for line, sitedir in lines:
        try:  # such a line may look up `sitedir` in the frame that runs it
            exec(line, site.__dict__, {"sitedir": sitedir})
        except Exception as e:
            print("Error in a .pth file of %s: %s: %s" % (
                sitedir, type(e).__name__, e), file=sys.stderr)
    site.execsitecustomize()
    sys.path.insert(0, "")
    if not S.sock:  # pictures are a session's
        Adapter.hooks = {"psutil._common": described}
    sys.meta_path.insert(0, Adapter)


def customize_for(source):
    "the same, where a cell may need it and nobody has done it"
    if not S.site and needs_site(source):
        customize()
        freeze()


def adapted(run, module):
    run(module)
    part("pictures")
    adapt(module)


def described(run, module):
    "psutil's own open()"
    run(module)
    part("machine")
    module.open = machine_open


class Adapter:
    "changes modules as they are imported"
    hooks = {"matplotlib.pyplot": adapted, "PIL.ImageShow": adapted,
             "psutil._common": described}

    @staticmethod
    def find_spec(name, path=None, target=None):
        hook = Adapter.hooks.pop(name, None)
        if not hook:  # or a finder asks all the others, as this one does
            return None
        try:
            for finder in list(sys.meta_path):
                spec = finder is not Adapter and finder.find_spec(
                    name, path, target)
                if spec:
                    run = spec.loader.exec_module
                    spec.loader.exec_module = lambda module: hook(run, module)
                    return spec
        finally:
            Adapter.hooks[name] = hook


def leave(self, code=None):
    "exit() that does not close stdin: the session may go on"
    raise SystemExit(code)


def at_fork(**hooks):
    "os.register_at_fork(), whose hooks do not run for a checkpoint"
    if sys._getframe(1).f_globals.get("__name__") not in MENDERS:
        for when, hook in hooks.items():
            if callable(hook):
                hooks[when] = unless_parking(hook)
    register_at_fork(**hooks)


def unless_parking(hook):
    return lambda: S.parking != get_ident() and hook()
