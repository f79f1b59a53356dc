"""An anonymous snapshot decides exactly as the original, and says nothing of whose it was."""

from __future__ import annotations

from hypothesis import given, settings

from clusters import Case, cases
from wukong.api.kinds import Objects
from wukong.cluster.anonymize import anonymize, texts
from wukong.cluster.files import read_objects
from wukong.engine import Scheduler, Snapshot


@settings(max_examples=60)
@given(cases())
def test_the_same_is_decided_under_other_names(case: Case) -> None:
    probe = case.pod
    both = Objects(**{**vars(case.objects), "pods": [*case.objects.pods, probe]})
    renamed = anonymize(both)
    other = renamed.pods.pop()
    original = Scheduler(Snapshot.of(case.objects)).decide(probe)
    anonymous = Scheduler(Snapshot.of(renamed)).decide(other)
    names = dict(
        zip(
            sorted(node.metadata.name for node in case.objects.nodes),
            sorted(node.metadata.name for node in renamed.nodes),
            strict=True,
        )
    )
    assert [names[name] for name in original.feasible] == list(anonymous.feasible)
    assert original.final == anonymous.final
    assert original.message == anonymous.message
    assert {name: points.tolist() for name, points in original.scores.items()} == {
        name: points.tolist() for name, points in anonymous.scores.items()
    }


def test_names_labels_and_images_of_the_example_are_gone() -> None:
    objects = read_objects("examples/cluster.yaml")
    private = {"web", "shop", "checkout", "nightly-a", "spot-a1", "od-a1"}
    assert private & set(texts(objects))
    left = set(texts(anonymize(objects)))
    assert not private & left
    assert not [text for text in left if "example.com/" in text and "gpu" not in text]


def test_the_same_text_gets_the_same_name_everywhere() -> None:
    objects = anonymize(read_objects("examples/cluster.yaml"))
    names = {node.metadata.name for node in objects.nodes}
    assert {pod.spec.node_name for pod in objects.pods if pod.spec.node_name} <= names
    hosts = {node.metadata.labels.get("kubernetes.io/hostname") for node in objects.nodes}
    assert hosts <= names
