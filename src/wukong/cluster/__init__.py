"""Where clusters come from: snapshots in files (re-exported here) and API servers (kube.py, which brings aiohttp)."""

from wukong.cluster.files import (
    SNAPSHOT_COMMAND,
    pause_garbage_collector,
    place_name,
    read_lines,
    read_manifests,
    read_objects,
    read_settings,
    read_text,
)

__all__ = [
    "SNAPSHOT_COMMAND",
    "pause_garbage_collector",
    "place_name",
    "read_lines",
    "read_manifests",
    "read_objects",
    "read_settings",
    "read_text",
]
