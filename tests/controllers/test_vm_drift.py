"""What a live machine lacks of what is wanted: by value, with the paths; what others have added does not count."""

from __future__ import annotations

from typing import Any

import pytest

from wukong.controllers.vm.drift import find_drift


@pytest.mark.parametrize(
    ("live", "wanted"),
    [
        ({"a": 1, "theirs": 2}, {"a": 1}),
        ({"cores": 2}, {"cores": 2.0}),
        ({}, {"a": None, "b": "", "c": False, "d": 0, "e": []}),  # the API server leaves out what is empty
        ({"requests": {"cpu": "1000m"}}, {"requests": {"cpu": 1}}),
        ({"limits": {"memory": "1Gi"}}, {"limits": {"memory": "1024Mi"}}),
        ({"capacity": {"storage": 1024}}, {"capacity": {"storage": "1Ki"}}),
        ({"guest": "2Gi"}, {"guest": "2048Mi"}),
        ({"maxGuest": "2Gi"}, {"maxGuest": "2048Mi"}),
        ({"storage": "2Gi"}, {"storage": "2048Mi"}),
        ({"disks": [{"name": "a", "bus": "virtio"}]}, {"disks": [{"name": "a"}]}),
        ({"requests": {"cpu": "abc"}}, {"requests": {"cpu": "abc"}}),
    ],
)
def test_what_is_there_by_its_value_is_no_drift(live: Any, wanted: Any) -> None:
    assert find_drift(live, wanted) == []


@pytest.mark.parametrize(
    ("live", "wanted", "path"),
    [
        ({"cores": 2}, {"cores": 4}, "$.cores"),
        ({"cores": 2}, {"cores": 2.5}, "$.cores"),
        ({"cores": 2}, {"cores": "2"}, "$.cores"),
        ({"cores": "2"}, {"cores": 2}, "$.cores"),
        ({"name": "1000m"}, {"name": "1"}, "$.name"),  # no amount
        ({}, {"a": {}}, "$.a"),  # an empty mapping may mean something
        ({}, {"a": "x"}, "$.a"),
        ({}, {"a": True}, "$.a"),
        ({"a": {}}, {"a": []}, "$.a"),
        ({"requests": {"cpu": "1"}}, {"requests": {"cpu": "2"}}, "$.requests.cpu"),
        ({"requests": {"cpu": "abc"}}, {"requests": {"cpu": 1}}, "$.requests.cpu"),
        ({"disks": [{"name": "a"}]}, {"disks": []}, "$.disks"),
        ({"disks": []}, {"disks": [{"name": "a"}]}, "$.disks"),
        ({"disks": [{"name": "a"}, {"name": "b"}]}, {"disks": [{"name": "a"}, {"name": "c"}]}, "$.disks[1].name"),
        ({"requests": ["1000m"]}, {"requests": ["1"]}, "$.requests[0]"),
    ],
)
def test_what_is_not_there_or_otherwise_is_told_by_its_path(live: Any, wanted: Any, path: str) -> None:
    assert find_drift(live, wanted) == [path]


def test_only_the_first_five_paths_are_told() -> None:
    wanted = {f"field-{number}": "x" for number in range(7)}
    assert find_drift({}, wanted, "$.spec") == [f"$.spec.field-{number}" for number in range(5)]
