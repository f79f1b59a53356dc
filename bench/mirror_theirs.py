"""The official Python client's side of the bench of mirrors. Runs in an environment that has it, and not Wukong.

The same verbs, arguments and figures as mirror_ours.py.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

client: Any = importlib.import_module("kubernetes.client")
config: Any = importlib.import_module("kubernetes.config")
watching: Any = importlib.import_module("kubernetes.watch")
AT_ONCE = 16
PAGE = 500


def peak_megabytes() -> float:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM:")).split()[1]) / 1024


def list_all(api: Any, page: int | None) -> dict[str, float]:
    base, began = peak_megabytes(), time.perf_counter()
    found: dict[tuple[str | None, str], Any] = {}
    for call in (api.list_node, api.list_pod_for_all_namespaces):
        more = None
        while True:
            answer = call(limit=page, _continue=more)
            found |= {(item.metadata.namespace, item.metadata.name): item for item in answer.items}
            more = answer.metadata._continue
            if not more:
                break
    seconds = time.perf_counter() - began
    return {
        "seconds": seconds,
        "objects": len(found),
        "mb": peak_megabytes() - base,
        "peak_mb": peak_megabytes(),
    }


def watch(api: Any, count: int) -> dict[str, float]:
    version = api.list_pod_for_all_namespaces(limit=1).metadata.resource_version
    print("listed", flush=True)
    sys.stdin.readline()
    mirror, began, worked = {}, time.perf_counter(), time.process_time()
    events = watching.Watch().stream(api.list_pod_for_all_namespaces, resource_version=version)
    for seen, event in enumerate(events, start=1):
        found = event["object"]
        mirror[found.metadata.namespace, found.metadata.name] = found
        if seen == count:
            break
    return {"seconds": time.perf_counter() - began, "cpu_seconds": time.process_time() - worked}


def act(names: list[str], do: Callable[[str], object]) -> dict[str, float]:
    began = time.perf_counter()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for _ in pool.map(do, names):
            pass
    return {"seconds": time.perf_counter() - began}


def bind(api: Any, node: str, name: str) -> None:
    target = client.V1ObjectReference(api_version="v1", kind="Node", name=node)
    body = client.V1Binding(metadata=client.V1ObjectMeta(name=name), target=target)
    # It cannot read the answer, a Status, as the Binding it expects.
    api.create_namespaced_pod_binding(name, "default", body, _preload_content=False)


def evict(api: Any, name: str) -> None:
    body = client.V1Eviction(metadata=client.V1ObjectMeta(name=name, namespace="default"))
    api.create_namespaced_pod_eviction(name, "default", body, _preload_content=False)


def main(verb: str, kubeconfig: str, rest: list[str]) -> None:
    config.load_kube_config(kubeconfig)
    settings = client.Configuration.get_default_copy()
    settings.connection_pool_maxsize = AT_ONCE
    api = client.CoreV1Api(client.ApiClient(settings))
    api.get_api_resources()  # connected
    match verb:
        case "list":
            figures = list_all(api, None)
        case "list-in-pages":
            figures = list_all(api, PAGE)
        case "watch":
            figures = watch(api, int(rest[0]))
        case "bind":
            figures = act(rest[1:], lambda name: bind(api, rest[0], name))
        case _:
            figures = act(rest[1:], lambda name: evict(api, name))
    print(json.dumps(figures))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
