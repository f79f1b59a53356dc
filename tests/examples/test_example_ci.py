"""examples/ci: a plan as a comment on a pull request. Its scripts are run as they are, in the order of the workflow."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

FOLDER = Path(__file__).parents[2] / "examples" / "ci"
PLAN = Path(__file__).parents[2] / "examples" / "plan"
WORKFLOWS = {path.stem: yaml.safe_load(path.read_text("utf-8")) for path in sorted(FOLDER.glob("*.yml"))}
TRIGGERS = True  # what YAML 1.1 makes of the word `on`
COMMIT, NUMBER = "0123456789abcdef", "17"
# Answers as the program of the runner does, and keeps what it was asked.
GH = """#!/bin/sh
printf '%s\\n' "$*" >> gh.log
case "$*" in
  *pulls/17*) echo "$HEAD" ;;
  *--paginate*) printf '%s' "$EARLIER" ;;
esac
"""


class Run(NamedTuple):
    code: int
    err: str


def step_named(workflow: str, name: str) -> dict[str, Any]:
    (job,) = WORKFLOWS[workflow]["jobs"].values()
    (step,) = [step for step in job["steps"] if step.get("name") == name]
    return dict(step)


def run_step(workflow: str, name: str, folder: Path, **environment: str) -> Run:
    """As a runner does: bash, which gives up at the first command that fails."""
    bash = shutil.which("bash")
    assert bash is not None
    path = os.pathsep.join([str(folder), str(Path(sys.executable).parent), os.environ["PATH"]])
    outputs = {name: str(folder / name) for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    script = step_named(workflow, name)["run"]
    run = subprocess.run(
        [bash, "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
        cwd=folder,
        env={**os.environ, **outputs, **environment, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    return Run(run.returncode, run.stderr)


def test_the_workflow_that_runs_code_of_a_pull_request_may_only_read_and_the_other_runs_none() -> None:
    plan, comment = WORKFLOWS["plan"], WORKFLOWS["plan-comment"]
    assert plan["permissions"] == {"contents": "read"}
    assert list(plan[TRIGGERS]) == ["pull_request"]
    assert "secrets." not in (FOLDER / "plan.yml").read_text("utf-8")
    assert comment["permissions"] == {"actions": "read", "pull-requests": "write"}
    assert comment[TRIGGERS] == {"workflow_run": {"workflows": [plan["name"]], "types": ["completed"]}}
    assert "checkout" not in str(comment["jobs"])


def test_nothing_that_others_write_is_pasted_into_a_script() -> None:
    for workflow in WORKFLOWS.values():
        for job in workflow["jobs"].values():
            assert job["timeout-minutes"] <= 15
            assert [step["run"] for step in job["steps"] if "${{" in step.get("run", "")] == []


@pytest.mark.slow
@pytest.mark.parametrize(("manifest", "code"), [("web-fixed.yaml", "0"), ("web.yaml", "1"), ("broken", "2")])
def test_the_plan_is_left_for_the_comment_and_its_code_is_the_end_of_the_run(
    manifest: str, code: str, tmp_path: Path
) -> None:
    (tmp_path / "manifests").mkdir()
    text = (PLAN / manifest).read_text("utf-8") if manifest != "broken" else "kind: Deployment\n"
    (tmp_path / "manifests" / "web.yaml").write_text(text, "utf-8")
    shutil.copy(PLAN / "cluster.yaml", tmp_path / "cluster.json.gz")  # what is in a file is seen, not its name
    run = run_step("plan", "Plan", tmp_path, NUMBER=NUMBER)
    assert run.code == 0, run.err
    assert (tmp_path / "GITHUB_OUTPUT").read_text("utf-8") == f"code={code}\n"
    assert run_step("plan", "Fail if it is not safe", tmp_path, CODE=code).code == int(code)
    comment = (tmp_path / "plan" / "plan.md").read_text("utf-8")
    heads = {"0": "### ✅ Completes", "1": "### ❌ Never ends", "2": "No plan could be made"}
    assert comment.startswith(heads[code])
    assert (tmp_path / "plan" / "plan.html").exists() == (code != "2")
    assert (tmp_path / "plan" / "number").read_text("utf-8") == f"{NUMBER}\n"


@pytest.fixture
def comment_folder(tmp_path: Path) -> Path:
    (tmp_path / "plan").mkdir()
    (tmp_path / "plan" / "plan.md").write_text("### ✅ Completes\n", "utf-8")
    (tmp_path / "plan" / "number").write_text(f"{NUMBER}\n", "utf-8")
    (tmp_path / "gh").write_text(GH, "utf-8")
    (tmp_path / "gh").chmod(0o755)
    return tmp_path


def comment(folder: Path, head: str = COMMIT, earlier: str = "") -> tuple[Run, list[str]]:
    """The run, and what was written to the pull request."""
    run = run_step(
        "plan-comment",
        "Comment",
        folder,
        REPOSITORY="shop/web",
        COMMIT=COMMIT,
        HEAD=head,
        EARLIER=earlier,
        GH_TOKEN="x",
    )
    log = folder / "gh.log"
    lines = log.read_text("utf-8").splitlines() if log.exists() else []
    return run, [line for line in lines if "--method" in line]


def test_a_plan_becomes_one_comment_that_is_kept_up_to_date(comment_folder: Path) -> None:
    run, (write,) = comment(comment_folder)
    assert run.code == 0, run.err
    assert write.startswith("api --method POST repos/shop/web/issues/17/comments")
    assert (comment_folder / "comment.md").read_text("utf-8") == "<!-- wukong plan -->\n### ✅ Completes\n"
    _, (_, second) = comment(comment_folder, earlier="99\n")
    assert second.startswith("api --method PATCH repos/shop/web/issues/comments/99")


def test_what_a_pull_request_says_of_itself_is_not_believed(comment_folder: Path) -> None:
    run, writes = comment(comment_folder, head="another")
    assert (run.code, writes) == (0, [])
    for text in ("17/../18", "", "$(id)", "1 2"):
        (comment_folder / "plan" / "number").write_text(text, "utf-8")
        run, writes = comment(comment_folder)
        assert (run.code, writes) == (1, [])
