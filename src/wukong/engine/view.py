"""A view: one pod template compiled against one snapshot, with every node's verdict and score kept current.

`Snapshot` changes are read from its log and its counters, so a decision recomputes only what a placement changed:

    feasible[node]  = fixed_ok & load_ok & every CLUSTER filter
    total[node]     = fixed_score + load_score + Σ weight × normalised score      (INFEASIBLE where not feasible)

place.py asks for `total`; decide.py and explain.py ask why. Parts come from plugins/ in the profile's order.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from wukong.api.profile import Profile
from wukong.engine.arrays import ALL, INFEASIBLE, Index, Ints, Mask, Rows
from wukong.engine.plugin import FeasibleScorePart, FilterPart, Load, Plugin, Scope, ScorePart
from wukong.engine.snapshot import Snapshot
from wukong.engine.template import Template

Plugins = dict[str, Plugin]


class WeightedScore:
    """One score plugin of a view: its part, its weight and, unless it is summed elsewhere, its current scores."""

    __slots__ = ("high", "is_flat", "low", "name", "part", "raw", "value", "weight")

    def __init__(self, name: str, weight: int, part: ScorePart) -> None:
        self.name, self.weight, self.part = name, weight, part
        self.raw: Ints | None = None
        self.value: Ints | None = None  # [node] weighted, 0–100 × weight
        self.low = self.high = 0
        self.is_flat = False  # every node has the same raw score: then it does not matter which are feasible

    def set_raw(self, raw: Ints) -> None:
        self.raw, self.value = raw, None
        self.is_flat = bool(len(raw)) and bool((raw == raw[0]).all())

    def normalise(self, feasible: Mask) -> None:
        """Bring the raw scores to 0–100 by the range among feasible nodes."""
        assert self.raw is not None
        assert self.part.normalise is not None
        # DefaultNormalizeScore starts its maximum at 0; raw scores normalised that way are never negative.
        self.high = int(np.where(feasible, self.raw, INFEASIBLE).max())
        self.low = int(np.where(feasible, self.raw, -INFEASIBLE).min())
        self.value = self.part.normalise(self.raw, self.low, self.high) * self.weight

    def may_change_range(self, rows: Index) -> bool:
        """Whether these nodes joining or leaving the feasible ones may move the range."""
        if self.raw is None:
            return True
        if self.is_flat:
            return False
        raw = self.raw[rows]
        if self.low == self.high:  # all feasible nodes alike: only a different one moves the range
            return bool((raw != self.low).any())
        return bool(((raw <= self.low) | (raw >= self.high)).any())


class View:
    def __init__(
        self, snapshot: Snapshot, template: Template, profile: Profile, plugins: Plugins, node_name: str = ""
    ) -> None:
        self.snapshot, self.template, self.profile = snapshot, template, profile
        self.plugins = plugins
        self.node_name = node_name
        self.filters = list(self._compile_filters())
        self.scores = list(self._compile_scores())
        self._split_parts()
        errors = ((name, plugins[name].find_scoring_error(self)) for name, _ in profile.scores)
        self.scoring_error = next((f'running PreScore plugin "{name}": {error}' for name, error in errors if error), "")
        count = len(snapshot.rows)
        self.fixed_ok: Mask = np.ones(count, dtype=np.bool_)
        for part in self._fixed_filters:
            self.fixed_ok = _apply_filter(self.fixed_ok, part, ALL, Load(snapshot.load))
        self.fixed_score: Ints = np.zeros(count, dtype=np.int64)
        for entry in self._fixed_scores:
            self.fixed_score += entry.part.raw(ALL, Load(snapshot.load)) * entry.weight
        for entry in self.normalised_scores:
            if entry.part.scope is Scope.NODE:
                entry.set_raw(entry.part.raw(ALL, Load(snapshot.load)))
        self.load_ok: Mask = np.ones(count, dtype=np.bool_)
        self.load_score: Ints = np.zeros(count, dtype=np.int64)
        self.feasible: Mask = np.zeros(count, dtype=np.bool_)
        self.total: Ints = np.full(count, INFEASIBLE, dtype=np.int64)
        self._read = -1  # how far the snapshot's log has been read; -1: nothing computed yet

    def _compile_filters(self) -> Iterator[tuple[str, FilterPart]]:
        for name in self.profile.filters:
            part = self.plugins[name].filter(self)
            if part is not None:
                yield name, part

    def _compile_scores(self) -> Iterator[WeightedScore]:
        for name, weight in self.profile.scores:
            part = self.plugins[name].score(self)
            if part is not None:
                yield WeightedScore(name, weight, part)

    def _split_parts(self) -> None:
        """Sort the parts by what makes them change."""
        filters = [part for _, part in self.filters]
        self._fixed_filters = [part for part in filters if part.scope is Scope.NODE]
        self._load_filters = [part for part in filters if part.scope is Scope.LOAD]
        self._cluster_filters = [part for part in filters if part.scope is Scope.CLUSTER]
        ready = [entry for entry in self.scores if entry.part.normalise is None and not _needs_feasible(entry)]
        self._fixed_scores = [entry for entry in ready if entry.part.scope is Scope.NODE]
        self._load_scores = [entry for entry in ready if entry.part.scope is Scope.LOAD]
        self._cluster_scores = [entry for entry in ready if entry.part.scope is Scope.CLUSTER]
        self.normalised_scores = [entry for entry in self.scores if entry.part.normalise is not None]
        self.feasible_scores = [entry for entry in self.scores if _needs_feasible(entry)]
        self.relative_scores = [*self._cluster_scores, *self.normalised_scores, *self.feasible_scores]

    # ---- keeping current

    def sync(self) -> None:
        """Bring the view up to date with the snapshot."""
        self._apply_changes(self._read_log())

    def sync_own(self, row: int, score: int | None) -> None:
        """The same when all that happened is one more pod of ours on `row`, whose LOAD score is known (None: full)."""
        self._read = len(self.snapshot.log)
        self.load_ok[row] = score is not None
        self.load_score[row] = score or 0
        self._apply_changes(np.array([row], dtype=np.intp))

    def _apply_changes(self, changed: Index | slice | None) -> None:
        refreshed = [part.refresh() for part in self._cluster_filters]
        if changed is ALL or any(isinstance(entry, slice) for entry in refreshed):
            self._sync_all()
            return
        touched_rows = [entry for entry in (changed, *refreshed) if isinstance(entry, np.ndarray)]
        changed_rows = self._update_feasible(_union(touched_rows)) if touched_rows else None
        if self._update_relative_scores(changed_rows):
            self._sum_up(ALL)
        elif touched_rows:
            self._sum_up(_union(touched_rows))

    def _read_log(self) -> Index | slice | None:
        log, start = self.snapshot.log, self._read
        self._read = len(log)
        if start < 0:
            self._update_load(ALL)
            return ALL
        if start == self._read:
            return None
        rows = np.array([log[start]] if self._read - start == 1 else list(set(log[start:])), dtype=np.intp)
        self._update_load(rows)
        return rows

    def _update_load(self, rows: Rows) -> None:
        load = Load(self.snapshot.load) if isinstance(rows, slice) else Load(self.snapshot.load[:, rows])
        self.load_ok[rows], self.load_score[rows] = self.evaluate_load(rows, load)

    def evaluate_load(self, rows: Rows, load: Load) -> tuple[Mask, Ints]:
        """What the LOAD parts say about these nodes holding this load: may the pod go there, and its score."""
        count = load.lines.shape[1]
        ok: Mask = np.ones(count, dtype=np.bool_)
        for part in self._load_filters:
            ok = _apply_filter(ok, part, rows, load)
        score: Ints | None = None
        for entry in self._load_scores:
            points = entry.part.raw(rows, load)
            points = points if entry.weight == 1 else points * entry.weight
            score = points if score is None else score + points
        return ok, np.zeros(count, dtype=np.int64) if score is None else score

    def _sync_all(self) -> None:
        feasible = self.fixed_ok & self.load_ok
        for part in self._cluster_filters:
            feasible = _apply_filter(feasible, part, ALL, Load(self.snapshot.load))
        changed_rows = np.flatnonzero(feasible != self.feasible)
        self.feasible = feasible
        self._update_relative_scores(changed_rows if len(changed_rows) else None)
        self._sum_up(ALL)

    def _update_feasible(self, rows: Index) -> Index | None:
        """Recompute whether these nodes are feasible; returns those for which it changed."""
        now = self.fixed_ok[rows] & self.load_ok[rows]
        load = Load(self.snapshot.load[:, rows]) if self._cluster_filters else None
        for part in self._cluster_filters:
            assert load is not None
            now = _apply_filter(now, part, rows, load)
        changed_rows: Index = rows[now != self.feasible[rows]]
        self.feasible[rows] = now
        return changed_rows if len(changed_rows) else None

    def _update_relative_scores(self, changed_rows: Index | None) -> bool:
        """Renew the scores that depend on other nodes. True if any node's may have changed."""
        if not self.feasible.any():
            for entry in self.relative_scores:
                entry.value = None  # no range to speak of: computed afresh once a node is feasible again
            return False
        changed = False
        for entry in self.relative_scores:
            part = entry.part
            is_new = part.scope is Scope.CLUSTER and part.refresh()
            if isinstance(part, FeasibleScorePart):
                if is_new or changed_rows is not None or entry.value is None:
                    entry.value = part.score_feasible(self.feasible) * entry.weight
                    changed = True
                continue
            if is_new or entry.raw is None:
                entry.set_raw(part.raw(ALL, Load(self.snapshot.load)))
            assert entry.raw is not None
            if entry.value is not None and (
                part.normalise is None or changed_rows is None or not entry.may_change_range(changed_rows)
            ):
                continue
            if part.normalise is None:
                entry.value = entry.raw * entry.weight
            else:
                entry.normalise(self.feasible)
            changed = True
        return changed

    def _sum_up(self, rows: Rows) -> None:
        total = self.fixed_score[rows] + self.load_score[rows]
        for entry in self.relative_scores:
            if entry.value is not None:
                total += entry.value[rows]
        feasible = self.feasible[rows]
        self.total[rows] = total if feasible.all() else np.where(feasible, total, INFEASIBLE)

    def mark_full(self, row: int) -> None:
        """This node has just become infeasible (place.py knows before the snapshot does)."""
        self.feasible[row] = False
        self.load_ok[row] = False
        self.total[row] = INFEASIBLE
        if self.relative_scores and self._update_relative_scores(np.array([row], dtype=np.intp)):
            self._sum_up(ALL)

    # ---- answers

    def compute_points(self) -> dict[str, Ints]:
        """Every score plugin's weighted points for every node, as of now; skipped plugins are absent."""
        self.sync()
        load = Load(self.snapshot.load)
        points: dict[str, Ints] = {}
        for entry in self.scores:
            if entry.part.is_skipped():
                continue
            if entry in self.relative_scores:
                assert entry.value is not None
                points[entry.name] = entry.value
            else:
                points[entry.name] = entry.part.raw(ALL, load) * entry.weight
        zeros = np.zeros(len(self.snapshot.rows), dtype=np.int64)
        return points | {name: zeros for name in self.profile.zero_scores if name not in points}

    def count_feasible(self) -> int:
        """On how many nodes the pod fits now."""
        self.sync()
        return int(np.count_nonzero(self.feasible))

    def predict_own_effect(self) -> bool | None:
        """What placing a pod of this template does to this view beyond the load of its node.

        True: that node, and only it, becomes infeasible. False: nothing. None: other nodes may be concerned.
        """
        effects = [part.blocks_itself() for part in self._cluster_filters]
        scores = (entry.part for entry in self.relative_scores if entry.part.scope is Scope.CLUSTER)
        if None in effects or any(part.depends_on_own_pods() for part in scores):
            return None
        return True in effects


def _apply_filter(passing: Mask, part: FilterPart, rows: Rows, load: Load) -> Mask:
    """The nodes of `passing` that pass this part too."""
    for _, mask in part.failing(rows, load):
        passing = passing & ~mask
    return passing


def _needs_feasible(entry: WeightedScore) -> bool:
    return isinstance(entry.part, FeasibleScorePart)


def _union(parts: list[Index]) -> Index:
    return parts[0] if len(parts) == 1 else np.unique(np.concatenate(parts))
