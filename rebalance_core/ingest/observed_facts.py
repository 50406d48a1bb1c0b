"""Rows of ``observed_facts`` from dumps and stores: one reader a kind of evidence."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Collection as AnyCollection
from dataclasses import replace
from typing import Any

from rebalance_core.ingest.broker_folders import HEARD_MS, STARTS, without_graceful_stops
from rebalance_core.ingest.cluster_context import ClusterContext, own_evidence
from rebalance_core.ingest.collection import (
    ADMIN,
    BROKER_LOG,
    CLIENT_LOG,
    GROUPS,
    LOCAL_OFFSETS,
    LOCK_LOG,
    MODES,
    NAMESRV_LOG,
    OFFSETS,
    ORDER_INFO,
    PROXIES,
    PROXY_LOG,
    TOPICS,
    CollectedFile,
    Collection,
    identify,
)
from rebalance_core.ingest.collection_settings import SETTINGS_NAME
from rebalance_core.ingest.events.connections import ProcessNames
from rebalance_core.ingest.events.unlogged_members import Presence
from rebalance_core.ingest.evidence import Evidence
from rebalance_core.ingest.fact import file_of
from rebalance_core.ingest.file_reader import FileStats
from rebalance_core.ingest.log_rows import Clients, FactRows, add_log_rows
from rebalance_core.ingest.parse.channels import GRPC
from rebalance_core.ingest.parse.command_output import NOT_ONLINE
from rebalance_core.ingest.parse.java_text import plain_version
from rebalance_core.ingest.request_modes import members_dividing_themselves
from rebalance_core.ingest.rows import Row, finding
from rebalance_core.ingest.store_copies import EXPORT_MS, STORE_NAMES, BrokerStore
from rebalance_core.model.queue import is_retry_topic
from rebalance_core.model.times import HEARTBEAT_MS, SECOND_MS, utc
from rebalance_core.model.verdicts import INFO, WARNING

# Brokers that keep their configurations in RocksDB: the fact, and copies older than they look.

REMEDY = (
    "Run `mqadmin rocksDBConfigToJson -n <name servers> -b <broker address>` right before "
    "config/*.json is copied, as `rebalance collect` does."
)


def add_broker_stores(rows: FactRows, context: ClusterContext) -> None:
    """BROKER_STORE: one row for each broker with a RocksDB."""
    for broker, store in _stores(context):
        details: dict[str, object] = {"form": store.form}
        details |= {name: store.known(kind) for kind, name in STORE_NAMES.items()}
        rows.add("BROKER_STORE", context.end_ms, store.source, details, broker_name=broker)


def rocksdb_findings(context: ClusterContext) -> Iterator[Row]:
    """Newest copies that were exported long before they were copied, or nobody knows when."""
    for broker, store in _stores(context):
        old: dict[str, str] = {}
        undated: list[str] = []
        for kind, file in sorted(store.newest.items()):
            at_ms, copied_ms = store.date(kind), store.copied[file]
            if at_ms is None and store.known(kind) is None:
                undated.append(STORE_NAMES[kind])
            elif at_ms is not None and copied_ms - at_ms > EXPORT_MS:
                age = (copied_ms - at_ms) // SECOND_MS
                old[STORE_NAMES[kind]] = f"{utc(at_ms)}, {age} s before the copy"
        if old:
            parts = "; ".join(f"{name} of {age}" for name, age in old.items())
            yield finding(
                "INGEST_EXPORT_OLD",
                f"{broker} keeps its configurations in RocksDB: its JSON files are as of their "
                f"last export and count as such ({parts}).",
                REMEDY,
                INFO,
                broker_name=broker,
                evidence={"form": store.form, "store": store.source, **old},
            )
        if undated:
            parts = ", ".join(undated)
            yield finding(
                "INGEST_EXPORT_UNDATED",
                f"{broker} keeps its configurations in RocksDB, and no file tells when "
                f"{parts} was exported: it is not used.",
                REMEDY,
                WARNING,
                broker_name=broker,
                evidence={"form": store.form, "store": store.source, "files": parts},
            )


def _stores(context: ClusterContext) -> Iterator[tuple[str, BrokerStore]]:
    """By broker; a slave's store is a copy of its master's."""
    for folder, store in sorted(context.rocksdb.items()):
        of_folder = context.folders[folder]
        if of_folder.authoritative:
            yield of_folder.broker_name, store


DocumentReader = Callable[[FactRows, Evidence, int], None]

_HELD = (
    "commit_offset", "cached_messages", "locked", "try_unlock_times", "dropped", "last_lock_ms",
    "last_pull_ms", "last_consume_ms",
)  # fmt: skip
_POPPED = ("wait_ack_count", "dropped", "last_pop_ms")
HEARTBEAT_INTERVAL = "heartbeatBrokerInterval"
"""ClientConfig: how often a client tells the brokers that it lives, in ms."""
_POP_SETTINGS = {"invisible_ms": "popInvisibleTime", "threads": "consumeThreadMin"}
"""The pool's queue has no bound, so it never grows beyond consumeThreadMin."""
_ORDER = (
    "attempt_id", "commit_bits", "offsets", "pop_ms", "invisible_ms", "next_visible_ms",
    "blocked_until_ms",
)  # fmt: skip
_PROGRESS = ("broker_offset", "consumer_offset", "last_time_ms", "client_ip", "with_clients")
_AT_BROKER = ("consume_type", "message_model", "consume_from_where")


def dump(rows: FactRows, piece: Evidence, at_ms: int) -> None:
    """DUMP: one file with the output of mqadmin."""
    v = piece.values
    details = {name: v[name] for name in ("command", "rows", "rejected", "error")}
    if v.get("cut_off"):
        details["cut_off"] = True
    if v.get("queues_told") is not None:
        details["queues_told"] = v["queues_told"]
    broker, proxy = _asked(piece)
    where = {"topic": v["topic"], "broker_name": broker, "client_id": v["client_id"]}
    rows.add("DUMP", at_ms, piece.source, details | proxy, **where)


def _asked(piece: Evidence) -> tuple[str | None, dict[str, str]]:
    """The broker asked, and the detail ``proxy`` where it was one: a proxy is no broker."""
    if piece.place.startswith(PROXIES):
        return None, {"proxy": piece.place.removeprefix(PROXIES)}
    return piece.place, {}


def queue_row(
    rows: FactRows,
    kind: str,
    piece: Evidence,
    at_ms: int,
    details: Mapping[str, Any],
    client_id: str | None = None,
) -> None:
    """A row on the queue that the evidence names."""
    v = piece.values
    rows.add(
        kind,
        at_ms,
        piece.source,
        details,
        topic=v["topic"],
        broker_name=v["broker_name"],
        queue_id=v["queue_id"],
        client_id=client_id,
    )


def _config(rows: FactRows, piece: Evidence, at_ms: int) -> None:
    details = {name: v for name, v in piece.values.items() if name != "consumer_group"}
    rows.add("GROUP_CONFIG", at_ms, piece.source, details, broker_name=piece.place)


def _at_broker(rows: FactRows, piece: Evidence, at_ms: int) -> None:
    """Also of a broker that knows no member; what it does not say of the group is empty."""
    v = piece.values
    topics = sorted(topic for topic, _ in v.get("subscriptions") or ())
    details = {"members": v.get("members", 0), "topics": topics}
    details |= {name: v.get(name) for name in _AT_BROKER}
    broker, proxy = _asked(piece)
    kind = "GROUP_AT_PROXY" if proxy else "GROUP_AT_BROKER"
    rows.add(kind, at_ms, piece.source, details | proxy, broker_name=broker)


def _nobody(rows: FactRows, piece: Evidence, at_ms: int) -> None:
    _at_broker(rows, piece, at_ms)
    if piece.values.get("code") == NOT_ONLINE:
        broker, proxy = _asked(piece)
        rows.add("NOT_ONLINE", at_ms, piece.source, proxy, broker_name=broker)


def _order(rows: FactRows, piece: Evidence, at_ms: int) -> None:
    v = piece.values
    details = {name: v[name] for name in _ORDER}
    where = {"topic": v["topic"], "broker_name": piece.place, "queue_id": v["queue_id"]}
    rows.add("ORDER_BLOCK", at_ms, piece.source, details, **where)


def _popped(rows: FactRows, piece: Evidence, at_ms: int) -> None:
    details = {name: piece.values[name] for name in _POPPED}
    queue_row(rows, "POP_QUEUE", piece, at_ms, details, piece.values.get("client_file"))


def _settings(rows: FactRows, piece: Evidence, at_ms: int) -> None:
    found = piece.values["properties"]
    beat = found.get(HEARTBEAT_INTERVAL, "")
    if beat.isdecimal() and int(beat) != HEARTBEAT_MS and piece.values.get("client_file"):
        client_id = piece.values["client_file"]
        rows.add("HEARTBEAT_INTERVAL", at_ms, piece.source, {"interval_ms": beat},
                 client_id=client_id)  # fmt: skip
    details = {name: found[key] for name, key in _POP_SETTINGS.items() if key in found}
    if len(details) == len(_POP_SETTINGS) and piece.values.get("client_file"):
        client_id = piece.values["client_file"]
        rows.add("POP_SETTINGS", at_ms, piece.source, details, client_id=client_id)


def _rate(rows: FactRows, piece: Evidence, at_ms: int) -> None:
    v = piece.values
    if v.get("client_file") and not is_retry_topic(v["topic"]):
        details = {"consume_rt_ms": v["consume_rt"]}
        where = {"topic": v["topic"], "client_id": v["client_file"]}
        rows.add("CONSUME_RATE", at_ms, piece.source, details, **where)


def _connection(rows: FactRows, piece: Evidence, at_ms: int) -> None:
    v = piece.values
    broker, proxy = _asked(piece)
    # a proxy answers its own version for every member's
    version = plain_version(v["version"]) if v["version"] and not proxy else None
    details = {"client_addr": v["client_addr"], "language": v["language"], "version": version}
    where = {"broker_name": broker, "client_id": v["client_id"]}
    rows.add("CONNECTION", at_ms, piece.source, details | proxy, **where)


def _client_topic(rows: FactRows, piece: Evidence, at_ms: int) -> None:
    v = piece.values
    if v.get("client_file") and not is_retry_topic(v["topic"]):
        details = {"expression": v["expression"]}
        where = {"topic": v["topic"], "client_id": v["client_file"]}
        rows.add("CLIENT_TOPIC", at_ms, piece.source, details, **where)


def _held(rows: FactRows, piece: Evidence, at_ms: int) -> None:
    details = {name: piece.values[name] for name in _HELD}
    queue_row(rows, "HELD_QUEUE", piece, at_ms, details, piece.values.get("client_file"))


def _stuck(rows: FactRows, piece: Evidence, at_ms: int) -> None:
    v = piece.values
    details = {"trouble": v["trouble"], "count": v["count"]}
    queue_row(rows, "STUCK_QUEUE", piece, at_ms, details, v["client_id"])


def _progress(rows: FactRows, piece: Evidence, at_ms: int) -> None:
    v = piece.values
    details = {name: v[name] for name in _PROGRESS}
    details["names_cut"] = v["topic_truncated"] or v["broker_name_truncated"]
    queue_row(rows, "QUEUE_PROGRESS", piece, at_ms, details)


DOCUMENT_READERS: dict[str, DocumentReader] = {
    "dump": dump,
    "subscription_group": _config,
    "group_connection": _at_broker,
    "no_members": _nobody,
    "member": _connection,
    "client_subscription": _client_topic,
    "client_queue": _held,
    "client_pop_queue": _popped,
    "client": _settings,
    "client_rates": _rate,
    "order_info": _order,
    "stuck_queue": _stuck,
    "queue_progress": _progress,
}


# observed_members and observed_ownership: what mqadmin's dumps show of one group.


def member_rows(group: str, pieces: list[Evidence], context: ClusterContext) -> list[Row]:
    """Members as ``consumerConnection`` lists them at one broker, and as each one answers itself.

    Subscriptions are without the retry topic, as in cluster_events; those of
    ``consumerConnection`` are the group's at the broker asked, not the member's.
    """
    topics_by_file: dict[str, list[str]] = {}
    of_grpc: set[str] = set()
    for piece in pieces:
        if piece.kind == "client_subscription":
            topics_by_file.setdefault(file_of(piece.source), []).append(piece.values["topic"])
        elif piece.kind == "consumer_connected" and piece.values.get("protocol") == GRPC:
            of_grpc.add(piece.values["client_id"])
    rows = []
    for piece in pieces:
        v = piece.values
        if piece.kind == "member":
            topics = [pair[0] for pair in v["subscriptions"] or ()]
            client_id = v["client_id"]
        elif piece.kind == "client" and v.get("client_file"):
            topics = topics_by_file.get(file_of(piece.source), [])
            client_id = v["client_file"]
        else:
            continue
        # a proxy is no broker; it, and a broker with one inside for its gRPC clients, answers its
        # own version for the member's (rocketmq.md §14)
        at_proxy = piece.place.startswith(PROXIES)
        own_version = v["version"] and not at_proxy and client_id not in of_grpc
        rows.append(
            {
                "consumer_group": group,
                "asked_broker": None if at_proxy else piece.place or None,
                "client_id": client_id,
                "client_addr": v.get("client_addr"),
                "language": v.get("language"),
                "version": plain_version(v["version"]) if own_version else None,
                "subscriptions": sorted(t for t in set(topics) if not is_retry_topic(t)),
                "message_model": v["message_model"],
                "consume_from_where": v["consume_from_where"],
                "observed_ms": context.time_of(piece),
                "source": piece.source,
            }
        )
    return rows


def ownership_rows(
    group: str, pieces: Iterable[Evidence], presence: Presence, context: ClusterContext
) -> list[Row]:
    """Queues that clients hold: of ``consumerStatus``, and of ``consumerProgress -s true``.

    The latter shows the text before the ``@`` of the client id alone: a row is made where just one
    member of then begins so.
    """
    rows = []
    for piece in pieces:
        v = piece.values
        at_ms = context.time_of(piece)
        if piece.kind == "client_queue" and not v["dropped"] and v.get("client_file"):
            client_id = v["client_file"]
        elif piece.kind == "queue_progress" and v["client_ip"] and not v["topic_truncated"]:
            present_ids = presence.clients(at_ms, at_ms)
            alike = [one for one in present_ids if one.partition("@")[0] == v["client_ip"]]
            if len(alike) != 1:
                continue
            client_id = alike[0]
        else:
            continue
        rows.append(
            {
                "consumer_group": group,
                "topic": v["topic"],
                "broker_name": v["broker_name"],
                "queue_id": v["queue_id"],
                "client_id": client_id,
                "observed_ms": at_ms,
                "source": piece.source,
            }
        )
    return rows


# ``observed_facts`` of one group: what dumps, stores and logs state of it.


def group_facts(
    group: str, pieces: AnyCollection[Evidence], names: ProcessNames, context: ClusterContext
) -> list[Row]:
    """The rows of one group, also of one that never had a member.

    Args:
        group: its name.
        pieces: all evidence on it, in order of time.
        names: who the lines of a client's log are about.
        context: of the cluster.
    """
    clients = Clients(pieces, names, context.addresses)
    rows = FactRows(group)
    for piece in pieces:
        at_ms = context.time_of(piece)
        if piece.kind in DOCUMENT_READERS:
            DOCUMENT_READERS[piece.kind](rows, piece, at_ms)
        else:
            add_log_rows(rows, piece, at_ms, clients)
    for piece in members_dividing_themselves(pieces):
        v = piece.values
        where = {"topic": v["topic"], "client_id": v["client_id"]}
        rows.add("GAVE_UP_ASKING", context.time_of(piece), piece.source,
                 {"strategy": v["strategy"]}, **where)  # fmt: skip
    return rows.rows


# ``observed_facts`` of the cluster: what was collected, who was expected, who is registered.

LOG, STORE = "log", "store"
BROKERS = "brokers/"
LOG_NAMES = {BROKER_LOG: "broker.log", NAMESRV_LOG: "namesrv.log", PROXY_LOG: "proxy.log"}
WRONG_FILE_SHARE = 0.5
"""Of a log of the right kind nearly all lines are understood; below half it is another file."""
_BROKER_FILES = {
    BROKER_LOG: (LOG, "broker.log"),
    LOCK_LOG: (LOG, "lock.log"),
    TOPICS: (STORE, "topics.json"),
    GROUPS: (STORE, "subscriptionGroup.json"),
    OFFSETS: (STORE, "consumerOffset.json"),
    MODES: (STORE, "messageRequestMode.json"),
    ORDER_INFO: (STORE, "consumerOrderInfo.json"),
}
_REGISTERS = ("broker_registered", "broker_address", "broker_known")


def cluster_facts(
    collection: Collection,
    stats: Iterable[FileStats],
    pieces: Iterable[Evidence],
    context: ClusterContext,
) -> list[Row]:
    """The rows that concern no single group.

    Args:
        collection: the files.
        stats: how each was understood.
        pieces: evidence on the cluster.
        context: of the cluster.
    """
    rows = FactRows()
    _expected(rows, collection, context)
    stats = list(stats)
    _files(rows, collection, stats, context)
    _not_read(rows, collection, stats, context)
    _proxies(rows, collection, context)
    counted = own_evidence(pieces, context)
    ordered = sorted(counted, key=lambda p: (context.time_of(p), p.place, p.position, p.source))
    for piece in ordered:
        _stated(rows, piece, context.time_of(piece))
    _registered(rows, collection, ordered, context)
    add_broker_stores(rows, context)
    for broker, mode in context.slave_modes.items():
        _spanning(rows, "BROKER_SLAVES", context, SETTINGS_NAME, {"mode": mode or ""}, broker)
    return rows.rows


def _expected(rows: FactRows, collection: Collection, context: ClusterContext) -> None:
    span = {"start_ms": context.start_ms, "end_ms": context.end_ms}
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
    """A row from its first to its last moment, by default those of the collection."""
    first_ms, last_ms = span or (context.start_ms, context.end_ms)
    rows.add(kind, first_ms, source, details, broker_name=broker_name)
    rows.rows[-1]["last_ms"] = last_ms


def _files(
    rows: FactRows, collection: Collection, stats: Iterable[FileStats], context: ClusterContext
) -> None:
    """One row per broker or name server and kind of file, over all of them."""
    counted = {one.name: one for one in stats}
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
        count: dict[str, object] = {
            "files": len(files),
            "facts": sum(one.facts for one in of_files),
        }
        source = files[0].name
        if kind == NAMESRV_LOG:
            count["name"] = name_server(collection, place)
            _spanning(rows, "NAME_SERVER_FILE", context, source, count, None, span)
        else:
            count["file"], count["name"] = _BROKER_FILES[kind]
            if kind == BROKER_LOG:
                count["until_ms"] = context.logged.get(place) or None
                count["unreadable"] = sum(bool(one.unreadable) for one in of_files)
                count["folders"] = speaking = speaking_folders(place, context)
                turns = {folder for folder in speaking if context.folders[folder].by_turns}
                logged = {file.place for file in collection.files if file.kind == BROKER_LOG}
                count["unlogged"] = sorted(turns - logged)
            _spanning(rows, "BROKER_FILE", context, source, count, place, span)


def speaking_folders(broker: str, context: ClusterContext) -> list[str]:
    """The folders whose broker.log tells of a broker's members, one after the other by turns."""
    return sorted(
        name
        for name, folder in context.folders.items()
        if folder.broker_name == broker
        and (folder.by_turns or (folder.authoritative and not folder.slave))
    )


def _not_read(
    rows: FactRows, collection: Collection, stats: Iterable[FileStats], context: ClusterContext
) -> None:
    """Report files that are there and state nothing: they must not pass for what was collected."""
    counted = {one.name: one for one in stats}
    logs: dict[tuple[str, str], list[CollectedFile]] = {}
    for file in collection.files:
        one = counted.get(file.name)
        if file.kind in (BROKER_LOG, NAMESRV_LOG):
            logs.setdefault((file.kind, file.place), []).append(file)
        elif one is not None and not file.is_log and _states_too_little(one):
            details = {
                "lines": one.rejected + one.understood,
                "understood": one.understood,
                "why": one.cut_off or one.why,
            }
            details |= {"first_line": one.first_line, "looks_like": one.looks_like}
            _add_not_read(rows, file, details, context)
    for _, files in sorted(logs.items()):
        of_files = [counted[file.name] for file in files]
        lines, known = (sum(getattr(one, n) for one in of_files) for n in ("lines", "understood"))
        foreign = [one for one in of_files if one.understood < WRONG_FILE_SHARE * one.lines]
        if known < WRONG_FILE_SHARE * lines:
            details = {"lines": lines, "understood": known, "why": foreign[0].why}
            details |= {n: getattr(foreign[0], n) for n in ("first_line", "looks_like")}
            _add_not_read(rows, replace(files[0], name=foreign[0].name), details, context)
    for piece in collection.refused:
        refused = identify(piece.source)
        if refused is not None and refused.kind not in (CLIENT_LOG, LOCAL_OFFSETS, LOCK_LOG):
            details = {"lines": 0, "understood": 0, "why": piece.message, "first_line": piece.raw}
            _add_not_read(rows, refused, details | {"looks_like": ""}, context)


def _states_too_little(stats: FileStats) -> bool:
    return bool(stats.cut_off) or (not stats.understood and _is_refused(stats))


def _is_refused(stats: FileStats) -> bool:
    """True if lines of a document were refused, but not as those of a command that is not read."""
    return bool(stats.rejected) and set(stats.codes) != {"UNKNOWN_COMMAND"}


def _add_not_read(
    rows: FactRows, file: CollectedFile, details: Mapping[str, object], context: ClusterContext
) -> None:
    """A slave's files tell nothing that its master's do not."""
    folder = context.folders.get(file.place) if file.name.startswith(BROKERS) else None
    if folder is not None and (folder.slave or not folder.authoritative):
        return
    what = file.arguments[0] if file.kind == ADMIN else LOG_NAMES.get(file.kind, STORE)
    broker = file.place if file.name.startswith(BROKERS) else None
    broker = broker if folder is None else folder.broker_name
    more = {"name": file.place} if file.kind == NAMESRV_LOG else {}
    _spanning(rows, "NOT_READ", context, file.name, {"what": what, **more, **details}, broker)


def name_server(collection: Collection, place: str) -> str:
    """The name server whose log lies there: in ``namesrv/`` itself, the only one expected."""
    expected = collection.settings.name_servers
    places = {file.place for file in collection.files if file.kind == NAMESRV_LOG}
    return expected[0] if len(expected) == len(places) == 1 else place


def _moments(file: CollectedFile, stats: FileStats, context: ClusterContext) -> list[int]:
    """First and last statement of a log, else when a store was copied, or was exported."""
    if file.is_log:
        return [time for time in (stats.first_ms, stats.last_ms) if time is not None]
    written_ms = context.exported.get(file.name) or file.written_ms
    return [context.end_ms if written_ms is None else written_ms]


def _stated(rows: FactRows, piece: Evidence, at_ms: int) -> None:
    v, source = piece.values, piece.source
    if piece.kind == "dump":
        dump(rows, piece, at_ms)
    elif piece.kind == "group_configs":
        rows.add("GROUP_CONFIGS", at_ms, source, v, broker_name=piece.place)
    elif piece.kind == "broker":
        version = plain_version(v["version"]) if v["version"] else None
        details = {"version": version, "broker_id": v["broker_id"], "addr": v["addr"]}
        rows.add("BROKER_IN_CLUSTER", at_ms, source, details, broker_name=v["broker_name"])
    else:
        add_log_rows(rows, piece, at_ms)


def _registered(
    rows: FactRows, collection: Collection, ordered: Iterable[Evidence], context: ClusterContext
) -> None:
    """BROKER_REGISTERED: what the log of each name server said last of each broker.

    Who registers anew had been removed: where no line tells when, `untold_ms` is the time before.
    """
    last: dict[tuple[str, str], tuple[Evidence, bool]] = {}
    joined: dict[tuple[str, str], Evidence] = {}
    untold: dict[tuple[str, str], int] = {}
    for piece in without_graceful_stops(ordered):
        if piece.kind in _REGISTERS:
            address = piece.values["address"]
            broker = piece.values.get("broker") or context.addresses.get(address)
            if broker is None:
                continue
            key = piece.place, broker
            last[key] = (piece, True)
            if piece.kind == "broker_registered":
                before = joined.get(key)
                if before is not None and before.values["address"] == address:
                    untold[key] = context.time_of(before)
                joined[key] = piece
        elif piece.kind == "broker_removed":
            last[piece.place, piece.values["broker"]] = (piece, False)
            joined.pop((piece.place, piece.values["broker"]), None)
        elif piece.kind == STARTS:
            joined = {key: one for key, one in joined.items() if key[0] != piece.place}
            if context.end_ms - context.time_of(piece) > HEARD_MS:
                last |= {key: (piece, False) for key in last if key[0] == piece.place}
    for (place, broker), (piece, registered) in sorted(last.items()):
        details = {"name": name_server(collection, place), "registered": registered}
        if (place, broker) in untold:
            details["untold_ms"] = untold[place, broker]
        at_ms = context.time_of(piece)
        rows.add("BROKER_REGISTERED", at_ms, piece.source, details, broker_name=broker)
