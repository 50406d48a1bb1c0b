"""The times at which a broker's master leaves or returns while its slaves are alive."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from rebalance_core.ingest.broker_folders import (
    HEARD_MS,
    MASTER_ID,
    registered,
    silences,
    without_graceful_stops,
)
from rebalance_core.ingest.fact import file_of
from rebalance_core.ingest.replicas import MIDDLE_OF_SECOND_MS, Replicas
from rebalance_core.ingest.slave_modes import SlaveModes

if TYPE_CHECKING:
    from rebalance_core.ingest.evidence_types import (
        BrokerCopyFailedPiece,
        ClusterEvidence,
    )


@dataclass(frozen=True, slots=True)
class MasterTurn:
    """The loss or return of a broker's master.

    Attributes:
        broker_name: its broker.
        at_ms: the time, epoch ms UTC.
        is_down: whether it was lost.
        source: ``file:line`` that states it.
        mode: for a loss, what the slaves do, one of `model.events.MASTER_MODES`; None if unknown.
    """

    broker_name: str
    at_ms: int
    is_down: bool
    source: str
    mode: str | None = None


LAST_MS = 2**62
_LIFE = ("broker_booted", "broker_stopping", "min_broker")


def process_turns(ordered: list[ClusterEvidence], replicas: Replicas) -> Iterator[MasterTurn]:
    """Yield stops and starts of masters' processes while one of their slaves runs.

    If a log has two starts of a master and no stop between them, its process died, and from then on
    its slaves log that they cannot reach it. Without such lines, the time is unknown and no turn is
    yielded. Slaves that may act as master also log when they do, 10 s after the loss, and when the
    master is back.
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
            down = piece.values["broker_id"] != MASTER_ID
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


def role_turns(ordered: list[ClusterEvidence], replicas: Replicas) -> Iterator[MasterTurn]:
    """Yield the losses of masters, and the times at which the same or another replica became
    master.

    A loss is dated by the record of the end of that master's process or role (in the name server's
    log, its own stop, a slave's failing copies, or the line in which it becomes a slave), otherwise
    by the moment at which the next master took over. Within the same second of the logs, the loss
    comes first.
    """
    for name in sorted(replicas.switched):
        of_name = {f: r for f, r in replicas.folders.items() if r.broker_name == name}
        began = sorted(
            (at_ms, folder, source)
            for folder, r in of_name.items()
            for at_ms, master, source in r.turns
            if master
        )
        ends = [*began[1:], (LAST_MS, "", "")]
        for (from_ms, folder, source), (to_ms, _, next_source) in zip(began, ends, strict=True):
            if from_ms:
                at_ms = from_ms + MIDDLE_OF_SECOND_MS
                if folder == began[0][1] and from_ms == began[0][0]:  # for a master without files
                    yield MasterTurn(name, at_ms, True, source)
                yield MasterTurn(name, at_ms, False, source)
            addresses = of_name[folder].addresses
            lost = (
                piece
                for piece in ordered
                if from_ms <= (piece.at_ms or 0) <= to_ms and _ends(piece, folder, addresses)
            )
            first = next(lost, None)
            before_next_ms = to_ms + MIDDLE_OF_SECOND_MS - 1
            if first is not None:
                at_ms = min((first.at_ms or 0) + MIDDLE_OF_SECOND_MS, before_next_ms)
                yield MasterTurn(name, at_ms, True, first.source)
                yield from _listed_since(ordered, name, at_ms, to_ms, addresses)
            elif to_ms < LAST_MS:
                yield MasterTurn(name, before_next_ms, True, next_source)


def _listed_since(
    ordered: list[ClusterEvidence], name: str, since_ms: int, until_ms: int, lost: Collection[str]
) -> Iterator[MasterTurn]:
    """Yield any other master without a collected log, at the first list that names it."""
    for piece in ordered:
        at_ms = piece.at_ms or 0
        if piece.kind != "broker" or not since_ms < at_ms < until_ms:
            continue
        v = piece.values
        if v["broker_name"] == name and v["broker_id"] == MASTER_ID and v["addr"] not in lost:
            yield MasterTurn(name, at_ms, False, piece.source)
            return


def _ends(piece: ClusterEvidence, folder: str, addresses: Collection[str]) -> bool:
    """Return True if the line shows that the folder's process ends or becomes a slave."""
    if piece.kind == "broker_role":
        return piece.place == folder and piece.values["slave"]
    if piece.kind == "broker_stopping":
        return piece.place == folder
    if piece.kind == "replica_removed" or piece.kind == "broker_copy_failed":
        return piece.values["address"] in addresses
    return False


def _slave_runs(running: dict[str, bool], replicas: Replicas, name: str) -> bool:
    """Return True for a collected slave that was not seen to stop; any other is assumed to run."""
    slaves = [f for f, r in replicas.folders.items() if r.slave and r.broker_name == name]
    return not slaves or any(running.get(folder, True) for folder in slaves)


def _unlogged_end(
    ordered: list[ClusterEvidence], replicas: Replicas, name: str, since_ms: int, until_ms: int
) -> Iterator[MasterTurn]:
    """Yield the first of a slave's failed copies that continue until the master is back."""
    slaves = {f for f, r in replicas.folders.items() if r.slave and r.broker_name == name}
    first: BrokerCopyFailedPiece | None = None
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


def dumped_turns(ordered: list[ClusterEvidence], replicas: Replicas) -> Iterator[MasterTurn]:
    """Yield the lists in which a broker has only slaves, or has its master again."""
    listed: dict[tuple[str, int, str], set[bool]] = {}
    for piece in ordered:
        if piece.kind == "broker" and not piece.values.get("partial"):
            key = (file_of(piece.source), piece.at_ms or 0, piece.values["broker_name"])
            first = piece.values["broker_id"] == MASTER_ID
            master = first and piece.values["addr"] not in replicas.slaves
            listed.setdefault(key, set()).add(master)
    for (source, at_ms, name), masters in listed.items():
        yield MasterTurn(name, at_ms, True not in masters, source)


_ALIVE = ("broker_booted", "broker_starting", "broker_stopping", "broker_property", "broker_local")
"""What a process logs about itself while it runs."""


def gone_before(
    ordered: list[ClusterEvidence], replicas: Replicas, logged: list[MasterTurn], start_ms: int
) -> Iterator[MasterTurn]:
    """Yield a loss, at the start of the period, for each master that was gone from the beginning.

    This is the case if the first list or route has only slaves, or if only slaves registered with a
    name server that started and has not heard of the master for a minute, and nothing earlier shows
    the master.

    Args:
        ordered: evidence on the cluster by time.
        replicas: the replicas of its brokers.
        logged: turns that logs show.
        start_ms: start of the period.
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


def _routed(ordered: list[ClusterEvidence], replicas: Replicas) -> Iterator[MasterTurn]:
    """Yield the routes of a broker that has slaves, with or without its master."""
    for piece in ordered:
        if piece.kind == "route_broker" and piece.values["addresses"]:
            ids = {
                int(broker_id): address for broker_id, address in piece.values["addresses"].items()
            }
            listed = MASTER_ID in ids and ids[MASTER_ID] not in replicas.slaves
            name = piece.values["broker_name"]
            yield MasterTurn(name, piece.at_ms or 0, not listed, piece.source)


def _unheard(
    ordered: list[ClusterEvidence], replicas: Replicas, name: str, known_ms: int | None
) -> MasterTurn | None:
    """Return the loss shown by slaves that register without their master, if any."""
    started: dict[str, int] = {}
    last_ms = max((piece.at_ms or 0 for piece in ordered), default=0)
    for piece in ordered:
        at_ms = piece.at_ms or 0
        if piece.kind == "name_server_property":
            started.setdefault(piece.place, at_ms)
        elif piece.kind == "broker_registered":
            address = piece.values["address"]
            if replicas.names.get(address) != name:
                continue
            heard_ms = last_ms if known_ms is None else known_ms
            waited = heard_ms - started.get(piece.place, heard_ms)
            if address in replicas.slaves and name in replicas.lone_slaves:
                if waited > HEARD_MS:
                    return MasterTurn(name, at_ms, True, piece.source)
            else:
                return None
    return None


def _alive(ordered: list[ClusterEvidence], replicas: Replicas, name: str, at_ms: int) -> bool:
    """Return True if a log of the master has a line from before that time."""
    masters = {f for f, r in replicas.folders.items() if r.broker_name == name and not r.slave}
    return any(
        piece.place in masters and piece.kind in _ALIVE and (piece.at_ms or 0) < at_ms
        for piece in ordered
    )


_IN_REGISTRY = ("broker_registered", "broker_address", "replica_removed", "broker_removed")
_BATCH_MS = 2_000
"""The maximum delay of log lines about what is removed together with a master (5.x removes in
batches).
"""


def master_turns(
    pieces: Iterable[ClusterEvidence], replicas: Replicas, start_ms: int
) -> tuple[MasterTurn, ...]:
    """Return the turns of all brokers that have a slave, by time; those of one broker alternate.

    Args:
        pieces: evidence on the cluster; pieces without a time are ignored.
        replicas: the replicas of its brokers.
        start_ms: start of the period, from which a master that was gone from the beginning is gone.
    """
    timed = [piece for piece in without_graceful_stops(pieces) if piece.at_ms is not None]
    ordered = sorted(timed, key=lambda p: (p.at_ms or 0, p.place, p.position))
    if any(piece.kind in _IN_REGISTRY for piece in ordered):
        turns = list(_registered_turns(ordered, replicas))
        with_turns = {turn.broker_name for turn in turns}
    else:
        turns = list(process_turns(ordered, replicas))
        with_turns = {turn.broker_name for turn in turns if turn.is_down}
    before = list(gone_before(ordered, replicas, turns, start_ms))
    turns += [t for t in dumped_turns(ordered, replicas) if t.broker_name not in with_turns]
    turns += before
    turns = [turn for turn in turns if turn.broker_name not in replicas.switched]
    turns += role_turns(ordered, replicas)
    modes = SlaveModes(ordered, replicas)
    return tuple(_with_modes(_alternating(turns, replicas), modes))


def modes_at_end(
    pieces: Iterable[ClusterEvidence], replicas: Replicas, end_ms: int
) -> dict[str, str | None]:
    """Return what the slaves of each broker would do without its master, or None if unknown."""
    timed = [piece for piece in pieces if piece.at_ms is not None]
    modes = SlaveModes(sorted(timed, key=lambda piece: piece.at_ms or 0), replicas)
    return {name: modes.at_end(name, end_ms) for name in sorted(replicas.replicated)}


def _alternating(all_turns: Iterable[MasterTurn], replicas: Replicas) -> list[MasterTurn]:
    """Return each broker's turns from its first loss on, with one return after each loss."""
    down: set[str] = set()
    turns = []
    for turn in sorted(all_turns, key=lambda turn: (turn.at_ms, turn.broker_name)):
        name = turn.broker_name
        if name in replicas.replicated and turn.is_down != (name in down):
            turns.append(turn)
            down ^= {name}
    return turns


def _with_modes(turns: list[MasterTurn], modes: SlaveModes) -> Iterator[MasterTurn]:
    for number, turn in enumerate(turns):
        if turn.is_down:
            later = (t.at_ms for t in turns[number + 1 :] if t.broker_name == turn.broker_name)
            turn = replace(
                turn, mode=modes.mode_of(turn.broker_name, turn.at_ms, next(later, None))
            )
        yield turn


@dataclass
class _Registry:
    """The name servers' entry of one broker."""

    servers: set[str] = field(default_factory=set)
    """Name servers that were seen to list its master but not to lose it."""
    lost: bool = False
    """Whether all of these name servers were seen to lose it."""


def _registered_turns(ordered: list[ClusterEvidence], replicas: Replicas) -> Iterator[MasterTurn]:
    """Yield losses and returns of masters; a master is present while any name server has it."""
    removals = [
        (p.place, p.values["broker"], p.at_ms) for p in ordered if p.kind == "broker_removed"
    ]
    registries: dict[str, _Registry] = {}
    silent = silences(ordered)
    for number, piece in enumerate(ordered):
        if number - 1 in silent:
            for each in registries.values():
                each.servers.discard(silent[number - 1])
        at_ms, source = (piece.at_ms or 0) + MIDDLE_OF_SECOND_MS, piece.source
        name = _in_registry(piece, replicas)
        if name is None:
            continue
        registry = registries.setdefault(name, _Registry())
        if piece.kind == "broker_removed":
            registry.servers.discard(piece.place)
            registry.lost = not registry.servers
        elif piece.kind == "replica_removed":
            if not replicas.is_master(piece.values["address"]):
                continue
            registry.servers.discard(piece.place)
            registry.lost = not registry.servers
            last = any(
                (place, broker) == (piece.place, name)
                and 0 <= (removed_ms or 0) - (piece.at_ms or 0) <= _BATCH_MS
                for place, broker, removed_ms in removals
            )
            if registry.lost and not last:
                yield MasterTurn(name, at_ms, True, source)
        elif piece.kind == "broker_registered" or piece.kind == "broker_address":
            if replicas.is_master(piece.values["address"]):
                registry.servers.add(piece.place)
                registry.lost = False
                yield MasterTurn(name, at_ms, False, source)
            elif registry.lost and name in replicas.lone_slaves:
                # it was alone before its master registered
                yield MasterTurn(name, at_ms, True, source)


def _in_registry(piece: ClusterEvidence, replicas: Replicas) -> str | None:
    """Return the broker whose entry at a name server a line changes, or None for other lines."""
    if piece.kind == "broker_removed":
        return piece.values["broker"]
    if piece.kind == "replica_removed":
        return replicas.names.get(piece.values["address"])
    if piece.kind == "broker_registered" or piece.kind == "broker_address":
        return registered(piece, replicas.names)
    return None
