"""BROKER_UP and BROKER_DOWN from what the name servers log, else from the brokers themselves;
MASTER_UP and MASTER_DOWN beside them.
"""

from __future__ import annotations

from collections.abc import Iterable

from rebalance_core.ingest.cluster_context import ClusterContext
from rebalance_core.ingest.evidence.evidence import Evidence
from rebalance_core.ingest.masters.turn import MasterTurn
from rebalance_core.ingest.name_servers.broker_registry import (
    STOPPED,
    BrokerRegistry,
    broker_up,
    is_down,
)
from rebalance_core.ingest.parse.text.second_resolution import MIDDLE_MS
from rebalance_core.ingest.rows import Row, Tables, event, finding
from rebalance_core.model.events import BROKER_DOWN, MASTER_DOWN, MASTER_UP, OBSERVED

_OWN_LIFE = ("broker_starting", "broker_booted", "broker_stopping")


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
    rows = BrokerRegistry(context).read(ordered) if registry else _from_brokers(ordered, context)
    findings = [] if registry else [_no_name_server()]
    seen = {row["broker_name"] for row in rows}
    first: dict[str, Row] = {}
    for row in rows:
        first.setdefault(row["broker_name"], row)
    for name in context.brokers:
        if name not in seen or first[name]["event_type"] == BROKER_DOWN:
            source = first[name]["source"] if name in first else "collection.toml"
            rows.append(broker_up(name, context.start_ms, source, context, OBSERVED))
    rows += [_turned(turn) for turn in context.master_turns]
    return {"cluster_events": rows, "findings": findings}


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
            down = is_down(rows, name)
            if folder and folder.slave:
                back = down and not context.is_v4(name)
            else:
                back = down or not others
            if piece.kind == "broker_booted" and back:
                rows.append(broker_up(name, at_ms, piece.source, context))
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
