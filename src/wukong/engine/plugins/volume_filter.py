"""What the filters of volumes share: they follow the snapshot's facts about volumes, and pods that use volumes.

Base of volume_restrictions, node_volume_limits, volume_binding and volume_zone; no plugin itself. A pod without volumes
has none of these filters.
"""

from __future__ import annotations

import numpy as np

from wukong.engine.arrays import ALL, Index, Mask, Rows
from wukong.engine.plugin import FilterPart, Load, Reason, Scope, count_nodes
from wukong.engine.pod_claims import PodClaims, read_pod_claims
from wukong.engine.refusal_detail import RefusalDetail
from wukong.engine.view import View
from wukong.engine.volume_facts import VolumeFacts

Failing = list[tuple[Reason, Mask]]  # masks over all nodes


class VolumeFilter(FilterPart):
    """A filter that is computed for all nodes, and again where something it reads has changed."""

    scope = Scope.CLUSTER
    follows_pods = False  # whether the pods with volumes on a node decide about that node
    follows_use = False  # whether what pods elsewhere use, or were promised, decides

    def __init__(self, view: View) -> None:
        self.snapshot, self.template, self.version = view.snapshot, view.template, view.profile.version
        self.problem = ""
        self.answers: Failing = []
        self.claims = PodClaims()
        self._facts: VolumeFacts | None = None
        self._use_version = -1
        self._read = 0
        self.refresh()

    @property
    def facts(self) -> VolumeFacts:
        return self.snapshot.facts.volumes

    def read_problem(self, claims: PodClaims) -> str:
        """What is wrong whatever the node."""
        return ""

    def compute(self) -> Failing:
        """Which nodes fail by which reason."""
        raise NotImplementedError

    def update(self, row: int) -> None:
        """Compute one node again, where `follows_pods`."""

    def find_problem(self) -> str:
        return self.problem

    def describe(self, rows: list[int]) -> dict[int, list[RefusalDetail]]:
        if self.problem:
            return dict.fromkeys(rows, self.describe_problem())
        return {row: self.describe_node(row) for row in rows}

    def describe_problem(self) -> list[RefusalDetail]:
        """What is to be said of `problem` beside itself."""
        return []

    def describe_node(self, row: int) -> list[RefusalDetail]:
        """What exactly keeps the pod off a node that is refused."""
        return []

    def failing(self, rows: Rows, load: Load) -> Failing:
        if self.problem:
            return [(Reason(self.problem), np.ones(count_nodes(rows, load), dtype=np.bool_))]
        return [(reason, mask[rows]) for reason, mask in self.answers]

    def refresh(self) -> Index | slice | None:
        use = self.snapshot.volume_use
        if self._facts is not self.facts or (self.follows_use and self._use_version != use.version):
            self._facts, self._use_version, self._read = self.facts, use.version, len(use.log)
            self.claims = read_pod_claims(self.facts, self.template.pod)
            self.problem = self.read_problem(self.claims)
            self.answers = [] if self.problem else self.compute()
            return ALL
        changed_rows, self._read = use.log[self._read :], len(use.log)
        if not changed_rows or not self.follows_pods or self.problem:
            return None
        rows = sorted(set(changed_rows))
        for row in rows:
            self.update(row)
        return np.array(rows, dtype=np.intp)

    def blocks_itself(self) -> bool | None:
        return None if self.follows_pods or self.follows_use else False

    def make_mask(self) -> Mask:
        return np.zeros(len(self.snapshot.rows), dtype=np.bool_)
