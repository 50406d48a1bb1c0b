"""Counts of rows read and of bad rows, by reason."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self


@dataclass(frozen=True, slots=True)
class Content:
    """A fingerprint of a table's rows, independent of their order and files.

    Attributes:
        hashes: sum of the rows' hashes, without the column ``source`` (`digest.hash_sum`).
        clusters: the clusters in the rows.
        first_ms: time of the first good event; None for other tables or without one.
        last_ms: time of the last.
    """

    hashes: int = 0
    clusters: frozenset[str] = frozenset()
    first_ms: int | None = None
    last_ms: int | None = None

    def __add__(self, other: Self) -> Content:
        """Return the fingerprint of the rows of both."""
        times = [time for time in (self.first_ms, other.first_ms) if time is not None]
        ends = [time for time in (self.last_ms, other.last_ms) if time is not None]
        return Content(
            self.hashes + other.hashes,
            self.clusters | other.clusters,
            min(times, default=None),
            max(ends, default=None),
        )


@dataclass(frozen=True, slots=True)
class RowCounts:
    """The rows of an input table: their number, the number with an issue, and their content.

    Attributes:
        rows: Rows of the input itself.
        bad: Rows with an issue.
        content: Of these rows and the opening state; its times come from these rows.
        of_state: Additional rows from the opening state.
    """

    rows: int
    bad: int
    content: Content = field(default=Content(), compare=False)
    of_state: int = 0

    def __add__(self, other: Self) -> RowCounts:
        """Return the counts of both together."""
        return RowCounts(
            self.rows + other.rows,
            self.bad + other.bad,
            self.content + other.content,
            self.of_state + other.of_state,
        )


@dataclass(frozen=True, slots=True)
class Complaint:
    """The rows of a table that share an issue: their number, and the first."""

    table: str
    code: str
    times: int
    source: str
    message: str
