"""`wukong capacity`: on clusters small enough to count by hand."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
import yaml

from cli.conftest import Wukong
from cli.manifests import Manifest, deployment, kubectl_list, node, pod, write_json, write_yaml

# 4 + 2 cpu, of which 1 is taken: three more pods of 1 cpu on a, two on b.
CLUSTER = (node("a", cpu="4"), node("b", cpu="2"), pod("old", cpu="1", on="a"))


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    return write_json(tmp_path / "cluster.json", *CLUSTER)


@pytest.fixture
def web(tmp_path: Path) -> Path:
    return write_yaml(tmp_path / "web.yaml", pod("web"))


def test_it_says_how_many_fit_where_and_why_no_more(wukong: Wukong, cluster: Path, web: Path) -> None:
    run = wukong("capacity", "-s", cluster, "-f", web, "-o", "json")
    assert run.code == 0
    assert run.document["fits"] == 5
    assert run.document["perNode"] == {"a": 3, "b": 2}
    assert run.document["reason"].startswith("0/2 nodes are available: 2 Insufficient cpu.")
    assert run.document["limited"] is False


def test_the_table_groups_nodes_that_take_equally_many(wukong: Wukong, web: Path, tmp_path: Path) -> None:
    cluster = write_json(tmp_path / "cluster.json", *(node(f"node-{number}", cpu="2") for number in range(9)))
    lines = wukong("capacity", "-s", cluster, "-f", web).out.splitlines()
    assert lines[0] == "Pod default/web: 18 more fit, on 9 of 9 nodes."
    assert lines[3].split(maxsplit=2) == ["2", "9", "node-0, node-1, node-2 and 6 more"]
    assert lines[5].startswith("Why no more: 0/9 nodes are available: 9 Insufficient cpu.")
    assert lines[-1] == "node-0, node-1, node-2 and 6 more      9  lacks 1 cpu"


def test_wide_shows_every_node(wukong: Wukong, cluster: Path, web: Path) -> None:
    lines = wukong("capacity", "-s", cluster, "-f", web, "-o", "wide").out.splitlines()
    assert [line.split() for line in lines[2:5]] == [["NODE", "PODS"], ["a", "3"], ["b", "2"]]


def test_yaml_says_the_same_as_json(wukong: Wukong, cluster: Path, web: Path) -> None:
    as_json = wukong("capacity", "-s", cluster, "-f", web, "-o", "json").document
    assert yaml.safe_load(wukong("capacity", "-s", cluster, "-f", web, "-o", "yaml").out) == as_json


def test_max_stops_early_and_says_so(wukong: Wukong, cluster: Path, web: Path) -> None:
    run = wukong("capacity", "-s", cluster, "-f", web, "--max", "3", "-o", "json")
    assert (run.document["fits"], run.document["limited"]) == (3, True)
    assert run.document["reason"] == "limit of 3 reached, more would fit"


def test_max_that_is_just_enough_did_not_stop_anything(wukong: Wukong, cluster: Path, web: Path) -> None:
    run = wukong("capacity", "-s", cluster, "-f", web, "--max", "5", "-o", "json")
    assert run.document["limited"] is False
    assert "Insufficient cpu" in run.document["reason"]


def test_a_pod_without_requests_fits_as_often_as_nodes_allow_pods(
    wukong: Wukong, cluster: Path, tmp_path: Path
) -> None:
    manifest = pod("tiny")
    del manifest["spec"]["containers"][0]["resources"]
    run = wukong("capacity", "-s", cluster, "-f", write_yaml(tmp_path / "tiny.yaml", manifest), "-o", "json")
    assert run.document["fits"] == 9 + 10
    assert "2 Too many pods" in run.document["reason"]


def test_more_pods_than_one_chunk_holds_are_counted_right(wukong: Wukong, tmp_path: Path) -> None:
    cluster = write_json(tmp_path / "cluster.json", *(node(name, cpu="100", pods="900") for name in "abc"))
    small = write_yaml(tmp_path / "small.yaml", pod("small", cpu="125m"))
    run = wukong("capacity", "-s", cluster, "-f", small, "-o", "json")
    assert run.document["perNode"] == {"a": 800, "b": 800, "c": 800}


def test_nothing_fits_is_an_answer_too(wukong: Wukong, cluster: Path, tmp_path: Path) -> None:
    run = wukong("capacity", "-s", cluster, "-f", write_yaml(tmp_path / "big.yaml", pod("big", cpu="64")))
    assert run.code == 0
    assert run.out.startswith("Pod default/big: 0 more fit.\n")


def test_whom_the_next_one_would_evict_is_said(wukong: Wukong, tmp_path: Path) -> None:
    low = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "low"}, "value": -5}
    cluster = write_json(
        tmp_path / "cluster.json", node("a", cpu="2"), low, pod("old", on="a", priorityClassName="low")
    )
    web = write_yaml(tmp_path / "web.yaml", pod("web"))
    run = wukong("capacity", "-s", cluster, "-f", web)
    assert run.out.splitlines()[0] == "Pod default/web: 1 more fit, on 1 of 1 node."
    assert run.out.splitlines()[-1] == "The next one would evict default/old from a to fit."
    document = wukong("capacity", "-s", cluster, "-f", web, "-o", "json").document
    preemption = {"node": "a", "victims": ["default/old"], "budgetsBroken": 0, "budgets": []}
    assert document["preemption"] == preemption


FORMS = ["one.json", "one.yaml", "many.yaml", "typed", "folder", "packed.json.gz", "packed.yaml.gz"]


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_snapshot_gives_the_same_answer(
    form: str, wukong: Wukong, cluster: Path, web: Path, tmp_path: Path
) -> None:
    expected = wukong("capacity", "-s", cluster, "-f", web, "-o", "json").out
    run = wukong("capacity", "-s", write_form(tmp_path / form, CLUSTER), "-f", web, "-o", "json")
    assert (run.code, run.out) == (0, expected)


@pytest.mark.parametrize("form", [form for form in FORMS if "." in form])
def test_standard_input_takes_every_form_of_a_file(
    form: str, wukong: Wukong, cluster: Path, web: Path, tmp_path: Path
) -> None:
    expected = wukong("capacity", "-s", cluster, "-f", web, "-o", "json").out
    data = write_form(tmp_path / form, CLUSTER).read_bytes()
    assert wukong("capacity", "-s", "-", "-f", web, "-o", "json", stdin=data).out == expected
    assert wukong("capacity", "-s", cluster, "-f", "-", "-o", "json", stdin=web.read_bytes()).out == expected


def write_form(path: Path, items: tuple[Manifest, ...]) -> Path:
    if path.name == "one.json":
        return write_json(path, *items)
    if path.name == "one.yaml":
        return write_yaml(path, kubectl_list(*items))
    if path.name == "many.yaml":
        return write_yaml(path, *items)
    if path.name == "packed.json.gz":
        path.write_bytes(gzip.compress(json.dumps(kubectl_list(*items)).encode()))
    elif path.name == "packed.yaml.gz":
        path.write_bytes(gzip.compress(yaml.safe_dump_all(items).encode()))
    else:
        path.mkdir()
        nodes = [item for item in items if item["kind"] == "Node"]
        pods = [item for item in items if item["kind"] == "Pod"]
        if path.name == "typed":  # as `kubectl get --raw` and `kubectl cluster-info dump` write them
            bare = [
                {field: value for field, value in item.items() if field not in ("kind", "apiVersion")} for item in nodes
            ]
            write_json(path / "nodes.json", {"apiVersion": "v1", "kind": "NodeList", "items": bare})
            write_json(path / "events.json", {"apiVersion": "v1", "kind": "EventList", "items": None})
        else:
            write_yaml(path / "nodes.yml", *nodes)
            (path / "README.md").write_text("kind: nonsense")
            (path / ".hidden.yaml").write_text("kind: nonsense")
        (path / "below").mkdir()
        write_json(path / "below" / "pods.json", kubectl_list(*pods))
    return path


def test_a_workload_is_asked_about_by_its_template(wukong: Wukong, cluster: Path, tmp_path: Path) -> None:
    web = write_yaml(tmp_path / "web.yaml", deployment("web"))
    run = wukong("capacity", "-s", cluster, "-f", web, "-o", "json")
    assert (run.document["pod"], run.document["fits"]) == ("Deployment default/web", 5)


def test_pods_of_a_deployment_spread_by_default_like_those_of_its_replica_set(wukong: Wukong, tmp_path: Path) -> None:
    """Owned pods get kube-scheduler's default constraints: the second one avoids the node of the first."""
    nodes = [node("a", cpu="4"), node("b", cpu="40")]  # b stays emptier, so a lone pod would always choose it
    cluster = write_json(tmp_path / "cluster.json", *nodes)
    alone = write_yaml(tmp_path / "pod.yaml", pod("web"))
    owned = write_yaml(tmp_path / "web.yaml", deployment("web"))
    arguments = ("capacity", "-s", cluster, "--max", "2", "-o", "json")
    assert wukong(*arguments, "-f", alone).document["perNode"] == {"b": 2}
    assert wukong(*arguments, "-f", owned).document["perNode"] == {"a": 1, "b": 1}


def test_what_the_manifest_brings_along_is_taken_as_applied(wukong: Wukong, cluster: Path, tmp_path: Path) -> None:
    priority = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 9}
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web"}}
    manifest = write_yaml(tmp_path / "web.yaml", priority, config, pod("web", priorityClassName="high"))
    run = wukong("capacity", "-s", cluster, "-f", manifest)
    assert run.code == 0
    assert any("left out what does not decide placement: 1 ConfigMap" in note for note in run.notes)


def test_a_manifest_copied_from_a_running_pod_is_decided_anew(wukong: Wukong, cluster: Path, tmp_path: Path) -> None:
    manifest = write_yaml(tmp_path / "web.yaml", {**pod("web", on="b"), "status": {"phase": "Succeeded"}})
    run = wukong("capacity", "-s", cluster, "-f", manifest, "-o", "json")
    assert run.document["fits"] == 5
    assert any("sets nodeName: b" in note for note in run.notes)


def test_the_scheduler_configuration_decides_where_pods_go(wukong: Wukong, web: Path, tmp_path: Path) -> None:
    cluster = write_json(tmp_path / "cluster.json", node("a", cpu="8"), node("b", cpu="2"))
    strategy = {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 1}]}
    profile = {
        "plugins": {"score": {"disabled": [{"name": "NodeResourcesBalancedAllocation"}]}},
        "pluginConfig": [{"name": "NodeResourcesFit", "args": {"scoringStrategy": strategy}}],
    }
    head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    packing = write_yaml(tmp_path / "packing.yaml", {**head, "profiles": [profile]})
    arguments = ("capacity", "-s", cluster, "-f", web, "--max", "1", "-o", "json")
    assert wukong(*arguments).document["perNode"] == {"a": 1}
    assert wukong(*arguments, "--scheduler-config", packing).document["perNode"] == {"b": 1}
