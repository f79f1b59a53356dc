"""A sample of `make compare-quota`: the same pods, claims, Services and workloads, refused and defaulted alike."""

from __future__ import annotations

import pytest

from quota_comparison.comparison import compare
from testbed.pytest_plugin import Bed

SAMPLE = range(1001, 1013)


@pytest.mark.slow(waits=10)
async def test_quotas_limit_ranges_and_pod_security_refuse_as_on_a_real_server(bed: Bed) -> None:
    async with bed.client() as client:
        comparisons = await compare(client, SAMPLE)
    differing = {entry.case.seed: entry.differences for entry in comparisons if entry.differences}
    assert differing == {}
    refusals = [answer for entry in comparisons for answer in entry.answers.objects if isinstance(answer, str)]
    for word in ("quota", "usage per", "PodSecurity"):
        assert any(word in refusal for refusal in refusals), f"a sample in which nothing is refused for {word}"
