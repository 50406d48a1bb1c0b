"""Derives the periods in which brokers were up, without a master, or down, from cluster events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from rebalance_core.audit.coverage import ALWAYS, LOG_SILENT_MS, Coverage, Process
from rebalance_core.audit.group_snapshot import BrokerOutage, grouped
from rebalance_core.audit.unknowns import return_unlogged, stop_unlogged
from rebalance_core.model.events import (
    BROKER_DOWN,
    BROKER_EVENTS,
    BROKER_UP,
    MASTER_DOWN,
    NOTICES,
    OBSERVED,
    Event,
)
from rebalance_core.model.timeline import EVER_MS, Timeline
from rebalance_core.model.times import CHANNEL_EXPIRY_MS, MINUTE_MS, utc
from rebalance_core.replay.masters import MasterOutage, MasterOutages

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import BrokerEventsRow, FactsByKind, NewestDumpsRow


FLAP_MS = 120_000
"""A broker that expires and registers again within this time was never gone."""


CLOCKS_MS = 70_000
"""The maximum allowed difference between the clock of a broker, which dates its start, and that of
a name server, which dates its return.
"""


STOPPED = "STOPPED"
"""Detail of BROKER_DOWN: the broker unregistered itself."""


REMOVED = (
    "its own shutdown or an administrator unregistered it from the name servers, and it has not "
    "registered again"
)


_MOMENTS = {
    "BROKER_UP": "registered with the name servers",
    "BROKER_DOWN": "went",
    "MASTER_DOWN": "lost its master",
    "MASTER_UP": "got a master",
}
"""The state into which an event puts its broker."""


def down_brokers(events: Iterable[BrokerEventsRow]) -> frozenset[str]:
    """Return the brokers whose last broker event is BROKER_DOWN."""
    last: dict[str, str] = {}
    for row in sorted(events, key=lambda row: (row["event_ms"], row["sequence"])):
        last[row["broker_name"]] = row["event_type"]
    return frozenset(name for name, kind in last.items() if kind == "BROKER_DOWN")


def master_outages(events: Iterable[BrokerEventsRow]) -> dict[str, tuple[MasterOutage, ...]]:
    """Return when each broker had no master while a slave was alive.

    Args:
        events: the events of one cluster's brokers; only MASTER_DOWN and MASTER_UP count.
    """
    turns = [
        Event(
            row["event_ms"],
            row["sequence"],
            row["event_type"],
            broker_name=row["broker_name"],
            detail=row["detail"],
        )
        for row in events
    ]
    return MasterOutages(turns).by_broker


def flap_times(
    events: Iterable[BrokerEventsRow], facts: FactsByKind
) -> dict[str, list[tuple[int, int]]]:
    """Return the times of expiries without a restart, as (from, to), by broker.

    Args:
        events: BROKER_UP and BROKER_DOWN of one cluster; other events are ignored.
        facts: the cluster's facts; BROKER_STARTED counts.
    """
    events = [row for row in events if row["event_type"] in BROKER_EVENTS]
    starts: dict[str, list[int]] = {}
    for started in facts["BROKER_STARTED"]:
        starts.setdefault(started["broker_name"], []).append(started["first_ms"])
    down: dict[str, BrokerEventsRow] = {}
    flaps: dict[str, list[tuple[int, int]]] = {}
    for row in sorted(events, key=lambda row: (row["event_ms"], row["sequence"])):
        name = row["broker_name"]
        if row["event_type"] == "BROKER_DOWN":
            down[name] = row
        elif name in down:
            gone = down.pop(name)
            span = (gone["event_ms"], row["event_ms"])
            restarted = any(
                span[0] - CHANNEL_EXPIRY_MS <= ms <= span[1] + CLOCKS_MS
                for ms in starts.get(name, ())
            )
            if gone["detail"] == "EXPIRED" and span[1] - span[0] < FLAP_MS and not restarted:
                flaps.setdefault(name, []).append(span)
    return flaps


def unlogged_stops(
    events: Iterable[BrokerEventsRow], facts: FactsByKind, returned: Mapping[str, int]
) -> dict[str, Timeline[Process]]:
    """Return when each broker was running, by broker; unknown between two starts without a logged
    stop, before a return that only a dump shows, and after an outage that ended without a log line.

    Args:
        events: the events of one cluster's brokers and their masters.
        facts: BROKER_STARTED counts, and BROKER_REGISTERED with `untold_ms` if the broker has no
            slave.
        returned: the start of each outage that ended without a log line, epoch ms, by broker.
    """
    events = sorted(events, key=lambda row: (row["event_ms"], row["sequence"]))
    ends = [row for row in events if row["event_type"] in ("BROKER_DOWN", "MASTER_DOWN")]
    turns = [(row["broker_name"], row["event_ms"], False) for row in ends]
    turns += [(row["broker_name"], row["first_ms"], True) for row in facts["BROKER_STARTED"]]
    unlogged: list[_Unlogged] = []
    for (broker, start_ms, started), (same, next_start_ms, again) in pairwise(sorted(turns)):
        if broker == same and started and again:
            unlogged.append(_Unlogged(broker, start_ms, next_start_ms))
    slaves = {row["broker_name"] for row in facts["BROKER_SLAVES"]}
    logged = slaves | {row["broker_name"] for row in ends}
    for fact in facts["BROKER_REGISTERED"]:
        begin, broker = fact["details"].get("untold_ms"), fact["broker_name"]
        if begin and broker not in logged:
            unlogged.append(_Unlogged(broker, int(begin), fact["first_ms"]))
    unknown = [(span, stop_unlogged(span.broker, span.until_ms)) for span in unlogged]
    returns = list(_returns_by_dumps(events))
    for broker, down_ms in returned.items():
        starts = [ms for name, ms, started in turns if (name, started) == (broker, True)]
        up_ms = min((ms for ms in starts if ms > down_ms), default=EVER_MS - 1)
        returns.append(_Unlogged(broker, down_ms, up_ms))
    unknown += [(span, return_unlogged(span.broker, span.from_ms)) for span in returns]
    stops: dict[str, Timeline[Process]] = {}
    for (broker, from_ms, until_ms), why in unknown:
        stops[broker] = stops.get(broker, ALWAYS).put(from_ms, until_ms + 1, why)
    return stops


class _Unlogged(NamedTuple):
    """A period in which no log shows whether a broker was running."""

    broker: str
    from_ms: int
    until_ms: int


def _returns_by_dumps(events: Iterable[BrokerEventsRow]) -> Iterator[_Unlogged]:
    """Yield the outage of each broker whose return only a dump shows, until that dump.

    Args:
        events: the events, in order.
    """
    down_ms: dict[str, int] = {}
    for row in events:
        broker = row["broker_name"]
        if row["event_type"] in (BROKER_DOWN, MASTER_DOWN):
            down_ms.setdefault(broker, row["event_ms"])
        elif broker in down_ms:
            since_ms = down_ms.pop(broker)
            if (row["source"] or "").startswith("mqadmin/"):
                yield _Unlogged(broker, since_ms, row["event_ms"])


def going_on(
    events: Iterable[BrokerEventsRow],
    masters: Mapping[str, Sequence[MasterOutage]],
    signs: Mapping[str, int],
) -> dict[str, int]:
    """Return the times since which brokers have been down, or without a master, despite a later
    sign of life.

    Args:
        events: BROKER_UP and BROKER_DOWN.
        masters: the outages of masters by broker.
        signs: the last sign of life, epoch ms, of each broker that is down or whose master is down.
    """
    since = {b: outages[-1].down_ms for b, outages in masters.items() if outages}
    for row in events:
        since[row["broker_name"]] = max(row["event_ms"], since.get(row["broker_name"], 0))
    return {b: since[b] for b, at_ms in signs.items() if at_ms > since[b] + MINUTE_MS}


def broker_outages(
    events: Iterable[BrokerEventsRow],
    facts: FactsByKind,
    signs: Mapping[str, int],
    covered: Coverage,
    *,
    heard_to_the_end: bool,
) -> dict[str, tuple[BrokerOutage, ...]]:
    """Return the outages, including current ones, by broker.

    Args:
        events: BROKER_UP and BROKER_DOWN of one cluster.
        facts: the cluster's facts; EXPECTED_BROKER, BROKER_IN_CLUSTER and BROKER_STARTED count.
        signs: the last sign of life of each broker in its own log or answers, epoch ms.
        covered: the times that the files cover.
        heard_to_the_end: whether the name servers' logs reach to the last dump.
    """
    events = list(events)
    flaps = flap_times(events, facts)  # BROKER_FLAPS: the broker was never gone
    expected = {row["broker_name"] for row in facts["EXPECTED_BROKER"]}
    listed_ms: dict[str, int] = {}
    for fact in facts["BROKER_IN_CLUSTER"]:
        name = fact["broker_name"]
        listed_ms[name] = max(fact["last_ms"], listed_ms.get(name, 0))
    list_ms = max(listed_ms.values(), default=0)
    ordered = sorted(events, key=lambda row: (row["event_ms"], row["sequence"]))
    turns = grouped(ordered, lambda row: row["broker_name"])
    outages: dict[str, tuple[BrokerOutage, ...]] = {}
    for broker in sorted(turns.keys() | expected):
        rows = turns.get(broker, [])
        ended = _ended(rows, set(flaps.get(broker, ())))
        lives = max(signs.get(broker, 0), listed_ms.get(broker, 0))
        lacking = broker in expected and lives < list_ms - LOG_SILENT_MS
        lasts: BrokerOutage | None = None
        if rows and rows[-1]["event_type"] == BROKER_DOWN:
            down_ms = rows[-1]["event_ms"]
            heard = heard_to_the_end and covered.hears_name_servers
            if lives <= down_ms + MINUTE_MS and (heard or down_ms < list_ms):
                leaves = bool(expected) and broker not in expected
                planned = leaves and rows[-1]["detail"] == STOPPED
                lasts = BrokerOutage(down_ms, None, REMOVED, planned=planned)
        elif lacking and not _registered(rows, covered, list_ms):
            evidence = f"clusterList of {utc(list_ms)} does not list it"
            lasts = BrokerOutage(None, None, evidence, lives or None)
        all_outages = (*ended, *([lasts] if lasts else []))
        if all_outages:
            outages[broker] = all_outages
    return outages


def _ended(rows: Iterable[BrokerEventsRow], flaps: set[tuple[int, int]]) -> Iterator[BrokerOutage]:
    """Yield a broker's ended outages, given its events in order."""
    down_ms: int | None = None
    for row in rows:
        if row["event_type"] == BROKER_DOWN:
            down_ms = row["event_ms"] if down_ms is None else down_ms
        elif row["event_type"] == BROKER_UP and down_ms is not None:
            span = (down_ms, row["event_ms"])
            if span not in flaps:
                yield BrokerOutage(*span, REMOVED)
            down_ms = None


def _registered(rows: Iterable[BrokerEventsRow], covered: Coverage, at_ms: int) -> bool:
    """Return True if name servers' logs of that time record the broker, although the server queried
    by clusterList does not.
    """
    logged = any(row["detail"] != OBSERVED for row in rows)
    return logged and covered.known and covered.routes.gap(at_ms, at_ms) is None


def moments(
    facts: FactsByKind, broker_events: Iterable[BrokerEventsRow]
) -> dict[str, tuple[tuple[int, str], ...]]:
    """Return the log entries about each broker, from its replicas, the name servers and itself, in
    chronological order.

    For proxies, these are their starts.
    """
    logged: list[tuple[str, int, str]] = []
    address: dict[str, str] = {}
    for row in sorted(facts["BROKER_STARTED"], key=lambda row: row["first_ms"]):
        folder, now = row["source"].rpartition("/")[0], row["details"].get("address", "")
        before = address.get(folder)
        moved = f" with another address ({before} → {now})" if before and now != before else ""
        logged.append((row["broker_name"], row["first_ms"], f"started{moved if now else ''}"))
        address[folder] = now or address.get(folder, "")
    logged += [
        (row["broker_name"], row["event_ms"], _MOMENTS[row["event_type"]])
        for row in broker_events
        if row["event_type"] in _MOMENTS
    ]
    started: dict[str, int] = {}
    for start in sorted(facts["PROXY_STARTED"], key=lambda row: row["first_ms"]):
        proxy, at_ms = start["details"]["proxy"], start["first_ms"]
        if at_ms - started.get(proxy, -MINUTE_MS) >= MINUTE_MS:  # a start logs several lines
            logged.append((proxy, at_ms, "restarted" if proxy in started else "started"))
        started[proxy] = at_ms
    by_server: dict[str, set[tuple[int, str]]] = {}
    for server, at_ms, what in logged:
        by_server.setdefault(server, set()).add((at_ms, what))
    return {server: tuple(sorted(moments)) for server, moments in by_server.items()}


def signs_of_life(
    dumps: Iterable[NewestDumpsRow], covered: Coverage, brokers: Iterable[str]
) -> dict[str, int]:
    """Return the time of the last log line or answer to consumerConnection, epoch ms, by broker."""
    signs = {broker: covered.ends(broker) for broker in brokers}
    for row in dumps:
        if row["broker_name"] and row["command"] == "consumerConnection":
            signs[row["broker_name"]] = max(signs.get(row["broker_name"], 0), row["last_ms"])
    return signs


def notices(broker_events: Iterable[BrokerEventsRow]) -> dict[str, tuple[str, ...]]:
    """Return how each broker notified members of changes, in chronological order."""
    ways: dict[str, tuple[str, ...]] = {}
    for row in sorted(broker_events, key=lambda row: (row["event_ms"], row["sequence"])):
        if row["event_type"] == NOTICES:
            ways[row["broker_name"]] = (
                *ways.get(row["broker_name"], ()),
                row["detail"] or "",
            )
    return ways
