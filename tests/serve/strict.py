"""A client that believes nothing: it knows what it offered, and fails on any answer kube-scheduler might stumble over.

Used by the tests of the extender, with any decider behind it. Each function takes what was sent and the body that came.
"""

from __future__ import annotations

import json
from typing import Any

Json = dict[str, Any]
FILTER_FIELDS = {"Nodes", "NodeNames", "FailedNodes", "FailedAndUnresolvableNodes", "Error"}


def check_filter(sent: Json, body: bytes) -> tuple[list[str], dict[str, str], dict[str, str]]:
    """Kept, failed and finally failed names, after everything about the answer was found right."""
    answer = _load(body)
    assert type(answer) is dict
    assert answer.keys() == FILTER_FIELDS
    assert answer["Error"] == ""
    offered = names_of(sent)
    kept = _kept(sent, answer)
    failed, final = answer["FailedNodes"], answer["FailedAndUnresolvableNodes"]
    for reasons in (failed, final):
        assert type(reasons) is dict
        assert all(type(reason) is str and reason for reason in reasons.values())
    accounted = [*kept, *failed, *final]
    assert len(accounted) == len(set(accounted)), "a node is named twice"
    assert set(accounted) == set(offered), "a node is missing or was never offered"
    return kept, failed, final


def check_prioritize(sent: Json, body: bytes) -> dict[str, int]:
    answer = _load(body)
    assert type(answer) is list
    scores: dict[str, int] = {}
    for entry in answer:
        assert type(entry) is dict
        assert entry.keys() == {"Host", "Score"}
        host, score = entry["Host"], entry["Score"]
        assert type(host) is str
        assert type(score) is int
        assert 0 <= score <= 10
        assert host not in scores, "a host is scored twice"
        scores[host] = score
    assert scores.keys() == set(names_of(sent)), "a node is missing or was never offered"
    return scores


def check_preempt(sent: Json, body: bytes) -> dict[str, list[str]]:
    """Who goes, by node."""
    answer = _load(body)
    assert type(answer) is dict
    assert answer.keys() == {"NodeNameToMetaVictims"}
    offered = victims_of(sent)
    remaining: dict[str, list[str]] = {}
    for node, victims in answer["NodeNameToMetaVictims"].items():
        assert victims.keys() == {"Pods", "NumPDBViolations"}
        assert type(victims["Pods"]) is list
        assert all(pod.keys() == {"UID"} for pod in victims["Pods"])
        remaining[node] = [pod["UID"] for pod in victims["Pods"]]
        assert (remaining[node], victims["NumPDBViolations"]) == offered[node]
    return remaining


def names_of(sent: Json) -> list[str]:
    folded = _folded(sent)
    if folded.get("nodenames") is not None:
        return list(folded["nodenames"])
    return [item["metadata"]["name"] for item in folded["nodes"].get("items") or ()]


def victims_of(sent: Json) -> dict[str, tuple[list[str], int]]:
    folded = _folded(sent)
    meta = {
        node: ([pod["UID"] for pod in (victims or {}).get("Pods") or ()], (victims or {}).get("NumPDBViolations", 0))
        for node, victims in (folded.get("nodenametometavictims") or {}).items()
    }
    full = {
        node: (
            [pod["metadata"].get("uid", "") for pod in (victims or {}).get("Pods") or ()],
            (victims or {}).get("NumPDBViolations", 0),
        )
        for node, victims in (folded.get("nodenametovictims") or {}).items()
    }
    return {**full, **meta}


def _kept(sent: Json, answer: Json) -> list[str]:
    folded = _folded(sent)
    if folded.get("nodenames") is not None:
        assert answer["Nodes"] is None, "names were asked, nodes answered"
        kept = answer["NodeNames"]
        assert type(kept) is list
        assert all(type(name) is str for name in kept)
        return list(kept)
    assert answer["NodeNames"] is None, "nodes were asked, names answered"
    assert type(answer["Nodes"]["items"]) is list
    sent_nodes: dict[str, Json] = {}
    for item in folded["nodes"].get("items") or ():
        sent_nodes.setdefault(item["metadata"]["name"], item)
    for item in answer["Nodes"]["items"]:
        assert item == sent_nodes[item["metadata"]["name"]], "a node came back changed"
    return [item["metadata"]["name"] for item in answer["Nodes"]["items"]]


def _folded(sent: Json) -> Json:
    return {key.lower(): value for key, value in sent.items()}


def _load(body: bytes) -> Any:
    return json.loads(body, object_pairs_hook=_no_twins)


def _no_twins(pairs: list[tuple[str, Any]]) -> Json:
    assert len(pairs) == len(dict(pairs)), "a key is written twice"
    return dict(pairs)
