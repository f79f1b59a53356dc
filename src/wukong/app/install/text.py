"""Documents as YAML that a person can read: keys in order, texts of several lines as blocks.

Used for the configuration inside a ConfigMap and for what is printed. Reads nothing, writes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import yaml

from wukong.ports import Document


class _Dumper(yaml.SafeDumper):
    """Writes values out each time: an anchor is legal YAML and a riddle to most readers."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)


_Dumper.add_representer(str, _text)


def as_yaml(documents: Sequence[Document]) -> str:
    return "---\n".join(
        yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=4096) for document in documents
    )
