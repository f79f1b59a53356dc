"""`wukong follow`: follows the rollout of a Deployment or a StatefulSet until it is over."""

from __future__ import annotations

import click
import msgspec

from wukong.cli.changes.following import FollowOptions, follow_workload
from wukong.cli.changes.session import open_session
from wukong.cli.inputs import options
from wukong.cli.inputs.namespaces import choose_namespace
from wukong.cli.inputs.source import Source
from wukong.cli.inputs.workload_change import read_target, read_timeout
from wukong.cli.views.console import show_document


@click.command("follow")
@click.argument("target", metavar="deploy|sts/NAME")
@options.namespace
@click.option("--timeout", default="", metavar="TIME", help="No longer than this, such as 10m.")
@click.option("-o", "--output", type=click.Choice(["json", "yaml"]), help="The last state, as a document for programs.")
@options.kubeconfig
@options.context
def command(target: str, namespace: str | None, timeout: str, output: str | None, kubeconfig: str, context: str) -> int:
    """Follow a rollout until it is over.

    How many pods are old, new and available, on which node each of them is, and why one waits, in the scheduler's words
    and in ours. An interrupt leaves the rollout running. Ends with 0 once it is complete, 1 if it failed or the time
    was over, as `kubectl rollout status` does.

    \b
    Examples:
      wukong follow deploy/web
      wukong follow sts/db -n shop --timeout 10m
    """
    source = Source(None, kubeconfig, context)
    settings = FollowOptions(timeout_seconds=read_timeout(timeout), is_shown=output is None)
    resource, key = read_target(target, choose_namespace(namespace, source).name)
    with open_session(source) as session:
        code, progress = follow_workload(session, resource, key, settings)
    if output is not None and progress is not None:
        show_document(msgspec.to_builtins(progress), output)
    return code
