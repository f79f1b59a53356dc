"""One sync of a Deployment: what the controller finds, and the actions it takes. Called by controller.py.

The arithmetic is in sizes.py, the status in rollout_status.py, the versions in revisions.py. Performs nothing itself.
"""

from __future__ import annotations

from typing import Any

import msgspec

from wukong.actions import Action, Delete, Patch
from wukong.api.kinds import DEPLOYMENTS, REPLICA_SETS
from wukong.api.resources import key_of
from wukong.embedded.actors import pods
from wukong.embedded.actors.deployment import revisions, rollout_status, sizes
from wukong.embedded.actors.deployment.sizes import Limits, Version
from wukong.embedded.actors.events import note_about
from wukong.embedded.actors.status_patch import patch_status
from wukong.embedded.store.documents import parse_time
from wukong.embedded.world.objects import Deployment, ReplicaSet, WorkloadStatus
from wukong.ports import PatchBody
from wukong.state import State

_HISTORY_LIMIT = 10  # where the Deployment names none


class DeploymentSync:
    """`run` fills `actions` and `requeue_after`."""

    def __init__(self, deployment: Deployment, state: State, now: float) -> None:
        self.deployment, self.state, self.now = deployment, state, now
        self.limits = _limits_of(deployment)
        self.replica_sets = sorted(_find_replica_sets(state, deployment), key=_creation_order)
        self.new = next(
            (replica_set for replica_set in self.replica_sets if revisions.has_template_of(replica_set, deployment)),
            None,
        )
        self.old = [replica_set for replica_set in self.replica_sets if replica_set is not self.new]
        self.sizes = {replica_set.metadata.name: replica_set.spec.replicas or 0 for replica_set in self.replica_sets}
        self.conditions = list(deployment.status.conditions)
        self.actions: list[Action] = []
        self.requeue_after: float | None = None

    def run(self) -> None:
        if self.deployment.metadata.deletion_timestamp is not None:
            self._write_status(is_rollout=False)
            return
        self.conditions = rollout_status.set_paused(self.deployment, self.conditions, self.now)
        self._update_new()
        if self.deployment.spec.paused or self._is_scaled():
            self._rescale()
            if self.deployment.spec.paused:
                self._clean_up()
            self._write_status(is_rollout=False)
            return
        if not self.actions:
            self._recreate() if strategy_of(self.deployment) == "Recreate" else self._roll()
        self._write_status(is_rollout=True)

    # ---- versions

    def _update_new(self) -> None:
        """Bring the new version's annotations and minReadySeconds, and the Deployment's revision, up to date."""
        if self.new is None:
            return
        key = key_of(self.new)
        annotations = revisions.build_annotations(self.deployment, self.new, self.old)
        min_ready_seconds = self.deployment.spec.min_ready_seconds
        patch: dict[str, Any] = {}
        if annotations != self.new.metadata.annotations:
            patch["metadata"] = {"annotations": annotations}
        if min_ready_seconds != self.new.spec.min_ready_seconds:
            patch["spec"] = {"minReadySeconds": min_ready_seconds}
        if patch:
            self.actions.append(Patch(REPLICA_SETS, key, PatchBody("merge", patch, manager=pods.MANAGER)))
        self._set_revision(annotations[revisions.REVISION])
        if rollout_status.find_condition(self.conditions, "Progressing") is None:
            self._set_progressing("FoundNewReplicaSet", f'Found new replica set "{key.name}"')

    def _set_revision(self, revision: str) -> None:
        if self.deployment.metadata.annotations.get(revisions.REVISION) != revision:
            body = {"metadata": {"annotations": {revisions.REVISION: revision}}}
            patch = PatchBody("merge", body, manager=pods.MANAGER)
            # Through the status, as Kubernetes does: otherwise annotations count as a new generation.
            self.actions.append(Patch(DEPLOYMENTS, key_of(self.deployment), patch, "status"))

    def _set_progressing(self, reason: str, message: str) -> None:
        if rollout_status.has_deadline(self.deployment):
            self.conditions = rollout_status.set_condition(
                self.conditions, "Progressing", "True", reason, message, self.now
            )

    def _create_new(self) -> None:
        is_recreated = strategy_of(self.deployment) == "Recreate"
        replicas = self.limits.replicas if is_recreated else sizes.grow_new(self.limits, 0, self._count_wanted())
        creation = revisions.create_replica_set(self.deployment, self.old, replicas, self.limits.max_total)
        self.actions.append(creation)
        meta = creation.body["metadata"]
        if replicas:
            self._note_scaling(meta["name"], 0, replicas)
        self._set_revision(meta["annotations"][revisions.REVISION])
        self._set_progressing("NewReplicaSetCreated", f'Created new replica set "{meta["name"]}"')

    def _clean_up(self) -> None:
        """Delete old versions beyond the history's limit, the oldest revisions first; never one that has pods."""
        limit = self.deployment.document["spec"].get("revisionHistoryLimit")
        candidates = [old for old in self.old if old.metadata.deletion_timestamp is None]
        surplus = len(candidates) - (_HISTORY_LIMIT if limit is None else limit)
        for old in sorted(candidates, key=revisions.revision_of)[: max(0, surplus)]:
            is_observed = old.metadata.generation <= old.status.observed_generation
            if old.status.replicas == 0 and self.sizes[old.metadata.name] == 0 and is_observed:
                self.actions.append(Delete(REPLICA_SETS, key_of(old), uid=old.metadata.uid))

    # ---- sizes

    def _count_wanted(self) -> int:
        """How many pods the ReplicaSets are asked for by now."""
        return sum(self.sizes.values())

    def _version_of(self, replica_set: ReplicaSet) -> Version:
        name, available = replica_set.metadata.name, replica_set.status.available_replicas
        return Version(name, self.sizes[name], available, revisions.read_max_replicas(replica_set))

    def _scale(self, replica_set: ReplicaSet, replicas: int) -> bool:
        """Scale a ReplicaSet and note in its annotations for which spec.replicas. Returns whether its size changes."""
        annotations = {
            revisions.DESIRED_REPLICAS: str(self.limits.replicas),
            revisions.MAX_REPLICAS: str(self.limits.max_total),
        }
        name = replica_set.metadata.name
        is_annotated = annotations.items() <= replica_set.metadata.annotations.items()
        is_new_size = self.sizes[name] != replicas
        if is_new_size or not is_annotated:
            body = {"metadata": {"annotations": annotations}, "spec": {"replicas": replicas}}
            patch = PatchBody("merge", body, manager=pods.MANAGER)
            self.actions.append(Patch(REPLICA_SETS, key_of(replica_set), patch))
        if is_new_size:
            self._note_scaling(name, self.sizes[name], replicas)
        self.sizes[name] = replicas
        return is_new_size

    def _note_scaling(self, name: str, before: int, after: int) -> None:
        text = f"Scaled {'up' if after > before else 'down'} replica set {name} from {before} to {after}"
        self.actions.append(note_about(DEPLOYMENTS, self.deployment, "ScalingReplicaSet", text))

    def _is_scaled(self) -> bool:
        """Whether somebody changed `replicas` since the versions were last scaled."""
        active = [replica_set for replica_set in self.replica_sets if replica_set.spec.replicas]
        desired = [replica_set.metadata.annotations.get(revisions.DESIRED_REPLICAS) for replica_set in active]
        return any(text is not None and text != str(self.limits.replicas) for text in desired)

    def _rescale(self) -> None:
        active = [replica_set for replica_set in self.replica_sets if replica_set.spec.replicas]
        latest = self.new or (self.old[-1] if self.old else None)
        only = active[0] if len(active) == 1 else latest if not active else None
        if only is not None:
            if only.spec.replicas != self.limits.replicas:
                self._scale(only, self.limits.replicas)
        elif self._is_saturated():
            for replica_set in active:
                if replica_set is not self.new:
                    self._scale(replica_set, 0)
        elif strategy_of(self.deployment) != "Recreate":
            versions = [self._version_of(replica_set) for replica_set in active]
            wanted = sizes.scale_in_proportion(self.limits, versions, self.deployment.status.replicas)
            for replica_set in active:
                self._scale(replica_set, wanted[replica_set.metadata.name])

    def _is_saturated(self) -> bool:
        """Whether the new version has all its pods, and all are available."""
        new, wanted = self.new, self.limits.replicas
        if new is None or new.metadata.annotations.get(revisions.DESIRED_REPLICAS) != str(wanted):
            return False
        return new.spec.replicas == wanted == new.status.available_replicas

    # ---- strategies

    def _roll(self) -> None:
        if self.new is None:
            self._create_new()
            return
        size = self.sizes[self.new.metadata.name]
        wanted = min(self.limits.replicas, sizes.grow_new(self.limits, size, self._count_wanted()))
        if size != self.limits.replicas and self._scale(self.new, wanted):
            return
        old_versions = [self._version_of(old) for old in self.old]
        for name, replicas in sizes.shrink_old(self.limits, self._version_of(self.new), old_versions).items():
            self._scale(next(old for old in self.old if old.metadata.name == name), replicas)
        if not self.actions and rollout_status.is_complete(self.deployment, self.deployment.status):
            self._clean_up()

    def _recreate(self) -> None:
        changed = [self._scale(old, 0) for old in self.old if old.spec.replicas]
        if changed or self._has_old_pods():
            return
        if self.new is None:
            self._create_new()
        elif self.new.spec.replicas != self.limits.replicas:
            self._scale(self.new, self.limits.replicas)
        elif rollout_status.is_complete(self.deployment, self.deployment.status):
            self._clean_up()

    def _has_old_pods(self) -> bool:
        if any(old.status.replicas for old in self.old):
            return True
        return any(not pod.is_finished for old in self.old for pod in pods.list_owned(self.state, old))

    # ---- status

    def _write_status(self, *, is_rollout: bool) -> None:
        status = rollout_status.count_replicas(self.deployment, self.new, self.replica_sets, self._count_wanted())
        available = status.get("availableReplicas", 0)
        conditions = rollout_status.set_available(self.conditions, available, self.limits, self.now)
        if is_rollout:
            subject = self.new or self.deployment
            kind = "ReplicaSet" if self.new is not None else "Deployment"
            after = msgspec.convert(status, WorkloadStatus)
            name = f'{kind} "{subject.metadata.name}"'
            conditions = rollout_status.set_progressing(self.deployment, after, conditions, name, self.now)
            conditions = rollout_status.set_replica_failure(conditions, self.new, self.old, self.now)
        if conditions:
            status["conditions"] = conditions
        before = self.deployment.document.get("status") or {}
        if status != before:
            self.actions.append(patch_status(DEPLOYMENTS, key_of(self.deployment), before, status))
        if is_rollout:  # the deadline of a paused one does not run
            self.requeue_after = rollout_status.seconds_to_deadline(self.deployment, conditions, self.now)


def _find_replica_sets(state: State, deployment: Deployment) -> list[ReplicaSet]:
    keys = state.owners.owned_by(deployment.metadata.uid, REPLICA_SETS)
    owned = [state.get(ReplicaSet, key) for key in keys]
    return [
        replica_set
        for replica_set in owned
        if replica_set is not None and pods.is_controlled_by(replica_set, deployment)
    ]


def _creation_order(replica_set: ReplicaSet) -> tuple[float, str]:
    created = replica_set.metadata.creation_timestamp
    return (parse_time(created) if created else 0.0, replica_set.metadata.name)


def strategy_of(deployment: Deployment) -> str:
    return (deployment.spec.strategy.type if deployment.spec.strategy else "") or "RollingUpdate"


def _limits_of(deployment: Deployment) -> Limits:
    replicas = 1 if deployment.spec.replicas is None else deployment.spec.replicas
    rolling = deployment.spec.strategy.rolling_update if deployment.spec.strategy else None
    if strategy_of(deployment) == "Recreate":
        return Limits(replicas)
    if rolling is None:
        return sizes.resolve_limits(replicas, "25%", "25%")
    return sizes.resolve_limits(replicas, rolling.max_surge, rolling.max_unavailable)
