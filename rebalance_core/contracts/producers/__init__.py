"""The tables of producers, and the words they hold: begin with `tables`."""

from rebalance_core.contracts.producers.tables import (
    BROKER_ISOLATIONS,
    PRODUCER_INPUT_TABLES,
    PRODUCER_OUTCOMES,
    PRODUCER_OUTPUT_TABLES,
    PRODUCER_SHARES,
    PRODUCER_WRITTEN,
    PUBLISH_CHOICES,
    SEND_RESULTS,
)

__all__ = [
    "BROKER_ISOLATIONS",
    "PRODUCER_INPUT_TABLES",
    "PRODUCER_OUTCOMES",
    "PRODUCER_OUTPUT_TABLES",
    "PRODUCER_SHARES",
    "PRODUCER_WRITTEN",
    "PUBLISH_CHOICES",
    "SEND_RESULTS",
]
