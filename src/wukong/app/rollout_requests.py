"""What people ask of a Rollout: promote, abort, retry, go back, restart, pause. Each is one patch of the Rollout.

Called by `wukong rollout` on a live cluster, and on an embedded one by tests: all goes through the port. A request
names the revision it is about (docs/decisions/025), and the version of the object that it was decided by, so that
nothing is asked of a revision that nobody has seen. Raises InputError where there is nothing to ask for.
"""

from __future__ import annotations

from typing import Any

import msgspec

from wukong.api.apps import ReplicaSet
from wukong.api.kinds import REPLICA_SETS, ROLLOUTS
from wukong.api.meta import controller_of
from wukong.api.resources import Key
from wukong.api.rollout import ABORT, HASH, PROMOTE, REVISION, RULE, TEMPLATE, Rollout
from wukong.api.times import format_time
from wukong.errors import InputError, NotFound, nearest
from wukong.placement.rollout import hash_template, with_rule
from wukong.placement.rollout.version_rule import read_note, read_rule
from wukong.ports import Cluster, Document, PatchBody, Selection
from wukong.semantics.label_syntax import parse_integer

RESTARTED_AT = "kubectl.kubernetes.io/restartedAt"


async def promote(cluster: Cluster, key: Key, *, is_full: bool = False) -> str:
    """Have a revision go on from where it waits; `is_full`: through all further steps and pauses, too."""
    rollout = await read_rollout(cluster, key)
    status = rollout.status
    if status.current == status.stable:
        raise InputError(f"Rollout {key}: revision {status.revision} has been promoted already.")
    if rollout.metadata.annotations.get(ABORT) == str(status.revision):
        raise InputError(f"Rollout {key}: revision {status.revision} was aborted. Use wukong rollout retry first.")
    canary = rollout.spec.strategy.canary
    if is_full:
        request = f"{status.revision}/full"
    elif canary is None:
        request = str(status.revision)
    elif status.step < len(canary.steps) and canary.steps[status.step].pause is not None:
        request = f"{status.revision}/{status.step}"
    else:
        raise InputError(f"Rollout {key}: it is at no pause. Wait for one, or use --full to skip all steps.")
    await _annotate(cluster, key, rollout, {PROMOTE: request})
    return f"revision {status.revision} goes on"


async def abort(cluster: Cluster, key: Key) -> str:
    rollout = await read_rollout(cluster, key)
    status = rollout.status
    if status.current == status.stable:
        text = f"Rollout {key}: revision {status.revision} has been promoted already. Use wukong rollout undo."
        raise InputError(text)
    await _annotate(cluster, key, rollout, {ABORT: str(status.revision)})
    return f"revision {status.revision} is aborted"


async def retry(cluster: Cluster, key: Key) -> str:
    """Take an abort back."""
    rollout = await read_rollout(cluster, key)
    if rollout.metadata.annotations.get(ABORT) != str(rollout.status.revision):
        raise InputError(f"Rollout {key}: revision {rollout.status.revision} was not aborted.")
    await _annotate(cluster, key, rollout, {ABORT: None, PROMOTE: None})
    return f"revision {rollout.status.revision} is tried again"


async def pause(cluster: Cluster, key: Key, *, is_paused: bool) -> str:
    rollout = await read_rollout(cluster, key)
    if rollout.spec.paused == is_paused:
        raise InputError(f"Rollout {key}: it is {'paused already' if is_paused else 'not paused'}.")
    await _patch(cluster, key, rollout, {"spec": {"paused": is_paused}})
    return "paused" if is_paused else "resumed"


async def restart(cluster: Cluster, key: Key, now: float) -> str:
    """Replace all pods by new ones, by its strategy: an annotation of the template makes it a new version."""
    rollout = await read_rollout(cluster, key)
    annotations = {RESTARTED_AT: format_time(now)}
    await _patch(cluster, key, rollout, {"spec": {"template": {"metadata": {"annotations": annotations}}}})
    return "restarts by its strategy"


async def undo(cluster: Cluster, key: Key, revision: int | None = None) -> str:
    """Ask for the template of an earlier revision again: the one before the current, or the one that is named."""
    rollout = await read_rollout(cluster, key)
    kept = await _list_revisions(cluster, key, rollout)
    others = [number for number, document in kept.items() if _hash_of(document) != rollout.status.current]
    target = revision if revision is not None else max(others, default=0)
    if target not in kept:
        known = ", ".join(map(str, sorted(kept))) or "none"
        raise InputError(f"Rollout {key}: no revision {target or 'before this one'} is kept, only {known}.")
    template = restore_template(kept[target])
    if hash_template(template) == hash_template(rollout.spec.template):
        raise InputError(f"Rollout {key}: revision {target} is what it asks for already.")
    operations = [
        {"op": "replace", "path": "/metadata/resourceVersion", "value": rollout.metadata.resource_version},
        {"op": "replace", "path": "/spec/template", "value": template},
    ]
    await cluster.patch(ROLLOUTS, key, PatchBody("json", operations))
    return f"goes back to the template of revision {target}"


def restore_template(replica_set: Document) -> Document:
    """The template as its author wrote it, which is noted beside it unless it is very large.

    Then what the API server added to it stays, and only the hash and our rule go: it is a version of its own.
    """
    if noted := read_note((replica_set["metadata"].get("annotations") or {}).get(TEMPLATE, "")):
        return noted
    template: Document = replica_set["spec"]["template"]
    meta, spec = template.get("metadata") or {}, template.get("spec") or {}
    labels = {name: value for name, value in (meta.get("labels") or {}).items() if name != HASH}
    annotations: dict[str, Any] = replica_set["metadata"].get("annotations") or {}
    affinity = with_rule(spec.get("affinity"), None, read_rule(annotations.get(RULE, "")))
    rest = {name: part for name, part in spec.items() if name != "affinity"}
    own_meta = {name: part for name, part in meta.items() if name not in ("labels", "creationTimestamp")}
    whole = {**rest, **({"affinity": affinity} if affinity is not None else {})}
    return {**template, "metadata": {**own_meta, "labels": labels}, "spec": whole}


async def read_rollout(cluster: Cluster, key: Key) -> Rollout:
    """Raises InputError if it is not there, or nobody has looked at it since it was changed."""
    try:
        rollout = await cluster.get(ROLLOUTS, key, Rollout)
    except NotFound:
        page = await cluster.list(ROLLOUTS, Rollout, Selection(namespace=key.namespace))
        hint = nearest(key.name, [rollout.metadata.name for rollout in page.items])
        raise InputError(f"no Rollout {key} there.{hint}") from None
    if rollout.status.observed_generation != rollout.metadata.generation:
        text = (
            f"Rollout {key}: its controller has not seen the latest change. Does wukong run --components rollout run?"
        )
        raise InputError(text)
    return rollout


async def _list_revisions(cluster: Cluster, key: Key, rollout: Rollout) -> dict[int, Document]:
    page = await cluster.list(REPLICA_SETS, dict, Selection(namespace=key.namespace, labels=HASH))
    revisions: dict[int, Document] = {}
    for document in page.items:
        owner = controller_of(msgspec.convert(document, ReplicaSet).metadata)
        number = parse_integer((document["metadata"].get("annotations") or {}).get(REVISION, "0"))
        if owner is not None and owner.uid == rollout.metadata.uid and number:
            revisions[number] = document
    return revisions


def _hash_of(replica_set: Document) -> str:
    labels: dict[str, str] = replica_set["metadata"].get("labels") or {}
    return labels.get(HASH, "")


async def _annotate(cluster: Cluster, key: Key, rollout: Rollout, annotations: dict[str, str | None]) -> None:
    await _patch(cluster, key, rollout, {"metadata": {"annotations": annotations}})


async def _patch(cluster: Cluster, key: Key, rollout: Rollout, body: Document) -> None:
    meta = {**body.get("metadata", {}), "resourceVersion": rollout.metadata.resource_version}
    await cluster.patch(ROLLOUTS, key, PatchBody("merge", {**body, "metadata": meta}))
