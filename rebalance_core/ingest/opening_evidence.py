"""The opening state of an ingest: statements from an earlier run's files, read before its own.

A log that is present again continues where the earlier run ended; it is the same log if it begins
with the same bytes and has the same ones before that place, regardless of its name after rotation.
Stores and dumps from the earlier run remain evidence for their moments, and logs that are now
missing remain evidence for their period.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Collection as AnyCollection
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, TypedDict, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.contracts.fact_declaration import GROUP
from rebalance_core.contracts.opening_state import EVIDENCE, EVIDENCE_FILES
from rebalance_core.contracts.table import batch_of_columns, rows_of_arrow
from rebalance_core.ingest.collection import (
    ADMIN,
    GIVEN_GROUPS,
    GROUPS,
    PROXY_LOG,
    CollectedFile,
    Collection,
    UnusedFile,
    head_of,
    with_newest,
    with_turns,
)
from rebalance_core.ingest.evidence_table import COUNTED, REFUSED
from rebalance_core.ingest.group_names import OtherName
from rebalance_core.ingest.parse.wrapped_lines import Wrapping
from rebalance_core.ingest.store_copies import FILE_BITS
from rebalance_core.model.errors import InputRefused
from rebalance_core.model.times import DAY_MS
from rebalance_core.storage.files_to_read import FileToRead
from rebalance_core.storage.store_answers import is_of_store

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import EvidenceFilesRow

FORM: Final = 2
"""Version of the fields; a state in another form is refused."""
KEPT_MS = 8 * DAY_MS
"""Older evidence is dropped from a state, so that the state does not grow forever."""
HEAD_BYTES: Final = 4096
"""The number of bytes at the beginning of a log that identify it; a second line among them has a
different time. As many at the end of what was read identify that.
"""
_CHUNK = 1 << 20
_STORE_COUNTS = ("group_configs", "exported_group_configs")
_WHOLE = ""
"""The name of the `EVIDENCE_FILES` row for the collection as a whole."""
Made = TypeVar("Made")


class _WholeFields(TypedDict):
    """The ``fields`` of that row."""

    form: int
    cluster: str
    end_ms: int
    other_names: Sequence[dict[str, str]]
    brokers: Sequence[str]
    redacted: bool


class _CollectedFields(TypedDict):
    """The fields of a `CollectedFile` that has others in it."""

    wrapping: Mapping[str, object]


class FileFields(TypedDict):
    """What is read of the ``fields`` of a file's row, which are those of `EarlierFile`."""

    file: _CollectedFields
    head_bytes: int
    head: str
    last_ms: int | None


@dataclass(frozen=True)
class EarlierFile:
    """A file that an earlier run read.

    Attributes:
        file: The file as that run read it; ``size`` is the number of bytes read.
        first_time: For a log, its first time, as `first_time` returns it.
        head_bytes: The number of decompressed bytes of a log that `head` covers; 0 if it is not a
            log.
        head: Their SHA-256.
        ending: The SHA-256 of as many last bytes that were read, as they are in the file; empty if
            an earlier version wrote the state. The log is then read completely.
        lines: The number of lines in a log; None if it cannot be continued from its end, because it
            is compressed or wrapped, it is a proxy's, whose entries continue on the next lines, or
            its last line is cut off.
        last_ms: The time of its last fact; None if it has none.
    """

    file: CollectedFile
    first_time: str = ""
    head_bytes: int = 0
    head: str = ""
    ending: str = ""
    lines: int | None = None
    last_ms: int | None = None


@dataclass(frozen=True)
class KeptFile:
    """How the evidence of an earlier file is used.

    Attributes:
        name: Its name in this run's collection.
        shift: The amount added to positions.
        without_groups: Whether group configurations come from a newer store or export.
    """

    name: str
    shift: int = 0
    without_groups: bool = False


@dataclass(frozen=True)
class OpeningEvidence:
    """The evidence kept by an earlier run.

    Attributes:
        place: The folder with the tables, in the runtime's form.
        shown: The name of the run in messages.
        cluster: Its cluster.
        end_ms: The end of its collection.
        files: The files it read.
        other_names: As in `Collection`.
        brokers: Names of brokers in its dumps.
        redacted: Whether names were replaced by others.
    """

    place: Any
    shown: str
    cluster: str
    end_ms: int
    files: tuple[EarlierFile, ...]
    other_names: tuple[OtherName, ...] = ()
    brokers: tuple[str, ...] = ()
    redacted: bool = False

    @classmethod
    def read(cls, place: Any, shown: str, rows: pa.Table) -> OpeningEvidence:
        """Return the opening state left by an earlier run.

        Args:
            place: See the attribute.
            shown: See the attribute.
            rows: The rows of `EVIDENCE_FILES`.

        Raises:
            InputRefused: It was written in the form of another version of this library.
        """
        stored: list[EvidenceFilesRow] = rows_of_arrow(rows)
        texts = {row["name"]: row["fields"] for row in stored}
        whole: _WholeFields = json.loads(texts.pop(_WHOLE, "{}"))
        if whole.get("form") != FORM:
            raise InputRefused(
                f"--state {shown}: another version of rebalance-core wrote it; start without a "
                "state"
            )
        return cls(
            place,
            shown,
            whole["cluster"],
            whole["end_ms"],
            tuple(_earlier_file(json.loads(text)) for text in texts.values()),
            tuple(OtherName(**name) for name in whole["other_names"]),
            tuple(whole["brokers"]),
            whole["redacted"],
        )


@dataclass(frozen=True)
class ContinuedCollection(Collection):
    """A collection read as the continuation of an earlier run.

    Attributes:
        opening: The state of the earlier run.
        kept: Each file whose evidence counts, by its name in the earlier run.
    """

    opening: OpeningEvidence = field(kw_only=True)
    kept: Mapping[str, KeptFile] = field(kw_only=True)

    def rows(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of `EVIDENCE` that count, under the names of this collection."""
        names, files = pa.array(list(self.kept), pa.string()), list(self.kept.values())
        for batch in batches:
            yield _kept_rows(batch, names, files)


def _earlier_file(fields: FileFields) -> EarlierFile:
    of_file = fields["file"]
    wrapping = _made(Wrapping, of_file["wrapping"])
    return _made(EarlierFile, fields, file=_made(CollectedFile, of_file, wrapping=wrapping))


def _made(kind: Callable[..., Made], fields: Mapping[str, object], **parts: object) -> Made:
    """Return an object of a dataclass from its fields in JSON, in which tuples are lists, and from
    its parts that are dataclasses.
    """
    values = {name: tuple(v) if isinstance(v, list) else v for name, v in fields.items()}
    return kind(**values | parts)


def _kept_rows(
    rows: pa.RecordBatch, names: pa.StringArray, files: list[KeptFile]
) -> pa.RecordBatch:
    """Return the rows of the files that count, under their current names and at their current
    places.
    """
    whole = pc.index_in(rows["source"], names)
    of_line = pc.index_in(pc.replace_substring_regex(rows["source"], r"[:@]\d+$", ""), names)
    line = pc.replace_substring_regex(rows["source"], r"^.*([:@]\d+)$", r"\1")
    number = pc.coalesce(whole, of_line)
    without_groups = pa.array([file.without_groups for file in files], pa.bool_()).take(number)
    of_groups = pc.or_(
        pc.equal(rows["part"], GROUP), pc.is_in(rows["kind"], pa.array(_STORE_COUNTS))
    )
    name = pa.array([file.name for file in files], pa.string()).take(number)
    shift = pa.array([file.shift for file in files], pa.int64()).take(number)
    source = pc.binary_join_element_wise(name, pc.if_else(pc.is_valid(whole), "", line), "")
    columns = {column: rows[column] for column in rows.schema.names}
    columns |= {"source": source, "position": pc.add(rows["position"], shift)}
    counts = pc.and_(
        pc.is_valid(number), pc.invert(pc.fill_null(pc.and_(without_groups, of_groups), False))
    )
    made = pa.RecordBatch.from_arrays([columns[n] for n in rows.schema.names], schema=rows.schema)
    return made.filter(counts)


def known_logs(opening: OpeningEvidence, run: str) -> str:
    """Return the list that lets the collector copy logs from where an earlier run ended.

    Each line has, separated by tabs, the folder of a log in a collection, its head, its size in
    bytes, 1 if later lines can be read on their own, 1 if it is compressed, and its ending. Logs
    without a complete head or an ending are left out.

    Args:
        opening: the evidence of the run.
        run: its folder, for the first line.
    """
    lines = [run]
    for log in opening.files:
        folders = log.file.name.split("/")[:2]
        below = "/" in log.file.name.removeprefix(f"{folders[0]}/")
        if log.head_bytes == HEAD_BYTES and log.ending and below:
            flags = f"{int(log.lines is not None)}\t{int(log.file.gzipped)}"
            fields = ("/".join(folders), log.head, log.file.size, flags, log.ending)
            lines.append("\t".join(map(str, fields)))
    return "\n".join(lines) + "\n"


def with_opening(collection: Collection, opening: OpeningEvidence) -> ContinuedCollection:
    """Return the collection as the continuation of an earlier run.

    Args:
        collection: `open_collection` of a folder.
        opening: The state of the earlier run.

    Raises:
        InputRefused: It belongs to another cluster, or names change every night.
    """
    if opening.redacted or collection.settings.redacted:
        raise InputRefused(
            f"--state {opening.shown}: `collect --redact` gives members different names each "
            "night; start without a state"
        )
    if opening.cluster != collection.settings.cluster:
        raise InputRefused(
            f"--state {opening.shown}: belongs to the cluster {opening.cluster}, but the "
            f"collection belongs to {collection.settings.cluster}"
        )
    collection, tails = _with_tails(collection, opening)
    begun = {file.name: file for file in collection.files}
    same = _same_logs(collection, opening.files, tails)
    unused = list(collection.unused)
    kept: dict[str, str] = {}
    begins = dict(collection.begins)
    stays: list[tuple[EarlierFile, str]] = []
    for earlier in opening.files:
        old = earlier.file
        if old.is_log and old.name in same:
            new, *copies = same[old.name]
            for copy in copies:
                begun.pop(copy.name)
                unused.append(UnusedFile(copy.name, f"is a part of {new.name}"))
            if new.size < old.size and not new.gzipped:
                begun.pop(new.name)
                unused.append(UnusedFile(new.name, f"{opening.shown} has read further"))
                stays.append((earlier, old.name))
            elif goes_on := _going_on(earlier, new):
                begun[new.name] = goes_on
                kept[old.name] = new.name
            continue
        if _is_old(earlier, opening.end_ms) or (old.name in begun and not old.is_log):
            continue
        stays.append((earlier, old.name))
    for earlier, name in stays:
        name = _free_name(name, earlier.first_time, begun)
        begun[name] = replace(earlier.file, name=name, earlier=True, newest=False)
        begins[name] = earlier.first_time
        kept[earlier.file.name] = name
    files = with_turns(with_newest(list(begun.values())), begins)
    by_name = {file.name: file for file in files}
    return ContinuedCollection(
        root=collection.root,
        settings=collection.settings,
        files=tuple(sorted(files, key=lambda file: file.name)),
        refused=collection.refused,
        unused=tuple(unused),
        dumped_brokers=tuple(sorted({*collection.dumped_brokers, *opening.brokers})),
        other_names=opening.other_names,
        begins=begins,
        opening=opening,
        kept=_kept(opening.files, kept, by_name),
    )


def _with_tails(
    collection: Collection, opening: OpeningEvidence
) -> tuple[Collection, dict[str, EarlierFile]]:
    """Return the collection with its logs without a beginning as they are, and the kind of each, by
    name.

    Raises:
        InputRefused: Their beginnings were read by another run.
    """
    parts = {part.log: part for part in collection.settings.continued}
    # Of logs with the same head, the collector continues the first.
    logs = {
        (log.file.kind, log.file.place, log.head, log.file.size): log
        for log in reversed(opening.files)
    }
    begins, tails, files = dict(collection.begins), dict[str, EarlierFile](), []
    for file in collection.files:
        part = parts.get(file.name)
        if part is not None:
            log = logs.get((file.kind, file.place, part.head, part.begins_at))
            if log is None:
                raise InputRefused(
                    f"--state {opening.shown}: {file.name} continues at byte {part.begins_at:,}, "
                    "which is not where that run ended; the collection continues "
                    f"{collection.settings.continues}"
                )
            tails[file.name] = log
            begins[file.name] = log.first_time or begins.get(file.name, "")
            file = replace(
                file,
                size=part.size if file.gzipped else part.begins_at + file.size,
                wrapping=log.file.wrapping,
                begins_at=part.begins_at,
                lines_before=log.lines or 0,
                left_out=part.begins_at,
            )
        files.append(file)
    return replace(collection, files=tuple(files), begins=begins), tails


def _same_logs(
    collection: Collection, earlier: Iterable[EarlierFile], tails: Mapping[str, EarlierFile]
) -> dict[str, list[CollectedFile]]:
    """Return, by its earlier name, each log that is present again, with its copies, longest first.

    Logs are the same if they share a head and `_goes_past`; if several do, the longest head counts.
    For ``tails``, which have no head, the collector compared both.
    """
    by_host: dict[tuple[str, str], list[EarlierFile]] = {}
    for log in earlier:
        if log.head_bytes:
            by_host.setdefault((log.file.kind, log.file.place), []).append(log)
    same: dict[str, list[CollectedFile]] = {}
    for file in collection.files:
        candidates = by_host.get((file.kind, file.place), []) if file.is_log else []
        if file.name in tails:
            same.setdefault(tails[file.name].file.name, []).append(file)
            continue
        if not candidates:
            continue
        place = collection.path_of(file)
        head = head_of(file, place, HEAD_BYTES)
        candidates = [log for log in candidates if _digest(head[: log.head_bytes]) == log.head]
        candidates = [log for log in candidates if _goes_past(log, file, place)]
        if candidates:
            log = max(candidates, key=lambda log: log.head_bytes)
            same.setdefault(log.file.name, []).append(file)
    for files in same.values():
        files.sort(key=lambda file: (file.gzipped, file.size), reverse=True)
    return same


def _going_on(earlier: EarlierFile, new: CollectedFile) -> CollectedFile | None:
    """Return the log, to be read from where an earlier run ended, or None if it is read
    completely.
    """
    if new.left_out:
        return new
    if earlier.lines is None or not earlier.ending or new.wrapping or new.gzipped:
        return None
    return replace(new, begins_at=earlier.file.size, lines_before=earlier.lines)


def _goes_past(earlier: EarlierFile, file: CollectedFile, place: FileToRead) -> bool:
    """Return False if a log has other bytes than an earlier run read last, before the place where
    that run ended: it was cut off and has filled up again.

    A shorter log, a compressed one that was unpacked, and one whose ending is unknown have nothing
    to compare.
    """
    old = earlier.file
    if not earlier.ending or (file.size < old.size and not file.gzipped):
        return True
    if old.gzipped and not file.gzipped:
        return True
    return _ending(place, old.size, unpacked=file.gzipped and not old.gzipped) == earlier.ending


def _ending(place: FileToRead, size: int, *, unpacked: bool = False) -> str:
    """Return the SHA-256 of the last of the first ``size`` bytes of a log; that of nothing if it
    cannot be read.

    Raises:
        OSError: The store failed.
    """
    begin = max(size - HEAD_BYTES, 0)
    try:
        with place.open(0 if unpacked else begin) as opened:
            if not unpacked:
                return _digest(opened.read(size - begin))
            with gzip.open(opened) as lines:
                lines.seek(begin)
                return _digest(lines.read(size - begin))
    except (EOFError, zlib.error):
        return _digest(b"")
    except OSError as error:
        if is_of_store(error):
            raise
        return _digest(b"")


def _is_old(earlier: EarlierFile, end_ms: int) -> bool:
    last_ms = earlier.last_ms if earlier.file.is_log else earlier.file.written_ms
    return last_ms is not None and last_ms < end_ms - KEPT_MS


def _free_name(name: str, first_time: str, taken: Mapping[str, object]) -> str:
    """Return a name for a file of an earlier run whose name now belongs to another file."""
    free, number = name, 1
    while free in taken:
        free = f"{name} ({first_time or 'earlier'}{f', {number}' if number > 1 else ''})"
        number += 1
    return free


def _kept(
    earlier: Iterable[EarlierFile], kept: Mapping[str, str], files: Mapping[str, CollectedFile]
) -> dict[str, KeptFile]:
    made = {}
    for log in earlier:
        old = log.file
        if old.name not in kept:
            continue
        file = files[kept[old.name]]
        shift = (file.turn - old.turn) << FILE_BITS if old.is_log else 0
        replaced = old.kind in (GROUPS, ADMIN) and old.newest and not file.newest
        made[old.name] = KeptFile(file.name, shift, without_groups=replaced)
    return made


def _digest(head: bytes) -> str:
    return hashlib.sha256(head).hexdigest()


def kept_evidence(batches: Iterable[pa.RecordBatch], end_ms: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows of `EVIDENCE` that a run keeps: no refusals, and every statement dated.

    Args:
        batches: Batches of `EVIDENCE_SCHEMA`.
        end_ms: The end of the collection, which dates evidence without a time.
    """
    schema = EVIDENCE.arrow_schema()
    for batch in batches:
        stated = batch.filter(pc.invert(pc.is_in(batch["part"], pa.array([REFUSED, COUNTED]))))
        columns = {name: stated[name] for name in schema.names}
        columns |= {"at_ms": pc.fill_null(stated["at_ms"], end_ms)}
        yield pa.RecordBatch.from_arrays([columns[n] for n in schema.names], schema=schema)
        counted = batch.filter(pc.equal(batch["part"], COUNTED))
        if len(counted):
            texts = [_without_refusals(json.loads(text)) for text in counted["fields"].to_pylist()]
            columns = {name: counted[name] for name in schema.names}
            columns |= {"fields": pa.array(texts, pa.string())}
            yield pa.RecordBatch.from_arrays([columns[n] for n in schema.names], schema=schema)


def _without_refusals(stats: dict[str, object]) -> str:
    """Return the counts of a file, as JSON, without those that the run has reported."""
    return json.dumps(stats | {"rejected": 0, "codes": {}, "why": ""})


def file_rows(
    collection: Collection,
    last_ms: Mapping[str, int | None],
    end_ms: int,
    left_out: AnyCollection[str] = (),
) -> pa.RecordBatch:
    """Return the rows of `EVIDENCE_FILES` for the files of a collection that has been read.

    Args:
        collection: The collection as read.
        last_ms: The time of the last statement of each log, by name.
        end_ms: The end of the collection.
        left_out: Files that a later run ignores, too, because they belong to others.
    """
    before = {}
    parts = {part.log: part for part in collection.settings.continued}
    if isinstance(collection, ContinuedCollection):
        names = {old: file.name for old, file in collection.kept.items()}
        before = {names[f.file.name]: f for f in collection.opening.files if f.file.name in names}
    whole: _WholeFields = {
        "form": FORM,
        "cluster": collection.settings.cluster,
        "end_ms": end_ms,
        "other_names": [asdict(name) for name in collection.other_names],
        "brokers": collection.brokers,
        "redacted": collection.settings.redacted,
    }
    texts: dict[str, Mapping[str, object]] = {_WHOLE: whole}
    for file in collection.files:
        if file.kind == GIVEN_GROUPS or file.name in left_out:
            continue
        log = before.get(file.name) if file.earlier or file.left_out else None
        if log is not None and file.left_out:
            lines = _lines_of(file, collection.path_of(file))
            log = replace(log, lines=lines, ending=parts[file.name].ending)
        elif log is None and file.is_log:
            place = collection.path_of(file)
            head = head_of(file, place, HEAD_BYTES)
            first_time = collection.begins.get(file.name, "")
            lines = _lines_of(file, place)
            ending = _ending(place, file.size)
            log = EarlierFile(file, first_time, len(head), _digest(head), ending, lines)
        elif log is None:
            log = EarlierFile(file)
        written_ms = end_ms if file.written_ms is None and not file.is_log else file.written_ms
        kept = replace(
            file, earlier=False, begins_at=0, lines_before=0, left_out=0, written_ms=written_ms
        )
        texts[file.name] = vars(log) | {"file": vars(kept), "last_ms": last_ms.get(file.name)}
    columns = {
        "name": list(texts),
        "fields": [json.dumps(text, default=asdict) for text in texts.values()],
    }
    return batch_of_columns(EVIDENCE_FILES, columns)


def _lines_of(file: CollectedFile, place: FileToRead) -> int | None:
    """Return the number of lines that a log has up to its end, including those before the file.

    None has the same meaning as in `EarlierFile`.

    Raises:
        OSError: the store failed.
    """
    if file.gzipped or file.wrapping or file.kind == PROXY_LOG or not file.size:
        return None
    lines, last = file.lines_before, b"\n" if file.begins_at else b""
    try:
        with place.open(file.begins_at - file.left_out) as opened:
            while chunk := opened.read(_CHUNK):
                lines, last = lines + chunk.count(b"\n"), chunk[-1:]
    except OSError as error:
        if is_of_store(error):
            raise
        return None
    return lines if last == b"\n" else None
