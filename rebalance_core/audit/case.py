"""All that is known of one group in the period that is audited."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from rebalance_core.audit.coverage import Coverage
from rebalance_core.model.events import CONSUMER_LOST, EXPIRED, Event
from rebalance_core.model.queue import is_retry_topic
from rebalance_core.model.times import (
    CHANNEL_EXPIRY_MS,
    CHANNEL_SCAN_MS,
    HOUR_MS,
    REBALANCE_WAIT_MS,
)
from rebalance_core.model.verdicts import EMPTY
from rebalance_core.protocol.windows import window_ms
from rebalance_core.replay.masters import MasterOutage

Row = Mapping[str, Any]

PERSISTENT_MS = CHANNEL_EXPIRY_MS + CHANNEL_SCAN_MS + REBALANCE_WAIT_MS
"""The longest window of a host loss (rocketmq.md §6.4): no transient lasts so long."""


@dataclass(frozen=True, slots=True)
class AuditRun:
    """What one audit run knows of the whole cluster; small, travels to every task.

    Attributes:
        start_ms: start of what the collection covers.
        end_ms: its end: "now" of the audit.
        stale_ms: a dump older than this at the end says nothing about the present.
        missing: brokers of which nothing, or nothing recent enough, was collected.
        masters: by broker, when its master was gone while a slave lived.
        store_ms: when the last subscriptionGroup.json of a broker was copied, where one was.
        versions: of the brokers, where a file tells.
        offsets_ms: when the first consumerOffset.json of a broker was copied, where one was; None:
            the tables are of no collection, and what they do not have was not committed.
        log_ends: when the broker.log of each broker that is up ends, where one was collected.
        overloads: by broker, from when to when it dropped events of its connections.
        down: brokers that are down at the end.
        coverage: of which times the brokers' logs tell.
    """

    start_ms: int
    end_ms: int
    stale_ms: int = 6 * HOUR_MS
    missing: frozenset[str] = frozenset()
    store_ms: Mapping[str, int] = field(default_factory=dict)
    masters: Mapping[str, tuple[MasterOutage, ...]] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    offsets_ms: Mapping[str, int] | None = None
    log_ends: Mapping[str, int] = field(default_factory=dict)
    overloads: Mapping[str, tuple[tuple[int, int], ...]] = field(default_factory=dict)
    down: frozenset[str] = frozenset()
    coverage: Coverage = field(default_factory=Coverage)


@dataclass(frozen=True)
class GroupCase:
    """The rows of one group, as dicts with the contract's columns, by table name.

    ``tables`` may hold: the ledger (epochs, ownership, diffs, pull_starts, memberships,
    consumer_load, group_metrics), input rows of the group (consumer_groups, committed_offsets;
    cluster_events: those that name the group), ``queue_offsets`` of its topics, ``topics`` (the
    last TOPIC_CONFIG or TOPIC_DELETED of each topic it subscribes or has offsets of, by broker),
    observed_ownership, observed_members, observed_facts, ingest's ``findings`` on the group, and
    ``propagation``, if its changes were simulated over time.
    """

    cluster: str
    consumer_group: str
    run: AuditRun
    tables: Mapping[str, Iterable[Row]] = field(default_factory=dict)

    def rows(self, table: str) -> list[Row]:
        """The rows of a table, in no order; none if there is no such table."""
        rows = self.tables.get(table, ())
        return rows if isinstance(rows, list) else list(rows)

    def facts(self, kind: str) -> list[Row]:
        """The observed facts of one kind, in order of time."""
        return self._facts.get(kind, [])

    @cached_property
    def _facts(self) -> dict[str, list[Row]]:
        facts: dict[str, list[Row]] = {}
        for row in sorted(self.rows("observed_facts"), key=lambda r: (r["first_ms"], r["source"])):
            facts.setdefault(row["kind"], []).append(row)
        return facts

    @cached_property
    def epochs(self) -> list[Row]:
        """The group's epochs in order."""
        return sorted(self.rows("epochs"), key=lambda row: row["epoch"])

    @cached_property
    def last_epoch(self) -> Row | None:
        """The epoch at the end; None for a group without members in the log."""
        return self.epochs[-1] if self.epochs else None

    @cached_property
    def members(self) -> list[Row]:
        """Processes that are members at the end: open rows of memberships."""
        return [row for row in self.rows("memberships") if row["to_ms"] is None]

    @cached_property
    def owned(self) -> list[Row]:
        """Holdings at the end, queues without an owner included: open rows of ownership."""
        return [row for row in self.rows("ownership") if row["to_ms"] is None]

    @cached_property
    def settings(self) -> Row:
        """The group's row of consumer_groups; empty where it has none."""
        return next(iter(self.rows("consumer_groups")), {})

    @cached_property
    def settled_by(self) -> dict[int, int]:
        """Epoch -> when its changes have surely happened, epoch ms; open windows extend it.

        Retry topics settle later; whoever asks for them adds the window of a route.
        """
        latest: dict[int, int] = {}
        for row in self.rows("diffs"):
            if not is_retry_topic(row["topic"]):
                latest[row["epoch"]] = max(row["latest_ms"], latest.get(row["epoch"], 0))
        settled: dict[int, int] = {}
        before = 0
        for row in self.epochs:
            moved = row["epoch"] in latest
            windows = [_window_ms(cause, in_diffs=moved) for cause in row["causes"]]
            own = max(latest.get(row["epoch"], 0), row["from_ms"] + max(windows, default=0))
            before = settled[row["epoch"]] = max(own, before)
        return settled

    @cached_property
    def offline(self) -> list[Row]:
        """The epochs in which the group has no member."""
        return [row for row in self.epochs if row["status"] == EMPTY]

    def epoch_at(self, at_ms: int) -> Row | None:
        """The epoch that holds at this time; None before the first."""
        begun = bisect_right(self.epochs, at_ms, key=lambda row: row["from_ms"])
        return self.epochs[begun - 1] if begun else None


def _window_ms(cause: str, *, in_diffs: bool) -> int:
    """The window of a cause; ``in_diffs``: the diffs say whether a loss was an expiry."""
    expired = cause == CONSUMER_LOST and not in_diffs
    return window_ms(Event(0, 0, cause, detail=EXPIRED if expired else None))


def known_topics(member: Row) -> frozenset[str]:
    """What a row of memberships is known to subscribe; nothing where that is not known."""
    return frozenset(member["subscriptions"] or ())
