"""What a follower yields becomes changes of the mirror, log lines and metrics. Called by `loop`; never waits.

A kind is synced once it has been listed, or once the API server said that it is not installed where that is allowed.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import partial

from wukong.api.kinds import KINDS
from wukong.api.meta import Object
from wukong.api.resources import Resource
from wukong.ports import Clock, Event, KindMissing, Listing, WatchFailure, WatchUpdate
from wukong.runtime.metrics import Metrics
from wukong.runtime.mirror_age import MirrorAges
from wukong.state import Change, State
from wukong.state.controller import Watch

log = logging.getLogger(__name__)


class MirrorFeed:
    def __init__(
        self, watches: Mapping[Resource, Watch], state: State, clock: Clock, metrics: Metrics, age_limit_seconds: float
    ) -> None:
        self.state, self.clock, self.metrics = state, clock, metrics
        self.ages = MirrorAges((KINDS.title_of(resource) for resource in watches), age_limit_seconds)
        self._unsynced = set(watches)
        self._missing: set[Resource] = set()  # optional kinds that are not installed
        for title in map(KINDS.title_of, watches):
            metrics.mirror_age.labels(title).set_function(partial(self._age_now, title))
            metrics.watch_restarts.labels(title)  # shown as 0 from the beginning

    @property
    def is_synced(self) -> bool:
        """Every kind has been listed at least once, or is optional and not installed."""
        return not self._unsynced

    def take_in(self, watch: Watch, update: WatchUpdate[Object]) -> list[Change]:
        """What this update changed in the mirror."""
        resource, group_kind, title = watch.resource, watch.resource.group_kind, KINDS.title_of(watch.resource)
        if isinstance(update, WatchFailure):
            self._report_failure(title, update)
            return []
        self.ages.record_update(title, self.clock.now())
        if isinstance(update, Event):
            changes = self.state.apply(update.type, update.object, group_kind)
        else:
            self._report_installed(resource, not isinstance(update, KindMissing))
            changes = self.state.replace(group_kind, update.items if isinstance(update, Listing) else [])
            self._unsynced.discard(resource)
        self.metrics.mirror_objects.labels(title).set(len(self.state.objects.get(group_kind, ())))
        return changes

    def _report_failure(self, kind: str, failure: WatchFailure) -> None:
        self.metrics.watch_restarts.labels(kind).inc()
        seconds = round(failure.retry_seconds, 3)
        log.warning("watch broke", extra={"kind": kind, "error": str(failure.error), "again_seconds": seconds})

    def _report_installed(self, resource: Resource, is_installed: bool) -> None:
        """Each change of it is said once."""
        if is_installed and resource in self._missing:
            self._missing.remove(resource)
            log.info("kind is installed now", extra={"kind": resource.kind})
        elif not is_installed and resource not in self._missing:
            self._missing.add(resource)
            log.info("kind is not installed", extra={"kind": resource.kind, "group": resource.group})

    def _age_now(self, kind: str) -> float:
        return self.ages.age_of(kind, self.clock.now())
