"""Wukongs that are wrong, one way each, and who says so: the API server by the CRD, the `vm` controller, or KubeVirt.

CEL         the schema and its rules: never stored
CONDITION   stored; nothing is built, and the condition Accepted says what is wrong, with the path
KUBEVIRT    accepted by us; KubeVirt's own admission refuses the VirtualMachine
"""

from __future__ import annotations

from typing import Any, NamedTuple

Spec = dict[str, Any]
CEL, CONDITION, KUBEVIRT = "cel", "condition", "kubevirt"
SCHEDULING = "spec.scheduling"
VALUES = "expected values with the operators In and NotIn, and none with Exists and DoesNotExist"
NUMBER = 'expected exactly one whole number in quotes, such as "5", with the operators Gt and Lt'
WEIGHT = "expected a weight from 1 to 100"
ONE_SOURCE = "expected exactly one of containerDisk, dataVolume, claim and cloudInit"
PERCENT = 'expected a percentage from 0% to 100%, such as "70%"'
SELECTOR = {"matchLabels": {"app": "web"}}
ROOT_DISK = {"name": "root", "containerDisk": {"image": "quay.io/containerdisks/fedora:41"}}


class BadWukong(NamedTuple):
    name: str
    spec: Any
    path: str
    says: str
    refused_by: str = CEL


def scheduling(**fields: Any) -> Spec:
    return {"scheduling": fields}


def near(**term: Any) -> Spec:
    return scheduling(podAffinity={"required": [{"topologyKey": "zone", "labelSelector": SELECTOR, **term}]})


def wishes_apart(weight: Any, **term: Any) -> Spec:
    full_term = {"topologyKey": "zone", "labelSelector": SELECTOR, **term}
    return scheduling(podAntiAffinity={"preferred": [{"weight": weight, "podAffinityTerm": full_term}]})


def selects(**expression: Any) -> Spec:
    return near(labelSelector={"matchExpressions": [expression]})


def on_nodes(**expression: Any) -> Spec:
    return scheduling(nodeAffinity={"required": [{"matchExpressions": [expression]}]})


def on_fields(**field: Any) -> Spec:
    return scheduling(nodeAffinity={"required": [{"matchFields": [field]}]})


def tolerates(**toleration: Any) -> Spec:
    return scheduling(tolerations=[toleration])


def spreads(**constraint: Any) -> Spec:
    full = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": SELECTOR}
    return scheduling(topologySpreadConstraints=[{**full, **constraint}])


def policy(**fields: Any) -> Spec:
    return scheduling(schedulingPolicy=fields)


def prefers_cpu(**preference: Any) -> Spec:
    return scheduling(resourceAffinity={"preferredCPU": {"weight": 50, "threshold": "70%", **preference}})


def needs(*floors: tuple[str, Any], **more: Any) -> Spec:
    required = [{"resourceType": resource, "minAvailable": amount} for resource, amount in floors]
    return scheduling(resourceAffinity={"requiredResources": required}, **more)


def disk(**fields: Any) -> Spec:
    return {"disks": [{"name": "root", **fields}]}


def template(**spec: Any) -> Spec:
    """A vmTemplate that says something of the instance's spec."""
    return {"disks": [ROOT_DISK], "vmTemplate": {"spec": {"template": {"spec": spec}}}}


TERM = f"{SCHEDULING}.podAffinity.required[0]"
NODE_TERM = f"{SCHEDULING}.nodeAffinity.required[0]"
TOLERATION = f"{SCHEDULING}.tolerations[0]"
SPREAD = f"{SCHEDULING}.topologySpreadConstraints"
POLICY = f"{SCHEDULING}.schedulingPolicy"
RESOURCES = f"{SCHEDULING}.resourceAffinity"

BAD_WUKONGS = [
    # the machine
    BadWukong("no-spec", None, "spec", "Required value"),
    BadWukong("cpu-0", {"cpu": 0}, "spec.cpu", "should be greater than or equal to 1"),
    BadWukong("cpu-513", {"cpu": 513}, "spec.cpu", "should be less than or equal to 512"),
    BadWukong("cpu-half", {"cpu": 0.5}, "spec.cpu", "must be of type integer"),
    BadWukong("cpu-is-a-word", {"cpu": "two"}, "spec.cpu", "must be of type integer"),
    BadWukong("memory-without-unit", {"memory": "4"}, "spec.memory", 'at least 1Mi, such as "4Gi"'),
    BadWukong("memory-as-number", {"memory": 4}, "spec.memory", "expected a quantity of at least 1Mi"),
    BadWukong("memory-is-a-word", {"memory": "lots"}, "spec.memory", "expected a quantity of at least 1Mi"),
    BadWukong("memory-negative", {"memory": "-1Gi"}, "spec.memory", "expected a quantity of at least 1Mi"),
    BadWukong("replicas-negative", {"replicas": -1}, "spec.replicas", "should be greater than or equal to 0"),
    BadWukong("replicas-1001", {"replicas": 1001}, "spec.replicas", "should be less than or equal to 1000"),
    BadWukong("run-strategy", {"runStrategy": "Sometimes"}, "spec.runStrategy", "expected Always, Halted, Manual"),
    BadWukong("eviction-strategy", {"evictionStrategy": "Live"}, "spec.evictionStrategy", "expected LiveMigrate, "),
    BadWukong("restart-policy", {"restartPolicy": "Always"}, "spec.restartPolicy", "expected Never or WhenSafe"),
    BadWukong(
        "grace-negative",
        {"terminationGracePeriodSeconds": -1},
        "spec.terminationGracePeriodSeconds",
        "should be greater than or equal to 0",
    ),
    BadWukong(
        "label-of-kubevirt", {"labels": {"kubevirt.io/x": "1"}}, "spec.labels", "expected no label under kubevirt"
    ),
    BadWukong("label-of-ours", {"labels": {"wukong.novasphere.dev/name": "x"}}, "spec.labels", "which is set for you"),
    BadWukong("label-too-long", {"labels": {"app": "x" * 64}}, "spec.labels.app", "may not be more than 63"),
    BadWukong("n" * 64, {}, "metadata.name", "63"),
    BadWukong("n" * 60, {"replicas": 1}, "metadata.name", "or 59 with replicas"),
    # disks, networks, devices
    BadWukong("disk-without-source", disk(), "spec.disks[0]", ONE_SOURCE),
    BadWukong(
        "disk-with-two-sources",
        disk(containerDisk={"image": "a"}, claim={"claimName": "b"}),
        "spec.disks[0]",
        ONE_SOURCE,
    ),
    BadWukong("disk-twice", {"disks": [ROOT_DISK, ROOT_DISK]}, "spec.disks[1]", "Duplicate value"),
    BadWukong("disk-name", {"disks": [{**ROOT_DISK, "name": "Root"}]}, "spec.disks[0].name", "should match"),
    BadWukong("disk-bus", disk(containerDisk={"image": "a"}, bus="ide"), "spec.disks[0].bus", "expected virtio, sata"),
    BadWukong("image-missing", disk(containerDisk={}), "spec.disks[0].containerDisk.image", "Required value"),
    BadWukong(
        "image-empty", disk(containerDisk={"image": ""}), "spec.disks[0].containerDisk.image", "at least 1 chars"
    ),
    BadWukong("claim-name", disk(claim={"claimName": "a_b"}), "spec.disks[0].claim.claimName", "should match"),
    BadWukong(
        "cloud-init-empty", disk(cloudInit={}), "spec.disks[0].cloudInit", "expected userData, networkData or both"
    ),
    BadWukong(
        "cloud-init-too-long",
        disk(cloudInit={"userData": "x" * 2049}),
        "spec.disks[0].cloudInit.userData",
        "may not be more than 2048",
    ),
    BadWukong("network-twice", {"networks": [{"name": "a", "multus": "x"}] * 2}, "spec.networks[1]", "Duplicate value"),
    BadWukong(
        "two-pod-networks",
        {"networks": [{"name": "a"}, {"name": "b"}]},
        "spec.networks",
        "expected at most one network without multus",
    ),
    BadWukong(
        "gpu-without-domain",
        {"gpus": [{"name": "g", "deviceName": "A100"}]},
        "spec.gpus[0].deviceName",
        "expected the name of an extended resource",
    ),
    # near and apart
    BadWukong("topology-key-empty", near(topologyKey=""), f"{TERM}.topologyKey", "expected a node label key"),
    BadWukong(
        "topology-key-missing",
        scheduling(podAffinity={"required": [{"labelSelector": SELECTOR}]}),
        f"{TERM}.topologyKey",
        "Required value",
    ),
    BadWukong("weight-0", wishes_apart(0), f"{SCHEDULING}.podAntiAffinity.preferred[0].weight", WEIGHT),
    BadWukong("weight-101", wishes_apart(101), f"{SCHEDULING}.podAntiAffinity.preferred[0].weight", WEIGHT),
    BadWukong(
        "wish-without-weight",
        scheduling(podAffinity={"preferred": [{"podAffinityTerm": {"topologyKey": "zone"}}]}),
        f"{SCHEDULING}.podAffinity.preferred[0].weight",
        "Required value",
    ),
    BadWukong(
        "pod-operator-gt",
        selects(key="a", operator="Gt", values=["1"]),
        f"{TERM}.labelSelector.matchExpressions[0].operator",
        'supported values: "DoesNotExist", "Exists", "In", "NotIn"',
    ),
    BadWukong(
        "in-without-values",
        selects(key="a", operator="In"),
        f"{TERM}.labelSelector.matchExpressions[0].values",
        VALUES,
    ),
    BadWukong(
        "exists-with-values",
        selects(key="a", operator="Exists", values=["x"]),
        f"{TERM}.labelSelector.matchExpressions[0].values",
        VALUES,
    ),
    BadWukong(
        "key-in-selector-and-match-label-keys",
        near(matchLabelKeys=["app"]),
        f"{TERM}.matchLabelKeys",
        "expected keys that labelSelector does not mention",
    ),
    BadWukong(
        "key-in-expression-and-match-label-keys",
        near(
            labelSelector={"matchExpressions": [{"key": "v", "operator": "Exists"}]},
            matchLabelKeys=["v"],
        ),
        f"{TERM}.matchLabelKeys",
        "expected keys that labelSelector does not mention",
    ),
    BadWukong(
        "match-label-keys-alone",
        scheduling(podAffinity={"required": [{"topologyKey": "zone", "matchLabelKeys": ["v"]}]}),
        f"{TERM}.labelSelector",
        "expected a labelSelector, for matchLabelKeys adds to one",
    ),
    BadWukong(
        "match-and-mismatch",
        near(matchLabelKeys=["v"], mismatchLabelKeys=["v"]),
        f"{TERM}.matchLabelKeys",
        "expected keys that mismatchLabelKeys does not name",
    ),
    BadWukong("namespace-name", near(namespaces=["Team A"]), f"{TERM}.namespaces[0]", "should match"),
    # nodes
    BadWukong(
        "gt-without-number",
        on_nodes(key="cores", operator="Gt", values=["many"]),
        f"{NODE_TERM}.matchExpressions[0].values",
        NUMBER,
    ),
    BadWukong(
        "lt-with-percent",
        on_nodes(key="usage", operator="Lt", values=["70%"]),
        f"{NODE_TERM}.matchExpressions[0].values",
        NUMBER,
    ),
    BadWukong(
        "gt-with-two",
        on_nodes(key="cores", operator="Gt", values=["1", "2"]),
        f"{NODE_TERM}.matchExpressions[0].values",
        NUMBER,
    ),
    BadWukong(
        "node-in-without-values",
        on_nodes(key="zone", operator="In"),
        f"{NODE_TERM}.matchExpressions[0].values",
        VALUES,
    ),
    BadWukong(
        "node-operator",
        on_nodes(key="zone", operator="Is", values=["a"]),
        f"{NODE_TERM}.matchExpressions[0].operator",
        "Unsupported value",
    ),
    BadWukong(
        "node-term-empty",
        scheduling(nodeAffinity={"required": [{}]}),
        NODE_TERM,
        "expected at least one of matchExpressions or matchFields",
    ),
    BadWukong(
        "node-field-unknown",
        on_fields(key="metadata.uid", operator="In", values=["x"]),
        f"{NODE_TERM}.matchFields",
        "expected metadata.name with In or NotIn and exactly one node name",
    ),
    BadWukong(
        "toleration-operator", tolerates(key="a", operator="Is"), f"{TOLERATION}.operator", "expected Equal or Exists"
    ),
    BadWukong("toleration-effect", tolerates(key="a", effect="NoRun"), f"{TOLERATION}.effect", "expected NoSchedule, "),
    BadWukong(
        "exists-with-value",
        tolerates(key="a", operator="Exists", value="x"),
        f"{TOLERATION}.value",
        "expected no value with the operator Exists",
    ),
    BadWukong("toleration-of-nothing", tolerates(), f"{TOLERATION}.operator", "expected Exists where there is no key"),
    BadWukong(
        "seconds-without-no-execute",
        tolerates(key="a", operator="Exists", tolerationSeconds=5),
        f"{TOLERATION}.effect",
        "expected the effect NoExecute, for tolerationSeconds is set",
    ),
    BadWukong("skew-0", spreads(maxSkew=0), f"{SPREAD}[0].maxSkew", "expected 1 or more"),
    BadWukong("spread-key-empty", spreads(topologyKey=""), f"{SPREAD}[0].topologyKey", "expected a node label key"),
    BadWukong("min-domains-0", spreads(minDomains=0), f"{SPREAD}[0].minDomains", "expected 1 or more"),
    BadWukong(
        "min-domains-of-a-wish",
        spreads(minDomains=2, whenUnsatisfiable="ScheduleAnyway"),
        f"{SPREAD}[0].whenUnsatisfiable",
        "expected DoNotSchedule, for minDomains is set",
    ),
    BadWukong(
        "unsatisfiable", spreads(whenUnsatisfiable="Wait"), f"{SPREAD}[0].whenUnsatisfiable", "Unsupported value"
    ),
    BadWukong(
        "spread-twice",
        scheduling(topologySpreadConstraints=[{"maxSkew": 1, "topologyKey": "zone"}] * 2),
        SPREAD,
        "expected another topologyKey or whenUnsatisfiable in each of them",
    ),
    BadWukong(
        "spread-key-in-both",
        spreads(matchLabelKeys=["app"]),
        f"{SPREAD}[0].matchLabelKeys",
        "expected keys that labelSelector does not mention",
    ),
    # resources and policy
    BadWukong("threshold-without-percent", prefers_cpu(threshold="70"), f"{RESOURCES}.preferredCPU.threshold", PERCENT),
    BadWukong("threshold-170", prefers_cpu(threshold="170%"), f"{RESOURCES}.preferredCPU.threshold", PERCENT),
    BadWukong("preference-weight-0", prefers_cpu(weight=0), f"{RESOURCES}.preferredCPU.weight", WEIGHT),
    BadWukong(
        "resource-unknown",
        needs(("disk", "1")),
        f"{RESOURCES}.requiredResources[0].resourceType",
        "expected cpu, memory, storage, gpu or an extended resource",
    ),
    BadWukong(
        "floor-negative",
        needs(("memory", "-1Gi")),
        f"{RESOURCES}.requiredResources[0].minAvailable",
        "expected a quantity that is not negative",
    ),
    BadWukong(
        "preemption-policy",
        policy(preemptionPolicy="Always"),
        f"{POLICY}.preemptionPolicy",
        "expected Never or PreemptLowerPriority",
    ),
    BadWukong(
        "priority-of-the-system",
        policy(priority=2_000_000_000),
        f"{POLICY}.priority",
        "expected at most 1000000000",
    ),
    BadWukong("scheduler-name", policy(schedulerName="My Scheduler"), f"{POLICY}.schedulerName", "should match"),
    BadWukong("template-is-text", {"vmTemplate": "x"}, "spec.vmTemplate", "must be of type object"),
    # what the API server cannot know
    BadWukong("label-value", {"labels": {"app": "a b"}}, "$.spec.labels.app", "expected a label value", CONDITION),
    BadWukong("label-key", {"labels": {"-x": "1"}}, "$.spec.labels", "expected a label key", CONDITION),
    BadWukong(
        "topology-key",
        near(topologyKey="no key"),
        f"$.{TERM}.topologyKey",
        "expected a label key",
        CONDITION,
    ),
    BadWukong(
        "selector-value",
        near(labelSelector={"matchLabels": {"app": "x!"}}),
        f"$.{TERM}.labelSelector.matchLabels.app",
        "expected a label value",
        CONDITION,
    ),
    BadWukong(
        "node-selector-value",
        scheduling(nodeSelector={"disk": "-"}),
        f"$.{SCHEDULING}.nodeSelector.disk",
        "expected a label value",
        CONDITION,
    ),
    BadWukong(
        "toleration-key",
        tolerates(key="a b", operator="Exists"),
        f"$.{TOLERATION}.key",
        "expected a label key",
        CONDITION,
    ),
    BadWukong(
        "rule-unknown",
        policy(rules=[{"name": "cost-awar", "type": "score"}]),
        f"$.{POLICY}.rules[0].name",
        'Did you mean "cost-aware"?',
        CONDITION,
    ),
    BadWukong(
        "rule-config",
        policy(rules=[{"name": "cost-aware", "type": "score", "config": {"costFactor": 2}}]),
        f"$.{POLICY}.rules[0].config.costFactor",
        "expected a number from 0",
        CONDITION,
    ),
    BadWukong(
        "too-many-terms",
        needs(*((f"example.com/r{index}", "1") for index in range(7))),
        f"$.{RESOURCES}.requiredResources",
        "expected at most 64 required node-affinity terms, got 128",
        CONDITION,
    ),
    BadWukong(
        "too-many-terms-times-alternatives",
        needs(
            *((f"example.com/r{index}", "1") for index in range(5)),
            nodeAffinity={"required": [{"matchExpressions": [{"key": "z", "operator": "Exists"}]}] * 3},
        ),
        f"$.{RESOURCES}.requiredResources",
        "got 96",
        CONDITION,
    ),
    BadWukong(
        "template-cpu",
        template(domain={"cpu": {"cores": 8}}),
        "$.spec.vmTemplate.spec.template.spec.domain.cpu.cores",
        "expected nothing, or what the fields of the Wukong make of it, 1, got 8",
        CONDITION,
    ),
    BadWukong(
        "template-affinity",
        {
            **template(tolerations=[{"key": "a", "operator": "Exists"}]),
            **tolerates(key="b", operator="Exists"),
        },
        "$.spec.vmTemplate.spec.template.spec.tolerations",
        "Say it in one of the two places.",
        CONDITION,
    ),
    BadWukong(
        "template-volume",
        template(volumes=[{"name": "root", "containerDisk": {"image": "other"}}]),
        "$.spec.vmTemplate.spec.template.spec.volumes[0].containerDisk.image",
        "expected nothing, or what the fields",
        CONDITION,
    ),
    BadWukong(
        "template-running",
        {"vmTemplate": {"spec": {"running": True}}},
        "$.spec.vmTemplate.spec.running",
        "runStrategy says when it runs",
        CONDITION,
    ),
    BadWukong(
        "template-instancetype",
        {"vmTemplate": {"spec": {"instancetype": {"name": "u1.small"}}}},
        "$.spec.vmTemplate.spec.instancetype",
        "cpu and memory are given by the Wukong",
        CONDITION,
    ),
    BadWukong(
        "template-name",
        {"vmTemplate": {"metadata": {"name": "other"}}},
        "$.spec.vmTemplate.metadata.name",
        "unknown field",
        CONDITION,
    ),
    BadWukong(
        "template-typo",
        {"vmTemplate": {"sepc": {}}},
        "$.spec.vmTemplate.sepc",
        'Did you mean "spec"?',
        CONDITION,
    ),
    BadWukong(
        "template-label-of-kubevirt",
        {"vmTemplate": {"spec": {"template": {"metadata": {"labels": {"kubevirt.io/x": "1"}}}}}},
        '$.spec.vmTemplate.spec.template.metadata.labels["kubevirt.io/x"]',
        "expected no label that KubeVirt or Wukong sets",
        CONDITION,
    ),
    BadWukong(
        "template-spec-is-text",
        {"vmTemplate": {"spec": "x"}},
        "$.spec.vmTemplate.spec",
        "expected a map of fields",
        CONDITION,
    ),
    BadWukong(
        "cloud-init-too-many-bytes",
        disk(cloudInit={"userData": "\u00e9" * 1100}),
        "$.spec.disks[0].cloudInit.userData",
        "expected at most 2048 bytes, got 2,200",
        CONDITION,
    ),
    # what only KubeVirt knows
    BadWukong(
        "probe-without-handler",
        {"readinessProbe": {"periodSeconds": 5}},
        "spec.template.spec.readinessProbe",
        "must be set if a spec.template.spec.readinessProbe is specified",
        KUBEVIRT,
    ),
    BadWukong(
        "probe-with-two-handlers",
        {"livenessProbe": {"guestAgentPing": {}, "exec": {"command": ["true"]}}},
        "spec.template.spec.livenessProbe",
        "must have exactly one probe type set",
        KUBEVIRT,
    ),
    BadWukong(
        "probe-without-pod-network",
        {"networks": [{"name": "lan", "multus": "lan"}], "readinessProbe": {"tcpSocket": {"port": 22}}},
        "spec.template.spec.readinessProbe.tcpSocket",
        "is only allowed if the Pod Network is attached",
        KUBEVIRT,
    ),
    BadWukong(
        "template-boot-order",
        template(domain={"devices": {"disks": [{"name": "root", "bootOrder": 0}]}}),
        "spec.template.spec.domain.devices.disks[0].bootOrder",
        "must have a boot order > 0",
        KUBEVIRT,
    ),
    BadWukong(
        "template-disk-without-volume",
        template(domain={"devices": {"disks": [{"name": "other", "disk": {}}]}}),
        "spec.template.spec.domain.devices.disks[1].Name",
        "'other' not found",
        KUBEVIRT,
    ),
    BadWukong(
        "template-hostname",
        template(hostname="not a hostname"),
        "spec.template.spec.hostname",
        "does not conform to the kubernetes DNS_LABEL rules",
        KUBEVIRT,
    ),
    BadWukong(
        "template-dns-policy",
        template(dnsPolicy="Mine"),
        "spec.template.spec.dnsPolicy",
        "DNSPolicy: Mine is not supported",
        KUBEVIRT,
    ),
    BadWukong(
        "template-memory-limit",
        template(domain={"resources": {"limits": {"memory": "512Mi"}}}),
        "spec.template.spec.domain.memory.guest",
        "must be equal to or less than the memory limit",
        KUBEVIRT,
    ),
]


def bad_wukongs_of(refused_by: str) -> list[BadWukong]:
    return [bad for bad in BAD_WUKONGS if bad.refused_by == refused_by]
