"""DUPLICATE_CLIENT_ID, HALF_OPEN_DUPLICATE, MEMBERS_MULTIPLIED: one id in the list many times."""

from __future__ import annotations

from collections.abc import Iterator

from rebalance_core.audit.case import GroupCase
from rebalance_core.audit.evidence.duplicate_ids import (
    HALF_OPEN_MS,
    Sight,
    Twins,
    is_crowded,
    multiplied,
    seen_twice,
    twins_of,
)
from rebalance_core.audit.evidence.persistence import is_broadcasting, there_in
from rebalance_core.audit.evidence.queues import by_topic
from rebalance_core.audit.evidence.wording import clock, lasting, listed, plural, queue_names
from rebalance_core.audit.finding import ERROR, INFO, WARNING, Finding, Rule
from rebalance_core.protocol.windows import NOTIFIED_MS


def find_duplicates(case: GroupCase) -> Iterator[Finding]:
    """One finding for each client id that two live processes use (rocketmq.md §1.2, §11 no. 4)."""
    sights = seen_twice(case)
    logged = {twins.client_id: twins for twins in twins_of(case)}
    crowded = {sight.client_id for sight in multiplied(case)}
    for client_id in sorted(logged.keys() | sights.keys()):
        twins, sight = logged.get(client_id), sights.get(client_id)
        if twins is None:
            if sight is not None and client_id not in crowded:
                yield _seen_only(case, sight)
        elif is_duplicate(case, twins, sight) and not is_crowded(case, twins):
            yield _duplicate(case, twins, sight)


def is_duplicate(case: GroupCase, twins: Twins, sight: Sight | None) -> bool:
    """True unless it can be the half-open channel of one process that came back."""
    if twins.last_ms is not None and twins.last_ms - twins.first_ms <= NOTIFIED_MS:
        return False
    if twins.last_ms is None:
        return sight is not None or case.night.end_ms - twins.first_ms > HALF_OPEN_MS
    return not (twins.older_went and twins.last_ms - twins.first_ms <= HALF_OPEN_MS)


def _duplicate(case: GroupCase, twins: Twins, sight: Sight | None) -> Finding:
    gone = twins.last_ms is not None
    until = f" until {clock(twins.last_ms)}" if twins.last_ms is not None else ""
    slices = _slices(case, twins.client_id, twins.epoch if gone else None)
    evidence = {"channels": listed(twins.channels)}
    if sight is not None:
        evidence |= {"addresses": listed(sight.addresses), "seen_at": sight.broker_name}
    live = not gone or sight is not None
    return Finding(
        f"{plural(len(twins.channels), 'process')} use the client id {twins.client_id} since "
        f"{clock(twins.first_ms)}{until}{slices}.",
        evidence,
        severity=ERROR if live and not is_broadcasting(case) else WARNING,
        client_id=twins.client_id,
        first_ms=twins.first_ms,
        last_ms=twins.last_ms,
    )


def _seen_only(case: GroupCase, sight: Sight) -> Finding:
    return Finding(
        f"{sight.broker_name} lists the client id {sight.client_id} with "
        f"{len(sight.addresses)} addresses: {listed(sight.addresses, 3)}"
        f"{_slices(case, sight.client_id)}.",
        {"addresses": listed(sight.addresses), "seen_at": sight.broker_name},
        client_id=sight.client_id,
        broker_name=sight.broker_name,
        first_ms=sight.first_ms,
    )


def _slices(case: GroupCase, client_id: str, epoch: int | None = None) -> str:
    """Which queues the twins hold twice, and which are nobody's; epoch None: at the end."""
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
    sights = seen_twice(case)
    for twins in twins_of(case):
        if is_duplicate(case, twins, sights.get(twins.client_id)) or is_crowded(case, twins):
            continue
        if twins.last_ms is not None and not twins.older_went:
            continue  # for a moment only
        until = case.night.end_ms if twins.last_ms is None else twins.last_ms
        yield Finding(
            f"{twins.client_id} stood twice in the member list from {clock(twins.first_ms)} for "
            f"{lasting(until - twins.first_ms)}: a process that came back before its old channel "
            f"was gone{', or a twin that came just now' if twins.last_ms is None else ''}.",
            {"channels": listed(twins.channels)},
            client_id=twins.client_id,
            first_ms=twins.first_ms,
            last_ms=twins.last_ms,
        )


def find_multiplied(case: GroupCase) -> Iterator[Finding]:
    """One finding a broker that lists members many times, one for the log
    (rocketmq.md §13 no. 5).
    """
    crowd = [twins for twins in twins_of(case) if is_crowded(case, twins)]
    if crowd:
        over = [twins.last_ms for twins in crowd]
        yield Finding(
            f"All members stood in the list many times from {clock(crowd[0].first_ms)}: "
            f"{listed((twins.client_id for twins in crowd), 3)}.",
            {"members": listed(twins.client_id for twins in crowd)},
            severity=WARNING if None in over else INFO,
            first_ms=min(twins.first_ms for twins in crowd),
            last_ms=None if None in over else max(end for end in over if end is not None),
        )
    by_broker: dict[str, list[Sight]] = {}
    for sight in multiplied(case):
        by_broker.setdefault(sight.broker_name, []).append(sight)
    for broker, sights in sorted(by_broker.items()):
        entries = sum(len(sight.addresses) for sight in sights)
        ids = sorted(sight.client_id for sight in sights)
        first = min(sight.first_ms for sight in sights)
        last = max(sight.last_ms for sight in sights)
        resolved = any(sight.resolved for sight in sights)
        yield Finding(
            f"{broker} listed {plural(len(ids), 'member')} {entries} times at {clock(first)}"
            f"{', later no more' if resolved else ''}: {listed(ids, 3)}.",
            {"members": listed(ids), "entries": str(entries)},
            severity=INFO if resolved or not sights[0].persists else WARNING,
            broker_name=broker,
            first_ms=first,
            last_ms=last if resolved else None,
        )


DUPLICATE = Rule(
    "DUPLICATE_CLIENT_ID",
    ERROR,
    "Two live processes use one client id. Members divide by list position and each twin takes the "
    "first one: with AVG both read the same slice and the second slice is read by nobody; orderly "
    "consumption loses its order, because locks are kept per client id.",
    "memberships (channels of one id that overlap); consumerConnection (addresses of one id)",
    "Give each process its own id: unset instanceName and rocketmq.client.name, or set them to a "
    "value unique to the container or host; then restart the twins.",
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
    "up. Shares are divided by the list, so queues are nobody's until the extra entries expire.",
    "consumerConnection (addresses of one id at one broker)",
    "Wait two minutes and dump consumerConnection again. If the entries stay, restart that broker; "
    "look for what froze it (GC, disk, hypervisor).",
    find_multiplied,
)
