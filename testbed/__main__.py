"""The command `python -m testbed`: a real control plane to try things on. The tests have fixtures instead.

python -m testbed up --nodes 5      prints the line that points kubectl at it
python -m testbed up --kubevirt     with KubeVirt, for virtual machines; see kubevirt/__init__.py
python -m testbed status
python -m testbed down              also after a crash
python -m testbed build             what `make test` does first
python -m testbed prometheus        and this
python -m testbed chromium          and this
python -m testbed fidelity          the embedded cluster against this one; see docs/fidelity.md
python -m testbed latencies         how long its controllers take; what the embedded cluster draws
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from testbed import chromium as chromium_program
from testbed import control_plane, programs, supervisor
from testbed import prometheus as prometheus_program
from testbed.build import cache_folder
from testbed.errors import NotUpError, TestbedError, UnavailableError
from testbed.supervisor import Order

NAME = click.option("--name", default="default", show_default=True, help="Several may be up side by side.")


def say(line: str) -> None:
    click.echo(line, err=True)


def folder_of(name: str) -> Path:
    return cache_folder() / "run" / name


@click.group(help="A real Kubernetes control plane with hollow kubelets, on loopback.")
def main() -> None:
    pass


@main.command(help="Start one and print the KUBECONFIG for kubectl.")
@click.option("--nodes", type=click.IntRange(min=0), default=3, show_default=True, help="Hollow Nodes to begin with.")
@click.option(
    "--scheduler-config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A KubeSchedulerConfiguration.",
)
@click.option(
    "--lease-seconds", type=float, help="How often leases are renewed.  [default: 10, more for thousands of Nodes]"
)
@click.option("--kubevirt", is_flag=True, help="KubeVirt beside it, with hollow virt-handlers.")
@NAME
def up(nodes: int, scheduler_config: Path | None, lease_seconds: float | None, kubevirt: bool, name: str) -> None:
    given = scheduler_config.resolve() if scheduler_config else None
    order = Order(nodes=nodes, scheduler_config=given, lease_seconds=lease_seconds, kubevirt=kubevirt)
    state = supervisor.up(folder_of(name), order, say)
    say(f"up in {state.seconds:.1f} s; logs in {folder_of(name)}")
    click.echo(f"export KUBECONFIG={state.kubeconfig}")


@main.command(help="End it and remove its folder.")
@NAME
def down(name: str) -> None:
    say("down" if supervisor.down(folder_of(name)) else "nothing was up")


@main.command(help="Say what runs.")
@NAME
def status(name: str) -> None:
    state = supervisor.state_of(folder_of(name))
    click.echo(f"up; export KUBECONFIG={state.kubeconfig}")
    for component, process in control_plane.recorded(folder_of(name)).items():
        click.echo(f"{component:20} pid {process.pid:<8} {'running' if process.is_alive else 'ended'}")


@main.command(help="Build the control plane and kubectl unless that is done.")
@click.option("--kubevirt", is_flag=True, help="And KubeVirt.")
@click.option("--optional", is_flag=True, help="A machine that cannot build is no failure, except where CI=true.")
def build(kubevirt: bool, optional: bool) -> None:
    try:
        programs.find(say)
        programs.find_kubectl(say)
        if kubevirt:
            programs.find_kubevirt(say)
    except UnavailableError as reason:
        if not optional or os.environ.get("CI") == "true":
            raise
        say(f"tests that need a control plane will be skipped: {reason}")


@main.command(help="Install Prometheus unless it is there.")
@click.option("--optional", is_flag=True, help="A machine that cannot have it is no failure, except where CI=true.")
def prometheus(optional: bool) -> None:
    try:
        prometheus_program.find(say)
    except UnavailableError as reason:
        if not optional or os.environ.get("CI") == "true":
            raise
        say(f"tests that need Prometheus will be skipped: {reason}")


@main.command(help="Install Chromium unless it is there.")
@click.option("--optional", is_flag=True, help="A machine that cannot have it is no failure, except where CI=true.")
def chromium(optional: bool) -> None:
    try:
        chromium_program.find(say)
    except UnavailableError as reason:
        if not optional or os.environ.get("CI") == "true":
            raise
        say(f"tests that look at pages will be skipped: {reason}")


@main.command("fidelity", context_settings={"ignore_unknown_options": True}, add_help_option=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def compared(arguments: tuple[str, ...]) -> None:
    """Compare stories of the embedded cluster with real ones."""
    from testbed.fidelity.command import fidelity  # the only part that needs Wukong itself

    fidelity(list(arguments), prog_name="python -m testbed fidelity")


@main.command("latencies", context_settings={"ignore_unknown_options": True}, add_help_option=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def measured(arguments: tuple[str, ...]) -> None:
    """Measure how long controllers take."""
    from testbed.latencies.command import latencies

    latencies(list(arguments), prog_name="python -m testbed latencies")


if __name__ == "__main__":
    try:
        main(prog_name="python -m testbed")
    except NotUpError as error:
        say(str(error))
        sys.exit(3)
    except TestbedError as error:
        say(f"error: {error}")
        sys.exit(1)
