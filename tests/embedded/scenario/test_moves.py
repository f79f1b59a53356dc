"""Which pods a story says have moved, and how availability went on the way."""

from __future__ import annotations

from embedded.scenario.test_player import NODES, WEB, play
from wukong.app.embedded import play_scenario
from wukong.embedded.scenario import read_scenario
from wukong.embedded.scenario.play.player import Interrupted, WorldPlayer

DATABASE = """
manifests:
  - apiVersion: apps/v1
    kind: StatefulSet
    metadata: {name: db}
    spec:
      replicas: 2
      serviceName: db
      selector: {matchLabels: {app: db}}
      template:
        metadata: {labels: {app: db}}
        spec: {containers: [{name: db, image: "db:1"}]}
"""


def test_who_is_drained_moves_to_another_node() -> None:
    (move,) = play("{at: 60s, drain: n1}").moves
    assert (move.workload, move.start, move.end) == ("default/web", "n1", "n2")
    assert move.pod != move.replacement
    assert 60 <= move.left < move.ready < 61


def test_a_rollout_and_a_smaller_size_move_nobody() -> None:
    image = '{spec: {template: {spec: {containers: [{name: web, image: "web:2"}]}}}}'
    rollout = f"{{at: 60s, patch: {{kind: Deployment, name: web, patch: {image}}}}}"
    assert play(rollout).moves == []
    sizes = [f"{{at: {at}s, scale: {{kind: Deployment, name: web, replicas: {n}}}}}" for at, n in ((60, 1), (90, 4))]
    assert play(*sizes).moves == []


def test_a_pod_with_a_name_of_its_own_moves_under_it() -> None:
    moves = play("{at: 60s, drain: n1}", start=NODES + DATABASE).moves
    assert [(move.pod == move.replacement, move.start, move.end) for move in moves] == [(True, "n1", "n2")]


def test_a_replacement_that_waits_long_has_moved_once_it_is_ready() -> None:
    story = play("{at: 60s, cordon: n2}", "{at: 70s, drain: n1}", "{at: 5m, uncordon: n2}")
    (move,) = story.moves
    assert (move.start, move.end, int(move.left)) == ("n1", "n2", 70)
    assert move.ready >= 300


def test_availability_is_told_whenever_it_changes() -> None:
    history = play("{at: 60s, drain: n1}").availability["default/web"]
    counts = [(available, wanted) for _, available, wanted in history]
    assert counts[0] == (0, 2)
    assert counts[-3:] == [(2, 2), (1, 2), (2, 2)]  # two that start need not be ready in the same millisecond
    assert [int(at) for at, _, _ in history][-3:] == [0, 60, 60]


class Impatient:
    """Has seen enough when the clock would jump beyond so many seconds."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def begin(self, player: WorldPlayer) -> None:
        self.player = player
        player.world.clock.on_jump = self.jumping

    def jumping(self, target: float) -> None:
        if target - self.player.started_at > self.seconds:
            raise Interrupted


def test_who_has_seen_enough_gets_the_story_so_far() -> None:
    scenario = read_scenario(f"{NODES}{WEB}\ntimeline: [{{at: 60s, drain: n1}}, {{at: 2m, uncordon: n1}}]")
    whole, part = play_scenario(scenario), play_scenario(scenario, spectator=Impatient(60))
    assert (part.settled, part.interrupted, whole.interrupted) == (False, True, False)
    assert 0 < len(part.trace) < len(whole.trace)
    assert whole.trace[: len(part.trace)] == part.trace
    assert part.virtual_seconds == 60
