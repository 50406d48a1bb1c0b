"""Reasons why rows have no answer."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.kernels.segments import Bools


class Reasons:
    """Texts for the rows without an answer; a row has the first reason that applies."""

    def __init__(self, rows: int) -> None:
        self.texts: list[str | None] = [None] * rows

    def put(self, rows: Iterable[int], text: str) -> None:
        """Set the reason for rows, unless they already have one."""
        for row in rows:
            self.texts[row] = self.texts[row] or text

    @property
    def none(self) -> Bools:
        """A mask of the rows without a reason."""
        return np.array([text is None for text in self.texts], np.bool_)


def rows_where(mask: pa.BooleanArray) -> list[int]:
    """Return the numbers of the rows for which a mask is true."""
    rows: list[int] = pc.indices_nonzero(mask).to_pylist()
    return rows


def nulls_of(column: pa.Array) -> list[int]:
    """Return the numbers of the rows that are null."""
    return rows_where(column.is_null()) if column.null_count else []
