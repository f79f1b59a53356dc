"""Every file in examples/ is run here, the way the README and `make demo` run it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from demo import play_demo

ROOT = Path(__file__).parents[2]


def wukong(*arguments: str) -> Any:
    command = [sys.executable, "-m", "wukong", *arguments, "-o", "json"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def test_the_web_shop_can_grow_until_the_zones_are_uneven() -> None:
    document = wukong("capacity", "-s", "examples/cluster.yaml", "-f", "examples/web.yaml")
    assert document["fits"] == sum(document["perNode"].values()) == 61
    assert "spot-c3" not in document["perNode"]  # about to be reclaimed
    assert "didn't match pod topology spread constraints" in document["reason"]


def test_the_next_web_pod_goes_to_a_spot_node() -> None:
    document = wukong("explain", "-s", "examples/cluster.yaml", "-f", "examples/web.yaml")
    assert document["winner"] == "spot-a2"
    assert (document["feasible"], document["nodes"]) == (11, 12)


@pytest.mark.slow
def test_by_the_policy_it_goes_to_the_spot_node_that_is_rarely_reclaimed() -> None:
    arguments = ("-s", "examples/cluster.yaml", "-f", "examples/web.yaml", "--policy", "examples/policy.yaml")
    document = wukong("explain", *arguments)
    assert document["winner"] == "spot-a2"
    assert (document["policy"]["name"], document["policy"]["fallback"]) == ("PlacementPolicy shop/web", False)
    assert [term["name"] for term in document["policy"]["terms"]] == ["preferred cpu", "cost-aware", "spot-risk"]
    refused = [group for group in document["groups"] if "Extender" in group["refusals"]]
    assert [group["count"] for group in refused] == [5]  # every on-demand node


def test_the_stuck_report_needs_a_little_less_cpu() -> None:
    document = wukong("explain", "-s", "examples/cluster.yaml", "-f", "examples/stuck.yaml")
    assert document["winner"] is None
    assert document["fixes"][0] == {"kind": "request", "change": "ask for at most 2820m cpu (now 3200m)", "nodes": 2}


def test_the_snapshot_lacks_nothing() -> None:
    command = [sys.executable, "-m", "wukong", "explain", "-s", "examples/cluster.yaml", "pod/shop/ledger-0"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "holds no" not in result.stderr
    assert "It runs on od-a1 now." in result.stdout


@pytest.mark.slow
@pytest.mark.xdist_group("demo")  # one worker, so that it is played once
def test_the_demo_runs_through_and_shows_the_proof() -> None:
    printed = play_demo()
    assert "\x1b" not in printed
    assert printed.count("$ wukong ") == 11
    assert printed.index("Never ends, in 16 of 16.") < printed.index("Completes in about 1 min 4 s, in 16 of 16.")
    assert "ProgressDeadlineExceeded" in printed
    assert printed.count("Settled: every workload is as it should be.") == 4
    assert "ask for at most 2820m cpu" in printed
    assert "No mismatches.\n" in printed
    assert printed.endswith("pipx install .\n")


def test_the_demo_plays_the_same_reclaim_with_and_without_the_mover() -> None:
    """Nothing but the component and what is expected differs; the demo runs both, first the one without."""
    folder = ROOT / "examples" / "sim"
    names = ("spot-without-mover.yaml", "spot-mover.yaml")
    without, with_mover = (yaml.safe_load((folder / name).read_text("utf-8")) for name in names)
    assert (without.pop("components"), with_mover.pop("components")) == ([], ["spot"])
    expected = [scenario.pop("expect")["workloads"] for scenario in (without, with_mover)]
    assert without == with_mover
    fewest = [{name: workload["minAvailable"] for name, workload in it.items()} for it in expected]
    assert fewest[0] == {"default/web": 1, "default/solo": 0, "default/db": 1}
    assert fewest[1] == {"default/web": 3, "default/solo": 1, "default/db": 2}
    script = (ROOT / "examples" / "demo.sh").read_text("utf-8")
    commands = [line for line in script.splitlines() if line.startswith("run")]
    first, second = (commands.index(f"run wukong sim run examples/sim/{name}") for name in names)
    assert second == first + 1
