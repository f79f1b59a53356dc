"""Reads the cluster of a verb from a snapshot or the current context, and notes which kinds it has none of."""

from __future__ import annotations

from collections import Counter as Tally
from typing import NamedTuple

from wukong.api.kinds import CONFIG_MAPS, KINDS, STORAGE_CLASSES
from wukong.api.objects import Objects
from wukong.api.profile import count_sampled_nodes
from wukong.cli.inputs.scheduler import Profiles, guess_version, read_version
from wukong.cli.views.console import note, progress
from wukong.cluster import place_name, read_objects
from wukong.engine import Scheduler, Snapshot

# Kinds that may decide which pods are made, or where they go, and that nobody here reads.
UNMODELLED_KINDS = frozenset({
    "RuntimeClass", "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice", "DeviceClass", "VolumeAttributesClass",
    "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
})  # fmt: skip


class Source(NamedTuple):
    """The cluster that the shared options name."""

    snapshot: str | None  # None: the live cluster
    kubeconfig: str = ""
    context: str = ""

    @property
    def place(self) -> str:
        return place_name(self.snapshot) if self.snapshot else "the cluster"


class SourceCluster(NamedTuple):
    """What was read from a source."""

    objects: Objects
    version: str = ""  # what a live server calls itself; "" for a snapshot
    left_out: frozenset[str] = frozenset()  # kinds that could not be listed, and were noted


def read_source(source: Source) -> SourceCluster:
    """Read the objects, and note the kinds that are missing: we decide as if the cluster had none of them."""
    if source.snapshot is None:
        import asyncio

        cluster = asyncio.run(read_live(source))
    else:
        skipped: Tally[str] = Tally()
        cluster = SourceCluster(read_objects(source.snapshot, skipped))
        note_skipped(source.snapshot, skipped, is_snapshot=True)
    missing_kinds = [
        kind.resource.plural
        for kind in cluster.objects.missing_kinds()
        if kind.is_built_in
        and kind.resource.group != STORAGE_CLASSES.group  # many clusters have none of those
        and kind.group_kind not in cluster.left_out
    ]
    if missing_kinds:
        note(f"{source.place} holds no {', '.join(missing_kinds)}; decided as if the cluster had none.")
    return cluster


async def read_live(source: Source) -> SourceCluster:
    """Read everything that decides placement from the cluster of the kubeconfig or of this pod."""
    from wukong.cluster.capture import capture
    from wukong.cluster.credentials import load
    from wukong.cluster.kube import Kube

    with progress("Reading the cluster") as report_progress:
        async with Kube(load(source.kubeconfig, source.context)) as kube:
            left_out = set[str]()
            objects = await capture(kube, report_progress, note, left_out)
            return SourceCluster(objects, await kube.version(), frozenset(left_out))


def note_skipped(path: str, skipped: Tally[str], *, is_snapshot: bool = False) -> None:
    # Those are for sim run and plan.
    simulated_kinds = {
        kind.resource.kind for kind in KINDS if (kind.loads or kind.snapshot is not None) and not kind.decides
    }
    if is_snapshot and skipped[CONFIG_MAPS.kind] == 1:  # cluster-autoscaler's status, kept for plans
        simulated_kinds.add(CONFIG_MAPS.kind)
    unmodelled = {kind: count for kind, count in skipped.items() if kind in UNMODELLED_KINDS}
    irrelevant = {kind: count for kind, count in skipped.items() if kind not in simulated_kinds | unmodelled.keys()}
    if irrelevant:
        counts = ", ".join(f"{count} {kind}" for kind, count in sorted(irrelevant.items()))
        note(f"{place_name(path)}: left out what does not decide placement: {counts}.")
    if unmodelled:
        counts = ", ".join(f"{count} {kind}" for kind, count in sorted(unmodelled.items()))
        note(f"{place_name(path)}: left out what is not modelled, though pods may depend on it: {counts}.")


def make_scheduler(
    cluster: SourceCluster, kubernetes: str | None, scheduler_config: str | None, *, takes_extenders: bool = False
) -> Scheduler:
    profiles = Profiles(scheduler_config, takes_extenders=takes_extenders)
    if kubernetes:
        version = read_version(kubernetes, "--kubernetes")
    elif cluster.version:
        version = read_version(cluster.version, "the cluster's version")
    else:
        version = guess_version(cluster.objects.nodes)
    profile = profiles.of(version)
    note_sampling(len(cluster.objects.nodes), profile.percentage_of_nodes_to_score)
    return Scheduler(Snapshot.of(cluster.objects), profile)


def note_sampling(nodes: int, percentage: int = 0) -> None:
    """Managed control planes cannot be told to look at all nodes: a real choice may be another one."""
    sampled = count_sampled_nodes(nodes, percentage)
    if sampled < nodes:
        note(
            f"of {nodes} nodes kube-scheduler looks at as many as it takes to find {sampled} that fit, and picks among "
            "those; here all are looked at."
        )
