"""A controller that is asked again where nothing has changed writes nothing: else every look at it costs a write."""

from __future__ import annotations

from typing import Any

import pytest

from embedded.actors.actor_world import BUDGETS, NAMESPACE, a_world
from wukong.actions import Note
from wukong.api.kinds import (
    DAEMON_SETS,
    DEPLOYMENTS,
    HORIZONTAL_POD_AUTOSCALERS,
    JOBS,
    RESOURCE_QUOTAS,
    SERVICES,
    STATEFUL_SETS,
)
from wukong.api.resources import Resource
from wukong.embedded.world.world import World
from wukong.ports import Document
from wukong.state import Change

AUTOSCALED = {"kind": "Deployment", "apiVersion": "apps/v1", "name": "deployment"}
CASES: dict[str, list[tuple[Resource, Document]]] = {
    "deployment": [(DEPLOYMENTS, {"replicas": 2})],
    "budget of percent": [(DEPLOYMENTS, {"replicas": 2}), (BUDGETS, {"maxUnavailable": "50%"})],
    "budget that cannot be counted": [(JOBS, {}), (BUDGETS, {"maxUnavailable": "50%"})],
    "stateful set": [(STATEFUL_SETS, {"replicas": 2, "serviceName": "web"})],
    "daemon set": [(DAEMON_SETS, {})],
    "service": [(DEPLOYMENTS, {"replicas": 2}), (SERVICES, {"selector": {"app": "web"}, "ports": [{"port": 80}]})],
    "quota": [(RESOURCE_QUOTAS, {"hard": {"pods": "5"}}), (DEPLOYMENTS, {"replicas": 2})],
    "autoscaler": [
        (DEPLOYMENTS, {"replicas": 2}),
        (HORIZONTAL_POD_AUTOSCALERS, {"scaleTargetRef": AUTOSCALED, "maxReplicas": 3}),
    ],
}


def create(world: World, resource: Resource, spec: Document) -> None:
    labels = {"app": "web"}
    policy = {"restartPolicy": "Never"} if resource == JOBS else {}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "app:1"}], **policy}}
    if resource in (DEPLOYMENTS, STATEFUL_SETS, DAEMON_SETS, JOBS):
        spec = {"template": pod, **spec}
    if resource in (DEPLOYMENTS, STATEFUL_SETS, DAEMON_SETS, BUDGETS):
        spec = {"selector": {"matchLabels": labels}, **spec}
    world.server.create(resource, {"metadata": {"name": resource.kind.lower()}, "spec": spec}, NAMESPACE)
    world.run(seconds=60.0)


@pytest.mark.parametrize("case", CASES)
def test_shown_everything_again_at_rest_no_controller_writes(case: str) -> None:
    world = a_world(2)
    for resource, spec in CASES[case]:
        create(world, resource, spec)
    written: list[Any] = []
    world.listen_to_decisions(
        lambda _, item, actions: written.extend((item, action) for action in actions if not isinstance(action, Note))
    )
    for group_kind, mirrored in world.state.objects.items():  # as informers do it now and then
        again = [Change("MODIFIED", group_kind, key, subject, subject) for key, subject in mirrored.items()]
        world.dispatch.observe(again, world.clock.now())
    world.run(seconds=10.0)
    assert written == []
