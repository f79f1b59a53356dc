"""The seed of comparisons that draw: one for all runs, so that a run of all tests ends today as it did yesterday."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

VARIABLE = "WUKONG_LIVE_SEED"
USUAL, ANY = 20261118, "any"


def choose_seed() -> int:
    """That of the environment; `any` draws one."""
    word = os.environ.get(VARIABLE, "")
    return secrets.randbelow(10**6) if word == ANY else int(word or USUAL)


def replay_line(seed: int, test_file: str) -> str:
    return f"the same again: {VARIABLE}={seed} python -m pytest tests/live/{Path(test_file).name}"
