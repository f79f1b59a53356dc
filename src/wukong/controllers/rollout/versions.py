"""The versions of a Rollout as the mirror shows them: ReplicaSets, their pods and how these fare. Pure.

Read at the beginning of every look by controller.py. A version is a ReplicaSet with the label HASH; the one that the
spec asks for is there even before it has one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from wukong.api.apps import ReplicaSet
from wukong.api.core import Pod, PodCondition, Service
from wukong.api.kinds import PODS, REPLICA_SETS, ROLLOUTS
from wukong.api.meta import controller_of
from wukong.api.resources import Key, refers_to
from wukong.api.rollout import HASH, REVISION, RULE, Rollout, services_of
from wukong.api.times import parse_time
from wukong.placement.rollout import hash_template
from wukong.placement.rollout.version_rule import VersionRule, read_rule
from wukong.semantics.label_syntax import parse_integer
from wukong.state import Change, State

MOST_REVISIONS = 10**12


class Version(NamedTuple):
    hash: str
    replica_set: ReplicaSet | None = None
    revision: int = 0
    pods: tuple[Pod, ...] = ()  # that have not ended and are not being deleted
    stopping: tuple[Pod, ...] = ()
    ready: int = 0
    available: int = 0
    available_in: float | None = None  # seconds until one more pod is available by waiting alone

    @property
    def replicas(self) -> int:
        """How many pods its ReplicaSet is asked for."""
        if self.replica_set is None:
            return 0
        return 1 if self.replica_set.spec.replicas is None else self.replica_set.spec.replicas

    @property
    def is_live(self) -> bool:
        """Whether pods of it are somewhere, or will be."""
        return self.replicas > 0 or bool(self.pods) or bool(self.stopping)

    @property
    def rule(self) -> VersionRule | None:
        """The rule that is in its template."""
        return read_rule(self.replica_set.metadata.annotations.get(RULE, "")) if self.replica_set is not None else None

    @property
    def lasting(self) -> int:
        """Available pods that stay: those beyond its size are about to go."""
        return min(self.available, self.replicas)


class Look(NamedTuple):
    """All that one decision goes by."""

    rollout: Rollout
    versions: Mapping[str, Version]  # by hash, the current one among them
    current: Version
    revision: int  # of the current version, as it is or will be
    services: Mapping[str, Service]  # by name: those it names, as far as they are there
    now: float

    @property
    def replicas(self) -> int:
        return self.rollout.spec.replicas

    @property
    def is_known(self) -> bool:
        """Whether the status is about this revision."""
        status = self.rollout.status
        return (status.current, status.revision) == (self.current.hash, self.revision)

    @property
    def others(self) -> list[Version]:
        return [version for version in self.versions.values() if version.hash != self.current.hash]

    def find_live(self, name: str) -> Version | None:
        """The version of this hash, if it has a ReplicaSet."""
        version = self.versions.get(name)
        return version if version is not None and version.replica_set is not None else None

    def selected_by(self, service: str) -> str:
        """The hash that a Service selects; "" if it is not there or selects none."""
        present = self.services.get(service)
        return (present.spec.selector or {}).get(HASH, "") if present is not None else ""


def read_look(rollout: Rollout, state: State, now: float) -> Look:
    versions = {version.hash: version for version in _list_versions(rollout, state, now)}
    name = hash_template(rollout.spec.template)
    current = versions.setdefault(name, Version(name))
    services = {
        service: present
        for service in services_of(rollout)
        if (present := state.get(Service, Key(rollout.metadata.namespace, service))) is not None
    }
    return Look(rollout, versions, current, _number(rollout, current, versions.values()), services, now)


def _number(rollout: Rollout, current: Version, versions: Iterable[Version]) -> int:
    """The revision of the current version: one more than any other's when it is new, or comes again."""
    status = rollout.status
    most = max((version.revision for version in versions if version.hash != current.hash), default=0)
    if status.current == current.hash and 0 < status.revision <= MOST_REVISIONS:
        return status.revision
    if not status.current and current.revision > most:  # the status was lost
        return current.revision
    return max(most, status.revision if status.revision <= MOST_REVISIONS else 0, current.revision) + 1


def _list_versions(rollout: Rollout, state: State, now: float) -> list[Version]:
    """Newest first, so that one of two with the same hash, which nobody should have made, is the latest."""
    replica_sets = [
        replica_set
        for key in state.owners.owned_by(rollout.metadata.uid, REPLICA_SETS)
        if (replica_set := state.get(ReplicaSet, key)) is not None and is_owned(replica_set, rollout)
    ]
    versions = [_read_version(replica_set, rollout, state, now) for replica_set in replica_sets]
    return sorted((version for version in versions if version.hash), key=lambda version: version.revision)


def is_owned(replica_set: ReplicaSet, rollout: Rollout) -> bool:
    owner = controller_of(replica_set.metadata)
    return owner is not None and owner.uid == rollout.metadata.uid and replica_set.metadata.deletion_timestamp is None


def _read_version(replica_set: ReplicaSet, rollout: Rollout, state: State, now: float) -> Version:
    owned = [state.get(Pod, key) for key in state.owners.owned_by(replica_set.metadata.uid, PODS)]
    present = [pod for pod in owned if pod is not None and not pod.is_finished]
    pods = [pod for pod in present if not pod.is_terminating]
    waits = [_seconds_to_available(pod, rollout.spec.min_ready_seconds, now) for pod in pods]
    meta = replica_set.metadata
    return Version(
        hash=meta.labels.get(HASH, ""),
        replica_set=replica_set,
        revision=_read_revision(meta.annotations.get(REVISION, "0")),
        pods=tuple(pods),
        stopping=tuple(pod for pod in present if pod.is_terminating),
        ready=sum(wait is not None for wait in waits),
        available=sum(wait == 0 for wait in waits),
        available_in=min((wait for wait in waits if wait), default=None),
    )


def _read_revision(text: str) -> int:
    """0 for what we would never have written: the next one must be a number, too."""
    number = parse_integer(text) or 0
    return number if 0 <= number <= MOST_REVISIONS else 0


def _seconds_to_available(pod: Pod, min_ready_seconds: int, now: float) -> float | None:
    """0 if it is available; None if it is not ready."""
    ready = find_condition(pod, "Ready")
    if ready is None or ready.status != "True":
        return None
    since = parse_time(ready.last_transition_time)
    return max(0.0, since + min_ready_seconds - now) if since is not None and min_ready_seconds else 0.0


def find_condition(pod: Pod, kind: str) -> PodCondition | None:
    return next((condition for condition in pod.status.conditions if condition.type == kind), None)


# ---- which Rollout a change is about


def rollouts_of_replica_set(change: Change, state: State) -> list[Key]:
    keys = [
        Key(change.key.namespace, owner.name)
        for subject in (change.old, change.new)
        if subject is not None and (owner := controller_of(subject.metadata)) is not None and refers_to(owner, ROLLOUTS)
    ]
    return list(dict.fromkeys(keys))


def rollouts_of_pod(change: Change, state: State) -> list[Key]:
    subject = change.new if change.new is not None else change.old
    reference = controller_of(subject.metadata) if subject is not None else None
    replica_set = state.owner(change.key.namespace, reference) if reference is not None else None
    owner = controller_of(replica_set.metadata) if replica_set is not None else None
    return [Key(change.key.namespace, owner.name)] if owner is not None and refers_to(owner, ROLLOUTS) else []


def rollouts_of_service(change: Change, state: State) -> list[Key]:
    return [
        key
        for key, rollout in sorted(state.of(Rollout).items())
        if key.namespace == change.key.namespace
        and isinstance(rollout, Rollout)
        and change.key.name in services_of(rollout)
    ]
