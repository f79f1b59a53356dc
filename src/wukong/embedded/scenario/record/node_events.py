"""What a person would want to know of a change of a node. Called by recorder.py."""

from __future__ import annotations

from wukong.api.meta import Object
from wukong.api.usage import USAGE_GROUP
from wukong.embedded.actors.autoscaler.taints import is_leaving
from wukong.embedded.scenario.record import workload_status
from wukong.embedded.store.documents import condition_of
from wukong.embedded.world.objects import Node
from wukong.placement.free_labels import FREE_PREFIX

_OPPOSITES = {"cordoned": "uncordoned", "not ready": "ready", "about to be removed": "not to be removed"}


def describe_node_change(old: Object, new: Object) -> list[str]:
    changes = (
        ("cordoned", _is_cordoned(old), _is_cordoned(new)),
        ("not ready", _is_unready(old), _is_unready(new)),
        ("about to be removed", _is_about_to_go(old), _is_about_to_go(new)),
    )
    texts = [text if is_now else _OPPOSITES[text] for text, was, is_now in changes if was != is_now]
    return [*texts, *_describe_label_changes(old, new)]


def _describe_label_changes(old: Object, new: Object) -> list[str]:
    """What became of a node's labels of usage and of what is free. Changes of other labels are no events."""
    before, now = old.metadata.labels, new.metadata.labels
    names = sorted(name for name in {*before, *now} if name.startswith((f"{USAGE_GROUP}/", f"{FREE_PREFIX}/")))
    changed = [name for name in names if before.get(name) != now.get(name)]
    return [f"{name}={now[name]}" if name in now else f"{name} removed" for name in changed]


def _is_cordoned(node: Object) -> bool:
    return isinstance(node, Node) and node.spec.unschedulable


def _is_unready(node: Object) -> bool:
    ready = condition_of(workload_status.document_of(node), "Ready")
    return ready is not None and ready.get("status") != "True"


def _is_about_to_go(node: Object) -> bool:
    """Whether the autoscaler has tainted it."""
    return isinstance(node, Node) and is_leaving(node)
