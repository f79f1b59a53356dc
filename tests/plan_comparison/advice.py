"""What a plan advises for a random change, and the change of somebody who follows that. Plays nothing for real.

Called by comparison.py, which makes such changes on a real cluster, and by tests of the advice itself.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from plan_comparison.changes import RandomChange
from wukong.app.many_seeds import ProcessExecutor
from wukong.app.snapshots import load as load_snapshot
from wukong.app.snapshots import make_baseline
from wukong.embedded.scenario import Scenario
from wukong.embedded.scenario.format.fields import TimelineEntry
from wukong.forecast import PlannedChange
from wukong.forecast.advice.candidate import is_same
from wukong.forecast.advice.patches import make_patch
from wukong.forecast.advice.search import find_advice
from wukong.forecast.fields import Advice
from wukong.forecast.node_copies import copy_node
from wukong.forecast.plan import make_plan
from wukong.ports import Document


def plan_change(change: RandomChange) -> PlannedChange:
    steps = (TimelineEntry(at="0s", drain=change.drained),) if change.drained else ()
    return PlannedChange(documents=tuple(change.documents), nodes=tuple(change.more_nodes), steps=steps)


def offer_advice(change: RandomChange, snapshot: Sequence[Document], seeds: Sequence[int]) -> list[Advice]:
    """What is advised to somebody who plans the change on the cluster of the snapshot."""
    baseline, executor = make_baseline(load_snapshot(snapshot), Scenario()), ProcessExecutor(1)
    planned = plan_change(change)
    plan = make_plan(baseline, planned, seeds, executor)
    return find_advice(baseline, planned, plan, seeds, executor)


def follow(change: RandomChange, advice: Advice) -> RandomChange:
    """The change of somebody who did what the advice says: patched manifests, and more nodes."""
    assert not advice.commands, f"no node of a drawn change is cordoned before, and this was advised: {advice.commands}"
    documents, before = list(change.documents), []
    for patch in advice.patches:
        targets = [document for document in documents if is_same(document, patch)]
        if targets:
            documents[documents.index(targets[0])] = make_patch(targets[0], patch)
        else:
            present = next(document for document in change.before if is_same(document, patch))
            before.append(make_patch(present, patch))
    nodes = [
        copy_node(
            next(node for node in change.nodes if node["metadata"]["name"] == entry.like), f"{entry.like}-more-{number}"
        )
        for entry in advice.nodes
        for number in range(1, entry.count + 1)
    ]
    return msgspec.structs.replace(change, documents=[*before, *documents], more_nodes=nodes)


def rename(change: RandomChange, suffix: str) -> RandomChange:
    """The same change in a namespace and on nodes of its own, so that both can be made on one cluster."""
    name = change.namespace
    renamed = msgspec.json.encode(change).replace(name.encode(), f"{name}{suffix}".encode())
    return msgspec.structs.replace(msgspec.json.decode(renamed, type=RandomChange), suffix=f"{change.suffix}{suffix}")
