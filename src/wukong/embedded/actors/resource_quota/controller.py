"""The ResourceQuota controller: the status of each quota says what is allowed, and counts what is used of it.

Follows kube-controller-manager 1.35. It counts when a quota is new or its spec changed, and again when something that
it counts goes, ends or changes what it counts for; what comes is charged by admission (store/limits/quotas.py) before
it is there. A count is written to the quota as it was read: if admission has charged it since, it counts again. What it
misses that way (pods that are being deleted for twice their grace period, or a charge that shows later than the end
of the pods it was compared with) is found out by counting again every five minutes.

Numbers of kinds that no snapshot holds (ConfigMaps, Secrets, others' kinds) stay as they were written last.
"""

from __future__ import annotations

from collections.abc import Iterable

from wukong.actions import DONE, Outcome, Patch
from wukong.api.kind_table import Kind
from wukong.api.kinds import KINDS, PERSISTENT_VOLUME_CLAIMS, PODS, RESOURCE_QUOTAS, SERVICES
from wukong.api.meta import Object
from wukong.api.quota import ResourceQuota
from wukong.api.resources import Key, Resource
from wukong.embedded.actors.backoff import CONTROLLER_BACKOFF
from wukong.embedded.actors.pods import MANAGER
from wukong.embedded.actors.resource_quota.pod_usage import PodUsage
from wukong.embedded.store.kinds import store_name
from wukong.embedded.store.limits.amounts import (
    Amounts,
    add_amounts,
    count_of,
    format_amounts,
    has_same_amounts,
    parse_amounts,
)
from wukong.embedded.store.limits.quotas import list_scopes
from wukong.embedded.store.limits.usage import Evaluator, evaluator_of, is_over
from wukong.embedded.world.objects import Pod
from wukong.ports import Document, PatchBody
from wukong.state import Change, State
from wukong.state.controller import KeysOf, Watch

RESYNC_SECONDS = 300.0


class ResourceQuotas:
    name = "resourcequota"
    backoff = CONTROLLER_BACKOFF

    def __init__(self) -> None:
        self.watches = (
            Watch(RESOURCE_QUOTAS, _keys_of_changed_spec),
            *(Watch(kind.resource, _keys_of_counting(kind), is_secondary=True) for kind in list_counted_kinds()),
        )

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        quota = state.get(ResourceQuota, key)
        if quota is None:
            return DONE
        document: Document = getattr(quota, "document", {})
        status = {"hard": dict((document.get("spec") or {}).get("hard") or {})}
        used = count_usage(document, state, now)
        before: Document = document.get("status") or {}
        is_same = has_same_amounts(parse_amounts(status["hard"]), parse_amounts(before.get("hard")))
        is_same = is_same and has_same_amounts(used, parse_amounts(before.get("used"))) and "used" in before
        if is_same:
            return Outcome(requeue_after=RESYNC_SECONDS)
        return Outcome((_patch_status(quota, before, {**status, "used": format_amounts(used)}),), RESYNC_SECONDS)


def list_counted_kinds() -> list[Kind]:
    """The kinds whose objects are counted: Kubernetes' own in namespaces that a snapshot holds, too."""
    kinds = [kind for kind in KINDS if kind.is_built_in and kind.loads and kind.resource.namespaced]
    return [kind for kind in kinds if kind.resource != RESOURCE_QUOTAS]


def count_usage(quota: Document, state: State, now: float) -> Amounts:
    """What is used of each resource of a quota; of those that nobody counts here, as it was."""
    hard = (quota.get("spec") or {}).get("hard") or {}
    namespace, requirements = quota["metadata"].get("namespace", ""), list_scopes(quota)
    before = parse_amounts((quota.get("status") or {}).get("used"))
    total = {name: before.get(name, count_of(0)) for name in hard}
    for kind in (*list_counted_kinds(), KINDS[RESOURCE_QUOTAS.group_kind]):
        evaluator = evaluator_of(store_name(kind.resource))
        counted = evaluator.select_counted(hard)
        if not counted:
            continue
        if kind.resource == PODS:
            usage = state.index_of(PodUsage).sum_up(namespace, requirements, now)
        else:
            usage = {} if requirements else _sum_up(evaluator, kind.resource, namespace, state)
        total |= {name: usage.get(name, count_of(0)) for name in counted}
    return total


def _sum_up(evaluator: Evaluator, resource: Resource, namespace: str, state: State) -> Amounts:
    total: Amounts = {}
    for key, subject in state.objects.get(resource.group_kind, {}).items():
        if key.namespace == namespace:
            add_amounts(total, evaluator.measure(getattr(subject, "document", {})))
    return total


def _patch_status(quota: ResourceQuota, before: Document, status: Document) -> Patch:
    body = {part: {**dict.fromkeys(before.get(part) or {}), **status[part]} for part in ("hard", "used")}
    meta = {"resourceVersion": quota.metadata.resource_version}
    patch = PatchBody("merge", {"metadata": meta, "status": body}, manager=MANAGER)
    return Patch(RESOURCE_QUOTAS, Key(quota.metadata.namespace, quota.metadata.name), patch, "status")


def _keys_of_changed_spec(change: Change, _: State) -> Iterable[Key]:
    """A quota whose status alone changed is not counted again: admission charges it all the time."""
    old, new = change.old, change.new
    is_charged = isinstance(old, ResourceQuota) and isinstance(new, ResourceQuota) and old.spec == new.spec
    return () if is_charged else (change.key,)


def _keys_of_counting(kind: Kind) -> KeysOf:
    """The quotas that count objects of a kind, when one of these gives something back."""
    evaluator, resource = evaluator_of(store_name(kind.resource)), kind.resource

    def find_keys(change: Change, state: State) -> Iterable[Key]:
        quotas = state.objects.get(RESOURCE_QUOTAS.group_kind)
        if not quotas or not _gives_back(resource, change.old, change.new):
            return ()
        return [
            key
            for key, quota in sorted(quotas.items())
            if key.namespace == change.key.namespace
            and isinstance(quota, ResourceQuota)
            and any(map(evaluator.counts, quota.status.hard))
        ]

    return find_keys


def _gives_back(resource: Resource, old: Object | None, new: Object | None) -> bool:
    if new is None or old is None:
        return new is None
    if resource == PODS and isinstance(old, Pod) and isinstance(new, Pod):
        return not is_over(old.document, None) and is_over(new.document, None)
    if resource in (SERVICES, PERSISTENT_VOLUME_CLAIMS):
        before, after = (getattr(subject, "document", {}) for subject in (old, new))
        return evaluator_of(store_name(resource)).measure(before) != evaluator_of(store_name(resource)).measure(after)
    return False
