"""NodePorts: a host port is given to one pod per node."""

from __future__ import annotations

import numpy as np

from wukong.engine.arrays import Mask, Rows
from wukong.engine.plugin import FilterPart, Load, Plugin, Reason, Scope, count_nodes
from wukong.engine.refusal_detail import RefusalDetail, find_pod_on
from wukong.engine.snapshot import Snapshot
from wukong.engine.view import View
from wukong.semantics.host_ports import HostPort, has_conflict

REASON = Reason("node(s) didn't have free ports for the requested pod ports", is_final=False)


class NodePorts(Plugin):
    name = "NodePorts"

    def filter(self, view: View) -> FilterPart | None:
        leaves_out_sidecars = not view.profile.version.sidecars_hold_ports
        wanted = [port for port in view.template.ports if port.leaves_out_sidecars == leaves_out_sidecars]
        return HostPortFilter(view.snapshot, wanted) if wanted else None


class HostPortFilter(FilterPart):
    scope = Scope.LOAD

    def __init__(self, snapshot: Snapshot, wanted: list[HostPort]) -> None:
        self.snapshot = snapshot
        self.wanted = wanted

    def failing(self, rows: Rows, load: Load) -> list[tuple[Reason, Mask]]:
        if isinstance(rows, slice):
            is_taken = np.zeros(count_nodes(rows, load), dtype=np.bool_)
            is_taken[[row for row in self.snapshot.ports if self._has_conflict(row)]] = True
        else:
            is_taken = np.array([self._has_conflict(row) for row in rows.tolist()], dtype=np.bool_)
        if load.extra is not None:
            is_taken |= load.extra > 0  # a pod like this one already holds them
        return [(REASON, is_taken)]

    def describe(self, rows: list[int]) -> dict[int, list[RefusalDetail]]:
        return {row: [self._describe_port(row, port) for port in self._list_taken(row)] for row in rows}

    def _list_taken(self, row: int) -> list[HostPort]:
        used = self.snapshot.ports.get(row, {})
        return [port for port in self.wanted if has_conflict([port], used)]

    def _describe_port(self, row: int, port: HostPort) -> RefusalDetail:
        holder = find_pod_on(self.snapshot, row, lambda template: has_conflict([port], template.ports))
        fields = (("port", port.port), ("protocol", port.protocol))
        return RefusalDetail("hostPort", f"host port {port.port}/{port.protocol} is taken", fields, pod=holder)

    def _has_conflict(self, row: int) -> bool:
        used = self.snapshot.ports.get(row, {})
        return has_conflict(self.wanted, used)
