"""Which controller is performing its actions right now, and by what rights. Asked by checkers about each change."""

from __future__ import annotations

from typing import NamedTuple

from wukong.embedded.world.process import Process
from wukong.embedded.world.world import World
from wukong.state import State
from wukong.state.controller import PodRight, pod_rights_of

Decision = tuple[Process, int]  # a process, and its turn


class ActingController(NamedTuple):
    process: Process
    name: str
    pod_rights: frozenset[PodRight]

    @property
    def is_ours(self) -> bool:
        """Whether it is a controller of Wukong, and none of Kubernetes' or KubeVirt's."""
        gated = self.process.role.gated
        return gated is None or self.name in gated

    @property
    def decision(self) -> Decision:
        """Which decision it carries out: the process, and its turn."""
        decision = self.process.acting_decision
        return self.process, self.process.turns if decision is None else decision.turn

    def mirror(self) -> State:
        """What it decided on: the mirror of its process, as it was then. A copy where that has changed meanwhile."""
        return self.process.mirror_at_decision()


def acting_controller(world: World) -> ActingController | None:
    """None where no controller acts: what people do (the scenario, disturbances) needs no right."""
    process = world.acting
    if process is None or process.acting is None:
        return None
    name = process.acting.controller
    return ActingController(process, name, pod_rights_of(process.dispatch.controllers[name]))
