"""What a pod as a whole asks for and is limited to, with the forms of its quantities. Used by limit ranges and quotas.

The sums are those of `wukong.semantics.requests`, on documents: a message of the API server shows them as they are
written.
"""

from __future__ import annotations

from collections.abc import Iterator

from wukong.embedded.store.limits.amounts import Amounts, add_amounts, parse_amounts, raise_amounts
from wukong.ports import Document
from wukong.semantics.requests import is_pod_level


def list_containers(pod: Document) -> Iterator[Document]:
    """Its containers, then its init containers."""
    spec = pod.get("spec") or {}
    yield from spec.get("containers") or ()
    yield from spec.get("initContainers") or ()


def resources_of(container: Document, part: str) -> Amounts:
    """`part` is requests or limits."""
    return parse_amounts((container.get("resources") or {}).get(part))


def sum_resources(pod: Document, part: str, *, with_overhead: bool) -> Amounts:
    """The containers together, but what the pod asks for as a whole where it does.

    Overhead is added to all that is requested, and to what is limited.
    """
    spec = pod.get("spec") or {}
    total = _sum_containers(spec, part)
    own = (spec.get("resources") or {}).get(part) or {}
    total |= parse_amounts({name: quantity for name, quantity in own.items() if is_pod_level(name)})
    overhead = parse_amounts(spec.get("overhead")) if with_overhead else {}
    if part == "limits":
        overhead = {name: amount for name, amount in overhead.items() if name in total}
    add_amounts(total, overhead)
    return total


def _sum_containers(spec: Document, part: str) -> Amounts:
    running: Amounts = {}
    for container in spec.get("containers") or ():
        add_amounts(running, resources_of(container, part))
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in spec.get("initContainers") or ():
        amounts = resources_of(container, part)
        if container.get("restartPolicy") == "Always":
            add_amounts(running, amounts)
            add_amounts(sidecars, amounts)
            raise_amounts(peak, sidecars)
        else:
            add_amounts(amounts, sidecars)
            raise_amounts(peak, amounts)
    raise_amounts(running, peak)
    return running
