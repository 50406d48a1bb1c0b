"""How many rows were read, how many are bad and why."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self


@dataclass(frozen=True, slots=True)
class Content:
    """Fingerprint of the rows of a table, whatever their order and their files.

    Attributes:
        hashes: sum of the rows' hashes, without the column ``source`` (`digest.hash_sum`).
        clusters: those that the rows name.
        first_ms: of the good events, the first; None of other tables, or where there is none.
        last_ms: the last.
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
    """Rows of one input table, how many of them have an issue, and what they are.

    Attributes:
        rows: Of the input itself.
        bad: How many of these have an issue.
        content: Of these and of the opening state; its times are of these.
        of_state: Rows of the opening state beside them.
    """

    rows: int
    bad: int
    content: Content = field(default=Content(), compare=False)
    of_state: int = 0

    def __add__(self, other: Self) -> RowCounts:
        """Add the rows of both."""
        return RowCounts(
            self.rows + other.rows,
            self.bad + other.bad,
            self.content + other.content,
            self.of_state + other.of_state,
        )


@dataclass(frozen=True, slots=True)
class Complaint:
    """Rows of a table with one issue: how many, and the first."""

    table: str
    code: str
    times: int
    source: str
    message: str
