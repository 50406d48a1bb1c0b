"""Builds the rows of ``observed_facts`` about the cluster: what was collected, expected and
registered.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, TypeGuard

from rebalance_core.contracts.document_facts import SUBJECTS
from rebalance_core.ingest.broker_folders import (
    HEARD_MS,
    MASTER_ID,
    registered,
    without_graceful_stops,
)
from rebalance_core.ingest.cluster_context import ClusterContext
from rebalance_core.ingest.collection import (
    ADMIN,
    BROKER_LOG,
    BROKER_METRICS,
    CLIENT_LOG,
    COPY_DIFFERS,
    INCOMPLETE_COPY,
    LOCAL_OFFSETS,
    LOCK_LOG,
    NAMESRV_LOG,
    PART,
    POP_LOG,
    PROXIES,
    PROXY_LOG,
    STORES,
    CollectedFile,
    Collection,
    identify,
    undated,
)
from rebalance_core.ingest.collection_settings import SETTINGS_NAME
from rebalance_core.ingest.evidence import Evidence, is_on_cluster
from rebalance_core.ingest.fact import UNKNOWN_COMMAND
from rebalance_core.ingest.file_findings import WRONG_FILE_SHARE, broker_stores
from rebalance_core.ingest.file_reader import FileStats
from rebalance_core.ingest.hashed_addresses import client_addresses, looks_hashed
from rebalance_core.ingest.log_rows import FactRows, add_log_rows
from rebalance_core.ingest.observed_facts import dump
from rebalance_core.ingest.own_evidence import own_evidence
from rebalance_core.ingest.own_settings import SWITCHES
from rebalance_core.ingest.parse.broker_log import RETENTION
from rebalance_core.ingest.parse.wire_versions import plain_version
from rebalance_core.ingest.store_copies import STORE_NAMES
from rebalance_core.model.times import MINUTE_MS

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import ObservedFactsBegun
    from rebalance_core.ingest.evidence_types import (
        BrokerPropertyPiece,
        BrokerRegisteredPiece,
        BrokerStartingPiece,
        ClusterDocumentsEvidence,
        ClusterEvidence,
    )

LOG, STORE = "log", "store"
BROKERS = "brokers/"
FILE_NAMES = {
    BROKER_LOG: "broker.log",
    NAMESRV_LOG: "namesrv.log",
    PROXY_LOG: "proxy.log",
    BROKER_METRICS: "scrape",
}
_BROKER_FILES = {
    BROKER_LOG: (LOG, "broker.log"),
    LOCK_LOG: (LOG, "lock.log"),
    **{kind: (STORE, name) for name, kind in STORES.items()},
}


def cluster_facts(
    collection: Collection,
    stats: Iterable[FileStats],
    pieces: Iterable[Evidence],
    context: ClusterContext,
) -> list[ObservedFactsBegun]:
    """Return the rows that concern no single group.

    Args:
        collection: the files.
        stats: the stats of each file.
        pieces: evidence on the cluster.
        context: the cluster's context.
    """
    rows = FactRows()
    stats = list(stats)
    _expected(rows, collection, stats, context)
    _files(rows, collection, stats, context)
    _not_read(rows, collection, stats, context)
    _not_collected(rows, collection, context)
    for other in collection.other_names:
        _spanning(rows, "GROUP_RENAMED", context, other.log, asdict(other))
    _proxies(rows, collection, context)
    counted = own_evidence(pieces, context)
    ordered = sorted(counted, key=lambda p: (context.time_of(p), p.place, p.position, p.source))
    on_cluster = list(filter(is_on_cluster, ordered))
    for piece in (*ordered, *_unbooted(on_cluster, context)):
        _stated(rows, piece, context.time_of(piece))
    _registered(rows, collection, on_cluster, context)
    _broker_stores(rows, context)
    for broker, mode in context.slave_modes.items():
        _spanning(rows, "BROKER_SLAVES", context, SETTINGS_NAME, {"mode": mode or ""}, broker)
    return rows.rows


def _expected(
    rows: FactRows, collection: Collection, stats: Iterable[FileStats], context: ClusterContext
) -> None:
    span: dict[str, object] = {"start_ms": context.start_ms, "end_ms": context.end_ms}
    # `collect --redact` keeps the order of addresses, which decides allocations
    if not collection.settings.redacted and looks_hashed(client_addresses(collection, stats)):
        span["hashed"] = "true"
    _spanning(rows, "COLLECTED", context, SETTINGS_NAME, span)
    for broker in context.expected:
        _spanning(rows, "EXPECTED_BROKER", context, SETTINGS_NAME, {}, broker)
    for name in collection.settings.name_servers:
        _spanning(rows, "EXPECTED_NAME_SERVER", context, SETTINGS_NAME, {"name": name})


def _proxies(rows: FactRows, collection: Collection, context: ClusterContext) -> None:
    by_place: dict[str, list[CollectedFile]] = {
        PROXIES + name: [] for name in collection.settings.proxies
    }
    for file in collection.files:
        if file.name.startswith(PROXIES):
            by_place.setdefault(file.place, []).append(file)
    for place, files in sorted(by_place.items()):
        details = {
            "name": place.removeprefix(PROXIES),
            "mode": context.proxies.modes.get(place),
            "addresses": context.proxies.addresses.get(place, ()),
            "files": len(files),
        }
        _spanning(rows, "PROXY", context, files[0].name if files else SETTINGS_NAME, details)


def _spanning(
    rows: FactRows,
    kind: str,
    context: ClusterContext,
    source: str,
    details: Mapping[str, object],
    broker_name: str | None = None,
    span: tuple[int, int] | None = None,
) -> None:
    """Add a row with its first and last moments, by default those of the collection."""
    first_ms, last_ms = span or (context.start_ms, context.end_ms)
    rows.add(kind, first_ms, source, details, broker_name=broker_name)
    rows.rows[-1]["last_ms"] = last_ms


def _files(
    rows: FactRows, collection: Collection, stats: Iterable[FileStats], context: ClusterContext
) -> None:
    """Add a row for each broker or name server and kind of file, covering all its files.

    A broker.log without a line shows nothing, so it does not count as collected. A name server may
    log nothing for long.
    """
    counted = {file_stats.name: file_stats for file_stats in stats}
    by_place: dict[tuple[str, str], list[CollectedFile]] = {}
    for file in collection.files:
        if file.kind == NAMESRV_LOG:
            by_place.setdefault((file.kind, file.place), []).append(file)
        elif file.kind in _BROKER_FILES and context.exported.get(file.name, 0) is not None:
            folder = context.folders[file.place]
            if folder.authoritative and not (folder.slave and file.is_log):
                by_place.setdefault((file.kind, folder.broker_name), []).append(file)
    for (kind, place), files in sorted(by_place.items()):
        times = [time for file in files for time in _moments(file, counted[file.name], context)]
        span = (min(times, default=context.end_ms), max(times, default=context.end_ms))
        of_files = [counted[file.name] for file in files]
        if kind == BROKER_LOG and not any(each.lines for each in of_files):
            continue
        count: dict[str, object] = {
            "files": len(files),
            "facts": sum(file_stats.facts for file_stats in of_files),
        }
        source = files[0].name
        if kind == NAMESRV_LOG:
            count["name"] = name_server(collection, place)
            _spanning(rows, "NAME_SERVER_FILE", context, source, count, None, span)
        else:
            count["file"], count["name"] = _BROKER_FILES[kind]
            if kind == BROKER_LOG:
                count["until_ms"] = context.logged.get(place) or None
                count["unreadable"] = sum(bool(file_stats.unreadable) for file_stats in of_files)
                count["folders"] = speaking = speaking_folders(place, context)
                turns = {folder for folder in speaking if context.folders[folder].by_turns}
                logged = {file.place for file in collection.files if file.kind == BROKER_LOG}
                count["unlogged"] = sorted(turns - logged)
                if any(context.folders[folder].elected for folder in speaking):
                    count["elected"] = True
            _spanning(rows, "BROKER_FILE", context, source, count, place, span)


def speaking_folders(broker: str, context: ClusterContext) -> list[str]:
    """Return the folders whose broker.log covers a broker's members, in the order of their
    turns.
    """
    return sorted(
        name
        for name, folder in context.folders.items()
        if folder.broker_name == broker
        and (folder.by_turns or (folder.authoritative and not folder.slave))
    )


def _not_read(
    rows: FactRows, collection: Collection, stats: Iterable[FileStats], context: ClusterContext
) -> None:
    """Report files that state nothing, so that they do not count as collected."""
    counted = {file_stats.name: file_stats for file_stats in stats}
    logs: dict[tuple[str, str], list[CollectedFile]] = {}
    for file in collection.files:
        file_stats = counted.get(file.name)
        if file.kind in (BROKER_LOG, NAMESRV_LOG):
            logs.setdefault((file.kind, file.place), []).append(file)
        elif file.earlier:
            continue
        elif file_stats is not None and not file.is_log and _states_too_little(file_stats):
            details = {
                "lines": file_stats.rejected + file_stats.understood,
                "understood": file_stats.understood,
                "code": file_stats.code,
                "why": file_stats.partial or file_stats.why,
            }
            details |= {"first_line": file_stats.first_line, "looks_like": file_stats.looks_like}
            _add_not_read(rows, file, details, context)
    for _, files in sorted(logs.items()):
        of_files = [counted[file.name] for file in files]
        lines, understood = (
            sum(getattr(file_stats, n) for file_stats in of_files) for n in ("lines", "understood")
        )
        foreign = [
            file_stats
            for file_stats in of_files
            if file_stats.understood < WRONG_FILE_SHARE * file_stats.lines
        ]
        if understood < WRONG_FILE_SHARE * lines:
            details = {"lines": lines, "understood": understood}
            details |= {n: getattr(foreign[0], n) for n in ("code", "why", "first_line")}
            details |= {"looks_like": foreign[0].looks_like}
            _add_not_read(rows, replace(files[0], name=foreign[0].name), details, context)
    for piece in collection.refused:
        # if a copy differs, the other file is read; the collector named unfinished copies
        elsewhere = piece.code in (COPY_DIFFERS, INCOMPLETE_COPY)
        refused = None if elsewhere else identify(piece.source)
        if command := undated(piece.source):
            refused = CollectedFile(piece.source, ADMIN, arguments=(command, ""))
        if refused is not None and refused.kind not in (
            CLIENT_LOG,
            LOCAL_OFFSETS,
            LOCK_LOG,
            POP_LOG,
        ):
            details = {"lines": 0, "understood": 0, "code": piece.code, "why": piece.message}
            details |= {"first_line": piece.raw, "looks_like": ""}
            _add_not_read(rows, refused, details, context)


def _not_collected(rows: FactRows, collection: Collection, context: ClusterContext) -> None:
    """Add failures named by the collector, and unfinished copies that it does not name."""
    failed = {failure.what: failure.why for failure in collection.settings.failed}
    for piece in collection.refused:
        whole = piece.source.removesuffix(PART)
        if piece.code == INCOMPLETE_COPY and not any(
            f"{whole}/".startswith(f"{what}/") for what in failed
        ):
            failed[whole] = piece.message
    for what, why in failed.items():
        root, _, below = what.partition("/")
        name = below.partition("/")[0]
        folder = context.folders.get(name)
        broker = what if what in context.expected else None
        if f"{root}/" == BROKERS:
            broker = name if folder is None else folder.broker_name
        details = {"what": what, "why": why}
        _spanning(rows, "NOT_COLLECTED", context, SETTINGS_NAME, details, broker)


def _states_too_little(stats: FileStats) -> bool:
    return bool(stats.partial) or (not stats.understood and _is_refused(stats))


def _is_refused(stats: FileStats) -> bool:
    """Return True if lines of a document were refused other than as those of a command that is not
    read.
    """
    return bool(stats.rejected) and set(stats.codes) != {UNKNOWN_COMMAND}


def _add_not_read(
    rows: FactRows, file: CollectedFile, details: Mapping[str, object], context: ClusterContext
) -> None:
    """Add a file that was not read, unless it belongs to a slave whose master has evidence at that
    time.
    """
    folder = context.folders.get(file.place) if file.name.startswith(BROKERS) else None
    if folder is not None and (folder.slave or not folder.authoritative):
        at_ms = context.end_ms if file.written_ms is None else file.written_ms
        if not folder.slave or not context.is_masterless(folder.broker_name, at_ms):
            return
    what = file.arguments[0] if file.kind == ADMIN else FILE_NAMES.get(file.kind, STORE)
    broker = file.place if file.name.startswith(BROKERS) else None
    broker = broker if folder is None else folder.broker_name
    more = {"name": file.place} if file.kind == NAMESRV_LOG else {}
    about = {"what": what, **more, **details}
    rows.add("NOT_READ", context.start_ms, file.name, about, broker_name=broker, by_source=True)
    rows.rows[-1]["last_ms"] = context.end_ms


def name_server(collection: Collection, place: str) -> str:
    """Return the name server to which a log belongs; the expected one if there is only one."""
    expected = collection.settings.name_servers
    places = {file.place for file in collection.files if file.kind == NAMESRV_LOG}
    return expected[0] if len(expected) == len(places) == 1 else place


def _moments(file: CollectedFile, stats: FileStats, context: ClusterContext) -> list[int]:
    """Return the times of a log's first and last statements, or when a store was copied or
    exported.
    """
    if file.is_log:
        return [time for time in (stats.first_ms, stats.last_ms) if time is not None]
    written_ms = context.exported.get(file.name) or file.written_ms
    return [context.end_ms if written_ms is None else written_ms]


_DOCUMENTS = frozenset(SUBJECTS["cluster_documents"])


def _is_document(piece: Evidence) -> TypeGuard[ClusterDocumentsEvidence]:
    return piece.kind in _DOCUMENTS


def _stated(rows: FactRows, piece: Evidence, at_ms: int) -> None:
    if _is_document(piece):
        _of_document(rows, piece, at_ms)
    else:
        add_log_rows(rows, piece, at_ms)


def _of_document(rows: FactRows, piece: ClusterDocumentsEvidence, at_ms: int) -> None:
    source = piece.source
    if piece.kind == "dump":
        dump(rows, piece, at_ms)
    elif piece.kind == "group_configs":
        rows.add("GROUP_CONFIGS", at_ms, source, piece.values, broker_name=piece.place)
    elif piece.kind == "server_settings":
        settings = piece.values["settings"]
        name = settings.get("brokerName")
        if name and RETENTION in settings and settings.get("brokerId") == str(MASTER_ID):
            hours = {"hours": settings[RETENTION]}
            rows.add("MESSAGE_RETENTION", at_ms, source, hours, broker_name=name)
    elif piece.kind == "revive_metrics":
        queue = {name: piece.values[name] for name in ("revive_queue", "late_ms", "waiting")}
        broker = piece.values["node"] or piece.place
        rows.add("REVIVE_METRICS", at_ms, source, queue, broker_name=broker)
    elif piece.kind == "revive_progress":
        read = piece.values
        details: dict[str, object] = {
            "revive_queue": read["queue_id"],
            "offset": read["consumer_offset"],
            "end": read["broker_offset"],
        }
        rows.add("REVIVE_PROGRESS", at_ms, source, details, broker_name=read["broker_name"])
    else:
        v = piece.values
        version = plain_version(v["version"]) if v["version"] else None
        details = {"version": version, "broker_id": v["broker_id"], "addr": v["addr"]}
        rows.add("BROKER_IN_CLUSTER", at_ms, source, details, broker_name=v["broker_name"])


def _unbooted(ordered: Iterable[ClusterEvidence], context: ClusterContext) -> Iterator[Evidence]:
    """Yield the first line of each start whose last line, that the broker is up, is missing."""
    begun: dict[str, BrokerStartingPiece | BrokerPropertyPiece] = {}
    for piece in ordered:
        if piece.kind == "broker_booted":
            begun.pop(piece.place, None)
        elif piece.kind == "broker_starting" or (
            piece.kind == "broker_property" and piece.values["name"] not in SWITCHES
        ):
            first = begun.setdefault(piece.place, piece)
            if context.time_of(piece) - context.time_of(first) > MINUTE_MS:
                yield _booted(first)
                begun[piece.place] = piece
    yield from map(_booted, begun.values())


def _booted(piece: Evidence) -> Evidence:
    return replace(piece, kind="broker_booted")


def _registered(
    rows: FactRows,
    collection: Collection,
    ordered: Iterable[ClusterEvidence],
    context: ClusterContext,
) -> None:
    """Add BROKER_REGISTERED: the last line about each broker in each name server's log.

    A broker that registers again had been removed. If no line shows when, `untold_ms` is the time
    of the previous line.
    """
    last: dict[tuple[str, str], tuple[ClusterEvidence, bool]] = {}
    joined: dict[tuple[str, str], BrokerRegisteredPiece] = {}
    previous_ms: dict[tuple[str, str], int] = {}
    for piece in without_graceful_stops(ordered):
        if piece.kind in ("broker_registered", "broker_address", "broker_known"):
            broker = registered(piece, context.addresses)
            if broker is None:
                continue
            key = piece.place, broker
            if not _repeats(piece, last.get(key)):
                last[key] = (piece, True)
            if piece.kind == "broker_registered":
                before = joined.get(key)
                if before is not None and before.values["address"] == piece.values["address"]:
                    previous_ms[key] = context.time_of(before)
                joined[key] = piece
        elif piece.kind == "broker_removed":
            last[piece.place, piece.values["broker"]] = (piece, False)
            joined.pop((piece.place, piece.values["broker"]), None)
        elif piece.kind == "name_server_starting":
            joined = {
                key: registration for key, registration in joined.items() if key[0] != piece.place
            }
            if context.end_ms - context.time_of(piece) > HEARD_MS:
                last |= {key: (piece, False) for key in last if key[0] == piece.place}
    for (place, broker), (piece, is_there) in sorted(last.items()):
        details = {"name": name_server(collection, place), "registered": is_there}
        if (place, broker) in previous_ms:
            details["untold_ms"] = previous_ms[place, broker]
        at_ms = context.time_of(piece)
        rows.add("BROKER_REGISTERED", at_ms, piece.source, details, broker_name=broker)


def _repeats(piece: ClusterEvidence, last: tuple[ClusterEvidence, bool] | None) -> bool:
    """Return True for a registration that a large job omits when it thins out those within a
    minute.
    """
    return (
        last is not None
        and last[1]
        and piece.kind == last[0].kind == "broker_known"
        and piece.values == last[0].values
        and piece.at_ms is not None
        and last[0].at_ms is not None
        and piece.at_ms // MINUTE_MS == last[0].at_ms // MINUTE_MS
    )


def _broker_stores(rows: FactRows, context: ClusterContext) -> None:
    """Add BROKER_STORE, a row for each broker that uses RocksDB."""
    for broker, store in broker_stores(context):
        details: dict[str, object] = {"form": store.form}
        details |= {name: store.shown_ms(kind) for kind, name in STORE_NAMES.items()}
        rows.add("BROKER_STORE", context.end_ms, store.source, details, broker_name=broker)
