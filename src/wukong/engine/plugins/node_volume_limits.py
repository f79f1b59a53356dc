"""NodeVolumeLimits: how many volumes of a CSI driver a node can have attached, by its CSINode.

A volume that is still to be made is counted by its claim. Taking pods away makes room.
"""

from __future__ import annotations

from collections import Counter as Tally

from wukong.api.core import PersistentVolumeClaim, Pod
from wukong.api.resources import Key
from wukong.api.storage import CSINode
from wukong.engine.arrays import Mask
from wukong.engine.plugin import FilterPart, Plugin, Reason
from wukong.engine.plugins.volume_filter import Failing, VolumeFilter
from wukong.engine.refusal_detail import RefusalDetail
from wukong.engine.view import View
from wukong.engine.volume_facts import VolumeFacts
from wukong.semantics.volume_claims import (
    MIGRATED_PLUGINS,
    UNCOUNTED_PLUGINS,
    CsiVolume,
    class_of_claim,
    find_csi_volume,
    find_inline_csi_volume,
    list_claims,
)

REASON = Reason("node(s) exceed max volume count", is_final=False)


class NodeVolumeLimits(Plugin):
    name = "NodeVolumeLimits"

    def filter(self, view: View) -> FilterPart | None:
        return LimitsFilter(view) if view.template.has_volumes else None


class LimitsFilter(VolumeFilter):
    follows_pods = True

    def compute(self) -> Failing:
        pod = self.template.pod
        self.wanted = {
            is_migrated: list_csi_volumes(self.facts, pod, is_migrated=is_migrated) for is_migrated in (False, True)
        }
        missing = self._find_missing_drivers() if self.version.missing_drivers_refuse else []
        self.is_missing: Mask = self.make_mask()
        for _, mask in missing:
            self.is_missing |= mask
        self.exceeded: Mask = self.make_mask()
        for row in range(len(self.snapshot.rows)):
            self.update(row)
        return [*missing, (REASON, self.exceeded)]

    def update(self, row: int) -> None:
        if self.wanted[True]:
            self.exceeded[row] = not self.is_missing[row] and self._exceeds(row)

    def describe_node(self, row: int) -> list[RefusalDetail]:
        if not self.exceeded[row]:
            return []  # a driver is missing: the reason names it
        return [
            RefusalDetail(
                "volumeLimit",
                f"{driver} attaches at most {limit} volumes to a node",
                (("driver", driver), ("limit", limit)),
                value=f"{count} with this pod's",
                actual=count,
            )
            for driver, limit, count in self._list_exceeded(row)
        ]

    def _exceeds(self, row: int) -> bool:
        return bool(self._list_exceeded(row))

    def _list_exceeded(self, row: int) -> list[tuple[str, int, int]]:
        """Drivers of which the pod wants more volumes than the node may have: limit, and how many it would have."""
        name = self.snapshot.rows[row].name
        csi_node = self.facts.csi_nodes.get(Key("", name))
        wanted = self.wanted[csi_node is not None]
        limits = _read_limits(csi_node)
        if not any(volume.driver in limits for volume in wanted):
            return []
        used: set[CsiVolume] = set()
        for template in self.snapshot.volume_use.pods.get(row, {}).values():
            used |= list_csi_volumes(self.facts, template.pod, is_migrated=True)
        # One that is attached and that no pod there uses is counted once more for the pod that wants it.
        added = wanted - used
        counts = Tally(volume.driver for volume in (used | self._list_attachments(name)))
        counts.update(volume.driver for volume in added)
        drivers = sorted({entry.driver for entry in added if entry.driver in limits})
        return [(driver, limits[driver], counts[driver]) for driver in drivers if counts[driver] > limits[driver]]

    def _list_attachments(self, node: str) -> set[CsiVolume]:
        attached: set[CsiVolume] = set()
        for attachment in self.facts.attachments_by_node.get(node, ()):
            volume = self.facts.find_volume(attachment.spec.source.persistent_volume_name or "")
            if attachment.spec.attacher and volume is not None and volume.spec.csi is not None:
                attached.add(CsiVolume(attachment.spec.attacher, volume.spec.csi.volume_handle))
        return attached

    def _find_missing_drivers(self) -> Failing:
        """Drivers that ask for it keep pods from nodes on which they are not installed."""
        names = dict.fromkeys(volume.driver for volume in sorted(self.wanted[True]))
        drivers = [self.facts.drivers.get(Key("", name)) for name in names]
        required = [entry for entry in drivers if entry is not None and entry.spec.prevent_pod_scheduling_if_missing]
        failing: Failing = []
        refused = self.make_mask()
        for driver in required:
            missing = self.make_mask()
            for row, node in enumerate(self.snapshot.rows):
                csi_node = self.facts.csi_nodes.get(Key("", node.name))
                is_wanted = any(entry.driver == driver.metadata.name for entry in self.wanted[csi_node is not None])
                installed = [] if csi_node is None else [entry.name for entry in csi_node.spec.drivers]
                missing[row] = is_wanted and driver.metadata.name not in installed
            reason = Reason(f"{driver.metadata.name} CSI driver is not installed on the node", is_final=False)
            failing.append((reason, missing & ~refused))
            refused |= missing
        return failing


def list_csi_volumes(facts: VolumeFacts, pod: Pod, *, is_migrated: bool) -> set[CsiVolume]:
    """The pod's volumes that count. `is_migrated`: the node has a CSINode, so in-tree volumes count, too."""
    volumes: set[CsiVolume] = set()
    for claim in list_claims(pod):
        bound = facts.claims.get(Key(pod.metadata.namespace, claim.name))
        volume = None if bound is None else _find_volume_of(facts, bound, is_migrated=is_migrated)
        if volume is not None and volume.driver and volume.handle:
            volumes.add(volume)
    if is_migrated:
        inline = (find_inline_csi_volume(volume) for volume in pod.spec.volumes)
        volumes.update(volume for volume in inline if volume is not None)
    return volumes


def _find_volume_of(facts: VolumeFacts, claim: PersistentVolumeClaim, *, is_migrated: bool) -> CsiVolume | None:
    volume = facts.find_volume(claim.spec.volume_name)
    if volume is not None:
        return find_csi_volume(volume, is_migrated=is_migrated)
    storage_class = facts.find_class(class_of_claim(claim))
    provisioner = "" if storage_class is None else storage_class.provisioner
    if provisioner in MIGRATED_PLUGINS:
        provisioner = MIGRATED_PLUGINS[provisioner] if is_migrated else ""
    elif provisioner in UNCOUNTED_PLUGINS:
        provisioner = ""
    return CsiVolume(provisioner, f"claim {claim.key}")


def _read_limits(csi_node: CSINode | None) -> dict[str, int]:
    return {
        driver.name: driver.allocatable.count
        for driver in (csi_node.spec.drivers if csi_node is not None else ())
        if driver.allocatable is not None and driver.allocatable.count is not None
    }
