"""The kubelets' table is the test bed's: one manifest behaves alike on both."""

from __future__ import annotations

import msgspec
import pytest

from testbed import behaviour as hollow
from wukong.embedded.actors.kubelet import behaviour as ours

PREFIXES = ("sim.novasphere.dev/", "testbed.wukong/")  # the new one, and the former one


@pytest.mark.parametrize(
    "annotations",
    [
        {},
        {"pull-seconds": "2", "start-seconds": "3", "ready-seconds": "5"},
        {"never-ready": "true"},
        {"pull-fails": "true"},
        {"unready-after-seconds": "7"},
        {"run-seconds": "4", "exit-code": "1"},
        {"run-seconds": "4", "ready-seconds": "9"},
    ],
)
@pytest.mark.parametrize("prefix", PREFIXES)
def test_every_pod_goes_through_the_same_stages_as_on_the_test_bed(annotations: dict[str, str], prefix: str) -> None:
    keyed = {f"{prefix}{name}": text for name, text in annotations.items()}
    embedded = ours.apply_annotations(ours.Behaviour(), keyed)
    assert annotations == {} or embedded != ours.Behaviour()
    on_test_bed = hollow.overridden(hollow.Behaviour(), keyed)
    for policy in ("Always", "OnFailure", "Never"):
        our_timeline = ours.build_timeline(embedded, may_exit=ours.may_exit(policy, embedded.exit_code))
        their_timeline = hollow.timeline(on_test_bed, may_exit=hollow.may_exit(policy, on_test_bed.exit_code))
        assert [(msgspec.structs.asdict(stage), left) for stage, left in our_timeline] == [
            (msgspec.structs.asdict(stage), left) for stage, left in their_timeline
        ]


@pytest.mark.parametrize("order", [PREFIXES, PREFIXES[::-1]])
def test_of_two_prefixes_the_new_one_counts(order: tuple[str, str]) -> None:
    texts = {PREFIXES[0]: "5", PREFIXES[1]: "nonsense"}
    keyed = {f"{prefix}pull-seconds": texts[prefix] for prefix in order}
    assert ours.apply_annotations(ours.Behaviour(), keyed) == ours.Behaviour(pull_seconds=5)
    flags = {PREFIXES[0]: "false", PREFIXES[1]: "true"}
    assert not ours.is_silenced({f"{prefix}silent": flags[prefix] for prefix in order})


@pytest.mark.parametrize("prefix", PREFIXES)
def test_a_node_falls_silent_by_either_prefix_and_that_is_no_behaviour(prefix: str) -> None:
    assert ours.is_silenced({f"{prefix}silent": "true"})
    assert ours.apply_annotations(ours.Behaviour(), {f"{prefix}silent": "true"}) == ours.Behaviour()


@pytest.mark.parametrize("prefix", PREFIXES)
def test_an_annotation_nobody_knows_is_refused_by_both(prefix: str) -> None:
    with pytest.raises(ours.BadAnnotationError, match=f"{prefix}sleepy is unknown"):
        ours.apply_annotations(ours.Behaviour(), {f"{prefix}sleepy": "1"})
    with pytest.raises(hollow.BadAnnotationError, match=f"{prefix}sleepy is unknown"):
        hollow.overridden(hollow.Behaviour(), {f"{prefix}sleepy": "1"})
