"""`make compare-manifests`: manifests and patches on a real API server, beside the embedded one. A table.

The hand table, which sets every field of a pod spec, and objects made by seed; each is created, applied again, changed
by a patch of some type, changed back, and given unknown fields, wrong types and refused values. Ends with 1 if anything
differs in what is stored, whether it is a change, whether it rolls out, or what is refused.
"""

from __future__ import annotations

import asyncio
import secrets
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import click

from manifest_comparison.comparison import Comparison
from manifest_comparison.objects import Subject, list_hand_table, list_refusals, make_subject
from small_cluster import ManualClock
from testbed import supervisor
from testbed.pytest_plugin import Bed, make_namespace, remove
from testbed.supervisor import Order
from wukong.api.kinds import NAMESPACES
from wukong.cluster.credentials import load
from wukong.cluster.kube import Kube
from wukong.embedded.store import Store


@click.command(help=__doc__)
@click.option("--seeds", default="1-120", show_default=True, help="FIRST-LAST, or none for the hand table alone.")
@click.option("--hand/--no-hand", default=True, show_default=True, help="The hand table.")
@click.option("--kubeconfig", type=click.Path(path_type=Path), help="A test bed that is up.  [default: an own one]")
@click.option("--show", default=40, show_default=True, help="How many differences are printed.")
def main(seeds: str, hand: bool, kubeconfig: Path | None, show: int) -> None:
    if kubeconfig is not None:
        sys.exit(asyncio.run(_compare(Bed(kubeconfig, 0.0), seeds, hand, show)))
    folder = Path(tempfile.mkdtemp(prefix="wukong-compare-manifests-"))
    state = supervisor.up(folder / "bed", Order(nodes=0), lambda line: click.echo(line, err=True))
    try:
        is_different = asyncio.run(_compare(Bed(state.kubeconfig, state.seconds), seeds, hand, show))
    finally:
        supervisor.down(folder / "bed", keep_logs=True)
    sys.exit(is_different)


def _list_subjects(seeds: str, hand: bool) -> Iterator[tuple[Subject, str]]:
    if hand:
        for subject in list_hand_table():
            yield subject, f"hand {subject.before['metadata']['name']}"
        for subject in list_refusals():
            yield subject, "refused"
    if seeds != "none":
        first, _, last = seeds.partition("-")
        for seed in range(int(first), int(last or first) + 1):
            yield make_subject(seed), str(seed)


async def _compare(bed: Bed, seeds: str, hand: bool, show: int) -> int:
    namespace = f"manifests-{secrets.token_hex(3)}"
    await make_namespace(bed, namespace)
    async with Kube(load(str(bed.kubeconfig))) as real, Store(ManualClock()) as embedded:
        await embedded.create(NAMESPACES, {"metadata": {"name": "twin"}})
        comparison = Comparison(real, embedded, (namespace, "twin"))
        for subject, seed in _list_subjects(seeds, hand):
            await comparison.play(subject, seed)
    await remove(bed, [f"/api/v1/namespaces/{namespace}"])
    counts, differing = comparison.counts, len(comparison.differences)
    click.echo("| seeds | objects | changes | no change | rollouts | refused | differences |")
    click.echo("|---|---|---|---|---|---|---|")
    refused = counts["objects refused"] + counts["changes refused"]
    click.echo(
        f"| {'hand table, ' if hand else ''}{seeds} | {counts['objects']} | {counts['changes']} | "
        f"{counts['no change']} | {counts['rollouts']} | {refused} | {differing} |"
    )
    for difference in comparison.differences[:show]:
        click.echo(f"\n{difference}")
    return int(differing > 0)


if __name__ == "__main__":
    main()
