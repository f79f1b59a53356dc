"""What a Prometheus is asked about usage: the queries and their defaults. Brings no aiohttp: options are made of it."""

from __future__ import annotations

import msgspec

from wukong.cluster import urls


class Queries(msgspec.Struct, frozen=True):
    """PromQL that gives percent per node. The defaults are for node_exporter; `label` names the node in the answer."""

    cpu: str = '100 * (1 - avg by (node) (rate(node_cpu_seconds_total{mode="idle"}[5m])))'
    memory: str = "100 * (1 - max by (node) (node_memory_MemAvailable_bytes / node_memory_MemTotal_bytes))"
    storage: str = (
        '100 * (1 - min by (node) (node_filesystem_avail_bytes{mountpoint="/"}'
        ' / node_filesystem_size_bytes{mountpoint="/"}))'
    )
    label: str = "node"


def find_url_problem(url: str) -> str:
    """What is wrong with the address of a Prometheus; "" if nothing is. The message holds no password."""
    return urls.find_url_problem(url, "http://prometheus:9090")
