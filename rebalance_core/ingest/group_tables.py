"""All that the collection tells of one group, put together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from rebalance_core.ingest.cluster_context import ClusterContext
from rebalance_core.ingest.collection.collected_file import PROXIES
from rebalance_core.ingest.events.contradictions import without_contradictions
from rebalance_core.ingest.events.listings.after_logs import after_logs
from rebalance_core.ingest.events.listings.own_leaves import dated_by_dumps
from rebalance_core.ingest.events.member_timeline import MemberTimeline
from rebalance_core.ingest.events.presence import Presence
from rebalance_core.ingest.events.process_names import ProcessNames
from rebalance_core.ingest.events.suspensions import suspension_events
from rebalance_core.ingest.events.unlogged_members import unlogged_joins, unlogged_leaves
from rebalance_core.ingest.events.unsubscriptions import Unsubscriptions
from rebalance_core.ingest.evidence.evidence import Evidence, is_fact_only
from rebalance_core.ingest.evidence.folder_evidence import of_group, of_masters
from rebalance_core.ingest.observed.group_facts import group_facts
from rebalance_core.ingest.observed.observed_rows import member_rows, ownership_rows
from rebalance_core.ingest.parse.text.client_version import is_later, is_modelled, plain_version
from rebalance_core.ingest.proxies.proxy_members import through_proxies
from rebalance_core.ingest.rows import ORDER, Row, Tables, event_order, finding
from rebalance_core.ingest.settings.group_settings_row import MemberSettings, settings_row
from rebalance_core.ingest.settings.group_strategies import CONFIG, MACHINE_ROOM, group_strategies
from rebalance_core.ingest.settings.rebalance_modes import rebalance_modes
from rebalance_core.ingest.settings.request_modes import request_mode_events
from rebalance_core.ingest.settings.strategy_fit import check_parameters, fit_strategy
from rebalance_core.ingest.subscription_versions import SubscriptionVersions
from rebalance_core.model.events import CONSUMER_JOIN
from rebalance_core.model.group_settings import PROXY_REBALANCE
from rebalance_core.model.severities import WARNING

LISTED = 20
"""Clients that a finding names at most."""


def group_tables(group: str, pieces: Iterable[Evidence], context: ClusterContext) -> Tables:
    """Events, settings, observed rows and findings of one group, in any order of the evidence."""
    evidence = sorted(
        through_proxies(of_group(pieces, context), context),
        key=lambda p: (context.time_of(p), p.place, p.position, p.source, p.kind),
    )
    names = ProcessNames(evidence, context)
    observed = _observed(group, evidence, names, context)
    subscribed = SubscriptionVersions(evidence, context)
    configs = [piece for piece in evidence if piece.kind == "subscription_group"]
    evidence = [piece for piece in evidence if not is_fact_only(piece.kind)]
    if not evidence:
        return observed
    unsubscribed = Unsubscriptions(evidence, names, context)
    timeline = MemberTimeline(group, context, subscribed, unsubscribed)
    timeline.take(evidence)
    by_dumps = dated_by_dumps(timeline.after_logs, timeline.events, evidence, names, context)
    joined, findings = unlogged_joins(group, evidence, Presence(timeline.events), names, context)
    events = timeline.events + joined
    left, more = unlogged_leaves(group, evidence, Presence(events), context)
    events, findings = events + left, timeline.findings + findings + more
    findings += after_logs(group, by_dumps, context)
    presence = Presence(events)
    events += suspension_events(group, evidence, names, presence, context)
    events, more = without_contradictions(group, _in_order(events))
    findings += more
    given = context.given.get(group, {})
    strategies = group_strategies(evidence, given.get("strategy"), presence, context)
    if strategies.group is None:
        assumed = context.assumed.strategy
        strategies.group, more = fit_strategy(group, evidence, presence, assumed, context)
        findings += more
    else:
        findings += check_parameters(group, evidence, presence, strategies, context)
    modes = rebalance_modes(evidence)
    stated = _versions(evidence, modes) | timeline.versions
    versions = {client: version for client, version in stated.items() if is_modelled(version)}
    findings += [_not_modelled(group, c, v) for c, v in stated.items() if c not in versions]
    findings += _later(group, versions)
    _complete_joins(events, strategy=strategies.members, version=versions, rebalance_mode=modes)
    findings += [_unknown_strategy(group, c, n) for c, n in strategies.unknown.items()]
    for number, row in enumerate(timeline.at_one_broker, len(events)):
        row[ORDER] = number
    tables: Tables = {
        "cluster_events": events + timeline.at_one_broker,
        "observed_ownership": ownership_rows(group, evidence, presence, context),
    }
    if events:
        changes, more = request_mode_events(group, evidence, presence, context)
        tables["cluster_events"] += changes
        there = {row["client_id"] for row in events if row["event_type"] == CONSUMER_JOIN}
        members = MemberSettings(strategies, versions, modes, frozenset(there), bool(changes))
        row, taken = settings_row(group, [*evidence, *configs], members, names.zone_of, context)
        tables["consumer_groups"] = [row]
        findings += more + taken
    return tables | observed | {"findings": findings}


def _observed(
    group: str, evidence: Iterable[Evidence], names: ProcessNames, context: ClusterContext
) -> Tables:
    """What the group's masters state of it as it stands."""
    stated = list(of_masters(evidence, context))
    return {
        "observed_facts": group_facts(group, stated, names, context),
        "observed_members": member_rows(group, stated, context),
    }


def _versions(pieces: Iterable[Evidence], modes: Mapping[str, str]) -> dict[str, str]:
    """Client versions that dumps list; a broker's registration line is nearer and goes first.

    A proxy answers its own for every member's, a broker with one inside for those of gRPC.
    """
    versions: dict[str, str] = {}
    for piece in pieces:
        if piece.kind in ("member", "listed_client", "client") and piece.values["version"]:
            client_id = piece.values.get("client_id") or piece.values.get("client_file")
            if modes.get(str(client_id)) == PROXY_REBALANCE or piece.place.startswith(PROXIES):
                continue
            versions[str(client_id)] = plain_version(piece.values["version"])
    return versions


def _complete_joins(events: Iterable[Row], **columns: Mapping[str, str]) -> None:
    """What any file shows of each member: columns of its join by client id."""
    for row in events:
        if row["event_type"] == CONSUMER_JOIN:
            for name, by_client in columns.items():
                if row["client_id"] in by_client:
                    row[name] = by_client[row["client_id"]]


def _in_order(events: list[Row]) -> list[Row]:
    """Events by time; of one instant in the order in which they were put together."""
    for index, row in enumerate(events):
        row[ORDER] = index
    events.sort(key=event_order)
    for index, row in enumerate(events):
        row[ORDER] = index
    return events


def _not_modelled(group: str, client_id: str, version: str) -> Row:
    return finding(
        "INGEST_VERSION_NOT_MODELLED",
        f"{client_id} is of version {version}, whose rules are not known here; it is taken as the "
        "group's other members, or as the assumed version.",
        "Upgrade a client older than 4.9; read its starts and windows with care.",
        WARNING,
        consumer_group=group,
        client_id=client_id,
        evidence={"version": version},
    )


def _later(group: str, versions: Mapping[str, str]) -> Iterator[Row]:
    """One finding for each version after the newest known line."""
    for version in sorted({one for one in versions.values() if is_later(one)}):
        clients = sorted(client for client, one in versions.items() if one == version)
        yield finding(
            "INGEST_VERSION_NOT_MODELLED",
            f"{len(clients)} of the clients are of version {version}, later than any whose rules "
            "are known here; they are taken as of the newest known line.",
            "Look for a release of this project that knows the version; until then read starts and "
            "windows with care.",
            WARNING,
            consumer_group=group,
            evidence={"version": version, "clients": ", ".join(clients[:LISTED])},
        )


def _unknown_strategy(group: str, client_id: str, name: str) -> Row:
    parameters = {CONFIG: "whose list", MACHINE_ROOM: "whose rooms"}
    lacking = f"{parameters[name]} no file tells" if name in parameters else ""
    return finding(
        "INGEST_STRATEGY_UNKNOWN",
        f"{client_id} allocates by {name}, {lacking or 'which is no strategy of RocketMQ'}: its "
        "ownership is UNKNOWN and not to be compared.",
        "Name it with its parameters, or one that allocates alike, in the collection's "
        "consumer_groups.jsonl.",
        WARNING,
        consumer_group=group,
        client_id=client_id,
        evidence={"strategy": name},
    )
