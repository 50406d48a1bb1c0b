"""Groups that continue from their old position after a reset."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rebalance_core.audit.dumps import number, queue_of
from rebalance_core.audit.group_snapshot import (
    Finding,
    GroupSnapshot,
    Rule,
    grouped,
    listed,
    plural,
    queue_names,
)
from rebalance_core.audit.progress import STALE_STORE_MS
from rebalance_core.audit.subjects import EVENTS
from rebalance_core.audit.topic_readers import readers
from rebalance_core.model.queue import MessageQueue
from rebalance_core.model.times import MINUTE_MS, SECOND_MS, utc
from rebalance_core.model.verdicts import INFO, WARNING

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import (
        CommittedOffsetsRow,
        OffsetResetFact,
        ResetAskedFact,
    )
from rebalance_core.audit.rules.offset_rollback import commits_of

RESET_TAKES_MS = 5 * SECOND_MS
"""A broker that keeps a reset logs it within the same second."""


@dataclass(frozen=True, slots=True)
class Reset:
    """A reset of a queue that had no effect.

    Attributes:
        at_ms: when the broker accepted it; seen_ms: time of the commit that shows that it had no
            effect.
        before: the commit before it; asked: the requested offset; after: the commit that was seen.
        kept_ms: when a later reset of the queue took effect; None: none did.
    """

    queue: MessageQueue
    at_ms: int
    seen_ms: int
    before: int
    asked: int
    after: int
    kept_ms: int | None = None

    @property
    def is_sure(self) -> bool:
        """False if the client that kept it may have read up to there again since."""
        return self.asked > self.before


def find_not_kept(group: GroupSnapshot) -> Iterator[Finding]:
    """Yield a finding for each topic and severity of resets that no later reset made up for."""
    alike = grouped(
        _not_kept(group),
        lambda reset: (reset.queue.topic, reset.is_sure, reset.kept_ms is not None),
    )
    for (topic, sure, _), resets in sorted(alike.items()):
        kept = [reset.kept_ms for reset in resets if reset.kept_ms is not None]
        first = resets[0]
        names = queue_names((reset.queue.broker_name, reset.queue.queue_id) for reset in resets)
        may = "" if sure else ", unless it consumed them again meanwhile"
        yield Finding(
            f"The offsets of {plural(len(resets), 'queue')} of {topic} ({names}) were reset at "
            f"{utc(first.at_ms)}, yet the group continued from its old position: most from "
            f"{first.before}, set to {first.asked}, committed {first.after} at "
            f"{utc(first.seen_ms)}{may}.",
            {"queues": names, "before": first.before, "set_to": first.asked, "after": first.after},
            severity=WARNING if sure else INFO,
            topic=topic,
            broker_name=first.queue.broker_name if len(resets) == 1 else None,
            queue_id=first.queue.queue_id if len(resets) == 1 else None,
            first_ms=min(reset.at_ms for reset in resets),
            last_ms=max(kept or [reset.seen_ms for reset in resets]),
            ended_by="a later reset took effect" if kept else "",
        )


def find_without_effect(group: GroupSnapshot) -> Iterator[Finding]:
    """Yield the findings of `find_not_kept`, and one for each topic with resets that no client
    took.

    A broker that does not keep resets (useServerSideResetOffset=false, the default to 5.1) sends
    them to the clients that it knows. The channels of gRPC clients drop the request
    (``ProxyChannel.writeAndFlush``).
    """
    yield from find_not_kept(group)
    if group.run.proxies:
        return  # the broker knows no client behind a separate proxy: mqadmin commits instead
    left = grouped(
        (fact for fact in group.facts["RESET_ASKED"] if not _kept_by_broker(group, fact)),
        lambda fact: fact["topic"],
    )
    for topic, facts in sorted(left.items()):
        facts = [fact for fact in facts if _only_grpc(group, topic, fact["first_ms"])]
        if facts:
            yield _dropped(group, topic, facts)


def _kept_by_broker(group: GroupSnapshot, asked: ResetAskedFact) -> bool:
    return any(
        fact["topic"] == asked["topic"]
        and fact["broker_name"] == asked["broker_name"]
        and abs(fact["first_ms"] - asked["first_ms"]) <= RESET_TAKES_MS
        for fact in group.facts["OFFSET_RESET"]
    )


def _only_grpc(group: GroupSnapshot, topic: str, at_ms: int) -> bool:
    """Return True if only gRPC clients read the topic at that time."""
    then = readers(group, topic, at_ms)
    return bool(then.proxied) and not (then.poppers or then.pullers)


def _dropped(group: GroupSnapshot, topic: str, facts: list[ResetAskedFact]) -> Finding:
    last_ms = facts[-1]["first_ms"]
    kept = [
        fact["first_ms"]
        for fact in group.facts["OFFSET_RESET"]
        if fact["topic"] == topic and fact["first_ms"] > last_ms
    ]
    brokers = sorted({fact["broker_name"] for fact in facts})
    return Finding(
        f"A reset of {topic} at {utc(last_ms)} had no effect: {listed(brokers, 3)} left it to the "
        "clients (useServerSideResetOffset=false), and gRPC clients ignore it.",
        {"brokers": listed(brokers), "reason": "left to gRPC clients"},
        topic=topic,
        broker_name=brokers[0] if len(brokers) == 1 else None,
        first_ms=facts[0]["first_ms"],
        last_ms=max(kept) if kept else last_ms,
        ended_by="a later reset took effect" if kept else "",
        remedy="Set useServerSideResetOffset=true on the brokers (the default from 5.2 on) and "
        "reset again, or stop all members of the group, reset, and start them.",
    )


def _not_kept(group: GroupSnapshot) -> list[Reset]:
    """Return the last reset of each queue that a commit contradicts, the widest first."""
    asked = grouped(group.facts["OFFSET_RESET"], queue_of)
    commits = commits_of(group)
    resets: dict[MessageQueue, Reset] = {}
    for queue, facts in asked.items():
        ends = [fact["first_ms"] for fact in facts[1:]]
        for fact, until_ms in zip(facts, [*ends, None], strict=True):
            of_queue = commits.get(queue, [])
            reset = _contradicted(queue, fact, until_ms, of_queue)
            if reset is not None:
                resets[queue] = reset
            elif queue in resets and (seen := _looks_after(fact, until_ms, of_queue)):
                resets[queue] = replace(resets[queue], kept_ms=seen[0]["observed_ms"])
    return sorted(
        resets.values(), key=lambda reset: (-abs(reset.asked - reset.before), reset.queue)
    )


def _looks_after(
    fact: OffsetResetFact, until_ms: int | None, commits: list[CommittedOffsetsRow]
) -> list[CommittedOffsetsRow]:
    """Return the broker's stored offsets after a reset, up to the next reset.

    Clients' log lines do not count as observations: a broker refuses their commits until they have
    seen a reset. A store may be older than it is.
    """
    return [
        row
        for row in commits
        if row["client_id"] is None
        and row["observed_ms"] > fact["first_ms"] + SECOND_MS + STALE_STORE_MS
        and (until_ms is None or row["observed_ms"] < until_ms)
    ]


def _contradicted(
    queue: MessageQueue,
    fact: OffsetResetFact,
    until_ms: int | None,
    commits: list[CommittedOffsetsRow],
) -> Reset | None:
    """Return the reset if the broker's first copy after it shows that it did not last."""
    at_ms, to = fact["first_ms"], number(fact["details"].get("offset"))
    earlier = [row for row in commits if row["observed_ms"] < at_ms]
    later = _looks_after(fact, until_ms, commits)
    if not earlier or not later:
        return None
    before, seen = earlier[-1]["committed_offset"], later[0]
    after, seen_ms = seen["committed_offset"], seen["observed_ms"]
    skipped = to > before and after < to
    went_on = to < before <= after and seen_ms <= at_ms + MINUTE_MS
    return Reset(queue, at_ms, seen_ms, before, to, after) if skipped or went_on else None


NOT_KEPT = Rule(
    "RESET_NOT_KEPT",
    WARNING,
    "An offset reset had no effect: either the broker left it to gRPC clients, which ignore it, "
    "or the broker accepted it (Reset offset) but later commits are below the offset that the "
    "group was to skip to. INFO if the group was to go back and an observation within a minute "
    "shows it at its old offset: it may have consumed those messages again.",
    "facts OFFSET_RESET, RESET_ASKED, committed_offsets",
    "Stop all members of the group, reset again (mqadmin resetOffsetByTime), check with "
    "consumerProgress, and start them. Clients other than Java, and Java clients before 5.1, may "
    "overwrite a reset with offsets they hold in memory.",
    find_without_effect,
    files=("consumer_offset_json",),
    reads=(EVENTS,),
)
