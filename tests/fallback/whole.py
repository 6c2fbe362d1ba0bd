# SPDX-License-Identifier: MIT
"""Checks for every host: a session works and all its walls are up; or the
session is refused, and `--check` says so."""
import json

WALLS = """
import os, socket
bad = [p for p in ('/root', '/var', '/boot', '/etc/shadow', {witness!r})
       if os.path.lexists(p)]
for path in ('/x', '/usr/x', '/usr/bin/x', '/etc/x'):
    try:
        open(path, 'w').close(); bad.append(path)
    except OSError:
        pass
for n in range(1, 1000):
    try:
        if socket.if_indextoname(n) != 'lo': bad.append('network')
    except OSError:
        pass
if os.getresuid() != (1000,) * 3: bad.append('ids')
try:
    os.chroot('/usr'); bad.append('chroot')
except OSError:
    pass
print(bad or 'every wall is up')
"""


def walls_are_up(cb, wrapper):
    witness = cb.base / "witness"
    witness.write_text("of the host")
    code = WALLS.format(witness=str(witness))
    r = cb.run("-c", code, wrapper=wrapper)
    assert (r.code, r.text) == (0, "every wall is up\n"), r


def whole_session(cb, wrapper):
    """Run cells, a rollback, an undo and a restart; check the home and the
    walls."""
    s = cb.session(wrapper=wrapper)
    s.run("x = 41")
    assert "42" in s.run("x + 1")
    out = s.run("import os; os.abort()")
    assert "back to the state before" in out, out
    assert "43" in s.run("x + 2")
    s.run("x = 0")
    s.run(":undo")
    assert "44" in s.run("x + 3")
    s.run("n = open('f', 'w').write('kept')")
    s.run(":reset")
    assert "'kept'" in s.run("open('f').read()")
    s.run("import os; os.remove('f')")
    assert s.leave() == 0
    walls_are_up(cb, wrapper)


def checked(cb, wrapper, *args):
    """The answer of --check --json, with its rows by name."""
    r = cb.run(*args, "--check", "--json", wrapper=wrapper)
    answer = json.loads(r.text)
    answer["code"] = r.code
    answer["rows"] = {row["what"]: row for row in answer["checks"]}
    return answer


def refused(cb, wrapper, *wanted):
    r = cb.run("-c", "print('ran')", wrapper=wrapper)
    assert (r.code, r.out) == (125, b""), r
    assert r.said.startswith("cellblock: "), r
    for word in wanted:
        assert word in r.said, r
    return r
