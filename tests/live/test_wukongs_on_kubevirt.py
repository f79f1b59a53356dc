"""What is built of Wukongs, on KubeVirt's real admission: taken unchanged, or refused in its own words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from live.bad_wukongs import KUBEVIRT, BadWukong, bad_wukongs_of
from random_wukongs import random_wukong
from testbed.client import ApiError, Client, as_json
from testbed.pytest_plugin import Bed
from wukong.api.kinds import VIRTUAL_MACHINES
from wukong.api.vm import Wukong
from wukong.placement.vm import VmSettings, build_virtual_machine, find_change_effects
from wukong.placement.vm.changes import is_within
from wukong.ports import Document

GOLDEN = sorted((Path(__file__).parents[1] / "golden" / "vm").glob("*.vm.yaml"))
SAMPLE = range(60)  # of the random Wukongs


async def store(client: Client, machine: Document) -> Document:
    """The VirtualMachine as it would be stored: all of admission, nothing kept."""
    namespace = "default"
    body = {**machine, "metadata": {**machine["metadata"], "namespace": namespace}}
    params = {"dryRun": "All", "fieldValidation": "Strict"}
    return as_json(await client.send("POST", VIRTUAL_MACHINES.path(namespace), body, params=params))


def build(document: Document) -> Document:
    wukong = msgspec.convert(document, Wukong)
    wukong.metadata.uid = "00000000-0000-0000-0000-000000000001"
    return build_virtual_machine(wukong, wukong.metadata.name, VmSettings())


def assert_unchanged(stored: Document, built: Document) -> None:
    assert is_within(built["spec"], stored["spec"])
    assert find_change_effects(stored["spec"], built["spec"]) == []
    assert stored["spec"]["template"]["spec"].get("affinity") == built["spec"]["template"]["spec"].get("affinity")


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.name.removesuffix(".vm.yaml"))
async def test_kubevirt_stores_a_golden_machine_as_it_is(kubevirt_bed: Bed, path: Path) -> None:
    async with kubevirt_bed.client() as client:
        for built in yaml.safe_load_all(path.read_text("utf-8")):
            assert_unchanged(await store(client, built), built)


async def test_kubevirt_stores_the_machines_of_random_wukongs_as_they_are(kubevirt_bed: Bed) -> None:
    async with kubevirt_bed.client() as client:
        for seed in SAMPLE:
            built = build(random_wukong(seed))
            try:
                assert_unchanged(await store(client, built), built)
            except ApiError as error:
                pytest.fail(f"random_wukong({seed}): {error}")


@pytest.mark.parametrize("bad", bad_wukongs_of(KUBEVIRT), ids=lambda bad: bad.name)
async def test_kubevirt_refuses_what_only_it_knows_with_the_path(kubevirt_bed: Bed, bad: BadWukong) -> None:
    document: dict[str, Any] = {"metadata": {"name": bad.name, "namespace": "default"}, "spec": bad.spec}
    async with kubevirt_bed.client() as client:
        with pytest.raises(ApiError) as caught:
            await store(client, build(document))
    assert bad.path in str(caught.value)
    assert bad.says in str(caught.value)
