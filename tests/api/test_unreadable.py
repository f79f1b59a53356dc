"""An object that cannot be read is told with its name, its problem and its place; looking at text never recurses."""

from __future__ import annotations

import json
import random
from typing import Any

import msgspec
import pytest

from wukong.api.core import Pod
from wukong.api.json_text import MOST_DEPTH, find_deep_path, is_too_deep, is_whole, members_of, split_container
from wukong.api.placement import CONFIG_BYTES, CONFIG_DEPTH, PlacementPolicy
from wukong.api.unreadable import LONGEST_PROBLEM, Unreadable, read_document, read_json


def nested(levels: int, inner: Any = "end") -> Any:
    value = inner
    for _ in range(levels):
        value = {"a": value}
    return value


def deep_text(levels: int) -> bytes:
    return b'{"a":' * levels + b"1" + b"}" * levels


def a_policy(config: bytes, status: bytes = b"{}") -> bytes:
    meta = b'{"name":"web","namespace":"shop","uid":"u","resourceVersion":"7","generation":3}'
    rules = b'{"schedulingPolicy":{"rules":[{"name":"cost-aware","type":"score","config":' + config + b"}]}}"
    return b'{"metadata":' + meta + b',"spec":{"scheduling":' + rules + b'},"status":' + status + b"}"


def read_policy(text: bytes) -> Unreadable:
    subject = read_json(text, PlacementPolicy)
    assert isinstance(subject, Unreadable), subject
    return subject


RULE = "$.spec.scheduling.schedulingPolicy.rules[0]"
HUGE = msgspec.json.encode({"text": "x" * CONFIG_BYTES})


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        (deep_text(CONFIG_DEPTH + 1), f"{RULE}: expected a config of at most {CONFIG_DEPTH} levels, got more."),
        (HUGE, f"{RULE}: expected a config of at most 64 KiB, got 64 KiB."),
        (deep_text(1_200), f"{RULE}.config.a…: expected at most {MOST_DEPTH} levels"),
        (deep_text(20_000), f"{RULE}.config.a…: expected at most {MOST_DEPTH} levels"),
        (deep_text(100_000), "expected at most 128 KiB, got 5"),
        (b'{"a":"\xff"}', "expected UTF-8"),
        (b'{"a":1e400}', f"{RULE}.config[...]: number out of range."),
        (b'{"a":' + b"9" * 5_000 + b"}", f"{RULE}.config[...]: integer value out of range."),
        (b'"\x1b[2J"', ""),
        (b"[]", f"{RULE}.config: expected object, got array."),
    ],
)
def test_what_is_wrong_is_told_with_its_place_and_what_remains(config: bytes, problem: str) -> None:
    conditions = b'{"conditions":[{"type":"Accepted","status":"True"}]}'
    subject = read_policy(a_policy(config, conditions))
    assert subject.problem.startswith(problem.partition("…")[0]), subject.problem
    assert subject.problem.isprintable()
    assert len(subject.problem) <= LONGEST_PROBLEM + 1
    assert (subject.key, subject.metadata.uid, subject.metadata.resource_version) == ("shop/web", "u", "7")
    assert isinstance(subject.remains, PlacementPolicy)
    assert subject.remains.metadata.generation == 3
    assert subject.remains.status.conditions[0].type == "Accepted"
    assert subject.remains.spec.scheduling is None


def test_a_config_at_its_bounds_is_read() -> None:
    for config in (deep_text(CONFIG_DEPTH), msgspec.json.encode({"text": "x" * (CONFIG_BYTES - 11)})):
        assert isinstance(read_json(a_policy(config), PlacementPolicy), PlacementPolicy)


def test_a_status_that_cannot_be_read_leaves_the_metadata() -> None:
    for status in (b'{"conditions":7}', b'{"conditions":[{"type":"\xff"}]}', b'{"x":' + deep_text(1_200) + b"}"):
        subject = read_json(a_policy(b"7", status), PlacementPolicy)
        assert isinstance(subject, Unreadable)
        assert isinstance(subject.remains, PlacementPolicy)
        assert subject.remains.status.conditions == []


def test_metadata_that_cannot_be_read_leaves_the_name() -> None:
    subject = read_json(b'{"metadata":{"name":"web","namespace":"shop","labels":{"a":1}},"spec":{}}', Pod)
    assert isinstance(subject, Unreadable)
    assert (subject.key, subject.remains) == ("shop/web", None)
    assert subject.problem.startswith("$.metadata.labels")


@pytest.mark.parametrize("text", [b"", b"1", b"null", b"[]", b"{", b"}{", b'"', b"\xff", b"{}", b'{"metadata":[]}'])
def test_nothing_is_too_broken_to_be_told(text: bytes) -> None:
    for read in (Pod, dict):
        subject = read_json(text, read)
        assert isinstance(subject, Unreadable)
        assert subject.problem


def test_documents_are_told_alike_and_bounded_in_depth() -> None:
    pod = {"metadata": {"name": "web", "namespace": "shop"}, "spec": {"containers": [{"name": 7}]}}
    subject = read_document(pod, Pod)
    assert isinstance(subject, Unreadable)
    assert (subject.key, subject.problem) == ("shop/web", "$.spec.containers[0].name: expected str, got int.")
    deep = {"metadata": {"name": "web"}, "spec": nested(MOST_DEPTH - 1)}
    assert read_json(json.dumps(deep).encode(), dict) == deep
    deep["spec"] = nested(MOST_DEPTH)
    assert isinstance(read_json(json.dumps(deep).encode(), dict), Unreadable)


def test_an_object_may_have_a_hundred_levels_and_not_one_more() -> None:
    for levels, is_deep in ((100, False), (101, True)):
        assert is_too_deep(deep_text(levels)) is is_deep
        assert find_deep_path(deep_text(levels)) == ("$.a.a.a.a.a.a.a.a…" if is_deep else "$")
    assert not is_too_deep(b"[" + b"[],{}," * 100 + b"1]")


@pytest.mark.slow
def test_text_is_taken_apart_as_a_decoder_does() -> None:
    chance = random.Random(12)

    def a_value(levels: int) -> Any:
        kinds = "snbol" if levels else "snb"
        match chance.choice(kinds):
            case "s":
                return "".join(chance.choice('a"\\,:[]{}é\n ') for _ in range(chance.randrange(8)))
            case "n":
                return chance.randrange(-5, 10**6)
            case "b":
                return chance.choice([True, False, None])
            case "o":
                return {f"k{i}{chance.choice(',:]}')}": a_value(levels - 1) for i in range(chance.randrange(4))}
            case _:
                return [a_value(levels - 1) for _ in range(chance.randrange(4))]

    def depth(value: Any) -> int:
        inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
        return 0 if inner is None else 1 + max(map(depth, inner), default=0)

    for _ in range(2_000):
        container = {"x": a_value(5), "y": a_value(5)}
        text = json.dumps(container, indent=chance.choice([None, 1])).encode()
        assert [json.loads(b"{" + part + b"}") for part in split_container(text)] == [
            {name: value} for name, value in container.items()
        ]
        assert {name: json.loads(value) for name, value in members_of(text).items()} == container
        array = [container, *container.values()]
        assert [json.loads(part) for part in split_container(json.dumps(array).encode())] == array
        wrapped = json.dumps(nested(MOST_DEPTH - depth(container), container)).encode()
        assert not is_too_deep(wrapped)
        assert find_deep_path(wrapped) == "$"
        assert is_too_deep(b"[" + wrapped + b"]")
        assert find_deep_path(b"[" + wrapped + b"]").startswith("$[0].a.a")


@pytest.mark.parametrize("cut", [0, 1, 10, 3000])
def test_a_text_is_whole_only_with_its_last_bracket(cut: int) -> None:
    text = (
        json.dumps({"items": [{"a": 'x"]}'}], "metadata": {}})
        .encode()
        .replace(b'"x', b"[" * 2000 + b"]" * 2000 + b',"x')
    )
    assert is_whole(text[: len(text) - cut]) == (cut == 0)
    assert not is_whole(text + b"x")
    assert not is_whole(text + b'"')
    assert not is_whole(b"")
