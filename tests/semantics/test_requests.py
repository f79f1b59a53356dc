"""What the containers of a pod ask for together: who runs beside whom, and at which moment it is most."""

from __future__ import annotations

import pytest

from wukong.api.core import Container, PodSpec, ResourceRequirements
from wukong.api.quantity import NANO
from wukong.semantics.requests import parse_quantities, sum_containers


def a_container(name: str, cpu: int, *, is_sidecar: bool = False) -> Container:
    resources = ResourceRequirements(requests={"cpu": str(cpu)})
    return Container(name=name, resources=resources, restart_policy="Always" if is_sidecar else None)


@pytest.mark.parametrize(
    ("containers", "init_containers", "cpu"),
    [
        ((), (), None),
        ((1, 2), (), 3),
        ((1, 2), ((2, False),), 3),
        ((1, 2), ((4, False),), 4),
        ((1, 2), ((4, False), (5, False)), 5),
        ((1, 2), ((1, True),), 4),
        ((1, 2), ((1, True), (4, False)), 5),
        ((1, 2), ((4, False), (1, True)), 4),
        ((0,), ((1, True), (1, True), (1, False)), 3),
        ((0,), ((3, False), (1, True), (1, True)), 3),
    ],
)
def test_an_init_container_runs_beside_the_sidecars_before_it_and_nobody_else(
    containers: tuple[int, ...], init_containers: tuple[tuple[int, bool], ...], cpu: int | None
) -> None:
    asked: dict[str, bool] = {}

    def amounts_of(container: Container, keeps_running: bool) -> dict[str, int]:
        asked[container.name] = keeps_running
        return parse_quantities(container.resources.requests)

    spec = PodSpec(
        containers=[a_container(f"main-{number}", amount) for number, amount in enumerate(containers)],
        init_containers=[
            a_container(f"init-{number}", amount, is_sidecar=is_sidecar)
            for number, (amount, is_sidecar) in enumerate(init_containers)
        ],
    )
    assert sum_containers(spec, amounts_of) == ({} if cpu is None else {"cpu": cpu * NANO})
    expected = {f"main-{number}": True for number in range(len(containers))}
    assert asked == expected | {f"init-{number}": is_sidecar for number, (_, is_sidecar) in enumerate(init_containers)}
