"""What SQLite's errors mean for whoever keeps a ledger: the file, what is wrong with it, and the way out. Pure."""

from __future__ import annotations

_MEANINGS = (
    ("database is locked", "another process is writing to it and does not come to an end. Which one has it open?"),
    ("readonly database", "it cannot be written. Is it on a read-only volume, or somebody else's file?"),
    ("unable to open", "it cannot be opened. Is its directory there, and may this process write in it?"),
    ("file is not a database", "it is no database of SQLite. Name another file."),
    ("malformed", "it is damaged. Move it away: what is true now is recorded anew, and its history is lost."),
    ("disk I/O error", "its disk does not read or write."),
    ("database or disk is full", "its disk is full."),
)


def explain_error(path: str, error: Exception) -> str:
    """One sentence: the place, what SQLite or the system said, and what to do."""
    said = str(getattr(error, "strerror", None) or error)
    meaning = next((meaning for words, meaning in _MEANINGS if words in said), "")
    return f"{path}: {meaning} ({said})" if meaning else f"{path}: {said}."
