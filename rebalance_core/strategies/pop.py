"""POP: the broker's allocation for consumers that pop messages (5.x)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from rebalance_core.model.errors import UsageError
from rebalance_core.model.group_settings import BROKER_STRATEGIES
from rebalance_core.model.queue import MessageQueue
from rebalance_core.model.versions import Version
from rebalance_core.strategies.averagely import Averagely
from rebalance_core.strategies.averagely_by_circle import AveragelyByCircle
from rebalance_core.strategies.formula import Formula, Question
from rebalance_core.strategies.parameters import Parameter, Params, escape, text, whole_number
from rebalance_core.strategies.spi import AllocationStrategy, is_java_blank, is_member

WHOLE_BROKER = -1  # the queue id for all queues of a broker
DEFAULT_POP_SHARE_QUEUE_NUM = -1  # BrokerConfig.popShareQueueNum


def pops_whole_brokers(pop_share_queue_num: int, members: int) -> bool:
    """Return True if all members pop every queue, regardless of who they are."""
    return pop_share_queue_num <= 0 or pop_share_queue_num >= members - 1


def allocate_for_pop(
    inner: AllocationStrategy,
    client_id: str,
    queues: Sequence[MessageQueue],
    client_ids: Sequence[str],
    pop_share_queue_num: int = DEFAULT_POP_SHARE_QUEUE_NUM,
) -> list[MessageQueue]:
    """Return ``QueryAssignmentProcessor.allocate4Pop``; entries may repeat. rocketmq.md §2.8.

    Args:
        inner: The broker's strategy for computing shares: AVG or AVG_BY_CIRCLE.
        client_id: The client that queries the broker.
        queues: The broker's readable queues of the topic, sorted.
        client_ids: All members, sorted, duplicates kept.
        pop_share_queue_num: The number of following members from whose shares a member also pops.

    Raises:
        AllocationError: The cases listed for `is_member`; never if all members get every broker.
    """
    if pops_whole_brokers(pop_share_queue_num, len(client_ids)):
        return [MessageQueue(q.topic, q.broker_name, WHOLE_BROKER) for q in queues]
    if len(client_ids) > len(queues):
        if not is_member(client_id, queues, client_ids, blank_is_empty=True):
            return []
        return [queues[client_ids.index(client_id) % len(queues)]]
    shares = inner.allocate(client_id, queues, client_ids)
    if client_id in client_ids:
        place = client_ids.index(client_id)
        for step in range(1, pop_share_queue_num + 1):
            neighbour = client_ids[(place + step) % len(client_ids)]
            shares += inner.allocate(neighbour, queues, client_ids)
    return shares


def allocate_all_for_pop(
    inner: AllocationStrategy,
    queues: Sequence[MessageQueue],
    client_ids: Sequence[str],
    pop_share_queue_num: int = DEFAULT_POP_SHARE_QUEUE_NUM,
) -> dict[str, list[MessageQueue]]:
    """Return `allocate_for_pop` for every distinct member, in the order of ``client_ids``.

    Raises:
        AllocationError: A member's allocation throws.
    """
    if not queues or any(map(is_java_blank, client_ids)):
        return {
            client_id: allocate_for_pop(inner, client_id, queues, client_ids, pop_share_queue_num)
            for client_id in dict.fromkeys(client_ids)
        }
    places: dict[str, int] = {}
    for place, client_id in enumerate(client_ids):
        places.setdefault(client_id, place)
    if pops_whole_brokers(pop_share_queue_num, len(client_ids)):
        whole = [MessageQueue(q.topic, q.broker_name, WHOLE_BROKER) for q in queues]
        return {client_id: list(whole) for client_id in places}
    if len(client_ids) > len(queues):
        return {client_id: [queues[place % len(queues)]] for client_id, place in places.items()}
    shares = inner.allocate_all(queues, client_ids)
    return {
        client_id: [
            queue
            for step in range(pop_share_queue_num + 1)
            for queue in shares[client_ids[(place + step) % len(client_ids)]]
        ]
        for client_id, place in places.items()
    }


def _inner(key: str, value: Any) -> AllocationStrategy:
    name = text(key, value)
    inner_strategies = {cls.NAME: cls() for cls in (Averagely, AveragelyByCircle)}
    if name not in BROKER_STRATEGIES:
        raise UsageError(
            f"POP: brokers do not know inner {name!r}; they know {', '.join(BROKER_STRATEGIES)}"
        )
    return inner_strategies[name]


@dataclass(frozen=True)
class Pop(AllocationStrategy):
    """`allocate_for_pop` as a strategy. Clients cannot use it: `parse_strategy` refuses its
    text.
    """

    NAME = "POP"
    PARAMETERS: ClassVar = {
        "inner": Parameter(_inner),
        "pop_share_queue_num": Parameter(whole_number),
    }

    inner: AllocationStrategy
    pop_share_queue_num: int = DEFAULT_POP_SHARE_QUEUE_NUM

    @classmethod
    def make(cls, params: Params, version: Version) -> "Pop":
        """Return the strategy, with AVG inside by default."""
        return cls(**{"inner": Averagely(), **params})

    def allocate(
        self, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        """Return `allocate_for_pop` with these settings."""
        return allocate_for_pop(self.inner, client_id, queues, client_ids, self.pop_share_queue_num)

    def allocate_all(
        self, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> dict[str, list[MessageQueue]]:
        """Return `allocate_all_for_pop` with these settings."""
        return allocate_all_for_pop(self.inner, queues, client_ids, self.pop_share_queue_num)

    def settings(self) -> list[tuple[str, str]]:
        """Return the (key, escaped value) pairs of the strategy text."""
        return [
            ("inner", escape(self.inner.name)),
            ("pop_share_queue_num", str(self.pop_share_queue_num)),
        ]


def pop_formula(
    inner: AllocationStrategy,
    queue: MessageQueue,
    queues: Sequence[MessageQueue],
    client_ids: Sequence[str],
    client_id: str,
    share: int,
) -> Formula:
    """Return the line of ``allocate4Pop`` through which a client pops a queue (rocketmq.md §2.8,
    rocketmq.md §14).

    Args:
        inner: the members' strategy: AVG or AVG_BY_CIRCLE.
        queue: a queue that the client pops.
        queues: mqAll.
        client_ids: cidAll.
        client_id: the popping client.
        share: the share number of the topic's request mode.
    """
    name = f"POP, {inner.name}"
    if pops_whole_brokers(share, len(client_ids)):
        return _everything(name, client_ids, client_id, share)
    if len(client_ids) > len(queues):
        return _one(name, Question(queue, queues, client_ids, client_id), share)
    index = client_ids.index(client_id)
    formula = inner.formula(Question(queue, queues, client_ids))
    steps = _steps_to(formula.entry, index, client_ids, share)
    place = "its own share" if steps == 0 else f"the share of [{formula.entry}] {formula.owner}"
    after = "" if steps == 0 else f", {steps} after its own place, [{index}]"
    head = (
        f"cidAll {len(client_ids)} <= mqAll {len(queues)}: its own share and those of the next "
        f"{share} of cidAll"
    )
    values = {**formula.values, "shareQueueNum": share, "clientIndex": index, "steps": steps}
    lines = (head, f"this queue is in {place}{after}", *formula.lines)
    return replace(formula, strategy=name, lines=lines, values=values)


def _everything(name: str, client_ids: Sequence[str], client_id: str, share: int) -> Formula:
    least = len(client_ids) - 1
    line = (
        f"share_queue_num <= 0, or >= cidAll - 1 = {least}: every client pops every readable "
        "broker whole"
    )
    values = {"cidAll": len(client_ids), "shareQueueNum": share}
    return Formula(name, (line,), values, client_ids.index(client_id), client_id)


def _one(name: str, asked: Question, share: int) -> Formula:
    index, size, members = asked.index_at(0), len(asked.queues), len(asked.client_ids)
    place = asked.queues.index(asked.queue)
    lines = (
        f"cidAll {members} > mqAll {size}: one queue each",
        f"index % mqAll = {index} % {size} = {index % size}; this queue is mqAll[{place}]",
    )
    values = {
        "index": index,
        "mqAll": size,
        "cidAll": members,
        "remainder": index % size,
        "queueIndex": place,
        "shareQueueNum": share,
    }
    return Formula(name, lines, values, index, asked.client_id)


def _steps_to(entry: int | None, index: int, client_ids: Sequence[str], most: int) -> int:
    """Return the distance in cidAll from the client to the id whose share contains the queue.

    An id at several positions in cidAll has the share of its first position at each of them.
    """
    for steps in range(most + 1):
        neighbour = client_ids[(index + steps) % len(client_ids)]
        if client_ids.index(neighbour) == entry:
            return steps
    raise ValueError("the client does not pop the queue")
