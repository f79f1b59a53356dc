"""One look at a Deployment: what it finds, and what it wants written. Called by deployment.py, once per sync.

The arithmetic is in sizes.py, the status in status.py, the versions in revisions.py. Writes nothing itself.
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
from wukong.embedded.actors.events import note
from wukong.embedded.actors.replica_set.controller import writing_status
from wukong.embedded.store.documents import parse_time
from wukong.embedded.world.objects import Counts, Deployment, ReplicaSet
from wukong.ports import PatchBody
from wukong.state import State


class Sync:
    """One look at a Deployment: what it finds, and what it wants written."""

    def __init__(self, deployment: Deployment, state: State, now: float) -> None:
        self.deployment, self.state, self.now = deployment, state, now
        self.limits = _limits(deployment)
        self.sets = sorted(_owned(state, deployment), key=_age)
        self.new = next((each for each in self.sets if revisions.is_of(each, deployment)), None)
        self.old = [each for each in self.sets if each is not self.new]
        self.sizes = {each.metadata.name: each.spec.replicas or 0 for each in self.sets}
        self.conditions = list(deployment.status.conditions)
        self.actions: list[Action] = []
        self.again: float | None = None

    def play(self) -> None:
        if self.deployment.metadata.deletion_timestamp is not None:
            self._say(is_rollout=False)
            return
        self.conditions = rollout_status.paused_or_resumed(self.deployment, self.conditions, self.now)
        self._renew()
        if self.deployment.spec.paused or self._is_scaled():
            self._rescale()
            if self.deployment.spec.paused:
                self._clean_up()
            self._say(is_rollout=False)
            return
        if not self.actions:
            self._recreate() if strategy_of(self.deployment) == "Recreate" else self._roll()
        self._say(is_rollout=True)

    # ---- versions

    def _renew(self) -> None:
        """Keep the annotations of the new version, and the Deployment's revision, as they should be."""
        if self.new is None:
            return
        key, has = key_of(self.new), self.new.metadata.annotations
        wanted = revisions.annotated(self.deployment, self.new, self.old)
        at_least = self.deployment.spec.min_ready_seconds
        patch: dict[str, Any] = {}
        if wanted != has:
            patch["metadata"] = {"annotations": wanted}
        if at_least != self.new.spec.min_ready_seconds:
            patch["spec"] = {"minReadySeconds": at_least}
        if patch:
            self.actions.append(Patch(REPLICA_SETS, key, PatchBody("merge", patch, manager=pods.MANAGER)))
        self._number(wanted[revisions.REVISION])
        if rollout_status.has_deadline(self.deployment) and rollout_status.find(self.conditions, "Progressing") is None:
            told = ("True", "FoundNewReplicaSet", f'Found new replica set "{key.name}"')
            self.conditions = rollout_status.with_condition(self.conditions, "Progressing", *told, self.now)

    def _number(self, revision: str) -> None:
        if self.deployment.metadata.annotations.get(revisions.REVISION) != revision:
            body = {"metadata": {"annotations": {revisions.REVISION: revision}}}
            patch = PatchBody("merge", body, manager=pods.MANAGER)
            # Through the status, as Kubernetes does: otherwise annotations count as a new generation.
            self.actions.append(Patch(DEPLOYMENTS, key_of(self.deployment), patch, "status"))

    def _create(self) -> None:
        grown = sizes.grown(self.limits, 0, self._total())
        replicas = self.limits.replicas if strategy_of(self.deployment) == "Recreate" else grown
        made = revisions.created(self.deployment, self.old, replicas, self.limits.most)
        self.actions.append(made)
        if replicas:
            self._tell_scaled(made.body["metadata"]["name"], 0, replicas)
        self._number(made.body["metadata"]["annotations"][revisions.REVISION])
        if rollout_status.has_deadline(self.deployment):
            told = ("True", "NewReplicaSetCreated", f'Created new replica set "{made.body["metadata"]["name"]}"')
            self.conditions = rollout_status.with_condition(self.conditions, "Progressing", *told, self.now)

    def _clean_up(self) -> None:
        """Old versions beyond the history's limit go, the oldest revisions first; never one that has pods."""
        limit = self.deployment.document["spec"].get("revisionHistoryLimit")
        alive = [each for each in self.old if each.metadata.deletion_timestamp is None]
        surplus = len(alive) - (10 if limit is None else limit)
        for each in sorted(alive, key=revisions.revision_of)[: max(0, surplus)]:
            is_seen = each.metadata.generation <= each.status.observed_generation
            if each.status.replicas == 0 and self.sizes[each.metadata.name] == 0 and is_seen:
                self.actions.append(Delete(REPLICA_SETS, key_of(each), uid=each.metadata.uid))

    # ---- sizes

    def _total(self) -> int:
        return sum(self.sizes.values())

    def _version(self, each: ReplicaSet) -> Version:
        most = each.metadata.annotations.get(revisions.MOST, "0")
        name = each.metadata.name
        return Version(name, self.sizes[name], each.status.available_replicas, int(most) if most.isdigit() else 0)

    def _scale(self, each: ReplicaSet, replicas: int) -> bool:
        """Also where the size stays: the annotations say for which wish it is right."""
        desired = {revisions.DESIRED: str(self.limits.replicas), revisions.MOST: str(self.limits.most)}
        name = each.metadata.name
        is_told = desired.items() <= each.metadata.annotations.items()
        is_new_size = self.sizes[name] != replicas
        if is_new_size or not is_told:
            body = {"metadata": {"annotations": desired}, "spec": {"replicas": replicas}}
            patch = PatchBody("merge", body, manager=pods.MANAGER)
            self.actions.append(Patch(REPLICA_SETS, key_of(each), patch))
        if is_new_size:
            self._tell_scaled(name, self.sizes[name], replicas)
        self.sizes[name] = replicas
        return is_new_size

    def _tell_scaled(self, name: str, before: int, after: int) -> None:
        text = f"Scaled {'up' if after > before else 'down'} replica set {name} from {before} to {after}"
        self.actions.append(note(DEPLOYMENTS, self.deployment, "ScalingReplicaSet", text))

    def _is_scaled(self) -> bool:
        """Whether somebody changed `replicas` since the versions were last sized."""
        told = [each.metadata.annotations.get(revisions.DESIRED) for each in self.sets if each.spec.replicas]
        return any(text is not None and text != str(self.limits.replicas) for text in told)

    def _rescale(self) -> None:
        active = [each for each in self.sets if each.spec.replicas]
        latest = self.new or (self.old[-1] if self.old else None)
        only = active[0] if len(active) == 1 else latest if not active else None
        if only is not None:
            if only.spec.replicas != self.limits.replicas:
                self._scale(only, self.limits.replicas)
        elif self._is_saturated():
            for each in active:
                if each is not self.new:
                    self._scale(each, 0)
        elif strategy_of(self.deployment) != "Recreate":
            versions = [self._version(each) for each in active]
            wanted = sizes.in_proportion(self.limits, versions, self.deployment.status.replicas)
            for each in active:
                self._scale(each, wanted[each.metadata.name])

    def _is_saturated(self) -> bool:
        new, wanted = self.new, self.limits.replicas
        if new is None or new.metadata.annotations.get(revisions.DESIRED) != str(wanted):
            return False
        return new.spec.replicas == wanted == new.status.available_replicas

    # ---- strategies

    def _roll(self) -> None:
        if self.new is None:
            self._create()
            return
        now = self.sizes[self.new.metadata.name]
        wanted = min(self.limits.replicas, sizes.grown(self.limits, now, self._total()))
        if now != self.limits.replicas and self._scale(self.new, wanted):
            return
        old = [self._version(each) for each in self.old]
        for name, replicas in sizes.shrunk(self.limits, self._version(self.new), old).items():
            self._scale(next(each for each in self.old if each.metadata.name == name), replicas)
        if not self.actions and rollout_status.is_complete(self.deployment, self.deployment.status):
            self._clean_up()

    def _recreate(self) -> None:
        shrunk = [self._scale(each, 0) for each in self.old if each.spec.replicas]
        if shrunk or self._has_old_pods():
            return
        if self.new is None:
            self._create()
        elif self.new.spec.replicas != self.limits.replicas:
            self._scale(self.new, self.limits.replicas)
        elif rollout_status.is_complete(self.deployment, self.deployment.status):
            self._clean_up()

    def _has_old_pods(self) -> bool:
        if any(each.status.replicas for each in self.old):
            return True
        return any(not pod.is_finished for each in self.old for pod in pods.owned_pods(self.state, each))

    # ---- status

    def _say(self, *, is_rollout: bool) -> None:
        status, conditions = rollout_status.counts(
            self.deployment, self.new, self.sets, self._total(), self.limits, self.conditions, self.now
        )
        if is_rollout:
            owner = self.new or self.deployment
            kind = "ReplicaSet" if self.new is not None else "Deployment"
            after = msgspec.convert(status, Counts)
            name = f'{kind} "{owner.metadata.name}"'
            conditions = rollout_status.progressed(self.deployment, after, conditions, name, self.now)
            conditions = rollout_status.failures(conditions, self.new, self.old, self.now)
        if conditions:
            status["conditions"] = conditions
        before = self.deployment.document.get("status") or {}
        if status != before:
            self.actions.append(writing_status(DEPLOYMENTS, key_of(self.deployment), before, status))
        if is_rollout:  # a paused one has all the time in the world
            self.again = rollout_status.seconds_to_deadline(self.deployment, conditions, self.now)


def _owned(state: State, deployment: Deployment) -> list[ReplicaSet]:
    found = [state.get(ReplicaSet, key) for key in state.owners.owned_by(deployment.metadata.uid, REPLICA_SETS)]
    return [each for each in found if each is not None and pods.is_controlled_by(each, deployment)]


def _age(replica_set: ReplicaSet) -> tuple[float, str]:
    created = replica_set.metadata.creation_timestamp
    return (parse_time(created) if created else 0.0, replica_set.metadata.name)


def strategy_of(deployment: Deployment) -> str:
    return (deployment.spec.strategy.type if deployment.spec.strategy else "") or "RollingUpdate"


def _limits(deployment: Deployment) -> Limits:
    replicas = 1 if deployment.spec.replicas is None else deployment.spec.replicas
    rolling = deployment.spec.strategy.rolling_update if deployment.spec.strategy else None
    if strategy_of(deployment) == "Recreate":
        return Limits(replicas)
    if rolling is None:
        return sizes.limits(replicas, "25%", "25%")
    return sizes.limits(replicas, rolling.max_surge, rolling.max_unavailable)
