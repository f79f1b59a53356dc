"""A plan of what is about to be done to a cluster: made of the same parts as that of `wukong plan`."""

from __future__ import annotations

import os
from collections.abc import Sequence

from wukong.api.times import format_time, parse_time
from wukong.app.many_seeds import ProcessExecutor
from wukong.app.snapshots import load, make_baseline
from wukong.cli.inputs.node_groups import add_cluster_groups
from wukong.cli.views.console import busy, note, progress
from wukong.cluster import pause_garbage_collector
from wukong.cluster.capture import capture_autoscaler_status, capture_documents
from wukong.cluster.snapshot_documents import Documents
from wukong.embedded.actors.kubelet.durations import PodDurations
from wukong.embedded.scenario import Scenario
from wukong.embedded.scenario.format.fields import PatchTarget, TimelineEntry
from wukong.forecast.advice import find_advice
from wukong.forecast.fields import Plan
from wukong.forecast.plan import PlanOptions, make_plan
from wukong.forecast.planned_change import PlannedChange
from wukong.forecast.start_times import build_durations, learn_start_times
from wukong.forecast.stop_times import learn_stop_times
from wukong.forecast.warnings import find_warnings
from wukong.placement.node_groups.cluster import tells_node_groups
from wukong.placement.workloads.patch_forms import build_patch, without_version
from wukong.ports import Cluster, Document

PLACE = "the cluster"
_KEPT_BY_SERVER = ("managedFields", "resourceVersion", "uid", "creationTimestamp", "generation", "selfLink")


def plan_workload_change(
    documents: Documents, before: Document, after: Document, seeds: Sequence[int], jobs: int | None = None
) -> Plan:
    """What becomes of a workload that is to be `after`; with advice where that is not safe."""
    with pause_garbage_collector():
        start = load(documents.items, parse_time(documents.taken_at))
        start.node_groups = documents.node_groups
        scenario = Scenario()
        add_cluster_groups(scenario, start, PLACE)
        times, stop_times = learn_start_times(start), learn_stop_times(start)
        with busy("Letting the cluster come to rest …"):
            baseline = make_baseline(start, scenario, build_durations(times, PodDurations(), stop_times))
    if baseline.before.changes:
        note(f"{PLACE} was not at rest: what was under way was played to its end first.")
    change, options = _describe_manifest(after), PlanOptions(start_times=times, stop_times=stop_times)
    executor = ProcessExecutor(min(jobs or os.cpu_count() or 1, len(seeds)))
    with progress("seeds") as report_progress:
        plan = make_plan(baseline, change, seeds, executor, options, report_progress)
    plan.warnings = find_warnings(baseline, _describe_patch(before, after))
    if not plan.verdict.is_safe:
        with busy("Looking for what would make it safe …"):
            plan.advice = find_advice(baseline, change, plan, seeds, executor, options)
    return plan


async def read_documents(cluster: Cluster, now: float) -> Documents:
    """All that the cluster holds and a forecast loads, whole."""
    documents = Documents(taken_at=format_time(now))
    async for document in capture_documents(cluster, note=note, keep=lambda document: document):
        (documents.node_groups if tells_node_groups(document) else documents.items).append(document)
    if (status := await capture_autoscaler_status(cluster, note)) is not None:
        documents.node_groups.append(status)
    return documents


def _describe_manifest(after: Document) -> PlannedChange:
    """The workload applied as it shall be, so that advice may change it further."""
    meta = {name: value for name, value in after["metadata"].items() if name not in _KEPT_BY_SERVER}
    rest = {name: value for name, value in after.items() if name != "status"}
    return PlannedChange(documents=({**rest, "metadata": meta},))


def _describe_patch(before: Document, after: Document) -> PlannedChange:
    """The same as a patch, of which more is warned than of a manifest."""
    meta = before["metadata"]
    target = PatchTarget(
        kind=before["kind"],
        name=meta["name"],
        namespace=meta["namespace"],
        api_version=before["apiVersion"],
        type="merge",
        patch=without_version(build_patch(before, after, "merge")),
    )
    return PlannedChange(steps=(TimelineEntry(at="0s", patch=target),))
