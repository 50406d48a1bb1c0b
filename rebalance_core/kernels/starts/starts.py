"""The starts of many new owners: rule, answer and bounds."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from rebalance_core.kernels import segments
from rebalance_core.kernels.segments import Bools, Ints
from rebalance_core.model.verdicts import START_STATUSES

RULES = (
    "STORED",
    "LOCAL_STORE",
    "BROKER_ZERO",
    "MAX_OFFSET",
    "FIRST_ZERO",
    "TIMESTAMP_SEARCH",
    "RETRY_ZERO",
    "RETRY_MAX",
    "QUERY_FAILED",
    "PULL_ALWAYS_ZERO",
)
(
    STORED,
    LOCAL_STORE,
    BROKER_ZERO,
    MAX_OFFSET,
    FIRST_ZERO,
    TIMESTAMP_SEARCH,
    RETRY_ZERO,
    RETRY_MAX,
    QUERY_FAILED,
    PULL_ALWAYS_ZERO,
) = range(len(RULES))
OF_THE_QUEUE = (STORED, BROKER_ZERO, MAX_OFFSET, RETRY_MAX, TIMESTAMP_SEARCH)
"""The rules whose answer changes when the topic is deleted and recreated."""
OK, FAILED, UNKNOWN = range(len(START_STATUSES))  # codes, in the order of the words


@dataclass(frozen=True, slots=True)
class Starts:
    """Starts, with one value per row; offsets are `NONE` where unknown. Changed in place."""

    rule: Ints
    offset: Ints
    low: Ints
    high: Ints
    status: Ints

    @classmethod
    def unknown(cls, count: int) -> Starts:
        """Return starts without rule, offset or bounds."""
        columns = np.full((len(fields(cls)), count), segments.NONE)
        columns[-1] = UNKNOWN
        return cls(*columns)

    def put(
        self,
        mask: Bools,
        rule: Ints | int,
        offset: Ints | int,
        low: Ints | int,
        high: Ints | int,
        status: int = OK,
    ) -> None:
        """Set the rows in the mask; arrays have one value for every row."""
        for name, value in zip(
            ("rule", "offset", "low", "high", "status"),
            (rule, offset, low, high, status),
            strict=True,
        ):
            np.copyto(getattr(self, name), value, where=mask)

    def take(self, rows: Ints) -> Starts:
        """Return the selected rows."""
        return Starts(*(getattr(self, field.name)[rows] for field in fields(self)))

    def zero(self, mask: Bools, rule: Ints | int) -> None:
        """Set rows to a rule that gives 0 regardless of observations."""
        self.put(mask, rule, 0, 0, 0)

    def fail(self, mask: Bools) -> None:
        """Set rows whose owner gets no start."""
        self.put(mask, QUERY_FAILED, segments.NONE, segments.NONE, segments.NONE, FAILED)

    def without_end(self, mask: Bools) -> None:
        """Set rows for which no broker knows the queue's end: only the broker's 0 is an answer."""
        mask = mask & np.isin(self.rule, (MAX_OFFSET, RETRY_MAX, TIMESTAMP_SEARCH))
        failed = mask & ((self.low < 0) | (self.low == self.offset))
        self.fail(failed)
        self.put(mask & ~failed, BROKER_ZERO, segments.NONE, 0, 0, UNKNOWN)

    def update(self, rows: Ints, other: Starts) -> None:
        """Set rows by number."""
        for field in fields(self):
            getattr(self, field.name)[rows] = getattr(other, field.name)
