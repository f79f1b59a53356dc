"""`find_advice`: candidates played on forks, the one that gives up least first, until enough of them are safe.

Called by `wukong plan` for a change that is not safe. A candidate is advice only if the change with it completes with
every seed of the plan. It is played with the seed that went wrong first: most that do not help show it there.
"""

from __future__ import annotations

import re
from collections import Counter as Tally
from collections.abc import Sequence

from wukong.app.snapshots import Baseline
from wukong.embedded.scenario.play.player import WorldPlayer
from wukong.errors import InputError, NoProgress
from wukong.forecast.advice.candidate import Candidate, identify
from wukong.forecast.advice.patches import build_patch, make_patch
from wukong.forecast.advice.question import Question
from wukong.forecast.advice.registry import list_candidates, sort_distinct
from wukong.forecast.changes import find_changes
from wukong.forecast.fields import VERDICT_KINDS, Advice, NeededNodes, Plan, Play
from wukong.forecast.plan import PlanOptions, play_all
from wukong.forecast.planned_change import PlannedChange
from wukong.forecast.play import PlayOptions, play_change
from wukong.ports import Executor
from wukong.state import State

_NUMBERS = re.compile(r"\d+")
ENOUGH = 3  # pieces of advice
MOST_PLAYED = 20  # candidates of one question
MOST_COMBINED = 3  # candidates that are not enough by themselves, each with what would be next


def find_advice(
    baseline: Baseline,
    change: PlannedChange,
    plan: Plan,
    seeds: Sequence[int],
    executor: Executor,
    options: PlanOptions | None = None,
) -> list[Advice]:
    """What would make the change safe, the best first; nothing for one that is safe.

    Where no single candidate does, those that come nearest are tried with a second one.
    """
    if plan.verdict.is_safe:
        return []
    search = _Search(baseline, change, seeds, executor, options or PlanOptions(), plan.outcomes[0].seeds[0])
    question = search.ask(change)
    advice, unsafe = search.try_candidates(list_candidates(question))
    if not advice:
        bases = choose_bases(unsafe, question.play)[:MOST_COMBINED]
        pairs = [pair for candidate in bases for pair in search.extend(candidate, question)]
        advice, _ = search.try_candidates(sort_distinct(pairs))
    return advice


class _Search:
    """What is the same for all candidates. `seed` is one with which the change goes wrong."""

    def __init__(
        self,
        baseline: Baseline,
        change: PlannedChange,
        seeds: Sequence[int],
        executor: Executor,
        options: PlanOptions,
        seed: int,
    ) -> None:
        self.baseline, self.change, self.seeds, self.executor = baseline, change, seeds, executor
        self.options, self.seed = options, seed

    def ask(self, change: PlannedChange) -> Question:
        play = self._play(change)
        changes = find_changes(self.baseline, change)
        rolled = frozenset(entry.name for entry in changes if entry.rollout is not None and entry.rollout.starts)
        return Question(change, play, self.baseline.state, self._play_to_end(change), rolled)

    def extend(self, candidate: Candidate, question: Question) -> list[Candidate]:
        """The candidate, each time with one that would help where it does not."""
        next_question = self.ask(candidate.apply_to(self.change))
        return [combine(candidate, second, question) for second in list_candidates(next_question)]

    def try_candidates(self, candidates: Sequence[Candidate]) -> tuple[list[Advice], list[tuple[Candidate, Play]]]:
        """The best of each kind that are safe, as many as are enough; and those that are not, with their plays."""
        advice: list[Advice] = []
        unsafe: list[tuple[Candidate, Play]] = []
        left = MOST_PLAYED
        for candidate in candidates:
            if left == 0 or len(advice) == ENOUGH:
                break
            if candidate.code in {entry.code for entry in advice}:
                continue  # a better one of its kind is safe
            left -= 1
            advised = candidate.apply_to(self.change)
            try:
                play = self._play(advised)
                if play.kind != "completes":
                    unsafe.append((candidate, play))
                    continue
                plays = play_all(self.baseline, advised, self.seeds, self.executor, self.options)
            except (InputError, NoProgress):  # the API server refuses it, or controllers undo each other's work
                continue
            if all(play.kind == "completes" for play in plays):
                advice.append(_describe(candidate, plays))
        return advice, unsafe

    def _play(self, change: PlannedChange) -> Play:
        return play_change(self.baseline, change, PlayOptions(self.options.until, self.options.limits), self.seed)

    def _play_to_end(self, change: PlannedChange) -> State:
        """The mirror of a fork on which the change was played, when nothing more happens."""
        spectator = _Spectator()
        self.baseline.play(change.scenario(self.options.until), self.seed, spectator, _leave_out)
        return spectator.player.world.state


def choose_bases(unsafe: Sequence[tuple[Candidate, Play]], play: Play) -> list[Candidate]:
    """What a second candidate may complete: what makes it better, or else what fails for another reason, or else the
    first of each kind. The best first."""
    ordered = sorted(unsafe, key=lambda entry: _badness(entry[1]))
    better = [candidate for candidate, other in ordered if _badness(other) < _badness(play)]
    different = [candidate for candidate, other in ordered if _list_reasons(other) != _list_reasons(play)]
    first_of_kind = {candidate.code: candidate for candidate, _ in reversed(unsafe)}
    return better or different or list(first_of_kind.values())[::-1]


def _badness(play: Play) -> tuple[int, int]:
    return VERDICT_KINDS.index(play.kind), len(play.problems)


def _list_reasons(play: Play) -> set[str]:
    """Why it fails, whatever the numbers are."""
    return {_NUMBERS.sub("", problem.text) for problem in play.problems}


def combine(first: Candidate, second: Candidate, question: Question) -> Candidate:
    """Both at once. Patches of the same object become one."""
    patches = {identify(patch): patch for patch in first.patches}
    for patch in second.patches:
        identity = identify(patch)
        if identity in patches:
            document = question.document_of(patch)
            patches[identity] = build_patch(document, make_patch(make_patch(document, patches[identity]), patch))
        else:
            patches[identity] = patch
    return Candidate(
        code=f"{first.code}+{second.code}",
        text=f"{first.text} {second.text}",
        loss=max(first.loss, second.loss),
        gives_up=f"{first.gives_up} {second.gives_up}",
        patches=tuple(patches.values()),
        nodes=(*first.nodes, *second.nodes),
        steps=(*first.steps, *second.steps),
    )


def _describe(candidate: Candidate, plays: Sequence[Play]) -> Advice:
    likes = Tally(node["metadata"]["name"].rpartition("-more-")[0] for node in candidate.nodes)
    seconds = sorted(play.seconds for play in plays)
    return Advice(
        code=candidate.code,
        title=candidate.text,
        text=candidate.gives_up,
        gives_up=candidate.loss.name.lower(),
        patches=list(candidate.patches),
        nodes=[NeededNodes(like=like, type="", count=count) for like, count in likes.items()],
        commands=[f"kubectl uncordon {step.uncordon}" for step in candidate.steps if step.uncordon is not None],
        seconds=seconds[len(seconds) // 2],
    )


class _Spectator:
    """Remembers who plays."""

    player: WorldPlayer

    def begin(self, player: WorldPlayer) -> None:
        self.player = player


def _leave_out(_: str) -> None:
    """No line of a trace is kept."""
