"""JSON that somebody wrote: every fault is one InputError with its place."""

from __future__ import annotations

import random

import msgspec
import pytest

from wukong.api.json_values import check_depth, check_repeated_names, decode_json, load_json
from wukong.api.yaml_values import MOST_DEPTH
from wukong.errors import InputError

ANY = msgspec.json.Decoder(object)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b'{"a":\n  nope}', "broken JSON: line 2, column 7: invalid character. Was it cut off while being written?"),
        (b'{"a": [1, 2', "broken JSON: Input data was truncated."),
        (b'{"a": "\xff"}', "broken JSON: expected UTF-8 text."),
        (b"[" * 100_000, f"nested too deeply, more than {MOST_DEPTH} levels. Flatten it."),
        (b'{"a": 1e400}', "broken JSON: number out of range. Mend the number."),
        (b'{"a": ' + b"9" * 5000 + b"}", "broken JSON: integer value out of range. Mend the number."),
        (b'{"a": "\\ud800"}', "broken JSON: "),
    ],
)
def test_a_fault_is_told_with_its_place(text: bytes, problem: str) -> None:
    with pytest.raises(InputError) as caught:
        load_json(text)
    assert problem in str(caught.value)


def test_a_wrong_type_is_left_to_the_caller_who_knows_the_path() -> None:
    with pytest.raises(msgspec.ValidationError, match=r"\$\[0\]"):
        decode_json(b'["a"]', msgspec.json.Decoder(list[int]))


def nested(depth: int, rng: random.Random) -> bytes:
    """A text of this depth, with brackets, quotes and backslashes in its strings, and siblings beside each level."""
    text = b"1"
    for _ in range(depth):
        noise = msgspec.json.encode("".join(rng.choices('{}[]"\\\n', k=rng.randrange(9))))
        siblings = b",[{},[]]" * rng.randrange(2)
        text = (
            b"[" + noise + b"," + text + siblings + b"]"
            if rng.random() < 0.5
            else b'{"a":' + noise + b',"b":' + text + b"}"
        )
    return text


def test_depth_is_counted_outside_strings() -> None:
    for seed in range(300):
        rng = random.Random(seed)
        fine, too_deep = nested(rng.randrange(MOST_DEPTH - 1), rng), nested(MOST_DEPTH + 1 + rng.randrange(300), rng)
        check_depth(fine)
        assert ANY.decode(fine) is not None
        with pytest.raises(InputError, match="nested too deeply"):
            check_depth(too_deep)
    check_depth(b"[" * MOST_DEPTH + b"]" * MOST_DEPTH)
    with pytest.raises(InputError, match="nested too deeply"):
        check_depth(b"[" * (MOST_DEPTH + 1) + b"]" * (MOST_DEPTH + 1))
    check_depth(msgspec.json.encode(["{" * 500, '"[' * 500, "\\" * 301]))
    check_depth(msgspec.json.encode([[]] * 1_000))


def test_a_name_that_is_there_twice_is_told_with_its_place() -> None:
    check_repeated_names(b'{"a": {"b": 1}, "c": {"b": 1}}')
    with pytest.raises(InputError, match=r"line 2, column 2: 'b' is there twice in one map\. Remove one of the two\."):
        check_repeated_names(b'{"a": {"b": 1,\n "b": 2}}')
