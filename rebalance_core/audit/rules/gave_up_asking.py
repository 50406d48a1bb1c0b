"""GAVE_UP_ASKING: members that are set to ask a broker divide a topic themselves."""

from __future__ import annotations

from collections.abc import Iterator

from rebalance_core.audit.case import Finding, GroupCase, Rule, listed
from rebalance_core.audit.subscriptions import gave_up_asking, is_popped
from rebalance_core.model.verdicts import INFO, WARNING


def find(case: GroupCase) -> Iterator[Finding]:
    """One finding a topic; for information where the broker's division would be the same."""
    facts = case.facts("GAVE_UP_ASKING")
    for topic in sorted({fact["topic"] for fact in facts}):
        clients = gave_up_asking(case, topic)
        if not clients:
            continue
        popped = is_popped(case, topic, case.run.end_ms)
        first = min(fact["first_ms"] for fact in facts
                    if fact["topic"] == topic and fact["client_id"] in clients)  # fmt: skip
        one = len(clients) == 1
        does = f"divides {topic} itself" if one else f"divide {topic} themselves"
        others = "others pop it" if popped else "brokers divide it for those that ask"
        yield Finding(
            f"{listed(sorted(clients), 3)} {does}, though clientRebalance is false and {others}: "
            "no broker answered the first questions, and there are no more before a restart.",
            {"members": listed(sorted(clients))},
            severity=None if popped else INFO,
            topic=topic,
            client_id=next(iter(clients)) if one else None,
            first_ms=first,
        )


RULE = Rule(
    "GAVE_UP_ASKING",
    WARNING,
    "A client to 5.3.1 that is set to ask brokers (clientRebalance = false) and gets no answer to "
    "its first questions on a topic divides that topic itself until it is restarted: at once when "
    "the broker refuses, after 6 s when none answers. The others go on asking.",
    "facts GAVE_UP_ASKING (client log, consumerStatus), memberships, cluster_events (REQUEST_MODE)",
    "Restart the members named while all brokers answer; clients from 5.3.2 on go on asking.",
    find,
    files=("client_log", "consumerStatus"),
)
