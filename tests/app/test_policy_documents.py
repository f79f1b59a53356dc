"""Policies of a file must be right in everything; of a cluster's, those with a problem are left out and said."""

from __future__ import annotations

import pytest

from policies import a_cluster_policy, a_policy, a_rule
from wukong.api.objects import Objects
from wukong.api.placement import ClusterPlacementPolicy, PlacementPolicy
from wukong.app.policy_documents import choose_good_policies, read_policies
from wukong.errors import InputError
from wukong.placement.rules import BUILT_IN

HEAD = "apiVersion: placement.novasphere.dev/v1alpha1\nkind: PlacementPolicy\n"
GOOD = f"{HEAD}metadata: {{name: web, namespace: shop}}\nspec: {{capacity: {{strategy: spot-first}}}}\n"


def problems_of(text: str) -> list[str]:
    with pytest.raises(InputError) as caught:
        read_policies(text.encode(), BUILT_IN)
    return list(caught.value.problems)


def test_good_policies_of_both_kinds_and_of_lists_are_read() -> None:
    other = GOOD.replace("kind: Placement", "kind: ClusterPlacement").replace(", namespace: shop", "")
    one, two = read_policies(f"{GOOD}---\n{other}".encode(), BUILT_IN)
    assert (type(one), one.metadata.namespace) == (PlacementPolicy, "shop")
    assert (type(two), two.metadata.name) == (ClusterPlacementPolicy, "web")
    items = "".join(f"- {GOOD}".replace("\n", "\n  ").rstrip() + "\n" for _ in range(2))
    assert len(read_policies(f"apiVersion: v1\nkind: List\nitems:\n{items}".encode(), BUILT_IN)) == 2


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("kind: Pod\napiVersion: v1\n", ["$.kind: expected PlacementPolicy or ClusterPlacementPolicy, got 'Pod'."]),
        (GOOD.replace("kind: P", "kind: Pl"), ["$.kind: expected", 'Did you mean "PlacementPolicy"?']),
        (GOOD.replace("v1alpha1", "v1"), ["$.apiVersion: expected placement.novasphere.dev/v1alpha1, got"]),
        (GOOD.partition("spec")[0], ["$.spec: expected what the policy says, got nothing. Add a spec."]),
        (GOOD.replace("capacity", "capacty"), ["capacty"]),
        (GOOD.replace("name: web, ", ""), ["$.metadata.name: expected a name, got none."]),
        (
            GOOD.replace("kind: Placement", "kind: ClusterPlacement"),
            ["ClusterPlacementPolicy shop/web: $.metadata.namespace: expected none, it is of the whole cluster."],
        ),
        ("", ["expected a PlacementPolicy or a ClusterPlacementPolicy, got nothing."]),
    ],
)
def test_each_problem_of_a_file_is_told(text: str, expected: list[str]) -> None:
    told = "\n".join(problems_of(text))
    assert all(part in told for part in expected), told


def test_problems_of_several_documents_have_their_places_and_come_together() -> None:
    told = problems_of(f"{GOOD.replace('capacity', 'capacty')}---\n{GOOD}---\n{GOOD.replace('v1alpha1', 'v2')}")
    assert [problem.partition(":")[0] for problem in told] == ["document 1", "document 3"]
    assert len(problems_of("a: [")) == 1


def test_of_a_cluster_only_those_without_a_problem_are_taken_and_the_others_are_said() -> None:
    objects = Objects()
    wrong = [a_rule("cost-awar"), a_rule("lod-aware"), a_rule("spot-rik")]
    policies = [
        a_policy("good"),
        a_policy("bad", rules=wrong[:1]),
        a_policy("worse", rules=wrong[:2]),
        a_cluster_policy("worst", rules=wrong),
        a_cluster_policy("fine"),
    ]
    for policy in policies:
        policy.kind = type(policy).__name__
        objects.add(policy)
    good, notes = choose_good_policies(objects, BUILT_IN)
    assert [policy.metadata.name for policy in good] == ["good", "fine"]
    assert [note.partition(" is left out, as the extender leaves it out: $.")[0] for note in notes] == [
        "PlacementPolicy default/bad",
        "PlacementPolicy default/worse",
        "ClusterPlacementPolicy worst",
    ]
    assert "problem" not in notes[0]
    assert notes[1].endswith(" (and 1 more problem).")
    assert notes[2].endswith(" (and 2 more problems).")
