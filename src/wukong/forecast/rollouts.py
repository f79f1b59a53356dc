"""Whether changed fields make a workload replace its pods, and why. Called by changes.py. Reads a server, no more.

spec.template     a rollout: its image, its affinity, its labels and annotations alike
spec.replicas     none: pods are added or removed
metadata.labels   none: these are the workload's own labels, not those of its pods
"""

from __future__ import annotations

from collections.abc import Sequence

from wukong.api.kinds import DAEMON_SETS, DEPLOYMENTS, REPLICA_SETS, STATEFUL_SETS
from wukong.api.meta import Object
from wukong.api.resources import Resource
from wukong.embedded.store import Server
from wukong.embedded.store.documents import is_same_json, value_at
from wukong.forecast.fields import FieldChange, Rollout
from wukong.ports import Document, Selection

_TEMPLATE = "spec.template."
_HASH = "pod-template-hash"
_REVISION = "deployment.kubernetes.io/revision"


def judge_rollout(
    resource: Resource, before: Document, after: Document, fields: Sequence[FieldChange], server: Server
) -> Rollout | None:
    """None for what has no template, or does not change."""
    if resource not in (DEPLOYMENTS, STATEFUL_SETS, DAEMON_SETS, REPLICA_SETS) or not fields:
        return None
    causes = [field.path.removeprefix(_TEMPLATE) for field in fields if field.path.startswith(_TEMPLATE)]
    if not causes:
        return Rollout(starts=False, causes=[], text=_explain_no_rollout(resource, before, after, fields))
    if resource == DEPLOYMENTS:
        return _judge_deployment(after, causes, server)
    if resource == REPLICA_SETS:
        text = f"no rollout: {_name_causes(causes)}, and a ReplicaSet makes only new pods like that"
        return Rollout(starts=False, causes=causes, text=text)
    return _judge_update_strategy(resource, after, causes)


def judge_deletion(pods: Sequence[Object]) -> Rollout | None:
    """None for what has no pods."""
    if not pods:
        return None
    number = f"{len(pods)} {'pod goes' if len(pods) == 1 else 'pods go'}"
    return Rollout(starts=False, causes=[], text=f"its {number} with it")


def _explain_no_rollout(resource: Resource, before: Document, after: Document, fields: Sequence[FieldChange]) -> str:
    paths = {field.path for field in fields}
    if "spec.replicas" in paths:
        wanted, present = value_at(after, "spec.replicas") or 0, value_at(before, "spec.replicas") or 0
        number = abs(wanted - present)
        pods = f"{number} {'pod' if number == 1 else 'pods'}"
        others = ", and the others stay" if wanted and present else ""
        return f"no rollout: spec.replicas {'adds' if wanted > present else 'removes'} {pods}{others}"
    if all(path.startswith("metadata.") for path in paths):
        return f"no rollout: these are labels or annotations of the {resource.kind} itself, not of its pods"
    return "no rollout: spec.template stays as it is"


def _judge_deployment(after: Document, causes: list[str], server: Server) -> Rollout:
    why = _name_causes(causes)
    if value_at(after, "spec.paused"):
        return Rollout(starts=False, causes=causes, text=f"no rollout yet: {why}, but it is paused")
    if (revision := _find_revision(after, server)) is not None:
        return Rollout(starts=True, causes=causes, text=f"starts a rollout: {why}; back to revision {revision}")
    if value_at(after, "spec.strategy.type") == "Recreate":
        return Rollout(starts=True, causes=causes, text=f"starts a rollout: {why}; all old pods go first (Recreate)")
    return Rollout(starts=True, causes=causes, text=f"starts a rollout: {why}")


def _judge_update_strategy(resource: Resource, after: Document, causes: list[str]) -> Rollout:
    why, strategy = _name_causes(causes), value_at(after, "spec.updateStrategy") or {}
    if strategy.get("type") == "OnDelete":
        return Rollout(
            starts=False, causes=causes, text=f"no rollout: {why}, and OnDelete waits for pods to be deleted"
        )
    partition = value_at(strategy, "rollingUpdate.partition")
    if resource == STATEFUL_SETS and partition:
        return Rollout(starts=True, causes=causes, text=f"starts a rollout: {why}; of ordinals {partition} and above")
    return Rollout(starts=True, causes=causes, text=f"starts a rollout: {why}")


def _name_causes(causes: list[str]) -> str:
    more = f" and {len(causes) - 1} more" if len(causes) > 1 else ""
    return f"spec.template changes ({causes[0]}{more})"


def _find_revision(deployment: Document, server: Server) -> str | None:
    """The revision of an earlier ReplicaSet that has this very template; None if there is none."""
    meta = deployment["metadata"]
    for replica_set in server.list(REPLICA_SETS, Selection(namespace=meta["namespace"])).items:
        owners = value_at(replica_set, "metadata.ownerReferences") or []
        if any(owner.get("uid") == meta["uid"] for owner in owners) and is_same_json(
            _without_hash(value_at(replica_set, "spec.template")), _without_hash(value_at(deployment, "spec.template"))
        ):
            return (value_at(replica_set, "metadata.annotations") or {}).get(_REVISION)
    return None


def _without_hash(template: Document) -> Document:
    meta = template.get("metadata") or {}
    labels = {name: value for name, value in (meta.get("labels") or {}).items() if name != _HASH}
    rest = {name: value for name, value in meta.items() if name not in ("labels", "creationTimestamp")}
    return {**template, "metadata": {**rest, "labels": labels}}
