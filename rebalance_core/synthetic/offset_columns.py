"""Columns of the offset tables, gathered piece by piece."""

from typing import Any

import numpy as np

OffsetColumns = dict[str, Any]
"""Column name to an array or a list, all of one length; what is not there is null."""


class OffsetRows:
    """Collects pieces of columns; a plain value stands for a whole piece of it."""

    def __init__(self, *names: str) -> None:
        self._pieces: dict[str, list[Any]] = {name: [] for name in names}

    def add(self, length: int, **values: Any) -> None:
        """One more piece of ``length`` rows; every column is named."""
        if length:
            for name, pieces in self._pieces.items():
                value = values[name]
                if not isinstance(value, np.ndarray):
                    value = np.full(length, value, object if _is_text(value) else np.int64)
                pieces.append(value)

    def columns(self) -> OffsetColumns:
        """Everything added so far; no columns at all if there was nothing."""
        if not next(iter(self._pieces.values())):
            return {}
        return {name: np.concatenate(pieces) for name, pieces in self._pieces.items()}


def _is_text(value: Any) -> bool:
    return value is None or isinstance(value, str)
