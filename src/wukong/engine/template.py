"""Templates: pods that are alike for placement share one, compiled once.

A template holds everything a decision reads from a pod (requests, rules, labels, ports, ...) and nothing it does not
(name, node, start). A `TemplateTable` interns them; snapshots and their forks share one table.
"""

from __future__ import annotations

from collections.abc import Container
from hashlib import blake2b
from typing import NamedTuple

import msgspec
import numpy as np

from wukong.api.core import (
    Affinity,
    Pod,
    PodAffinity,
    Toleration,
    TopologySpreadConstraint,
    Volume,
)
from wukong.api.meta import controller_of
from wukong.engine.arrays import Ints
from wukong.engine.requests import Requests, is_resize_infeasible, read_requests
from wukong.semantics.host_ports import host_ports_in_both_lists
from wukong.semantics.pod_affinity import compile_pod_term
from wukong.semantics.selectors import Selector, compile_selector, require_labels

_encode = msgspec.msgpack.Encoder().encode
_MOST_REQUESTS = 4096  # remembered
_MOST_PARTS = 4096  # of pods, remembered
_LARGEST_SKEW = 2**31 - 1  # the API's int32: more comes from nobody but a sick API server, and would overflow sums


class Spread(NamedTuple):
    """One topology spread constraint with its selector compiled (matchLabelKeys merged in)."""

    max_skew: int
    topology_key: str
    selector: Selector | None
    min_domains: int
    honors_affinity: bool
    honors_taints: bool


class Template:
    """What placement reads from a pod. `number` is its identity within its table."""

    __slots__ = (
        "affinity",
        "affinity_terms",
        "anti_affinity_terms",
        "hard_spreads",
        "has_own_spreads",
        "has_terms",
        "has_volumes",
        "image_volumes",
        "images",
        "is_oversized",
        "is_terminating",
        "labels",
        "namespace",
        "node_selector",
        "number",
        "owner",
        "pod",
        "ports",
        "preempts",
        "preferred_affinity_terms",
        "preferred_anti_affinity_terms",
        "priority",
        "requests",
        "soft_spreads",
        "tolerations",
        "vector",
    )

    def __init__(self, number: int, pod: Pod, requests: Requests) -> None:
        spec = pod.spec
        self.number = number
        self.pod = pod
        self.namespace = pod.metadata.namespace
        self.labels = pod.metadata.labels
        self.is_terminating = pod.is_terminating
        self.priority = spec.priority or 0
        self.preempts = spec.preemption_policy != "Never"
        self.requests = requests
        self.vector: Ints = np.zeros(0, dtype=np.int64)  # what a placed pod adds to its node; kept by the snapshot
        self.is_oversized = False  # whether that is so much that sums of it need care; kept by the snapshot, too
        self.tolerations: list[Toleration] = spec.tolerations
        self.node_selector: Selector = require_labels(spec.node_selector)
        self.affinity: Affinity = spec.affinity or Affinity()
        self.ports = host_ports_in_both_lists(pod)
        self.images = [container.image for container in (*spec.init_containers, *spec.containers)]
        self.image_volumes = [volume.image.reference for volume in spec.volumes if volume.image is not None]
        self.has_volumes = any(_binds(volume) for volume in spec.volumes)
        owner = controller_of(pod.metadata)
        self.owner = (owner.api_version, owner.kind, owner.name) if owner else None
        self._read_terms()
        self.has_own_spreads = bool(spec.topology_spread_constraints)
        constraints = spec.topology_spread_constraints
        self.hard_spreads = compile_spreads(constraints, self.labels, "DoNotSchedule")
        self.soft_spreads = compile_spreads(constraints, self.labels, "ScheduleAnyway")

    def with_needed(self, needed: dict[str, int]) -> Template:
        """A template like this one that needs other amounts: for trying out, never interned."""
        copy: Template = object.__new__(Template)
        for slot in self.__slots__:
            setattr(copy, slot, getattr(self, slot))
        copy.requests = self.requests._replace(needed=needed)
        return copy

    def _read_terms(self) -> None:
        together = self.affinity.pod_affinity or PodAffinity()
        apart = self.affinity.pod_anti_affinity or PodAffinity()
        self.affinity_terms = [compile_pod_term(term, self.namespace, 0) for term in together.required]
        self.anti_affinity_terms = [compile_pod_term(term, self.namespace, 0) for term in apart.required]
        self.preferred_affinity_terms = [
            compile_pod_term(entry.pod_affinity_term, self.namespace, entry.weight) for entry in together.preferred
        ]
        self.preferred_anti_affinity_terms = [
            compile_pod_term(entry.pod_affinity_term, self.namespace, entry.weight) for entry in apart.preferred
        ]
        self.has_terms = bool(together.required or together.preferred or apart.required or apart.preferred)


def compile_spreads(
    constraints: list[TopologySpreadConstraint] | tuple[TopologySpreadConstraint, ...],
    labels: dict[str, str],
    action: str,
) -> list[Spread]:
    """The constraints with this whenUnsatisfiable."""
    return [
        Spread(
            max(-_LARGEST_SKEW, min(entry.max_skew, _LARGEST_SKEW)),
            entry.topology_key,
            _with_label_keys(compile_selector(entry.label_selector), entry.match_label_keys, labels),
            1 if entry.min_domains is None else entry.min_domains,
            entry.node_affinity_policy == "Honor",
            entry.node_taints_policy == "Honor",
        )
        for entry in constraints
        if entry.when_unsatisfiable == action
    ]


def _with_label_keys(selector: Selector | None, keys: list[str], labels: dict[str, str]) -> Selector | None:
    own = {key: labels[key] for key in keys if key in labels}
    return selector if selector is None else require_labels(own) + selector


class TemplateTable:
    """Interns pods into templates. Shared by a snapshot and all its forks. A number is never given twice."""

    def __init__(self) -> None:
        self._by_digest: dict[bytes, Template] = {}
        self._next_number = 0
        # ids of the parts of a spec → the parts, so that nothing else gets these ids, and what they ask for
        self._requests: dict[tuple[int, int, int, int], tuple[tuple[object, ...], Requests]] = {}
        # what a template is made of, lists and maps by their ids → those, so that nothing else gets these ids
        self._by_parts: dict[tuple[object, ...], tuple[tuple[object, ...], Template]] = {}

    def __len__(self) -> int:
        return len(self._by_digest)

    def intern(self, pod: Pod) -> Template:
        """The template of a pod. Where pods share their parts, as the same objects, these are looked at once."""
        if _is_resized(pod):
            return self._intern_signature(pod)
        parts, values = _list_parts(pod)
        place = (*map(id, parts), *values)
        known = self._by_parts.get(place)
        if known is None:
            if len(self._by_parts) >= _MOST_PARTS:
                self._by_parts.clear()
            known = self._by_parts[place] = parts, self._intern_signature(pod)
        return known[1]

    def _intern_signature(self, pod: Pod) -> Template:
        digest = blake2b(_signature_of(pod), digest_size=16).digest()  # the signature itself weighs a kilobyte
        template = self._by_digest.get(digest)
        if template is None:
            template = self._by_digest[digest] = Template(self._next_number, pod, self._requests_of(pod))
            self._next_number += 1
        return template

    def _requests_of(self, pod: Pod) -> Requests:
        """What the pod asks for. Pods that differ in labels or affinity often share what their containers are: read
        from the same objects, which nobody changes, that is worked out once."""
        if _is_resized(pod):
            return read_requests(pod)
        spec = pod.spec
        place = (id(spec.containers), id(spec.init_containers), id(spec.resources), id(spec.overhead))
        known = self._requests.get(place)
        if known is None:
            if len(self._requests) >= _MOST_REQUESTS:
                self._requests.clear()
            parts = (spec.containers, spec.init_containers, spec.resources, spec.overhead)
            known = self._requests[place] = parts, read_requests(pod)
        return known[1]

    def keep(self, numbers: Container[int]) -> None:
        """Forget all templates but these. A pod like one of those forgotten gets a template of its own again."""
        self._by_parts.clear()
        self._by_digest = {
            digest: template for digest, template in self._by_digest.items() if template.number in numbers
        }


def _binds(volume: Volume) -> bool:
    """Whether it may keep a pod from a node: all that a struct reads of others is a name, or an image."""
    return volume.image is None and volume != Volume(name=volume.name)


def _matters(volume: Volume) -> bool:
    return volume.image is not None or _binds(volume)


def _own_names_of(pod: Pod) -> tuple[str, ...]:
    """What tells pods apart whose ephemeral volumes have claims of their own: name and uid."""
    for volume in pod.spec.volumes:
        if volume.ephemeral is not None:
            return pod.metadata.name, pod.metadata.uid
    return ()


def _is_resized(pod: Pod) -> bool:
    """Whether its status says what its containers have been given, which may differ from what its spec asks for."""
    status = pod.status
    for entry in status.container_statuses:
        if entry.resources is not None:
            return True
    return any(entry.resources is not None for entry in status.init_container_statuses)


def _list_parts(pod: Pod) -> tuple[tuple[object, ...], tuple[object, ...]]:
    """All that the signature of a pod is made of that was not resized: lists, maps and structs, and plain values."""
    meta, spec = pod.metadata, pod.spec
    parts = (
        *(meta.labels, meta.owner_references, spec.containers, spec.init_containers, spec.affinity, spec.tolerations),
        *(spec.topology_spread_constraints, spec.node_selector, spec.overhead, spec.resources, spec.volumes),
    )
    values = (meta.namespace, meta.deletion_timestamp is not None, spec.priority, spec.preemption_policy)
    return parts, (*values, *_own_names_of(pod)) if spec.volumes else values


def _signature_of(pod: Pod) -> bytes:
    """Equal for pods that no decision can tell apart."""
    meta, spec, status = pod.metadata, pod.spec, pod.status
    resized = [entry for entry in (*status.container_statuses, *status.init_container_statuses) if entry.resources]
    return _encode(
        (
            meta.namespace,
            meta.labels,
            meta.deletion_timestamp is not None,
            meta.owner_references,
            spec.containers,
            spec.init_containers,
            spec.affinity,
            spec.tolerations,
            spec.topology_spread_constraints,
            spec.node_selector,
            spec.priority,
            spec.preemption_policy,
            spec.overhead,
            spec.resources,
            [volume for volume in spec.volumes if _matters(volume)],
            _own_names_of(pod),
            resized,
            bool(resized) and is_resize_infeasible(pod),
        )
    )
