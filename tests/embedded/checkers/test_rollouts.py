"""The checker of Rollouts finds bugs that are planted into their controller, and nothing where there is none."""

from __future__ import annotations

import pytest

from rollouts import a_rollout, a_scenario, blue_green, canary, play_rollout
from wukong.controllers.rollout import blue_green as blue_green_module
from wukong.controllers.rollout import canary as canary_module
from wukong.controllers.rollout import controller as controller_module
from wukong.controllers.rollout import versions as versions_module
from wukong.controllers.rollout.canary import Limits
from wukong.controllers.rollout.decision import Decision
from wukong.controllers.rollout.versions import Look
from wukong.ports import Document

pytestmark = pytest.mark.slow


def find(strategy: Document) -> str:
    update = {"at": "20s", "apply": a_rollout(strategy, "web:2")}
    _, story = play_rollout(a_scenario(strategy, [update], until="30m"))
    return "\n".join(map(str, story.findings))


@pytest.mark.parametrize("strategy", [blue_green(), canary()])
def test_nothing_is_found_where_all_is_well(strategy: Document) -> None:
    assert find(strategy) == ""


def test_a_switch_to_pods_that_are_not_ready_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versions_module, "_seconds_to_available", lambda pod, seconds, now: 0.0)
    assert "switched to a version with fewer ready pods" in find(blue_green())


def test_an_active_version_that_is_made_small_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    decide = blue_green_module.decide_blue_green

    def shrink(look: Look, strategy: object) -> Decision:
        decision = decide(look, strategy)  # type: ignore[arg-type]
        return decision._replace(sizes={**decision.sizes, decision.stable: 1}) if decision.stable else decision

    monkeypatch.setattr(controller_module, "decide_blue_green", shrink)
    assert "leaves too few pods" in find(blue_green())


def test_a_canary_that_gives_up_too_much_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(canary_module, "read_limits", lambda strategy, replicas, floor: Limits(8, 0, 0))
    assert "leaves too few pods" in find(canary())


def test_a_version_that_is_forgotten_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    decide = canary_module.decide_canary

    def forget(look: Look, strategy: object, floor: int) -> Decision:
        decision = decide(look, strategy, floor)  # type: ignore[arg-type]
        kept = {name: size for name, size in decision.sizes.items() if name == look.current.hash}
        return decision._replace(sizes=kept, is_complete=True, stable=look.current.hash)

    monkeypatch.setattr(controller_module, "decide_canary", forget)
    assert "nobody needs its version" in find(canary())
