"""Brokers whose master went while a slave lived (rocketmq.md §15)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from rebalance_core.audit.dumps import queue_of
from rebalance_core.audit.group_snapshot import (
    BROKER,
    Finding,
    GroupSnapshot,
    Rule,
    lasting,
    plural,
    queue_names,
)
from rebalance_core.audit.offsets import Offsets, messages
from rebalance_core.audit.rules.offset_rollback import CommitRollback, all_falls, outage_of
from rebalance_core.audit.subjects import CAUSES, MASTERS, MEMBERS
from rebalance_core.audit.subscriptions import is_broadcasting
from rebalance_core.model.events import ACTING, REFUSED
from rebalance_core.model.queue import MessageQueue, is_retry_topic
from rebalance_core.model.times import OLD_SLAVE_COPY_MS, SECOND_MS, SLAVE_COPY_MS, utc
from rebalance_core.model.verdicts import EMPTY, ERROR, INFO, WARNING
from rebalance_core.model.versions import nearest_version
from rebalance_core.replay.masters import MasterOutage

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import OwnershipRow


SWITCH_MS = 2 * SECOND_MS
"""Hosts log whole seconds, and clocks that agree within a second count as equal."""


def _outages(group: GroupSnapshot) -> Iterator[tuple[str, MasterOutage]]:
    for broker, outages in sorted(group.run.masters.items()):
        for outage in outages:
            yield broker, outage


def _held_in(group: GroupSnapshot, broker: str, outage: MasterOutage) -> list[OwnershipRow]:
    """Return ownership of the broker's queues in an outage, including queues without an owner."""
    return [
        row
        for row in group.tables["ownership"]
        if row["broker_name"] == broker
        and not is_retry_topic(row["topic"])
        and row["from_ms"] < _end(group, outage)
        and not (row["to_ms"] is not None and row["to_ms"] <= outage.down_ms)
    ]


def _end(group: GroupSnapshot, outage: MasterOutage) -> int:
    return group.run.end_ms if outage.up_ms is None else outage.up_ms


def _is_switch(outage: MasterOutage) -> bool:
    """Return True if another replica took over within `SWITCH_MS`."""
    return outage.up_ms is not None and outage.up_ms - outage.down_ms < SWITCH_MS


def _names(queues: Iterable[MessageQueue]) -> str:
    return queue_names(sorted({(queue.broker_name, queue.queue_id) for queue in queues}))


def find_unread(group: GroupSnapshot) -> Iterator[Finding]:
    """Yield a finding for each outage in which members had unreadable queues."""
    offsets = Offsets(group)
    for broker, outage in _outages(group):
        held = {queue_of(row) for row in _held_in(group, broker, outage) if row["client_id"]}
        lasts = outage.up_ms is None
        if outage.mode != REFUSED or not held or _is_switch(outage):
            continue
        behind = messages(offsets.behind(held)) if lasts else None
        since = f"; {behind} unread" if lasts else ""
        yield Finding(
            f"{plural(len(held), 'queue')} of {broker} could not be read for "
            f"{lasting(_end(group, outage) - outage.down_ms)}: its master was down and its slaves "
            f"refuse reads{since}.",
            {"queues": _names(held), "backlog": behind or "not known"},
            severity=ERROR if lasts else None,
            broker_name=broker,
            first_ms=outage.down_ms,
            last_ms=outage.up_ms,
        )


def find_lockless(group: GroupSnapshot) -> Iterator[Finding]:
    """Yield a finding for each outage in which orderly queues had no owner for lack of a lock."""
    if not group.settings.get("ordered"):
        return
    empty = {row["epoch"] for row in group.epochs if row["status"] == EMPTY}
    for broker, outage in _outages(group):
        waiting = {
            queue_of(row)
            for row in _held_in(group, broker, outage)
            if row["client_id"] is None
            and row["from_ms"] >= outage.down_ms
            and row["from_epoch"] not in empty
        }
        lasts = outage.up_ms is None
        if outage.mode == ACTING or not waiting or _is_switch(outage):
            continue
        doubt = "" if outage.mode else " (unless a slave acts as master, which no file shows)"
        yield Finding(
            f"{plural(len(waiting), 'orderly queue')} of {broker} moved while its master was down "
            "and had no owner until the master returned: no broker granted their order "
            f"locks{doubt}."
            if not lasts
            else f"{plural(len(waiting), 'orderly queue')} of {broker} moved after its master "
            f"went down and have no owner because no broker grants their order locks{doubt}.",
            {"queues": _names(waiting), "mode": outage.mode or "not known"},
            severity=ERROR if lasts else None,
            broker_name=broker,
            first_ms=outage.down_ms,
            last_ms=outage.up_ms,
        )


def find_fallen(group: GroupSnapshot) -> Iterator[Finding]:
    """Yield a finding for each outage in which commits fell."""
    if is_broadcasting(group):
        return
    fell: dict[tuple[str, MasterOutage], dict[MessageQueue, CommitRollback]] = {}
    for fall in all_falls(group):
        outage = outage_of(group, fall)
        if outage is not None and not is_retry_topic(fall.queue.topic):
            queues = fell.setdefault((fall.queue.broker_name, outage), {})
            deepest = queues.get(fall.queue, fall)
            queues[fall.queue] = max(deepest, fall, key=lambda fall: fall.high - fall.low)
    for (broker, outage), queues in fell.items():
        lost = {queue: fall.high - fall.low for queue, fall in queues.items()}
        most = min(lost, key=lambda queue: (-lost[queue], queue))
        old = _old_copy(group, broker, outage, queues)
        since = (
            ""
            if old is None
            else (
                " That copy was older than an in-sync slave's copy: it lacks commits made by "
                f"{utc(old)}."
            )
        )
        yield Finding(
            f"Commits on {plural(len(queues), 'queue')} of {broker} fell back when a slave took "
            f"over its role or the master returned, at {utc(_end(group, outage))}, most by "
            f"{messages(lost[most])} ({most.topic} {most.broker_name}:{most.queue_id}, from "
            f"{queues[most].high} to {queues[most].low}); their next owners read those messages "
            f"again.{since}",
            {"queues": _names(queues), "messages": sum(lost.values())},
            severity=None if old is None else WARNING,
            broker_name=broker,
            first_ms=outage.down_ms,
            last_ms=outage.up_ms,
        )


def _old_copy(
    group: GroupSnapshot,
    broker: str,
    outage: MasterOutage,
    fell: Mapping[MessageQueue, CommitRollback],
) -> int | None:
    """Return when a commit was seen that a slave would have had, or None if it may lack all."""
    version = nearest_version(group.run.versions.get(broker, ""))
    often = broker in group.run.elected or (version is not None and version.is_v4)
    kept_ms = outage.down_ms - (OLD_SLAVE_COPY_MS if often else SLAVE_COPY_MS)
    return min(
        (
            row["observed_ms"]
            for row in group.tables["committed_offsets"]
            if (fall := fell.get(queue_of(row))) is not None
            and row["observed_ms"] < kept_ms
            and row["committed_offset"] > fall.low
        ),
        default=None,
    )


NOT_READ = Rule(
    "MASTER_GONE_NOT_READ",
    WARNING,
    "A broker's master was down while members owned its queues, and its slaves refuse reads "
    "(slaveReadEnable=false, the default): no client consumed from it.",
    "MASTER_DOWN (REFUSED) and MASTER_UP, ownership, queue_offsets",
    "Bring the master back. To consume without it, set slaveReadEnable=true on the slaves, or let "
    "a slave act as master (enableSlaveActingMaster).",
    find_unread,
    about=BROKER,
    reads=(MEMBERS, MASTERS),
)


LOCKS = Rule(
    "MASTER_GONE_LOCKS",
    WARNING,
    "Orderly queues that move while their broker has no master have no owner until the master "
    "returns, because only a master grants order locks.",
    "MASTER_DOWN and MASTER_UP, ownership",
    "Do not start or stop members of an orderly group while a master is down; with "
    "enableSlaveActingMaster a slave grants the locks.",
    find_lockless,
    about=BROKER,
    reads=(MEMBERS, MASTERS),
)


FELL_BACK = Rule(
    "OFFSETS_FELL_BACK",
    INFO,
    "Commits fell back when broker roles switched: a slave has an older copy, and a returning "
    "master lacks what clients committed to the slave. Consumers read messages again. WARNING if "
    "the copy was older than an in-sync slave's copy.",
    "MASTER_DOWN and MASTER_UP, OFFSET_WENT_BACK, committed_offsets",
    "Nothing if consumers tolerate repeats; otherwise compare with what they processed. After a "
    "WARNING, find out why the new master had not copied its predecessor's offsets.",
    find_fallen,
    about=BROKER,
    reads=(CAUSES,),
)
