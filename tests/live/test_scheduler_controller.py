"""The scheduler controller beside the stock scheduler on a real API server: the same pods, on nodes alike.

Both must choose the same node, write the same conditions and tell the same Events. Every pod has one best node, for
the stock scheduler breaks ties by chance. A pod that is refused goes before the next one comes; the node for preemption
is its own, so that nobody else is tempted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from live.cluster import await_sentinel
from live.own_scheduler import scheduling
from live.random_cluster import Manifest
from live.twins import NAMES, OURS, STOCK, Twins, is_refused, is_running, twins
from testbed.pytest_plugin import OwnBed

HOLD = "example.com/hold"  # a finalizer
TERMINATING = "not eligible due to a terminating pod on the nominated node."
HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
FLEET: dict[str, Manifest] = {
    "a": {"capacity": {"cpu": "4"}, "labels": {ZONE: "zone-a", "disk": "ssd", "open": ""}},
    "b": {"capacity": {"cpu": "4"}, "labels": {ZONE: "zone-b", "disk": "hdd", "open": ""}},
    "c": {
        "capacity": {"cpu": "2"},
        "labels": {ZONE: "zone-c"},
        "taints": [{"key": "dedicated", "value": "x", "effect": "NoSchedule"}],
    },
    "d": {"capacity": {"cpu": "2"}, "labels": {ZONE: "zone-a", "arena": ""}},
    "e": {"capacity": {"cpu": "2"}, "labels": {ZONE: "zone-b", "den": ""}},
}
PRIORITIES: tuple[Manifest, ...] = (
    {"metadata": {"name": "low"}, "value": 10},
    {"metadata": {"name": "high"}, "value": 1000},
    {"metadata": {"name": "polite"}, "value": 1000, "preemptionPolicy": "Never"},
)


def a_pod(name: str, cpu: str = "100m", **spec: Any) -> Manifest:
    container: Manifest = {"name": "main", "image": "web", "resources": {"requests": {"cpu": cpu}}}
    if port := spec.pop("host_port", None):
        container["ports"] = [{"containerPort": port, "hostPort": port}]
    labels = {"app": spec.pop("app", name)}
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 0, **spec},
    }


def on(**labels: str) -> Manifest:
    return {"nodeSelector": labels}


def near(app: str) -> Manifest:
    return {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [_term(app)]}}}


def apart(app: str) -> Manifest:
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [_term(app)]}}}


def _term(app: str) -> Manifest:
    return {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": app}}}


def spread(**more: str) -> Manifest:
    selector = {"matchLabels": {"app": "spread"}}
    constraint = {"maxSkew": 1, "topologyKey": HOST, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}
    return {"topologySpreadConstraints": [{**constraint, **more}]}


TOLERANT: Manifest = {"tolerations": [{"key": "dedicated", "operator": "Exists"}]}
NOWHERE: Manifest = {"disk": "tape"}

TABLE: tuple[tuple[Manifest, str], ...] = (  # the pod, and the node it gets; "" for none
    (a_pod("fits", "1", **on(disk="ssd")), "a"),
    (a_pod("too-big", "64"), ""),
    (a_pod("prefers-room", "1", **on(open="")), "b"),
    (a_pod("selects-nothing", **on(**NOWHERE)), ""),
    (a_pod("tolerates", **on(**{ZONE: "zone-c"}), **TOLERANT), "c"),
    (a_pod("does-not-tolerate", **on(**{ZONE: "zone-c"})), ""),
    (a_pod("keeps-company", **near("fits")), "a"),
    (a_pod("misses-company", **near("nobody")), ""),
    (a_pod("keeps-away", **on(disk="ssd"), **apart("fits")), ""),
    (a_pod("keeps-away-elsewhere", **on(open=""), **apart("fits")), "b"),
    (a_pod("spreads", app="spread", **on(disk="hdd"), **spread()), "b"),
    (a_pod("spreads-on", app="spread", **on(open=""), **spread()), "a"),
    (a_pod("spreads-no-more", app="spread", **on(disk="hdd"), **spread(nodeAffinityPolicy="Ignore")), ""),
    (a_pod("takes-port", host_port=8080, **on(disk="ssd")), "a"),
    (a_pod("finds-port-taken", host_port=8080, **on(disk="ssd")), ""),
    (a_pod("fills", "1500m", priorityClassName="low", **on(arena="")), "d"),
    (a_pod("waits-politely", "1500m", priorityClassName="polite", **on(arena="")), ""),
    (a_pod("equals", "1500m", priorityClassName="low", **on(arena="")), ""),
)


async def test_both_schedulers_do_and_say_the_same(
    own_bed: OwnBed, record_property: Callable[[str, object], None]
) -> None:
    bed = own_bed(nodes=0, extra_flags={"scheduler": ["--feature-gates=OpportunisticBatching=false"]})
    async with bed.client() as client, twins(client) as both, scheduling(bed, NAMES[OURS]):
        for priority in PRIORITIES:
            await client.create("/apis/scheduling.k8s.io/v1/priorityclasses", priority)
        await both.nodes(FLEET)
        await await_sentinel(client)
        for manifest, node in TABLE:
            await compare(both, manifest, node)
        await compare_preemption(both)
        await compare_patience(both)
        await compare_waiting(both)
        await both.until(
            lambda: told_surely(both, STOCK) == told_surely(both, OURS),
            f"{told_surely(both, STOCK)}\nis\n{told_surely(both, OURS)}",
        )
        told = told_surely(both, OURS)
    names = {name for name, *_ in told}
    assert {manifest["metadata"]["name"] for manifest, _ in TABLE} <= names
    record_property("figure", f"our scheduler beside kube-scheduler: {len(names)} pods, {len(told)} Events the same")


def told_surely(both: Twins, world: str) -> list[tuple[str, ...]]:
    """What the boss was told while its victim ended is left out: the victim of the other world may end a moment before,
    and whoever waits for room is tried again then. The master, whose victim clings, is told the same."""
    return [entry for entry in both.told(world) if entry[0] != "boss" or not entry[-1].endswith(TERMINATING)]


async def compare(both: Twins, manifest: Manifest, node: str) -> None:
    name = manifest["metadata"]["name"]
    await both.create(manifest)
    await both.settled(name, lambda pod: is_running(pod) or is_refused(pod))
    stock, ours = both.shown(STOCK, name), both.shown(OURS, name)
    assert ours == stock, name
    assert (ours["node"] or "") == node, name
    if not node:
        await both.delete(name)


async def compare_preemption(both: Twins) -> None:
    """The boss drives the filling out, which is told why, and gets its node."""
    await both.create(a_pod("boss", "1500m", priorityClassName="high", **on(arena="")))
    await both.settled("boss", is_running)
    await both.until(lambda: all((world, "fills") in both.gone for world in NAMES), "the victims gone")
    for name in ("boss", "fills"):
        assert both.shown(OURS, name) == both.shown(STOCK, name), name
    victim = both.shown(OURS, "fills")
    assert ["reason", "PreemptionByScheduler"] in [pair for each in victim["conditions"] for pair in each]


async def compare_patience(both: Twins) -> None:
    """A pod nobody suits is tried again when a node comes to suit it."""
    await both.create(a_pod("patient", **on(late="yes")))
    await both.settled("patient", is_refused)
    assert both.shown(OURS, "patient") == both.shown(STOCK, "patient")
    await both.label_node("b", {"late": "yes"})
    await both.settled("patient", is_running)
    assert both.shown(OURS, "patient") == both.shown(STOCK, "patient")


async def compare_waiting(both: Twins) -> None:
    """A victim clings to life: its preemptor waits, and nobody lower takes the room kept for it."""
    clinging = a_pod("clings", "1500m", priorityClassName="low", **on(den=""))
    clinging["metadata"]["finalizers"] = [HOLD]
    await both.create(clinging)
    await both.settled("clings", is_running)
    await both.create(a_pod("master", "1500m", priorityClassName="high", **on(den="")))
    await both.settled("master", is_nominated)
    await both.settled("clings", is_leaving)
    for name in ("master", "clings"):
        assert both.shown(OURS, name) == both.shown(STOCK, name), name
    await compare(both, a_pod("sneaks", "400m", priorityClassName="low", **on(den="")), "")
    await both.delete("takes-port")  # that room somewhere gets free makes the master try again
    await both.settled("master", says(TERMINATING))
    assert both.shown(OURS, "master") == both.shown(STOCK, "master")
    await both.release("clings")
    await both.settled("master", is_running)
    for name in ("master", "clings"):
        assert both.shown(OURS, name) == both.shown(STOCK, name), name


def says(text: str) -> Callable[[Any], bool]:
    return lambda pod: any(text in each.get("message", "") for each in pod["status"]["conditions"])


def is_nominated(pod: Any) -> bool:
    return bool(pod.get("status", {}).get("nominatedNodeName"))


def is_leaving(pod: Any) -> bool:
    return "deletionTimestamp" in pod["metadata"]
