"""Tables without lines, as kubectl prints them, laid out for the width there is.

Without a width (a pipe, -o wide) a table is as wide as its cells. In a terminal that is too narrow for it, in this
order: fewer names are listed, long names are shortened in the middle, texts are folded, and columns are dropped in the
order the table says, which is printed below it. Nothing is cut off without a sign. Used by all views, printed by
console.py; nothing of rich is needed here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from wukong.cli.views.escaping import escape_line

_MOST_NAMES = 3
_GAP = "  "
_LEAST_NAME, _LEAST_TEXT = 30, 26  # characters, before a column is dropped
_LEAST_HEADING = 14  # of a heading that is a name
_VERY_LEAST_NAME, _VERY_LEAST_TEXT = 20, 14  # when there is nothing left to drop
_ELLIPSIS = "…"
_HEAD_SHARES = (0.65, 0.85, 0.35, 1.0)  # of a shortened name: clouds tell nodes apart at the beginning, some at the end


class Names(tuple[str, ...]):
    """A cell of several names of which the first few are shown."""

    most: int

    def __new__(cls, names: Iterable[str], most: int = _MOST_NAMES) -> Names:
        cell = super().__new__(cls, names)
        cell.most = most
        return cell

    def __str__(self) -> str:
        return name_some(self, self.most)


Cell = str | Names


class Layout(NamedTuple):
    lines: list[tuple[str, str]]  # text and style, the headings first
    dropped: list[str]  # headings of the columns there was no room for


class Table:
    """Capital headings. `numbers` are right-aligned; they and `whole` are never folded, `names` shortened in the
    middle, and so are `name_headings`. `drops` may be left out, in this order; `elsewhere` says where
    they are shown. `is_wide`: never fitted."""

    def __init__(
        self,
        *headings: str,
        numbers: Sequence[str] = (),
        whole: Sequence[str] = (),
        names: Sequence[str] = (),
        name_headings: Sequence[str] = (),
        drops: Sequence[str] = (),
        elsewhere: str = "a wider terminal shows them",
        is_wide: bool = False,
    ) -> None:
        self.headings, self.numbers, self.names = headings, frozenset(numbers), frozenset(names)
        self.whole, self.name_headings, self.drops = (
            frozenset([*numbers, *whole]),
            frozenset(name_headings),
            tuple(drops),
        )
        self.elsewhere, self.is_wide = elsewhere, is_wide
        self.rows: list[tuple[tuple[Cell, ...], str]] = []  # cells, style

    def add_row(self, *cells: Cell, style: str = "") -> None:
        escaped = (
            Names(map(escape_line, cell), cell.most) if isinstance(cell, Names) else escape_line(cell) for cell in cells
        )
        self.rows.append((tuple(escaped), style))

    def lines(self) -> Iterator[str]:
        """Yield the table as plain text, as wide as it is: what a program reads, and fast for thousands of rows."""
        texts = [self.headings, *(tuple(map(str, cells)) for cells, _ in self.rows)]
        widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
        for cells in texts:
            yield self._join(cells, self.headings, widths)

    def fit(self, width: int) -> Layout:
        """Lay the table out in so many columns of a terminal."""
        kept, dropped = list(range(len(self.headings))), list[str]()
        drops = [heading for heading in self.drops if heading in self.headings]
        natural = self._measure()
        while (widths := self._share_width(kept, natural, width)) is None and drops:
            dropped.append(drops.pop(0))
            kept.remove(self.headings.index(dropped[-1]))
        if widths is None:
            widths = self._share_width(kept, natural, width, is_last=True)
            assert widths is not None
        headings = [self.headings[column] for column in kept]
        shares = [self._choose_head_share(column, width) for column, width in zip(kept, widths, strict=True)]
        lines = [(self._join(_shorten_titles(headings, widths), headings, widths), "bold")]
        for cells, style in self.rows:
            columns = [
                self._lay_out_cell(self.headings[column], cells[column], room, share)
                for column, room, share in zip(kept, widths, shares, strict=True)
            ]
            for number in range(max(map(len, columns))):
                line = [column[number] if number < len(column) else "" for column in columns]
                lines.append((self._join(line, headings, widths), style))
        return Layout(lines, dropped)

    def _measure(self) -> list[int]:
        columns = zip(self.headings, *(cells for cells, _ in self.rows), strict=True)
        return [max(len(str(cell)) for cell in column) for column in columns]

    def _share_width(
        self, kept: Sequence[int], natural: Sequence[int], width: int, *, is_last: bool = False
    ) -> list[int] | None:
        """How wide each column is, or None if there is too little room for all."""
        room = width - len(_GAP) * (len(kept) - 1)
        wanted = [natural[column] for column in kept]
        if sum(wanted) <= room:
            return wanted
        shares = [min(natural[column], self._find_least(column, is_last=is_last)) for column in kept]
        spare = room - sum(shares)
        if spare < 0 and not is_last:
            return None
        texts = [number for number, column in enumerate(kept) if self._is_text(column)]
        if not is_last:  # what has to be read first
            spare = _share_out(spare, texts, shares, wanted)
        _share_out(spare, range(len(kept)), shares, wanted)
        return shares

    def _is_text(self, column: int) -> bool:
        return self.headings[column] not in self.names | self.whole

    def _find_least(self, column: int, *, is_last: bool) -> int:
        heading = self.headings[column]
        if heading in self.whole:
            least = _LEAST_HEADING if heading in self.name_headings else len(heading)
            return max([min(least, len(heading)), *(len(str(cells[column])) for cells, _ in self.rows)])
        least_name, least_text = (_VERY_LEAST_NAME, _VERY_LEAST_TEXT) if is_last else (_LEAST_NAME, _LEAST_TEXT)
        return max(len(heading), least_name if heading in self.names else least_text)

    def _choose_head_share(self, column: int, width: int) -> float:
        """How much of a shortened name is its beginning: so much that different names stay different."""
        if self.headings[column] not in self.names:
            return _HEAD_SHARES[0]
        names = {name for cells, _ in self.rows for name in _list_names(cells[column])[:1]}
        room = max(4, width - len(f" and {len(self.rows):,} more"))
        for share in _HEAD_SHARES:
            if len({shorten(name, room, share) for name in names}) == len(names):
                return share
        return _HEAD_SHARES[0]

    def _lay_out_cell(self, heading: str, cell: Cell, width: int, head_share: float) -> list[str]:
        if len(text := str(cell)) <= width:
            return [text]
        if heading in self.names:
            return [_fit_names(_list_names(cell), width, head_share)]
        if heading in self.whole:
            return [text]
        return fold(text, width)

    def _join(self, cells: Sequence[str], headings: Sequence[str], widths: Sequence[int]) -> str:
        sides = (">" if heading in self.numbers else "<" for heading in headings)
        padded = (f"{cell:{side}{width}}" for cell, side, width in zip(cells, sides, widths, strict=True))
        return _GAP.join(padded).rstrip()


def _shorten_titles(headings: Sequence[str], widths: Sequence[int]) -> list[str]:
    """Headings that are names, in a way that they stay different."""
    for share in _HEAD_SHARES:
        titles = [shorten(heading, width, share) for heading, width in zip(headings, widths, strict=True)]
        if len(set(titles)) == len(titles):
            return titles
    return titles


def _share_out(spare: int, hungry: Sequence[int], shares: list[int], wanted: Sequence[int]) -> int:
    """Widen these columns evenly up to what they want; returns what is left."""
    while spare > 0 and (rest := [number for number in hungry if shares[number] < wanted[number]]):
        for number in rest:
            more = min(max(1, spare // len(rest)), wanted[number] - shares[number], spare)
            shares[number] += more
            spare -= more
    return spare


def name_some(names: Sequence[str], most: int = _MOST_NAMES) -> str:
    """Return the first few names, and how many more there are."""
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest:,} more" if rest > 0 else "")


def shorten(name: str, width: int, head_share: float = _HEAD_SHARES[0]) -> str:
    """Return a name of at most so many characters: its beginning and its end, and a sign where something is missing."""
    if len(name) <= width:
        return name
    if width <= 1:
        return _ELLIPSIS[:width]
    head = max(1, round((width - 1) * head_share))
    tail = width - 1 - head
    return f"{name[:head]}{_ELLIPSIS}{name[len(name) - tail :]}"


def fold(text: str, width: int) -> list[str]:
    """Fold at blanks; words that are too long after a slash, colon, comma or dot, or else where the line ends."""
    lines, line = list[str](), ""
    for word in text.split(" "):
        if line and len(line) + 1 + len(word) <= width:
            line = f"{line} {word}"
            continue
        pieces = list(_break_word(word, width))
        lines += [*([line] if line else []), *pieces[:-1]]
        line = pieces[-1]
    return [*lines, line]


def _break_word(word: str, width: int) -> Iterator[str]:
    start = 0
    while len(word) - start > width:
        place = max(word.rfind(letter, start + width // 2, start + width) for letter in "/:,.") + 1 or start + width
        yield word[start:place]
        start = place
    yield word[start:]


def _list_names(cell: Cell) -> Names:
    return cell if isinstance(cell, Names) else Names([cell])


def _fit_names(names: Names, width: int, head_share: float) -> str:
    """As many whole names as there is room for, or else the first, shortened."""
    for most in range(min(names.most, len(names)), 0, -1):
        if len(text := name_some(names, most)) <= width:
            return text
    rest = f" and {len(names) - 1:,} more" if len(names) > 1 else ""
    return f"{shorten(names[0], max(4, width - len(rest)), head_share)}{rest}"
