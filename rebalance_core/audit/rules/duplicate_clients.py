"""Client ids that the member list repeats."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rebalance_core.audit.dumps import by_topic
from rebalance_core.audit.duplicate_ids import (
    HALF_OPEN_MS,
    DuplicateId,
    DuplicateListing,
    is_crowded,
    listed_duplicates,
    logged_duplicates,
    multiplied,
)
from rebalance_core.audit.group_snapshot import (
    BROKER,
    Finding,
    GroupSnapshot,
    Rule,
    grouped,
    lasting,
    listed,
    plural,
    queue_names,
)
from rebalance_core.audit.stretches import (
    rows_in_epoch,
)
from rebalance_core.audit.subjects import CAUSES, EVENTS, IDS, MEMBERS, ROUTES
from rebalance_core.audit.subscriptions import (
    is_broadcasting,
)
from rebalance_core.model.times import utc
from rebalance_core.model.verdicts import ERROR, INFO, WARNING
from rebalance_core.protocol.settling_windows import NOTIFIED_MS

OWN_INSTANCE = (
    "Give each consumer in the process its own instance name (and each container, if they share "
    "the host's network), then restart them."
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
            continue  # one broker lists all members repeatedly: the log lacks the others' lines
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
        last_ms = None  # the list is newer than the line by which one left
    one_host = _of_one_host(duplicate.client_id, duplicate.channels)
    who = plural(len(duplicate.channels), "connection" if one_host else "process")
    return Finding(
        f"{who} have shared the client id {duplicate.client_id} since "
        f"{utc(duplicate.first_ms)}{slices}.",
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
    """Yield one finding per id that was listed twice until its older channel was gone (no. 5)."""
    listings = listed_duplicates(group)
    for duplicate in logged_duplicates(group):
        listing = listings.get(duplicate.client_id)
        if is_duplicate(group, duplicate, listing) or is_crowded(group, duplicate):
            continue
        if duplicate.last_ms is not None and not duplicate.older_went:
            continue  # only for a short time
        until = group.run.end_ms if duplicate.last_ms is None else duplicate.last_ms
        new = ", or a second process that has just started" if duplicate.last_ms is None else ""
        yield Finding(
            f"{duplicate.client_id} was in the member list twice from {utc(duplicate.first_ms)} "
            f"for {lasting(until - duplicate.first_ms)}: a process that came back before its old "
            f"channel was gone{new}.",
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
            f"All members were in the list many times from {utc(crowd[0].first_ms)}: "
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
            ended_by=f"{broker} now lists each of them at most once",
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
    "Nothing now. If this happens often, look for network trouble or long pauses of that client.",
    find_half_open,
    reads=(EVENTS,),
)


MULTIPLIED = Rule(
    "MEMBERS_MULTIPLIED",
    WARNING,
    "A broker lists members several times, as happens when connections queue up while it is "
    "frozen. Queues have no owner until the extra entries expire.",
    "consumerConnection",
    "Dump consumerConnection again after two minutes. If the entries stay, restart that broker; "
    "look for what froze it (GC, disk, hypervisor).",
    find_multiplied,
    about=BROKER,
    files=("broker_log", "consumerConnection"),
    reads=(CAUSES,),
    state=True,
)
