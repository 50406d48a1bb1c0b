"""STUCK_ORDER_LOCK and LOCK_WAIT: an orderly member that waits for the lock of another."""

from __future__ import annotations

from collections.abc import Iterator

from rebalance_core.audit.case import QUEUE, Finding, GroupCase, Row, Rule, lasting, listed, plural
from rebalance_core.audit.dumps import flag, fresh, languages, number, queue_of, said_steadily
from rebalance_core.audit.orphans import cause_before
from rebalance_core.audit.prediction import Prediction
from rebalance_core.model.queue import MessageQueue
from rebalance_core.model.times import BROKER_LOCK_LIFE_MS, utc
from rebalance_core.model.verdicts import ERROR, INFO
from rebalance_core.protocol.languages import KEPT, KEPT_LOCK_MS, profile_of
from rebalance_core.protocol.members import ORDER_LOCK_MS

KEPT_REMEDY = "Nothing; change the members of the group seldom, or let clients read it that unlock."
REFUSAL_GRACE_MS = BROKER_LOCK_LIFE_MS
"""Beyond the end of a hand-over a refusal may still be on its way for one life of a lock."""


def find_stuck(case: GroupCase) -> Iterator[Finding]:
    """One finding a queue (rocketmq.md §7, §11 no. 16)."""
    prediction = Prediction(case)
    said: set[MessageQueue] = set()
    for fact in case.facts("LOCK_REFUSED"):
        if is_stuck(prediction, fact) and queue_of(fact) not in said:
            said.add(queue_of(fact))
            yield _refused(prediction, fact)
    for fact in fresh(case, case.facts("HELD_QUEUE")):
        tries = number(fact, "try_unlock_times", 0)
        waits = flag(fact, "dropped") and tries > 0 and _is_old(prediction, fact)
        if waits and queue_of(fact) not in said:
            said.add(queue_of(fact))
            text = f"has dropped {_name(fact)} and tried {tries} times to unlock it"
            yield _dumped(fact, text)
    for fact in fresh(case, case.facts("STUCK_QUEUE")):
        trouble = fact["details"].get("trouble")
        stuck = trouble in ("lock", "unlock") and _is_old(prediction, fact)
        if stuck and queue_of(fact) not in said:
            said.add(queue_of(fact))
            yield _dumped(fact, f"cannot {trouble} {_name(fact)}")


def is_stuck(prediction: Prediction, fact: Row) -> bool:
    """True if the lock is refused past the hand-over, by a client that should not have it."""
    queue = queue_of(fact)
    owner = fact["details"].get("owner")
    if owner in prediction.owners(queue, fact["last_ms"]) or not said_steadily(fact):
        return False
    change = prediction.last_change(queue, fact["last_ms"])
    since = fact["first_ms"] if change is None else max(change["latest_ms"], fact["first_ms"])
    return bool(fact["last_ms"] - since > REFUSAL_GRACE_MS)


def _is_old(prediction: Prediction, fact: Row) -> bool:
    """True if the last hand-over of the queue was over when it was dumped."""
    change = prediction.last_change(queue_of(fact), fact["first_ms"])
    if change is None:
        return True
    return bool(fact["first_ms"] > max(change["latest_ms"], change["change_ms"] + ORDER_LOCK_MS))


def _refused(prediction: Prediction, fact: Row) -> Finding:
    owner = fact["details"].get("owner")
    should = sorted(prediction.owners(queue_of(fact), fact["last_ms"]))
    return Finding(
        f"{fact['client_id']} is refused the lock of {_name(fact)} for "
        f"{lasting(fact['last_ms'] - fact['first_ms'])} ({fact['times']} times): {owner} has it, "
        f"and {listed(should) or 'nobody'} should hold the queue.",
        {"owner": str(owner), "should_hold": listed(should), "refused": str(fact["times"])},
        topic=fact["topic"],
        broker_name=fact["broker_name"],
        queue_id=fact["queue_id"],
        client_id=owner,
        first_ms=fact["first_ms"],
        last_ms=fact["last_ms"],
    )


def _dumped(fact: Row, what: str) -> Finding:
    return Finding(
        f"{fact['client_id']} {what} (dump of {utc(fact['first_ms'])}).",
        dict(fact["details"]),
        topic=fact["topic"],
        broker_name=fact["broker_name"],
        queue_id=fact["queue_id"],
        client_id=fact["client_id"],
        first_ms=fact["first_ms"],
    )


def _name(fact: Row) -> str:
    return f"{fact['topic']} {fact['broker_name']}:{fact['queue_id']}"


def find_wait(case: GroupCase) -> Iterator[Finding]:
    """One finding for all refusals of the group that a hand-over explains."""
    prediction = Prediction(case)
    waits = [fact for fact in case.facts("LOCK_REFUSED") if not is_stuck(prediction, fact)]
    if not waits:
        return
    queues = {queue_of(fact) for fact in waits}
    worst = min(waits, key=lambda fact: (-fact["times"], queue_of(fact), fact["client_id"]))
    causes = {cause_before(case, fact["last_ms"]) for fact in waits} - {None}
    of_client = languages(case)
    keeping = sorted(
        {str(fact["details"].get("owner")) for fact in waits}
        & {one for one, language in of_client.items() if profile_of(language).locks == KEPT}
    )
    shortest, longest = (lasting(ms) for ms in KEPT_LOCK_MS)
    kept = (
        f" {listed(keeping, 3)} ({listed(sorted({of_client[one] for one in keeping}))}) does not "
        f"unlock what it gives up: nobody reads such a queue for {shortest} to {longest}."
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
    "facts LOCK_REFUSED (lock.log, filter.log), HELD_QUEUE and STUCK_QUEUE (consumerStatus)",
    "Take a thread dump of the client that has the lock: its listener hangs (or it is a ghost "
    "consumer). Restart it; the lock is free within 60 s.",
    find_stuck,
    about=QUEUE,
    files=("lock_log", "consumerStatus"),
)
WAIT = Rule(
    "LOCK_WAIT",
    INFO,
    "After a hand-over an orderly member waits until the old owner releases the lock or its 60 s "
    "are over. A Go client never releases the locks of queues that it gives up: they end 40 to "
    "60 s later.",
    "facts LOCK_REFUSED, diffs; observed_members (language)",
    "Nothing; it is how ordered consumption hands over.",
    find_wait,
    files=("lock_log",),
)
