"""The rules decide what kube-scheduler decided: a sample of the recordings (everything: see recordings.py)."""

import pytest

from rules.recordings import FILES, mismatches, sample

FAMILIES = ("mixed", "node", "interpod", "spread", "resources", "ports", "owners", "preemption")
EVERY = 6
WITHOUT_PREEMPTION = "kube-scheduler-1.37"
ONLY_PREEMPTION = "kube-scheduler-1.37-preemption"
# To take a recording apart takes a second: one worker does so for all families.
RECORDINGS = [pytest.param(name, marks=pytest.mark.xdist_group(f"recording {name}")) for name in FILES]


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("name", RECORDINGS)
def test_the_rules_decide_like_the_recorded_kube_scheduler(name: str, family: str) -> None:
    chosen = sample(name, family, EVERY)
    is_left_out = WITHOUT_PREEMPTION if family == "preemption" else ONLY_PREEMPTION
    assert bool(chosen) != (name == is_left_out)
    for scenario in chosen:
        differences = list(mismatches(name, scenario))
        assert not differences, f"{differences[0]}\nReplay: python tests/rules/recordings.py {name} {scenario['seed']}"
