"""Counts of the issues of rejected rows."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Self

import pyarrow as pa

from rebalance_core.checks.row_counts import Complaint

LINE = re.compile(r"[:@]([0-9]+)$")
LARGEST_LINE = 2**63 - 1


@dataclass(slots=True)
class Rejections:
    """The number of rows in ``rejected`` with each issue code, and the first such row.

    The first row is the smallest by file, line and message; counts of parts can be merged.
    """

    _by_code: dict[tuple[str, str], tuple[int, _Place]] = field(default_factory=dict)

    @classmethod
    def of(cls, *rejected: pa.Table | pa.RecordBatch) -> Self:
        """Count some rows."""
        made = cls()
        for rows in rejected:
            made.add(rows)
        return made

    def add(self, rejected: pa.Table | pa.RecordBatch) -> None:
        """Count some rows."""
        for row in rejected.select(["table_name", "source", "issues"]).to_pylist():
            name, place = row["table_name"], _place(row["source"])
            for issue in row["issues"]:
                self._add((name, issue["code"]), 1, (*place, issue["message"]))

    def merge(self, other: Self) -> None:
        """Add the counts of other rows."""
        for code, (times, first) in other._by_code.items():
            self._add(code, times, first)

    def of_tables(self, names: Collection[str]) -> Self:
        """Keep only the counts of these tables."""
        return type(self)(
            {group: counted for group, counted in self._by_code.items() if group[0] in names}
        )

    def times(self, code: str) -> int:
        """Count a code in the rows of all tables."""
        return self.codes.get(code, 0)

    @property
    def codes(self) -> dict[str, int]:
        """The count of each code, by its name; a row may have several."""
        counts: dict[str, int] = {}
        for (_, code), (times, _) in sorted(self._by_code.items(), key=lambda entry: entry[0][1]):
            counts[code] = counts.get(code, 0) + times
        return counts

    def complaints(self) -> list[Complaint]:
        """Return the codes by table, most frequent first."""
        rows = ((*group, times, *first[-2:]) for group, (times, first) in self._by_code.items())
        return [Complaint(*row) for row in sorted(rows, key=lambda row: (row[0], -row[2], row[1]))]

    def _add(self, code: tuple[str, str], times: int, first: _Place) -> None:
        before = self._by_code.get(code, (0, first))
        self._by_code[code] = before[0] + times, min(before[1], first)


_Place = tuple[bool, str, int, str, str]
"""Whether there is a source, its file and line (-1 for none), the source and the message."""


def _place(source: str | None) -> tuple[bool, str, int, str]:
    number = LINE.search(source or "")
    line = int(number[1]) if number is not None else -1
    file = LINE.sub("", source or "")
    return source is not None, file, line if line <= LARGEST_LINE else -1, source or ""
