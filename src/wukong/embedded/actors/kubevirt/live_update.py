"""What a change of the template means for an instance that runs: copied into it, or a restart is required; pure.

    affinity, nodeSelector, tolerations, cpu sockets, guest memory    copied; the next target pod is made of them
    anything else in the template's spec                              RestartRequired, which only a restart clears
    labels and annotations of the template                            nothing until a restart

As with `vmRolloutStrategy: LiveUpdate`, the default of KubeVirt 1.7. virt-controller compares with the spec that the
instance was started from, which it keeps in a ControllerRevision; here an annotation of the instance has hashes of it.
"""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from wukong.embedded.store.documents import meta_of
from wukong.ports import Document

STARTED_FROM = "vm.sim.novasphere.dev/started-from"  # on an instance: hashes of its template, fixed part and whole
RESTART_MESSAGE = "a non-live-updatable field was changed in the template spec"
_LIVE_FIELDS = ("nodeSelector", "affinity", "tolerations")
_encode = msgspec.json.Encoder(order="sorted").encode


def describe_start(template: Document) -> str:
    """The value of the annotation STARTED_FROM for an instance that is started from this template."""
    return f"{_hash(_fixed_part_of(template.get('spec') or {}))}-{_hash(template)}"


def needs_restart(template: Document, instance: Document) -> bool:
    """Whether the template has changed in what cannot be copied into the instance that was started from it."""
    before = (meta_of(instance).get("annotations") or {}).get(STARTED_FROM, "")
    return bool(before) and before.partition("-")[0] != describe_start(template).partition("-")[0]


def is_unchanged(template: Document, instance: Document) -> bool:
    """Whether the template is the one that the instance was started from."""
    annotations: dict[str, str] = meta_of(instance).get("annotations") or {}
    return annotations.get(STARTED_FROM, "") == describe_start(template)


def update_spec(template_spec: Document, instance_spec: Document) -> Document:
    """The spec of an instance with what can be changed while it runs as the template has it."""
    spec = {name: value for name, value in instance_spec.items() if name not in _LIVE_FIELDS}
    spec |= {name: template_spec[name] for name in _LIVE_FIELDS if template_spec.get(name)}
    if instance_spec.get("domain") is None:
        return spec
    domain = spec["domain"] = {**instance_spec["domain"]}
    wanted = template_spec.get("domain") or {}
    sockets, guest = (wanted.get("cpu") or {}).get("sockets"), (wanted.get("memory") or {}).get("guest")
    if sockets and domain.get("cpu"):
        domain["cpu"] = {**domain["cpu"], "sockets": sockets}
    if guest and domain.get("memory"):
        domain["memory"] = {**domain["memory"], "guest": guest}
    return spec


def _fixed_part_of(spec: Document) -> Document:
    fixed = {name: value for name, value in spec.items() if name not in _LIVE_FIELDS}
    domain = {**(spec.get("domain") or {})}
    domain["cpu"] = {name: value for name, value in (domain.get("cpu") or {}).items() if name != "sockets"}
    domain["memory"] = {name: value for name, value in (domain.get("memory") or {}).items() if name != "guest"}
    return {**fixed, "domain": domain}


def _hash(value: Any) -> str:
    return hashlib.sha256(_encode(value)).hexdigest()[:16]
