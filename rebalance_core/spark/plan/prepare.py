"""The sweep of a plan: its histories edited and distributed, its strategies ready to run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Self

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from rebalance_core.engine.options import like_pattern
from rebalance_core.engine.units import GROUP
from rebalance_core.kernels.codes.coded_groups import EngineOptions
from rebalance_core.model import events
from rebalance_core.planning.hypothetical import OWNERSHIP, STEPS, HypotheticalStrategies
from rebalance_core.planning.scenario.cluster_life import ClusterNames
from rebalance_core.planning.scenario.scenario import unmatched
from rebalance_core.planning.variants import HistoryEdits, Variants, first_edit_ms
from rebalance_core.spark.engine.work_units import AssignedRows, assign_to_tasks
from rebalance_core.spark.plan.histories import (
    Histories,
    event_ends,
    first_edits,
    histories,
)
from rebalance_core.spark.plan.history_names import cluster_of
from rebalance_core.spark.plan.plan_tables import (
    VariantNames,
    peak_rates,
    plan_ownership,
    plan_steps,
    start_messages,
)
from rebalance_core.spark.plan.sweep import STARTS, Sweep, swept

_NAMED = {"groups": "consumer_group", "topics": "topic", "brokers": "broker_name"}


@dataclass(frozen=True)
class SweepOptions:
    """The options of a sweep.

    ``group`` is a glob of the groups wanted, ``partitions`` as of `simulate`. ``plan_ownership``
    has the first ``ownership_groups`` groups by name; with ``group`` all of those wanted.
    """

    include_retry_topics: bool = True
    group: str | None = None
    ownership_groups: int = 20
    partitions: int | None = None


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
    firsts = dict(_first_edits(variants, ends))
    count = len(variants.histories)
    edits = HistoryEdits(variants.histories, ends)
    edited = histories(tables, count, edits, ends, firsts)
    pattern = None if options.group is None else like_pattern(options.group)
    fleet = EngineOptions(
        queue_offsets_given="queue_offsets" in tables,
        committed_offsets_given="committed_offsets" in tables,
        include_retry_topics=options.include_retry_topics,
    )
    shown = None
    if not options.group:
        shown = _first_groups(cluster_events, options.ownership_groups)
    retry = options.include_retry_topics
    spec = Sweep(
        strategies=variants.of_rocketmq(),
        hypothetical=HypotheticalStrategies(variants.hypothetical(), retry),
        options=fleet,
        first_ms=firsts,
        ownership_of=shown,
    )
    return PreparedSweep(
        spec=spec,
        assigned=assign_to_tasks(edited.tables, pattern, options.partitions),
        edited=edited,
        names=VariantNames(session, variants),
        first_edits=first_edits(session, firsts),
        unmatched=tuple(_unmatched(variants, cluster_events)),
    )


def _first_edits(variants: Variants, ends: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    for number, history in enumerate(variants.histories):
        for cluster, end_ms in ends.items():
            first = first_edit_ms(history, cluster, end_ms)
            if first is not None:
                yield cluster_of(cluster, number), first


def _first_groups(cluster_events: DataFrame, count: int) -> frozenset[tuple[str, str]]:
    own = cluster_events.where(sf.col("event_type").isin(*events.CONSUMER_EVENTS))
    groups = own.select(*GROUP).distinct().orderBy(*GROUP).limit(count)
    return frozenset((row[0], row[1]) for row in groups.collect())


def _unmatched(variants: Variants, cluster_events: DataFrame) -> Iterator[str]:
    """Patterns of the scenarios that match nothing; without a scenario no name is read."""
    scenarios = {h.scenario.name: h.scenario for h in variants.histories if h.scenario is not None}
    if not scenarios:
        return
    pairs = (sf.struct(sf.lit(w).alias("what"), sf.col(c).alias("name")) for w, c in _NAMED.items())
    named = cluster_events.select("cluster", sf.explode(sf.array(*pairs)).alias("named"))
    rows = named.select("cluster", "named.*").where("name IS NOT NULL").distinct().collect()
    clusters: dict[str, ClusterNames] = {}
    for row in rows:
        names = clusters.setdefault(row["cluster"], ClusterNames())
        getattr(names, row["what"]).add(row["name"])
    for scenario in scenarios.values():
        yield from unmatched(scenario, clusters)
