"""Columns of the offset tables, collected piece by piece."""

from typing import Any

import numpy as np

OffsetColumns = dict[str, Any]
"""Column name to an array or a list, all of equal length; a missing column is null."""


class OffsetRows:
    """Pieces of columns; a plain value stands for a whole piece."""

    def __init__(self, *names: str) -> None:
        self._pieces: dict[str, list[Any]] = {name: [] for name in names}

    def add(self, length: int, **values: Any) -> None:
        """Add a piece of ``length`` rows with a value for every column."""
        if length:
            for name, pieces in self._pieces.items():
                value = values[name]
                if not isinstance(value, np.ndarray):
                    value = np.full(length, value, object if _is_text(value) else np.int64)
                pieces.append(value)

    def columns(self) -> OffsetColumns:
        """Return everything added so far; without pieces, the result has no columns."""
        if not next(iter(self._pieces.values())):
            return {}
        return {name: np.concatenate(pieces) for name, pieces in self._pieces.items()}


def _is_text(value: Any) -> bool:
    return value is None or isinstance(value, str)
