"""Rights that are missing: exit code 3 with the verb and the resource, and never an answer about an empty cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.api_server import serve
from cli.conftest import Wukong
from cli.manifests import node, pod, write_yaml

pytestmark = pytest.mark.slow

VERBS = {
    "explain": ("explain", "-f", "web.yaml"),
    "explain a pod": ("explain", "pod/web"),
    "capacity": ("capacity", "-f", "web.yaml"),
    "sim run": ("sim", "run", "-f", "web.yaml"),
    "plan": ("plan", "-f", "web.yaml"),
    "snapshot": ("snapshot", "-o", "cluster.json"),
    "snapshot for others": ("snapshot", "--anonymize", "-o", "cluster.json"),
}


@pytest.mark.parametrize("kind", ["nodes", "pods"])
@pytest.mark.parametrize("verb", VERBS)
def test_without_the_right_to_list_nodes_or_pods_there_is_no_answer(
    wukong: Wukong, tmp_path: Path, verb: str, kind: str
) -> None:
    write_yaml(tmp_path / "web.yaml", pod("web"))
    with serve(tmp_path, [node("a"), pod("web", on="a")], forbidden=[kind]) as kubeconfig:
        run = wukong(*VERBS[verb], "--kubeconfig", kubeconfig)
    assert (run.code, run.out) == (3, "")
    assert f'cannot list resource "{kind}"' in run.err
    assert "wukong manifests reader" in run.err
    assert not (tmp_path / "cluster.json").exists()


def test_other_kinds_that_may_not_be_listed_are_named_once_and_left_out(wukong: Wukong, tmp_path: Path) -> None:
    write_yaml(tmp_path / "web.yaml", pod("web"))
    forbidden = ["services", "poddisruptionbudgets"]
    with serve(tmp_path, [node("a")], forbidden=forbidden) as kubeconfig:
        run = wukong("explain", "-f", "web.yaml", "--kubeconfig", kubeconfig, "-o", "json")
    assert (run.code, run.document["feasible"]) == (0, 1)
    for kind in forbidden:
        assert len([note for note in run.notes if kind in note]) == 1, run.notes


def test_wukongs_that_may_not_be_listed_are_no_empty_list(wukong: Wukong, tmp_path: Path) -> None:
    with serve(tmp_path, [], forbidden=["wukongs"]) as kubeconfig:
        run = wukong("get", "wk", "--kubeconfig", kubeconfig)
    assert (run.code, run.out, 'cannot list resource "wukongs"' in run.err) == (3, "", True)
