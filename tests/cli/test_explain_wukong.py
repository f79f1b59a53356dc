"""`wukong explain wk/NAME`: the pod that is there, or the one that KubeVirt would make, and what would help."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from cli.conftest import Wukong
from cli.manifests import Manifest, node, write_json
from cli.test_get import a_document
from vms import a_launcher, a_vm, a_wukong, an_instance
from wukong.placement.vm import VmSettings, build_virtual_machine

DEVICES = {f"devices.kubevirt.io/{name}": "1000" for name in ("kvm", "tun", "vhost-net")}


def a_virt_node(name: str, **labels: str) -> Manifest:
    """A node on which KubeVirt runs."""
    all_labels = {"kubernetes.io/arch": "amd64", "kubevirt.io/schedulable": "true", **labels}
    document = node(name, **all_labels, **{"machine-type.node.kubevirt.io/q35": "true"})
    document["status"]["allocatable"] |= {**DEVICES, "ephemeral-storage": "10Gi"}
    return document


def write(path: Path, *documents: Manifest) -> None:
    write_json(path / "cluster.json", *documents)


def explain(wukong: Wukong, key: str = "wk/shop/web") -> Any:
    run = wukong("explain", key, "-s", "cluster.json", "-o", "json")
    assert run.code == 0, run.err
    return run.document


def test_a_pod_that_is_not_there_yet_is_built_as_kubevirt_would(wukong: Wukong, tmp_path: Path) -> None:
    spec: dict[str, Any] = {"nodeSelector": {"disk": "ssd"}, "schedulingPolicy": {"priority": 100}}
    wk = a_wukong(scheduling=spec)
    write(tmp_path, a_virt_node("a"), a_virt_node("b", disk="ssd"), node("c", disk="ssd"), a_document(wk))
    document = explain(wukong)
    assert document["pod"] == "Wukong shop/web, virtual machine web"
    assert (document["winner"], document["feasible"], document["nodes"]) == ("b", 1, 3)


def test_a_virtual_machine_that_waits_is_explained_with_the_fixes(wukong: Wukong, tmp_path: Path) -> None:
    wk = a_wukong(replicas=2, highAvailability={"antiAffinity": True})
    first, second = (a_vm(build_virtual_machine(wk, f"web-{index}", VmSettings())) for index in range(2))
    running, waiting = an_instance(first, "a"), an_instance(second)
    pods = a_launcher(running, "a"), a_launcher(waiting, refusal="0/1 nodes are available.")
    write(tmp_path, node("a"), *map(a_document, (wk, first, second, running, waiting, *pods)))
    document = explain(wukong)
    assert document["pod"] == "Wukong shop/web, virtual machine web-1"
    assert document["feasible"] == 0
    assert [fix["change"] for fix in document["fixes"]] == ["add one node like a"]  # both keep the other away


def test_a_virtual_machine_that_runs_is_placed_again(wukong: Wukong, tmp_path: Path) -> None:
    wk = a_wukong(highAvailability={"antiAffinity": True})
    vm = a_vm(build_virtual_machine(wk, "web", VmSettings()))
    instance = an_instance(vm, "a")
    write(tmp_path, node("a"), *map(a_document, (wk, vm, instance, a_launcher(instance, "a"))))
    document = explain(wukong)
    assert (document["runsOn"], document["winner"]) == ("a", "a")


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("wk/shop/wep", 'no Wukong shop/wep there. Did you mean "shop/web"?'),
        ("wk/shop/none", "asks for no virtual machine: replicas is 0"),
        ("wk/shop/bad", "Wukong shop/bad: $.spec.scheduling.schedulingPolicy.rules[0].name"),
        ("vm/shop/web", "expected pod/NAMESPACE/NAME or wk/NAMESPACE/NAME"),
    ],
)
def test_what_cannot_be_explained_is_said(wukong: Wukong, tmp_path: Path, key: str, message: str) -> None:
    rules = {"schedulingPolicy": {"rules": [{"name": "no-such-rule", "type": "score"}]}}
    wukongs = a_wukong(), a_wukong("none", replicas=0), a_wukong("bad", scheduling=rules)
    write(tmp_path, node("a"), *(msgspec.to_builtins(a_document(wk)) for wk in wukongs))
    run = wukong("explain", key, "-s", "cluster.json")
    assert run.code == 2
    assert message in run.err
