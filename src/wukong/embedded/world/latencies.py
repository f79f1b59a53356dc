"""How long the controllers of a real cluster take, in milliseconds: data, read by timing.py.

Measured on the test bed with `python -m testbed latencies` on 2026-11-16, Kubernetes 1.35.8, on two cores with other
work to do (docs/fidelity.md has the table): the last numbers of a row are its tail. What was measured fewer than 48
times has the numbers of all controllers together, and nothing takes less than a millisecond. Numbers of workers are
the defaults of kube-controller-manager 1.35 (pkg/controller/*/config/v1alpha1/defaults.go) and of virt-controller 1.7.
"""

from __future__ import annotations

from typing import NamedTuple

# What is over sooner is only how controllers get from one state to the next; the quickest pod takes 0.25 s to start.
PASSING_SECONDS = 0.24


class Spread(NamedTuple):
    """Milliseconds that are undercut by no draw, half, nine tenths and 99 hundredths of the draws, and by all."""

    least: int
    median: int
    p90: int
    p99: int
    most: int


class Latency(NamedTuple):
    """`hearing`: from a write until a free worker has decided what follows. `writing`: until one write is answered.

    `deciding`: milliseconds for which one of the `workers` is busy before the first write. Writes keep it busy, too,
    unless they go on aside. What `is_apart` is not one program but many, which hear of things each in their own time.
    """

    hearing: Spread
    writing: Spread
    deciding: int = 0
    workers: int = 5
    writes_aside: bool = False
    is_apart: bool = False


HEARING = Spread(1, 3, 11, 34, 100)
WRITING = Spread(1, 5, 18, 45, 100)
WEBHOOK_WRITING = Spread(5, 20, 35, 60, 100)  # of KubeVirt's objects: a machine has its pod after 100 to 170 ms
ANY = Latency(HEARING, WRITING)
MANY = 1_000_000  # workers: as many as there is work
# Decides one pod after the other; bindings go on beside the next decision.
SCHEDULING = Latency(Spread(1, 2, 10, 25, 45), Spread(1, 6, 16, 34, 37), deciding=1, workers=1, writes_aside=True)

LATENCIES: dict[str, Latency] = {
    "cloud-provider": ANY._replace(workers=MANY, is_apart=True),
    "cluster-autoscaler": ANY._replace(workers=1),
    "daemonset": ANY._replace(workers=2),
    "deployment": Latency(Spread(1, 2, 9, 30, 74), Spread(1, 5, 20, 45, 95)),
    "disruption": Latency(Spread(1, 4, 18, 48, 50), Spread(1, 5, 17, 51, 59), workers=1),
    "drain": ANY._replace(workers=MANY, is_apart=True),  # kubectl evicts all pods of a node side by side
    "garbage": ANY._replace(workers=20),
    "kubelet": Latency(Spread(1, 5, 15, 37, 93), WRITING, workers=MANY, is_apart=True),
    "namespace": ANY._replace(workers=10),
    "node-removal": ANY._replace(workers=MANY),  # evicts all pods of a node side by side
    "nodelifecycle": Latency(Spread(2, 4, 9, 14, 15), Spread(2, 3, 7, 12, 26), workers=8),
    "podgc": ANY._replace(workers=1),
    "replicaset": Latency(Spread(1, 2, 14, 38, 100), Spread(1, 6, 20, 64, 100)),
    "scheduler": SCHEDULING,
    "tainteviction": ANY._replace(workers=8),
    "virt-evacuation": Latency(HEARING, WEBHOOK_WRITING, workers=3),
    "virt-handler": Latency(HEARING, WEBHOOK_WRITING, workers=MANY, is_apart=True),
    "virt-migration": Latency(HEARING, WEBHOOK_WRITING, workers=3),
    "virt-node": Latency(HEARING, WRITING, workers=3),
    "virt-vm": Latency(HEARING, WEBHOOK_WRITING, workers=3),
    "virt-vmi": Latency(HEARING, WEBHOOK_WRITING, workers=10),
    "wukong-scheduler": SCHEDULING,
}
