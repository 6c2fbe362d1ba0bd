# SPDX-License-Identifier: MIT
"""The image of Containerfile with the options of docs/CONTAINER.md, and the
manifest of etc/kubernetes."""
import contextlib
import copy
import json
import os
import pathlib
import pwd
import re
import resource
import secrets
import shutil
import subprocess
import tempfile
import urllib.error
import urllib.request

import pytest

import hosttree
import leaks
from client import SLOW
from world import IS_ROOT, WHOLE

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
BASE = "docker.io/library/debian:bookworm-slim"
MANIFEST = TOP / "etc/kubernetes/cellblock.yaml"


# ---- the manifest ----

def manifest():
    yaml = pytest.importorskip("yaml")
    return list(yaml.safe_load_all(MANIFEST.read_text()))


def test_kubernetes_accepts_the_manifest():
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((TOP / "tests/serve/kubernetes.json").read_text())
    validator = jsonschema.Draft202012Validator(schema)
    found = manifest()
    assert [o["kind"] for o in found] == [
        "Deployment", "Service", "NetworkPolicy"]
    for one in found:
        validator.validate(one)
    # the control: it refuses a name that does not exist, and a wrong value
    for key, value in (("replica", 1), ("replicas", "1")):
        bad = copy.deepcopy(found[0])
        bad["spec"][key] = value
        assert not validator.is_valid(bad)


def test_the_objects_of_the_manifest_fit_each_other():
    deployment, service, policy = manifest()
    pod = deployment["spec"]["template"]
    labels = pod["metadata"]["labels"]
    (container,) = pod["spec"]["containers"]
    ports = {p["name"]: p["containerPort"] for p in container["ports"]}
    assert deployment["spec"]["selector"]["matchLabels"] == labels
    assert service["spec"]["selector"] == labels
    assert policy["spec"]["podSelector"]["matchLabels"] == labels
    assert service["spec"]["ports"][0]["targetPort"] in ports
    assert policy["spec"]["ingress"][0]["ports"][0]["port"] == ports["http"]
    assert container["args"][-2:] == ["--serve", f"0.0.0.0:{ports['http']}"]
    for probe in "readinessProbe", "livenessProbe":
        assert container[probe]["httpGet"] == {"path": "/health",
                                               "port": "http"}
    assert {m["name"] for m in container["volumeMounts"]} == {
        v["name"] for v in pod["spec"]["volumes"]}
    jails = sum(int(a.partition("=")[2]) for a in container["args"] if
                a.startswith(("serve.concurrent=", "serve.sessions=")))
    memory = container["resources"]["limits"]["memory"]
    assert int(memory.removesuffix("Gi")) << 10 >= jails * 512 + 500 > 4000
    image = (TOP / "Containerfile").read_text()
    user = pod["spec"]["securityContext"]
    assert f"USER {user['runAsUser']}:{user['runAsGroup']}" in image


def test_the_server_takes_the_arguments_of_the_manifest(cb, serve):
    """All but where it listens, and whose the token is."""
    (container,) = manifest()[0]["spec"]["template"]["spec"]["containers"]
    args = container["args"][:-2]
    (cb.base / "token").write_text("swordfish")
    (cb.base / "token").chmod(0o440)
    server = serve(*(a.replace("/run/cellblock/token", f"{cb.base}/token")
                     .replace("drain=10s", "drain=0s") for a in args))
    assert server("GET", "/v1/files").status == 401


# ---- the image ----

IMAGE = [
    pytest.mark.root, pytest.mark.sampled, pytest.mark.limit(1500),
    pytest.mark.skipif(not IS_ROOT, reason="the test has no subordinate ids"),
    pytest.mark.skipif(not WHOLE, reason="building an image takes minutes"),
    pytest.mark.skipif(not shutil.which("podman"),
                       reason="podman is not installed")]


def image_test(test):
    for mark in IMAGE:
        test = mark(test)
    return test


class Person:
    """A user who may run containers: with ids of its own, and no root."""

    def __init__(self, base):
        self.name = f"cellblock-pod-{secrets.token_hex(2)}"
        self.home = base / "home"
        subprocess.run(["useradd", "-r", "-M", "-d", self.home, "-s",
                        "/bin/sh", self.name], check=True, capture_output=True)
        try:
            ids = "700000-765535"
            subprocess.run(["usermod", "-v", ids, "-w", ids, self.name],
                           check=True, capture_output=True)
            entry = pwd.getpwnam(self.name)
            self.uid, self.gid = entry.pw_uid, entry.pw_gid
            self.home.mkdir(mode=0o700)
            self.own(self.home)
        except BaseException:
            self.remove()
            raise

    def own(self, path):
        for place in (path, *path.rglob("*")):
            os.chown(place, self.uid, self.gid, follow_symlinks=False)

    def remove(self):
        subprocess.run(["userdel", "-f", self.name], check=True,
                       capture_output=True)


class Podman:
    """One with a store of its own, and the first runtime that works here: of
    root, or of a person."""

    def __init__(self, base, person=None):
        self.base = person.home if person else base
        self.tar, self.sources = base / "base.tar", TOP
        self.made = base / "home/cellblock.tar"
        self.how = {}
        self.words = ["podman", "--root", f"{self.base}/store", "--runroot",
                      f"{self.base}/run", "--tmpdir", f"{self.base}/tmp",
                      "--cgroup-manager=cgroupfs", "--events-backend=none"]
        if person:
            self.act_as(person)
        # podman asks for more than a process without CAP_SYS_RESOURCE may give
        files = min(resource.getrlimit(resource.RLIMIT_NOFILE)[1], 65536)
        self.ulimits = [f"--ulimit=nofile={files}:{files}",
                        "--ulimit=nproc=4096:4096"]

    def act_as(self, person):
        """Give the person, who may be unable to read the sources, a copy."""
        self.sources = self.base / "sources"
        shutil.copytree(TOP, self.sources, symlinks=True, ignore=(
            shutil.ignore_patterns("build*", ".git", "__pycache__")))
        person.own(self.sources)
        self.how = {"user": person.uid, "group": person.gid,
                    "extra_groups": [], "env": {
                        "HOME": str(person.home), "USER": person.name,
                        "XDG_RUNTIME_DIR": str(person.home),
                        "PATH": os.environ["PATH"]}}
        r = self("unshare", "true", check=False)
        if r.returncode:
            pytest.skip(f"no rootless podman here: {r.stderr[-300:]}")
        # A copy of every layer takes gigabytes.
        self.words.append("--storage-driver=overlay")
        if self("info", check=False).returncode:
            self.words.pop()

    def __call__(self, *words, check=True, timeout=300):
        r = subprocess.run([*self.words, *words], text=True, timeout=timeout,
                           capture_output=True, check=False, cwd=self.sources,
                           **self.how)
        assert not check or r.returncode == 0, (words, r.stdout[-3000:],
                                                r.stderr[-3000:])
        return r

    def get_base(self):
        """Debian's image: from a registry, or made from its packages."""
        if not self.tar.exists():
            if self("pull", "-q", BASE, check=False).returncode == 0:
                return
            if not shutil.which("mmdebstrap"):
                pytest.skip("no registry, and mmdebstrap is not installed")
            made = subprocess.run(
                ["mmdebstrap", "--variant=minbase",
                 "--dpkgopt=force-unsafe-io", "bookworm", self.tar],
                capture_output=True, text=True, check=False, timeout=600)
            if made.returncode:
                self.tar.unlink(missing_ok=True)
                pytest.skip("no packages: " + made.stderr[-300:])
            self.tar.chmod(0o644)
        self("import", self.tar, BASE)

    def find_runtime(self):
        why = ""
        for runtime in "crun", "runc":
            r = self("--runtime", runtime, "run", "--rm", "--network=none",
                     *self.ulimits, BASE, "true", check=False)
            if r.returncode == 0:
                self.words += ["--runtime", runtime]
                return
            why += r.stderr[-200:]
        pytest.skip(f"no container runs here: {why}")

    def run(self, *words, check=True):
        return self("run", "--rm", "--network=none", *self.ulimits, *words,
                    check=check)

    def build(self, *words):
        # The compiler need not optimise.
        self("build", "--isolation=chroot", "--network=host", "--env=OPT=-O0",
             self.ulimits[0], *words, ".", timeout=1200)

    def keep_secret(self, path, group):
        """Have a file belong to root and this group of the container."""
        if self.how:
            shutil.chown(path, self.how["user"], self.how["group"])
            self("unshare", "chown", f"0:{group}", path)
        else:
            shutil.chown(path, 0, group)

    def end(self):
        self("system", "reset", "--force", check=False)
        if self.how:
            # It ends the process that keeps the person's namespaces.
            self("system", "migrate", check=False)


@pytest.fixture(name="built", scope="module")
def _built():
    """The images that each podman finds from the one before: Debian's, and ours."""
    base = pathlib.Path(tempfile.mkdtemp(prefix="cb-", dir="/run"))
    base.chmod(0o755)                           # podman wants it short
    yield base
    leaks.remove_tree(base)


@pytest.fixture(name="engine", scope="module", params=["rootless", "root"])
def _engine(request, built):
    with contextlib.ExitStack() as stack:
        person = None
        if request.param == "rootless":
            person = Person(built)
            stack.callback(person.remove)
        podman = Podman(built, person)
        stack.callback(podman.end)
        podman.get_base()
        podman.find_runtime()
        yield podman


@pytest.fixture(name="podman", scope="module")
def _podman(engine):
    """The image is built once: by a person, where that is possible."""
    if engine.made.exists():
        engine("load", "-i", engine.made)
    else:
        engine.build("-t", "cellblock")
    if engine.how:
        engine("save", "-o", engine.made, "localhost/cellblock")
    return engine


def documented():
    """The options of docs/CONTAINER.md for `podman run`."""
    page = (TOP / "docs/CONTAINER.md").read_text()
    (command,) = re.findall(r"\$ podman run (--rm -p (?:.*\\\n)+.*)", page)
    words = command.replace("\\\n", " ").split()
    assert words[:3] == ["--rm", "-p", "127.0.0.1:8060:8060"]
    assert words[-1] == "cellblock"
    return words[3:-1]


def without(options, text):
    """The options, but for the one whose value begins with this."""
    (at,) = [i for i, o in enumerate(options) if o.startswith(text)]
    return options[:at - 1] + options[at + 1:]


# Each part of the image's making has a test of its own: the runner takes minutes
# without news for a test that hangs.

@image_test
def test_a_container_runs_here(engine):
    said = engine.run(BASE, "cat", "/etc/debian_version").stdout
    assert re.match(r"\d+\.", said)


@image_test
def test_the_program_is_built_in_a_container(engine):
    if not engine.made.exists():
        engine.build("--target", "build")


@image_test
def test_a_jail_can_be_built_in_the_documented_container(podman):
    r = podman.run(*documented(), "cellblock", "--check")
    assert "A jail can be built here." in r.stdout
    assert re.search(r"^/proc +own processes only +strong", r.stdout, re.M)
    assert "sudo" not in r.stdout and "docs/CONTAINER.md" in r.stdout
    shown = re.findall(r"^\| ([\w' ]+) \| (.*) \| (none|weak) \|$",
                       (TOP / "docs/CONTAINER.md").read_text(), re.M)
    assert len(shown) == 8
    for row in shown:
        assert re.search("^" + " +".join(map(re.escape, row)) + r"\b",
                         r.stdout, re.M), (row, r.stdout)
    assert podman.run(*documented(), "cellblock", "-e",
                      "6 * 7").stdout == "42\n"


@image_test
def test_check_says_what_the_container_must_be_allowed(podman):
    r = podman.run(*without(documented(), "seccomp="), "cellblock", "--check",
                   check=False)
    assert "No jail can be built here." in r.stdout
    assert "--security-opt seccomp=" in r.stdout
    r = podman.run(*without(documented(), "systempaths="), "cellblock",
                   "--check")
    assert re.search(r"^/proc +none in the jail", r.stdout, re.M)
    assert "--security-opt systempaths=unconfined" in r.stdout


@image_test
def test_the_filter_refuses_what_no_jail_needs(podman):
    call = ("import ctypes; c = ctypes.CDLL(None, use_errno=True); "
            "print(c.syscall(425, 1, 0), ctypes.get_errno())")
    run = "--entrypoint=/usr/bin/python3"
    assert podman.run(run, *documented(), "cellblock", "-c",
                      call).stdout == "-1 1\n"     # io_uring_setup: EPERM
    free = podman.run(run, "--security-opt", "seccomp=unconfined", "cellblock",
                      "-c", call).stdout
    assert free != "-1 1\n"


@image_test
def test_the_container_serves_and_ends_in_order(podman):
    token = podman.base / "token"
    token.write_text("swordfish")
    token.chmod(0o440)
    podman.keep_secret(token, 60100)
    name = podman("run", "-d", "--network=host", *podman.ulimits,
                  *documented(), "-v", f"{token}:/run/cellblock/token:ro",
                  "cellblock", "-s", "serve.token_file=/run/cellblock/token",
                  "--serve", "127.0.0.1:0").stdout.strip()

    def port():
        said = podman("logs", name)
        return re.search(r"serving at \S+:(\d+)", said.stdout + said.stderr)

    hosttree.until(port, lambda: podman("logs", name), 50)
    request = urllib.request.Request(
        f"http://127.0.0.1:{port()[1]}/v1/execute",
        json.dumps({"code": "print(6 * 7)", "timeout_ms": 60000}).encode(),
        {"Content-Type": "application/json"})
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request, timeout=SLOW)
    assert refused.value.code == 401
    request.add_header("Authorization", "Bearer swordfish")
    with urllib.request.urlopen(request, timeout=SLOW) as r:
        assert json.load(r)["stdout"] == "42\n"
    podman("stop", "-t", "90", name)
    assert podman("inspect", "--format", "{{.State.ExitCode}}",
                  name).stdout.strip() == "0"
