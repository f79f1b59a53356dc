"""The budgets remembered for a pod's labels are those that a look at every budget finds."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from builders import a_pod
from wukong.api.apps import PodDisruptionBudget
from wukong.api.resources import Key
from wukong.embedded.actors.disruption.budget_index import BudgetIndex
from wukong.embedded.world.objects import read
from wukong.ports import Document
from wukong.rules.selectors import requirements, selects
from wukong.state import State

LABELS: list[dict[str, str]] = [{}, {"app": "web"}, {"app": "db"}, {"app": "web", "tier": "1"}]
SELECTORS: list[Document | None] = [
    None,
    {},
    {"matchLabels": {"app": "web"}},
    {"matchExpressions": [{"key": "tier", "operator": "Exists"}]},
]
Step = tuple[str, str, str, int, int]


@st.composite
def steps(draw: st.DrawFn) -> Step:
    return (
        draw(st.sampled_from(("ADDED", "MODIFIED", "DELETED"))),
        draw(st.sampled_from(("shop", "other"))),
        draw(st.sampled_from(("a", "b", "c"))),
        draw(st.integers(0, len(SELECTORS) - 1)),
        draw(st.integers(0, 3)),
    )


@settings(max_examples=50)
@given(st.lists(steps(), max_size=15))
def test_a_pods_budgets_are_those_that_select_it_now(history: list[Step]) -> None:
    state = State()
    index = state.derived(BudgetIndex)
    for number, (kind, namespace, name, selector, allowed) in enumerate(history):
        meta = {"name": name, "namespace": namespace, "uid": f"{namespace}-{name}", "resourceVersion": str(number)}
        spec = {"selector": SELECTORS[selector]} if SELECTORS[selector] is not None else {}
        document = {"metadata": meta, "spec": spec, "status": {"disruptionsAllowed": allowed}}
        state.apply(kind, read("PodDisruptionBudget.policy", document))  # type: ignore[arg-type]
        rebuilt = state.fork().derived(BudgetIndex)
        for pod_namespace in ("shop", "other"):
            for labels in LABELS:
                pod = a_pod("web")
                pod.metadata.namespace, pod.metadata.labels = pod_namespace, labels
                expected = [
                    Key(budget.metadata.namespace, budget.metadata.name)
                    for budget in state.all(PodDisruptionBudget)
                    if budget.metadata.namespace == pod_namespace
                    and selects(requirements(budget.spec.selector), labels)
                ]
                assert index.of(pod) == expected
                assert rebuilt.of(pod) == expected
