"""Rules on brokers whose master went while a slave lived (rocketmq.md §15)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

from rebalance_core.audit.case import GroupCase, Row
from rebalance_core.audit.evidence.backlog import Offsets, messages
from rebalance_core.audit.evidence.formatting import lasting, plural, queue_names
from rebalance_core.audit.evidence.persistence import is_broadcasting
from rebalance_core.audit.evidence.queues import queue_of
from rebalance_core.audit.finding import Finding, Rule
from rebalance_core.model.events import ACTING, REFUSED
from rebalance_core.model.queue import MessageQueue, is_retry_topic
from rebalance_core.model.severities import ERROR, INFO, WARNING
from rebalance_core.model.statuses import EMPTY
from rebalance_core.protocol.windows import MASTER_BACK_MS
from rebalance_core.replay.masters import MasterOutage


def _outages(case: GroupCase) -> Iterator[tuple[str, MasterOutage]]:
    for broker, outages in sorted(case.run.masters.items()):
        for outage in outages:
            yield broker, outage


def _held_in(case: GroupCase, broker: str, outage: MasterOutage) -> list[Row]:
    """Ownership of the broker's queues, those without an owner included, in an outage."""
    return [
        row
        for row in case.rows("ownership")
        if row["broker_name"] == broker
        and not is_retry_topic(row["topic"])
        and row["from_ms"] < _end(case, outage)
        and not (row["to_ms"] is not None and row["to_ms"] <= outage.down_ms)
    ]


def _end(case: GroupCase, outage: MasterOutage) -> int:
    return case.run.end_ms if outage.up_ms is None else outage.up_ms


def _names(queues: Iterable[MessageQueue]) -> str:
    return queue_names(sorted({(queue.broker_name, queue.queue_id) for queue in queues}))


def find_unread(case: GroupCase) -> Iterator[Finding]:
    """One finding for each outage in which members had queues that nobody could read."""
    offsets = Offsets(case)
    for broker, outage in _outages(case):
        held = {queue_of(row) for row in _held_in(case, broker, outage) if row["client_id"]}
        if outage.mode != REFUSED or not held:
            continue
        lasts = outage.up_ms is None
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
        if outage.mode == ACTING or not waiting:
            continue
        lasts = outage.up_ms is None
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
    """One finding for each outage after which commits were lower than before its end."""
    if is_broadcasting(case):
        return
    commits: dict[MessageQueue, list[Row]] = {}
    for row in sorted(case.rows("committed_offsets"), key=lambda row: row["observed_ms"]):
        if not is_retry_topic(row["topic"]):
            commits.setdefault(queue_of(row), []).append(row)
    for broker, outage in _outages(case):
        fell = {
            queue: high - low
            for queue, rows in commits.items()
            if queue.broker_name == broker
            for high, low in [_fall(rows, outage)]
            if high > low
        }
        if fell:
            most = max(fell, key=lambda queue: fell[queue])
            yield Finding(
                f"Commits on {plural(len(fell), 'queue')} of {broker} fell back when its role "
                f"went to a slave or came back, most by {messages(fell[most])} "
                f"({most.topic} {most.broker_name}:{most.queue_id}); whoever took them then read "
                "those again.",
                {"queues": _names(fell), "messages": sum(fell.values())},
                broker_name=broker,
                first_ms=outage.down_ms,
                last_ms=outage.up_ms,
            )


def _fall(rows: list[Row], outage: MasterOutage) -> tuple[int, int]:
    """The largest fall between two commits one after the other that a switch lies between."""
    turns = [ms for ms in (outage.down_ms, outage.up_ms) if ms is not None]
    falls = [
        (earlier["committed_offset"], later["committed_offset"])
        for earlier, later in pairwise(rows)
        if any(
            earlier["observed_ms"] <= turn_ms + MASTER_BACK_MS and turn_ms <= later["observed_ms"]
            for turn_ms in turns
        )
    ]
    return max(falls, key=lambda fall: fall[0] - fall[1], default=(0, 0))


NOT_READ = Rule(
    "MASTER_GONE_NOT_READ",
    WARNING,
    "A broker's master was gone while members had its queues, and its slaves refuse to be read "
    "(slaveReadEnable=false, the default): nothing of it was consumed.",
    "MASTER_DOWN (REFUSED) and MASTER_UP of cluster_events, ownership, queue_offsets",
    "Bring the master back. Set slaveReadEnable=true on the slaves, or let a slave act as master "
    "(enableSlaveActingMaster), if consumption is to go on without it.",
    find_unread,
)
LOCKS = Rule(
    "MASTER_GONE_LOCKS",
    WARNING,
    "Orderly queues that move while their broker has no master have no owner until it is back: "
    "order locks are asked of the master only.",
    "MASTER_DOWN and MASTER_UP of cluster_events, ownership",
    "Start and stop no member of an orderly group while a master is gone; with "
    "enableSlaveActingMaster a slave gives the locks.",
    find_lockless,
)
FELL_BACK = Rule(
    "OFFSETS_FELL_BACK",
    INFO,
    "Commits fell back with a switch of roles: a slave knows an older copy, and a master that is "
    "back knows nothing of what was committed to the slave. Messages are read again.",
    "MASTER_DOWN and MASTER_UP of cluster_events, committed_offsets",
    "Nothing where consumers bear repeats; else compare with what was processed.",
    find_fallen,
)
