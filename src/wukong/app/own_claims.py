"""The claims that come with a pod: of its ephemeral volumes, and of a StatefulSet's volumeClaimTemplates.

Called by pod_from_manifest.py: the pod is asked about before anybody has made it, so nobody has made these either. They
are put beside the cluster's objects as Kubernetes' controllers would, with the default class where they name none.
"""

from __future__ import annotations

from msgspec.structs import replace

from wukong.api.core import (
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeClaimStatus,
    PersistentVolumeClaimTemplate,
    Pod,
    Volume,
    VolumeClaimSource,
)
from wukong.api.meta import ObjectMeta, OwnerReference
from wukong.api.objects import Objects
from wukong.semantics.volume_claims import find_default_class


def build_claim_volumes(
    pod: str, templates: list[PersistentVolumeClaimTemplate], volumes: list[Volume]
) -> list[Volume]:
    """The claims of a StatefulSet's pod as volumes, then the template's; a claim replaces a volume of its name."""
    names = [template.metadata.name for template in templates]
    claimed = [
        Volume(name=name, persistent_volume_claim=VolumeClaimSource(claim_name=f"{name}-{pod}")) for name in names
    ]
    return [*claimed, *(volume for volume in volumes if volume.name not in names)]


def add_own_claims(pod: Pod, templates: list[PersistentVolumeClaimTemplate], objects: Objects) -> frozenset[str]:
    """Add the claims that would be made for this pod to the objects. Returns their names."""
    own: dict[str, PersistentVolumeClaimSpec] = {}
    meta = pod.metadata
    for template in templates:
        own[f"{template.metadata.name}-{meta.name}"] = template.spec
    for volume in pod.spec.volumes:
        if volume.ephemeral is not None:
            template = volume.ephemeral.volume_claim_template or PersistentVolumeClaimTemplate()
            own[f"{meta.name}-{volume.name}"] = template.spec
    ours = {f"{meta.namespace}/{name}" for name in own}
    objects.persistent_volume_claims = [claim for claim in objects.persistent_volume_claims if claim.key not in ours]
    default = find_default_class(objects.storage_classes)
    owner = OwnerReference(name=meta.name, kind="Pod", api_version="v1", uid=meta.uid, controller=True)
    for name, asked in own.items():
        lacks_class = asked.storage_class_name is None and default is not None
        spec = replace(asked, storage_class_name=default.metadata.name) if lacks_class and default else asked
        claim_meta = ObjectMeta(name=name, namespace=meta.namespace, uid=f"{name}-new", owner_references=[owner])
        status = PersistentVolumeClaimStatus(phase="Pending")
        head = {"kind": "PersistentVolumeClaim", "api_version": "v1"}
        objects.add(PersistentVolumeClaim(**head, metadata=claim_meta, spec=spec, status=status))
    return frozenset(own)
