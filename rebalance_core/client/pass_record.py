"""A client's view at the start of a pass, and the pass's actions."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rebalance_core.model.queue import MessageQueue


@dataclass(frozen=True, slots=True)
class PassView:
    """A client's own view at the start of a pass, which other clients need not share.

    Attributes:
        queues: the queues in the client's route for each subscribed topic, in the order in which
            the pass handles topics; None while it knows no route.
        members: for each subscribed topic, the client ids as the sampled broker returned them
            (unsorted, duplicates kept), or None if the query failed.
    """

    queues: Mapping[str, tuple[MessageQueue, ...] | None]
    members: Mapping[str, tuple[str, ...] | None]


@dataclass(frozen=True, slots=True)
class QueueChange:
    """Arguments of ``messageQueueChanged``: the size of mqAll and the set of the client's own
    queues.
    """

    mq_all_size: int
    mq_divided: frozenset[MessageQueue]


class Step(NamedTuple):
    """A step of a pass.

    Attributes:
        method: the upstream method.
        what: the step within it; `client.one_pass` has a sentence for each.
        topic: its topic; None for all topics.
        queue: its queue; None if it concerns no single queue.
        values: the numbers and names in the sentence.
    """

    method: str
    what: str
    topic: str | None
    queue: MessageQueue | None
    values: Mapping[str, object]


@dataclass(slots=True)
class PassRecord:
    """The steps of a pass, in order.

    Attributes:
        added: the start offset of each queue added.
        removed: queues that were dropped and removed.
        removal_failed: dropped queues that remain as zombies until a later pass removes them.
        truncated: queues, including zombies, of topics no longer subscribed to.
        persisted: the last offset committed to a broker, per queue.
        locks: the order locks requested, and whether they were granted.
        delayed_unlocks: the delay in ms of each unlock left to a timer.
        changed: the arguments for each topic whose pass called ``messageQueueChanged``.
        heartbeats: the number of heartbeat rounds sent.
        rebalance_later_ms: the delays of extra passes requested.
        first_pull_delay_ms: the delay of the first pull of the added queues; None if there is no
            pull.
        answered: topics of which the client has a share, or which it reads in full.
        balanced: the return value of doRebalance; None for 4.9, which returns nothing.
        steps: all steps in order if the caller asks for them, otherwise None.
    """

    added: dict[MessageQueue, int] = field(default_factory=dict)
    removed: list[MessageQueue] = field(default_factory=list)
    removal_failed: list[MessageQueue] = field(default_factory=list)
    truncated: list[MessageQueue] = field(default_factory=list)
    persisted: dict[MessageQueue, int] = field(default_factory=dict)
    locks: list[tuple[MessageQueue, bool]] = field(default_factory=list)
    delayed_unlocks: dict[MessageQueue, int] = field(default_factory=dict)
    changed: dict[str, QueueChange] = field(default_factory=dict)
    heartbeats: int = 0
    rebalance_later_ms: list[int] = field(default_factory=list)
    first_pull_delay_ms: int | None = None
    answered: set[str] = field(default_factory=set, compare=False)
    balanced: bool | None = None
    steps: list[Step] | None = None

    def note(
        self, method: str, what: str, about: str | MessageQueue | None = None, **values: Any
    ) -> None:
        """Record a step about a topic or a queue."""
        if self.steps is not None:
            topic = about.topic if isinstance(about, MessageQueue) else about
            queue = about if isinstance(about, MessageQueue) else None
            self.steps.append(Step(method, what, topic, queue, values))


UPDATE_TABLE, REMOVE = "updateProcessQueueTableInRebalance", "removeUnnecessaryMessageQueue"
TRUNCATE, CHANGED = "truncateMessageQueueNotMyTopic", "messageQueueChanged"
BY_TOPIC, PULL_FROM_WHERE = "rebalanceByTopic", "computePullFromWhere"
DISPATCH, DO_REBALANCE = "dispatchPullRequest", "doRebalance"
"""Methods of RebalanceImpl and its consumers, as `Step.method` names them."""
