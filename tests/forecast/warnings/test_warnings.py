"""What a plan warns of, one table per warning: what must be told, and what resembles it and must not be."""

from __future__ import annotations

import random
from collections import Counter as Tally
from typing import Any

import pytest

from forecast.situations import (
    HOSTNAME,
    REQUIRED,
    ZONE,
    a_budget,
    a_deployment,
    a_node,
    a_pod,
    a_service,
    a_term,
    an_autoscaler,
    apart,
    identity_of,
    node_affinity,
    situate,
    some_nodes,
)
from hostile.grammar import NUMBERS, QUANTITIES, TEXTS
from wukong.embedded.world.objects import read
from wukong.forecast.warnings import WARNINGS, PlanWarning, Situation, WrittenObject, judge
from wukong.ports import Document, PatchBody
from wukong.state import State

SPOT = "karpenter.sh/capacity-type"
HASH = "pod-template-hash"
OWN = [a_term()]
VERSIONS_APART = a_term(mismatchLabelKeys=[HASH])
DEDICATED: dict[str, Any] = {"nodeSelector": {"group": "web"}}
SURGE_ONLY = {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}


def near(*terms: Document) -> Document:
    return {"podAffinity": {REQUIRED: list(terms)}}


def spread(app: str = "web") -> list[Document]:
    selector = {"matchLabels": {"app": app}}
    return [{"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}]


def codes(situation: Situation) -> list[str]:
    return [warning.code for warning in judge(situation)]


def only(situation: Situation) -> PlanWarning:
    (warning,) = judge(situation)
    return warning


# ---- budgets


@pytest.mark.parametrize(
    ("replicas", "budget", "others", "is_told"),
    [
        (3, {"minAvailable": 3}, [], True),
        (3, {"minAvailable": 2}, [], False),
        (3, {"minAvailable": "90%"}, [], True),  # rounded up to 3
        (3, {"minAvailable": "60%"}, [], False),
        (3, {"minAvailable": "100%"}, [], True),
        (3, {"maxUnavailable": 0}, [], True),
        (3, {"maxUnavailable": "0%"}, [], True),
        (3, {"maxUnavailable": "1%"}, [], False),  # rounded up to 1
        (1, {"minAvailable": 1}, [], True),
        (0, {"minAvailable": 1}, [], False),
        (3, {"minAvailable": 3}, [an_autoscaler(most=4)], False),
        (3, {"minAvailable": "100%"}, [an_autoscaler(most=4)], True),
        (3, {"minAvailable": 3}, [a_pod("bare", "n1")], False),  # a fourth pod, which nobody scales
        (3, {"minAvailable": 3}, [a_deployment(app="db")], True),
        (3, {"minAvailable": "three"}, [], False),
    ],
)
def test_a_budget_that_never_allows_an_eviction(
    replicas: int, budget: Document, others: list[Document], is_told: bool
) -> None:
    situation = situate(*some_nodes(5), *others, a_deployment(replicas), applied=[a_budget(**budget)])
    assert codes(situation) == ["budget-never-allows"] * is_told


def test_a_budget_is_told_of_where_the_change_touches_its_workload_or_drains_its_pods() -> None:
    cluster = [*some_nodes(4), a_budget(maxUnavailable=0), a_deployment()]
    assert codes(situate(*cluster, applied=[a_deployment(4)])) == ["budget-never-allows"]
    assert codes(situate(*cluster, applied=[a_deployment(app="db")])) == []
    warning = only(situate(*cluster, applied=[a_deployment()]))
    assert (warning.subject, warning.path) == ("PodDisruptionBudget default/web", "$.spec.maxUnavailable")
    assert "maxUnavailable 0 of 3 pods" in warning.text
    assert warning.fix == "Set maxUnavailable: 1."


def owned(document: Document, kind: str, name: str, uid: str) -> Document:
    owner = {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": uid, "controller": True}
    return {**document, "metadata": {**document["metadata"], "ownerReferences": [owner]}}


def test_a_drain_touches_the_workloads_of_the_pods_that_it_evicts() -> None:
    deployment = a_deployment()
    deployment["metadata"]["uid"] = "u1"
    replica_set = owned({**deployment, "kind": "ReplicaSet"}, "Deployment", "web", "u1")
    replica_set["metadata"] |= {"name": "web-1", "uid": "u2"}
    pod = owned(a_pod("web-1-x", "n1"), "ReplicaSet", "web-1", "u2")
    cluster = [*some_nodes(4), deployment, replica_set, pod, a_budget(maxUnavailable=0)]
    assert codes(situate(*cluster, drained=("n1",))) == ["budget-never-allows"]
    assert codes(situate(*cluster, drained=("n2",))) == []


@pytest.mark.parametrize(
    ("second", "is_told"),
    [
        (a_budget("other", minAvailable=1), True),
        (a_budget("other", app="db", minAvailable=1), False),
        ({**a_budget("other", minAvailable=1), "metadata": {"name": "other", "namespace": "shop"}}, False),
    ],
)
def test_two_budgets_on_one_pod(second: Document, is_told: bool) -> None:
    cluster = [*some_nodes(4), a_deployment(), a_deployment(app="db"), a_budget(minAvailable=1)]
    namesake = {**a_deployment(), "metadata": {"name": "web", "namespace": "shop"}}
    assert codes(situate(*cluster, namesake, applied=[second])) == ["two-budgets"] * is_told
    assert codes(situate(*cluster, namesake, second, applied=[a_deployment(2)])) == ["two-budgets"] * is_told


# ---- selectors


@pytest.mark.parametrize(
    ("applied", "place"),
    [
        (a_budget(app="wbe", minAvailable=1), "PodDisruptionBudget default/web $.spec.selector"),
        (a_budget(minAvailable=1), ""),
        (a_budget(app="bare", maxUnavailable=1), ""),
        (a_service(app="wbe"), "Service default/web $.spec.selector"),
        (a_service(app="web"), ""),
        (a_service(), ""),
        (a_deployment(2, near(a_term(app="cache"))), f"podAffinity.{REQUIRED}[0].labelSelector"),
        (a_deployment(2, near(a_term(app="bare"))), ""),
        (a_deployment(2, near(a_term(app="bare", namespaces=["shop"]))), f"podAffinity.{REQUIRED}[0].labelSelector"),
        (a_deployment(2, apart(a_term(app="wbe"))), f"podAntiAffinity.{REQUIRED}[0].labelSelector"),
        (a_deployment(2, apart(a_term(app="db"))), ""),
        (a_deployment(2, apart({"topologyKey": HOSTNAME})), f"podAntiAffinity.{REQUIRED}[0].labelSelector"),
        (a_deployment(2, topologySpreadConstraints=spread("db")), "topologySpreadConstraints[0].labelSelector"),
        (a_deployment(2, topologySpreadConstraints=spread()), ""),
    ],
)
def test_a_selector_that_matches_nothing(applied: Document, place: str) -> None:
    cluster = [*some_nodes(4), a_deployment(2), a_deployment(2, app="db"), a_pod("bare", "n1", app="bare")]
    warnings = judge(situate(*cluster, applied=[applied]))
    assert [warning.code for warning in warnings] == ["selector-matches-nothing"] * bool(place)
    assert all(f"{warning.subject} {warning.path}".endswith(place) for warning in warnings)


# ---- rules


@pytest.mark.parametrize(
    ("affinity", "more", "is_told"),
    [
        ({**near(a_term(app="db")), **apart(a_term(app="db"))}, {}, True),
        ({**near(a_term(app="db")), **apart(a_term(ZONE, app="db"))}, {}, True),  # who shares a host shares a zone
        ({**near(a_term(ZONE, app="db")), **apart(a_term(app="db"))}, {}, False),
        ({**near(a_term(app="db")), **apart(a_term(app="web"))}, {}, False),
        (node_affinity([("disk", "In", ["ssd"])]), {"nodeSelector": {"disk": "hdd"}}, True),
        (node_affinity([("disk", "In", ["ssd"])]), {"nodeSelector": {"disk": "ssd"}}, False),
        (node_affinity([("disk", "Exists", []), ("disk", "DoesNotExist", [])]), {}, True),
    ],
)
def test_required_rules_that_bar_each_other(affinity: Document, more: Document, is_told: bool) -> None:
    nodes = [a_node(f"n{number}", disk="ssd", topology_kubernetes_io__zone="a") for number in range(4)]
    cluster = [*nodes, a_deployment(app="db")]
    situation = situate(*cluster, applied=[a_deployment(2, affinity, **more)])
    assert ("rules-bar-each-other" in codes(situation)) is is_told


@pytest.mark.parametrize(
    ("replicas", "term", "nodes", "is_told"),
    [
        (4, a_term(), some_nodes(3), True),
        (3, a_term(matchLabelKeys=[HASH]), some_nodes(3), False),
        (4, a_term(matchLabelKeys=[HASH]), some_nodes(3), True),
        (4, VERSIONS_APART, some_nodes(3), False),
        (4, a_term(app="db"), some_nodes(3), False),
        (2, a_term("rack"), [a_node("n1", rack="a"), a_node("n2", rack="a")], True),
        (2, a_term("rack"), [a_node("n1", rack="a"), a_node("n2")], False),  # nobody is kept away from n2
        (2, a_term(), [a_node("n1"), a_node("n2", taints=[{"key": "gpu", "effect": "NoSchedule"}])], True),
    ],
)
def test_more_replicas_than_domains(replicas: int, term: Document, nodes: list[Document], is_told: bool) -> None:
    situation = situate(*nodes, a_deployment(app="db"), applied=[a_deployment(replicas, apart(term))])
    assert ("replicas-above-domains" in codes(situation)) is is_told


@pytest.mark.parametrize(
    ("replicas", "term", "strategy", "is_told"),
    [
        (3, a_term(), {}, True),
        (2, a_term(), {}, True),  # not 4: a quarter of them is one that may be missing
        (4, a_term(), {}, False),
        (4, a_term(), SURGE_ONLY, True),
        (3, a_term(), {"type": "Recreate"}, False),
        (3, a_term(), {"rollingUpdate": {"maxUnavailable": 1}}, False),
        (3, a_term(), {"rollingUpdate": {"maxUnavailable": "34%"}}, False),
        (3, a_term(), {"rollingUpdate": {"maxUnavailable": "some"}}, False),
        (3, a_term(matchLabelKeys=[HASH]), {}, False),
    ],
)
def test_as_many_replicas_as_domains_can_never_be_rolled(
    replicas: int, term: Document, strategy: Document, is_told: bool
) -> None:
    deployment = a_deployment(replicas, apart(term), strategy=strategy)
    assert codes(situate(*some_nodes(replicas), applied=[deployment])) == ["next-rollout-never-ends"] * is_told
    assert codes(situate(*some_nodes(replicas + 1), applied=[deployment])) == []


@pytest.mark.parametrize(
    ("affinity", "more", "is_told"),
    [
        (node_affinity([(SPOT, "In", ["spot"])], [(SPOT, "In", ["on-demand"])]), {}, True),
        (node_affinity([(SPOT, "In", ["spot", "on-demand"])], [(SPOT, "In", ["on-demand"])]), {}, False),
        (node_affinity([], [(SPOT, "In", ["on-demand"])]), {"nodeSelector": {SPOT: "spot"}}, True),
        (node_affinity([], [(SPOT, "In", ["on-demand"])]), {}, False),
        (node_affinity([("disk", "Exists", [])], [(SPOT, "In", ["on-demand"])]), {}, False),
        (node_affinity([(SPOT, "In", ["spot"])], [(SPOT, "NotIn", ["spot"])]), {}, True),
    ],
)
def test_a_preference_that_what_is_required_excludes(affinity: Document, more: Document, is_told: bool) -> None:
    situation = situate(*some_nodes(3), applied=[a_deployment(2, affinity, **more)])
    assert codes(situation) == ["preference-never-applies"] * is_told


# Two nodes for the workload, both with pods of it; a third beside them is somebody else's.
GROUP = [a_node("n1", group="web"), a_node("n2", group="web"), a_node("n3")]
IN_GROUP = [a_pod("web-1", "n1"), a_pod("web-2", "n2")]


@pytest.mark.parametrize(
    ("cluster", "term", "more", "is_told"),
    [
        ([*GROUP, *IN_GROUP], VERSIONS_APART, DEDICATED, True),
        ([*GROUP, *IN_GROUP], VERSIONS_APART, {}, False),  # n3 is free
        ([*GROUP, IN_GROUP[0]], VERSIONS_APART, DEDICATED, False),  # n2 is
        ([*GROUP, IN_GROUP[0], a_pod("db-1", "n2", app="db", cpu="4")], VERSIONS_APART, DEDICATED, True),  # but full
        ([*GROUP, *IN_GROUP], a_term(), DEDICATED, False),  # evens them out all the same
        (GROUP, VERSIONS_APART, DEDICATED, False),  # the first version
        (GROUP[:1], a_term(), DEDICATED, True),
        (GROUP, a_term(ZONE), {}, True),  # no node says its zone
    ],
)
def test_a_preference_to_be_apart_where_nobody_can_be(
    cluster: list[Document], term: Document, more: Document, is_told: bool
) -> None:
    situation = situate(*cluster, applied=[a_deployment(2, apart(preferred=[term]), **more)])
    assert codes(situation) == ["preferred-without-room"] * is_told


# ---- who writes what


def json_patch(*operations: Document) -> PatchBody:
    return PatchBody("json", list(operations))


ADD = json_patch({"op": "add", "path": "/spec/template/spec/affinity", "value": {}})
REMOVE = json_patch({"op": "remove", "path": f"/spec/template/spec/affinity/podAntiAffinity/{REQUIRED}/1"})
TWO_RULES = apart(a_term(), a_term(ZONE))


@pytest.mark.parametrize(
    ("before", "after", "patch", "count"),
    [
        (TWO_RULES, apart(a_term(app="db")), ADD, "2 rules that are"),
        (TWO_RULES, apart(a_term()), ADD, "1 rule that is"),
        (TWO_RULES, {**TWO_RULES, **near(a_term())}, ADD, ""),
        (TWO_RULES, apart(a_term()), REMOVE, ""),
        (None, apart(a_term()), ADD, ""),
        (TWO_RULES, None, json_patch({"op": "replace"}), ""),  # all of them: that is meant
        (TWO_RULES, apart(a_term(app="db")), PatchBody("strategic", {}), "2 rules that are"),
        (TWO_RULES, apart(a_term(app="db")), None, "2 rules that are"),
        (TWO_RULES, apart(a_term(), a_term("rack")), None, ""),  # a manifest in which a rule was edited
        (node_affinity([("a", "Exists", [])]), apart(a_term(app="db")), ADD, "1 rule that is"),
    ],
)
def test_rules_that_a_patch_takes_the_place_of(
    before: Document | None, after: Document | None, patch: PatchBody | None, count: str
) -> None:
    cluster, changed = [*some_nodes(9), a_deployment(app="db"), a_deployment(2, before)], a_deployment(2, after)
    if patch is None:
        situation = situate(*cluster, applied=[changed])
    else:
        situation = situate(*cluster, patched=(changed, patch))
    dropping = [warning for warning in judge(situation) if warning.code == "patch-drops-rules"]
    assert [count in warning.text for warning in dropping] == [True] * bool(count)


@pytest.mark.parametrize(
    ("replicas", "autoscaler", "is_told"),
    [
        (3, an_autoscaler(), True),
        (None, an_autoscaler(), False),
        (3, an_autoscaler("db"), False),
        (3, an_autoscaler(kind="StatefulSet"), False),
    ],
)
def test_replicas_that_an_autoscaler_sets(replicas: int | None, autoscaler: Document, is_told: bool) -> None:
    situation = situate(*some_nodes(3), autoscaler, applied=[a_deployment(replicas)])
    assert codes(situation) == ["replicas-of-autoscaler"] * is_told


def managed(manager: Any, part: str = "f:spec") -> Document:
    deployment = a_deployment()
    deployment["metadata"]["managedFields"] = [{"manager": manager, "fieldsV1": {part: {}}}]
    return deployment


@pytest.mark.parametrize(
    ("before", "applied", "tool"),
    [
        (
            a_deployment(annotations={"argocd.argoproj.io/tracking-id": "shop:apps/web"}),
            {},
            "Argo CD",
        ),
        (a_deployment(labels={"app.kubernetes.io/instance": "shop"}), {}, ""),  # everybody sets it
        (a_deployment(labels={"kustomize.toolkit.fluxcd.io/name": "apps"}), {}, "Flux"),
        (a_deployment(labels={"app.kubernetes.io/managed-by": "Helm"}), {}, "Helm"),
        (a_deployment(labels={"app.kubernetes.io/managed-by": "Helm"}), {"app.kubernetes.io/managed-by": "Helm"}, ""),
        (a_deployment(labels={"app.kubernetes.io/managed-by": "us"}), {}, ""),
        (managed("argocd-controller"), {}, "Argo CD"),
        (managed("argocd-controller", "f:status"), {}, ""),
        (managed("kubectl"), {}, ""),
        (managed(7), {}, ""),
    ],
)
def test_an_object_that_another_tool_keeps(before: Document, applied: dict[str, str], tool: str) -> None:
    situation = situate(*some_nodes(4), before, applied=[a_deployment(labels=applied)])
    warnings = judge(situation)
    assert [warning.code for warning in warnings] == ["managed-by-another-tool"] * bool(tool)
    assert all(warning.text.startswith(f"{tool} keeps this object") for warning in warnings)


# ---- all of them


def test_every_warning_has_a_code_of_its_own_and_is_told_once() -> None:
    situation = situate(*some_nodes(3), applied=[a_deployment(4, apart(a_term(), a_term()))])
    assert codes(situation) == ["replicas-above-domains", "replicas-above-domains"]  # two rules, two paths
    assert all(code == find.__module__.rpartition(".")[2].replace("_", "-") for code, find in WARNINGS.items())


TRAPS = [
    *GROUP,
    *IN_GROUP,
    a_budget(minAvailable="100%"),
    a_budget("other", maxUnavailable=0),
    a_service(app="nobody"),
    an_autoscaler(),
    a_deployment(
        3,
        {
            **node_affinity([(SPOT, "In", ["spot"])], [(SPOT, "In", ["on-demand"])]),
            **near(a_term(app="db")),
            **apart(a_term(), a_term(app="db"), preferred=[VERSIONS_APART]),
        },
        topologySpreadConstraints=spread("db"),
        labels={"app.kubernetes.io/managed-by": "Helm"},
    ),
]
ABSURD: tuple[Any, ...] = (
    *TEXTS,
    *NUMBERS,
    *QUANTITIES,
    None,
    True,
    [],
    {},
    [[]],
    [None],
    {"": None},
    {"a": []},
    1e308,
)


def spoil(value: Any, rng: random.Random) -> Any:
    """A copy with one value somewhere in it, or the whole of it, replaced by something absurd."""
    if isinstance(value, dict) and value and rng.random() < 0.9:
        name = rng.choice(sorted(value))
        return {**value, name: spoil(value[name], rng)}
    if isinstance(value, list) and value and rng.random() < 0.9:
        index = rng.randrange(len(value))
        return [*value[:index], spoil(value[index], rng), *value[index + 1 :]]
    return rng.choice(ABSURD)


def test_an_absurd_value_anywhere_stops_no_warning_about_the_rest() -> None:
    """What the mirror could read is judged; what the change writes is judged as it was written."""
    counts: Tally[str] = Tally()
    for seed in range(300):
        rng, state, written = random.Random(seed), State(), list[WrittenObject]()
        spoiled = rng.randrange(len(TRAPS))
        for number, trap in enumerate(TRAPS):
            document = trap
            if number == spoiled:
                document = {**trap, **{part: spoil(trap[part], rng) for part in ("metadata", "spec") if part in trap}}
            group_kind, key = identity_of(trap)
            state.apply("ADDED", read(group_kind, document), group_kind)
            patch = rng.choice([None, PatchBody("json", rng.choice([document, [document], [7]])), ADD])
            written.append(
                WrittenObject(
                    group_kind=group_kind, key=key, applied=document, patch=patch, before=document, after=trap
                )
            )
        counts.update(warning.code for warning in judge(Situation(state, tuple(written), ("n1", "n9"))))
    assert len(counts) >= 8, counts  # they got as far as being judged
