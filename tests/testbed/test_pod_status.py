"""Golden pairs of the hollow kubelets: a pod and a stage in, the written status out."""

from typing import Any

import msgspec
import pytest

from testbed import pod_status
from testbed.behaviour import FAILING, PULLING, READY, WARMING, Stage, exited
from testbed.objects import Pod

NOW = 1_700_000_000.0
STAMP = "2023-11-14T22:13:20Z"
EARLIER = "2023-11-14T22:00:00Z"


def a_pod(*, spec: dict[str, Any] | None = None, status: dict[str, Any] | None = None) -> Pod:
    containers = [{"name": "main", "image": "registry.example:5000/web:1.2"}]
    meta = {"name": "web-7", "namespace": "default", "uid": "u7", "generation": 2}
    return msgspec.convert(
        {"metadata": meta, "spec": {"containers": containers, **(spec or {})}, "status": status or {}}, Pod
    )


def written(pod: Pod, stage: Stage) -> dict[str, Any]:
    status: dict[str, Any] = pod_status.patch(pod, stage, NOW, pod_address="10.0.0.9", host_address="172.16.0.1")[
        "status"
    ]
    return status


def conditions(status: dict[str, Any]) -> dict[str, str]:
    return {it["type"]: it["status"] for it in status["conditions"]}


def test_a_pod_being_pulled_is_pending_without_an_address() -> None:
    status = written(a_pod(), PULLING)
    assert (status["phase"], status["startTime"], status["observedGeneration"]) == ("Pending", STAMP, 2)
    assert status["containerStatuses"][0]["state"] == {"waiting": {"reason": "ContainerCreating"}}
    assert "podIP" not in status
    assert conditions(status) == {
        "PodReadyToStartContainers": "False",
        "Initialized": "True",
        "Ready": "False",
        "ContainersReady": "False",
        "PodScheduled": "True",
    }


def test_a_ready_pod_runs_with_an_address_and_a_digest() -> None:
    status = written(a_pod(), READY)
    (container,) = status["containerStatuses"]
    assert (status["phase"], status["podIP"], status["hostIP"]) == ("Running", "10.0.0.9", "172.16.0.1")
    assert (container["ready"], container["started"], container["state"]) == (
        True,
        True,
        {"running": {"startedAt": STAMP}},
    )
    assert container["imageID"].startswith("registry.example:5000/web@sha256:")
    assert set(conditions(status).values()) == {"True"}


def test_times_of_what_did_not_change_are_kept() -> None:
    before = {
        "phase": "Running",
        "startTime": EARLIER,
        "conditions": [
            {"type": "Ready", "status": "True", "lastTransitionTime": EARLIER},
            {"type": "Initialized", "status": "True", "lastTransitionTime": EARLIER},
        ],
        "containerStatuses": [{"name": "main", "state": {"running": {"startedAt": EARLIER}}}],
    }
    status = written(a_pod(status=before), FAILING)
    times = {it["type"]: it["lastTransitionTime"] for it in status["conditions"]}
    assert (times["Ready"], times["Initialized"], status["startTime"]) == (STAMP, EARLIER, EARLIER)
    assert status["containerStatuses"][0]["state"] == {"running": {"startedAt": EARLIER}}


@pytest.mark.parametrize(("code", "phase", "reason"), [(0, "Succeeded", "Completed"), (3, "Failed", "Error")])
def test_an_exited_pod_has_ended_with_its_code(code: int, phase: str, reason: str) -> None:
    status = written(a_pod(), exited(code))
    ended = status["containerStatuses"][0]["state"]["terminated"]
    assert (status["phase"], ended["exitCode"], ended["reason"]) == (phase, code, reason)
    assert conditions(status)["Ready"] == "False"


def test_init_containers_end_before_the_others_run_and_sidecars_run_beside_them() -> None:
    inits = [{"name": "prepare", "image": "a"}, {"name": "proxy", "image": "b", "restartPolicy": "Always"}]
    waiting = written(a_pod(spec={"initContainers": inits}), PULLING)
    assert conditions(waiting)["Initialized"] == "False"
    prepare, proxy = written(a_pod(spec={"initContainers": inits}), READY)["initContainerStatuses"]
    assert prepare["state"]["terminated"]["exitCode"] == 0
    assert "running" in proxy["state"]


def test_a_closed_readiness_gate_holds_back_ready_but_not_its_containers() -> None:
    gates = {"readinessGates": [{"conditionType": "example.com/gate"}]}
    status = written(a_pod(spec=gates), READY)
    assert (conditions(status)["Ready"], conditions(status)["ContainersReady"]) == ("False", "True")
    opened = {"conditions": [{"type": "example.com/gate", "status": "True"}]}
    assert conditions(written(a_pod(spec=gates, status=opened), READY))["Ready"] == "True"


def test_containers_that_became_ready_behind_a_closed_gate_are_still_to_be_shown() -> None:
    gates = {"readinessGates": [{"conditionType": "example.com/gate"}]}
    pod = a_pod(spec=gates, status=written(a_pod(spec=gates), WARMING))
    assert pod_status.is_shown(pod, WARMING)
    assert not pod_status.is_shown(pod, READY)


@pytest.mark.parametrize("stage", [PULLING, WARMING, READY, exited(0)])
def test_what_was_written_is_seen_as_shown_and_nothing_else_is(stage: Stage) -> None:
    pod = a_pod(status=written(a_pod(), stage))
    shown = [other for other in (PULLING, WARMING, READY, exited(0)) if pod_status.is_shown(pod, other)]
    assert shown == [stage]
