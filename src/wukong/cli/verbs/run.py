"""`wukong run`: the controllers, on the cluster of the current context or of the pod it runs in."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import secrets
import signal
import socket
import sys
from typing import TypeVar

import click

from wukong.api.resources import Key
from wukong.app.components import COMPONENTS, Component, choose
from wukong.app.extender import ExtenderOptions
from wukong.app.live import Options, run
from wukong.cli.inputs import options
from wukong.cli.inputs.run_extender import address, extender_options, read_extender_options
from wukong.cluster.credentials import load
from wukong.cluster.meters import Queries
from wukong.controllers.load.usage_labels import Settings
from wukong.errors import InputError
from wukong.runtime import LeaseTimes

_N = TypeVar("_N", int, float)
_USUAL = frozenset(vars(logging.makeLogRecord({})))


@click.command("run")
@click.option("--components", required=True, metavar="NAMES", help=f"Which to run, by commas: {', '.join(COMPONENTS)}.")
@options.kubeconfig
@options.context
@click.option("--prometheus", default="", metavar="URL", help="Where usage comes from.  [default: metrics.k8s.io]")
@click.option(
    "--prometheus-cpu", default=Queries().cpu, metavar="QUERY", help="PromQL: percent of cpu in use per node."
)
@click.option("--prometheus-memory", default=Queries().memory, metavar="QUERY", help="The same for memory.")
@click.option("--prometheus-storage", default=Queries().storage, metavar="QUERY", help="The same for storage.")
@click.option("--label-prefix", default=Settings().prefix, show_default=True, help="Of the usage labels on nodes.")
@click.option("--label-step", type=click.IntRange(1, 50), default=Settings().step, show_default=True, help="Percent.")
@click.option(
    "--quiet-seconds", default=Settings().quiet_seconds, show_default=True, help="Least time between changes."
)
@click.option("--stale-seconds", default=Settings().stale_seconds, show_default=True, help="Older usage is dropped.")
@click.option("--measure-seconds", default=15.0, show_default=True, help="How often usage is asked for.")
@click.option("--lease", default="default/wukong", show_default=True, metavar="NAMESPACE/NAME", help="Who leads.")
@click.option(
    "--lease-seconds", type=click.IntRange(min=4), default=15, show_default=True, help="Before another may lead."
)
@click.option("--no-leader-election", is_flag=True, help="Act without asking whether another instance does.")
@click.option("--probes", default="", metavar="HOST:PORT", help="Serve /healthz, /readyz and /metrics there.")
@click.option(
    "--mirror-age-limit",
    type=click.FloatRange(min=1),
    default=Options(identity="").mirror_age_limit_seconds,
    show_default=True,
    metavar="SECONDS",
    help="Not ready, and no spot node trusted, when a watch has been silent for longer.",
)
@extender_options
@click.option("--log-format", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(components: str, kubeconfig: str, context: str, lease: str, lease_seconds: int, **given: object) -> None:
    """Run Wukong's controllers until stopped.

    \b
    load   keeps integer labels usage.novasphere.dev/cpu, memory and storage (percent in use) on every node, so that
           plain node affinity can prefer quiet nodes. Stale labels are removed.
    extender
           answers kube-scheduler's /filter, /prioritize and /preempt by PlacementPolicy: spot first, no leaving
           nodes, floors, usage, prices and rules. Needs the kinds: wukong manifests crds.
    policy says on every PlacementPolicy and ClusterPlacementPolicy whether it is accepted, and if not, why: in its
           condition Accepted. Needs the kinds: wukong manifests crds.

    Several instances may run: one leads and acts, the others stand by. Stop it with SIGTERM or Ctrl-C: what is in
    flight is finished and the lease given back.

    \b
    Example:
      wukong run --components load --prometheus http://prometheus.monitoring:9090
      wukong run --components extender,policy --extender-plain-http
    """
    chosen = choose(components)
    names = {component.name for component in chosen}
    log_to_stderr(str(given["log_format"]))
    settings = Options(
        identity=f"{socket.gethostname()}_{os.getpid()}_{secrets.token_hex(4)}",
        lease=None if given["no_leader_election"] else _lease_key(lease),
        times=LeaseTimes(duration=lease_seconds, renew=lease_seconds * 2 / 3, retry=max(0.5, lease_seconds / 7.5)),
        prometheus=str(given["prometheus"]),
        queries=Queries(*(str(given[f"prometheus_{kind}"]) for kind in ("cpu", "memory", "storage"))),
        usage=Settings(
            prefix=str(given["label_prefix"]),
            step=_number(given["label_step"], int),
            quiet_seconds=_number(given["quiet_seconds"], float),
            stale_seconds=_number(given["stale_seconds"], float),
        ),
        measure_seconds=_number(given["measure_seconds"], float),
        probes=address(str(given["probes"]), "--probes") if given["probes"] else None,
        extender=read_extender_options(given) if "extender" in names else ExtenderOptions(),
        mirror_age_limit_seconds=_number(given["mirror_age_limit"], float),
    )
    asyncio.run(_run_until_signal(kubeconfig, context, chosen, settings))


async def _run_until_signal(kubeconfig: str, context: str, chosen: list[Component], settings: Options) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    try:
        await run(load(kubeconfig, context), chosen, settings, stop)
    except BaseExceptionGroup as group:
        raise group.exceptions[0] from None


def _number(value: object, kind: type[_N]) -> _N:
    assert isinstance(value, int | float)
    return kind(value)


def _lease_key(text: str) -> Key:
    namespace, slash, name = text.partition("/")
    if not (namespace and slash and name):
        raise InputError(f"--lease: expected NAMESPACE/NAME, got {text!r}.")
    return Key(namespace, name)


def log_to_stderr(form: str) -> None:
    """Constant messages with their facts behind them: as JSON, or as text with key=value."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json() if form == "json" else _Text())
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)


def _facts(record: logging.LogRecord) -> dict[str, object]:
    return {
        key: value for key, value in vars(record).items() if key not in _USUAL and key not in ("message", "asctime")
    }


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        head = {"time": self.formatTime(record), "level": record.levelname.lower(), "message": record.getMessage()}
        error = {"error": self.formatException(record.exc_info)} if record.exc_info else {}
        return json.dumps({**head, **_facts(record), **error}, default=str)


class _Text(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        facts = "".join(f" {key}={value}" for key, value in _facts(record).items())
        error = f"\n{self.formatException(record.exc_info)}" if record.exc_info else ""
        return f"{self.formatTime(record)} {record.levelname.lower():7} {record.getMessage()}{facts}{error}"
