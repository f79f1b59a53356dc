"""The namespace of what names none: -n, else the context's, else default; and that it is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.api_server import serve, write_kubeconfig
from cli.conftest import Wukong
from cli.manifests import Manifest, deployment, node, pod, write_json, write_yaml
from wukong.cli.inputs.namespaces import choose_namespace
from wukong.cli.inputs.source import Source
from wukong.errors import InputError


def in_namespace(namespace: str | None, manifest: Manifest) -> Manifest:
    named = {name: value for name, value in manifest["metadata"].items() if name != "namespace"}
    return {**manifest, "metadata": {**named, **({"namespace": namespace} if namespace else {})}}


NAMESPACES = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in ("default", "shop")]
CLUSTER = [node("a"), *NAMESPACES, in_namespace("shop", pod("api", on="a")), pod("old", on="a")]
WUKONG: Manifest = {
    "apiVersion": "vm.novasphere.dev/v1alpha1",
    "kind": "Wukong",
    "metadata": {"name": "db"},
    "spec": {"disks": [{"name": "root", "containerDisk": {"image": "disk:1"}}]},
}


@pytest.fixture(autouse=True)
def files(tmp_path: Path) -> None:
    write_json(tmp_path / "cluster.json", *CLUSTER)
    write_yaml(tmp_path / "web.yaml", in_namespace(None, deployment()))
    write_yaml(tmp_path / "mine.yaml", in_namespace("shop", deployment()))
    write_yaml(tmp_path / "vm.yaml", WUKONG)


@pytest.mark.parametrize(
    ("verb", "options", "subject"),
    [
        ("explain", ("-o", "json"), "Deployment {}/web"),
        ("capacity", ("-o", "json"), "Deployment {}/web"),
    ],
)
def test_a_manifest_without_a_namespace_is_taken_into_the_one_of_n_and_it_is_said(
    wukong: Wukong, verb: str, options: tuple[str, ...], subject: str
) -> None:
    run = wukong(verb, "-s", "cluster.json", "-f", "web.yaml", "-n", "shop", *options)
    assert run.document["pod"] == subject.format("shop")
    assert "note: web.yaml: Deployment web names no namespace: taken into shop (--namespace)." in run.notes
    run = wukong(verb, "-s", "cluster.json", "-f", "web.yaml", *options)
    assert run.document["pod"] == subject.format("default")
    assert any("Deployment web names no namespace: taken into default (nothing says" in note for note in run.notes)
    run = wukong(verb, "-s", "cluster.json", "-f", "mine.yaml", *options)
    assert not any("namespace" in note for note in run.notes)


def test_a_policy_without_a_namespace_is_taken_into_it_too(wukong: Wukong, tmp_path: Path) -> None:
    policy: Manifest = {
        "apiVersion": "placement.novasphere.dev/v1alpha1",
        "kind": "PlacementPolicy",
        "metadata": {"name": "web"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "capacity": {"strategy": "spot-only"}},
    }
    write_yaml(tmp_path / "policy.yaml", policy)
    for verb in ("explain", "capacity"):
        run = wukong(verb, "-s", "cluster.json", "-f", "mine.yaml", "--policy", "policy.yaml", "-n", "shop")
        assert "note: policy.yaml: PlacementPolicy web names no namespace: taken into shop (--namespace)." in run.notes
        assert "PlacementPolicy shop/web" in run.out
    other = {**policy, "metadata": {"name": "web", "namespace": "other"}}
    write_yaml(tmp_path / "policy.yaml", other)
    run = wukong("explain", "-s", "cluster.json", "-f", "mine.yaml", "--policy", "policy.yaml", "-n", "shop")
    assert (run.code, "No policy selects it" in run.out) == (0, True)


def test_a_change_is_played_in_the_namespace_of_n_and_a_replay_keeps_it(wukong: Wukong) -> None:
    run = wukong("sim", "run", "-s", "cluster.json", "-f", "web.yaml", "-n", "shop", "-o", "json")
    assert "shop/web" in run.document["workloads"]
    assert "note: web.yaml: Deployment web names no namespace: taken into shop (--namespace)." in run.notes
    out = wukong("sim", "run", "-s", "cluster.json", "-f", "web.yaml", "-n", "shop", "--seeds", "1-2").out
    assert "wukong sim run -s cluster.json -f web.yaml -n shop --seed 1" in out


def test_wukongs_are_linted_in_the_namespace_of_n(wukong: Wukong) -> None:
    run = wukong("lint", "-f", "vm.yaml", "-n", "shop", "-o", "json")
    assert {finding["subject"] for finding in run.document["findings"]} <= {"shop/db"}
    assert "note: vm.yaml: Wukong db names no namespace: taken into shop (--namespace)." in run.notes


@pytest.mark.parametrize("verb", [("explain",), ("capacity",), ("sim", "run")])
def test_a_manifest_of_another_namespace_than_n_is_refused_as_by_kubectl(wukong: Wukong, verb: tuple[str, ...]) -> None:
    run = wukong(*verb, "-s", "cluster.json", "-f", "mine.yaml", "-n", "other")
    assert (run.code, run.out) == (2, "")
    assert "mine.yaml: Deployment web is of namespace shop, and --namespace says other." in run.err


def test_a_pod_is_named_in_the_namespace_of_n_or_in_full_or_in_any(wukong: Wukong, tmp_path: Path) -> None:
    for arguments in (("pod/api", "-n", "shop"), ("pod/shop/api",), ("pod/api", "-A")):
        run = wukong("explain", "-s", "cluster.json", *arguments, "-o", "json")
        assert run.document["pod"] == "Pod shop/api"
    run = wukong("explain", "-s", "cluster.json", "pod/shop/api", "-n", "default")
    assert (run.code, "--namespace says default" in run.err) == (2, True)
    run = wukong("explain", "-s", "cluster.json", "pod/ap", "-A")
    assert (run.code, run.err.splitlines()[-1]) == (
        2,
        'error: cluster.json: no pod ap in any namespace there. Did you mean "api"?',
    )
    write_json(tmp_path / "cluster.json", *CLUSTER, pod("api", on="a"))
    run = wukong("explain", "-s", "cluster.json", "pod/api", "-A")
    assert (run.code, "api is the name of default/api, shop/api. Name one of them." in run.err) == (2, True)


@pytest.mark.slow
def test_the_namespace_of_the_context_counts_on_a_cluster(wukong: Wukong, tmp_path: Path) -> None:
    with serve(tmp_path, CLUSTER, namespace="shop") as kubeconfig:
        run = wukong("explain", "--kubeconfig", kubeconfig, "pod/api", "-o", "json")
        assert run.document["pod"] == "Pod shop/api"
        taken = "note: web.yaml: Deployment web names no namespace: taken into shop (the context's)."
        for verb in (("explain",), ("capacity",)):
            run = wukong(*verb, "--kubeconfig", kubeconfig, "-f", "web.yaml", "-o", "json")
            assert run.document["pod"] == "Deployment shop/web"
            assert taken in run.notes
        run = wukong("sim", "run", "--kubeconfig", kubeconfig, "-f", "web.yaml", "-o", "json")
        assert "shop/web" in run.document["workloads"]
        assert taken in run.notes
        run = wukong("get", "wk", "--kubeconfig", kubeconfig)
        assert "note: no Wukongs in namespace shop." in run.notes
        run = wukong("lint", "-f", "vm.yaml", "--kubeconfig", kubeconfig)
        assert "note: vm.yaml: Wukong db names no namespace: taken into shop (the context's)." in run.notes


def test_n_wins_over_the_context_which_counts_for_no_snapshot(tmp_path: Path) -> None:
    kubeconfig = str(write_kubeconfig(tmp_path / "kubeconfig", "http://127.0.0.1:1", "shop"))
    live = Source(None, kubeconfig)
    assert choose_namespace(None, live).name == "shop"
    assert choose_namespace("other", live).name == "other"
    assert choose_namespace(None, Source("cluster.json", kubeconfig)).name == "default"
    with pytest.raises(InputError, match='no context "nobody"'):
        choose_namespace(None, Source(None, kubeconfig, "nobody"))
