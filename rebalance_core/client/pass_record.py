"""A client's view at the start of a pass, and the pass's actions."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rebalance_core.model.queue import MessageQueue


@dataclass(frozen=True, slots=True)
class PassView:
    """A client's own view at the start of a pass; no other client need agree.

    Attributes:
        queues: per subscribed topic, in the order the pass takes them: the queues of the client's
            route, None while it knows no route.
        members: per subscribed topic: client ids as the sampled broker returned them (unsorted,
            duplicates kept), None when the query failed.
    """

    queues: Mapping[str, tuple[MessageQueue, ...] | None]
    members: Mapping[str, tuple[str, ...] | None]


@dataclass(frozen=True, slots=True)
class QueueChange:
    """Arguments of ``messageQueueChanged``: size of mqAll and the set of own queues."""

    mq_all_size: int
    mq_divided: frozenset[MessageQueue]


class Step(NamedTuple):
    """A step of a pass.

    Attributes:
        method: the upstream method.
        what: the step in it; `client.one_pass` has a sentence for each.
        topic: its topic; None: all topics.
        queue: its queue; None: no single queue.
        values: numbers and names for the sentence.
    """

    method: str
    what: str
    topic: str | None
    queue: MessageQueue | None
    values: Mapping[str, Any]


@dataclass(slots=True)
class PassRecord:
    """The steps of a pass, in the order it took them.

    Attributes:
        added: start offset of each queue added.
        removed: queues dropped and removed.
        removal_failed: queues dropped that stay, as zombies, until a later pass removes them.
        truncated: queues (zombies too) of topics no longer subscribed.
        persisted: last offset committed to a broker, per queue.
        locks: order locks asked for, and whether they were granted.
        delayed_unlocks: delay in ms of an unlock that a timer will do.
        changed: per topic whose pass called ``messageQueueChanged``.
        heartbeats: rounds of heartbeats sent.
        rebalance_later_ms: extra passes asked for.
        first_pull_delay_ms: delay of the first pull of the added queues; None where there is none.
        answered: topics in which the client has a share, or that it reads whole.
        balanced: what doRebalance returns; None for 4.9, which returns nothing.
        steps: all steps in order, where the caller asks for them; else None.
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
        """Note a step about a topic or a queue."""
        if self.steps is not None:
            topic = about.topic if isinstance(about, MessageQueue) else about
            queue = about if isinstance(about, MessageQueue) else None
            self.steps.append(Step(method, what, topic, queue, values))


UPDATE_TABLE, REMOVE = "updateProcessQueueTableInRebalance", "removeUnnecessaryMessageQueue"
TRUNCATE, CHANGED = "truncateMessageQueueNotMyTopic", "messageQueueChanged"
BY_TOPIC, PULL_FROM_WHERE = "rebalanceByTopic", "computePullFromWhere"
DISPATCH, DO_REBALANCE = "dispatchPullRequest", "doRebalance"
"""Methods of RebalanceImpl and its consumers, as `Step.method` names them."""
