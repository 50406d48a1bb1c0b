"""SimpleConsumers that query a broker's queues too rarely."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

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
from rebalance_core.protocol.receive_waits import (
    MAX_AWAIT_MS,
    NEARLY_ALL,
    GroupWait,
    ReceiveWait,
    Turns,
    group_wait,
)
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
        clients = {
            row["client_id"]: row["language"] for row in receivers if topic in known_topics(row)
        }
        topics = min(
            (len(known_topics(row)) for row in receivers if topic in known_topics(row)), default=0
        )
        if not queues or not clients:
            continue
        broker = min(queues, key=lambda name: (queues[name], name))
        wait = group_wait(queues, broker, clients, topics)
        if wait.within_ms(NEARLY_ALL) >= LONG_MS:
            yield _starving(topic, broker, queues, wait)


def _readable(group: GroupSnapshot, topic: str) -> dict[str, int]:
    """Return the topic's readable queues on each broker that is up."""
    found: dict[str, int] = {}
    for row in configs(group, topic):
        broker, perm = row["broker_name"], row["perm"]
        readable = (DEFAULT_PERM if perm is None else perm) & PERM_READ
        if broker is not None and readable and broker not in group.run.down:
            found[broker] = row["read_queue_nums"] or 0
    return {broker: queues for broker, queues in found.items() if queues}


def _starving(topic: str, broker: str, queues: Mapping[str, int], wait: GroupWait) -> Finding:
    longest_ms = wait.longest_ms()
    within_s = round(wait.within_ms(NEARLY_ALL) / SECOND_MS)
    of_topics = f" and {wait.topics} topics each" if wait.topics > 1 else ""
    total = sum(queues.values())
    evidence = {
        "clients": str(wait.clients),
        "queues": str(total),
        "queues_of_the_broker": str(queues[broker]),
        "turns": ", ".join(turns.name for turns in wait.turns),
        "within_s": str(within_s),
        "await_s": str(MAX_AWAIT_MS // SECOND_MS),
    }
    if longest_ms is None:
        how_long = f"at most {within_s} s in 99 of 100 cases (there is no upper bound)"
    else:
        longest_s = longest_ms // SECOND_MS
        how_long = f"up to {longest_s} s (99 of 100 at most {within_s} s)"
        evidence |= {"empty_calls": str(wait.empty_calls), "longest_s": str(longest_s)}
    return Finding(
        f"A message of {topic} at {broker} waits {how_long} while no messages arrive elsewhere "
        "and each receive takes all that wait: a SimpleConsumer queries one broker per call, "
        f"{_selections(queues, wait)}; here "
        f"{plural(wait.clients, 'client')} with one call at a time{of_topics} cover "
        f"{plural(total, 'queue')} of {plural(len(queues), 'broker')}.",
        evidence,
        topic=topic,
        broker_name=broker,
        remedy=BY_CHANCE if longest_ms is None else None,
    )


def _selections(queues: Mapping[str, int], wait: GroupWait) -> str:
    return " or ".join(_selection(queues, alike) for alike in wait.alike)


def _selection(queues: Mapping[str, int], wait: ReceiveWait) -> str:
    if wait.effective_turns is not Turns.IN_TURN:
        return f"selecting {wait.turns.value}"
    if wait.own + wait.others < sum(queues.values()):
        return "cycling through only queue 0 of each broker, as the Node.js client does"
    return "going through the queues of the route"


BY_CHANCE = (
    "Use more concurrent receives (threads or receiveAsync), a shorter awaitDuration (at least 5 "
    "s), a consumer of its own for each topic, or a PushConsumer, which queries all brokers at all "
    "times."
)
"""The remedy if no number of receives guarantees that every broker is queried."""

STARVES = Rule(
    "RECEIVE_STARVES",
    INFO,
    "SimpleConsumers with one receive at a time return to a broker so rarely that its messages "
    "wait a minute or longer, because each empty receive waits at another broker. INFO, because no "
    "file shows how many receives a client has in flight.",
    "consumer_groups (consumer_type), memberships, cluster_events (TOPIC_CONFIG)",
    "Use more concurrent receives (threads or receiveAsync; if they outnumber the queues on the "
    "other brokers, no message waits), a shorter awaitDuration (at least 5 s), or a PushConsumer, "
    "which queries all brokers at all times.",
    find_starving,
    state=True,
)
