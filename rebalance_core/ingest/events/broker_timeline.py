"""BROKER_UP and BROKER_DOWN from what the name servers log, else from the brokers themselves;
MASTER_UP and MASTER_DOWN beside them.
"""

from __future__ import annotations

from collections.abc import Iterable

from rebalance_core.ingest.cluster_context import ClusterContext
from rebalance_core.ingest.evidence.evidence import Evidence
from rebalance_core.ingest.masters.turn import MasterTurn
from rebalance_core.ingest.parse.text.second_resolution import MIDDLE_MS
from rebalance_core.ingest.rows import Row, Tables, event, finding
from rebalance_core.model.events import (
    BROKER_DOWN,
    BROKER_UP,
    EXPIRED,
    MASTER_DOWN,
    MASTER_UP,
    OBSERVED,
)
from rebalance_core.model.versions import parse_version

STOPPED, CLOSED = "STOPPED", "CLOSED"
_OWN_LIFE = ("broker_starting", "broker_booted", "broker_stopping")
_CAUSE_MS = 2_000
"""The cause of a removal is logged right before it; the removal runs in a batch (5.x)."""


def broker_tables(pieces: Iterable[Evidence], context: ClusterContext) -> Tables:
    """Events of all brokers, and findings on what the name servers' logs do not tell.

    A broker is up while any name server whose log was collected has a replica of it; it goes down
    when the last one removes it. Without a name server's log only starts and graceful stops of the
    brokers' own logs are known.
    """
    ordered = sorted(pieces, key=lambda p: (context.time_of(p), p.place, p.position))
    registry = [
        p for p in ordered if p.kind in ("broker_registered", "broker_address", "broker_removed")
    ]
    rows = _from_name_servers(ordered, context) if registry else _from_brokers(ordered, context)
    findings = [] if registry else [_no_name_server()]
    seen = {row["broker_name"] for row in rows}
    first: dict[str, Row] = {}
    for row in rows:
        first.setdefault(row["broker_name"], row)
    for name in context.brokers:
        if name not in seen or first[name]["event_type"] == BROKER_DOWN:
            source = first[name]["source"] if name in first else "collection.toml"
            rows.append(_up(name, context.start_ms, source, context, OBSERVED))
    rows += [_turned(turn) for turn in context.master_turns]
    return {"cluster_events": rows, "findings": findings}


def _from_name_servers(ordered: list[Evidence], context: ClusterContext) -> list[Row]:
    rows: list[Row] = []
    there: dict[str, set[str]] = {}
    cause: dict[str, tuple[int, str]] = {}
    for piece in ordered:
        at_ms = context.time_of(piece)
        if piece.kind == "broker_channel_closed":
            # the scan closes the channel of a broker that it finds expired
            if at_ms - cause.get(piece.place, (0, ""))[0] > _CAUSE_MS:
                cause[piece.place] = (at_ms, CLOSED)
        elif piece.kind == "broker_expired":
            cause[piece.place] = (at_ms, EXPIRED)
        elif piece.kind in ("broker_registered", "broker_address"):
            name = piece.values.get("broker") or context.addresses.get(piece.values["address"])
            if name is None or not _has_route(piece, name, context):
                continue
            servers = there.setdefault(name, set())
            if not servers:
                rows.append(_up(name, at_ms + MIDDLE_MS, piece.source, context))
            servers.add(piece.place)
        elif piece.kind == "broker_removed":
            name = piece.values["broker"]
            known = there.get(name)
            servers = there.setdefault(name, set())
            servers.discard(piece.place)
            if servers or (known is not None and not known and _is_down(rows, name)):
                continue
            since, detail = cause.get(piece.place, (0, STOPPED))
            detail = detail if at_ms - since <= _CAUSE_MS else STOPPED
            rows.append(
                event(BROKER_DOWN, at_ms + MIDDLE_MS, piece.source, broker_name=name, detail=detail)
            )
    return rows


def _is_down(rows: list[Row], name: str) -> bool:
    last = next((row for row in reversed(rows) if row["broker_name"] == name), None)
    return last is not None and last["event_type"] == BROKER_DOWN


def _has_route(piece: Evidence, name: str, context: ClusterContext) -> bool:
    """False for a slave of 4.9: only from 5.0 on one without its master registers topics.

    RouteInfoManager.registerBroker, ``isPrimeSlave``.
    """
    return piece.values["address"] not in context.slaves or not _is_v4(name, context)


def _is_v4(name: str, context: ClusterContext) -> bool:
    version = context.versions.get(name)
    return version is not None and parse_version(version).is_v4


def _from_brokers(ordered: list[Evidence], context: ClusterContext) -> list[Row]:
    """Starts of masters, stops of a broker's last process, and the first start after that."""
    rows: list[Row] = []
    alive = _running_at_first(ordered, context)
    for piece in ordered:
        if piece.kind not in _OWN_LIFE:
            continue
        at_ms = context.time_of(piece) + MIDDLE_MS
        folder = context.folders.get(piece.place)
        name = folder.broker_name if folder else piece.values.get("broker", piece.place)
        others = alive.setdefault(name, set()) - {piece.place}
        if piece.kind != "broker_stopping":
            alive[name].add(piece.place)
            down = _is_down(rows, name)
            if folder and folder.slave:
                back = down and not _is_v4(name, context)
            else:
                back = down or not others
            if piece.kind == "broker_booted" and back:
                rows.append(_up(name, at_ms, piece.source, context))
            continue
        alive[name] = others
        if not others:
            rows.append(event(BROKER_DOWN, at_ms, piece.source, broker_name=name, detail=STOPPED))
    return rows


def _running_at_first(ordered: list[Evidence], context: ClusterContext) -> dict[str, set[str]]:
    """By broker its folders whose log does not begin with a start; "": its master has no log."""
    first: dict[str, str] = {}
    for piece in ordered:
        if piece.kind in _OWN_LIFE:
            first.setdefault(piece.place, piece.kind)
    running: dict[str, set[str]] = {}
    masters = {f.broker_name for f in context.folders.values() if not f.slave}
    for name, folder in context.folders.items():
        folders = running.setdefault(folder.broker_name, set())
        if folder.place in context.logged and first.get(name) in (None, "broker_stopping"):
            folders.add(name)
        if folder.broker_name not in masters:
            folders.add("")
    return running


def _up(
    name: str, at_ms: int, source: str, context: ClusterContext, detail: str | None = None
) -> Row:
    version = context.versions.get(name)
    return event(BROKER_UP, at_ms, source, broker_name=name, version=version, detail=detail)


def _turned(turn: MasterTurn) -> Row:
    kind = MASTER_DOWN if turn.is_down else MASTER_UP
    return event(kind, turn.at_ms, turn.source, broker_name=turn.broker_name, detail=turn.mode)


def _no_name_server() -> Row:
    return finding(
        "INGEST_NO_NAMESRV_LOG",
        "No name server's log was collected: brokers that crashed are not known to have been down.",
        "Collect namesrv.log of every name server.",
        "WARNING",
    )
