"""Determines how long brokers keep messages, according to their latest statements."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rebalance_core.model.times import HOUR_MS

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import (
        BrokerInClusterFact,
        BrokerStartedFact,
        MessageRetentionFact,
    )


def stated_last(
    row: BrokerStartedFact | BrokerInClusterFact | MessageRetentionFact,
) -> tuple[int, str]:
    """Return the sort key that puts the latest statement last, independently of the order of
    reading.
    """
    return row["last_ms"], row["source"]


def retention_ms(stated: Iterable[MessageRetentionFact]) -> dict[tuple[str, str], int]:
    """Return how long messages are kept, by cluster and broker."""
    return {
        (row["cluster"], row["broker_name"]): int(row["details"]["hours"]) * HOUR_MS
        for row in sorted(stated, key=stated_last)
    }
