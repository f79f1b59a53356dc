"""Objects of every workload kind, made of fragments of pod specs: those of the hand table, and others by seed."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from random import Random
from typing import Any, NamedTuple

from manifest_comparison.pod_fields import CLAIM, FRAGMENTS, Fragment
from manifest_comparison.refusals import REFUSALS
from wukong.api.kinds import KINDS
from wukong.api.resources import Resource

Json = dict[str, Any]
REFUSED_IN = ("Deployment", "StatefulSet", "DaemonSet", "Job", "ReplicationController", "ReplicaSet")
WORKLOADS = ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "ReplicationController", "Job", "Pod")


class Subject(NamedTuple):
    """An object to create, and the manifest that it becomes."""

    title: str
    kind: str
    before: Json
    after: Json

    @property
    def resource(self) -> Resource:
        return KINDS.resource_named(self.kind)


# Fields of the workloads themselves, each in two valid forms.
SPECS: dict[str, list[tuple[Json, Json]]] = {
    "Deployment": [
        ({}, {"minReadySeconds": 5, "revisionHistoryLimit": 0, "progressDeadlineSeconds": 60}),
        ({"strategy": {"type": "RollingUpdate"}}, {"strategy": {"type": "Recreate"}}),
        ({"strategy": {"rollingUpdate": {"maxSurge": 0}}}, {"strategy": {"rollingUpdate": {"maxUnavailable": "50%"}}}),
        ({"replicas": 0}, {"replicas": 0, "minReadySeconds": 0}),
    ],
    "StatefulSet": [
        ({"serviceName": "web"}, {"serviceName": "web", "minReadySeconds": 5, "revisionHistoryLimit": 3}),
        ({"volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": CLAIM}]},
         {"volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": CLAIM}],
          "updateStrategy": {"rollingUpdate": {"partition": 1}}}),
        ({"podManagementPolicy": "Parallel", "ordinals": {"start": 2}},
         {"podManagementPolicy": "Parallel", "ordinals": {"start": 0}, "updateStrategy": {"type": "OnDelete"}}),
        ({"persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete"}},
         {"persistentVolumeClaimRetentionPolicy": {"whenScaled": "Delete"}}),
        ({"updateStrategy": {"type": "RollingUpdate"}}, {"updateStrategy": {"rollingUpdate": {"maxUnavailable": 2}}}),
        ({"volumeClaimTemplates": [{"apiVersion": "v1", "kind": "PersistentVolumeClaim",
                                    "metadata": {"name": "data", "labels": {"a": "b"}},
                                    "spec": {**CLAIM, "storageClassName": "fast", "volumeMode": "Block"}}]},
         {"volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": CLAIM}]}),
    ],
    "DaemonSet": [
        ({}, {"minReadySeconds": 5, "revisionHistoryLimit": 3}),
        ({"updateStrategy": {"type": "OnDelete"}}, {"updateStrategy": {"rollingUpdate": {"maxSurge": "30%",
                                                                                        "maxUnavailable": 0}}}),
    ],
    "ReplicaSet": [({}, {"minReadySeconds": 5})],
    "ReplicationController": [({}, {"minReadySeconds": 5})],
    "Job": [
        ({}, {"backoffLimit": 3, "activeDeadlineSeconds": 60}),
        ({"completionMode": "Indexed", "completions": 3, "parallelism": 2, "backoffLimitPerIndex": 1},
         {"completionMode": "Indexed", "completions": 3, "parallelism": 1, "backoffLimitPerIndex": 1,
          "maxFailedIndexes": 2}),
        ({"ttlSecondsAfterFinished": 5, "podReplacementPolicy": "Failed"},
         {"ttlSecondsAfterFinished": 0, "podReplacementPolicy": "Failed"}),
        ({"podFailurePolicy": {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]}},
         {"podFailurePolicy": {"rules": [{"action": "FailJob", "onExitCodes": {
             "containerName": "main", "operator": "In", "values": [1]}}]}}),
    ],
    "Pod": [({}, {})],
}  # fmt: skip


def build(kind: str, name: str, fragments: list[Json], spec: Json | None = None) -> Json:
    """Return a manifest of this kind whose pods have these fragments. No controller has anything to do for it."""
    pod_spec = _join(fragments)
    labels = {"app": name}
    resource = KINDS.resource_named(kind)
    manifest: Json = {"apiVersion": resource.api_version, "kind": kind, "metadata": {"name": name}}
    if kind == "Pod":
        pod_spec = {"schedulerName": "nobody", "automountServiceAccountToken": False, **pod_spec}
        return {**manifest, "metadata": {"name": name, "labels": labels}, "spec": pod_spec}
    template: Json = {"metadata": {"labels": labels}, "spec": pod_spec}
    idle: dict[str, Json] = {
        "Deployment": {"replicas": 0, "paused": True},
        "StatefulSet": {"replicas": 0},
        "ReplicaSet": {"replicas": 0},
        "ReplicationController": {"replicas": 0},
        "Job": {"suspend": True},
    }
    own = idle.get(kind, {})
    if kind == "Job":
        pod_spec.setdefault("restartPolicy", "Never")
    elif kind != "ReplicationController":
        own["selector"] = {"matchLabels": labels}
    if kind == "DaemonSet":
        pod_spec["nodeSelector"] = {**pod_spec.get("nodeSelector", {}), "nowhere": "here"}
    return {**manifest, "spec": {**own, **(spec or {}), "template": template}}


def _join(fragments: list[Json]) -> Json:
    pod_spec: Json = {"containers": [{"name": "main", "image": "web:1"}]}
    for fragment in copy.deepcopy(fragments):
        _merge(pod_spec["containers"][0], fragment.pop("main", {}))
        _merge(pod_spec, fragment)
    return pod_spec


def _merge(target: Json, more: Json) -> None:
    for name, value in more.items():
        if isinstance(value, list) and isinstance(target.get(name), list):
            target[name] = [*target[name], *value]
        elif isinstance(value, dict) and isinstance(target.get(name), dict):
            _merge(target[name], value)
        else:
            target[name] = value


def list_hand_table() -> Iterator[Subject]:
    """Every fragment, in a kind of its turn; every field of every kind."""
    for number, fragment in enumerate(FRAGMENTS):
        kind = WORKLOADS[number % len(WORKLOADS)]
        yield _subject(f"{kind} {fragment.title}", kind, f"hand-{number}", [fragment], ({}, {}))
        if kind == "Pod":  # of which nearly nothing may change
            yield _subject(f"Deployment {fragment.title}", "Deployment", f"hand-{number}-d", [fragment], ({}, {}))
    for kind, specs in SPECS.items():
        for number, pair in enumerate(specs):
            yield _subject(f"{kind} spec {number}", kind, f"{kind.lower()}-{number}", [], pair)


def list_refusals() -> Iterator[Subject]:
    """Every refusal, as a new workload and as a new pod."""
    for number, (title, fields) in enumerate(REFUSALS):
        for kind in (REFUSED_IN[number % len(REFUSED_IN)], "Pod"):
            name = f"refused-{number}-{kind.lower()}"
            manifest = build(kind, name, [])
            yield Subject(f"{kind} refused: {title}", kind, edit(manifest, fields), manifest)


def edit(manifest: Json, fields: Json) -> Json:
    """Return the manifest with these fields in its pods' spec; those of `main` in the first container."""
    edited, fields = copy.deepcopy(manifest), copy.deepcopy(fields)
    spec = pod_spec_of(edited)
    spec["containers"][0].update(fields.pop("main", {}))
    spec.update(fields)
    return edited


def pod_spec_of(manifest: Json) -> Json:
    spec: Json = manifest["spec"] if manifest["kind"] == "Pod" else manifest["spec"]["template"]["spec"]
    return spec


def _subject(title: str, kind: str, name: str, fragments: list[Fragment], pair: tuple[Json, Json]) -> Subject:
    before = build(kind, name, [fragment.before for fragment in fragments], pair[0])
    return Subject(title, kind, before, build(kind, name, [fragment.after for fragment in fragments], pair[1]))


def make_subject(seed: int) -> Subject:
    """An object of a few fragments, of which some change."""
    random = Random(f"manifest {seed}")
    kind = random.choice(WORKLOADS)
    fragments = [_choose_forms(random, fragment) for fragment in random.sample(FRAGMENTS, random.randint(2, 6))]
    first, second = random.choice(SPECS[kind])
    pair = (first, random.choice([first, second]))
    return _subject(f"{kind} seed {seed}", kind, f"seed-{seed}", fragments, pair)


def _choose_forms(random: Random, fragment: Fragment) -> Fragment:
    forms = [fragment.before, fragment.after, {}]
    before = random.choice(forms[:2])
    return Fragment(fragment.title, before, before if random.random() < 0.5 else random.choice(forms))
