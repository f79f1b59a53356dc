"""`wukong patch`: changes a Deployment or a StatefulSet after a plan of it, and follows what comes of it.

What it reads is in inputs/workload_change.py, what is asked of the document in placement/workloads, the course of it in
cli/changes.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from wukong.cli.changes.canary import CanaryOptions
from wukong.cli.changes.course import Change, change_workload
from wukong.cli.changes.session import open_session
from wukong.cli.changes.verb_options import read_course_options
from wukong.cli.inputs import options
from wukong.cli.inputs.namespaces import choose_namespace
from wukong.cli.inputs.source import Source
from wukong.cli.inputs.workload_change import (
    WEIGHT,
    add_course_options,
    choose_weight,
    read_amount,
    read_patch,
    read_selector,
    read_target,
    read_topology,
)
from wukong.errors import InputError
from wukong.placement.workloads.edits import Edit, edit_workload
from wukong.placement.workloads.rules import Rule
from wukong.ports import PatchBody, PatchType

FORMS = ("json", "merge", "strategic", "apply")


@click.command("patch")
@click.argument("target", metavar="deploy|sts/NAME")
@options.namespace
@click.option("--apart", metavar="hostname|zone|KEY", help="Keep its pods apart: no two in one domain of this label.")
@click.option("--required", is_flag=True, help="Of --apart: a pod that cannot be apart waits.")
@click.option(
    "--preferred",
    type=click.IntRange(1, 100),
    is_flag=False,
    flag_value=WEIGHT,
    metavar="WEIGHT",
    help=f"Of --apart: apart where there is room; 1 to 100, {WEIGHT} without a number.",
)
@click.option("--per-version", is_flag=True, help="Of --apart: apart from pods of the same version only.")
@click.option("--selector", metavar="SELECTOR", help="Of --apart: its pods by these labels, not by its own selector.")
@click.option("--remove", is_flag=True, help="Take out the rule that --apart put in, and nothing else.")
@click.option("--replicas", type=click.IntRange(0, 100_000), metavar="N", help="Set its size.")
@click.option("--max-surge", metavar="N|N%", help="How many pods more a rollout may have.")
@click.option("--max-unavailable", metavar="N|N%", help="How many pods fewer a rollout may have.")
@click.option("-p", "--patch", metavar="PATCH", help="Anything else: a patch in JSON or YAML.")
@click.option(
    "--type",
    "form",
    type=click.Choice(FORMS),
    default="strategic",
    show_default=True,
    help="What -p is, or as what the change is written.",
)
@click.option("--canary", type=click.IntRange(1), metavar="N", help="Of a Deployment: try it on N new pods first.")
@click.option("--check", default="", metavar="CMD", help="Of --canary: it is well if this shell command ends with 0.")
@add_course_options
@options.kubeconfig
@options.context
def command(
    target: str,
    namespace: str | None,
    apart: str | None,
    required: bool,
    preferred: int | None,
    per_version: bool,
    selector: str | None,
    remove: bool,
    replicas: int | None,
    max_surge: str | None,
    max_unavailable: str | None,
    patch: str | None,
    form: PatchType,
    canary: int | None,
    check: str,
    kubeconfig: str,
    context: str,
    **course: Any,
) -> int:
    """Change a Deployment or a StatefulSet, safely.

    Shows the patch, plans it on a copy of the cluster, asks, tries it on the API server, writes it at the version that
    was read, and follows the rollout. What is not safe is refused, with advice; what Argo CD, Flux, Helm or another
    field manager keeps is printed for git. Rules that are there stay to the letter, and a rule of ours is known again.
    Ends with 0 once it is complete, 1 if it was refused or failed, 2 for wrong input, 3 if the cluster says no.

    \b
    Examples:
      wukong patch deploy/web --apart hostname --required --per-version
      wukong patch deploy/web --apart zone --preferred=50 -n shop --yes
      wukong patch deploy/web --apart hostname --required --take-advice 1
      wukong patch deploy/web --apart hostname --required --per-version --canary 1
      wukong patch deploy/web --remove
      wukong patch sts/db --replicas 5
      wukong patch deploy/web -p '{"spec":{"paused":true}}' --type merge
    """
    if check and canary is None:
        raise InputError("--check: of --canary, which is missing.")
    rule_options = {"--required": required, "--preferred": preferred, "--per-version": per_version}
    if apart is None and (given := [name for name, value in {**rule_options, "--selector": selector}.items() if value]):
        raise InputError(f"{', '.join(given)}: of --apart, which is missing. Say --apart hostname, zone or a label.")
    if apart is not None and remove:
        raise InputError("--apart puts a rule in, and --remove takes it out. Leave one of them out.")
    edit = Edit(
        rule=None
        if apart is None
        else Rule(
            name="apart",
            topology_key=read_topology(apart),
            weight=choose_weight(required=required, preferred=preferred, option="--apart"),
            is_per_version=per_version,
            selector=read_selector(selector),
        ),
        removed="apart" if remove else None,
        replicas=replicas,
        max_surge=read_amount(max_surge, "--max-surge"),
        max_unavailable=read_amount(max_unavailable, "--max-unavailable"),
    )
    if edit.is_empty == (patch is None):
        raise InputError("expected a change: --apart, --remove, --replicas, …, or -p PATCH alone. See --help.")
    settings, source = read_course_options(course), Source(None, kubeconfig, context)
    resource, key = read_target(target, choose_namespace(namespace, source).name)
    body = PatchBody(form, read_patch(patch)) if patch is not None else None
    with open_session(source) as session:
        change = Change(
            resource=resource,
            key=key,
            patch=body,
            edit=partial(edit_workload, edit=edit, minor=session.minor) if body is None else None,
            form=form,
            canary=CanaryOptions(pods=canary, check=check) if canary is not None else None,
        )
        return change_workload(session, change, settings)
