"""A trace hands every step to its listeners, and keeps no more of them than it should."""

from __future__ import annotations

from wukong.actions import Evict
from wukong.api.resources import Key
from wukong.embedded.world.process import Step
from wukong.embedded.world.trace import Trace
from wukong.runtime.dispatch import Item


def a_step(number: int) -> Step:
    return Step(float(number), Item("drain", Key("shop", "web")), Evict(Key("shop", "web")))


def test_listeners_get_every_step_however_few_are_kept() -> None:
    trace, received = Trace(), list[Step]()
    trace.min_kept = 10
    with trace.notify(received.append):
        for number in range(100):
            trace.append(a_step(number))
    trace.append(a_step(100))
    assert [step.at for step in received] == list(range(100))
    assert 10 <= len(trace) <= 20
    assert trace[-1].at == 100
    assert trace.total == 101


def test_without_a_bound_all_is_kept() -> None:
    trace = Trace()
    for number in range(100):
        trace.append(a_step(number))
    assert len(trace) == trace.total == 100
