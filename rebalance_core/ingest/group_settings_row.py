"""Builds a row of consumer_groups from values in files, otherwise from an operator's row, otherwise
from assumptions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, cast

from rebalance_core.ingest.cluster_context import ClusterContext
from rebalance_core.ingest.group_strategies import GroupStrategies
from rebalance_core.ingest.own_settings import is_notified
from rebalance_core.ingest.parse.wire_versions import plain_version
from rebalance_core.ingest.parse.zones import zone_named
from rebalance_core.ingest.rows import Finding, finding
from rebalance_core.model.group_settings import (
    BROADCASTING,
    BROKER_REBALANCE,
    CLIENT_REBALANCE,
    LITE_PULL,
    PROXY_REBALANCE,
    GroupSettings,
)
from rebalance_core.model.intervals import INTERVALS
from rebalance_core.model.times import MINUTE_MS
from rebalance_core.model.versions import nearest_version, parse_version
from rebalance_core.protocol.client_reports import consumer_type_of

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import ConsumerGroupsColumns, ConsumerGroupsGiven
    from rebalance_core.ingest.evidence_types import ClientValues, GroupEvidence

FROM_TIMESTAMP = "CONSUME_FROM_TIMESTAMP"
DEFAULT_AGE_MS = 30 * MINUTE_MS
"""The default consumeTimestamp is half an hour before the consumer object was created."""
CREATED_BEFORE_MS = MINUTE_MS
"""A consumer is started soon after it is created."""


def consume_timestamp(
    group: str,
    pieces: Iterable[GroupEvidence],
    members: int,
    zone_of: Callable[[str], str | None],
    context: ClusterContext,
) -> tuple[int | None, list[Finding]]:
    """Return the consume timestamp that consumerStatus printed for members, and findings.

    The table has one time per group. If members have different values (the default differs for
    every process), no value fits them all, so none is used. The time in the operator's row takes
    precedence over one without a known zone.

    Args:
        group: the group.
        pieces: its evidence.
        members: the number of client ids there ever were.
        zone_of: returns a client's time zone from its id, or None if unknown.
        context: the cluster.

    Returns:
        The time, or None if it is unknown or not the same for all; and a finding in that case, or
        if a time zone was assumed.
    """
    times: dict[int, str] = {}
    default = assumed = False
    for piece in pieces:
        if piece.kind != "client" or piece.values["consume_from_where"] != FROM_TIMESTAMP:
            continue
        values = piece.values
        zone, text = zone_of(values.get("client_file", "")), values["consume_timestamp"]
        at_ms = local_seconds_ms(text, zone or context.assumed.time_zone)
        if at_ms is None or text is None:
            continue
        times[at_ms] = text
        assumed |= zone is None
        default |= _is_default(at_ms, values["start_ms"])
    several = len(times) > 1 or (default and members > 1)
    if len(times) == 1 and not several and not assumed:
        return next(iter(times)), []
    row_ms = context.group_rows.get(group, {}).get("consume_timestamp_ms")
    if row_ms is not None:
        return row_ms, []
    if several:
        return None, [_several(group, times, default=default)]
    if not times:
        return None, [_unknown(group)]
    ((at_ms, text),) = times.items()
    return at_ms, [_zone(group, text, context.assumed.time_zone)]


def local_seconds_ms(text: str | None, zone: str) -> int | None:
    """Parse ``yyyyMMddHHmmss`` in a zone (UtilAll.parseDate); return None if it is not such a time.

    A time before 1970, such as 19700101000000 in eastern zones, gives 0, as no message is older
    than either.

    >>> local_seconds_ms("20261121030558", "UTC")
    1795230358000
    """
    try:
        local = datetime.strptime(text or "", "%Y%m%d%H%M%S")  # noqa: DTZ007  # the zone follows
    except ValueError:
        return None
    return max(0, int(local.replace(tzinfo=zone_named(zone)).timestamp()) * 1000)


def _is_default(at_ms: int, start_ms: int | None) -> bool:
    return start_ms is not None and 0 <= start_ms - DEFAULT_AGE_MS - at_ms <= CREATED_BEFORE_MS


def _several(group: str, times: dict[int, str], *, default: bool) -> Finding:
    why = "half an hour before each of its processes started" if default else "several times"
    return finding(
        "INGEST_TIMESTAMP_UNKNOWN",
        f"Members of {group} start at {why}: where new owners of queues without a commit start is "
        "UNKNOWN.",
        "Set one consumeTimestamp for all members, or name consume_timestamp_ms in the "
        "collection's consumer_groups.jsonl.",
        consumer_group=group,
        evidence={"consume_timestamp": ", ".join(times[at_ms] for at_ms in sorted(times))},
    )


def _zone(group: str, text: str, zone: str) -> Finding:
    return finding(
        "INGEST_ASSUMED",
        f"consumeTimestamp {text} of {group} is local time on its clients; {zone} is assumed.",
        "Name time_zones of the clients' folders in collection.toml, or consume_timestamp_ms in "
        "the collection's consumer_groups.jsonl.",
        consumer_group=group,
        evidence={"consume_timestamp": text},
    )


def _unknown(group: str) -> Finding:
    return finding(
        "INGEST_TIMESTAMP_UNKNOWN",
        f"No file in the collection shows the time at which {group} starts: where new owners of "
        "queues without a commit start is UNKNOWN.",
        "Collect consumerStatus of the group, or name consume_timestamp_ms in the collection's "
        "consumer_groups.jsonl.",
        consumer_group=group,
    )


_THRESHOLDS = (
    "pull_threshold_for_queue",
    "pull_threshold_size_for_queue",
    "pull_threshold_for_topic",
    "pull_threshold_size_for_topic",
)


@dataclass(frozen=True)
class SeenSettings:
    """The settings of a group's members as shown by files.

    Attributes:
        strategies: see `group_strategies`.
        versions: client versions by client id.
        rebalance_modes: see `rebalance_modes`.
        member_ids: ids of all members that there ever were.
        popped: whether some topic's request mode is POP at some time.
        other_libraries: ids of the members that are not Java clients, whose libraries have no such
            version.
    """

    strategies: GroupStrategies
    versions: Mapping[str, str]
    rebalance_modes: Mapping[str, str]
    member_ids: frozenset[str] = frozenset()
    popped: bool = False
    other_libraries: frozenset[str] = frozenset()

    @property
    def versionless(self) -> bool:
        """True if no member's client library uses Java's version numbers."""
        return bool(self.other_libraries) and self.member_ids <= self.other_libraries

    @property
    def rebalance_mode(self) -> str:
        """The group's mode: PROXY if all are gRPC clients, BROKER if any queries a broker."""
        of_grpc = {c for c, mode in self.rebalance_modes.items() if mode == PROXY_REBALANCE}
        if of_grpc and self.member_ids <= of_grpc:
            return PROXY_REBALANCE
        asks = BROKER_REBALANCE in self.rebalance_modes.values()
        return BROKER_REBALANCE if asks else CLIENT_REBALANCE


def settings_row(
    group: str,
    pieces: list[GroupEvidence],
    members: SeenSettings,
    zone_of: Callable[[str], str | None],
    context: ClusterContext,
) -> tuple[ConsumerGroupsColumns, list[Finding]]:
    """Return the group's row, and an INFO finding for each field found neither in a file nor in an
    operator's row.

    Args:
        group: the group.
        pieces: its evidence, ordered by time and place.
        members: the facts about its members in files.
        zone_of: returns a client's time zone from its id, or None if unknown.
        context: the cluster.
    """
    strategies = members.strategies
    shown = _shown(pieces, members.versions, context)
    if members.rebalance_modes:
        shown["rebalance_mode"] = members.rebalance_mode
    shared = shown.get("rebalance_mode") == PROXY_REBALANCE
    if shared:
        shown |= _of_proxies(pieces)
    if strategies.group is not None:
        shown["strategy"] = strategies.group
    notified, findings = is_notified(group, pieces, context)
    if not notified:
        shown["notified"] = False
    group_row = context.group_rows.get(group, {})
    assumed = _assumed(context)
    if members.popped:
        # a mode that does not affect its members would be useless
        assumed["rebalance_mode"] = BROKER_REBALANCE
    connected = any(piece.kind == "consumer_connected" for piece in pieces)
    row: ConsumerGroupsColumns = {"consumer_group": group}
    for name in (*assumed, *_THRESHOLDS, "subscriptions", "notified", *INTERVALS):
        value = shown.get(name, group_row.get(name))
        if value is None and name in assumed:
            value = assumed.get(name)
            default = name == "rebalance_mode" and connected and not members.popped
            # neither computes an allocation; no other library has such a version
            without = name == "strategy" and (shared or row["message_model"] == BROADCASTING)
            without |= name == "client_version" and members.versionless
            if not (default or without):
                findings.append(_assumption(group, name, value))
        if value is not None:
            row.update(cast("ConsumerGroupsColumns", {name: value}))
    since_ms, unsure = consume_timestamp(group, pieces, len(members.member_ids), zone_of, context)
    if since_ms is not None:
        row["consume_timestamp_ms"] = since_ms
    if row["consume_from_where"] == FROM_TIMESTAMP:
        findings += unsure
    findings += [_assumption(group, name, value) for name, value in strategies.assumed.items()]
    return row, findings


def _assumed(context: ClusterContext) -> ConsumerGroupsGiven:
    defaults = GroupSettings()
    return {
        "consumer_type": defaults.consumer_type,
        "message_model": defaults.message_model,
        "strategy": context.assumed.strategy,
        "consume_from_where": context.assumed.consume_from_where,
        "ordered": defaults.ordered,
        "client_version": context.assumed.client_version,
        "broker_version": context.assumed.broker_version,
        "rebalance_mode": defaults.rebalance_mode,
    }


def _shown(
    pieces: Iterable[GroupEvidence], versions: Mapping[str, str], context: ClusterContext
) -> ConsumerGroupsGiven:
    """Return the last statement found in files.

    If brokers have several versions, those that receive heartbeats from members of the group count.
    """
    pieces = list(pieces)
    shown: ConsumerGroupsGiven = {}
    own_where = None
    for piece in pieces:
        if piece.kind == "consumer_connected":
            shown["consumer_type"] = consumer_type_of(
                piece.values["consume_type"], piece.values["client_id"]
            )
            shown["message_model"] = piece.values["message_model"]
        elif piece.kind in ("consumer_data", "heartbeat", "group_connection"):
            stated = piece.values
            shown["message_model"] = stated["message_model"] or shown.get("message_model")
            where = stated["consume_from_where"]
            shown["consume_from_where"] = where or shown.get("consume_from_where")
            # only orderly members request locks; a client that logs commits also logs locks
            if piece.kind == "heartbeat":
                shown.setdefault("ordered", False)
        elif piece.kind in ("queue_locked", "lock_refused", "order_lock"):
            shown["ordered"] = True
        elif piece.kind == "client":
            shown |= _known(_of_client(piece.values))
            own_where = piece.values["consume_from_where"] or own_where
    if shown.get("consumer_type") == LITE_PULL:
        shown["consume_from_where"] = own_where  # its heartbeats do not state it
    ordered = sorted({*versions.values()}, key=parse_version)
    if ordered:
        shown["client_version"] = ordered[-1]
    connected_to = {p.place for p in pieces if p.kind in ("consumer_connected", "member")}
    connected_to &= context.versions.keys()
    nearest = [nearest_version(context.versions[name]) for name in connected_to or context.versions]
    brokers = [version for version in nearest if version is not None]
    if brokers:
        shown["broker_version"] = str(max(brokers))
    return _known(shown)


def _known(row: ConsumerGroupsGiven) -> ConsumerGroupsGiven:
    stated = {name: value for name, value in row.items() if value is not None}
    return cast("ConsumerGroupsGiven", stated)


def _of_proxies(pieces: Iterable[GroupEvidence]) -> ConsumerGroupsGiven:
    """Return whether the group is FIFO, which the broker decides, by the newest settings stores."""
    orderly = [
        piece.values["consume_message_orderly"]
        for piece in pieces
        if piece.kind == "subscription_group"
    ]
    return {"ordered": True in orderly} if orderly else {}


def _of_client(values: ClientValues) -> ConsumerGroupsGiven:
    row: ConsumerGroupsGiven = {
        "consumer_type": values["consumer_type"],
        "message_model": values["message_model"],
        "consume_from_where": values["consume_from_where"],
        "pull_threshold_for_queue": values["pull_threshold_for_queue"],
        "pull_threshold_size_for_queue": values["pull_threshold_size_for_queue"],
        "pull_threshold_for_topic": values["pull_threshold_for_topic"],
        "pull_threshold_size_for_topic": values["pull_threshold_size_for_topic"],
    }
    if values["ordered"] is not None:
        row["ordered"] = values["ordered"]
    version = nearest_version(plain_version(values["version"] or ""))
    if version is not None and not values.get("client_file"):  # otherwise it is among the members'
        row["client_version"] = str(version)
    return row


def _assumption(group: str, name: str, value: object) -> Finding:
    return finding(
        "INGEST_ASSUMED",
        f"No file in the collection states {name} of {group}; {value} is assumed.",
        "State it in the collection's consumer_groups.jsonl, or collect the clients' logs.",
        consumer_group=group,
        evidence={name: value},
    )
