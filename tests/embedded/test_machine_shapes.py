"""Virtual machines whose parts are of a wrong type are refused, as KubeVirt's schemas refuse them."""

from __future__ import annotations

from typing import Any

import pytest

from embedded.actors.machine_world import a_machine
from wukong.api.kinds import VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINES
from wukong.embedded.store.kubevirt.shapes import find_type_problem


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        (1, "spec: Invalid value: must be of type object"),
        ({"affinity": []}, "spec.affinity: Invalid value: must be of type object"),
        ({"tolerations": [{"key": "a"}, "b"]}, "spec.tolerations[1]: Invalid value: must be of type object"),
        ({"topologySpreadConstraints": [{"maxSkew": True}]}, "maxSkew: Invalid value: must be of type integer"),
        ({"nodeSelector": {"disk": 1}}, "spec.nodeSelector.disk: Invalid value: must be of type string"),
        ({"domain": {"devices": {"interfaces": {}}}}, "interfaces: Invalid value: must be of type array"),
    ],
)
def test_the_first_part_of_a_wrong_type_is_named(spec: Any, problem: str) -> None:
    assert find_type_problem(VIRTUAL_MACHINE_INSTANCES, {"spec": spec}).endswith(problem)


def test_a_machine_as_people_write_it_has_no_such_problem() -> None:
    assert find_type_problem(VIRTUAL_MACHINES, a_machine()) == ""
