"""DUPLICATE_CLIENT_ID, HALF_OPEN_DUPLICATE, MEMBERS_MULTIPLIED: one id in the list many times."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rebalance_core.audit.case import (
    BROKER,
    Finding,
    GroupCase,
    Rule,
    lasting,
    listed,
    plural,
    queue_names,
)
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
from rebalance_core.audit.orphans import is_broadcasting, there_in
from rebalance_core.model.times import utc
from rebalance_core.model.verdicts import ERROR, INFO, WARNING
from rebalance_core.protocol.members import NOTIFIED_MS

OWN_INSTANCE = (
    "Give each consumer of the process an instance name of its own (and each container, where they "
    "share the host's network); then restart them."
)


def find_duplicates(case: GroupCase) -> Iterator[Finding]:
    """One finding for each client id that two live processes use (rocketmq.md §1.2, §11 no. 4)."""
    listings = listed_duplicates(case)
    logged = {duplicate.client_id: duplicate for duplicate in logged_duplicates(case)}
    crowded = {listing.client_id for listing in multiplied(case)}
    for client_id in sorted(logged.keys() | listings.keys()):
        duplicate, listing = logged.get(client_id), listings.get(client_id)
        if duplicate is None:
            if listing is not None and client_id not in crowded:
                yield _seen_only(case, listing)
        elif is_duplicate(case, duplicate, listing) and not is_crowded(case, duplicate):
            yield _duplicate(case, duplicate, listing)


def is_duplicate(case: GroupCase, duplicate: DuplicateId, listing: DuplicateListing | None) -> bool:
    """True unless it can be the half-open channel of one process that came back."""
    if duplicate.last_ms is not None and duplicate.last_ms - duplicate.first_ms <= NOTIFIED_MS:
        return False
    if duplicate.last_ms is None:
        return listing is not None or case.run.end_ms - duplicate.first_ms > HALF_OPEN_MS
    return not (duplicate.older_went and duplicate.last_ms - duplicate.first_ms <= HALF_OPEN_MS)


def _duplicate(
    case: GroupCase, duplicate: DuplicateId, listing: DuplicateListing | None
) -> Finding:
    gone = duplicate.last_ms is not None
    until = f" until {utc(duplicate.last_ms)}" if duplicate.last_ms is not None else ""
    slices = _slices(case, duplicate.client_id, duplicate.epoch if gone else None)
    evidence = {"channels": listed(duplicate.channels)}
    if listing is not None:
        evidence |= {"addresses": listed(listing.addresses), "seen_at": listing.broker_name}
    live = not gone or listing is not None
    one_host = _of_one_host(duplicate.client_id, duplicate.channels)
    who = plural(len(duplicate.channels), "connection" if one_host else "process")
    return Finding(
        f"{who} use the client id {duplicate.client_id} "
        f"since {utc(duplicate.first_ms)}{until}{slices}.",
        evidence,
        severity=ERROR if live and not is_broadcasting(case) else WARNING,
        client_id=duplicate.client_id,
        first_ms=duplicate.first_ms,
        last_ms=duplicate.last_ms,
        remedy=OWN_INSTANCE if one_host else None,
    )


def _of_one_host(client_id: str, addresses: Iterable[str]) -> bool:
    """True if the id is ``ip@pid`` and every connection comes from that address.

    Clients that are not Java open one for each consumer of a process; so do containers that share
    their host's network, each with the same process id.
    """
    host, _, process = client_id.partition("@")
    return process.isdigit() and {one.rpartition(":")[0] for one in addresses} == {host}


def _seen_only(case: GroupCase, listing: DuplicateListing) -> Finding:
    return Finding(
        f"{listing.broker_name} lists the client id {listing.client_id} with "
        f"{len(listing.addresses)} addresses: {listed(listing.addresses, 3)}"
        f"{_slices(case, listing.client_id)}.",
        {"addresses": listed(listing.addresses), "seen_at": listing.broker_name},
        client_id=listing.client_id,
        broker_name=listing.broker_name,
        first_ms=listing.first_ms,
        remedy=OWN_INSTANCE if _of_one_host(listing.client_id, listing.addresses) else None,
    )


def _slices(case: GroupCase, client_id: str, epoch: int | None = None) -> str:
    """Which queues the duplicates hold twice, and which nobody holds; epoch None: at the end."""
    if is_broadcasting(case):
        return ""
    words = []
    there = there_in(case.rows("ownership"), epoch)
    for what, rows in (
        ("read twice", [r for r in there if r["client_id"] == client_id and r["holders"] > 1]),
        ("read by nobody", [r for r in there if r["client_id"] is None]),
    ):
        for topic, of_topic in by_topic(rows).items():
            names = queue_names((r["broker_name"], r["queue_id"]) for r in of_topic)
            words.append(f"{topic} {names} {what}")
    return f"; {listed(words, 6)}" if words else ""


def find_half_open(case: GroupCase) -> Iterator[Finding]:
    """One finding for each id that stood twice until its older channel went (no. 5)."""
    listings = listed_duplicates(case)
    for duplicate in logged_duplicates(case):
        listing = listings.get(duplicate.client_id)
        if is_duplicate(case, duplicate, listing) or is_crowded(case, duplicate):
            continue
        if duplicate.last_ms is not None and not duplicate.older_went:
            continue  # for a short time only
        until = case.run.end_ms if duplicate.last_ms is None else duplicate.last_ms
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


def find_multiplied(case: GroupCase) -> Iterator[Finding]:
    """One finding a broker that lists members many times, one for the log
    (rocketmq.md §13 no. 5).
    """
    crowd = [duplicate for duplicate in logged_duplicates(case) if is_crowded(case, duplicate)]
    if crowd:
        over = [duplicate.last_ms for duplicate in crowd]
        yield Finding(
            f"All members stood in the list many times from {utc(crowd[0].first_ms)}: "
            f"{listed((duplicate.client_id for duplicate in crowd), 3)}.",
            {"members": listed(duplicate.client_id for duplicate in crowd)},
            severity=WARNING if None in over else INFO,
            first_ms=min(duplicate.first_ms for duplicate in crowd),
            last_ms=None if None in over else max(end for end in over if end is not None),
        )
    by_broker: dict[str, list[DuplicateListing]] = {}
    for listing in multiplied(case):
        by_broker.setdefault(listing.broker_name, []).append(listing)
    for broker, listings in sorted(by_broker.items()):
        entries = sum(len(listing.addresses) for listing in listings)
        ids = sorted(listing.client_id for listing in listings)
        first = min(listing.first_ms for listing in listings)
        last = max(listing.last_ms for listing in listings)
        resolved = any(listing.resolved for listing in listings)
        yield Finding(
            f"{broker} listed {plural(len(ids), 'member')} {entries} times at {utc(first)}"
            f"{', later no more' if resolved else ''}: {listed(ids, 3)}.",
            {"members": listed(ids), "entries": str(entries)},
            severity=INFO if resolved or not listings[0].persists else WARNING,
            broker_name=broker,
            first_ms=first,
            last_ms=last if resolved else None,
        )


DUPLICATE = Rule(
    "DUPLICATE_CLIENT_ID",
    ERROR,
    "Two live processes use one client id. Members divide by list position, and both take the "
    "first of the two: with AVG both read the same slice and nobody reads the second one; orderly "
    "consumption loses its order, because locks are kept per client id.",
    "memberships (channels of one id that overlap); consumerConnection (addresses of one id)",
    "Give each process its own id: unset instanceName and rocketmq.client.name, or set them to a "
    "value unique to the container or host; then restart both.",
    find_duplicates,
)
HALF_OPEN = Rule(
    "HALF_OPEN_DUPLICATE",
    INFO,
    "One process stood twice in the member list because it reconnected before the broker noticed "
    "that its old channel was dead. It resolves within 130 s.",
    "memberships (channels of one id that overlap, the older one went)",
    "Nothing now. If it comes often, look for network trouble or long pauses of that client.",
    find_half_open,
)
MULTIPLIED = Rule(
    "MEMBERS_MULTIPLIED",
    WARNING,
    "A broker lists members several times, as it does after it was frozen and connections queued "
    "up. Shares are divided by the list, so queues have no owner until the extra entries expire.",
    "consumerConnection (addresses of one id at one broker)",
    "Wait two minutes and dump consumerConnection again. If the entries stay, restart that broker; "
    "look for what froze it (GC, disk, hypervisor).",
    find_multiplied,
    about=BROKER,
    files=("broker_log", "consumerConnection"),
)
