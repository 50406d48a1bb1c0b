"""Kinds of ``observed_facts`` that lines of more than one log become."""

from rebalance_core.contracts.fact_declaration import EPISODES, FactKind
from rebalance_core.model.times import MINUTE_MS

CLIENT_TOPIC = FactKind(
    "CLIENT_TOPIC",
    "a client's own subscription, as it or a broker that it told says: expression; retry topics "
    "are left out",
)
ALLOCATION_FAILED = FactKind(
    "ALLOCATION_FAILED",
    "a strategy threw: strategy, message, log, pid; a client's line names no group or client, a "
    "broker's (QueryAssignment) group and topic; times are minutes",
    EPISODES,
    MINUTE_MS,
)
