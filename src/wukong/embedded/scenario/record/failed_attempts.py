"""Why something does not come about, read from what was tried in vain: scheduling a pod, draining it, making pods.

Called by recorder.py. Reads a cluster, changes nothing.
"""

from __future__ import annotations

from wukong.api.core import Pod
from wukong.api.kinds import DAEMON_SETS, JOBS, STATEFUL_SETS
from wukong.api.resources import Key, key_of
from wukong.embedded.actors import pods as podlike
from wukong.embedded.actors.daemon_set.controller import DaemonSets
from wukong.embedded.actors.job.controller import Jobs
from wukong.embedded.actors.stateful_set.controller import StatefulSets
from wukong.embedded.scenario.play.steps import Drains
from wukong.embedded.scenario.record.observed_cluster import ObservedCluster
from wukong.runtime.dispatch import Item

_CREATORS = {
    STATEFUL_SETS.group_kind: StatefulSets.name,
    DAEMON_SETS.group_kind: DaemonSets.name,
    JOBS.group_kind: Jobs.name,
}


def list_creation_failures(cluster: ObservedCluster, group_kind: str, key: Key) -> list[str]:
    """Why no pods are made, of workloads that say so in no condition."""
    controller = _CREATORS.get(group_kind)
    attempt = cluster.attempt(Item(controller, key)) if controller is not None else None
    return [f"FailedCreate: {attempt.error.partition(': ')[2]}"] if attempt is not None else []


def find_drain_error(cluster: ObservedCluster, pod: Pod) -> str | None:
    """Why a drain could not evict the pod when it tried last; None if it has not tried in vain."""
    attempt = cluster.attempt(Item(Drains.name, key_of(pod)))
    return None if attempt is None else attempt.error


def read_scheduling_message(pod: Pod) -> str:
    """What the scheduler says of a pod without a node."""
    scheduled = podlike.condition(pod, "PodScheduled")
    return scheduled.message if scheduled is not None and scheduled.message else "not scheduled"
