"""The API server's own words for what it refuses."""

from __future__ import annotations

import pytest

from wukong.embedded.store import api_errors


@pytest.mark.parametrize(
    ("problems", "text"),
    [
        (["spec: Required value"], 'Pod "web" is invalid: spec: Required value'),
        (["a: Required value", "b: Required value"], 'Pod "web" is invalid: [a: Required value, b: Required value]'),
        (["a", "b", "c"], 'Pod "web" is invalid: [a, b, c]'),
    ],
)
def test_several_problems_stand_in_brackets(problems: list[str], text: str) -> None:
    error = api_errors.invalid("Pod", "web", problems)
    assert (str(error), error.reason) == (text, "Invalid")


def test_a_version_that_is_yet_to_come_is_a_timeout() -> None:
    error = api_errors.version_too_large(9, 7)
    assert (str(error), error.reason, error.code) == ("Too large resource version: 9, current: 7", "Timeout", 504)
