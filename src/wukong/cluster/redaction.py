"""Takes passwords and tokens out of texts that people or logs will see. Pure. Used wherever a message quotes others.

An address keeps its host: `http://user:password@proxy:3128` is told as `http://***@proxy:3128`.
"""

from __future__ import annotations

import re

HIDDEN = "***"
# A user part ends at the last @ before the path. A password with a / in it looks like a port that is no number.
_USER_PART = re.compile(r"(?<=://)[^\s/?#]*@")
_BROKEN_USER_PART = re.compile(r"(?<=://)[^\s/:@]*:(?!\d*(?:[/?#\s'\"]|$))\S*@")
_PRIVATE_KEY = re.compile(r"-----BEGIN [^-]*PRIVATE KEY-----.*?(?:-----END [^-]*PRIVATE KEY-----|\Z)", re.DOTALL)
_HEADER = re.compile(r"\b(bearer|basic)\s+\S+", re.IGNORECASE)
_NAMED = re.compile(
    r"((?:token|passw(?:or)?d|pwd|secret|api[_-]?key|access[_-]?key|private[_-]?key|authorization)"
    r"[\w-]*[\"']?\s*[=:]\s*)(?:\"[^\"]*\"?|'[^']*'?|[^\s,;&]+)",
    re.IGNORECASE,
)
_OPAQUE = re.compile(r"(?=[\w+/=.~-]*\d)(?=[\w+/=.~-]*[A-Za-z])(?<![\w/.])[\w+/=~-]{24,}(?:\.[\w+/=~-]+)*")


def redact_urls(text: str) -> str:
    """Hide the user part of every address in the text, and nothing else."""
    return _BROKEN_USER_PART.sub(f"{HIDDEN}@", _USER_PART.sub(f"{HIDDEN}@", text))


def redact(text: str) -> str:
    """Hide whatever may be a secret in what a program said: user parts, keys, named secrets, long opaque words."""
    text = _PRIVATE_KEY.sub(HIDDEN, redact_urls(text))
    text = _NAMED.sub(rf"\g<1>{HIDDEN}", _HEADER.sub(rf"\g<1> {HIDDEN}", text))
    return _OPAQUE.sub(HIDDEN, text)
