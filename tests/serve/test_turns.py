"""However large policies are and however much is asked, the event loop is soon free for others again."""

from __future__ import annotations

import asyncio
import gc
import json
import time
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from policies import policy_of, spot, steady
from wukong.api.core import Node
from wukong.api.kinds import PLACEMENT_POLICIES
from wukong.placement.compile import find_policy_problems
from wukong.placement.limits import MOST_BYTES, MOST_EXPRESSIONS, MOST_FLOORS, MOST_RULES
from wukong.placement.rules import BUILT_IN
from wukong.placement.slices import Slices
from wukong.replies.extender.verbs import Extender
from wukong.runtime.short_collections import keep_collections_short
from wukong.serve.extender.server import RequestHandler
from wukong.serve.turns import take_turns
from wukong.state import State

NODES = 1000
CROWD = 500  # policies in one namespace
LIMIT_SECONDS = 0.05
LABELS = ("kubernetes.io/hostname", "zone", "disk", "absent")


class Noon:
    def now(self) -> float:
        return 43_200.0


def a_fleet() -> list[Node]:
    return [
        (spot if number % 2 else steady)(
            f"n{number}",
            labels={
                "kubernetes.io/hostname": f"n{number}",
                "zone": f"z{number % 3}",
                "disk": "ssd" if number % 5 else "hdd",
            },
        )
        for number in range(NODES)
    ]


def a_large_spec() -> dict[str, Any]:
    """As large as a policy may be."""
    rules = []
    for number in range(MOST_RULES):
        expressions = [
            {"key": LABELS[index % 4], "operator": "NotIn", "values": ["v", "hdd" if number % 7 else "x"]}
            for index in range(MOST_EXPRESSIONS - 3)
        ]
        type_ = ("filter", "score", "prioritize")[number % 3]
        rules.append({"name": "label-match", "type": type_, "config": {"matchExpressions": expressions}})
    floors = [{"resourceType": "cpu", "minAvailable": 0}] * MOST_FLOORS
    return {
        "capacity": {"strategy": "spot-first"},
        "scheduling": {"resourceAffinity": {"requiredResources": floors}, "schedulingPolicy": {"rules": rules}},
    }


def a_near_miss(number: int) -> dict[str, Any]:
    others = [{"key": f"k{index}", "operator": "DoesNotExist"} for index in range(MOST_EXPRESSIONS - 1)]
    return {"selector": {"matchExpressions": [*others, {"key": "app", "operator": "In", "values": [f"a{number}"]}]}}


def a_body(namespace: str, **offered: Any) -> bytes:
    pod = {"metadata": {"name": "web", "namespace": namespace, "labels": {"app": "web"}}}
    return json.dumps({"Pod": pod, **offered}).encode()


def run_slices(slices: Slices[Any]) -> tuple[Any, float]:
    """The result, and the processor time of the longest slice."""
    longest = 0.0
    while True:
        began = time.thread_time()
        try:
            next(slices)
        except StopIteration as end:
            return end.value, max(longest, time.thread_time() - began)
        longest = max(longest, time.thread_time() - began)


@pytest.fixture
def short_collections() -> Iterator[None]:
    """As in `wukong run`, with all that the tests have loaded already frozen."""
    with keep_collections_short():
        gc.collect()
        yield


@pytest.mark.usefixtures("short_collections")
def test_no_slice_of_an_answer_about_policies_at_their_limits_takes_long() -> None:
    state, nodes = State(), a_fleet()
    state.replace("Node", nodes)
    large = policy_of(a_large_spec(), "large", "large")
    assert find_policy_problems(large, BUILT_IN) == []
    assert len(msgspec.json.encode(large.spec)) > 0.85 * MOST_BYTES
    crowd = [policy_of(a_near_miss(number), f"p{number}", "crowd") for number in range(CROWD)]
    state.replace(PLACEMENT_POLICIES.group_kind, [*crowd, large])
    assert state.snapshot.row_of
    handler, names = RequestHandler(Extender(state), Noon()), [node.metadata.name for node in nodes]
    items = [{"metadata": {"name": name}} for name in (*names, "new")]
    victims = {name: {"Pods": [{"UID": "u"}]} for name in names}
    for read, body in (
        (handler.filter, a_body("crowd", NodeNames=names)),
        (handler.filter, a_body("large", NodeNames=names)),
        (handler.prioritize, a_body("large", NodeNames=names)),
        (handler.filter, a_body("large", Nodes={"items": items})),
        (handler.prioritize, a_body("large", Nodes={"items": items})),
        (handler.preempt, a_body("large", NodeNameToMetaVictims=victims)),
    ):
        decision, reading = run_slices(read(body))
        _, deciding = run_slices(decision)
        assert max(reading, deciding) < LIMIT_SECONDS, body[:100]


def test_others_have_their_turns_while_an_answer_is_worked_out() -> None:
    def work() -> Slices[str]:
        for _ in range(10):
            until = time.perf_counter() + 0.011
            while time.perf_counter() < until:
                pass
            yield
        return "answer"

    async def count_turns() -> tuple[str, int]:
        turns = 0

        async def take_part() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        other = asyncio.create_task(take_part())
        answer = await take_turns(work())
        other.cancel()
        return answer, turns

    answer, turns = asyncio.run(count_turns())
    assert answer == "answer"
    assert turns >= 10
