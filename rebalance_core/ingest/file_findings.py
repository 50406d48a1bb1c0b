"""Findings on the files themselves: missing, not understood, older than they look, or set back."""

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import replace

from rebalance_core.ingest.assumptions import Assumptions
from rebalance_core.ingest.cluster_context import ClusterContext
from rebalance_core.ingest.collection import (
    ADMIN,
    BROKER_LOG,
    CLIENT_LOG,
    COPY_DIFFERS,
    LOCK_LOG,
    LOGS,
    NAMESRV_LOG,
    POP_LOG,
    PROXY_LOG,
    Collection,
    identify,
)
from rebalance_core.ingest.fact import Unread
from rebalance_core.ingest.fact import shown as text_shown
from rebalance_core.ingest.file_reader import ZONED_COMMANDS, FileStats
from rebalance_core.ingest.parse.wire_versions import not_modelled
from rebalance_core.ingest.rows import Finding, finding
from rebalance_core.ingest.store_copies import EXPORT_MS, STORE_NAMES, BrokerStore
from rebalance_core.model.times import SECOND_MS, utc
from rebalance_core.model.verdicts import INFO, WARNING

WRONG_FILE_SHARE = 0.5
"""Nearly all lines of the right kind of log are understood; if fewer than half are, it is another
kind of file.
"""
LISTED = 20
"""The maximum number of files that a finding names."""


def file_findings(
    collection: Collection,
    stats: Iterable[FileStats],
    assumed: Assumptions,
    context: ClusterContext,
) -> list[Finding]:
    """Return findings on the collection as a whole and on single files, except those of an earlier
    run.
    """
    stats = list(stats)
    places = {file.name: (file.kind, file.place) for file in collection.files}
    stating = {places.get(file_stats.name) for file_stats in stats if file_stats.facts}
    earlier = {file.name for file in collection.files if file.earlier}
    stats = [file_stats for file_stats in stats if file_stats.name not in earlier]
    collection = replace(collection, files=collection.own_files)
    local = {file_stats.name for file_stats in stats if file_stats.local_times}
    findings = [
        *_missing(collection, context),
        *_awake(context),
        *_zones(collection, local, assumed),
    ]
    findings += [*_folders(context), *_unknown_versions(context), *_rocksdb(context)]
    others = {file.name for file in collection.files if file.wrapping.head}
    for file_stats in stats:
        stated = places.get(file_stats.name) in stating
        findings += _of_file(file_stats, stating=stated, other_head=file_stats.name in others)
    findings += [*_silent_clients(stats, places, stating, others), *_wrapped(collection)]
    return [*findings, *_copies(collection)]


def _copies(collection: Collection) -> Iterator[Finding]:
    """Yield copies that differ from their originals, where it is unknown which of the two is
    right.
    """
    for piece in collection.refused:
        if piece.code == COPY_DIFFERS:
            yield finding(
                "INGEST_COPY_DIFFERS",
                f"{piece.message}.",
                "Keep the correct one, and remove the copy suffix from its name.",
                WARNING,
                evidence={"file": piece.source},
            )


def _wrapped(collection: Collection) -> Iterator[Finding]:
    """Yield a finding for each kind of wrapping in which logs were stored."""
    alike: dict[str, list[str]] = {}
    for file in collection.files:
        if file.wrapping:
            alike.setdefault(str(file.wrapping), []).append(file.name)
    for how, names in sorted(alike.items()):
        shown = ", ".join(names[:LISTED])
        yield finding(
            "INGEST_WRAPPED",
            f"{len(names)} log{'s' * (len(names) > 1)} ({names[0]}{' …' * (len(names) > 1)}): "
            f"{how}; the lines are read as those inside.",
            "Nothing: the content is read in the same way.",
            evidence={"files": shown, "wrapping": how},
        )


def _silent_clients(
    stats: Iterable[FileStats],
    places: Mapping[str, tuple[str, str]],
    stating: Container[tuple[str, str] | None],
    others: Container[str],
) -> Iterator[Finding]:
    """Yield client logs that were read but state nothing about consumers."""
    silent: dict[str, list[FileStats]] = {}
    for file_stats in stats:
        headed = file_stats.understood and file_stats.name not in others
        if file_stats.kind == CLIENT_LOG and places[file_stats.name] not in stating and headed:
            silent.setdefault(places[file_stats.name][1], []).append(file_stats)
    for place, of_client in sorted(silent.items()):
        lines = sum(file_stats.lines for file_stats in of_client)
        yield finding(
            "INGEST_STATES_NOTHING",
            f"clients/{place}: {lines} lines were read, and none of them concerns a consumer.",
            "Nothing if this is a producer's log; otherwise check that it is the consumer's log.",
            WARNING,
            evidence={
                "files": ", ".join(file_stats.name for file_stats in of_client[:LISTED]),
                "lines": lines,
            },
        )


def _missing(collection: Collection, context: ClusterContext) -> list[Finding]:
    refused = {
        file.place
        for piece in collection.refused
        if (file := identify(piece.source)) and file.kind == BROKER_LOG
    }
    name_servers = {f.place for f in collection.files if f.kind == NAMESRV_LOG}
    rows = [
        finding(
            "INGEST_BROKER_LOG_MISSING",
            f"broker.log of {name} was not collected: members that only this broker saw are "
            "unknown.",
            f"Copy it into brokers/{name}/.",
            WARNING,
            broker_name=name,
        )
        for name in context.expected
        if name not in {*context.logged, *refused}
    ]
    rows += [
        _unread_client(piece)
        for piece in collection.refused
        if (file := identify(piece.source)) and file.kind == CLIENT_LOG
    ]
    expected, collected = len(collection.settings.name_servers), len(name_servers)
    if collected < expected:
        names = ", ".join(collection.settings.name_servers)
        rows.append(
            finding(
                "INGEST_NAMESRV_LOG_MISSING",
                f"The logs of {collected} of the {expected} expected name servers ({names}) were "
                "collected.",
                "Copy each into namesrv/<name>/.",
                WARNING,
            )
        )
    return rows


def _awake(context: ClusterContext) -> Iterator[Finding]:
    """Yield a finding if no file can show that members were suspended.

    If other clients' logs were collected, each group's tables name its members without one.
    """
    if context.logged and not context.client_logs:
        yield finding(
            "INGEST_ASSUMED",
            "No client's log was collected, and only these show suspended members: none is "
            "assumed. If a member was suspended while members came or left or queues changed, the "
            "past owners of its group shown here are wrong.",
            "Nothing unless clients call suspend(); then collect their logs.",
            evidence={"suspended members without a log": "none"},
        )


def _unread_client(piece: Unread) -> Finding:
    return finding(
        "INGEST_NOT_UNDERSTOOD",
        f"{piece.message}.",
        "Copy the log as RocketMQ writes it (docs/ingest.md shows which belongs where).",
        WARNING,
        evidence={"file": piece.source, "code": piece.code},
    )


def _folders(context: ClusterContext) -> Iterator[Finding]:
    """Yield folders whose broker no file shows, and folders of one broker that look alike."""
    for name, folder in context.folders.items():
        if not folder.identified:
            what = (
                f"No file shows which broker brokers/{name} belongs to: it is assumed to be the "
                f"broker {name}."
            )
        elif not folder.role_known:
            what = (
                f"brokers/{name} belongs to {folder.broker_name} too, and no file shows whether "
                "it is a slave's folder: it is assumed to be a slave's, and its stores are not "
                "used."
            )
        else:
            continue
        yield finding(
            "INGEST_BROKER_FOLDER_UNCLEAR",
            what,
            "Collect clusterList, or broker.log since the broker's start.",
            WARNING,
            broker_name=folder.broker_name,
            evidence={"folder": f"brokers/{name}"},
        )


def _unknown_versions(context: ClusterContext) -> Iterator[Finding]:
    """Yield a finding for each version of brokers whose rules are unknown."""
    for version, brokers, instead, remedy in not_modelled(context.versions):
        yield finding(
            "INGEST_VERSION_NOT_MODELLED",
            f"{', '.join(brokers)}: V{version.replace('.', '_')} (clusterList) {instead}.",
            remedy,
            WARNING,
            broker_name=brokers[0] if len(brokers) == 1 else None,
            evidence={"version": version, "brokers": ", ".join(brokers)},
        )


def _zones(collection: Collection, local: set[str], assumed: Assumptions) -> list[Finding]:
    """Return the zones missing from collection.toml, for dumps and logs (by name) with local
    times.
    """
    settings = collection.settings
    rows = []
    dumps = any(f.kind == ADMIN and f.arguments[0] in ZONED_COMMANDS for f in collection.files)
    if settings.admin_time_zone is None and dumps:
        rows.append(_zone("admin_time_zone", "mqadmin's output", assumed))
    logs = [f for f in collection.files if f.kind == CLIENT_LOG and f.name in local]
    for place in sorted({f.place for f in logs if settings.zone_of(f.name) is None}):
        rows.append(_zone(f'time_zones."clients/{place}/*"', f"clients/{place}", assumed))
    return rows


def _zone(key: str, what: str, assumed: Assumptions) -> Finding:
    return finding(
        "INGEST_ASSUMED",
        f"collection.toml has no {key}: local times of {what} are assumed to be in "
        f"{assumed.time_zone}.",
        f"Name {key} in collection.toml; clients and servers from 5.1 on write GMT+8 and need no "
        "zone.",
        evidence={key: assumed.time_zone},
    )


def _of_file(stats: FileStats, *, stating: bool, other_head: bool) -> list[Finding]:
    """Return findings on one file; `stating`: it or another file of its log states something.

    A client's log with RocketMQ's head, such as a producer's, may state nothing, and so may a
    proxy's.
    """
    rows = []
    shown = {"file": stats.name, "lines": stats.lines, "understood": stats.understood}
    # a proxy's entries span lines without a head, and a proxy without members has no facts
    share = 0 if stats.kind == PROXY_LOG else WRONG_FILE_SHARE
    foreign = stats.understood < share * stats.lines or not stats.understood
    quiet = {LOCK_LOG, POP_LOG, PROXY_LOG} | (set() if other_head else {CLIENT_LOG})
    silent = not stating and stats.kind not in quiet
    if stats.kind in LOGS and stats.lines and (foreign or silent):
        rows.append(
            finding(
                "INGEST_NOT_UNDERSTOOD",
                f"Few lines of {stats.name} are understood: {stats.understood} of {stats.lines} "
                f"lines, {stats.facts} facts. It begins "
                f"{text_shown(stats.first_line)}"
                f"{f', like {stats.looks_like}' if stats.looks_like else ''}.",
                "Copy the log as RocketMQ writes it (docs/ingest.md shows which belongs where, "
                "and how its lines begin).",
                WARNING,
                evidence=shown,
            )
        )
    if stats.lines == 0 and stats.kind in (BROKER_LOG, NAMESRV_LOG, CLIENT_LOG):
        rows.append(
            finding(
                "INGEST_EMPTY_FILE",
                f"{stats.name} is empty.",
                "Copy the log, not the file that a rotation has just begun.",
                WARNING,
                evidence=shown,
            )
        )
    if stats.jumps_back:
        kept = "its times are kept as they stand"
        if stats.clock is not None:
            kept = "its times are read as corrected"
        rows.append(
            finding(
                "INGEST_CLOCK_SET_BACK",
                f"The clock of {stats.name} goes back {stats.jumps_back} times, by up to "
                f"{stats.worst_jump_ms} ms; {kept}.",
                "Keep hosts synchronised without steps (chrony slews).",
                WARNING,
                first_ms=stats.first_ms,
                last_ms=stats.last_ms,
                evidence=shown,
            )
        )
    return rows


EXPORT_FIRST = (
    "Run `mqadmin rocksDBConfigToJson -n <name servers> -b <broker address>` right before "
    "config/*.json is copied, as `rebalance collect` does."
)


def _rocksdb(context: ClusterContext) -> Iterator[Finding]:
    """Yield findings on stores exported long before they were copied, or at an unknown time."""
    for broker, store in broker_stores(context):
        old: dict[str, str] = {}
        undated: list[str] = []
        for kind, file in sorted(store.newest.items()):
            at_ms, copied_ms = store.date(kind), store.copied[file]
            if at_ms is None and store.shown_ms(kind) is None:
                undated.append(STORE_NAMES[kind])
            elif at_ms is not None and copied_ms - at_ms > EXPORT_MS:
                age = (copied_ms - at_ms) // SECOND_MS
                old[STORE_NAMES[kind]] = f"{utc(at_ms)}, {age} s before the copy"
        if old:
            parts = "; ".join(f"{name} of {age}" for name, age in old.items())
            yield finding(
                "INGEST_EXPORT_OLD",
                f"{broker} keeps its configurations in RocksDB, so its JSON files date from their "
                f"last export ({parts}).",
                EXPORT_FIRST,
                INFO,
                broker_name=broker,
                evidence={"form": store.form, "store": store.source, **old},
            )
        if undated:
            parts = ", ".join(undated)
            yield finding(
                "INGEST_EXPORT_UNDATED",
                f"{broker} keeps its configurations in RocksDB, and no file shows when {parts} "
                "was exported, so it is not used.",
                EXPORT_FIRST,
                WARNING,
                broker_name=broker,
                evidence={"form": store.form, "store": store.source, "files": parts},
            )


def broker_stores(context: ClusterContext) -> Iterator[tuple[str, BrokerStore]]:
    """Yield each broker's store, except those of slaves, which are copies of their master's."""
    for folder, store in sorted(context.rocksdb.items()):
        of_folder = context.folders[folder]
        if of_folder.authoritative:
            yield of_folder.broker_name, store
