"""Turns of masters as the brokers' own logs, or lists of the cluster's brokers, tell them; those
of brokers whose replicas are master by turns.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from rebalance_core.ingest.evidence.broker_folders import MASTER_ID
from rebalance_core.ingest.evidence.evidence import Evidence
from rebalance_core.ingest.fact import file_of
from rebalance_core.ingest.masters.replicas import MIDDLE_OF_SECOND_MS, Replicas
from rebalance_core.ingest.masters.turn import MasterTurn

LAST_MS = 2**62
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


def role_turns(ordered: list[Evidence], replicas: Replicas) -> Iterator[MasterTurn]:
    """Losses of masters, and the moments at which another replica, or the same again, became it.

    A loss is dated by what tells of the end of that master's process: the name server, its own
    stop, or a slave that copies in vain; else by the moment at which the next one took over.
    """
    for name in sorted(replicas.switched):
        of_name = {f: its for f, its in replicas.folders.items() if its.broker_name == name}
        began = sorted(
            (at_ms, folder, source)
            for folder, its in of_name.items()
            for at_ms, master, source in its.turns
            if master
        )
        ends = [*began[1:], (LAST_MS, "", "")]
        for (from_ms, folder, source), (to_ms, _, next_source) in zip(began, ends, strict=True):
            if from_ms:
                at_ms = from_ms + MIDDLE_OF_SECOND_MS
                if folder == began[0][1] and from_ms == began[0][0]:  # of a master without files
                    yield MasterTurn(name, at_ms, True, source)
                yield MasterTurn(name, at_ms, False, source)
            addresses = of_name[folder].addresses
            lost = (
                piece
                for piece in ordered
                if from_ms <= (piece.at_ms or 0) <= to_ms and _ends(piece, folder, addresses)
            )
            first = next(lost, None)
            if first is not None:
                at_ms = (first.at_ms or 0) + MIDDLE_OF_SECOND_MS
                yield MasterTurn(name, at_ms, True, first.source)
                yield from _listed_since(ordered, name, at_ms, to_ms, addresses)
            elif to_ms < LAST_MS:
                yield MasterTurn(name, to_ms + MIDDLE_OF_SECOND_MS, True, next_source)


def _listed_since(
    ordered: list[Evidence], name: str, since_ms: int, until_ms: int, lost: Collection[str]
) -> Iterator[MasterTurn]:
    """Another master, of which no log was collected, in the first list that has it."""
    for piece in ordered:
        v, at_ms = piece.values, piece.at_ms or 0
        if piece.kind != "broker" or v["broker_name"] != name or not since_ms < at_ms < until_ms:
            continue
        if int(v["broker_id"]) == MASTER_ID and v["addr"] not in lost:
            yield MasterTurn(name, at_ms, False, piece.source)
            return


def _ends(piece: Evidence, folder: str, addresses: Collection[str]) -> bool:
    """It tells of the end of the process in the folder."""
    if piece.kind == "broker_stopping":
        return piece.place == folder
    lost = ("replica_removed", "broker_copy_failed")
    return piece.kind in lost and piece.values["address"] in addresses


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
