"""`python -m bench`: places pods on clusters of growing size and prints the figures, with the machine and the date."""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import sys

import numpy as np

from bench import building, mirror, placing, versus
from bench.embedded import compare as embedded
from bench.extender import compare, holds, policies, wukongs
from bench.forecast import compare as forecast
from bench.forecast import plans
from bench.memory import compare as memory
from bench.scheduler import compare as scheduler
from bench.spot import departures
from bench.vm import fleet
from bench.vm import reconcile as vm
from bench.webhook import compare as webhook
from bench.workloads import WORKLOADS

CHECKED_AT = 5_000  # nodes at which placements are scored again from scratch
SAMPLES = 1_000  # per table


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--nodes", default="100,1000,5000,10000", help="cluster sizes, comma separated")
    parser.add_argument("--pods-per-node", default="0,30", help="pods already placed per node, comma separated")
    parser.add_argument("--skip-build", action="store_true", help="do not measure building a large snapshot")
    parser.add_argument("--versus", action="store_true", help="only compare with the Go simulator cluster-capacity")
    parser.add_argument("--mirror", action="store_true", help="only compare with the official Python client")
    parser.add_argument("--extender", action="store_true", help="only compare the extender with plain Python and Go")
    parser.add_argument("--webhook", action="store_true", help="only compare the admission webhook with one in Go")
    parser.add_argument("--holds", action="store_true", help="only measure how long the extender holds the event loop")
    parser.add_argument(
        "--policies", action="store_true", help="only measure what a change of one of many policies costs"
    )
    parser.add_argument("--wukongs", action="store_true", help="only measure what Wukongs cost beside policies")
    parser.add_argument("--embedded", action="store_true", help="only measure the embedded cluster")
    parser.add_argument("--forecast", action="store_true", help="only measure what a change to a large cluster costs")
    parser.add_argument("--plan", action="store_true", help="only measure what a plan for a large cluster takes")
    parser.add_argument("--memory", action="store_true", help="only measure what a mirror of many pods weighs")
    parser.add_argument("--vm", action="store_true", help="only measure a look at one Wukong among many")
    parser.add_argument("--spot", action="store_true", help="only measure plans and decisions of the spot mover")
    parser.add_argument("--scheduler", action="store_true", help="only compare our scheduler with kube-scheduler")
    parser.add_argument(
        "--vm-fleet", action="store_true", help="only measure many Wukongs from apply to virtual machines, on KubeVirt"
    )
    parser.add_argument("--count", type=int, default=fleet.COUNT, help="Wukongs with --vm-fleet")
    parser.add_argument("--before", metavar="DIR", help="with --forecast or --memory: an earlier checkout")
    parser.add_argument("--hours", type=int, default=embedded.HOURS, help="virtual hours of churn with --embedded")
    options = parser.parse_args()
    sizes = [int(text) for text in options.nodes.split(",")]
    today = datetime.datetime.now(tz=datetime.UTC).date()
    machine = f"{platform.machine()}, {os.cpu_count()} cores"
    print(f"{today}  {machine}, Python {platform.python_version()}, numpy {np.__version__}")
    if options.versus:
        versus.main(versus.say_aside)
        return
    if options.mirror:
        mirror.main(versus.say_aside)
        return
    if options.extender:
        compare.main(versus.say_aside)
        return
    if options.webhook:
        webhook.main(versus.say_aside)
        return
    if options.holds:
        holds.main(versus.say_aside)
        return
    if options.policies:
        policies.main(versus.say_aside)
        return
    if options.wukongs:
        wukongs.main(versus.say_aside)
        return
    if options.embedded:
        embedded.main(versus.say_aside, options.hours)
        return
    if options.forecast:
        forecast.main(versus.say_aside, options.before)
        return
    if options.plan:
        plans.main(versus.say_aside)
        return
    if options.memory:
        memory.main(versus.say_aside, options.before)
        return
    if options.vm:
        vm.main(versus.say_aside)
        return
    if options.spot:
        departures.main(versus.say_aside)
        return
    if options.scheduler:
        scheduler.main(versus.say_aside)
        return
    if options.vm_fleet:
        fleet.main(versus.say_aside, options.count)
        return
    print("every node is scored for every pod, no sampling\n")
    for per_node in (int(text) for text in options.pods_per_node.split(",")):
        _place(sizes, per_node)
    if not options.skip_build:
        _build()
    print(f"peak memory of this process: {building.peak_megabytes():,.0f} MB")


def _place(sizes: list[int], per_node: int) -> None:
    print(f"pods/s with {per_node} pods per node already placed")
    print(f"{'':26}" + "".join(f"{size:>12,}" for size in sizes) + "   nodes")
    rates: dict[str, list[placing.Rate]] = {name: [] for name in WORKLOADS}
    checks: list[str] = []
    for size in sizes:
        base = placing.base_snapshot(size, per_node)
        for name in WORKLOADS:
            print(f"\r  {name}, {size:,} nodes …\033[K", end="", file=sys.stderr, flush=True)
            rate, history = placing.measure(base, name, per_node)
            rates[name].append(rate)
            if size == CHECKED_AT:
                checked, wrong = placing.check_from_scratch(base, history, SAMPLES // len(WORKLOADS))
                checks.append(f"{name}: {checked} placements scored again from scratch, {wrong} wrong")
    print("\r\033[K", end="", file=sys.stderr)
    for name, row in rates.items():
        print(f"{name:26}" + "".join(f"{rate.per_second:12,.0f}" for rate in row))
    print("".join(f"  {check}\n" for check in checks))


def _build() -> None:
    figures = building.measure()
    print(
        f"snapshot of {building.NODES:,} nodes and {figures['pods']:,.0f} pods: decoded from "
        f"{figures['text_mb']:.0f} MB JSON in {figures['decode_s']:.1f} s, built in {figures['build_s']:.1f} s, "
        f"forked in {figures['fork_ms']:.0f} ms, peak {figures['peak_mb']:,.0f} MB"
    )


if __name__ == "__main__":
    main()
