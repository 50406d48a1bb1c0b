"""CONSUMER_BLOCKED, ZOMBIE_QUEUE, NOT_PULLING, PULL_EXPIRED: queues in a client's own table
(consumerStatus, client log).
"""

import itertools
from collections.abc import Iterator

from rebalance_core.audit.case import (
    MEMBERS,
    Finding,
    GroupCase,
    Row,
    Rule,
    lasting,
    listed,
    plural,
    queue_names,
)
from rebalance_core.audit.dumps import flag, fresh, number, queue_of
from rebalance_core.audit.orphans import suspended_clients
from rebalance_core.audit.prediction import Prediction
from rebalance_core.model.queue import MessageQueue
from rebalance_core.model.times import MINUTE_MS, PULL_MAX_IDLE_MS, utc
from rebalance_core.model.verdicts import WARNING

DUMPS_APART_MS = MINUTE_MS
"""Between two dumps so far apart a healthy listener commits."""


def find_blocked(case: GroupCase) -> Iterator[Finding]:
    """One finding a client whose queues stand still although messages are there (no. 17)."""
    quiet = {None, *suspended_clients(case)}
    stuck: dict[str, dict[MessageQueue, tuple[int, int]]] = {}
    for fact in fresh(case, case.facts("STUCK_QUEUE")):
        if fact["details"].get("trouble") == "consume":
            since_ms = fact["first_ms"] - number(fact, "count", 0)  # "blocked, 597688ms"
            span = (since_ms, fact["last_ms"])
            stuck.setdefault(fact["client_id"] or "a client", {})[queue_of(fact)] = span
    dumps: dict[tuple[str, str, str, int], list[Row]] = {}
    for fact in fresh(case, case.facts("HELD_QUEUE")):
        if fact["client_id"] not in quiet and not flag(fact, "dropped"):
            dumps.setdefault((fact["client_id"], *queue_of(fact)), []).append(fact)
    for (client_id, *_), facts in dumps.items():
        for one, other in itertools.pairwise(facts):
            if _stands_still(one, other):
                queues = stuck.setdefault(client_id, {})
                queues[queue_of(one)] = (one["first_ms"], other["first_ms"])
    for client_id, spans in sorted(stuck.items()):
        names = sorted(f"{topic} {broker}:{number}" for topic, broker, number in spans)
        first = min(span[0] for span in spans.values())
        last = max(span[1] for span in spans.values())
        yield Finding(
            f"{client_id} has messages of {plural(len(spans), 'queue')} in its cache and does not "
            f"get on with them since {utc(first)} (last seen at {utc(last)}): {listed(names, 5)}.",
            {"queues": listed(names)},
            client_id=client_id,
            first_ms=first,
        )


def _stands_still(one: Row, other: Row) -> bool:
    """True if messages wait at both dumps, the client is alive, and nothing is committed."""
    apart = other["first_ms"] - one["first_ms"] >= DUMPS_APART_MS
    waiting = number(one, "cached_messages", 0) > 0 and number(other, "cached_messages", 0) > 0
    same = number(one, "commit_offset") == number(other, "commit_offset")
    moves = any(number(one, n) < number(other, n) for n in ("last_pull_ms", "last_consume_ms"))
    return apart and waiting and same and moves


def find_zombie(case: GroupCase) -> Iterator[Finding]:
    """One finding a client with dropped queues that it should hold
    (rocketmq.md §4.2, §11 no. 18).
    """
    prediction = Prediction(case)
    zombies: dict[str, list[Row]] = {}
    for fact in fresh(case, case.facts("HELD_QUEUE")):
        if (
            flag(fact, "dropped")
            and fact["client_id"] in prediction.owners(queue_of(fact), fact["first_ms"])
            and prediction.settled_at(queue_of(fact), fact["first_ms"])
        ):
            zombies.setdefault(fact["client_id"], []).append(fact)
    yield from _by_client(zombies, "should read {count} and has dropped them for good: {names}")


def find_not_pulling(case: GroupCase) -> Iterator[Finding]:
    """One finding a client that holds queues and has not pulled them for two minutes (no. 19).

    A pull from before the client was a member is one by a clock that is off.
    """
    prediction = Prediction(case)
    quiet = {None, *suspended_clients(case)}
    begun: dict[str | None, int] = {}
    for row in case.rows("memberships"):
        begun[row["client_id"]] = min(row["from_ms"], begun.get(row["client_id"], row["from_ms"]))
    silent: dict[str, list[Row]] = {}
    for fact in fresh(case, case.facts("HELD_QUEUE")):
        pulled, at_ms = number(fact, "last_pull_ms", 0), fact["first_ms"]
        if fact["client_id"] in quiet or flag(fact, "dropped"):
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
    for client_id, facts in silent.items():
        age = max(fact["first_ms"] - number(fact, "last_pull_ms", 0) for fact in facts)
        text = f"holds {{count}} and has not pulled them for {lasting(age)}: {{names}}"
        yield from _by_client({client_id: facts}, text)


def find_expired(case: GroupCase) -> Iterator[Finding]:
    """One finding a client that found queues of its own not pulled, and took them anew."""
    expired: dict[str, list[Row]] = {}
    for fact in case.facts("PULL_EXPIRED"):
        who = fact["client_id"] or f"a client of clients/{fact['details'].get('log', '')}"
        expired.setdefault(who, []).append(fact)
    for who, facts in sorted(expired.items()):
        queues = sorted({queue_of(fact) for fact in facts})
        names = [f"{topic} {broker}:{number}" for topic, broker, number in queues]
        first = min(fact["first_ms"] for fact in facts)
        one = facts[0] if len(queues) == 1 else None
        yield Finding(
            f"{who} took {plural(len(queues), 'queue')} of its own anew, "
            f"{plural(sum(fact['times'] for fact in facts), 'time')} since {utc(first)}, as it had "
            f"not pulled for {lasting(PULL_MAX_IDLE_MS)}: {listed(names, 5)}. Each stood still so "
            "long, while it looked owned.",
            {"queues": listed(names)},
            topic=queues[0].topic if len({queue.topic for queue in queues}) == 1 else None,
            broker_name=one["broker_name"] if one else None,
            queue_id=one["queue_id"] if one else None,
            client_id=facts[0]["client_id"],
            first_ms=first,
            last_ms=max(fact["last_ms"] for fact in facts),
        )


def _by_client(facts_of: dict[str, list[Row]], text: str) -> Iterator[Finding]:
    for client_id, facts in sorted(facts_of.items()):
        names = [
            f"{topic} " + queue_names(queue_of(f)[1:] for f in facts if f["topic"] == topic)
            for topic in sorted({fact["topic"] for fact in facts})
        ]
        one = facts[0] if len({queue_of(fact) for fact in facts}) == 1 else None
        count = plural(len({queue_of(fact) for fact in facts}), "queue")
        at = utc(facts[-1]["first_ms"])
        yield Finding(
            f"{client_id} {text.format(count=count, names=listed(names, 5))} (dump of {at}).",
            {"queues": listed(names)} | (dict(one["details"]) if one else {}),
            topic=one["topic"] if one else None,
            broker_name=one["broker_name"] if one else None,
            queue_id=one["queue_id"] if one else None,
            client_id=client_id,
            first_ms=min(fact["first_ms"] for fact in facts),
        )


BLOCKED = Rule(
    "CONSUMER_BLOCKED",
    WARNING,
    "A client pulls messages and does not finish them: the listener hangs, or an orderly listener "
    "keeps answering SUSPEND for one message.",
    "STUCK_QUEUE and HELD_QUEUE",
    "Take a thread dump of the client (consumerStatus -s) and look at the message at the "
    "committed offset of the queue named; skip it or fix the listener.",
    find_blocked,
    files=("consumerStatus",),
)
ZOMBIE = Rule(
    "ZOMBIE_QUEUE",
    WARNING,
    "A client gave up a queue that is its own by the division. Nothing reads it until the client "
    "notices, up to two minutes later.",
    "HELD_QUEUE (dropped), ownership",
    "Dump consumerStatus again after two minutes; if the queue is still dropped, restart the "
    "client named.",
    find_zombie,
    files=("consumerStatus",),
    needs=MEMBERS,
)
NOT_PULLING = Rule(
    "NOT_PULLING",
    WARNING,
    "A client holds a queue and has not pulled it for more than two minutes, though the broker is "
    "up: the pull request got lost, or the pull thread hangs.",
    "HELD_QUEUE, ownership",
    "Take a thread dump of the client named and restart it.",
    find_not_pulling,
    files=("consumerStatus",),
)
EXPIRED = Rule(
    "PULL_EXPIRED",
    WARNING,
    "A client had not pulled its own queue for two minutes (pullMaxIdleTime), as the pull request "
    "got lost. It gave the queue up and took it anew; until then nobody read it.",
    "PULL_EXPIRED",
    "Find out in the client's log what hung in a pull callback or hook two minutes before. A "
    "pullMaxIdleTime below a long poll (15 s) does this to every idle queue.",
    find_expired,
)
