"""Client ids that stand in the member list more than once: by the log, and as brokers list them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from rebalance_core.audit.case import GroupCase, Row
from rebalance_core.audit.evidence.dumps import listed_members, member_rounds
from rebalance_core.audit.evidence.persistence import spans_where, there_in

HALF_OPEN_MS = 130_000
"""Channel expiry 120 s and the scan each 10 s: a dead channel is gone by then
(rocketmq.md §6.1).
"""
MANY = 3
"""As many entries of one id do not come from a single reconnect."""


@dataclass(frozen=True, slots=True)
class Twins:
    """One id with overlapping processes, the oldest channel first; ``older_went``: it ended it."""

    client_id: str
    channels: tuple[str, ...]
    first_ms: int
    last_ms: int | None
    older_went: bool
    epoch: int = 0


@dataclass(frozen=True, slots=True)
class Sight:
    """One id that a broker listed with several addresses."""

    client_id: str
    broker_name: str
    addresses: tuple[str, ...]
    first_ms: int
    last_ms: int
    resolved: bool = False
    persists: bool = False


def twins_of(case: GroupCase) -> list[Twins]:
    """Ids whose logged processes overlap; of each id the stretch that matters most."""
    by_id: dict[str, list[Row]] = {}
    for row in case.rows("memberships"):
        by_id.setdefault(row["client_id"], []).append(row)
    found = []
    for client_id, rows in sorted(by_id.items()):
        if len({row["channel_id"] for row in rows}) > 1:
            stretches = [_as_seen(case, twins) for twins in _overlaps(client_id, rows)]
            if stretches:
                found.append(max(stretches, key=lambda t: (t.last_ms is None, t.last_ms or 0)))
    return found


def _overlaps(client_id: str, rows: list[Row]) -> list[Twins]:
    life: dict[str, list[int | None]] = {}
    for row in sorted(rows, key=lambda one: one["from_ms"]):
        channel = row["channel_id"] or ""
        life.setdefault(channel, [row["from_ms"], None])[1] = row["to_ms"]
    found = []
    for span in spans_where(
        rows, lambda row: row["channel_id"] or "", lambda there: len(there) > 1
    ):
        together = [
            channel
            for channel, (begin, end) in life.items()
            if (begin or 0) <= span.first_ms and (end is None or end > span.first_ms)
        ]
        together.sort(key=lambda channel: life[channel][0] or 0)
        went = span.last_ms is not None and life[together[0]][1] == span.last_ms
        found.append(
            Twins(client_id, tuple(together), span.first_ms, span.last_ms, went, span.epoch)
        )
    return found


def _as_seen(case: GroupCase, twins: Twins) -> Twins:
    """The log tells twins apart by their channel, dumps by the address that is still listed."""
    if twins.last_ms is None:
        return twins
    still = {
        row["client_addr"]
        for row in listed_members(case)
        if row["client_id"] == twins.client_id and row["observed_ms"] > twins.last_ms
    }
    alive = twins.channels[0] in still
    return replace(twins, older_went=False) if alive else twins


def twin_ids(case: GroupCase, at_ms: int, lost_ms: int) -> set[str]:
    """Client ids of two processes at this moment, or of which one went so shortly before."""
    seen: dict[str, set[str | None]] = {}
    for row in case.rows("memberships"):
        if row["from_ms"] <= at_ms and (row["to_ms"] is None or at_ms < row["to_ms"] + lost_ms):
            seen.setdefault(row["client_id"], set()).add(row["channel_id"])
    return {client_id for client_id, channels in seen.items() if len(channels) > 1}


def is_crowded(case: GroupCase, twins: Twins) -> bool:
    """True if every member stood there several times: a broker that thawed, not a twin."""
    there: dict[str, int] = {}
    for row in there_in(case.rows("memberships"), twins.epoch):
        there[row["client_id"]] = there.get(row["client_id"], 0) + 1
    return len(there) > 1 and min(there.values()) > 1


def seen_twice(case: GroupCase) -> dict[str, Sight]:
    """Ids listed with several addresses by every broker that listed them in that round of dumps.

    What one broker alone lists twice is a matter of that broker: `multiplied`.
    """
    found: dict[str, Sight] = {}
    for together in member_rounds(listed_members(case)):
        for client_id, lists in _addresses(together).items():
            if min(len(seen) for seen in lists.values()) > 1:
                found[client_id] = _sight(client_id, lists, together)
    return found


def multiplied(case: GroupCase) -> list[Sight]:
    """Ids that one broker lists many times while another lists them once, or all ids at once."""
    found: dict[tuple[str, str], Sight] = {}
    for together in member_rounds(listed_members(case)):
        by_id = _addresses(together)
        for broker in {broker for lists in by_id.values() for broker in lists}:
            counts = {cid: len(lists[broker]) for cid, lists in by_id.items() if broker in lists}
            all_of_them = len(counts) > 1 and min(counts.values()) > 1
            for client_id, count in counts.items():
                fewer = min(len(seen) for seen in by_id[client_id].values()) < count
                key = (client_id, broker)
                before = found.get(key)
                if (count > 1 and all_of_them) or (count >= MANY and fewer):
                    lists = {broker: by_id[client_id][broker]}
                    sight = _sight(client_id, lists, together)
                    found[key] = _joined(before, sight)
                elif before is not None and count == 1:
                    found[key] = _joined(before, before, resolved=True)
    return list(found.values())


def _joined(before: Sight | None, sight: Sight, *, resolved: bool = False) -> Sight:
    first = before.first_ms if before else sight.first_ms
    return Sight(
        sight.client_id,
        sight.broker_name,
        sight.addresses,
        first,
        sight.last_ms,
        resolved,
        sight.last_ms - first > HALF_OPEN_MS,
    )


def _addresses(rows: list[Row]) -> dict[str, dict[str, set[str]]]:
    """Client id -> broker -> its addresses there."""
    found: dict[str, dict[str, set[str]]] = {}
    for row in rows:
        if row["client_addr"]:
            lists = found.setdefault(row["client_id"], {})
            lists.setdefault(row["asked_broker"], set()).add(row["client_addr"])
    return found


def _sight(client_id: str, lists: dict[str, set[str]], rows: list[Row]) -> Sight:
    broker = max(lists, key=lambda name: (len(lists[name]), name))
    times = [r["observed_ms"] for r in rows if r["client_id"] == client_id]
    return Sight(client_id, broker, tuple(sorted(lists[broker])), min(times), max(times))
