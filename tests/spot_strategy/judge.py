"""Who holds examples/sim/spot-strategy.yaml to its word: hears every change, and shares no code with who decides.

The same judge looks at the embedded cluster (tests/scenarios/test_spot_strategy.py) and at a real one
(tests/live/test_spot_strategy.py). It goes by names: nodes called `spot-…` are spot nodes, all others are on demand.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

BASE, SPOT_PERCENT = 2, 60  # of web, as its policy has it
ON_DEMAND = "on-demand"
Layout = dict[str, tuple[int, int, int]]  # by app: pods on spot nodes, on demand, and without a node


class SeenPod(NamedTuple):
    """What the judge knows of a pod."""

    uid: str
    app: str
    node: str  # "" while it has none
    decided: str  # by its mark: "spot", "on-demand", or "" for nothing
    is_leaving: bool  # it is being deleted, or over
    is_ready: bool

    @property
    def is_on_spot(self) -> bool:
        return self.node.startswith("spot-")

    @property
    def counts_on_demand(self) -> bool:
        return not self.is_on_spot if self.node else self.decided == ON_DEMAND


class Judge:
    def __init__(self) -> None:
        self.pods: dict[str, SeenPod] = {}  # by uid
        self.fewest_ready = 0  # of web: what its budget promises while a node is drained
        self.sizes: Counter[int] = Counter()  # of web: how often it was looked at with so many pods
        self.violations: list[str] = []

    def note(self, pod: SeenPod) -> None:
        """A pod came, or changed."""
        self.pods[pod.uid] = pod
        if pod.app == "payments" and pod.is_on_spot:
            self.violations.append(f"{pod} is critical")
        if pod.decided == ON_DEMAND and pod.is_on_spot:
            self.violations.append(f"{pod} was to go on demand")
        if pod.app == "web":
            self._judge_share()

    def forget(self, uid: str) -> None:
        """A pod is gone."""
        pod = self.pods.pop(uid, None)
        if pod is not None and pod.app == "web":
            self._judge_share()

    def _judge_share(self) -> None:
        """Base and share hold at every moment: more may be on demand, where spot nodes are full or gone, never fewer.

        The story's steps are such that pods on their way may come in any order.
        """
        pods = [pod for pod in self.pods.values() if pod.app == "web" and not pod.is_leaving]
        on_demand, total = sum(pod.counts_on_demand for pod in pods), len(pods)
        self.sizes[total] += 1
        if on_demand < max(min(BASE, total), total - total * SPOT_PERCENT // 100):
            self.violations.append(f"{on_demand} of {total} pods of web are on demand: {pods}")
        ready = sum(pod.is_ready for pod in pods)
        if ready < self.fewest_ready:
            self.violations.append(f"{ready} pods of web are ready, {self.fewest_ready} must be: {pods}")

    def layout(self) -> Layout:
        apps: dict[str, list[SeenPod]] = {}
        for pod in self.pods.values():
            apps.setdefault(pod.app, []).append(pod)
        return {
            app: (
                sum(pod.is_on_spot for pod in pods),
                sum(bool(pod.node) and not pod.is_on_spot for pod in pods),
                sum(not pod.node for pod in pods),
            )
            for app, pods in sorted(apps.items())
        }

    @property
    def is_at_rest(self) -> bool:
        """Nobody comes or goes."""
        return not any(pod.is_leaving or (pod.node and not pod.is_ready) for pod in self.pods.values())
