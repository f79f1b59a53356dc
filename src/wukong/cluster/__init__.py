"""Where clusters come from. So far: snapshots in files, as `kubectl get -o json` writes them."""

from wukong.cluster.files import (
    SNAPSHOT_COMMAND,
    collector_paused,
    place_name,
    read_lines,
    read_manifests,
    read_objects,
    read_text,
)

__all__ = [
    "SNAPSHOT_COMMAND",
    "collector_paused",
    "place_name",
    "read_lines",
    "read_manifests",
    "read_objects",
    "read_text",
]
