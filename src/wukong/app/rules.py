"""The rules a policy may name here: those built in. Called by app.live."""

from __future__ import annotations

from wukong.placement.rule import AnyRule
from wukong.placement.rules import BUILT_IN


def load_rules() -> dict[str, AnyRule]:
    return dict(BUILT_IN)
