"""Every fact that lines of logs state, declared once.

A new one is a template in `rebalance_core.ingest.parse.logs` and a declaration in the file of its
log here: where it counts, how it is thinned and which rows of ``observed_facts`` it becomes follow
from it. The declarations are here because the kinds of ``observed_facts`` are part of the contract.

May import: `contracts.fact_declaration`, `model`. Begin with `name_server_facts`, the simplest.
"""

from rebalance_core.contracts.fact_declaration import LogFact, log_facts
from rebalance_core.contracts.log_facts.broker_facts import BROKER_LOG, LOCK_LOG
from rebalance_core.contracts.log_facts.client_facts import CLIENT_LOG
from rebalance_core.contracts.log_facts.name_server_facts import NAME_SERVER_LOG
from rebalance_core.contracts.log_facts.pop_facts import POP_FACTS
from rebalance_core.contracts.log_facts.proxy_facts import PROXY_LOG

LOG_FACTS: dict[str, LogFact] = log_facts(
    (*BROKER_LOG, *LOCK_LOG, *NAME_SERVER_LOG, *CLIENT_LOG, *POP_FACTS, *PROXY_LOG)
)
