"""`--canary N`: the course's write of a change that is tried on a few pods first. Called by course.py.

Whatever ends it in between, an interrupt or a crash, `wukong undo` takes it back: the Deployment says how it was.
"""

from __future__ import annotations

import subprocess
from functools import partial

import msgspec

from wukong.api.resources import Key, Resource
from wukong.app.changes.canary import CanaryResult, try_canary
from wukong.app.changes.writing import ChangedMeanwhile, write_patch
from wukong.cli.changes.session import Session
from wukong.cli.views.console import say
from wukong.placement.workloads.canaries import CanaryRecord, end_canary
from wukong.placement.workloads.patch_forms import build_patch
from wukong.ports import Document

DEADLINE_SECONDS = 600.0  # of a Deployment that names none


class CanaryOptions(msgspec.Struct, frozen=True, kw_only=True):
    pods: int
    check: str = ""  # a command: it is well if that ends with 0


class CanaryRun:
    """One canary, from the moment its first patch is written."""

    def __init__(self, session: Session, resource: Resource, key: Key, options: CanaryOptions) -> None:
        self._session, self._resource, self._key, self._options = session, resource, key, options

    def take(
        self, before: Document, begun: Document, record: CanaryRecord, timeout_seconds: float | None
    ) -> bool | None:
        """Whether it was well and goes on; False: it was undone. None: somebody else changed it, and it is left."""
        seconds = timeout_seconds or begun["spec"].get("progressDeadlineSeconds") or DEADLINE_SECONDS
        try:
            result = self._session.run(self._try(begun, record, float(seconds)))
            result = self._check(result) if result.is_good else result
            template = None if result.is_good else before["spec"]["template"]
            self._write(result.workload, end_canary(result.workload, record, template))
        except ChangedMeanwhile:
            say(f"The canary: somebody else has changed the Deployment. It is left as it is; {self._way_back}.")
            return None
        except KeyboardInterrupt:
            say(f"The canary is left as it is; {self._way_back}.")
            raise
        say(f"The canary: {result.reason}. {'It goes on.' if result.is_good else 'It was undone.'}")
        return result.is_good

    @property
    def _way_back(self) -> str:
        return f"wukong undo deploy/{self._key.name} -n {self._key.namespace} takes it back"

    async def _try(self, begun: Document, record: CanaryRecord, seconds: float) -> CanaryResult:
        async with self._session.observe(self._resource, self._key) as observation:
            return await try_canary(
                self._session.cluster, self._resource, self._key, observation, begun, record, seconds
            )

    def _check(self, result: CanaryResult) -> CanaryResult:
        if not self._options.check:
            return result
        code = subprocess.run(self._options.check, shell=True, check=False).returncode  # what the user asks for
        text = f"the check {self._options.check!r:.200} ended with {code}"
        return result._replace(is_good=code == 0, reason=f"{result.reason}, and {text}" if code == 0 else text)

    def _write(self, workload: Document, after: Document) -> None:
        make_patch = partial(build_patch, after=after, form="merge")
        self._session.run(write_patch(self._session.cluster, self._resource, self._key, workload, make_patch))
