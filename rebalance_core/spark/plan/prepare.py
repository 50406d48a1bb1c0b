"""The sweep of a plan: its histories edited and distributed, its strategies ready to run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from rebalance_core.engine.options import like_pattern
from rebalance_core.engine.units import GROUP
from rebalance_core.model import events
from rebalance_core.planning.hypothetical import OWNERSHIP, STEPS
from rebalance_core.planning.scenario.cluster_life import ClusterNames
from rebalance_core.planning.sweep.history_names import cluster_of
from rebalance_core.planning.sweep.passes import STARTS, Sweep, sweep_of
from rebalance_core.planning.sweep.plan_options import SweepOptions
from rebalance_core.planning.sweep.transitions import TRANSITIONS
from rebalance_core.planning.variants import (
    HistoryEdits,
    Variants,
    first_edits,
    scenarios_of,
    unmatched_patterns,
)
from rebalance_core.spark.engine.work_units import AssignedRows, assign_to_tasks
from rebalance_core.spark.plan.history_frames import (
    Histories,
    event_ends,
    first_edit_rows,
    histories,
)
from rebalance_core.spark.plan.plan_frames import (
    VariantNames,
    peak_rates,
    plan_ownership,
    plan_steps,
    start_messages,
)
from rebalance_core.spark.plan.sweep import swept

_NAMED = {"groups": "consumer_group", "topics": "topic", "brokers": "broker_name"}


@dataclass(frozen=True, eq=False)
class PreparedSweep:
    """Rows ready for the passes; every method is a pass, and lazy. A context manager."""

    spec: Sweep
    assigned: AssignedRows
    edited: Histories
    names: VariantNames
    first_edits: DataFrame
    unmatched: tuple[str, ...]

    def steps(self) -> DataFrame:
        """``plan_steps``."""
        return plan_steps(swept(STEPS, self.assigned, self.spec), self.names)

    def starts(self) -> DataFrame | None:
        """Messages read twice and never read; None without commits."""
        if not self.spec.options.committed_offsets_given:
            return None
        return start_messages(swept(STARTS, self.assigned, self.spec), self.names)

    def transitions(self) -> DataFrame | None:
        """What steps cost until they settled; None: nothing is simulated."""
        if not self.spec.transitions.futures:
            return None
        return self.names.named(swept(TRANSITIONS, self.assigned, self.spec))

    def ownership(self) -> DataFrame:
        """``plan_ownership``."""
        intervals = swept(OWNERSHIP, self.assigned, self.spec)
        return plan_ownership(intervals, self.first_edits, self.names)

    def peak_rates(self, rates: DataFrame) -> DataFrame:
        """Messages per second of the busiest member, with the rows of ``queue_rates``."""
        all_groups = replace(self.spec, ownership_of=None)
        return peak_rates(swept(OWNERSHIP, self.assigned, all_groups), rates, self.names)

    def warnings(self) -> list[str]:
        """What edits could not do, once the rows were made."""
        return sorted(row["warning"] for row in self.edited.warnings.collect())

    def close(self) -> None:
        """Release the rows that were kept for the passes."""
        self.assigned.members.unpersist()
        self.edited.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def prepare_sweep(
    tables: Mapping[str, DataFrame], variants: Variants, options: SweepOptions
) -> PreparedSweep:
    """Edit the histories and distribute their rows.

    Reads the events twice before anything is written: for the end of every cluster and for the
    names that scenarios may match. Works in any session there is.

    Args:
        tables: the used rows by table name (`quarantine`).
        variants: what to compute.
        options: see `SweepOptions`.
    """
    cluster_events = tables["cluster_events"]
    session = cluster_events.sparkSession
    ends = event_ends(cluster_events)
    firsts = {
        cluster_of(cluster, number): first_ms
        for number, history in enumerate(variants.histories)
        for cluster, first_ms in first_edits(history, ends).items()
    }
    count = len(variants.histories)
    edits = HistoryEdits(variants.histories, ends)
    edited = histories(tables, count, edits, ends, firsts)
    pattern = None if options.group is None else like_pattern(options.group)
    shown = None
    if not options.group:
        shown = _first_groups(cluster_events, options.ownership_groups)
    spec = sweep_of(variants, options, tables, firsts, shown, shown)
    return PreparedSweep(
        spec=spec,
        assigned=assign_to_tasks(edited.tables, pattern, options.partitions),
        edited=edited,
        names=VariantNames(session, variants),
        first_edits=first_edit_rows(session, firsts),
        # without a scenario no name is read
        unmatched=tuple(unmatched_patterns(variants, _names(cluster_events)))
        if scenarios_of(variants)
        else (),
    )


def _first_groups(cluster_events: DataFrame, count: int) -> frozenset[tuple[str, str]]:
    own = cluster_events.where(sf.col("event_type").isin(*events.CONSUMER_EVENTS))
    groups = own.select(*GROUP).distinct().orderBy(*GROUP).limit(count)
    return frozenset((row[0], row[1]) for row in groups.collect())


def _names(cluster_events: DataFrame) -> dict[str, ClusterNames]:
    """What patterns of scenarios may match, by cluster."""
    pairs = (sf.struct(sf.lit(w).alias("what"), sf.col(c).alias("name")) for w, c in _NAMED.items())
    named = cluster_events.select("cluster", sf.explode(sf.array(*pairs)).alias("named"))
    rows = named.select("cluster", "named.*").where("name IS NOT NULL").distinct().collect()
    clusters: dict[str, ClusterNames] = {}
    for row in rows:
        names = clusters.setdefault(row["cluster"], ClusterNames())
        getattr(names, row["what"]).add(row["name"])
    return clusters
