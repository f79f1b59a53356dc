"""VolumeZone: a bound volume that carries zone or region labels goes only to nodes with the same.

Looks at claims that the pod names, never at those of ephemeral volumes.
"""

from __future__ import annotations

import numpy as np

from wukong.api.core import PersistentVolume
from wukong.api.resources import Key
from wukong.engine.arrays import Mask
from wukong.engine.plugin import FilterPart, Plugin, Reason
from wukong.engine.plugins.volume_filter import Failing, VolumeFilter
from wukong.engine.pod_claims import PodClaims
from wukong.engine.refusal_detail import RefusalDetail
from wukong.engine.view import View
from wukong.semantics.volume_claims import list_claims

REASON = Reason("node(s) had no available volume zone")
ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
GA_LABELS = {
    "failure-domain.beta.kubernetes.io/zone": ZONE,
    "failure-domain.beta.kubernetes.io/region": REGION,
    ZONE: ZONE,
    REGION: REGION,
}
_DELIMITER = "__"  # between the zones of a volume that is in several


class VolumeZone(Plugin):
    name = "VolumeZone"

    def filter(self, view: View) -> FilterPart | None:
        return ZoneFilter(view) if view.template.has_volumes else None


class ZoneFilter(VolumeFilter):
    def read_problem(self, claims: PodClaims) -> str:
        return claims.zone_problem

    def compute(self) -> Failing:
        outside = self.make_mask()
        for volume in self._list_volumes():
            for key, zones in list_zones(volume):
                outside |= ~self._match(key, zones)
        if not outside.any():
            return []
        columns = [self.snapshot.column(label).ids >= 0 for label in GA_LABELS]
        return [(REASON, outside & np.logical_or.reduce(columns))]  # a cluster of one zone may have no such labels

    def describe_node(self, row: int) -> list[RefusalDetail]:
        labels = self.snapshot.rows[row].labels
        return [
            RefusalDetail(
                "volume",
                f"volume {volume.metadata.name} is in {', '.join(sorted(zones))}",
                (("volume", volume.metadata.name), ("key", key), ("values", sorted(zones))),
                value=f"the node in {labels.get(key) or labels.get(GA_LABELS[key]) or 'none'}",
                actual=labels.get(key) or labels.get(GA_LABELS[key]),
            )
            for volume in self._list_volumes()
            for key, zones in list_zones(volume)
            if not self._match(key, zones)[row]
        ]

    def _list_volumes(self) -> list[PersistentVolume]:
        names = [claim.name for claim in list_claims(self.template.pod) if not claim.is_ephemeral]
        claims = [self.facts.claims.get(Key(self.template.namespace, name)) for name in names]
        volumes = [self.facts.find_volume(claim.spec.volume_name) for claim in claims if claim is not None]
        return [volume for volume in volumes if volume is not None]

    def _match(self, key: str, zones: frozenset[str]) -> Mask:
        """[node] whether its label is one of these; where it has only the newer label, that one is read."""
        column, newer = self.snapshot.column(key), self.snapshot.column(GA_LABELS[key])
        own, other = (np.array([*(zone in zones for zone in entry.domains), False]) for entry in (column, newer))
        matches: Mask = np.where(column.ids >= 0, own[column.ids], other[newer.ids])
        return matches


def list_zones(volume: PersistentVolume) -> list[tuple[str, frozenset[str]]]:
    """The volume's labels of zones and regions. One with an empty part is written wrongly, and not looked at."""
    labels = volume.metadata.labels
    zones = [
        (key, frozenset(zone.strip() for zone in labels[key].split(_DELIMITER))) for key in GA_LABELS if key in labels
    ]
    return [(key, values) for key, values in zones if "" not in values]
