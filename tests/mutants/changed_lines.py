"""Which lines of src/ a change touches: those that git shows as new against a base. Called by __main__.py."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

_FILE = re.compile(r"^\+\+\+ b/(.*)$")
_HUNK = re.compile(r"^@@ -\S+ \+(\d+)(?:,(\d+))? @@")


def find_changed_lines(root: Path, base: str) -> dict[str, set[int]]:
    """By path: the lines that are new or other than where the branch left `base`, committed or not."""
    fork = _git(root, "merge-base", base, "HEAD").strip()
    changed = parse_diff(_git(root, "diff", "-U0", "--no-color", "--no-ext-diff", "--no-renames", fork, "--", "src"))
    untracked = _git(root, "ls-files", "--others", "--exclude-standard", "--", "src").splitlines()
    for path in untracked:
        changed[path] = set(range(1, len((root / path).read_bytes().splitlines()) + 1))
    return {path: lines for path, lines in changed.items() if path.endswith(".py") and lines}


def parse_diff(text: str) -> dict[str, set[int]]:
    """The new lines of every file in a diff without context."""
    changed: dict[str, set[int]] = {}
    path = ""
    for line in text.splitlines():
        if match := _FILE.match(line):
            path = match[1]
        elif match := _HUNK.match(line):
            start, count = int(match[1]), int(match[2] or 1)
            changed.setdefault(path, set()).update(range(start, start + count))
    return changed


def _git(root: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True, text=True).stdout
