"""Completion of assembled rows into table rows: cluster, sequence, and one row per key."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, TypeVar, cast

from rebalance_core.contracts.fact_declaration import COMMIT, GROUP, TOPIC
from rebalance_core.contracts.ledger import BROKER, FINDINGS, fingerprint_of
from rebalance_core.ingest.cluster_context import ClusterContext
from rebalance_core.ingest.collection import PROXIES
from rebalance_core.ingest.events.assigned_queues import may_assign, without_assigned
from rebalance_core.ingest.events.committed_offsets import commit_row
from rebalance_core.ingest.events.connections import ProcessNames, named_client
from rebalance_core.ingest.events.contradictions import without_contradictions
from rebalance_core.ingest.events.listings import after_logs, dated_by_dumps
from rebalance_core.ingest.events.member_timeline import MemberTimeline
from rebalance_core.ingest.events.presence import Presence
from rebalance_core.ingest.events.proxies import through_proxies
from rebalance_core.ingest.events.subscription_versions import SubscriptionVersions
from rebalance_core.ingest.events.suspensions import assumed_awake, suspension_events
from rebalance_core.ingest.events.topic_timeline import topic_tables
from rebalance_core.ingest.events.torn_lists import without_torn_rows
from rebalance_core.ingest.events.unlogged_members import unlogged_joins, unlogged_leaves
from rebalance_core.ingest.events.unlogged_subscriptions import unlogged_subscriptions
from rebalance_core.ingest.events.unsubscriptions import Unsubscriptions
from rebalance_core.ingest.evidence import Evidence, is_fact_only, is_on_group
from rebalance_core.ingest.evidence_table import REFUSED, unread_of
from rebalance_core.ingest.fact import Unread
from rebalance_core.ingest.group_settings_row import SeenSettings, settings_row
from rebalance_core.ingest.group_strategies import (
    CONFIG,
    MACHINE_ROOM,
    assumed_of_departed,
    check_parameters,
    fit_strategy,
    group_strategies,
)
from rebalance_core.ingest.latencies import latency_rows
from rebalance_core.ingest.observed_facts import group_facts, member_rows, ownership_rows
from rebalance_core.ingest.own_evidence import of_group, of_masters
from rebalance_core.ingest.own_settings import own_intervals
from rebalance_core.ingest.parse.wire_versions import (
    not_modelled,
    plain_version,
    version_of_ordinal,
)
from rebalance_core.ingest.queue_moves import move_rows
from rebalance_core.ingest.request_modes import rebalance_modes, request_mode_events
from rebalance_core.ingest.rows import (
    OF_A_BROKER,
    ORDER,
    Event,
    Finding,
    Tables,
    by_name,
    event_order,
    finding,
)
from rebalance_core.model.client_releases import told_release
from rebalance_core.model.clients import is_modelled
from rebalance_core.model.events import CONSUMER_JOIN, SUBSCRIBE
from rebalance_core.model.group_settings import BROADCASTING, PROXY_REBALANCE
from rebalance_core.model.languages import (
    CPP,
    GO,
    HTTP,
    JAVA,
    LANGUAGES,
    NODE,
    NODE_JS,
    OTHER_LANGUAGE,
)
from rebalance_core.model.verdicts import WARNING
from rebalance_core.model.versions import nearest_version
from rebalance_core.protocol.client_libraries import ALI_ONS, library_of

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import ConsumerGroupsGiven, Issue, RejectedRow, RowsByTable
    from rebalance_core.ingest.evidence_types import GroupEvidence

REJECTED_TABLE = "collection"
"""The ``table_name`` for something that is not in an input table yet: a line or file of the
collection.
"""


def complete(tables: Tables, cluster: str) -> RowsByTable:
    """Return all rows of a collection in their final form."""
    tables = tables | {"cluster_events": sequenced(tables.get("cluster_events", []))}
    whole = by_name(once(tables))
    named = {name: of_cluster(name, rows, cluster) for name, rows in whole.items()}
    return cast("RowsByTable", named)


def once(tables: Tables) -> Tables:
    """Return the rows of whole groups and topics, each key once."""
    return tables | {
        "queue_offsets": newest(
            tables.get("queue_offsets", []),
            lambda row: (row["topic"], row["broker_name"], row["queue_id"], row["observed_ms"]),
            lambda row: row["max_offset"],
        ),
        "committed_offsets": newest(
            tables.get("committed_offsets", []),
            lambda row: (
                row["consumer_group"],
                row["topic"],
                row["broker_name"],
                row["queue_id"],
                row["client_id"],
                row["observed_ms"],
            ),
            lambda row: row["committed_offset"],
        ),
    }


def of_cluster(
    table: str, rows: Iterable[dict[str, object]], cluster: str
) -> list[dict[str, object]]:
    """Return the rows with the cluster's name, except for ``rejected``, and with the findings'
    fingerprints.
    """
    if table == "rejected":
        return list(rows)
    named = [{"cluster": cluster, **row} for row in rows]
    if table == FINDINGS.name:
        for row in named:
            row["fingerprint"] = fingerprint_of(
                row, BROKER if row["rule_id"] in OF_A_BROKER else ""
            )
    return named


def sequenced(events: Iterable[Event]) -> list[Event]:
    """Return all events at some moments in order, with their positions among simultaneous
    events.
    """
    ordered = sorted(events, key=event_order)
    last_ms, sequence = None, 0
    for row in ordered:
        row.pop(ORDER, None)
        sequence = sequence + 1 if row["event_ms"] == last_ms else 0
        last_ms, row["sequence"] = row["event_ms"], sequence
    return ordered


Observed = TypeVar("Observed")


def newest(
    rows: Iterable[Observed],
    key_of: Callable[[Observed], tuple[object, ...]],
    offset_of: Callable[[Observed], int],
) -> list[Observed]:
    """Return one row per key, with the highest offset if there are several at one instant."""
    best: dict[tuple[object, ...], Observed] = {}
    for row in rows:
        key = key_of(row)
        if key not in best or offset_of(best[key]) < offset_of(row):
            best[key] = row
    return list(best.values())


def rejected_row(piece: Unread) -> RejectedRow:
    """Return a row of ``rejected``."""
    issue: Issue = {"code": piece.code, "message": piece.message}
    return {
        "table_name": REJECTED_TABLE,
        "source": piece.source,
        "raw": piece.raw,
        "issues": [issue],
    }


LISTED = 20
"""Maximum number of clients that a finding names."""


def group_tables(group: str, pieces: Iterable[Evidence], context: ClusterContext) -> Tables:
    """Return the events, settings, observed rows and findings of a group from evidence in any
    order.
    """
    evidence = sorted(
        through_proxies(of_group(without_torn_rows(pieces), context), context),
        key=lambda p: (context.time_of(p), p.place, p.position, p.source, p.kind),
    )
    names = ProcessNames(evidence, context)
    observed = _observed(group, evidence, names, context)
    observed["latencies"] = latency_rows(group, evidence, names, context)
    observed["queue_moves"] = move_rows(group, evidence, names, context)
    on_group = list(filter(is_on_group, evidence))
    subscribed = SubscriptionVersions(on_group, context)
    evidence = [piece for piece in evidence if not is_fact_only(piece.kind)]
    if not evidence:
        return observed
    unsubscribed = Unsubscriptions(on_group, names, context)
    timeline = MemberTimeline(group, context, subscribed, unsubscribed)
    timeline.take(evidence)
    by_dumps = dated_by_dumps(timeline.after_logs, timeline.events, evidence, names, context)
    presence = Presence(timeline.events)
    joined, findings = unlogged_joins(group, on_group, presence, names, context)
    events = timeline.events + joined
    presence = Presence(events) if joined else presence
    left, more = unlogged_leaves(group, on_group, presence, context)
    events, findings = events + left, timeline.findings + findings + more
    findings += after_logs(group, by_dumps, context)
    presence = Presence(events) if left else presence
    events, more = unlogged_subscriptions(
        group, events, timeline.by_silence, presence, on_group, context
    )
    findings += more
    events, more = without_assigned(group, events, on_group)
    findings += more
    events += suspension_events(group, evidence, names, presence, context)
    events, more = without_contradictions(group, _in_order(events))
    findings += more
    modes = rebalance_modes(on_group)
    languages = client_languages(on_group, modes)
    libraries, releases = client_libraries(languages), client_releases(on_group, languages)
    group_row = context.group_rows.get(group, {})
    strategies = group_strategies(evidence, group_row.get("strategy"), presence, context)
    if _all_broadcast(events, group_row):
        pass  # every member reads every queue, so no strategy is used
    elif strategies.group is None:
        assumed = context.assumed.strategy
        strategies.group, more = fit_strategy(
            group, evidence, presence, assumed, context, languages
        )
        findings += more
    else:
        findings += check_parameters(group, evidence, presence, strategies, context, languages)
    proxied = {client for client, mode in modes.items() if mode == PROXY_REBALANCE}
    if not _all_broadcast(events, group_row):
        topics = _subscribed(events)
        findings += assumed_awake(group, names, presence, context, proxied, topics)
        if strategies.group != group_row.get("strategy"):
            findings += assumed_of_departed(group, evidence, presence, strategies, context, proxied)
    stated = _versions(on_group, modes) | timeline.versions
    stated = {client: version for client, version in stated.items() if client not in libraries}
    nearest = {client: nearest_version(version) for client, version in stated.items()}
    versions = {client: str(version) for client, version in nearest.items() if version}
    client_side = (row for row in events if modes.get(str(row.get("client_id"))) != PROXY_REBALANCE)
    findings += may_assign(group, client_side, on_group, versions)
    findings += _of_static_topics(group, events, context)
    findings += _of_lite_topics(group, events, context)
    findings += _release_unknown(group, {c: n for c, n in libraries.items() if c not in releases})
    findings += _taken_as_java(group, languages)
    findings += _not_modelled(group, stated)
    clients = {row["client_id"] for row in events if row["event_type"] == CONSUMER_JOIN}
    intervals, more = own_intervals(group, on_group, clients, context)
    findings += more
    _complete_joins(
        events, strategy=strategies.members, version=versions | releases, rebalance_mode=modes
    )
    languages |= proxied_languages(on_group, modes)
    _complete_joins([*events, *timeline.at_one_broker], language=languages, **intervals)
    findings += [_unknown_strategy(group, c, n) for c, n in strategies.unknown.items()]
    for number, row in enumerate(timeline.at_one_broker, len(events)):
        row[ORDER] = number
    tables: Tables = {
        "cluster_events": events + timeline.at_one_broker,
        "observed_ownership": ownership_rows(group, evidence, presence, context),
    }
    if events:
        changes, more = request_mode_events(group, on_group, presence, context)
        tables["cluster_events"] += changes
        members = SeenSettings(
            strategies,
            versions,
            modes,
            frozenset(clients),
            bool(changes),
            frozenset(libraries),
        )
        settings, taken = settings_row(group, on_group, members, names.zone_of, context)
        tables["consumer_groups"] = [settings]
        findings += more + taken
    return tables | observed | {"findings": findings}


def _observed(
    group: str, evidence: Iterable[Evidence], names: ProcessNames, context: ClusterContext
) -> Tables:
    """Return the statements of the group's masters unchanged."""
    stated = list(of_masters(evidence, context))
    return {
        "observed_facts": group_facts(group, stated, names, context),
        "observed_members": member_rows(group, stated, context),
    }


def _versions(pieces: Iterable[GroupEvidence], modes: Mapping[str, str]) -> dict[str, str]:
    """Return the versions of clients listed in dumps; a broker's registration line takes
    precedence.

    A proxy reports its own version for every member; a broker with an embedded proxy does so for
    gRPC members.
    """
    versions: dict[str, str] = {}
    for piece in pieces:
        if piece.kind not in ("member", "listed_client", "client") or not piece.values["version"]:
            continue
        client_id = named_client(piece)
        if modes.get(client_id or "") == PROXY_REBALANCE or piece.place.startswith(PROXIES):
            continue
        if client_id is not None:
            versions[client_id] = plain_version(piece.values["version"])
    return versions


def client_languages(pieces: Iterable[GroupEvidence], modes: Mapping[str, str]) -> dict[str, str]:
    """Return the language of each client shown by some file, by client id.

    Brokers print it (ali-ons as Java) unless they have no name for it. Otherwise the form of a
    client's log identifies Go and C++, and lines that only Java logs identify Java; the form of
    PROP_CLIENT_VERSION identifies Go, the form of the client id an old C++ client. gRPC clients are
    not classic clients (`proxied_languages`).
    """
    printed: dict[str, str] = {}
    by_itself: dict[str, str] = {}
    for piece in pieces:
        client_id = named_client(piece)
        if client_id is None or modes.get(client_id) == PROXY_REBALANCE:
            continue
        if piece.kind in ("consumer_connected", "member"):
            language = _printed_language(piece.values["language"], piece.values["version"])
            if language is not None and not piece.place.startswith(PROXIES):
                printed[client_id] = language
        elif piece.kind == "client" and _GO_VERSION.fullmatch(piece.values["version"] or ""):
            by_itself[client_id] = GO
        elif piece.kind == "client_language":
            by_itself[client_id] = piece.values["language"]
        elif piece.kind in ("heartbeat", "allocated", "broker_allocated"):
            # what only a Java client's log states about the client
            by_itself.setdefault(client_id, JAVA)
        if _CPP_ID.match(client_id):
            by_itself[client_id] = CPP
    nameless = {client_id for client_id, name in printed.items() if name == OTHER_LANGUAGE}
    return printed | {
        client_id: name
        for client_id, name in by_itself.items()
        if client_id not in printed.keys() - nameless
    }


def proxied_languages(pieces: Iterable[GroupEvidence], modes: Mapping[str, str]) -> dict[str, str]:
    """Return the language of each gRPC client, as its proxy prints or lists it, by client id.

    It determines which queue the client's next receive asks; its proxy's rules allocate. The client
    of Node.js names itself HTTP (``x-mq-language`` of rocketmq-client-nodejs 1.0.8).
    """
    of_client: dict[str, str] = {}
    for piece in pieces:
        if piece.kind not in ("consumer_connected", "member"):
            continue
        client_id, language = named_client(piece), piece.values["language"]
        if client_id is not None and language and modes.get(client_id) == PROXY_REBALANCE:
            named = NODE_JS if language == HTTP else language
            of_client[client_id] = named if named in LANGUAGES else OTHER_LANGUAGE
    return of_client


_GO_VERSION = re.compile(r"v\d+\.\d+\.\d+.*")
"""Go's PROP_CLIENT_VERSION; Java prints V5_3_3."""
_CPP_ID = re.compile(r"\d+-\d+\.\d+\.\d+\.\d+@")
"""C++ up to 1.2.0 uses pid-ip@instance; all other ids begin with the address."""


def _printed_language(language: str | None, version: int | str | None) -> str | None:
    """Return a client's language as brokers print it, except for ali-ons; ``OTHER`` for a new
    one.
    """
    if language is None:
        return None
    if version is not None:
        plain = version_of_ordinal(version) if isinstance(version, int) else plain_version(version)
        if library_of(language, plain) == ALI_ONS:
            return NODE
    return language if language in LANGUAGES else OTHER_LANGUAGE


def client_libraries(languages: Mapping[str, str]) -> dict[str, str]:
    """Return, by client id, the library of each non-Java client; none states its release.

    >>> client_libraries({"a": "JAVA", "b": "GO", "c": "NODE"})
    {'b': 'GO', 'c': 'ali-ons'}
    """
    return {
        client_id: ALI_ONS if language == NODE else language
        for client_id, language in languages.items()
        if language != JAVA
    }


def client_releases(
    pieces: Iterable[GroupEvidence], languages: Mapping[str, str]
) -> dict[str, str]:
    """Return, by client id, the release of other languages' clients, as stated in
    consumerStatus.
    """
    releases: dict[str, str] = {}
    for piece in pieces:
        if piece.kind != "client":
            continue
        client_id = piece.values.get("client_file")
        if client_id and languages.get(client_id, JAVA) != JAVA:
            release = told_release(languages[client_id], piece.values["version"])
            if release is not None:
                releases[client_id] = release
    return releases


def _complete_joins(events: Iterable[Event], **columns: Mapping[str, str | int]) -> None:
    """Fill columns of each member's join from any file that shows them."""
    for row in events:
        if row["event_type"] == CONSUMER_JOIN:
            client_id = row["client_id"]
            shown = {name: of[client_id] for name, of in columns.items() if client_id in of}
            row.update(cast("Event", shown))


def _in_order(events: list[Event]) -> list[Event]:
    """Return the events by time, keeping the order of events at the same instant."""
    for index, row in enumerate(events):
        row[ORDER] = index
    events.sort(key=event_order)
    for index, row in enumerate(events):
        row[ORDER] = index
    return events


def _release_unknown(group: str, libraries: Mapping[str, str]) -> Iterator[Finding]:
    """Yield a finding for all members that are not Java clients."""
    if libraries:
        names = ", ".join(sorted({*libraries.values()}))
        yield finding(
            "INGEST_RELEASE_NOT_TOLD",
            f"{len(libraries)} of the clients use a library other than Java's ({names}) that "
            "sends the same version in every release: where its releases differ, their behaviour "
            "is unknown.",
            "Nothing. Treat their starts and windows with caution.",
            consumer_group=group,
            evidence={"clients": ", ".join(sorted(libraries)[:LISTED])},
        )


def _taken_as_java(group: str, languages: Mapping[str, str]) -> Iterator[Finding]:
    """Yield a finding for all members whose languages are not modelled."""
    clients = sorted(c for c, language in languages.items() if not is_modelled(language))
    if clients:
        names = ", ".join(sorted({languages[client] for client in clients}))
        yield finding(
            "INGEST_LANGUAGE_NOT_MODELLED",
            f"The clients of {len(clients)} of the members ({names}) are not modelled: they are "
            "treated as Java clients.",
            "Compare the queues that they hold with the prediction.",
            consumer_group=group,
            evidence={"clients": ", ".join(clients[:LISTED])},
        )


def _not_modelled(group: str, versions: Mapping[str, str]) -> Iterator[Finding]:
    """Yield a finding for each version of clients whose rules are unknown."""
    for version, clients, instead, remedy in not_modelled(versions):
        yield finding(
            "INGEST_VERSION_NOT_MODELLED",
            f"{version} ({len(clients)} of the clients) {instead}.",
            remedy,
            WARNING,
            consumer_group=group,
            client_id=clients[0] if len(clients) == 1 else None,
            evidence={"version": version, "clients": ", ".join(clients[:LISTED])},
        )


def _of_static_topics(
    group: str, events: Iterable[Event], context: ClusterContext
) -> Iterator[Finding]:
    """Yield a finding for each static topic that a member subscribes to."""
    for topic in sorted(_subscribed(events) & context.static_topics.keys()):
        yield finding(
            "INGEST_STATIC_TOPIC",
            f"{topic} is a static topic: its route maps logical queues to broker queues, and "
            "clients divide the logical queues, which is not modelled. Results leave out its "
            f"queues, and {group} is not compared.",
            "Nothing. consumerProgress shows the holders of its queues.",
            WARNING,
            consumer_group=group,
            topic=topic,
            evidence={"topic": topic, "route": context.static_topics[topic]},
        )


def _all_broadcast(events: Iterable[Event], group_row: ConsumerGroupsGiven) -> bool:
    """Return True if the brokers state it for every member, or the collection's settings for
    all.
    """
    joins = [row for row in events if row["event_type"] == CONSUMER_JOIN]
    models = {row.get("message_model") or group_row.get("message_model") for row in joins}
    return models == {BROADCASTING}


def _of_lite_topics(
    group: str, events: Iterable[Event], context: ClusterContext
) -> Iterator[Finding]:
    """Yield a finding for each topic of type LITE that a member subscribes to."""
    for topic in sorted(_subscribed(events) & context.lite_topics.keys()):
        yield finding(
            "INGEST_LITE_TOPIC",
            f"{topic} is of type LITE: which of its lite topics a client reads is not modelled, "
            f"and {group} is not compared.",
            "Nothing: no file shows which client reads which lite topic.",
            consumer_group=group,
            topic=topic,
            evidence={"topic": topic, "source": context.lite_topics[topic]},
        )


def _subscribed(events: Iterable[Event]) -> set[str]:
    events = list(events)
    topics = {topic for row in events for topic in row.get("subscriptions") or ()}
    return topics | {row["topic"] for row in events if row["event_type"] == SUBSCRIBE}


def _unknown_strategy(group: str, client_id: str, name: str) -> Finding:
    parameters = {CONFIG: "whose list", MACHINE_ROOM: "whose rooms"}
    lacking = f"{parameters[name]} no file states" if name in parameters else ""
    named = f'[strategies] "{name}" = "module:attribute"'
    remedy = f"Write it in Python and name it in the configuration: {named}"
    if lacking:
        remedy = "Name it with its parameters in the collection's consumer_groups.jsonl"
    return finding(
        "INGEST_STRATEGY_UNKNOWN",
        f"{client_id} allocates with {name}, {lacking or 'which is not a strategy of RocketMQ'}: "
        "its ownership is UNKNOWN and cannot be compared.",
        f"{remedy}.",
        WARNING,
        consumer_group=group,
        client_id=client_id,
        evidence={"strategy": name},
    )


def tables_of(part: str, key: str, pieces: Iterable[Evidence], context: ClusterContext) -> Tables:
    """Return the rows that result from all evidence on one group or topic.

    Args:
        part: GROUP; TOPIC; COMMIT for the offsets that a group committed; or REFUSED for the
            unreadable parts of files.
        key: The name of the group or topic.
        pieces: The evidence, in any order.
        context: The cluster's context.
    """
    if part == GROUP:
        return group_tables(key, pieces, context)
    if part == TOPIC:
        return topic_tables(key, pieces, context)
    if part == REFUSED:
        return {"rejected": [rejected_row(unread_of(piece)) for piece in pieces]}
    if part != COMMIT:
        raise ValueError(f"evidence of the part {part} makes no rows by its key")
    rows = (commit_row(piece, context) for piece in pieces)
    return {"committed_offsets": [row for row in rows if row is not None]}
