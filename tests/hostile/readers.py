"""How each verb reads its files, without its command line: path in, InputError or nothing out."""

from __future__ import annotations

import json
from collections import Counter as Tally
from collections.abc import Callable
from typing import Any, NamedTuple

from hostile import good_files
from wukong.api.decode import decode_objects
from wukong.api.objects import Objects
from wukong.api.versions import find_version
from wukong.app.components.extender.options import ExtenderOptions, latencies_of, prices_of
from wukong.app.rules import load_rules
from wukong.app.run_config import read_run_config
from wukong.cli.inputs.manifest import read_manifest
from wukong.cli.inputs.namespaces import DEFAULT, Namespace
from wukong.cli.inputs.policies import read_policies
from wukong.cli.inputs.scheduler import Profiles
from wukong.cli.inputs.sim_source import add_changes, read_scenario_file, read_start
from wukong.cli.inputs.source import Source
from wukong.cli.verbs.lint import read_wukong_files
from wukong.cli.verbs.replay import replay_file
from wukong.cli.verbs.run import read_file
from wukong.cluster.credentials import load as load_credentials
from wukong.cluster.files import read_objects
from wukong.embedded.scenario import Scenario

RULES = load_rules()


class Reader(NamedTuple):
    read: Callable[[str], object]
    documents: list[Any]  # good ones
    is_lines: bool = False  # one JSON object a line


def a_small_cluster() -> Objects:
    objects = Objects()
    for subject in decode_objects(json.dumps(good_files.SNAPSHOTS[0]).encode(), skipped=Tally()):
        objects.add(subject)
    return objects


IN_DEFAULT = Namespace(DEFAULT, "")
READERS: dict[str, Reader] = {
    "snapshot": Reader(lambda path: read_objects(path, Tally()), good_files.SNAPSHOTS),
    "snapshot to play on": Reader(
        lambda path: read_start(Source(path), Scenario(), (), lambda: IN_DEFAULT), good_files.SNAPSHOTS
    ),
    "manifest": Reader(lambda path: read_manifest(path, a_small_cluster(), IN_DEFAULT), good_files.MANIFESTS),
    "manifest to play": Reader(lambda path: add_changes(Scenario(), [path], lambda: IN_DEFAULT), good_files.MANIFESTS),
    "policy": Reader(lambda path: read_policies([path], RULES, IN_DEFAULT), good_files.POLICIES),
    "wukongs": Reader(lambda path: read_wukong_files((path,), IN_DEFAULT), good_files.WUKONGS),
    "scheduler config": Reader(lambda path: Profiles(path).of(find_version("1.35")[0]), good_files.SCHEDULER_CONFIGS),
    "run config": Reader(lambda path: read_run_config({}, read_file(path), path), good_files.RUN_CONFIGS),
    "prices": Reader(lambda path: prices_of(ExtenderOptions(prices=path)), good_files.PRICES),
    "latencies": Reader(lambda path: latencies_of(ExtenderOptions(latencies=path)), good_files.LATENCIES),
    "kubeconfig": Reader(lambda path: load_credentials(path, env={}), good_files.KUBECONFIGS),
    "scenario": Reader(read_scenario_file, good_files.SCENARIOS),
    "recording": Reader(lambda path: replay_file(path, None, Profiles(None)), good_files.RECORDINGS, is_lines=True),
}
