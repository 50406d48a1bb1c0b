"""Popped messages that time out before the listener gets to them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rebalance_core.audit import offsets
from rebalance_core.audit.dumps import flag, number
from rebalance_core.audit.group_snapshot import (
    Finding,
    GroupSnapshot,
    Rule,
    grouped,
    listed,
    plural,
)
from rebalance_core.audit.offsets import Offsets
from rebalance_core.audit.recovery import recovery, went_after
from rebalance_core.model.queue import pop_retry_topics
from rebalance_core.model.times import SECOND_MS, utc
from rebalance_core.model.verdicts import INFO, WARNING

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import (
        ConsumeRateFact,
        PopQueueFact,
        PopSettingsFact,
        PopTimedOutFact,
    )


MANY_SECONDS = 10
"""If it lasts fewer seconds than this, a pause of one client (GC, a frozen host) may be the
cause.
"""


@dataclass(frozen=True, slots=True)
class ListenerTime:
    """The times that one consumerStatus dump shows for one client and topic.

    Attributes:
        waiting: messages popped and not yet acknowledged.
        consume_rt_ms: mean time of the listener for one message.
        threads: the number that consume them.
        invisible_ms: the time after which a message is redelivered.
    """

    client_id: str
    at_ms: int
    waiting: int
    consume_rt_ms: float
    threads: int
    invisible_ms: int

    @property
    def needed_ms(self) -> float:
        """Return the time that it takes to consume all waiting messages, ms."""
        return self.waiting * self.consume_rt_ms / self.threads

    def __str__(self) -> str:
        """Return a sentence without its full stop."""
        return (
            f"{self.client_id} has {self.waiting} messages waiting, which take "
            f"{self.needed_ms / SECOND_MS:.0f} s at {self.consume_rt_ms:g} ms each with "
            f"{self.threads} threads; its invisible time is {self.invisible_ms / SECOND_MS:g} s"
        )


def find_invisible_time(group: GroupSnapshot) -> Iterator[Finding]:
    """Yield a finding for each topic (rocketmq.md §14)."""
    by_topic = grouped(group.facts["POP_TIMED_OUT"], lambda fact: fact["topic"])
    slow = _too_slow(group)
    for topic, facts in sorted(by_topic.items()):
        yield _invisible_time_finding(group, topic, facts, slow.get(topic))
    for topic in sorted(slow.keys() - by_topic.keys()):
        yield _by_time(group, topic, slow[topic])


def _by_time(group: GroupSnapshot, topic: str, slow: ListenerTime) -> Finding:
    """Return a finding on messages that must have timed out without a client's log line."""
    went_ms = went_after(group, slow.client_id, slow.at_ms)
    return Finding(
        f"The listener is too slow for {topic}: {slow}, so messages are delivered again.",
        {"invisible_time": f"{slow.invisible_ms / SECOND_MS:g} s", "listener": str(slow)},
        topic=topic,
        client_id=slow.client_id,
        first_ms=slow.at_ms,
        last_ms=went_ms,
        ended_by="" if went_ms is None else f"{slow.client_id} went",
    )


def _invisible_time_finding(
    group: GroupSnapshot, topic: str, facts: list[PopTimedOutFact], slow: ListenerTime | None
) -> Finding:
    seconds = sum(fact["times"] for fact in facts)
    first, last = facts[0]["first_ms"], max(fact["last_ms"] for fact in facts)
    limits = sorted({number(fact["details"].get("invisible_ms"), 0) for fact in facts})
    shown = listed(f"{limit / SECOND_MS:g} s" for limit in limits)
    logs = sorted({fact["client_id"] or fact["details"].get("log", "") for fact in facts} - {""})
    waiting = max(
        (
            number(f["details"].get("wait_ack_count"), 0)
            for f in group.facts["POP_QUEUE"]
            if f["topic"] == topic
        ),
        default=0,
    )
    retries = _waiting_retries(group, topic)
    slow_now = slow is not None and went_after(group, slow.client_id, slow.at_ms) is None
    over = None if slow_now else recovery(group, facts)
    many = f"; up to {waiting} messages of one queue wait in a client" if waiting else ""
    return Finding(
        f"Popped messages of {topic} expired unconsumed in {plural(seconds, 'second')} from "
        f"{utc(first)} to {utc(last)} ({listed(logs, 3)}): the invisible time of {shown} ended "
        f"before the listener reached them, so they are delivered again{many}.",
        {
            "invisible_time": shown,
            "seconds": str(seconds),
            "seen_in": listed(logs),
            "waiting_in_a_client": str(waiting),
            "retries_waiting": offsets.messages(retries),
            **({} if slow is None else {"listener": str(slow)}),
        },
        severity=WARNING if seconds >= MANY_SECONDS else INFO,
        topic=topic,
        first_ms=first,
        last_ms=over.at_ms if over else last,
        ended_by=over.shown_by if over else "",
    )


def _waiting_retries(group: GroupSnapshot, topic: str) -> int | None:
    """Return the messages of the topic that wait for another attempt."""
    names = pop_retry_topics(group.consumer_group, topic)
    offsets = Offsets(group)
    return offsets.behind(queue for queue in offsets.commits if queue.topic in names)


def _too_slow(group: GroupSnapshot) -> dict[str, ListenerTime]:
    """Return, by topic, the slowest of the clients that exceed their time in their newest dump."""
    newest: dict[tuple[str, str], ListenerTime] = {}
    settings = {_dump(row): row for row in group.facts["POP_SETTINGS"]}
    waiting: dict[tuple[tuple[str, int], str], int] = {}
    for row in group.facts["POP_QUEUE"]:
        if not flag(row["details"].get("dropped")):
            key = _dump(row), row["topic"]
            waiting[key] = waiting.get(key, 0) + number(row["details"].get("wait_ack_count"), 0)
    for rate in group.facts["CONSUME_RATE"]:
        limits = settings.get(_dump(rate))
        if (
            limits is None
            or number(limits["details"].get("threads")) < 1
            or number(limits["details"].get("invisible_ms")) < 1
        ):
            continue
        newest[rate["topic"], rate["client_id"]] = ListenerTime(
            rate["client_id"],
            rate["first_ms"],
            waiting.get((_dump(rate), rate["topic"]), 0),
            float(rate["details"]["consume_rt_ms"]),
            number(limits["details"].get("threads")),
            number(limits["details"].get("invisible_ms")),
        )
    slowest: dict[str, ListenerTime] = {}
    for (topic, _), listener in newest.items():
        worst = slowest.get(topic)
        if listener.needed_ms > listener.invisible_ms and (
            worst is None or listener.needed_ms > worst.needed_ms
        ):
            slowest[topic] = listener
    return slowest


def _dump(row: PopSettingsFact | PopQueueFact | ConsumeRateFact) -> tuple[str, int]:
    return row["client_id"], row["first_ms"]


INVISIBLE_TIME = Rule(
    "INVISIBLE_TIME_TOO_SHORT",
    WARNING,
    "A client pops messages faster than its listener consumes them. Their invisible time ends "
    "while they wait, so the client drops them and the broker delivers them again and again.",
    "POP_TIMED_OUT, POP_QUEUE, POP_SETTINGS and CONSUME_RATE",
    "Raise popInvisibleTime above the time that a full batch takes (popBatchNums x listener time "
    "/ threads), lower popBatchNums, or add threads or members.",
    find_invisible_time,
    files=("client_log", "consumerStatus"),
)
