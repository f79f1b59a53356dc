"""Which machines Karpenter buys for pods that wait, and which pods each is meant for. Called by provisioner.py.

The pods that ask for the most cpu come first, then those that ask for the most memory. Each goes

    to a node that is there or boots, the first by name ─► else to a machine that is bought for others, the one
    with the fewest pods ─► else to one more, of the heaviest pool that has one

and what is preferred counts as required as long as that finds a place (preferences.py). A machine to be bought is
still all the offerings of its pool that could take its pods; the cheapest is bought in the end. A machine that
could be there is a domain without pods: so a constraint that spreads by host allows no more than maxSkew pods on any.
As in Karpenter 1.14. Where a rule depends on the zone, the zone is settled when the pod is placed; Karpenter leaves it
open longer for anti-affinity by zone, and places the other pods in later rounds.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections import deque
from collections.abc import Iterable, Sequence

import numpy as np

from wukong.api.core import Pod as AnyPod
from wukong.embedded.actors.karpenter.offerings import Offering, Pool
from wukong.embedded.actors.karpenter.preferences import list_versions
from wukong.embedded.world.objects import Pod
from wukong.engine import Scheduler, Snapshot
from wukong.engine.nodes import HOSTNAME, NodeRow
from wukong.engine.template import Template
from wukong.engine.view import View

_CLAIM, _EMPTY = "~claim-", "~empty-"  # rows after those of all other nodes, nodes that boot included
Domain = tuple[str | None, ...]  # of a node, by the topology keys that a pod's rules name


class Claim:
    """A machine that is going to be bought: one of `offerings`. Its row in the snapshot is labelled as `shown`."""

    def __init__(self, name: str, offerings: list[Offering]) -> None:
        self.name, self.offerings, self.shown, self.opened_as = name, offerings, offerings[0], offerings
        self.pods: list[Pod] = []
        self.load: dict[str, int] = {}

    def add(self, pod: Pod, template: Template, offerings: list[Offering]) -> None:
        self.pods.append(pod)
        self.offerings = offerings
        for resource, amount in template.requests.needed.items():
            self.load[resource] = self.load.get(resource, 0) + int(amount)

    def list_cheapest(self) -> list[Offering]:
        rank = min(offering.price_rank for offering in self.offerings)
        return [offering for offering in self.offerings if offering.price_rank == rank]


class Packing:
    """On a snapshot that it may change, with all nodes that are there or boot."""

    def __init__(self, snapshot: Snapshot, pools: Sequence[Pool]) -> None:
        self.snapshot, self.pools, self.scheduler = snapshot, pools, Scheduler(snapshot)
        self.present = len(snapshot.rows)
        self.claims: list[Claim] = []
        self.helpless: list[Pod] = []
        self._placed = 0
        self._spare: dict[tuple[int, ...], list[str]] = {}  # offerings, the shown one first → rows nobody has yet
        self._rows_added = 0
        self._domains: dict[tuple[object, tuple[str, ...]], Tally[Domain]] = {}  # pods of one owner, by domain
        self._empty: dict[int, str] = {}  # id of an offering → its row
        self._add_empty_nodes()

    def _add_empty_nodes(self) -> None:
        """One of each offering, which nobody gets: it shows whether a new one would do, and is a domain for spreads."""
        rows = []
        for number, offering in enumerate(offering for pool in self.pools for offering in pool.offerings):
            self._empty[id(offering)] = f"{_EMPTY}{number:06}"
            rows.append(offering.new_node.example.copy(name=f"{_EMPTY}{number:06}"))
        self.snapshot.put_row(*rows)
        for offering in (offering for pool in self.pools for offering in pool.offerings):
            name = self._empty[id(offering)]
            for number, daemon in enumerate(offering.new_node.daemons):
                self.snapshot.assume_template(f"{name}/{number}", daemon, self.snapshot.row_of[name])

    def run(self, waiting: Iterable[Pod]) -> list[Claim]:
        """Place all that can be placed. `helpless` are the others: tried again as long as somebody was placed since."""
        queue = deque(sorted(waiting, key=self._rank))
        refused: dict[int, int] = {}  # template → how many were placed when it found no place
        while queue:
            pod = queue.popleft()
            template = self.snapshot.table.intern(pod)
            if refused.get(template.number) == self._placed:
                self.helpless.append(pod)
            elif self._place(pod, template):
                self._placed += 1
                queue.extend(self.helpless)
                self.helpless = []
            else:
                refused[template.number] = self._placed
                self.helpless.append(pod)
        return self.claims

    def _rank(self, pod: Pod) -> tuple[int, int, str, str]:
        needed = self.snapshot.table.intern(pod).requests.needed
        created = pod.metadata.creation_timestamp or ""
        return -int(needed.get("cpu", 0)), -int(needed.get("memory", 0)), created, pod.metadata.uid

    def _place(self, pod: Pod, template: Template) -> bool:
        return any(
            self._place_on_present(version, pod, template)
            or self._place_on_claim(version, pod, template)
            or self._place_on_new(version, pod, template)
            for version in list_versions(pod)
        )

    def _place_on_present(self, version: AnyPod, pod: Pod, template: Template) -> bool:
        rows = np.flatnonzero(self._view(version).feasible[: self.present])
        if not len(rows):
            return False
        self._assume(pod, template, int(rows[0]))
        return True

    def _place_on_claim(self, version: AnyPod, pod: Pod, template: Template) -> bool:
        view, keys = self._view(version), list_topology_keys(version)
        row_of = self.snapshot.row_of
        # Where no rule depends on labels, a claim whose row is ruled out by its load or its pods stays so.
        open_claims = [
            claim
            for claim in self.claims
            if keys or view.feasible[row_of[claim.name]] or not view.fixed_ok[row_of[claim.name]]
        ]
        ordered = sorted(open_claims, key=lambda claim: len(claim.pods))
        return any(self._join(claim, version, keys, pod, template) for claim in ordered)

    def _join(self, claim: Claim, version: AnyPod, keys: tuple[str, ...], pod: Pod, template: Template) -> bool:
        view = self._view(version)
        offerings = [
            offering
            for offering in claim.offerings
            if offering.takes(claim.load, template, len(claim.pods)) and view.fixed_ok[self._row_of_empty(offering)]
        ]
        before = claim.shown
        for shown in _list_shown(claim, offerings, keys):
            self._show(claim, shown)
            if self._view(version).feasible[self.snapshot.row_of[claim.name]]:
                claim.add(pod, template, [entry for entry in offerings if _is_same_domain(entry, shown, keys)])
                self._assume(pod, template, self.snapshot.row_of[claim.name])
                return True
        self._show(claim, before)
        return False

    def _place_on_new(self, version: AnyPod, pod: Pod, template: Template) -> bool:
        view, keys = self._view(version), list_topology_keys(version)
        for pool in self.pools:
            offerings = [
                offering
                for offering in pool.offerings
                if pool.has_left(offering)
                and self._count_claims(offering) < offering.left
                and view.feasible[self._row_of_empty(offering)]
            ]
            if not offerings:
                continue
            if keys:
                shown = min(offerings, key=lambda entry: self._count_alike(template, keys)[_domain_of(entry, keys)])
                offerings = [entry for entry in offerings if _is_same_domain(entry, shown, keys)]
            self._open(pool, offerings, pod, template)
            return True
        return False

    def _open(self, pool: Pool, offerings: list[Offering], pod: Pod, template: Template) -> None:
        claim = Claim(self._take_row(offerings), offerings)
        self.claims.append(claim)
        pool.spend(offerings)
        claim.add(pod, template, offerings)
        self._assume(pod, template, self.snapshot.row_of[claim.name])

    def _take_row(self, offerings: list[Offering]) -> str:
        """The name of a row for a machine of these. Rows are added ahead, each time twice as many, for it is costly;
        one that nobody has yet is an empty node, of which there is one of each offering anyway."""
        key = tuple(id(offering) for offering in offerings)
        if not self._spare.get(key):
            count = 2 * sum(tuple(id(entry) for entry in claim.opened_as) == key for claim in self.claims) or 1
            names = [f"{_CLAIM}{self._rows_added + number:06}" for number in range(count)]
            self._rows_added += count
            self._spare[key] = names[::-1]
            self.snapshot.put_row(*(_build_row(Claim(name, offerings)) for name in names))
        return self._spare[key].pop()

    def _count_claims(self, offering: Offering) -> int:
        """How many of the machines to be bought could be of this offering; its group has a largest size."""
        if offering.left > len(self.claims):
            return len(self.claims)  # at most
        return sum(any(entry is offering for entry in claim.offerings) for claim in self.claims)

    def _show(self, claim: Claim, offering: Offering) -> None:
        if claim.shown is not offering:
            claim.shown = offering
            self.snapshot.put_row(_build_row(claim))

    def _row_of_empty(self, offering: Offering) -> int:
        return self.snapshot.row_of[self._empty[id(offering)]]

    def _view(self, pod: AnyPod) -> View:
        view = self.scheduler.view_of(pod)
        view.sync()
        return view

    def _assume(self, pod: Pod, template: Template, row: int) -> None:
        """Place the pod as it is: to others it is not what it only prefers."""
        self.snapshot.assume_template(pod.key, template, row)
        for (owner, keys), counts in self._domains.items():
            if owner == _owner_of(template):
                counts[_domain_of_labels(self.snapshot.rows[row].labels, keys)] += 1

    def _count_alike(self, template: Template, keys: tuple[str, ...]) -> Tally[Domain]:
        """How many pods of the same owner there are in each domain."""
        owner = _owner_of(template)
        if (owner, keys) not in self._domains:
            rows = self.snapshot.rows
            self._domains[owner, keys] = Tally(
                _domain_of_labels(rows[placed.row].labels, keys)
                for placed in self.snapshot.pods.values()
                if _owner_of(placed.template) == owner
            )
        return self._domains[owner, keys]


def list_topology_keys(pod: AnyPod) -> tuple[str, ...]:
    """The labels by which rules of the pod tell domains, hosts excepted."""
    affinity = pod.spec.affinity
    sides = (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity is not None else ()
    terms = {term.topology_key for side in sides if side is not None for term in side.required}
    spreads = {
        constraint.topology_key
        for constraint in pod.spec.topology_spread_constraints
        if constraint.when_unsatisfiable == "DoNotSchedule"
    }
    return tuple(sorted((terms | spreads) - {HOSTNAME}))


def _list_shown(claim: Claim, offerings: list[Offering], keys: tuple[str, ...]) -> list[Offering]:
    """The offering that the claim's row is labelled as, if it still may be it; and one of each other domain."""
    is_kept = any(offering is claim.shown for offering in offerings)
    ordered = [claim.shown, *offerings] if is_kept else offerings
    by_domain: dict[Domain, Offering] = {}
    for offering in ordered:
        by_domain.setdefault(_domain_of(offering, keys), offering)
    return list(by_domain.values())


def _build_row(claim: Claim) -> NodeRow:
    """With as much of everything as any of its offerings has: which of them takes what is counted one by one."""
    row = claim.shown.new_node.example.copy(name=claim.name)
    row.allocatable = {
        resource: max(offering.room.get(resource, 0) for offering in claim.offerings)
        for resource in sorted({resource for offering in claim.offerings for resource in offering.room})
    }
    row.allowed_pods = max(offering.pods for offering in claim.offerings)
    return row


def _is_same_domain(first: Offering, second: Offering, keys: tuple[str, ...]) -> bool:
    return _domain_of(first, keys) == _domain_of(second, keys)


def _domain_of(offering: Offering, keys: tuple[str, ...]) -> Domain:
    return _domain_of_labels(offering.labels, keys)


def _domain_of_labels(labels: dict[str, str], keys: tuple[str, ...]) -> Domain:
    return tuple(labels.get(key) for key in keys)


def _owner_of(template: Template) -> object:
    return template.namespace, template.owner
