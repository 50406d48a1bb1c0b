"""Brokers that come and go, and masters that are away."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from rebalance_core.audit.case import (
    BROKER,
    ClusterCase,
    Finding,
    GroupCase,
    Rule,
    lasting,
    listed,
    plural,
    queue_names,
)
from rebalance_core.audit.coverage import (
    ALWAYS,
    LOG_SILENT_MS,
    Process,
    logs_of,
    name_servers_gap,
)
from rebalance_core.audit.dumps import queue_of
from rebalance_core.audit.orphans import Offsets, is_broadcasting, messages
from rebalance_core.audit.rules.offset_rollback import CommitRollback, all_falls, outage_of
from rebalance_core.audit.subjects import CAUSES, MEMBERS
from rebalance_core.audit.unknowns import CLOCK_OFF, stop_unlogged
from rebalance_core.model.clients import nearest_version
from rebalance_core.model.events import ACTING, BROKER_EVENTS, REFUSED, Event
from rebalance_core.model.queue import MessageQueue, is_retry_topic
from rebalance_core.model.timeline import Timeline
from rebalance_core.model.times import (
    CHANNEL_EXPIRY_MS,
    MINUTE_MS,
    OLD_SLAVE_COPY_MS,
    SECOND_MS,
    SLAVE_COPY_MS,
    utc,
)
from rebalance_core.model.verdicts import EMPTY, ERROR, INFO, WARNING
from rebalance_core.replay.masters import MasterOutage, MasterOutages

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import (
        BrokerEventsRow,
        BrokerRegisteredFact,
        FactsByKind,
        OwnershipRow,
    )

# Rules on the cluster as a whole: its name servers and brokers.

FLAP_MS = 120_000
"""A broker that expired and registered again so soon was never gone (rocketmq.md §11 no. 28)."""
STARTS_MS = 5_000
"""A broker registers before it logs that it is up; both logs have seconds."""
CLOCKS_MS = 70_000
"""The broker dates its start, the name server its return: their clocks may differ so much."""


def master_outages(events: Iterable[BrokerEventsRow]) -> dict[str, tuple[MasterOutage, ...]]:
    """Return when each broker had no master while a slave lived.

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


def find_refusing_slaves(case: ClusterCase) -> Iterator[Finding]:
    """One finding for all brokers whose slaves may not be read, unless a file states otherwise.

    The outages of a broker's master count where no BROKER_SLAVES is there.
    """
    modes = {broker: outages[-1].mode for broker, outages in case.run.masters.items()}
    refusing = {broker for broker, mode in modes.items() if mode == REFUSED}
    assumed: set[str] = set()
    for row in case.facts["BROKER_SLAVES"]:
        broker, mode = row["broker_name"], row["details"]["mode"]
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


def find_unregistered(case: ClusterCase) -> Iterator[Finding]:
    """Brokers that not all name servers with a log know alike."""
    views: dict[str, dict[str, BrokerRegisteredFact]] = {}
    servers = {row["details"]["name"] for row in case.facts["NAME_SERVER_FILE"]}
    for row in case.facts["BROKER_REGISTERED"]:
        views.setdefault(row["broker_name"], {})[row["details"]["name"]] = row
    logs = logs_of(case.coverage, "namesrv_log")
    for broker, words in sorted(views.items()):
        registered = {
            server for server, row in words.items() if row["details"]["registered"] == "true"
        }
        without = sorted((servers | words.keys()) - registered)
        if registered and without:
            seen = dict.fromkeys(sorted(registered), "registered")
            heard_ms = {server: row["first_ms"] for server, row in words.items()}
            begins = dict.fromkeys(without, min(heard_ms.values())) | heard_ms
            yield Finding(
                f"{broker} is not registered with {', '.join(without)}, but with the other name "
                "servers.",
                seen | dict.fromkeys(without, "not there"),
                broker_name=broker,
                unknown=name_servers_gap(logs, begins) if logs else None,
            )


def find_flaps(case: ClusterCase) -> Iterator[Finding]:
    """Brokers that expired and were back at once, though they had not been restarted.

    Whether one was is unknown where its log does not have all of that time, or not at that time as
    its clock is off.
    """
    coverage = case.run.coverage
    for name, times in sorted(flap_times(case.broker_events, case.facts).items()):
        longest = max(up - gone for gone, up in times) / 1000
        begin, end = times[0][0], times[-1][1]
        log = coverage.of_broker(name)
        yield Finding(
            f"{name} expired and came back {len(times)} time(s), within {longest:.0f} s.",
            {"times": len(times), "longest_s": f"{longest:.0f}"},
            broker_name=name,
            first_ms=begin,
            last_ms=end,
            unknown=CLOCK_OFF
            if coverage.clock_off
            else log.gap(begin - CHANNEL_EXPIRY_MS, end + STARTS_MS + LOG_SILENT_MS),
        )


def flap_times(
    events: Iterable[BrokerEventsRow], facts: FactsByKind
) -> dict[str, list[tuple[int, int]]]:
    """By broker from when to when it was expired though it had not been restarted.

    Args:
        events: BROKER_UP and BROKER_DOWN of one cluster; others count for nothing.
        facts: of the cluster; BROKER_STARTED counts.
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


NAME_SERVERS_DIFFER = Rule(
    "NAME_SERVERS_DIFFER",
    ERROR,
    "Two name servers know different brokers at the end, so their clients divide different queues.",
    "BROKER_REGISTERED of each name server's log",
    "Check the broker's list of name servers (namesrvAddr) and the network between them.",
    about=BROKER,
    files=("namesrv_log",),
    find_in_cluster=find_unregistered,
)

BROKER_FLAPS = Rule(
    "BROKER_FLAPS",
    WARNING,
    "A broker expired at the name server and registered again within two minutes without a "
    "restart: its heartbeats stall, and every client's queues on it move twice.",
    "BROKER_DOWN (EXPIRED) and BROKER_UP; BROKER_STARTED",
    "Look for long pauses of the broker (GC, disk) and packet loss on its way to the name server.",
    about=BROKER,
    find_in_cluster=find_flaps,
)


SLAVE_NOT_READABLE = Rule(
    "SLAVE_NOT_READABLE",
    INFO,
    "Slaves refuse to be read (slaveReadEnable=false, the default where no file tells). When "
    "their master goes, its queues stay allocated and nobody reads them.",
    "BROKER_SLAVES, MASTER_DOWN (REFUSED)",
    "To consume without the master, set slaveReadEnable=true on the slaves, or let a slave act as "
    "master (enableSlaveActingMaster).",
    find_in_cluster=find_refusing_slaves,
)


def unlogged_stops(
    events: Iterable[BrokerEventsRow], facts: FactsByKind
) -> dict[str, Timeline[Process]]:
    """By broker when it ran and when not: unknown between two starts or registrations without a
    line of a stop.

    Args:
        events: BROKER_DOWN and MASTER_DOWN of one cluster.
        facts: BROKER_STARTED counts, and BROKER_REGISTERED with `untold_ms`, but of slaves.
    """
    ends = [row for row in events if row["event_type"] in ("BROKER_DOWN", "MASTER_DOWN")]
    turns = [(row["broker_name"], row["event_ms"], False) for row in ends]
    turns += [(row["broker_name"], row["first_ms"], True) for row in facts["BROKER_STARTED"]]
    unlogged: list[tuple[str, int, int]] = []
    for (broker, one, started), (same, other, again) in pairwise(sorted(turns)):
        if broker == same and started and again:
            unlogged.append((broker, one, other))
    slaves = {row["broker_name"] for row in facts["BROKER_SLAVES"]}
    known = slaves | {row["broker_name"] for row in ends}
    for fact in facts["BROKER_REGISTERED"]:
        begin, broker = fact["details"].get("untold_ms"), fact["broker_name"]
        if begin and broker not in known:
            unlogged.append((broker, int(begin), fact["first_ms"]))
    stops: dict[str, Timeline[Process]] = {}
    for broker, begin_ms, up_ms in unlogged:
        stops[broker] = stops.get(broker, ALWAYS).put(
            begin_ms, up_ms + 1, stop_unlogged(broker, up_ms)
        )
    return stops


def going_on(
    events: Iterable[BrokerEventsRow],
    masters: Mapping[str, Sequence[MasterOutage]],
    signs: Mapping[str, int],
) -> dict[str, int]:
    """Return since when brokers are down, or without a master, that give a sign of life later.

    Args:
        events: BROKER_UP and BROKER_DOWN.
        masters: the outages of masters by broker.
        signs: by broker that is down, or whose master is, its last sign of life, epoch ms.
    """
    since = {b: outages[-1].down_ms for b, outages in masters.items() if outages}
    for row in events:
        since[row["broker_name"]] = max(row["event_ms"], since.get(row["broker_name"], 0))
    return {b: since[b] for b, at_ms in signs.items() if at_ms > since[b] + MINUTE_MS}


def down_brokers(events: Iterable[BrokerEventsRow]) -> frozenset[str]:
    """Brokers whose last broker event is BROKER_DOWN."""
    last: dict[str, str] = {}
    for row in sorted(events, key=lambda row: (row["event_ms"], row["sequence"])):
        last[row["broker_name"]] = row["event_type"]
    return frozenset(name for name, kind in last.items() if kind == "BROKER_DOWN")


# Rules on brokers whose master went while a slave lived (rocketmq.md §15).


def _outages(case: GroupCase) -> Iterator[tuple[str, MasterOutage]]:
    for broker, outages in sorted(case.run.masters.items()):
        for outage in outages:
            yield broker, outage


def _held_in(case: GroupCase, broker: str, outage: MasterOutage) -> list[OwnershipRow]:
    """Ownership of the broker's queues, those without an owner included, in an outage."""
    return [
        row
        for row in case.tables["ownership"]
        if row["broker_name"] == broker
        and not is_retry_topic(row["topic"])
        and row["from_ms"] < _end(case, outage)
        and not (row["to_ms"] is not None and row["to_ms"] <= outage.down_ms)
    ]


def _end(case: GroupCase, outage: MasterOutage) -> int:
    return case.run.end_ms if outage.up_ms is None else outage.up_ms


def _is_switch(outage: MasterOutage) -> bool:
    """True if another replica took over within the second that logs show: there was no time."""
    return outage.up_ms is not None and outage.up_ms - outage.down_ms < SECOND_MS


def _names(queues: Iterable[MessageQueue]) -> str:
    return queue_names(sorted({(queue.broker_name, queue.queue_id) for queue in queues}))


def find_unread(case: GroupCase) -> Iterator[Finding]:
    """One finding for each outage in which members had queues that nobody could read."""
    offsets = Offsets(case)
    for broker, outage in _outages(case):
        held = {queue_of(row) for row in _held_in(case, broker, outage) if row["client_id"]}
        lasts = outage.up_ms is None
        if outage.mode != REFUSED or not held or _is_switch(outage):
            continue
        behind = messages(offsets.behind(held)) if lasts else None
        since = f"; {behind} not read" if lasts else ""
        yield Finding(
            f"{plural(len(held), 'queue')} of {broker} could not be read for "
            f"{lasting(_end(case, outage) - outage.down_ms)}: its master was gone and its slaves "
            f"refuse to be read{since}.",
            {"queues": _names(held), "backlog": behind or "not known"},
            severity=ERROR if lasts else None,
            broker_name=broker,
            first_ms=outage.down_ms,
            last_ms=outage.up_ms,
        )


def find_lockless(case: GroupCase) -> Iterator[Finding]:
    """One finding for each outage in which orderly queues had no owner for want of a lock."""
    if not case.settings.get("ordered"):
        return
    empty = {row["epoch"] for row in case.epochs if row["status"] == EMPTY}
    for broker, outage in _outages(case):
        waiting = {
            queue_of(row)
            for row in _held_in(case, broker, outage)
            if row["client_id"] is None
            and row["from_ms"] >= outage.down_ms
            and row["from_epoch"] not in empty
        }
        lasts = outage.up_ms is None
        if outage.mode == ACTING or not waiting or _is_switch(outage):
            continue
        doubt = "" if outage.mode else " (unless a slave acts as master, which no file tells)"
        yield Finding(
            f"{plural(len(waiting), 'orderly queue')} of {broker} moved while its master was gone "
            f"and had no owner until it was back: nobody gives their order locks{doubt}."
            if not lasts
            else f"{plural(len(waiting), 'orderly queue')} of {broker} moved since its master is "
            f"gone and have no owner: nobody gives their order locks{doubt}.",
            {"queues": _names(waiting), "mode": outage.mode or "not known"},
            severity=ERROR if lasts else None,
            broker_name=broker,
            first_ms=outage.down_ms,
            last_ms=outage.up_ms,
        )


def find_fallen(case: GroupCase) -> Iterator[Finding]:
    """One finding for each outage with which commits fell."""
    if is_broadcasting(case):
        return
    fell: dict[tuple[str, MasterOutage], dict[MessageQueue, CommitRollback]] = {}
    for fall in all_falls(case):
        outage = outage_of(case, fall)
        if outage is not None and not is_retry_topic(fall.queue.topic):
            queues = fell.setdefault((fall.queue.broker_name, outage), {})
            known = queues.get(fall.queue, fall)
            queues[fall.queue] = max(known, fall, key=lambda one: one.high - one.low)
    for (broker, outage), queues in fell.items():
        lost = {queue: fall.high - fall.low for queue, fall in queues.items()}
        most = min(lost, key=lambda queue: (-lost[queue], queue))
        old = _old_copy(case, broker, outage, queues)
        since = (
            ""
            if old is None
            else (
                f" That copy was older than that of a slave that follows its master: it lacks what "
                f"was committed by {utc(old)}."
            )
        )
        yield Finding(
            f"Commits on {plural(len(queues), 'queue')} of {broker} fell back when its role went "
            f"to a slave or came back, at {utc(_end(case, outage))}, most by "
            f"{messages(lost[most])} ({most.topic} {most.broker_name}:{most.queue_id}, from "
            f"{queues[most].high} to {queues[most].low}); whoever took them then read those "
            f"again.{since}",
            {"queues": _names(queues), "messages": sum(lost.values())},
            severity=None if old is None else WARNING,
            broker_name=broker,
            first_ms=outage.down_ms,
            last_ms=outage.up_ms,
        )


def _old_copy(
    case: GroupCase,
    broker: str,
    outage: MasterOutage,
    fell: Mapping[MessageQueue, CommitRollback],
) -> int | None:
    """When a commit was seen that a slave would have had; None: a slave may have lacked all."""
    version = nearest_version(case.run.versions.get(broker, ""))
    of_4 = version is not None and version.is_v4
    kept_ms = outage.down_ms - (OLD_SLAVE_COPY_MS if of_4 else SLAVE_COPY_MS)
    return min(
        (
            row["observed_ms"]
            for row in case.tables["committed_offsets"]
            if (fall := fell.get(queue_of(row))) is not None
            and row["observed_ms"] < kept_ms
            and row["committed_offset"] > fall.low
        ),
        default=None,
    )


NOT_READ = Rule(
    "MASTER_GONE_NOT_READ",
    WARNING,
    "A broker's master was gone while members had its queues, and its slaves refuse reads "
    "(slaveReadEnable=false, the default): nothing of it was consumed.",
    "MASTER_DOWN (REFUSED) and MASTER_UP, ownership, queue_offsets",
    "Bring the master back. To consume without it, set slaveReadEnable=true on the slaves, or let "
    "a slave act as master (enableSlaveActingMaster).",
    find_unread,
    about=BROKER,
    reads=(MEMBERS,),
)
LOCKS = Rule(
    "MASTER_GONE_LOCKS",
    WARNING,
    "Orderly queues that move while their broker has no master have no owner until it is back, "
    "because only the master gives order locks.",
    "MASTER_DOWN and MASTER_UP, ownership",
    "Start and stop no member of an orderly group while a master is gone; with "
    "enableSlaveActingMaster a slave gives the locks.",
    find_lockless,
    about=BROKER,
    reads=(MEMBERS,),
)
FELL_BACK = Rule(
    "OFFSETS_FELL_BACK",
    INFO,
    "Commits fell back with a switch of roles: a slave has an older copy, and a returning master "
    "lacks what was committed to the slave. Messages are read again. WARNING if the copy was older "
    "than that of a slave that follows its master.",
    "MASTER_DOWN and MASTER_UP, OFFSET_WENT_BACK, committed_offsets",
    "Nothing where consumers tolerate repeats; else compare with what was processed. After a "
    "WARNING look why the new master had not copied its predecessor's offsets.",
    find_fallen,
    about=BROKER,
    reads=(CAUSES,),
)
