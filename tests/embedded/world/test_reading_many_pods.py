"""Pods read together, whose documents share parts, are as if each had been read alone; they share what was read."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from wukong.api.unreadable import Unreadable
from wukong.embedded.world import objects
from wukong.embedded.world.objects import Pod
from wukong.ports import Document

AFFINITY: Document = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}
CONDITIONS = [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-05-01T08:00:05Z"}]
OWNERS = [{"name": "web", "kind": "ReplicaSet", "apiVersion": "apps/v1", "uid": "u", "controller": True}]
# Each list is one object for all documents, as in a snapshot; what is odd is refused, or read the slow way.
FIELDS: dict[str, dict[str, list[Any]]] = {
    "metadata": {
        "name": ["a", "b", "", None, 1],
        "namespace": ["shop"],
        "labels": [{"app": "web"}, {}, None, {"app": 1}],
        "annotations": [{"note": "yes"}],
        "ownerReferences": [OWNERS, [], None, [{"kind": "ReplicaSet"}]],
        "finalizers": [["example.com/hold"]],
        "creationTimestamp": ["2026-05-01T08:00:00Z"],
        "deletionTimestamp": ["2026-05-01T09:00:00Z", 3],
        "managedFields": [[{"manager": "kubelet"}]],
    },
    "spec": {
        "nodeName": ["n1", "n2", "", None, 4],
        "containers": [[{"name": "main", "image": "a:1"}], [{"name": "main", "image": "b:1"}], [{"name": 1}]],
        "affinity": [{"nodeAffinity": AFFINITY}, None, {"nodeAffinity": 1}],
        "priority": [0, 1000],
        "hostname": ["web-0", "web-1"],
        "tolerations": [[{"operator": "Exists"}]],
    },
    "status": {
        "phase": ["Running", "Failed", 1],
        "startTime": ["2026-05-01T08:00:00Z", None],
        "conditions": [CONDITIONS, [], None, [{"status": "True"}]],
        "containerStatuses": [[{"name": "main", "ready": True}]],
        "observedGeneration": [1],
    },
}


def parts(fields: dict[str, list[Any]]) -> st.SearchStrategy[Document]:
    return st.fixed_dictionaries({}, optional={name: st.sampled_from(values) for name, values in fields.items()})


DOCUMENTS = st.fixed_dictionaries(
    {"metadata": parts(FIELDS["metadata"])},
    optional={
        "kind": st.sampled_from(["Pod", 1]),
        "apiVersion": st.sampled_from(["v1", 1]),
        "spec": st.one_of(parts(FIELDS["spec"]), st.none()),
        "status": st.one_of(parts(FIELDS["status"]), st.none()),
    },
)


@given(st.lists(DOCUMENTS, max_size=8))
def test_pods_read_together_are_as_read_alone(documents: list[Document]) -> None:
    alone = [objects.read("Pod", document) for document in documents]
    together = objects.read_all("Pod", documents)
    assert together == alone
    for pod, document in zip(together, documents, strict=True):
        assert isinstance(pod, Unreadable) or (isinstance(pod, Pod) and pod.document is document)


def test_pods_that_differ_in_name_node_and_affinity_share_the_rest() -> None:
    labels, containers, conditions = {"app": "web"}, [{"name": "main", "image": "a:1"}], CONDITIONS
    documents = [
        {
            "metadata": {"name": f"web-{number}", "labels": labels, "ownerReferences": OWNERS},
            "spec": {"containers": containers, "nodeName": f"n{number}", "hostname": f"web-{number}", "affinity": {}},
            "status": {"phase": "Running", "conditions": conditions},
        }
        for number in range(3)
    ]
    _, second, third = objects.read_all("Pod", documents)
    assert isinstance(second, Pod)
    assert isinstance(third, Pod)
    assert (second.metadata.name, second.spec.node_name) == ("web-1", "n1")
    assert (third.metadata.name, third.spec.node_name) == ("web-2", "n2")
    assert second.metadata.labels is third.metadata.labels
    assert second.metadata.owner_references is third.metadata.owner_references
    assert second.spec.containers is third.spec.containers
    assert second.status is third.status
