"""The command group: what it lists, what it does not import, how it ends. The verbs have tests of their own."""

import importlib
import importlib.util
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from types import ModuleType

import click
import pytest

from wukong import __version__
from wukong.cli import main
from wukong.cli.command_group import Verb
from wukong.cli.main import VERBS
from wukong.errors import InputError, WukongError

AddVerb = Callable[[Callable[[], object]], None]


@pytest.fixture
def add_verb(monkeypatch: pytest.MonkeyPatch) -> AddVerb:
    """Adds a verb `act` that does what the given function does."""

    def add(action: Callable[[], object]) -> None:
        module = ModuleType("wukong_test_verb")
        module.command = click.command("act", help="Act.")(action)  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "wukong_test_verb", module)
        monkeypatch.setitem(VERBS, "act", Verb("wukong_test_verb", "Act."))

    return add


def run_python(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)


def test_help_lists_every_verb_with_its_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert out.startswith("Usage: wukong [OPTIONS] COMMAND")
    for name, verb in VERBS.items():
        assert f"{name} {verb.help}" in out


def test_no_arguments_show_the_help_and_fail_as_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "Commands:" in "".join(capsys.readouterr())


def test_help_imports_neither_a_verb_nor_anything_heavy() -> None:
    result = run_python(
        "import sys; from wukong.cli import main; code = main(['--help']); "
        "print('IMPORTED', *sys.modules, file=sys.stderr); sys.exit(code)"
    )
    assert result.returncode == 0
    imported = set(result.stderr.split())
    assert "IMPORTED" in imported
    assert "wukong.cli.main" in imported
    assert not imported & {"numpy", "msgspec", "rich", "yaml", "asyncio", *(verb.module for verb in VERBS.values())}


@pytest.mark.slow
def test_playing_a_scenario_imports_nothing_that_only_a_real_cluster_needs() -> None:
    result = run_python(
        "import sys; from wukong.cli import main; code = main(['sim', 'run', 'examples/sim/deadlock.yaml']); "
        "print('IMPORTED', *sys.modules, file=sys.stderr); sys.exit(0 if code in (0, 1) else code)"
    )
    assert result.returncode == 0, result.stderr
    imported = set(result.stderr.partition("IMPORTED")[2].split())
    assert "wukong.embedded.world.world" in imported
    assert not imported & {"asyncio", "ssl", "aiohttp", "prometheus_client", "cryptography", "multiprocessing"}


def test_a_verb_describes_itself_as_the_help_does() -> None:
    for name, verb in VERBS.items():
        if importlib.util.find_spec(verb.module) is None:  # listed, not written yet
            continue
        command = importlib.import_module(verb.module).command
        assert command.get_short_help_str(limit=200) == verb.help, name


def test_a_typo_in_a_verb_suggests_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explian"]) == 2
    assert 'No such command "explian". Did you mean "explain"?' in capsys.readouterr().err


def test_a_verb_like_no_other_lists_them_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["xyzzy"]) == 2
    verbs = (
        "snapshot, run, agent, replay, capacity, explain, plan, patch, separate, follow, undo, lint, get, rollout, "
        "spot, ledger, sim, manifests"
    )
    assert f"Choose one of: {verbs}." in capsys.readouterr().err


def test_an_unknown_option_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--nonsense"]) == 2
    assert "--nonsense" in capsys.readouterr().err


def test_version_is_the_version_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"wukong, version {__version__}\n"


def test_as_a_kubectl_plugin_the_usage_says_kubectl_wukong(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["bin/kubectl-wukong", "--help"])
    assert main() == 0
    assert capsys.readouterr().out.startswith("Usage: kubectl wukong [OPTIONS]")


def test_python_dash_m_runs_the_same_command_line() -> None:
    result = subprocess.run([sys.executable, "-m", "wukong", "--version"], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (0, f"wukong, version {__version__}\n")


def test_a_verb_ends_with_the_exit_code_it_returns(add_verb: AddVerb) -> None:
    add_verb(lambda: 1)
    assert main(["act"]) == 1
    add_verb(lambda: None)
    assert main(["act"]) == 0


@pytest.mark.parametrize(("error", "code"), [(WukongError("no\nway"), 1), (InputError("no\nway"), 2)])
def test_an_error_of_ours_is_a_message_and_its_exit_code(
    error: WukongError, code: int, add_verb: AddVerb, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        raise error

    add_verb(fail)
    assert main(["act"]) == code
    assert capsys.readouterr().err == "error: no\nway\n"


def test_a_bug_of_ours_is_not_dressed_up_as_an_error(add_verb: AddVerb) -> None:
    add_verb(lambda: int("seven"))
    with pytest.raises(ValueError, match="seven"):
        main(["act"])


@pytest.fixture
def interruptible() -> Iterator[None]:
    """A shell starts what it puts into the background with SIGINT ignored; here Python's own handler is in place."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_ends_with_130(add_verb: AddVerb) -> None:
    add_verb(lambda: signal.raise_signal(signal.SIGINT))
    assert main(["act"]) == 130


def test_a_reader_who_leaves_early_is_no_error() -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    with os.fdopen(write_end, "w") as closed:
        result = subprocess.run(
            [sys.executable, "-m", "wukong", "--help"], stdout=closed, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (result.returncode, result.stderr) == (141, "")
