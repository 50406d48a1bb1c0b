"""Finds client ids that appear in a member list more than once, from logs and brokers' lists."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rebalance_core.audit.group_snapshot import GroupSnapshot, grouped
from rebalance_core.audit.listings import (
    ListedMember,
    broker_answers,
    listed_members,
    member_rounds,
)
from rebalance_core.audit.stretches import mixed_spans, rows_in_epoch
from rebalance_core.model.times import CHANNEL_EXPIRY_MS, CHANNEL_SCAN_MS

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import MembershipsRow

HALF_OPEN_MS = CHANNEL_EXPIRY_MS + CHANNEL_SCAN_MS
"""The maximum time until a broker removes a dead channel."""
MANY = 3
"""A single reconnect cannot produce this many entries for one id."""


@dataclass(frozen=True, slots=True)
class DuplicateId:
    """A client id with overlapping processes, oldest channel first; ``older_went``: the overlap
    ended because the older process left.
    """

    client_id: str
    channels: tuple[str, ...]
    first_ms: int
    last_ms: int | None
    older_went: bool
    epoch: int = 0


@dataclass(frozen=True, slots=True)
class DuplicateListing:
    """A client id that a broker listed with several addresses; ``ended_ms``: when a later complete
    list of the broker has it at most once.
    """

    client_id: str
    broker_name: str
    addresses: tuple[str, ...]
    first_ms: int
    last_ms: int
    persists: bool = False
    ended_ms: int | None = None


def logged_duplicates(group: GroupSnapshot) -> list[DuplicateId]:
    """Return the ids whose logged processes overlap, each with its most important overlap."""
    by_id = grouped(group.tables["memberships"], lambda row: row["client_id"])
    duplicates = []
    for client_id, rows in sorted(by_id.items()):
        if len({row["channel_id"] for row in rows}) > 1:
            stretches = [_as_seen(group, duplicate) for duplicate in _overlaps(client_id, rows)]
            if stretches:
                duplicates.append(max(stretches, key=lambda t: (t.last_ms is None, t.last_ms or 0)))
    return duplicates


def _overlaps(client_id: str, rows: list[MembershipsRow]) -> list[DuplicateId]:
    life: dict[str, list[int | None]] = {}
    for row in sorted(rows, key=lambda row: row["from_ms"]):
        channel = row["channel_id"] or ""
        life.setdefault(channel, [row["from_ms"], None])[1] = row["to_ms"]
    duplicates = []
    for span in mixed_spans(rows, lambda row: row["channel_id"] or ""):
        together = [
            channel
            for channel, (begin, end) in life.items()
            if (begin or 0) <= span.first_ms and (end is None or end > span.first_ms)
        ]
        together.sort(key=lambda channel: life[channel][0] or 0)
        went = span.last_ms is not None and life[together[0]][1] == span.last_ms
        duplicates.append(
            DuplicateId(client_id, tuple(together), span.first_ms, span.last_ms, went, span.epoch)
        )
    return duplicates


def _as_seen(group: GroupSnapshot, duplicate: DuplicateId) -> DuplicateId:
    """Return the duplicate, with its older channel marked alive if a later dump still lists the
    address.
    """
    if duplicate.last_ms is None:
        return duplicate
    still = {
        row["client_addr"]
        for row in listed_members(group)
        if row["client_id"] == duplicate.client_id and row["observed_ms"] > duplicate.last_ms
    }
    alive = duplicate.channels[0] in still
    return replace(duplicate, older_went=False) if alive else duplicate


def duplicate_ids_at(group: GroupSnapshot, at_ms: int, lost_ms: int) -> set[str]:
    """Return the client ids that two processes have, or had until shortly before this time."""
    seen: dict[str, set[str | None]] = {}
    for row in group.tables["memberships"]:
        if row["from_ms"] <= at_ms and (row["to_ms"] is None or at_ms < row["to_ms"] + lost_ms):
            seen.setdefault(row["client_id"], set()).add(row["channel_id"])
    return {client_id for client_id, channels in seen.items() if len(channels) > 1}


def is_crowded(group: GroupSnapshot, duplicate: DuplicateId) -> bool:
    """Return True if every member was listed several times, as by a broker that had been frozen."""
    processes: dict[str, int] = {}
    for row in rows_in_epoch(group.tables["memberships"], duplicate.epoch):
        processes[row["client_id"]] = processes.get(row["client_id"], 0) + 1
    return len(processes) > 1 and min(processes.values()) > 1


def listed_duplicates(group: GroupSnapshot) -> dict[str, DuplicateListing]:
    """Return the ids that every broker of that round listed with several addresses.

    An id that only one broker lists twice is that broker's problem: `multiplied`.
    """
    listings: dict[str, DuplicateListing] = {}
    for together in member_rounds(listed_members(group)):
        for client_id, lists in _addresses(together).items():
            if min(len(seen) for seen in lists.values()) > 1:
                listings[client_id] = _listing(client_id, lists, together)
    return {client_id: _with_end(group, listing) for client_id, listing in listings.items()}


def ids_seen_twice(group: GroupSnapshot) -> list[str]:
    """Return the ids that two processes share, by the logs or by the brokers' lists."""
    return [each.client_id for each in logged_duplicates(group)] + [*listed_duplicates(group)]


def _with_end(group: GroupSnapshot, listing: DuplicateListing) -> DuplicateListing:
    times: dict[int, int] = {}
    for row in broker_answers(group):
        if row["asked_broker"] == listing.broker_name and row["observed_ms"] > listing.last_ms:
            has_it = row["client_id"] == listing.client_id
            times[row["observed_ms"]] = times.get(row["observed_ms"], 0) + has_it
    ended_ms = min((at_ms for at_ms, count in times.items() if count < 2), default=None)
    return replace(listing, ended_ms=ended_ms)


def multiplied(group: GroupSnapshot) -> list[DuplicateListing]:
    """Return the ids that a broker lists many times, if another lists them once or all are
    repeated.
    """
    listings: dict[tuple[str, str], DuplicateListing] = {}
    for together in member_rounds(listed_members(group)):
        by_id = _addresses(together)
        for broker in {broker for lists in by_id.values() for broker in lists}:
            counts = {cid: len(lists[broker]) for cid, lists in by_id.items() if broker in lists}
            all_of_them = len(counts) > 1 and min(counts.values()) > 1
            for client_id, count in counts.items():
                fewer = min(len(seen) for seen in by_id[client_id].values()) < count
                key = (client_id, broker)
                if (count > 1 and all_of_them) or (count >= MANY and fewer):
                    lists = {broker: by_id[client_id][broker]}
                    listing = _listing(client_id, lists, together)
                    listings[key] = _joined(listings.get(key), listing)
    return [_with_end(group, listing) for listing in listings.values()]


def _joined(before: DuplicateListing | None, listing: DuplicateListing) -> DuplicateListing:
    first = before.first_ms if before else listing.first_ms
    return replace(listing, first_ms=first, persists=listing.last_ms - first > HALF_OPEN_MS)


def _addresses(rows: list[ListedMember]) -> dict[str, dict[str, set[str]]]:
    """Return client id -> broker -> its addresses there."""
    addresses: dict[str, dict[str, set[str]]] = {}
    for row in rows:
        if row["client_addr"]:
            lists = addresses.setdefault(row["client_id"], {})
            lists.setdefault(row["asked_broker"], set()).add(row["client_addr"])
    return addresses


def _listing(
    client_id: str, lists: dict[str, set[str]], rows: list[ListedMember]
) -> DuplicateListing:
    broker = max(lists, key=lambda name: (len(lists[name]), name))
    times = [r["observed_ms"] for r in rows if r["client_id"] == client_id]
    return DuplicateListing(client_id, broker, tuple(sorted(lists[broker])), min(times), max(times))
