"""What a follower yields becomes changes of the mirror, log lines and metrics. Called by `loop`; never waits.

A kind is synced once it has been listed, or once the API server said that it is not installed where that is allowed.
An object that cannot be read is logged when it becomes so and when its problem becomes another, and counted.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from functools import partial

from wukong.api.kinds import KINDS
from wukong.api.meta import Object
from wukong.api.resources import Resource, key_of
from wukong.api.unreadable import Unreadable
from wukong.ports import Clock, Event, Listing, WatchFailure, WatchUpdate
from wukong.runtime.metrics import Metrics
from wukong.runtime.mirror_age import MirrorAges
from wukong.state import Change, State
from wukong.state.controller import Watch

log = logging.getLogger(__name__)
MOST_LOGGED = 10  # unreadable objects of one page


class MirrorFeed:
    def __init__(
        self, watches: Mapping[Resource, Watch], state: State, clock: Clock, metrics: Metrics, age_limit_seconds: float
    ) -> None:
        self.state, self.clock, self.metrics = state, clock, metrics
        self.ages = MirrorAges((KINDS.title_of(resource) for resource in watches), age_limit_seconds)
        self._unsynced = set(watches)
        self._failures: dict[Resource, str] = {}  # why the latest list or watch of a kind broke, until one succeeds
        for title in map(KINDS.title_of, watches):
            metrics.mirror_age.labels(title).set_function(partial(self._age_now, title))
            metrics.watch_restarts.labels(title)  # shown as 0 from the beginning
            metrics.unreadable_objects.labels(title)

    @property
    def is_synced(self) -> bool:
        """Every kind has been listed at least once, or is optional and not installed."""
        return not self._unsynced

    def describe_unsynced(self) -> list[str]:
        """The kinds that have not been listed yet, each with the reason where one is known."""
        return [
            f"{KINDS.title_of(resource)} has not been listed yet"
            + (f": {self._failures[resource]}" if resource in self._failures else "")
            for resource in sorted(self._unsynced, key=KINDS.title_of)
        ]

    def take_in(self, watch: Watch, update: WatchUpdate[Object]) -> list[Change]:
        """What this update changed in the mirror."""
        resource, group_kind, title = watch.resource, watch.resource.group_kind, KINDS.title_of(watch.resource)
        if isinstance(update, WatchFailure):
            self._failures[resource] = str(update.error)
            self._report_failure(title, update)
            return []
        self._failures.pop(resource, None)
        self.ages.record_update(title, self.clock.now())
        if isinstance(update, Event):
            changes = self.state.apply(update.type, update.object, group_kind)
        elif isinstance(update, Listing):
            changes = self._take_in_page(resource, update)
        else:
            self._report_installed(resource, False)
            changes = self.state.replace(group_kind, [])
            self._unsynced.discard(resource)
        self.metrics.mirror_objects.labels(title).set(len(self.state.objects.get(group_kind, ())))
        self._report_unreadable(title)
        self.metrics.unreadable_objects.labels(title).set(len(self.state.unreadable.get(group_kind, ())))
        return changes

    def _take_in_page(self, resource: Resource, page: Listing[Object]) -> list[Change]:
        self._report_installed(resource, True)
        items = [*page.items, *page.unreadable] if page.unreadable else page.items
        changes = self.state.take_page(resource.group_kind, items, is_first=page.is_first, is_last=page.is_last)
        if page.is_last:
            self._unsynced.discard(resource)
        return changes

    def _report_unreadable(self, kind: str) -> None:
        subjects = self.state.take_unreported()
        for _, subject in subjects[:MOST_LOGGED]:
            facts = {"kind": kind, "object": str(key_of(subject)), "problem": subject.problem}
            log.warning("object cannot be read and is left out", extra=facts)
        if len(subjects) > MOST_LOGGED:
            log.warning("more objects cannot be read", extra={"kind": kind, "more": len(subjects) - MOST_LOGGED})

    def _report_failure(self, kind: str, failure: WatchFailure) -> None:
        self.metrics.watch_restarts.labels(kind).inc()
        seconds = round(failure.retry_seconds, 3)
        log.warning("watch broke", extra={"kind": kind, "error": str(failure.error), "again_seconds": seconds})

    def _report_installed(self, resource: Resource, is_installed: bool) -> None:
        """Each change of it is said once."""
        missing_kinds, group_kind = self.state.missing_kinds, resource.group_kind
        if is_installed and group_kind in missing_kinds:
            missing_kinds.remove(group_kind)
            log.info("kind is installed now", extra={"kind": resource.kind})
        elif not is_installed and group_kind not in missing_kinds:
            missing_kinds.add(group_kind)
            log.info("kind is not installed", extra={"kind": resource.kind, "group": resource.group})

    def _age_now(self, kind: str) -> float:
        return self.ages.age_of(kind, self.clock.now())


def list_unreadable(update: WatchUpdate[Object]) -> Sequence[Unreadable]:
    """The objects of this update that could not be read. One that was deleted is no longer of interest."""
    if isinstance(update, Listing):
        return update.unreadable
    if isinstance(update, Event) and update.type != "DELETED" and isinstance(update.object, Unreadable):
        return (update.object,)
    return ()
