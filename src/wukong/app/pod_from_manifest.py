"""The pod that a manifest stands for: a pod, or the one a workload's template makes; admitted as by the API server.

Called by the verbs that take a manifest, and fit for whoever gets one by other ways: it reads no file and prints
nothing. What else the manifest holds (a Service, a PriorityClass) is put beside the cluster's objects, as if it had
been applied.
"""

from __future__ import annotations

from collections import Counter as Tally
from typing import NamedTuple

import msgspec

from wukong.admission import admit, find_pod_problems
from wukong.api.apps import DaemonSet, Deployment, ReplicaSet, StatefulSet, Workload, WorkloadMeta, WorkloadSpec
from wukong.api.core import PersistentVolumeClaimTemplate, Pod, PodStatus, ReplicationController
from wukong.api.kinds import KINDS, PODS
from wukong.api.meta import LabelSelector, Object, ObjectMeta, OwnerReference, controller_of
from wukong.api.objects import Objects
from wukong.api.resources import Resource
from wukong.app.own_claims import add_own_claims, build_claim_volumes
from wukong.cluster.checks import problems_of
from wukong.errors import InputError

_HASH = "pod-template-hash"
_JOBS = ("Job", "CronJob")


class PodQuestion(NamedTuple):
    pod: Pod  # as the API server would store it
    name: str  # what the user called it: "Deployment shop/web"
    own_claims: frozenset[str] = frozenset()  # claims that every such pod has of its own


def admit_pod(subject: Object, objects: Objects, place: str, notes: list[str]) -> PodQuestion:
    """The pod to decide about, of the pod or workload that `find_subject` found. Adds to `notes` what to know of it.

    Raises InputError with every problem, each at its `place`, where the API server would refuse it.
    """
    prefix = "$" if isinstance(subject, Pod) else "$.spec.template"
    try:
        pod = _as_new(subject, notes) if isinstance(subject, Pod) else _from_template(subject, objects, notes)
        wrong = find_pod_problems(pod) or problems_of(pod, thorough=True, is_stored=False)
        if wrong:
            raise InputError(*wrong)
        admitted = admit(pod, objects)
    except InputError as error:
        at_template = (f"{prefix}{problem.removeprefix('$')}" for problem in error.problems)
        raise InputError(*at_template).at(f"{place}: {subject.kind} {subject.key}") from None
    own_claims = add_own_claims(admitted, _claim_templates_of(subject), objects)
    return PodQuestion(admitted, f"{subject.kind} {subject.key}", own_claims)


def find_subject(manifest: Objects, skipped: Tally[str], place: str) -> Object:
    """The one pod or workload of a manifest. Raises InputError if there is none, or more than one."""
    kinds = [PODS, *sorted(_workload_kinds(), key=lambda resource: resource.kind)]
    candidates = [entry for resource in kinds for entry in manifest.of(resource.group_kind)]
    if len(candidates) == 1:
        return candidates[0]
    if candidates:
        names = ", ".join(f"{entry.kind} {entry.key}" for entry in candidates)
        raise InputError(
            f"{place}: expected one pod or workload, got {len(candidates)}: {names}. Keep the one you ask about."
        )
    jobs = [kind for kind in _JOBS if skipped[kind]]
    if jobs:
        raise InputError(
            f"{place}: a {jobs[0]} is not modelled. Write its pod template as a Pod (kind: Pod) and ask for that."
        )
    named = [kind.resource.kind for kind in KINDS.list_deciding() if manifest.of(kind.group_kind)]
    workloads = ", ".join(sorted(resource.kind for resource in _workload_kinds()))
    got = ", ".join(named + sorted(skipped)) or "nothing"
    raise InputError(f"{place}: expected a Pod or a workload ({workloads}), got {got}.")


def apply_manifest(manifest: Objects, objects: Objects) -> None:
    """Put everything but pods beside what is there; an object that is there keeps its status."""
    for kind in (kind.group_kind for kind in KINDS.list_deciding() if kind.resource != PODS):
        there = {entry.key: number for number, entry in enumerate(objects.of(kind))} if manifest.of(kind) else {}
        for entry in manifest.of(kind):
            number = there.get(entry.key)
            if number is None:
                objects.add(entry)
                continue
            if hasattr(entry, "status"):
                entry.status = objects.of(kind)[number].status  # type: ignore[attr-defined]
            objects.of(kind)[number] = entry


def _workload_kinds() -> list[Resource]:
    return [kind.resource for kind in KINDS.list_deciding() if kind.has_pod_template]


def _as_new(pod: Pod, notes: list[str]) -> Pod:
    """The pod before the scheduler has seen it, even if the manifest was copied from a running one."""
    if pod.spec.node_name:
        bypass = f"{pod.key} sets nodeName: {pod.spec.node_name}, which bypasses the scheduler"
        notes.append(f"{bypass}; decided as if it did not.")
    meta = msgspec.structs.replace(pod.metadata, deletion_timestamp=None)
    meta.name = meta.name or f"{meta.generate_name or 'pod-'}new"
    return msgspec.structs.replace(
        pod, metadata=meta, spec=msgspec.structs.replace(pod.spec, node_name=""), status=PodStatus()
    )


def _from_template(workload: Object, objects: Objects, notes: list[str]) -> Pod:
    """The next pod the workload's controller would create."""
    assert isinstance(workload, Workload | ReplicationController)
    template = workload.spec.template
    if template is None:
        raise InputError(".spec: expected a pod template, got none. Add $.spec.template.")
    if isinstance(workload, DaemonSet):
        notes.append("a DaemonSet puts one pod on each node; its template is taken here as any other pod's.")
    owner = _replica_set(workload, objects) if isinstance(workload, Deployment) else workload
    labels = dict(template.metadata.labels)
    if isinstance(workload, Deployment):
        labels[_HASH] = _hash_of(owner)
    group = "v1" if isinstance(workload, ReplicationController) else "apps/v1"
    reference = OwnerReference(name=owner.metadata.name, kind=owner.kind, api_version=group, controller=True)
    meta = ObjectMeta(
        name=workload.metadata.name,
        namespace=workload.metadata.namespace,
        labels=labels,
        owner_references=[reference],
    )
    spec = template.spec
    if templates := _claim_templates_of(workload):
        spec = msgspec.structs.replace(spec, volumes=build_claim_volumes(meta.name, templates, spec.volumes))
    return _as_new(Pod(kind="Pod", api_version="v1", metadata=meta, spec=spec), notes)


def _claim_templates_of(subject: Object) -> list[PersistentVolumeClaimTemplate]:
    return subject.spec.volume_claim_templates if isinstance(subject, StatefulSet) else []


def _replica_set(deployment: Deployment, objects: Objects) -> ReplicaSet:
    """The replica set that would get the pod: the deployment's largest (one more of the same), or else a new one."""
    own = [entry for entry in objects.replica_sets if _belongs_to(entry, deployment)]
    if own:
        return max(
            own, key=lambda entry: (entry.spec.replicas or 0, entry.metadata.creation_timestamp or "", entry.key)
        )
    selector = deployment.spec.selector or LabelSelector()
    labels = {**selector.match_labels, _HASH: "new"}
    meta = WorkloadMeta(
        name=f"{deployment.metadata.name}-new", namespace=deployment.metadata.namespace, labels={_HASH: "new"}
    )
    narrowed = LabelSelector(match_labels=labels, match_expressions=selector.match_expressions)
    new = ReplicaSet(kind="ReplicaSet", api_version="apps/v1", metadata=meta, spec=WorkloadSpec(selector=narrowed))
    objects.add(new)
    return new


def _belongs_to(entry: ReplicaSet, deployment: Deployment) -> bool:
    owner = controller_of(entry.metadata)
    is_owner = owner is not None and (owner.kind, owner.name) == ("Deployment", deployment.metadata.name)
    return is_owner and entry.metadata.namespace == deployment.metadata.namespace


def _hash_of(replica_set: Object) -> str:
    return replica_set.metadata.labels.get(_HASH, "new")
