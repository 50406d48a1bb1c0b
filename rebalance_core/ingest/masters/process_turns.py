"""Turns of masters as the brokers' own logs, or lists of the cluster's brokers, tell them."""

from __future__ import annotations

from collections.abc import Iterator

from rebalance_core.ingest.evidence.broker_folders import MASTER_ID
from rebalance_core.ingest.evidence.evidence import Evidence
from rebalance_core.ingest.fact import file_of
from rebalance_core.ingest.masters.replicas import MIDDLE_OF_SECOND_MS, Replicas
from rebalance_core.ingest.masters.turn import MasterTurn

_LIFE = ("broker_booted", "broker_stopping", "min_broker")


def process_turns(ordered: list[Evidence], replicas: Replicas) -> Iterator[MasterTurn]:
    """Stops and starts of masters' processes while a slave of theirs runs.

    A master that starts without having stopped died since its last start: its slaves logged in vain
    from when on. Where they did not, nobody knows when that was, and it is no turn. Slaves that may
    act as master also log when they do, 10 s after the loss, and when the master is back.
    """
    running: dict[str, bool] = {}
    booted_ms: dict[str, int] = {}
    for piece in ordered:
        folder = replicas.folders.get(piece.place)
        if folder is None or piece.kind not in _LIFE:
            continue
        at_ms, starts = piece.at_ms or 0, piece.kind == "broker_booted"
        name, place = folder.broker_name, piece.place
        if piece.kind == "min_broker":
            down = int(piece.values["broker_id"]) != MASTER_ID
            yield MasterTurn(name, at_ms + MIDDLE_OF_SECOND_MS, down, piece.source)
            continue
        if not folder.slave:
            if starts and running.get(place):
                yield from _unlogged_end(ordered, replicas, name, booted_ms[place], at_ms)
            if starts or _slave_runs(running, replicas, name):
                yield MasterTurn(name, at_ms + MIDDLE_OF_SECOND_MS, not starts, piece.source)
        if starts:
            booted_ms[place] = at_ms
        running[place] = starts


def _slave_runs(running: dict[str, bool], replicas: Replicas, name: str) -> bool:
    """One whose folder was collected, unless it was seen to stop; else any is taken to run."""
    slaves = [f for f, its in replicas.folders.items() if its.slave and its.broker_name == name]
    return not slaves or any(running.get(folder, True) for folder in slaves)


def _unlogged_end(
    ordered: list[Evidence], replicas: Replicas, name: str, since_ms: int, until_ms: int
) -> Iterator[MasterTurn]:
    """The first of the vain copies of a slave that last until the master is back."""
    slaves = {f for f, its in replicas.folders.items() if its.slave and its.broker_name == name}
    first: Evidence | None = None
    for piece in ordered:
        at_ms = piece.at_ms or 0
        inside = since_ms < at_ms < until_ms and piece.place in slaves
        if inside and piece.kind == "broker_follows":
            first = None
        elif inside and piece.kind == "broker_copy_failed":
            first = first or piece
    if first is not None:
        at_ms = (first.at_ms or 0) + MIDDLE_OF_SECOND_MS
        yield MasterTurn(name, at_ms, True, first.source)


def dumped_turns(ordered: list[Evidence], replicas: Replicas) -> Iterator[MasterTurn]:
    """Lists in which a broker has slaves alone, or its master again."""
    listed: dict[tuple[str, int, str], set[bool]] = {}
    for piece in ordered:
        if piece.kind == "broker":
            key = (file_of(piece.source), piece.at_ms or 0, piece.values["broker_name"])
            first = int(piece.values["broker_id"]) == MASTER_ID
            master = first and piece.values.get("addr") not in replicas.slaves
            listed.setdefault(key, set()).add(master)
    for (source, at_ms, name), masters in listed.items():
        yield MasterTurn(name, at_ms, True not in masters, source)
