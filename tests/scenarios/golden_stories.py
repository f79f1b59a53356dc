"""What `wukong sim run` prints of some examples, for people and for programs.

    PYTHONPATH=src:tests python -m scenarios.golden_stories

writes tests/golden/stories anew; test_golden_stories.py compares. The digest of all writes is left out: it changes with
every one of them.
"""

from __future__ import annotations

import io
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from wukong.cli import main

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "tests" / "golden" / "stories"
EXAMPLES = (
    *("budget-waits", "daemon-set-surge", "deadlock", "demo", "drain", "jobs", "no-execute-taint", "node-silent"),
    *("partition", "preemption", "recreate", "rollback", "scale-in-rollout", "spot-first", "spot-loss"),
    *("stateful-set-dead-node", "two-budgets", "vm-apart", "vm-drain", "vm-spot"),
    *("autoscaler", "quota-stops-rollout"),
)


IN_TROUBLE = (("drain", 1), ("soak", 3), ("soak", 4), ("soak-vm", 3), ("soak-wukong", 3))  # with faults of all types


def tell(name: str, *options: str) -> str:
    """All that is printed; the exit code in front."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(["sim", "run", str(ROOT / "examples" / "sim" / f"{name}.yaml"), *options])
    lines = [line for line in f"{out.getvalue()}{err.getvalue()}".splitlines() if "digest" not in line]
    return "\n".join([f"exit code {code}", *lines, ""])


def list_files() -> dict[str, tuple[str, ...]]:
    """What to ask for, by the name of the file."""
    files: dict[str, tuple[str, ...]] = {}
    for name in EXAMPLES:
        files |= {f"{name}.txt": (name,), f"{name}.yaml": (name, "-o", "yaml")}
    for name, seed in IN_TROUBLE:
        options = ("--faults", "all", "--seed", str(seed))
        files[f"{name}-in-trouble-{seed}.yaml"] = (name, *options, "-o", "yaml")
    files["soak-in-trouble-3.txt"] = ("soak", "--faults", "all", "--seed", "3")
    return files


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for file, arguments in list_files().items():
        (FOLDER / file).write_text(tell(*arguments), "utf-8")
