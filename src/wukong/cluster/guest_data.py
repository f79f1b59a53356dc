"""Hides what virtual machines tell their guests: cloud-init, commands of probes, kernel arguments, names of secrets.

Of containers a snapshot keeps no arguments, environments and probes at all. Virtual machines are compared with what
their Wukong asks for, so their fields stay, and what may be private is replaced by the same text in both. Pure; called
by reduction.py.
"""

from __future__ import annotations

from typing import Any

from wukong.cluster.redaction import HIDDEN

_HIDDEN_BASE64 = "Kioq"
_TEXTS = {
    **dict.fromkeys(("userData", "networkData", "kernelArgs", "secretName"), HIDDEN),
    **dict.fromkeys(("userDataBase64", "networkDataBase64"), _HIDDEN_BASE64),
}
_REPLACED: dict[str, Any] = {
    "exec": {"command": [HIDDEN]},
    "httpHeaders": [],
    "accessCredentials": [],
    "secretRef": {"name": HIDDEN},
    "networkDataSecretRef": {"name": HIDDEN},
    "annotations": {},
}


def hide_guest_data(value: Any) -> Any:
    """A copy of a Wukong's, a VirtualMachine's or an instance's spec in which nothing private is left."""
    if isinstance(value, dict):
        return {name: _hide_field(name, entry) for name, entry in value.items()}
    if isinstance(value, list):
        return [hide_guest_data(entry) for entry in value]
    return value


def _hide_field(name: str, value: Any) -> Any:
    if name in _REPLACED:
        return _REPLACED[name] if value else value
    if name in _TEXTS and isinstance(value, str):
        return _TEXTS[name] if value else value
    return hide_guest_data(value)
