"""VolumeRestrictions: disks that one pod at a time may use, on a node or, by ReadWriteOncePod claims, in the cluster.

Both can be resolved by taking away the pod that holds the disk.
"""

from __future__ import annotations

from wukong.api.resources import Key
from wukong.engine.arrays import Mask, Rows
from wukong.engine.plugin import FilterPart, Load, Plugin, Reason
from wukong.engine.plugins.volume_filter import Failing, VolumeFilter
from wukong.engine.pod_claims import PodClaims
from wukong.engine.refusal_detail import BarringPod, RefusalDetail, find_pod_on
from wukong.engine.template import Template
from wukong.engine.view import View
from wukong.semantics.volume_claims import holds_exclusively, list_claims, share_disk

ONE_POD = "ReadWriteOncePod"
DISK_CONFLICT = Reason("node(s) had no available disk", is_final=False)


class VolumeRestrictions(Plugin):
    name = "VolumeRestrictions"

    def filter(self, view: View) -> FilterPart | None:
        return RestrictionsFilter(view) if view.template.has_volumes else None


class RestrictionsFilter(VolumeFilter):
    follows_pods = True
    follows_use = True

    def __init__(self, view: View) -> None:
        self.has_disks = holds_exclusively(view.template.pod.spec.volumes)
        self.exclusive: frozenset[str] = frozenset()
        self.conflicts = 0
        self.is_counted = False
        self._away = 0  # pods that are taken away on trial just now
        super().__init__(view)

    def read_problem(self, claims: PodClaims) -> str:
        return claims.restrictions_problem

    def compute(self) -> Failing:
        if not self._away:  # on trial pods are counted one by one, and oddly: see count_trial
            self._count_conflicts()
        self.disks: Mask = self.make_mask()
        for row in self.snapshot.volume_use.pods if self.has_disks else ():
            self.update(row)
        return [(DISK_CONFLICT, self.disks)]

    def failing(self, rows: Rows, load: Load) -> Failing:
        failing = super().failing(rows, load)
        if self.problem or not self.is_counted or self.conflicts <= 0:
            return failing
        return [*failing, (Reason(self.version.one_pod_claim_reason, is_final=False), ~self.disks[rows])]

    def describe_node(self, row: int) -> list[RefusalDetail]:
        if self.has_disks and self.disks[row]:
            holder = find_pod_on(self.snapshot, row, self._shares_disk)
            return [RefusalDetail("disk", "a disk that one pod at a time may use", pod=holder)]
        return [
            RefusalDetail(
                "claim",
                f"claim {self.template.namespace}/{name} is for one pod at a time (ReadWriteOncePod)",
                (("claim", f"{self.template.namespace}/{name}"),),
                pod=self._find_user(name),
            )
            for name in sorted(self.exclusive)
            if Key(self.template.namespace, name) in self.snapshot.volume_use.claim_users
        ]

    def _find_user(self, claim: str) -> BarringPod | None:
        def uses(template: Template) -> bool:
            names = [entry.name for entry in list_claims(template.pod) if not entry.is_ephemeral]
            return template.namespace == self.template.namespace and claim in names

        users = (find_pod_on(self.snapshot, row, uses) for row in sorted(self.snapshot.volume_use.pods))
        return next((user for user in users if user is not None), None)

    def update(self, row: int) -> None:
        if self.has_disks:
            self.disks[row] = self._has_conflict(row)

    def _has_conflict(self, row: int) -> bool:
        return any(map(self._shares_disk, self.snapshot.volume_use.pods.get(row, {}).values()))

    def _shares_disk(self, template: Template) -> bool:
        own = self.template.pod.spec.volumes
        return any(share_disk(volume, other) for volume in own for other in template.pod.spec.volumes)

    def _count_conflicts(self) -> None:
        names = [claim.name for claim in list_claims(self.template.pod) if not claim.is_ephemeral]
        keys = [Key(self.template.namespace, name) for name in names]
        self.exclusive = frozenset(
            key.name for key in keys if ONE_POD in self.snapshot.facts.volumes.claims[key].spec.access_modes
        )
        users = self.snapshot.volume_use.claim_users
        self.conflicts = sum(Key(self.template.namespace, name) in users for name in self.exclusive)
        self.is_counted = self.has_disks or self.conflicts > 0  # else kube-scheduler skips the plugin

    def count_trial(self, template: Template, row: int, change: int) -> None:
        """kube-scheduler counts pods on trial by the names of their claims, whatever their namespace."""
        self._away -= change
        if template.has_volumes and self.exclusive:
            names = [claim.name for claim in list_claims(template.pod) if not claim.is_ephemeral]
            self.conflicts += change * sum(name in self.exclusive for name in names)
