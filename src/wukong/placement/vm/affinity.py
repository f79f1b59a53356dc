"""The pod affinity and anti-affinity of a Wukong's virtual machines, as KubeVirt's template takes them. Pure.

scheduling.podAntiAffinity given        that alone counts, even where it is empty
highAvailability.antiAffinity: true     required, by hostname, on the label with the Wukong's name
neither                                 nothing
"""

from __future__ import annotations

import msgspec

from wukong.api.core import PodAffinityTerm
from wukong.api.meta import LabelSelector
from wukong.api.pod_affinity import PodAffinitySpec
from wukong.api.vm import NAME_LABEL, Wukong
from wukong.ports import Document

HOSTNAME = "kubernetes.io/hostname"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def build_pod_affinity(wukong: Wukong) -> Document:
    """`podAffinity` and `podAntiAffinity`, as far as something is asked for."""
    scheduling = wukong.spec.scheduling
    rules = {
        "podAffinity": build_rules(scheduling.pod_affinity if scheduling is not None else None),
        "podAntiAffinity": build_rules(anti_affinity_of(wukong)),
    }
    return {name: terms for name, terms in rules.items() if terms}


def anti_affinity_of(wukong: Wukong) -> PodAffinitySpec | None:
    """The anti-affinity that counts: the explicit one, else the one that highAvailability means, else None."""
    scheduling, availability = wukong.spec.scheduling, wukong.spec.high_availability
    if scheduling is not None and scheduling.pod_anti_affinity is not None:
        return scheduling.pod_anti_affinity
    if availability is None or not availability.anti_affinity:
        return None
    own_pods = LabelSelector(match_labels={NAME_LABEL: wukong.metadata.name})
    return PodAffinitySpec(required=[PodAffinityTerm(topology_key=HOSTNAME, label_selector=own_pods)])


def template_labels_of(wukong: Wukong) -> dict[str, str]:
    """The labels that reach the instances and pods of a Wukong's machines, beside those that KubeVirt adds."""
    return {**wukong.spec.labels, NAME_LABEL: wukong.metadata.name}


def build_rules(spec: PodAffinitySpec | None) -> Document:
    """Terms under the names that pods have for them. namespaces and namespaceSelector stay side by side: they unite."""
    if spec is None:
        return {}
    terms = {REQUIRED: msgspec.to_builtins(spec.required), PREFERRED: msgspec.to_builtins(spec.preferred)}
    return {name: entries for name, entries in terms.items() if entries}
