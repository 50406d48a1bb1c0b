"""Summarises a plan: who holds each queue before and after, and how busy the busiest member is."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.contracts.planning import PLAN_LEAGUE, PLAN_SUMMARY, VARIANT_KEY
from rebalance_core.contracts.table import Table
from rebalance_core.engine.fan_out import GROUP, joining
from rebalance_core.model.verdicts import FROZEN
from rebalance_core.planning.sweep.passes import all_shared
from rebalance_core.planning.sweep.plan_options import (
    BETWEEN_CAVEATS,
    BETWEEN_COUNTS,
    CANNOT_POP_CAVEAT,
    EXTREMES,
    FROZEN_CAVEAT,
    LEFT_OUT,
    ORPHANED_CAVEAT,
    SHARED_CAVEAT,
    STAY,
    STAY_COUNT,
    SUMS,
    UNEVEN_CAVEAT,
    VARIANT,
    ScenarioRow,
)
from rebalance_core.planning.sweep.proxy_restarts import PROXY_FIGURES
from rebalance_core.planning.sweep.transitions import FIGURES, READ_AGAIN, SLOWEST
from rebalance_core.planning.sweep.transitions import SUMS as TIMED_SUMS
from rebalance_core.planning.variants import Variants, is_popped


def of_variant(rows: pa.Table, variants: Variants, history: int, strategy: int) -> pa.Table:
    """Return the rows with the columns scenario, strategy, of_rocketmq and seed added."""
    chosen, swept = variants.histories[history], variants.strategies[strategy]
    values = {
        "scenario": pa.scalar(chosen.name, pa.string()),
        "strategy": pa.scalar(swept.text, pa.string()),
        "of_rocketmq": pa.scalar(swept.of_rocketmq),
        "seed": pa.scalar(chosen.seed, pa.int64()),
    }
    for name, value in values.items():
        rows = rows.append_column(name, pa.repeat(value, rows.num_rows))
    return rows


def as_table(rows: pa.Table, table: Table) -> pa.Table:
    """Return the columns of a contract, in its order and types, in buffers of the right size.

    Arrow's aggregates allocate buffers for 32,768 rows regardless of their contents, so many small
    results waiting to be written would take gigabytes.
    """
    typed = rows.select(table.column_names).cast(table.arrow_schema())
    return typed.take(pa.array(np.arange(typed.num_rows)))


QUEUE = ("topic", "broker_name", "queue_id")
_KEY = [*GROUP, *QUEUE]
_SIDES = ("before", "after")


def owners(
    intervals: pa.Table,
    first_ms: Mapping[str, int],
    groups: Collection[tuple[str, str]] | None = None,
) -> pa.Table:
    """Return the owners before and after of each queue, under one variant.

    Args:
        intervals: Rows of the ledger's ``ownership``.
        first_ms: The first edit of each cluster; empty for a history without edits.
        groups: The selected groups; None for all.

    Returns:
        cluster, consumer_group, topic, broker_name, queue_id, and the sorted client ids as
        owners_before and owners_after, empty if the queue had no owner or did not exist.
    """
    marked = _wanted(intervals, groups)
    marked = marked.append_column("before", _before(marked, first_ms))
    marked = marked.append_column("after", pc.is_null(marked["to_ms"]))
    marked = marked.filter(pc.or_(marked["before"], marked["after"]))
    holders = marked.group_by([*_KEY, "client_id"], use_threads=False).aggregate(
        [(side, "any") for side in _SIDES]
    )
    holders = holders.sort_by([(name, "ascending") for name in (*_KEY, "client_id")])
    no_client = pa.scalar(None, pa.string())
    for side in _SIDES:
        held = pc.if_else(holders[f"{side}_any"], holders["client_id"], no_client)
        holders = holders.append_column(side, held)
    # group_by returns groups in no order, so they are sorted into the order of the holders
    queues = (
        holders.group_by(_KEY)
        .aggregate([(side, "count") for side in _SIDES])
        .sort_by([(name, "ascending") for name in _KEY])
    )
    rows = queues.select(_KEY)
    for side in _SIDES:
        offsets = np.append(0, np.cumsum(queues[f"{side}_count"].to_numpy()))
        names = holders[side].drop_null().combine_chunks()
        lists = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), names)
        rows = rows.append_column(f"owners_{side}", lists)
    return rows


def _before(intervals: pa.Table, first_ms: Mapping[str, int]) -> pa.ChunkedArray:
    """Return whether each interval includes the last instant before the first edit."""
    clusters = pa.array(list(first_ms), pa.string())
    firsts = pa.array(list(first_ms.values()), pa.int64())
    cluster = intervals["cluster"].combine_chunks()
    first = firsts.take(pc.index_in(cluster, value_set=clusters))
    end = intervals["to_ms"]
    begun = pc.less(intervals["from_ms"], first)
    lasts = pc.fill_null(pc.greater_equal(end, first), True)
    return pc.if_else(
        pc.is_null(first), pc.equal(intervals["from_epoch"], 0), pc.and_(begun, lasts)
    )


def _wanted(intervals: pa.Table, groups: Collection[tuple[str, str]] | None) -> pa.Table:
    if groups is None:
        return intervals
    schema = pa.schema([(name, pa.string()) for name in GROUP])
    names = pa.Table.from_pylist([dict(zip(GROUP, pair, strict=True)) for pair in groups], schema)
    return joining(intervals, names)


_QUEUE = ["cluster", *QUEUE]
_RATE = "messages_per_second"


def last_rates(queue_rates: pa.Table) -> pa.Table:
    """Return the rate of each queue in the last stretch of ``queue_rates``."""
    ordered = queue_rates.select([*_QUEUE, "from_ms", _RATE]).sort_by("from_ms")
    last = ordered.group_by(_QUEUE, use_threads=False).aggregate([(_RATE, "last")])
    return last.rename_columns([*_QUEUE, _RATE])


def peak_rates(intervals: pa.Table, rates: pa.Table) -> pa.Table:
    """Return cluster, consumer_group and peak_messages_per_second at the end of the history.

    A queue without a rate is not counted. Hypothetical strategies are counted like the others.

    Args:
        intervals: Rows of the ledger's ``ownership``, of whole groups.
        rates: `last_rates`.
    """
    now = pc.and_(pc.is_null(intervals["to_ms"]), pc.is_valid(intervals["client_id"]))
    held = intervals.filter(now).select([*GROUP, *QUEUE, "client_id"])
    with_rates = held.join(rates, keys=_QUEUE, join_type="inner", use_threads=False)
    member = [*GROUP, "client_id"]
    loads = with_rates.group_by(member, use_threads=False).aggregate([(_RATE, "sum")])
    peaks = loads.group_by(list(GROUP), use_threads=False).aggregate([(f"{_RATE}_sum", "max")])
    peaks = peaks.select([*GROUP, f"{_RATE}_sum_max"])
    return peaks.rename_columns([*GROUP, "peak_messages_per_second"])


Row = dict[str, Any]
_DISTINCT = {"cluster", "consumer_group"}
_OF_SOUND = {"moved_sound": "moved", "minimum_moves": "minimum_moves"}


def totals(summary: pa.Table, keys: Sequence[str], sums: Iterable[str]) -> list[Row]:
    """Return a row for each key, as plain values.

    Besides the key and the sums, a row has ``groups``; ``rows``, the number of groups x variants,
    and how many of these have a caveat (``left_out``), cannot pop (``cannot_pop``) or were
    simulated over time (``timed``); the distinct ``caveats``, sorted; the `EXTREMES`; and
    ``moved_sound`` and ``minimum_moves``, which sum only rows without a caveat, where the minimum
    is a measure of the strategy.

    Args:
        summary: ``plan_summary``.
        keys: At least one column.
        sums: Columns to add up; a sum is null if all its values are.
    """
    sums = list(sums)
    sound = pc.is_null(summary["caveat"])
    table = summary.select([*keys, "caveat", "cannot_pop", *sums, *EXTREMES])
    for name, column in _OF_SOUND.items():
        values = pc.if_else(sound, summary[column], pa.scalar(None, pa.int64()))
        table = table.append_column(f"_{name}", values)
    how: list[tuple[Any, str]]
    how = [(name, "sum") for name in (*sums, *(f"_{name}" for name in _OF_SOUND))]
    how += [("caveat", "count"), ("caveat", "distinct"), ("cannot_pop", "count"), ([], "count_all")]
    how += [(SLOWEST, "count")]
    how += EXTREMES.items()
    grouped = table.group_by(list(keys), use_threads=False).aggregate(how)
    groups = distinct(summary, keys, _DISTINCT)
    return [
        {name: row[name] for name in keys}
        | {name: row[f"{name}_sum"] for name in sums}
        | {name: row[f"_{name}_sum"] for name in _OF_SOUND}
        | {
            "groups": groups[tuple(row[name] for name in keys)],
            "rows": row["count_all"],
            "left_out": row["caveat_count"],
            "caveats": sorted(filter(None, row["caveat_distinct"])),
            "cannot_pop": row["cannot_pop_count"],
            "timed": row[f"{SLOWEST}_count"],
        }
        | {name: row[f"{name}_{how}"] for name, how in EXTREMES.items()}
        for row in grouped.to_pylist()
    ]


def distinct(
    rows: pa.Table, keys: Sequence[str], columns: Iterable[str]
) -> dict[tuple[Any, ...], int]:
    """Return the number of distinct values of the given columns, by key."""
    different = rows.group_by([*keys, *columns], use_threads=False).aggregate([])
    counted = different.group_by(list(keys), use_threads=False).aggregate([([], "count_all")])
    counts = counted["count_all"].to_pylist()
    names = zip(*(counted[name].to_pylist() for name in keys), strict=True)
    return dict(zip(names, counts, strict=True))


_KEYS = (*VARIANT, "of_rocketmq")


def scenario_rows(summary: pa.Table) -> list[ScenarioRow]:
    """Return a row for each scenario and strategy over all groups and seeds, as plain values.

    Args:
        summary: ``plan_summary``.
    """
    seeds = distinct(summary, _KEYS, ["seed"])
    peaks = _peaks(summary)
    rows: list[ScenarioRow] = []
    for total in totals(summary, _KEYS, SUMS):
        key = tuple(total[name] for name in _KEYS)
        row = {name: value for name, value in total.items() if name != "rows"}
        whole = _with_ratio(row | peaks[key] | {"seeds": seeds[key]})
        rows.append(cast("ScenarioRow", whole))
    return rows


_OF_OWNED = (
    "moved",
    "minimum_moves",
    "amplification",
    "mean_peak_ratio_before",
    "mean_peak_ratio",
    "worst_peak_ratio",
    "skipped_messages",
    "peak_messages_per_second",
    *TIMED_SUMS,
    SLOWEST,
)
"""Figures that are meaningless for a strategy under which groups pop, because they describe groups
that cannot pop.
"""


def _with_ratio(row: Row) -> Row:
    """Return the row with its amplification in place of the numerator, ``moved_sound``.

    With ``shared``, the strategy is one under which groups pop, and `_OF_OWNED` are None.
    """
    minimum, moved = row["minimum_moves"], row["moved_sound"]
    rest = {name: value for name, value in row.items() if name != "moved_sound"}
    shared = is_popped(row["strategy"])
    figures = rest | {
        "amplification": moved / minimum if minimum else None,
        "idle": row["idle_after"],
        "orphaned": row["orphaned_after"],
        "shared": shared,
    }
    return figures | dict.fromkeys(_OF_OWNED) if shared else figures


def _peaks(summary: pa.Table) -> dict[tuple[str, str, bool], Row]:
    """Return the meaningful peak ratios, which exclude BROADCASTING and cases with unowned
    queues.
    """
    table = summary.select([*_KEYS, "peak_messages_per_second"])
    for side in ("before", "after"):
        owned = pc.equal(summary[f"orphaned_{side}"], 0)
        sound = pc.and_(pc.is_null(summary["caveat"]), owned)
        ratio = summary[f"peak_ratio_{side}"]
        table = table.append_column(side, pc.if_else(sound, ratio, pa.scalar(None, pa.float64())))
    frozen = pc.cast(summary["frozen"], pa.int64())
    grouped = table.append_column("frozen", frozen).group_by(list(_KEYS), use_threads=False)
    means = grouped.aggregate(
        [("before", "mean"), ("after", "mean"), ("after", "max"), ("frozen", "sum"),
         ("peak_messages_per_second", "max")]
    )  # fmt: skip
    return {
        (row["scenario"], row["strategy"], row["of_rocketmq"]): {
            "mean_peak_ratio_before": row["before_mean"],
            "mean_peak_ratio": row["after_mean"],
            "worst_peak_ratio": row["after_max"],
            "peak_messages_per_second": row["peak_messages_per_second_max"],
            "frozen": row["frozen_sum"],
        }
        for row in means.to_pylist()
    }


KEY = list(VARIANT_KEY)
_STATE = {
    "members": "members",
    "queues": "queues",
    "max_queues": "peak_queues",
    "peak_ratio": "peak_ratio",
    "idle_members": "idle",
    "orphaned": "orphaned",
    "pop_queues": "pop_queues",
}
"""Columns of ``plan_steps`` with the state of a group, and their names in the summary."""
_AFTER = (
    "min_clients_per_queue", "max_clients_per_queue", "unreached", "min_redelivery_s",
    "max_redelivery_s", "cannot_pop",
)  # fmt: skip
"""Columns of ``plan_steps`` for which the summary has only the last step's value."""


def plan_summary(
    steps: pa.Table,
    starts: pa.Table | None = None,
    loads: pa.Table | None = None,
    transitions: pa.Table | None = None,
    left: pa.Table | None = None,
    proxies: pa.Table | None = None,
) -> pa.Table:
    """Return the states before and after the change for every group under every variant.

    Args:
        steps: Rows of ``plan_steps`` of whole groups, in any order.
        starts: Key, rewound_messages and skipped_messages; None if unknown.
        loads: Key and peak_messages_per_second; None without rates.
        transitions: Key and the figures of `TRANSITION_SCHEMA`; None if nothing was simulated.
        left: Cluster, consumer_group and left_unread of groups that lose queues, if any.
        proxies: Cluster, consumer_group and `PROXY_FIGURES` of groups whose proxies restart, if
            any.
    """
    steps = steps.sort_by("epoch")
    groups = _grouped(steps)
    rows = groups.select([*KEY, "of_rocketmq", "rebalances", "stickiness"])
    for column, name in _STATE.items():
        before, after = (
            steps[column].take(groups[side].combine_chunks()) for side in ("before", "after")
        )
        if column != "peak_ratio":  # the group did not exist yet
            nothing = pa.scalar(0, before.type)
            before = pc.if_else(pc.is_null(groups["before"]), nothing, before)
        rows = rows.append_column(f"{name}_before", before)
        rows = rows.append_column(f"{name}_after", after)
    for name in _AFTER:
        rows = rows.append_column(name, steps[name].take(groups["after"].combine_chunks()))
    rows = _with_moves(rows, groups)
    last = steps["status"].take(groups["after"].combine_chunks())
    frozen = pc.or_(groups["frozen"], pc.equal(last, FROZEN))
    rows = rows.append_column("frozen", frozen)
    caveat = _caveat(rows, groups, frozen)
    rows = rows.append_column("caveat", caveat)
    rows = rows.append_column("amplification", _amplification(rows))
    rows = _joined(rows, starts, {"rewound_messages": pa.int64(), "skipped_messages": pa.int64()})
    rows = _joined(rows, loads, {"peak_messages_per_second": pa.float64()})
    rows = _joined(rows, transitions, FIGURES)
    # shared queues have no owner, and a frozen topic never settles
    settles = pc.and_(pc.is_valid(rows["moved"]), pc.invert(rows["frozen"]))
    for name in FIGURES:
        number = rows.column_names.index(name)
        rows = rows.set_column(number, name, _where(settles, rows[name]))
    number = rows.column_names.index(READ_AGAIN)
    again = pc.add(rows[READ_AGAIN], pc.fill_null(rows["rewound_messages"], 0))
    rows = rows.set_column(number, READ_AGAIN, again)
    rows = rows.append_column("left_unread", _left_unread(rows, left))
    rows = _joined(rows, proxies, PROXY_FIGURES, GROUP)
    return as_table(rows, PLAN_SUMMARY)


def _grouped(steps: pa.Table) -> pa.Table:
    """Return the sums by group and variant, and which steps are ``before`` and ``after``."""
    counted = steps["counted"]
    meant = pc.and_(
        counted, pc.and_(pc.greater(steps["members"], 0), pc.greater(steps["queues"], 0))
    )
    row = pa.array(np.arange(steps.num_rows))
    columns = {
        "rebalances": (pc.cast(counted, pa.int64()), "sum"),
        "before": (_where(pc.invert(counted), row), "max"),
        "after": (row, "max"),
        "moved": (_where(counted, steps["moved"]), "sum"),
        "minimum": (_where(meant, steps["minimum_moves"]), "sum"),
        "stickiness": (_where(counted, steps["stickiness"]), "mean"),
        "uneven": (pc.and_(meant, pc.is_null(steps["minimum_moves"])), "any"),
        "unowned": (pc.and_(meant, pc.greater(steps["orphaned"], 0)), "any"),
        "frozen": (pc.and_(counted, pc.equal(steps["status"], FROZEN)), "any"),
        "shared": (pc.and_(counted, all_shared(steps)), "any"),
        "owned": (pc.and_(counted, pc.invert(all_shared(steps))), "any"),
    }
    table = steps.select([*KEY, "of_rocketmq"])
    for name, (values, _) in columns.items():
        table = table.append_column(name, values)
    grouped = table.group_by([*KEY, "of_rocketmq"], use_threads=False).aggregate(
        [(name, how) for name, (_, how) in columns.items()]
    )
    names = {f"{name}_{how}": name for name, (_, how) in columns.items()}
    return grouped.rename_columns([names.get(name, name) for name in grouped.column_names])


def _with_moves(rows: pa.Table, groups: pa.Table) -> pa.Table:
    """Return moves and their minimum, null where members share all queues in every step."""
    owned = pc.or_(groups["owned"], pc.invert(_shared(rows, groups)))
    minimum = _where(pc.invert(groups["uneven"]), pc.fill_null(groups["minimum"], 0))
    rows = rows.append_column("moved", _where(owned, pc.fill_null(groups["moved"], 0)))
    return rows.append_column("minimum_moves", _where(owned, minimum))


def _shared(rows: pa.Table, groups: pa.Table) -> pa.ChunkedArray:
    """Return whether members share all queues in a counted step or afterwards."""
    popped = pc.fill_null(pc.greater(rows["pop_queues_after"], 0), False)
    return pc.or_(groups["shared"], pc.and_(popped, pc.equal(rows["queues_after"], 0)))


def _caveat(rows: pa.Table, groups: pa.Table, frozen: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return each row's caveat; if several apply, the last one assigned here wins."""
    caveat = pc.if_else(groups["unowned"], ORPHANED_CAVEAT, pa.scalar(None, pa.string()))
    caveat = pc.if_else(groups["uneven"], UNEVEN_CAVEAT, caveat)
    caveat = pc.if_else(_shared(rows, groups), SHARED_CAVEAT, caveat)
    caveat = pc.if_else(frozen, FROZEN_CAVEAT, caveat)
    begin = CANNOT_POP_CAVEAT.removesuffix("%s")
    stays = pc.binary_join_element_wise(pa.scalar(begin), rows["cannot_pop"], "")
    return pc.coalesce(stays, caveat)


def _amplification(rows: pa.Table) -> pa.ChunkedArray:
    minimum = rows["minimum_moves"]
    sound = pc.and_(pc.fill_null(pc.greater(minimum, 0), False), pc.is_null(rows["caveat"]))
    divisor = _where(sound, pc.cast(minimum, pa.float64()))
    return pc.divide(pc.cast(rows["moved"], pa.float64()), divisor)


def _joined(
    rows: pa.Table,
    others: pa.Table | None,
    columns: dict[str, pa.DataType],
    keys: Sequence[str] = KEY,
) -> pa.Table:
    """Return the rows with columns joined by key, null where the other table has no row."""
    if others is None:
        for name, kind in columns.items():
            rows = rows.append_column(name, pa.nulls(rows.num_rows, kind))
        return rows
    wanted = others.select([*keys, *columns])
    return rows.join(wanted, keys=list(keys), join_type="left outer", use_threads=False)


def _left_unread(rows: pa.Table, left: pa.Table | None) -> pa.ChunkedArray | pa.Array:
    """Return each row's messages that remain in lost queues; 0 where the group loses none."""
    if left is None or not left.num_rows:
        return pa.repeat(pa.scalar(0, pa.int64()), rows.num_rows)
    numbered = rows.select(GROUP).append_column("_row", pa.array(np.arange(rows.num_rows)))
    losing = left.append_column("_loses", pa.repeat(True, left.num_rows))
    joined = numbered.join(losing, keys=list(GROUP), join_type="left outer", use_threads=False)
    joined = joined.sort_by("_row")
    return pc.if_else(pc.is_valid(joined["_loses"]), joined["left_unread"], pa.scalar(0))


def _where(mask: pa.ChunkedArray, values: pa.Array | pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the values where the mask is true, null elsewhere."""
    return pc.if_else(mask, values, pa.scalar(None, values.type))


_MEANS = {
    "moved_per_rebalance": "moved",
    "stickiness": "stickiness",
    "mean_peak_ratio": "peak_ratio",
}
_SUMS = ("rebalances", "moved", "idle_after", "orphaned_after", "pop_queues_after", "unreached")


class SoundSteps:
    """Sums the figures of the sound steps of each strategy.

    A step is sound if it is counted and shows how good its strategy is. It is not sound without a
    proven minimum, because nothing was allocated: members broadcast (each holds every queue and so
    looks as busy as possible and perfectly sticky), a topic is frozen, members' subscriptions
    differ, or the group is empty. Nor is it sound with unowned queues, which make the busiest
    member look less busy.
    """

    def __init__(self) -> None:
        self._sums: dict[str, Row] = {}

    def add(self, steps: pa.Table) -> None:
        """Add rows of ``plan_steps``."""
        proven = pc.and_(steps["counted"], pc.is_valid(steps["minimum_moves"]))
        sound = steps.filter(pc.and_(proven, pc.equal(steps["orphaned"], 0)))
        how: list[tuple[Any, str]]
        how = [(name, each) for name in _MEANS.values() for each in ("sum", "count")]
        how += [("peak_ratio", "max"), ([], "count_all")]
        for row in sound.group_by("strategy", use_threads=False).aggregate(how).to_pylist():
            self._count(row.pop("strategy"), row)

    def merge(self, other: SoundSteps) -> None:
        """Add the counts of other steps."""
        for strategy, row in other._sums.items():
            self._count(strategy, row)

    def means(self, strategy: str) -> Row:
        """Return the means, ``worst_peak_ratio`` and the number of ``steps``; null if 0."""
        sums = self._sums.get(strategy, {})
        means: Row = {}
        for name, column in _MEANS.items():
            count = sums.get(f"{column}_count")
            means[name] = sums[f"{column}_sum"] / count if count else None
        worst, steps = sums.get("peak_ratio_max"), sums.get("count_all", 0)
        return means | {"worst_peak_ratio": worst, "steps": steps}

    def _count(self, strategy: str, row: Row) -> None:
        before = self._sums.get(strategy)
        self._sums[strategy] = row if before is None else _together(before, row)


def _together(first: Row, second: Row) -> Row:
    """Return the sums, counts and maxima of both; None stands for no value."""
    both = {name: [v for v in (first[name], second[name]) if v is not None] for name in first}
    return {
        name: (max if name.endswith("_max") else sum)(values) if values else None
        for name, values in both.items()
    }


def plan_league(summary: pa.Table, sound: SoundSteps) -> pa.Table:
    """Return a row for each strategy over all groups, scenarios and seeds.

    Sums cover all groups; amplification and the means exclude steps that do not depend on a
    strategy.

    Args:
        summary: ``plan_summary``.
        sound: The sound steps of the same plan.
    """
    stay = _stay(summary)
    rows = [
        row | _figures(row, sound.means(row["strategy"]), stay.get(row["strategy"], []))
        for row in totals(summary, ("strategy", "of_rocketmq"), _SUMS)
    ]
    return pa.Table.from_pylist(rows, PLAN_LEAGUE.arrow_schema())


def _stay(summary: pa.Table) -> dict[str, list[str]]:
    """Return, for each strategy, how many groups cannot pop and why."""
    stated = summary.filter(pc.is_valid(summary["cannot_pop"]))
    keys = ["strategy", "cannot_pop"]
    counts = stated.group_by(keys, use_threads=False).aggregate([([], "count_all")])
    texts: dict[str, list[str]] = {}
    for row in counts.sort_by("cannot_pop").to_pylist():
        text = STAY_COUNT % (row["count_all"], row["cannot_pop"])
        texts.setdefault(row["strategy"], []).append(text)
    return texts


def _figures(row: Row, means: Row, stay: list[str]) -> Row:
    minimum, moved = row["minimum_moves"], row["moved_sound"]
    common = {
        "idle_members": row["idle_after"],
        "orphaned": row["orphaned_after"],
        "pop_queues": row["pop_queues_after"],
    }
    if is_popped(row["strategy"]):  # only members of groups that cannot pop own queues
        counts = (row["cannot_pop"], row["rows"], BETWEEN_COUNTS.join(stay))
        nothing = dict.fromkeys((*_MEANS, "worst_peak_ratio", "moved", "minimum_moves"))
        return common | nothing | {"caveat": STAY % counts if stay else None}
    return (
        means
        | common
        | {
            "amplification": moved / minimum if minimum else None,
            "caveat": _league_caveat(row, row["rebalances"] - means["steps"]),
        }
    )


def _league_caveat(row: Row, steps_left_out: int) -> str | None:
    if not row["left_out"]:
        return None
    caveats = BETWEEN_CAVEATS.join(row["caveats"])
    numbers = (row["left_out"], row["rows"], steps_left_out, row["rebalances"])
    return LEFT_OUT % (*numbers, caveats)
