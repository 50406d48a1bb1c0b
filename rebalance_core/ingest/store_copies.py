"""Facts stated by two files of the same log: a log copied twice, or copied again after rotation."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, TypeVar

from rebalance_core.contracts.fact_declaration import CLUSTER
from rebalance_core.ingest import collection
from rebalance_core.ingest.collection import CollectedFile
from rebalance_core.ingest.evidence import Evidence, asked
from rebalance_core.ingest.fact import Fact, Stated, Unread
from rebalance_core.ingest.parse.config_stores import JSON, ROCKSDB_V2
from rebalance_core.ingest.parse.json_tables import DATA_VERSION_KIND
from rebalance_core.model.times import SECOND_MS

if TYPE_CHECKING:
    from rebalance_core.ingest.evidence_types import (
        ClusterEvidence,
        RocksdbExportPiece,
        StoreCopiedPiece,
        StoreFormPiece,
    )

FILE_BITS = 40
"""The lower bits of a position are the place in the file, the upper bits the number of the file."""

_Span = tuple[int, int]
AnyEvidence = TypeVar("AnyEvidence", bound=Evidence)


def without_repeats(pieces: Iterable[AnyEvidence]) -> list[AnyEvidence]:
    """Return the evidence without what an earlier file of the same log has already stated.

    Facts that a file states twice stay twice. Two pieces of a rotated log share at most the second
    in which it was rotated.

    Cost: linear; only facts within the time of both files are compared.
    """
    pieces = list(pieces)
    shared = _shared_spans(pieces)
    if not shared:
        return pieces
    copies = set()
    before: Counter[str] = Counter()
    current: Counter[str] = Counter()
    turn = None
    for number in sorted(range(len(pieces)), key=lambda n: pieces[n].position >> FILE_BITS):
        piece = pieces[number]
        if not _in(piece, shared.get(piece.place, ())):
            continue
        if piece.position >> FILE_BITS != turn:
            turn = piece.position >> FILE_BITS
            before |= current
            current = Counter()
        said = _said(piece)
        current[said] += 1
        if current[said] <= before[said]:
            copies.add(number)
    return [piece for number, piece in enumerate(pieces) if number not in copies]


def _shared_spans(pieces: Sequence[Evidence]) -> dict[str, list[_Span]]:
    """Return, by place, the times that more than one file covers."""
    if not any(piece.position >> FILE_BITS for piece in pieces):
        return {}
    spans: dict[str, dict[int, _Span]] = {}
    for piece in pieces:
        if piece.at_ms is not None:
            of_place = spans.setdefault(piece.place, {})
            turn = piece.position >> FILE_BITS
            first, last = of_place.get(turn, (piece.at_ms, piece.at_ms))
            of_place[turn] = (min(first, piece.at_ms), max(last, piece.at_ms))
    shared: dict[str, list[_Span]] = {}
    for place, of_place in spans.items():
        end = None
        for _, (first, last) in sorted(of_place.items()):
            if end is not None and first <= end:
                shared.setdefault(place, []).append((first, end))
            end = last if end is None else max(end, last)
    return shared


def _in(piece: Evidence, spans: Iterable[_Span]) -> bool:
    return piece.at_ms is not None and any(a <= piece.at_ms <= b for a, b in spans)


def _said(piece: Evidence) -> str:
    values = json.dumps(dict(piece.values), sort_keys=True, default=str)
    return json.dumps([piece.place, piece.kind, piece.part, piece.key, piece.at_ms, values])


# The dates of the JSON stores of a broker that keeps its configuration in RocksDB.
#
# They are written when a command requests them and then become outdated, so a copy shows the last
# export (rocketmq.md §15). An export is dated by the dump of the command, by the listing of the
# store, and by the copies themselves: contents of an earlier copy were exported before that copy.
EXPORT_MS = 10_000
"""The time within which the command answers: the start of its JVM plus mqadmin's timeout of 5 s. A
copy no older than this counts as current, like one from a stock broker, which writes every 5 to 10
s.
"""

STORE_NAMES = {
    kind: name for name, kind in collection.STORES.items() if kind in collection.CONFIG_STORES
}
_FACTS = {
    collection.TOPICS: ("topic_config", "exported_topic"),
    collection.GROUPS: ("subscription_group", "exported_subscription_group"),
    collection.OFFSETS: ("committed_offset",),
}
"""The facts in a command's output for each store."""
_TYPES = {
    collection.TOPICS: "topics",
    collection.GROUPS: "subscriptionGroups",
    collection.OFFSETS: "consumerOffsets",
}
"""The stores, as ``rocksDBConfigToJson -t`` calls them."""


def copied_store(
    file: CollectedFile, results: Iterable[Fact | Unread], text: str
) -> Iterator[Evidence]:
    """State that a JSON store was copied, with the marks of its copy: store, digest, version_ms.

    ``whole``: it states something and no entry was refused, so missing entries did not exist.
    """
    if file.kind not in collection.CONFIG_STORES:
        return
    results = list(results)
    versions = [
        piece.values["timestamp_ms"]
        for piece in results
        if isinstance(piece, Stated) and piece.kind == DATA_VERSION_KIND
    ]
    values = {
        "store": file.kind,
        "digest": sha256(text.encode("utf-8", "replace")).hexdigest()[:32],
        "version_ms": versions[0] if versions else None,
        "whole": bool(results) and all(isinstance(piece, Stated) for piece in results),
    }
    yield Evidence(CLUSTER, "", "store_copied", file.written_ms, file.place, 0, file.name, values)


def printed_stores(
    file: CollectedFile, results: Iterable[Fact | Unread], brokers: Collection[str]
) -> Iterator[Evidence]:
    """List the stores of a broker that a command printed."""
    if not file.arguments or file.arguments[0] not in (
        *collection.STORE_COMMANDS,
        collection.EXPORT_METADATA,
    ):
        return
    _, broker = asked("-" + file.arguments[1], (), brokers)
    kinds = {piece.kind for piece in results if isinstance(piece, Stated)}
    for kind, facts in _FACTS.items():
        if broker and not kinds.isdisjoint(facts):
            values = {"store": kind}
            yield Evidence(
                CLUSTER, "", "store_printed", file.written_ms, broker, 0, file.name, values
            )


@dataclass(frozen=True)
class BrokerStore:
    """How a broker stores its configurations, and the dates of the copies of its JSON stores.

    Attributes:
        forms: `parse.config_stores.JSON` and the others there; more than one if a migrated broker
            left its old stores.
        source: the listing or RocksDB file that shows it.
        dates: by copied file, when it was exported, epoch ms; None if no file shows it.
        newest: by kind of store, the newest copy.
        copied: by copied file, when it was copied, epoch ms.
        printed: by kind of store, when a command last printed it, epoch ms.
    """

    forms: tuple[str, ...]
    source: str
    dates: Mapping[str, int | None] = field(default_factory=dict)
    newest: Mapping[str, str] = field(default_factory=dict)
    copied: Mapping[str, int] = field(default_factory=dict)
    printed: Mapping[str, int] = field(default_factory=dict)

    @property
    def form(self) -> str:
        """The form of the store, or the forms that it may have."""
        return " or ".join(self.forms)

    def date(self, kind: str) -> int | None:
        """Return the time of the content in the latest copy of a kind of store, or None if
        unknown.
        """
        return self.dates.get(self.newest.get(kind, ""))

    def shown_ms(self, kind: str) -> int | None:
        """Return the time of the newest copy or output that shows a kind of store."""
        shown = (self.date(kind), self.printed.get(kind))
        return max((at_ms for at_ms in shown if at_ms is not None), default=None)


@dataclass
class _Seen:
    """The parts of a broker's store shown by the files in one folder."""

    listings: list[tuple[int, StoreFormPiece]] = field(default_factory=list)
    signs: list[StoreFormPiece] = field(default_factory=list)
    copies: dict[str, list[tuple[int, StoreCopiedPiece]]] = field(default_factory=dict)
    exports: dict[str, set[int]] = field(default_factory=dict)
    printed: dict[str, int] = field(default_factory=dict)


def rocksdb_stores(
    pieces: Iterable[ClusterEvidence], end_ms: int, folders: Mapping[str, str]
) -> dict[str, BrokerStore]:
    """Return the stores in those folders whose broker keeps its configurations in RocksDB.

    Args:
        pieces: evidence on the cluster.
        end_ms: the collection's end, taken as the time of a copy without one.
        folders: the name of the broker by folder.
    """
    seen = {folder: _Seen() for folder in folders}
    for piece in pieces:
        at_ms = end_ms if piece.at_ms is None else piece.at_ms
        if piece.kind == "rocksdb_export":
            _export(piece, at_ms, seen, folders)
        elif piece.kind == "store_printed":
            for folder, broker in folders.items():
                if piece.place in (folder, broker):
                    printed, kind = seen[folder].printed, piece.values["store"]
                    printed[kind] = max(at_ms, printed.get(kind, at_ms))
        elif piece.place not in seen:
            continue
        elif piece.kind == "store_copied":
            of_kind = seen[piece.place].copies.setdefault(piece.values["store"], [])
            of_kind.append((at_ms, piece))
        elif piece.kind == "store_form":
            if PurePosixPath(piece.source).name == "CURRENT":
                seen[piece.place].signs.append(piece)
            else:
                seen[piece.place].listings.append((at_ms, piece))
    stores = {folder: _store(of_folder) for folder, of_folder in seen.items()}
    return {folder: store for folder, store in stores.items() if store is not None}


def _export(
    piece: RocksdbExportPiece, at_ms: int, seen: Mapping[str, _Seen], folders: Mapping[str, str]
) -> None:
    v = piece.values
    if not v["done"]:
        return
    types = [kind for kind, name in _TYPES.items() if name in v["argument"].split("-")]
    for folder, broker in folders.items():
        if v["whole_cluster"] or piece.place in (folder, broker):
            for kind in types or collection.CONFIG_STORES:
                seen[folder].exports.setdefault(kind, set()).add(at_ms)


def _store(seen: _Seen) -> BrokerStore | None:
    listing = max(seen.listings, key=lambda dated: dated[0], default=(0, None))[1]
    shown = [listing] if listing is not None else seen.signs
    forms = {form: None for piece in shown for form in piece.values["forms"] if form != JSON}
    if not forms:
        return None
    dates: dict[str, int | None] = {}
    newest: dict[str, str] = {}
    copied: dict[str, int] = {}
    for kind, copies in seen.copies.items():
        ordered = sorted(copies, key=lambda copy: (copy[0], copy[1].source))
        # v2 reports an export but writes nothing
        exports = [] if ROCKSDB_V2 in forms else sorted(seen.exports.get(kind, ()))
        dates |= _dates(kind, ordered, exports, seen.listings)
        newest[kind] = ordered[-1][1].source
        copied |= {piece.source: at_ms for at_ms, piece in ordered}
    return BrokerStore(tuple(forms), shown[0].source, dates, newest, copied, seen.printed)


def _dates(
    kind: str,
    copies: list[tuple[int, StoreCopiedPiece]],
    exports: list[int],
    listings: list[tuple[int, StoreFormPiece]],
) -> dict[str, int | None]:
    """Return, by file, when each copy's content was exported."""
    dates: dict[str, int | None] = {}
    before: tuple[int, str | None, int] | None = None
    for at_ms, piece in copies:
        v, exported = piece.values, max((e for e in exports if e <= at_ms), default=0)
        latest = at_ms
        if before is not None and before[1] == v["digest"] and exported <= before[0]:
            latest = before[2]
        elif exported and exported + EXPORT_MS >= (v["version_ms"] or 0):
            latest = min(at_ms, exported + EXPORT_MS)
        earliest = max(exported, v["version_ms"] or 0)
        written = _written(STORE_NAMES[kind], at_ms, listings)
        if written is not None and written + SECOND_MS >= earliest:
            latest, earliest = written + SECOND_MS, written
        if latest - earliest <= EXPORT_MS:
            dates[piece.source] = latest
        elif kind != collection.OFFSETS and v["version_ms"]:
            # its contents have not changed since its last change, which is logged up to a second
            # later
            dates[piece.source] = min(latest, v["version_ms"] + EXPORT_MS)
        else:
            dates[piece.source] = None
        before = (at_ms, v["digest"], latest)
    return dates


def _written(name: str, copied_ms: int, listings: list[tuple[int, StoreFormPiece]]) -> int | None:
    """Return when the copied file was written, by the first listing after the copy.

    The result is None if that does not show it, or shows that the file was written again in the
    meantime.
    """
    later = [dated for dated in listings if dated[0] >= copied_ms]
    if not later:
        return None
    listing = min(later, key=lambda dated: dated[0])[1]
    return next(
        (ms for file, ms in listing.values["modified"] if file == name and ms <= copied_ms), None
    )
