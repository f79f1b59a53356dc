"""Looking on: the pace of --speed, the live view on a terminal, and Ctrl-C."""

from __future__ import annotations

import io
import os
import pty
import re
import signal
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from rich.console import Console

from wukong.app.embedded import play_scenario
from wukong.cli.inputs.sim_source import read_scenario_file
from wukong.cli.views import spectator
from wukong.cli.views.live_state import LiveState, NodeState, PodState, WorkloadState, read_live_state, split_numbers
from wukong.cli.views.live_view import LiveView
from wukong.cli.views.spectator import LiveSpectator, read_speed
from wukong.cli.views.story import render_story, rows_of
from wukong.cli.views.table import Table
from wukong.embedded.scenario.play.player import WorldPlayer
from wukong.embedded.scenario.record.story import Event, NodeCount, Story
from wukong.errors import InputError

EXAMPLES = Path(__file__).parents[2] / "examples" / "sim"
COMMAND = [sys.executable, "-m", "wukong", "sim", "run"]


@pytest.mark.parametrize(("text", "speed"), [("10x", 10), ("10", 10), ("0.5X", 0.5), (" 2 ", 2)])
def test_a_speed_is_a_number_with_or_without_an_x(text: str, speed: float) -> None:
    assert read_speed(text) == speed


@pytest.mark.parametrize("text", ["fast", "0", "-1x", "nan", "inf", "", "x"])
def test_another_speed_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(InputError, match=r"--speed: expected how many times faster than real time, such as 10x"):
        read_speed(text)


class ManualTime:
    """A clock that goes as long as somebody sleeps."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.mark.slow
def test_ten_times_as_fast_takes_a_tenth_of_the_time_and_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    manual_time = ManualTime()
    monkeypatch.setattr(spectator, "time", manual_time)
    scenario = read_scenario_file(str(EXAMPLES / "deadlock.yaml"))
    story = play_scenario(scenario, 0, LiveSpectator(10.0))
    assert story.digest == play_scenario(scenario).digest
    assert 66 <= manual_time.now < 67  # given up after 660 s; nobody waits for the retries that come to nothing
    lines = capsys.readouterr().err.splitlines()  # lines for who has no terminal
    assert lines[0] == "00:00:00  nodes: 3 added"
    assert lines[-1] == "00:11:01  default/web: ProgressDeadlineExceeded"


def test_a_story_that_is_interrupted_ends_when_the_person_saw_it_end(monkeypatch: pytest.MonkeyPatch) -> None:
    manual_time = ManualTime()
    monkeypatch.setattr(spectator, "time", manual_time)
    live_spectator = LiveSpectator(10.0)

    def sleep(seconds: float) -> None:
        manual_time.now += seconds
        live_spectator.is_interrupted = manual_time.now >= 20

    monkeypatch.setattr(manual_time, "sleep", sleep)
    story = play_scenario(read_scenario_file(str(EXAMPLES / "deadlock.yaml")), 0, live_spectator)
    assert story.interrupted
    assert 200 <= story.virtual_seconds < 202


@pytest.mark.slow
def test_the_first_ctrl_c_ends_with_the_story_so_far() -> None:
    command = [*COMMAND, str(EXAMPLES / "deadlock.yaml"), "--speed", "0.01x"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        assert run.stderr is not None
        assert run.stderr.readline() == "00:00:00  nodes: 3 added\n"  # from here on it would take an hour
        run.send_signal(signal.SIGINT)
        out, _ = run.communicate(timeout=60)
    assert run.returncode == 130
    assert re.search(r"^Interrupted at 00:00:0\d: this is the story so far\.$", out, re.MULTILINE)
    assert "expectation" not in out


def on_a_terminal(*arguments: str, **environment: str) -> str:
    """Everything that a terminal of 80 columns and 24 lines was sent."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    merged = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "80", "LINES": "24", **environment}
    with subprocess.Popen([*COMMAND, *arguments], stdin=theirs, stdout=theirs, stderr=theirs, env=merged) as run:
        os.close(theirs)
        output = b""
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # Linux says so when nobody writes any more
                break
            if not part:
                break
            output += part
        run.wait(60)
    os.close(ours)
    return output.decode()


@pytest.mark.slow
def test_on_a_terminal_it_is_drawn_as_it_happens_then_told() -> None:
    sent = on_a_terminal(str(EXAMPLES / "spot-loss.yaml"), "--speed", "600x")
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", sent)
    frames = re.findall(r"\d\d:\d\d:\d\d  at 600x · (\d) nodes", plain)
    assert {"4", "2"} <= set(frames)
    assert "steady-1  on-demand" in plain
    assert plain.rstrip().endswith("Settled: every workload is as it should be.")
    assert sent.count("\x1b[?25l") == sent.count("\x1b[?25h") == 1  # the cursor is given back


@pytest.mark.slow
@pytest.mark.parametrize("off", [("--no-view",), ("-o", "json")])
def test_the_live_view_can_be_turned_off(off: tuple[str, ...]) -> None:
    assert "\x1b[?25l" not in on_a_terminal(str(EXAMPLES / "no-surge.yaml"), "--speed", "10000x", *off)


@pytest.mark.slow
def test_no_color_draws_without_colours() -> None:
    sent = on_a_terminal(str(EXAMPLES / "no-surge.yaml"), "--speed", "600x", NO_COLOR="1")
    assert "\x1b[?25l" in sent
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]m", sent)
    assert re.search(r"node-1  W", sent)  # whose pod it is, by its first letter


class Frames:
    """Draws whenever the clock jumps."""

    def __init__(self, width: int, height: int) -> None:
        self.console = Console(width=width, height=height, record=True, file=io.StringIO())
        self.view = LiveView(self.console)
        self.frames: list[str] = []

    def begin(self, player: WorldPlayer) -> None:
        self.player = player
        player.world.clock.on_jump = self.jumping

    def jumping(self, target: float) -> None:
        live_state = read_live_state(self.player, {}, target - self.player.started_at, self.view.most_rows)
        objects = self.player.world.state.objects
        assert (live_state.total_nodes, live_state.total_pods) == (len(objects["Node"]), len(objects.get("Pod", {})))
        self.console.print(self.view.render(live_state, rows_of(self.player.recorder.events)))
        self.frames.append(self.console.export_text())


@pytest.mark.parametrize(("width", "height"), [(80, 24), (40, 10), (200, 60)])
def test_a_picture_fits_its_terminal_and_shows_old_and_new(width: int, height: int) -> None:
    frames = Frames(width, height)
    play_scenario(read_scenario_file(str(EXAMPLES / "deadlock.yaml")), 0, frames)
    assert all(len(frame.splitlines()) < height for frame in frames.frames)
    assert all(len(line) <= width for frame in frames.frames for line in frame.splitlines())
    assert "3/3  1 new, 3 old" in frames.frames[-1]
    cut = [line for frame in frames.frames for line in frame.splitlines() if line.endswith("…")]
    assert all(len(line) == width and line[-3:-1] != "  " for line in cut)  # only what did not fit, no empty columns
    assert "default/web: ProgressDeadlineExceeded" in frames.frames[-1]


def a_picture(width: int, height: int, workloads: int = 1) -> list[str]:
    """A moment of a rollout as it is drawn, with the styles in brackets."""
    web = WorkloadState("shop/web", "Deployment", 8, 5, 2, 1, 3, 1, False)
    done = [WorkloadState(f"shop/done-{number}", "StatefulSet", 2, 2, 2, 0, 0, 0, True) for number in range(workloads)]
    starting = WorkloadState("shop/new", "Job", 60, 0, 0, 30, 0, 0, False)
    pods = [
        PodState("shop/web", "ready", False),
        PodState("shop/web", "ready", True),
        PodState("shop/new", "starting", False),
    ]
    nodes = [
        NodeState("node-1", True, (), [*pods, PodState("shop/web", "stopping", True)]),
        NodeState("node-2", False, ("cordoned", "not ready"), pods * 40),
        NodeState("node-3", False, (), []),
    ]
    reasons = [f"shop/web: pending: 0/3 nodes are available [{number}]" for number in range(4)]
    live_state = LiveState(75.0, 4, 11, 1234, [web, *done, starting], workloads + 3, nodes, reasons)
    file = io.TextIOWrapper(io.BytesIO(), "utf-8")
    console = Console(width=width, height=height, file=file, color_system="standard", force_terminal=True)
    view = LiveView(console, " at 10x")
    rows = [(second, "shop/web", f"{second} ready") for second in range(3)]
    lines = console.render_lines(view.render(live_state, rows), pad=False)
    return [
        "".join(f"{segment.text}[{segment.style}]" if segment.text.strip() else segment.text for segment in line)
        for line in lines
    ]


PICTURES = {"wide": (120, 40, 1), "usual": (80, 24, 1), "small": (40, 12, 1), "many": (80, 24, 20)}


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_drawn_as_in_its_golden_file(name: str) -> None:
    golden = Path(__file__).parents[1] / "golden" / "pictures" / f"{name}.txt"
    assert a_picture(*PICTURES[name]) == golden.read_text("utf-8").splitlines()


@pytest.mark.parametrize(
    "names", [["node-2", "node-10"], ["a", "²"], ["node-1", "node-1²2"], ["node-2", "node-" + "3" * 5000]]
)
def test_nodes_are_listed_by_the_numbers_in_their_names_whatever_those_are(names: list[str]) -> None:
    assert split_numbers(names[0]) < split_numbers(names[1])


def test_a_long_timeline_is_told_in_longer_steps() -> None:
    events = [Event(at=second, subject="default/web", text="ready") for second in range(300)]
    story = Story(
        settled=True,
        stuck=[],
        workloads={},
        nodes=NodeCount(),
        writes=1,
        virtual_seconds=300,
        digest="d",
        events=events,
    )
    table, pointer = list(render_story(story, []))[:2]
    assert isinstance(table, Table)
    assert [cells for cells, _ in table.rows][:2] == [
        ("00:00:00", "default/web", "", "10 ready"),
        ("00:00:10", "default/web", "", "10 ready"),
    ]
    assert str(pointer) == "In steps of 10 s; -o json has every event, --trace FILE every action."
