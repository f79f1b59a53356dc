"""What keeps a pod off a node, in words and fields: which taint, how much is missing, whose pod, which claim."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import HOSTNAME, ZONE, a_node, a_pod, apart_from, spread_over, together_with
from engine.test_volumes_equal_rules import draw_cluster, draw_pod
from random_clusters import Case, cases
from wukong.api.core import (
    Affinity,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Pod,
    Volume,
    VolumeClaimSource,
)
from wukong.api.decode import decode_objects
from wukong.api.objects import Objects
from wukong.api.profile import default_profile
from wukong.engine import Scheduler, Snapshot
from wukong.engine.explain import NodeGroup, explain, group_nodes

WAITS = "WaitForFirstConsumer"
SPOT = "spot=true:NoSchedule"
WANTS_SSD = NodeSelectorRequirement(key="disk", operator="In", values=["ssd", "nvme"])
NEEDS_SSD = Affinity(
    node_affinity=NodeAffinity(
        required=NodeSelector(node_selector_terms=[NodeSelectorTerm(match_expressions=[WANTS_SSD])])
    )
)


def a_cluster() -> Snapshot:
    """Two zones. n1 is nearly full, n2 tainted twice, n3 cordoned and without a zone."""
    snapshot = Snapshot(
        [
            a_node("n1", zone="a", cpu="2", labels={"disk": "hdd"}),
            a_node("n2", zone="b", taints=[SPOT, "old:NoExecute"]),
            a_node("n3", unschedulable=True, pods="0"),
        ]
    )
    snapshot.assume("shop/cache-1", a_pod("cache-1", namespace="shop", app="cache", cpu="1500m"), "n1")
    snapshot.assume("shop/web-0", a_pod("web-0", namespace="shop", cpu=None, host_port=80), "n1")
    lonely = a_pod("lonely", namespace="shop", app="lonely", cpu=None, affinity=apart_from("web", ZONE))
    snapshot.assume("shop/lonely", lonely, "n2")
    return snapshot


def describe(pod: Pod, snapshot: Snapshot | None = None) -> dict[str, list[str]]:
    """Node → why the pod does not fit there."""
    scheduler = Scheduler(snapshot or a_cluster())
    groups = group_nodes(scheduler.view_of(pod), scheduler.decide(pod))
    return {node.nodes[0]: node.list_reasons() for group in groups for node in group.split()}


def in_shop(**fields: object) -> Pod:
    return a_pod("new", **{"namespace": "shop", "app": "api", **fields})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("pod", "node", "expected"),
    [
        (in_shop(cpu="1700m"), "n1", ["lacks 1200m cpu"]),
        (in_shop(requests={"nvidia.com/gpu": "1"}), "n1", ["has no nvidia.com/gpu"]),
        (in_shop(), "n2", ["taint spot=true:NoSchedule", "taint old:NoExecute"]),
        (in_shop(tolerates="old"), "n2", ["taint spot=true:NoSchedule"]),
        (in_shop(), "n3", ["cordoned", "runs as many pods as it may: 0"]),
        (in_shop(node_selector={"disk": "ssd"}), "n1", ["nodeSelector wants disk=ssd: it has hdd"]),
        (in_shop(affinity=NEEDS_SSD), "n1", ["nodeAffinity wants disk In (ssd, nvme): it has hdd"]),
        (in_shop(host_port=80), "n1", ["host port 80/TCP is taken: shop/web-0"]),
        (
            in_shop(affinity=apart_from("cache")),
            "n1",
            [f"its podAntiAffinity[0] (app=cache per {HOSTNAME}): shop/cache-1"],
        ),
        (in_shop(affinity=together_with("db")), "n1", [f"its podAffinity[0] (app=db per {ZONE}): no such pod there"]),
        (
            in_shop(app="web", tolerates="", affinity=None),
            "n2",
            [
                "taint spot=true:NoSchedule",
                "taint old:NoExecute",
                f"podAntiAffinity of others (app=web per {ZONE}): shop/lonely",
            ],
        ),
        (
            in_shop(app="cache", spread=[spread_over(ZONE, app="cache")]),
            "n1",
            [f"topologySpreadConstraints ({ZONE}, maxSkew 1): a has 1 of them, another 0"],
        ),
    ],
)
def test_a_refusal_names_what_it_is_about(pod: Pod, node: str, expected: list[str]) -> None:
    assert describe(pod)[node] == expected


def test_a_pod_on_another_node_of_the_domain_is_named_with_its_node() -> None:
    snapshot = Snapshot([a_node("n1", zone="a"), a_node("n2", zone="a")])
    for number in (1, 2):
        snapshot.assume(f"default/web-{number}", a_pod(f"web-{number}"), "n1")
    reasons = describe(a_pod("new", affinity=apart_from("web", ZONE)), snapshot)
    assert reasons["n2"] == [f"its podAntiAffinity[0] (app=web per {ZONE}): default/web-1 on n1 and 1 more"]


def test_nodes_with_one_cause_share_a_group_whatever_they_lack_and_other_taints_make_another() -> None:
    nodes = [a_node(f"n{number}", cpu=f"{number}") for number in (1, 2, 3)]
    nodes += [a_node("t1", taints=["a=1:NoSchedule"]), a_node("t2", taints=["a=2:NoSchedule"])]
    groups = explain(Scheduler(Snapshot(nodes)), a_pod(cpu="4")).groups
    assert [(group.nodes, group.list_reasons()) for group in groups] == [
        (("n1", "n2", "n3"), ["lacks 1 to 3 cpu"]),
        (("t1",), ["taint a=1:NoSchedule"]),
        (("t2",), ["taint a=2:NoSchedule"]),
    ]
    assert [node.list_reasons() for node in groups[0].split()] == [["lacks 3 cpu"], ["lacks 2 cpu"], ["lacks 1 cpu"]]


def storage(kind: str, name: str, **fields: object) -> dict[str, object]:
    version = "storage.k8s.io/v1" if kind in ("StorageClass", "CSINode") else "v1"
    namespace = {"namespace": "default"} if kind == "PersistentVolumeClaim" else {}
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, **namespace}, **fields}


def test_the_claim_and_the_volume_are_named() -> None:
    in_zone_a = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["a"]}]}
    csi = {"driver": "ebs.csi.aws.com", "volumeHandle": "vol-1"}
    volume_spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "csi": csi}
    done = {"pv.kubernetes.io/bind-completed": "yes"}
    bound = storage("PersistentVolumeClaim", "data", spec={"volumeName": "pv-1"}, status={"phase": "Bound"})
    bound["metadata"] = {"name": "data", "namespace": "default", "annotations": done}
    documents = [
        storage(
            "PersistentVolume",
            "pv-1",
            spec={**volume_spec, "nodeAffinity": {"required": {"nodeSelectorTerms": [in_zone_a]}}},
        ),
        bound,
        storage("StorageClass", "now", provisioner="x", volumeBindingMode="Immediate"),
        storage("PersistentVolumeClaim", "unbound", spec={"storageClassName": "now"}),
        storage("StorageClass", "none", provisioner="kubernetes.io/no-provisioner", volumeBindingMode=WAITS),
        storage("PersistentVolumeClaim", "waiting", spec={"storageClassName": "none"}),
    ]
    objects = Objects()
    for document in documents:
        for entry in decode_objects(msgspec.json.encode(document)):
            objects.add(entry)
    objects.nodes = [a_node("n1", zone="b")]

    def describe_claim(name: str) -> list[str]:
        pod = a_pod()
        pod.spec.volumes = [Volume(name="data", persistent_volume_claim=VolumeClaimSource(claim_name=name))]
        return describe(pod, Snapshot.of(objects))["n1"]

    assert describe_claim("data") == [f"volume pv-1 of claim default/data can be used only where {ZONE} In (a)"]
    assert "claim default/unbound: it is not bound, and binding it does not wait for a pod" in describe_claim("unbound")
    assert describe_claim("waiting") == ["claim default/waiting: no volume there suits it, and its class makes none"]
    assert describe_claim("nobody")[0] == 'persistentvolumeclaim "nobody" not found'


@pytest.mark.slow
@settings(max_examples=40)
@given(cases())
def test_every_refusal_of_a_node_has_a_detail(case: Case) -> None:
    scheduler = Scheduler(Snapshot.of(case.objects))
    for group in explain(scheduler, case.pod).groups:
        assert_described(group, lambda plugin, reasons: plugin == "NodeName")


@pytest.mark.slow
@settings(max_examples=25)
@given(st.integers(0, 2**32))
def test_every_refusal_by_volumes_has_a_detail_or_names_the_claim_itself(seed: int) -> None:
    rng = Random(seed)
    objects = draw_cluster(rng)
    scheduler = Scheduler(Snapshot.of(objects), default_profile())
    for number in range(6):
        pod = draw_pod(rng, f"pod-{number}", objects)
        for group in explain(scheduler, pod).groups:
            assert_described(group, names_it_itself)
        scheduler.place(pod)


def names_it_itself(plugin: str, reasons: tuple[str, ...]) -> bool:
    words = ("persistentvolume", "PVC ", "storageclass", "PersistentVolume had no name", "CSI driver is not installed")
    return any(word in reason for reason in reasons for word in (*words, "PersistentVolumeClaim had no pv name"))


def assert_described(group: NodeGroup, is_complete: Callable[[str, tuple[str, ...]], bool]) -> None:
    for plugin, reasons in group.refusals.items():
        details = [detail for detail in group.details if detail.plugin == plugin]
        assert details or is_complete(plugin, reasons), (plugin, reasons, group.nodes)
        assert all(detail.describe() for detail in details)
