"""Durations of requests from log lines at the default level: rows of ``latencies``.

``start()`` and ``shutdown()`` contact one broker after another (rocketmq.md §6.2), so consecutive
lines show how long each step took. Notices are left out because only one line per second is kept,
which may be the fastest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Literal

from rebalance_core.contracts.observed import REGISTRATION, UNREGISTRATION
from rebalance_core.ingest.cluster_context import ClusterContext
from rebalance_core.ingest.events.connections import ProcessNames
from rebalance_core.ingest.evidence import Evidence, is_on_group
from rebalance_core.ingest.parse.wire_versions import version_of_ordinal
from rebalance_core.model.times import SECOND_MS

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import LatenciesBegun

LONGEST_STEP_MS = 3_000
"""ClientConfig.mqClientApiTimeout: what lies farther apart is no step of one round."""


@dataclass(frozen=True, slots=True)
class Line:
    """A log line of a round of requests: its time, broker and position."""

    at_ms: int
    broker: str
    source: str


def latency_rows(
    group: str, pieces: Iterable[Evidence], names: ProcessNames, context: ClusterContext
) -> list[LatenciesBegun]:
    """Return the latencies of a group that its evidence shows, in no order.

    Args:
        group: its name.
        pieces: the evidence on it, at corrected times.
        names: client ids by client log and process.
        context: of the cluster.
    """
    names_of = {folder.place: folder.broker_name for folder in context.folders.values()}
    joins: dict[str, list[Line]] = {}
    leaves: dict[tuple[str, object], list[Line]] = {}
    owners: dict[tuple[str, object], str | None] = {}
    versions: dict[str, str | None] = {}
    for piece in filter(is_on_group, pieces):
        second = context.time_of(piece)
        if piece.kind == "consumer_connected":
            values = piece.values
            beat = values["beat_ms"]
            direct = not (values.get("proxy_addr") or values.get("protocol"))
            if direct and second - SECOND_MS <= beat < second + SECOND_MS:
                client_id = values["client_id"]
                joins.setdefault(client_id, []).append(Line(beat, piece.place, piece.source))
                ordinal = values["version"]
                versions[client_id] = None if ordinal is None else version_of_ordinal(ordinal)
        elif piece.kind == "left_broker" and names.is_alone(piece):
            run = piece.place, piece.values.get("pid")
            leaves.setdefault(run, []).append(Line(second, "", piece.source))
            owners[run] = names.client_of(piece)
    return [
        {
            "kind": kind,
            "consumer_group": group,
            "client_id": client_id,
            "broker_name": names_of.get(step.broker, step.broker) or None,
            "version": versions.get(client_id or ""),
            "at_ms": step.at_ms,
            "ms": float(ms),
            "source": step.source,
        }
        for kind, client_id, step, ms in chain(
            registrations(joins), unregistrations(leaves, owners)
        )
    ]


Found = tuple[Literal["REGISTRATION", "UNREGISTRATION"], str | None, Line, int]


def registrations(joins: dict[str, list[Line]]) -> Iterator[Found]:
    """Yield the time from each registration of a join to the next, at another broker."""
    for client_id, steps in joins.items():
        for before, step in pairwise(sorted(steps, key=lambda step: (step.at_ms, step.broker))):
            ms = step.at_ms - before.at_ms
            if ms <= LONGEST_STEP_MS and step.broker != before.broker:
                yield REGISTRATION, client_id, step, ms


def unregistrations(
    leaves: dict[tuple[str, object], list[Line]], owners: dict[tuple[str, object], str | None]
) -> Iterator[Found]:
    """Yield the time from each broker's answer to a leave to the next broker's."""
    for run, steps in leaves.items():
        for before, step in pairwise(sorted(steps, key=lambda step: step.at_ms)):
            ms = step.at_ms - before.at_ms
            if ms <= LONGEST_STEP_MS:
                yield UNREGISTRATION, owners[run], step, ms
