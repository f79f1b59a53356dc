"""A scenario of examples/ made fit to be played beside others on a real cluster: names of its own, and no long waits.

Both sides play what comes out of here. Changed are the namespace and the names of nodes, priority and storage classes;
pods keep to its own nodes and take seconds to start, so that nothing depends on milliseconds; progress deadlines
and tolerations are seconds instead of minutes, and what happens next happens as soon as the last is over. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

from testbed.fidelity.scenarios import DEADLINE, FOR, REGION, START, USUAL_START, Json, brief_tolerations
from wukong.api.kinds import KINDS
from wukong.embedded.scenario.format.fields import seconds_of

STEP, DRAIN, LOSS, END = 12, 25, 72, 75  # seconds between two entries, after a drain, after a loss, and after the last
CLAIM_STEP = 25  # until the first entry where volumes are made before pods start: four controllers take part
NODE_ACTIONS = ("cordon", "uncordon", "drain", "notReady", "ready", "kill")
LOSSES = ("notReady", "kill")
START_SECONDS, FORMER_START_SECONDS = "sim.novasphere.dev/start-seconds", "testbed.wukong/start-seconds"
UNKNOWN = (
    "PlacementPolicy",
    "ClusterPlacementPolicy",
    "VirtualMachine",
    "Wukong",
)  # a bare control plane does not have these kinds


def is_playable(scenario: Json) -> bool:
    if any(scenario.get(field) for field in ("files", "components", "nodeGroups")):  # in embedded clusters only
        return False
    if any(document["kind"] == "ResourceQuota" for document in _documents_of(scenario)):
        return False  # who is first when a quota is freed is drawn in many ways: quota_comparison sends those
    if any("usage" in entry for entry in scenario.get("timeline", ())):  # a real cluster's is measured
        return False
    return not any(document["kind"] in UNKNOWN for document in _documents_of(scenario))


def move(scenario: Json, own: str) -> Json:
    """A copy of the scenario whose namespace is `own`, as is the beginning of its nodes' names."""
    copy = deepcopy(scenario)
    copy.pop("expect", None)
    for group in copy.get("nodes", ()):
        name = "name" if "name" in group else "namePrefix"
        group[name] = f"{own}-{group[name]}"
        group["labels"] = {**group.get("labels", {}), FOR: own, REGION: own}
    for document in _documents_of(copy):
        _move_document(document, own)
    for entry in copy.get("timeline", ()):
        _move_entry(entry, own)
    _shorten(copy)
    _delay_adopters(copy)
    return copy


def _documents_of(scenario: Json) -> Iterator[Json]:
    yield from scenario.get("manifests", ())
    for entry in scenario.get("timeline", ()):
        documents = entry.get("apply", [])
        yield from documents if isinstance(documents, list) else [documents]


def _move_document(document: Json, own: str) -> None:
    meta, spec = document["metadata"], document.get("spec", {})
    if KINDS.resource_named(document["kind"]).namespaced:
        meta["namespace"] = own
    elif document["kind"] in ("PriorityClass", "StorageClass"):
        meta["name"] = f"{own}-{meta['name']}"
    for template in spec.get("volumeClaimTemplates", ()):
        template["spec"]["storageClassName"] = f"{own}-{template['spec']['storageClassName']}"
    if document["kind"] == "Deployment":
        spec["progressDeadlineSeconds"] = DEADLINE
    pod = document if document["kind"] == "Pod" else spec.get("template")
    if pod:
        _move_pod(pod, own, START.get(document["kind"], USUAL_START))


def _move_pod(pod: Json, own: str, start: int) -> None:
    meta, spec = pod.setdefault("metadata", {}), dict(pod["spec"])
    pod["spec"] = spec  # one written once and used by many
    spec["nodeSelector"] = {**spec.get("nodeSelector", {}), FOR: own}
    spec["tolerations"] = [*spec.get("tolerations", ()), *brief_tolerations()]
    for name, prefix in (("nodeName", f"{own}-"), ("priorityClassName", f"{own}-")):
        if name in spec:
            spec[name] = f"{prefix}{spec[name]}"
    annotations = meta.get("annotations", {})
    default = {} if FORMER_START_SECONDS in annotations else {START_SECONDS: str(start)}
    meta["annotations"] = {**default, **annotations}


def _move_entry(entry: Json, own: str) -> None:
    for action in NODE_ACTIONS:
        if action in entry:
            entry[action] = f"{own}-{entry[action]}"
    for action in ("patch", "scale", "delete"):
        target: Any = entry.get(action)
        if target and target["kind"] == "Node":
            target["name"] = f"{own}-{target['name']}"
        elif target:
            target["namespace"] = own


def _delay_adopters(scenario: Json) -> None:
    """ReplicaSets that adopt pods come when these are there: one that has not heard of them yet makes others."""
    manifests = scenario["manifests"]
    if any(document["kind"] == "Pod" for document in manifests):
        adopters = [document for document in manifests if document["kind"] == "ReplicaSet"]
        scenario["manifests"] = [document for document in manifests if document["kind"] != "ReplicaSet"]
        scenario["timeline"] = [*({"at": "6s", "apply": adopter} for adopter in adopters), *scenario["timeline"]]


def _shorten(scenario: Json) -> None:
    """Let each entry of the timeline happen as soon as the one before it is over."""
    has_claims = any("volumeClaimTemplates" in document.get("spec", {}) for document in _documents_of(scenario))
    at, last_planned, longest = 0, 0, CLAIM_STEP if has_claims else STEP
    entries = sorted(scenario.get("timeline", ()), key=lambda entry: seconds_of(entry["at"]) or 0)
    for entry in entries:
        planned = seconds_of(entry["at"]) or 0
        at += min(planned - last_planned, longest)
        own = LOSS if any(action in entry for action in LOSSES) else DRAIN if "drain" in entry else STEP
        last_planned, longest = planned, max(own, longest) if planned == last_planned else own
        entry["at"] = f"{at}s"
    scenario["timeline"] = entries
    scenario["until"] = f"{at + longest + END}s"
