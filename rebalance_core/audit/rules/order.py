"""Order locks: which clients wait for them, and which locks are stuck."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
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
    lasting,
    listed,
    plural,
)
from rebalance_core.audit.logged_causes import cause_before
from rebalance_core.audit.prediction import Prediction
from rebalance_core.audit.recovery import ClientAnswers, Recovery, went_after
from rebalance_core.audit.subjects import CAUSES
from rebalance_core.model.client_profile import KEPT, KEPT_LOCK_MS
from rebalance_core.model.clients import profile_of
from rebalance_core.model.times import BROKER_LOCK_LIFE_MS, utc
from rebalance_core.model.verdicts import ERROR, INFO
from rebalance_core.protocol.order_locks import ORDER_LOCK_MS

if TYPE_CHECKING:
    from rebalance_core.contracts.row_parts import NamesQueue
    from rebalance_core.contracts.rows import (
        HeldQueueFact,
        LockRefusedFact,
        StuckQueueFact,
    )


KEPT_REMEDY = (
    "Nothing. To avoid the wait, change the group's members rarely, or use clients that release "
    "their locks."
)
REFUSAL_GRACE_MS = BROKER_LOCK_LIFE_MS
"""After the end of a hand-over, refusals may continue for one lifetime of a lock."""


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
    """Return the evidence, after the last refusal, that the lock is free; None if there is none.

    This is a dump in which an owner has it, or the end of the client that had it.
    """
    locked = _locked_since(group, prediction, refused)
    owner = refused["details"].get("owner")
    if locked is not None or not owner:
        return locked
    went_ms = went_after(group, owner, refused["last_ms"])
    return None if went_ms is None else Recovery(went_ms, f"{owner}, which had the lock, left")


def _locked_since(
    group: GroupSnapshot,
    prediction: Prediction,
    stuck: LockRefusedFact | HeldQueueFact | StuckQueueFact,
) -> Recovery | None:
    """Return a later dump in which an owner has the lock; None if there is none."""
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
        f"; clients/{lock.log} keeps the lock while its listener is processing messages of the "
        f"queue ({plural(lock.times, 'time')} until {utc(lock.last_ms)})"
        for lock in kept
    )
    return Finding(
        f"{fact['client_id']} has been refused the lock of {_name(fact)} for "
        f"{lasting(fact['last_ms'] - fact['first_ms'])} ({plural(fact['times'], 'time')}): "
        f"{owner} has it, and {listed(should) or 'no member'} should hold the queue{why}.",
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
    """Yield at most one finding, about all refusals that a hand-over explains."""
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
        f"({listed(sorted({of_client[client_id] for client_id in keeping}))}) does not unlock the "
        f"queues that it gives up: no member reads such a queue for {shortest} to {longest}."
        if keeping
        else ""
    )
    yield Finding(
        f"Members waited for the order locks of {plural(len(queues), 'queue')}, most often "
        f"{worst['client_id']} for {_name(worst)} ({plural(worst['times'], 'time')}); explained by "
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
    "Take a thread dump of the client that has the lock: its listener hangs, or the broker no "
    "longer lists the client. Restart it; the lock expires within 60 s.",
    find_stuck,
    about=QUEUE,
    files=("lock_log", "consumerStatus"),
    reads=(CAUSES,),
)
WAIT = Rule(
    "LOCK_WAIT",
    INFO,
    "After a hand-over an orderly member waits until the old owner releases the lock or its 60 s "
    "are over. Go clients never release the locks of queues that they give up, so the wait takes "
    "40 to 60 s.",
    "LOCK_REFUSED, diffs, observed_members",
    "Nothing; this is how orderly consumption hands over.",
    find_wait,
    files=("lock_log",),
    reads=(CAUSES,),
)
