"""RESTLESS_PASSES: members that by rule run a pass every second."""

from __future__ import annotations

from collections.abc import Iterator

from rebalance_core.audit.case import Finding, GroupCase, Row, Rule, listed, plural
from rebalance_core.audit.orphans import is_broadcasting
from rebalance_core.audit.subscriptions import version_of
from rebalance_core.clockwork.ticks import MIN_INTERVAL
from rebalance_core.model.group_settings import PUSH
from rebalance_core.model.verdicts import INFO
from rebalance_core.model.versions import parse_version


def find(case: GroupCase) -> Iterator[Finding]:
    """At most one finding: push members that read lists by hand (rocketmq.md §2.4)."""
    if is_broadcasting(case) or (case.settings.get("consumer_type") or PUSH) != PUSH:
        return
    restless = sorted({row["client_id"] for row in case.members if _never_balanced(row)})
    if restless:
        yield Finding(
            f"{plural(len(restless), 'member')} with the strategy CONFIG "
            f"({listed(restless, 3)}) run a pass every second and log nothing of it: the list is "
            "compared with the queues of each topic alone, and never equals those of the retry "
            "topic.",
            {"members": listed(restless)},
            client_id=restless[0] if len(restless) == 1 else None,
        )


def _never_balanced(row: Row) -> bool:
    """True for CONFIG from 5.2 on; a suspended member runs no pass."""
    if row["strategy"].partition("(")[0] != "CONFIG" or row["suspended"]:
        return False
    return parse_version(version_of(row)) >= MIN_INTERVAL


RULE = Rule(
    "RESTLESS_PASSES",
    INFO,
    "With CONFIG a client from 5.2 on never sees its allocation as balanced, so it runs a pass "
    "every second instead of every 20 seconds: for each topic a broker is asked for the list of "
    "members.",
    "memberships (strategy, version)",
    "Nothing while brokers bear it: one request a second, member and topic. Else use AVG, or set "
    "rocketmq.client.rebalance.minInterval in the members.",
    find,
)
