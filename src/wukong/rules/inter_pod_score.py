"""InterPodAffinity as score: preferred terms of the newcomer, preferred and required terms of the placed pods.

Each match adds its weight (or takes it away, for anti-affinity) to every node of the placed pod's domain.
"""

from __future__ import annotations

from collections import Counter

from wukong.api.core import Affinity, Node, Pod, PodAffinity
from wukong.api.profile import MAX_SCORE, Profile
from wukong.rules.cluster import Cluster
from wukong.rules.inter_pod import Pair, Term, read_placed_term, resolve_own_term


def score(cluster: Cluster, pod: Pod, profile: Profile, nodes: list[Node]) -> dict[str, int] | None:
    """From 0 for the least wanted to 100 for the most; 0 for all where nothing differs. None: no term matched."""
    own = [resolve_own_term(cluster, term, profile) for term in read_preferred_terms(pod)]
    if not own and profile.ignore_preferred_terms_of_existing_pods:
        return None
    weights = _sum_domain_weights(cluster, pod, own, profile)
    if not weights:
        return None
    sums = {node.metadata.name: sum(weights[pair] for pair in node.metadata.labels.items()) for node in nodes}
    return _normalise(sums)


def read_preferred_terms(pod: Pod) -> list[Term]:
    """The preferred terms, those of anti-affinity with negative weights."""
    affinity = pod.spec.affinity or Affinity()
    return [
        *_read_weighted_terms(pod, affinity.pod_affinity, +1),
        *_read_weighted_terms(pod, affinity.pod_anti_affinity, -1),
    ]


def _read_weighted_terms(pod: Pod, affinity: PodAffinity | None, sign: int) -> list[Term]:
    preferred = affinity.preferred if affinity is not None else []
    return [read_placed_term(pod, entry.pod_affinity_term, sign * entry.weight) for entry in preferred]


def _sum_domain_weights(cluster: Cluster, pod: Pod, own: list[Term], profile: Profile) -> Counter[Pair]:
    """The sum of all matching terms per domain. A domain whose weights cancel out is still in it."""
    weights: Counter[Pair] = Counter()
    namespace_labels = cluster.namespaces.get(pod.metadata.namespace, {})
    for info in cluster.nodes.values():
        for placed_pod in info.pods:
            matching = [term for term in own if term.matches(placed_pod, {})]
            matching += [term for term in _terms_of_placed(placed_pod, profile) if term.matches(pod, namespace_labels)]
            for term in matching:
                if term.topology_key in info.node.metadata.labels:
                    weights[term.topology_key, info.node.metadata.labels[term.topology_key]] += term.weight
    return weights


def _terms_of_placed(placed_pod: Pod, profile: Profile) -> list[Term]:
    """What a placed pod says about newcomers: its required affinity counts with a weight of the profile."""
    affinity = placed_pod.spec.affinity.pod_affinity if placed_pod.spec.affinity is not None else None
    hard = affinity.required if affinity is not None and profile.hard_pod_affinity_weight > 0 else []
    return [
        *(read_placed_term(placed_pod, term, profile.hard_pod_affinity_weight) for term in hard),
        *read_preferred_terms(placed_pod),
    ]


def _normalise(sums: dict[str, int]) -> dict[str, int]:
    """kube-scheduler divides before it multiplies, in floating point: 29/50 gives 57, not 58."""
    least, most = min(sums.values()), max(sums.values())
    if most == least:
        return dict.fromkeys(sums, 0)
    return {name: int(MAX_SCORE * ((weight - least) / (most - least))) for name, weight in sums.items()}
