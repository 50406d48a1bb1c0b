"""Masters that were gone before the first file tells of them: nobody saw when they went."""

from __future__ import annotations

from collections.abc import Iterator

from rebalance_core.ingest.evidence.broker_folders import MASTER_ID
from rebalance_core.ingest.evidence.evidence import Evidence
from rebalance_core.ingest.masters.process_turns import dumped_turns
from rebalance_core.ingest.masters.replicas import Replicas
from rebalance_core.ingest.masters.turn import MasterTurn
from rebalance_core.ingest.name_servers.silences import HEARD_MS

_ALIVE = ("broker_booted", "broker_starting", "broker_stopping", "broker_property", "broker_local")
"""What a process states in its own log while it runs."""


def gone_before(
    ordered: list[Evidence], replicas: Replicas, logged: list[MasterTurn], start_ms: int
) -> Iterator[MasterTurn]:
    """One loss, at the begin of the period, for each master that was gone from the first on.

    It is so where slaves stand alone in the first list or route, or registered with a name server
    that started and has not heard of the master for a minute; and nothing earlier shows the master.

    Args:
        ordered: evidence on the cluster by time.
        replicas: of its brokers.
        logged: turns that logs tell.
        start_ms: begin of the period.
    """
    first: dict[str, MasterTurn] = {}
    for turn in sorted(logged, key=lambda turn: turn.at_ms):
        first.setdefault(turn.broker_name, turn)
    alone = [*dumped_turns(ordered, replicas), *_routed(ordered, replicas)]
    shown: dict[str, MasterTurn] = {}
    for turn in sorted(alone, key=lambda turn: (turn.at_ms, turn.is_down)):
        shown.setdefault(turn.broker_name, turn)
    for name in sorted(replicas.replicated):
        known_ms = first[name].at_ms if name in first else None
        lone = shown.get(name)
        if lone is None or (known_ms is not None and known_ms <= lone.at_ms):
            lone = _unheard(ordered, replicas, name, known_ms)
        if lone is None or not lone.is_down or _alive(ordered, replicas, name, lone.at_ms):
            continue
        if name not in first or not first[name].is_down:
            yield MasterTurn(name, start_ms, True, lone.source)


def _routed(ordered: list[Evidence], replicas: Replicas) -> Iterator[MasterTurn]:
    """Routes of a broker that has slaves, with its master or without."""
    for piece in ordered:
        if piece.kind == "route_broker" and piece.values["addresses"]:
            ids = {int(one): address for one, address in piece.values["addresses"].items()}
            there = MASTER_ID in ids and ids[MASTER_ID] not in replicas.slaves
            name = piece.values["broker_name"]
            yield MasterTurn(name, piece.at_ms or 0, not there, piece.source)


def _unheard(
    ordered: list[Evidence], replicas: Replicas, name: str, known_ms: int | None
) -> MasterTurn | None:
    """Slaves of it registered with a name server that started, and its master did not."""
    started: dict[str, int] = {}
    last_ms = max((piece.at_ms or 0 for piece in ordered), default=0)
    for piece in ordered:
        at_ms, address = piece.at_ms or 0, piece.values.get("address", "")
        if piece.kind == "name_server_property":
            started.setdefault(piece.place, at_ms)
        elif piece.kind == "broker_registered" and replicas.names.get(address) == name:
            heard_ms = last_ms if known_ms is None else known_ms
            waited = heard_ms - started.get(piece.place, heard_ms)
            if address in replicas.slaves and name in replicas.lone_slaves:
                if waited > HEARD_MS:
                    return MasterTurn(name, at_ms, True, piece.source)
            else:
                return None
    return None


def _alive(ordered: list[Evidence], replicas: Replicas, name: str, at_ms: int) -> bool:
    """The master's own log has a line from before."""
    masters = {
        f for f, its in replicas.folders.items() if its.broker_name == name and not its.slave
    }
    return any(
        piece.place in masters and piece.kind in _ALIVE and (piece.at_ms or 0) < at_ms
        for piece in ordered
    )
