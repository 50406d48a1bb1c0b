"""What published tables have beside the columns of a run's own: which run they are of."""

from rebalance_core.contracts.table import Table, columns

_OF_THE_RUN = """
    run_id STRING of `_run.json`; equal runs over equal rows have the same
    period_from_ms? BIGINT start of the run's period: --from, or the first event
    period_to_ms? BIGINT end of the period: --to, or the last event
"""

RUN_COLUMNS = columns(_OF_THE_RUN)
"""The last columns of every table that `publish` writes; it is partitioned by them."""

RUNS = Table(
    "runs",
    "A run whose tables are published completely: its row is written last and removed first.",
    columns(
        f"""
        job STRING the job
        exit_code INT how it ended: 0, or 3 for an audit with findings
        started_ms BIGINT when it began
        library_version STRING of rebalance-core
        contract_version INT of its tables
        clusters ARRAY<STRING> clusters that its input names
        tables ARRAY<STRING> the published tables, without prefix
        {_OF_THE_RUN.strip()}
        """
    ),
    key=("run_id",),
)
