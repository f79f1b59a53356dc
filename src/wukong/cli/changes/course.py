"""The course of a change of a workload, from the question to the end of its rollout.

    read ─► dry run ─► who keeps it? ─► plan ─► safe? ─► yes? ─► write at that version ─► follow
      ▲                                   ▲       └ advice taken ┘         │
      └───────────── somebody changed it meanwhile: said what ─────────────┘     └ failed: written back, if asked

Called by `wukong patch`, `separate` and `undo`. Nothing is written before everything was shown and agreed to.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

from wukong.api.resources import Key, Resource
from wukong.app.changes.reading import read_workload
from wukong.app.changes.writing import ChangedMeanwhile, MakePatch, has_same_wishes, try_change, write_patch
from wukong.cli.changes.canary import CanaryOptions, CanaryRun
from wukong.cli.changes.following import FAILED, FollowOptions, follow_workload
from wukong.cli.changes.managers import find_keeper
from wukong.cli.changes.planning import plan_workload_change, read_documents
from wukong.cli.changes.session import Session
from wukong.cli.views.changes import render_change_for_git, render_meanwhile, render_patch
from wukong.cli.views.console import say, show, show_document
from wukong.cli.views.plan import render_plan
from wukong.errors import InputError
from wukong.forecast.advice.candidate import is_same
from wukong.forecast.advice.patches import make_patch as make_strategic_patch
from wukong.forecast.changes import compare_documents
from wukong.forecast.fields import Advice, Plan
from wukong.forecast.warnings import patch_drops_rules
from wukong.placement.workloads.canaries import begin_canary, end_canary, find_canary
from wukong.placement.workloads.patch_forms import add_version, build_patch, without_version
from wukong.placement.workloads.progress import find_rollout_obstacle
from wukong.placement.workloads.template_rules import keep_marks
from wukong.ports import Document, PatchBody, PatchType

REFUSED = 1
MOST_PLANS = 5  # of one change that others keep changing


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked: an edit of the document as it is read, or a patch as it was given."""

    resource: Resource
    key: Key
    edit: Callable[[Document], Document] | None = None
    patch: PatchBody | None = None
    form: PatchType = "strategic"  # in which an edit is written
    canary: CanaryOptions | None = None
    ends_canary: bool = False  # it is the way out of a canary that is under way

    def build(self, workload: Document) -> MakePatch:
        """What makes the patch of this workload, at whatever version its status has by then. Raises InputError."""
        if (patch := self.patch) is not None:
            return lambda read: add_version(patch, read["metadata"]["resourceVersion"])
        assert self.edit is not None, "a change is one of the two"
        return partial(build_patch, after=self.edit(workload), form=self.form)


class CourseOptions(msgspec.Struct, frozen=True, kw_only=True):
    is_agreed: bool = False  # --yes
    is_forced: bool = False
    advice: int | None = None  # --take-advice
    seeds: range = range(1, 17)
    jobs: int | None = None
    follows: bool = True
    undoes: bool = False  # --auto-undo
    timeout_seconds: float | None = None
    output: str | None = None


class ChangeResult(msgspec.Struct, rename="camel", kw_only=True):
    """What -o shows."""

    patch: Any = None
    patch_type: str = ""
    keeper: str = ""
    plan: Any = None
    is_written: bool = False
    resource_version: str = ""
    progress: Any = None
    is_undone: bool = False


def change_workload(session: Session, change: Change, options: CourseOptions) -> int:
    """Returns the exit code. Raises InputError or ClusterError where it cannot be done."""
    return _Course(session, change, options).take()


class _Course:
    def __init__(self, session: Session, change: Change, options: CourseOptions) -> None:
        self.session, self.change, self.options = session, change, options
        self.result = ChangeResult()
        self.taken: Advice | None = None

    def take(self) -> int:
        code = self._take()
        if self.options.output is not None:
            show_document(msgspec.to_builtins(self.result), self.options.output)
        return code

    def _take(self) -> int:
        for _ in range(MOST_PLANS):
            before = self.session.run(read_workload(self.session.cluster, self.change.resource, self.change.key))
            try:
                return self._take_from(before)
            except ChangedMeanwhile as meanwhile:
                self._tell_meanwhile(before, meanwhile.workload)
        raise InputError(f"{self._name} was changed by others {MOST_PLANS} times. Nothing was written.")

    def _take_from(self, before: Document) -> int:
        """Raises ChangedMeanwhile if the workload is no longer as it was read."""
        if find_canary(before) is not None and not self.change.ends_canary:
            raise InputError(f"{self._name}: a canary is under way. `wukong undo` takes it back.")
        make_patch = self._force(self.change.build(before))
        patch, after = self._try(before, make_patch)
        if has_same_wishes(before, after):
            return self._say_nothing()
        if self.change.canary is not None:
            after = begin_canary(before, after, self.change.canary.pods)
            make_patch = self._force(partial(build_patch, after=after, form="merge"))
            patch, after = self._try(before, make_patch)
        self._note_patch(patch)
        if (keeper := find_keeper(before)) and not self._may_change(keeper, patch):
            return REFUSED
        plan = self._plan(before, after)
        if (advice := self._choose_advice(plan)) is not None:
            after = _take_advice(after, advice)
            make_patch = self._force(partial(build_patch, after=after, form="merge"))
            patch, after = self._try(before, make_patch)
            if has_same_wishes(before, after):
                return self._say_nothing()
            self._note_patch(patch)
            plan = self._plan(before, after)
        plan = self._plan_rest(before, after, plan)
        return self._write(before, make_patch, plan) if self._is_agreed(plan) else REFUSED

    def _say_nothing(self) -> int:
        say(f"{self._name}: nothing changes, it is so already.")
        return 0

    @property
    def _name(self) -> str:
        return f"{self.change.resource.kind} {self.change.key}"

    def _force(self, make_patch: MakePatch) -> MakePatch:
        """With --force an apply takes over fields of others. For other patches API servers refuse the option."""
        if not self.options.is_forced:
            return make_patch

        def make_forced(workload: Document) -> PatchBody:
            patch = make_patch(workload)
            return msgspec.structs.replace(patch, force=patch.type == "apply")

        return make_forced

    def _try(self, before: Document, make_patch: MakePatch) -> tuple[PatchBody, Document]:
        return self.session.run(
            try_change(self.session.cluster, self.change.resource, self.change.key, before, make_patch)
        )

    def _show(self, *parts: Any) -> None:
        if self.options.output is None:
            show(*parts)

    def _note_patch(self, patch: PatchBody) -> None:
        self.result.patch, self.result.patch_type = without_version(patch), patch.type
        self._show(*render_patch(self._name, patch.type, self.result.patch))

    # ---- whether it may

    def _may_change(self, keeper: str, patch: PatchBody) -> bool:
        self.result.keeper = keeper
        is_forced = self.options.is_forced
        self._show(*render_change_for_git(self.change.resource, self.change.key, keeper, patch, is_forced=is_forced))
        return is_forced

    def _plan(self, before: Document, after: Document) -> Plan:
        documents = self.session.run(read_documents(self.session.cluster, self.session.clock.now()))
        plan = plan_workload_change(documents, before, after, self.options.seeds, self.options.jobs)
        if self.change.edit is not None:  # an edit drops no rule but ours
            plan.warnings = [warning for warning in plan.warnings if warning.code != patch_drops_rules.CODE]
        self.result.plan = plan.document()
        self._show("", *render_plan(plan))
        return plan

    def _plan_rest(self, before: Document, after: Document, plan: Plan) -> Plan:
        """Of a canary: a plan of the rollout with the strategy with which it goes on, if that is not safe."""
        if self.change.canary is None or not plan.verdict.is_safe:
            return plan
        record = find_canary(after)
        if record is None:
            raise InputError("--canary: the advice changes the strategy, which a canary needs. Take it without one.")
        say("The rollout after the canary, with its own strategy:")
        rest = self._plan(before, end_canary(after, record))
        return plan if rest.verdict.is_safe else rest

    def _choose_advice(self, plan: Plan) -> Advice | None:
        number = self.options.advice
        if number is None or plan.verdict.is_safe or self.taken is not None:
            return None
        if not 1 <= number <= len(plan.advice):
            raise InputError(f"--take-advice: expected 1 to {len(plan.advice)}, got {number}.")
        advice = plan.advice[number - 1]
        others = [patch for patch in advice.patches if not self._is_own(patch)]
        if others or advice.nodes or advice.commands or not advice.patches:
            raise InputError(
                f"--take-advice {number}: it changes more than {self._name}. Do that first, then repeat this command."
            )
        self.taken = advice
        return advice

    def _is_own(self, patch: Document) -> bool:
        head = {"apiVersion": self.change.resource.api_version, "kind": self.change.resource.kind}
        meta = {"name": self.change.key.name, "namespace": self.change.key.namespace}
        return is_same(patch, {**head, "metadata": meta})

    def _is_agreed(self, plan: Plan) -> bool:
        if not plan.verdict.is_safe and not self.options.is_forced:
            advice = " Take advice with --take-advice N." if plan.advice else ""
            say(f"{self._name}: not changed, for it is not safe.{advice} --force changes it all the same.")
            return False
        if self.options.is_agreed or self.session.ask(f"Change {self._name}?"):
            return True
        say(f"{self._name}: not changed.")
        return False

    # ---- doing it

    def _write(self, before: Document, make_patch: MakePatch, plan: Plan) -> int:
        write = write_patch(self.session.cluster, self.change.resource, self.change.key, before, make_patch)
        written = self.session.run(write)
        self.result.is_written = True
        self.result.resource_version = written["metadata"]["resourceVersion"]
        say(f"{self._name}: changed.")
        if self.change.canary is not None and (record := find_canary(written)) is not None:
            canary = CanaryRun(self.session, self.change.resource, self.change.key, self.change.canary)
            is_good = canary.take(before, written, record, self.options.timeout_seconds)
            if not is_good:
                self.result.is_undone = is_good is False
                return FAILED if is_good is None else max(FAILED, self._follow())
            written = self.session.run(read_workload(self.session.cluster, self.change.resource, self.change.key))
        if not self.options.follows:
            return 0
        if reason := find_rollout_obstacle(written):
            say(f"{self._name}: not followed, for {reason}.")
            return 0
        planned = max((outcome.slowest_seconds for outcome in plan.outcomes), default=0.0)
        code = self._follow(planned if plan.verdict.is_safe else None)
        if code == FAILED and self.options.undoes:
            self._undo(before, written)
        return code

    def _follow(self, planned_seconds: float | None = None) -> int:
        follow = FollowOptions(
            timeout_seconds=self.options.timeout_seconds,
            planned_seconds=planned_seconds,
            is_shown=self.options.output is None,
        )
        code, progress = follow_workload(self.session, self.change.resource, self.change.key, follow)
        self.result.progress = msgspec.to_builtins(progress) if progress is not None else None
        return code

    def _undo(self, before: Document, written: Document) -> None:
        """Write the workload back as it was, in one patch, unless somebody else has changed it since."""
        make_patch: MakePatch = partial(build_patch, after=before, form="merge")
        try:
            self.session.run(
                write_patch(self.session.cluster, self.change.resource, self.change.key, written, make_patch)
            )
        except ChangedMeanwhile:
            say(f"{self._name}: not undone, for somebody else has changed it since.")
            return
        self.result.is_undone = True
        say(f"{self._name}: undone, it is as it was before.")
        self._follow()

    def _tell_meanwhile(self, before: Document, now: Document) -> None:
        self.taken = None
        for line in render_meanwhile(self._name, list(compare_documents(before, now))):
            say(line)


def _take_advice(after: Document, advice: Advice) -> Document:
    advised = after
    for patch in advice.patches:
        advised = make_strategic_patch(advised, patch)
    template = keep_marks(after["spec"]["template"], advised["spec"]["template"])
    return {**advised, "spec": {**advised["spec"], "template": template}}
