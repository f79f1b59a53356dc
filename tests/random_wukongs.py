"""Made-up Wukongs that are right, using every field there is; the same seed makes the same one.

    random_wukong(7)                       a document, as a user would apply it
    random_wukong(7, is_placeable=True)    without what a plain cluster lacks: devices, networks, schedulers, claims

Used by the properties of placement.vm, and by whoever sends Wukongs through a real API server and KubeVirt.
"""

from __future__ import annotations

from random import Random
from typing import Any, TypeVar

from wukong.api.vm import EVICTION_STRATEGIES, RESTART_POLICIES

Manifest = dict[str, Any]
T = TypeVar("T")
NAMESPACES = ("default", "shop", "team-a")
APPS = ("web", "db", "cache")
HOSTNAME, ZONE, RACK = "kubernetes.io/hostname", "topology.kubernetes.io/zone", "example.com/rack"
TOPOLOGY_KEYS = (HOSTNAME, ZONE, "topology.kubernetes.io/region", RACK, "room")
FLOORS = (
    ("cpu", ("500m", "2", 3)),
    ("memory", ("512Mi", "1G", "3.5Gi")),
    ("storage", ("1Gi", 1000)),
    ("gpu", ("1", 2)),
    ("example.com/fpga", ("1", 4)),
)

_BOOT_FIRST = [{"name": "root", "bootOrder": 1}]


def random_wukong(seed: int, *, is_placeable: bool = False) -> Manifest:
    """A whole document with kind and namespace. `is_placeable`: nothing keeps its VMs from being created and bound."""
    rng = Random(f"wukong {seed}")
    name = f"vm-{seed}-{rng.choice(APPS)}"
    metadata = {"name": name, "namespace": rng.choice(NAMESPACES)}
    spec = _a_spec(rng, is_placeable)
    return {"apiVersion": "vm.novasphere.dev/v1alpha1", "kind": "Wukong", "metadata": metadata, "spec": spec}


def _a_spec(rng: Random, is_placeable: bool) -> Manifest:
    networks = _networks(rng, is_placeable)
    disks = _disks(rng, is_placeable)
    fields: Manifest = {
        "cpu": rng.choice((1, 2, 4)),
        "memory": rng.choice(("64Mi", "512Mi", "1Gi", "1.5Gi", "2G", 1 << 30)),
        "replicas": rng.choice((0, 1, 2, 3)),
        "runStrategy": rng.choice(("Always", "Always", "Halted", "Manual", "RerunOnFailure", "Once")),
        "labels": _labels(rng),
        "highAvailability": {"antiAffinity": rng.random() < 0.7},
        "scheduling": random_scheduling(rng, is_placeable),
        "disks": disks,
        "networks": networks,
        "gpus": [{"name": f"gpu{index}", "deviceName": "nvidia.com/A100"} for index in range(rng.randint(1, 2))],
        "evictionStrategy": rng.choice(EVICTION_STRATEGIES),
        "readinessProbe": _a_probe(rng),
        "livenessProbe": _a_probe(rng),
        "terminationGracePeriodSeconds": rng.choice((0, 30, 180)),
        "restartPolicy": rng.choice(RESTART_POLICIES),
        "vmTemplate": _vm_template(rng),
    }
    usual = {"scheduling": 0.9, "disks": 0.8, "labels": 0.7, "replicas": 0.5}
    left_out = {"gpus", "readinessProbe", "livenessProbe"} if is_placeable else set()
    spec = {name: value for name, value in fields.items() if rng.random() < usual.get(name, 0.4)}
    if "disks" in spec and "vmTemplate" not in spec and rng.random() < 0.3:
        spec["vmTemplate"] = {"spec": {"template": {"spec": {"domain": {"devices": {"disks": _BOOT_FIRST}}}}}}
    return {name: value for name, value in spec.items() if name not in left_out}


def _labels(rng: Random) -> dict[str, str]:
    choices = {"app": rng.choice(APPS), "tier": rng.choice(("front", "back")), "example.com/team": "a.b_c"}
    return _some(rng, choices)


def random_scheduling(rng: Random, is_placeable: bool = False) -> Manifest:
    """The scheduling block, of which a policy has all but nodeSelector."""
    fields: Manifest = {
        "podAffinity": _pod_rules(rng, is_placeable),
        "podAntiAffinity": _pod_rules(rng, False),
        "nodeSelector": _some(rng, {"disktype": "ssd", "example.com/pool": "vms"}) if not is_placeable else {},
        "nodeAffinity": _node_rules(rng, is_placeable),
        "tolerations": _sample(rng, _tolerations()),
        "topologySpreadConstraints": _spread(rng),
        "resourceAffinity": _resource_affinity(rng, is_placeable),
        "schedulingPolicy": _policy(rng, is_placeable),
    }
    return {name: value for name, value in fields.items() if rng.random() < 0.5}


def _pod_rules(rng: Random, only_preferred: bool) -> Manifest:
    required = [_a_pod_term(rng) for _ in range(rng.randint(0, 2))]
    preferred = [
        {"weight": rng.choice((1, 50, 100)), "podAffinityTerm": _a_pod_term(rng)} for _ in range(rng.randint(0, 2))
    ]
    return {**({} if only_preferred or not required else {"required": required}), "preferred": preferred}


def _a_pod_term(rng: Random) -> Manifest:
    term: Manifest = {"topologyKey": rng.choice(TOPOLOGY_KEYS)}
    if rng.random() < 0.9:
        term["labelSelector"] = _a_selector(rng)
        if rng.random() < 0.2:
            term["matchLabelKeys"] = ["version"]
        if rng.random() < 0.2:
            term["mismatchLabelKeys"] = ["example.com/tenant"]
    if rng.random() < 0.4:
        term["namespaces"] = _sample(rng, list(NAMESPACES)) or ["default"]
    if rng.random() < 0.4:
        term["namespaceSelector"] = rng.choice(({}, _a_selector(rng), {"matchLabels": {"env": "production"}}))
    return term


def _a_selector(rng: Random) -> Manifest:
    expressions: list[Manifest] = [
        {"key": "app", "operator": "In", "values": _sample(rng, list(APPS)) or ["web"]},
        {"key": "tier", "operator": "NotIn", "values": ["back"]},
        {"key": "example.com/team", "operator": "Exists"},
        {"key": "legacy", "operator": "DoesNotExist"},
    ]
    selector = {"matchLabels": _labels(rng), "matchExpressions": _sample(rng, expressions)}
    return {name: value for name, value in selector.items() if value}


def _node_rules(rng: Random, is_placeable: bool) -> Manifest:
    required = [_a_node_term(rng) for _ in range(rng.randint(1, 3))]
    preferred = [
        {"weight": rng.choice((1, 33, 100)), "preference": _a_node_term(rng)} for _ in range(rng.randint(0, 2))
    ]
    return {**({} if is_placeable else {"required": required}), "preferred": preferred}


def _a_node_term(rng: Random) -> Manifest:
    expressions: list[Manifest] = [
        {"key": ZONE, "operator": "In", "values": ["a", "b"]},
        {"key": "disktype", "operator": "NotIn", "values": ["hdd"]},
        {"key": RACK, "operator": "Exists"},
        {"key": "old", "operator": "DoesNotExist"},
        {"key": "cores", "operator": "Gt", "values": ["7"]},
        {"key": "age", "operator": "Lt", "values": ["100"]},
    ]
    by_name = {"key": "metadata.name", "operator": rng.choice(("In", "NotIn")), "values": ["node-1"]}
    term: Manifest = {"matchExpressions": _sample(rng, expressions), "matchFields": [by_name]}
    term = _some(rng, term)
    return {name: value for name, value in term.items() if value} or {"matchExpressions": expressions[:1]}


def _tolerations() -> list[Manifest]:
    return [
        {"operator": "Exists"},
        {"key": "spot", "operator": "Equal", "value": "true", "effect": "NoSchedule"},
        {"key": "gpu", "operator": "Exists", "effect": "PreferNoSchedule"},
        {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30},
        {"key": "dedicated", "value": "vms"},
    ]


def _spread(rng: Random) -> list[Manifest]:
    constraints = []
    for key in _sample(rng, list(TOPOLOGY_KEYS[:4])):
        constraint: Manifest = {"maxSkew": rng.randint(1, 3), "topologyKey": key, "labelSelector": _a_selector(rng)}
        constraint["whenUnsatisfiable"] = rng.choice(("DoNotSchedule", "ScheduleAnyway", "ScheduleAnyway"))
        if constraint["whenUnsatisfiable"] == "DoNotSchedule" and rng.random() < 0.5:
            constraint["minDomains"] = rng.randint(1, 2)
        more = {"nodeAffinityPolicy": "Ignore", "nodeTaintsPolicy": "Honor", "matchLabelKeys": ["version"]}
        constraints.append(constraint | _some(rng, more))
    return constraints


def _resource_affinity(rng: Random, is_placeable: bool) -> Manifest:
    def preference() -> Manifest:
        return {
            "weight": rng.choice((1, 60, 80, 100)),
            "threshold": rng.choice(("70%", "0%", "99.5%", "100%", "33.25%")),
        }

    floors = [
        {"resourceType": resource, "minAvailable": rng.choice(amounts)}
        for resource, amounts in _sample(rng, [*FLOORS])[:3]
        if not is_placeable or resource in ("cpu", "memory", "storage")
    ]
    preferences = {name: preference() for name in ("preferredCPU", "preferredMemory", "preferredStorage")}
    return {**_some(rng, preferences), **({"requiredResources": floors} if floors else {})}


def _policy(rng: Random, is_placeable: bool) -> Manifest:
    rule = {"name": "cost-aware", "type": "score", "weight": 50, "config": {"costFactor": 0.3}}
    fields: Manifest = {
        "schedulerName": "default-scheduler" if is_placeable else rng.choice(("wukong", "gpu-scheduler")),
        "priority": rng.choice((0, 100, 1000, -10)),
        "preemptionPolicy": rng.choice(("Never", "PreemptLowerPriority")),
        "rules": [rule],
    }
    return _some(rng, fields)


def _disks(rng: Random, is_placeable: bool) -> list[Manifest]:
    root: Manifest = {"name": "root", "containerDisk": {"image": "quay.io/containerdisks/fedora:41"}}
    others: list[Manifest] = [
        {"name": "data", "dataVolume": {"name": "data-volume"}, "bus": "scsi"},
        {"name": "claim", "claim": {"claimName": "some-claim"}, "bus": "sata"},
        {"name": "init", "cloudInit": _some(rng, {"networkData": "version: 2"}) | {"userData": "#cloud-config\n"}},
    ]
    return [root, *(others[-1:] if is_placeable else _sample(rng, others))]


def _networks(rng: Random, is_placeable: bool) -> list[Manifest]:
    pod_network: Manifest = {"name": "default"}
    others: list[Manifest] = [{"name": "lan", "multus": "lan"}, {"name": "wan", "multus": "networks/wan.1"}]
    return [pod_network, *([] if is_placeable else _sample(rng, others))]


def _a_probe(rng: Random) -> Manifest:
    handlers: list[Manifest] = [
        {"exec": {"command": ["cat", "/ready"]}},
        {"guestAgentPing": {}},
        {"tcpSocket": {"port": 22}},
        {"httpGet": {"port": 80, "path": "/ready"}},
    ]
    return {**rng.choice(handlers), "periodSeconds": rng.choice((5, 20)), "failureThreshold": 3}


def _vm_template(rng: Random) -> Manifest:
    domain: Manifest = {"firmware": {"serial": "e4686d2c-6e8d-4335-b8fd-81bee22f4814"}, "features": {"acpi": {}}}
    domain["devices"] = {"rng": {}}
    template_spec = {"hostname": "guest", "domain": domain, "dnsPolicy": "ClusterFirst"}
    template = {"metadata": {"annotations": {"example.com/note": "of the template"}}, "spec": _some(rng, template_spec)}
    return _some(rng, {"metadata": {"annotations": {"example.com/note": "of the VM"}}, "spec": {"template": template}})


def _some(rng: Random, choices: dict[str, T]) -> dict[str, T]:
    return {name: value for name, value in choices.items() if rng.random() < 0.6}


def _sample(rng: Random, choices: list[T]) -> list[T]:
    return [choice for choice in choices if rng.random() < 0.5]
