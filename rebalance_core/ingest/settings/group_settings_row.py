"""One row of consumer_groups: what files show, else what was given, else what is assumed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rebalance_core.ingest.cluster_context import ClusterContext
from rebalance_core.ingest.evidence.evidence import Evidence
from rebalance_core.ingest.parse.text.client_version import plain_version
from rebalance_core.ingest.rows import Row, finding
from rebalance_core.ingest.settings.consume_timestamp import FROM_TIMESTAMP, consume_timestamp
from rebalance_core.ingest.settings.group_strategies import GroupStrategies
from rebalance_core.model.group_settings import (
    BROADCASTING,
    BROKER_REBALANCE,
    CLIENT_REBALANCE,
    LITE_PULL,
    PROXY_REBALANCE,
    GroupSettings,
)
from rebalance_core.model.versions import nearest_version, parse_version
from rebalance_core.protocol.members import consumer_type_of

_THRESHOLDS = (
    "pull_threshold_for_queue",
    "pull_threshold_size_for_queue",
    "pull_threshold_for_topic",
    "pull_threshold_size_for_topic",
)


@dataclass(frozen=True)
class MemberSettings:
    """What files show of a group's members.

    Attributes:
        strategies: see `group_strategies`.
        versions: client versions by client id.
        rebalance_modes: see `rebalance_modes`.
        there: ids of all members that there ever were.
        popped: some topic's request mode is POP, at times.
    """

    strategies: GroupStrategies
    versions: Mapping[str, str]
    rebalance_modes: Mapping[str, str]
    there: frozenset[str] = frozenset()
    popped: bool = False

    @property
    def rebalance_mode(self) -> str:
        """The group's: PROXY if all are of gRPC, else BROKER if any asks, as most then do."""
        of_grpc = {c for c, mode in self.rebalance_modes.items() if mode == PROXY_REBALANCE}
        if of_grpc and self.there <= of_grpc:
            return PROXY_REBALANCE
        asks = BROKER_REBALANCE in self.rebalance_modes.values()
        return BROKER_REBALANCE if asks else CLIENT_REBALANCE


def settings_row(
    group: str,
    pieces: list[Evidence],
    members: MemberSettings,
    zone_of: Callable[[str], str | None],
    context: ClusterContext,
) -> tuple[Row, list[Row]]:
    """The group's row and an INFO finding for each field that no file and no given row tells.

    Args:
        group: the group.
        pieces: its evidence, in order of time and place.
        members: what files show of its members.
        zone_of: time zone of a client by its id, None if it is not said.
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
    given = context.given.get(group, {})
    assumed = _assumed(context)
    if members.popped:
        # a mode that changes nothing for its members would be no use to anybody
        assumed["rebalance_mode"] = BROKER_REBALANCE
    connected = any(piece.kind == "consumer_connected" for piece in pieces)
    row: Row = {"consumer_group": group}
    findings = []
    for name in (*assumed, *_THRESHOLDS, "subscriptions"):
        value = shown.get(name, given.get(name))
        if value is None and name in assumed:
            value = assumed[name]
            default = name == "rebalance_mode" and connected and not members.popped
            # neither divides anything
            without = name == "strategy" and (shared or row["message_model"] == BROADCASTING)
            if not (default or without):
                findings.append(_assumption(group, name, value))
        if value is not None:
            row[name] = value
    since_ms, unsure = consume_timestamp(group, pieces, len(members.there), zone_of, context)
    if since_ms is not None:
        row["consume_timestamp_ms"] = since_ms
    if row["consume_from_where"] == FROM_TIMESTAMP:
        findings += unsure
    findings += [_assumption(group, name, value) for name, value in strategies.assumed.items()]
    return row, findings


def _assumed(context: ClusterContext) -> dict[str, Any]:
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
    pieces: Iterable[Evidence],
    versions: Mapping[str, str],
    context: ClusterContext,
) -> dict[str, Any]:
    """What files tell; of several statements the last.

    Of brokers of several versions those count to which members of the group send heartbeats.
    """
    pieces = list(pieces)
    shown: dict[str, Any] = {}
    own_where = None
    for piece in pieces:
        v = piece.values
        if piece.kind == "consumer_connected":
            shown["consumer_type"] = consumer_type_of(v["consume_type"], v["client_id"])
            shown["message_model"] = v["message_model"]
        elif piece.kind in ("consumer_data", "heartbeat", "group_connection"):
            for name in ("message_model", "consume_from_where"):
                shown[name] = v[name] or shown.get(name)
            # a lock is asked for by orderly members alone; whoever logs commits logs locks too
            if piece.kind == "heartbeat":
                shown.setdefault("ordered", False)
        elif piece.kind in ("queue_locked", "lock_refused", "order_lock"):
            shown["ordered"] = True
        elif piece.kind == "client":
            shown |= {n: x for n, x in _of_client(v).items() if x is not None}
            own_where = v["consume_from_where"] or own_where
    if shown.get("consumer_type") == LITE_PULL:
        shown["consume_from_where"] = own_where  # its heartbeats do not tell
    known = sorted({*versions.values()}, key=parse_version)
    if known:
        shown["client_version"] = known[-1]
    own = {p.place for p in pieces if p.kind in ("consumer_connected", "member")}
    own &= context.versions.keys()
    stated = [nearest_version(context.versions[name]) for name in own or context.versions]
    brokers = [version for version in stated if version is not None]
    if brokers:
        shown["broker_version"] = str(max(brokers))
    return {name: value for name, value in shown.items() if value is not None}


def _of_proxies(pieces: Iterable[Evidence]) -> dict[str, Any]:
    """FIFO or not: the broker alone decides it, by the newest stores of the group's settings."""
    orderly = [
        piece.values["consume_message_orderly"]
        for piece in pieces
        if piece.kind == "subscription_group"
    ]
    return {"ordered": True in orderly} if orderly else {}


def _of_client(values: Any) -> dict[str, Any]:
    row = {
        n: values[n] for n in ("consumer_type", "message_model", "consume_from_where", *_THRESHOLDS)
    }
    if values["ordered"] is not None:
        row["ordered"] = values["ordered"]
    version = nearest_version(plain_version(values["version"] or ""))
    if version is not None and not values.get("client_file"):  # else it is among the members'
        row["client_version"] = str(version)
    return row


def _assumption(group: str, name: str, value: object) -> Row:
    return finding(
        "INGEST_ASSUMED",
        f"{name} of {group} is in no file of the collection; taken as {value}.",
        "Name it in the collection's consumer_groups.jsonl, or collect the clients' logs.",
        consumer_group=group,
        evidence={name: value},
    )
