"""`wukong replay`: decides recorded attempts again and compares. The proof that Wukong decides like kube-scheduler."""

from __future__ import annotations

import click

from wukong.api.versions import Version
from wukong.cli.inputs import options
from wukong.cli.inputs.recording import read_scenarios
from wukong.cli.inputs.scheduler import Profiles, read_version
from wukong.cli.views.console import progress
from wukong.cli.views.results import show_replay
from wukong.cluster import place_name
from wukong.engine.replay import Report, replay_scenario
from wukong.errors import InputError

DIFFERS = 1  # exit code, as `kubectl diff` has it


@click.command("replay")
@click.argument("file")
@options.kubernetes
@options.scheduler_config
@options.output
def command(file: str, kubernetes: str | None, scheduler_config: str | None, output: str | None) -> int:
    """Decide recorded scheduling attempts again and compare.

    FILE holds decisions recorded from a real kube-scheduler: JSON lines, one scenario each, gzip or not; - is stdin.
    Every feasible set, every plugin's points, every message and every list of preemption victims is compared.
    Without --kubernetes each scenario is decided as in the version that recorded it.

    Ends with 0 if nothing differs, 1 if something does, 2 if the recording cannot be read.

    \b
    Example:
      wukong replay tests/golden/kube-scheduler-1.35.jsonl.gz
      wukong replay --scheduler-config packing.yaml packing.jsonl.gz -o json
    """
    options.refuse_stdin_twice(file=file, scheduler_config=scheduler_config)
    report = replay_file(file, kubernetes, Profiles(scheduler_config))
    show_replay(report, output)
    return DIFFERS if report.mismatches else 0


def replay_file(file: str, kubernetes: str | None, profiles: Profiles) -> Report:
    report = Report()
    chosen_version = read_version(kubernetes, "--kubernetes") if kubernetes else None
    recorded_versions: dict[str, Version] = {}  # each is looked up once, so that a note on it is said once
    with progress("Replaying") as report_progress:
        for line, scenario in read_scenarios(file, report_progress):
            place = f"{place_name(file)}: line {line}"
            if chosen_version is None and scenario.version not in recorded_versions:
                recorded_versions[scenario.version] = read_version(scenario.version, f"{place}: $.version")
            profile = profiles.of(chosen_version or recorded_versions[scenario.version])
            try:
                replay_scenario(scenario, line, profile, report)
            except InputError as error:
                raise error.at(place) from None
    return report
