"""Names for the array types the engine works with, and the two ways to say which nodes are meant."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Index = npt.NDArray[np.intp]
Rows = Index | slice  # some rows by number, or all of them

ALL = slice(None)
INFEASIBLE = -(2**62)  # the total of a node that failed a filter: below any score


def select_lines(table: Ints, lines: Index, rows: Rows) -> Ints:
    """Some lines of `table[line, node]` at some nodes, without copying what is not asked for."""
    return table[lines] if isinstance(rows, slice) else table[lines[:, None], rows]
