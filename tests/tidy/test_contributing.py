"""What contributors read is so: paths and make targets exist, examples run, workflow and hooks call what is there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from wukong.app.embedded import play_scenario
from wukong.embedded.scenario import read_scenario
from wukong.embedded.scenario.expectations import find_differences

ROOT = Path(__file__).parents[2]
DOCUMENTS = ["CONTRIBUTING.md", "SECURITY.md", ".github/pull_request_template.md"]
TEMPLATES = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
PATHS = re.compile(r"(?:src|tests|testbed|docs|examples|bench|deploy|\.ci|\.github)/[\w./-]*")
TO_ADD = [
    *("A kind", "A component", "An engine plugin", "A placement rule"),
    *("A controller", "An actor", "A fault", "A warning, or a piece of advice", "A scenario"),
]


def text_of(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def yaml_of(name: str) -> Any:
    return yaml.safe_load(text_of(name))


def code_spans(text: str) -> list[str]:
    """What stands between backticks, outside of code blocks."""
    return re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE))


def code_blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)


def make_targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):.*##", text_of("Makefile"), flags=re.MULTILINE))


def unknown_targets(text: str) -> list[str]:
    return [
        target for target in re.findall(r"^make ([a-z-]+)", text, flags=re.MULTILINE) if target not in make_targets()
    ]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_path_that_is_named_exists(name: str) -> None:
    spans = code_spans(text_of(name))
    assert [path for span in spans for path in PATHS.findall(span) if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("name", ["CONTRIBUTING.md", "SECURITY.md"])
def test_every_link_leads_somewhere(name: str) -> None:
    links = [link for link in re.findall(r"\]\(([^)]+)\)", text_of(name)) if "://" not in link]
    assert links
    for link in links:
        path, _, anchor = link.partition("#")
        assert (ROOT / (path or name)).exists(), link
        assert not anchor or anchor in anchors(text_of(path or name)), link


def anchors(markdown: str) -> list[str]:
    headings = re.findall(r"^#+ (.+)$", markdown, flags=re.MULTILINE)
    return [re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_make_target_that_is_named_exists(name: str) -> None:
    assert unknown_targets("\n".join(code_spans(text_of(name)))) == []


def test_every_function_and_field_that_is_named_is_in_the_code() -> None:
    names = [span for span in code_spans(text_of("CONTRIBUTING.md")) if re.fullmatch(r"[a-z]+(?:_[a-z]+)+", span)]
    code = "\n".join(path.read_text("utf-8") for path in sorted((ROOT / "src").rglob("*.py")))
    assert "make_actors" in names
    assert [name for name in names if not re.search(rf"\b{name}\b", code)] == []


def test_a_target_or_path_that_is_not_there_is_found() -> None:
    assert unknown_targets("make quick\nmake nonsense") == ["nonsense"]
    assert PATHS.findall("see src/wukong/no_such.py") == ["src/wukong/no_such.py"]


def test_it_says_how_to_add_each_sort_of_thing() -> None:
    assert re.findall(r"^### (.+)$", text_of("CONTRIBUTING.md"), flags=re.MULTILINE) == TO_ADD


def test_the_example_of_a_controller_passes_its_test() -> None:
    (block,) = code_blocks(text_of("CONTRIBUTING.md"), "python")
    names: dict[str, Any] = {}
    exec(block, names)
    tests = [value for name, value in names.items() if name.startswith("test_")]
    assert len(tests) == 1
    tests[0]()


def test_the_example_of_a_scenario_is_as_it_expects() -> None:
    (block,) = code_blocks(text_of("CONTRIBUTING.md"), "yaml")
    scenario = read_scenario(block)
    assert scenario.expect.workloads
    assert find_differences(scenario.expect, play_scenario(scenario)) == []


def test_the_workflow_runs_what_everybody_can_run() -> None:
    steps = yaml_of(".github/workflows/ci.yml")["jobs"]["run"]["steps"]
    (python,) = [step for step in steps if step.get("uses", "").startswith("actions/setup-python@")]
    (go,) = [step for step in steps if step.get("uses", "").startswith("actions/setup-go@")]
    assert python["with"]["python-version"] == "3.11"
    assert (ROOT / go["with"]["go-version-file"]).exists()
    assert (ROOT / go["with"]["cache-dependency-path"]).exists()
    assert [step["run"] for step in steps if "ci" in step.get("run", "")] == [".ci/run"]
    assert unknown_targets(text_of(".ci/run")) == []


def test_the_hooks_are_local_and_call_targets_that_exist() -> None:
    (repository,) = yaml_of(".pre-commit-config.yaml")["repos"]
    assert repository["repo"] == "local"
    hooks = repository["hooks"]
    assert {hook["language"] for hook in hooks} == {"system"}
    assert [hook["entry"] for hook in hooks if not hook["entry"].startswith("make ")] == []
    assert unknown_targets("\n".join(hook["entry"] for hook in hooks)) == []


@pytest.mark.parametrize("path", [path for path in TEMPLATES if path.stem != "config"], ids=lambda path: path.stem)
def test_an_issue_template_is_well_formed(path: Path) -> None:
    template = yaml.safe_load(path.read_text("utf-8"))
    assert {"name", "description", "body"} <= template.keys()
    fields = [field["id"] for field in template["body"] if field["type"] != "markdown"]
    assert len(set(fields)) == len(fields) > 0


def test_a_bug_is_reported_with_an_anonymous_snapshot() -> None:
    assert "wukong snapshot --anonymize" in text_of(".github/ISSUE_TEMPLATE/bug.yml")
    assert {path.stem for path in TEMPLATES} == {"bug", "feature", "config"}


def test_make_help_lists_every_target_that_people_call() -> None:
    shown = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert {line.split()[1] for line in shown.splitlines()} == make_targets() >= {"quick", "test", "check"}


@pytest.mark.slow
def test_quick_leaves_out_what_needs_a_control_plane_or_is_slow_and_says_so() -> None:
    tests = ["tests/conformance/test_placing.py", "tests/live/test_fidelity.py", "tests/serve/test_fuzz.py"]
    command = [sys.executable, "-m", "pytest", "-q", "--collect-only", "--quick", "-p", "no:cacheprovider", *tests]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    chosen = [line for line in printed if "::" in line]
    assert {line.rpartition("[")[2] for line in chosen} == {"embedded]", "recorded]"}
    cases = [line for line in chosen if line.endswith("[embedded]")]
    count = len(cases) + 2  # the same cases on a real API server, and the comparisons of scenarios
    needs = "need a control plane, Prometheus or Chromium"
    line = f"Left out: {count} tests that {needs}, 1 slow ones. `make test` runs them."
    assert line in printed
