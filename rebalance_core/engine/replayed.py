"""The groups processed by the replay, as rows alongside those of the ledger."""

from rebalance_core.contracts.table import Table, columns

REPLAYED = Table(
    "replayed",
    "A group that the replay took instead of the kernels.",
    columns(
        """
        cluster STRING its cluster
        consumer_group STRING its name
        reason STRING why
        """
    ),
)
