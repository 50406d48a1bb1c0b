"""Files whose times are off by a whole time zone, as shown by the epoch times in them.

A broker prints the time of a client's heartbeat in addition to that of the line, a heartbeat
contains the epoch times of its subscriptions, and a client in consumerStatus has just pulled.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from rebalance_core.ingest.collection import (
    ADMIN,
    BROKER_LOG,
    BROKERS_LOGS,
    CLIENT_LOG,
    NAMESRV_LOG,
    CollectedFile,
    Collection,
)
from rebalance_core.ingest.evidence import Evidence
from rebalance_core.ingest.fact import file_of
from rebalance_core.ingest.file_reader import ZONED_COMMANDS, FileStats
from rebalance_core.ingest.piece import moved
from rebalance_core.ingest.rows import Finding, finding
from rebalance_core.model.timeline import Timeline
from rebalance_core.model.times import HOUR_MS, MINUTE_MS, SECOND_MS
from rebalance_core.model.verdicts import WARNING

ZONE_STEP_MS = 15 * MINUTE_MS
"""Offsets of time zones are multiples of this."""
LEAST_MS = 30 * MINUTE_MS
SLACK_MS = MINUTE_MS
"""The largest difference between the epoch time and the line or dump that can be a time zone."""
PULLED_MS = 30_000
"""A healthy client pulled at most this long ago: a pull waits 15 s for messages."""
AHEAD_MS = 10 * MINUTE_MS
"""If a log continues this long after everything else, its clock is fast rather than its client
having run longer.
"""
LOCAL_FIELDS = (
    "last_pull_ms",
    "last_consume_ms",
    "last_lock_ms",
    "last_pop_ms",
    "last_time_ms",
    "last_updated_ms",
)
"""Fields of dumps in local time."""

Shifts = Mapping[str, int]
"""The correction to add to local times, by file."""
ZONE_SLACK_MS = 2 * SECOND_MS


def is_zone(offset_ms: int) -> bool:
    """Return True if a clock with this offset is in another time zone.

    >>> is_zone(-8 * 3_600_000 + 700), is_zone(60_000)
    (True, False)
    """
    step = round(offset_ms / ZONE_STEP_MS) * ZONE_STEP_MS
    return abs(step) >= LEAST_MS and abs(offset_ms - step) <= ZONE_SLACK_MS


def zone_shifts(collection: Collection, stats: Iterable[FileStats]) -> dict[str, int]:
    """Return the files with times in the wrong zone, and their corrections.

    Args:
        collection: the files.
        stats: the stats of each file.
    """
    counted = {file_stats.name: file_stats for file_stats in stats}
    shifts = _of_dumps(collection.files, counted)
    places: dict[tuple[str, str], list[CollectedFile]] = {}
    for file in collection.files:
        if file.kind in (*BROKERS_LOGS, CLIENT_LOG):
            kind = CLIENT_LOG if file.kind == CLIENT_LOG else BROKER_LOG
            places.setdefault((kind, file.place), []).append(file)
    ends: dict[str, int] = {}
    for file in collection.files:
        end_ms = counted[file.name].last_ms if file.name in counted else None
        end_ms = file.written_ms if file.kind == ADMIN else end_ms
        if end_ms is not None:
            who = file.place if file.kind in (BROKER_LOG, CLIENT_LOG, NAMESRV_LOG) else ""
            who = f"{file.kind} {who}"
            ends[who] = max(end_ms, ends.get(who, 0))
    for (kind, place), files in places.items():
        of_files = [counted[file.name] for file in files]
        low = min(
            (file_stats.gap_low for file_stats in of_files if file_stats.gap_low is not None),
            default=None,
        )
        high = max(
            (file_stats.gap_high for file_stats in of_files if file_stats.gap_high is not None),
            default=None,
        )
        if low is None or high is None:
            continue
        shift = nearest_zone(high, SLACK_MS)
        if kind == BROKER_LOG and nearest_zone(low, SLACK_MS) != shift:
            continue
        if kind == CLIENT_LOG and shift < 0:
            last_ms = ends.pop(f"{CLIENT_LOG} {place}", 0)
            others = [ms for who, ms in ends.items() if not who.startswith(CLIENT_LOG)]
            if last_ms < max(others, default=last_ms) + AHEAD_MS:
                continue  # the newest subscription of a long-running client is old
        shifts |= dict.fromkeys((file.name for file in files), shift) if shift else {}
    return shifts


def _of_dumps(files: Iterable[CollectedFile], counted: Mapping[str, FileStats]) -> dict[str, int]:
    """Return all dumps with local times, if each client of consumerStatus is off by one zone."""
    dumps = [f for f in files if f.kind == ADMIN and f.arguments[0] in ZONED_COMMANDS]
    gaps = [gap for file in dumps if (gap := counted[file.name].gap_low) is not None]
    zones = Counter(nearest_zone(gap - PULLED_MS // 2, PULLED_MS) for gap in gaps)
    if not zones or any(abs(gap) <= 2 * SLACK_MS for gap in gaps):
        return {}
    (shift, times), *_ = zones.most_common()
    return {f.name: shift for f in dumps} if shift and 2 * times > len(gaps) else {}


def nearest_zone(gap_ms: int, slack_ms: int) -> int:
    """Return the nearest time zone offset, or 0 if none is near enough."""
    shift = round(gap_ms / ZONE_STEP_MS) * ZONE_STEP_MS
    return shift if abs(shift) >= LEAST_MS and abs(gap_ms - shift) <= slack_ms else 0


def corrected_stats(stats: Iterable[FileStats], shifts: Shifts) -> list[FileStats]:
    """Return the counts with the files' times corrected."""
    moved = []
    for file_stats in stats:
        shift = shifts.get(file_stats.name, 0)
        first, last = (
            None if ms is None else ms + shift for ms in (file_stats.first_ms, file_stats.last_ms)
        )
        moved.append(
            replace(file_stats, shift_ms=file_stats.shift_ms + shift, first_ms=first, last_ms=last)
        )
    return moved


def stats_in_time(
    stats: Iterable[FileStats], clocks: Mapping[str, Timeline[int]]
) -> list[FileStats]:
    """Return the counts with the files' times corrected by their hosts' clocks.

    Args:
        stats: the stats of files.
        clocks: the corrections by file and position.
    """
    in_time = []
    for file_stats in stats:
        clock = clocks.get(file_stats.name)
        if clock is not None and len(file_stats.parts()) == 1:
            (file_stats,) = corrected_stats([file_stats], {file_stats.name: clock.known_at(0, 0)})
        elif clock is not None:
            file_stats = replace(file_stats, clock=clock)
            parts = file_stats.parts()
            firsts = (part.first_ms for part in parts if part.first_ms is not None)
            lasts = (part.last_ms for part in parts if part.last_ms is not None)
            first_ms, last_ms = min(firsts, default=None), max(lasts, default=None)
            file_stats = replace(file_stats, first_ms=first_ms, last_ms=last_ms)
        in_time.append(file_stats)
    return in_time


def corrected(pieces: Iterable[Evidence], shifts: Shifts) -> Iterator[Evidence]:
    """Yield the evidence, moving that from files whose times are off to the right time."""
    for piece in pieces:
        name = file_of(piece.source)
        shift = shifts.get(name) or shifts.get(name.rpartition("@")[0], 0)
        if shift and name.startswith("mqadmin/"):
            piece = moved(piece, LOCAL_FIELDS, shift)
        elif shift and piece.at_ms is not None:
            piece = replace(piece, at_ms=piece.at_ms + shift)
        yield piece


def zone_findings(collection: Collection, shifts: Shifts) -> Iterator[Finding]:
    """Yield a finding for each machine whose files are off."""
    named: dict[tuple[str, str, int], list[str]] = {}
    for file in collection.files:
        if file.name in shifts:
            shift = shifts[file.name]
            if file.kind == ADMIN:
                what = "the local times of mqadmin's output", "admin_time_zone"
            elif file.kind == CLIENT_LOG:
                what = f"the times of clients/{file.place}", f'time_zones."clients/{file.place}/*"'
            else:
                what = f"the times of brokers/{file.place}", "GMT+8 in its logback file"
            named.setdefault((*what, shift), []).append(file.name)
    for (subject, key, shift), names in sorted(named.items()):
        how = f"{_hours(abs(shift))}, all {'too early' if shift > 0 else 'too late'},"
        yield finding(
            "INGEST_TIME_ZONE",
            f"{subject[0].upper()}{subject[1:]} differ by {how} from the epoch times beside them: "
            f"{key}? They are read as corrected.",
            f"Correct {key}.",
            WARNING,
            evidence={"off_by": how.rstrip(","), "files": ", ".join(names[:20])},
        )


def _hours(span_ms: int) -> str:
    """Return a zone's offset.

    >>> _hours(28_800_000), _hours(19_800_000)
    ('8 h', '5 h 30 min')
    """
    hours, rest = divmod(span_ms, HOUR_MS)
    minutes = f"{rest // MINUTE_MS} min" if rest else ""
    return " ".join(text for text in (f"{hours} h" if hours else "", minutes) if text)
