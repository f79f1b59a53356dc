"""Which pod this process runs in, as its Deployment says by variables."""

from __future__ import annotations

from collections.abc import Mapping

from wukong.api.resources import Key

POD_NAME, POD_NAMESPACE = "POD_NAME", "POD_NAMESPACE"  # variables of our containers


def find_own_pod(env: Mapping[str, str]) -> Key | None:
    """None outside of a pod."""
    namespace, name = env.get(POD_NAMESPACE, ""), env.get(POD_NAME, "")
    return Key(namespace, name) if namespace and name else None
