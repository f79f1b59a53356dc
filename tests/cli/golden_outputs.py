"""What the command line prints about the examples, and its help: for people and for programs.

    PYTHONPATH=src:tests python -m cli.golden_outputs

writes tests/golden/outputs and tests/golden/pictures anew; test_golden_outputs.py and test_spectator.py compare.
"""

from __future__ import annotations

import io
import os
import shlex
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from unittest.mock import patch

from wukong.cli import main

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "tests" / "golden" / "outputs"
STUCK = "explain -s examples/cluster.yaml -f examples/stuck.yaml"
WEB = "explain -s examples/cluster.yaml -f examples/web.yaml"
BY_POLICY = f"{WEB} --policy examples/policy.yaml"
CAPACITY = "capacity -s examples/cluster.yaml -f examples/web.yaml"
VERBS = ("", "snapshot", "run", "agent", "replay", "capacity", "explain", "lint", "get", "spot", "spot history",
         "spot plan", "spot status", "sim", "sim run", "sim soak", "manifests", "manifests agent", "manifests crds",
         "manifests extender", "manifests vm")  # fmt: skip
COMMANDS = {
    **{f"help {verb}".strip(): f"{verb} --help" for verb in VERBS},
    "explain stuck": STUCK,
    "explain stuck wide": f"{STUCK} -o wide",
    "explain stuck yaml": f"{STUCK} -o yaml",
    "explain web": WEB,
    "explain web wide": f"{WEB} -o wide",
    "explain web yaml": f"{WEB} -o yaml",
    "explain web by policy": BY_POLICY,
    "explain web by policy wide": f"{BY_POLICY} -o wide",
    "explain web by policy yaml": f"{BY_POLICY} -o yaml",
    "explain web by the extender": f"{WEB} --extender --default-strategy on-demand-only",
    "explain web as of 1.37": f"{WEB} --kubernetes 1.37",
    "explain nothing": "explain -s examples/cluster.yaml pod/shop/nobody",
    "capacity web": CAPACITY,
    "capacity web wide": f"{CAPACITY} -o wide",
    "capacity web yaml": f"{CAPACITY} -o yaml",
    "capacity web at most": f"{CAPACITY} --max 2",
    **{
        f"lint {path.stem}": f"lint -f examples/vm/{path.name} -s examples/cluster.yaml"
        for path in sorted((ROOT / "examples" / "vm").glob("*.yaml"))
    },
    "lint yaml": "lint -f examples/vm/ha-vm.yaml -s examples/cluster.yaml -o yaml",
    "sim seeds": "sim run examples/sim/versions-apart-no-room.yaml --seeds 1-3",
}


ON_A_TERMINAL = ("explain stuck", "explain web by policy", "capacity web", "lint resource-aware-vm", "sim seeds")
HELP = "Show this message and exit."  # with -h where the verb was run by `wukong` first, else without: click keeps it
ENVIRONMENT = {"COLUMNS": "100", "LINES": "40", "TERM": "xterm-256color"}
COLOURS = ("NO_COLOR", "FORCE_COLOR", "COLORTERM", "TTY_COMPATIBLE", "TTY_INTERACTIVE")  # that anybody may have set
COMMANDS |= {f"{name} on a terminal": COMMANDS[name] for name in ON_A_TERMINAL}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def tell(name: str) -> str:
    """All that the command of this name prints in the project's folder; the exit code in front."""
    out, err = Terminal() if name.endswith("on a terminal") else io.StringIO(), io.StringIO()
    clean = {variable: value for variable, value in os.environ.items() if variable not in COLOURS}
    with (
        chdir(ROOT),
        patch.dict(os.environ, clean | ENVIRONMENT, clear=True),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        code = main(shlex.split(COMMANDS[name]))
    printed = (line.rstrip() for line in f"{out.getvalue()}{err.getvalue()}".splitlines())
    lines = [line for line in printed if "digest" not in line and not line.endswith(HELP)]
    return "\n".join([f"exit code {code}", *lines, ""])


def file_of(name: str) -> Path:
    return FOLDER / f"{name.replace(' ', '-')}.txt"


def write_pictures() -> None:
    from cli.test_spectator import PICTURES, a_picture

    for name, arguments in PICTURES.items():
        path = ROOT / "tests" / "golden" / "pictures" / f"{name}.txt"
        path.write_text("\n".join([*a_picture(*arguments), ""]), "utf-8")


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    write_pictures()
    for name in COMMANDS:
        file_of(name).write_text(tell(name), "utf-8")
