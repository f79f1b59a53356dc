"""Jobs: as many successes as asked for, failures with a pause between them, and an end."""

from __future__ import annotations

from typing import Any

from embedded.actors.playing import NAMESPACE, a_template, a_world, all_pods, status
from wukong.embedded.objects import JOBS
from wukong.embedded.world import World


def run_job(exit_code: str = "0", **spec: Any) -> World:
    world = a_world()
    template = a_template(**{"testbed.wukong/run-seconds": "5", "testbed.wukong/exit-code": exit_code})
    template["spec"]["restartPolicy"] = "Never"
    world.server.create(JOBS, {"metadata": {"name": "web"}, "spec": {"template": template, **spec}}, NAMESPACE)
    assert world.run() == "quiet"
    return world


def ending(world: World) -> list[tuple[str, str]]:
    return [(it["type"], it["reason"]) for it in status(world, JOBS)["conditions"]]


def test_a_job_completes_when_enough_pods_succeeded() -> None:
    world = run_job(completions=5, parallelism=2)
    assert status(world, JOBS)["succeeded"] == 5
    assert ending(world) == [("SuccessCriteriaMet", "CompletionsReached"), ("Complete", "CompletionsReached")]
    assert len(all_pods(world)) == 5


def test_a_job_fails_after_too_many_failures_with_growing_pauses() -> None:
    began = a_world().clock.now()
    world = run_job("1", backoffLimit=2)
    assert status(world, JOBS)["failed"] == 3
    assert ending(world) == [("FailureTarget", "BackoffLimitExceeded"), ("Failed", "BackoffLimitExceeded")]
    assert world.clock.now() - began >= 10 + 20 + 3 * 5


def test_a_suspended_job_makes_no_pods() -> None:
    assert all_pods(run_job(suspend=True)) == []
