"""The claims of one pod, as the volume plugins read them before any node is looked at (PreFilter).

Called by the volume plugins and by volume_use.py. Reads facts, changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from wukong.api.core import PersistentVolumeClaim, Pod
from wukong.api.resources import Key
from wukong.engine.volume_facts import VolumeFacts
from wukong.semantics.volume_claims import (
    class_of_claim,
    is_bound,
    is_made_for,
    list_claims,
    waits_for_consumer,
)

UNBOUND = "pod has unbound immediate PersistentVolumeClaims"


@dataclass
class PodClaims:
    """What each plugin finds wrong whatever the node, "" if nothing, and the claims if all of them are there."""

    restrictions_problem: str = ""
    binding_problem: str = ""
    zone_problem: str = ""
    bound: list[PersistentVolumeClaim] = field(default_factory=list)
    unbound: list[PersistentVolumeClaim] = field(default_factory=list)  # those that wait for a first consumer

    @property
    def is_settled(self) -> bool:
        """Nothing of them depends on what other pods are promised."""
        return not self.unbound


def read_pod_claims(facts: VolumeFacts, pod: Pod) -> PodClaims:
    named = [claim.name for claim in list_claims(pod) if not claim.is_ephemeral]
    missing = [name for name in named if Key(pod.metadata.namespace, name) not in facts.claims]
    if missing:
        not_found = f'persistentvolumeclaim "{missing[0]}" not found'
        return PodClaims(not_found, _find_binding_problem(facts, pod), not_found)
    problem = _find_binding_problem(facts, pod)
    if problem:
        return PodClaims("", problem, _find_zone_problem(facts, pod))
    claims = [facts.claims[Key(pod.metadata.namespace, claim.name)] for claim in list_claims(pod)]
    bound = [claim for claim in claims if is_bound(claim)]
    unbound = [claim for claim in claims if not is_bound(claim)]
    # A claim that names its volume already is to be bound without the scheduler, whatever its class says.
    is_waiting = all(
        waits_for_consumer(facts.find_class(class_of_claim(claim))) and not claim.spec.volume_name for claim in unbound
    )
    zone_problem = _find_zone_problem(facts, pod)
    return PodClaims("", "", zone_problem, bound, unbound) if is_waiting else PodClaims("", UNBOUND, zone_problem)


def list_unbound_claims(facts: VolumeFacts, pod: Pod) -> list[PersistentVolumeClaim]:
    """Those that are not bound and do not wait for a first consumer. All claims must be there."""
    claims = (facts.claims[Key(pod.metadata.namespace, claim.name)] for claim in list_claims(pod))
    return [
        claim
        for claim in claims
        if not is_bound(claim)
        and (claim.spec.volume_name or not waits_for_consumer(facts.find_class(class_of_claim(claim))))
    ]


def _find_binding_problem(facts: VolumeFacts, pod: Pod) -> str:
    namespace = pod.metadata.namespace
    for name, is_ephemeral in list_claims(pod):
        claim = facts.claims.get(Key(namespace, name))
        if claim is None:
            if is_ephemeral:
                return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"'
            return f'persistentvolumeclaim "{name}" not found'
        if claim.status.phase == "Lost":
            volume = claim.spec.volume_name
            return f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{volume}"'
        if claim.metadata.deletion_timestamp is not None:
            return f'persistentvolumeclaim "{name}" is being deleted'
        if is_ephemeral and not is_made_for(claim, pod):
            return f"PVC {namespace}/{name} was not created for pod {namespace}/{pod.metadata.name} (pod is not owner)"
    return ""


def _find_zone_problem(facts: VolumeFacts, pod: Pod) -> str:
    """Claims of ephemeral volumes are passed over, as in kube-scheduler."""
    for name, is_ephemeral in list_claims(pod):
        if is_ephemeral:
            continue
        claim = facts.claims[Key(pod.metadata.namespace, name)]
        volume, class_name = claim.spec.volume_name, class_of_claim(claim)
        if volume:
            if facts.find_volume(volume) is None:
                return f'persistentvolume "{volume}" not found'
            continue
        if not class_name:
            return "PersistentVolumeClaim had no pv name and storageClass name"
        storage_class = facts.find_class(class_name)
        if storage_class is None:
            return f'storageclass.storage.k8s.io "{class_name}" not found'
        if not waits_for_consumer(storage_class):
            return "PersistentVolume had no name"
    return ""
