"""kube-scheduler's queueing hints of the four volume plugins: which changes give a pod that they refused another turn.

Called by queueing_hints.py and stock_hints.py. From the 1.35 sources: EventsToRegister and the isSchedulableAfter…
functions of volumerestrictions, nodevolumelimits, volumebinding and volumezone.
"""

from __future__ import annotations

from collections.abc import Set

from wukong.api.core import PersistentVolume, PersistentVolumeClaim, Pod
from wukong.api.meta import Object
from wukong.api.quantity import parse_quantity
from wukong.api.storage import CSIDriver, CSINode, CSINodeDriver, CSIStorageCapacity, StorageClass, VolumeAttachment
from wukong.engine.plugins.volume_zone import list_zones
from wukong.semantics.volume_claims import find_inline_csi_volume, list_claims, share_disk, waits_for_consumer

RESTRICTIONS, LIMITS = "VolumeRestrictions", "NodeVolumeLimits"
BINDING, ZONE = "VolumeBinding", "VolumeZone"
VOLUME_PLUGINS = frozenset({RESTRICTIONS, LIMITS, BINDING, ZONE})


def volume_change_may_help(pod: Pod, refused_by: Set[str], old: Object | None, new: Object | None) -> bool:
    """Tell whether a claim, a volume or something of the storage API that came, changed or went may help."""
    if isinstance(new, PersistentVolumeClaim):
        return _claim_may_help(pod, refused_by, new, is_new=old is None)
    if isinstance(new, PersistentVolume):
        is_moved = old is None or list_zones(_as_volume(old)) != list_zones(new)
        return BINDING in refused_by or (ZONE in refused_by and is_moved)
    if isinstance(new, StorageClass):
        is_allowed = not isinstance(old, StorageClass) or old.allowed_topologies != new.allowed_topologies
        is_waiting = old is None and waits_for_consumer(new)
        return (BINDING in refused_by and is_allowed) or (ZONE in refused_by and is_waiting)
    if isinstance(new, CSINode):
        if old is None:
            return bool(refused_by & {BINDING, LIMITS})
        return LIMITS in refused_by and _has_higher_limit(old, new)
    if isinstance(new, CSIStorageCapacity):
        return BINDING in refused_by and (old is None or _has_more_room(old, new))
    if isinstance(new, CSIDriver):
        return BINDING in refused_by and _stops_counting(pod, old, new)
    return LIMITS in refused_by and new is None and isinstance(old, VolumeAttachment) and _has_attachable(pod)


def deleted_pod_may_help(pod: Pod, refused_by: Set[str], deleted: Pod) -> bool:
    """Tell whether a bound pod that went may help by the volumes it had."""
    if not deleted.spec.volumes:
        return False
    if LIMITS in refused_by and _has_attachable(deleted):
        return True
    if RESTRICTIONS not in refused_by or deleted.metadata.namespace != pod.metadata.namespace:
        return False
    shares = any(share_disk(volume, other) for volume in pod.spec.volumes for other in deleted.spec.volumes)
    return shares or not _named_claims(pod).isdisjoint(_named_claims(deleted))


def _claim_may_help(pod: Pod, refused_by: Set[str], claim: PersistentVolumeClaim, *, is_new: bool) -> bool:
    if claim.metadata.namespace != pod.metadata.namespace:
        return False
    is_named = claim.metadata.name in _named_claims(pod)
    is_used = is_named or any(entry.name == claim.metadata.name for entry in list_claims(pod))
    if is_used and (BINDING in refused_by or (is_new and LIMITS in refused_by)):
        return True
    return is_named and (ZONE in refused_by or (is_new and RESTRICTIONS in refused_by))


def _named_claims(pod: Pod) -> set[str]:
    return {claim.name for claim in list_claims(pod) if not claim.is_ephemeral}


def _has_attachable(pod: Pod) -> bool:
    return bool(list_claims(pod)) or any(find_inline_csi_volume(volume) for volume in pod.spec.volumes)


def _as_volume(subject: Object) -> PersistentVolume:
    assert isinstance(subject, PersistentVolume)
    return subject


def _has_higher_limit(old: Object, new: CSINode) -> bool:
    assert isinstance(old, CSINode)
    before = {driver.name: _limit_of(driver) for driver in old.spec.drivers}
    return any(_limit_of(driver) > before.get(driver.name, 0) for driver in new.spec.drivers)


def _limit_of(driver: CSINodeDriver) -> int:
    return 0 if driver.allocatable is None else driver.allocatable.count or 0


def _has_more_room(old: Object, new: CSIStorageCapacity) -> bool:
    assert isinstance(old, CSIStorageCapacity)
    before, after = _room_of(old), _room_of(new)
    return after is not None and (before is None or after > before)


def _room_of(capacity: CSIStorageCapacity) -> int | None:
    limit = capacity.capacity if capacity.maximum_volume_size is None else capacity.maximum_volume_size
    return None if limit is None else parse_quantity(limit)


def _stops_counting(pod: Pod, old: Object | None, new: CSIDriver) -> bool:
    """Storage capacity was switched off, for a driver that the pod names itself."""
    is_off = isinstance(old, CSIDriver) and bool(old.spec.storage_capacity) and not new.spec.storage_capacity
    return is_off and any(volume.csi and volume.csi.get("driver") == new.metadata.name for volume in pod.spec.volumes)
