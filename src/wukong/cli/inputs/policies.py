"""Policies of files that people wrote: every problem of every file at once. Used by explain.py."""

from __future__ import annotations

from collections.abc import Sequence

from wukong.app import policy_documents
from wukong.cli.inputs.namespaces import Namespace, NamespaceWriter
from wukong.cluster import place_name, read_settings
from wukong.errors import InputError
from wukong.placement.compile import Policy, title_of
from wukong.placement.rule import Rules


def read_policies(paths: Sequence[str], rules: Rules, namespace: Namespace) -> list[Policy]:
    """The policies of these files, all of them good, in this namespace where they name none.

    Raises InputError with every problem. A policy may be of another namespace than the pod that is asked about.
    """
    namespace = namespace._replace(is_required=False)
    policies: dict[str, Policy] = {}
    problems: list[str] = []
    for path in paths:
        try:
            for policy in _read_file(path, rules, namespace):
                if policies.setdefault(title_of(policy), policy) is not policy:
                    problems.append(f"{place_name(path)}: {title_of(policy)} is there twice. Remove one of the two.")
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(*problems)
    return list(policies.values())


def _read_file(path: str, rules: Rules, namespace: Namespace) -> list[Policy]:
    data, writer = read_settings(path), NamespaceWriter(namespace, path)
    try:
        policies = policy_documents.read_policies(data, rules, writer.set_namespace)
    except InputError as error:
        raise error.at(place_name(path)) from None
    writer.finish()
    return policies
