"""Shows what `wukong lint` found: a table for people, a document for programs. Decides nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from wukong.cli.views.console import Part, count, show, show_document
from wukong.cli.views.table import Table
from wukong.placement.vm.finding import SEVERITIES, Finding

_STYLES = {"error": "red", "warning": "yellow", "note": ""}


def show_findings(findings: Sequence[Finding], wukongs: int, output: str | None) -> None:
    if output in ("json", "yaml"):
        tally = {severity: sum(finding.severity == severity for finding in findings) for severity in SEVERITIES}
        document = {"wukongs": wukongs, "counts": tally, "findings": msgspec.to_builtins(list(findings))}
        show_document(document, output)
    else:
        show(*_build_view(findings, wukongs))


def _build_view(findings: Sequence[Finding], wukongs: int) -> Iterable[Part]:
    if findings:
        table = Table("SEVERITY", "WUKONG", "PATH", "FINDING", whole=["SEVERITY"], names=["WUKONG"])
        for finding in findings:
            text = f"{finding.text} {finding.fix}".strip()
            table.add_row(finding.severity, finding.subject, finding.path, text, style=_STYLES[finding.severity])
        yield table
    numbers = [(sum(finding.severity == severity for finding in findings), severity) for severity in SEVERITIES]
    summary = ", ".join(count(number, word) for number, word in numbers if number) or "nothing to say"
    yield f"{count(wukongs, 'Wukong')}: {summary}."
