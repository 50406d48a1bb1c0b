"""Finds a group's brokers that the last round of dumps did not ask for its members."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rebalance_core.audit import dumps, listings
from rebalance_core.audit.group_snapshot import GroupSnapshot
from rebalance_core.audit.observations import LONGEST_ROUND_MS
from rebalance_core.audit.topic_readers import is_proxied, reach
from rebalance_core.ingest.fact import file_of
from rebalance_core.model.queue import is_retry_topic
from rebalance_core.model.times import MINUTE_MS

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import DumpFact


def unasked_brokers(group: GroupSnapshot) -> set[str]:
    """Return brokers with readable queues of the group that did not report their members at the
    end.

    Return none if the last round of dumps queried no broker by name, or if the members are behind
    proxies, whose lists contain them while the brokers' lists do not.
    """
    lists = dumps.fresh(group, listings.proxy_answers(group), dumps.seen_ms)
    if dumps.is_system_group(group.consumer_group) or any(row["client_id"] for row in lists):
        return set()
    answered = _answered_last(group)
    proxied = {row["client_id"] for row in group.members if is_proxied(row)}
    rows = [*group.owned, *(row for row in reach(group) if row["client_id"] not in proxied)]
    brokers = {row["broker_name"] for row in rows if not is_retry_topic(row["topic"])}
    return brokers - answered if answered else set()


def _answered_last(group: GroupSnapshot) -> set[str]:
    """Return the brokers that answered the last round of consumerConnection."""
    made = [row for row in group.facts["DUMP"] if row["details"]["command"] == "consumerConnection"]
    wordless = listings.wordless(group)
    return {
        row["broker_name"]
        for row in _last_round(sorted(made, key=lambda dump: dump["first_ms"]))
        if row["broker_name"] and file_of(row["source"]) not in wordless
    }


def _last_round(made: Sequence[DumpFact]) -> Sequence[DumpFact]:
    """Return the dumps of the last round, which has each broker once; `made` is in chronological
    order.

    A command that is repeated within a minute belongs to the same round. Two rounds are divided by
    the longest pause between the two dumps of a broker.
    """
    later: dict[str | None, int] = {}
    for index in range(len(made) - 1, -1, -1):
        broker, at_ms = made[index]["broker_name"], made[index]["first_ms"]
        if made[-1]["first_ms"] - at_ms > LONGEST_ROUND_MS:
            return made[index + 1 :]
        again = later.get(broker, index)
        if made[again]["first_ms"] - at_ms > MINUTE_MS:
            ends = range(index + 1, again + 1)
            return made[max(ends, key=lambda n: made[n]["first_ms"] - made[n - 1]["first_ms"]) :]
        later[broker] = index
    return made
