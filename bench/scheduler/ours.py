"""`wukong`, which also writes down in which order it decides: `python -m bench.scheduler.ours FILE …`.

The file gets a line for each node that was chosen: namespace/name, and the node. Placements are checked by it later, in
the order in which they were decided, which is not that in which the API server stored them.
"""

from __future__ import annotations

import sys

from wukong.api.core import Pod
from wukong.cli import run_script
from wukong.controllers.scheduler.choice import Choice, Chooser, Nominations
from wukong.state import State


def record_choices(path: str) -> None:
    choose = Chooser.choose
    file = open(path, "a", buffering=1)  # noqa: SIM115 as long as the process lives

    def choose_and_record(self: Chooser, pod: Pod, state: State, nominated: Nominations, now: float) -> Choice:
        choice = choose(self, pod, state, nominated, now)
        if choice.node:
            file.write(f"{pod.metadata.namespace}/{pod.metadata.name} {choice.node}\n")
        return choice

    Chooser.choose = choose_and_record  # type: ignore[method-assign]


if __name__ == "__main__":
    record_choices(sys.argv.pop(1))
    run_script()
