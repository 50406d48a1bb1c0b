"""Whether it is known how the members of a group divide its queues."""

from __future__ import annotations

from rebalance_core.audit.case import GroupCase
from rebalance_core.audit.evidence.sharing import all_proxied


def strategy_is_known(case: GroupCase) -> bool:
    """False if some member depends on a strategy, or on parameters of one, that nothing tells.

    What the ledger says of owners is then an assumption, and no evidence of anything.
    """
    unknown = any(row["rule_id"] == "INGEST_STRATEGY_UNKNOWN" for row in case.rows("findings"))
    return not unknown or all_proxied(case.members)
