"""Every fact that lines of logs state, declared once."""

from rebalance_core.contracts.broker_facts import BROKER_LOG, LOCK_LOG, NAME_SERVER_LOG, PROXY_LOG
from rebalance_core.contracts.client_facts import CLIENT_LOG, POP_FACTS
from rebalance_core.contracts.fact_declaration import LogFact, log_facts

LOG_FACTS: dict[str, LogFact] = log_facts(
    (*BROKER_LOG, *LOCK_LOG, *NAME_SERVER_LOG, *CLIENT_LOG, *POP_FACTS, *PROXY_LOG)
)
