"""Rows of ``coverage``: the stretches of time that each host's files cover."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import tzinfo
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

from rebalance_core.contracts.observed import (
    CLOCK_UNSURE,
    FROM_START,
    LINES_REFUSED,
    NAME_ALONE,
    STEADY,
)
from rebalance_core.ingest.admin_clock import ClockOff
from rebalance_core.ingest.assumptions import Assumptions
from rebalance_core.ingest.clock_offsets import ClockShifts
from rebalance_core.ingest.clocks import made_as
from rebalance_core.ingest.cluster_context import ClusterContext
from rebalance_core.ingest.collection import (
    ADMIN,
    BROKER_LOG,
    CLIENT_LOG,
    COPY_DIFFERS,
    GIVEN_GROUPS,
    NAMESRV_LOG,
    PROXIES,
    CollectedFile,
    Collection,
    identify,
)
from rebalance_core.ingest.fact import UNPARSABLE_LINE
from rebalance_core.ingest.file_reader import ZONED_COMMANDS, FileStats
from rebalance_core.ingest.log_block import STEP_CHARACTERS
from rebalance_core.ingest.log_parts import Host, LogPart, log_parts
from rebalance_core.ingest.parse.log_lines import SERVER_ZONE, Clock
from rebalance_core.ingest.parse.zones import zone_named
from rebalance_core.model.times import CHANNEL_EXPIRY_MS, CHANNEL_SCAN_MS, SECOND_MS

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import CoverageBegun

ADMIN_HOST = "mqadmin"
SERVER_ZONE_NAME = "GMT+8"
Role = Literal["BROKER", "NAME_SERVER", "PROXY", "CLIENT", "ADMIN"]
_ROLES: dict[str, Role] = {
    "namesrv": "NAME_SERVER",
    "brokers": "BROKER",
    "proxy": "PROXY",
    "clients": "CLIENT",
}
START_MS = 10_000
"""The time around its start during which a broker prints its settings and what it loads."""

# Pauses: times in which a process wrote no lines although it usually writes continuously.
#
# A running broker registers with its name servers every 30 s and logs it; a client commits every 5
# s; a name server scans for dead brokers every 5 s (5.x). A log without some of its templates has
# pauses everywhere, which prove nothing.
STEP_MS = 10 * SECOND_MS
PAUSE_MS = 90 * SECOND_MS
CLIENT_PAUSE_MS = 50 * SECOND_MS
NAME_SERVER_PAUSE_MS = 30 * SECOND_MS
STEADY_STEPS = 5
USUAL_TIMES = 3.5
EXPIRY_MS = CHANNEL_EXPIRY_MS + CHANNEL_SCAN_MS
"""A pause counts as a gap if it is this many times as long as is usual in its log."""


@dataclass(frozen=True)
class _Stretch:
    from_ms: int | None
    to_ms: int | None
    note: str = ""


def coverage_rows(
    collection: Collection,
    stats: Iterable[FileStats],
    assumed: Assumptions,
    context: ClusterContext,
    clocks: ClockShifts,
) -> list[CoverageBegun]:
    """Return the rows, without the cluster: a stretch for each log, and each moment of stores and
    dumps.

    Args:
        collection: the files.
        stats: the stats of each file, with its times corrected.
        assumed: the zone of files without one in ``collection.toml``.
        context: the cluster's context.
        clocks: how far each host's clock is behind.
    """
    counted = {file_stats.name: file_stats for file_stats in stats}
    by_host: dict[tuple[str, Role, str], list[CollectedFile]] = {}
    rows: dict[tuple[object, ...], CoverageBegun] = {}
    for file in collection.files:
        if file.kind != GIVEN_GROUPS:
            by_host.setdefault(_host(file), []).append(file)
    parts = list(log_parts(collection.files, counted))
    for host, files in sorted(by_host.items()):
        if not files[0].is_log:
            of_host = _of_documents(host, files, counted, collection, assumed)
            for row in of_host:
                _note_naming(row, clocks.copies.get(made_as(files[0])))
                _merge(rows, row)
            continue
        for clock, own in _by_clock(host, files, parts, clocks):
            of_clock = {**counted, **{part.file.name: part.stats for part in own}}
            logs = [part.file for part in own] or files
            for row in _of_log(host, logs, of_clock, collection, assumed, context):
                row["clock_offset_ms"] = clocks.offsets.get(clock)
                row["clock_error_ms"] = clocks.left.get(clock)
                if clock in clocks.unsure:
                    _add_note(row, CLOCK_UNSURE)
                _merge(rows, row)
    for piece in collection.refused:
        # if a copy differs, the other file is read
        refused = None if piece.code == COPY_DIFFERS else identify(piece.source)
        if refused is not None and refused.kind != GIVEN_GROUPS:
            note = f"{refused.name}: {piece.code}: {piece.message}"
            stretch = _Stretch(refused.written_ms, refused.written_ms, note)
            _merge(rows, _row(_host(refused), stretch))
    return list(rows.values())


def _by_clock(
    host: tuple[str, Role, str],
    files: Iterable[CollectedFile],
    parts: Iterable[LogPart],
    clocks: ClockShifts,
) -> list[tuple[Host, list[LogPart]]]:
    """Return the clocks that date the files of a log, each with its part of each file.

    A log whose parts are all equally wrong, or uncompared, is a single one, and its files are its
    parts.
    """
    kind, place, names = host[2], host[0], {file.name for file in files}
    by_clock: dict[int, list[LogPart]] = {}
    for part in parts:
        if part.file.name in names:
            place = part.host.place
            by_clock.setdefault(part.host.part, []).append(part)
    numbers = sorted(by_clock) or [0]
    hosts = [Host(kind, place, number) for number in numbers]
    if len({(clocks.offsets.get(host), host in clocks.unsure) for host in hosts}) == 1:
        return [(hosts[0], [])]
    return [(host, by_clock.get(host.part, [])) for host in hosts]


def _note_naming(row: CoverageBegun, copied: ClockOff | None) -> None:
    """Record the clock that names stores or dumps, if it is off."""
    if copied is not None and copied.error_ms is None:
        _add_note(row, CLOCK_UNSURE if copied.compared else NAME_ALONE)
    elif copied is not None:
        row["clock_offset_ms"], row["clock_error_ms"] = copied.behind_ms, copied.error_ms


def _add_note(row: CoverageBegun, note: str) -> None:
    row["note"] = "; ".join(filter(None, (row["note"], note)))


def _host(file: CollectedFile) -> tuple[str, Role, str]:
    """Return the host, role and kind of a file."""
    if file.kind == ADMIN:
        return ADMIN_HOST, "ADMIN", file.kind
    return file.place.removeprefix(PROXIES), _ROLES[file.name.partition("/")[0]], file.kind


def _row(
    host: tuple[str, Role, str],
    stretch: _Stretch,
    files: Iterable[FileStats] = (),
    *,
    complete: bool = False,
    time_zone: str | None = None,
) -> CoverageBegun:
    counts = list(files)
    name, role, kind = host
    return {
        "host": name,
        "role": role,
        "kind": kind,
        "from_ms": stretch.from_ms,
        "to_ms": stretch.to_ms,
        "lines": sum(file_stats.lines for file_stats in counts),
        "understood": sum(file_stats.understood for file_stats in counts),
        "facts": sum(file_stats.facts for file_stats in counts),
        "complete": complete,
        "time_zone": time_zone,
        "clock_offset_ms": None,
        "clock_error_ms": None,
        "note": stretch.note or None,
    }


def _merge(rows: dict[tuple[object, ...], CoverageBegun], row: CoverageBegun) -> None:
    """Add a row, merged with others of the same host, kind and moment."""
    key = row["host"], row["role"], row["kind"], row["from_ms"]
    merged = rows.setdefault(key, row)
    if merged is not row:
        merged["lines"] += row["lines"]
        merged["understood"] += row["understood"]
        merged["facts"] += row["facts"]
        merged["complete"] &= row["complete"]
        merged["time_zone"] = merged["time_zone"] or row["time_zone"]
        merged["note"] = "; ".join(n for n in (merged["note"], row["note"]) if n) or None


def _of_documents(
    host: tuple[str, Role, str],
    files: Iterable[CollectedFile],
    counted: Mapping[str, FileStats],
    collection: Collection,
    assumed: Assumptions,
) -> Iterator[CoverageBegun]:
    """Yield stores and dumps, each of which covers its moment if it is complete."""
    zone = collection.settings.admin_time_zone or assumed.time_zone
    for file in files:
        file_stats = counted[file.name]
        zoned = file.kind == ADMIN and file.arguments[0] in ZONED_COMMANDS
        why = file_stats.partial or (
            "" if file_stats.understood or not file_stats.rejected else file_stats.why
        )
        note = f"{file.name}: {file_stats.code}: {why}" if why else ""
        stretch = _Stretch(file.written_ms, file.written_ms, note)
        whole = not (why or file_stats.unreadable)
        yield _row(host, stretch, [file_stats], complete=whole, time_zone=zone if zoned else None)


def _of_log(
    host: tuple[str, Role, str],
    files: Iterable[CollectedFile],
    counted: Mapping[str, FileStats],
    collection: Collection,
    assumed: Assumptions,
    context: ClusterContext,
) -> Iterator[CoverageBegun]:
    """Yield a log with all its files, from its first to its last line, except for its pauses."""
    settled = {file.name: _zone(file, counted[file.name], collection, assumed) for file in files}
    spans = {
        name: span
        for name, (_, zone) in settled.items()
        if (span := _span(counted[name], zone)) is not None
    }
    unread = [counted[name] for name in settled if counted[name].unreadable]
    why = "; ".join(f"{file_stats.name}: {file_stats.unreadable}" for file_stats in unread)
    stretches = list(_stretches(host, counted, settled, spans, context)) or [_Stretch(None, None)]
    for number, stretch in enumerate(stretches):
        begin, end = stretch.from_ms or 0, stretch.to_ms or 0
        inside = [counted[n] for n, (first, _) in spans.items() if begin <= first <= end]
        inside += [counted[n] for n in settled if n not in spans] if not number else []
        zone = next((settled[file_stats.name][0] for file_stats in inside), None)
        torn = host[2] == BROKER_LOG and any(
            UNPARSABLE_LINE in file_stats.codes for file_stats in inside
        )
        note = "; ".join(filter(None, (stretch.note, LINES_REFUSED if torn else "", why)))
        yield _row(
            host,
            _Stretch(stretch.from_ms, stretch.to_ms, note),
            inside,
            complete=not why,
            time_zone=zone,
        )


def _zone(
    file: CollectedFile, stats: FileStats, collection: Collection, assumed: Assumptions
) -> tuple[str, tzinfo]:
    """Return the zone of the lines' times: servers and 5.1+ clients write GMT+8."""
    if file.kind == CLIENT_LOG and stats.local_heads:
        name = collection.settings.zone_of(file.name) or assumed.time_zone
        return name, zone_named(name)
    return SERVER_ZONE_NAME, SERVER_ZONE


def span_of_heads(
    file: CollectedFile, stats: FileStats, collection: Collection, assumed: Assumptions
) -> tuple[int, int] | None:
    """Return the times of a log's first and last lines with a head, or None if it has none."""
    return _span(stats, _zone(file, stats, collection, assumed)[1])


def _span(stats: FileStats, zone: tzinfo) -> tuple[int, int] | None:
    clock = Clock(zone)
    first, last = clock.second_ms(stats.first_line_at), clock.second_ms(stats.last_line)
    if first is None or last is None:
        return None
    return first + stats.shift_ms, last + stats.shift_ms + SECOND_MS - 1


def _stretches(
    host: tuple[str, Role, str],
    counted: Mapping[str, FileStats],
    settled: Mapping[str, tuple[str, tzinfo]],
    spans: Mapping[str, tuple[int, int]],
    context: ClusterContext,
) -> Iterator[_Stretch]:
    if not spans:
        return
    begin = min(first for first, _ in spans.values())
    end = max(last for _, last in spans.values())
    folder = context.folders.get(host[0])
    starts = [] if folder is None else [ms for ms, _ in context.starts.get(folder.place, ())]
    ends = [] if folder is None else [ms for ms, _ in context.ends.get(folder.place, ())]
    pauses: list[tuple[int, int]] = []
    steady = ""
    if host[2] in (BROKER_LOG, CLIENT_LOG, NAMESRV_LOG):
        steps = {ms for name in spans for ms in _steps(counted[name], settled[name][1])}
        gaps = _gaps(sorted(steps))
        if host[2] == NAMESRV_LOG and len(gaps) >= STEADY_STEPS and _usual(gaps) <= STEP_MS:
            steady = STEADY
        least_ms = CLIENT_PAUSE_MS if host[2] == CLIENT_LOG else PAUSE_MS
        least_ms = NAME_SERVER_PAUSE_MS if steady else least_ms
        longest_ms = max(least_ms, int(USUAL_TIMES * _usual(gaps)))
        # a log that continues with warnings only has a raised level, so routine lines are missing
        routine = [
            *_pauses(sorted(steps), least_ms),
            *_silence(sorted(steps), begin, end, least_ms),
        ]
        pauses = [
            (low, high)
            for low, high in routine
            if not was_away(low, high, starts, ends, longest_ms)
        ]
    note = FROM_START if any(abs(ms - begin) <= START_MS for ms in starts) else ""
    for low, high in pauses:
        yield _Stretch(begin, low, note)
        begin, note = high, ""
    yield _Stretch(begin, end, "; ".join(filter(None, (note, steady))))


def _silence(steps: list[int], begin: int, end: int, least_ms: int) -> Iterator[tuple[int, int]]:
    """Yield the time from the last routine line to the end of the log if it is too long; for a log
    without such a line, yield the whole time.
    """
    last = steps[-1] + STEP_MS if steps else begin + 1
    if end - last > least_ms:
        yield last - 1, end


def was_away(
    low: int, high: int, starts: Iterable[int], ends: Iterable[int], longest_ms: int
) -> bool:
    """Return True if a process that was away or frozen had nothing to write during that time.

    An end is known only after a connection's timeout, whereas a starting process writes at once.
    """
    came = [ms for ms in starts if low <= ms <= high + START_MS]
    went = [ms for ms in ends if low <= ms <= high + START_MS]
    spans = [high - max(came)] if came else []
    spans += [min(went) - EXPIRY_MS - low] if went else []
    return bool(spans) and max(spans) <= longest_ms


def _steps(stats: FileStats, zone: tzinfo) -> Iterator[int]:
    """Yield the steps in which a log has a line, as the epoch ms of their beginnings."""
    clock = Clock(zone)
    for step in sorted(stats.steps):
        at_ms = clock.second_ms(f"{step}0") if len(step) == STEP_CHARACTERS else None
        if at_ms is not None:
            yield at_ms + stats.shift_ms


def _gaps(steps: list[int]) -> list[int]:
    return sorted(later - earlier for earlier, later in pairwise(steps))


def _usual(gaps: list[int]) -> int:
    """Return the usual maximum time until the next step, or 0 if it is unknown.

    The longest gap is taken as usual only if there are fewer than STEADY_STEPS.
    """
    if len(gaps) < STEADY_STEPS:
        return max(gaps, default=0)
    return gaps[min(len(gaps) * 9 // 10, len(gaps) - 2)]


def _pauses(steps: list[int], least_ms: int = PAUSE_MS) -> Iterator[tuple[int, int]]:
    """Yield the ends of each significant pause.

    >>> steady = [10_000 * step for step in (*range(20), *range(60, 80))]
    >>> list(_pauses(steady)), list(_pauses([0, 10_000, 20_000, 30_000, 40_000, 400_000]))
    ([(199999, 600000)], [(49999, 400000)])
    """
    usual = _usual(_gaps(steps))
    for earlier, later in pairwise(steps):
        if later - earlier > max(least_ms, USUAL_TIMES * usual):
            yield earlier + STEP_MS - 1, later
