"""What to write so that ReplicaSets and Services are as it was decided. Pure; called by controller.py.

The order matters where only a part of it happens: a rule stands in a template before pods are made of it, Services are
switched before a version loses pods, and versions grow before others shrink. Every write names the version of the
object that it was decided by: what somebody else has changed meanwhile is looked at again.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from wukong.actions import Action, Create, Delete, Patch, Scale
from wukong.api.apps import ReplicaSet
from wukong.api.kinds import PODS, REPLICA_SETS, ROLLOUTS, SERVICES
from wukong.api.resources import Key, key_of
from wukong.api.rollout import HASH, MOST_TEMPLATE_BYTES, REVISION, RULE, TEMPLATE, Rollout
from wukong.controllers.rollout.decision import Decision
from wukong.controllers.rollout.node_order import write_node_order
from wukong.controllers.rollout.versions import Look, Version
from wukong.placement.rollout import VersionRule, build_rule, build_template, with_rule
from wukong.placement.rollout.version_rule import PREFERRED, REQUIRED
from wukong.ports import Document, PatchBody

_LISTS = (REQUIRED, PREFERRED)


def name_replica_set(rollout: Rollout, version: str) -> str:
    return f"{rollout.metadata.name}-{version}"


def find_wanted_rule(look: Look, decision: Decision) -> VersionRule | None:
    """The rule of the current version: against every other that has pods, as long as another one is stable."""
    if not decision.stable or decision.stable == look.current.hash:
        return None
    avoided = [version.hash for version in look.others if version.is_live]
    spec, namespace = look.rollout.spec, look.rollout.metadata.namespace
    return build_rule(decision.separation, spec.selector, namespace, avoided)


def list_writes(look: Look, decision: Decision) -> list[Action]:
    changes = [
        (version, decision.sizes[name]) for name, version in look.versions.items() if _is_resized(version, decision)
    ]
    return [
        *_write_current(look, decision),
        *_write_services(look, decision),
        *write_node_order(look, decision),
        *(_scale(version, size) for version, size in changes if size > version.replicas),
        *(_scale(version, size) for version, size in changes if size < version.replicas),
        *(action for version in look.others for action in _write_template(look, version, None)),
        *_wake_pods(decision),
        *_delete_history(look, decision),
    ]


def _is_resized(version: Version, decision: Decision) -> bool:
    return version.replica_set is not None and decision.sizes.get(version.hash, version.replicas) != version.replicas


def _write_current(look: Look, decision: Decision) -> Iterator[Action]:
    current, rule = look.current, find_wanted_rule(look, decision)
    if current.replica_set is not None:
        yield from _write_template(look, current, rule)
    elif current.hash in decision.sizes and not decision.is_aborted:
        yield create_replica_set(look, decision.sizes[current.hash], rule)


def create_replica_set(look: Look, replicas: int, rule: VersionRule | None) -> Create:
    rollout, version = look.rollout, look.current.hash
    selector = rollout.spec.selector
    assert selector is not None, "a Rollout without a selector is not accepted"
    template = build_template(rollout.spec.template, version, rule)
    annotations = {REVISION: str(look.revision), **({RULE: rule.encode()} if rule is not None else {})}
    written = msgspec.json.encode(rollout.spec.template, order="sorted")
    if len(written) <= MOST_TEMPLATE_BYTES:  # the API server adds defaults to the one in the spec
        annotations[TEMPLATE] = written.decode()
    owner = {
        "apiVersion": ROLLOUTS.api_version,
        "kind": ROLLOUTS.kind,
        "name": rollout.metadata.name,
        "uid": rollout.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    own_selector: Document = msgspec.to_builtins(selector)
    body: Document = {
        "metadata": {
            "name": name_replica_set(rollout, version),
            "namespace": rollout.metadata.namespace,
            "labels": template["metadata"]["labels"],
            "annotations": annotations,
            "ownerReferences": [owner],
        },
        "spec": {
            "replicas": replicas,
            "minReadySeconds": rollout.spec.min_ready_seconds,
            "selector": {**own_selector, "matchLabels": {**selector.match_labels, HASH: version}},
            "template": template,
        },
    }
    return Create(REPLICA_SETS, body, rollout.metadata.namespace)


def _write_template(look: Look, version: Version, rule: VersionRule | None) -> Iterator[Action]:
    """Put the rule of a version right, and what else of its ReplicaSet follows the Rollout. Its pods stay."""
    replica_set = version.replica_set
    if replica_set is None:
        return
    annotations: dict[str, str | None] = {}
    spec: Document = {}
    if version.hash == look.current.hash and version.revision != look.revision:
        annotations[REVISION] = str(look.revision)
    if replica_set.metadata.annotations.get(RULE) != (rule.encode() if rule is not None else None):
        annotations[RULE] = rule.encode() if rule is not None else None
        spec["template"] = {"spec": {"affinity": _build_affinity_patch(replica_set, version.rule, rule)}}
    if version.is_live and replica_set.spec.min_ready_seconds != look.rollout.spec.min_ready_seconds:
        spec["minReadySeconds"] = look.rollout.spec.min_ready_seconds
    if annotations or spec:
        meta = {"resourceVersion": replica_set.metadata.resource_version, "annotations": annotations}
        body = {"metadata": meta, **({"spec": spec} if spec else {})}
        yield Patch(REPLICA_SETS, key_of(replica_set), PatchBody("merge", body))


def _build_affinity_patch(
    replica_set: ReplicaSet, present: VersionRule | None, wanted: VersionRule | None
) -> Document | None:
    """A merge patch of a template's affinity that touches nothing but the lists of podAntiAffinity."""
    template = replica_set.spec.template
    affinity = template.spec.affinity if template is not None else None
    before: Document | None = msgspec.to_builtins(affinity) if affinity is not None else None
    after = with_rule(before, wanted, present)
    if after is None:
        return None
    anti_affinity = after.get("podAntiAffinity")
    if anti_affinity is None:
        return {"podAntiAffinity": None}
    return {"podAntiAffinity": {name: anti_affinity.get(name) for name in _LISTS}}


def _write_services(look: Look, decision: Decision) -> Iterator[Action]:
    for name, version in decision.selectors.items():
        service = look.services[name]
        if (service.spec.selector or {}).get(HASH) != version:
            body = {
                "metadata": {"resourceVersion": service.metadata.resource_version},
                "spec": {"selector": {HASH: version}},
            }
            yield Patch(SERVICES, Key(service.metadata.namespace, name), PatchBody("merge", body))


def _scale(version: Version, replicas: int) -> Scale:
    assert version.replica_set is not None
    meta = version.replica_set.metadata
    return Scale(REPLICA_SETS, key_of(version.replica_set), replicas, meta.resource_version)


def _wake_pods(decision: Decision) -> Iterator[Action]:
    for pod in decision.deadlock.woken if decision.deadlock is not None else ():
        meta = pod.metadata
        yield Delete(PODS, key_of(pod), uid=meta.uid, resource_version=meta.resource_version)


def _delete_history(look: Look, decision: Decision) -> Iterator[Action]:
    """Old versions beyond those that are kept to go back to, the oldest first."""
    kept = {look.current.hash, decision.stable, decision.previous, *decision.selectors.values()}
    old = [version for version in look.others if not version.is_live and version.hash not in kept]
    old.sort(key=lambda version: version.revision)
    for version in old[: max(0, len(old) - look.rollout.spec.revision_history_limit)]:
        assert version.replica_set is not None
        meta = version.replica_set.metadata
        yield Delete(
            REPLICA_SETS,
            key_of(version.replica_set),
            uid=meta.uid,
            resource_version=meta.resource_version,
            propagation="Background",
        )
