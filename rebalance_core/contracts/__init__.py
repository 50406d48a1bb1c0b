"""Every table, declared once: columns, types, nullability, units, meanings and keys.

Schemas, row checks and docs/data-dictionary.md derive from these declarations. Begin with `table`,
then `ledger`. May import `model`, and pyarrow for Arrow schemas.
"""

from rebalance_core.contracts.fidelity import FIDELITY_TABLES
from rebalance_core.contracts.history import HISTORY_TABLES
from rebalance_core.contracts.inputs import INPUT_TABLES
from rebalance_core.contracts.ledger import (
    FINDINGS,
    GROUP_VERDICTS,
    LEDGER_TABLES,
    REJECTED,
    SIMULATED_TABLES,
)
from rebalance_core.contracts.observed import COVERAGE, LATENCIES, OBSERVED_TABLES, QUEUE_MOVES
from rebalance_core.contracts.opening_state import EVIDENCE_TABLES
from rebalance_core.contracts.planning import (
    PLAN_INPUT_TABLES,
    PLAN_OUTPUT_TABLES,
    SEARCH_TABLES,
    SIZE_TABLES,
)
from rebalance_core.contracts.producers import PRODUCER_INPUT_TABLES, PRODUCER_OUTPUT_TABLES
from rebalance_core.contracts.progress import PROGRESS_TABLES
from rebalance_core.contracts.propagation import PROPAGATION_TABLES
from rebalance_core.contracts.scaling import (
    SCALING_INPUT_TABLES,
    SCALING_TABLES,
)
from rebalance_core.contracts.table import Column, Table

CONTRACT_VERSION = 1
"""The version of the released tables; readers refuse every other version (docs/stability.md)."""

FINDING_TABLES: dict[str, Table] = {FINDINGS.name: FINDINGS}
COVERAGE_TABLES: dict[str, Table] = {COVERAGE.name: COVERAGE}

LATENCY_TABLES: dict[str, Table] = {table.name: table for table in (LATENCIES, QUEUE_MOVES)}
"""Timings of requests and passes that logs show; `fidelity` compares futures with them."""

COLLECTED_TABLES: dict[str, Table] = (
    INPUT_TABLES
    | OBSERVED_TABLES
    | LATENCY_TABLES
    | COVERAGE_TABLES
    | {REJECTED.name: REJECTED}
    | FINDING_TABLES
)
"""Tables of the facts stated in a collection's files."""

INGESTED_TABLES: dict[str, Table] = COLLECTED_TABLES | PROGRESS_TABLES
"""Everything `ingest` writes."""

AUDITED_TABLES: dict[str, Table] = (
    LEDGER_TABLES
    | PROGRESS_TABLES
    | FINDING_TABLES
    | {GROUP_VERDICTS.name: GROUP_VERDICTS}
    | COVERAGE_TABLES
)
"""Everything `audit` writes."""

ALL_TABLES: dict[str, Table] = (
    INPUT_TABLES
    | OBSERVED_TABLES
    | LATENCY_TABLES
    | AUDITED_TABLES
    | PLAN_INPUT_TABLES
    | PLAN_OUTPUT_TABLES
    | PRODUCER_INPUT_TABLES
    | PRODUCER_OUTPUT_TABLES
    | PROPAGATION_TABLES
    | FIDELITY_TABLES
    | HISTORY_TABLES
    | SEARCH_TABLES
    | EVIDENCE_TABLES
    | SIZE_TABLES
    | SCALING_INPUT_TABLES
    | SCALING_TABLES
)

__all__ = [
    "ALL_TABLES",
    "AUDITED_TABLES",
    "COLLECTED_TABLES",
    "CONTRACT_VERSION",
    "COVERAGE_TABLES",
    "EVIDENCE_TABLES",
    "FIDELITY_TABLES",
    "FINDING_TABLES",
    "HISTORY_TABLES",
    "INGESTED_TABLES",
    "INPUT_TABLES",
    "LATENCY_TABLES",
    "LEDGER_TABLES",
    "OBSERVED_TABLES",
    "PLAN_INPUT_TABLES",
    "PLAN_OUTPUT_TABLES",
    "PRODUCER_INPUT_TABLES",
    "PRODUCER_OUTPUT_TABLES",
    "PROGRESS_TABLES",
    "PROPAGATION_TABLES",
    "REJECTED",
    "SCALING_INPUT_TABLES",
    "SCALING_TABLES",
    "SEARCH_TABLES",
    "SIMULATED_TABLES",
    "SIZE_TABLES",
    "Column",
    "Table",
]
