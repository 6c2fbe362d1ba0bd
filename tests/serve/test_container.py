# SPDX-License-Identifier: MIT
"""The image of Containerfile with the options of docs/CONTAINER.md, and the
manifest of etc/kubernetes."""
import copy
import json
import pathlib
import re
import resource
import shutil
import subprocess
import tempfile
import urllib.error
import urllib.request

import pytest

import hosttree
import leaks
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


class Podman:
    """One with a store of its own, and the first runtime that works here."""

    def __init__(self, base):
        self.base = base
        self.words = ["podman", "--root", f"{base}/store", "--runroot",
                      f"{base}/run", "--tmpdir", f"{base}/tmp",
                      "--cgroup-manager=cgroupfs", "--events-backend=none"]
        # podman asks for more than a process without CAP_SYS_RESOURCE may give
        files = min(resource.getrlimit(resource.RLIMIT_NOFILE)[1], 65536)
        self.ulimits = [f"--ulimit=nofile={files}:{files}",
                        "--ulimit=nproc=4096:4096"]

    def __call__(self, *words, check=True, timeout=300):
        r = subprocess.run([*self.words, *words], text=True, timeout=timeout,
                           capture_output=True, check=False, cwd=TOP)
        assert not check or r.returncode == 0, (words, r.stdout[-3000:],
                                                r.stderr[-3000:])
        return r

    def get_base(self):
        """Debian's image: from a registry, or made from its packages."""
        if self("pull", "-q", BASE, check=False).returncode == 0:
            return
        if not shutil.which("mmdebstrap"):
            pytest.skip("no registry, and mmdebstrap is not installed")
        made = subprocess.run(
            ["mmdebstrap", "--variant=minbase", "bookworm",
             f"{self.base}/base.tar"], capture_output=True, text=True,
            check=False, timeout=600)
        if made.returncode:
            pytest.skip("no packages: " + made.stderr[-300:])
        self("import", f"{self.base}/base.tar", BASE)

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


@pytest.fixture(name="podman", scope="module")
def _podman():
    base = tempfile.mkdtemp(prefix="cb-", dir="/run")  # podman wants it short
    podman = Podman(base)
    podman.get_base()
    podman.find_runtime()
    podman("build", "--isolation=chroot", "--network=host",
           podman.ulimits[0], "-t", "cellblock", ".", timeout=1200)
    yield podman
    podman("system", "reset", "--force", check=False)
    leaks.remove_tree(base)


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


@image_test
def test_a_jail_can_be_built_in_the_documented_container(podman):
    r = podman.run(*documented(), "cellblock", "--check")
    assert "A jail can be built here." in r.stdout
    assert re.search(r"^/proc +own processes only +strong", r.stdout, re.M)
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
def test_the_container_serves_and_ends_in_order(podman, tmp_path):
    token = tmp_path / "token"
    token.write_text("swordfish")
    shutil.chown(token, 0, 60100)
    token.chmod(0o440)
    tmp_path.chmod(0o755)
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
        json.dumps({"code": "print(6 * 7)"}).encode(),
        {"Content-Type": "application/json"})
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request, timeout=50)
    assert refused.value.code == 401
    request.add_header("Authorization", "Bearer swordfish")
    with urllib.request.urlopen(request, timeout=50) as r:
        assert json.load(r)["stdout"] == "42\n"
    podman("stop", "-t", "90", name)
    assert podman("inspect", "--format", "{{.State.ExitCode}}",
                  name).stdout.strip() == "0"
