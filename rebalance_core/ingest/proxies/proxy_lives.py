"""When each proxy's log shows it starting and alive, and what else files tell of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from rebalance_core.ingest.evidence.evidence import Evidence
from rebalance_core.model.times import MINUTE_MS

PROXY_KINDS = ("proxy_starting", "proxy_alive", "proxy_mode", "proxy_local")


@dataclass(frozen=True)
class ProxyLives:
    """Of all proxies, each by its place.

    Attributes:
        starts: (time, source) of each start; a proxy's table of consumers is empty then.
        minutes: since 1970, of each minute in which its log has a line on a member.
        modes: CLUSTER or LOCAL, as stated last.
        addresses: its own ends of clients' connections.
    """

    starts: Mapping[str, tuple[tuple[int, str], ...]] = field(default_factory=dict)
    minutes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    modes: Mapping[str, str] = field(default_factory=dict)
    addresses: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def proxy_lives(pieces: Iterable[Evidence], end_ms: int) -> ProxyLives:
    """The lives from the evidence on the cluster; what has no time is of the collection's end."""
    starts: dict[str, set[tuple[int, str]]] = {}
    minutes: dict[str, set[int]] = {}
    modes: dict[str, set[tuple[int, str]]] = {}
    addresses: dict[str, set[str]] = {}
    for piece in pieces:
        at_ms = end_ms if piece.at_ms is None else piece.at_ms
        if piece.kind == "proxy_starting":
            starts.setdefault(piece.place, set()).add((at_ms, piece.source))
        elif piece.kind == "proxy_alive":
            minutes.setdefault(piece.place, set()).add(at_ms // MINUTE_MS)
        elif piece.kind == "proxy_mode":
            modes.setdefault(piece.place, set()).add((at_ms, piece.values["mode"].upper()))
        elif piece.kind == "proxy_local":
            addresses.setdefault(piece.place, set()).add(piece.values["address"])
    return ProxyLives(
        {place: tuple(sorted(times)) for place, times in starts.items()},
        {place: tuple(sorted(of_place)) for place, of_place in minutes.items()},
        {place: max(stated)[1] for place, stated in modes.items()},
        {place: tuple(sorted(of_place)) for place, of_place in addresses.items()},
    )
