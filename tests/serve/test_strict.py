"""The strict client is strict: each answer here has one fault, and it is found."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from serve.strict import check_filter, check_preempt, check_prioritize

NAMES = {"Pod": {}, "NodeNames": ["a", "b"]}
NODES = {"Pod": {}, "Nodes": {"items": [{"metadata": {"name": "a"}, "x": 1}, {"metadata": {"name": "b"}}]}}
VICTIMS = {"Pod": {}, "NodeNameToMetaVictims": {"a": {"Pods": [{"UID": "u"}], "NumPDBViolations": 1}}}
GOOD: dict[str, Any] = {
    "Nodes": None,
    "NodeNames": ["a"],
    "FailedNodes": {"b": "full"},
    "FailedAndUnresolvableNodes": {},
    "Error": "",
}
GOOD_NODES = {**GOOD, "Nodes": {"items": NODES["Nodes"]["items"][:1]}, "NodeNames": None}


def test_good_answers_pass() -> None:
    assert check_filter(NAMES, msgspec.json.encode(GOOD)) == (["a"], {"b": "full"}, {})
    assert check_filter(NODES, msgspec.json.encode(GOOD_NODES)) == (["a"], {"b": "full"}, {})
    assert check_prioritize(NAMES, b'[{"Host":"b","Score":10},{"Host":"a","Score":0}]') == {"a": 0, "b": 10}
    good = b'{"NodeNameToMetaVictims":{"a":{"Pods":[{"UID":"u"}],"NumPDBViolations":1}}}'
    assert check_preempt(VICTIMS, good) == {"a": ["u"]}


@pytest.mark.parametrize(
    "fault",
    [
        {"Extra": 1},
        {"Error": "no"},
        {"NodeNames": None},
        {"NodeNames": ["a", "a"]},
        {"NodeNames": ["a", "c"]},
        {"NodeNames": ["a", "b"]},
        {"NodeNames": []},
        {"NodeNames": [7]},
        {"NodeNames": None, "Nodes": {"items": []}},
        {"FailedNodes": None},
        {"FailedNodes": {"b": 7}},
        {"FailedNodes": {"b": ""}},
        {"FailedAndUnresolvableNodes": {"b": "leaves"}},
    ],
)
def test_a_fault_of_a_filter_answer_is_found(fault: dict[str, Any]) -> None:
    with pytest.raises((AssertionError, TypeError)):
        check_filter(NAMES, msgspec.json.encode({**GOOD, **fault}))


@pytest.mark.parametrize("items", [[{"metadata": {"name": "a"}}], [{"metadata": {"name": "a"}, "x": 2}], None])
def test_a_node_that_came_back_changed_is_found(items: list[Any] | None) -> None:
    with pytest.raises(AssertionError):
        check_filter(NODES, msgspec.json.encode({**GOOD_NODES, "Nodes": {"items": items}}))


def test_a_key_written_twice_is_found() -> None:
    body = msgspec.json.encode(GOOD).replace(b'"b":"full"', b'"b":"full","b":"full"')
    with pytest.raises(AssertionError, match="twice"):
        check_filter(NAMES, body)


@pytest.mark.parametrize(
    "body",
    [
        b"{}",
        b'[{"Host":"a","Score":0}]',
        b'[{"Host":"a","Score":0},{"Host":"b","Score":11}]',
        b'[{"Host":"a","Score":0},{"Host":"b","Score":-1}]',
        b'[{"Host":"a","Score":0},{"Host":"b","Score":1.0}]',
        b'[{"Host":"a","Score":0},{"Host":"c","Score":1}]',
        b'[{"Host":"a","Score":0},{"Host":"a","Score":0},{"Host":"b","Score":1}]',
        b'[{"host":"a","score":0},{"host":"b","score":1}]',
    ],
)
def test_a_fault_of_priorities_is_found(body: bytes) -> None:
    with pytest.raises(AssertionError):
        check_prioritize(NAMES, body)


@pytest.mark.parametrize(
    "victims",
    [b'{"b":{"Pods":[],"NumPDBViolations":0}}', b'{"a":{"Pods":[],"NumPDBViolations":1}}', b'{"a":{"Pods":[]}}'],
)
def test_a_fault_of_a_preemption_answer_is_found(victims: bytes) -> None:
    with pytest.raises((AssertionError, KeyError)):
        check_preempt(VICTIMS, b'{"NodeNameToMetaVictims":%b}' % victims)
