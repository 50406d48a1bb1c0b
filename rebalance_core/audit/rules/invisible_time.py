"""INVISIBLE_TIME_TOO_SHORT: popped messages time out before the listener gets to them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rebalance_core.audit.case import Finding, GroupCase, Row, Rule, listed, plural
from rebalance_core.audit.dumps import flag, number
from rebalance_core.audit.orphans import Offsets, messages
from rebalance_core.model.queue import pop_retry_topics
from rebalance_core.model.times import SECOND_MS, utc
from rebalance_core.model.verdicts import INFO, WARNING

MANY_SECONDS = 10
"""In fewer seconds than these a pause of one client (GC, a frozen host) may have done it."""


@dataclass(frozen=True, slots=True)
class ListenerTime:
    """The times that one dump of consumerStatus shows for one client and topic.

    Attributes:
        waiting: messages popped and not yet acknowledged.
        consume_rt_ms: mean time of the listener for one message.
        threads: that consume them.
        invisible_ms: after it a message is delivered again.
    """

    client_id: str
    at_ms: int
    waiting: int
    consume_rt_ms: float
    threads: int
    invisible_ms: int

    @property
    def needed_ms(self) -> float:
        """When the last of those that wait will be consumed."""
        return self.waiting * self.consume_rt_ms / self.threads

    def __str__(self) -> str:
        """A sentence without its end."""
        return (
            f"{self.client_id} has {self.waiting} messages waiting, which take "
            f"{self.needed_ms / SECOND_MS:.0f} s at {self.consume_rt_ms:g} ms each and "
            f"{self.threads} threads; its invisible time is {self.invisible_ms / SECOND_MS:g} s"
        )


def find(case: GroupCase) -> Iterator[Finding]:
    """One finding a topic (rocketmq.md §14)."""
    by_topic: dict[str, list[Row]] = {}
    for fact in case.facts("POP_TIMED_OUT"):
        by_topic.setdefault(fact["topic"], []).append(fact)
    slow = _too_slow(case)
    for topic, facts in sorted(by_topic.items()):
        yield _finding(case, topic, facts, slow.get(topic))
    for topic in sorted(slow.keys() - by_topic.keys()):
        yield _by_time(topic, slow[topic])


def _by_time(topic: str, slow: ListenerTime) -> Finding:
    """No client's log says that messages timed out, but they must have."""
    return Finding(
        f"The listener is too slow for {topic}: {slow}, so messages come again.",
        {"invisible_time": f"{slow.invisible_ms / SECOND_MS:g} s", "listener": str(slow)},
        topic=topic,
        client_id=slow.client_id,
        first_ms=slow.at_ms,
    )


def _finding(case: GroupCase, topic: str, facts: list[Row], slow: ListenerTime | None) -> Finding:
    seconds = sum(fact["times"] for fact in facts)
    first, last = facts[0]["first_ms"], max(fact["last_ms"] for fact in facts)
    limits = sorted({number(fact, "invisible_ms", 0) for fact in facts})
    shown = listed(f"{limit / SECOND_MS:g} s" for limit in limits)
    logs = sorted({fact["client_id"] or fact["details"].get("log", "") for fact in facts} - {""})
    waiting = max(
        (number(f, "wait_ack_count", 0) for f in case.facts("POP_QUEUE") if f["topic"] == topic),
        default=0,
    )
    retries = _waiting_retries(case, topic)
    many = f"; up to {waiting} messages of one queue wait in a client" if waiting else ""
    return Finding(
        f"Popped messages of {topic} were let go unconsumed in {plural(seconds, 'second')} from "
        f"{utc(first)} to {utc(last)} ({listed(logs, 3)}): the invisible time of {shown} was over "
        f"before the listener got to them, so they come again{many}.",
        {
            "invisible_time": shown,
            "seconds": str(seconds),
            "seen_in": listed(logs),
            "waiting_in_a_client": str(waiting),
            "retries_waiting": messages(retries),
            **({} if slow is None else {"listener": str(slow)}),
        },
        severity=WARNING if seconds >= MANY_SECONDS else INFO,
        topic=topic,
        first_ms=first,
        last_ms=last,
    )


def _waiting_retries(case: GroupCase, topic: str) -> int | None:
    """Messages of the topic that wait for another try."""
    names = pop_retry_topics(case.consumer_group, topic)
    offsets = Offsets(case)
    return offsets.behind(queue for queue in offsets.commits if queue.topic in names)


def _too_slow(case: GroupCase) -> dict[str, ListenerTime]:
    """By topic the client that needs longest, of those that need longer than they have."""
    found: dict[str, ListenerTime] = {}
    settings = {_dump(row): row for row in case.facts("POP_SETTINGS")}
    waiting: dict[tuple[tuple[str, int], str], int] = {}
    for row in case.facts("POP_QUEUE"):
        if not flag(row, "dropped"):
            key = _dump(row), row["topic"]
            waiting[key] = waiting.get(key, 0) + number(row, "wait_ack_count", 0)
    for row in case.facts("CONSUME_RATE"):
        own = settings.get(_dump(row))
        if own is None or number(own, "threads") < 1 or number(own, "invisible_ms") < 1:
            continue
        one = ListenerTime(
            row["client_id"],
            row["first_ms"],
            waiting.get((_dump(row), row["topic"]), 0),
            float(row["details"]["consume_rt_ms"]),
            number(own, "threads"),
            number(own, "invisible_ms"),
        )
        worst = found.get(row["topic"])
        if one.needed_ms > one.invisible_ms and (worst is None or one.needed_ms > worst.needed_ms):
            found[row["topic"]] = one
    return found


def _dump(row: Row) -> tuple[str, int]:
    return row["client_id"], row["first_ms"]


RULE = Rule(
    "INVISIBLE_TIME_TOO_SHORT",
    WARNING,
    "A client pops messages faster than its listener consumes them: their invisible time is over "
    "while they wait in the client, they are dropped unseen and delivered again, and again. The "
    "group does more work than it has messages and falls behind.",
    "facts POP_TIMED_OUT (client log), POP_QUEUE, POP_SETTINGS and CONSUME_RATE (consumerStatus)",
    "Raise popInvisibleTime in the clients above the time that a full batch takes in the listener "
    "(popBatchNums x listener time / threads), lower popBatchNums, or add threads or members.",
    find,
    files=("client_log", "consumerStatus"),
)
