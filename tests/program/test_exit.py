"""The statuses that cellblock itself ends with, option by option, as the manual
page defines them."""
import pytest

# Root's jails are stopped by the freezer, a person's by signals.
pytestmark = pytest.mark.both

OK, FAILED, USAGE, CONFIG, JAIL = 0, 1, 2, 78, 125
CODE = ("-c", "pass")

# The mistake, and the status; {wrong} is a configuration with an error.
TABLE = [
    # A file that an option names.
    (("-f", "/nope", *CODE), USAGE),
    (("-f", ".", *CODE), USAGE),
    (("-f", "", *CODE), USAGE),
    (("-f", "{wrong}", *CODE), CONFIG),
    (("-f", "{good}", *CODE), OK),
    (("--check-config", "/nope"), USAGE),
    (("--check-config", "{wrong}"), CONFIG),
    (("--check-config", "{good}"), OK),
    (("-p", "/nope", *CODE), USAGE),
    (("-p", "nope", *CODE), USAGE),
    (("-p", "", *CODE), USAGE),
    (("-p", ".", *CODE), USAGE),
    (("-p", "{good}", *CODE), USAGE),
    (("-p", "/nope", "--check"), USAGE),
    (("-p", "/nope", "--eval"), USAGE),
    (("-p", "/nope", "--mcp"), USAGE),
    (("-p", "/nope", "--serve", "127.0.0.1:0"), USAGE),
    (("-p", "/usr/bin/python3", *CODE), OK),
    (("-u", "/nope", *CODE), USAGE),
    (("-u", "", *CODE), USAGE),
    (("-u", "{good}:/nope/", *CODE), USAGE),
    (("-u", "{good}", *CODE), OK),
    (("-d", "x:/nope", *CODE), USAGE),
    (("-d", "x:{good}", *CODE), USAGE),
    (("-d", ":.", *CODE), USAGE),
    (("-d", "x:.", "-c", "open('x', 'w')"), OK),
    (("nope.py",), USAGE),
    ((".",), USAGE),
    # Values, of options and of the configuration.
    (("-t", "abc", *CODE), USAGE),
    (("-M", "1", *CODE), USAGE),
    (("-s", "nope", *CODE), USAGE),
    (("-s", "a.b=c", *CODE), USAGE),
    (("-s", "cell.timeout=abc", *CODE), USAGE),
    (("-s", "python.executable=/nope", *CODE), JAIL),
    (("-s", "jail.expose=/nope", *CODE), JAIL),
    (("-s", "serve.token_file=/nope", "--serve", "127.0.0.1:0"), CONFIG),
    # Where to serve.
    (("--serve", "nope"), USAGE),
    (("--serve", "127.0.0.1:65536"), USAGE),
    (("--serve", "127.0.0.1:"), USAGE),
    (("--serve", "unix:"), USAGE),
    (("--serve", "unix:/nope/socket"), FAILED),
    # No command lines.
    (("--nope",), USAGE),
    (("-c",), USAGE),
    (("-e",), USAGE),
    (("-m",), USAGE),
    (("--eval", "x"), USAGE),
    (("--mcp", "x"), USAGE),
    (("--check", "x"), USAGE),
    (("--json",), USAGE),
    (("-q", "-v"), USAGE),
    (("--login", *CODE), USAGE),
    (("-e", "1", *CODE), USAGE),
    # Nothing is.
    (("-h",), OK),
    (("-V",), OK),
    (("-q", "--overwrite", *CODE), OK),
    (("-e", "1"), OK),
    # The program's own.
    (("-c", "raise SystemExit(7)"), 7),
    (("-d", "x", *CODE), FAILED),
]


@pytest.mark.parametrize("args, status", TABLE,
                         ids=[" ".join(args) for args, _ in TABLE])
def test_each_option_ends_with_the_status_of_the_manual(cb, args, status):
    (cb.work / "good.conf").write_text("[cell]\ntimeout = 50s\n")
    (cb.work / "wrong.conf").write_text("[cell]\ntimeout = soon\n")
    r = cb.run(*(a.format(good="good.conf", wrong="wrong.conf")
                 for a in args), stdin="")
    assert r.code == status, r
    if status not in (OK, 7):
        assert r.said.startswith("cellblock: "), r


def test_a_session_ends_with_the_same_statuses(cb):
    for args in (("-f", "/nope"), ("-p", "/nope"), ("-d", "x:/nope"),
                 ("-t", "abc")):
        s = cb.session(*args, start=False)
        assert s.wait_exit() == USAGE, args
