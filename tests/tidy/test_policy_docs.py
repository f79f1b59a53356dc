"""docs/policies.md: every YAML in it is taken, every list in it is complete, and the output it shows is printed."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from click.testing import CliRunner

from spot_strategy.judge import Judge
from spot_strategy.phases import play_phases, read_strategy
from wukong.api.placement import APPLIES, GROUP, MODES, VERSION
from wukong.api.policy_parts import FALLBACKS, STRATEGIES
from wukong.cli.verbs.explain import command as explain
from wukong.placement.capacity import SPOT_LABELS, SPOT_TAINTS
from wukong.placement.compile import GPU_NAMES
from wukong.placement.leaving_nodes import CONDITIONS, NOTICE, TAINTS
from wukong.placement.limits import MOST_NODE_TERMS
from wukong.placement.pods.build import VERSION_KEYS
from wukong.placement.pods.mark import MARK
from wukong.placement.pods.priority import CRITICAL_PRIORITY, PREFIX
from wukong.placement.price_table import AS_OF, SPOT_SHARE
from wukong.placement.prices import PRICE_LABEL, read_prices
from wukong.placement.rules import BUILT_IN
from wukong.placement.rules.latency import read_latencies
from wukong.placement.rules.spot_risk import RISK_LABEL
from wukong.replies.extender.plugin import DEFAULT_ENTRY
from wukong.replies.extender.verbs import Settings

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "policies.md").read_text("utf-8")
YAML = re.findall(r"^```yaml\n(.*?)^```", TEXT, flags=re.DOTALL | re.MULTILINE)
SHOWN = re.findall(r"^```\n\$ wukong (.*?)\n(.*?)^```", TEXT, flags=re.DOTALL | re.MULTILINE)
CLUSTER = ("-s", str(ROOT / "examples" / "cluster.yaml"), "-f", str(ROOT / "examples" / "web.yaml"))


def run(*arguments: str) -> str:
    done = CliRunner().invoke(explain, list(arguments), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def policies(block: str) -> str:
    """The block as a policy file; a part of a spec is put into one."""
    if "kind:" in block:
        return block
    head = {"apiVersion": f"{GROUP}/{VERSION}", "kind": "PlacementPolicy", "metadata": {"name": "web"}}
    document: dict[str, Any] = {**head, "spec": yaml.safe_load(block)}
    return yaml.safe_dump(document)


@pytest.mark.parametrize("block", [block for block in YAML if "kind:" in block or block.startswith("scheduling:")])
def test_every_policy_is_accepted(block: str, tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(policies(block), "utf-8")
    assert run(*CLUSTER, "--policy", str(tmp_path / "policy.yaml"))


def test_the_files_of_prices_and_latencies_are_read() -> None:
    (prices,) = [block for block in YAML if block.startswith("asOf")]
    (latencies,) = [block for block in YAML if block.startswith("eu-west")]
    assert read_prices(prices.encode()).price_of("bare-metal-1", {}, is_spot=False) == 0.42
    assert read_latencies(latencies.encode())["eu-west-1a"]["eu-west-1b"] == 1.1


def test_no_yaml_is_left_untried() -> None:
    kinds = ("kind:", "scheduling:", "asOf", "eu-west")
    assert [block for block in YAML if not block.startswith(kinds) and "kind:" not in block] == []
    assert len(YAML) == 9


def test_the_example_is_the_one_in_examples() -> None:
    (block,) = [block for block in YAML if "name: payments" in block]
    file = (ROOT / "examples" / "sim" / "spot-strategy" / "policies.yaml").read_text("utf-8")
    assert list(yaml.safe_load_all(block)) == list(yaml.safe_load_all(file))


@pytest.mark.slow
def test_the_table_of_the_example_is_what_happens() -> None:
    """Phases in which no pod moves have no row of their own."""
    table = re.findall(r"^\| [^|]+ ((?:\| \d+ \+ \d+[^|]*){4})\|$", TEXT, flags=re.MULTILINE)
    told = [tuple(re.sub(r" wait", "", cell).strip() for cell in row.strip("| ").split("|")) for row in table]
    layouts = play_phases(read_strategy(), Judge())
    rows = [tuple(show_counts(layout.get(app, (0, 0, 0))) for app in APPS) for layout in layouts]
    assert told == [row for index, row in enumerate(rows) if index in ROWS]
    assert all(row == rows[index - 1] for index, row in enumerate(rows) if index not in (*ROWS, *BETWEEN))


APPS = ("payments", "web", "cache", "batch")
ROWS = (0, 1, 3, 5, 7, 9, 10, 11, 12)  # phases
BETWEEN = (2,)  # batch wants none


def show_counts(counts: tuple[int, int, int]) -> str:
    spot, on_demand, waiting = counts
    return f"{spot} + {on_demand}" + (f", {waiting}" if waiting else "")


def test_what_is_shown_is_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    ((command, lines),) = SHOWN
    verb, *arguments = shlex.split(command)
    assert verb == "explain"
    printed = run(*arguments).splitlines()
    assert [line for line in lines.splitlines() if line not in printed] == []


@pytest.mark.parametrize(
    "word",
    [
        *STRATEGIES,
        *MODES,
        *APPLIES[1:],
        *FALLBACKS,
        *(key for keys in VERSION_KEYS.values() for key in keys),
        *(f"{key}={value}:{effect}" for key, value, effect in SPOT_TAINTS),
        MARK,
        f"`{PREFIX}-{CRITICAL_PRIORITY}`",
        f"more than {MOST_NODE_TERMS} of them",
        *TAINTS,
        *CONDITIONS,
        *SPOT_LABELS,
        *GPU_NAMES,
        *BUILT_IN,
        *(field.encode_name for rule in BUILT_IN.values() for field in msgspec.structs.fields(rule.config)),
        NOTICE,
        PRICE_LABEL,
        RISK_LABEL,
        AS_OF,
        f"{SPOT_SHARE * 100:g} %",
        f"weight is the extender's in the\nscheduler's configuration, {DEFAULT_ENTRY.weight} as we ship it",
        f"`--critical-priority` ({Settings().critical_priority})",
        f"`--default-strategy` ({Settings().strategy})",
    ],
)
def test_nothing_is_left_out(word: str) -> None:
    assert word in TEXT
