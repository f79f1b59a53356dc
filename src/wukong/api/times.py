"""Times as the API writes them (RFC 3339), read and written without ever failing. Used wherever times of objects count.

The API server checks the form of the times that it knows, but not everybody who sends us objects is one; and Go knows
the year 0, and times far beyond the year 9999, which Python does not.
"""

from __future__ import annotations

from datetime import UTC, datetime

LAST = 253_402_300_799  # 9999-12-31T23:59:59Z
FIRST = -62_135_596_800  # 0001-01-01T00:00:00Z


def parse_time(text: str | None) -> float | None:
    """The seconds since 1970; None if there is none, or it cannot be read. Without a zone it is UTC."""
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def format_time(seconds: float) -> str:
    """Seconds since 1970 as the API writes times, in whole seconds; the last moment that there is if it is beyond."""
    moment = datetime.fromtimestamp(min(max(seconds // 1, FIRST), LAST), UTC)
    return f"{moment.replace(tzinfo=None).isoformat()}Z"
