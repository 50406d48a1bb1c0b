"""Queues without an owner or with two, and the client ids that several processes use."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypedDict

from rebalance_core.audit.dumps import by_topic, fresh, queue_of, seen_ms
from rebalance_core.audit.duplicate_ids import (
    HALF_OPEN_MS,
    DuplicateId,
    DuplicateListing,
    is_crowded,
    listed_duplicates,
    logged_duplicates,
    multiplied,
)
from rebalance_core.audit.evidence import newest_dump_ms
from rebalance_core.audit.group_snapshot import (
    BROKER,
    PERSISTENT_MS,
    Finding,
    GroupSnapshot,
    Rule,
    grouped,
    lasting,
    listed,
    plural,
    queue_names,
)
from rebalance_core.audit.offsets import Offsets, messages
from rebalance_core.audit.orphans import orphans, reason
from rebalance_core.audit.refused_starts import RefusedStarts
from rebalance_core.audit.stretches import (
    is_long,
    is_persistent,
    is_rolling,
    mixed_spans,
    offline_ms,
    rows_in_epoch,
    span_of,
)
from rebalance_core.audit.subjects import CAUSES, EVENTS, IDS, MEMBERS, ROUTES, TOPICS
from rebalance_core.audit.subscriptions import (
    is_broadcasting,
    is_shared,
    strategy_is_known,
    subscribers,
    suspended_clients,
)
from rebalance_core.model.queue import MessageQueue, is_retry_topic
from rebalance_core.model.times import MINUTE_MS, utc
from rebalance_core.model.verdicts import ERROR, INFO, WARNING
from rebalance_core.protocol.settling_windows import NOTIFIED_MS

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import MembershipsRow, ObservedOwnershipRow, OwnershipRow

# ORPHAN_QUEUES: readable queues of subscribed topics without an owner.

OWN_RULES = ("CONFIG", "MACHINE_ROOM")
"""Strategies that leave queues out by design; see CONFIG_GAP and MACHINE_ROOM_UNMATCHED."""


def find_orphan_queues(group: GroupSnapshot) -> Iterator[Finding]:
    """Yield one finding per topic: queues without an owner at the end, else long before (no. 8)."""
    if is_broadcasting(group) or _by_design(group):
        return
    at_end = by_topic(orphans(group))
    offsets = Offsets(group)
    for topic, rows in at_end.items():
        yield _persistent(group, topic, rows, offsets)
    for topic, rows in by_topic(_long_ago(group)).items():
        if topic not in at_end and not is_retry_topic(topic):
            yield _over(group, topic, rows)


def _by_design(group: GroupSnapshot) -> bool:
    names = {row["strategy"].partition("(")[0] for row in group.members}
    return bool(names) and names <= set(OWN_RULES)


def _persistent(
    group: GroupSnapshot, topic: str, rows: list[OwnershipRow], offsets: Offsets
) -> Finding:
    queues = queue_names((row["broker_name"], row["queue_id"]) for row in rows)
    behind = offsets.behind(queue_of(row) for row in rows)
    started = ((queue_of(row), row["from_ms"]) for row in rows)
    why = reason(group, topic) or RefusedStarts(group).why(started)
    retry = is_retry_topic(topic)
    what = "retries stored there are not delivered" if retry else f"{messages(behind)} behind"
    alone = rows[0] if len(rows) == 1 else None
    return Finding(
        f"No member reads {plural(len(rows), 'queue')} of {topic} ({queues}) although the group is "
        f"online: {what}{f'; {why}' if why else ''}.",
        {
            "queues": queues,
            "members": str(len({row["client_id"] for row in subscribers(group, topic)})),
            "behind": "unknown" if behind is None else str(behind),
            "reason": why or "unknown",
        },
        severity=WARNING if retry else ERROR,
        topic=topic,
        broker_name=alone["broker_name"] if alone else None,
        queue_id=alone["queue_id"] if alone else None,
        first_ms=max(min(row["from_ms"] for row in rows), _online_since(group)),
    )


def _online_since(group: GroupSnapshot) -> int:
    """Return since when the group has had members without a break, epoch ms."""
    return max((row["to_ms"] or 0 for row in group.offline), default=0)


def _long_ago(group: GroupSnapshot) -> list[OwnershipRow]:
    """Return ended times without an owner, longer than any transient while the group was online."""
    rows_left = []
    for row in group.tables["ownership"]:
        if row["client_id"] is None and row["to_ms"] is not None:
            first_ms = max(row["from_ms"], group.run.start_ms)
            span = row["to_ms"] - first_ms - offline_ms(group, first_ms, row["to_ms"])
            if span > PERSISTENT_MS:
                rows_left.append(row)
    return rows_left


def _over(group: GroupSnapshot, topic: str, rows: list[OwnershipRow]) -> Finding:
    queues = queue_names((row["broker_name"], row["queue_id"]) for row in rows)
    spans = [(row["from_ms"], _end(group, row)) for row in rows]
    first, last = min(begin for begin, _ in spans), max(end for _, end in spans)
    worst = max(end - begin for begin, end in spans)
    rolling = all(is_rolling(group, span_of(row)) for row in rows)
    why = " while members were replaced one after another" if rolling else ""
    return Finding(
        f"No member read {plural(len(rows), 'queue')} of {topic} ({queues}) for up to "
        f"{lasting(worst)} from {utc(first)}{why}.",
        {"queues": queues},
        topic=topic,
        first_ms=first,
        last_ms=last,
    )


ORPHAN_QUEUES = Rule(
    "ORPHAN_QUEUES",
    ERROR,
    "The group is online, but queues of its topics have no owner: their messages wait. Queues "
    "that CONFIG and MACHINE_ROOM leave out have rules of their own.",
    "ownership, memberships, START_REFUSED, TOPIC_MISSING",
    "Remove the reason named (see the group's other findings). If there is none, restart the "
    "members one by one and compare consumerConnection of all brokers.",
    find_orphan_queues,
    by_owners=True,
    reads=(TOPICS, MEMBERS),
    state=True,
)


# DOUBLE_OWNER: a queue of a CLUSTERING group that two members hold.


class Held(TypedDict):
    """A holding of a queue, of the ledger or as dumps show it."""

    topic: str
    broker_name: str
    queue_id: int
    client_id: str | None
    holders: int
    from_ms: int
    to_ms: int | None


TOGETHER_MS = MINUTE_MS
"""Two observations of a queue so close together count as one."""


def find_double_owner(group: GroupSnapshot) -> Iterator[Finding]:
    """Yield one finding per topic whose queues two members hold (rocketmq.md §8).

    By the ledger, or else by dumps.
    """
    names = {row["strategy"].partition("(")[0] for row in group.tables["memberships"]}
    if is_broadcasting(group) or names == {"CONFIG"}:
        return
    predicted = by_topic(_twice(group))
    for topic, rows in predicted.items():
        yield _finding(topic, rows, "")
    for topic, held in by_topic(_seen(group)).items():
        if topic not in predicted:
            shown_ms = max(row["from_ms"] for row in held)
            yield replace(_finding(topic, held, "as dumps show, "), seen_ms=shown_ms)


def _twice(group: GroupSnapshot) -> list[OwnershipRow]:
    """Return lasting holdings of queues that several processes hold, without suspended processes.

    None where it is not known how the members divide.
    """
    if not strategy_is_known(group):
        return []
    idle = suspended_clients(group)
    held: dict[MessageQueue, list[OwnershipRow]] = {}
    for row in group.tables["ownership"]:
        if row["client_id"] is not None and row["client_id"] not in idle:
            held.setdefault(queue_of(row), []).append(row)
    doubled: list[OwnershipRow] = []
    for rows in held.values():
        if len(rows) == 1 and rows[0]["holders"] < 2:
            continue
        for row in rows:
            if row["holders"] > 1 and is_persistent(group, span_of(row)):
                doubled.append(row)
        for span in mixed_spans(rows, lambda row: row["client_id"]):
            if is_persistent(group, span):
                doubled += [
                    {**row, "to_ms": span.last_ms}
                    for row in rows
                    if row["from_ms"] <= span.first_ms < _end(group, row)
                ]
    open_now = [row for row in doubled if row["to_ms"] is None]
    return open_now or [row for row in doubled if is_long(group, span_of(row))]


def _end(group: GroupSnapshot, row: OwnershipRow | MembershipsRow) -> int:
    return group.run.end_ms + 1 if row["to_ms"] is None else row["to_ms"]


def _seen(group: GroupSnapshot) -> list[Held]:
    """Return queues that dumps show with two clients while nothing was changing.

    Over since one of them went, where one did before the newest dump.
    """
    idle = suspended_clients(group)
    memberships = sorted(group.tables["memberships"], key=lambda row: _end(group, row))
    ends = {row["client_id"]: row["to_ms"] for row in memberships}
    newest_ms = newest_dump_ms(group) or 0
    observations: dict[MessageQueue, list[ObservedOwnershipRow]] = {}
    for row in fresh(group, group.tables["observed_ownership"], seen_ms):
        if row["client_id"] not in idle and not is_shared(group, row["topic"], row["observed_ms"]):
            observations.setdefault(queue_of(row), []).append(row)
    doubled: list[Held] = []
    for rows in observations.values():
        rows.sort(key=lambda row: row["observed_ms"])
        for place, first in enumerate(rows):
            for second in _together(rows, place):
                if first["client_id"] != second["client_id"] and _at_rest(group, first, second):
                    went = [ends.get(row["client_id"]) for row in (first, second)]
                    over = min((ms for ms in went if ms and ms <= newest_ms), default=None)
                    doubled += [_as_held(row, over) for row in (first, second)]
    return [row for row in doubled if row["to_ms"] is None] or doubled


def _together(rows: list[ObservedOwnershipRow], place: int) -> Iterator[ObservedOwnershipRow]:
    """Return the observations that together with this show two owners, not a hand-over.

    Those of the same dump, and those after which the client of this observation is seen again.
    """
    first = rows[place]
    close = [r for r in rows[place + 1 :] if r["observed_ms"] - first["observed_ms"] <= TOGETHER_MS]
    again = [n for n, row in enumerate(close) if row["client_id"] == first["client_id"]]
    for number, row in enumerate(close):
        if row["observed_ms"] == first["observed_ms"] or (again and number < again[-1]):
            yield row


def _at_rest(
    group: GroupSnapshot, first: ObservedOwnershipRow, second: ObservedOwnershipRow
) -> bool:
    """Return whether no change is under way from the first observation to the second."""
    before, after = group.epoch_at(first["observed_ms"]), group.epoch_at(second["observed_ms"])
    if before is None or after is None or before["epoch"] != after["epoch"]:
        return False
    return bool(first["observed_ms"] > group.settled_by[before["epoch"]])


def _as_held(seen: ObservedOwnershipRow, to_ms: int | None) -> Held:
    return {
        "topic": seen["topic"],
        "broker_name": seen["broker_name"],
        "queue_id": seen["queue_id"],
        "client_id": seen["client_id"],
        "holders": 1,
        "from_ms": seen["observed_ms"],
        "to_ms": to_ms,
    }


def _finding(topic: str, rows: Sequence[Held | OwnershipRow], seen: str) -> Finding:
    who: dict[MessageQueue, set[str]] = {}
    for row in rows:
        times = f" ({row['holders']} processes)" if row["holders"] > 1 else ""
        who.setdefault(queue_of(row), set()).add(f"{row['client_id']}{times}")
    queues = queue_names((broker, number) for _, broker, number in who)
    clients = sorted(set[str]().union(*who.values()))
    ends = [row["to_ms"] for row in rows if row["to_ms"] is not None]
    over = max(ends) if len(ends) == len(rows) else None
    alone = next(iter(who)) if len(who) == 1 else None
    return Finding(
        f"{plural(len(who), 'queue')} of {topic} ({queues}) held more than once: "
        f"{seen}by {listed(clients, 4)}.",
        {"queues": queues, "clients": listed(clients)},
        topic=topic,
        broker_name=alone[1] if alone else None,
        queue_id=alone[2] if alone else None,
        first_ms=min(row["from_ms"] for row in rows),
        last_ms=over,
    )


DOUBLE_OWNER = Rule(
    "DOUBLE_OWNER",
    ERROR,
    "Two members of a CLUSTERING group hold one queue for longer than a rebalance takes. Both "
    "read the same messages, and their commits overwrite each other.",
    "ownership, observed_ownership",
    "Look for duplicate client ids, mixed strategies or differing member lists (the group's other "
    "findings); restart the member that should not hold the queue.",
    find_double_owner,
    reads=(MEMBERS,),
    state=True,
)


# DUPLICATE_CLIENT_ID, HALF_OPEN_DUPLICATE, MEMBERS_MULTIPLIED: one id in the list many times.

OWN_INSTANCE = (
    "Give each consumer of the process an instance name of its own (and each container, where they "
    "share the host's network); then restart them."
)


def find_duplicates(group: GroupSnapshot) -> Iterator[Finding]:
    """Yield one finding per client id that two live processes use (rocketmq.md §1.2)."""
    listings = listed_duplicates(group)
    logged = {duplicate.client_id: duplicate for duplicate in logged_duplicates(group)}
    crowded = {listing.client_id for listing in multiplied(group)}
    for client_id in sorted(logged.keys() | listings.keys()):
        duplicate, listing = logged.get(client_id), listings.get(client_id)
        if duplicate is None:
            if listing is not None and client_id not in crowded:
                yield _seen_only(group, listing)
        elif listing is None and client_id in crowded:
            continue  # one broker lists everybody many times: the log lacks what the others did
        elif is_duplicate(group, duplicate, listing) and not is_crowded(group, duplicate):
            yield _duplicate(group, duplicate, listing)


def is_duplicate(
    group: GroupSnapshot, duplicate: DuplicateId, listing: DuplicateListing | None
) -> bool:
    """Return False if it may be the half-open channel of a process that came back."""
    if duplicate.last_ms is not None and duplicate.last_ms - duplicate.first_ms <= NOTIFIED_MS:
        return False
    if duplicate.last_ms is None:
        return listing is not None or group.run.end_ms - duplicate.first_ms > HALF_OPEN_MS
    return not (duplicate.older_went and duplicate.last_ms - duplicate.first_ms <= HALF_OPEN_MS)


def _duplicate(
    group: GroupSnapshot, duplicate: DuplicateId, listing: DuplicateListing | None
) -> Finding:
    gone = duplicate.last_ms is not None
    slices = _slices(group, duplicate.client_id, duplicate.epoch if gone else None)
    evidence = {"channels": listed(duplicate.channels)}
    if listing is not None:
        evidence |= {"addresses": listed(listing.addresses), "seen_at": listing.broker_name}
    last_ms, ended_by = duplicate.last_ms, ""
    if listing is not None and last_ms is None:
        last_ms, ended_by = listing.ended_ms, _lists_it_once(listing)
    elif listing is not None and listing.ended_ms is None and listing.last_ms > (last_ms or 0):
        last_ms = None  # the list is newer than the line by which one went
    one_host = _of_one_host(duplicate.client_id, duplicate.channels)
    who = plural(len(duplicate.channels), "connection" if one_host else "process")
    return Finding(
        f"{who} use the client id {duplicate.client_id} since {utc(duplicate.first_ms)}{slices}.",
        evidence,
        severity=WARNING if is_broadcasting(group) else None,
        client_id=duplicate.client_id,
        first_ms=duplicate.first_ms,
        last_ms=last_ms,
        remedy=OWN_INSTANCE if one_host else None,
        reads=None if listing is None else (IDS,),
        ended_by=ended_by,
    )


def _lists_it_once(listing: DuplicateListing) -> str:
    return f"{listing.broker_name} lists it once"


def _of_one_host(client_id: str, addresses: Iterable[str]) -> bool:
    """Return whether the id is ``ip@pid`` and every connection comes from that address.

    Clients that are not Java open one for each consumer of a process; so do containers that share
    their host's network, each with the same process id.
    """
    host, _, process = client_id.partition("@")
    return process.isdigit() and {address.rpartition(":")[0] for address in addresses} == {host}


def _seen_only(group: GroupSnapshot, listing: DuplicateListing) -> Finding:
    return Finding(
        f"{listing.broker_name} lists the client id {listing.client_id} with "
        f"{len(listing.addresses)} addresses: {listed(listing.addresses, 3)}"
        f"{_slices(group, listing.client_id)}.",
        {"addresses": listed(listing.addresses), "seen_at": listing.broker_name},
        client_id=listing.client_id,
        broker_name=listing.broker_name,
        first_ms=listing.first_ms,
        last_ms=listing.ended_ms,
        remedy=OWN_INSTANCE if _of_one_host(listing.client_id, listing.addresses) else None,
        reads=(IDS,),
        ended_by=_lists_it_once(listing),
    )


def _slices(group: GroupSnapshot, client_id: str, epoch: int | None = None) -> str:
    """Name the queues that the duplicates hold twice, and those that no member holds.

    epoch None: at the end.
    """
    if is_broadcasting(group):
        return ""
    words = []
    held = rows_in_epoch(group.tables["ownership"], epoch)
    for what, rows in (
        ("read twice", [r for r in held if r["client_id"] == client_id and r["holders"] > 1]),
        ("read by no member", [r for r in held if r["client_id"] is None]),
    ):
        for topic, of_topic in by_topic(rows).items():
            names = queue_names((r["broker_name"], r["queue_id"]) for r in of_topic)
            words.append(f"{topic} {names} {what}")
    return f"; {listed(words, 6)}" if words else ""


def find_half_open(group: GroupSnapshot) -> Iterator[Finding]:
    """Yield one finding per id that was listed twice until its older channel went (no. 5)."""
    listings = listed_duplicates(group)
    for duplicate in logged_duplicates(group):
        listing = listings.get(duplicate.client_id)
        if is_duplicate(group, duplicate, listing) or is_crowded(group, duplicate):
            continue
        if duplicate.last_ms is not None and not duplicate.older_went:
            continue  # for a short time only
        until = group.run.end_ms if duplicate.last_ms is None else duplicate.last_ms
        new = ", or a second process that came just now" if duplicate.last_ms is None else ""
        yield Finding(
            f"{duplicate.client_id} stood twice in the member list from "
            f"{utc(duplicate.first_ms)} for {lasting(until - duplicate.first_ms)}: "
            f"a process that came back before its old channel was gone{new}.",
            {"channels": listed(duplicate.channels)},
            client_id=duplicate.client_id,
            first_ms=duplicate.first_ms,
            last_ms=duplicate.last_ms,
        )


def find_multiplied(group: GroupSnapshot) -> Iterator[Finding]:
    """Yield one finding per broker that lists members many times (rocketmq.md §13 no. 5)."""
    crowd = [duplicate for duplicate in logged_duplicates(group) if is_crowded(group, duplicate)]
    if crowd:
        over = [duplicate.last_ms for duplicate in crowd]
        yield Finding(
            f"All members stood in the list many times from {utc(crowd[0].first_ms)}: "
            f"{listed((duplicate.client_id for duplicate in crowd), 3)}.",
            {"members": listed(duplicate.client_id for duplicate in crowd)},
            first_ms=min(duplicate.first_ms for duplicate in crowd),
            last_ms=None if None in over else max(end for end in over if end is not None),
        )
    by_broker = grouped(multiplied(group), lambda listing: listing.broker_name)
    for broker, listings in sorted(by_broker.items()):
        entries = sum(len(listing.addresses) for listing in listings)
        ids = sorted(listing.client_id for listing in listings)
        first = min(listing.first_ms for listing in listings)
        over = [listing.ended_ms for listing in listings]
        yield Finding(
            f"{broker} listed {plural(len(ids), 'member')} {entries} times at {utc(first)}: "
            f"{listed(ids, 3)}.",
            {"members": listed(ids), "entries": str(entries)},
            severity=WARNING if any(listing.persists for listing in listings) else INFO,
            broker_name=broker,
            first_ms=first,
            last_ms=None if None in over else max(end for end in over if end is not None),
            ended_by=f"{broker} lists each of them once, or no more",
        )


DUPLICATE = Rule(
    "DUPLICATE_CLIENT_ID",
    ERROR,
    "Two live processes use one client id. Both take the same share, so with AVG one slice is "
    "read twice and another by no member; orderly consumption loses its order, because locks are "
    "kept per client id.",
    "memberships, consumerConnection",
    "Give each process its own id: unset instanceName and rocketmq.client.name, or set them to a "
    "value unique to the container or host; then restart both.",
    find_duplicates,
    reads=(MEMBERS, ROUTES),
    state=True,
)
HALF_OPEN = Rule(
    "HALF_OPEN_DUPLICATE",
    INFO,
    "One process was listed twice, because it reconnected before the broker noticed that its old "
    "channel was dead. It resolves within 130 s.",
    "memberships",
    "Nothing now. If it comes often, look for network trouble or long pauses of that client.",
    find_half_open,
    reads=(EVENTS,),
)
MULTIPLIED = Rule(
    "MEMBERS_MULTIPLIED",
    WARNING,
    "A broker lists members several times, as after a freeze while connections queued up. Queues "
    "have no owner until the extra entries expire.",
    "consumerConnection",
    "Dump consumerConnection again after two minutes. If the entries stay, restart that broker; "
    "look for what froze it (GC, disk, hypervisor).",
    find_multiplied,
    about=BROKER,
    files=("broker_log", "consumerConnection"),
    reads=(CAUSES,),
    state=True,
)
