"""Order locks: which clients wait for them, which locks are stuck, which queues they block."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rebalance_core.audit.dumps import (
    flag,
    fresh,
    held_over_time,
    is_steady,
    languages,
    last_stated,
    number,
    queue_of,
)
from rebalance_core.audit.group_snapshot import (
    QUEUE,
    Finding,
    GroupSnapshot,
    KeptLock,
    Rule,
    grouped,
    lasting,
    listed,
    plural,
    queue_names,
)
from rebalance_core.audit.logged_causes import cause_before
from rebalance_core.audit.offsets import Offsets, messages
from rebalance_core.audit.prediction import Prediction
from rebalance_core.audit.recovery import ClientAnswers, Recovery, went_after
from rebalance_core.audit.subjects import CAUSES
from rebalance_core.model.client_profile import KEPT, KEPT_LOCK_MS
from rebalance_core.model.clients import profile_of
from rebalance_core.model.events import CONSUMER_LOST
from rebalance_core.model.queue import MessageQueue
from rebalance_core.model.times import BROKER_LOCK_LIFE_MS, CHANNEL_EXPIRY_MS, CHANNEL_SCAN_MS, utc
from rebalance_core.model.verdicts import ERROR, INFO, WARNING, Severity
from rebalance_core.protocol.order_locks import ORDER_LOCK_MS

if TYPE_CHECKING:
    from rebalance_core.contracts.row_parts import NamesQueue
    from rebalance_core.contracts.rows import (
        ConsumerEventsRow,
        HeldQueueFact,
        LockRefusedFact,
        OrderBlockFact,
        StuckQueueFact,
    )

# STUCK_ORDER_LOCK and LOCK_WAIT: an orderly member that waits for the lock of another.

KEPT_REMEDY = "Nothing; change the members of the group seldom, or let clients read it that unlock."
REFUSAL_GRACE_MS = BROKER_LOCK_LIFE_MS
"""Beyond the end of a hand-over a refusal may still be on its way for one life of a lock."""


def find_stuck(group: GroupSnapshot) -> Iterator[Finding]:
    """Yield one finding per queue (rocketmq.md §7)."""
    prediction, answers = Prediction(group), ClientAnswers(group)
    refused = {
        queue_of(fact): fact for fact in group.facts["LOCK_REFUSED"] if is_stuck(prediction, fact)
    }
    for refusal in refused.values():
        kept = [
            lock
            for lock in group.run.unlock_failed.get(queue_of(refusal), ())
            if lock.last_ms >= refusal["first_ms"]
        ]
        yield _refused(prediction, refusal, _freed(group, prediction, refusal), kept)
    shown = {*refused}
    for held in (facts[-1] for facts in held_over_time(group).values()):
        tries = number(held["details"]["try_unlock_times"], 0)
        waits = flag(held["details"]["dropped"]) and tries > 0 and _is_old(prediction, held)
        if waits and queue_of(held) not in shown:
            shown.add(queue_of(held))
            text = f"has dropped {_name(held)} and tried {tries} times to unlock it"
            over = answers.let_go(held) or _locked_since(group, prediction, held)
            yield _dumped(held, text, over)
    newest = {
        queue_of(fact): fact
        for fact in fresh(group, group.facts["STUCK_QUEUE"], last_stated)
        if fact["details"].get("trouble") in ("lock", "unlock")
    }
    for queue, stuck in newest.items():
        if queue not in shown and _is_old(prediction, stuck):
            over = answers.let_go(stuck) or _locked_since(group, prediction, stuck)
            yield _dumped(stuck, f"cannot {stuck['details'].get('trouble')} {_name(stuck)}", over)


def is_stuck(prediction: Prediction, fact: LockRefusedFact) -> bool:
    """Return whether a lock is refused past the hand-over, for a client that should not have it."""
    queue = queue_of(fact)
    owner = fact["details"].get("owner")
    if owner in prediction.owners(queue, fact["last_ms"]) or not is_steady(fact):
        return False
    change = prediction.last_change(queue, fact["last_ms"])
    since = fact["first_ms"] if change is None else max(change["latest_ms"], fact["first_ms"])
    return bool(fact["last_ms"] - since > REFUSAL_GRACE_MS)


def _is_old(prediction: Prediction, fact: HeldQueueFact | StuckQueueFact) -> bool:
    """Return whether the last hand-over of the queue was over when it was dumped."""
    change = prediction.last_change(queue_of(fact), fact["first_ms"])
    if change is None:
        return True
    return bool(fact["first_ms"] > max(change["latest_ms"], change["change_ms"] + ORDER_LOCK_MS))


def _freed(
    group: GroupSnapshot, prediction: Prediction, refused: LockRefusedFact
) -> Recovery | None:
    """Return what shows after the last refusal that the lock is free; None: nothing does.

    That is a dump in which an owner has it, or the end of the client that had it.
    """
    locked = _locked_since(group, prediction, refused)
    owner = refused["details"].get("owner")
    if locked is not None or not owner:
        return locked
    went_ms = went_after(group, owner, refused["last_ms"])
    return None if went_ms is None else Recovery(went_ms, f"{owner} went, which had the lock")


def _locked_since(
    group: GroupSnapshot,
    prediction: Prediction,
    stuck: LockRefusedFact | HeldQueueFact | StuckQueueFact,
) -> Recovery | None:
    """Return a later dump in which an owner has the lock; None: there is none."""
    return next(
        (
            Recovery(fact["first_ms"], f"{fact['client_id']} has the lock")
            for fact in fresh(group, group.facts["HELD_QUEUE"], last_stated)
            if queue_of(fact) == queue_of(stuck)
            and fact["first_ms"] > stuck["last_ms"]
            and flag(fact["details"].get("locked"))
            and not flag(fact["details"].get("dropped"))
            and fact["client_id"] in prediction.owners(queue_of(fact), fact["first_ms"])
        ),
        None,
    )


def _refused(
    prediction: Prediction,
    fact: LockRefusedFact,
    over: Recovery | None,
    kept: Iterable[KeptLock],
) -> Finding:
    owner = fact["details"].get("owner")
    should = sorted(prediction.owners(queue_of(fact), fact["last_ms"]))
    why = "".join(
        f"; clients/{lock.log} keeps the lock while its listener has messages of the queue "
        f"({plural(lock.times, 'time')} until {utc(lock.last_ms)})"
        for lock in kept
    )
    return Finding(
        f"{fact['client_id']} is refused the lock of {_name(fact)} for "
        f"{lasting(fact['last_ms'] - fact['first_ms'])} ({fact['times']} times): {owner} has it, "
        f"and {listed(should) or 'no member'} should hold the queue{why}.",
        {"owner": str(owner), "should_hold": listed(should), "refused": str(fact["times"])},
        topic=fact["topic"],
        broker_name=fact["broker_name"],
        queue_id=fact["queue_id"],
        client_id=owner,
        first_ms=fact["first_ms"],
        last_ms=fact["last_ms"] if over is None else over.at_ms,
        ended_by="" if over is None else over.shown_by,
    )


def _dumped(fact: HeldQueueFact | StuckQueueFact, what: str, over: Recovery | None) -> Finding:
    return Finding(
        f"{fact['client_id']} {what} (dump of {utc(fact['first_ms'])}).",
        dict(fact["details"]),
        topic=fact["topic"],
        broker_name=fact["broker_name"],
        queue_id=fact["queue_id"],
        client_id=fact["client_id"],
        first_ms=fact["first_ms"],
        last_ms=None if over is None else over.at_ms,
        ended_by="" if over is None else over.shown_by,
    )


def _name(fact: NamesQueue) -> str:
    return f"{fact['topic']} {fact['broker_name']}:{fact['queue_id']}"


def find_wait(group: GroupSnapshot) -> Iterator[Finding]:
    """Yield at most one finding, of all refusals that a hand-over explains."""
    prediction = Prediction(group)
    waits = [fact for fact in group.facts["LOCK_REFUSED"] if not is_stuck(prediction, fact)]
    if not waits:
        return
    queues = {queue_of(fact) for fact in waits}
    worst = min(waits, key=lambda fact: (-fact["times"], queue_of(fact), fact["client_id"]))
    causes = {cause_before(group, fact["last_ms"]) for fact in waits} - {None}
    of_client = languages(group)
    keeping = sorted(
        {str(fact["details"].get("owner")) for fact in waits}
        & {
            client_id
            for client_id, language in of_client.items()
            if profile_of(language).locks == KEPT
        }
    )
    shortest, longest = (lasting(ms) for ms in KEPT_LOCK_MS)
    kept = (
        f" {listed(keeping, 3)} "
        f"({listed(sorted({of_client[client_id] for client_id in keeping}))}) does not "
        f"unlock what it gives up: no member reads such a queue for {shortest} to {longest}."
        if keeping
        else ""
    )
    yield Finding(
        f"Members waited for the order locks of {plural(len(queues), 'queue')}, most often "
        f"{worst['client_id']} for {_name(worst)} ({worst['times']} times); explained by "
        f"{listed(sorted(str(cause) for cause in causes), 3) or 'short hand-overs'}.{kept}",
        {"queues": listed(sorted(f"{t} {b}:{n}" for t, b, n in queues))}
        | ({"lock_kept_by": listed(keeping)} if keeping else {}),
        first_ms=min(fact["first_ms"] for fact in waits),
        last_ms=max(fact["last_ms"] for fact in waits),
        remedy=KEPT_REMEDY if keeping else None,
    )


STUCK = Rule(
    "STUCK_ORDER_LOCK",
    ERROR,
    "An orderly member keeps the lock of a queue it should no longer hold, so the member that "
    "should read it is refused again and again.",
    "LOCK_REFUSED, HELD_QUEUE, STUCK_QUEUE, UNLOCK_FAILED",
    "Take a thread dump of the client that has the lock: its listener hangs (or it is a ghost "
    "consumer). Restart it; the lock is free within 60 s.",
    find_stuck,
    about=QUEUE,
    files=("lock_log", "consumerStatus"),
    reads=(CAUSES,),
)
WAIT = Rule(
    "LOCK_WAIT",
    INFO,
    "After a hand-over an orderly member waits until the old owner releases the lock or its 60 s "
    "are over. Go clients never release locks of queues that they give up: 40 to 60 s.",
    "LOCK_REFUSED, diffs, observed_members",
    "Nothing; this is how orderly consumption hands over.",
    find_wait,
    files=("lock_log",),
    reads=(CAUSES,),
)


# POP_ORDER_BLOCKED: a FIFO queue of a gRPC group that stands still for one message.


@dataclass(frozen=True, slots=True)
class Stall:
    """A queue held for longer than the invisible time of its messages.

    Attributes:
        since_ms: when they were popped; seen_ms: in the last snapshot that shows it.
        until_ms: until when nothing behind them is given out, unless it is renewed again.
        over_ms: by then it was over; None: no later snapshot shows it.
        standing: two snapshots further apart than the invisible time show it.
        gone: clients that were lost and may have had them; lost_ms: when the first was found lost.
    """

    queue: MessageQueue
    since_ms: int
    seen_ms: int
    until_ms: int
    over_ms: int | None
    standing: bool
    gone: tuple[str, ...]
    lost_ms: int | None


def find_blocked_order(group: GroupSnapshot) -> Iterator[Finding]:
    """Yield one finding per topic and severity (rocketmq.md §14)."""
    by_severity: dict[tuple[str, Severity], list[Stall]] = {}
    for block in _blocks(group):
        severity: Severity = WARNING if block.gone or block.standing else INFO
        by_severity.setdefault((block.queue.topic, severity), []).append(block)
    for (topic, severity), blocks in sorted(by_severity.items()):
        yield _finding(group, topic, severity, blocks)


def _blocks(group: GroupSnapshot) -> Iterator[Stall]:
    by_queue = grouped(group.facts["ORDER_BLOCK"], queue_of)
    for queue, facts in sorted(by_queue.items()):
        for since_ms in sorted({number(fact["details"].get("pop_ms")) for fact in facts}):
            held = [fact for fact in facts if number(fact["details"].get("pop_ms")) == since_ms]
            blocked = [fact for fact in held if _is_held_long(fact)]
            if blocked and since_ms > 0:
                later = [f["first_ms"] for f in facts if f["first_ms"] > blocked[-1]["first_ms"]]
                yield _block(group, queue, blocked, min(later, default=None))


def _is_held_long(fact: OrderBlockFact) -> bool:
    """Return whether the queue is held for longer than a message may be without a renewal."""
    held_ms = fact["first_ms"] - number(fact["details"].get("pop_ms"))
    return fact["first_ms"] < number(fact["details"].get("blocked_until_ms")) and held_ms > number(
        fact["details"]["invisible_ms"], 0
    )


def _block(
    group: GroupSnapshot, queue: MessageQueue, blocked: list[OrderBlockFact], over_ms: int | None
) -> Stall:
    last = blocked[-1]
    since_ms = number(last["details"].get("pop_ms"))
    lost = [row for row in _lost(group, last["first_ms"]) if _was_there(group, row, since_ms)]
    return Stall(
        queue=queue,
        since_ms=since_ms,
        seen_ms=last["first_ms"],
        until_ms=number(last["details"].get("blocked_until_ms")),
        over_ms=over_ms,
        standing=last["first_ms"] - blocked[0]["first_ms"]
        > number(last["details"].get("invisible_ms"), 0),
        gone=tuple(sorted({row["client_id"] for row in lost})),
        lost_ms=min((row["event_ms"] for row in lost), default=None),
    )


def _lost(group: GroupSnapshot, seen_ms: int) -> list[ConsumerEventsRow]:
    """Return losses of clients that were still members at this time and may have been dead."""
    return [
        row
        for row in group.consumer_events
        if row["event_type"] == CONSUMER_LOST
        and seen_ms <= row["event_ms"] <= seen_ms + CHANNEL_EXPIRY_MS + CHANNEL_SCAN_MS
    ]


def _was_there(group: GroupSnapshot, lost: ConsumerEventsRow, at_ms: int) -> bool:
    return any(
        row["client_id"] == lost["client_id"] and row["from_ms"] <= at_ms
        for row in group.tables["memberships"]
    )


def _finding(group: GroupSnapshot, topic: str, severity: Severity, blocks: list[Stall]) -> Finding:
    names = queue_names((block.queue.broker_name, block.queue.queue_id) for block in blocks)
    since, seen = min(b.since_ms for b in blocks), max(b.seen_ms for b in blocks)
    gone = sorted({client_id for block in blocks for client_id in block.gone})
    lost = [block.lost_ms for block in blocks if block.lost_ms is not None]
    over = [block.over_ms for block in blocks]
    end = max(lost) if lost else None if None in over else max(ms for ms in over if ms is not None)
    if lost:
        how_long = f"for {lasting(max(lost) - since)}, until {utc(max(lost))}"
        who = f"{listed(gone, 3)} was lost, and its proxy renewed what it had popped until then"
    else:
        until = max(block.until_ms for block in blocks)
        how_long = f"for {lasting(seen - since)} at least, held until {utc(until)}"
        who = "its consumer is slow, or gone and not found lost yet"
    behind = Offsets(group).behind(block.queue for block in blocks)
    alone = blocks[0].queue if len(blocks) == 1 else None
    return Finding(
        f"{plural(len(blocks), 'FIFO queue')} of {topic} ({names}) stood still from {utc(since)} "
        f"{how_long}: {who}.",
        {
            "queues": names,
            "lost": listed(gone) or "none",
            "snapshot": utc(seen),
            "behind_now": messages(behind),
        },
        severity=severity,
        topic=topic,
        broker_name=alone.broker_name if alone else None,
        queue_id=alone.queue_id if alone else None,
        client_id=gone[0] if len(gone) == 1 else None,
        first_ms=since,
        last_ms=end,
        ended_by="" if lost or end is None else "a later consumerOrderInfo.json shows it no more",
    )


BLOCKED_ORDER = Rule(
    "POP_ORDER_BLOCKED",
    WARNING,
    "A FIFO queue gives out nothing behind messages that are popped and not acknowledged. A proxy "
    "keeps a dead gRPC client as a member for 120 to 130 s and renews the invisible time until "
    "then. INFO where no client was lost and only one snapshot shows it: a slow listener.",
    "ORDER_BLOCK, cluster_events (CONSUMER_LOST), memberships",
    "Shut clients down gracefully; find out what killed the client named. If none died, take a "
    "thread dump of the group's clients: a listener hangs.",
    find_blocked_order,
    files=("consumer_order_info_json",),
)
