"""Every shell command that README.md, README.zh-CN.md and docs/*.md show in fenced blocks, and how each is tried.

    as written, in a folder with the files that the text names      tests/examples/test_documented_commands.py
    as written, on a real cluster (ON_A_CLUSTER)                    tests/live/test_documented_commands.py
    only read, as its command line would (NOT_RUN, with the reason)

Whatever is documented and in neither list is run without a cluster. Entries that are documented no more are a failure.
"""

from __future__ import annotations

import gzip
import json
import re
import shlex
from pathlib import Path
from typing import NamedTuple

import yaml

ROOT = Path(__file__).parents[1]
PROGRAMS = ("wukong", "kubectl", "python", "make", "pip", "pipx", "helm", "docker", "git")
SHELLS = ("sh", "bash", "shell", "console")
_BLOCK = re.compile(r"^```([\w-]*)\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)
_FOREVER = "runs until it is ended; tests/live has the component at work"
_CHANGES = "changes what runs; tests/cli/test_course.py and tests/live/test_changes.py do"
_TEST_BED = "starts, builds or ends control planes; tests/testbed and tests/live do"

NOT_RUN = {
    "make demo": "tests/tidy/test_readme.py and tests/demo.py play it",
    "make test": "runs this test",
    "wukong replay tests/golden/kube-scheduler-1.35.jsonl.gz": "tests/tidy/test_readme.py runs it",
    "wukong plan -s examples/plan/cluster.yaml -f examples/plan/web.yaml": "tests/tidy/test_plan_docs.py runs it",
    "wukong plan -s examples/plan/cluster.yaml -f examples/plan/web-fixed.yaml": "tests/tidy/test_plan_docs.py runs it",
    "wukong sim run examples/sim/demo.yaml --speed 6x": "takes as long as somebody looks on; the demo plays it",
    "wukong sim soak examples/sim/soak.yaml --seeds 1-1000": "takes many minutes; tests/cli/test_sim_soak.py",
    "wukong run --components load --prometheus http://prometheus.monitoring:9090": _FOREVER,
    "wukong run --components load": _FOREVER,
    "wukong run --components scheduler --scheduler-name custom-scheduler,gpu-scheduler": _FOREVER,
    "wukong get wk db -w": "follows a cluster until it is ended; tests/cli/test_get.py",
    "wukong patch deploy/web --apart hostname --required --per-version": _CHANGES,
    "wukong patch deploy/web --apart zone --preferred=50 -n shop": _CHANGES,
    "wukong patch deploy/web --apart hostname --required --take-advice 1": _CHANGES,
    "wukong patch deploy/web --remove": _CHANGES,
    "wukong patch sts/db --replicas 5": _CHANGES,
    "wukong separate deploy/web --required": _CHANGES,
    "wukong follow deploy/web --timeout 10m": _CHANGES,
    "wukong undo deploy/web --to 3": _CHANGES,
    "wukong follow deploy/web -n shop": _CHANGES,
    "pip install ./examples/rules": "changes the environment; tests/examples/test_example_rules.py uses the package",
    "python -m testbed up --nodes 5": _TEST_BED,
    "python -m testbed up --nodes 5 --kubevirt": _TEST_BED,
    "python -m testbed status": _TEST_BED,
    "python -m testbed down": _TEST_BED,
    "python -m testbed build --kubevirt": _TEST_BED,
    "python -m testbed fidelity --seed 17": _TEST_BED,
    "python -m testbed fidelity --seed 1 --count 120": _TEST_BED,
    "python -m testbed fidelity --seed 17 --show": _TEST_BED,
    "python -m testbed fidelity --seed 17 --repeat 5": _TEST_BED,
    "python -m testbed fidelity --file story.yaml": _TEST_BED,
    "python -m testbed fidelity --examples": _TEST_BED,
    "python -m testbed fidelity --generator single": _TEST_BED,
}
_ALL_KINDS = (
    "nodes,pods,ns,svc,rc,rs,sts,deploy,ds,pdb,pc,pvc,pv,sc,csinodes,csidrivers,csistoragecapacities,volumeattachments"
)
ON_A_CLUSTER = frozenset(
    {
        "wukong capacity -f web.yaml",
        "wukong explain  -f web.yaml -n shop",
        "wukong explain  pod/shop/web-7d9f",
        "wukong explain pod/shop/web-7d9f-x2x",
        "wukong snapshot -o cluster.json.gz",
        f"kubectl get {_ALL_KINDS} -A -o json > cluster.json",
        "wukong plan -f web.yaml",
        "wukong plan --image deploy/web=web:2 -n shop",
        "wukong sim run -f web.yaml --seeds 1-16",
        "wukong sim run scenario.yaml --live --context test",
        "wukong snapshot | wukong sim run -s - -f deployment.yaml",
        "wukong manifests crds | kubectl apply --server-side -f -",
        "kubectl apply -f extender/10-extender.yaml",
        "kubectl apply -f extender.yaml",
        "kubectl apply -f plain/10-extender.yaml",
        "wukong manifests scheduler --image wukong:0.1.0 | kubectl apply --server-side -f -",
        "wukong manifests vm --image wukong:0.1.0 | kubectl apply --server-side -f -",
        "kubectl apply -f db.yaml",
        "wukong explain wk/db",
    }
)


class Command(NamedTuple):
    place: str  # file and line
    text: str  # without its comment


def list_documents() -> list[Path]:
    return [ROOT / "README.md", ROOT / "README.zh-CN.md", *sorted((ROOT / "docs").glob("*.md"))]


def list_commands() -> list[Command]:
    """In the order of the documents; each once, at its first place."""
    commands: dict[str, Command] = {}
    for path in list_documents():
        text = path.read_text("utf-8")
        for block in _BLOCK.finditer(text):
            first_line = text[: block.start(2)].count("\n") + 1
            for number, line in enumerate(_read_block(block[1], block[2]), start=first_line):
                if line:
                    commands.setdefault(line, Command(f"{path.relative_to(ROOT)}:{number}", line))
    return list(commands.values())


def _read_block(language: str, body: str) -> list[str]:
    """A command for each line of a block; "" for lines that are none. Blocks of other languages have none."""
    lines = body.splitlines()
    if any(line.startswith("$ ") for line in lines):
        return [_without_comment(line.removeprefix("$ ")) if line.startswith("$ ") else "" for line in lines]
    is_shell = language in SHELLS or (not language and lines[:1] and lines[0].split(" ")[0] in PROGRAMS)
    return [_without_comment(line) for line in lines] if is_shell else [""] * len(lines)


def _without_comment(line: str) -> str:
    return re.sub(r"(^|\s+)# .*$", "", line).rstrip()


def write_files(folder: Path) -> None:
    """The files that commands read: the examples, under the names that the text gives them."""
    for name in ("examples", "tests"):
        (folder / name).symlink_to(ROOT / name)
    examples = ROOT / "examples"
    for name, example in {"web.yaml": "web.yaml", "deployment.yaml": "web.yaml", "policy.yaml": "policy.yaml"}.items():
        (folder / name).write_text((examples / example).read_text("utf-8"), "utf-8")
    for name in ("scenario.yaml", "story.yaml"):
        (folder / name).write_text((examples / "sim" / "drain.yaml").read_text("utf-8"), "utf-8")
    (folder / "manifests").mkdir()
    (folder / "manifests" / "web.yaml").write_text((examples / "web.yaml").read_text("utf-8"), "utf-8")
    (folder / "drain.yaml").write_text("timeline: [{at: 10s, drain: node-7}]\n", "utf-8")
    named = (examples / "cluster.yaml").read_text("utf-8").replace("od-a1", "node-7")
    cluster = json.dumps(yaml.safe_load(named), default=str)
    (folder / "cluster.json").write_text(cluster, "utf-8")
    (folder / "cluster.json.gz").write_bytes(gzip.compress(cluster.encode()))
    (folder / "db.yaml").write_text(_first_yaml_of("docs/vm.md"), "utf-8")


def _first_yaml_of(document: str) -> str:
    blocks = _BLOCK.finditer((ROOT / document).read_text("utf-8"))
    return next(block[2] for block in blocks if block[1] == "yaml")


def words_of(command: str) -> list[str]:
    return shlex.split(command)
