"""The kubelets' table is the test bed's: one manifest behaves alike on both."""

from __future__ import annotations

import msgspec
import pytest

from testbed import behaviour as hollow
from wukong.embedded.actors.kubelet import behaviour as ours


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
def test_every_pod_goes_through_the_same_stages_as_on_the_test_bed(annotations: dict[str, str]) -> None:
    prefixed = {f"{ours.PREFIX}{name}": text for name, text in annotations.items()}
    embedded = ours.apply_annotations(ours.Behaviour(), prefixed)
    on_test_bed = hollow.overridden(hollow.Behaviour(), prefixed)
    for policy in ("Always", "OnFailure", "Never"):
        our_timeline = ours.build_timeline(embedded, may_exit=ours.may_exit(policy, embedded.exit_code))
        their_timeline = hollow.timeline(on_test_bed, may_exit=hollow.may_exit(policy, on_test_bed.exit_code))
        assert [(msgspec.structs.asdict(stage), left) for stage, left in our_timeline] == [
            (msgspec.structs.asdict(stage), left) for stage, left in their_timeline
        ]


def test_an_annotation_nobody_knows_is_refused_by_both() -> None:
    with pytest.raises(ours.BadAnnotationError):
        ours.apply_annotations(ours.Behaviour(), {f"{ours.PREFIX}sleepy": "1"})
    with pytest.raises(hollow.BadAnnotationError):
        hollow.overridden(hollow.Behaviour(), {f"{hollow.PREFIX}sleepy": "1"})
