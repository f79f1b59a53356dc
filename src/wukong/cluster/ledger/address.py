"""Where a ledger is kept, as people write it: the path of a file. Pure, so that options can be checked."""

from __future__ import annotations


def find_problem(address: str) -> str:
    """What is wrong with an address; "" if nothing is."""
    if not address or "\0" in address:
        return f"expected the path of a file such as /var/lib/wukong/ledger.db, got {address!r:.100}."
    if "://" in address:
        return f"expected the path of a file, got {address!r:.100}. Records are kept in SQLite alone."
    return ""
