"""Rules on the cluster as a whole: its name servers and brokers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from rebalance_core.audit.case import BROKER, Finding, Row, Rule, listed, plural
from rebalance_core.audit.coverage import Coverage
from rebalance_core.audit.evidence import hedged
from rebalance_core.model.events import REFUSED, Event
from rebalance_core.model.times import CHANNEL_EXPIRY_MS, MINUTE_MS
from rebalance_core.model.verdicts import ERROR, INFO, WARNING
from rebalance_core.replay.masters import MasterOutage, MasterOutages

FLAP_MS = 120_000
"""A broker that expired and registered again so soon was never gone (rocketmq.md §11 no. 28)."""
STARTS_MS = 5_000
"""A broker registers before it logs that it is up; both logs have seconds."""
CLOCKS_MS = 70_000
"""The broker dates its start, the name server its return: their clocks may differ so much."""

NAME_SERVERS_DIFFER = Rule(
    "NAME_SERVERS_DIFFER",
    ERROR,
    "Two name servers know different brokers at the end: clients that ask the one and clients that "
    "ask the other divide different queues.",
    "BROKER_REGISTERED of each name server's log",
    "Check the broker's list of name servers (namesrvAddr) and the network between them.",
    about=BROKER,
    files=("namesrv_log",),
)

BROKER_FLAPS = Rule(
    "BROKER_FLAPS",
    WARNING,
    "A broker expired at the name server and registered again within two minutes: its heartbeats "
    "stall, and every client's queues on it move twice. Not where its own log has a start: it was "
    "restarted.",
    "BROKER_DOWN (EXPIRED) and BROKER_UP of cluster_events; BROKER_STARTED",
    "Look for long pauses (GC, disk) of the broker and for losses on its way to the name server.",
    about=BROKER,
)


SLAVE_NOT_READABLE = Rule(
    "SLAVE_NOT_READABLE",
    INFO,
    "The slaves of brokers refuse to be read (slaveReadEnable=false, the default where no file "
    "tells): when a master goes its queues stay allocated, and nobody reads them.",
    "BROKER_SLAVES, MASTER_DOWN (REFUSED) of cluster_events",
    "Set slaveReadEnable=true on the slaves, or let a slave act as master "
    "(enableSlaveActingMaster), if consumption is to go on without the master.",
)


def master_outages(events: Iterable[Row]) -> dict[str, tuple[MasterOutage, ...]]:
    """When each broker had no master while a slave lived.

    Args:
        events: of one cluster's brokers; others than MASTER_DOWN and MASTER_UP say nothing.
    """
    turns = [
        Event(
            row["event_ms"], row["sequence"], row["event_type"],
            broker_name=row["broker_name"], detail=row["detail"],
        )
        for row in events
    ]  # fmt: skip
    return MasterOutages(turns).by_broker


def slaves_not_readable(
    facts: Iterable[Row], masters: Mapping[str, Sequence[MasterOutage]]
) -> Iterator[Finding]:
    """One finding for all brokers whose slaves nobody may read, unless a file tells otherwise.

    Args:
        facts: of one cluster; BROKER_SLAVES counts.
        masters: by broker the outages of its master; they count where no fact is there.
    """
    modes = {broker: outages[-1].mode for broker, outages in masters.items()}
    refusing = {broker for broker, mode in modes.items() if mode == REFUSED}
    assumed: set[str] = set()
    for row in facts:
        if row["kind"] == "BROKER_SLAVES":
            broker, mode = row["broker_name"], row["details"].get("mode")
            refusing.discard(broker)
            if not mode:
                assumed.add(broker)
            elif mode == REFUSED:
                refusing.add(broker)
    if not refusing and not assumed:
        return
    brokers = sorted(refusing | assumed)
    unless = " (the default; no file tells the setting of all)" if assumed else ""
    yield Finding(
        f"Slaves of {plural(len(brokers), 'broker')} refuse to be read{unless}: if a master goes, "
        f"its queues stay allocated and nobody reads them: {listed(brokers)}.",
        {"refuse": ", ".join(sorted(refusing)), "by_default": ", ".join(sorted(assumed))},
    )


def name_servers_differ(facts: Iterable[Row]) -> Iterator[Finding]:
    """Brokers that not all name servers with a log know alike."""
    views: dict[str, dict[str, bool]] = {}
    servers: set[str] = set()
    for row in facts:
        if row["kind"] == "NAME_SERVER_FILE":
            servers.add(row["details"]["name"])
        elif row["kind"] == "BROKER_REGISTERED":
            name, there = row["details"]["name"], row["details"]["registered"] == "true"
            views.setdefault(row["broker_name"], {})[name] = there
    for broker, known in sorted(views.items()):
        by = {server: known.get(server, False) for server in sorted(servers | known.keys())}
        if len(by) > 1 and len(set(by.values())) > 1:
            without = ", ".join(server for server, there in by.items() if not there)
            yield Finding(
                f"{broker} is not registered with {without}, but with the other name servers.",
                {server: "registered" if there else "not there" for server, there in by.items()},
                broker_name=broker,
            )


def broker_flaps(
    events: Iterable[Row], facts: Iterable[Row] = (), covered: Coverage | None = None
) -> Iterator[Finding]:
    """Brokers that expired and were back at once, though they had not been restarted.

    Of one whose log does not have all of that time nobody knows that it was not.

    Args:
        events: BROKER_UP and BROKER_DOWN of one cluster.
        facts: of the cluster; BROKER_STARTED counts.
        covered: of which times the brokers' logs tell; None: of all.
    """
    starts: dict[str, list[int]] = {}
    for row in facts:
        if row["kind"] == "BROKER_STARTED":
            starts.setdefault(row["broker_name"], []).append(row["first_ms"])
    down: dict[str, Row] = {}
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
    for name, times in sorted(flaps.items()):
        longest = max(up - gone for gone, up in times) / 1000
        begin, end = times[0][0], times[-1][1]
        found = Finding(
            f"{name} expired and came back {len(times)} time(s), within {longest:.0f} s.",
            {"times": len(times), "longest_s": f"{longest:.0f}"},
            broker_name=name,
            first_ms=begin,
            last_ms=end,
        )
        gap = covered and covered.hole(name, begin - CHANNEL_EXPIRY_MS, end + STARTS_MS)
        yield hedged(found, gap) if gap else found


def untold_outage(events: Iterable[Row], facts: Iterable[Row]) -> int | None:
    """The first start of a broker before one that no end of it comes before; None: there is none.

    Args:
        events: BROKER_DOWN and MASTER_DOWN of one cluster.
        facts: BROKER_STARTED counts.
    """
    turns: dict[str, list[tuple[int, bool]]] = {}
    for row in events:
        if row["event_type"] in ("BROKER_DOWN", "MASTER_DOWN"):
            turns.setdefault(row["broker_name"], []).append((row["event_ms"], False))
    for row in facts:
        if row["kind"] == "BROKER_STARTED":
            turns.setdefault(row["broker_name"], []).append((row["first_ms"], True))
    untold = [
        one
        for of_broker in turns.values()
        for (one, started), (_, again) in pairwise(sorted(of_broker))
        if started and again
    ]
    return min(untold, default=None)


def going_on(events: Iterable[Row], signs: Mapping[str, int]) -> dict[str, int]:
    """Return, of brokers that are down at the end, those with a later sign of life, and since when.

    Args:
        events: BROKER_UP and BROKER_DOWN.
        signs: by broker its last one, epoch ms.
    """
    since: dict[str, int] = {}
    for row in events:
        since[row["broker_name"]] = max(row["event_ms"], since.get(row["broker_name"], 0))
    return {b: since[b] for b, at_ms in signs.items() if at_ms > since[b] + MINUTE_MS}


def down_brokers(events: Iterable[Row]) -> frozenset[str]:
    """Brokers whose last broker event is BROKER_DOWN."""
    last: dict[str, str] = {}
    for row in sorted(events, key=lambda row: (row["event_ms"], row["sequence"])):
        last[row["broker_name"]] = row["event_type"]
    return frozenset(name for name, kind in last.items() if kind == "BROKER_DOWN")
