"""Log lines on stderr: constant messages with their facts behind them, as JSON or as text. Used by verbs that run on.

Nothing in a line can move a terminal: control characters are escaped.
"""

from __future__ import annotations

import json
import logging
import sys

from wukong.cli.views.escaping import escape, escape_json, escape_line

_USUAL = frozenset(vars(logging.makeLogRecord({})))


def log_to_stderr(form: str) -> None:
    """As JSON, or as text with key=value."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json() if form == "json" else _Text())
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)


def _facts(record: logging.LogRecord) -> dict[str, object]:
    return {
        key: value for key, value in vars(record).items() if key not in _USUAL and key not in ("message", "asctime")
    }


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        head = {"time": self.formatTime(record), "level": record.levelname.lower(), "message": record.getMessage()}
        error = {"error": self.formatException(record.exc_info)} if record.exc_info else {}
        return escape_json(json.dumps({**head, **_facts(record), **error}, default=str))


class _Text(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        facts = "".join(f" {key}={value}" for key, value in _facts(record).items())
        error = f"\n{escape(self.formatException(record.exc_info))}" if record.exc_info else ""
        line = escape_line(f"{record.levelname.lower():7} {record.getMessage()}{facts}")
        return f"{self.formatTime(record)} {line}{error}"
