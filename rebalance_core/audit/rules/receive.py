"""SimpleConsumers that query a broker's queues too rarely."""

from __future__ import annotations

from collections.abc import Iterator

from rebalance_core.audit.group_snapshot import (
    Finding,
    GroupSnapshot,
    Rule,
    known_topics,
    plural,
)
from rebalance_core.audit.topic_readers import is_proxied
from rebalance_core.audit.topic_settings import configs, subscribed_topics
from rebalance_core.model.group_settings import PUSH
from rebalance_core.model.times import MINUTE_MS, SECOND_MS
from rebalance_core.model.verdicts import INFO
from rebalance_core.protocol.receive_waits import MAX_AWAIT_MS, NEARLY_ALL, ReceiveWait
from rebalance_core.protocol.routes import DEFAULT_PERM, PERM_READ

LONG_MS = MINUTE_MS
"""Reports mention delays of half a minute to two minutes (rocketmq#9145)."""


def find_starving(group: GroupSnapshot) -> Iterator[Finding]:
    """Yield a finding for each topic, about the broker whose messages wait longest."""
    receivers = [row for row in group.members if is_proxied(row)]
    if group.settings.get("consumer_type", PUSH) == PUSH or not receivers:
        return
    for topic in subscribed_topics(group):
        queues = _readable(group, topic)
        clients = {row["client_id"] for row in receivers if topic in known_topics(row)}
        topics = min(
            (len(known_topics(row)) for row in receivers if topic in known_topics(row)), default=0
        )
        if not queues or not clients:
            continue
        broker = min(queues, key=lambda name: (queues[name], name))
        own, total = queues[broker], sum(queues.values())
        wait = ReceiveWait(own, total - own, len(clients), topics)
        if wait.within_ms(NEARLY_ALL) >= LONG_MS:
            yield _starving(topic, broker, len(queues), wait)


def _readable(group: GroupSnapshot, topic: str) -> dict[str, int]:
    """Return the topic's readable queues on each broker that is up."""
    found: dict[str, int] = {}
    for row in configs(group, topic):
        broker, perm = row["broker_name"], row["perm"]
        readable = (DEFAULT_PERM if perm is None else perm) & PERM_READ
        if broker is not None and readable and broker not in group.run.down:
            found[broker] = row["read_queue_nums"] or 0
    return {broker: queues for broker, queues in found.items() if queues}


def _starving(topic: str, broker: str, brokers: int, wait: ReceiveWait) -> Finding:
    longest_s = wait.longest_ms() // SECOND_MS
    within_s = wait.within_ms(NEARLY_ALL) // SECOND_MS
    queues = wait.own + wait.others
    of_topics = f" and {wait.topics} topics each" if wait.topics > 1 else ""
    return Finding(
        f"A message of {topic} at {broker} waits up to {longest_s} s (99 of 100 at most "
        f"{within_s} s) while no messages arrive elsewhere: a SimpleConsumer queries one broker "
        f"per call, going through the queues of the route; here {plural(wait.clients, 'client')} "
        f"with one call at a time{of_topics} cover {plural(queues, 'queue')} of "
        f"{plural(brokers, 'broker')}.",
        {
            "clients": str(wait.clients),
            "queues": str(queues),
            "queues_of_the_broker": str(wait.own),
            "empty_calls": str(wait.empty_calls),
            "longest_s": str(longest_s),
            "await_s": str(MAX_AWAIT_MS // SECOND_MS),
        },
        topic=topic,
        broker_name=broker,
    )


STARVES = Rule(
    "RECEIVE_STARVES",
    INFO,
    "SimpleConsumers with one receive at a time return to a broker so rarely that its messages "
    "wait a minute or longer, because each empty receive waits at another broker. INFO, because no "
    "file shows how many receives a client has in flight.",
    "consumer_groups (consumer_type), memberships, cluster_events (TOPIC_CONFIG)",
    "Use more concurrent receives (threads or receiveAsync; with one more than the queues on other "
    "brokers no message waits), a shorter awaitDuration (at least 5 s), or a PushConsumer, which "
    "queries all brokers at all times.",
    find_starving,
    state=True,
)
