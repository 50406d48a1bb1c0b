"""Topics that members pop from brokers: who ignores the mode, invisible times, retry topics."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypedDict

from rebalance_core.audit import offsets, stretches, subscriptions
from rebalance_core.audit.dumps import flag, lasts, number
from rebalance_core.audit.group_snapshot import (
    Finding,
    GroupSnapshot,
    Rule,
    grouped,
    known_topics,
    lasting,
    listed,
    plural,
)
from rebalance_core.audit.offsets import Offsets
from rebalance_core.audit.recovery import Recovery, recovery, went_after
from rebalance_core.audit.stretches import Span
from rebalance_core.audit.subjects import MEMBERS, TOPICS
from rebalance_core.audit.topic_readers import (
    TopicReaders,
    gave_up_asking,
    is_popped,
    readers,
    request_mode,
    version_of,
)
from rebalance_core.audit.topic_settings import configs, subscribed_topics
from rebalance_core.model.clients import is_java
from rebalance_core.model.group_settings import BROADCASTING, BROKER_REBALANCE, PUSH
from rebalance_core.model.queue import pop_retry_topics
from rebalance_core.model.times import SECOND_MS, utc
from rebalance_core.model.verdicts import ERROR, INFO, WARNING
from rebalance_core.model.versions import parse_version
from rebalance_core.protocol.query_assignment import QUERY_ASSIGNMENT
from rebalance_core.protocol.settling_windows import OWN_PASS_MS
from rebalance_core.timing.timer_periods import MIN_INTERVAL

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import (
        ConsumeRateFact,
        MembershipsRow,
        MissingRouteFact,
        PopQueueFact,
        PopSettingsFact,
        PopTimedOutFact,
    )

# POP_IGNORED: the request mode of a topic is POP, and no member pops it.


def find_ignored_mode(group: GroupSnapshot) -> Iterator[Finding]:
    """Yield a finding for each topic at the end; POP_MIXED_WITH_PULL covers popped topics."""
    last = group.last_epoch
    if last is None or not stretches.has_settled(group, last["epoch"]):
        return
    for topic in subscribed_topics(group):
        mode = request_mode(group, topic, group.run.end_ms)
        both = readers(group, topic)
        if mode is None or not is_popped(group, topic, group.run.end_ms) or both.sharers:
            continue
        if group.run.end_ms <= mode["event_ms"] + OWN_PASS_MS:
            continue
        members = [row for row in group.members if topic in known_topics(row)]
        reasons: dict[Reason, set[str]] = {}
        by_name: dict[str, set[str]] = {}
        for row in members:
            reason = _reason(group, topic, row)
            reasons.setdefault(reason, set()).add(row["client_id"])
            by_name.setdefault(reason.name, set()).add(row["client_id"])
        why = listed(f"{why.words} ({listed(sorted(ids), 3)})" for why, ids in reasons.items())
        yield Finding(
            f"The request mode of {topic} is {mode['detail']}, and it has no effect: {why}. "
            "Members divide the queues as if it were not set.",
            {
                "mode": mode["detail"],
                **{name: listed(sorted(ids)) for name, ids in by_name.items()},
            },
            topic=topic,
            first_ms=max(mode["event_ms"], min(row["from_ms"] for row in members)),
        )


class Reason(NamedTuple):
    """Why a member does not ask a broker: its name in the evidence, and the summary's words."""

    name: str
    words: str


def _reason(group: GroupSnapshot, topic: str, member: MembershipsRow) -> Reason:
    """Return why the member does not ask a broker (rocketmq.md §2.8)."""
    if group.settings.get("ordered"):
        return Reason("orderly_listener", "an orderly listener pulls")
    if member["message_model"] == BROADCASTING:
        return Reason("broadcasting", "broadcasting members read everything")
    if (group.settings.get("consumer_type") or PUSH) != PUSH:
        return Reason("not_a_push_consumer", "only push consumers can pop")
    if parse_version(version_of(member)) < QUERY_ASSIGNMENT:
        of = "" if is_java(member.get("language")) else f"{member['language']} "
        words = f"{of}client version {member['version']} does not support POP"
        return Reason("version_without_pop", words)
    if member["client_id"] in gave_up_asking(group, topic):
        return Reason("gave_up_asking", "the member gave up asking")
    if member["rebalance_mode"] != BROKER_REBALANCE:
        return Reason("client_rebalance", "clientRebalance = true, the default")
    return Reason("does_not_ask", "the member does not ask")


IGNORED_MODE = Rule(
    "POP_IGNORED",
    WARNING,
    "A topic's request mode is POP and no member pops it: members have an orderly listener, "
    "clientRebalance = true (the client's default), or a client before 5.0. No log records this.",
    "cluster_events (REQUEST_MODE), memberships, consumer_groups (ordered)",
    "If POP is intended, set clientRebalance = false in every member (orderly listeners cannot "
    "pop); otherwise set the mode back to PULL (mqadmin setConsumeMode).",
    find_ignored_mode,
    reads=(TOPICS, MEMBERS),
)


# POP_MIXED_WITH_PULL: some members pop a topic while others pull queues of it.


class Taker(TypedDict):
    """A stretch in which a client takes messages: it pulls them, or else pops."""

    pulls: bool
    from_epoch: int
    to_epoch: int | None
    from_ms: int
    to_ms: int | None


def find_popped_and_pulled(group: GroupSnapshot) -> Iterator[Finding]:
    """Yield a finding for each topic, at the end or for the longest time (rocketmq.md §14)."""
    for topic in sorted({row["topic"] for row in group.tables["pop_reach"]}):
        spans = [
            span
            for span in stretches.mixed_spans(_takers(group, topic), lambda row: row["pulls"])
            if stretches.is_persistent(group, span)
        ]
        if spans:
            yield _popped_and_pulled_finding(
                group, topic, max(spans, key=lambda span: _end_ms(group, span))
            )


def _takers(group: GroupSnapshot, topic: str) -> list[Taker]:
    """Return which clients take messages of the shared topic, and when."""
    rows: list[Taker] = []
    for row in group.tables["pop_reach"]:
        if row["topic"] == topic:
            pulls = row["client_id"] in readers(group, topic, row["from_ms"]).pullers
            rows.append(
                {
                    "pulls": pulls,
                    "from_epoch": row["from_epoch"],
                    "to_epoch": row["to_epoch"],
                    "from_ms": row["from_ms"],
                    "to_ms": row["to_ms"],
                }
            )
    return rows


def _end_ms(group: GroupSnapshot, span: Span) -> tuple[int, int]:
    """Open stretches first, then the longest."""
    end = group.run.end_ms if span.last_ms is None else span.last_ms
    return int(span.last_ms is None), end - span.first_ms


def _popped_and_pulled_finding(group: GroupSnapshot, topic: str, span: Span) -> Finding:
    both = _sides_in(group, topic, span)
    over = span.last_ms is not None
    until = f" for {lasting(span.last_ms - span.first_ms)}" if span.last_ms is not None else ""
    verb = "popped" if over else "pop"
    return Finding(
        f"{plural(len(both.sharers), 'member')} ({listed(both.sharers, 3)}) {verb} {topic} while "
        f"{listed(both.pullers, 3)} {'pulled' if over else 'pull'} a share of its queues, since "
        f"{utc(span.first_ms)}{until}: both sides commit to the same offsets, so messages "
        f"{'were' if over else 'are'} consumed twice.",
        _sides(both),
        topic=topic,
        client_id=both.pullers[0] if len(both.pullers) == 1 else None,
        first_ms=span.first_ms,
        last_ms=span.last_ms,
    )


def _sides_in(group: GroupSnapshot, topic: str, span: Span) -> TopicReaders:
    """Return all clients that read the topic in the stretch."""
    end_ms = group.run.end_ms if span.last_ms is None else span.last_ms
    moments = {span.first_ms} | {
        row["from_ms"] for row in group.epochs if span.first_ms <= row["from_ms"] < end_ms
    }
    then = [readers(group, topic, at_ms) for at_ms in sorted(moments)]
    return TopicReaders(
        *(
            tuple(
                sorted(
                    {client_id for readers_at in then for client_id in getattr(readers_at, name)}
                )
            )
            for name in ("poppers", "proxied", "pullers")
        )
    )


def _sides(both: TopicReaders) -> dict[str, str]:
    return {
        "pop": listed(both.poppers),
        "behind_a_proxy": listed(both.proxied),
        "pull": listed(both.pullers),
    }


POPPED_AND_PULLED = Rule(
    "POP_MIXED_WITH_PULL",
    ERROR,
    "Some members pop a topic (request mode POP, or behind a proxy) while others pull a share of "
    "its queues, so messages are consumed twice. clientRebalance = true, the default, silently "
    "ignores the mode.",
    "pop_reach, memberships, cluster_events (REQUEST_MODE)",
    "Set clientRebalance = false in all members and restart those that stopped asking "
    "(GAVE_UP_ASKING), or set the mode back to PULL (mqadmin setConsumeMode). Use separate groups "
    "for clients behind proxies and clients that pull.",
    find_popped_and_pulled,
    reads=(TOPICS, MEMBERS),
    state=True,
)


# INVISIBLE_TIME_TOO_SHORT: popped messages time out before the listener gets to them.

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
        """Return when the last of those that wait will be consumed."""
        return self.waiting * self.consume_rt_ms / self.threads

    def __str__(self) -> str:
        """Return a sentence without its full stop."""
        return (
            f"{self.client_id} has {self.waiting} messages waiting, which take "
            f"{self.needed_ms / SECOND_MS:.0f} s at {self.consume_rt_ms:g} ms each and "
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
    """Return by topic the slowest client of those that exceed their time in their newest dump."""
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


# MISSING_POP_RETRY_TOPIC: members that ask the broker pass once a second for ever.


def find_missing_pop_retry_topic(group: GroupSnapshot) -> Iterator[Finding]:
    """Yield a finding for each topic whose pop retry topic was missing for long (rocketmq.md §14).

    Members before 5.2 go on with a pass every 20 s.
    """
    restless = [
        row for row in group.tables["memberships"] if parse_version(version_of(row)) >= MIN_INTERVAL
    ]
    topics = {topic for row in restless for topic in known_topics(row)}
    for topic in sorted(topics):
        names = pop_retry_topics(group.consumer_group, topic)
        facts = [fact for fact in group.facts["MISSING_ROUTE"] if fact["topic"] in names]
        if any(lasts(fact) for fact in facts):
            yield _missing_pop_retry_topic_finding(group, topic, facts)


def _missing_pop_retry_topic_finding(
    group: GroupSnapshot, topic: str, facts: list[MissingRouteFact]
) -> Finding:
    name = facts[0]["topic"]
    first, last = facts[0]["first_ms"], max(fact["last_ms"] for fact in facts)
    over = _now_there(group, topic, name, last) or recovery(group, facts)
    logs = sorted({fact["details"].get("log", "") for fact in facts} - {""})
    times = sum(fact["times"] for fact in facts)
    return Finding(
        f"{name} did not exist from {utc(first)} for {lasting(last - first)}: members that ask "
        f"the broker for {topic} never balance and run a pass every second (seen {times} times in "
        f"the log of {listed(logs, 3) or 'a client'}).",
        {"missing": name, "seen_in": listed(logs), "times": str(times)},
        topic=topic,
        first_ms=first,
        last_ms=over.at_ms if over else None,
        ended_by=over.shown_by if over else "",
    )


def _now_there(group: GroupSnapshot, topic: str, name: str, last_ms: int) -> Recovery | None:
    """Return what shows that the topic exists at the end, or that no member asks for it any
    more.
    """
    read = any(row["topic"] == name for row in group.tables["committed_offsets"])
    if read or configs(group, name):
        return Recovery(last_ms, f"{name} exists now")
    if not subscriptions.subscribers(group, topic):
        return Recovery(last_ms, f"no member subscribes to {topic} any more")
    return None


MISSING_POP_RETRY_TOPIC = Rule(
    "MISSING_POP_RETRY_TOPIC",
    WARNING,
    "A member with clientRebalance = false whose topic is in PULL mode also reads the pop retry "
    "topic. While that topic is missing, its pass fails and repeats every second (from 5.2 on).",
    "MISSING_ROUTE, memberships",
    "Create the named topic (mqadmin updateTopic, one queue per broker), set the mode to POP, or "
    "set clientRebalance = true in clients that do not pop.",
    find_missing_pop_retry_topic,
    files=("client_log",),
    state=True,
)
