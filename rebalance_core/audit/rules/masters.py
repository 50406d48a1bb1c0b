"""Rules on brokers whose master went while a slave lived (rocketmq.md §15)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rebalance_core.audit.case import (
    BROKER,
    Finding,
    GroupCase,
    Row,
    Rule,
    lasting,
    plural,
    queue_names,
)
from rebalance_core.audit.dumps import queue_of
from rebalance_core.audit.orphans import Offsets, is_broadcasting, messages
from rebalance_core.audit.rules.offset_rollback import all_falls, outage_of
from rebalance_core.model.events import ACTING, REFUSED
from rebalance_core.model.queue import MessageQueue, is_retry_topic
from rebalance_core.model.verdicts import EMPTY, ERROR, INFO, WARNING
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
    """One finding for each outage with which commits fell."""
    if is_broadcasting(case):
        return
    fell: dict[tuple[str, MasterOutage], dict[MessageQueue, int]] = {}
    for fall in all_falls(case):
        outage = outage_of(case, fall)
        if outage is not None and not is_retry_topic(fall.queue.topic):
            queues = fell.setdefault((fall.queue.broker_name, outage), {})
            queues[fall.queue] = max(fall.high - fall.low, queues.get(fall.queue, 0))
    for (broker, outage), queues in fell.items():
        most = min(queues, key=lambda queue: (-queues[queue], queue))
        yield Finding(
            f"Commits on {plural(len(queues), 'queue')} of {broker} fell back when its role went "
            f"to a slave or came back, most by {messages(queues[most])} "
            f"({most.topic} {most.broker_name}:{most.queue_id}); whoever took them then read "
            "those again.",
            {"queues": _names(queues), "messages": sum(queues.values())},
            broker_name=broker,
            first_ms=outage.down_ms,
            last_ms=outage.up_ms,
        )


NOT_READ = Rule(
    "MASTER_GONE_NOT_READ",
    WARNING,
    "A broker's master was gone while members had its queues, and its slaves refuse to be read "
    "(slaveReadEnable=false, the default): nothing of it was consumed.",
    "MASTER_DOWN (REFUSED) and MASTER_UP of cluster_events, ownership, queue_offsets",
    "Bring the master back. Set slaveReadEnable=true on the slaves, or let a slave act as master "
    "(enableSlaveActingMaster), if consumption is to go on without it.",
    find_unread,
    about=BROKER,
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
    about=BROKER,
)
FELL_BACK = Rule(
    "OFFSETS_FELL_BACK",
    INFO,
    "Commits fell back with a switch of roles: a slave knows an older copy, and a master that is "
    "back knows nothing of what was committed to the slave. Messages are read again.",
    "MASTER_DOWN and MASTER_UP of cluster_events, facts OFFSET_WENT_BACK, committed_offsets",
    "Nothing where consumers bear repeats; else compare with what was processed.",
    find_fallen,
    about=BROKER,
)
