"""Probes and lifecycle hooks of containers. Called by containers.py; pure."""

from __future__ import annotations

from collections.abc import Iterator

from wukong.embedded.store.validation.pods.problems import (
    find_below,
    find_outside,
    find_unsupported,
    forbidden,
    invalid,
    required,
)
from wukong.embedded.store.validation.pods.syntax import find_port_problems
from wukong.ports import Document

PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_NUMBERS = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")


def find_probe_problems(container: Document, grace_seconds: int | None, path: str) -> Iterator[str]:
    """Check the probes and the lifecycle hooks of a container."""
    for name in PROBES:
        if (probe := container.get(name)) is None:
            continue
        here = f"{path}.{name}"
        yield from _find_handler_problems(probe, grace_seconds, here)
        for field in _NUMBERS:
            yield from find_below(probe.get(field), 0, f"{here}.{field}")
        if probe.get("terminationGracePeriodSeconds", 1) <= 0:
            place = f"{here}.terminationGracePeriodSeconds"
            yield invalid(place, probe["terminationGracePeriodSeconds"], "must be greater than 0")
        if name == "readinessProbe":
            if "terminationGracePeriodSeconds" in probe:
                place = f"{here}.terminationGracePeriodSeconds"
                value = probe["terminationGracePeriodSeconds"]
                yield invalid(place, value, "must not be set for readinessProbes")
        elif probe["successThreshold"] != 1:
            yield invalid(f"{here}.successThreshold", probe["successThreshold"], "must be 1")
    for name, handler in (container.get("lifecycle") or {}).items():
        if name in ("preStop", "postStart"):
            yield from _find_handler_problems(handler, grace_seconds, f"{path}.lifecycle.{name}")


def _find_handler_problems(handler: Document, grace_seconds: int | None, path: str) -> Iterator[str]:
    names = [name for name in _HANDLERS if name in handler]
    if not names:
        yield required(path, "must specify a handler type")
        return
    yield from (forbidden(f"{path}.{name}", "may not specify more than 1 handler type") for name in names[1:])
    name = names[0]
    action, here = handler[name], f"{path}.{name}"
    match name:
        case "exec":
            if not action.get("command"):
                yield required(f"{here}.command")
        case "httpGet":
            yield from find_port_problems(action["port"], f"{here}.port")
            yield from find_unsupported(action.get("scheme"), ("HTTP", "HTTPS"), f"{here}.scheme")
        case "tcpSocket":
            yield from find_port_problems(action["port"], f"{here}.port")
        case "grpc":
            yield from find_outside(action["port"], 1, 65535, here)
        case "sleep":
            seconds = action.get("seconds", 0)
            if grace_seconds is not None and not 0 <= seconds <= grace_seconds:
                yield invalid(
                    f"{here}.seconds", seconds, "must be non-negative and less than terminationGracePeriodSeconds"
                )
