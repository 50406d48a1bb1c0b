"""The tables of an audit on their way to its tasks: checked, clusters judged, groups dealt out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from rebalance_core.checks.conform import unknown_columns
from rebalance_core.checks.row_counts import RowCounts
from rebalance_core.contracts import INPUT_TABLES
from rebalance_core.engine.options import SimulationOptions, engine_options
from rebalance_core.engine.routing import UNDIVIDED, Interests, interests_of_named, routing_of
from rebalance_core.process.audit.audit_inputs import ClusterTables, cluster_tables_of
from rebalance_core.process.audit.judging_pass import Judges, JudgingPass, judges_of
from rebalance_core.spark.audit.audit_inputs import AuditInputs
from rebalance_core.spark.audit.audit_tasks import AuditRouting, AuditWork
from rebalance_core.spark.engine.routed_rows import routed_rows
from rebalance_core.spark.tables.check_rows import Counted, check_and_note
from rebalance_core.spark.tables.quarantine import Quarantined
from rebalance_core.spark.task_count import task_count

_NOTINGS = (interests_of_named, cluster_tables_of)


@dataclass(frozen=True)
class RoutedAudit:
    """The checked rows, and what tasks make of them.

    Attributes:
        checked: All tables.
        routing: Where their rows go.
        judges: Of clusters and groups.
        work: Of the tasks.
    """

    checked: Quarantined
    routing: AuditRouting
    judges: Judges
    work: AuditWork

    def rows(self, more_rejected: DataFrame | None = None) -> DataFrame:
        """The rows of each task.

        Args:
            more_rejected: Rows of ``rejected`` that came up before.
        """
        return routed_rows(self.checked, self.routing, more_rejected=more_rejected)


def checked_tables(
    inputs: AuditInputs, options: SimulationOptions, warn: Callable[[str], object] | None
) -> tuple[Quarantined, Counted]:
    """All tables checked, in one job; kept until closed.

    Args:
        inputs: The tables as read.
        options: Of the simulation.
        warn: Gets a text for each table of the history with unknown columns.
    """
    checked, counted = check_and_note(inputs, options.max_queue_nums, _NOTINGS)
    for name, columns in counted.unknown.items():
        if warn is not None and name in INPUT_TABLES:
            warn(unknown_columns(name, columns))
    return checked, counted


def of_history(counted: Counted) -> dict[str, RowCounts]:
    """The counts that limits hold for: of what is only compared with, any row may be bad."""
    return {name: count for name, count in counted.rows.items() if name in INPUT_TABLES}


def routed_audit(
    session: SparkSession,
    checked: Quarantined,
    counted: Counted,
    options: SimulationOptions,
    judging: Mapping[str, Any],
) -> RoutedAudit:
    """Judge the clusters, and deal groups out to as many tasks as their rows need.

    Args:
        session: Its default parallelism is asked for.
        checked: Of `checked_tables`.
        counted: The same.
        options: Of the simulation.
        judging: Those of `judges_of`.
    """
    judges = judges_of(counted.noted(ClusterTables), **judging)
    rows = sum(count.rows for count in counted.rows.values())
    tasks = options.partitions or task_count(rows, session)
    # a group is judged by all its rows
    routing = AuditRouting(routing_of(counted.noted(Interests), tasks, giant_cells=UNDIVIDED))
    judged = JudgingPass(judges.groups, engine_options(checked.tables, options))
    return RoutedAudit(checked, routing, judges, AuditWork(judged, judges.groups.salt))
