"""CONSUMER_BLOCKED, ZOMBIE_QUEUE, NOT_PULLING, PULL_EXPIRED: queues in a client's own table
(consumerStatus, client log).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rebalance_core.audit.blocked_queues import BlockedQueue, blocked_queues
from rebalance_core.audit.dumps import flag, held_over_time, number, queue_of
from rebalance_core.audit.group_snapshot import (
    Finding,
    GroupSnapshot,
    Rule,
    lasting,
    listed,
    plural,
    queue_names,
)
from rebalance_core.audit.prediction import Prediction
from rebalance_core.audit.recovery import ClientAnswers, last_of, went_after
from rebalance_core.audit.subjects import MEMBERS
from rebalance_core.audit.subscriptions import suspended_clients
from rebalance_core.model.group_settings import PUSH
from rebalance_core.model.queue import MessageQueue
from rebalance_core.model.times import MINUTE_MS, PULL_MAX_IDLE_MS, utc
from rebalance_core.model.verdicts import WARNING

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import HeldQueueFact, PullExpiredFact

DUMPS_APART_MS = MINUTE_MS
"""A healthy listener commits between two dumps this far apart."""
BLOCKED_MS = MINUTE_MS
"""ConsumerRunningInfo.analyzeProcessQueue: "can't consume for a while, maybe blocked"."""


def find_blocked(group: GroupSnapshot) -> Iterator[Finding]:
    """Yield a finding for each client whose queues make no progress although messages wait (no.
    17).
    """
    stuck: dict[str, dict[MessageQueue, BlockedQueue]] = {}
    newest, answers = held_over_time(group), ClientAnswers(group)
    for blocked in blocked_queues(group):
        fact = blocked.fact
        later = newest.get((fact["client_id"], queue_of(fact)), [])[-1:]
        if not any(held["first_ms"] > fact["last_ms"] and not _waiting(held) for held in later):
            of_client = stuck.setdefault(fact["client_id"] or "a client", {})
            of_client[queue_of(fact)] = blocked
    quiet = {None, *suspended_clients(group)}
    pulled = _last_pulls(group)
    for (client_id, queue), facts in newest.items():
        last = facts[-1]
        if client_id in quiet or flag(last["details"].get("dropped")) or _gets_on(group, last):
            continue
        since = [held["first_ms"] for held in facts[:-1] if _stands_still(held, last)]
        since += _not_consumed(group, last, pulled[client_id, last["first_ms"]])
        if since:
            stuck.setdefault(client_id, {})[queue] = BlockedQueue(last, min(since))
    for client_id, spans in sorted(stuck.items()):
        names = sorted(f"{topic} {broker}:{number}" for topic, broker, number in spans)
        first = min(blocked.since_ms for blocked in spans.values())
        last_ms = max(blocked.fact["last_ms"] for blocked in spans.values())
        over = last_of(answers.let_go(each.fact) or each.over for each in spans.values())
        yield Finding(
            f"{client_id} has messages of {plural(len(spans), 'queue')} in its cache and has not "
            f"finished any since {utc(first)} (last seen at {utc(last_ms)}): {listed(names, 5)}.",
            {"queues": listed(names)},
            client_id=client_id,
            first_ms=first,
            last_ms=over.at_ms if over else None,
            ended_by=over.shown_by if over else "",
        )


def _last_pulls(group: GroupSnapshot) -> dict[tuple[str, int], int]:
    """Return, by client and dump, the client's last pull of any queue: the dump's time by its
    clock.
    """
    pulls: dict[tuple[str, int], int] = {}
    for fact in group.facts["HELD_QUEUE"]:
        dump = (fact["client_id"], fact["first_ms"])
        pulls[dump] = max(number(fact["details"].get("last_pull_ms"), 0), pulls.get(dump, 0))
    return pulls


def _not_consumed(group: GroupSnapshot, fact: HeldQueueFact, pulled_ms: int) -> Iterator[int]:
    """Yield when the client last finished a message of the queue, if that is too long ago.

    This is the rule of ConsumerRunningInfo.analyzeProcessQueue, which asks only push clients, with
    three differences. It ignores the lastConsumeTimestamp of orderly queues: there it is when the
    listener got its last batch (ProcessQueue.takeMessages), and a retry after SUSPEND sets it
    again, so an old one with messages in the cache means a listener that hangs, unless the queue
    waits for its lock, which LOCK_WAIT covers. It uses the clock of the querying host, which may be
    wrong: here the client's own last pull bounds the dump's time. It does not ask whether the queue
    is dropped: a client that gave it up need not finish it.
    """
    consumed_ms = number(fact["details"].get("last_consume_ms"), 0)
    waits_for_lock = group.settings.get("ordered") and not flag(fact["details"].get("locked"))
    push = (group.settings.get("consumer_type") or PUSH) == PUSH
    if not push or waits_for_lock or not _waiting(fact):
        return
    if 0 < consumed_ms < min(fact["first_ms"], pulled_ms) - BLOCKED_MS:
        yield consumed_ms


def _gets_on(group: GroupSnapshot, fact: HeldQueueFact) -> bool:
    """Return True if the cached messages arrived just before the dump, or were committed after
    it.
    """
    queue, at_ms, committed = (
        queue_of(fact),
        fact["first_ms"],
        number(fact["details"].get("commit_offset"), 0),
    )
    came = any(
        queue_of(row) == queue
        and at_ms - BLOCKED_MS <= row["observed_ms"] <= at_ms
        and row["max_offset"] <= committed
        for row in group.tables["queue_offsets"]
    )
    return came or any(
        queue_of(row) == queue
        and row["observed_ms"] > at_ms
        and row["committed_offset"] > committed
        for row in group.tables["committed_offsets"]
    )


def _waiting(fact: HeldQueueFact) -> bool:
    return number(fact["details"].get("cached_messages"), 0) > 0


def _stands_still(first: HeldQueueFact, second: HeldQueueFact) -> bool:
    """Return True if messages wait at both dumps and a live client commits nothing."""
    apart = second["first_ms"] - first["first_ms"] >= DUMPS_APART_MS
    same = number(first["details"].get("commit_offset")) == number(
        second["details"].get("commit_offset")
    )
    before, after = first["details"], second["details"]
    moves = number(before["last_pull_ms"]) < number(after["last_pull_ms"]) or number(
        before["last_consume_ms"]
    ) < number(after["last_consume_ms"])
    return apart and _waiting(first) and _waiting(second) and same and moves


def find_zombie(group: GroupSnapshot) -> Iterator[Finding]:
    """Yield a finding for each client that dropped queues it should hold.

    See rocketmq.md §4.2.
    """
    prediction = Prediction(group)
    zombies: dict[str, list[HeldQueueFact]] = {}
    for fact in (facts[-1] for facts in held_over_time(group).values()):
        if (
            flag(fact["details"].get("dropped"))
            and fact["client_id"] in prediction.owners(queue_of(fact), fact["first_ms"])
            and prediction.settled_at(queue_of(fact), fact["first_ms"])
        ):
            zombies.setdefault(fact["client_id"], []).append(fact)
    text = "should read {count} but has dropped them: {names}"
    yield from _by_client(ClientAnswers(group), zombies, text)


def find_not_pulling(group: GroupSnapshot) -> Iterator[Finding]:
    """Yield a finding for each client that has not pulled its queues for two minutes (no. 19).

    A pull dated before the client became a member comes from a clock that is off.
    """
    prediction = Prediction(group)
    quiet = {None, *suspended_clients(group)}
    begun: dict[str | None, int] = {}
    for row in group.tables["memberships"]:
        begun[row["client_id"]] = min(row["from_ms"], begun.get(row["client_id"], row["from_ms"]))
    silent: dict[str, list[HeldQueueFact]] = {}
    for fact in (facts[-1] for facts in held_over_time(group).values()):
        pulled, at_ms = number(fact["details"].get("last_pull_ms"), 0), fact["first_ms"]
        if fact["client_id"] in quiet or flag(fact["details"].get("dropped")):
            continue
        since_ms = max(begun.get(fact["client_id"], 0) - MINUTE_MS, 0)
        if not since_ms < pulled < at_ms - PULL_MAX_IDLE_MS:
            continue
        held = [
            row
            for row in prediction.holdings(queue_of(fact), at_ms)
            if row["client_id"] == fact["client_id"] and at_ms - row["from_ms"] > PULL_MAX_IDLE_MS
        ]
        if held:
            silent.setdefault(fact["client_id"], []).append(fact)
    answers = ClientAnswers(group)
    for client_id, facts in silent.items():
        age = max(
            fact["first_ms"] - number(fact["details"].get("last_pull_ms"), 0) for fact in facts
        )
        text = f"holds {{count}} but has not pulled them for {lasting(age)}: {{names}}"
        yield from _by_client(answers, {client_id: facts}, text)


def find_expired(group: GroupSnapshot) -> Iterator[Finding]:
    """Yield a finding for each client that dropped and retook queues it had not pulled."""
    expired: dict[str, list[PullExpiredFact]] = {}
    for fact in group.facts["PULL_EXPIRED"]:
        who = fact["client_id"] or f"the client that wrote clients/{fact['details'].get('log', '')}"
        expired.setdefault(who, []).append(fact)
    for who, facts in sorted(expired.items()):
        queues = sorted({queue_of(fact) for fact in facts})
        names = [f"{topic} {broker}:{number}" for topic, broker, number in queues]
        first = min(fact["first_ms"] for fact in facts)
        last = max(fact["last_ms"] for fact in facts)
        went_ms = went_after(group, facts[0]["client_id"], last)
        alone = facts[0] if len(queues) == 1 else None
        yield Finding(
            f"{who} dropped and retook {plural(len(queues), 'queue')} of its own, "
            f"{plural(sum(fact['times'] for fact in facts), 'time')} since {utc(first)}, because "
            f"it had not pulled for {lasting(PULL_MAX_IDLE_MS)}: {listed(names, 5)}. Each queue "
            "went unread that long although it had an owner.",
            {"queues": listed(names)},
            topic=queues[0].topic if len({queue.topic for queue in queues}) == 1 else None,
            broker_name=alone["broker_name"] if alone else None,
            queue_id=alone["queue_id"] if alone else None,
            client_id=facts[0]["client_id"],
            first_ms=first,
            last_ms=last if went_ms is None else went_ms,
            ended_by="" if went_ms is None else f"{who} went",
        )


def _by_client(
    answers: ClientAnswers, facts_of: dict[str, list[HeldQueueFact]], text: str
) -> Iterator[Finding]:
    for client_id, facts in sorted(facts_of.items()):
        names = [
            f"{topic} " + queue_names(queue_of(f)[1:] for f in facts if f["topic"] == topic)
            for topic in sorted({fact["topic"] for fact in facts})
        ]
        alone = facts[0] if len({queue_of(fact) for fact in facts}) == 1 else None
        count = plural(len({queue_of(fact) for fact in facts}), "queue")
        dumped = utc(facts[-1]["first_ms"])
        over = last_of(map(answers.let_go, facts))
        yield Finding(
            f"{client_id} {text.format(count=count, names=listed(names, 5))} (dump of {dumped}).",
            {"queues": listed(names)} | (dict(alone["details"]) if alone else {}),
            topic=alone["topic"] if alone else None,
            broker_name=alone["broker_name"] if alone else None,
            queue_id=alone["queue_id"] if alone else None,
            client_id=client_id,
            first_ms=min(fact["first_ms"] for fact in facts),
            last_ms=over.at_ms if over else None,
            ended_by=over.shown_by if over else "",
        )


BLOCKED = Rule(
    "CONSUMER_BLOCKED",
    WARNING,
    "A client pulls messages and does not finish them: the listener hangs, or an orderly listener "
    "keeps returning SUSPEND for one message. One consumerStatus dump is enough to show it if "
    "messages are cached and the last one finished more than 60 s earlier.",
    "STUCK_QUEUE and HELD_QUEUE",
    "Take a thread dump of the client (consumerStatus -s) and check the message at the committed "
    "offset of the named queue; skip it or fix the listener.",
    find_blocked,
    files=("consumerStatus",),
    state=True,
)
ZOMBIE = Rule(
    "ZOMBIE_QUEUE",
    WARNING,
    "A client dropped a queue that the strategy assigns to it. No client reads the queue until "
    "this client notices, up to two minutes later.",
    "HELD_QUEUE (dropped), ownership",
    "Dump consumerStatus again after two minutes; if the queue is still dropped, restart the "
    "named client.",
    find_zombie,
    files=("consumerStatus",),
    reads=(MEMBERS,),
    state=True,
)
NOT_PULLING = Rule(
    "NOT_PULLING",
    WARNING,
    "A client holds a queue but has not pulled it for more than two minutes, though the broker "
    "is up: the pull request was lost, or the pull thread hangs.",
    "HELD_QUEUE, ownership",
    "Take a thread dump of the named client and restart it.",
    find_not_pulling,
    files=("consumerStatus",),
    state=True,
)
EXPIRED = Rule(
    "PULL_EXPIRED",
    WARNING,
    "A client had not pulled its own queue for two minutes (pullMaxIdleTime) because the pull "
    "request was lost. It dropped the queue and then took it again; until then no client read "
    "it.",
    "PULL_EXPIRED",
    "Check the client's log for a pull callback or hook that hung two minutes earlier. A "
    "pullMaxIdleTime shorter than a long poll (15 s) drops every idle queue this way.",
    find_expired,
)
