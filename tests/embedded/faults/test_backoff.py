"""A key whose writes get lost comes back as seldom as one whose writes are refused."""

from __future__ import annotations

from collections import Counter

import pytest

from wukong.app.embedded import play_with
from wukong.embedded.faults.writes import FaultyTransport
from wukong.embedded.scenario import read_scenario
from wukong.runtime.delivery import TRIES
from wukong.runtime.dispatch import Item
from wukong.runtime.effect_check import Write
from wukong.runtime.pending_writes import WrittenVersion

SECONDS = 30
SCENARIO = """
nodes:
  - {{namePrefix: n, count: 1}}
manifests:
  - apiVersion: apps/v1
    kind: Deployment
    metadata: {{name: web}}
    spec:
      replicas: 1
      selector: {{matchLabels: {{app: web}}}}
      template:
        metadata: {{labels: {{app: web}}}}
        spec: {{containers: [{{name: web, image: "web:1"}}]}}
timeline:
  - {{at: 0s, fault: {{type: {fault}, for: {seconds}s, rate: 1.0}}}}
until: 1h
"""


@pytest.mark.parametrize(("fault", "most"), [("failed", 7), ("lost-request", 7 * TRIES), ("lost-answer", 7)])
def test_writes_about_one_key_grow_rare_while_they_are_refused_or_get_lost(
    fault: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """0.5 s doubling: about 0, 0.5, 1.5, 3.5, 7.5, 15.5 and 30 s. A lost request is repeated at once, TRIES times.

    Kubernetes' own controllers that begin with client-go's 5 ms try six times more until then.
    """
    written: Counter[tuple[str, Item]] = Counter()
    write = FaultyTransport._write

    def count(transport: FaultyTransport, action: Write) -> WrittenVersion | None:
        if transport.faults.world.clock.now() < transport.faults._begin + SECONDS:
            written[transport.process.name, transport.item] += 1
        return write(transport, action)

    monkeypatch.setattr(FaultyTransport, "_write", count)
    story, counts = play_with(read_scenario(SCENARIO.format(fault=fault, seconds=SECONDS)), 1, ())
    assert counts is not None
    assert counts.injected[fault] > 0
    assert story.settled
    ours = {place: number for place, number in written.items() if place[1].controller != "deployment"}
    assert 0 < max(ours.values()) <= most, written
    assert max(written.values()) <= most * 13 // 7, written
