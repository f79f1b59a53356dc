"""What the API server refuses in selectors and affinity, and what it stores although the scheduler cannot read it.

The latter are values for Gt and Lt that are no whole numbers, and malformed values in preferred node affinity: such a
pod is stored, then fails in every cycle that scores. Called by pod_validation.py, and for Wukongs by placement.vm.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from wukong.admission.problem_text import describe_problem, format_choices
from wukong.api.core import Affinity, NodeSelectorRequirement, NodeSelectorTerm, Pod, PodAffinity, PodAffinityTerm
from wukong.api.documents import path_of
from wukong.api.meta import LabelSelector, LabelSelectorRequirement
from wukong.errors import nearest
from wukong.semantics.label_syntax import Labels, is_label_key, is_label_value, is_subdomain, parse_integer
from wukong.semantics.node_selectors import NODE_NAME_FIELD

LABEL_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")
NODE_OPERATORS = (*LABEL_OPERATORS, "Gt", "Lt")
_KEY_FORM = 'a label key such as "app" or "example.com/app"'
_VALUE_FORM = "a label value: up to 63 letters, digits, '-', '_' or '.', with a letter or digit at both ends"


def find_affinity_problems(pod: Pod) -> Iterator[str]:
    yield from find_label_problems(pod.spec.node_selector, "$.spec.nodeSelector")
    path = "$.spec.affinity"
    affinity = pod.spec.affinity or Affinity()
    if affinity.node_affinity is not None:
        yield from _find_node_affinity_problems(affinity, f"{path}.nodeAffinity")
    if affinity.pod_affinity is not None:
        yield from _find_pod_affinity_problems(affinity.pod_affinity, f"{path}.podAffinity")
    if affinity.pod_anti_affinity is not None:
        yield from _find_pod_affinity_problems(affinity.pod_anti_affinity, f"{path}.podAntiAffinity")


def find_label_problems(labels: Labels, path: str) -> Iterator[str]:
    for key, value in labels.items():
        if not (is_label_key(key) and is_label_value(value)):
            yield from find_key_problems(key, path_of(path, key))
            yield from _find_value_problems(value, path_of(path, key))


def find_selector_problems(selector: LabelSelector | None, path: str) -> Iterator[str]:
    if selector is None:
        return
    yield from find_label_problems(selector.match_labels, f"{path}.matchLabels")
    for index, expression in enumerate(selector.match_expressions):
        yield from _find_expression_problems(expression, f"{path}.matchExpressions[{index}]", LABEL_OPERATORS)


def find_label_keys_problems(keys: list[str], field: str, selector: LabelSelector | None, path: str) -> Iterator[str]:
    """matchLabelKeys and mismatchLabelKeys add to a selector, so there must be one."""
    if keys and selector is None:
        yield describe_problem(
            f"{path}.labelSelector", f"a selector, for {field} is set", None, "Add one, or remove the keys."
        )
    for index, key in enumerate(keys):
        yield from find_key_problems(key, f"{path}.{field}[{index}]")


def find_repeated_keys_problems(keys: list[str], selector: LabelSelector | None, path: str) -> Iterator[str]:
    """A key of matchLabelKeys already asks for one value; the selector cannot ask for another."""
    selected_keys = (
        [*selector.match_labels, *(expression.key for expression in selector.match_expressions)]
        if selector is not None
        else []
    )
    for index, key in enumerate(keys):
        if key in selected_keys:
            here = f"{path}.matchLabelKeys[{index}]"
            yield describe_problem(
                here, "a key that labelSelector does not mention", key, "Remove it from one of the two."
            )


def find_key_problems(key: str, path: str) -> Iterator[str]:
    if not is_label_key(key):
        yield describe_problem(path, _KEY_FORM, key, "Mend the key.")


def find_topology_key_problems(key: str, path: str) -> Iterator[str]:
    if key == "":
        yield describe_problem(path, "a node label key", key, 'Name one such as "topology.kubernetes.io/zone".')
    else:
        yield from find_key_problems(key, path)


def find_weight_problems(weight: int, path: str) -> Iterator[str]:
    if not 1 <= weight <= 100:
        yield describe_problem(f"{path}.weight", "1 to 100", weight, "Give it a weight such as 50.")


def _find_value_problems(value: str, path: str) -> Iterator[str]:
    if not is_label_value(value):
        yield describe_problem(path, _VALUE_FORM, value, "Mend the value.")


def _find_node_affinity_problems(affinity: Affinity, path: str) -> Iterator[str]:
    assert affinity.node_affinity is not None
    required, preferred = affinity.node_affinity.required, affinity.node_affinity.preferred
    if required is not None:
        here = f"{path}.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
        if not required.node_selector_terms:
            yield describe_problem(here, "at least one term", None, "Add a term, or remove the requirement.")
        for index, term in enumerate(required.node_selector_terms):
            yield from find_node_term_problems(term, f"{here}[{index}]")
    for index, weighted in enumerate(preferred):
        here = f"{path}.preferredDuringSchedulingIgnoredDuringExecution[{index}]"
        yield from find_weight_problems(weighted.weight, here)
        yield from find_node_term_problems(weighted.preference, f"{here}.preference")


def find_node_term_problems(term: NodeSelectorTerm, path: str) -> Iterator[str]:
    for index, expression in enumerate(term.match_expressions):
        yield from _find_expression_problems(expression, f"{path}.matchExpressions[{index}]", NODE_OPERATORS)
    for index, field in enumerate(term.match_fields):
        yield from _find_field_problems(field, f"{path}.matchFields[{index}]")


def _find_field_problems(field: NodeSelectorRequirement, path: str) -> Iterator[str]:
    if field.key != NODE_NAME_FIELD:
        hint = nearest(field.key, [NODE_NAME_FIELD])
        yield describe_problem(
            f"{path}.key", f'"{NODE_NAME_FIELD}", the only field', field.key, f"Use matchExpressions.{hint}"
        )
    if field.operator not in ("In", "NotIn"):
        yield describe_problem(f"{path}.operator", "In or NotIn", field.operator, "Other operators are for labels.")
    if len(field.values) != 1:
        yield describe_problem(f"{path}.values", "exactly one node name", field.values, "Write one term per node.")


def _find_expression_problems(
    expression: LabelSelectorRequirement | NodeSelectorRequirement, path: str, operators: tuple[str, ...]
) -> Iterator[str]:
    if not is_label_key(expression.key):
        yield from find_key_problems(expression.key, f"{path}.key")
    if expression.operator not in operators:
        hint = nearest(expression.operator, operators)
        yield describe_problem(
            f"{path}.operator", format_choices(operators), expression.operator, f"Use one of them.{hint}"
        )
        return
    yield from _find_values_problems(expression.operator, expression.values, f"{path}.values")
    if expression.operator not in ("Gt", "Lt") and not all(map(is_label_value, expression.values)):
        for index, value in enumerate(expression.values):
            yield from _find_value_problems(value, f"{path}.values[{index}]")


def _find_values_problems(operator: str, values: Sequence[str], path: str) -> Iterator[str]:
    if operator in ("In", "NotIn") and not values:
        yield describe_problem(path, f"at least one value for {operator}", None, "List the values.")
    elif operator in ("Exists", "DoesNotExist") and values:
        yield describe_problem(path, f"no values for {operator}", values, "Remove them, or use In or NotIn.")
    elif operator in ("Gt", "Lt"):
        is_number = len(values) == 1 and parse_integer(values[0]) is not None and is_label_value(values[0])
        if not is_number:
            fix = 'Write one whole number in quotes, such as "5"; signs are not allowed.'
            yield describe_problem(path, f"exactly one integer for {operator}", values, fix)


def _find_pod_affinity_problems(affinity: PodAffinity, path: str) -> Iterator[str]:
    for index, term in enumerate(affinity.required):
        yield from find_pod_term_problems(term, f"{path}.requiredDuringSchedulingIgnoredDuringExecution[{index}]")
    for index, weighted in enumerate(affinity.preferred):
        here = f"{path}.preferredDuringSchedulingIgnoredDuringExecution[{index}]"
        yield from find_weight_problems(weighted.weight, here)
        yield from find_pod_term_problems(weighted.pod_affinity_term, f"{here}.podAffinityTerm")


def find_pod_term_problems(term: PodAffinityTerm, path: str) -> Iterator[str]:
    yield from find_topology_key_problems(term.topology_key, f"{path}.topologyKey")
    yield from find_selector_problems(term.label_selector, f"{path}.labelSelector")
    if term.namespace_selector is not None:
        yield from find_selector_problems(term.namespace_selector, f"{path}.namespaceSelector")
    for index, namespace in enumerate(term.namespaces):
        if not is_subdomain(namespace) or "." in namespace:
            yield describe_problem(
                f"{path}.namespaces[{index}]", "the name of a namespace", namespace, "Mend the name."
            )
    if term.mismatch_label_keys or term.match_label_keys:
        yield from _find_term_keys_problems(term, path)


def _find_term_keys_problems(term: PodAffinityTerm, path: str) -> Iterator[str]:
    yield from find_label_keys_problems(term.match_label_keys, "matchLabelKeys", term.label_selector, path)
    yield from find_label_keys_problems(term.mismatch_label_keys, "mismatchLabelKeys", term.label_selector, path)
    yield from find_repeated_keys_problems(term.match_label_keys, term.label_selector, path)
    for index, key in enumerate(term.match_label_keys):
        if key in term.mismatch_label_keys:
            here = f"{path}.matchLabelKeys[{index}]"
            yield describe_problem(
                here, "a key that mismatchLabelKeys does not name", key, "Remove it from one of the two."
            )
