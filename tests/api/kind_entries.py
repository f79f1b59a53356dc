"""The table of kinds as a text, kept as a file, so that every change of an entry is seen.

`python -m api.kind_entries` writes it anew (PYTHONPATH=src:tests).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from wukong.api.kind_table import Kind
from wukong.api.kinds import KINDS

FILE = Path(__file__).parents[1] / "golden" / "kinds.yaml"


def build_text() -> str:
    return msgspec.yaml.encode({kind.group_kind: describe(kind) for kind in KINDS}, order="sorted").decode()


def describe(kind: Kind) -> dict[str, Any]:
    """What differs from an entry that says only where its kind lives, and that."""
    usual = Kind(resource=kind.resource)
    fields = {
        name: getattr(kind, name) for name in kind.__struct_fields__ if getattr(kind, name) != getattr(usual, name)
    }
    described: dict[str, Any] = msgspec.to_builtins({**fields, "resource": kind.resource}, enc_hook=name_type)
    return described


def name_type(value: Any) -> Any:
    return value.__name__ if isinstance(value, type) else sorted(value)


if __name__ == "__main__":
    FILE.write_text(build_text(), "utf-8")
