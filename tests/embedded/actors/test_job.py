"""Jobs: as many successes as asked for, failures with a pause between them, and an end."""

from __future__ import annotations

from typing import Any

from embedded.actors.actor_world import NAMESPACE, a_template, a_world, list_pods, merge, names_of, status_of
from wukong.actions import Note
from wukong.api.core import Pod
from wukong.api.kinds import JOBS, NODES, PODS
from wukong.api.resources import Key
from wukong.embedded.store.deletion import DeleteOptions
from wukong.embedded.world.world import World


def a_job(exit_code: str = "0", **spec: Any) -> World:
    world = a_world()
    template = a_template(**{"sim.novasphere.dev/run-seconds": "5", "sim.novasphere.dev/exit-code": exit_code})
    template["spec"]["restartPolicy"] = "Never"
    world.server.create(JOBS, {"metadata": {"name": "web"}, "spec": {"template": template, **spec}}, NAMESPACE)
    return world


def run_job(exit_code: str = "0", **spec: Any) -> World:
    world = a_job(exit_code, **spec)
    assert world.run() == "quiet"
    return world


def conditions_of(world: World) -> list[tuple[str, str]]:
    return [(condition["type"], condition["reason"]) for condition in status_of(world, JOBS)["conditions"]]


def test_a_job_completes_when_enough_pods_succeeded() -> None:
    world = run_job(completions=5, parallelism=2)
    assert status_of(world, JOBS)["succeeded"] == 5
    assert conditions_of(world) == [("SuccessCriteriaMet", "CompletionsReached"), ("Complete", "CompletionsReached")]
    assert len(list_pods(world)) == 5


def test_what_happens_to_its_pods_is_looked_at_a_second_later() -> None:
    """As kube-controller-manager's SyncJobBatchPeriod: the next pod comes a second after the last one has ended."""
    world = a_job(completions=2)
    world.run(lambda state: any(pod.status.phase == "Succeeded" for pod in state.all(Pod)))
    world.run(seconds=0.9)
    assert len(list_pods(world)) == 1
    world.run(seconds=0.2)
    assert len(list_pods(world)) == 2


def test_a_changed_spec_is_looked_at_at_once() -> None:
    world = a_job(completions=4, parallelism=1)
    world.run(seconds=3)
    merge(world, JOBS, "web", {"spec": {"parallelism": 3}})
    world.run(seconds=0)
    assert len(list_pods(world)) == 3


def test_a_job_fails_after_too_many_failures_with_growing_pauses() -> None:
    began = a_world().clock.now()
    world = run_job("1", backoffLimit=2)
    assert status_of(world, JOBS)["failed"] == 3
    assert conditions_of(world) == [("FailureTarget", "BackoffLimitExceeded"), ("Failed", "BackoffLimitExceeded")]
    assert world.clock.now() - began >= 10 + 20 + 3 * 5


def test_a_suspended_job_makes_no_pods() -> None:
    assert list_pods(run_job(suspend=True)) == []


def test_pods_that_are_over_are_let_go_once_they_are_counted() -> None:
    world = run_job(completions=2)
    assert [pod["metadata"].get("finalizers") for pod in list_pods(world)] == [None, None]
    assert status_of(world, JOBS)["uncountedTerminatedPods"] == {}
    for name in names_of(list_pods(world)):
        world.server.delete(PODS, Key(NAMESPACE, name))
    world.run()
    assert status_of(world, JOBS)["succeeded"] == 2


def test_a_pod_that_is_deleted_counts_as_failed_and_is_replaced_after_a_pause() -> None:
    world = a_job()
    world.run(seconds=2)
    (first,) = names_of(list_pods(world))
    world.server.delete(PODS, Key(NAMESPACE, first))
    world.run(seconds=9)
    assert status_of(world, JOBS)["failed"] == 1
    assert list_pods(world) == []
    world.run()
    counts = status_of(world, JOBS)
    assert (counts["failed"], counts["succeeded"]) == (1, 1)


def test_pods_lost_with_their_nodes_count_towards_the_limit() -> None:
    world = a_job(backoffLimit=1, parallelism=2, completions=2)
    world.run(seconds=2)
    for number in range(3):
        world.server.delete(NODES, Key("", f"n{number}"))
    world.run(seconds=120)
    assert status_of(world, JOBS)["failed"] == 2
    assert conditions_of(world)[-1] == ("Failed", "BackoffLimitExceeded")


def test_every_failure_is_counted_once_though_its_pod_is_gone() -> None:
    world = a_job("1", backoffLimit=2)
    for _ in range(3):
        world.run(lambda state: any(pod.status.phase == "Failed" for pod in state.objects.get("Pod", {}).values()))  # type: ignore[attr-defined]
        world.server.delete(PODS, Key(NAMESPACE, names_of(list_pods(world))[0]), DeleteOptions(grace_seconds=0))
        world.run(seconds=1)
    world.run()
    assert status_of(world, JOBS)["failed"] == 3
    assert conditions_of(world)[-1] == ("Failed", "BackoffLimitExceeded")


def test_a_job_that_takes_too_long_fails() -> None:
    world = a_job(activeDeadlineSeconds=3)
    world.run()
    assert conditions_of(world)[-1] == ("Failed", "DeadlineExceeded")
    assert list_pods(world) == []


def test_a_job_may_rest_and_go_on() -> None:
    world = run_job(suspend=True)
    assert conditions_of(world) == [("Suspended", "JobSuspended")]
    assert "startTime" not in status_of(world, JOBS)
    merge(world, JOBS, "web", {"spec": {"suspend": False}})
    world.run(seconds=2)
    assert conditions_of(world) == [("Suspended", "JobResumed")]
    merge(world, JOBS, "web", {"spec": {"suspend": True}})
    world.run()
    assert list_pods(world) == []
    merge(world, JOBS, "web", {"spec": {"suspend": False}})
    world.run()
    assert conditions_of(world)[-1] == ("Complete", "CompletionsReached")


def test_a_job_goes_when_its_time_after_the_end_is_over() -> None:
    world = a_job(ttlSecondsAfterFinished=60)
    world.run(seconds=50)
    assert len(list_pods(world)) == 1
    world.run()
    assert list_pods(world) == []
    assert world.server.list(JOBS).items == []


def test_a_deleted_job_does_not_hold_its_pods_back() -> None:
    world = a_job()
    world.run(seconds=2)
    world.server.delete(JOBS, Key(NAMESPACE, "web"), DeleteOptions(propagation="Background"))
    world.run()
    assert list_pods(world) == []


def test_a_job_tells_of_its_pods_and_its_end() -> None:
    world = run_job()
    notes = [step.action for step in world.trace if isinstance(step.action, Note) and step.item.controller == "job"]
    assert [(note.reason, note.text) for note in notes] == [
        ("SuccessfulCreate", f"Created pod: {names_of(list_pods(world))[0]}"),
        ("Completed", "Job completed"),
    ]
