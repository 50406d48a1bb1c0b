"""POP_NOT_MODELLED: topics that members pop, so that no queue of them has one owner."""

from __future__ import annotations

from collections.abc import Iterator

from rebalance_core.audit.case import GroupCase
from rebalance_core.audit.evidence.formatting import listed, plural
from rebalance_core.audit.evidence.popped import Popped, popped_topics
from rebalance_core.audit.finding import Finding, Rule
from rebalance_core.model.severities import INFO, WARNING


def find(case: GroupCase) -> Iterator[Finding]:
    """One finding a topic that is popped at the end (rocketmq.md §14)."""
    for topic, popped in popped_topics(case).items():
        yield Finding(
            f"{plural(len(popped.clients), 'member')} of {case.consumer_group} pop {topic} "
            f"({popped.mode}): its queues are shared, so who owns them is not said here"
            f"{_mixed(popped)}.",
            {
                "mode": popped.mode,
                "pop": listed(popped.clients),
                "pull": listed(popped.others),
            },
            severity=WARNING if popped.others else INFO,
            topic=topic,
            first_ms=popped.since_ms,
        )


def _mixed(popped: Popped) -> str:
    if not popped.others:
        return ""
    return (
        f"; {listed(popped.others, 5)} pull a share of their own at the same time and commit to "
        "the same offsets, so messages are consumed twice"
    )


RULE = Rule(
    "POP_NOT_MODELLED",
    INFO,
    "The request mode of the topic is POP and members ask the broker (clientRebalance = false): "
    "several take messages of one queue, which is no fault. Such a topic is in no row of ownership "
    "and is not compared. WARNING where other members pull it with queues of their own: "
    "clientRebalance = true, the default, ignores the mode.",
    "cluster_events (REQUEST_MODE; rebalance_mode of joins), consumer_groups, memberships",
    "Nothing, if POP is meant. Where some members pull, set clientRebalance = false in all of "
    "them; to go back, set the mode to PULL (mqadmin setConsumeMode).",
    find,
)
