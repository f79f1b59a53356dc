"""What the command line prints about the examples, and its help: for people and for programs.

    PYTHONPATH=src:tests python -m cli.golden_outputs

writes tests/golden/outputs anew; test_golden_outputs.py compares.
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
VERBS = ("", "snapshot", "run", "replay", "capacity", "explain", "lint", "get", "sim", "sim run", "sim soak",
         "manifests", "manifests crds", "manifests extender", "manifests vm")  # fmt: skip
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


def tell(command: str) -> str:
    """All that is printed in the project's folder, 100 columns wide; the exit code in front."""
    out, err = io.StringIO(), io.StringIO()
    with chdir(ROOT), patch.dict(os.environ, {"COLUMNS": "100"}), redirect_stdout(out), redirect_stderr(err):
        code = main(shlex.split(command))
    lines = [line.rstrip() for line in f"{out.getvalue()}{err.getvalue()}".splitlines() if "digest" not in line]
    return "\n".join([f"exit code {code}", *lines, ""])


def file_of(name: str) -> Path:
    return FOLDER / f"{name.replace(' ', '-')}.txt"


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, command in COMMANDS.items():
        file_of(name).write_text(tell(command), "utf-8")
