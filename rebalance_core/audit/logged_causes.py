"""Finds logged events that explain an observation."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from rebalance_core.audit.evidence import group_brokers
from rebalance_core.audit.group_snapshot import PERSISTENT_MS, GroupSnapshot, listed
from rebalance_core.model.events import CONSUMER_JOIN, CONSUMER_LEAVE, CONSUMER_LOST, OBSERVED
from rebalance_core.model.times import HEARTBEAT_MS, MINUTE_MS, utc

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import ClusterEventsRow, EpochsRow


MEMBERS_CHANGE = {CONSUMER_JOIN, CONSUMER_LEAVE, CONSUMER_LOST}


SEEN_BEFORE_LOGGED_MS = 3_000
"""Server logs have whole seconds, and a client's first pass may precede the log line for its
join.
"""


def cause_before(group: GroupSnapshot, at_ms: int, within_ms: int = PERSISTENT_MS) -> str | None:
    """Return a description of the group's latest event within ``within_ms`` before a time, or None
    if none is logged.
    """
    for epoch in reversed(group.epochs):
        if epoch["from_ms"] <= at_ms + SEEN_BEFORE_LOGGED_MS:
            if at_ms - epoch["from_ms"] > within_ms:
                return None
            if not is_initial(group, epoch):
                return cause_text(group, epoch)
    return None


NEIGHBOUR_MS = 2 * MINUTE_MS
"""Servers' log entries within this time of an event may be related to it."""


def logged_near(
    group: GroupSnapshot,
    servers: Iterable[str],
    first_ms: int,
    last_ms: int,
    within_ms: int = NEIGHBOUR_MS,
) -> set[tuple[int, str]]:
    """Return the log entries of these brokers and proxies close to this time."""
    return {
        (at_ms, f"{server} {what} at {utc(at_ms)}")
        for server in servers
        for at_ms, what in group.run.moments.get(server, ())
        if first_ms - within_ms <= at_ms <= last_ms + within_ms
    }


def servers_near(group: GroupSnapshot, at_ms: int, most: int = 4) -> str:
    """Describe the log entries of the group's brokers and proxies within a heartbeat.

    The result is empty if they logged nothing that this program reads.
    """
    servers = group_brokers(group) | group.run.proxies
    near = sorted(logged_near(group, servers, at_ms, at_ms, HEARTBEAT_MS))
    return listed([words for _, words in near], most) if near else ""


def window_around(
    group: GroupSnapshot,
    at_ms: int,
    after_ms: int = 0,
    before_ms: int = 0,
    causes: Collection[str] | None = None,
) -> str | None:
    """Return the event whose window, extended at both ends, contains this time.

    ``causes`` are the event types that count; None for all.
    """
    for epoch in group.epochs:
        if causes is not None and not set(causes) & set(epoch["causes"]):
            continue
        begins = epoch["from_ms"] - before_ms - group.run.coverage.clock_error_ms(epoch["from_ms"])
        within = begins <= at_ms <= group.settled_by[epoch["epoch"]] + after_ms
        if within and not is_initial(group, epoch):
            return cause_text(group, epoch)
    return None


def explained(group: GroupSnapshot, first_ms: int, last_ms: int) -> str | None:
    """Return the event that explains a statement made between the first and last time.

    Both times must be within `PERSISTENT_MS` of a logged event.
    """
    first, last = cause_before(group, first_ms), cause_before(group, last_ms)
    return last if first and last else None


def is_initial(group: GroupSnapshot, epoch: EpochsRow) -> bool:
    """Return True if the epoch only records the state before the log began, which causes
    nothing.
    """
    rows = _events_at(group, epoch["from_ms"])
    return bool(rows) and all(row.get("detail") == OBSERVED for row in rows)


def cause_text(group: GroupSnapshot, epoch: EpochsRow) -> str:
    """Return an epoch's causes, with clients and times."""
    who = {row["client_id"] for row in _events_at(group, epoch["from_ms"]) if row.get("client_id")}
    of_whom = f" of {listed(sorted(who), 3)}" if who else ""
    return f"{listed(epoch['causes'])}{of_whom} at {utc(epoch['from_ms'])}"


def _events_at(group: GroupSnapshot, at_ms: int) -> list[ClusterEventsRow]:
    return [row for row in group.tables["cluster_events"] if row["event_ms"] == at_ms]
