"""Members that by rule run a pass every second."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rebalance_core.audit.group_snapshot import (
    Finding,
    GroupSnapshot,
    Rule,
    listed,
    plural,
)
from rebalance_core.audit.subscriptions import is_broadcasting
from rebalance_core.audit.topic_readers import version_of
from rebalance_core.model.group_settings import PUSH
from rebalance_core.model.verdicts import INFO
from rebalance_core.model.versions import parse_version
from rebalance_core.timing.timer_periods import MIN_INTERVAL

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import (
        MembershipsRow,
    )


def find_restless_passes(group: GroupSnapshot) -> Iterator[Finding]:
    """Yield at most one finding, about push members with manual queue lists (rocketmq.md §2.4)."""
    if is_broadcasting(group) or (group.settings.get("consumer_type") or PUSH) != PUSH:
        return
    restless = sorted({row["client_id"] for row in group.members if _never_balanced(row)})
    if restless:
        yield Finding(
            f"{plural(len(restless), 'member')} with the strategy CONFIG ({listed(restless, 3)}) "
            "run a pass every second without logging it: the client compares the list with the "
            "queues of each single topic, and it never equals the retry topic's.",
            {"members": listed(restless)},
            client_id=restless[0] if len(restless) == 1 else None,
        )


def _never_balanced(row: MembershipsRow) -> bool:
    """Return True for CONFIG from 5.2 on; a suspended member runs no pass."""
    if row["strategy"].partition("(")[0] != "CONFIG" or row["suspended"]:
        return False
    return parse_version(version_of(row)) >= MIN_INTERVAL


RESTLESS_PASSES = Rule(
    "RESTLESS_PASSES",
    INFO,
    "With CONFIG, clients from 5.2 on never consider their allocation balanced and run a pass "
    "every second instead of every 20 seconds.",
    "memberships (strategy, version)",
    "Nothing, as long as brokers can handle one request per second for each member and topic. "
    "Otherwise use AVG, or raise rocketmq.client.rebalance.minInterval in the members.",
    find_restless_passes,
)
