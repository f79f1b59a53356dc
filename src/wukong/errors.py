"""The one error tree. Everything Wukong raises on purpose derives from WukongError.

    WukongError            exit 1   something went wrong that the user can read about
    └── InputError         exit 2   what we were given is wrong: names the place, what was expected and the fix

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


def nearest(word: str, known: Iterable[str]) -> str:
    """A hint such as ` Did you mean "cpu"?`, or nothing when no known word is close."""
    close = get_close_matches(word, list(known), n=1)
    return f' Did you mean "{close[0]}"?' if close else ""
