"""A Wukong becomes a VirtualMachine: every field arrives where KubeVirt reads it."""

from __future__ import annotations

from wukong.api.vm import NAME_LABEL
from wukong.placement.vm import is_bootable
from wukongs import a_wukong, build


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
