"""Settings of single clients and brokers: timer intervals, and how notices are sent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, cast

from rebalance_core.ingest.cluster_context import ClusterContext, printed_intervals
from rebalance_core.ingest.parse.inside_second import MIDDLE_MS
from rebalance_core.ingest.rows import Event, Finding, event, finding
from rebalance_core.model.events import BATCHED, NOTICES, OFF, ON
from rebalance_core.model.intervals import DEFAULT_INTERVALS, INTERVALS, is_interval

if TYPE_CHECKING:
    from rebalance_core.ingest.evidence_types import (
        BrokerPropertyPiece,
        ClusterEvidence,
        GroupEvidence,
    )


# Intervals of clients' timers (rocketmq.md §6.1); clients print all except those of passes.
def own_intervals(
    group: str, pieces: Iterable[GroupEvidence], clients: Iterable[str], context: ClusterContext
) -> tuple[dict[str, dict[str, int]], list[Finding]]:
    """Return the intervals of single clients that differ from their group's, by column and client
    id.

    For a client, ``collection.toml`` takes precedence over its answer to consumerStatus, which
    takes precedence over its log.

    Args:
        group: the group.
        pieces: its evidence.
        clients: ids of all its clients.
        context: the cluster.

    Returns:
        The intervals, and a finding for each implausible one, which is left out.
    """
    printed: dict[str, Mapping[str, str]] = {}
    for piece in pieces:
        if piece.kind == "client" and (client_id := piece.values.get("client_file")):
            printed[client_id] = piece.values["properties"]
    group_row = context.group_rows.get(group, {})
    usual: dict[str, int] = {
        name: cast("int", group_row.get(name, getattr(DEFAULT_INTERVALS, name)))
        for name in INTERVALS
    }
    by_column: dict[str, dict[str, int]] = {}
    findings = []
    for client_id in sorted(set(clients)):
        intervals = {**context.client_intervals.get(client_id, {})} | printed_intervals(
            printed.get(client_id, {})
        )
        named = (table for p, table in context.client_settings.items() if fnmatchcase(client_id, p))
        intervals |= next(named, {})
        for name, value in intervals.items():
            if not is_interval(value):
                findings.append(_refused(group, client_id, name, value))
            elif value != usual[name]:
                by_column.setdefault(name, {})[client_id] = value
    return by_column, findings


def _refused(group: str, client_id: str, name: str, value: int) -> Finding:
    return finding(
        "INGEST_INTERVAL_REFUSED",
        f"{name} of {client_id} is {value}, which is not an interval in milliseconds: the group's "
        "interval is used.",
        "Correct it on the client: in the wrong unit, it polls constantly or never.",
        consumer_group=group,
        client_id=client_id,
        evidence={name: value},
    )


# How brokers notify members of changes (rocketmq.md §6.2).
ALL_NOTICES, AT_ONCE = "notifyConsumerIdsChangedEnable", "realTimeNotifyConsumerChange"
AROUND_START_MS = 10_000
"""A broker prints its settings within this time of starting."""


def notice_events(ordered: Iterable[ClusterEvidence], context: ClusterContext) -> Iterator[Event]:
    """Yield NOTICES for every broker that does not notify at once, from its log or otherwise from
    dumps.

    The settings printed at a start apply from then on; those in a dump apply since the previous
    dump.
    """
    pieces = list(ordered)
    for name in context.brokers:
        folder_of = {f.place: f for f in context.folders.values() if f.broker_name == name}
        lines = [p for p in pieces if p.place in folder_of and not folder_of[p.place].slave]
        changes = [p for p in lines if p.kind == "broker_property" and p.values["name"] in SWITCHES]
        starts = [context.time_of(p) for p in lines if p.kind == "broker_starting"]
        if changes:
            yield from _by_log(name, changes, starts, context)
        elif not starts:  # otherwise the log would have it
            yield from _by_dumps(name, pieces, context)


SWITCHES = (ALL_NOTICES, AT_ONCE)


def _by_log(
    name: str, changes: list[BrokerPropertyPiece], starts: list[int], context: ClusterContext
) -> Iterator[Event]:
    moments = [
        (context.time_of(p), p.source, p.values["name"], p.values["value"].strip() == "true")
        for p in changes
    ]
    printed = {at_ms for at_ms, *_ in moments}
    fresh = [
        start_ms
        for start_ms in starts
        if not any(abs(start_ms - ms) <= AROUND_START_MS for ms in printed)
    ]
    last = changes[-1].source
    moments += [(at_ms, last, switch, True) for at_ms in fresh for switch in SWITCHES]
    yield from _turns(name, sorted(moments))


def _by_dumps(name: str, pieces: list[ClusterEvidence], context: ClusterContext) -> Iterator[Event]:
    moments = []
    since_ms = context.start_ms
    for piece in pieces:
        if piece.kind != "server_settings":
            continue
        settings = piece.values["settings"]
        if context.addresses.get(piece.values["address"]) != name:
            continue
        for switch in SWITCHES:
            if switch in settings:
                on = settings[switch].strip() == "true"
                moments.append(
                    (context.time_of(piece) if on else since_ms, piece.source, switch, on)
                )
        since_ms = context.time_of(piece) if settings else since_ms
    yield from _turns(name, moments)


def _turns(name: str, moments: Iterable[tuple[int, str, str, bool]]) -> Iterator[Event]:
    """Yield an event whenever a broker's way of notifying changes."""
    switches, before = dict.fromkeys(SWITCHES, True), ON
    for at_ms, source, switch, on in moments:
        switches[switch] = on
        mode = OFF if not switches[ALL_NOTICES] else ON if switches[AT_ONCE] else BATCHED
        if mode != before:
            # logged in whole seconds: off from the start of that second on
            late_ms = MIDDLE_MS if mode == ON else 0
            yield event(NOTICES, at_ms + late_ms, source, broker_name=name, detail=mode)
        before = mode


def is_notified(
    group: str, pieces: Iterable[GroupEvidence], context: ClusterContext
) -> tuple[bool, list[Finding]]:
    """Return False if any store or log has notices to the group disabled, and findings about this.

    A group has one such setting for its whole history. Windows with notices off contain those with
    notices on; if the setting was both, a finding states this.
    """
    seen: dict[str, dict[bool, str]] = {}
    for piece in pieces:
        if piece.kind == "subscription_group":
            states = [piece.values["notify_consumer_ids_changed_enable"]]
        elif piece.kind == "group_updated":
            states = [piece.values.get("was"), piece.values.get("now")]
        else:
            continue
        for on in states:
            if on is not None:
                seen.setdefault(piece.place, {}).setdefault(on, piece.source)
    changed = [sources for sources in seen.values() if len(sources) > 1]
    findings = [_switched(group, changed[0])] if changed else []
    return not any(False in sources for sources in seen.values()), findings


def _switched(group: str, sources: Mapping[bool, str]) -> Finding:
    return finding(
        "INGEST_NOTICES_CHANGED",
        f"{ALL_NOTICES} of the group was true ({sources[True]}) and false ({sources[False]}): "
        "windows assume that members receive no notice, which covers both cases.",
        "None needed. For narrower windows, ingest the periods before and after the change "
        "separately.",
        consumer_group=group,
        evidence={"on": sources[True], "off": sources[False]},
    )
