"""Reads and combines a whole collection in this process: the plain form of the job.

The Spark job calls the same functions and only distributes the files, groups and topics.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from typing import TYPE_CHECKING, BinaryIO

import pyarrow as pa

from rebalance_core.contracts.fact_declaration import CLUSTER
from rebalance_core.ingest.assumptions import Assumptions
from rebalance_core.ingest.collection import (
    ADMIN,
    CLIENT_LOG,
    GIVEN_GROUPS,
    UNKNOWN_FILE,
    CollectedFile,
    Collection,
    identify,
    open_collection,
)
from rebalance_core.ingest.evidence import Evidence
from rebalance_core.ingest.evidence_table import COUNTED, evidence_batches, pieces_of, stats_of
from rebalance_core.ingest.fact import SET_APART, Unread, Unreadable, storable
from rebalance_core.ingest.file_reader import (
    MOST_STEPS,
    Edges,
    FileReader,
    FileStats,
    is_alone,
    joined_period,
)
from rebalance_core.ingest.group_names import OtherName
from rebalance_core.ingest.group_tables import complete
from rebalance_core.ingest.log_block import lines_in
from rebalance_core.ingest.opening_evidence import ContinuedCollection
from rebalance_core.ingest.parse.encodings import decoded
from rebalance_core.ingest.parse.log_blocks import blocks_of
from rebalance_core.ingest.renamed_groups import other_names
from rebalance_core.ingest.rows import merged
from rebalance_core.ingest.store_copies import FILE_BITS
from rebalance_core.ingest.whole_cluster import WholeCluster
from rebalance_core.model.errors import InputRefused
from rebalance_core.model.file_statuses import NOT_UNDERSTOOD, READ, REFUSED, STATES_NOTHING
from rebalance_core.storage.files_to_read import FileToRead
from rebalance_core.storage.place import Location
from rebalance_core.storage.store_answers import is_of_store

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import RowsByTable
    from rebalance_core.ingest.file_record import FileRecord

_ADDED = ("lines", "understood", "facts", "rejected", "jumps_back", "local_times", "line_bytes")
"""Counts of a file that are summed over its splits."""


@dataclass(frozen=True)
class Ingested:
    """The contents of a collection.

    Attributes:
        tables: The rows of the tables.
        stats: How much of each file was understood.
        evidence: The files' facts, as `EVIDENCE_SCHEMA`; packed on demand.
        end_ms: The end of the collection.
        left_out: Files from other brokers or clusters, which do not count.
    """

    tables: RowsByTable
    stats: tuple[FileStats, ...]
    evidence: Iterable[pa.RecordBatch]
    end_ms: int
    left_out: frozenset[str]


def ingest_collection(folder: Location, assumed: Assumptions | None = None) -> Ingested:
    """Open and read a collection in this process.

    Raises:
        InputRefused: see `open_collection`.
    """
    return read_collection(open_collection(folder), assumed)


def read_collection(
    collection: Collection,
    assumed: Assumptions | None = None,
    progress: Callable[[int, int], object] | None = None,
    opening: Iterable[pa.RecordBatch] = (),
) -> Ingested:
    """Read every file of a collection in this process; needs memory for all their facts.

    Args:
        collection: `open_collection` of a folder.
        assumed: the settings that apply where no file states them.
        progress: called with the number of files read so far and the total.
        opening: the opening rows of a `ContinuedCollection`.

    Raises:
        InputRefused: as for `refuse_other_names`.
    """
    if not isinstance(collection, ContinuedCollection):
        collection.refuse_without_state()
    assumed = assumed or Assumptions()
    stated = list(pieces_of(opening))
    evidence = [piece for piece in stated if piece.part != COUNTED]
    stats = [stats_of(piece) for piece in stated if piece.part == COUNTED]
    refused: list[Unread] = []
    files = [file for file in collection.own_files if file.kind != GIVEN_GROUPS]
    for done, file in enumerate(files, 1):
        reader = reader_of(collection, file, assumed)
        for piece in read_file(reader, collection.path_of(file)):
            if isinstance(piece, Unread):
                refused.append(piece)
            else:
                evidence.append(piece)
        stats.append(reader.stats)
        if progress is not None:
            progress(done, len(files))
    if stated:
        stats = total_stats(collection, stats)
    names = () if collection.other_names else other_names(stats)
    if names:
        refuse_other_names(collection, names)
        return read_collection(replace(collection, other_names=names), assumed, progress)
    of_cluster = [piece for piece in evidence if piece.part == CLUSTER]
    cluster = WholeCluster.from_files(collection, stats, of_cluster, assumed)
    by_key: dict[tuple[str, str], list[Evidence]] = {}
    for piece in evidence:
        if piece.part != CLUSTER:
            by_key.setdefault((piece.part, piece.key), []).append(piece)
    keyed = cluster.keyed
    of_keys = (keyed.tables(part, key, by_key[part, key]) for part, key in sorted(by_key))
    tables = merged(cluster.tables, *of_keys, keyed.rejected(refused))
    return Ingested(
        complete(tables, keyed.context.cluster),
        cluster.stats,
        _Packed([*evidence, *stats]),
        keyed.context.end_ms,
        keyed.strangers,
    )


@dataclass(frozen=True, eq=False)
class _Packed:
    """Batches of `EVIDENCE_SCHEMA`, created anew each time."""

    pieces: list[Evidence | FileStats]

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return evidence_batches(self.pieces)


def refuse_other_names(collection: Collection, names: Sequence[OtherName]) -> None:
    """Raise `InputRefused` if groups receive names that the opening state does not have."""
    if isinstance(collection, ContinuedCollection):
        name = names[0]
        raise InputRefused(
            f"--state {collection.opening.shown}: dumps call the group {name.in_logs} of the logs "
            f"{name.group}, and the state was read without this knowledge; start without a state"
        )


def reader_of(collection: Collection, file: CollectedFile, assumed: Assumptions) -> FileReader:
    """Return the reader of one file, with its time zone and the brokers' names."""
    settings = collection.settings
    zone = settings.admin_time_zone if file.kind == ADMIN else settings.zone_of(file.name)
    zone = zone or assumed.time_zone
    names = {other.in_logs: other.group for other in collection.other_names}
    return FileReader(file, zone, collection.brokers, names)


def read_file(reader: FileReader, place: FileToRead) -> Iterator[Evidence | Unread]:
    """Yield everything stated by one file; unreadable files are refused.

    Raises:
        OSError: The object store failed, for which no file is refused.
    """

    def stated() -> Iterator[Evidence | Unread]:
        if reader.file.is_log:
            yield from _read_log(reader, _blocks(reader.file, place))
        else:
            yield from reader.read_document(decoded(place.read_bytes()))

    yield from _or_refused(reader, stated())


def _or_refused(
    reader: FileReader, stated: Iterable[Evidence | Unread]
) -> Iterator[Evidence | Unread]:
    """Yield what a file states, and its refusal if reading cannot continue."""
    try:
        yield from stated
    except Unreadable as refusal:
        yield reader.refuse(refusal)
    except OSError as error:
        if is_of_store(error):
            raise
        why = f"cannot be read: {error.strerror or error}"
        yield reader.refuse(Unreadable("UNREADABLE_FILE", why))


@dataclass(frozen=True)
class Content:
    """A `FileToRead` whose bytes are known."""

    content: bytes

    def open(self, at: int = 0) -> BinaryIO:
        """Open the bytes from the given one on."""
        opened = BytesIO(self.content)  # shares the bytes, unlike a slice
        opened.seek(at)
        return opened

    def read_bytes(self) -> bytes:
        """Return the bytes."""
        return self.content


def read_range(
    reader: FileReader, place: FileToRead, start: int, size: int
) -> Iterator[Evidence | Unread]:
    """Yield all facts in those lines of a log that begin within a range of its bytes.

    Args:
        reader: the reader of the log, whose lines are not wrapped.
        place: its location.
        start: the first byte of the range.
        size: the number of bytes in the range.

    Raises:
        OSError: as for `read_file`.
    """
    reader.stats.begins = start

    def stated() -> Iterator[Evidence | Unread]:
        done = 0
        with place.open(max(0, start - 1)) as opened:
            for block in blocks_of(_Lines(opened, start, size), size, gzipped=False):
                lines = lines_in(block)
                yield from reader.read_lines(lines, done, start)
                done += len(lines)

    yield from _or_refused(reader, stated())


class _Lines:
    """The whole lines that begin in a range of a file, in the form in which `blocks_of` reads a
    file.
    """

    def __init__(self, opened: BinaryIO, start: int, size: int) -> None:
        """Skip the rest of the line that begins before the range.

        Args:
            opened: the file, at the byte before the range; at 0 if it begins there.
            start: the first byte of the range.
            size: the number of bytes in the range.
        """
        self._opened, self._left = opened, size
        self._open_end = False
        if start:
            self._left += 1  # the byte before the range ends a line, or the line continues in it
            while (skipped := opened.readline(_SKIPPED)) and not skipped.endswith(b"\n"):
                self._left -= len(skipped)
            self._left -= len(skipped)

    def read(self, size: int, /) -> bytes:
        """Return the next bytes, up to this number."""
        if self._left > 0:
            block = self._opened.read(min(size, self._left))
            self._left -= len(block)
            self._open_end = not block.endswith(b"\n")
            return block
        if self._open_end:
            rest = self._opened.readline(size)
            self._open_end = bool(rest) and not rest.endswith(b"\n")
            return rest
        return b""


_SKIPPED = 1 << 20
"""Number of bytes of a long line that are skipped at a time."""


def _read_log(reader: FileReader, blocks: Iterable[bytes]) -> Iterator[Evidence | Unread]:
    """Yield all facts in the lines of a log, from where an earlier run stopped."""
    before = reader.file.lines_before
    reader.stats.begins = reader.file.begins_at
    for block in blocks:
        lines = lines_in(block)
        yield from reader.read_lines(lines, before)
        before += len(lines)
    yield from reader.read_rest(before)


def _blocks(file: CollectedFile, place: FileToRead) -> Iterator[bytes]:
    with place.open(file.begins_at - file.left_out) as opened:
        encoding = file.wrapping.encoding
        yield from blocks_of(opened, file.size, gzipped=file.gzipped, encoding=encoding)


def total_stats(collection: Collection, parts: Iterable[FileStats]) -> list[FileStats]:
    """Return the counts of each file, in order, with splits added up; all 0 if nothing was read."""
    files = {file.name: file for file in collection.files if file.kind != GIVEN_GROUPS}
    totals = {name: FileStats(name, file.kind) for name, file in files.items()}
    for part in sorted(parts, key=lambda part: part.begins):
        total, file = totals[part.name], files[part.name]
        number = file.lines_before if part.begins == file.begins_at else part.begins
        _add_steps_back(total, part, (file.turn << FILE_BITS) + number + 1)
        for name in _ADDED:
            setattr(total, name, getattr(total, name) + getattr(part, name))
        if total.below:
            total.understood += part.leading
        total.below = total.below if part.below is None else part.below
        for code, times in part.codes.items():
            total.codes[code] = total.codes.get(code, 0) + times
        for name in ("first_line", "looks_like", "why", "partial"):
            setattr(total, name, getattr(total, name) or getattr(part, name))
        total.last_line = max(total.last_line, part.last_line)
        begins = [counts.first_line_at for counts in (total, part) if counts.first_line_at]
        total.first_line_at = min(begins, default="")
        total.local_heads |= part.local_heads
        for mark, moments in part.marks.items():
            total.marks[mark] = [*total.marks.get(mark, ()), *moments]
        for name, dated in part.witnessed.items():
            earlier = total.witnessed.get(name, ())
            total.witnessed[name] = [*earlier, *((at_ms, value) for at_ms, value in dated)]
        for step, lines in part.steps.items():
            total.steps[step] = total.steps.get(step, 0) + lines
        for gap in (part.gap_low, part.gap_high):
            if gap is not None:
                total.count_gap(gap)
        total.unreadable = max(total.unreadable, part.unreadable)
        total.worst_jump_ms = max(total.worst_jump_ms, part.worst_jump_ms)
        firsts = [counts.first_ms for counts in (total, part) if counts.first_ms is not None]
        lasts = [counts.last_ms for counts in (total, part) if counts.last_ms is not None]
        total.first_ms, total.last_ms = min(firsts, default=None), max(lasts, default=None)
    return list(totals.values())


def _add_steps_back(total: FileStats, part: FileStats, position: int) -> None:
    """Add the points where a split's times go back, before its moments are added to the total.

    Args:
        total: the total of the previous splits.
        part: the part of this split.
        position: the position of its first line.
    """
    if total.ended_at and part.begun_at:
        part = _joined_edges(total, part, position)
    for step in part.steps_back[: MOST_STEPS + 1 - len(total.steps_back)]:
        marks, witnessed = (
            {n: len(before.get(n, ())) + of.get(n, 0) for n in {*before, *of}}
            for before, of in ((total.marks, step.marks), (total.witnessed, step.witnessed))
        )
        period = joined_period(total.period, step.period)
        total.steps_back.append(step._replace(period=period, marks=marks, witnessed=witnessed))
        total.period = None
    for pause in part.pauses:
        total.pause(pause)
    total.period = joined_period(total.period, part.period)
    total.edges = part.edges if part.begun_at else total.edges
    total.begun_at = total.begun_at or part.begun_at
    total.ended_at = part.ended_at or total.ended_at


def _joined_edges(total: FileStats, part: FileStats, position: int) -> FileStats:
    """Record a step between two splits; return the second one as the continuation of the first.

    Args:
        total: the total of the previous splits.
        part: the part of this split.
        position: the position of its first line.
    """
    before, after = total.edges, part.edges
    total.goes_on(part.begun_at)
    earlier = before.last_but_one
    mixed = part.kind == CLIENT_LOG and before.last_local != after.first_local
    if not mixed and not is_alone(total.ended_at, part.begun_at, earlier, after.second):
        total.step_back(position, total.ended_at, part.begun_at)
    steps, period = list(part.steps_back), part.period
    if steps and steps[0].position == after.early:
        first = steps[0]
        if is_alone(first.before, first.after, total.ended_at, ""):
            rest = joined_period(first.period, steps[1].period if len(steps) > 1 else period)
            steps = steps[1:]
            if steps:
                steps[0] = steps[0]._replace(period=rest)
            else:
                period = rest
    edges = Edges(
        second=before.second or part.begun_at,
        last_but_one=after.last_but_one or total.ended_at,
        first_local=before.first_local,
        last_local=after.last_local,
        early=before.early,
        open=after.open if after.second else position,
    )
    return replace(part, steps_back=steps, period=period, edges=edges)


def understood(collection: Collection, stats: Iterable[FileStats]) -> list[FileRecord]:
    """Account for each file of a collection, by name, for ``_run.json``.

    Args:
        collection: `open_collection` of a folder.
        stats: the stats of each file that is read.

    Returns:
        The status and its reason, the number of lines, how many were understood, and the share.
    """
    earlier = {file.name for file in collection.files if file.earlier}
    own = (file_stats for file_stats in stats if file_stats.name not in earlier)
    rows = [_accounted(file_stats, *_status(file_stats)) for file_stats in own]
    for file in collection.own_files:
        if file.kind == GIVEN_GROUPS:
            rows.append(_accounted(FileStats(file.name, file.kind), READ))
    for piece in collection.refused:
        status = NOT_UNDERSTOOD if piece.code == UNKNOWN_FILE else REFUSED
        file_stats = FileStats(
            piece.source, rejected=1, codes={piece.code: 1}, kind=_kind(piece.source)
        )
        rows.append(
            _accounted(file_stats, status, piece.message.removeprefix(f"{piece.source!r} "))
        )
    for unused in collection.unused:
        file_stats = FileStats(storable(unused.name), _kind(unused.name))
        rows.append(_accounted(file_stats, STATES_NOTHING, storable(unused.why)))
    return sorted(rows, key=lambda row: row["name"])


def _kind(name: str) -> str:
    """Return the kind of a file that is not read, by its path, or an empty string if it has
    none.
    """
    file = identify(name)
    return file.kind if file else ""


def _status(file_stats: FileStats) -> tuple[str, str]:
    """Return the status of an opened file, and the reason."""
    if file_stats.code in SET_APART:
        return REFUSED, file_stats.why
    if file_stats.understood:
        return READ, file_stats.partial or file_stats.why or (
            "" if file_stats.facts else "it states nothing"
        )
    if file_stats.lines or file_stats.rejected:
        looks = f"it looks like {file_stats.looks_like}" if file_stats.looks_like else ""
        return NOT_UNDERSTOOD, file_stats.why or looks or "no line has the expected form"
    return READ, "it is empty"


def _accounted(file_stats: FileStats, status: str, reason: str = "") -> FileRecord:
    return {
        "name": file_stats.name,
        "kind": file_stats.kind,
        "lines": file_stats.lines,
        "understood": file_stats.understood,
        "facts": file_stats.facts,
        "rejected": file_stats.rejected,
        "first_ms": file_stats.first_ms,
        "last_ms": file_stats.last_ms,
        "jumps_back": file_stats.jumps_back,
        "worst_jump_ms": file_stats.worst_jump_ms,
        "last_line": file_stats.last_line,
        "unreadable": file_stats.unreadable,
        "local_times": file_stats.local_times,
        "codes": dict(file_stats.codes),
        "rejected_rows": 1 if file_stats.refused_whole else file_stats.rejected,
        "share_understood": round(file_stats.understood / file_stats.lines, 4)
        if file_stats.lines
        else None,
        "status": status,
        "reason": reason,
    }


def with_lines(rejected: Mapping[str, int], files: Iterable[FileRecord]) -> dict[str, int]:
    """Count refused lines by code; ``rejected`` has a single row for a file refused as a whole.

    Args:
        rejected: the number of occurrences of each code in ``rejected``.
        files: `understood`.
    """
    lines = Counter(rejected)
    for file in files:
        if file["rejected_rows"] < file["rejected"]:
            lines += Counter({code: times - 1 for code, times in file["codes"].items()})
    return dict(sorted(lines.items()))
