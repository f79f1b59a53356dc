"""`wukong separate`: keeps the versions of a Deployment on different nodes, by one rule in its template."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from wukong.api.kinds import DEPLOYMENTS
from wukong.cli.changes.course import Change, change_workload
from wukong.cli.changes.session import open_session
from wukong.cli.changes.verb_options import read_course_options
from wukong.cli.inputs import options
from wukong.cli.inputs.namespaces import choose_namespace
from wukong.cli.inputs.source import Source
from wukong.cli.inputs.workload_change import WEIGHT, add_course_options, choose_weight, read_target, read_topology
from wukong.errors import InputError
from wukong.placement.workloads.edits import Edit, edit_workload
from wukong.placement.workloads.rules import Rule


@click.command("separate")
@click.argument("target", metavar="deploy/NAME")
@options.namespace
@click.option("--required", is_flag=True, help="A pod of a new version waits until it has a domain without old ones.")
@click.option(
    "--preferred",
    type=click.IntRange(1, 100),
    is_flag=False,
    flag_value=WEIGHT,
    metavar="WEIGHT",
    help=f"Separate where there is room; 1 to 100, {WEIGHT} without a number.",
)
@click.option("--topology", default="hostname", show_default=True, metavar="KEY", help="hostname, zone or a label.")
@click.option("--remove", is_flag=True, help="Take out the rule that this command put in, and nothing else.")
@add_course_options
@options.kubeconfig
@options.context
def command(
    target: str,
    namespace: str | None,
    required: bool,
    preferred: int | None,
    topology: str,
    remove: bool,
    kubeconfig: str,
    context: str,
    **course: Any,
) -> int:
    """Keep the versions of a Deployment on different nodes.

    One rule in its template (mismatchLabelKeys: [pod-template-hash]), which holds from the next rollout on and needs
    no controller. It takes an API server of 1.31 or newer. The course is that of `wukong patch`, and so are the exit
    codes.

    \b
    Examples:
      wukong separate deploy/web --required
      wukong separate deploy/web --preferred --topology zone -n shop
      wukong separate deploy/web --remove
    """
    if remove and (required or preferred is not None):
        raise InputError("--remove takes the rule out, and --required and --preferred put it in. Leave one out.")
    rule = None
    if not remove:
        weight = choose_weight(required=required, preferred=preferred, option="separate")
        rule = Rule(name="separate", topology_key=read_topology(topology), weight=weight)
    edit = Edit(rule=rule, removed="separate" if remove else None)
    settings, source = read_course_options(course), Source(None, kubeconfig, context)
    resource, key = read_target(target, choose_namespace(namespace, source).name, DEPLOYMENTS)
    with open_session(source) as session:
        build = partial(edit_workload, edit=edit, minor=session.minor)
        return change_workload(session, Change(resource=resource, key=key, edit=build), settings)
