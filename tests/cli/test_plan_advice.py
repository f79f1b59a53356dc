"""`wukong plan`: warnings and advice, and the patch that makes a change safe."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.conftest import Wukong
from wukong.forecast.advice.patches import make_patch

FOLDER = Path(__file__).parents[2] / "examples" / "plan"
CLUSTER, WEB, FIXED = FOLDER / "cluster.yaml", FOLDER / "web.yaml", FOLDER / "web-fixed.yaml"
PLAN = ("plan", "-s", CLUSTER, "-f", WEB, "--seeds", "2")


@pytest.mark.slow
def test_what_would_make_it_safe_is_shown_and_can_be_pasted(wukong: Wukong) -> None:
    lines = wukong(*PLAN).out.splitlines()
    begin = lines.index("What would make it safe")
    assert lines[begin + 1] == "  1. Set maxUnavailable: 1 in the strategy of Deployment shop/web."
    assert lines[begin + 2].startswith(
        "     Then it completes in about 1 min 4 s, in 2 of 2. While a rollout lasts 2 of 3"
    )
    pasted = yaml.safe_load("\n".join(line[7:] for line in lines[begin + 3 : lines.index("", begin)][:10]))
    assert pasted["spec"]["strategy"]["rollingUpdate"] == {"maxUnavailable": 1}


@pytest.mark.slow
def test_the_patch_that_is_written_makes_the_change_safe(wukong: Wukong, tmp_path: Path) -> None:
    folder = tmp_path / "patch"
    run = wukong(*PLAN, "--write-patch", folder)
    assert run.code == 1
    assert f"{folder}: 1 patch written." in run.err
    (entry,) = yaml.safe_load((folder / "kustomization.yaml").read_text("utf-8"))["patches"]
    patch = yaml.safe_load((folder / entry["path"]).read_text("utf-8"))
    changed: dict[str, Any] = make_patch(yaml.safe_load(WEB.read_text("utf-8")), patch)
    (tmp_path / "web.yaml").write_text(yaml.safe_dump(changed), "utf-8")
    assert wukong("plan", "-s", CLUSTER, "-f", tmp_path / "web.yaml", "--seeds", "2").code == 0


def test_nothing_is_overwritten_nor_played_for_a_folder_that_is_there(wukong: Wukong, tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("mine", "utf-8")
    run = wukong(*PLAN, "--write-patch", tmp_path)
    assert (run.code, run.out) == (2, "")
    assert "expected a folder that is not there yet, or is empty" in run.err
    assert [file.name for file in tmp_path.iterdir()] == ["mine.yaml"]
    assert wukong(*PLAN, "--write-patch", tmp_path / "new", "--no-advice").code == 2


def test_a_safe_change_needs_no_patch(wukong: Wukong, tmp_path: Path) -> None:
    run = wukong("plan", "-s", CLUSTER, "-f", FIXED, "--seeds", "1", "--write-patch", tmp_path / "patch")
    assert run.code == 0
    assert not (tmp_path / "patch").exists()


def test_a_warning_is_enough_to_fail_where_that_is_asked(wukong: Wukong, tmp_path: Path) -> None:
    changed = yaml.safe_load(FIXED.read_text("utf-8"))
    changed["spec"]["template"]["spec"]["topologySpreadConstraints"] = [
        {
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": {"app": "wbe"}},
        }
    ]
    (tmp_path / "web.yaml").write_text(yaml.safe_dump(changed), "utf-8")
    arguments = ("plan", "-s", CLUSTER, "-f", tmp_path / "web.yaml", "--seeds", "1", "-o", "json")
    run = wukong(*arguments)
    assert run.code == 0
    (warning,) = run.document["warnings"]
    assert (warning["code"], warning["subject"]) == ("selector-matches-nothing", "Deployment shop/web")
    assert wukong(*arguments, "--fail-on", "warning").code == 1


def test_without_advice_nothing_is_looked_for(wukong: Wukong) -> None:
    run = wukong(*PLAN, "--no-advice", "-o", "json")
    assert (run.code, run.document["advice"]) == (1, [])
