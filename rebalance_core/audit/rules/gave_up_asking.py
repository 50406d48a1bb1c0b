"""Members that are configured to ask a broker but allocate a topic themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rebalance_core.audit.dumps import number
from rebalance_core.audit.group_snapshot import (
    Finding,
    GroupSnapshot,
    Rule,
    grouped,
    listed,
)
from rebalance_core.audit.topic_readers import gave_up_asking, is_popped
from rebalance_core.model.verdicts import INFO, WARNING

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import (
        GaveUpAskingFact,
    )


def find_gave_up_asking(group: GroupSnapshot) -> Iterator[Finding]:
    """Yield a finding for each topic that clients still allocate themselves, or that they query
    again.

    INFO if the broker's division would be the same.
    """
    members = {row["client_id"] for row in group.members}
    of_members = (fact for fact in group.facts["GAVE_UP_ASKING"] if fact["client_id"] in members)
    by_topic = grouped(of_members, lambda fact: fact["topic"])
    for topic, facts in sorted(by_topic.items()):
        alone = gave_up_asking(group, topic)
        shown = [fact for fact in facts if fact["client_id"] in alone] or facts
        clients = sorted({fact["client_id"] for fact in shown})
        last = None if alone else max(shown, key=_over_ms)
        popped = is_popped(group, topic, group.run.end_ms)
        single = len(clients) == 1
        does = f"divides {topic} itself" if single else f"divide {topic} themselves"
        others = "others pop it" if popped else "brokers divide it among members that ask"
        yield Finding(
            f"{listed(clients, 3)} {does}, though clientRebalance is false and {others}: no "
            "broker answered its first queries, and it does not ask again before a restart.",
            {"members": listed(clients)},
            severity=None if popped else INFO,
            topic=topic,
            client_id=clients[0] if single else None,
            first_ms=min(fact["first_ms"] for fact in shown),
            last_ms=None if last is None else _over_ms(last),
            ended_by="" if last is None else _asks_again(last),
        )


def _over_ms(fact: GaveUpAskingFact) -> int:
    return number(fact["details"].get("over_ms"))


def _asks_again(fact: GaveUpAskingFact) -> str:
    return f"{fact['client_id']} asks again ({fact['details'].get('over_by')})"


GAVE_UP_ASKING = Rule(
    "GAVE_UP_ASKING",
    WARNING,
    "A client up to 5.3.1 with clientRebalance = false received no answer to its first queries "
    "about a topic and divides it itself until it restarts: at once when the broker refuses, "
    "after 6 s when no broker answers.",
    "GAVE_UP_ASKING, memberships, cluster_events (REQUEST_MODE)",
    "Restart the named members while all brokers answer; clients from 5.3.2 on keep asking.",
    find_gave_up_asking,
    files=("client_log", "consumerStatus"),
    state=True,
)
