"""Follows a rollout and shows it as it goes. Called by `wukong follow`, and by the course after its write.

Exit codes are those of `kubectl rollout status`: 0 once it is complete, 1 where it failed or the time was over.
"""

from __future__ import annotations

from contextlib import aclosing

import msgspec

from wukong.api.kinds import DEPLOYMENTS
from wukong.api.resources import Key, Resource
from wukong.app.changes.following import Look, explain_waiting, follow_rollout
from wukong.cli.changes.session import Session
from wukong.cli.views.console import say, show
from wukong.cli.views.rollout import RolloutView, is_unusual, render_end, render_interrupt
from wukong.placement.workloads.progress import Progress

FAILED, INTERRUPTED = 1, 130


class FollowOptions(msgspec.Struct, frozen=True, kw_only=True):
    timeout_seconds: float | None = None
    planned_seconds: float | None = None
    is_shown: bool = True


def follow_workload(
    session: Session, resource: Resource, key: Key, options: FollowOptions
) -> tuple[int, Progress | None]:
    """The exit code, and the state seen last. An interrupt leaves the rollout running, and it is said how to go on."""
    follower = _Follower(session, resource, key, options)
    try:
        session.run(follower.follow())
    except KeyboardInterrupt:
        for line in render_interrupt(name_argument(resource), key):
            say(line)
        return INTERRUPTED, follower.last
    progress = follower.last
    assert progress is not None, "a rollout has a state"
    if options.is_shown:
        show(*render_end(resource, key, progress, options.timeout_seconds))
    return (0 if progress.state == "complete" else FAILED), progress


def name_argument(resource: Resource) -> str:
    """As kubectl and our own verbs take it."""
    return "deploy" if resource == DEPLOYMENTS else "sts"


class _Follower:
    def __init__(self, session: Session, resource: Resource, key: Key, options: FollowOptions) -> None:
        self.session, self.resource, self.key, self.options = session, resource, key, options
        self.last: Progress | None = None
        self.view = RolloutView(options.planned_seconds)
        self.explained: set[str] = set()  # reasons of which it was said what they are about

    async def follow(self) -> None:
        async with self.session.observe(self.resource, self.key) as observation:
            looks = follow_rollout(
                self.session.cluster,
                self.resource,
                self.key,
                observation,
                self.options.timeout_seconds,
                self.options.planned_seconds,
            )
            async with aclosing(looks):
                async for look in looks:
                    self.last = look.progress
                    await self._show(look)

    async def _show(self, look: Look) -> None:
        if not self.options.is_shown:
            return
        show(*self.view.render(look))
        for pod in look.progress.pods:
            if is_unusual(pod.waits_for) and not pod.node and pod.waits_for not in self.explained:
                self.explained.add(pod.waits_for)
                lines = await explain_waiting(self.session.cluster, look.parts, pod)
                show(*(f"      {line}" for line in lines))
