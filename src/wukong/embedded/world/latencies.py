"""How long the controllers of a real cluster take, in milliseconds: data, read by timing.py.

Read off the audit log of a control plane on the test bed, whose two cores had other work to do for a part of the time:
the last numbers of a row are its tail. Numbers of workers are the defaults of kube-controller-manager 1.35
(pkg/controller/*/config/v1alpha1/defaults.go).
"""

from __future__ import annotations

from typing import NamedTuple

PASSING_SECONDS = 0.2  # what is over sooner is only how controllers get from one state to the next


class Spread(NamedTuple):
    """Milliseconds that are undercut by no draw, half, nine tenths and 99 hundredths of the draws, and by all."""

    least: int
    median: int
    p90: int
    p99: int
    most: int


class Latency(NamedTuple):
    """`hearing`: from a write until a free worker takes up what it concerns. `writing`: until one write is answered.

    `deciding` keeps one of the `workers` busy before the first write. Writes do so, too, unless they go on `aside`.
    What is `apart` is not one program but many, which hear of things independently of each other.
    """

    hearing: Spread
    writing: Spread
    deciding: int = 0
    workers: int = 5
    writes_aside: bool = False
    is_apart: bool = False


HEARING = Spread(1, 3, 12, 40, 90)
WRITING = Spread(2, 4, 15, 45, 90)
ANY = Latency(HEARING, WRITING)
MANY = 1_000_000  # workers: as many as there is work

LATENCIES: dict[str, Latency] = {
    "daemonset": ANY._replace(workers=2),
    "disruption": ANY._replace(workers=1),
    "drain": ANY._replace(workers=MANY, is_apart=True),  # kubectl evicts all pods of a node side by side
    "garbage": ANY._replace(workers=20),
    "kubelet": ANY._replace(workers=MANY, is_apart=True),
    "namespace": ANY._replace(workers=10),
    "nodelifecycle": ANY._replace(workers=8),
    "podgc": ANY._replace(workers=1),
    "scheduler": ANY._replace(deciding=1, workers=1, writes_aside=True),  # bindings go on beside the next decision
    "tainteviction": ANY._replace(workers=8),
}
