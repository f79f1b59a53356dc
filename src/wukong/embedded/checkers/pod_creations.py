"""No controller creates a pod without the right to, or more pods than its right allows.

    CREATE_REPLICAS       as many as the owner's spec.replicas
    CREATE_ONE_PER_NODE   one on each node; with surge one of each version
    CREATE_ORDINALS       ordinals within a StatefulSet's replicas, in order; that each is there once the server sees to
                          itself
    CREATE_JOB_PODS       no more active at once than parallelism, none while suspended; completions are not judged
    CREATE_LAUNCHERS      one of a VirtualMachineInstance that has not had one: it is pending
    CREATE_MIGRATION_TARGETS  one for each migration that has not ended, beside the pod that is left

A pod is missing if it is missing now, or by the mirror of the process that creates it as it was when that decided, less
those created in the same decision: who has not heard yet that somebody else created them may do it again, and who
creates many one after the other goes on though fewer are asked for meanwhile, in any cluster.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import ClassVar

from wukong.api.apps import DaemonSet, StatefulSet
from wukong.api.core import Pod
from wukong.api.kinds import PODS
from wukong.api.kubevirt import VirtualMachineInstance, VirtualMachineInstanceMigration
from wukong.api.meta import Object, controller_of
from wukong.embedded.checkers.acting_controller import ActingController, Decision, acting_controller
from wukong.embedded.checkers.active_pods import active_siblings
from wukong.embedded.checkers.daemon_pods import siblings_on_node, surges
from wukong.embedded.checkers.findings import Findings
from wukong.embedded.checkers.ordinals import may_create
from wukong.embedded.checkers.pods import owner_of, replicas_of, revision_of, target_node_of
from wukong.embedded.world.objects import Job
from wukong.state import Change, State
from wukong.state.controller import PodRight

MOST_DECISIONS = 256  # remembered: many more than create pods at the same time


class Siblings:
    """The other active pods of a new pod's owner: those a mirror shows, and those created in the same decision."""

    def __init__(self, pod: Pod, state: State, created: list[Pod]) -> None:
        self._pod, self.state = pod, state
        self._uid, self._shown = pod.metadata.uid, active_siblings(pod, state)
        self._unseen = [sibling for sibling in created if sibling.metadata.uid not in self._shown]

    def count(self) -> int:
        """Without a walk over them: there may be thousands."""
        return len(self._shown) + len(self._unseen) - (self._uid in self._shown)

    def list_on_node(self) -> list[Pod]:
        """Of a DaemonSet's pod those on the same node, or meant for it."""
        shown = [sibling for sibling in siblings_on_node(self._pod, self.state) if sibling.metadata.uid in self._shown]
        node = target_node_of(self._pod)
        return shown + [sibling for sibling in self._unseen if target_node_of(sibling) == node]


Rule = Callable[[Pod, Object, Siblings], bool]  # whether this new pod of this owner is missing


class PodCreations:
    kinds: ClassVar[frozenset[str]] = frozenset({PODS.group_kind})

    def __init__(self, findings: Findings) -> None:
        self.findings, self.world = findings, findings.world
        self._created: dict[Decision, list[Pod]] = {}

    def fork(self, findings: Findings) -> PodCreations:
        """For a copy of a world with one process."""
        copy = PodCreations(findings)
        copies = dict(zip(self.world.processes, copy.world.processes, strict=True))
        copy._created = {(copies[process], turn): list(pods) for (process, turn), pods in self._created.items()}
        return copy

    def observe(self, change: Change) -> None:
        pod = change.new
        if change.old is not None or not isinstance(pod, Pod):
            return
        actor = acting_controller(self.world)
        if actor is None:
            return
        created = self._created_in(actor.decision)
        rules = _list_rules(actor.pod_rights)
        if not rules:
            self.findings.report(f"pod {change.key}", f"made by {actor.name}, whose business it is not")
        elif not any(self._is_missing(pod, actor, rule, created) for rule in rules):
            out_of_turn = " or it was not its turn" if PodRight.CREATE_ORDINALS in actor.pod_rights else ""
            self.findings.report(f"pod {change.key}", f"made by {actor.name} although there were enough{out_of_turn}")
        created.append(pod)

    def _created_in(self, decision: Decision) -> list[Pod]:
        created = self._created.setdefault(decision, [])
        if len(self._created) > MOST_DECISIONS:
            del self._created[next(iter(self._created))]
        return created

    def _is_missing(self, pod: Pod, actor: ActingController, rule: Rule, created: list[Pod]) -> bool:
        truth = self.world.state
        if _is_missing(pod, truth, [], rule):
            return True
        mirror = actor.mirror()
        return mirror is not truth and _is_missing(pod, mirror, created, rule)


def _is_missing(pod: Pod, state: State, created: list[Pod], rule: Rule) -> bool:
    if controller_of(pod.metadata) is None:
        return False
    owner = owner_of(pod, state)
    if owner is None:
        return True  # it goes with its owner
    return rule(pod, owner, Siblings(pod, state, created))


def _lacks_replica(pod: Pod, owner: Object, siblings: Siblings) -> bool:
    replicas = replicas_of(owner)
    return replicas is not None and siblings.count() < replicas


def _lacks_daemon_pod(pod: Pod, owner: Object, siblings: Siblings) -> bool:
    if not isinstance(owner, DaemonSet):
        return False
    beside = siblings.list_on_node()
    return not beside or (surges(owner) and all(revision_of(sibling) != revision_of(pod) for sibling in beside))


def _lacks_ordinal(pod: Pod, owner: Object, siblings: Siblings) -> bool:
    return isinstance(owner, StatefulSet) and may_create(pod, owner, siblings.state)


def _lacks_job_pod(pod: Pod, owner: Object, siblings: Siblings) -> bool:
    if not isinstance(owner, Job) or owner.spec.suspend:
        return False
    return siblings.count() < (1 if owner.spec.parallelism is None else owner.spec.parallelism)


def _lacks_launcher(pod: Pod, owner: Object, siblings: Siblings) -> bool:
    return isinstance(owner, VirtualMachineInstance) and owner.status.phase in ("", "Pending") and not siblings.count()


def _lacks_migration_target(pod: Pod, owner: Object, siblings: Siblings) -> bool:
    if not isinstance(owner, VirtualMachineInstance) or siblings.count() > 1:
        return False
    uid = pod.metadata.labels.get("kubevirt.io/migrationJobUID")
    return any(
        migration.metadata.uid == uid and not migration.is_final and migration.spec.vmi_name == owner.metadata.name
        for migration in siblings.state.all(VirtualMachineInstanceMigration)
    )


RULES: dict[PodRight, Rule] = {
    PodRight.CREATE_REPLICAS: _lacks_replica,
    PodRight.CREATE_ONE_PER_NODE: _lacks_daemon_pod,
    PodRight.CREATE_ORDINALS: _lacks_ordinal,
    PodRight.CREATE_JOB_PODS: _lacks_job_pod,
    PodRight.CREATE_LAUNCHERS: _lacks_launcher,
    PodRight.CREATE_MIGRATION_TARGETS: _lacks_migration_target,
}


@cache
def _list_rules(pod_rights: frozenset[PodRight]) -> tuple[Rule, ...]:
    """Many pods are created by few controllers."""
    return tuple(rule for right, rule in RULES.items() if right in pod_rights)
