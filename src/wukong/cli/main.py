"""The command group: which verbs there are, and how a run ends.

Called by the installed scripts and by `python -m wukong`. Importing it costs click and nothing more: a verb's module,
and with it numpy, msgspec, rich and yaml, is imported when the verb is run. It never renders a result; verbs do.

A verb module `wukong.cli.verbs.<verb>` exposes `command: click.Command`. The command returns None or an exit code.
"""

import atexit
import io
import os
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import NoReturn

import click

from wukong import __version__
from wukong.cli.command_group import Verb, VerbGroup
from wukong.cli.views.escaping import escape
from wukong.errors import InputError, WukongError

# In the order in which `wukong --help` lists them. The help stands here so that listing it imports no verb.
VERBS: dict[str, Verb] = {
    "snapshot": Verb("wukong.cli.verbs.snapshot", "Capture what decides placement in a live cluster."),
    "run": Verb("wukong.cli.verbs.run", "Run Wukong's controllers until stopped."),
    "agent": Verb("wukong.cli.verbs.agent", "Write on a Node what its cloud says of its end, until stopped."),
    "replay": Verb("wukong.cli.verbs.replay", "Decide recorded scheduling attempts again and compare."),
    "capacity": Verb("wukong.cli.verbs.capacity", "Count how many more pods like this one fit, and why no more do."),
    "explain": Verb("wukong.cli.verbs.explain", "Show how every node fares for a pod, rule by rule."),
    "plan": Verb("wukong.cli.verbs.plan", "Say what a change will do, before it is applied."),
    "patch": Verb("wukong.cli.verbs.patch", "Change a Deployment or a StatefulSet, safely."),
    "separate": Verb("wukong.cli.verbs.separate", "Keep the versions of a Deployment on different nodes."),
    "follow": Verb("wukong.cli.verbs.follow", "Follow a rollout until it is over."),
    "undo": Verb("wukong.cli.verbs.undo", "Take a workload back to an earlier revision."),
    "lint": Verb("wukong.cli.verbs.lint", "Say what is wrong with Wukongs, and what will fail some day."),
    "get": Verb("wukong.cli.verbs.get", "Show Wukongs with all that belongs to them, or Moves."),
    "rollout": Verb("wukong.cli.verbs.rollout", "Show a Rollout, and promote, abort, undo or restart it."),
    "spot": Verb("wukong.cli.verbs.spot", "Show which nodes leave, which did, and what would happen if one did."),
    "ledger": Verb("wukong.cli.verbs.ledger", "Show how many replicas workloads truly had, and since when."),
    "sim": Verb("wukong.cli.verbs.sim", "Play scenarios in an embedded cluster, on virtual time."),
    "manifests": Verb("wukong.cli.verbs.manifests", "Print what to install in a cluster."),
}

INTERRUPTED = 130  # 128 + SIGINT, as shells count
MOST_PROBLEMS = 20
_kept: list[object] = []
PIPE_CLOSED = 141  # 128 + SIGPIPE; not 1, which a verb may use for an answer (`kubectl diff`: 1 = differs)


def run_script() -> NoReturn:
    """Run the command line of this process, then end it.

    The memory of a large cluster is left to the system: to free it object by object takes a fifth of a whole forecast.
    """
    code = main()
    if threading.active_count() > 1:
        sys.exit(code)  # which waits for the others
    atexit._run_exitfuncs()
    with suppress(OSError, ValueError):  # a closed stream: main has said what there was to say
        sys.stderr.flush()
    os._exit(code)


def keep_until_exit(large: object) -> None:
    """Keep something large until the process ends, so that nobody spends time on freeing it before."""
    _kept[:] = [large]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code; every expected failure ends here as a message on stderr."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without ★ shows a ?, not a traceback
    try:
        code = run(sys.argv[1:] if arguments is None else arguments)
        sys.stdout.flush()  # so that a closed pipe fails here and not when the interpreter exits
        return code
    except WukongError as error:
        print_error(error)
        return error.exit_code
    except click.ClickException as error:
        message = io.StringIO()
        error.show(message)
        click.echo(escape(message.getvalue()), err=True, nl=False)
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except BrokenPipeError:
        discard_output()
        return PIPE_CLOSED


def run(arguments: Sequence[str]) -> int:
    """Parse and invoke. click's own main() does the same, but ends a closed pipe with exit code 1."""
    try:
        with wukong.make_context(program_name(sys.argv[0]), list(arguments)) as context:
            result = wukong.invoke(context)
    except click.exceptions.Exit as leave:
        return leave.exit_code
    return result if isinstance(result, int) else 0


def print_error(error: WukongError) -> None:
    """Print one line per problem; of very many the first, and how many more there are."""
    problems = error.problems if isinstance(error, InputError) else (str(error),)
    for problem in problems[:MOST_PROBLEMS]:
        click.echo(escape(f"error: {problem}"), err=True)
    if len(problems) > MOST_PROBLEMS:
        click.echo(f"error: … and {len(problems) - MOST_PROBLEMS:,} more problems", err=True)


@click.group(
    cls=VerbGroup, verbs=VERBS, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(__version__, prog_name="wukong")
def wukong() -> None:
    """Say where Kubernetes will place pods, and why, before it does."""


def program_name(script: str) -> str:
    """Return what the user typed, for usage lines: kubectl runs the plugin `kubectl-wukong` as `kubectl wukong`."""
    return "kubectl wukong" if os.path.basename(script).startswith("kubectl-wukong") else "wukong"


def discard_output() -> None:
    """Point stdout at nothing, so that what is still buffered does not fail again when the interpreter exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
