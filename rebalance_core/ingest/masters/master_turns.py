"""When masters went and came back, by the best files there are.

Name servers' logs name addresses only: a master's removal is no end of its broker while a slave is
there, a slave's registration no start. Without such a log the brokers' own tell, else
``clusterList``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from rebalance_core.ingest.evidence.evidence import Evidence
from rebalance_core.ingest.masters.gone_before import gone_before
from rebalance_core.ingest.masters.process_turns import dumped_turns, process_turns, role_turns
from rebalance_core.ingest.masters.replicas import MIDDLE_OF_SECOND_MS, Replicas
from rebalance_core.ingest.masters.slave_modes import SlaveModes
from rebalance_core.ingest.masters.turn import MasterTurn
from rebalance_core.ingest.name_servers.silences import heard, silences

_REGISTERED = ("broker_registered", "broker_address")
_REMOVED = ("replica_removed", "broker_removed")
_BATCH_MS = 2_000
"""All that is removed with a master is logged so soon after it (5.x removes in batches)."""


def master_turns(
    pieces: Iterable[Evidence], replicas: Replicas, start_ms: int
) -> tuple[MasterTurn, ...]:
    """The turns of all brokers that have a slave, by time; those of one broker alternate.

    Args:
        pieces: evidence on the cluster; without a time it says nothing.
        replicas: of its brokers.
        start_ms: begin of the period; a master that was gone from the first on is gone since then.
    """
    timed = [piece for piece in heard(pieces) if piece.at_ms is not None]
    ordered = sorted(timed, key=lambda p: (p.at_ms or 0, p.place, p.position))
    if any(piece.kind in (*_REGISTERED, *_REMOVED) for piece in ordered):
        found = list(_registered_turns(ordered, replicas))
        told = {turn.broker_name for turn in found}
    else:
        found = list(process_turns(ordered, replicas))
        told = {turn.broker_name for turn in found if turn.is_down}
    before = list(gone_before(ordered, replicas, found, start_ms))
    found += [t for t in dumped_turns(ordered, replicas) if t.broker_name not in told]
    found += before
    found = [turn for turn in found if turn.broker_name not in replicas.switched]
    found += role_turns(ordered, replicas)
    modes = SlaveModes(ordered, replicas)
    return tuple(_with_modes(_alternating(found, replicas), modes))


def modes_at_end(
    pieces: Iterable[Evidence], replicas: Replicas, end_ms: int
) -> dict[str, str | None]:
    """What the slaves of each broker that has one would do without its master; None: not known."""
    timed = [piece for piece in pieces if piece.at_ms is not None]
    modes = SlaveModes(sorted(timed, key=lambda piece: piece.at_ms or 0), replicas)
    return {name: modes.at_end(name, end_ms) for name in sorted(replicas.replicated)}


def _alternating(found: Iterable[MasterTurn], replicas: Replicas) -> list[MasterTurn]:
    """Each broker's turns from its first loss on, one up after each down."""
    down: set[str] = set()
    turns = []
    for turn in sorted(found, key=lambda turn: (turn.at_ms, turn.broker_name)):
        name = turn.broker_name
        if name in replicas.replicated and turn.is_down != (name in down):
            turns.append(turn)
            down ^= {name}
    return turns


def _with_modes(turns: list[MasterTurn], modes: SlaveModes) -> Iterator[MasterTurn]:
    for number, turn in enumerate(turns):
        if turn.is_down:
            later = (t.at_ms for t in turns[number + 1 :] if t.broker_name == turn.broker_name)
            turn = replace(turn, mode=modes.of(turn.broker_name, turn.at_ms, next(later, None)))
        yield turn


@dataclass
class _Registry:
    """What the name servers have of one broker."""

    servers: set[str] = field(default_factory=set)
    """Those that were seen to have its master, and not to lose it."""
    lost: bool = False
    """They were all seen to lose it."""


def _registered_turns(ordered: list[Evidence], replicas: Replicas) -> Iterator[MasterTurn]:
    """A master is there while any name server has it."""
    removals = [
        (p.place, p.values["broker"], p.at_ms) for p in ordered if p.kind == "broker_removed"
    ]
    registries: dict[str, _Registry] = {}
    silent = silences(ordered)
    for number, piece in enumerate(ordered):
        if number - 1 in silent:
            for its in registries.values():
                its.servers.discard(silent[number - 1])
        at_ms, source = (piece.at_ms or 0) + MIDDLE_OF_SECOND_MS, piece.source
        address = piece.values.get("address", "")
        name = piece.values.get("broker") or replicas.names.get(address)
        if name is None or piece.kind not in (*_REGISTERED, *_REMOVED):
            continue
        registry = registries.setdefault(name, _Registry())
        if piece.kind == "broker_removed":
            registry.servers.discard(piece.place)
            registry.lost = not registry.servers
        elif piece.kind == "replica_removed" and replicas.is_master(address):
            registry.servers.discard(piece.place)
            registry.lost = not registry.servers
            last = any(
                (place, broker) == (piece.place, name)
                and 0 <= (removed_ms or 0) - (piece.at_ms or 0) <= _BATCH_MS
                for place, broker, removed_ms in removals
            )
            if registry.lost and not last:
                yield MasterTurn(name, at_ms, True, source)
        elif piece.kind in _REGISTERED and replicas.is_master(address):
            registry.servers.add(piece.place)
            registry.lost = False
            yield MasterTurn(name, at_ms, False, source)
        elif piece.kind in _REGISTERED and registry.lost and name in replicas.lone_slaves:
            yield MasterTurn(name, at_ms, True, source)  # after the end of all: alone at first
