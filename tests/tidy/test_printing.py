"""Everything that is printed passes through the console, where control characters are escaped."""

from __future__ import annotations

import ast
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "src" / "wukong"
PRINTERS = {
    "print", "click.echo", "click.secho", "click.echo_via_pager", "Console", "rich.print", "sys.stdout.write",
    "sys.stderr.write", "sys.stdout.buffer.write", "sys.stderr.buffer.write", "logging.StreamHandler",
}  # fmt: skip
ALLOWED = {
    "cli/views/console.py": "the console",
    "cli/main.py": "errors, escaped; it imports no console, which would bring rich",
    "cli/views/log_lines.py": "the log, escaped by its formatters",
    "cli/verbs/manifests_admission.py": "documents that are ours",
    "cli/verbs/manifests_agent.py": "documents that are ours; YAML escapes the address in them",
    "cli/verbs/manifests_crds.py": "documents that are ours",
    "cli/verbs/manifests_extender.py": "documents that are ours",
    "cli/verbs/manifests_ledger.py": "documents that are ours; YAML escapes the names in them",
    "cli/verbs/manifests_reader.py": "documents that are ours; YAML escapes the names of whom they are for",
    "cli/verbs/manifests_rollout.py": "documents that are ours",
    "cli/verbs/manifests_scheduler.py": "documents that are ours",
    "cli/verbs/manifests_spot.py": "documents that are ours",
    "cli/verbs/manifests_vm.py": "documents that are ours",
}


def find_printers(path: Path) -> list[str]:
    tree = ast.parse(path.read_text("utf-8"))
    calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return [f"{path}:{call.lineno}: {ast.unparse(call)}" for call in calls if ast.unparse(call) in PRINTERS]


def test_only_the_console_prints() -> None:
    modules = {str(path.relative_to(PACKAGE)): path for path in sorted(PACKAGE.rglob("*.py"))}
    assert [finding for name, path in modules.items() if name not in ALLOWED for finding in find_printers(path)] == []


def test_every_exception_is_still_needed() -> None:
    assert [name for name in ALLOWED if not find_printers(PACKAGE / name)] == []
