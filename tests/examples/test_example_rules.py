"""The example package installs, is found, and decides; what docs/rules.md shows is run as it stands there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from builders import a_pod
from policies import a_fleet, a_plan, a_policy, a_rule, steady
from wukong.errors import InputError
from wukong.placement.compile import compile_policy
from wukong.placement.judge import Judge
from wukong.placement.rules import BUILT_IN

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "rules"
DOCS = ROOT / "docs" / "rules.md"
GPU = "nvidia.com/gpu"

# What runs in a process that has the package on its path: from the entry point to the extender's answers.
PROGRAM = """
import sys, msgspec, numpy as np
from wukong.api.core import Node, Pod
from wukong.api.decode import decode_objects
from wukong.app.rules import load_rules
from wukong.replies.extender.verbs import Extender
from wukong.state import State

state = State()
for found in decode_objects(sys.stdin.buffer.read()):
    state.apply("ADDED", found)
extender = Extender(state, rules=load_rules())
fleet = extender.fleet(0.0)
answers = {}
for pod in state.all(Pod):
    if not pod.spec.node_name:
        rows = np.arange(fleet.size)
        filtered = extender.filter(pod, fleet, rows, 0.0)
        answers[pod.metadata.name] = {
            "kept": [name for name, kept in zip(fleet.names, filtered.kept.tolist()) if kept],
            "reasons": [refusal.reason for refusal in filtered.refusals],
            "scores": extender.prioritize(pod, fleet, rows, 0.0).tolist(),
        }
print(msgspec.json.encode({"answers": answers, "faults": extender.judge.faults}).decode())
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the example package in it, installed as people install it but for the network."""
    source, target = tmp_path_factory.mktemp("source") / "rules", tmp_path_factory.mktemp("target")
    shutil.copytree(EXAMPLE, source)
    options = ["--quiet", "--no-index", "--no-deps", "--no-build-isolation", "--disable-pip-version-check"]
    command = [sys.executable, "-m", "pip", "install", *options, "--target", str(target), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return target


def run(program: str, path: Path, given: str = "") -> str:
    done = subprocess.run(
        [sys.executable, "-c", program],
        input=given,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(path)},
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def a_pod_document(name: str, **requests: str) -> dict[str, Any]:
    container = {"name": "main", "resources": {"requests": {"cpu": "1", **requests}}}
    return {"kind": "Pod", "metadata": {"name": name, "namespace": "ml"}, "spec": {"containers": [container]}}


def a_node_document(name: str, gpus: int) -> dict[str, Any]:
    return {"kind": "Node", "metadata": {"name": name}, "status": {"allocatable": {"cpu": "8", "pods": 9, GPU: gpus}}}


def test_the_example_is_installed_found_and_decides(installed: Path) -> None:
    rules = [a_rule("gpu-packing", weight=50), a_rule("gpu-packing", "filter")]
    policy = {
        "kind": "PlacementPolicy",
        "apiVersion": "placement.novasphere.dev/v1alpha1",
        "metadata": {"name": "ml", "namespace": "ml"},
        "spec": {"scheduling": {"schedulingPolicy": {"rules": rules}}},
    }
    taken = a_pod_document("taken", **{GPU: "3"})
    taken["spec"]["nodeName"] = "half"
    nodes = [a_node_document("empty", 4), a_node_document("half", 4), a_node_document("plain", 0)]
    pods = [taken, a_pod_document("train", **{GPU: "1"}), a_pod_document("serve")]
    given = yaml.safe_dump_all([policy, *nodes, *pods])
    found = yaml.safe_load(run(PROGRAM, installed, given))
    assert found["faults"] == {}
    assert found["answers"]["train"] == {"kept": ["empty", "half", "plain"], "reasons": [], "scores": [3, 10, 0]}
    serve = found["answers"]["serve"]
    assert serve["kept"] == ["plain"]
    assert serve["reasons"] == [f"rule gpu-packing: kept free for pods that ask for {GPU} (PlacementPolicy ml/ml)"]
    assert serve["scores"] == [5, 5, 5]


def test_the_example_checks_its_config(installed: Path) -> None:
    program = """
from wukong.app.rules import load_rules
rule = load_rules()["gpu-packing"]
print(*rule.problems(rule.config(resource="gpu"), "score"))
"""
    assert run(program, installed).startswith("resource: expected the full name of a resource such as nvidia.com/gpu")


# ---- docs/rules.md


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", DOCS.read_text("utf-8"), flags=re.DOTALL)


@pytest.fixture
def documented() -> dict[str, Any]:
    """What the code blocks define, after they ran one after the other."""
    names: dict[str, Any] = {}
    for block in blocks("python"):
        exec(block, names)
    return names


def test_the_documented_rule_scores_and_filters(documented: dict[str, Any]) -> None:
    fleet = a_fleet(
        steady("a", labels={"example.com/rack": "r1"}), steady("b", labels={"example.com/rack": "r2"}), steady("c"),
        cpu={"a": 95.0, "c": 99.0},
    )  # fmt: skip
    known = {"quiet-rack": documented["QuietRack"]()}
    plan = a_plan(known=known, rules=[a_rule("quiet-rack"), a_rule("quiet-rack", "filter", maxPercent=90)])
    judge = Judge()
    found = judge.filter(plan, fleet, documented["np"].arange(3), a_pod(), {}, "")
    assert found.kept.tolist() == [False, True, True]
    assert judge.score(plan, fleet, documented["np"].arange(3), a_pod()).tolist() == [1, 5, 5]  # 5 points: half up
    assert judge.faults == {}


def test_the_documented_entry_point_and_command_are_the_examples() -> None:
    (documented,) = (tomllib.loads(block) for block in blocks("toml"))
    own = tomllib.loads((EXAMPLE / "pyproject.toml").read_text("utf-8"))
    assert own["project"]["entry-points"].keys() == documented["project"]["entry-points"].keys()
    (command,) = blocks("sh")
    folder = ROOT / command.split()[-1]
    assert command.startswith("pip install ")
    assert folder.resolve() == EXAMPLE


def test_the_documented_policy_compiles_with_the_example_and_is_told_without(installed: Path) -> None:
    (block,) = blocks("yaml")
    program = """
import sys
from wukong.api.decode import decode_objects
from wukong.app.rules import load_rules
from wukong.placement.compile import compile_policy
(policy,) = decode_objects(sys.stdin.buffer.read())
print(compile_policy(policy, load_rules()).scores[0].weight)
"""
    assert run(program, installed, block) == "50\n"
    document = yaml.safe_load(block)
    plan_rules = document["spec"]["scheduling"]["schedulingPolicy"]["rules"]
    with pytest.raises(InputError, match=r"rules\[0\]\.name: expected a rule that is there .*Install the package"):
        compile_policy(a_policy(rules=plan_rules), BUILT_IN)
