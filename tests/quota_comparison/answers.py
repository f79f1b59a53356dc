"""What is compared of a case: each answer of the API server, and how quotas and the workload end. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from wukong.api.quantity import parse_quantity
from wukong.ports import Document

RANDOM = re.compile(r'"load-[a-z0-9-]+"')  # names of pods that controllers make
_PROBLEM = re.compile(r", (?=(?:minimum|maximum) \S+ usage|\S+ max limit to request)")
_LISTED = re.compile(r"(?<=is forbidden: )\[(.*)\]$")


class Ending(msgspec.Struct, frozen=True):
    """The quotas and the workload once nothing happens any more."""

    used: dict[str, dict[str, int]] = {}  # quota → resource → billionths
    hard: dict[str, dict[str, int]] = {}
    pods: int = 0
    failures: frozenset[str] = frozenset()  # ReplicaFailure of ReplicaSet and Deployment; FailedCreate of others


class Answers(msgspec.Struct, frozen=True):
    setup: list[Any]
    objects: list[Any]
    workload: Any
    ending: Ending
    raised: Ending | None

    def find_differences(self, other: Answers) -> list[str]:
        differences = []
        for field in self.__struct_fields__:
            ours, theirs = getattr(self, field), getattr(other, field)
            entries = zip(ours, theirs, strict=True) if isinstance(ours, list) else [(ours, theirs)]
            for index, (left, right) in enumerate(entries):
                if left != right:
                    differences.append(f"{field} {index}: embedded {left}\n     real {right}")
        return differences


def read_answer(document: Document) -> Any:
    """What admission made of an object."""
    kind, spec = document.get("kind"), document.get("spec") or {}
    if kind != "Pod":
        return {"kind": kind, "limits": spec.get("limits"), "hard": spec.get("hard")}
    resources = {
        container["name"]: container.get("resources") or {}
        for field in ("containers", "initContainers")
        for container in spec.get(field) or ()
    }
    annotations = (document["metadata"].get("annotations") or {}).get("kubernetes.io/limit-ranger", "")
    return {"resources": resources, "annotation": annotations, "qos": document["status"].get("qosClass")}


def read_refusal(message: str) -> str:
    """A refusal: the problems of a limit range come in any order, and pods of controllers have any name.

    What is wrong with an object itself is said in other words by the embedded server.
    """
    message = RANDOM.sub('"load-?"', message)
    if " is invalid: " in message:
        return message.partition(" is invalid: ")[0] + " is invalid"
    return _LISTED.sub(lambda match: "; ".join(sorted(_PROBLEM.split(match[1]))), message)


def read_amounts(quotas: Sequence[Document], part: str) -> dict[str, dict[str, int]]:
    return {
        quota["metadata"]["name"]: {
            name: parse_quantity(amount) for name, amount in ((quota.get("status") or {}).get(part) or {}).items()
        }
        for quota in quotas
    }


def find_failure(document: Document) -> str:
    conditions = (document.get("status") or {}).get("conditions") or ()
    messages = [condition["message"] for condition in conditions if condition["type"] == "ReplicaFailure"]
    return read_refusal(messages[0]) if messages else ""
