"""A Wukong becomes a VirtualMachine: every field arrives where KubeVirt reads it."""

from __future__ import annotations

from typing import Any

import msgspec

from wukong.api.vm import NAME_LABEL, Wukong
from wukong.placement.vm import VmSettings, build_virtual_machine, find_wukong_problems, is_bootable
from wukong.ports import Document


def a_wukong(name: str = "web", **spec: Any) -> Wukong:
    metadata = {"name": name, "namespace": "shop", "uid": "u-1"}
    return msgspec.convert({"metadata": metadata, "spec": spec}, Wukong)


def build(wukong: Wukong, **settings: Any) -> Document:
    assert find_wukong_problems(wukong, {}) == []
    return build_virtual_machine(wukong, wukong.metadata.name, VmSettings(**settings))


def template_spec_of(wukong: Wukong, **settings: Any) -> Document:
    spec: Document = build(wukong, **settings)["spec"]["template"]["spec"]
    return spec


def test_the_smallest_wukong_is_one_cpu_and_one_gi_on_the_pod_network() -> None:
    labels = {NAME_LABEL: "web"}
    assert build(a_wukong()) == {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachine",
        "metadata": {
            "name": "web",
            "namespace": "shop",
            "labels": labels,
            "ownerReferences": [
                {
                    "apiVersion": "vm.novasphere.dev/v1alpha1",
                    "kind": "Wukong",
                    "name": "web",
                    "uid": "u-1",
                    "controller": True,
                }
            ],
        },
        "spec": {
            "runStrategy": "Always",
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "domain": {
                        "cpu": {"cores": 1},
                        "memory": {"guest": "1Gi"},
                        "devices": {"interfaces": [{"name": "default", "masquerade": {}}]},
                    },
                    "networks": [{"name": "default", "pod": {}}],
                    "evictionStrategy": "LiveMigrateIfPossible",
                },
            },
        },
    }
    assert not is_bootable(a_wukong())
