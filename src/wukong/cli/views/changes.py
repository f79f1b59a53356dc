"""What is shown of a change before it is made: the patch, who would revert it, what others changed meanwhile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rich.text import Text

from wukong.api.resources import Key, Resource
from wukong.app.install.text import as_yaml
from wukong.cli.views.console import Part
from wukong.cli.views.plan import format_field
from wukong.forecast.fields import FieldChange
from wukong.placement.workloads.patch_forms import without_version
from wukong.ports import PatchBody

_MOST_FIELDS = 12


def render_patch(name: str, form: str, body: Any) -> Iterator[Part]:
    yield Text(f"The patch of {name} ({form})", style="bold")
    yield from (f"  {line}" for line in as_yaml([body]).splitlines())


def render_change_for_git(
    resource: Resource, key: Key, keeper: str, patch: PatchBody, *, is_forced: bool
) -> Iterator[Part]:
    """The same change as something to commit, for whoever keeps the workload."""
    yield ""
    yield Text(f"{resource.kind} {key}: {keeper}, and would revert what is changed here.", style="bold yellow")
    if is_forced:
        yield "  Changed all the same, as --force says."
        return
    yield "  Not changed. Make the change where it comes from, for instance as a patch of kustomize:"
    head = {"apiVersion": resource.api_version, "kind": resource.kind}
    meta = {"name": key.name, "namespace": key.namespace}
    body = without_version(patch)
    document = body if patch.type == "json" else {**head, "metadata": {**meta, **body.pop("metadata", {})}, **body}
    yield from (f"    {line}" for line in as_yaml([document]).splitlines())
    yield "  --force changes it here all the same."


def render_meanwhile(name: str, fields: Sequence[FieldChange]) -> Iterator[str]:
    yield f"{name} was changed by somebody else meanwhile, so nothing was written, and it is planned again:"
    yield from (f"  {format_field(field)}" for field in fields[:_MOST_FIELDS])
    if len(fields) > _MOST_FIELDS:
        yield f"  … and {len(fields) - _MOST_FIELDS} fields more"
