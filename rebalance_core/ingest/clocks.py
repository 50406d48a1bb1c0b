"""Brings all times of a collection into step: zones, hosts' clocks and clocks that name files."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from rebalance_core.ingest.admin_clock import DUMPS, STORES, ClockOff, LogClocks, clocks_off
from rebalance_core.ingest.broker_folders import BrokerFolder, broker_folders
from rebalance_core.ingest.clock_offsets import ClockShifts, clock_shifts
from rebalance_core.ingest.clock_zones import Shifts, corrected_stats, stats_in_time, zone_shifts
from rebalance_core.ingest.collection import (
    ADMIN,
    STORE_KINDS,
    CollectedFile,
    Collection,
)
from rebalance_core.ingest.evidence import Evidence, is_on_cluster
from rebalance_core.ingest.file_reader import FileStats
from rebalance_core.model.timeline import Timeline


@dataclass(frozen=True)
class InTime:
    """A collection whose times are in step.

    Attributes:
        collection: its documents at the corrected times.
        stats: the stats of each file, with its times corrected.
        shifts: the local times that are off by a zone.
        clocks: the clocks that are off.
    """

    collection: Collection
    stats: list[FileStats]
    shifts: Shifts
    clocks: ClockShifts


def in_time(
    collection: Collection, stats: Iterable[FileStats], of_cluster: Iterable[Evidence]
) -> InTime:
    """Find the wrong times in a collection, and correct those of its files.

    Args:
        collection: the files.
        stats: the stats of each file.
        of_cluster: evidence on the cluster, at the times in the files.
    """
    read = list(stats)
    ends = [
        *(file_stats.last_ms for file_stats in read),
        *(file.written_ms for file in collection.files),
    ]
    end_ms = max((ms for ms in ends if ms is not None), default=0)
    expected = collection.settings.brokers
    stated = filter(is_on_cluster, of_cluster)
    folders, _ = broker_folders(collection.broker_folders, stated, expected, end_ms)
    shifts = zone_shifts(collection, read)
    zoned = corrected_stats(read, shifts)
    clocks = clock_shifts(collection, zoned)
    zoned = _cut(zoned, clocks)
    off = _naming_off(collection, zoned, clocks, folders)
    naming = next((clock for clock in off.values() if clock.behind_ms), None)
    if naming is not None and any(clocks.offsets.values()):
        clocks = clock_shifts(collection, _cut(zoned, ClockShifts()), naming)
        zoned = _cut(zoned, clocks)
        off = _naming_off(collection, zoned, clocks, folders)
    behind = {what: clock.behind_ms for what, clock in off.items() if clock.behind_ms}
    moved = {f.name: behind[m] for f in collection.files if (m := made_as(f)) in behind}
    if DUMPS in behind:
        # a difference that a clock explains is not a time zone
        shown = [
            replace(file_stats, gap_low=file_stats.gap_low + moved[file_stats.name])
            if file_stats.name in moved and file_stats.gap_low is not None
            else file_stats
            for file_stats in read
        ]
        shifts = zone_shifts(collection, shown)
        zoned = _cut(corrected_stats(read, shifts), clocks)
    off_by = {what: clock.off_by_ms for what, clock in off.items() if clock.off_by_ms}
    errors = {f.name: off_by[m] for f in collection.files if (m := made_as(f)) in off_by}
    named: dict[str, Timeline[int]] = {name: Timeline.always(ms) for name, ms in moved.items()}
    clocks = replace(clocks, heads={**clocks.heads, **named}, copies=off, errors=errors)
    files = tuple(
        replace(f, written_ms=f.written_ms + moved[f.name])
        if f.name in moved and f.written_ms is not None
        else f
        for f in collection.files
    )
    return InTime(
        replace(collection, files=files), stats_in_time(zoned, clocks.heads), shifts, clocks
    )


def _cut(stats: Iterable[FileStats], clocks: ClockShifts) -> list[FileStats]:
    """Return the counts of logs that are split where their hosts' clocks were set forward."""
    return [replace(each, set_forward=clocks.set_forward.get(each.name, ())) for each in stats]


def _naming_off(
    collection: Collection,
    zoned: Iterable[FileStats],
    clocks: ClockShifts,
    folders: Mapping[str, BrokerFolder],
) -> dict[str, ClockOff]:
    unsure = frozenset(clocks.unsure)
    log_clocks = LogClocks(clocks.heads, clocks.beats, clocks.clients, unsure, folders)
    return clocks_off(collection.files, zoned, log_clocks)


def made_as(file: CollectedFile) -> str:
    """Return the clock in the file's name, `DUMPS` or `STORES`, or an empty string."""
    return DUMPS if file.kind == ADMIN else STORES if file.kind in STORE_KINDS else ""
