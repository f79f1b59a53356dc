"""The one error tree. Everything Wukong raises on purpose derives from WukongError.

    WukongError                exit 1   something went wrong that the user can read about
    ├── InputError             exit 2   what we were given is wrong: names the place, what was expected and the fix
    ├── NoProgress             exit 1   an embedded cluster never comes to rest
    ├── GateRefusal            exit 1   our own gate holds or forbids an act; its key comes back
    └── ClusterError           exit 3   the API server said no, or said nothing
        ├── NotFound           404      the object, or its kind, is not there
        ├── AlreadyExists      409      somebody made it before us
        ├── Conflict           409      it changed since we read it, or the uid or resourceVersion given is not its own
        ├── Gone               410      the resourceVersion or continue token is too old: list again
        ├── Denied             401 403  not allowed, or not known
        ├── Invalid            400 422  the API server refuses what we wrote
        ├── TooManyRequests    429      wait (a disruption budget, or overload); may say how long
        ├── ServerFailed       5xx      the write did not happen, or the answer says nothing about it
        │   └── Stalled        -        nothing came on a watch for too long: the connection may be dead
        ├── LedgerFailed       -        not the API server, but the ledger's store: nothing is known to be written
        └── OutcomeUnknown     -        the connection was lost after sending: look before doing it again

The command line turns each into one message and its exit code; nothing here prints or exits.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class WukongError(Exception):
    """Base of all errors raised on purpose. `str(error)` is the whole message for a person."""

    exit_code: int = 1


class InputError(WukongError):
    """Wrong input: a file, a flag or a manifest. May carry several problems of one file at once."""

    exit_code = 2

    def __init__(self, *problems: str) -> None:
        self.problems = problems
        super().__init__("\n".join(problems))

    def at(self, place: str) -> InputError:
        """The same problems, each prefixed with the place (file, document) they were found in."""
        return InputError(*(f"{place}: {problem}" for problem in self.problems))


class NoProgress(WukongError):
    """An embedded cluster whose clock stands still while it works, or which always has something to do."""


class GateRefusal(WukongError):
    """The gate said no to an act of ours. `again_seconds` is when its key comes back; None: after a backoff."""

    def __init__(self, message: str, *, again_seconds: float | None = None) -> None:
        super().__init__(message)
        self.again_seconds = again_seconds


class ClusterError(WukongError):
    """What an API server answered, or that it did not. `reason` and `message` are the Status' own."""

    exit_code = 3
    code = 0

    def __init__(self, message: str, *, reason: str = "", code: int = 0) -> None:
        super().__init__(message)
        self.reason = reason
        self.code = code or type(self).code


class NotFound(ClusterError):
    code = 404


class AlreadyExists(ClusterError):
    code = 409


class Conflict(ClusterError):
    code = 409


class Gone(ClusterError):
    code = 410


class Denied(ClusterError):
    code = 403


class Invalid(ClusterError):
    code = 422


class TooManyRequests(ClusterError):
    """`retry_after` seconds, if the server said; `cause` is DisruptionBudget when an eviction would break one."""

    code = 429

    def __init__(self, message: str, *, reason: str = "", retry_after: float | None = None, cause: str = "") -> None:
        super().__init__(message, reason=reason)
        self.retry_after = retry_after
        self.cause = cause


class ServerFailed(ClusterError):
    code = 500


class Stalled(ServerFailed):
    """No byte came on a watch for longer than a living server is silent."""

    code = 0


class LedgerFailed(ClusterError):
    """The store of the ledger refuses, or does not answer. What was to be written is written again later."""


class OutcomeUnknown(ClusterError):
    """The request was sent, the answer never came: the write may or may not have happened."""


def nearest(word: str, known: Iterable[str]) -> str:
    """A hint such as ` Did you mean "cpu"?`, or nothing when no known word is close."""
    close = get_close_matches(word, list(known), n=1)
    return f' Did you mean "{close[0]}"?' if close else ""
