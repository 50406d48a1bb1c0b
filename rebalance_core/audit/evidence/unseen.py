"""Groups that read without a member in any file: most likely behind proxies."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from rebalance_core.audit.case import GroupCase
from rebalance_core.audit.evidence.configurations.topic_configs import is_system_group
from rebalance_core.audit.evidence.dumps import EMPTY_LIST, number
from rebalance_core.audit.evidence.queues import queue_of
from rebalance_core.model.queue import POP_RETRY_MARKS, MessageQueue, is_system_topic, retry_topic

STEPS = 2
"""One step forward may be an administrator's reset."""


@dataclass(frozen=True, slots=True)
class UnseenReading:
    """Offsets that advance with nobody there.

    Attributes:
        queues: those of which offsets advanced; first_ms: seen before, last_ms: after.
        steps: in how many steps those of one queue did.
        denied_by: brokers that said that no member is there.
        retry_topics: pop retry topics of the group that have offsets: it pops.
    """

    queues: tuple[MessageQueue, ...]
    first_ms: int
    last_ms: int
    steps: int
    denied_by: tuple[str, ...]
    retry_topics: tuple[str, ...]

    @property
    def is_sure(self) -> bool:
        """True if it is no single change of offsets by an administrator."""
        return self.steps >= STEPS or bool(self.retry_topics)


def unseen_reading(case: GroupCase) -> UnseenReading | None:
    """What of the group is read by nobody known; None: nothing, or members are known."""
    if case.rows("memberships") or case.rows("observed_members"):
        return None
    if is_system_group(case.consumer_group) or any(
        row["client_id"] is not None for row in case.rows("committed_offsets")
    ):
        return None
    seen = _offsets_over_time(case)
    steps = {
        queue: sum(after[1] > before[1] for before, after in pairwise(sorted(moments)))
        for queue, moments in seen.items()
    }
    advanced = sorted(queue for queue, count in steps.items() if count)
    if not advanced:
        return None
    moments = [ms for queue in advanced for ms, _ in seen[queue]]
    pop_retry = tuple(retry_topic(case.consumer_group) + mark for mark in POP_RETRY_MARKS)
    return UnseenReading(
        tuple(advanced),
        min(moments),
        max(moments),
        max(steps.values()),
        _denied_by(case),
        tuple(sorted({queue.topic for queue in seen if queue.topic.startswith(pop_retry)})),
    )


def _offsets_over_time(case: GroupCase) -> dict[MessageQueue, set[tuple[int, int]]]:
    """(when, committed offset) of each queue, by stores and by dumps."""
    seen: dict[MessageQueue, set[tuple[int, int]]] = {}
    for row in case.rows("committed_offsets"):
        seen.setdefault(queue_of(row), set()).add((row["observed_ms"], row["committed_offset"]))
    for fact in case.facts("QUEUE_PROGRESS"):
        offset = number(fact, "consumer_offset", 0)
        if offset > 0:  # 0 may mean none
            seen.setdefault(queue_of(fact), set()).add((fact["first_ms"], offset))
    return {queue: moments for queue, moments in seen.items() if not is_system_topic(queue.topic)}


def _denied_by(case: GroupCase) -> tuple[str, ...]:
    facts = [
        fact
        for fact in case.facts("GROUP_AT_BROKER")
        if fact["details"].get("members", "0") in EMPTY_LIST
    ]
    facts += case.facts("NOT_ONLINE")
    return tuple(sorted({fact["broker_name"] for fact in facts if fact["broker_name"]}))
