"""Keeps a label on the pod of the instance that leads, and takes it from its siblings. Only who leads acts.

The webhook's Service selects by that label, so that one instance makes all decisions and knows those that are on their
way. All instances stay Ready: a rollout of ours waits for nobody to lead. While the lease of one that died runs out
nobody answers; the API server then creates pods as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from wukong.actions import DONE, Outcome, Patch
from wukong.api.core import Pod
from wukong.api.kinds import PODS
from wukong.api.meta import LabelSelector
from wukong.api.resources import Key
from wukong.ports import PatchBody
from wukong.state import Change, State
from wukong.state.controller import Watch

LEADER_LABEL = "placement.novasphere.dev/leader"
LEADS = "true"


class LeaderLabel:
    name = "admission-leader"

    def __init__(self, own_pod: Key, siblings: Mapping[str, str]) -> None:
        """`own_pod` is the one this process runs in; `siblings` are labels that all pods of its workload have."""
        self.own_pod = own_pod
        self._labelled = LabelSelector(match_labels={**siblings, LEADER_LABEL: LEADS})
        self.watches = (Watch(PODS, self._keys_of),)

    def _keys_of(self, change: Change, state: State) -> Iterable[Key]:
        return (self.own_pod,) if change.key.namespace == self.own_pod.namespace else ()

    def reconcile(self, key: Key, state: State, now: float) -> Outcome:
        own = state.get(Pod, self.own_pod)
        if own is None or own.is_terminating:
            return DONE
        labelled = state.pods.list_matching(self.own_pod.namespace, self._labelled)
        actions = [] if self.own_pod in labelled else [_set_label(self.own_pod, LEADS)]
        return Outcome((*actions, *(_set_label(pod, None) for pod in labelled if pod != self.own_pod)))


def _set_label(pod: Key, value: str | None) -> Patch:
    return Patch(PODS, pod, PatchBody("merge", {"metadata": {"labels": {LEADER_LABEL: value}}}))
