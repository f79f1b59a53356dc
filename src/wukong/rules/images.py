"""ImageLocality: nodes that already have the pod's images score, the more the larger and the commoner they are.

Images of containers and init containers count; from 1.36 on those of image volumes too.
"""

from __future__ import annotations

from collections.abc import Iterable

from wukong.api.core import Node, Pod
from wukong.api.profile import MAX_SCORE
from wukong.api.versions import Version
from wukong.rules.cluster import Cluster

_MIB = 1024 * 1024
_NOTHING_BELOW = 23 * _MIB
_FULL_PER_IMAGE = 1000 * _MIB


def score(cluster: Cluster, pod: Pod, node: Node, version: Version) -> int:
    """From 0 at 23 MiB to 100 at 1000 MiB per image, each image weighed by the share of nodes that have it."""
    images, divided_by = _list_images(pod, version)
    full = _FULL_PER_IMAGE * divided_by
    present = sum(_weigh_size(cluster, name) for name in images if name in image_names_of(node))
    clamped = _NOTHING_BELOW if present < _NOTHING_BELOW else min(present, full)
    return MAX_SCORE * (clamped - _NOTHING_BELOW) // (full - _NOTHING_BELOW)


def image_names_of(node: Node) -> set[str]:
    return {name for image in node.status.images for name in image.names}


def full_name_of(image: str) -> str:
    """With the tag `latest` where there is neither tag nor digest; a port of the registry is no tag."""
    return image if image.rfind(":") > image.rfind("/") else f"{image}:latest"


def _list_images(pod: Pod, version: Version) -> tuple[list[str], int]:
    """The images that may count, and how many the sum is divided by (1.36 adds image volumes only to the first)."""
    containers = [container.image for container in [*pod.spec.init_containers, *pod.spec.containers]]
    volumes = [volume.image.reference for volume in pod.spec.volumes if volume.image is not None]
    counted = [*containers, *(volumes if version.image_volumes_score else [])]
    divided_by = len(containers) + (len(volumes) if version.image_volumes_divide else 0)
    return [full_name_of(image) for image in counted], divided_by


def _weigh_size(cluster: Cluster, name: str) -> int:
    """The size reported by the first node that has the image, times the share of all nodes that have it."""
    nodes = [info.node for info in cluster.nodes.values()]
    holders = [node for node in nodes if name in image_names_of(node)]
    return int(_size_of(holders[0], name) * (len(holders) / len(nodes)))


def _size_of(node: Node, name: str) -> int:
    sizes: Iterable[int] = (image.size_bytes for image in node.status.images if name in image.names)
    return next(iter(sizes))
