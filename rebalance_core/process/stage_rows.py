"""The number of rows that each stage of a run read and produced, for its record."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rebalance_core.process.runtime import Part, TableRows


@dataclass(frozen=True, slots=True)
class StageRows:
    """The rows that a stage of a run read and produced.

    Attributes:
        stage: Its description in the Spark UI.
        rows_in: Rows of tables or lines of files.
        rows_out: Rows of tables, or facts in files.
    """

    stage: str
    rows_in: int
    rows_out: int


@dataclass(slots=True)
class RowsSeen:
    """Counts the rows of a task as they pass."""

    rows_in: int = 0
    rows_out: int = 0

    def taken(self, parts: Iterable[Part]) -> Iterator[Part]:
        """Yield parts unchanged and count their rows as ``rows_in``."""
        for number, tables in parts:
            self.rows_in += sum(map(len, tables.values()))
            yield number, tables

    def made(self, rows: TableRows) -> TableRows:
        """Yield rows unchanged and count them as ``rows_out``."""
        for name, batch in rows:
            self.rows_out += batch.num_rows
            yield name, batch
