"""Stretches of a group's epochs in which something holds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rebalance_core.audit.group_snapshot import (
    GroupSnapshot,
)

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import MembershipsRow, OwnershipRow


from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, TypeVar

from rebalance_core.audit.group_snapshot import PERSISTENT_MS
from rebalance_core.audit.logged_causes import MEMBERS_CHANGE
from rebalance_core.model.queue import is_retry_topic
from rebalance_core.protocol.settling_windows import ROUTE_MS

if TYPE_CHECKING:
    from rebalance_core.contracts.row_parts import Stretch


Value = TypeVar("Value", bound=Hashable)


Stretched = TypeVar("Stretched", bound="Stretch")


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of a group's epochs; ``last_ms`` None: it holds at the end."""

    epoch: int
    first_ms: int
    last_ms: int | None


def span_of(row: Stretch) -> Span:
    """Return the stretch of a row of ownership, memberships or consumer_load."""
    return Span(row["from_epoch"], row["from_ms"], row["to_ms"])


def has_settled(group: GroupSnapshot, epoch: int, topic: str | None = None) -> bool:
    """Return True if this epoch's changes settled before the end."""
    settled = group.settled_by.get(epoch, 0)
    if topic is not None and is_retry_topic(topic):
        settled += ROUTE_MS
    return group.run.end_ms > settled


def is_long(group: GroupSnapshot, span: Span) -> bool:
    """Return True if the stretch lasts longer than any transient."""
    last_ms = group.run.end_ms if span.last_ms is None else span.last_ms
    return last_ms - max(span.first_ms, group.run.start_ms) > PERSISTENT_MS


def is_persistent(group: GroupSnapshot, span: Span) -> bool:
    """Return True if it holds at the end beyond its cause's window, or held for long before."""
    if span.last_ms is None:
        return has_settled(group, span.epoch)
    return is_long(group, span)


def is_rolling(group: GroupSnapshot, span: Span) -> bool:
    """Return True if the stretch is over and members kept joining or leaving, as in a rolling
    change.
    """
    if span.last_ms is None:
        return False
    moments = [
        row["from_ms"]
        for row in group.epochs
        if span.first_ms <= row["from_ms"] <= span.last_ms and MEMBERS_CHANGE & set(row["causes"])
    ]
    steps = pairwise([span.first_ms, *moments, span.last_ms])
    return all(after - before <= PERSISTENT_MS for before, after in steps)


def spans_where(
    valued: Iterable[tuple[Stretch, Value]], holds: Callable[[Counter[Value]], bool]
) -> Iterator[Span]:
    """Yield the stretches of epochs in which ``holds`` is true for the counts of values.

    Args:
        valued: rows, each with its value.
        holds: a predicate on the number of rows with each value in an epoch.
    """
    changes: dict[int, list[tuple[int, Value, int]]] = {}
    for row, row_value in valued:
        changes.setdefault(row["from_epoch"], []).append((1, row_value, row["from_ms"]))
        if row["to_epoch"] is not None and row["to_ms"] is not None:
            changes.setdefault(row["to_epoch"], []).append((-1, row_value, row["to_ms"]))
    counts: Counter[Value] = Counter()
    open_since: tuple[int, int] | None = None
    for epoch in sorted(changes):
        for step, row_value, _ in changes[epoch]:
            counts[row_value] += step
            if not counts[row_value]:
                del counts[row_value]
        at_ms = changes[epoch][0][2]
        if holds(counts) and open_since is None:
            open_since = (epoch, at_ms)
        elif not holds(counts) and open_since is not None:
            yield Span(*open_since, at_ms)
            open_since = None
    if open_since is not None:
        yield Span(*open_since, None)


def mixed_spans(
    rows: Iterable[Stretched], value: Callable[[Stretched], Hashable]
) -> Iterator[Span]:
    """Return the stretches in which rows do not all have the same value."""
    return spans_where(((row, value(row)) for row in rows), lambda counts: len(counts) > 1)


def rows_in_epoch(rows: Iterable[Stretched], epoch: int | None) -> list[Stretched]:
    """Return the rows that hold in this epoch, or at the end for None."""
    if epoch is None:
        return [row for row in rows if row["to_epoch"] is None]
    return [
        row
        for row in rows
        if row["from_epoch"] <= epoch and (row["to_epoch"] is None or epoch < row["to_epoch"])
    ]


def offline_ms(group: GroupSnapshot, first_ms: int, last_ms: int) -> int:
    """Return how long of this time the group had no member."""
    spent = 0
    for row in group.offline:
        until = group.run.end_ms if row["to_ms"] is None else row["to_ms"]
        spent += max(0, min(last_ms, until) - max(first_ms, row["from_ms"]))
    return spent


def end_ms(group: GroupSnapshot, row: OwnershipRow | MembershipsRow) -> int:
    """Return when a stretch ends, epoch ms: after the audited period if it is open."""
    return group.run.end_ms + 1 if row["to_ms"] is None else row["to_ms"]
