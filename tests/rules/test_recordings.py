"""The rules decide what kube-scheduler decided: a sample of the recordings (everything: see recordings.py)."""

import pytest

from rules.recordings import FILES, mismatches, sample

FAMILIES = ("mixed", "node", "interpod", "spread", "resources", "ports", "owners", "preemption")
EVERY = 6
WITHOUT_PREEMPTION = "kube-scheduler-1.37"


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("name", FILES)
def test_the_rules_decide_like_the_recorded_kube_scheduler(name: str, family: str) -> None:
    chosen = sample(name, family, EVERY)
    assert bool(chosen) != (name == WITHOUT_PREEMPTION and family == "preemption")
    for scenario in chosen:
        differences = list(mismatches(name, scenario))
        assert not differences, f"{differences[0]}\nReplay: python tests/rules/recordings.py {name} {scenario['seed']}"
