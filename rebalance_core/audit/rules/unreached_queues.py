"""POP_UNREACHED_QUEUE: queues of a shared topic that no member may take messages from."""

from __future__ import annotations

from collections.abc import Iterator

from rebalance_core.audit.case import Finding, GroupCase, Row, Rule, listed, plural, queue_names
from rebalance_core.audit.dumps import readable_queues
from rebalance_core.audit.orphans import Offsets, has_settled, messages
from rebalance_core.audit.subscriptions import reach, readers, request_mode, shared_topics
from rebalance_core.model.group_settings import BROKER_STRATEGIES
from rebalance_core.model.queue import MessageQueue
from rebalance_core.model.verdicts import ERROR
from rebalance_core.strategies.pop import WHOLE_BROKER


def find(case: GroupCase) -> Iterator[Finding]:
    """One finding a topic with such queues at the end, once that has settled."""
    for topic, metrics in shared_topics(case).items():
        if metrics["unreached"]:
            since = _since(case, topic)
            if has_settled(case, since["epoch"]):
                yield _finding(case, topic, metrics["unreached"], _epoch_ms(case, since))


def _since(case: GroupCase, topic: str) -> Row:
    """The row of pop_metrics with which the last stretch of unreached queues began."""
    rows = [row for row in case.rows("pop_metrics") if row["topic"] == topic]
    rows.sort(key=lambda row: row["epoch"], reverse=True)
    since = rows[0]
    for row in rows[1:]:
        if not row["unreached"] or row["epoch"] != since["epoch"] - 1:
            break
        since = row
    return since


def _epoch_ms(case: GroupCase, metrics: Row) -> int:
    return next(int(row["from_ms"]) for row in case.epochs if row["epoch"] == metrics["epoch"])


def _finding(case: GroupCase, topic: str, unreached: int, since_ms: int) -> Finding:
    queues = _queues(case, topic, unreached)
    names = queue_names((queue.broker_name, queue.queue_id) for queue in queues)
    behind = Offsets(case).behind(queues)
    mode = request_mode(case, topic, case.run.end_ms)
    foreign = sorted(
        {row["strategy"] for row in case.members} - set(BROKER_STRATEGIES)
        if readers(case, topic).poppers
        else ()
    )
    why = f"; brokers do not know the strategy {listed(foreign, 3)}" if foreign else ""
    return Finding(
        f"No member may take messages of {plural(unreached, 'queue')} of {topic}"
        f"{f' ({names})' if names else ''}: {messages(behind)} behind{why}.",
        {
            "queues": names or "unknown",
            "mode": "PULL" if mode is None else mode["detail"],
            "behind": "unknown" if behind is None else str(behind),
        },
        topic=topic,
        first_ms=since_ms,
    )


def _queues(case: GroupCase, topic: str, unreached: int) -> list[MessageQueue]:
    """Which queues they are; none where the topic's configuration at the end does not tell."""
    reached = {
        (row["broker_name"], row["queue_id"]) for row in reach(case) if row["topic"] == topic
    }
    queues = [
        MessageQueue(topic, broker, queue_id)
        for broker, queue_id in sorted(readable_queues(case, topic) - reached)
        if (broker, WHOLE_BROKER) not in reached
    ]
    return queues if len(queues) == unreached else []


RULE = Rule(
    "POP_UNREACHED_QUEUE",
    ERROR,
    "Members share the queues of a topic, but no member may take messages of some of them: these "
    "wait. A broker that is asked by a strategy other than AVG and AVG_BY_CIRCLE answers nothing; "
    "a member that counts and does not subscribe the topic leaves its part to too few others.",
    "pop_metrics (unreached), pop_reach, memberships; offsets for the backlog",
    "Use AVG or AVG_BY_CIRCLE in the members that ask the broker, and the same subscription in "
    "all; or let everybody pop everything (mqadmin setConsumeMode -q 0).",
    find,
)
