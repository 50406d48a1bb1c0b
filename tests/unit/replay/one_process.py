"""A process named c1 with topic T (four queues on broker a), and the world around it."""

from typing import Any

from rebalance_core.client.broker_answers import BrokerAnswers, QueueAnswers
from rebalance_core.client.pass_record import PassView
from rebalance_core.client.process import ClientProcess, start_process
from rebalance_core.client.rebalance_pass import run_pass
from rebalance_core.model.group_settings import GroupSettings
from rebalance_core.model.queue import MessageQueue
from rebalance_core.strategies import make_strategy

V4, V51, V5, V54, V55 = "4.9.7", "5.1.4", "5.3.3", "5.4.0", "5.5.0"
ALL = (V4, V51, V5, V54, V55)
T = tuple(MessageQueue("T", "a", i) for i in range(4))
RETRY = (MessageQueue("%RETRY%G", "a", 0),)


def process(
    version: str = V5, *, config: list[str] | None = None, **settings: Any
) -> ClientProcess:
    strategy = make_strategy("CONFIG", {"config": config}) if config else make_strategy("AVG")
    return start_process("c1", GroupSettings(client_version=version, **settings), strategy)


def brokers(*queues: MessageQueue, **state: Any) -> BrokerAnswers:
    """Nothing committed, max 100, timestamp search 50."""
    answers = {q: QueueAnswers(None, 100, 50) for q in (*T, *RETRY, *queues)}
    return BrokerAnswers(answers, **state)


def view(members: tuple[str, ...] | None = ("c1",), **queues: Any) -> PassView:
    return PassView(queues or {"T": T}, dict.fromkeys(queues or ["T"], members))


def holding(version: str, *queues: MessageQueue, **settings: Any) -> ClientProcess:
    """A process that owns the queues and consumed up to offset 70."""
    client = process(version, **settings)
    run_pass(client, view(T=queues), brokers())
    for queue in queues:
        client.store.update(queue, 70)
    return client
