"""The tables a simulation and an audit write. Begin with `simulated`."""

from rebalance_core.contracts.ledger.judged import FINDINGS, GROUP_VERDICTS
from rebalance_core.contracts.ledger.shared_queues import POP_METRICS, POP_REACH
from rebalance_core.contracts.ledger.simulated import (
    CONSUMER_LOAD,
    DIFFS,
    EPOCHS,
    GROUP_METRICS,
    MEMBERSHIPS,
    OWNERSHIP,
    PULL_STARTS,
    REJECTED,
)

SIMULATED_TABLES = {
    table.name: table
    for table in (
        EPOCHS,
        OWNERSHIP,
        DIFFS,
        PULL_STARTS,
        MEMBERSHIPS,
        CONSUMER_LOAD,
        GROUP_METRICS,
        POP_REACH,
        POP_METRICS,
    )
}
"""What the replay of a group yields."""

LEDGER_TABLES = SIMULATED_TABLES | {REJECTED.name: REJECTED}
"""Everything `simulate` writes."""

__all__ = [
    "CONSUMER_LOAD",
    "DIFFS",
    "EPOCHS",
    "FINDINGS",
    "GROUP_METRICS",
    "GROUP_VERDICTS",
    "LEDGER_TABLES",
    "MEMBERSHIPS",
    "OWNERSHIP",
    "POP_METRICS",
    "POP_REACH",
    "PULL_STARTS",
    "REJECTED",
    "SIMULATED_TABLES",
]
