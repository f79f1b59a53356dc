"""`wukong manifests agent`: who asks the cloud on every node, to apply. It talks to no cluster and makes no keys."""

from __future__ import annotations

import click

from wukong.app.agent.install import NAMESPACE, AgentInstallation, build_manifests, check_installation
from wukong.app.install.text import as_yaml
from wukong.cli.verbs.agent import AUTO, check_options
from wukong.cli.views.console import note
from wukong.cluster.metadata.choice import CLOUDS


@click.command("agent")
@click.option("--image", required=True, metavar="IMAGE", help="Of Wukong, as the cluster's nodes pull it.")
@click.option("--namespace", "-n", default=NAMESPACE, show_default=True, help="One of its own; it is made.")
@click.option("--cloud", type=click.Choice((AUTO, *CLOUDS)), default=AUTO, show_default=True)
@click.option("--endpoint", default="", metavar="URL", help="Of the metadata server.  [default: the cloud's own]")
@click.option("--acknowledge", is_flag=True, help="Azure: let an event begin as soon as the notice is written.")
@click.option("--spot-nodes", is_flag=True, help="Only on nodes that a label says are spot nodes.  [default: on all]")
@click.option("--host-network", is_flag=True, help="Where the cloud tells pods nothing.")
@click.option("--memory", default="40Mi", show_default=True, metavar="QUANTITY", help="Requested for each pod.")
@click.option("--memory-limit", default="64Mi", show_default=True, metavar="QUANTITY", help="Of each pod.")
def command(
    image: str,
    namespace: str,
    cloud: str,
    endpoint: str,
    acknowledge: bool,
    spot_nodes: bool,
    host_network: bool,
    memory: str,
    memory_limit: str,
) -> None:
    """Print who asks the cloud on every node: DaemonSet, rights, policy.

    A pod per node under Pod Security "restricted"; rights to read and patch Nodes, and a ValidatingAdmissionPolicy by
    which it changes one annotation of its own Node and nothing else (Kubernetes 1.32 and later). With --host-network
    its namespace gets the level "privileged": no other allows that.

    \b
    Example:
      wukong manifests agent --image wukong:0.1.0 --spot-nodes | kubectl apply --server-side -f -
    """
    check_options("node", cloud, endpoint, "", acknowledge)
    options = [
        *([f"--cloud={cloud}"] if cloud != AUTO else []),
        *([f"--endpoint={endpoint}"] if endpoint else []),
        *(["--acknowledge"] if acknowledge else []),
    ]
    installation = AgentInstallation(
        image=image,
        components=(),
        namespace=namespace,
        memory=memory,
        memory_limit=memory_limit,
        has_host_network=host_network,
        is_for_spot_nodes=spot_nodes,
        options=tuple(options),
    )
    check_installation(installation)
    click.echo(as_yaml(build_manifests(installation)), nl=False)
    if not host_network:
        note("AWS answers pods if the instances' hop limit is 2, GKE with Workload Identity does not: --host-network.")
