"""`wukong undo`: takes a workload back to an earlier version of its template, planned like any change."""

from __future__ import annotations

from typing import Any

import click

from wukong.api.resources import Key, Resource
from wukong.app.changes.reading import read_parts
from wukong.cli.changes.course import Change, change_workload
from wukong.cli.changes.session import Session, open_session
from wukong.cli.changes.verb_options import read_course_options
from wukong.cli.inputs import options
from wukong.cli.inputs.namespaces import choose_namespace
from wukong.cli.inputs.source import Source
from wukong.cli.inputs.workload_change import add_course_options, read_target
from wukong.placement.workloads.canaries import end_canary, find_canary
from wukong.placement.workloads.revisions import choose_revision, list_revisions, restore_template
from wukong.ports import Document


@click.command("undo")
@click.argument("target", metavar="deploy|sts/NAME")
@options.namespace
@click.option("--to", "revision", type=click.IntRange(1), metavar="REVISION", help="Not the one before, but this one.")
@add_course_options
@options.kubeconfig
@options.context
def command(
    target: str, namespace: str | None, revision: int | None, kubeconfig: str, context: str, **course: Any
) -> int:
    """Take a workload back to an earlier revision.

    Its template becomes that of the revision before, or of the one named; a Deployment that is paused goes on, and a
    canary that is under way ends. The course is that of `wukong patch`, and so are the exit codes.

    \b
    Examples:
      wukong undo deploy/web
      wukong undo deploy/web --to 3 -n shop --yes
    """
    settings, source = read_course_options(course), Source(None, kubeconfig, context)
    resource, key = read_target(target, choose_namespace(namespace, source).name)
    with open_session(source) as session:
        return change_workload(session, build_undo(session, resource, key, revision), settings)


def build_undo(session: Session, resource: Resource, key: Key, revision: int | None) -> Change:
    """The change back; the revisions are read whenever it is built, for others may have added one."""

    def restore(workload: Document) -> Document:
        parts = session.run(read_parts(session.cluster, resource, key))
        record, revisions = find_canary(workload), list_revisions(parts.versions)
        number = revision if revision is not None or record is None else record.revision
        chosen = choose_revision(workload, revisions, number)
        if record is not None:
            return end_canary(workload, record, chosen.template)
        return restore_template(workload, chosen.template)

    return Change(resource=resource, key=key, edit=restore, form="merge", ends_canary=True)
