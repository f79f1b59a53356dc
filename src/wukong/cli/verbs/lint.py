"""`wukong lint`: what is wrong with Wukongs before they are applied, and what will fail some day."""

from __future__ import annotations

from typing import cast, get_args

import click

from wukong.api.vm import Wukong
from wukong.app.rules import load_rules
from wukong.app.wukong_documents import read_wukongs
from wukong.cli.inputs import options
from wukong.cli.inputs.namespaces import Namespace, NamespaceWriter, choose_namespace
from wukong.cli.inputs.source import Source, read_source
from wukong.cli.views.console import note
from wukong.cli.views.findings import show_findings
from wukong.cluster import place_name, read_settings
from wukong.errors import InputError
from wukong.placement.vm.finding import SEVERITIES, Finding
from wukong.placement.vm.lint import lint_wukongs
from wukong.placement.vm.settings import ResourceAffinityMode, VmSettings


@click.command("lint")
@click.option(
    "-f",
    "--filename",
    "paths",
    multiple=True,
    required=True,
    metavar="FILE",
    help="Wukongs, several times if need be; - is stdin.",
)
@click.option(
    "-s",
    "--snapshot",
    metavar="PATH",
    help="Compare with this cluster too: a file or directory with what `kubectl get -o json|yaml` wrote.",
)
@options.kubeconfig
@options.context
@options.namespace
@click.option(
    "--resource-affinity",
    type=click.Choice(get_args(ResourceAffinityMode)),
    default="labels",
    help="Who obeys resourceAffinity in your cluster: see `wukong run --components vm`.",
)
@options.output
def command(
    paths: tuple[str, ...],
    snapshot: str | None,
    kubeconfig: str,
    context: str,
    namespace: str | None,
    resource_affinity: str,
    output: str | None,
) -> int:
    """Say what is wrong with Wukongs, and what will fail some day.

    Errors are what will not work, warnings what fails some day (no domain left to migrate to), notes what may mean
    something else than it seems to. With a cluster (-s, --kubeconfig or --context) its nodes, labels and pods count
    too: are there as many zones as machines that must be apart, and one more to migrate to?

    Ends with 1 if there is an error, else with 0.

    \b
    Example:
      wukong lint -f vm.yaml
      wukong lint -f web.yaml -f db.yaml -s cluster.json
      wukong lint -f vm.yaml --context production -o json
    """
    options.refuse_stdin_twice(snapshot=snapshot, filename="-" if "-" in paths else None)
    if paths.count("-") > 1:
        raise InputError("--filename: standard input can be read only once. Put the other into a file.")
    source = Source(snapshot, kubeconfig, context) if snapshot or kubeconfig or context else None
    wukongs, findings = read_wukong_files(paths, choose_namespace(namespace, source))
    objects = None if source is None else read_source(source).objects
    settings = VmSettings(resource_affinity=cast(ResourceAffinityMode, resource_affinity))
    findings += lint_wukongs(wukongs, load_rules(), objects=objects, settings=settings)
    findings.sort(key=lambda finding: SEVERITIES.index(finding.severity))
    show_findings(findings, len(wukongs), output)
    return 1 if any(finding.severity == "error" for finding in findings) else 0


def read_wukong_files(paths: tuple[str, ...], namespace: Namespace) -> tuple[list[Wukong], list[Finding]]:
    """The Wukongs that can be read, and what is wrong with the others. Raises InputError for files that hold none."""
    wukongs: list[Wukong] = []
    findings: list[Finding] = []
    for path in paths:
        writer = NamespaceWriter(namespace, path)
        try:
            read, problems, other_kinds = read_wukongs(read_settings(path), writer.choose)
        except InputError as error:
            raise error.at(place_name(path)) from None
        writer.finish()
        if other_kinds:
            note(f"{place_name(path)}: left out what is no Wukong: {', '.join(sorted(set(other_kinds)))}.")
        wukongs += read
        findings += problems
    if not wukongs and not findings:
        raise InputError(f"{', '.join(map(place_name, paths))}: expected a Wukong, got none. Name a file that has one.")
    return wukongs, findings
