"""Policies that are wrong, one way each, and who must say so: the API server, or the `policy` controller."""

from __future__ import annotations

from typing import Any, NamedTuple

from live.bad_wukongs import CEL, CONDITION, BadWukong, bad_wukongs_of

Spec = dict[str, Any]
AFFINITY, POLICY = "spec.scheduling.resourceAffinity", "spec.scheduling.schedulingPolicy"
WEIGHT, PERCENT = "expected a weight from 1 to 100", 'expected a percentage from 0% to 100%, such as "70%"'
QUANTITY = "expected a quantity that is not negative"
SHARE = 'expected a number of pods, such as 2, or a share from "0%" to "100%"'
LONELY_SELECTOR = "expected a selector with labels beside "
VALUES = "expected values with the operators In and NotIn, and none with Exists and DoesNotExist"


class Bad(NamedTuple):
    name: str
    spec: Any
    path: str
    says: str
    kind: str = "PlacementPolicy"
    reason: str = "Invalid"  # of the condition, where the API server takes it


def cpu(**wish: Any) -> Spec:
    return {"scheduling": {"resourceAffinity": {"preferredCPU": {"weight": 50, "threshold": "70%", **wish}}}}


def needs(**requirement: Any) -> Spec:
    return {"scheduling": {"resourceAffinity": {"requiredResources": [requirement]}}}


def policy(**fields: Any) -> Spec:
    return {"scheduling": {"schedulingPolicy": fields}}


def rule(name: str = "cost-aware", type: str = "score", **more: Any) -> Spec:  # noqa: A002
    return policy(rules=[{"name": name, "type": type, **more}])


def labels(**given: Any) -> Spec:
    return {"selector": {"matchLabels": given}}


def expression(**given: Any) -> Spec:
    return {"selector": {"matchExpressions": [given]}}


def expressions(count: int) -> list[Spec]:
    return [{"key": f"key-{number}", "operator": "Exists"} for number in range(count)]


def capacity(strategy: str = "spot-first", **fields: Any) -> Spec:
    return {"capacity": {"strategy": strategy, **fields}}


def versions(**fields: Any) -> Spec:
    return {**labels(app="web"), "versionAntiAffinity": fields}


def disruption(**fields: Any) -> Spec:
    return {**labels(app="web"), "disruption": fields}


def on_nodes(count: int) -> Spec:
    terms = [{"matchExpressions": [{"key": f"key-{number}", "operator": "Exists"}]} for number in range(count)]
    return {"nodeAffinity": {"required": terms}}


# What the scheduling blocks of policies and Wukongs share is judged alike.
SHARED_FIELDS = {"podAffinity", "podAntiAffinity", "nodeAffinity", "tolerations", "topologySpreadConstraints"}


def is_shared(bad: BadWukong) -> bool:
    return (
        isinstance(bad.spec, dict)
        and bad.spec.keys() == {"scheduling"}
        and bad.spec["scheduling"].keys() <= SHARED_FIELDS
    )


def list_shared(refused_by: str) -> list[Bad]:
    bad_wukongs = (bad for bad in bad_wukongs_of(refused_by) if is_shared(bad))
    return [Bad(f"block-{bad.name}", bad.spec, bad.path, bad.says) for bad in bad_wukongs]


# The schema and its CEL rules say no: the policy is never stored.
REFUSED = [
    *list_shared(CEL),
    Bad("base-negative", capacity(onDemandBase=-1), "spec.capacity.onDemandBase", SHARE),
    Bad("base-without-percent", capacity(onDemandBase="30"), "spec.capacity.onDemandBase", SHARE),
    Bad("base-too-high", capacity(onDemandBase="101%"), "spec.capacity.onDemandBase", SHARE),
    Bad("base-of-a-fraction", capacity(onDemandBase="12.5%"), "spec.capacity.onDemandBase", SHARE),
    Bad("base-is-a-list", capacity(onDemandBase=[2]), "spec.capacity.onDemandBase", "must be of type integer,string"),
    Bad("share-negative", capacity(spotPercent=-1), "spec.capacity.spotPercent", "expected a percentage from 0 to 100"),
    Bad("share-101", capacity(spotPercent=101), "spec.capacity.spotPercent", "expected a percentage from 0 to 100"),
    Bad("share-is-text", capacity(spotPercent="70%"), "spec.capacity.spotPercent", "must be of type integer"),
    Bad(
        "fallback-unknown",
        capacity(spotPercent=70, fallback="Spot"),
        "spec.capacity.fallback",
        "expected OnDemand or Wait",
    ),
    Bad(
        "fallback-without-a-split",
        capacity(fallback="Wait"),
        "spec.capacity.fallback",
        "expected onDemandBase or spotPercent beside fallback",
    ),
    Bad(
        "base-without-a-choice",
        capacity("on-demand-only", onDemandBase=2),
        "spec.capacity.strategy",
        "expected a strategy that leaves a choice",
    ),
    Bad(
        "share-without-a-choice",
        capacity("spot-only", spotPercent=70),
        "spec.capacity.strategy",
        "expected a strategy that leaves a choice",
    ),
    Bad("versions-neither", versions(), "spec.versionAntiAffinity", "expected either required: true or preferred"),
    Bad(
        "versions-not-required",
        versions(required=False),
        "spec.versionAntiAffinity",
        "expected either required: true or preferred",
    ),
    Bad(
        "versions-both",
        versions(required=True, preferred={"weight": 5}),
        "spec.versionAntiAffinity",
        "expected either required: true or preferred",
    ),
    Bad("versions-weight-0", versions(preferred={"weight": 0}), "spec.versionAntiAffinity.preferred.weight", WEIGHT),
    Bad(
        "versions-weight-101", versions(preferred={"weight": 101}), "spec.versionAntiAffinity.preferred.weight", WEIGHT
    ),
    Bad(
        "versions-without-weight", versions(preferred={}), "spec.versionAntiAffinity.preferred.weight", "Required value"
    ),
    Bad(
        "versions-without-a-key",
        versions(required=True, topologyKey=""),
        "spec.versionAntiAffinity.topologyKey",
        "expected a node label key",
    ),
    Bad(
        "versions-of-everybody",
        {"versionAntiAffinity": {"required": True}},
        "spec.versionAntiAffinity",
        f"{LONELY_SELECTOR}versionAntiAffinity",
    ),
    Bad(
        "versions-of-an-empty-selector",
        {"selector": {}, "versionAntiAffinity": {"required": True}},
        "spec.versionAntiAffinity",
        f"{LONELY_SELECTOR}versionAntiAffinity",
    ),
    Bad("priority-of-nothing", {"priority": {}}, "spec.priority", "expected either value or className"),
    Bad(
        "priority-of-both",
        {"priority": {"value": 5, "className": "high"}},
        "spec.priority",
        "expected either value or className",
    ),
    Bad(
        "priority-of-the-system",
        {"priority": {"value": 1_000_000_001}},
        "spec.priority.value",
        "expected at most 1000000000",
    ),
    Bad("priority-class-name", {"priority": {"className": "High!"}}, "spec.priority.className", "should match"),
    Bad(
        "priority-preemption",
        {"priority": {"value": 5, "preemptionPolicy": "Always"}},
        "spec.priority.preemptionPolicy",
        "expected Never or PreemptLowerPriority",
    ),
    Bad(
        "priority-preemption-of-a-class",
        {"priority": {"className": "high", "preemptionPolicy": "Never"}},
        "spec.priority.preemptionPolicy",
        "expected no preemptionPolicy with className",
    ),
    Bad("disruption-neither", disruption(), "spec.disruption", "expected either minAvailable or maxUnavailable"),
    Bad(
        "disruption-both",
        disruption(minAvailable=1, maxUnavailable=1),
        "spec.disruption",
        "expected either minAvailable or maxUnavailable",
    ),
    Bad("disruption-negative", disruption(minAvailable=-1), "spec.disruption.minAvailable", SHARE),
    Bad("disruption-of-text", disruption(maxUnavailable="one"), "spec.disruption.maxUnavailable", SHARE),
    Bad(
        "disruption-of-everybody",
        {"disruption": {"minAvailable": 1}},
        "spec.disruption",
        f"{LONELY_SELECTOR}disruption",
    ),
    Bad("critical-on-spot", {"critical": True, **capacity()}, "spec.critical", "expected no capacity, or on-demand-"),
    Bad(
        "critical-and-split",
        {"critical": True, **capacity("on-demand-first", onDemandBase=2)},
        "spec.critical",
        "expected no capacity, or on-demand-",
    ),
    Bad("critical-is-text", {"critical": "yes"}, "spec.critical", "must be of type boolean"),
    Bad("apply-unknown", {"apply": "Webhook"}, "spec.apply", "expected Admission or None"),
    Bad("apply-is-null-as-text", {"apply": "none"}, "spec.apply", "expected Admission or None"),
    Bad("too-many-node-terms", {"scheduling": on_nodes(17)}, "spec.scheduling.nodeAffinity.required", "at most 16"),
    Bad("no-spec", None, "spec", "Required value"),
    Bad("spec-is-text", "spot-first", "spec", "must be of type object"),
    Bad("weight-0", cpu(weight=0), f"{AFFINITY}.preferredCPU.weight", WEIGHT),
    Bad("weight-101", cpu(weight=101), f"{AFFINITY}.preferredCPU.weight", WEIGHT),
    Bad("weight-negative", cpu(weight=-5), f"{AFFINITY}.preferredCPU.weight", WEIGHT),
    Bad("weight-is-a-word", cpu(weight="high"), f"{AFFINITY}.preferredCPU.weight", "must be of type integer"),
    Bad("weight-is-a-fraction", cpu(weight=1.5), f"{AFFINITY}.preferredCPU.weight", "must be of type integer"),
    Bad("threshold-without-percent", cpu(threshold="70"), f"{AFFINITY}.preferredCPU.threshold", PERCENT),
    Bad("threshold-too-high", cpu(threshold="170%"), f"{AFFINITY}.preferredCPU.threshold", PERCENT),
    Bad("threshold-a-little-too-high", cpu(threshold="100.5%"), f"{AFFINITY}.preferredCPU.threshold", PERCENT),
    Bad("threshold-negative", cpu(threshold="-1%"), f"{AFFINITY}.preferredCPU.threshold", PERCENT),
    Bad("threshold-is-a-word", cpu(threshold="seventy"), f"{AFFINITY}.preferredCPU.threshold", PERCENT),
    Bad("threshold-is-a-number", cpu(threshold=70), f"{AFFINITY}.preferredCPU.threshold", "must be of type string"),
    Bad(
        "preference-without-threshold",
        {"scheduling": {"resourceAffinity": {"preferredMemory": {"weight": 5}}}},
        f"{AFFINITY}.preferredMemory.threshold",
        "Required value",
    ),
    Bad("strategy-unknown", {"capacity": {"strategy": "spot"}}, "spec.capacity.strategy", "expected one of spot-first"),
    Bad("strategy-missing", {"capacity": {}}, "spec.capacity.strategy", "Required value"),
    Bad("mode-unknown", {"mode": "DryRun"}, "spec.mode", "expected Enforce or Observe"),
    Bad("mode-in-lower-case", {"mode": "observe"}, "spec.mode", "expected Enforce or Observe"),
    Bad(
        "preemption-unknown",
        policy(preemptionPolicy="Always"),
        f"{POLICY}.preemptionPolicy",
        "expected Never or PreemptLowerPriority",
    ),
    Bad("priority-too-big", policy(priority=10**12), f"{POLICY}.priority", "should be less than or equal to"),
    Bad("rule-type-unknown", rule(type="sort"), f"{POLICY}.rules[0].type", "expected score, filter or prioritize"),
    Bad("rule-type-missing", policy(rules=[{"name": "latency"}]), f"{POLICY}.rules[0].type", "Required value"),
    Bad("rule-name-missing", policy(rules=[{"type": "score"}]), f"{POLICY}.rules[0].name", "Required value"),
    Bad("rule-name-empty", rule(name=""), f"{POLICY}.rules[0].name", "should be at least 1 chars long"),
    Bad("rule-weight-0", rule(weight=0), f"{POLICY}.rules[0].weight", WEIGHT),
    Bad(
        "rule-weight-on-a-filter",
        rule(type="filter", weight=5, config={"maxPerHour": 1}),
        f"{POLICY}.rules[0].weight",
        "expected a weight only with type score; leave it out, or make this a score",
    ),
    Bad("rule-weight-on-prioritize", rule(type="prioritize", weight=5), f"{POLICY}.rules[0].weight", "only with type"),
    Bad("rule-config-is-text", rule(config="costFactor=1"), f"{POLICY}.rules[0].config", "must be of type object"),
    Bad(
        "too-many-rules",
        policy(rules=[{"name": "cost-aware", "type": "score"}] * 33),
        f"{POLICY}.rules",
        "must have at most 32 items",
    ),
    Bad(
        "resource-unknown",
        needs(resourceType="disk", minAvailable="1"),
        f"{AFFINITY}.requiredResources[0].resourceType",
        "expected cpu, memory, storage, gpu or an extended resource",
    ),
    Bad(
        "amount-is-a-word",
        needs(resourceType="memory", minAvailable="lots"),
        f"{AFFINITY}.requiredResources[0].minAvailable",
        QUANTITY,
    ),
    Bad(
        "amount-negative",
        needs(resourceType="memory", minAvailable="-1Gi"),
        f"{AFFINITY}.requiredResources[0].minAvailable",
        QUANTITY,
    ),
    Bad(
        "amount-negative-number",
        needs(resourceType="cpu", minAvailable=-1),
        f"{AFFINITY}.requiredResources[0].minAvailable",
        QUANTITY,
    ),
    Bad("amount-missing", needs(resourceType="cpu"), f"{AFFINITY}.requiredResources[0].minAvailable", "Required value"),
    Bad(
        "operator-unknown",
        expression(key="app", operator="Is", values=["web"]),
        "spec.selector.matchExpressions[0].operator",
        'supported values: "DoesNotExist", "Exists", "In", "NotIn"',
    ),
    Bad("in-without-values", expression(key="a", operator="In"), "spec.selector.matchExpressions[0].values", VALUES),
    Bad(
        "exists-with-values",
        expression(key="app", operator="Exists", values=["web"]),
        "spec.selector.matchExpressions[0].values",
        VALUES,
    ),
    Bad(
        "too-many-labels",
        labels(**{f"l{number}": "x" for number in range(33)}),
        "spec.selector.matchLabels",
        "at most 32",
    ),
    Bad(
        "too-many-expressions",
        {"selector": {"matchExpressions": expressions(33)}},
        "spec.selector.matchExpressions",
        "must have at most 32 items",
    ),
    Bad(
        "too-many-values",
        expression(key="app", operator="In", values=[f"v{number}" for number in range(65)]),
        "spec.selector.matchExpressions[0].values",
        "must have at most 64 items",
    ),
    Bad("label-too-long", labels(app="x" * 64), "spec.selector.matchLabels.app", "may not be more than 63"),
    Bad("label-with-an-escape", labels(app="\x1b[31m"), "spec.selector.matchLabels.app", "should match"),
    Bad(
        "expression-key-with-an-escape",
        expression(key="a\u202eb", operator="Exists"),
        "spec.selector.matchExpressions[0].key",
        "should match",
    ),
    Bad("rule-name-with-an-escape", rule(name="a\x1b[2J"), f"{POLICY}.rules[0].name", "should match"),
    Bad("scheduler-with-an-escape", policy(schedulerName="a\x9bb"), f"{POLICY}.schedulerName", "should match"),
    Bad("label-is-a-number", labels(tier=5), "spec.selector.matchLabels.tier", "must be of type string"),
    Bad("selector-is-text", {"selector": "app=web"}, "spec.selector", "must be of type object"),
    Bad("default", {"selector": {}}, "spec", "expected no selector and no namespaceSelector", "ClusterPlacementPolicy"),
    Bad(
        "default",
        {"namespaceSelector": {"matchLabels": {"team": "a"}}},
        "spec",
        "Leave them out, or give this policy another name.",
        "ClusterPlacementPolicy",
    ),
    Bad(
        "config-of-many",
        rule(config={f"field-{number}": 1 for number in range(65)}),
        f"{POLICY}.rules[0].config",
        "must have at most 64",
    ),
]
# The API server cannot know these: the policy is stored, and its condition Accepted says what is wrong.
REPORTED = [
    *list_shared(CONDITION),
    Bad(
        "topology-key-of-versions",
        versions(required=True, topologyKey="a b"),
        "$.spec.versionAntiAffinity.topologyKey",
        "expected a label key",
    ),
    Bad(
        "too-many-terms-for-spot",
        {"scheduling": on_nodes(6), **capacity("spot-only")},
        "$.spec.scheduling.nodeAffinity.required",
        "expected at most 5 alternatives where spot nodes are required, got 6",
    ),
    Bad("label-key", labels(**{"-app": "web"}), "$.spec.selector.matchLabels", "expected a label key"),
    Bad("label-value", labels(app="we b"), "$.spec.selector.matchLabels.app", "expected a label value"),
    Bad(
        "expression-key",
        expression(key="a b", operator="Exists"),
        "$.spec.selector.matchExpressions[0].key",
        "expected a label key",
    ),
    Bad(
        "expression-value",
        expression(key="app", operator="In", values=["ok", "no!"]),
        "$.spec.selector.matchExpressions[0].values[1]",
        "expected a label value",
    ),
    Bad(
        "namespace-label",
        {"namespaceSelector": {"matchLabels": {"team": "-"}}},
        "$.spec.namespaceSelector.matchLabels.team",
        "expected a label value",
        "ClusterPlacementPolicy",
    ),
    Bad("rule-unknown", rule(name="cost-awar"), f"$.{POLICY}.rules[0].name", 'Did you mean "cost-aware"?'),
    Bad("rule-like-no-other", rule(name="xyzzy"), f"$.{POLICY}.rules[0].name", "Install the package that has it"),
    Bad(
        "config-out-of-range",
        rule(config={"costFactor": 2}),
        f"$.{POLICY}.rules[0].config.costFactor",
        "expected a number from 0",
    ),
    Bad(
        "config-of-another-type",
        rule(config={"costFactor": "x"}),
        f"$.{POLICY}.rules[0].config.costFactor",
        "expected float, got str",
    ),
    Bad(
        "config-unknown",
        rule(config={"costFacto": 0.5}),
        f"$.{POLICY}.rules[0].config.costFacto",
        'Did you mean "costFactor"?',
    ),
    Bad(
        "config-incomplete",
        rule(type="filter"),
        f"$.{POLICY}.rules[0].config.maxPerHour",
        "expected a price per hour, got none",
    ),
    Bad(
        "config-of-too-many-expressions",
        rule("label-match", config={"matchExpressions": expressions(33)}),
        f"$.{POLICY}.rules[0].config.matchExpressions",
        "expected at most 32, got 33",
    ),
    Bad(
        "config-of-a-megabyte",
        rule("label-match", config={"matchExpressions": expressions(25_000)}),
        "",
        "expected at most 128 KiB, got ",
        reason="Unreadable",
    ),
    Bad(
        "second-rule",
        policy(rules=[{"name": "cost-aware", "type": "score"}, {"name": "latenci", "type": "score"}]),
        f"$.{POLICY}.rules[1].name",
        'Did you mean "latency"?',
    ),
]
