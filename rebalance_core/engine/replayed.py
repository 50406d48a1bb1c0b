"""The groups that the replay took, as rows beside those of the ledger."""

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
