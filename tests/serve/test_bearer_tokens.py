"""Tokens from a file: rotated without a restart, nobody let in while there is none."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from wukong.errors import InputError
from wukong.serve.bearer_tokens import LARGEST, SHORTEST, BearerTokens

OLD, NEW = "old-token-0123456789", "new-token-0123456789"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text(f"{OLD}\n")
    return path


def put(path: Path, text: str) -> None:
    """As the kubelet does: another file takes its place."""
    fresh = path.with_suffix(".new")
    fresh.write_text(text)
    os.replace(fresh, path)


def test_only_who_shows_the_token_is_let_in(file: Path) -> None:
    tokens = BearerTokens(file)
    assert tokens.authorize(f"Bearer {OLD}")
    assert tokens.authorize(f"bearer  {OLD} ")
    refused = ["", OLD, "Bearer", "Bearer ", f"Bearer {OLD}x", f"Bearer {OLD[:-1]}", f"Basic {OLD}", "Bearer \udcff"]
    assert [header for header in refused if tokens.authorize(header)] == []


def test_a_file_that_is_replaced_is_read_again(file: Path) -> None:
    tokens = BearerTokens(file)
    put(file, f"{NEW}\n{OLD}\n")
    assert [tokens.authorize(f"Bearer {token}") for token in (OLD, NEW)] == [True, True]
    put(file, f"{NEW}\n")
    assert [tokens.authorize(f"Bearer {token}") for token in (OLD, NEW)] == [False, True]


@pytest.mark.parametrize("text", ["", "\n \n", "short", f"{NEW}\nshort\n", "x" * (LARGEST + 1)])
def test_a_file_without_a_good_token_lets_nobody_in_until_there_is_one(
    file: Path, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    tokens = BearerTokens(file)
    put(file, text)
    assert [tokens.authorize(f"Bearer {token}") for token in (OLD, NEW, "", "short")] == [False] * 4
    assert len([record for record in caplog.records if record.levelname == "WARNING"]) == 1, "said once"
    put(file, NEW)
    assert tokens.authorize(f"Bearer {NEW}")


def test_a_file_that_is_gone_lets_nobody_in(file: Path) -> None:
    tokens = BearerTokens(file)
    file.unlink()
    assert not tokens.authorize(f"Bearer {OLD}")
    put(file, OLD)
    assert tokens.authorize(f"Bearer {OLD}")


@pytest.mark.parametrize("text", [None, "", "short"])
def test_it_does_not_begin_without_a_token(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "token"
    if text is not None:
        path.write_text(text)
    with pytest.raises(InputError, match="cannot be read" if text is None else f"{SHORTEST} characters"):
        BearerTokens(path)
