"""Rollouts on the command line without a cluster: what is installed, how a plan judges them, and wrong words."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.conftest import Wukong
from cli.manifests import write_json
from rollouts import REQUIRED, a_rollout, a_service, blue_green
from wukong.ports import Document


def a_document(image: str) -> Document:
    """One with an environment, which no snapshot keeps."""
    document = a_rollout(blue_green(antiAffinity=REQUIRED), image)
    document["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "MODE", "value": "a"}]
    return document


def save_cluster(wukong: Wukong, nodes: int, folder: Path) -> None:
    """Eight pods on the first two nodes; the others are empty."""
    scenario: Document = {
        "nodes": [{"namePrefix": "n", "count": nodes, "capacity": {"cpu": 6}}],
        "manifests": [a_service(), a_document("web:1")],
        "timeline": [{"at": "60s", "uncordon": f"n{number}"} for number in range(3, nodes + 1)],
        "until": "10m",
    }
    scenario["timeline"] = [
        *({"at": "0s", "cordon": f"n{number}"} for number in range(3, nodes + 1)),
        *scenario["timeline"],
    ]
    write_json(folder / "scenario.json", scenario)
    assert wukong("sim", "run", "scenario.json", "--save", "before.json.gz").code == 0


@pytest.mark.slow
@pytest.mark.parametrize(("nodes", "code", "verdict"), [(2, 1, "Never ends"), (4, 0, "Completes")])
def test_a_plan_plays_a_new_version_of_a_rollout(
    wukong: Wukong, tmp_path: Path, nodes: int, code: int, verdict: str
) -> None:
    save_cluster(wukong, nodes, tmp_path)
    write_json(tmp_path / "same.json", a_document("web:1"))
    unchanged = wukong("sim", "run", "-s", "before.json.gz", "-f", "same.json", "-o", "json")
    assert (unchanged.code, unchanged.document["writes"]) == (0, 0)
    write_json(tmp_path / "next.json", a_document("web:2"))
    plan = wukong("plan", "-s", "before.json.gz", "-f", "next.json", "--no-advice")
    assert (plan.code, plan.out.startswith(verdict)) == (code, True), plan.out


def test_what_is_installed_has_the_kind_and_the_rights() -> None:
    text = (Path(__file__).parents[1] / "golden" / "installations" / "rollout.yaml").read_text("utf-8")
    assert "rollouts/status" in text
    assert "--components=rollout" in text


def test_a_wrong_word_is_answered_with_the_right_ones(wukong: Wukong) -> None:
    run = wukong("rollout", "status", "web", "-w", "-o", "json")
    assert (run.code, "leave out --output" in run.err) == (2, True)
    assert "--image" in wukong("manifests", "rollout").err


def test_the_manifests_apply_as_they_are(wukong: Wukong) -> None:
    run = wukong("manifests", "rollout", "--image", "wukong:test")
    assert (run.code, "kind: CustomResourceDefinition" in run.out) == (0, True)
    assert "rollouts.placement.novasphere.dev" in run.out
