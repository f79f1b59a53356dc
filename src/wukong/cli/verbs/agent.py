"""`wukong agent`: on one machine, what its cloud says of its end. It runs on every node, so it imports little."""

from __future__ import annotations

import asyncio
import logging
import random
import re
import signal
import time

import click

from wukong.app.agent.agent import Agent, AgentPorts, find_cloud
from wukong.app.agent.own_node import OwnNode
from wukong.cli.views.log_lines import log_to_stderr
from wukong.cluster.credentials import load
from wukong.cluster.metadata.choice import CLOUDS, build_cloud
from wukong.cluster.urls import find_url_problem
from wukong.errors import InputError

AUTO = "auto"
_NODE_NAME = re.compile(r"(?=.{1,253}$)[a-z0-9]([-.a-z0-9]*[a-z0-9])?", re.ASCII)
log = logging.getLogger(__name__)


@click.command("agent")
@click.option(
    "--node", envvar="NODE_NAME", required=True, metavar="NAME", help="The Node it runs on.  [env: NODE_NAME]"
)
@click.option(
    "--cloud",
    type=click.Choice((AUTO, *CLOUDS)),
    default=AUTO,
    show_default=True,
    help="Whose metadata to ask; auto: as spec.providerID of the Node says.",
)
@click.option("--endpoint", default="", metavar="URL", help="Of the metadata server.  [default: the cloud's own]")
@click.option("--machine", default="", metavar="NAME", help="What Azure's events call it.  [default: Azure is asked]")
@click.option(
    "--acknowledge",
    is_flag=True,
    help="Azure: let an event begin as soon as the notice is written, instead of waiting for its time.",
)
@click.option("--kubeconfig", default="", metavar="FILE", help="Of the cluster.  [default: as kubectl, or the pod's]")
@click.option("--context", default="", metavar="NAME", help="Of the kubeconfig.")
@click.option("--log-format", type=click.Choice(("text", "json")), default="text", show_default=True)
def command(
    node: str,
    cloud: str,
    endpoint: str,
    machine: str,
    acknowledge: bool,
    kubeconfig: str,
    context: str,
    log_format: str,
) -> None:
    """Write on a Node what its cloud says of its end, until stopped.

    Asks the metadata of the machine it runs on: AWS for interruptions and rebalance recommendations, Google Cloud for
    preemption, Azure for scheduled events, Alibaba Cloud for the time of release. A notice becomes the annotation
    placement.novasphere.dev/notice, by which `wukong run --components spot` moves the pods; one that is withdrawn is
    taken away. `wukong manifests agent` prints the DaemonSet.

    \b
    Example:
      wukong agent --node worker-1 --cloud aws
    """
    check_options(node, cloud, endpoint, machine, acknowledge)
    log_to_stderr(log_format)
    own_node = OwnNode(load(kubeconfig, context), node)
    ports = AgentPorts(time.time, random.random)
    asyncio.run(run_until_signal(own_node, ports, cloud, endpoint, machine, acknowledge))


def check_options(node: str, cloud: str, endpoint: str, machine: str, acknowledge: bool) -> None:
    """Raises InputError with every problem."""
    problems = []
    if not _NODE_NAME.fullmatch(node):
        problems.append(f"--node: expected the name of a Node, got {node!r:.100}.")
    if endpoint and (problem := find_url_problem(endpoint, "http://169.254.169.254")):
        problems.append(f"--endpoint: {problem}")
    if endpoint and cloud == AUTO:
        problems.append("--endpoint: expected one cloud's own with --cloud, got --cloud auto. Say which cloud it is.")
    for option, is_given in (("--machine", bool(machine)), ("--acknowledge", acknowledge)):
        if is_given and cloud not in (AUTO, "azure"):
            problems.append(f"{option}: is about Azure, got --cloud {cloud}. Leave it out.")
    if problems:
        raise InputError(*problems)


async def run_until_signal(
    node: OwnNode, ports: AgentPorts, cloud: str, endpoint: str, machine: str, acknowledge: bool
) -> None:
    """Whatever is under way when the signal comes is dropped: the next agent finds the Node as it is."""

    async def work() -> None:
        name = await find_cloud(node, ports) if cloud == AUTO else cloud
        log.info("started", extra={"node": node.name, "cloud": name})
        await Agent(build_cloud(name, ports.now, endpoint, machine), node, ports, acknowledges=acknowledge).run()

    task = asyncio.ensure_future(work())
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    try:
        await task
    except asyncio.CancelledError:
        log.info("stopped")
