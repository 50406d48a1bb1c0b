"""Finds processes that come and go, counting per clock hour within each night and across nights."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.audit.group_snapshot import PERSISTENT_MS
from rebalance_core.audit.rules.flapping_members import FLAPS
from rebalance_core.contracts.history import OF_GROUP, OF_HOST
from rebalance_core.model.times import DAY_MS, HOUR_MS

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import FlapsRow, NightsRow

CHANGES = pa.schema(
    [
        ("cluster", pa.string()),
        ("consumer_group", pa.string()),
        ("host", pa.string()),
        ("epoch", pa.int32()),
        ("at_ms", pa.int64()),
        ("joined", pa.bool_()),
        ("short", pa.bool_()),
    ]
)
"""A join or end of a process, with its epoch and time; ``short`` if it ended before the group had
certainly settled after the join.
"""
_PROCESS = ("cluster", "consumer_group", "client_id", "channel_id")
_SUBJECT = ["cluster", "consumer_group", "host"]


def comings_and_goings(memberships: pa.Table) -> pa.Table:
    """Return the joins and ends of processes after the first epoch, with the columns of `CHANGES`.

    Args:
        memberships: rows of the ledger table. Consecutive rows of a process, which differ in its
            settings, are one stay.
    """
    order = [(name, "ascending") for name in (*_PROCESS, "from_epoch")]
    rows = memberships.sort_by(order).combine_chunks()
    if not len(rows):
        return CHANGES.empty_table()
    first, ends = (np.asarray(rows[name].to_numpy()) for name in ("from_epoch", "from_ms"))
    follows = np.ones(len(rows), bool)
    for name in _PROCESS:
        codes = rows[name].dictionary_encode().combine_chunks().indices
        codes = np.asarray(pc.fill_null(codes, -1))
        follows[1:] &= codes[1:] == codes[:-1]
    until = np.asarray(pc.fill_null(rows["to_epoch"], -1))
    follows[0] = False
    follows[1:] &= until[:-1] == first[1:]
    begins = np.flatnonzero(~follows)
    last = np.append(begins[1:], len(rows)) - 1
    over = until[last] >= 0
    ended = last[over]
    stay_ms = np.asarray(rows["to_ms"].take(ended)) - ends[begins[over]]
    short = (first[begins[over]] > 0) & (stay_ms <= PERSISTENT_MS)
    joined = begins[first[begins] > 0]
    ordered = np.concatenate([joined, ended])
    is_join = np.arange(len(ordered)) < len(joined)
    columns = [
        rows["cluster"].take(ordered),
        rows["consumer_group"].take(ordered),
        hosts_of(rows["client_id"].take(ordered)),
        pa.array(np.where(is_join, first[ordered], until[ordered]), pa.int32()),
        pa.array(
            np.where(is_join, ends[ordered], np.asarray(pc.fill_null(rows["to_ms"], 0))[ordered])
        ),
        pa.array(is_join),
        pa.array(np.concatenate([np.zeros(len(joined), bool), short])),
    ]
    return pa.table(columns, schema=CHANGES)


def hosts_of(client_ids: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the part of each client id before its first @."""
    return pc.list_element(pc.split_pattern(client_ids, "@", max_splits=1), 0)


def churn_of(changes: pa.Table) -> pa.Table:
    """Count the joins, ends and short stays of each host of a group by clock hour.

    Returns:
        cluster, consumer_group, host, hour_ms, joins, leaves, short, first_ms, one row for each
        hour with a change.
    """
    hour = pc.multiply(pc.divide(changes["at_ms"], HOUR_MS), HOUR_MS)
    rows = changes.append_column("hour_ms", hour)
    numbers = {
        "joins": changes["joined"],
        "leaves": pc.invert(changes["joined"]),
        "short": changes["short"],
    }
    rows = rows.select([*_SUBJECT, "hour_ms", "at_ms"])
    for name, values in numbers.items():
        rows = rows.append_column(name, values.cast(pa.int64()))
    made = rows.group_by([*_SUBJECT, "hour_ms"], use_threads=False).aggregate(
        [*((name, "sum") for name in numbers), ("at_ms", "min")]
    )
    return made.rename_columns(
        {"at_ms_min": "first_ms"} | {f"{name}_sum": name for name in numbers}
    )


NightChurn = tuple["NightsRow", pa.Table, Mapping[str, set[str]]]

LEAST_NIGHTS = 3
"""An hour recurs if at least this many nights cover it and at least half of them had changes in it.
"""
LEAST_SHARE = 0.5
FEW_HOURS = 3
"""If more hours than this, and more than half of all covered hours, have changes, there is no
recurring time of day.
"""

SubjectKind = Literal["GROUP", "HOST"]
_KINDS: tuple[SubjectKind, ...] = (OF_GROUP, OF_HOST)
_NAME = {OF_GROUP: "consumer_group", OF_HOST: "host"}


def flaps_of(nights: Sequence[NightChurn]) -> "list[FlapsRow]":
    """Return the flapping subjects of a cluster as rows of ``flaps``, in order of their key.

    Args:
        nights: for each night, its row in ``nights``, its `churn_of`, and the names present by kind
            of subject.
    """
    if not nights:
        return []
    covered = _covered_hours([night for night, _, _ in nights])
    cluster = nights[0][0]["cluster"]
    rows: list[FlapsRow] = []
    for kind in _KINDS:
        seen: Counter[str] = Counter()
        for _, _, names in nights:
            seen.update(names[kind])
        for subject, hours in sorted(_hours_by_subject(nights, kind, covered).items()):
            row = _flap(cluster, kind, subject, hours, covered, seen[subject])
            if row is not None:
                rows.append(row)
    return rows


class _Hour:
    """The joins and ends of a subject in a clock hour of a night."""

    __slots__ = ("first", "joins", "leaves", "short")

    def __init__(self) -> None:
        self.joins = self.leaves = self.short = 0
        self.first: tuple[int, str] = (1 << 62, "")


Hours = dict[tuple[int, int], _Hour]
"""The hours of a subject by (night, hour_ms)."""


def _hours_by_subject(
    nights: Sequence[NightChurn], kind: str, covered: Mapping[int, int]
) -> dict[str, Hours]:
    """Return the hours with a change for each subject that may flap.

    For a host in several groups, the busiest group counts.
    """
    name = _NAME[kind]
    rows = pa.concat_tables(
        churn.append_column("night", pa.array([number] * len(churn), pa.int32()))
        for number, (_, churn, _) in enumerate(nights)
    )
    wanted = _candidates(rows, name, covered)
    rows = rows.filter(pc.is_in(rows[name], wanted))
    names = (name, "night", "hour_ms", "host", "joins", "leaves", "short", "first_ms")
    hours: dict[str, Hours] = defaultdict(dict)
    add = max if kind == OF_HOST else int.__add__
    for subject, night, hour_ms, host, joins, leaves, short, first_ms in zip(
        *(rows[column].to_pylist() for column in names), strict=True
    ):
        hour = hours[subject].setdefault((night, hour_ms), _Hour())
        hour.joins, hour.leaves = add(hour.joins, joins), add(hour.leaves, leaves)
        hour.short = add(hour.short, short)
        hour.first = min(hour.first, (first_ms, host))
    return hours


def _candidates(rows: pa.Table, name: str, covered: Mapping[int, int]) -> pa.Array:
    """Return the subjects with many short stays in one night or changes in the same hour of many
    nights.
    """
    hours = pc.divide(rows["hour_ms"], HOUR_MS)
    of_day = pc.subtract(hours, pc.multiply(pc.divide(hours, 24), 24))
    rows = rows.append_column("hour", of_day)
    stays = rows.group_by([name, "night"]).aggregate([("short", "sum")])
    flapping = stays.filter(pc.greater_equal(stays["short_sum"], FLAPS))[name]
    times = rows.group_by([name, "hour"]).aggregate([("night", "count_distinct")])
    least = min((n for n in covered.values() if n >= LEAST_NIGHTS), default=LEAST_NIGHTS)
    often = max(LEAST_SHARE * LEAST_NIGHTS, LEAST_SHARE * least)
    recurring = times.filter(pc.greater_equal(times["night_count_distinct"], often))[name]
    return pa.chunked_array([*flapping.chunks, *recurring.chunks], pa.string()).unique()


def _covered_hours(nights: "Iterable[NightsRow]") -> Counter[int]:
    """Return how many nights cover each hour of the day, fully or partly."""
    covered: Counter[int] = Counter()
    for night in nights:
        first, last = night["start_ms"] // HOUR_MS, night["end_ms"] // HOUR_MS
        covered.update({hour % 24 for hour in range(first, min(last, first + 23) + 1)})
    return covered


def _flap(
    cluster: str,
    kind: SubjectKind,
    subject: str,
    hours: Hours,
    covered: Counter[int],
    nights_seen: int,
) -> "FlapsRow | None":
    """Return the row of a flapping subject, or None if it does not flap."""
    recurring = _recurring_hours(hours, covered)
    counting = {key for key in hours if key[1] % DAY_MS // HOUR_MS in recurring}
    counting |= set(_bursts(hours))
    if not counting:
        return None
    chosen = [hours[key] for key in counting]
    times = [hour_ms for _, hour_ms in counting]
    return {
        "cluster": cluster,
        "subject_kind": kind,
        "subject": subject,
        "from_ms": min(times),
        "to_ms": max(times) + HOUR_MS,
        "joins_per_hour": sum(hour.joins for hour in chosen) / len(chosen),
        "leaves_per_hour": sum(hour.leaves for hour in chosen) / len(chosen),
        "share_of_nights": len({night for night, _ in counting}) / max(1, nights_seen),
        "recurring_hours": recurring,
        "first_mover": _first_mover(chosen) if kind == OF_GROUP else None,
    }


def _recurring_hours(hours: Hours, covered: Counter[int]) -> list[int]:
    night_hours = {(night, hour_ms % DAY_MS // HOUR_MS) for night, hour_ms in hours}
    of_day = Counter(hour for _, hour in night_hours)
    recurring = sorted(
        hour
        for hour, nights in of_day.items()
        if covered[hour] >= LEAST_NIGHTS and nights >= LEAST_SHARE * covered[hour]
    )
    all_day = len(recurring) > FEW_HOURS and 2 * len(recurring) > len(covered)
    return [] if all_day else recurring


def _bursts(hours: Hours) -> Iterator[tuple[int, int]]:
    """Yield the hours that, together with a neighbour, have as many short stays as MEMBER_FLAPS
    requires.
    """
    for (night, hour_ms), hour in hours.items():
        after = (night, hour_ms + HOUR_MS)
        next_one = hours.get(after)
        if hour.short >= FLAPS:
            yield night, hour_ms
        elif next_one is not None and hour.short and hour.short + next_one.short >= FLAPS:
            yield night, hour_ms
            if next_one.short:
                yield after


def _first_mover(hours: Sequence[_Hour]) -> str | None:
    """Return the host that changed first in most of the hours, or None."""
    host, times = Counter(hour.first[1] for hour in hours).most_common(1)[0]
    return host if 2 * times > len(hours) else None
