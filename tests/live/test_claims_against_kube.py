"""Volume claims on a real API server and on the embedded one: stored, changed and refused alike."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from conftest import FIGURE
from manifest_comparison.changes import Change
from manifest_comparison.claims import CHANGES, list_claims
from manifest_comparison.comparison import Side
from small_cluster import ManualClock
from testbed.pytest_plugin import Bed
from wukong.api.kinds import NAMESPACES
from wukong.cluster.credentials import load
from wukong.cluster.kube import Kube
from wukong.embedded.store import Store


@pytest.mark.slow
async def test_claims_are_stored_changed_and_refused_alike(
    bed: Bed, namespace: str, record_property: Callable[[str, object], None]
) -> None:
    differences, compared, refused = [], 0, 0
    async with Kube(load(str(bed.kubeconfig))) as cluster, Store(ManualClock()) as store:
        await store.create(NAMESPACES, {"metadata": {"name": "twin"}})
        real, embedded = Side(cluster, namespace), Side(store, "twin")
        for subject in list_claims():
            outcomes = [(subject.title, await real.create(subject), await embedded.create(subject))]
            if outcomes[0][1].stored is not None and outcomes[0][2].stored is not None:
                for title, patch in CHANGES:
                    change = Change(title, patch)
                    answers = await real.change(subject, change), await embedded.change(subject, change)
                    outcomes.append((f"{subject.title}, {title}", *answers))
            compared += len(outcomes)
            refused += sum(outcome.stored is None for _, outcome, _ in outcomes)
            differences += [
                f"{title}:\n  real     {theirs.stored or theirs.message}\n  embedded {ours.stored or ours.message}"
                for title, theirs, ours in outcomes
                if theirs.compared != ours.compared
            ]
    assert not differences, "\n".join(differences)
    assert refused > 100
    record_property(FIGURE, f"{compared} requests about claims alike on both API servers, {refused} of them refused")
