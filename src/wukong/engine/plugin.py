"""What a plugin is: something that, compiled for one pod on one snapshot, filters nodes or scores them.

The built-in plugins and your own look alike: one file in plugins/, one line in plugins/registry.py. A plugin compiles a
pod into a `FilterPart` and/or a `ScorePart`; returning None means it has nothing to say about this pod.

    NODE       the answer depends on the node and the pod only: computed once per node change
    LOAD       ... and on what is placed on that very node: computed again for the nodes that changed
    CLUSTER    ... and on anything else: `refresh` is asked before every decision
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from wukong.engine.arrays import ALL, Index, Ints, Mask, Rows
from wukong.engine.refusal_detail import RefusalDetail

if TYPE_CHECKING:
    from wukong.engine.snapshot import Snapshot
    from wukong.engine.template import Template
    from wukong.engine.view import View

MAX_SCORE = 100


class Scope(Enum):
    NODE = "node"
    LOAD = "load"
    CLUSTER = "cluster"


class Load(NamedTuple):
    """What the nodes in question would hold: `lines[line, i]` for the i-th node asked about, as in Snapshot.load.

    `extra[i]` of it are hypothetical pods of the template being decided (None: no such pods).
    """

    lines: Ints
    extra: Ints | None = None


class Reason(NamedTuple):
    """Why a node was refused. `is_final`: taking pods off the node cannot help, so preemption skips it."""

    text: str
    is_final: bool = True


class FilterPart:
    """A filter compiled for one pod."""

    scope = Scope.NODE

    def failing(self, rows: Rows, load: Load) -> list[tuple[Reason, Mask]]:
        """For each reason, which of the nodes in question fail by it. One node may fail by several."""
        raise NotImplementedError

    def find_unresolvable(self, rows: Rows, load: Load) -> Mask:
        """Which of the nodes in question fail in a way that taking pods off the node cannot resolve."""
        failing = self.failing(rows, load)
        masks = [mask for reason, mask in failing if reason.is_final]
        return np.logical_or.reduce(masks) if masks else np.zeros(count_nodes(rows, load), dtype=np.bool_)

    def allows(self, row: int, snapshot: Snapshot) -> bool:
        """Whether this one node passes, given the snapshot as it is now. Override where a cheaper check exists."""
        self.refresh()
        rows = np.array([row], dtype=np.intp)
        return not any(mask[0] for _, mask in self.failing(rows, Load(snapshot.load[:, rows])))

    def describe(self, rows: list[int]) -> dict[int, list[RefusalDetail]]:
        """What exactly keeps the pod off each of these nodes, all of which are refused. Beside the reasons, for people;
        nothing about a node: the reason says it all."""
        return {}

    def find_problem(self) -> str:
        """Why the pod goes nowhere, whatever the node (PreFilter): then every node fails. "" if there is no such."""
        return ""

    def count_trial(self, template: Template, row: int, change: int) -> None:
        """Hear of a placed pod that preemption takes away on trial (-1) or puts back (+1), after the snapshot has."""

    def refresh(self) -> Index | slice | None:
        """CLUSTER scope: rows whose answer may have changed since the last call (ALL: any; None: none)."""
        return ALL

    def blocks_itself(self) -> bool | None:
        """CLUSTER scope: what one more pod of this template on a node does to the answers.

        True: that node, and only it, is refused from then on. False: nothing. None: other nodes may be concerned.
        """
        return None


class ScorePart:
    """A score compiled for one pod. `raw` gives integers; `normalise` brings those of the feasible nodes to 0–100."""

    scope = Scope.NODE
    normalise: Callable[[Ints, int, int], Ints] | None = (
        None  # (raw, lowest, highest among feasible); None: already 0–100
    )

    def raw(self, rows: Rows, load: Load) -> Ints:
        raise NotImplementedError

    def is_skipped(self) -> bool:
        """CLUSTER scope: there is nothing to score just now; the plugin then counts 0 for every node."""
        return False

    def refresh(self) -> bool:
        """CLUSTER scope: whether raw scores may have changed since the last call."""
        return True

    def depends_on_own_pods(self) -> bool:
        """CLUSTER scope: whether one more pod of this template changes any raw score."""
        return True


class FeasibleScorePart(ScorePart):
    """A score that needs to know which nodes are feasible before it can say anything (topology spread)."""

    scope = Scope.CLUSTER

    def score_feasible(self, feasible: Mask) -> Ints:
        """The finished 0–100 scores of all nodes; only those of feasible nodes are read."""
        raise NotImplementedError

    def raw(self, rows: Rows, load: Load) -> Ints:
        raise TypeError("scored by score_feasible()")


class Plugin:
    """Base of all plugins. `name` is what profiles, messages and reports call it."""

    name = ""

    def filter(self, view: View) -> FilterPart | None:
        return None

    def score(self, view: View) -> ScorePart | None:
        return None

    def find_scoring_error(self, view: View) -> str:
        """Why scoring this pod fails in every scheduling cycle; "" if it does not."""
        return ""

    def filter_candidates(self, view: View, candidates: dict[str, tuple[str, ...]]) -> Collection[str]:
        """The candidate nodes of preemption that this plugin agrees to; `candidates` is node → keys of its victims."""
        return candidates


def count_nodes(rows: Rows, load: Load) -> int:
    """How many nodes are in question."""
    return load.lines.shape[1] if isinstance(rows, slice) else len(rows)


def highest_is_best(raw: Ints, lowest: int, highest: int) -> Ints:
    """Scale so that the highest becomes 100."""
    return raw * MAX_SCORE // highest if highest else raw


def lowest_is_best(raw: Ints, lowest: int, highest: int) -> Ints:
    """Scale so that 0 becomes 100 and the highest 0; all 100 if nobody has any."""
    return MAX_SCORE - raw * MAX_SCORE // highest if highest else np.full_like(raw, MAX_SCORE)


def between_lowest_and_highest(raw: Ints, lowest: int, highest: int) -> Ints:
    """Scale so that the lowest becomes 0 and the highest 100; all 0 if they are equal."""
    if highest == lowest:
        return np.zeros_like(raw)
    scaled: Ints = (MAX_SCORE * ((raw - lowest) / (highest - lowest))).astype(np.int64)
    return scaled
