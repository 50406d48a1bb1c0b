"""Rows that a scenario adds, changes and drops, and its actions played among recorded rows in
time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from heapq import heappop, heappush
from typing import Any

from rebalance_core.contracts import INPUT_TABLES
from rebalance_core.model.errors import InputRefused

# Rows that a scenario adds, changes and drops, and the numbers that keep their keys unique.
#
# A row of a scenario has ``sequence`` = 2^62 + entity x 2^16 + n: ``entity`` is 46 bits of a hash
# of the group's name (0 for rows of brokers and topics), n counts the entity's new rows of one
# instant. So a new row comes after everything recorded at that instant, rows of brokers and
# topics come before those of groups, and groups get their numbers without knowing of each other.
# Two groups of one cluster share their 46 bits with a probability of 7 in 100,000 where a cluster
# has 100,000 groups. A recorded row that is changed keeps its key.

Row = dict[str, Any]
"""Every column of cluster_events; null is None."""

EVENT_COLUMNS = INPUT_TABLES["cluster_events"].column_names

FIRST_SEQUENCE = 1 << 62
ROWS_AN_INSTANT = 1 << 16
_ENTITY_BITS = 46
SHARED = 0
"""Entity of the rows about brokers and topics."""


def entity_of(consumer_group: str) -> int:
    """The number of a group, 1 to 2^46 - 1."""
    digest = blake2b(consumer_group.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") % ((1 << _ENTITY_BITS) - 1) + 1


@dataclass(frozen=True, slots=True)
class Edited:
    """What became of an entity's rows.

    Attributes:
        kept: recorded rows as they were.
        dropped: recorded rows that are no longer true.
        added: new rows, and changed ones under the key of their recorded row.
        warnings: what an edit could not do, in words.
    """

    kept: tuple[Row, ...]
    dropped: tuple[Row, ...]
    added: tuple[Row, ...]
    warnings: tuple[str, ...]

    @property
    def rows(self) -> list[Row]:
        """The history as the scenario has it, in order."""
        return sorted((*self.kept, *self.added), key=order_of)


def order_of(row: Mapping[str, Any]) -> tuple[int, int]:
    """What orders the rows of a cluster."""
    return row["event_ms"], row["sequence"]


def whole_row(row: Mapping[str, Any]) -> Row:
    """The row with every column of the contract and no other."""
    return {name: row.get(name) for name in EVENT_COLUMNS}


def recorded_rows(rows: Iterable[Mapping[str, Any]]) -> list[Row]:
    """The rows in order, without repeats.

    Raises:
        InputRefused: a sequence is one of those that scenarios give.
    """
    by_key: dict[tuple[int, int], Row] = {}
    for row in rows:
        if row["sequence"] >= FIRST_SEQUENCE:
            raise InputRefused(
                f"cluster_events: sequence {row['sequence']} is not below 2^62, where the rows of "
                "a scenario begin; number the events of the history lower"
            )
        by_key.setdefault(order_of(row), whole_row(row))
    return [by_key[key] for key in sorted(by_key)]


@dataclass(slots=True)
class RowLog:
    """Gathers what happens to the rows of one entity, in order."""

    cluster: str
    entity: int
    consumer_group: str | None = None
    kept: list[Row] = field(default_factory=list)
    dropped: list[Row] = field(default_factory=list)
    added: list[Row] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    _counts: dict[int, int] = field(default_factory=dict)

    def keep(self, row: Row) -> None:
        """The recorded row stays."""
        self.kept.append(row)

    def drop(self, row: Row) -> None:
        """The recorded row is no longer true."""
        self.dropped.append(row)

    def change(self, row: Row, **values: Any) -> None:
        """The recorded row happens otherwise, under its own key."""
        self.dropped.append(row)
        self.added.append(row | values)

    def add(self, event_ms: int, event_type: str, source: str, **values: Any) -> None:
        """A new row; ``values`` are the other columns."""
        number = self._counts.get(event_ms, 0)
        if number >= ROWS_AN_INSTANT:
            raise InputRefused(
                f"{source}: more than {ROWS_AN_INSTANT:,} new events of {self.consumer_group} at "
                "one instant; spread them with every"
            )
        self._counts[event_ms] = number + 1
        row = whole_row(values)
        row["cluster"], row["consumer_group"] = self.cluster, self.consumer_group
        row["event_ms"], row["event_type"], row["source"] = event_ms, event_type, source
        row["sequence"] = FIRST_SEQUENCE + self.entity * ROWS_AN_INSTANT + number
        self.added.append(row)

    def warn(self, text: str) -> None:
        """Something that could not be done; each text once."""
        if text not in self.warnings:
            self.warnings.append(text)

    def result(self) -> Edited:
        """Everything gathered."""
        return Edited(
            tuple(self.kept), tuple(self.dropped), tuple(self.added), tuple(self.warnings)
        )


# Recorded rows and a scenario's own actions, played in the order of time.

Action = Callable[..., object]


class Timeline(ABC):
    """Replays the rows of one entity; edits schedule actions before and while it runs.

    At one instant everything recorded comes before every action, and actions come in the order of
    their edits.

    Attributes:
        now_ms: the instant being played.
        end_ms: the last event of the cluster's history, which moments such as ``+10m`` count from.
        log: what became of the rows.
    """

    def __init__(self, log: RowLog, end_ms: int) -> None:
        self.log = log
        self.end_ms = end_ms
        self.now_ms = 0
        self._agenda: list[tuple[int, int, int, Action, tuple[Any, ...]]] = []
        self._planned = 0
        self._edit = 0

    def planning(self, edit: int) -> None:
        """Actions planned from now on are those of this edit."""
        self._edit = edit

    def at(self, at_ms: int, action: Action, *arguments: Any) -> None:
        """Put an action on the agenda."""
        self._planned += 1
        entry = (max(at_ms, self.now_ms), self._edit, self._planned, action, arguments)
        heappush(self._agenda, entry)

    def after(self, delay_ms: int, action: Action, *arguments: Any) -> None:
        """Put an action on the agenda, ``delay_ms`` from now."""
        self.at(self.now_ms + delay_ms, action, *arguments)

    def play(self, rows: Iterable[Row]) -> None:
        """Play the rows, which must be in order, and everything on the agenda."""
        for row in rows:
            self._act_before(row["event_ms"])
            self.now_ms = row["event_ms"]
            self.recorded(row)
        self._act_before(None)

    @abstractmethod
    def recorded(self, row: Row) -> None:
        """A recorded row: keep, change or drop it."""

    def _act_before(self, until_ms: int | None) -> None:
        while self._agenda and (until_ms is None or self._agenda[0][0] < until_ms):
            self.now_ms, self._edit, _, action, arguments = heappop(self._agenda)
            action(*arguments)
